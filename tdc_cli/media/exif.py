"""EXIF as the bytes that a file holds: what is no longer true is changed where it stands, and all else stays.

A block of EXIF is a TIFF file without pixels: directories, whose values stand at offsets from its beginning. Packed
anew, types of values would be guessed, and offsets within the notes of makers would lead elsewhere.

References
----------
CIPA DC-008-2023, Exif 3.0; TIFF 6.0 (Adobe, 1992), sections 2 and 3.
"""

import io
import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

DIRECTORIES = (0x8769, 0x8825)  # camera settings, place
ORIENTATION = 274
RESOLUTION = (282, 283, 296)  # in x, in y, unit

_PREFIX = b"Exif\0\0"
_ORDERS = {b"II": "<", b"MM": ">"}
_WITHIN = (*DIRECTORIES, 0xA005)  # directories; the last one is on interoperability
_LONG, _RATIONAL, _SHORT, _INCH = 4, 5, 3, 2
# Type of a value -> bytes of one, and of the numbers that it consists of.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_NUMBERS = _SIZES | {5: 4, 10: 4}
_MOST_ENTRIES = 0xFFFF
_SIDES = ((256, 257), (0xA002, 0xA003))  # width and height, as the directory itself and that of the camera tell them
_THUMBNAIL = (513, 514), (273, 279)  # places and lengths of one: of a JPEG, of its only strip


@dataclass(frozen=True)
class Value:
    """What a directory holds under a code.

    Attributes
    ----------
    kind : int
        Type, 1 to 12.
    content : bytes
        In the byte order of the file.
    """

    kind: int
    content: bytes

    def number(self):
        """The first number of a value in little-endian order: an int, of a fraction both of its numbers."""
        width = _NUMBERS[self.kind]
        first, second = (int.from_bytes(self.content[at : at + width], "little") for at in (0, width))
        return (first, second) if self.kind == _RATIONAL else first

    def turned(self):
        """The same in the other byte order."""
        width = _NUMBERS[self.kind]
        return Value(self.kind, np.frombuffer(self.content, f"u{width}").byteswap().tobytes())


