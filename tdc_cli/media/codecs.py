"""The libraries that decode and encode files, for `tdc info`."""


def versions():
    """Name of every library behind Pillow's formats to its version; None where Pillow was built without it."""
    from PIL import features

    return {
        "jpeg": features.version("libjpeg_turbo") or features.version("jpg"),
        "png (zlib)": features.version("zlib"),
        "tiff": features.version("libtiff"),
        "webp": features.version("webp"),
    }
