"""What each file format can hold: the one table that reading, writing and the checks before any work go by."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError, OutputError
from . import elsewhere

# Kinds of metadata -> words for them. A format that cannot hold one of these leaves it out, with a warning.
METADATA = {
    "icc_profile": "colour profile",
    "dpi": "resolution",
    "exif": "EXIF",
    "xmp": "XMP",
    "text": "texts",
    "comment": "comment",
    "iptc": "IPTC",
    "photoshop": "Photoshop resources with their IPTC",
}
# Kinds of metadata of several parts -> words for each part of a value.
_PARTS = {
    "tags": lambda tags: [tag.words for tag in tags.values() if tag.words],
    "exr": lambda header: header.words,
    "boxes": lambda boxes: [box.words for box in boxes],
    "colour_chunks": lambda chunks: [_CHUNK_WORDS[name] for name in chunks],
    "chunks": lambda chunks: [_CHUNK_WORDS.get(name, f"chunk {name.decode('latin-1')}") for name, _ in chunks],
}
_CHUNK_WORDS: dict[bytes, str] = {
    b"gAMA": "gamma",
    b"cHRM": "primaries",
    b"sRGB": "rendering intent",
    b"cICP": "coding of the colours",
    b"sBIT": "significant bits",
    b"mDCV": "mastering display",
    b"cLLI": "light levels",
    b"sCAL": "physical scale",
    b"pCAL": "calibration of the values",
    b"sTER": "stereo layout",
    b"sPLT": "suggested palette",
    b"oFFs": "offset",
    b"bKGD": "background colour",
}
# Metadata without which the values mean something else: a format that cannot hold it is refused.
_MEANING = {
    "transparency": "a colour that stands for transparency",
    "premultiplied": "colours that are multiplied by their alpha",
}
JPEG_QUALITY = 95
_LARGEST_IN_SEGMENT = 65_000  # bytes: of comments, and in JPEG of EXIF and XMP


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : str
    extensions : tuple of str
        Lower case, with the dot; the first is the usual one.
    modes : tuple of str
        Modes of `Media` that can be written without a change.
    types : tuple of str
        Names of the dtypes that can be written without a change.
    keeps : frozenset of str
        Keys of the metadata that are written.
    lossless : bool
        Whether values come back bit for bit.
    largest : int or None
        Pixels a side.
    codec : str
        Name of the module that reads and writes it.
    signatures : tuple of bytes
        What its files begin with, where its codec is not Pillow's.
    read_as_well : tuple of str
        Extensions of files that are read as one of this format, and not written.
    of_a_trade : bool
        Whether few programs outside of its trade read it: it is advised only for what comes from a file of its kind.
    multiplied : bool
        Whether colours are multiplied by their alpha in all of its files.
    library : str or None
        What reads and writes it, where that comes with an extra of its codec's name.
    """

    name: str
    extensions: tuple
    modes: tuple
    types: tuple
    keeps: frozenset
    lossless: bool = True
    largest: int | None = None
    codec: str = "pillow"
    signatures: tuple = ()
    read_as_well: tuple = ()
    of_a_trade: bool = False
    multiplied: bool = False
    library: str | None = None

    def suggested(self, media):
        """Whether this format is one to advise for `media`."""
        return not self.refusal(media) and (not self.of_a_trade or self.name == media.format)

    def refusal(self, media):
        """Why `media` cannot be written without a change, in words that follow "cannot hold", or None."""
        if str(media.values.dtype) in self.types and media.mode == "array" and media.mode not in self.modes:
            return "an array, of which nothing says that it is grey, RGB or another mode"
        if media.mode not in self.modes or str(media.values.dtype) not in self.types:
            return media.kind
        for key, words in _MEANING.items():
            if key in media.metadata and key not in self.keeps:
                return f"{words}, which the input has"
        if self.multiplied and media.has_alpha and "premultiplied" not in media.metadata:
            return f"{media.kind} whose colours are not multiplied by it"
        if self.largest and max(media.values.shape[:2]) > self.largest:
            return f"more than {self.largest} pixels a side"
        return None

    def kept(self, media):
        """The metadata of `media` that this format can hold, a dict."""
        return {
            key: value for key, value in media.metadata.items() if key in self.keeps and not self._too_long(key, value)
        }

    def lost(self, media):
        """Words for the metadata of `media` that this format cannot hold, a list."""
        gone = {key: value for key, value in media.metadata.items() if key not in self.kept(media)}
        words = [words for key, words in METADATA.items() if key in gone]
        parts = [part for key, split in _PARTS.items() if key in gone for part in split(gone[key])]
        return words + list(dict.fromkeys(parts))

    def _too_long(self, key, value):
        limited = ("exif", "xmp", "comment") if self.name == "JPEG" else ("comment",)
        return key in limited and len(value) > _LARGEST_IN_SEGMENT


_PICTURE = ("L", "LA", "RGB", "RGBA")
_COMMON = frozenset({"icc_profile", "dpi", "exif", "xmp"})
ALL_TYPES = ("uint8", "uint16", "int8", "int16", "int32", "uint32", "float32", "float64")

