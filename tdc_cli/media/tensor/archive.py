"""NumPy's archives of arrays, ``.npz``: zip archives whose members are ``.npy`` files, read and written one by one.

NumPy's own writer takes the names of the arrays for those of its parameters where they are alike, and its reader knows
no way to look at the size of an array before it is there.
"""

import contextlib
import io
import shutil
import tokenize
import zipfile
from collections import Counter

import numpy as np

from ...errors import InputError
from ..limits import check_memory
from ..metadata import DAMAGE, Damage, damaged
from .variable import Variable

_UNNAMED = "arr_0"  # numpy.savez calls an array so that has no name
_EXTENSION = ".npy"


def variables(content, path):
    """Name to `Variable` of every array in the bytes of a ``.npz`` file; of each only the header is read."""
    if not content.startswith(b"PK"):
        what = "its content is something else" if content else "it is empty"
        raise InputError(f"{path}: not a readable .npz file ({what}); save the arrays with numpy.savez")
    with _told(path), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.namelist()
        names = [member.removesuffix(_EXTENSION) for member in members]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InputError(
                f"{path}: holds several arrays called {twice[0]!r}; save it again, each with a name of its own"
            )
        return {name: _variable(archive, member, content, path) for name, member in zip(names, members)}


@contextlib.contextmanager
def _told(path):
    """Within the block, what is wrong with an archive becomes an InputError in our words."""
    try:
        yield
    except MemoryError as error:
        raise InputError(
            f"{path}: not a readable .npz file (it tells of an array larger than the memory); get the file again"
        ) from error
    except (*DAMAGE, RecursionError, tokenize.TokenError, zipfile.BadZipFile) as error:
        raise damaged(path, error) from error
    except RuntimeError as error:  # zipfile's word for a password, and for compressions that it does not know
        raise InputError(
            f"{path}: not a readable .npz file (packed in a way that NumPy does not write); save the arrays with "
            "numpy.savez"
        ) from error


def _variable(archive, member, content, path):
    with archive.open(member) as file:
        if file.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            return Variable((), None, "another file", lambda: None)
        version = tuple(file.read(2))
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if dtype.hasobject:
            return Variable((), None, "Python objects", lambda: None)
        held = archive.getinfo(member).file_size - file.tell()
    size = dtype.itemsize * int(np.prod([int(n) for n in shape], dtype=object))
    if held != size:
        raise Damage(f"{member} has {held} bytes for an array of {size}")

    def load():
        check_memory(size, f"{path}: {member.removesuffix(_EXTENSION)}")
        with _opened(content, member, path) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    def copy(target):
        with _opened(content, member, path) as file:
            shutil.copyfileobj(file, target)

    return Variable.stored(shape, dtype, load, copy)


@contextlib.contextmanager
def _opened(content, member, path):
    with _told(path), zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(member) as file:
        yield file


def encode(media):
    """Bytes of a ``.npz`` file with the tensor and the arrays that go along with it, compressed, as
    numpy.savez_compressed writes it.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        with _member(archive, media.metadata.get("variable") or _UNNAMED) as file:
            np.lib.format.write_array(file, media.values, allow_pickle=False)
        for name, one in media.metadata.get("others", {}).items():
            with _member(archive, name) as file:
                one.copy(file)
    return buffer.getvalue()


def _member(archive, name):
    return archive.open(f"{name}{_EXTENSION}", "w", force_zip64=True)
