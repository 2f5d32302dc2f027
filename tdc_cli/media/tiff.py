"""TIFF by tifffile: reading of what has more than 8 bits a channel or unusual channels, writing of everything."""

import contextlib
import io
import struct
import warnings

import numpy as np

from ..errors import InputError
from . import metadata, pillow
from .limits import check_single, check_size
from .pixels import Media

_COLOURS = {0: ("L", 1), 1: ("L", 1), 2: ("RGB", 3), 5: ("CMYK", 4)}  # photometric interpretation -> mode and channels
_WHITE_IS_ZERO, _CMYK = 0, 5
_PREMULTIPLIED, _STRAIGHT = 1, 2  # kinds of alpha
_STRIP_OFFSETS = 273
_BYTE, _UNDEFINED = 1, 7  # types of tags
_HEADER = 8  # bytes

# The codecs' own errors are RuntimeErrors, and of some damage tifffile says that it cannot be.
DAMAGE = (*metadata.DAMAGE, RuntimeError, MemoryError, AssertionError)


def suits(source):
    """Whether a TIFF file is for `decode` rather than for Pillow, which reads up to 8 bits and no further samples but straight alpha.

    Parameters
    ----------
    source : path-like or binary file
    """
    import tifffile

    try:
        with tifffile.TiffFile(source) as file:
            page = file.pages[0]
            return np.max(page.bitspersample) > 8 or not {int(e) for e in page.extrasamples} <= {_STRAIGHT}
    except DAMAGE:
        return False


@contextlib.contextmanager
def opened(source, path):
    """A TIFF file as tifffile has it, from a path or a binary file; what is raised within the block is told as damage to `path`."""
    import tifffile

    try:
        with warnings.catch_warnings(), tifffile.TiffFile(source) as file:
            warnings.simplefilter("ignore")  # of tags that are damaged: what matters of them is found out below
            yield file
    except InputError:
        raise
    except DAMAGE as error:
        raise metadata.damaged(path, error) from error


def check_chain(file):
    """Raise Damage where the last page of an open TIFF file tells of a further one that is not there."""
    form, last = file.tiff, file.pages[-1]
    file.filehandle.seek(last.offset)
    (tags,) = struct.unpack(form.tagnoformat, file.filehandle.read(form.tagnosize))
    file.filehandle.seek(last.offset + form.tagnosize + tags * form.tagsize)
    (following,) = struct.unpack(form.offsetformat, file.filehandle.read(form.offsetsize))
    if following:
        raise metadata.Damage(f"a page after page {len(file.pages) - 1} is not there")


def check_parts(page, size):
    """Raise Damage where strips or tiles of a page are not in a file of `size` bytes: tifffile would fill them with zeros."""
    parts = int(np.prod(page.keyframe.chunked))
    there = sum(offset + count <= size for offset, count in zip(page.dataoffsets, page.databytecounts))
    if there < parts:
        raise metadata.Damage(f"{there} of {parts} parts of page {page.index} are there")


def decode(content, path):
    """Media of the bytes of a TIFF file with one page, upright."""
    if not suits(io.BytesIO(content)):
        return pillow.decode(content, path)
    with opened(io.BytesIO(content), path) as file:
        check_single(len(file.pages), path)
        return decode_page(file, file.pages[0], path)


def decode_page(file, page, path):
    """Media of a page of an open TIFF file, upright."""
    check_size(page.imagewidth, page.imagelength, path)
    mode, alpha = _mode(page, path)
    check_parts(page, file.filehandle.size)
    values = page.asarray()
    if page.axes == "SYX":  # one plane after another
        values = np.moveaxis(values, 0, -1)
    if values.shape[:2] != (page.imagelength, page.imagewidth):
        raise metadata.Damage("its data do not make a picture of the size it tells")
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if page.photometric == _WHITE_IS_ZERO and values.dtype.kind == "u":
        values = np.iinfo(values.dtype).max - values
    tags = metadata.directory(file.filehandle, page.offset)
    turn = tags.get(metadata.ORIENTATION, 1)
    found = metadata.of_directory(tags)
    if alpha == _PREMULTIPLIED:
        found["premultiplied"] = True
    return Media(metadata.upright(values, turn), mode, str(path), "", found, "TIFF")


