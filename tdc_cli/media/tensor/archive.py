"""NumPy's archives of arrays, ``.npz``."""

import io
import tokenize
import zipfile

import numpy as np

from ...errors import InputError
from ..metadata import DAMAGE, damaged
from .variable import Variable

_UNNAMED = "arr_0"  # numpy.savez calls an array so that has no name


def variables(content, path):
    """Name to `Variable` of every array in the bytes of a ``.npz`` file."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: _variable(archive, name) for name in archive.files}
    except (*DAMAGE, RecursionError, tokenize.TokenError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise damaged(path, error) from error


def _variable(archive, name):
    try:
        return Variable.of(archive[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        return Variable((), None, "Python objects", lambda: _refuse(name))


def _refuse(name):
    raise InputError(f"{name} holds Python objects, which are not read: they may run programs")


def encode(media):
    """Bytes of a ``.npz`` file with the tensor and the arrays that go along with it, compressed."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{media.metadata.get("variable") or _UNNAMED: media.values, **media.metadata.get("others", {})})
    return buffer.getvalue()
