"""Files in and out: `read` and `write` find the right module by what the file is.

`formats` says what each format can hold. A codec is a module with ``decode(content, path)``, which returns a `Media`, and ``encode(media,
...)``, which returns bytes; `_decode` and `encode` choose among them.
"""

import io
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..errors import InputError, OutputError
from .files import STANDARD, check_file, read_bytes, write_bytes
from .formats import EXTENSIONS, FORMATS, check, extensions, named

__all__ = [
    "EXTENSIONS", "FORMATS", "STANDARD", "Media", "Pixels", "check", "encode", "extensions",
    "named", "read", "read_any", "silence_codecs", "write",
]  # fmt: skip

JPEG_QUALITY = 95
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_NPY = b"\x93NUMPY"


class Pixels:
    """What a picture and the frames of a clip have in common: values of a `mode` and a `dtype`.

    Attributes
    ----------
    bits : int or None
        Of a channel as stored, where the dtype has more.
    """

    mode: str
    bits: int | None = None

    @property
    def has_alpha(self):
        """Whether the last channel is alpha."""
        return self.mode in ("LA", "RGBA")

    @property
    def full_range(self):
        """Largest value of the integer type; None for floats, and for tensors of wider integers, which are counts rather than shades."""
        shades = self.dtype.kind == "u" and (self.mode != "tensor" or self.dtype.itemsize <= 2)
        return int(np.iinfo(self.dtype).max) if shades else None

    @property
    def kind(self):
        """Mode and depth in words, such as "mode RGBA with 16 bits"."""
        if self.mode == "tensor":
            return f"a tensor of {self.dtype}"
        depth = f"with {self.bits or 8 * self.dtype.itemsize} bits" if self.dtype.kind == "u" else f"of {self.dtype}"
        return f"{'an array' if self.mode == 'array' else f'mode {self.mode}'} {depth}"


@dataclass(frozen=True)
class Media(Pixels):
    """The content of a file.

    Attributes
    ----------
    values : (H, W) or (H, W, C) ndarray
        As stored: uint8, uint16, float32 or float64. Alpha, if any, is the last channel. Those of a tensor have 2 to 6 modes and may be
        of other types, see `tdc_cli.media.tensor`.
    mode : str
        ``L``, ``LA``, ``RGB``, ``RGBA``, ``CMYK``, ``array`` where the channels have no names, or ``tensor``.
    path : str
        Where it was read.
    sha256 : str
        Of the file's bytes.
    metadata : dict
        What is kept beside the values: ``icc_profile``, ``exif`` and ``xmp`` (bytes), ``dpi`` (two floats), ``text`` (of a PNG, dict),
        ``transparency`` (colour of a PNG, int or tuple), ``colour_chunks`` (of a PNG, name to bytes), ``comment`` (of a JPEG, bytes),
        ``premultiplied`` (True, of a TIFF).
    format : str
        Name in `FORMATS` of the file that was read.
    notes : tuple of str
        What the user should know about how the file was read.
    """

    values: np.ndarray
    mode: str
    path: str
    sha256: str
    metadata: dict = field(default_factory=dict)
    format: str = "NPY"
    notes: tuple = ()

    @property
    def dtype(self):
        """Of the values."""
        return self.values.dtype

    @property
    def colour(self):
        """(H, W) or (H, W, C) view of the values without alpha."""
        if self.mode == "LA":
            return self.values[..., 0]
        return self.values[..., :3] if self.mode == "RGBA" else self.values

    @property
    def alpha(self):
        """(H, W) alpha from 0 to 1, None without any."""
        return self.values[..., -1] / (self.full_range or 1) if self.has_alpha else None

    def with_colour(self, colour, opaque=None):
        """The same file with other colours; alpha stays as it is.

        Parameters
        ----------
        colour : ndarray of the shape of `colour` and the dtype of `values`
        opaque : (H, W) ndarray of bool, or None
            Where alpha, if there is any, becomes opaque.
        """
        values = np.array(self.values)
        if self.mode == "LA":
            values[..., 0] = colour
        elif self.mode == "RGBA":
            values[..., :3] = colour
        else:
            values[...] = colour
        if opaque is not None and self.has_alpha:
            values[..., -1][opaque] = self.full_range or 1
        return replace(self, values=values)


def read(path):
    """Read a file, or standard input where `path` is ``-``.

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
    check_file(path)
    if str(path) != STANDARD:
        _check_no_clip(path)
        named(path)
    made = read_any(path)
    check_type(made.dtype, path)
    return made


def check_type(dtype, path):
    """Refuse values of a type that pictures and clips do not have; InputError."""
    if str(dtype) not in FORMATS["NPY"].types:
        raise InputError(
            f"{path}: values of {dtype}; only uint8, uint16, float32 and float64 are taken: convert them to float32 or "
            "float64, with NaN for what is missing"
        )


def _check_no_clip(path):
    """Name the command for clips where `path` is one."""
    from .video.formats import EXTENSIONS as CLIPS  # which imports this module

    suffix = Path(path).suffix.lower()
    if suffix in CLIPS and suffix not in EXTENSIONS:
        raise InputError(f"{path}: {suffix} is of clips; use tdc complete-video")


def read_any(path):
    """As `read`, but of any extension and with values of any type: masks may be of bool or of 32-bit integers."""
    content, sha256 = read_bytes(path)
    return replace(_decode(content, path), path=str(path), sha256=sha256)


def silence_codecs():
    """Nothing that the codecs remark is shown: it is either an error as well or no concern of the user."""
    for codec in ("tifffile", "imagecodecs"):
        logging.getLogger(codec).setLevel(logging.CRITICAL)


def _decode(content, path):
    """Media of the bytes of a file: by its content, which must be what its name says."""
    from . import array, image, tiff

    silence_codecs()
    claimed = EXTENSIONS.get(Path(path).suffix.lower())
    if content.startswith(_NPY) or (claimed and claimed.name == "NPY"):
        made = array.decode(content, path)
    elif content.startswith(_TIFF) and tiff.suits(io.BytesIO(content)):
        made = tiff.decode(content, path)
    else:
        made = image.decode(content, path)
    if claimed and made.format != claimed.name:
        raise InputError(f"{path}: named like a {claimed.name} file but its content is {made.format}; rename it or convert it")
    return made


def encode(media, form, quality=None):
    """Bytes of `media` as a file of the format `form`.

    Parameters
    ----------
    media : Media
    form : Format
    quality : int or None
        Of JPEG, 1 to 100; None is `JPEG_QUALITY`.
    """
    from . import array, image, png16, tiff

    if form.name == "NPY":
        return array.encode(media)
    if form.name == "TIFF":
        return tiff.encode(media)
    if form.name == "PNG" and media.values.dtype == np.uint16:
        return png16.encode(media)
    return image.encode(media, form.name, quality or JPEG_QUALITY)


def write(media, path, *, form=None, quality=None, replace=False):
    """Write `media`; the file appears whole or not at all. Where `path` is ``-``, the bytes go to standard output.

    Parameters
    ----------
    media : Media
    path : path-like
    form : Format or None
        None: the one that the extension of `path` names.
    quality : int or None
        Of JPEG, 1 to 100; None is `JPEG_QUALITY`.
    replace : bool
        Whether a file that exists is replaced.

    Raises
    ------
    OutputError
        The file exists, unknown extension, a mode that the format cannot hold, or a failure to write.
    """
    form = form or named(path, OutputError)
    check(form, media, path)
    write_bytes(path, encode(media, form, quality), replace=replace)
