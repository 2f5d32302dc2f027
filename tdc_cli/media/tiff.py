"""TIFF by tifffile: reading of what has more than 8 bits a channel or unusual channels, writing of everything."""

import contextlib
import io
import struct
import warnings
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from . import exif, formats, inventory, metadata, pillow, tiff_tags
from .files import check_file
from .limits import check_single, check_size
from .pages import Pages
from .pixels import Media

_COLOURS = {0: ("L", 1), 1: ("L", 1), 2: ("RGB", 3), 5: ("CMYK", 4)}  # photometric interpretation -> mode and channels
_WHITE_IS_ZERO, _RGB = 0, 2
_PREMULTIPLIED, _STRAIGHT = 1, 2  # kinds of alpha
FURTHER = "further pages"
COPIES = "reduced copies or masks on further pages"
_DESCRIPTION = 270
_REDUCED, _MASK = 1, 4  # bits of the kind of a page that is no picture of its own
# Side of tiles where the file that was read had none, bytes of values beyond which a file is a BigTIFF, and of the
# largest strips that are kept.
TILE, LARGEST_TIFF, LARGEST_STRIP = 256, 2**32 - 2**25, 2**26
# Values of a float that stand for what is missing are NaN from here on: sums with them would not be finite.
HUGE = 1e290
LARGE = 3_000_000_000  # bytes; above that the positions in a file may need more than 32 bits

# The codecs' own errors are RuntimeErrors, and of some damage tifffile says that it cannot be.
DAMAGE = (*metadata.DAMAGE, RuntimeError, MemoryError, AssertionError)


def suits(page):
    """Whether a page is for `decode_page` rather than for Pillow, which reads up to 8 bits without sign, with straight
    alpha at most, and no big-endian BigTIFF.
    """
    signed = page.dtype is not None and page.dtype.kind == "i"
    return (
        signed
        or (page.parent.is_bigtiff and page.parent.byteorder == ">")
        or np.max(page.bitspersample) > 8
        or not {int(e) for e in page.extrasamples} <= {_STRAIGHT}
    )


@contextlib.contextmanager
def opened(source, path):
    """A TIFF file as tifffile has it, from a path or a binary file; what is raised within the block is told as damage
    to `path`.
    """
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
    """Raise Damage where strips or tiles of a page are not in a file of `size` bytes: tifffile would fill them with
    zeros.
    """
    parts = int(np.prod(page.keyframe.chunked))
    there = sum(offset + count <= size for offset, count in zip(page.dataoffsets, page.databytecounts))
    if there < parts:
        raise metadata.Damage(f"{there} of {parts} parts of page {page.index} are there")


def main_pages(file):
    """Pages of an open TIFF file without those that are thumbnails, reduced copies or masks, a list, and the number of
    these.
    """
    pages = list(file.pages)
    main = [page for page in pages if not page.subfiletype & (_REDUCED | _MASK)] or pages[:1]
    return main, len(pages) - len(main)


def decode(content, path, chosen=None):
    """Media of a page of the bytes of a TIFF file, upright.

    Parameters
    ----------
    content : bytes
    path : path-like
    chosen : pages.Pages or None
        Which page is meant; its infrared scan, where it is read too, is the metadata ``infrared``, an (H, W) ndarray.
        None: only one page may be a picture of its own.
    """
    if not _is_read_by_tifffile(content):
        return pillow.decode(content, path)
    with opened(io.BytesIO(content), path) as file:
        pages, copies = main_pages(file)
        if chosen is None:
            check_single(len(pages), path, pages[0].index)
        chosen = chosen or Pages(pages[0].index)
        page, scan = chosen.chosen(pages, path)
        made = decode_page(file, page, path) if suits(page) else pillow.decode(content, path, page.index)
        more, left = beside(page)
        if noted := metadata.exif_of_page(page):
            more["exif"] = noted
        left += [COPIES] * bool(copies) + [FURTHER] * (not chosen.all and len(pages) > 1 + (scan is not None))
        if scan is not None:
            more["infrared"] = decode_page(file, scan, path).values
            left.append("infrared scan, which only tells where dust is")
    found = made.metadata | more
    return _with_nodata(replace(made, metadata=found, notes=(*made.notes, *metadata.left_out(path, left))))


def beside(page):
    """Metadata of a page of an open TIFF file that only TIFF has, with those `tiff_tags.SHARED`, and words for what is
    left out.
    """
    tags, left = tiff_tags.read(page, metadata.DESCRIPTIVE)
    found = {"layout": tiff_tags.layout(page)}
    found |= {key: tags.pop(code).content for code, key in tiff_tags.SHARED.items() if code in tags}
    return found | ({"tags": tags} if tags else {}), left


