"""Pictures by Pillow: PNG, JPEG and TIFF with 8 bits, grey or RGB, with or without alpha."""

import contextlib
import io
import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np

from ..errors import InputError, MaskError, OutputError
from . import Media
from .files import read_bytes, write_bytes

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}
MODES = {"PNG": ("L", "LA", "RGB", "RGBA"), "JPEG": ("L", "RGB"), "TIFF": ("L", "LA", "RGB", "RGBA")}
LARGEST = 100_000_000  # pixels; read before the file is decoded, so that a small file cannot fill the memory
JPEG_QUALITY = 95

_DIRECTORIES = (0x8769, 0x8825)  # camera settings, place
_INTEROPERABILITY = 0xA005  # an offset into the old file, which means nothing in a new one
# TIFF tags that say what the picture shows, not how it is stored: description, maker, model, software, date, artist, copyright.
_DESCRIPTIVE = (270, 271, 272, 305, 306, 315, 33432, *_DIRECTORIES)
_DAMAGE = (OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, struct.error, zlib.error)


def _open(path):
    """Decoded and upright picture of a file, its metadata and SHA-256.

    Returns
    -------
    picture : PIL.Image.Image
    bits : int
        Bits a channel, as stored.
    metadata : dict
    sha256 : str
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    content, sha256 = read_bytes(path)
    try:
        with warnings.catch_warnings(), _silent_decoder():
            warnings.simplefilter("ignore")  # what Pillow warns of is either refused below or of no concern to the user
            picture = Image.open(io.BytesIO(content))
            _check_kind(picture, path)
            bits = _bits(picture, content)
            picture.load()
            transparency = picture.info.get("transparency")
            upright = ImageOps.exif_transpose(picture)
            metadata = {
                "icc_profile": picture.info.get("icc_profile"),
                "dpi": _dpi(picture),
                "exif": _exif(picture, upright),
                "transparency": transparency if upright.mode in ("L", "RGB") else None,
            }
    except Image.DecompressionBombError as error:
        raise InputError(
            f"{path}: too large; pictures of up to {LARGEST // 10**6} megapixels are read; scale it down or crop it"
        ) from error
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: not a picture, or damaged at its start; PNG, JPEG and TIFF files are read") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged or cut short ({error}); get the file again") from error
    return upright, bits, {key: value for key, value in metadata.items() if value is not None}, sha256


def _check_kind(picture, path):
    """Refuse pictures whose name lies, that have several pages, or that are too large; nothing is decoded yet."""
    named = FORMATS.get(Path(path).suffix.lower())
    kind = "JPEG" if picture.format == "MPO" else picture.format
    if named and kind != named:
        raise InputError(f"{path}: named like a {named} file but its content is {kind}; rename it or convert it")
    if kind not in MODES:
        raise InputError(f"{path}: {kind} is not read; convert it to PNG, JPEG or TIFF")
    pages = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
    if pages > 1:
        raise InputError(f"{path}: holds {pages} pages; save the one to complete as a file of its own")
    if picture.width * picture.height > LARGEST:
        size = f"{picture.width}x{picture.height}"
        raise InputError(f"{path}: {size} pixels; up to {LARGEST // 10**6} megapixels are read; scale it down or crop it")


def _bits(picture, content):
    """Bits a channel as stored: Pillow reads some 16-bit files as 8 bits without saying so."""
    if picture.format == "PNG" and picture.mode not in ("1", "P"):
        return max(8, content[24])
    if picture.format == "TIFF" and picture.mode != "1":
        return max(8, *picture.tag_v2.get(258, (8,)))
    return 8


def _dpi(picture):
    """Resolution as two floats, or None if it is not noted or is nonsense that no format can hold."""
    dpi = picture.info.get("dpi")
    return tuple(float(d) for d in dpi) if dpi and all(0 < d < 65536 for d in dpi) else None


def _exif(picture, upright):
    """EXIF of an upright picture as bytes, or None; cameras and programs write broken ones, which is no reason to fail."""
    try:
        # The copy that stands upright has no directory of TIFF any more.
        exif = _descriptive(picture.getexif()) if picture.format == "TIFF" else upright.getexif()
        return exif.tobytes() if len(exif) else None
    except _DAMAGE:
        return None


@contextlib.contextmanager
def _silent_decoder():
    """Within the block nothing reaches standard error: libtiff prints there what Pillow then raises as an error as well."""
    try:
        kept = os.dup(2)
    except OSError:  # standard error is closed anyway
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _descriptive(exif):
    """What `exif` says of the content: in a TIFF file it is the directory that also says where and how the pixels lie."""
    from PIL import Image

    kept = Image.Exif()
    for tag in _DESCRIPTIVE:
        if tag in _DIRECTORIES and exif.get_ifd(tag):
            kept[tag] = {key: value for key, value in exif.get_ifd(tag).items() if key != _INTEROPERABILITY}
        elif tag not in _DIRECTORIES and tag in exif:
            kept[tag] = exif[tag]
    return kept


def read(path):
    """Read a picture; see `tdc_cli.media.read`. The orientation that a camera noted in EXIF is applied."""
    picture, bits, metadata, sha256 = _open(path)
    if bits != 8 or picture.mode not in ("L", "LA", "RGB", "RGBA"):
        advice = {"P": "RGB", "PA": "RGBA", "1": "grey (L)", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB"}.get(
            picture.mode, "8 bits a channel"
        )
        kind = f"mode {picture.mode}" + (f" with {bits} bits a channel" if bits != 8 else "")
        raise InputError(f"{path}: {kind} is not supported, only 8-bit L, LA, RGB and RGBA; convert it to {advice}")
    return Media(np.asarray(picture), picture.mode, str(path), sha256, metadata)


def read_mask(path):
    """Read a mask picture of any mode and depth.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    levels : (H, W) ndarray
        Grey levels as stored (palettes and colours turned into grey): bool, integer or float.
    alpha : (H, W) ndarray of uint8, or None

    Raises
    ------
    MaskError
        No such file, or not a readable picture.
    """
    if not Path(path).is_file():
        raise MaskError(f"mask {path}: no such file")
    try:
        picture = _open(path)[0]
    except InputError as error:
        raise MaskError(f"mask {error}") from error
    if "transparency" in picture.info or picture.mode in ("P", "PA"):
        picture = picture.convert("RGBA")
    if picture.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        picture = picture.convert("RGB")
    values = np.asarray(picture)
    if picture.mode not in ("LA", "La", "RGB", "RGBA", "RGBa", "RGBX"):
        return values, None
    alpha = values[..., -1] if picture.mode[-1] in "Aa" else None
    if picture.mode in ("LA", "La"):
        return values[..., 0], alpha
    # The brightness weights of ITU-R 601, as Pillow and most programs have them.
    return values[..., :3] @ np.array([0.299, 0.587, 0.114]), alpha


def check_writable(media, path):
    """Raise OutputError if the format of `path` cannot hold `media`."""
    kind = FORMATS[Path(path).suffix.lower()]
    if media.values.dtype != np.uint8:
        raise OutputError(f"{path}: {kind} holds 8-bit values only but the input has {media.values.dtype}; write to .npy")
    if media.mode not in MODES[kind]:
        raise OutputError(f"{path}: {kind} cannot hold mode {media.mode} (transparency); write to .png or .tif")
    if "transparency" in media.metadata and kind != "PNG":
        raise OutputError(f"{path}: {kind} cannot hold a colour that stands for transparency, which the input has; write to .png")


def write(media, path, *, replace=False):
    """Write a picture with its profile, EXIF and resolution; see `tdc_cli.media.write`."""
    write_bytes(path, encode(media, FORMATS[Path(path).suffix.lower()]), replace=replace)


def encode(media, kind):
    """Bytes of `media` as a file of the format `kind`."""
    from PIL import Image

    options = dict(media.metadata)
    if kind == "JPEG":
        options |= {"quality": JPEG_QUALITY, "subsampling": 0}
    if kind == "TIFF":
        exif = Image.Exif()
        exif.load(options.pop("exif", b""))
        exif = _descriptive(exif)
        # libtiff, which compresses, cannot write the directories of camera settings and place.
        options |= {"compression": "raw" if any(d in exif for d in _DIRECTORIES) else "tiff_lzw"}
        options |= {"exif": exif.tobytes()} if len(exif) else {}
    if kind != "PNG":
        options.pop("transparency", None)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(media.values)).save(buffer, kind, **options)
    return buffer.getvalue()
