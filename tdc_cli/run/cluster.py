"""Work on other machines: a Dask scheduler that is there already, with its workers, as an executor of the one pool.

Calls and results travel through the scheduler; files do not: workers read and write them on a file system that all
share.
"""

import contextlib
import logging
import multiprocessing
import os
import platform
import re
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version

from .. import __version__, interrupts
from ..errors import ClusterError, ConfigError
from ..media import files
from .pool import WorkerKilled

CONNECT_SECONDS = 10.0
WORKER_SECONDS = 60.0  # for the first worker, which a batch system may still be starting
# Calls that are submitted and have not ended: some for each worker, so that none waits for the next one, and enough to
# let a cluster that grows with its work grow; each costs the scheduler a few kilobytes.
AHEAD_OF_EACH, AHEAD = 4, 1000
INSTALL = "pip install 'tdc-cli[cluster]'"
_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application")


@dataclass(frozen=True)
class Terms:
    """What a worker must have to be given work; see `suit`.

    Attributes
    ----------
    versions : tuple of (str, str)
        Of what the result depends on.
    seen : tuple of (str, int or None)
        Paths that must be there, and the size of each that is a file.
    processes : bool
        Whether it must be able to start processes of its own.
    """

    versions: tuple
    seen: tuple = ()
    processes: bool = False


@dataclass(frozen=True)
class Cluster:
    """A cluster that takes work.

    Attributes
    ----------
    executor : concurrent.futures.Executor
        A call whose workers were killed again and again raises `pool.WorkerKilled`, one that a worker cannot do, or
        whose scheduler has gone, ClusterError.
    workers : int
        That are there now; those that come later get work, too.
    """

    executor: Executor
    workers: int

    @property
    def ahead(self):
        """Calls that may well be submitted and have not ended; see `pool.completed`."""
        return max(AHEAD, AHEAD_OF_EACH * self.workers)


@contextlib.contextmanager
def connected(address, *, reads=(), writes=(), processes=False):
    """Within the block, a cluster whose workers are as this process; afterwards it is left alone, with nothing of ours
    queued.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.
    reads : iterable of path-like
        Files and folders that every worker must see.
    writes : iterable of path-like
        Folders that every worker must see as they are here: a temporary file lies in each as long as the block lasts.
    processes : bool
        Whether calls start processes of their own.

    Yields
    ------
    Cluster

    Raises
    ------
    ConfigError
        The library for it is not installed.
    ClusterError
        Nobody answers, there is no worker, or one differs from this process or does not see the files.
    """
    client = _client(address)
    try:
        with contextlib.ExitStack() as held:
            probes = [held.enter_context(files.probe(folder)) for folder in dict.fromkeys(map(os.path.abspath, writes))]
            seen = dict.fromkeys(map(os.path.abspath, (*reads, *probes)))
            terms = Terms(versions(), tuple(map(_sight, seen)), processes)
            yield Cluster(_Checked(client, terms, address), _check(client, terms, address))
    finally:
        with contextlib.suppress(Exception):  # of a scheduler that has gone
            client.close(timeout=CONNECT_SECONDS)


def versions():
    """What the bytes of a result depend on: (name, version) of each, in this process."""
    python = ".".join(platform.python_version_tuple()[:2])
    return ("tdc", __version__), ("python", python), *((name, _installed(name)) for name in ("numpy", "numba"))


@lru_cache(maxsize=16)  # a worker looks once for each run; what was refused is looked at again
def suit(terms):
    """Look whether this process, a worker, can do the work.

    Raises
    ------
    ClusterError
        What is wrong with it and what to try; the words for the worker itself are to be put before.
    """
    for (name, wanted), (_, here) in zip(terms.versions, versions()):
        if wanted != here:
            raise ClusterError(f"has {name} {here}, not {wanted}; install the same version there")
    for path, size in terms.seen:
        if not os.path.exists(path) or _sight(path)[1] != size:
            how = "has another file as" if os.path.exists(path) else "does not see"
            raise ClusterError(
                f"{how} {path}; files must lie on a file system that all machines share, under the same names"
            )
    if terms.processes and multiprocessing.current_process().daemon:
        raise ClusterError(
            "cannot start processes; begin workers with DASK_DISTRIBUTED__WORKER__DAEMON=False in their environment"
        )