FORMATS = {
    f.name: f
    for f in (
        Format(
            "PNG",
            (".png",),
            _PICTURE,
            ("uint8", "uint16"),
            _COMMON | {"text", "transparency", "colour_chunks", "chunks"},
        ),
        Format(
            "JPEG",
            (".jpg", ".jpeg"),
            ("L", "RGB", "CMYK"),
            ("uint8",),
            _COMMON | {"comment", "iptc", "photoshop"},
            lossless=False,
            largest=65_500,
            read_as_well=(".mpo",),
        ),
        Format(
            "TIFF",
            (".tif", ".tiff"),
            (*_PICTURE, "CMYK", "array"),
            ALL_TYPES,
            _COMMON | {"premultiplied", "tags", "iptc", "photoshop"},
            codec="tiff",
            signatures=(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        ),
        Format("WebP", (".webp",), ("RGB", "RGBA"), ("uint8",), _COMMON, largest=16_383),
        Format(
            "JPEG XL",
            (".jxl",),
            _PICTURE,
            ("uint8", "uint16", "float32"),
            frozenset({"dpi", "exif", "xmp", "premultiplied"}),
            codec="jpegxl",
            signatures=(b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n"),
        ),
        Format(
            "JPEG 2000",
            (".jp2",),
            _PICTURE,
            ("uint8", "uint16", "int8", "int16"),
            _COMMON | {"comment", "iptc", "photoshop", "premultiplied", "boxes"},
            codec="jpeg2000",
            signatures=(b"\0\0\0\x0cjP  \r\n\x87\n",),
            read_as_well=(".jpx", ".jpf"),
            of_a_trade=True,
        ),
        Format(
            "JPEG 2000 codestream",
            (".j2k", ".j2c"),
            ("L", "RGB"),
            ("uint8", "uint16", "int8", "int16"),
            frozenset({"comment"}),
            codec="jpeg2000",
            signatures=(b"\xff\x4f\xff\x51",),
            of_a_trade=True,
        ),
        Format(
            "OpenEXR",
            (".exr",),
            _PICTURE,
            ("float32",),
            frozenset({"dpi", "premultiplied", "exr"}),
            codec="exr",
            signatures=(b"v/1\x01",),
            of_a_trade=True,
            multiplied=True,
            library="OpenEXR",
        ),
        Format("BMP", (".bmp",), ("L", "RGB"), ("uint8",), frozenset({"dpi"})),
        Format(
            "NPY",
            (".npy",),
            (*_PICTURE, "CMYK", "array"),
            ALL_TYPES,
            frozenset(),
            codec="array",
            signatures=(b"\x93NUMPY",),
        ),
    )
}
EXTENSIONS = {extension: f for f in FORMATS.values() for extension in (*f.extensions, *f.read_as_well)}


def extensions():
    """Every extension that can be read, such as ``.png``, sorted."""
    return sorted(EXTENSIONS)


def named(path, error=InputError, table=FORMATS):
    """The `Format` that the extension of `path` names.

    Parameters
    ----------
    path : path-like
    error : type
        Exception for an extension that is missing or not known.
    table : dict of str to Format
        The formats there are.
    """
    suffix = Path(path).suffix.lower()
    read = error is InputError
    known = {extension: f for f in table.values() for extension in (*f.extensions, *(f.read_as_well if read else ()))}
    way = (elsewhere.way_out(path) or elsewhere.command(path)) if read and suffix not in known else None
    if way:
        raise InputError(f"{path}: {way}")
    if suffix not in known:
        what = f"extension {suffix!r} is not known" if suffix else "no extension"
        raise error(f"{path}: {what}; use one of {', '.join(sorted(known))}")
    check_library(known[suffix], path, error)
    return known[suffix]


def check_library(form, path, error=InputError):
    """Raise `error` where the library that reads and writes the format `form` is not installed."""
    if form.library and find_spec(form.library) is None:
        raise error(
            f"{path}: {form.name} needs {form.library}, which is not installed; try pip install 'tdc-cli[{form.codec}]'"
        )


def losses(form, media):
    """What a file of the format `form` does not keep of `media`, each with the format that does, if any: a list of str.
    """
    able = [f for f in FORMATS.values() if f.lossless and f.suggested(media)]
    said, lost = [], form.lost(media)
    if not form.lossless:
        keeping = f"; write to {able[0].extensions[0]} to keep them bit for bit" if able else ""
        said.append(f"{form.name} compresses with loss: known pixels change a little in the file{keeping}")
    if lost:
        left = {f: len(set(lost) & set(f.lost(media))) for f in able}
        least = min(left.values(), default=len(lost))
        names = " or ".join(f.extensions[0] for f, count in left.items() if count == least)
        keeping = (
            f"; write to {names} to keep {'more' if least else 'it'}" if least < len(lost) else "; no format keeps it"
        )
        said.append(f"{form.name} cannot hold all that the input has: without {', '.join(lost)}{keeping}")
    return said


def check(form, media, path, table=FORMATS):
    """Raise OutputError if the format `form` cannot hold `media`; the line names the formats of `table` that can."""
    check_library(form, path, OutputError)
    reason = form.refusal(media)
    if reason:
        others = [f.extensions[0] for f in table.values() if f.suggested(media)]
        raise OutputError(f"{path}: {form.name} cannot hold {reason}; write to {' or '.join(others)}")
