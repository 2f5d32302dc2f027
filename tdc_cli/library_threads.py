"""Threads of the libraries that share work out by themselves, BLAS and OpenMP, and of the compiled kernels."""

import contextlib
import functools
import sys
import threading

from threadpoolctl import ThreadpoolController


def limited(count, api=None):
    """Context in which the libraries of `api`, ``"blas"`` or ``"openmp"``, None: both, use at most `count` threads."""
    return _libraries(len(sys.modules)).limit(limits=count, user_api=api)


class _Limits(threading.local):
    """What the thread that asks has set; None: nothing."""

    kernels = None


_limits = _Limits()


@contextlib.contextmanager
def kernels(count):
    """Within the block, kernels use at most `count` threads; None leaves it at what they may use already."""
    before = _limits.kernels
    _limits.kernels = min((each for each in (before, count) if each is not None), default=None)
    try:
        yield
    finally:
        _limits.kernels = before


def of_kernels(most):
    """How many threads kernels use where there are `most`."""
    return most if _limits.kernels is None else min(most, _limits.kernels)


@functools.lru_cache(maxsize=1)
def _libraries(modules):
    """Those that are loaded, looked for only where there are more `modules` than before: it takes some milliseconds,
    and small regions are many.
    """
    return ThreadpoolController()