def _is_read_by_tifffile(content):
    """Whether tifffile makes out the pages of a file at all; what is damaged beyond that is told by Pillow."""
    import tifffile

    try:
        with tifffile.TiffFile(io.BytesIO(content)) as file:
            return bool(file.pages[0].bitspersample)
    except DAMAGE:
        return False


def _with_nodata(media):
    """`media` with the number that its tags declare to stand for what is missing."""
    numbers = tiff_tags.nodata(media.metadata.get("tags", {}), media.dtype)
    absent = holding(media.values, numbers)
    if not absent.any():
        return media
    made = replace(media, nodata=numbers, notes=(*media.notes, *nodata_notes(media.path, numbers)))
    if not abs(numbers[0]) < HUGE:
        return replace(made, values=np.where(absent, media.dtype.type(np.nan), media.values), nodata=())
    return made


def holding(values, numbers):
    """Where `values` are one of these numbers, a bool ndarray; of floats the nearest value of their type is meant."""
    with np.errstate(over="ignore"):
        return np.isin(values, np.array(numbers, dtype=values.dtype))


def nodata_notes(path, numbers):
    """Notes on the numbers that a file declares to stand for what is missing."""
    return tuple(f"{path}: its nodata value {number:g} counts as missing" for number in numbers)


@dataclass(frozen=True)
class Stack:
    """What a TIFF file of several pages says beside their pixels, so that it can be said again of completed ones.

    Attributes
    ----------
    pages : tuple of dict
        Metadata of each page, in the order of the file; see `beside`.
    words : tuple of str
        What other formats lose with it.
    """

    pages: tuple
    words: tuple


def stack(file, pages, copies):
    """`Stack` of these pages of an open TIFF file, and words for what is left out, two lists.

    Where the file has further pages, a description that counts them all would be false: then it is left out.
    """
    kinds = (("ImageJ description", file.is_imagej), ("OME description", file.is_ome))
    names = [words for words, there in kinds if there]
    found, left = [], [COPIES] * bool(copies)
    for page in (page.aspage() for page in pages):  # not as a frame that has no tags
        more, gone = beside(page)
        left += gone
        if any(code in page.tags for code in exif.DIRECTORIES):
            left.append("EXIF of single pages")
        if copies and names:
            more["tags"] = {code: tag for code, tag in more.get("tags", {}).items() if code != _DESCRIPTION}
        found.append(more)
    left += names if copies else []
    words = [tag.words for more in found for tag in more.get("tags", {}).values() if tag.words]
    words += [formats.METADATA[key] for more in found for key in tiff_tags.SHARED.values() if key in more]
    return Stack(tuple(found), tuple(dict.fromkeys((*([] if copies else names), *words)))), list(dict.fromkeys(left))


def decode_page(file, page, path):
    """Media of a page of an open TIFF file, upright."""
    check_size(
        page.imagewidth, page.imagelength, path, file.filehandle.size, page.samplesperpixel * page.dtype.itemsize
    )
    mode, alpha = mode_of(page, path)
    check_parts(page, file.filehandle.size)
    values = page.asarray()
    if page.axes == "SYX":  # one plane after another
        values = np.moveaxis(values, 0, -1)
    if values.shape[:2] != (page.imagelength, page.imagewidth):
        raise metadata.Damage("its data do not make a picture of the size it tells")
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if page.photometric == _WHITE_IS_ZERO and values.dtype.kind == "u":
        values = np.iinfo(values.dtype).max - values
    found = metadata.of_directory(page)
    if alpha == _PREMULTIPLIED:
        found["premultiplied"] = True
    turn = page.tags.valueof(exif.ORIENTATION, 1)
    return Media(metadata.upright(values, turn), mode, str(path), "", found, "TIFF")


def mode_of(page, path):
    """Mode of a page and kind of its alpha, or None; InputError for what has no mode."""
    extra = [int(e) for e in page.extrasamples]
    if page.axes not in ("YX", "YXS", "SYX"):
        raise InputError(f"{path}: a page of axes {page.axes}, not a picture; save it as a flat TIFF or a .npy array")
    if page.photometric in (0, 1, 2) and extra and extra not in ([_PREMULTIPLIED], [_STRAIGHT]):
        return "array", None
    if page.photometric not in _COLOURS:
        raise InputError(f"{path}: colours of kind {page.photometric} are not supported; convert it to RGB")
    mode, channels = _COLOURS[page.photometric]
    if not extra and page.samplesperpixel == channels:
        return mode, None
    if extra in ([_PREMULTIPLIED], [_STRAIGHT]) and page.samplesperpixel == channels + 1 and mode != "CMYK":
        return f"{mode}A", extra[0]
    raise InputError(
        f"{path}: {page.samplesperpixel} channels, {mode} and others of unknown meaning; flatten it, or save it as a "
        ".npy array"
    )


