"""What the directory of a TIFF file holds beside the pixels: each tag is kept as it is, mended, or left out under its
name.

References
----------
TIFF 6.0 (Adobe, 1992); OGC 19-008r4, GeoTIFF 1.1; GDAL, GTiff driver, for 42112 and 42113; Adobe Photoshop File
Formats, image resources.
"""

import re
import struct
from dataclasses import dataclass

import numpy as np

from . import exif
from .exif import DIRECTORIES, ORIENTATION
from .inventory import without_thumbnails
from .metadata import PROFILE, XMP

NODATA = 42113
_PALETTE = 3  # photometric interpretation
_NO_UNIT = 1  # of the resolution
_GDAL = 42112
# Tags whose content other formats hold too -> its key in the metadata of a `Media`.
SHARED = {34377: "photoshop", 33723: "iptc"}
_BYTE, _LONG = 1, 4
# Type of a tag -> NumPy's, of which rationals hold two.
_TYPES = {1: "u1", 2: "S1", 3: "u2", 4: "u4", 5: "u4", 6: "i1", 7: "u1", 8: "i2", 9: "i4", 10: "i4", 11: "f4", 12: "f8"}
_RATIONAL = (5, 10)
# How the pixels lie, and what `metadata` reads: written anew.
_WRITTEN_ANEW = {
    254,
    255,
    256,
    257,
    258,
    259,
    262,
    263,
    264,
    265,
    266,
    273,
    ORIENTATION,
    277,
    278,
    279,
    282,
    283,
    284,
    288,
    289,
    292,
    293,
    296,
    297,
    317,
    320,
    322,
    323,
    324,
    325,
    338,
    339,
    347,
    512,
    513,
    514,
    515,
    517,
    518,
    519,
    520,
    521,
    529,
    530,
    531,
    532,
    32996,
    32997,
    PROFILE,
    XMP,
    *DIRECTORIES,
}
# What completed pixels make false, or what shows the picture before.
_LEFT_OUT = {
    280: "smallest and largest value", 281: "smallest and largest value", 340: "smallest and largest value",
    341: "smallest and largest value", 330: "reduced copies", 37724: "layers",
}  # fmt: skip
_GEO = (33550, 33920, 33922, 34264, 34735, 34736, 34737, 50844)
_WORDS = dict.fromkeys(_GEO, "georeference") | {
    _GDAL: "GDAL metadata",
    NODATA: "nodata value",
    33723: "IPTC",
    34377: "Photoshop resources",
    269: "name of the document",
    285: "name of the page",
    50838: "ImageJ metadata",
    50839: "ImageJ metadata",
}


@dataclass(frozen=True)
class Tag:
    """A tag that is kept.

    Attributes
    ----------
    kind : int
        Its type, 1 to 12.
    content : bytes
        Its values, in the byte order of the file.
    words : str
        What other formats lose with it; empty where EXIF says the same.
    """

    kind: int
    content: bytes
    words: str

    def written(self, code, byteorder):
        """As `tifffile` takes it: code, type, count, value."""
        if self.kind in _RATIONAL:
            numbers = np.frombuffer(self.content, f"{byteorder}{_TYPES[self.kind]}").tolist()
            return code, self.kind, len(numbers) // 2, numbers, True
        return code, self.kind, None, self.content, True


@dataclass(frozen=True)
class Layout:
    """How the pixels of a TIFF file lie, where that is kept.

    Attributes
    ----------
    byteorder : str
        ``<`` or ``>``.
    tile : (int, int) or None
        Height and width of a tile; None: strips.
    rows : int
        Of a strip.
    planar : bool
        Whether one channel lies after the other.
    photometric : int
        What the channels are.
    extra : tuple of int
        Kinds of the channels beyond those.
    scale : (float, float) or None
        Pixels a unit in x and y where the file names no unit, as programs for microscopes do; the unit stands in their
        description.
    """

    byteorder: str
    tile: tuple | None
    rows: int
    planar: bool
    photometric: int
    extra: tuple
    scale: tuple | None = None


def layout(page):
    """`Layout` of a page that tifffile has opened."""
    tile = (page.tilelength, page.tilewidth) if page.is_tiled else None
    # A kind that TIFF does not name is one that nothing is said of.
    extra = tuple(int(kind) if kind in (1, 2) else 0 for kind in page.extrasamples)
    rows = min(int(page.rowsperstrip), page.imagelength)
    return Layout(
        page.parent.byteorder, tile, rows, int(page.planarconfig) == 2, int(page.photometric), extra, _scale(page)
    )


