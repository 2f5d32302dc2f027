"""What is refused before anything is decoded, whatever the format."""

import contextlib
import os
from contextvars import ContextVar

from ..errors import InputError
from ..memory import budget
from .formats import ALL_TYPES

# Pixels of a file of any size. A larger picture must have a file as large as the best that deflate can do, which packs
# a run of equal bytes 1032 times: what tells of more is a decompression bomb.
LARGEST = 100_000_000
MOST_PACKED = 1100
# What the user says that may be taken, see `memory.budget`: whoever decodes is many calls away from whoever knows.
_ASKED: ContextVar[str | None] = ContextVar("memory", default=None)


@contextlib.contextmanager
def keeping_to(memory):
    """Within the block, pictures are read that take up to `memory`, such as ``2G``; None: half of what is free."""
    before = _ASKED.set(memory)
    try:
        yield
    finally:
        _ASKED.reset(before)


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
    told = f"{path}: {width}x{height} pixels"
    if stored is None:
        raise InputError(f"{told}; frames of up to {LARGEST // 10**6} megapixels are read; scale it down or crop it")
    check_packed(width, height, path, stored, each)
    allowed, size = budget(_ASKED.get()), width * height * each
    if allowed is not None and size > allowed:
        raise InputError(
            f"{told} take {size / 2**30:.1f} GiB of memory, more than the {allowed / 2**30:.1f} GiB that may be taken; "
            "give more `memory`, crop it, or save it as a TIFF or a .npy array, which are read region by region"
        )


def check_packed(width, height, path, stored, each):
    """Refuse more than `LARGEST` pixels in more bytes than their file can have packed, unless the user names the
    memory.

    Parameters
    ----------
    width, height, path, stored, each
        See `check_size`.

    Raises
    ------
    InputError
    """
    size = width * height * each
    if _ASKED.get() is None and width * height > LARGEST and size > MOST_PACKED * stored:
        raise InputError(
            f"{path}: {width}x{height} pixels in a file of {stored} bytes, as files have that are made to fill the "
            f"memory; up to {LARGEST // 10**6} megapixels are read from one so small; give a `memory` that holds them, "
            f"such as {1 + 2 * size // 2**30}G, or crop it"
        )


def check_memory(size, what):
    """Raise InputError for an array of `size` bytes that is larger than the memory of this machine; `what` names it."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told there
        return
    if size > memory:
        raise InputError(
            f"{what}: takes {size / 2**30:.1f} GiB, more than the memory of this machine; give a smaller array"
        )


def check_type(dtype, path):
    """Raise InputError for values of a type that pictures and clips do not have."""
    if str(dtype) not in ALL_TYPES:
        raise InputError(
            f"{path}: values of {dtype}; only integers of 8, 16 and 32 bits, float32 and float64 are taken: convert "
            "them to float32 or float64, with NaN for what is missing"
        )