def _mode(page, path):
    """Mode of a page and kind of its alpha, or None; InputError for what has no mode."""
    extra = [int(e) for e in page.extrasamples]
    if page.axes not in ("YX", "YXS", "SYX"):
        raise InputError(f"{path}: a page of axes {page.axes}, not a picture; save it as a flat TIFF or a .npy array")
    if page.photometric in (0, 1) and extra and extra not in ([_PREMULTIPLIED], [_STRAIGHT]):
        return "array", None
    if page.photometric not in _COLOURS:
        raise InputError(f"{path}: colours of kind {page.photometric} are not supported; convert it to RGB")
    mode, channels = _COLOURS[page.photometric]
    if not extra and page.samplesperpixel == channels:
        return mode, None
    if extra in ([_PREMULTIPLIED], [_STRAIGHT]) and page.samplesperpixel == channels + 1 and mode != "CMYK":
        return f"{mode}A", extra[0]
    raise InputError(
        f"{path}: {page.samplesperpixel} channels, {mode} and others of unknown meaning; flatten it, or save it as a .npy array"
    )


def _options(media):
    """How `media` is written by tifffile, compressed without loss: values and a dict."""
    values = np.ascontiguousarray(media.values)
    channels = values.shape[2] if values.ndim == 3 else 1
    options = {"photometric": "minisblack", "planarconfig": "contig" if channels > 1 else None}
    if media.mode in ("RGB", "RGBA") or (media.mode == "array" and channels == 3):
        options["photometric"] = "rgb"
    elif media.mode == "CMYK":
        options["photometric"] = "separated"
    if media.has_alpha:
        options["extrasamples"] = ["assocalpha" if "premultiplied" in media.metadata else "unassalpha"]
    elif media.mode == "array" and channels not in (1, 3):
        options["extrasamples"] = ["unspecified"] * (channels - 1)
    if "dpi" in media.metadata:
        options |= {"resolution": media.metadata["dpi"], "resolutionunit": "INCH"}
    return values, options | {
        "compression": "zlib", "metadata": None, "software": False, "iccprofile": media.metadata.get("icc_profile"),
    }  # fmt: skip


def write_pages(frames, file, *, large):
    """Write `frames`, an iterable of Media, into an open binary file, one a page; without EXIF and XMP.

    Parameters
    ----------
    frames : iterable of Media
    file : binary file
    large : bool
        Whether the file may become larger than 4 GB.
    """
    import tifffile

    with tifffile.TiffWriter(file, bigtiff=large, byteorder="<") as writer:
        for media in frames:
            values, options = _options(media)
            writer.write(values, contiguous=False, **options)


def encode(media, form=None, quality=None):
    """Bytes of `media` as a TIFF file, compressed without loss, with its metadata."""
    import tifffile

    values, options = _options(media)
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, byteorder="<", **options)
    tags = metadata.descriptive_tags(media.metadata)
    if "xmp" in media.metadata:
        tags[metadata.XMP] = media.metadata["xmp"]
    return _with_tags(buffer.getvalue(), tags) if tags else buffer.getvalue()


def _with_tags(content, tags):
    """A TIFF file with further tags; tifffile cannot write directories of camera settings and place, Pillow can.

    The new directory stands in front of everything else, old directory included, which nothing points to any more.
    """
    from PIL import TiffImagePlugin

    made = TiffImagePlugin.ImageFileDirectory_v2(content[:_HEADER])
    file = io.BytesIO(content)
    file.seek(made.next)
    made.load(file)
    kept = dict(made)  # also makes `made` read its values, which it puts off
    for tag, kind in ((metadata.PROFILE, _UNDEFINED), (metadata.XMP, _BYTE)):
        made.tagtype[tag] = kind
    for tag, value in tags.items():
        made[tag] = value
    # `tobytes` adds its own end to the offsets.
    made[_STRIP_OFFSETS] = tuple(int(offset) - _HEADER for offset in np.atleast_1d(kept[_STRIP_OFFSETS]))
    return content[:4] + struct.pack("<L", _HEADER) + made.tobytes(_HEADER) + content[_HEADER:]
