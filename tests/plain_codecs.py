"""Small readers and writers of the tests' own, so that no file is judged by the library that wrote it."""

import io
import struct
import zlib

import numpy as np
from PIL import TiffImagePlugin

SIGNATURE = b"\x89PNG\r\n\x1a\n"
JP2_EXIF = b"JpgTiffExif->JP2"  # the UUID of a box with EXIF
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


def boxes(content):
    """Kind to data of the boxes of a JPEG XL or JPEG 2000 file, the last of each kind; of one with an UUID that is its
    kind.
    """
    found, start = {}, 0
    while start < len(content):
        length = int.from_bytes(content[start : start + 4], "big") or len(content) - start
        kind, data = content[start + 4 : start + 8], content[start + 8 : start + length]
        found[data[:16] if kind == b"uuid" else kind] = data[16:] if kind == b"uuid" else data
        start += length
    return found


def box(kind, data):
    """Bytes of a box."""
    return struct.pack(">I4s", 8 + len(data), kind) + data


def jp2(stream, values, bits=None, profile=None, dpi=None, exif=None, header=b"", more=b""):
    """A JPEG 2000 file around a codestream of `values`, with further boxes in its header and behind it."""
    channels = 1 if values.ndim == 2 else values.shape[2]
    depth = (bits or 8 * values.dtype.itemsize) - 1 + (0x80 if values.dtype.kind == "i" else 0)
    made = box(b"ihdr", struct.pack(">IIH4B", *values.shape[:2], channels, depth, 7, 0, 0))
    told = b"\2\0\0" + profile if profile else struct.pack(">3BI", 1, 0, 0, 17 if channels < 3 else 16)
    made += box(b"colr", told)
    if channels in (2, 4):
        kinds = [(k, 0, k + 1) for k in range(channels - 1)] + [(channels - 1, 1, 0)]
        made += box(b"cdef", struct.pack(f">H{3 * channels}H", channels, *(n for kind in kinds for n in kind)))
    if dpi:
        number, below = round(dpi * 5000), 127  # dots of 127 / 5000 of a metre
        made += box(b"res ", box(b"resc", struct.pack(">4H2b", number // 100, below, number // 100, below, 2, 2)))
    start = box(b"jP  ", b"\r\n\x87\n") + box(b"ftyp", b"jp2 \0\0\0\0jp2 ") + box(b"jp2h", made + header)
    noted = box(b"uuid", JP2_EXIF + exif.removeprefix(b"Exif\0\0")) if exif else b""
    return start + noted + more + box(b"jp2c", stream)


def exr(planes, more=(), corner=(0, 0), shown=None, copies=False):
    """An OpenEXR file, not compressed.

    Parameters
    ----------
    planes : dict
        Name of a channel to its (H, W) values, of uint32, float16 or float32.
    more : sequence of (str, str, bytes)
        Further attributes: name, kind and content.
    corner : (int, int)
        Left and top of the pixels.
    shown : four ints or None
        Left, top, right and bottom of what is shown; None: of the pixels.
    copies : bool
        Whether it is a tile as large as the picture, with copies of half the size, a quarter, and so on.
    """
    planes = dict(sorted(planes.items()))
    height, width = next(iter(planes.values())).shape
    window = struct.pack("<4i", *corner, corner[0] + width - 1, corner[1] + height - 1)
    kinds = {"uint32": 0, "float16": 1, "float32": 2}
    channels = b"".join(
        name.encode() + b"\0" + struct.pack("<4i", kinds[str(plane.dtype)], 0, 1, 1) for name, plane in planes.items()
    )
    attributes = [
        ("channels", "chlist", channels + b"\0"), ("compression", "compression", b"\0"),
        ("dataWindow", "box2i", window),
        ("displayWindow", "box2i", struct.pack("<4i", *shown) if shown else window), ("lineOrder", "lineOrder", b"\0"),
        ("pixelAspectRatio", "float", struct.pack("<f", 1)), ("screenWindowCenter", "v2f", bytes(8)),
        ("screenWindowWidth", "float", struct.pack("<f", 1)), *more,
    ]  # fmt: skip
    if copies:
        attributes.append(("tiles", "tiledesc", struct.pack("<2IB", width, height, 1)))
    head = b"v/1\x01" + struct.pack("<I", 2 | 0x200 * copies)
    for name, kind, data in attributes:
        head += name.encode() + b"\0" + kind.encode() + b"\0" + struct.pack("<I", len(data)) + data
    head += b"\0"

    def rows(level=0):
        size = max(height >> level, 1), max(width >> level, 1)
        small = [plane[:: 1 << level, :: 1 << level][: size[0], : size[1]] for plane in planes.values()]
        return [b"".join(plane[row].tobytes() for plane in small) for row in range(size[0])]

    if copies:
        tiles = (b"".join(rows(level)) for level in range(max(height, width).bit_length()))
        parts = [struct.pack("<5i", 0, 0, k, k, len(data)) + data for k, data in enumerate(tiles)]
    else:
        parts = [struct.pack("<2i", corner[1] + row, len(data)) + data for row, data in enumerate(rows())]
    first = len(head) + 8 * len(parts)
    places = struct.pack(f"<{len(parts)}Q", *(first + sum(map(len, parts[:k])) for k in range(len(parts))))
    return head + places + b"".join(parts)


def tiff_values(content):
    """(H, W[, C]) values of a little-endian TIFF in strips compressed by zlib."""
    tags = tiff_tags(content)
    assert content.startswith(b"II*\0") and tags[259] == 8
    kind = {1: "u", 2: "i", 3: "f"}[np.atleast_1d(tags.get(339, 1))[0]]
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
