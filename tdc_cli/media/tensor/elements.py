"""Whether the elements of a ``.mat`` file of version 5 fit into each other.

scipy reads them in C and trusts their types and sizes: a damaged file could end the whole program.

References
----------
MathWorks: MAT-File Format, version R2019b, chapter 1.
"""

import math
import struct
import zlib

import numpy as np

from ..metadata import Damage

_HEADER = 128  # bytes, of which the last two tell the order of bytes
_TAG = 8
# Types of elements.
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED, _UTF8 = 1, 5, 6, 14, 15, 16
_NUMBERS = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13})
_TEXTS = frozenset({1, 2, 4, 16, 17, 18})
_SIZES = {3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 17: 2, 18: 4}  # bytes of a value, 1 for others
# Classes of arrays; those between `_SPARSE` and `_FUNCTION` are of numbers.
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, _FUNCTION, _OPAQUE = 1, 2, 3, 4, 5, 16, 17
_LOGICAL, _COMPLEX = 0x200, 0x800  # bits of the flags
_DEEPEST = 60  # cells in cells


def check(content):
    """Walk through all elements.

    Parameters
    ----------
    content : bytes
        Of a whole file.

    Raises
    ------
    Damage
        An element that is cut short, does not fit into the one around it, or has a type that it cannot have.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[_HEADER - 2 : _HEADER])
    if order is None:
        raise Damage("the order of bytes is not told")
    for kind, data in _split(memoryview(content)[_HEADER:], order, padded=False):
        if kind == _COMPRESSED:
            inner = zlib.decompress(data)
            (kind, data), *more = list(_split(memoryview(inner), order)) or [(0, b"")]
            if more:
                raise Damage("a compressed element holds several")
        if kind != _MATRIX:
            raise Damage(f"an element of type {kind} where an array should be")
        _check_array(data, order, _DEEPEST)


def _split(data, order, padded=True):
    """(type, content) of the elements that follow each other; those in the file itself are not padded where they are
    compressed.
    """
    at = 0
    while at < len(data):
        if len(data) - at < _TAG:
            raise Damage("a tag is cut short")
        kind, size = struct.unpack(f"{order}II", data[at : at + _TAG])
        if kind >> 16:  # a small one, in its own tag
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise Damage("a small element is too large")
            yield kind, data[at + 4 : at + 4 + size]
            at += _TAG
            continue
        at += _TAG
        if size > len(data) - at:
            raise Damage("an element is cut short")
        yield kind, data[at : at + size]
        at += size if kind == _COMPRESSED and not padded else -(-size // 8) * 8


def _check_array(data, order, depth):
    if not len(data):  # an empty cell
        return
    if not depth:
        raise Damage("arrays are nested too deeply")
    (kind, first), *parts = _split(data, order)
    _want(kind == _UINT32 and len(first) == 8)
    flags = struct.unpack(f"{order}I", first[:4])[0]
    of = flags & 0xFF
    if of == _OPAQUE:  # three names and an array
        _want(len(parts) == 4)
        _check_names(parts[:3])
        _check_arrays(parts[3:], 1, order, depth)
        return
    _want(_CELL <= of <= _FUNCTION and len(parts) >= 3)
    sizes = _numbers(parts[0], order).tolist()
    _want(len(sizes) >= 2 and min(sizes) >= 0)
    _check_names(parts[1:2])
    count, held = math.prod(sizes), parts[2:]
    if of in (_CELL, _FUNCTION):
        _check_arrays(held, count if of == _CELL else 1, order, depth)
    elif of in (_STRUCT, _OBJECT):
        _check_names(held[: of - _STRUCT])  # of the object's class
        lengths, fields, *values = held[of - _STRUCT :]
        (length,) = _numbers(lengths, order).tolist()
        _check_names([fields])
        _want(length > 0 and len(fields[1]) % length == 0)
        _check_arrays(values, len(fields[1]) // length * count, order, depth)
    elif of == _CHAR:
        ((kind, text),) = held
        _want(kind in _TEXTS and count <= max(1, len(text)) and len(text) % _SIZES.get(kind, 1) == 0)
    else:
        _check_values(held, flags, sizes, order)


def _want(condition):
    if not condition:
        raise Damage("an array whose parts do not fit each other")


def _check_names(parts):
    _want(all(kind in (_INT8, _UTF8) for kind, _ in parts))


def _check_arrays(parts, count, order, depth):
    _want(len(parts) == count)
    for kind, part in parts:
        _want(kind == _MATRIX)
        _check_array(part, order, depth - 1)


def _numbers(element, order):
    """Values of an element of 32-bit integers, (n,) ndarray of int64."""
    kind, part = element
    _want(kind in (_INT32, _UINT32) and len(part) % 4 == 0)
    return np.frombuffer(bytes(part), dtype=f"{order}i4").astype(np.int64)


def _check_values(held, flags, sizes, order):
    """Real and imaginary values, and of a sparse matrix rows and the starts of columns, which scipy's own matrices
    trust as well.
    """
    sparse = flags & 0xFF == _SPARSE
    where, values = (held[:2], held[2:]) if sparse else ([], held)
    _want(len(values) == (2 if flags & _COMPLEX else 1))
    # MATLAB writes the values of a sparse logical matrix as bytes but calls them doubles.
    size = [1 if sparse and flags & _LOGICAL else _SIZES.get(kind, 1) for kind, _ in values]
    _want(all(kind in _NUMBERS and len(part) % n == 0 for n, (kind, part) in zip(size, values)))
    counts = [len(part) // n for n, (_, part) in zip(size, values)]
    if not sparse:
        _want(set(counts) == {math.prod(sizes)})
        return
    rows, starts = (_numbers(part, order) for part in where)
    height, width = sizes
    _want(len(starts) == width + 1 and starts[0] == 0 and (np.diff(starts) >= 0).all())
    used = rows[: starts[-1]]
    _want(starts[-1] <= min(len(rows), *counts) and ((used >= 0) & (used < height)).all())
