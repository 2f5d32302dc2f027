"""Tensors in and out: ``.npy``, ``.npz``, MATLAB's ``.mat`` and TIFF with any number of pages, of order 2 to 6.

A tensor is a `Media` of the mode ``tensor``. One of several arrays in a file is said as ``FILE:NAME``. Its metadata
hold ``variable``, the name it has in the file; ``others``, the arrays that go along with it into a file of the same
format, name to `Variable`; ``left``, names of those that cannot be written again; ``axes`` and ``stack``, of a TIFF,
see `tiff_series`.
"""

from pathlib import Path

import numpy as np

from ...errors import InputError, MaskError, OutputError
from ...names import STANDARD
from .. import array, formats
from ..files import check_file, read_bytes, write_bytes
from ..formats import Format
from ..pixels import Media
from . import archive, matlab, tiff_series, variable
from .variable import LARGEST_INTEGER

__all__ = ["FORMATS", "LARGEST_INTEGER", "check", "encode", "left_out", "named", "read", "read_mask", "split", "write"]

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_FLOATS = ("float32", "float64")

FORMATS = {
    f.name: f
    for f in (
        Format("NPY", (".npy",), ("tensor",), (*_INTEGERS, "float16", *_FLOATS), frozenset()),
        Format("NPZ", (".npz",), ("tensor",), (*_INTEGERS, "float16", *_FLOATS), frozenset({"others"})),
        Format("MAT", (".mat",), ("tensor",), (*_INTEGERS, *_FLOATS), frozenset({"others"})),
        Format("TIFF", (".tif", ".tiff"), ("tensor",), (*_INTEGERS, "float16", *_FLOATS), frozenset()),
    )
}
_MAGIC = {b"\x93NUMPY": "NPY", b"PK\x03\x04": "NPZ", b"PK\x05\x06": "NPZ", matlab.VERSION_5: "MAT"} | dict.fromkeys(
    (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), "TIFF"
)
_CONTAINERS = {"NPZ": archive, "MAT": matlab}
_MOST_MODES = variable.ORDERS[1]


def split(path):
    """Path of a file and the name of an array in it, or None, from ``FILE`` or ``FILE:NAME``.

    A file that exists under the whole name is that file.
    """
    text = str(path)
    head, colon, tail = text.rpartition(":")
    container = head == STANDARD or Path(head).suffix.lower() in (".npz", ".mat")
    return (head, tail) if colon and tail and container and not Path(text).exists() else (text, None)


def read(path):
    """Read a tensor.

    Parameters
    ----------
    path : path-like
        ``FILE`` or ``FILE:NAME``; ``-`` is standard input.

    Returns
    -------
    Media
        Its mode is ``tensor``.

    Raises
    ------
    InputError
        No such file or array, unknown type, damaged content, or values that cannot be completed.
    """
    file, name = split(path)
    if file != STANDARD and not Path(file).is_dir():
        formats.named(file, table=FORMATS)
    check_file(file, piped=True)
    made = _read(file, name, variable.ORDERS, keep=True)
    return Media(
        variable.tensor(made.values, str(path)),
        "tensor",
        str(path),
        made.sha256,
        made.metadata,
        made.format,
        made.notes,
        made.nodata,
    )


def read_mask(path):
    """Array that says what is missing: anything but 0 and false.

    Parameters
    ----------
    path : path-like
        ``FILE`` or ``FILE:NAME``.

    Returns
    -------
    (n_1, ..., n_K) ndarray of bool
        True = not 0. Of order 1 to 6.

    Raises
    ------
    MaskError
        No such file or array, or no array of numbers that are not NaN.
    """
    file, name = split(path)
    try:
        values = _read(file, name, (1, _MOST_MODES), keep=False).values
    except InputError as error:
        raise MaskError(f"mask {error}") from error
    if values.dtype.kind not in "biuf":
        kind = variable.kind_of(values.dtype)
        raise MaskError(f"mask {path}: values of {kind}; give numbers: 0 stands for known, any other for missing")
    nan = int(np.isnan(values).sum())
    if nan:
        raise MaskError(
            f"mask {path}: {nan} values are NaN; 0 stands for known, any other number for missing: write 1 where an "
            "entry is missing (NaN in the tensor itself needs no mask)"
        )
    return values != 0


