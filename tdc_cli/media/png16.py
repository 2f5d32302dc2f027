"""PNG with 16 bits a channel, by libpng through imagecodecs: Pillow keeps the upper 8 bits of colours only.

What stands beside the pixels is read and written by Pillow, in both depths the same.
"""

import numpy as np

from .metadata import png_chunks

_MODES = {0: "L", 2: "RGB", 4: "LA", 6: "RGBA"}  # by the colour type in the header
_COLOUR_TYPE = 25  # where in the file
_HEADER_END = 33  # 8 bytes of signature, then the header
_PIXELS = (b"IHDR", b"IDAT", b"IEND")


def mode(content):
    """Mode of the bytes of a PNG file without palette."""
    return _MODES[content[_COLOUR_TYPE]]


def decode(content):
    """Values of the bytes of a 16-bit PNG file.

    Returns
    -------
    (H, W) or (H, W, C) ndarray of uint16
        C as `mode` has it.

    Raises
    ------
    ValueError
        Damaged content.
    """
    import imagecodecs

    try:
        values = imagecodecs.png_decode(content)
    except imagecodecs.PngError as error:
        raise ValueError(str(error)) from error
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode(content)]
    # A colour that stands for transparency has been made alpha; it is kept as metadata.
    if values.ndim == 3 and values.shape[2] > channels:
        values = values[..., 0] if channels == 1 else values[..., :channels]
    return np.ascontiguousarray(values)


def encode(values, described):
    """Bytes of a 16-bit PNG file.

    Parameters
    ----------
    values : (H, W) or (H, W, C) ndarray of uint16
    described : bytes
        A PNG file of any size and 8 bits, whose chunks that are not about its pixels are taken over.
    """
    import imagecodecs

    content = imagecodecs.png_encode(np.ascontiguousarray(values))
    more = b"".join(chunk for name, chunk in png_chunks(described) if name not in _PIXELS)
    return content[:_HEADER_END] + more + content[_HEADER_END:]
