"""Pictures of 8 bits that hold nothing but their pixels, by imageio: most masks, thumbnails and what programs made
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


def encode(values, extension, **options):
    """Bytes of a picture file without anything beside the pixels.

    Parameters
    ----------
    values : (H, W) or (H, W, C) ndarray of uint8
        C is 2, 3 or 4, of which the last of 2 or 4 is alpha.
    extension : str
        Such as ``.png``.
    **options
        Of Pillow's writer, such as ``quality`` of JPEG.
    """
    import imageio.v3

    return imageio.v3.imwrite("<bytes>", values, extension=extension, plugin="pillow", is_batch=False, **options)
