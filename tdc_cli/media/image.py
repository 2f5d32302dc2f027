"""Pictures by Pillow: everything with up to 8 bits a channel, and the metadata of 16-bit PNG."""

import contextlib
import io
import os
import warnings

import numpy as np

from ..errors import InputError
from . import FORMATS, Media, metadata, png16

LARGEST = 100_000_000  # pixels; read before the file is decoded, so that a small file cannot fill the memory

_NAMES = {"MPO": "JPEG", "WEBP": "WebP"}  # Pillow's name -> ours; a MPO file is a JPEG followed by further ones
_MODES = ("L", "LA", "RGB", "RGBA", "CMYK")
_BITS = 258  # tag of TIFF


def decode(content, path):
    """Media of the bytes of a picture file, upright, palettes and single bits turned into colours and grey levels."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings(), silent_decoder():
            warnings.simplefilter("ignore")  # what Pillow warns of is either refused below or of no concern to the user
            picture = Image.open(io.BytesIO(content))
            name = _check_kind(picture, path)
            deep = name == "PNG" and content[24] == 16
            picture.load()
            turn = picture.getexif().get(metadata.ORIENTATION, 1)
            transparency = picture.info.get("transparency")
            ImageOps.exif_transpose(picture, in_place=True)
            found = metadata.of_picture(picture, content)
            if deep:
                values, mode, notes = metadata.upright(png16.decode(content), turn), png16.mode(content), ()
            else:
                picture, notes = plain(picture, path)
                values, mode = np.asarray(picture), picture.mode
    except Image.DecompressionBombError as error:
        raise InputError(
            f"{path}: too large; pictures of up to {LARGEST // 10**6} megapixels are read; scale it down or crop it"
        ) from error
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: not a picture, or damaged at its start; {', '.join(FORMATS)} files are read") from error
    except metadata.DAMAGE as error:
        raise metadata.damaged(path, error) from error
    if transparency is not None and mode in ("L", "RGB"):
        found["transparency"] = transparency
    return Media(values, mode, str(path), "", found, name, notes)


def _check_kind(picture, path):
    """Our name of the format; pictures of other formats, with several pages, or too large are refused before anything is decoded."""
    name = _NAMES.get(picture.format, picture.format)
    if name not in FORMATS:
        raise InputError(f"{path}: {name} is not read; convert it to PNG, JPEG or TIFF")
    check_single(1 if picture.format == "MPO" else getattr(picture, "n_frames", 1), path)
    check_size(picture.width, picture.height, path)
    if name == "TIFF" and max(picture.tag_v2.get(_BITS, (1,))) > 8:  # which Pillow would cut to 8; `tiff` could not read it
        raise InputError(f"{path}: damaged, or an unusual TIFF; save it anew, uncompressed")
    return name


def check_single(pages, path):
    """Raise InputError for a file with several pages or frames."""
    if pages > 1:
        raise InputError(
            f"{path}: holds {pages} pages or frames; save the one to complete as a file of its own, with ImageMagick: "
            f"magick '{path}[0]' page.png"
        )


def check_size(width, height, path):
    """Raise InputError for a picture with more than `LARGEST` pixels."""
    if width * height > LARGEST:
        raise InputError(
            f"{path}: {width}x{height} pixels; up to {LARGEST // 10**6} megapixels are read; scale it down or crop it"
        )


def plain(picture, path):
    """`picture` in one of `_MODES`, and notes on what that changed."""
    see_through = "transparency" in picture.info
    if picture.mode in ("P", "PA"):
        target = "RGBA" if see_through or picture.mode == "PA" else "RGB"
        return picture.convert(target), (
            f"{path}: has a palette; it is completed and written as {target}, the known pixels in exactly the palette's colours",
        )
    if picture.mode == "1":
        target = "LA" if see_through else "L"
        return picture.convert(target), (f"{path}: has 1 bit a pixel; it is completed and written as {target} with 8 bits",)
    if picture.mode not in _MODES:
        raise InputError(f"{path}: mode {picture.mode} is not supported, only {', '.join(_MODES)}; convert it to RGB")
    return picture, ()


@contextlib.contextmanager
def silent_decoder():
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


def encode(media, name, quality):
    """Bytes of 8-bit `media` as a PNG, JPEG, WebP or BMP file, with the metadata that the format holds.

    Parameters
    ----------
    media : Media
    name : str
        Of a format in `FORMATS`.
    quality : int
        Of JPEG.
    """
    from PIL import Image

    options = FORMATS[name].kept(media)
    if name == "PNG":
        options["pnginfo"] = metadata.png_info(options)
        options = {key: value for key, value in options.items() if key not in ("text", "xmp", "colour_chunks")}
    elif name == "JPEG":
        options |= {"quality": quality, "subsampling": 0}
    elif name == "WebP":
        if "dpi" in options:
            options["exif"] = metadata.with_resolution(options.get("exif", b""), options.pop("dpi"))
        options |= {"lossless": True, "exact": True}
    values = np.ascontiguousarray(media.values)
    picture = Image.fromarray(values, mode="CMYK") if media.mode == "CMYK" else Image.fromarray(values)
    buffer = io.BytesIO()
    picture.save(buffer, name, **options)
    return buffer.getvalue()
