"""JPEG 2000 by imagecodecs: up to 16 bits with and without sign, with and without alpha, written without loss.

OpenJPEG, within imagecodecs, decodes and encodes the codestream. The boxes around it, which say what its channels are
and hold all metadata, are read and written here. A bare codestream has no place for either.

References
----------
ISO/IEC 15444-1:2019, annexes A (markers of the codestream) and I (boxes of JP2); ISO/IEC 15444-2:2004, annex M (JPX).
"""

import struct
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

import numpy as np

from ..errors import InputError
from . import boxes, inventory, metadata
from .limits import check_size
from .pillow import palette_note
from .pixels import Media, narrow, widen

_BARE = b"\xff\x4f\xff\x51"
_START = b"\0\0\0\x0cjP  \r\n\x87\n"
_SIZE, _COMMENT, _TILE, _END = b"\xff\x51", b"\xff\x64", b"\xff\x90", b"\xff\xd9"
_TEXT = 1  # kind of a comment
_RGB, _GREY = 16, 17  # enumerated colours
_ENUMERATED, _PROFILES = 1, (2, 3)  # ways in which colours are told
_MAPPED = 1  # a channel that is a column of the palette
_COLOUR, _STRAIGHT, _PREMULTIPLIED, _ALL = 0, 1, 2, 0  # kinds of channels, and that alpha is of all colours
_INCH = Fraction(254, 10000)  # in metres
_EXIF = UUID("4a706754-6966-6645-7869-662d3e4a5032").bytes
_XMP = UUID("be7acfcb-97a9-42e8-9c71-999491e3afac").bytes
_IPTC = UUID("33c7a4d2-b81d-4723-a0ba-f1a3e097ad38").bytes
_PHOTOSHOP = UUID("2c4c0100-8504-40b9-a03e-562148d6dfeb").bytes
_GEO = UUID("b14bf8bd-083d-4b43-a5ae-8cd7d5a6ce03").bytes
# Boxes that are read or written anew, kept as they are, and left out; what is not here is left out under its letters.
_ANEW = {b"jP  ", b"ftyp", b"rreq", b"jp2h", b"jp2c", b"free"}
_KEPT = {
    b"xml ": "XML",
    b"asoc": "georeference (GMLJP2)",
    b"uinf": "references to registries",
    b"jp2i": "rights",
    b"uuid": "box of a program",
}
_WORDS = {
    b"jumb": "content credentials (JUMBF)",
    b"jplh": "description of layers",
    b"jpch": "description of codestreams",
}
_HEADER = {b"ihdr", b"bpcc", b"colr", b"pclr", b"cmap", b"cdef", b"res "}
_CONVERT = "convert it to TIFF, which keeps its depth: gdal_translate '{0}' '{0}.tif'"
_MODES = {(1, False): "L", (1, True): "LA", (3, False): "RGB", (3, True): "RGBA"}


@dataclass(frozen=True)
class Box:
    """A box that is kept as it is.

    Attributes
    ----------
    kind, data : bytes
    """

    kind: bytes
    data: bytes

    @property
    def is_place(self):
        """Whether it says where on the earth the picture lies."""
        return self.kind == b"asoc" or (self.kind == b"uuid" and self.data.startswith(_GEO))

    @property
    def words(self):
        """What other formats lose with it."""
        return "georeference" if self.kind == b"uuid" and self.is_place else _KEPT[self.kind]