def _scale(page):
    unit, *scale = (page.tags.valueof(code) for code in (296, 282, 283))
    if unit != _NO_UNIT or None in scale or not all(len(pair) == 2 and all(pair) for pair in scale):
        return None
    return tuple(above / below for above, below in scale)


def read(page, descriptive):
    """Tags of a page beside what `metadata` reads, code to `Tag`, and words for those that are left out, a list.

    Parameters
    ----------
    page : tifffile.TiffPage
    descriptive : container of int
        Codes of what EXIF says as well.
    """
    import tifffile

    kept, left = {}, []
    for tag in page.tags:
        if tag.code in _WRITTEN_ANEW:
            continue
        words = _WORDS.get(tag.code) or tifffile.TIFF.TAGS.get(tag.code) or f"tag {tag.code}"
        content = None if tag.code in _LEFT_OUT else _content(page, tag)
        if content is None:
            left.append(_LEFT_OUT.get(tag.code, words))
        elif content:
            kept[tag.code] = Tag(int(tag.dtype), content, "" if tag.code in descriptive else words)
    if page.photometric == _PALETTE and NODATA in kept:  # it is a place in the palette, not a colour
        del kept[NODATA]
        left.append(_WORDS[NODATA])
    if (
        len(kept.keys() & set(_GEO)) and page.tags.valueof(ORIENTATION, 1) != 1
    ):  # it is of the picture before it was turned
        kept = {code: tag for code, tag in kept.items() if code not in _GEO}
        left.append("georeference")
    return kept, list(dict.fromkeys(left))


def is_kept(code):
    """Whether a tag, if EXIF has it, may stand in the directory of a TIFF file as it is."""
    return code not in _WRITTEN_ANEW and code not in _LEFT_OUT


def _content(page, tag):
    """Mended bytes of the values of a tag; None where they mean nothing elsewhere, such as places in the file."""
    if int(tag.dtype) not in _TYPES:
        return None
    file = page.parent.filehandle
    file.seek(tag.valueoffset)
    content = file.read(tag.valuebytecount)
    if len(content) < tag.valuebytecount:
        return None
    if tag.code == _GDAL:
        return _without_statistics(content)
    if SHARED.get(tag.code) == "photoshop":
        return without_thumbnails(content)
    return content


def _without_statistics(content):
    """Metadata of GDAL without the statistics of the pixels, which GDAL takes for true."""
    return re.sub(rb'\s*<Item name="STATISTICS_[^>]*>[^<]*</Item>', b"", content)


def nodata(tags, dtype):
    """The number that GDAL's tag says stands for what is missing, a tuple of one; empty without any that values of this
    type can have.
    """
    if NODATA not in tags:
        return ()
    try:
        number = float(tags[NODATA].content.split(b"\0")[0])
    except ValueError:
        return ()
    if np.isnan(number) or np.dtype(dtype).kind not in "iuf":
        return ()
    if np.dtype(dtype).kind != "f" and not (
        np.iinfo(dtype).min <= number <= np.iinfo(dtype).max and number.is_integer()
    ):
        return ()
    return (number,)


def block(content):
    """`Tag` of bytes, such as XMP."""
    return Tag(_BYTE, content, "")


def with_directories(content, directories):
    """A TIFF file with further directories, which tifffile cannot write, such as those of camera settings and place.

    Parameters
    ----------
    content : bytes
        A file that is not a BigTIFF.
    directories : dict
        Code of a tag to its directory, as `exif.read` gives it, in the byte order of the file.

    Returns
    -------
    bytes
        The file's own directory stands at its end, enlarged; nothing points to the one before any more.
    """
    order = {b"II": "<", b"MM": ">"}[content[:2]]
    (place,) = struct.unpack(f"{order}L", content[4:8])
    (count,) = struct.unpack(f"{order}H", content[place : place + 2])
    end = place + 2 + 12 * count
    entries = [content[start : start + 12] for start in range(place + 2, end, 12)]
    made = content + bytes(len(content) % 2)
    for code, directory in directories.items():
        entries.append(struct.pack(f"{order}HHLL", code, _LONG, 1, len(made)))
        made += exif.packed(directory, len(made), order)
    entries.sort(key=lambda entry: struct.unpack(f"{order}H", entry[:2]))
    own = struct.pack(f"{order}H", len(entries)) + b"".join(entries) + content[end : end + 4]
    return made[:4] + struct.pack(f"{order}L", len(made)) + made[8:] + own