def _options(media):
    """How `media` is written by tifffile, compressed without loss: a dict."""
    layout = media.metadata.get("layout")
    channels = media.values.shape[2] if media.values.ndim == 3 else 1
    options = {"photometric": "minisblack", "planarconfig": "contig" if channels > 1 else None}
    if media.mode in ("RGB", "RGBA") or (media.mode == "array" and channels == 3):
        options["photometric"] = "rgb"
    elif media.mode == "CMYK":
        options["photometric"] = "separated"
    if media.has_alpha:
        options["extrasamples"] = ["assocalpha" if "premultiplied" in media.metadata else "unassalpha"]
    elif media.mode == "array" and channels not in (1, 3):
        options["extrasamples"] = ["unspecified"] * (channels - 1)
    if media.mode == "array" and layout and layout.extra:
        options |= {"photometric": "rgb" if layout.photometric == _RGB else "minisblack", "extrasamples": layout.extra}
    if layout and layout.planar and channels > 1:
        options["planarconfig"] = "separate"
    if layout:
        options |= {"tile": layout.tile} if layout.tile else {"rowsperstrip": layout.rows}
    if layout and layout.scale:
        options |= {"resolution": layout.scale, "resolutionunit": "NONE"}
    if "dpi" in media.metadata:
        options |= {"resolution": media.metadata["dpi"], "resolutionunit": "INCH"}
    return options | {
        "compression": "zlib", "metadata": None, "software": False, "iccprofile": media.metadata.get("icc_profile"),
    }  # fmt: skip


def _values(media, options):
    """The values of `media` in the order in which they are written."""
    return np.ascontiguousarray(
        np.moveaxis(media.values, 2, 0) if options["planarconfig"] == "separate" else media.values
    )


def page_numbers(path):
    """Numbers of the pages of a TIFF file that are pictures of their own, and words for what is left out of a file of
    them, two lists.

    Raises
    ------
    InputError
        No such file, or none that is made out.
    """
    check_file(path)
    with opened(path, path) as file:
        check_chain(file)
        pages, copies = main_pages(file)
        return [page.index for page in pages], stack(file, pages, copies)[1]


def encode_pages(pages, path):
    """Bytes of a TIFF file of completed `pages`, a list of Media, with what the file that they come from says beside
    their pixels.
    """
    with opened(path, path) as file:
        kept, _ = stack(file, *main_pages(file))
    buffer = io.BytesIO()
    write_pages(pages, buffer, large=sum(page.values.nbytes for page in pages) > LARGE, stack=kept)
    return buffer.getvalue()


def write_pages(frames, file, *, large, stack=None):
    """Write `frames`, an iterable of Media, into an open binary file, one a page; without camera settings and place.

    Parameters
    ----------
    frames : iterable of Media
    file : binary file
    large : bool
        Whether the file may become larger than 4 GB.
    stack : Stack or None
        What the file says beside the pixels, where it comes from a TIFF file of as many pages.
    """
    import tifffile

    order = stack.pages[0]["layout"].byteorder if stack else "<"
    with tifffile.TiffWriter(file, bigtiff=large, byteorder=order) as writer:
        for number, media in enumerate(frames):
            made = replace(media, metadata=media.metadata | stack.pages[number]) if stack else media
            options = _options(made)
            writer.write(
                _values(made, options),
                contiguous=False,
                extratags=_extra(_tags(made, order) if stack else {}, order),
                **options,
            )


def _tags(media, order):
    """Tags of `media` for its directory, code to `tiff_tags.Tag`, without those that are directories of their own."""
    noted = exif.of_block(media.metadata.get("exif", b""), order)
    tags = {code: tiff_tags.Tag(tag.kind, tag.content, "") for code, tag in noted.items() if tiff_tags.is_kept(code)}
    if "xmp" in media.metadata:
        tags[metadata.XMP] = tiff_tags.block(media.metadata["xmp"])
    shared = {key: media.metadata[key] for key in tiff_tags.SHARED.values() if key in media.metadata}
    if "iptc" not in shared and (iptc := inventory.iptc_of(shared.get("photoshop", b""))):
        shared["iptc"] = iptc
    tags |= {code: tiff_tags.block(shared[key]) for code, key in tiff_tags.SHARED.items() if key in shared}
    return tags | media.metadata.get("tags", {})


