"""NumPy arrays: ``.npy`` with floats, where NaN is missing, and float TIFF for results."""

import io

import numpy as np

from ..errors import InputError, OutputError
from . import Media
from .files import read_bytes, write_bytes

FORMATS = {".npy": "npy"}


def read(path):
    """Read a float array of shape (H, W) or (H, W, C); see `tdc_cli.media.read`."""
    content, sha256 = read_bytes(path)
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a readable .npy file ({error})") from error
    if not isinstance(values, np.ndarray):
        raise InputError(f"{path}: an archive of arrays; save one array with numpy.save")
    if values.dtype not in (np.float32, np.float64):
        raise InputError(
            f"{path}: array of {values.dtype}; only float32 and float64 are taken: convert with array.astype('float64')"
        )
    if values.ndim not in (2, 3) or not values.size:
        raise InputError(
            f"{path}: array of shape {values.shape}; a picture has shape (height, width) or (height, width, channels)"
        )
    return Media(values, "array", str(path), sha256)


def check_writable(media, path):
    """Any array can be held."""


def write(media, path, *, replace=False):
    """Write the values of `media`; see `tdc_cli.media.write`."""
    write_array(media.values, path, replace=replace)


def write_array(values, path, *, replace=False):
    """Write a bare array as ``.npy``, or as TIFF without compression if the extension says so.

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
    suffix = str(path).lower().rpartition(".")[2]
    buffer = io.BytesIO()
    if suffix == "npy":
        np.save(buffer, values)
    elif suffix in ("tif", "tiff"):
        import tifffile

        tifffile.imwrite(
            buffer, values, photometric="rgb" if values.ndim == 3 and values.shape[2] == 3 else "minisblack", metadata=None
        )
    else:
        raise OutputError(f"{path}: arrays are written to .npy, .tif or .tiff")
    write_bytes(path, buffer.getvalue(), replace=replace)
