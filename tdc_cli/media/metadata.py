"""What a file holds beside its pixels: orientation, colour profile, resolution, EXIF, XMP and texts.

TIFF files keep these in the directory that also says where the pixels lie, the others in blocks of their own. Both
become the metadata of a `Media`, with the orientation already applied.
"""

import re
import struct
import zlib

import numpy as np

from ..errors import InputError
from . import exif as directories

# What Pillow raises on damaged files, beside its own errors; nothing else can be told from them.
DAMAGE = (OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, struct.error, zlib.error)
PROFILE, XMP = 34675, 700  # tags of TIFF

# TIFF tags that say what the picture shows, not how it is stored: description, maker, model, software, date, artist,
# copyright.
DESCRIPTIVE = (270, 271, 272, 305, 306, 315, 33432, *directories.DIRECTORIES)
# Namespaces of XMP and names in them that completing makes false: thumbnails, and other pictures that stood in the same
# file.
_STALE_XMP = {
    b"http://ns.adobe.com/xap/1.0/": b"Thumbnails",
    b"http://ns.adobe.com/hdr-gain-map/1.0/": rb"\w+",
    b"http://ns.apple.com/HDRGainMap/1.0/": rb"\w+",
    b"http://ns.google.com/photos/1.0/container/": rb"\w+",
    b"http://ns.google.com/photos/1.0/camera/": rb"(?:MotionPhoto|MicroVideo)\w*",
    b"http://ns.adobe.com/xmp/note/": b"HasExtendedXMP",
}
_XMP_KEY = "XML:com.adobe.xmp"
# What is kept under names of its own, not among the texts of a PNG.
_NO_TEXT = (_XMP_KEY, "Raw profile type exif", "Raw profile type icc", "Raw profile type xmp")


class Damage(ValueError):
    """Damage to a file that this program has found itself: its text, unlike those of libraries, is for the user."""


def damaged(path, error):
    """InputError for what came up while the bytes of `path` were decoded."""
    if (
        isinstance(error, OSError) and error.errno
    ):  # of the system, such as too many open files; decoders raise theirs without a number
        return InputError(f"{path}: cannot be read ({error.strerror})")
    found = f" ({error})" if isinstance(error, Damage) else ""
    return InputError(f"{path}: damaged or cut short{found}; get the file again")


def upright(values, orientation):
    """Turn a picture as EXIF's orientation, 1 to 8, says.

    Parameters
    ----------
    values : (H, W) or (H, W, C) ndarray
    orientation : int
        Other numbers leave the picture as it is.

    Returns
    -------
    ndarray, contiguous; (W, H) or (W, H, C) where the orientation is 5 to 8
    """
    if orientation in (5, 6, 7, 8):
        values = values.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        values = values[::-1]
    if orientation in (2, 3, 6, 7):
        values = values[:, ::-1]
    return np.ascontiguousarray(values)


def of_picture(picture):
    """Metadata of a picture that Pillow has loaded and turned upright.

    Returns
    -------
    dict
        As in `Media`, without transparency and EXIF.
    """
    # Of a JPEG that tells no resolution Pillow says 72.
    told = picture.format not in ("JPEG", "MPO") or picture.info.get("jfif_unit")
    text = {key: value for key, value in getattr(picture, "text", {}).items() if key not in _NO_TEXT}
    return _known(
        icc_profile=picture.info.get("icc_profile"),
        dpi=_dpi(picture.info.get("dpi") if told else None) or _resolution(picture.getexif()),
        xmp=_plain_xmp(picture.info.get("xmp")),
        text=text,
        comment=picture.info.get("comment") if picture.format == "JPEG" else None,
    )


def of_directory(page):
    """Metadata of a page that tifffile has opened."""
    tags = {code: page.tags.valueof(code) for code in (PROFILE, XMP, *directories.RESOLUTION) if code in page.tags}
    return _known(
        icc_profile=tags.get(PROFILE),
        dpi=_resolution(tags),
        exif=exif_of_page(page),
        xmp=_plain_xmp(tags.get(XMP)),
    )


def exif_of_page(page):
    """Block of EXIF of what the directory of a page of a TIFF file says of the content; empty where it says nothing."""
    file = page.parent
    found = directories.read(file.filehandle, page.offset, file.byteorder, file.is_bigtiff)
    content = directories.block({code: found[code] for code in DESCRIPTIVE if found.get(code)}, file.byteorder)
    return directories.mended(content, page.tags.valueof(directories.ORIENTATION, 1)) if content else b""