def _installed(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _sight(path):
    """A path, and its size if it is a file."""
    return path, os.path.getsize(path) if os.path.isfile(path) else None


@interrupts.heard()
def _client(address):
    """Client of a scheduler; nothing of the library's own is printed."""
    try:
        import dask

        with dask.config.set(logging=dict.fromkeys(_LOGGERS, "critical")):
            from distributed import Client
    except ImportError as error:
        raise ConfigError(
            f"`cluster` needs distributed, which is not installed; try {INSTALL}", ("cluster",)
        ) from error
    for name in _LOGGERS:  # where it was imported before
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not re.fullmatch(r"(\w+://)?\S+:\d+", address):
        raise ConfigError(f"`cluster` is {address!r}; give the address that 'dask scheduler' prints: tcp://HOST:PORT",
                          ("cluster",))  # fmt: skip
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        way_out = "give the address that 'dask scheduler' prints"
        raise ClusterError(f"{address}: no Dask scheduler answers ({_gist(error)}); {way_out}") from error


@interrupts.heard()
def _check(client, terms, address):
    """Number of workers, all of which can do the work; ClusterError if there is none, or one cannot."""
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        threads = client.nthreads()
        errors = client.run(suit, terms, on_error="return")
    except TimeoutError as error:
        way_out = f"start some, as by 'dask worker {address} --nthreads 1'"
        raise ClusterError(f"{address}: has no worker after {WORKER_SECONDS:.0f} s; {way_out}") from error
    except (OSError, CancelledError) as error:
        raise ClusterError(f"{address}: the scheduler has gone ({_gist(error)})") from error
    for worker, reason in sorted(errors.items()):
        if reason is not None and not isinstance(reason, ClusterError):
            raise ClusterError(
                f"worker {worker} has no tdc {__version__}, or cannot load it ({_gist(reason)}); install it there"
            ) from reason
        _accept(worker, threads.get(worker, 1), reason)
    return len(errors)


def _accept(worker, threads, error):
    """ClusterError, with the name of the worker, if `suit` has raised one or it has several threads."""
    if threads > 1:
        error = f"works on {threads} calls at a time in one process; begin workers with --nthreads 1, one for each core"
    if error is not None:
        raise ClusterError(f"worker {worker} {error}")


def _gist(error):
    """An error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _called(terms, call, args, kwargs):
    """Result of a call, on a worker; ClusterError if that has come later than `_check` and cannot do the work."""
    from distributed import get_worker

    worker, error = get_worker(), None
    try:
        suit(terms)
    except ClusterError as found:
        error = found
    _accept(worker.address, worker.state.nthreads, error)
    return call(*args, **kwargs)


class _Checked(Executor):
    """The client's executor, whose calls look at where they are and whose errors are those of our pool."""

    def __init__(self, client, terms, address):
        self._executor = client.get_executor(pure=False)
        self._terms, self._address = terms, address

    def submit(self, call, /, *args, **kwargs):
        outcome: Future = Future()
        outcome.set_running_or_notify_cancel()
        try:
            self._executor.submit(_called, self._terms, call, args, kwargs).add_done_callback(
                partial(self._settle, outcome)
            )
        except Exception as error:  # of a client that has closed itself
            raise self._lost(error) from error
        return outcome

    def _settle(self, outcome, done):
        from distributed import KilledWorker

        if done.cancelled():  # by the client, when it had lost the scheduler: nobody else does so
            outcome.set_exception(self._lost("connection lost"))
        elif isinstance(error := done.exception(), KilledWorker):
            outcome.set_exception(WorkerKilled(f"{error.allowed_failures + 1} workers ended while they had it"))
        elif error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(done.result())

    def _lost(self, error):
        words = f"{self._address}: the scheduler has gone ({_gist(error)}); what is finished is kept"
        return ClusterError(f"{words}, go on when one is there again")
