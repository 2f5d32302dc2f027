"""NumPy arrays: ``.npy`` files with integers of 8 or 16 bits, or with floats, where NaN is missing."""

import contextlib
import io
import tokenize

import numpy as np

from ..errors import InputError
from .metadata import DAMAGE, damaged
from .pixels import Media

MAGIC = b"\x93NUMPY"
OBJECTS = "Python objects, which are not read: they may run programs"


def load(content, path):
    """The array of the bytes of a ``.npy`` file, whatever its shape and type."""
    with told(path, content[: len(MAGIC)]):
        return np.load(io.BytesIO(content), allow_pickle=False)


@contextlib.contextmanager
def told(path, start):
    """Within the block, what NumPy finds wrong with a ``.npy`` file, whose first bytes are `start`, becomes an
    InputError in our words.
    """
    if not start:
        raise InputError(f"{path}: not a readable .npy file (it is empty); get the file again")
    if start.startswith(b"PK"):
        raise InputError(
            f"{path}: not a readable .npy file (it is an archive of arrays); save one array with numpy.save"
        )
    if not MAGIC.startswith(start):
        raise InputError(
            f"{path}: not a readable .npy file (its content is something else); save the array with numpy.save"
        )
    try:
        yield
    except MemoryError as error:
        raise InputError(
            f"{path}: not a readable .npy file (it tells of an array larger than the memory); get the file again"
        ) from error
    except (*DAMAGE, RecursionError, tokenize.TokenError) as error:  # the header is an expression of Python
        if holds_objects(error):
            raise InputError(
                f"{path}: not a readable .npy file (it holds {OBJECTS}); save an array of numbers"
            ) from error
        if isinstance(error, OSError) and error.errno:
            raise damaged(path, error) from error
        raise InputError(f"{path}: not a readable .npy file (damaged or cut short); get the file again") from error


def holds_objects(error):
    """Whether NumPy has refused an array because there are objects in it, which has no type of error of its own."""
    return isinstance(error, ValueError) and "allow_pickle" in str(error)


def decode(content, path):
    """Media of the bytes of a ``.npy`` file, of any shape; `check_shape` tells whether it is a picture."""
    values = load(content, path)
    return Media(values.astype(values.dtype.newbyteorder("="), copy=False), "array", str(path), "", format="NPY")


def check_shape(shape, path):
    """InputError unless an array of this shape is a picture, (H, W) or (H, W, C)."""
    if len(shape) not in (2, 3) or 0 in shape:
        raise InputError(
            f"{path}: array of shape {shape}; a picture has shape (height, width) or (height, width, channels); "
            f"'tdc complete-{'video' if len(shape) == 4 else 'tensor'}' completes "
            f"{'clips, (frames, height, width, channels)' if len(shape) == 4 else 'other arrays'}"
        )


def encode(media, form=None, quality=None):
    """Bytes of a ``.npy`` file; alpha is the last channel."""
    buffer = io.BytesIO()
    np.save(buffer, media.values)
    return buffer.getvalue()


def write_rows(bands, media, file):
    """Write the values of `media` into an open binary file, from `bands` of its rows; the bytes are those of `encode`.
    """
    values = media.values
    header = {"descr": np.lib.format.dtype_to_descr(values.dtype), "fortran_order": False, "shape": values.shape}
    np.lib.format.write_array_header_1_0(file, header)
    for band in bands:
        file.write(np.ascontiguousarray(band, values.dtype).data)
