"""The cells of a grid, each in a process of its own, several at a time.

A process of its own makes its peak memory its own, ends with a time limit whatever it does, and takes nothing along when it is killed.
What comes of a cell depends on the cell and the number of threads only, so that the number of processes changes nothing but the time.
"""

import contextlib
import importlib
import os
import signal
import time
from multiprocessing import connection, get_context

from .. import methods
from ..errors import TdcError
from ..run import threads
from ..run.workers import settle
from .cells import record

LONGEST_WAIT = 1.0  # seconds between looks at the clock


def run(suite, cells, results, *, data=None, jobs=1, count=1, timeout=None, monitor=methods.silent):
    """Run the cells that `results` lacks; it gets each record as it comes.

    Parameters
    ----------
    suite : experiment.Suite
    cells : sequence of Cell
    results : results.Results
    data : Path or None
        Folder of the user's media.
    jobs : int
        Processes at a time.
    count : int
        Threads in each.
    timeout : float or None
        Seconds after which a cell is given up, its process ended.
    monitor : callable
        Called as ``monitor(done, total, label)`` after each cell.
    """
    todo = [cell for cell in cells if cell.key not in results][::-1]
    total, running = len(cells), []
    try:
        while todo or running:
            while todo and len(running) < jobs:
                running.append(_Running(suite, todo.pop(), data, count, timeout))
            connection.wait([one.receiver for one in running], LONGEST_WAIT)
            for one in [one for one in running if one.finished]:
                running.remove(one)
                results.add(*one.result())
                failed = sum(kept["status"] != "done" for kept in results.records)
                monitor(total - len(todo) - len(running), total, f"runs, {failed} failed" if failed else "runs")
    finally:
        for one in running:
            one.end()


class _Running:
    """A cell that is being worked on."""

    def __init__(self, suite, cell, data, count, timeout):
        context = get_context("spawn")  # a fork of a process with threads may stand still
        self.suite, self.cell, self.timeout = suite, cell, timeout
        self.receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(sender, suite.module, cell, data, count, os.getpid()), daemon=True)
        self.begin = time.monotonic()
        with _interrupts_held():
            self.process.start()
        sender.close()  # so that the end of the process is the end of the pipe

    @property
    def late(self):
        return self.timeout is not None and time.monotonic() - self.begin > self.timeout

    @property
    def finished(self):
        return self.receiver.poll() or self.late

    def result(self):
        """Record of the cell and its arrays; the process has ended."""
        status, outcome, error = "timeout", None, f"took longer than {self.timeout} s"
        if self.receiver.poll():
            try:
                status, outcome, error = self.receiver.recv()
            except EOFError:
                self.process.join()
                status, error = "failed", f"the process was killed (exit code {self.process.exitcode}); was memory short?"
        self.end()
        return record(self.suite.name, self.cell, outcome, status=status, error=error), outcome.arrays if outcome else {}

    def end(self):
        """End the process, if it has not ended by itself."""
        self.process.kill()
        self.process.join()
        self.receiver.close()


@contextlib.contextmanager
def _interrupts_held():
    """Within the block Ctrl-C waits; a process that is started in it never hears of one, not even before it is settled."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(sender, module, cell, data, count, parent):
    """Run a cell and send (status, outcome, error)."""
    settle(parent)
    try:
        suite = importlib.import_module(module)
        methods.get(cell.method).load()  # limits reach only the libraries that are there
        with threads.limited(count):
            answer = "done", suite.run(cell, data), None
    except TdcError as error:
        answer = "failed", None, " ".join(str(error).split())
    except MemoryError:
        answer = "failed", None, "not enough memory"
    except Exception as error:  # a method that breaks is a result, too
        answer = "failed", None, " ".join(f"{type(error).__name__}: {error}".split())
    sender.send(answer)
    sender.close()
