"""Every choice that a user makes by name. Free of NumPy, so that ``tdc --help`` stays quick; tests hold the lists against what they name."""

PICTURE, CLIP, TENSOR = KINDS_OF_INPUT = ("picture", "clip", "tensor")
DEFAULT_METHODS = {PICTURE: "patches", CLIP: "patches", TENSOR: "datc"}

STANDARD = "-"  # in place of a path: standard input or output
ALPHA = "alpha"  # in place of a mask's path: what is transparent

PATTERNS = ("entries", "pixels", "rows", "columns", "blocks", "text", "scratches")
CLIP_PATTERNS = (*PATTERNS, "frames")
FORMATS = ("png", "jpg", "tif", "webp", "jxl", "bmp", "npy")
RESIDUALS = ("auto", "mixture", "none", "separable")
# Laws of the residual in synthetic problems.
RESIDUAL_LAWS = ("zero", "gaussian", "sparse", "mixture", "mixture-shifted")
