"""What all modules of compiled kernels share: the cache on disk, BLAS and LAPACK within compiled code, the number of threads."""

import contextlib
import functools

import llvmlite.binding
import numba
from numba import njit, types
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.extending import get_cython_function_address
from threadpoolctl import threadpool_limits


def _or(nothing, read):
    """`read`, a method of numba's cache, with the result of `nothing` where a file is damaged."""

    @functools.wraps(read)
    def reading(*args):
        try:
            return read(*args)
        except OSError:
            raise
        except Exception:  # unpickling what is cut short or overwritten may raise anything
            return nothing()

    return reading


# What a crash or a full disk has cut short is compiled anew; numba would end every run until somebody removes it.
IndexDataCacheFile._load_index = _or(dict, IndexDataCacheFile._load_index)
IndexDataCacheFile._load_data = _or(lambda: None, IndexDataCacheFile._load_data)


def _cache_works():
    """Whether numba finds a folder that it may write compiled code to; it raises if there is none."""
    try:
        njit(cache=True)(lambda: None)
    except RuntimeError:
        return False
    return True


# Without such a folder (a read-only package and home) every run compiles anew, which is slow but right.
CACHE = _cache_works()
NOT_KEPT = "compiled code cannot be kept, so every run compiles anew: set NUMBA_CACHE_DIR to a folder that can be written"


def cache_folders(*modules):
    """Folders, as numba has chosen them, that keep the compiled kernels of `modules`; none where none can be written."""
    found = {kernel.stats.cache_path for m in modules for kernel in vars(m).values() if isinstance(kernel, Dispatcher)}
    return sorted(folder for folder in found if folder)


def foreign(name, module, arity):
    """`name` of scipy's Cython BLAS or LAPACK as a symbol that compiled code can call and that survives numba's disk cache."""
    symbol = f"tdc_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * arity))


@contextlib.contextmanager
def kernel_threads(count=None):
    """Within the block, BLAS has one thread, because kernels call it from each of theirs, and the kernels have at most `count`.

    One BLAS thread also makes every result the same to the last bit, whatever the machine's number of cores.

    Parameters
    ----------
    count : int or None
        None leaves the kernels' threads as they are.
    """
    before = numba.get_num_threads()
    with threadpool_limits(1, user_api="blas"):
        numba.set_num_threads(min(count or before, before))
        try:
            yield
        finally:
            numba.set_num_threads(before)