def _extra(tags, byteorder):
    """Tags as tifffile takes them."""
    return [tag.written(code, byteorder) for code, tag in sorted(tags.items())]


def encode(media, form=None, quality=None):
    """Bytes of `media` as a TIFF file, compressed without loss, with its metadata; where it comes from a TIFF file, in
    the same layout.
    """
    import tifffile

    options, (order, directories, tags) = _options(media), _described(media)
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, _values(media, options), byteorder=order, extratags=tags, **options)
    return tiff_tags.with_directories(buffer.getvalue(), directories) if directories else buffer.getvalue()


def _described(media):
    """Byte order, further directories and tags of `media`, the last as tifffile takes them."""
    order = media.metadata["layout"].byteorder if "layout" in media.metadata else "<"
    noted = exif.of_block(media.metadata.get("exif", b""), order)
    directories = {code: noted[code] for code in exif.DIRECTORIES if noted.get(code)}
    return order, directories, _extra(_tags(media, order), order)


def encode_stack(values, stack, large):
    """Bytes of a TIFF file of several pages, compressed without loss, in the layout that they came in.

    Parameters
    ----------
    values : (pages, ...) ndarray
        Each page as tifffile has it: planes first, or channels last.
    stack : Stack
    large : bool
        Whether the file may become larger than 4 GB.
    """
    import tifffile

    buffer = io.BytesIO()
    order = stack.pages[0]["layout"].byteorder
    with tifffile.TiffWriter(buffer, bigtiff=large, byteorder=order) as writer:
        for plane, beside in zip(values, stack.pages, strict=True):
            layout = beside["layout"]
            tags = beside.get("tags", {}) | {
                code: tiff_tags.block(beside[key]) for code, key in tiff_tags.SHARED.items() if key in beside
            }
            options = {"tile": layout.tile} if layout.tile else {"rowsperstrip": layout.rows}
            if layout.scale:
                options |= {"resolution": layout.scale, "resolutionunit": "NONE"}
            writer.write(
                np.ascontiguousarray(plane),
                contiguous=False,
                photometric=layout.photometric,
                extrasamples=layout.extra or None,
                planarconfig=("separate" if layout.planar else "contig") if plane.ndim > 2 else None,
                compression="zlib",
                metadata=None,
                software=False,
                extratags=_extra(tags, order),
                **options,
            )
    return buffer.getvalue()


def write_rows(bands, media, file):
    """Write the values of `media` into an open binary file from `bands` of its rows; without further directories.

    Strips and tiles are those of the file that was read, as `encode` has them; tiles where it had none or strips too
    large to be held. What is larger than a TIFF file holds becomes a BigTIFF.
    """
    import tifffile

    options, (order, _, tags) = _options(media), _described(media)
    values, dtype = media.values, media.dtype.newbyteorder(order)
    strip = options.get("rowsperstrip")
    if strip and strip * (values.nbytes // values.shape[0]) <= LARGEST_STRIP:
        pieces = _strips(bands, strip, dtype)
    else:
        options.pop("rowsperstrip", None)
        pieces = _tiles(bands, values.shape, options.setdefault("tile", (TILE, TILE)), dtype)
    with tifffile.TiffWriter(file, bigtiff=values.nbytes > LARGEST_TIFF, byteorder=order) as writer:
        writer.write(pieces, shape=values.shape, dtype=values.dtype, extratags=tags, **options)


def _strips(bands, rows, dtype):
    """Strips of so many rows, compressed, from bands of rows; tifffile takes no other ones from an iterator."""
    from tifffile import COMPRESSION, TIFF

    compressed = TIFF.COMPRESSORS[COMPRESSION.ADOBE_DEFLATE]
    for strip in _cut(bands, rows):
        yield compressed(np.ascontiguousarray(strip, dtype))


def _tiles(bands, shape, tile, dtype):
    """Tiles of a picture of this shape, row by row of them, from bands of its rows; filled up with zeros at the right
    and the bottom.
    """
    length, across = tile
    for rows in _cut(bands, length):
        for column in range(0, shape[1], across):
            part = rows[:, column : column + across]
            piece = np.zeros((length, across, *shape[2:]), dtype)
            piece[: part.shape[0], : part.shape[1]] = part
            yield piece


def _cut(bands, length):
    """Bands of `length` rows, the last one of what is left, from bands of any number of rows."""
    held = None
    for band in bands:
        held = band if held is None or not len(held) else np.concatenate([held, band])
        while len(held) >= length:
            yield held[:length]
            held = held[length:]
    if held is not None and len(held):
        yield held
