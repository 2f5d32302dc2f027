"""OpenEXR by the library of its name: channels of 16 and 32 bits of floats, with and without alpha.

The library decodes and encodes the channels. The attributes of the header are read and written here, as their bytes,
whatever they mean: what is not known is not lost. Channels beside the picture, such as depth, stay as they are.

References
----------
Academy Software Foundation: OpenEXR file layout, https://openexr.com/en/latest/OpenEXRFileLayout.html
"""

import contextlib
import io
import struct
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from . import metadata
from .limits import check_size
from .pillow import silent_decoder
from .pixels import Media

_MAGIC = b"v/1\x01"
_TILED, _LONG_NAMES, _DEEP, _PARTS = 0x200, 0x400, 0x800, 0x1000  # flags of the version
_TYPES = ("uint32", "float16", "float32")  # of channels, by their number
_ALPHA = "A"
_COLOURS = (("R", "G", "B"), ("Y",))
_CHROMA = {"RY", "BY"}
_WITHOUT_LOSS = ("NO", "RLE", "ZIPS", "ZIP", "PIZ")  # names of compressions, by their number
_USUAL = "ZIP"
_LEVELS = 0x0F  # bits of the mode of tiles
_LARGEST_HALF = float(np.finfo(np.float16).max)
_LONGEST_NAME = 31
# Attributes that are read, or written anew. Of the others those here say the same of every file with these values.
_OF_THE_FILE = {
    "channels", "compression", "dataWindow", "lineOrder", "type", "tiles", "chunkCount", "version", "name", "xDensity",
    "screenWindowCenter", "screenWindowWidth",
}  # fmt: skip
_WORDS = {"displayWindow": "display window", "pixelAspectRatio": "shape of its pixels"}
_LEFT_OUT = {"preview": "thumbnail"}


@dataclass(frozen=True)
class Header:
    """What an OpenEXR file holds beside the picture.

    Attributes
    ----------
    attributes : dict
        Name to kind and content, str and bytes.
    types : dict
        Name of a channel to the name of its type.
    others : dict
        Name to values of the channels that are not of the picture, (H, W) ndarrays.
    """

    attributes: dict
    types: dict
    others: dict = field(default_factory=dict)

    @property
    def window(self):
        """Left, top, right and bottom of the pixels that the file holds, the last two within."""
        return struct.unpack("<4i", self.attributes["dataWindow"][1])

    @property
    def names(self):
        """Of the channels of the picture, a tuple, alpha last; all where it is not told which they are."""
        there = [colours for colours in _COLOURS if set(colours) <= self.types.keys()]
        found = there[0] if there else tuple(sorted(self.types.keys() - {_ALPHA}))
        return (*found, *([_ALPHA] if _ALPHA in self.types else []))

    @property
    def words(self):
        """What other formats lose with it, a list."""
        told = [name for name in self.attributes if name not in _OF_THE_FILE and not self._usual(name)]
        return [_WORDS.get(name, f"attribute {name}") for name in told] + [f"channel {name}" for name in self.others]

    def _usual(self, name):
        content = self.attributes[name][1]
        same = {"displayWindow": self.attributes["dataWindow"][1], "pixelAspectRatio": struct.pack("<f", 1)}
        return same.get(name) == content


