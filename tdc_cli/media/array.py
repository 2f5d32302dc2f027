"""NumPy arrays: ``.npy`` files with integers of 8 or 16 bits, or with floats, where NaN is missing."""

import io
import tokenize

import numpy as np

from ..errors import InputError, OutputError
from . import Media, write
from .metadata import DAMAGE


def load(content, path):
    """The array of the bytes of a ``.npy`` file, whatever its shape and type."""
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except (*DAMAGE, MemoryError, RecursionError, tokenize.TokenError) as error:  # the header is an expression of Python
        raise InputError(f"{path}: not a readable .npy file ({error})") from error
    if not isinstance(values, np.ndarray):
        raise InputError(f"{path}: an archive of arrays; save one array with numpy.save")
    return values


def decode(content, path):
    """Media of the bytes of a ``.npy`` file of shape (H, W) or (H, W, C)."""
    values = load(content, path)
    if values.ndim not in (2, 3) or not values.size:
        raise InputError(
            f"{path}: array of shape {values.shape}; a picture has shape (height, width) or (height, width, channels)"
        )
    return Media(values.astype(values.dtype.newbyteorder("="), copy=False), "array", str(path), "", format="NPY")


def encode(media):
    """Bytes of a ``.npy`` file; alpha is the last channel."""
    buffer = io.BytesIO()
    np.save(buffer, media.values)
    return buffer.getvalue()


def write_array(values, path, *, replace=False):
    """Write a bare array as ``.npy``, or as TIFF if the extension says so.

    Parameters
    ----------
    values : (H, W) or (H, W, C) ndarray
    path : path-like
    replace : bool
        Whether a file that exists is replaced.

    Raises
    ------
    OutputError
        The file exists, failure to write, or another extension.
    """
    if not str(path).lower().endswith((".npy", ".tif", ".tiff")):
        raise OutputError(f"{path}: arrays are written to .npy, .tif or .tiff")
    write(Media(values, "array", str(path), ""), path, replace=replace)
