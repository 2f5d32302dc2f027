"""The files of a batch, one after the other or in several processes.

What comes of a file depends on that file and the options only, so the number of processes and their order change
nothing but the time; unless memory is so short for all of them that regions become smaller, of which a note tells.
"""

import contextlib
import traceback
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path

from .. import interrupts, media, methods
from ..errors import OutputExists, TdcError
from ..memory import budget, lacking
from . import outputs
from .describe import describe
from .execute import run as complete_one
from .plan import prepare
from .pool import Processes, completed
from .report import Report
from .request import worded
from .summary import Record
from .threads import available

LOST = "not done, because a worker process was killed; if memory was short, try fewer `jobs`, or workers that have more"


def share(jobs, count, asked):
    """Number of processes and of threads in each.

    Parameters
    ----------
    jobs : int
        Processes wanted.
    count : int
        Number of files; more processes have nothing to do.
    asked : int or None
        Threads wanted in each; None shares the cores out.

    Returns
    -------
    (int, int)
    """
    jobs = max(1, min(jobs, count))
    return jobs, asked or max(1, available() // jobs)


@interrupts.held()
def run(batch, *, dry=False, jobs=1, threads=1, fail_fast=False, monitor=methods.silent, executor=None, ahead=None):
    """Complete every file, or only look at it.

    Parameters
    ----------
    batch : folders.Batch
    dry : bool
        Write nothing: `look` instead of `complete`.
    jobs : int
        Processes; 1 works in this one.
    threads : int
        In each process.
    fail_fast : bool
        Begin no further file after one has failed; those that are being worked on are brought to their end.
    monitor : callable
        Called as ``monitor(done, total, label)`` after each file.
    executor : concurrent.futures.Executor or None
        Does the work, `jobs` files at a time, in place of processes of this program.
    ahead : int or None
        Files that are submitted and have not ended; None: two for each of the `jobs`. With `fail_fast` it is `jobs`.

    Returns
    -------
    tuple of Record
        In the order of the batch.
    """
    records = {
        i: Record(str(task.path), "failed", worded(task.error))
        for i, task in enumerate(batch.tasks)
        if task.error is not None
    }
    failed = len(records)
    # Looked for here too, so that going on with the last of many files does not start processes in vain.
    records |= {
        i: record
        for i, task in enumerate(batch.tasks)
        if task.request is not None and (record := _finished(task.request))
    }
    jobs = min(jobs, len(batch.tasks) - len(records))
    # One more file for each process in the queue keeps it from waiting, but would be begun after a failure.
    ahead = jobs if fail_fast else ahead or 2 * jobs
    # Those on other machines share no memory.
    shared = _share_of_memory(batch, jobs) if executor is None and jobs > 1 else {}

    def todo():
        for i, task in enumerate(batch.tasks):
            if fail_fast and failed:
                return
            if i not in records:
                # Where a worker is lost before it could answer, its file is done again, and may be there already.
                again = {} if executor is None or task.request.overwrite else {"skip_existing": True}
                yield i, look if dry else complete, replace(task.request, threads=threads, jobs=1, **shared, **again)

    try:
        for i, record in _worked_on(todo(), executor, jobs, ahead):
            records[i] = record or Record(str(batch.tasks[i].path), "failed", f"{batch.tasks[i].path}: {worded(LOST)}")
            failed += records[i].status == "failed"
            monitor(len(records), len(batch.tasks), f"files, {failed} failed" if failed else "files")
    finally:
        outputs.sweep([task.request for task in batch.tasks if task.request is not None and not dry])
    return tuple(records.get(i) or Record(str(task.path), "not_run") for i, task in enumerate(batch.tasks))


def complete(request):
    """Complete one picture, unless that is done already and finished files are to be skipped; returns a Record and
    raises nothing.
    """

    def work():
        return Record(str(request.input), "done", report=complete_one(request).to_dict(), thumbnail=_thumbnail(request))

    return _guarded(request, work)


def look(request):
    """What `complete` would do, as a Record whose report is `describe` of the plan; nothing is written."""

    return _guarded(request, lambda: Record(str(request.input), "done", report=describe(prepare(request))))


def _guarded(request, work):
    """Result of `work`, or a Record of the error that it raised; a request that is done already and to be skipped is
    none.
    """
    path, trace = str(request.input), None
    try:
        return work()
    except OutputExists as error:
        if request.to_skip:
            return _skipped(request)
        text = str(error)
    except TdcError as error:
        text = str(error)
    except Exception as error:
        if lacking(error):
            text = "not enough memory; try fewer `jobs`, or a smaller picture"
        elif isinstance(error, OSError):
            text = f"{error.filename or path}: {error.strerror or error}"
        else:
            text, trace = (
                f"unexpected {type(error).__name__}: {error}; run again with -v for the traceback",
                traceback.format_exc(),
            )
    text = " ".join(worded(text).split())
    return Record(path, "failed", text if " ".join(path.split()) in text else f"{path}: {text}", trace=trace)


def _finished(request):
    """Record of a request that is done already and to be skipped, or None."""
    return _skipped(request) if request.to_skip else None


def _skipped(request):
    """Record of a request that is not done again."""
    return Record(
        str(request.input), "skipped", report=_earlier(request), thumbnail=_thumbnail(request), lacks=request.lacks
    )


def _earlier(request):
    """Report of the run that finished the request, where it was kept and is readable; else None."""
    if request.report is None:
        return None
    try:
        return Report.from_json(Path(request.report).read_text(encoding="utf-8")).to_dict()
    except (OSError, ValueError, TdcError):
        return None


def _thumbnail(request):
    """Thumbnail of the picture as it was written, if there is to be an index of pages; None where it is gone again."""
    if request.html is None:
        return None
    from ..view import page

    try:
        written = media.read(request.output)
    except (OSError, TdcError):
        return None
    return page.thumbnail(written.colour, written.full_range, written.mode == "CMYK")


def _share_of_memory(batch, jobs):
    """The field `memory` of requests that are worked on side by side; nothing where nobody tells how much there is."""
    asked = next((task.request.memory for task in batch.tasks if task.request is not None), None)
    allowed = budget(asked)
    return {} if allowed is None else {"memory": str(allowed // jobs)}


def _worked_on(todo, executor, jobs, ahead):
    """Iterator over (i, Record) of the calls `todo` as they end; None in place of a Record where a worker was killed.
    """
    if executor is None and jobs <= 1:
        for i, work, request in todo:
            with interrupts.heard():
                record = work(request)
            yield i, record
        return
    with contextlib.nullcontext(executor) if executor is not None else Processes(jobs) as pool:
        for i, future in completed(pool, todo, ahead):
            try:
                yield i, future.result()
            except BrokenExecutor:
                yield i, None
