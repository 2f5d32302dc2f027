"""The cells of a grid, each in a process of its own, several at a time.

A process of its own makes its peak memory its own, ends with a time limit whatever it does, and takes nothing along
when it is killed. What comes of a cell depends on the cell and the number of threads only, so that the number of
processes changes nothing but the time.
"""

import contextlib
import importlib
from concurrent.futures import BrokenExecutor

from .. import interrupts, methods
from ..errors import TdcError
from ..run import threads
from ..run.pool import Processes, alone, completed
from .cells import record


@interrupts.held()
def run(suite, cells, results, *, data=None, jobs=1, count=1, timeout=None, monitor=methods.silent, executor=None):
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
    executor : concurrent.futures.Executor or None
        Does the work, `jobs` cells at a time, in place of processes of this program; each call of it starts one that is
        measured and ended as those are.
    """
    begun = (_work,) if executor is None else (alone, timeout, _work)
    todo = [(cell, *begun, suite.module, cell, data, count) for cell in cells if cell.key not in results]
    done, total = len(cells) - len(todo), len(cells)
    with (
        contextlib.nullcontext(executor)
        if executor is not None
        else Processes(jobs, fresh=True, seconds=timeout) as pool
    ):
        for cell, future in completed(pool, todo, jobs):
            status, outcome, error = _ended(future)
            results.add(
                record(suite.name, cell, outcome, status=status, error=error), outcome.arrays if outcome else {}
            )
            done += 1
            failed = sum(kept["status"] != "done" for kept in results.records)
            monitor(done, total, f"runs, {failed} failed" if failed else "runs")


def _ended(future):
    """(status, outcome, error) of a call of `_work`, also where it could not answer."""
    try:
        return future.result()
    except TimeoutError as error:
        return "timeout", None, str(error)
    except BrokenExecutor as error:
        return "failed", None, f"{error}; was memory short?"


def _work(module, cell, data, count):
    """Run a cell; (status, outcome, error)."""
    try:
        suite = importlib.import_module(module)
        methods.get(cell.method).load()  # limits reach only the libraries that are there
        with threads.limited(count):
            return "done", suite.run(cell, data), None
    except TdcError as error:
        return "failed", None, " ".join(str(error).split())
    except MemoryError:
        return "failed", None, "not enough memory"
    except Exception as error:  # a method that breaks is a result, too
        return "failed", None, " ".join(f"{type(error).__name__}: {error}".split())
