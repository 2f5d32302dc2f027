"""JPEG XL by imagecodecs: 8 and 16 bits and floats, with and without alpha, without loss.

EXIF and XMP stand in boxes beside the codestream. The colour profile is in the codestream, compressed, where
imagecodecs neither reads nor writes it.

References
----------
ISO/IEC 18181-1:2022, annexes A and D (headers of the codestream); ISO/IEC 18181-2:2021, section 9 (boxes).
"""

import numpy as np

from ..errors import InputError
from . import boxes, metadata
from .limits import check_size
from .pixels import Media

_CODESTREAM = b"\xff\x0a"
_MODES = {(1, False): "L", (1, True): "LA", (3, False): "RGB", (3, True): "RGBA"}
_RATIOS = (None, (1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))  # of width and height
_RGB, _GREY = 0, 1  # colour spaces
_AS_SRGB = 1  # white point, or primaries
_ALPHA, _SPOT, _PATTERN = 0, 2, 5  # kinds of further channels
_WORDS = {b"jumb": "content credentials (JUMBF)", b"jhgm": "gain map"}
# Boxes that are read, or not needed: an index of frames, and what makes of the pixels the JPEG that they were.
_KNOWN = {b"JXL ", b"ftyp", b"jxll", b"jxlc", b"jxlp", b"jxli", b"jbrd", b"Exif", b"xml "}


def decode(content, path):
    """Media of the bytes of a JPEG XL file with one picture, upright."""
    import imagecodecs

    try:
        found = list(_boxes(content))
        head = _Header(_codestream(content, found))
        check_size(head.width, head.height, path, len(content), head.colours + len(head.further))
        if head.animated:
            raise InputError(
                f"{path}: holds an animation, of which none is read as JPEG XL; save its frames as pictures in a folder"
            )
        if head.colours not in (1, 3) or head.further not in ([], [_ALPHA]):
            raise InputError(f"{path}: has channels beside colours and alpha; save it as TIFF or a .npy array")
        values = imagecodecs.jpegxl_decode(content, numthreads=1)
    except (*metadata.DAMAGE, RuntimeError, MemoryError) as error:
        raise metadata.damaged(path, error) from error
    mode = _MODES[head.colours, bool(head.further)]
    if values.shape != (*values.shape[:2], *({"L": (), "LA": (2,), "RGB": (3,), "RGBA": (4,)}[mode])):
        raise InputError(
            f"{path}: {values.shape[2:]} channels where its header tells {mode}; convert it to PNG or TIFF"
        )
    kinds = {kind: data for kind, data in found if kind in (b"Exif", b"xml ")}
    beside, damage = metadata.of_blocks(exif=kinds.get(b"Exif", b"")[4:], xmp=kinds.get(b"xml ", b""))
    if head.premultiplied:
        beside["premultiplied"] = True
    left = [boxes.words(kind, _WORDS) for kind in dict.fromkeys(kind for kind, _ in found) if kind not in _KNOWN]
    left += damage
    if head.profiled:
        left.append("colour profile")
    return Media(values, mode, str(path), "", beside, "JPEG XL", metadata.left_out(path, left))


def encode(media, form, quality=None):
    """Bytes of `media` as a JPEG XL file, without loss, with EXIF and XMP; the resolution is noted in EXIF."""
    import imagecodecs

    kept = form.kept(media)
    content = imagecodecs.jpegxl_encode(
        np.ascontiguousarray(media.values), lossless=True, usecontainer=True, numthreads=1
    )
    if exif := metadata.with_resolution(kept):
        content += boxes.box(b"Exif", bytes(4) + exif.removeprefix(b"Exif\0\0"))
    if "xmp" in kept:
        content += boxes.box(b"xml ", kept["xmp"])
    return content


def _boxes(content):
    """Iterate over the boxes of a file: kind and data; compressed ones (``brob``) as what they hold. None where it is a
    bare codestream.
    """
    import imagecodecs

    for kind, data in boxes.of(content) if not content.startswith(_CODESTREAM) else ():
        yield (data[:4], imagecodecs.brotli_decode(data[4:])) if kind == b"brob" else (kind, data)


def _codestream(content, found):
    """The codestream, or its first part."""
    if content.startswith(_CODESTREAM):
        return content
    for kind, data in found:
        if kind in (b"jxlc", b"jxlp"):
            return data if kind == b"jxlc" else data[4:]
    raise metadata.Damage("it holds no picture")


class _Header:
    """What the headers of a codestream tell, read bit by bit.

    Attributes
    ----------
    width, height : int
        As stored, before the orientation is applied.
    animated, profiled, premultiplied : bool
        Whether it has frames, a colour profile or white and primaries of its own, and colours that are multiplied by
        their alpha.
    colours : int
        Channels of colour.
    further : list of int
        Kinds of the other channels.
    """

    def __init__(self, codestream):
        self._bits, self._at = int.from_bytes(codestream[2:65538], "little"), 0
        self._end = 8 * (len(codestream[:65538]) - 2)
        self.width, self.height = self._size()
        self.animated = self.profiled = self.premultiplied = False
        self.colours, self.further = 3, []
        if not self._read(1):
            self._metadata()

    def _read(self, count):
        if self._at + count > self._end:
            raise metadata.Damage("its header is cut short")
        value = (self._bits >> self._at) & ((1 << count) - 1)
        self._at += count
        return value

    def _number(self, *ways):
        """A number in one of four ways, each its least value and the bits that are added to it."""
        least, bits = ways[self._read(2)]
        return least + self._read(bits)

    def _size(self):
        small = self._read(1)

        def side():
            return 8 * (self._read(5) + 1) if small else self._number((1, 9), (1, 13), (1, 18), (1, 30))

        height = side()
        ratio = _RATIOS[self._read(3)]
        return (height * ratio[0] // ratio[1] if ratio else side()), height

    def _metadata(self):
        if self._read(1):
            self._read(3)  # orientation
            if self._read(1):
                self._size()  # at which it is to be shown
            if self._read(1):
                raise metadata.Damage("it has a preview, which is not understood")
            self.animated = bool(self._read(1))
            if self.animated:
                return
        self._depth()
        self._read(1)  # whether 16 bits are enough within
        for _ in range(self._number((0, 0), (1, 0), (2, 4), (1, 12))):
            self._channel()
        self._read(1)  # whether colours are stored as XYB
        if not self._read(1):
            self._colours()

    def _colours(self):
        self.profiled = bool(self._read(1))
        space = self._kind()
        self.colours = 1 if space == _GREY else 3
        if not self.profiled and space in (_RGB, _GREY):
            self.profiled = self._kind() != _AS_SRGB or (space == _RGB and self._kind() != _AS_SRGB)

    def _kind(self):
        return self._number((0, 0), (1, 0), (2, 4), (18, 6))

    def _depth(self):
        if self._read(1):
            self._number((32, 0), (16, 0), (24, 0), (1, 6))
            self._read(4)
        else:
            self._number((8, 0), (10, 0), (12, 0), (1, 6))

    def _channel(self):
        if self._read(1):
            self.further.append(_ALPHA)
            return
        kind = self._kind()
        self._depth()
        self._number((0, 0), (3, 0), (4, 0), (1, 3))
        for _ in range(self._number((0, 0), (0, 4), (16, 5), (48, 10))):
            self._read(8)  # of its name
        if kind == _ALPHA:
            self.premultiplied = bool(self._read(1))
        elif kind == _SPOT:
            self._read(64)
        elif kind == _PATTERN:
            self._number((1, 0), (0, 2), (3, 4), (19, 8))
        self.further.append(kind)