def decode(content, path):
    """Media of the bytes of an OpenEXR file with one part; half floats become float32, which has all of their values.
    """
    import OpenEXR

    try:
        version, attributes, _ = _header(content)
        _check_kind(version, attributes, path)
        header = Header(attributes, _channels(attributes["channels"][1], path))
        left, top, right, bottom = header.window
        width, height = right - left + 1, bottom - top + 1
        check_size(width, height, path, len(content), 4 * len(header.types))
        _check_channels(header, path)
        with _quiet(), OpenEXR.File(io.BytesIO(content), separate_channels=True, num_threads=0) as file:
            planes = {name: np.array(channel.pixels) for name, channel in file.channels().items()}
        if {plane.shape for plane in planes.values()} != {(height, width)}:
            raise metadata.Damage("its channels are not as large as it tells")
    except (*metadata.DAMAGE, RuntimeError, MemoryError) as error:
        raise metadata.damaged(path, error) from error
    values = np.stack([planes.pop(name).astype(np.float32) for name in header.names], axis=2)
    words = [words for name, words in _LEFT_OUT.items() if attributes.pop(name, None)]
    words += ["reduced copies"] if _tiles(attributes)[2] else []
    found = {"exr": Header(attributes, header.types, planes)}
    if _ALPHA in header.types:
        found["premultiplied"] = True
    dots = _number(attributes, "xDensity")
    if dots and dots > 0:
        found["dpi"] = (dots, dots * (_number(attributes, "pixelAspectRatio") or 1.0))
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[len(header.names)]
    notes = _window_note(header, path) + metadata.left_out(path, words)
    return Media(values[..., 0] if mode == "L" else values, mode, str(path), "", found, "OpenEXR", notes)


def encode(media, form, quality=None):
    """Bytes of `media` as an OpenEXR file without loss: of what comes from one, with the types of its channels, its
    other channels and its attributes; else as floats of 32 bits.
    """
    import OpenEXR

    header = media.metadata.get("exr")
    colours = ("Y",) if media.mode in ("L", "LA") else ("R", "G", "B")
    names = header.names if header else (*colours, *([_ALPHA] if media.has_alpha else []))
    planes = dict(zip(names, np.moveaxis(np.atleast_3d(media.values), 2, 0), strict=True))
    if header:
        planes = {name: _as_type(plane, header.types[name]) for name, plane in planes.items()} | header.others
    told = {"compression": _compression(OpenEXR, header), "type": OpenEXR.scanlineimage}
    if header:
        left, top, right, bottom = header.window
        told["dataWindow"] = (np.array([left, top], np.int32), np.array([right, bottom], np.int32))
        across, down, _ = _tiles(header.attributes)
        if across:
            told |= {"type": OpenEXR.tiledimage, "tiles": OpenEXR.TileDescription()}
            told["tiles"].xSize, told["tiles"].ySize = across, down
    buffer = io.BytesIO()
    made = {name: np.array(plane, order="C") for name, plane in planes.items()}  # which the library takes over
    with _quiet(), OpenEXR.File(told, made, num_threads=0) as file:
        file.write(buffer)
    return _with_attributes(buffer.getvalue(), _attributes(media, header))


@contextlib.contextmanager
def _quiet():
    """Within the block the library says nothing of damage, which it also prints to standard output."""
    with silent_decoder(), contextlib.redirect_stdout(io.StringIO()):
        yield


def _header(content):
    """Version with its flags, attributes as of `Header`, and where they end."""
    version, at, found = struct.unpack("<I", content[4:8])[0], 8, {}
    while content[at : at + 1] != b"\0":
        name, kind = content[at : at + 512].split(b"\0")[:2]
        at += len(name) + len(kind) + 2
        (size,) = struct.unpack("<I", content[at : at + 4])
        if not name or at + 4 + size > len(content):
            raise metadata.Damage("its header is cut short")
        found[name.decode("utf-8", "surrogateescape")] = (kind.decode("latin-1"), content[at + 4 : at + 4 + size])
        at += 4 + size
    return version, found, at + 1


def _check_kind(version, attributes, path):
    if version & _PARTS:
        raise InputError(
            f"{path}: holds several parts; save the one to complete as a file of its own: oiiotool '{path}' "
            "--subimage 0 -o part.exr"
        )
    if version & _DEEP:
        raise InputError(f"{path}: holds several depths a pixel; flatten it: oiiotool '{path}' --flatten -o flat.exr")
    if not {"channels", "dataWindow"} <= attributes.keys():
        raise metadata.Damage("its header tells no channels")


