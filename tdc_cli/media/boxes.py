"""The boxes of JPEG XL and JPEG 2000: a size, a kind of four letters, and data.

References
----------
ISO/IEC 15444-1:2019, annex I; ISO/IEC 18181-2:2021, section 9.
"""

import struct

from .metadata import Damage


def of(content):
    """Iterate over the boxes of a file, or of a box that holds others: kind and data.

    Raises
    ------
    Damage
        A box is cut short.
    struct.error
        So is the head of one.
    """
    start = 0
    while start < len(content):
        size, kind = struct.unpack(">I4s", content[start : start + 8])
        head = 8
        if size == 1:
            (size,), head = struct.unpack(">Q", content[start + 8 : start + 16]), 16
        end = start + size if size else len(content)
        if end > len(content) or end < start + head:
            raise Damage("a part of it is cut short")
        yield kind, content[start + head : end]
        start = end


def box(kind, data):
    """Bytes of a box."""
    if 8 + len(data) < 2**32:
        return struct.pack(">I4s", 8 + len(data), kind) + data
    return struct.pack(">I4sQ", 1, kind, 16 + len(data)) + data


def words(kind, known):
    """What a box is called where it is told: as `known` has it, a dict of kinds to words, else by its letters."""
    return known.get(kind) or f"box {kind.decode('latin-1').strip()}"
