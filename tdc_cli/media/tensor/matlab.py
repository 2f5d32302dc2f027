"""MATLAB's ``.mat`` files: version 5 by scipy, read and written; version 7.3, which is HDF5, by h5py, read only."""

import io
import re
import warnings

import numpy as np

from ...errors import InputError, OutputError
from ..metadata import DAMAGE, damaged
from . import elements
from .variable import Variable

VERSION_5 = b"MATLAB 5.0"
HDF5 = b"\x89HDF\r\n\x1a\n"
_USER_BLOCK = 512  # bytes in front of the HDF5 file, with MATLAB's own header
_UNNAMED = "tensor"
_TEXT = b"MATLAB 5.0 MAT-file, written by tdc".ljust(116)  # at the beginning of a file
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")  # of a variable of MATLAB
_LARGEST = 2**31  # bytes of a variable in version 5


def is_hdf5(content):
    """Whether the bytes are of version 7.3."""
    return content.startswith(HDF5) or content[_USER_BLOCK : _USER_BLOCK + len(HDF5)] == HDF5


def variables(content, path):
    """Name to `Variable` of everything in the bytes of a ``.mat`` file."""
    return _of_hdf5(content, path) if is_hdf5(content) else _of_version_5(content, path)


def _of_version_5(content, path):
    import scipy.io
    from scipy.io.matlab import MatReadError, MatReadWarning

    try:
        if content.startswith(VERSION_5):
            elements.check(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "Duplicate variable name", MatReadWarning)  # of which it keeps the last
            typed, stored = (scipy.io.loadmat(io.BytesIO(content), mat_dtype=mat_dtype) for mat_dtype in (True, False))
    except MatReadWarning as error:
        raise InputError(
            f"{path}: holds several variables of one name; save it again, each with a name of its own"
        ) from error
    except (*DAMAGE, MatReadError, NotImplementedError) as error:
        raise damaged(path, error) from error
    return {
        name: _variable(_own_type(value, stored[name])) for name, value in typed.items() if not name.startswith("__")
    }


def _own_type(typed, stored):
    """A value in the type that it has in MATLAB, which stores numbers in the smallest type that holds them.

    With its `mat_dtype` scipy gives back the own type but drops imaginary parts, without it only the stored type.
    """
    if not isinstance(stored, np.ndarray) or stored.dtype.kind == "c":
        return stored
    if stored.dtype.kind == "O":
        for place in np.ndindex(stored.shape):
            typed[place] = _own_type(typed[place], stored[place])
    elif stored.dtype.names:
        for name in stored.dtype.names:
            _own_type(typed[name], stored[name])
    return typed


def _variable(value):
    if not isinstance(value, np.ndarray):
        return Variable(value.shape, None, "sparse matrix", lambda: value)
    if value.dtype.kind in "biufc":
        return Variable.of(value)
    kind = {"O": "cell array", "V": "struct", "U": "text"}.get(value.dtype.kind, str(value.dtype))
    return Variable(value.shape, None, kind, lambda: value)


def _of_hdf5(content, path):
    import h5py

    try:
        file = h5py.File(io.BytesIO(content), "r")
        return {name: _stored(file, name) for name in file if not name.startswith("#")}  # '#refs#': what cells hold
    except (*DAMAGE, RuntimeError) as error:
        raise damaged(path, error) from error


def _stored(file, name):
    """Variable of an item of an open HDF5 file, whose axes come in the opposite order of MATLAB's.

    What lies in other files is not read: a file that somebody sends must not bring the content of others into the
    output.
    """
    import h5py

    outside = Variable((), None, "values in another file, which are not read", lambda: None)
    if isinstance(file.get(name, getlink=True), h5py.ExternalLink):
        return outside
    item = file.get(name)
    if item is None:
        return Variable((), None, "link that leads nowhere", lambda: item)
    if item.file.filename != file.filename or getattr(item, "external", None) or getattr(item, "is_virtual", False):
        return outside
    given = item.attrs.get("MATLAB_class", b"")
    kind = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
    shape = tuple(reversed(getattr(item, "shape", None) or ()))
    if "MATLAB_sparse" in item.attrs or not hasattr(item, "dtype"):
        return Variable((), None, "sparse matrix" if "MATLAB_sparse" in item.attrs else "struct", lambda: item)
    if kind in ("char", "cell") or "MATLAB_empty" in item.attrs:
        return Variable((), None, {"char": "text", "cell": "cell array"}.get(kind, "empty"), lambda: item)
    if item.dtype.names:  # real and imaginary parts
        return Variable(shape, np.dtype(complex), "complex", lambda: np.empty(shape, dtype=complex))
    if item.dtype.kind == "O":  # h5py's type for both
        return Variable(shape, None, "text" if h5py.check_string_dtype(item.dtype) else "references", lambda: item)
    dtype = np.dtype(bool) if kind == "logical" else item.dtype
    return Variable(shape, dtype, str(dtype), lambda: item[()].astype(dtype, copy=False).transpose())


def check(values, path):
    """OutputError for what version 5 has no room for."""
    if values.nbytes >= _LARGEST:
        raise OutputError(f"{path}: MAT cannot hold variables of 2 GiB or more; write to .npy or .npz")


def encode(media):
    """Bytes of a ``.mat`` file of version 5 with the tensor and the variables that go along with it, compressed."""
    import scipy.io

    name = media.metadata.get("variable") or _UNNAMED
    buffer = io.BytesIO()
    held = {name if _NAME.fullmatch(name) else _UNNAMED: media.values}
    held |= {key: one.load() for key, one in media.metadata.get("others", {}).items()}
    scipy.io.savemat(buffer, held, do_compression=True, long_field_names=True)
    content = buffer.getvalue()
    # SciPy's text has the time of writing in it; the same values are the same bytes.
    return _TEXT + content[len(_TEXT) :]


def can_keep(value):
    """Whether a variable can be written again; what only MATLAB understands, such as its objects and functions, cannot.
    """
    import scipy.io
    from scipy.io.matlab import MatlabFunction, MatlabOpaque

    if isinstance(value, (MatlabFunction, MatlabOpaque)):
        return False
    try:
        scipy.io.savemat(io.BytesIO(), {"v": value})
    except Exception:
        return False
    return True
