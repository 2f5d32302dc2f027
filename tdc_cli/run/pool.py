"""Work side by side: whoever has some takes any `concurrent.futures.Executor`; `Processes` is that of this program."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, ThreadPoolExecutor, wait
from multiprocessing import resource_tracker

from .. import compiled, interrupts

WATCH_SECONDS = 1.0  # how often a worker looks whether the program that started it still lives
_STARTING = threading.Lock()


class WorkerKilled(BrokenExecutor):
    """The process of a call ended before the call did; other calls of `Processes` are not touched."""


class Processes(ThreadPoolExecutor):
    """Executor whose calls run in processes of their own, which Ctrl-C does not reach.

    Processes are told what to do through pipes, so that no shared memory is needed; each has a thread here, which waits
    for it. Where a ``with`` block ends by an exception, all that is being worked on ends at once.

    Parameters
    ----------
    jobs : int
        Processes at a time.
    fresh : bool
        A new process for every call, so that its peak memory is its own.
    seconds : float or None
        Time limit of a call, with the start of its process; one that takes longer is killed and raises TimeoutError.
    """

    def __init__(self, jobs, *, fresh=False, seconds=None):
        super().__init__(jobs)
        self._fresh, self._seconds = fresh, seconds
        self._mine = threading.local()
        self._workers, self._lock, self._ended = set(), threading.Lock(), False

    def submit(self, call, /, *args, **kwargs):
        return super().submit(self._call, call, args, kwargs)

    def shutdown(self, wait=True, *, cancel_futures=False):
        super().shutdown(wait, cancel_futures=cancel_futures)
        for worker in self._workers if wait else ():
            worker.end()

    def __exit__(self, kind, *_):
        if kind is not None:
            with self._lock:
                self._ended = True
                for worker in self._workers:
                    worker.process.kill()
        self.shutdown(cancel_futures=kind is not None)

    def _call(self, call, args, kwargs):
        """Result of a call in the worker of this thread."""
        limit = self._seconds and time.monotonic() + self._seconds
        worker = getattr(self._mine, "worker", None) or self._start()
        try:
            worker.connection.send((call, args, kwargs))
            error, result = self._answer(worker, limit)
        except (EOFError, ConnectionError) as lost:
            raise WorkerKilled(f"the process was killed (exit code {self._end(worker)})") from lost
        if self._fresh:
            self._end(worker)
        if error is not None:
            raise error
        return result

    def _answer(self, worker, limit):
        """What a worker sends in the end; that it compiles, or no longer does, is passed on."""
        while worker.connection.poll(limit and max(0.0, limit - time.monotonic())):
            answer = worker.connection.recv()
            if not isinstance(answer, bool):
                return answer
            if compiled.told:
                compiled.told(answer)
        self._end(worker)
        raise TimeoutError(f"took longer than {self._seconds} s")

    def _start(self):
        with self._lock:
            if self._ended:
                raise WorkerKilled("no process is started any more")
            self._mine.worker = worker = _Worker()
            self._workers.add(worker)
        return worker

    def _end(self, worker):
        """End the worker of this thread; returns its exit code."""
        self._mine.worker = None
        with self._lock:
            self._workers.discard(worker)
        return worker.end()


class _Worker:
    """A process, and the end of a pipe to it."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads may stand still
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, os.getpid()), daemon=True)
        with _sheltered():
            self.process.start()
        other.close()  # so that the end of the process is the end of the pipe

    def end(self):
        """End the process, if it has not ended by itself; returns its exit code."""
        self.connection.close()
        self.process.kill()
        self.process.join()
        return self.process.exitcode


def completed(executor, calls, ahead):
    """Submit calls, and tell what has become of them in the order in which they end.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    calls : iterable of (key, callable, argument, ...)
        Each is taken when it is submitted.
    ahead : int
        Calls that are submitted and have not ended, at most.

    Yields
    ------
    key
    future : concurrent.futures.Future
    """
    calls, keys = iter(calls), {}
    while True:
        for key, *call in itertools.islice(calls, ahead - len(keys)):
            keys[executor.submit(*call)] = key
        if not keys:
            return
        with interrupts.heard():
            ended = wait(keys, return_when=FIRST_COMPLETED).done
        for future in ended:
            yield keys.pop(future), future


def alone(seconds, call, *args):
    """Result of a call in a process of its own, which is killed after so many seconds; raises as `Processes` does."""
    with Processes(1, fresh=True, seconds=seconds) as pool:
        return pool.submit(call, *args).result()


def _serve(connection, parent):
    """What a worker does: call what comes through the pipe, and send (error, result) back, until nothing comes; before
    that True when compiling begins and False when it ends.
    """
    _settle(parent)
    compiled.told = connection.send
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            try:
                call, args, kwargs = connection.recv()
                connection.send((None, call(*args, **kwargs)))
            except (EOFError, ConnectionError):
                raise
            except Exception as error:
                connection.send((error, None))


def _settle(parent):
    """Leave Ctrl-C to the program, the process `parent`, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch():
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _sheltered():
    """Within the block a process is started that never hears of Ctrl-C and does not import from the current folder.

    Python puts that folder before all others on the import path of a process that it starts, unless PYTHONSAFEPATH is
    set, and an empty name on the path of this one, which the other gets, stands for it, too.
    """
    with _STARTING:  # what is changed here belongs to all threads
        safe, path = os.environ.get("PYTHONSAFEPATH"), sys.path[:]
        os.environ["PYTHONSAFEPATH"] = "1"
        sys.path[:] = filter(None, path)
        resource_tracker.ensure_running()  # which, later, would let Ctrl-C through
        held = hasattr(signal, "pthread_sigmask") and signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            if held is not False:
                signal.pthread_sigmask(signal.SIG_SETMASK, held)
            sys.path[:] = path
            if safe is None:
                del os.environ["PYTHONSAFEPATH"]
            else:
                os.environ["PYTHONSAFEPATH"] = safe
