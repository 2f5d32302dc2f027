"""Pictures that stay in their file and are read by rows and columns, as far as the format can: TIFF, and NumPy's
arrays.

`open_stored` gives a `Media` whose values are `Stored`: what code cuts out of them is read then. `write_rows` writes a
picture of any size some rows at a time.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from . import array, exif, metadata, tiff, tiff_tags
from .files import digest, write_file
from .formats import EXTENSIONS, FORMATS
from .limits import check_packed, check_type
from .pixels import Media

# Smaller pictures, in bytes, are held.
LEAST = 2**27
# Rows that are read at a time where all of them are gone through.
ROWS = 512
_PLAIN = (1, 2, 5)  # photometric interpretations: grey, RGB, inks


class Stored:
    """Values of a picture in a file: an array that is read where it is cut.

    Parameters
    ----------
    shape : tuple of int
        (H, W) or (H, W, C).
    dtype : numpy.dtype
    read : callable
        ``read(rows, columns)`` reads a part, given by two slices without steps, as a new ndarray.
    """

    def __init__(self, shape, dtype, read):
        self.shape, self.dtype, self._read = tuple(shape), np.dtype(dtype), read

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)

    def __getitem__(self, place):
        """A part, as a new ndarray; `place` is none, one or two slices without steps."""
        given = [*(place if isinstance(place, tuple) else (place,)), slice(None), slice(None)]
        return self._read(*(slice(*s.indices(n)[:2]) for s, n in zip(given[:2], self.shape)))

    def __array__(self, dtype=None, copy=None):
        """All of it."""
        return np.asarray(self[()], dtype)


def row_slices(shape):
    """Slices of `ROWS` rows that go through a picture of this shape."""
    return [slice(row, min(row + ROWS, shape[0])) for row in range(0, shape[0], ROWS)]


def open_stored(path):
    """`Media` of a large picture whose values stay in its file; None where it is small, or of a kind that is to be read
    whole.

    Raises
    ------
    InputError
        Damage to the file, values of a type that pictures do not have.
    """
    form = EXTENSIONS.get(Path(path).suffix.lower())
    if not Path(path).is_file() or form is None or form.codec not in ("tiff", "array"):
        return None
    with open(path, "rb") as file:
        if not file.read(16).startswith(form.signatures):
            return None
    made = _of_array(path) if form.codec == "array" else _of_tiff(path)
    if made is None:
        return None
    check_type(made.dtype, path)
    return replace(made, path=str(path), sha256=digest(path))


def _of_array(path):
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (*metadata.DAMAGE, ValueError):  # told by what reads it whole
        return None
    if values.nbytes < LEAST or values.ndim not in (2, 3) or not values.flags.c_contiguous:
        return None

    def read(rows, columns):
        part = np.load(path, mmap_mode="r", allow_pickle=False)[rows, columns]
        return np.array(part, dtype=part.dtype.newbyteorder("="))

    stored = Stored(values.shape, values.dtype.newbyteorder("="), read)
    return Media(stored, "array", str(path), "", format="NPY")  # type: ignore[arg-type]


def _of_tiff(path):
    with tiff.opened(path, path) as file:
        pages, copies = tiff.main_pages(file)
        page = pages[0]
        if len(pages) > 1 or not _is_plain(page):
            return None
        check_packed(page.imagewidth, page.imagelength, path, file.filehandle.size, page.samplesperpixel)
        found = metadata.of_directory(page)
        mode, alpha = tiff.mode_of(page, path)
        if (
            alpha is not None
            or page.tags.valueof(exif.ORIENTATION, 1) != 1
            or any(code in page.tags for code in exif.DIRECTORIES)
        ):
            return None
        tiff.check_parts(page, file.filehandle.size)
        more, left = tiff.beside(page)
        shape, dtype = page.shape, page.dtype.newbyteorder("=")
    found |= more
    left += [tiff.COPIES] * bool(copies)
    numbers = tiff_tags.nodata(found.get("tags", {}), dtype)
    as_nan = bool(numbers) and not abs(numbers[0]) < tiff.HUGE

    def read(rows, columns):
        part = _read_tiff(path, rows, columns)
        return np.where(tiff.holding(part, numbers), part.dtype.type(np.nan), part) if as_nan else part

    stored = Stored(shape, dtype, read)
    notes = metadata.left_out(path, left)
    held = (
        any(tiff.holding(_read_tiff(path, rows, slice(0, shape[1])), numbers).any() for rows in row_slices(shape))
        if numbers
        else False
    )
    if held:
        notes = (*notes, *tiff.nodata_notes(path, numbers))
    kept = numbers if held and not as_nan else ()
    return Media(stored, mode, str(path), "", found, "TIFF", tuple(notes), kept)  # type: ignore[arg-type]


def _is_plain(page):
    """Whether a page is large and its values are the picture's: no palette or single bits, black is 0, channels
    together.
    """
    if (
        page.dtype is None
        or page.axes not in ("YX", "YXS")
        or page.photometric not in _PLAIN
        or page.colormap is not None
    ):
        return False
    size = page.imagelength * page.imagewidth * page.samplesperpixel * page.dtype.itemsize
    return size >= LEAST and np.min(page.bitspersample) == np.max(page.bitspersample) == 8 * page.dtype.itemsize


def _read_tiff(path, rows, columns):
    """Rows and columns of the first page of a TIFF file that is a picture, from the strips or tiles that hold them."""
    with tiff.opened(path, path) as file:
        page = tiff.main_pages(file)[0][0]
        width = page.shape[1]
        length, across = (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, width)
        per_row = -(-width // across)
        made = np.zeros((rows.stop - rows.start, columns.stop - columns.start, *page.shape[2:]), page.dtype)
        handle = file.filehandle
        for i in range(rows.start // length, -(-rows.stop // length)):
            for j in range(columns.start // across, -(-columns.stop // across)):
                number = i * per_row + j
                handle.seek(page.dataoffsets[number])
                content = handle.read(page.databytecounts[number])
                segment = page.decode(content, number, jpegtables=page.jpegtables)[0] if content else None
                if segment is None:  # a tile that holds nothing is all zeros
                    continue
                part = segment[0] if page.samplesperpixel > 1 else segment[0, ..., 0]
                place = [(max(wanted.start, k * n), min(wanted.stop, k * n + part.shape[axis]))
                         for axis, (wanted, k, n) in enumerate(((rows, i, length), (columns, j, across)))]  # fmt: skip
                (top, bottom), (begin, end) = place
                made[top - rows.start : bottom - rows.start, begin - columns.start : end - columns.start] = (
                    part[top - i * length : bottom - i * length, begin - j * across : end - j * across]
                )  # fmt: skip
    return made.astype(made.dtype.newbyteorder("="), copy=False)


def writable(path):
    """Whether `write_rows` can write a file of this name."""
    form = EXTENSIONS.get(Path(path).suffix.lower())
    return form in (FORMATS["TIFF"], FORMATS["NPY"])


def write_rows(bands, media, path, *, replace=False):
    """Write a picture some rows at a time; the file appears whole or not at all.

    Parameters
    ----------
    bands : iterable of ndarray
        Its rows, one after another, all columns of each.
    media : Media
        What is written with them: mode and metadata, shape and type of its values.
    path : path-like
        Of a name that is `writable`.
    replace : bool
        Whether a file that exists is replaced.

    Raises
    ------
    OutputError
    """
    numpy = EXTENSIONS[Path(path).suffix.lower()] is FORMATS["NPY"]
    write_file(path, lambda file: (array.write_rows if numpy else tiff.write_rows)(bands, media, file), replace=replace)
