"""Small readers and writers of the tests' own, so that no file is judged by the library that wrote it."""

import io
import struct
import zlib

import numpy as np
from PIL import TiffImagePlugin

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> what the header of a PNG says


def png(values, more=()):
    """PNG of (H, W[, C]) uint8 or uint16 `values`, rows unfiltered, with `more` chunks (name, content) before the
    pixels.
    """
    height, width = values.shape[:2]
    channels = values.shape[2] if values.ndim == 3 else 1
    rows = values.astype(values.dtype.newbyteorder(">")).reshape(height, -1)
    content = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8 * values.dtype.itemsize, COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), *more, (b"IDAT", zlib.compress(content)), (b"IEND", b""))
    return SIGNATURE + b"".join(chunk(*pair) for pair in chunks)


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_metadata(profile, dpi, exif):
    """Chunks for `png`: a colour profile, dots an inch, and EXIF as Pillow's bytes."""
    per_metre = round(dpi / 0.0254)
    return (
        (b"iCCP", b"profile\0\0" + zlib.compress(profile)),
        (b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)),
        (b"eXIf", exif.removeprefix(b"Exif\0\0")),
    )


def png_chunks(content):
    """Name to content of the chunks of a PNG, the last of each name."""
    found, start = {}, len(SIGNATURE)
    while start < len(content):
        length = int.from_bytes(content[start : start + 4], "big")
        found[content[start + 4 : start + 8]] = content[start + 8 : start + 8 + length]
        start += 12 + length
    return found


def jxl_boxes(content):
    """Kind to data of the boxes of a JPEG XL file, the last of each kind."""
    found, start = {}, 0
    while start < len(content):
        length = int.from_bytes(content[start : start + 4], "big") or len(content) - start
        found[content[start + 4 : start + 8]] = content[start + 8 : start + length]
        start += length
    return found


def tiff_values(content):
    """(H, W[, C]) values of a little-endian TIFF in strips compressed by zlib."""
    tags = tiff_tags(content)
    assert content.startswith(b"II*\0") and tags[259] == 8
    kind = {1: "u", 3: "f"}[np.atleast_1d(tags.get(339, 1))[0]]
    bits = int(np.atleast_1d(tags[258])[0])
    strips = zip(np.atleast_1d(tags[273]), np.atleast_1d(tags[279]))
    data = b"".join(zlib.decompress(content[start : start + length]) for start, length in strips)
    shape = (tags[257], tags[256]) + ((tags[277],) if tags[277] > 1 else ())
    return np.frombuffer(data, dtype=f"<{kind}{bits // 8}").reshape(shape)


def tiff_tags(content):
    """Tags of the first directory of a TIFF, number to value."""
    made = TiffImagePlugin.ImageFileDirectory_v2(content[:8])
    file = io.BytesIO(content)
    file.seek(made.next)
    made.load(file)
    return dict(made)
