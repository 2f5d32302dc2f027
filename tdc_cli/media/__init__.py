"""Files in and out: `read` and `write` find the right module by what the file is.

A format is a module with ``FORMATS`` (extension to name of the format), ``read(path)``, ``write(media, path)`` and
``check_writable(media, path)``. To add one: write the module, add it to `_MODULES`.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..errors import InputError, OutputError


@dataclass(frozen=True)
class Media:
    """The content of a file.

    Attributes
    ----------
    values : (H, W) or (H, W, C) ndarray
        As stored: uint8, or float for arrays. Alpha, if any, is the last channel.
    mode : str
        ``L``, ``LA``, ``RGB``, ``RGBA``, or ``array`` for floats.
    path : str
        Where it was read.
    sha256 : str
        Of the file's bytes.
    metadata : dict
        What is kept beside the values: ``icc_profile`` and ``exif`` (bytes), ``dpi`` (two floats), ``transparency``.
    """

    values: np.ndarray
    mode: str
    path: str
    sha256: str
    metadata: dict = field(default_factory=dict)

    @property
    def colour(self):
        """(H, W) or (H, W, C) view of the values without alpha."""
        if self.mode == "LA":
            return self.values[..., 0]
        return self.values[..., :3] if self.mode == "RGBA" else self.values

    @property
    def full_range(self):
        """Largest value of the integer type, or None for floats."""
        return int(np.iinfo(self.values.dtype).max) if self.values.dtype.kind == "u" else None

    def with_colour(self, colour):
        """The same file with other colours; alpha stays as it is.

        Parameters
        ----------
        colour : ndarray of the shape of `colour` and the dtype of `values`
        """
        values = np.array(self.values)
        if self.mode == "LA":
            values[..., 0] = colour
        elif self.mode == "RGBA":
            values[..., :3] = colour
        else:
            values[...] = colour
        return replace(self, values=values)


def _modules():
    from . import array, image

    return (image, array)


def extensions():
    """Every extension that can be read and written, such as ``.png``, sorted."""
    return sorted(e for module in _modules() for e in module.FORMATS)


def _module(path, error):
    suffix = Path(path).suffix.lower()
    for module in _modules():
        if suffix in module.FORMATS:
            return module
    raise error(
        f"{path}: {f'extension {suffix!r} is not known' if suffix else 'no extension'}; use one of {', '.join(extensions())}"
    )


def read(path):
    """Read a file.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Media

    Raises
    ------
    InputError
        No such file, unknown or unsupported type, or damaged content.
    """
    if not Path(path).exists():
        raise InputError(f"{path}: no such file")
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder; give one file")
    return _module(path, InputError).read(path)


def check_writable(media, path):
    """Raise OutputError if `media` cannot be written to a file with the extension of `path` without loss of its mode."""
    _module(path, OutputError).check_writable(media, path)


def write(media, path, *, replace=False):
    """Write `media` in the format that the extension of `path` names; the file appears whole or not at all.

    Parameters
    ----------
    media : Media
    path : path-like
    replace : bool
        Whether a file that exists is replaced.

    Raises
    ------
    OutputError
        The file exists, unknown extension, a mode that the format cannot hold, or a failure to write.
    """
    module = _module(path, OutputError)
    module.check_writable(media, path)
    module.write(media, path, replace=replace)
