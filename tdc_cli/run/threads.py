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
    """Within the block, BLAS and OpenMP (and numba's kernels, where they are loaded) use at most `count` threads.

    SciPy's transforms, which use one unless told, and what is shared out among as many threads as they may use, get
    `count`.

    Parameters
    ----------
    count : int or None
        None: all cores, for SciPy's transforms; everything else is left as it is.
    """
    import scipy.fft

    with scipy.fft.set_workers(count or available()):
        if count is None:
            yield
        else:
            with _limited_libraries(count):
                yield


@contextlib.contextmanager
def _limited_libraries(count):
    from .. import library_threads

    numba = sys.modules.get("numba")  # never imported here: a method without kernels should not wait for it
    before = numba.get_num_threads() if numba else None
    with library_threads.limited(count):
        if numba:
            numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
        try:
            yield
        finally:
            if numba:
                numba.set_num_threads(before)
