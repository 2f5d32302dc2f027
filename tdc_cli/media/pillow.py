"""Pictures by Pillow: everything with up to 8 bits a channel and what stands beside the pixels, and the metadata of
16-bit PNG.

Those with nothing beside the pixels are read by `plain`.
"""

import contextlib
import io
import os
import warnings
from dataclasses import replace

import numpy as np

from ..errors import InputError
from . import inventory, metadata, plain, png16
from .exif import ORIENTATION
from .formats import FORMATS, JPEG_QUALITY
from .limits import check_single, check_size
from .pixels import Media

_NAMES = {"MPO": "JPEG", "WEBP": "WebP"}  # Pillow's name -> ours; a MPO file is a JPEG followed by further ones
_MODES = ("L", "LA", "RGB", "RGBA", "CMYK")
_BITS = 258  # tag of TIFF
_OLD_EXIF = "Raw profile type exif"  # a text of a PNG, in which some programs keep it
_LARGEST_CHUNK = 64 * 2**20  # bytes of a profile or a text of a PNG, unpacked


def decode(content, path, page=None):
    """Media of the bytes of a picture file, upright, palettes and single bits turned into colours and grey levels.

    Parameters
    ----------
    content : bytes
    path : path-like
    page : int or None
        Number of the page that is meant, of a TIFF; None: there must be no more than one.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings(), silent_decoder(), _own_limits():
            warnings.simplefilter("ignore")  # what Pillow warns of is either refused below or of no concern to the user
            picture = Image.open(io.BytesIO(content))
            name = _check_kind(picture, path, page, len(content))
            deep = name == "PNG" and content[24] == 16
            more, left = inventory.of_file(name, content)
            if not (deep or more or left) and plain.suits(picture, content):
                return Media(plain.decode(content), picture.mode, str(path), "", format=name)
            picture.load()
            with contextlib.suppress(*metadata.DAMAGE):
                picture.getexif()  # which Pillow reads no second time, so that a broken one is none from now on
            turn = picture.getexif().get(ORIENTATION, 1)
            exif, damage = metadata.kept_exif(_exif(picture), turn)
            transparency = picture.info.get("transparency")
            ImageOps.exif_transpose(picture, in_place=True)
            found = metadata.of_picture(picture) | more | ({"exif": exif} if exif else {})
            if deep:
                values, mode, notes = metadata.upright(png16.decode(content), turn), png16.mode(content), ()
            else:
                picture, notes = in_known_mode(picture, path)
                values, mode = np.asarray(picture), picture.mode
    except UnidentifiedImageError as error:
        raise InputError(
            f"{path}: not a picture, or damaged at its start; {', '.join(FORMATS)} files are read"
        ) from error
    except metadata.DAMAGE as error:
        raise metadata.damaged(path, error) from error
    if transparency is not None and mode in ("L", "RGB"):
        found["transparency"] = transparency
    return Media(values, mode, str(path), "", found, name, (*notes, *metadata.left_out(path, left + damage)))


def _exif(picture):
    """Block of EXIF of a picture that Pillow has opened; empty of a TIFF, whose directory says more than that."""
    if _OLD_EXIF in picture.info and "exif" not in picture.info:
        return picture.getexif().tobytes()
    return picture.info.get("exif", b"") if picture.format != "TIFF" else b""


def _check_kind(picture, path, page, stored):
    """Our name of the format; pictures of other formats, with several pages, or too large are refused before anything
    is decoded.
    """
    name = _NAMES.get(picture.format, picture.format)
    if name not in FORMATS:
        raise InputError(f"{path}: {name} is not read; convert it to PNG, JPEG or TIFF")
    if page is not None:
        if page:
            picture.info.clear()  # what the first page says would be taken for what this one says
        picture.seek(page)
    elif picture.format != "MPO":
        check_single(getattr(picture, "n_frames", 1), path)
    check_size(picture.width, picture.height, path, stored, len(picture.getbands()))
    if (
        name == "TIFF" and max(picture.tag_v2.get(_BITS, (1,))) > 8
    ):  # which Pillow would cut to 8; `tiff` could not read it
        raise InputError(f"{path}: damaged, or an unusual TIFF; save it anew, uncompressed")
    return name


def in_known_mode(picture, path):
    """`picture` in one of `_MODES`, and notes on what that changed."""
    see_through = "transparency" in picture.info
    if picture.mode in ("P", "PA"):
        target = "RGBA" if see_through or picture.mode == "PA" else "RGB"
        return picture.convert(target), (palette_note(path, target),)
    if picture.mode == "1":
        target = "LA" if see_through else "L"
        return picture.convert(target), (
            f"{path}: has 1 bit a pixel; it is completed and written as {target} with 8 bits",
        )
    if picture.mode not in _MODES:
        raise InputError(f"{path}: mode {picture.mode} is not supported, only {', '.join(_MODES)}; convert it to RGB")
    return picture, ()


def palette_note(path, mode):
    """Note on a picture with a palette, which is completed in a mode of its own."""
    written = f"it is completed and written as {mode}, the known pixels in exactly the palette's colours"
    return f"{path}: has a palette; {written}"


@contextlib.contextmanager
def _own_limits():
    """Within the block limits are ours, not Pillow's.

    Those of pixels are in `limits`; profiles and texts of a PNG may be as large as `_LARGEST_CHUNK`: Pillow takes
    those beyond 1 MB for damage.
    """
    from PIL import Image, PngImagePlugin

    before = Image.MAX_IMAGE_PIXELS, PngImagePlugin.MAX_TEXT_CHUNK
    Image.MAX_IMAGE_PIXELS, PngImagePlugin.MAX_TEXT_CHUNK = None, _LARGEST_CHUNK
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS, PngImagePlugin.MAX_TEXT_CHUNK = before


@contextlib.contextmanager
def silent_decoder():
    """Within the block nothing reaches standard error: libtiff prints there what Pillow then raises as an error as
    well.
    """
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


def encode(media, form, quality=None):
    """Bytes of `media` as a PNG, JPEG, WebP or BMP file, with the metadata that the format holds.

    Parameters
    ----------
    media : Media
        With 8 bits a channel; of a PNG also with 16.
    form : Format
    quality : int or None
        Of JPEG, 1 to 100; None is `formats.JPEG_QUALITY`.
    """
    if media.dtype == np.uint16:
        pixel = replace(media, values=(media.values[:1, :1] >> 8).astype(np.uint8))
        return png16.encode(media.values, encode(pixel, form))
    kept, options = form.kept(media), {}
    if form.name == "JPEG":
        options = {"quality": quality or JPEG_QUALITY, "subsampling": 0}
    elif form.name == "WebP":
        options = {"lossless": True, "exact": True}
    return _encode_with(np.ascontiguousarray(media.values), media.mode, form.name, kept, options)


def _encode_with(values, mode, name, kept, options):
    """Bytes of a file with the metadata `kept`; see `encode`."""
    from PIL import Image

    chunks = (*kept.pop("colour_chunks", {}).items(), *kept.pop("chunks", ()))
    resources, iptc = kept.pop("photoshop", b""), kept.pop("iptc", b"")
    if name == "PNG":
        options["pnginfo"] = metadata.png_info(kept)
        kept = {key: value for key, value in kept.items() if key not in ("text", "xmp")}
    elif name == "WebP" and "dpi" in kept:
        kept["exif"] = metadata.with_resolution(kept)
        del kept["dpi"]
    picture = Image.fromarray(values, mode="CMYK") if mode == "CMYK" else Image.fromarray(values)
    buffer = io.BytesIO()
    picture.save(buffer, name, **options, **kept)
    content = buffer.getvalue()
    if chunks:
        return inventory.with_chunks(content, chunks)
    return inventory.with_resources(content, resources, iptc) if resources or iptc else content