def decode(content, path):
    """Media of the bytes of a JPEG 2000 file with one picture, or of a bare codestream, upright."""
    import imagecodecs

    try:
        found = [] if content.startswith(_BARE) else list(boxes.of(content))
        streams = [data for kind, data in found if kind == b"jp2c"] or [content] * content.startswith(_BARE)
        if len(streams) != 1:
            if streams:
                several = f"holds {len(streams)} pictures"
                raise InputError(f"{path}: {several}; save the one to complete as a file of its own")
            raise metadata.Damage("it holds no picture")
        main = _Main(streams[0])
        check_size(main.width, main.height, path, len(content), len(main.depths))
        if not streams[0].rstrip(b"\0").endswith(_END):
            raise metadata.Damage("its picture is cut short")
        header = dict(box for kind, data in found if kind == b"jp2h" for box in reversed(list(boxes.of(data))))
        told = _told_otherwise(main, header, path)
        defined = _definitions(header)
        mode, premultiplied, palette = _channels(main, header, defined, path)
        order = _order(defined, mode, path)
        if palette:
            told = (*told, palette_note(path, mode))
            values = imagecodecs.jpeg2k_decode(content, numthreads=1)  # puts the channels in order as well
        else:
            values = imagecodecs.jpeg2k_decode(streams[0], numthreads=1)
            values = values if order is None else np.ascontiguousarray(values[..., order])
        known, left = _beside(found, header)
    except (*metadata.DAMAGE, RuntimeError, MemoryError) as error:
        raise metadata.damaged(path, error) from error
    bits = 8 if palette else main.depths[0][0]
    if bits < 8:
        values = np.rint(values * (255 / ((1 << bits) - 1))).astype(np.uint8)
        stored = f"{bits} bit{'s' * (bits > 1)} a pixel"
        told = (*told, f"{path}: has {stored}; it is completed and written with 8 bits")
    if premultiplied:
        known["premultiplied"] = True
    left = [*left, *(["further comments"] if len(main.comments) > 1 else [])]
    if main.comments:
        known["comment"] = main.comments[0]
    values = metadata.upright(values if bits < 8 else widen(values, bits), known.pop("orientation", 1))
    return Media(
        values,
        mode,
        str(path),
        "",
        known,
        "JPEG 2000" if found else "JPEG 2000 codestream",
        (*told, *metadata.left_out(path, left)),
        bits=bits if 8 < bits < 16 else None,
    )


def encode(media, form, quality=None):
    """Bytes of `media` as a JPEG 2000 file, or as a bare codestream where `form` is of those, without loss."""
    import imagecodecs

    kept = form.kept(media)
    bits = media.bits or 8 * media.dtype.itemsize
    levels = narrow(media.values, bits) if media.bits else media.values
    stream = imagecodecs.jpeg2k_encode(
        np.ascontiguousarray(levels), level=0, codecformat="j2k", reversible=True, bitspersample=bits, numthreads=1
    )
    if "comment" in kept:
        at = stream.index(_TILE)
        head = _COMMENT + struct.pack(">HH", 4 + len(kept["comment"]), _TEXT)
        stream = stream[:at] + head + kept["comment"] + stream[at:]
    if form.name == "JPEG 2000 codestream":
        return stream
    described = _described(media, bits, kept)
    return _START + boxes.box(b"ftyp", b"jp2 \0\0\0\0jp2 ") + described + boxes.box(b"jp2c", stream)


class _Main:
    """What the main header of a codestream tells.

    Attributes
    ----------
    width, height : int
    depths : list of (int, bool)
        Bits of each channel, and whether it has a sign.
    halved : bool
        Whether a channel has fewer pixels than the picture.
    comments : list of bytes
        Texts other than those in which encoders name themselves.
    """

    def __init__(self, stream):
        if not stream.startswith(_BARE):
            raise metadata.Damage("its picture does not begin as one does")
        right, bottom, left, top = struct.unpack(">4I", stream[8:24])
        (count,) = struct.unpack(">H", stream[40:42])
        channels = [struct.unpack(">3B", stream[42 + 3 * k : 45 + 3 * k]) for k in range(count)]
        self.width, self.height = right - left, bottom - top
        if self.width <= 0 or self.height <= 0 or not channels:
            raise metadata.Damage("it tells no size")
        self.depths = [((depth & 0x7F) + 1, bool(depth & 0x80)) for depth, _, _ in channels]
        self.halved = any((across, down) != (1, 1) for _, across, down in channels)
        self.comments = list(_comments(stream))


def _comments(stream):
    """Iterate over texts of a codestream that somebody wrote into it."""
    at = 2
    while stream[at : at + 2] != _TILE:
        marker, length = struct.unpack(">2sH", stream[at : at + 4])
        text = stream[at + 6 : at + 2 + length]
        if marker == _COMMENT and stream[at + 4 : at + 6] == struct.pack(">H", _TEXT) and not _of_encoder(text):
            yield text
        at += 2 + length


def _of_encoder(text):
    return text.startswith((b"Created by", b"Creator:", b"Kakadu", b"Kdu-", b"JasPer"))


