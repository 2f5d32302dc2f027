"""Pictures of 8 bits that hold nothing but their pixels, read by imageio: most masks and what programs made
themselves.

Where something stands beside the pixels, such as a profile or EXIF, `pillow` keeps it.
"""

import io

from .metadata import png_chunks

# What Pillow tells of a picture that is about the file rather than the picture.
_OF_THE_FILE = {
    "jfif",
    "jfif_version",
    "jfif_unit",
    "jfif_density",
    "progressive",
    "progression",
    "compression",
    "interlace",
    "loop",
    "background",
}
_MODES = ("L", "LA", "RGB", "RGBA")
_PIXELS = {b"IHDR", b"IDAT", b"IEND"}  # chunks of a PNG


def suits(picture, content):
    """Whether an open picture of Pillow, of the bytes `content`, holds nothing but pixels that `decode` gives as they
    are.
    """
    if picture.mode not in _MODES or picture.info.keys() - _OF_THE_FILE:
        return False
    if picture.format == "PNG":  # of which Pillow does not look behind the pixels before it reads them
        return {name for name, _ in png_chunks(content)} <= _PIXELS
    return picture.format in ("JPEG", "WEBP")


def decode(content):
    """Values of the bytes of a picture that `suits`, (H, W) or (H, W, C) ndarray of uint8; damage raises what Pillow
    raises.
    """
    import imageio.v3

    with imageio.v3.imopen(io.BytesIO(content), "r", plugin="pillow") as file:
        return file.read(index=0)
