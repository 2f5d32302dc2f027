"""NumPy's archives of arrays, ``.npz``."""

import io
import tokenize
import zipfile
from collections import Counter

import numpy as np

from ...errors import InputError
from ..array import OBJECTS, holds_objects
from ..metadata import DAMAGE, damaged
from .variable import Variable

_UNNAMED = "arr_0"  # numpy.savez calls an array so that has no name


def variables(content, path):
    """Name to `Variable` of every array in the bytes of a ``.npz`` file."""
    if not content.startswith(b"PK"):
        what = "its content is something else" if content else "it is empty"
        raise InputError(f"{path}: not a readable .npz file ({what}); save the arrays with numpy.savez")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            twice = [name for name, count in Counter(archive.files).items() if count > 1]
            if twice:
                raise InputError(f"{path}: holds several arrays called {twice[0]!r}; save it again, each with a name of its own")
            return {name: _variable(archive, name) for name in archive.files}
    except MemoryError as error:
        raise InputError(f"{path}: not a readable .npz file (it tells of an array larger than the memory); get the file again") from error
    except (*DAMAGE, RecursionError, tokenize.TokenError, zipfile.BadZipFile) as error:
        raise damaged(path, error) from error
    except RuntimeError as error:  # zipfile's word for a password, and for compressions that it does not know
        raise InputError(
            f"{path}: not a readable .npz file (packed in a way that NumPy does not write); save the arrays with numpy.savez"
        ) from error


def _variable(archive, name):
    try:
        values = archive[name]
    except ValueError as error:
        if not holds_objects(error):
            raise
        return Variable((), None, "Python objects", lambda: _refuse(name))
    if not isinstance(values, np.ndarray):  # a file of another kind in the archive
        return Variable((), None, "no array", lambda: values)
    return Variable.of(values)


def _refuse(name):
    raise InputError(f"{name} holds {OBJECTS}")


def encode(media):
    """Bytes of a ``.npz`` file with the tensor and the arrays that go along with it, compressed."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{media.metadata.get("variable") or _UNNAMED: media.values, **media.metadata.get("others", {})})
    return buffer.getvalue()
