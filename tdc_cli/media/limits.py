"""What is refused before anything is decoded, whatever the format."""

import os

from ..errors import InputError
from .formats import ALL_TYPES

LARGEST = 100_000_000  # pixels; read before the file is decoded, so that a small file cannot fill the memory


def check_single(pages, path, first=0):
    """Raise InputError for a file with several pages or frames, of which `first` is the number of the first."""
    if pages > 1:
        raise InputError(
            f"{path}: holds {pages} pages or frames; save the one to complete as a file of its own, with ImageMagick: "
            f"magick '{path}[{first}]' page.png"
        )


def check_size(width, height, path):
    """Raise InputError for a picture with more than `LARGEST` pixels."""
    if width * height > LARGEST:
        raise too_large(f"{width}x{height} pixels", path)


def too_large(size, path):
    """InputError for a picture whose size is beyond `LARGEST`, or unknown for that reason."""
    return InputError(f"{path}: {size}; up to {LARGEST // 10**6} megapixels are read; scale it down or crop it")


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