def _channels(content, path):
    """Name of a channel to the name of its type; InputError where one has fewer pixels than the picture."""
    found, at = {}, 0
    while content[at : at + 1] != b"\0":
        name = content[at:].split(b"\0")[0]
        at += len(name) + 1
        kind, _, across, down = struct.unpack("<iI2i", content[at : at + 16])
        found[name.decode("utf-8", "surrogateescape")] = _TYPES[kind]
        if (across, down) != (1, 1):
            raise InputError(
                f"{path}: its channel {name.decode('utf-8', 'replace')} has fewer pixels than the picture; convert it: "
                f"oiiotool '{path}' -o '{path}.tif'"
            )
        at += 16
    return found


def _check_channels(header, path):
    """Refuse channels of which it is not known which are the picture, or that are no floats."""
    names = header.names
    colours = tuple(name for name in names if name != _ALPHA)
    if (colours not in _COLOURS and len(colours) != 1) or _CHROMA & header.types.keys():
        listed = ",".join(header.types)
        raise InputError(
            f"{path}: has the channels {listed}, and neither R, G and B nor Y alone; save those to complete as TIFF: "
            f"oiiotool '{path}' --ch {listed} -o '{path}.tif'"
        )
    whole = [name for name in names if header.types[name] == "uint32"]
    if whole:
        raise InputError(f"{path}: its channel {whole[0]} holds whole numbers; save it as TIFF or a .npy array")


def _window_note(header, path):
    left, top, right, bottom = header.window
    shown = header.attributes.get("displayWindow")
    if shown is None or shown[1] == header.attributes["dataWindow"][1]:
        return ()
    first_x, first_y, last_x, last_y = struct.unpack("<4i", shown[1])
    return (
        f"{path}: holds {right - left + 1}x{bottom - top + 1} pixels from {left - first_x},{top - first_y} on of the "
        f"{last_x - first_x + 1}x{last_y - first_y + 1} that are shown; a mask has the size of what it holds",
    )


def _number(attributes, name):
    kind, content = attributes.get(name, ("", b""))
    return struct.unpack("<f", content)[0] if kind == "float" else None


def _tiles(attributes):
    """Width and height of a tile, 0 where there are none, and whether there are reduced copies."""
    if "tiles" not in attributes:
        return 0, 0, False
    across, down, mode = struct.unpack("<2IB", attributes["tiles"][1][:9])
    return across, down, bool(mode & _LEVELS)


def _compression(library, header):
    """That of the file that was read, where it is without loss."""
    number = header.attributes.get("compression", ("", b"\xff"))[1][0] if header else None
    name = _WITHOUT_LOSS[number] if number is not None and number < len(_WITHOUT_LOSS) else _USUAL
    return getattr(library, f"{name}_COMPRESSION")


def _as_type(plane, name):
    """Values of a channel of the type that it had; nothing becomes infinite."""
    return np.clip(plane, -_LARGEST_HALF, _LARGEST_HALF).astype(name) if name == "float16" else plane.astype(name)


def _attributes(media, header):
    """Attributes that are to stand in the header, as of `Header`."""
    if header:
        anew = {"compression", "dataWindow", "lineOrder", "type", "tiles", "chunkCount"}
        return {name: told for name, told in header.attributes.items() if name not in anew}
    dots = media.metadata.get("dpi")
    if not dots:
        return {}
    across, down = dots
    numbers = {"xDensity": across, "pixelAspectRatio": down / across}
    return {name: ("float", struct.pack("<f", number)) for name, number in numbers.items()}


def _with_attributes(content, attributes):
    """A file with one part and these attributes in its header, in place of its own of the same names."""
    version, own, end = _header(content)
    merged = own | attributes
    names = {name: name.encode("utf-8", "surrogateescape") for name in merged}
    if any(len(name) > _LONGEST_NAME for name in names.values()):
        version |= _LONG_NAMES
    header = _MAGIC + struct.pack("<I", version)
    for name, (kind, data) in merged.items():
        header += names[name] + b"\0" + kind.encode("latin-1") + b"\0" + struct.pack("<I", len(data)) + data
    header += b"\0"
    (first,) = struct.unpack("<Q", content[end : end + 8])  # where the pixels begin, behind the places of their parts
    places = np.frombuffer(content[end:first], "<u8") + np.uint64(len(header) - end)
    return header + places.astype("<u8").tobytes() + content[first:]
