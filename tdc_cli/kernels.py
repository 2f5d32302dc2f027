"""What all modules of compiled kernels share: the cache on disk, BLAS and LAPACK within compiled code, threads."""

import contextlib
import functools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait

import llvmlite.binding
import numba
from numba import njit, types
from numba.core import cgutils, event
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.extending import get_cython_function_address, intrinsic

from . import compiled, library_threads


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
for _name, _nothing in (("_load_index", dict), ("_load_data", lambda: None)):
    setattr(IndexDataCacheFile, _name, _or(_nothing, getattr(IndexDataCacheFile, _name)))


def _or_not(save):
    """`save` of numba's cache, which leaves compiled code unkept where the disk has no room for it."""

    @functools.wraps(save)
    def saving(*args):
        try:
            save(*args)
        except OSError as error:
            compiled.refused.append(error)

    return saving


setattr(IndexDataCacheFile, "save", _or_not(IndexDataCacheFile.save))  # noqa: B010


def _cache_works():
    """Whether numba finds a folder that it may write compiled code to; it raises if there is none."""
    try:
        njit(cache=True)(lambda: None)
    except RuntimeError:
        return False
    return True


# Without such a folder (a read-only package and home) every run compiles anew, which is slow but right.
CACHE = compiled.kept = _cache_works()
# Options of kernels that Python calls, and of what only kernels call: without the doors that nobody takes they compile
# up to a fifth faster.
OUTER = {"cache": CACHE, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
INNER = {"cache": CACHE, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Listener(event.Listener):
    """Tells `compiled.told` when compiling begins and ends; what a kernel calls is compiled within it."""

    depth = 0

    def on_start(self, event):
        self.depth += 1
        if self.depth == 1 and compiled.told:
            compiled.told(True)

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0 and compiled.told:
            compiled.told(False)


event.register("numba:compile", _Listener())


def cache_folders(*modules):
    """Folders, as numba has chosen them, that keep the compiled kernels of `modules`; none where none can be written.
    """
    found = {kernel.stats.cache_path for m in modules for kernel in vars(m).values() if isinstance(kernel, Dispatcher)}
    return sorted(folder for folder in found if folder)


def foreign(name, module, arity):
    """`name` of scipy's Cython BLAS or LAPACK as a symbol that compiled code can call and that survives numba's disk
    cache.
    """
    symbol = f"tdc_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * arity))


@intrinsic
def at(typing_context, value):
    """Address of the first entry of an array, or of a number's copy, as Fortran takes what it is given."""

    def generate(context, builder, signature, arguments):
        kind, given = signature.args[0], arguments[0]
        if isinstance(kind, types.Array):
            pointer = context.make_array(kind)(context, builder, given).data
        else:
            pointer = cgutils.alloca_once_value(builder, given)
        return builder.bitcast(pointer, context.get_value_type(types.voidptr))

    return types.voidptr(value), generate


@contextlib.contextmanager
def kernel_threads(count=None):
    """Within the block, BLAS has one thread, because kernels call it from each of theirs, and the kernels have at most
    `count`.

    One BLAS thread also makes every result the same to the last bit, whatever the machine's number of cores.

    Parameters
    ----------
    count : int or None
        None leaves the kernels' threads as they are.
    """
    with library_threads.limited(1, "blas"), library_threads.kernels(count):
        yield


def run_shares(kernel, count, share, *arguments, room=tuple):
    """Call ``kernel(first, last, *arguments, *room())`` for parts of ``range(count)``, on as many threads as kernels
    have.

    Where numba itself divides a loop among threads, the loop's body is compiled several times over, and every run
    waits for its pool of threads.

    Parameters
    ----------
    kernel : compiled function that lets go of the interpreter's lock
        Writes nothing that the call for another part reads or writes, so that the division shows in no result.
    count : int
    share : int
        Parts are a multiple of it.
    *arguments
    room : callable
        Gives what a thread works in by itself. Numba compiles every allocation within a kernel for long.
    """
    threads = library_threads.of_kernels(numba.config.NUMBA_NUM_THREADS)
    # One thread has one part; several have four each, so that none waits long for the last.
    parts = 1 if threads == 1 else 4 * threads
    length = max(1, -(-count // (parts * share))) * share
    todo = deque(range(0, count, length))

    def work():
        own = room()
        while todo:
            try:
                first = todo.popleft()
            except IndexError:  # another thread took the last
                return
            kernel(first, min(count, first + length), *arguments, *own)

    # What is not compiled yet is compiled by this thread alone: a helper that compiles does not hear Ctrl-C, and the
    # program would wait for it.
    if threads > 1 and todo and not getattr(kernel, "signatures", True):
        first = todo.popleft()
        kernel(first, min(count, first + length), *arguments, *room())
    helping = [_helpers().submit(work) for _ in range(min(threads, len(todo)) - 1)]
    try:
        work()
    finally:
        todo.clear()
        wait(helping)
    for each in helping:
        each.result()


@functools.cache
def _helpers():
    """Threads beside the one that calls."""
    return ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS, thread_name_prefix="kernel")


# A process that is forked, where there is such a thing, has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)
