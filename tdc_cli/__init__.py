"""tdc: fill in the missing parts of images, videos and tensors."""

__version__ = "0.1.0"