def _told_otherwise(main, header, path):
    """Notes, at most one, on a header that tells another size than the codestream, which is what is decoded."""
    height, width = struct.unpack(">2I", header[b"ihdr"][:8]) if b"ihdr" in header else (main.height, main.width)
    if (width, height) == (main.width, main.height):
        return ()
    return (f"{path}: its header tells {width}x{height} pixels, its picture has {main.width}x{main.height}",)


def _channels(main, header, defined, path):
    """What the channels are: the mode, whether colours are multiplied by alpha, and whether there is a palette;
    InputError for what is not read.

    Parameters
    ----------
    main : _Main
    header : dict
        Boxes of the header; empty for a bare codestream.
    defined : list
        See `_definitions`.
    path : path-like
    """
    way = _CONVERT.format(path)
    if main.halved or len(set(main.depths)) > 1:
        raise InputError(f"{path}: its channels differ in size or depth; {way}")
    bits, signed = main.depths[0]
    if bits > 16 or (signed and bits not in (8, 16)):
        raise InputError(f"{path}: has {bits} bits a channel {'with' if signed else 'without'} sign; {way}")
    count = len(main.depths)
    if b"pclr" in header:
        count = header[b"pclr"][2]
        plain = b"".join(struct.pack(">HBB", 0, _MAPPED, k) for k in range(count))
        depths = header[b"pclr"][3 : 3 + count]
        if count not in (1, 3) or any(depth != 7 for depth in depths) or header.get(b"cmap") != plain:
            raise InputError(f"{path}: has an unusual palette; {way}")
    colours, kinds = _colours(header, count, path), {channel: kind for channel, kind, _ in defined}
    alpha = kinds.get(colours) if count == colours + 1 else None
    if (count, alpha is not None) != (colours + (alpha is not None), alpha in (_STRAIGHT, _PREMULTIPLIED)) or any(
        kinds.get(k, _COLOUR) != _COLOUR for k in range(colours)
    ):
        raise InputError(f"{path}: has {count} channels, not all of them colours or alpha; {way}")
    return _MODES[colours, alpha is not None], alpha == _PREMULTIPLIED, b"pclr" in header


def _colours(header, count, path):
    """Channels of colour, 1 or 3."""
    fitting = 1 if count < 3 else 3
    if b"colr" not in header:
        return fitting
    method, data = header[b"colr"][0], header[b"colr"][3:]
    kind = int.from_bytes(data[:4], "big") if method == _ENUMERATED else data[16:20]
    colours = {_RGB: 3, _GREY: 1, b"RGB ": fitting, b"GRAY": fitting}.get(kind)
    if colours is None:
        raise InputError(f"{path}: its colours are neither grey nor red, green and blue; {_CONVERT.format(path)}")
    return colours


def _definitions(header):
    """Of every channel that the header defines, number, kind, and number of its colour, from 1 on."""
    if b"cdef" not in header:
        return []
    (count,) = struct.unpack(">H", header[b"cdef"][:2])
    return [struct.unpack(">3H", header[b"cdef"][2 + 6 * k : 8 + 6 * k]) for k in range(count)]


def _order(defined, mode, path):
    """Channels in the order of `mode`, a list, where the header says that the first one is not the first colour; else
    None.
    """
    channels, colours = len(mode), len(mode.rstrip("A"))
    places = {colour - 1: channel for channel, kind, colour in defined if kind == _COLOUR}
    if colours == 1 or not places:
        return None
    if sorted(places) != list(range(colours)) or sorted(places.values()) != list(range(colours)):
        raise InputError(f"{path}: says of its channels no order that is one; {_CONVERT.format(path)}")
    order = [places[k] for k in range(colours)] + list(range(colours, channels))
    return None if order == sorted(order) else order


