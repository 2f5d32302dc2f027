"""The libraries that decode and encode files, for `tdc info`."""


def versions():
    """Name of every library behind Pillow's formats to its version; None where Pillow was built without it."""
    from importlib.metadata import PackageNotFoundError, version

    import imagecodecs
    from PIL import features

    try:
        openexr = version("OpenEXR")
    except PackageNotFoundError:
        openexr = None

    return {
        "jpeg": features.version("libjpeg_turbo") or features.version("jpg"),
        "png (zlib)": features.version("zlib"),
        "tiff": features.version("libtiff"),
        "webp": features.version("webp"),
        "jpeg xl": imagecodecs.jpegxl_version().removeprefix("libjxl ") if imagecodecs.JPEGXL.available else None,
        "jpeg 2000": imagecodecs.jpeg2k_version().removeprefix("openjpeg ") if imagecodecs.JPEG2K.available else None,
        "openexr": openexr,
    }


def of_clips():
    """Version of FFmpeg's codecs, and name of every codec of clips to FFmpeg's names of its encoders; None where this
    build lacks one.
    """
    import av

    from .video import CODECS

    told = {"libavcodec": ".".join(map(str, av.library_versions["libavcodec"]))}
    for name, codec in CODECS.items():
        encoders = sorted(set(codec.encoders.values()))
        told[name] = " ".join(encoders) if av.codecs_available.issuperset(encoders) else None
    return told
