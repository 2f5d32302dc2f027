"""How many threads the numerical libraries may use."""

import contextlib
import os
import sys


def available():
    """Number of processor cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def limited(count):
    """Within the block, BLAS, OpenMP, the kernels and SciPy's transforms use at most `count` threads.

    That is, where they are loaded. SciPy's transforms use one unless told; what is shared out among as many threads as
    they may use gets `count`, too.

    Parameters
    ----------
    count : int or None
        None: all cores, for SciPy's transforms; everything else is left as it is.
    """
    # They are not imported here: a method without them should not wait for that.
    transforms = sys.modules.get("scipy.fft")
    with (
        transforms.set_workers(count or available()) if transforms else contextlib.nullcontext(),
        contextlib.nullcontext() if count is None else _limited_libraries(count),
    ):
        yield


@contextlib.contextmanager
def _limited_libraries(count):
    from .. import library_threads

    with library_threads.limited(count), library_threads.kernels(count):
        yield