def _beside(found, header):
    """Metadata as in `Media`, with the orientation to be applied, and words for what is left out, a list."""
    blocks, kept, left = {}, [], []
    for kind, data in found:
        if kind == b"uuid" and data[:16] in (_EXIF, _XMP, _IPTC, _PHOTOSHOP):
            blocks.setdefault(data[:16], data[16:])
        elif kind in _KEPT:
            kept.append(Box(kind, data))
        elif kind not in _ANEW:
            left.append(boxes.words(kind, _WORDS))
    left += [boxes.words(kind, {}) for kind in header if kind not in _HEADER]
    turn = metadata.orientation(blocks.get(_EXIF, b""))
    known, damage = metadata.of_blocks(blocks.get(_EXIF, b""), blocks.get(_XMP, b""), turn)
    known["orientation"] = turn
    left += damage
    if turn != 1 and any(box.is_place for box in kept):  # of the picture before it was turned
        kept = [box for box in kept if not box.is_place]
        left.append("georeference")
    if b"colr" in header and header[b"colr"][0] in _PROFILES:
        known["icc_profile"] = header[b"colr"][3:]
    if b"res " in header:
        known |= _resolution(header[b"res "])
    if _IPTC in blocks:
        known["iptc"] = blocks[_IPTC]
    if _PHOTOSHOP in blocks:
        mended = inventory.without_thumbnails(blocks[_PHOTOSHOP])
        if mended is None:
            left.append("Photoshop resources")
        elif mended:
            known["photoshop"] = mended
    return known | ({"boxes": tuple(kept)} if kept else {}), list(dict.fromkeys(left))


def _resolution(data):
    """``dpi`` as in `Media`, of the box of the resolution; empty where it tells none."""
    told = dict(boxes.of(data))
    told = told.get(b"resc") or told.get(b"resd")
    if not told:
        return {}
    above_y, below_y, above_x, below_x, power_y, power_x = struct.unpack(">4H2b", told[:10])
    if not (above_x and above_y and below_x and below_y):
        return {}
    y, x = (
        Fraction(above, below) * Fraction(10) ** power * _INCH
        for above, below, power in ((above_y, below_y, power_y), (above_x, below_x, power_x))
    )
    return {"dpi": (float(x), float(y))} if max(x, y) < 65536 else {}


def _described(media, bits, kept):
    """The boxes between the kind of the file and the codestream."""
    height, width = media.values.shape[:2]
    channels = 1 if media.values.ndim == 2 else media.values.shape[2]
    depth = bits - 1 + (0x80 if media.dtype.kind == "i" else 0)
    header = boxes.box(b"ihdr", struct.pack(">IIH4B", height, width, channels, depth, 7, 0, 0))
    if "icc_profile" in kept:
        header += boxes.box(b"colr", bytes([_PROFILES[0], 0, 0]) + kept["icc_profile"])
    else:
        kind = _GREY if media.mode in ("L", "LA") else _RGB
        header += boxes.box(b"colr", struct.pack(">3BI", _ENUMERATED, 0, 0, kind))
    if media.has_alpha:
        alpha = _PREMULTIPLIED if "premultiplied" in kept else _STRAIGHT
        entries = [(k, _COLOUR, k + 1) for k in range(channels - 1)] + [(channels - 1, alpha, _ALL)]
        packed = b"".join(struct.pack(">3H", *entry) for entry in entries)
        header += boxes.box(b"cdef", struct.pack(">H", channels) + packed)
    if "dpi" in kept:
        x, y = (_as_written(dots) for dots in kept["dpi"])
        resolution = struct.pack(">4H2b", y[0], y[1], x[0], x[1], y[2], x[2])
        header += boxes.box(b"res ", boxes.box(b"resc", resolution))
    blocks = {_EXIF: kept.get("exif", b"").removeprefix(b"Exif\0\0"), _XMP: kept.get("xmp"), _IPTC: kept.get("iptc")}
    blocks[_PHOTOSHOP] = kept.get("photoshop")
    made = boxes.box(b"jp2h", header)
    made += b"".join(boxes.box(box.kind, box.data) for box in kept.get("boxes", ()))
    return made + b"".join(boxes.box(b"uuid", kind + data) for kind, data in blocks.items() if data)


def _as_written(dots):
    """Dots an inch as dots a metre: a number, what it is divided by, both below 65536, and a power of ten."""
    number, power = max(Fraction(dots).limit_denominator(1000), Fraction(1, 1000)) / _INCH, 0
    while number >= 655:
        number, power = number / 10, power + 1
    while number < 65:
        number, power = number * 10, power - 1
    near = number.limit_denominator(min(65535, int(65535 / number)))
    return near.numerator, near.denominator, power
