"""What is refused before anything is decoded, whatever the format."""

import os

from ..errors import InputError
from .formats import ALL_TYPES
from .memory import free

# Pixels of a file of any size. A larger picture must have a file as large as the best that deflate can do, which packs a run of equal
# bytes 1032 times: what tells of more is a decompression bomb.
LARGEST = 100_000_000
MOST_PACKED = 1100


def check_single(pages, path, first=0):
    """Raise InputError for a file with several pages or frames, of which `first` is the number of the first."""
    if pages > 1:
        raise InputError(
            f"{path}: holds {pages} pages or frames; save the one to complete as a file of its own, with ImageMagick: "
            f"magick '{path}[{first}]' page.png"
        )


def check_size(width, height, path, stored=None, each=1):
    """Refuse a picture of more than `LARGEST` pixels that is a decompression bomb, or that the memory does not hold.

    Parameters
    ----------
    width, height : int
        As the file tells.
    path : path-like
    stored : int or None
        Bytes of the file; None: it is one frame of many, of which none has more pixels.
    each : int
        Bytes of a pixel.

    Raises
    ------
    InputError
    """
    if width * height <= LARGEST:
        return
    size = width * height * each
    if stored is None or size > MOST_PACKED * stored:
        raise too_large(f"{width}x{height} pixels", path)
    there = free()
    if there is not None and size > there / 2:
        raise InputError(
            f"{path}: {width}x{height} pixels take {size / 2**30:.1f} GiB, more than half of the memory that is free; scale it down, "
            "crop it, or save it as an uncompressed or tiled TIFF or a .npy array, which are read region by region"
        )


def too_large(size, path):
    """InputError for a picture whose size is beyond `LARGEST` without the bytes for it."""
    return InputError(f"{path}: {size}; up to {LARGEST // 10**6} megapixels are read from a file as small as this; scale it down or crop it")


def check_memory(size, what):
    """Raise InputError for an array of `size` bytes that is larger than the memory of this machine; `what` names it."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told there
        return
    if size > memory:
        raise InputError(f"{what}: takes {size / 2**30:.1f} GiB, more than the memory of this machine; give a smaller array")


def check_type(dtype, path):
    """Raise InputError for values of a type that pictures and clips do not have."""
    if str(dtype) not in ALL_TYPES:
        raise InputError(
            f"{path}: values of {dtype}; only integers of 8, 16 and 32 bits, float32 and float64 are taken: convert them to float32 or "
            "float64, with NaN for what is missing"
        )