def of_blocks(exif, xmp, turn=1):
    """Metadata of a file that holds EXIF, without its resolution elsewhere, and XMP as blocks of bytes, either of which
    may be empty, and words for what is left out, a list.
    """
    mended, left = kept_exif(exif, turn)
    return _known(dpi=_resolution(_noted(exif)), exif=mended, xmp=_plain_xmp(xmp)), left


def kept_exif(content, turn):
    """A block of EXIF without what is no longer true, empty where nothing is left, and words for what is left out, a
    list: cameras and programs write broken ones, which is no reason to fail.
    """
    try:
        return directories.mended(content, turn) if content else b"", []
    except DAMAGE:
        return b"", ["EXIF, which is damaged"]


def orientation(exif):
    """Orientation that EXIF, a block of bytes that may be empty, notes; 1 where it notes none."""
    turn = _noted(exif).get(directories.ORIENTATION, 1)
    return turn if turn in range(1, 9) else 1


def _noted(exif):
    """Orientation and resolution that a block of EXIF notes, code to number or pair; empty where it is damaged."""
    try:
        found = directories.of_block(exif, "<")
    except DAMAGE:
        return {}
    codes = (directories.ORIENTATION, *directories.RESOLUTION)
    return {code: found[code].number() for code in codes if isinstance(found.get(code), directories.Value)}


def left_out(path, items):
    """Notes on what a file holds and is not read or kept, a tuple of at most one."""
    return (f"{path}: is read without its {', '.join(items)}",) if items else ()


def _known(**metadata):
    return {key: value for key, value in metadata.items() if value}


def _dpi(dpi):
    """Resolution as two floats, or None if it is not noted or is nonsense that no format can hold."""
    return tuple(float(d) for d in dpi) if dpi and all(0 < d < 65536 for d in dpi) else None


def _resolution(exif):
    """Resolution that EXIF or a directory of TIFF notes, in dots an inch, or None."""
    try:
        *sides, unit = directories.RESOLUTION
        per_inch = {2: 1.0, 3: 2.54}.get(exif.get(unit, 2))
        given = [exif[tag] for tag in sides]  # pairs, or fractions of Pillow
        return per_inch and _dpi([(n[0] / n[1] if isinstance(n, tuple) else float(n)) * per_inch for n in given])
    except DAMAGE:
        return None


def _plain_xmp(xmp):
    """XMP as bytes without an orientation, which has been applied, and without what is no longer true; or None."""
    if isinstance(xmp, str):
        xmp = xmp.encode()
    if not isinstance(xmp, bytes):
        return None
    return _without_stale(re.sub(rb'(tiff:Orientation(?:="|>))[2-8]', rb"\g<1>1", xmp))


def _without_stale(xmp):
    """XMP without thumbnails of the picture before, and without what announces further parts of the old file."""
    for space, names in _STALE_XMP.items():
        for prefix in set(re.findall(rb"xmlns:([\w.-]+)\s*=\s*[\"']" + re.escape(space) + rb"[\"']", xmp)):
            name = re.escape(prefix) + rb":(?:" + names + rb")"
            xmp = re.sub(rb"\s*<(" + name + rb")\b[^>]*?(?:/>|>.*?</\1\s*>)", b"", xmp, flags=re.DOTALL)
            xmp = re.sub(rb"\s+" + name + rb"\s*=\s*(?:\"[^\"]*\"|'[^']*')", b"", xmp)
    return xmp


def with_resolution(metadata):
    """The EXIF of `metadata`, which notes its resolution too, for formats that have no other place for it."""
    exif, dpi = metadata.get("exif", b""), metadata.get("dpi")
    return exif if dpi in (None, _resolution(_noted(exif))) else directories.with_resolution(exif, dpi)


def png_chunks(content):
    """Iterate over the chunks of a PNG file: name, and all of its bytes."""
    start = 8
    while start < len(content):
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        yield content[start + 4 : start + 8], content[start:end]
        start = end


def png_info(metadata):
    """The texts and the XMP of `metadata` as Pillow writes them into a PNG."""
    from PIL import PngImagePlugin

    made = PngImagePlugin.PngInfo()
    for key, value in metadata.get("text", {}).items():
        if isinstance(value, PngImagePlugin.iTXt):
            made.add_itxt(key, value, value.lang or "", value.tkey or "")
        else:
            made.add_text(key, value)
    if "xmp" in metadata:
        made.add_itxt(_XMP_KEY, metadata["xmp"].decode("utf-8", "replace"))
    return made