def _read(file, name, orders, *, keep):
    """Media of whatever array is meant."""
    check_file(file)
    content, sha256 = read_bytes(file)
    form = _format(content, file)
    metadata, nodata, notes = {}, (), ()
    if form in _CONTAINERS:
        held = _CONTAINERS[form].variables(content, file)
        name = variable.choose(held, name, file, orders)
        if not held[name].is_numbers:
            raise InputError(f"{file}: {name} is no array of numbers ({held[name].in_words}); give one")
        try:
            values = held[name].load()
        except MemoryError as error:
            raise InputError(
                f"{file}: {name} ({held[name].in_words}) is larger than the memory; give a smaller array"
            ) from error
        metadata["variable"] = name
        if keep:
            metadata |= _others({key: one for key, one in held.items() if key != name}, form, content)
    elif form == "TIFF":
        values, found, nodata, notes = tiff_series.decode(content, file)
        metadata |= found
    else:
        values = array.load(content, file)
    return Media(values, "tensor", file, sha256, metadata, form, notes, nodata)


def _format(content, file):
    """Name of the format of a file by its content, which must be what its name says."""
    found = next((name for magic, name in _MAGIC.items() if content.startswith(magic)), None)
    if found is None and matlab.is_hdf5(content):
        found = "MAT"
    claimed = next((f.name for f in FORMATS.values() if Path(file).suffix.lower() in f.extensions), None)
    if found is None and claimed is None:
        known = ", ".join(e for f in FORMATS.values() for e in f.extensions)
        raise InputError(f"{file}: content of no known format; give a tensor as one of {known}")
    if claimed and found and claimed != found:
        raise InputError(f"{file}: named like a {claimed} file but its content is {found}; rename it or convert it")
    return found or claimed


def _others(held, form, content):
    """Metadata of the other arrays of a file: those that can be written again, and the names of the rest."""
    if form == "MAT" and matlab.is_hdf5(content):
        return {"left": tuple(held)} if held else {}
    kept = {
        key: one
        for key, one in held.items()
        if (matlab.can_keep(one.load()) if form == "MAT" else one.dtype is not None)
    }
    left = tuple(key for key in held if key not in kept)
    return ({"others": kept} if kept else {}) | ({"left": left} if left else {})


def named(path, error=OutputError):
    """The `Format` of tensors that the extension of `path` names; `error` for others."""
    return formats.named(path, error, table=FORMATS)


def check(form, media, path):
    """Raise OutputError if the format `form` cannot hold the tensor `media`."""
    formats.check(form, media, path, table=FORMATS)
    if form.name == "MAT":
        matlab.check(media.values, path)


def left_out(form, media):
    """What is in the file of `media` and a file of the format `form` will not hold: names of other arrays,
    descriptions; a list.
    """
    others = () if form.name == media.format and "others" in form.keeps else tuple(media.metadata.get("others", ()))
    described = media.metadata["stack"][0].words if "stack" in media.metadata and form.name != "TIFF" else ()
    return [*others, *media.metadata.get("left", ()), *described]


def encode(media, form):
    """Bytes of the tensor `media` as a file of the format `form`; other arrays go along where that is the format they
    came in.
    """
    if form.name != media.format:
        media = _alone(media)
    return {"NPY": array.encode, "NPZ": archive.encode, "MAT": matlab.encode, "TIFF": tiff_series.encode}[form.name](
        media
    )


def _alone(media):
    kept = {key: value for key, value in media.metadata.items() if key != "others"}
    return Media(media.values, media.mode, media.path, media.sha256, kept, media.format, media.notes)


def write(media, path, *, form=None, replace=False):
    """Write a tensor; the file appears whole or not at all.

    Parameters
    ----------
    media : Media
        Of the mode ``tensor``.
    path : path-like
    form : Format or None
        None: the one that the extension of `path` names.
    replace : bool
        Whether a file that exists is replaced.

    Raises
    ------
    OutputError
        The file exists, an unknown extension, values that the format cannot hold, or a failure to write.
    """
    form = form or named(path)
    check(form, media, path)
    write_bytes(path, encode(media, form), replace=replace)