def read(file, at, order, big=False, within=_WITHIN):
    """A directory of a TIFF file, open for reading.

    Parameters
    ----------
    file : binary file
    at : int
        Where it stands.
    order : str
        ``<`` or ``>``.
    big : bool
        Whether the file is a BigTIFF.
    within : sequence of int
        Codes of the directories that are read too.

    Returns
    -------
    dict
        Code to `Value`, or to the dict of a directory; what lies outside of the file is not there, and of what stands
        there several times only the first.
    """
    number, entry = ("Q", "HHQ8s") if big else ("H", "HHL4s")
    file.seek(at)
    size, found = struct.calcsize(order + entry), {}
    count = int.from_bytes(file.read(struct.calcsize(order + number)), {"<": "little", ">": "big"}[order])
    entries = file.read(size * min(count, _MOST_ENTRIES))
    for code, kind, length, place in struct.iter_unpack(order + entry, entries[: len(entries) // size * size]):
        size = length * _SIZES.get(kind, 0)
        (offset,) = struct.unpack(order + ("Q" if big else "L"), place)
        if code in found:  # twice: the first one counts
            continue
        if code in within:
            found[code] = read(file, offset, order, big, tuple(set(within) - {code}))
            continue
        if size > len(place):
            file.seek(offset)
            place = file.read(size)
        if size and len(place) >= size:
            found[code] = Value(kind, place[:size])
    return found


def packed(directory, at, order):
    """Bytes of a directory, as `read` gives it, that is to stand at `at`, with its values behind it."""
    entries, behind = b"", b""
    end = at + 2 + 12 * len(directory) + 4
    for code, value in sorted(directory.items()):
        place = end + len(behind)
        if isinstance(value, dict):
            entries += struct.pack(f"{order}HHLL", code, _LONG, 1, place)
            behind += packed(value, place, order)
            continue
        entries += struct.pack(f"{order}HHL", code, value.kind, len(value.content) // _SIZES[value.kind])
        if len(value.content) <= 4:
            entries += value.content.ljust(4, b"\0")
        else:
            entries += struct.pack(f"{order}L", place)
            behind += value.content
        behind += bytes(len(behind) % 2)
    return struct.pack(f"{order}H", len(directory)) + entries + bytes(4) + behind


def block(directory, order):
    """A block of EXIF with one directory; empty where there is nothing in it."""
    if not directory:
        return b""
    head = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(f"{order}L", 8)
    return _PREFIX + head + packed(directory, 8, order)


def of_block(content, order):
    """The directory of a block of EXIF, with its values in this byte order; empty of an empty one."""
    if not content:
        return {}
    body, own, at = _opened(content)
    found = read(io.BytesIO(body), at, own)
    return found if own == order else _turned(found)


def _turned(directory):
    return {code: _turned(value) if isinstance(value, dict) else value.turned() for code, value in directory.items()}


def mended(content, turn):
    """A block of EXIF without what completing makes false; everything else stays where it is.

    Parameters
    ----------
    content : bytes
    turn : int
        Orientation that has been applied, 1 to 8: from 5 on width and height change places.

    Returns
    -------
    bytes
        Empty where nothing is left.

    Raises
    ------
    ValueError, LookupError, struct.error
        Damaged content.
    """
    body, order, at = _opened(content)
    entries, end = _places(body, at, order)
    if turn > 4:
        camera = entries.get(DIRECTORIES[0])
        inner = _places(body, _number(body, camera, order), order)[0] if camera else {}
        for places in (entries, inner):
            for first, second in _SIDES:
                if first in places and second in places:
                    one, other = (slice(places[code] + 2, places[code] + 12) for code in (first, second))
                    body[one], body[other] = body[other], body[one]
    (thumbnail,) = struct.unpack(f"{order}L", body[end : end + 4])
    body[end : end + 4] = bytes(4)
    if ORIENTATION in entries:
        place = entries.pop(ORIENTATION)
        body[place : end + 4] = body[place + 12 : end + 4] + bytes(12)
        body[at : at + 2] = struct.pack(f"{order}H", len(entries))
    if 8 <= thumbnail < len(body):
        _blank_thumbnail(body, thumbnail, order)
    return _PREFIX + bytes(body) if entries else b""


def with_resolution(content, dots):
    """A block of EXIF, which may be empty, that notes two numbers of dots an inch: in a directory behind all else,
    whose other values stay where they are.
    """
    body, order, at = _opened(content) if content else (bytearray(b"II*\0" + bytes(4)), "<", 0)
    entries = _places(body, at, order)[0] if content else {}
    kept = {code: bytes(body[place : place + 12]) for code, place in entries.items() if code not in RESOLUTION}
    body += bytes(len(body) % 2)
    place = len(body) + 2 + 12 * (len(kept) + 3) + 4
    fractions = [Fraction(number).limit_denominator(0xFFFF) for number in dots]
    for code, where in zip(RESOLUTION, (place, place + 8)):
        kept[code] = struct.pack(f"{order}HHLL", code, _RATIONAL, 1, where)
    kept[RESOLUTION[2]] = struct.pack(f"{order}HHLHH", RESOLUTION[2], _SHORT, 1, _INCH, 0)
    body[4:8] = struct.pack(f"{order}L", len(body))
    body += struct.pack(f"{order}H", len(kept)) + b"".join(kept[code] for code in sorted(kept)) + bytes(4)
    body += b"".join(struct.pack(f"{order}2L", f.numerator, f.denominator) for f in fractions)
    return _PREFIX + bytes(body)


def _opened(content):
    """Bytes of a block without its prefix, its byte order, and where its directory stands."""
    body = bytearray(content.removeprefix(_PREFIX))
    order = _ORDERS[bytes(body[:2])]
    return body, order, struct.unpack(f"{order}L", body[4:8])[0]


def _places(body, at, order):
    """Code to the place of its entry in the directory at `at`, and where its last entry ends."""
    (count,) = struct.unpack(f"{order}H", body[at : at + 2])
    end = at + 2 + 12 * count
    if end + 4 > len(body):
        raise ValueError("a directory is cut short")
    places = {struct.unpack(f"{order}H", body[p : p + 2])[0]: p for p in range(at + 2, end, 12)}
    if len(places) < count:
        raise ValueError("an entry stands twice in a directory")
    return places, end


def _number(body, place, order):
    """The value of an entry at `place`, where it is one whole number."""
    kind = struct.unpack(f"{order}H", body[place + 2 : place + 4])[0]
    form, size = ("H", 2) if kind == _SHORT else ("L", 4)
    return struct.unpack(order + form, body[place + 8 : place + 8 + size])[0]


def _blank_thumbnail(body, at, order):
    """Overwrite the small picture that the directory at `at` leads to: what was to be filled is seen in it; ValueError
    where it does not lie in the block.
    """
    try:
        entries, _ = _places(body, at, order)
    except (ValueError, struct.error):
        return
    for first, length in _THUMBNAIL:
        if first in entries and length in entries:
            start, size = (_number(body, entries[code], order) for code in (first, length))
            stop = start + size
            if stop > len(body):
                raise ValueError("a thumbnail is cut short")
            if stop >= len(body) - 1 and start > at:  # as nearly everywhere, the last of all
                del body[start:]
            elif 8 <= start < stop:
                body[start:stop] = bytes(stop - start)
