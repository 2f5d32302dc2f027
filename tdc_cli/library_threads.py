"""Threads of the libraries that share work out by themselves: BLAS and OpenMP."""

import functools
import sys

from threadpoolctl import ThreadpoolController


def limited(count, api=None):
    """Context in which the libraries of `api`, ``"blas"`` or ``"openmp"``, None: both, use at most `count` threads."""
    return _libraries(len(sys.modules)).limit(limits=count, user_api=api)


@functools.lru_cache(maxsize=1)
def _libraries(modules):
    """Those that are loaded, looked for only where there are more `modules` than before: it takes some milliseconds,
    and small regions are many.
    """
    return ThreadpoolController()
