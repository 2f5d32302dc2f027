"""Files in and out: `read` and `write` find the right module by what the file is.

`formats` says what each format can hold and which codec reads and writes it. A codec is a module with
``decode(content, path)``, which returns a `Media`, and ``encode(media, form, quality)``, which returns bytes.
"""

import logging
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from ..errors import InputError, OutputError
from ..names import STANDARD
from .array import check_shape
from .files import check_file, read_bytes, write_bytes
from .formats import EXTENSIONS, FORMATS, check, check_library, extensions, losses, named
from .limits import check_type
from .pages import Pages
from .pixels import Media, Pixels

__all__ = [
    "EXTENSIONS", "FORMATS", "Media", "Pages", "Pixels", "check", "encode", "extensions",
    "losses", "named", "read", "read_any", "silence_codecs", "write", "write_array",
]  # fmt: skip

_OTHERS = "pillow"  # the codec of files that no signature is known of: it knows by itself what they are


def read(path, pages=None):
    """Read a file, or standard input where `path` is ``-``.

    Parameters
    ----------
    path : path-like
    pages : Pages or None
        Which page of several is meant; None: there must be no more than one that is a picture of its own.

    Returns
    -------
    Media

    Raises
    ------
    InputError
        No such file, unknown or unsupported type, or damaged content.
    """
    check_file(path, piped=True)
    if str(path) != STANDARD:
        named(path)
    made = read_any(path, pages)
    if made.mode == "array":
        check_shape(made.values.shape, path)
    check_type(made.dtype, path)
    return made


def read_any(path, pages=None):
    """As `read`, but of any extension, with values of any type and arrays of any shape: masks may be of bool or of
    32-bit integers.
    """
    content, sha256 = read_bytes(path)
    return replace(_decode(content, path, pages), path=str(path), sha256=sha256)


def silence_codecs():
    """Nothing that the codecs remark is shown: it is either an error as well or no concern of the user."""
    for codec in ("tifffile", "imagecodecs"):
        logging.getLogger(codec).setLevel(logging.CRITICAL)


def _decode(content, path, pages):
    """Media of the bytes of a file: by its content, which must be what its name says."""
    silence_codecs()
    claimed = EXTENSIONS.get(Path(path).suffix.lower())
    found = next((f for f in FORMATS.values() if content.startswith(f.signatures)), None)
    if found is None and claimed and claimed.name == "NPY":  # whose codec tells best what an array should be
        found = claimed
    if found:
        check_library(found, path)
    codec = _codec(found.codec if found else _OTHERS)
    if pages is not None and found is FORMATS["TIFF"]:
        made = codec.decode(content, path, pages)
    else:
        made = codec.decode(content, path)
        if pages is not None and pages.named:
            raise InputError(
                f"{path}: is a {made.format} file, and {pages.named} is for pages of TIFF files; leave it out"
            )
    if claimed and made.format != claimed.name:
        raise InputError(
            f"{path}: named like a {claimed.name} file but its content is {made.format}; rename it or convert it"
        )
    return made


def _codec(name):
    return import_module(f".{name}", __package__)


def encode(media, form, quality=None):
    """Bytes of `media` as a file of the format `form`.

    Parameters
    ----------
    media : Media
    form : Format
    quality : int or None
        Of JPEG, 1 to 100; None is `formats.JPEG_QUALITY`.
    """
    return _codec(form.codec).encode(media, form, quality)


def write(media, path, *, form=None, quality=None, replace=False):
    """Write `media`; the file appears whole or not at all. Where `path` is ``-``, the bytes go to standard output.

    Parameters
    ----------
    media : Media
    path : path-like
    form : Format or None
        None: the one that the extension of `path` names.
    quality : int or None
        Of JPEG, 1 to 100; None is `formats.JPEG_QUALITY`.
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
