"""The way of an input: `prepare` finds all that can be found before any work, `execute` completes, measures and writes.
"""

import contextlib
import time

from .. import interrupts, methods
from ..errors import InputError
from ..media import files
from ..media.files import write_text
from .measure import measures_for
from .plan import prepare
from .reporting import report as report_of
from .work import solve


def run(request, monitor=methods.silent):
    """`prepare` and `execute`.

    Parameters
    ----------
    request : Request
    monitor : callable
        Called as ``monitor(done, total, label)``.

    Returns
    -------
    Report

    Raises
    ------
    TdcError
        See `prepare` and `execute`.
    """
    return execute(prepare(request, monitor), monitor)


def execute(plan, monitor=methods.silent, executor=None):
    """Complete, measure and write.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        Called as ``monitor(done, total, label)``.
    executor : concurrent.futures.Executor or None
        See `work.solve`.

    Returns
    -------
    Report

    Raises
    ------
    TdcError
        The method failed, gave values that are not finite, or a result could not be written; then none is, but finished
        regions stay in the store.
    """
    begin = time.perf_counter()
    answers = plan.answers
    with interrupts.held(), contextlib.closing(plan.store):
        plan.store.open(plan.request.resume or plan.request.skip_existing, plan.request.output)
        try:
            works = [solve(answer, _of_all(monitor, answer, answers), executor) for answer in answers]
        finally:  # a change is the reason for what comes of it
            _check_files(plan)
        with files.together(plan.files.identities, plan.store.spent):
            report = _write(plan, answers, works, begin, monitor)
            _check_files(plan)
    return report


def _check_files(plan):
    """Refuse to write where what was read has changed; regions of what is no longer there are of no use to a later run.
    """
    try:
        with interrupts.heard():
            plan.files.check()
    except InputError:
        plan.store.remove()
        raise


@interrupts.heard()
def _write(plan, answers, works, begin, monitor):
    """Every output, of the first answer and of the others; a `Report`."""
    request, start = plan.request, time.perf_counter()
    measures = measures_for(plan)
    shown = None
    for answer in answers:
        of_first = measures if answer is answers[0] else None
        shown = plan.sink.write(answer, of_first, _of_all(monitor, answer, answers), shown)
    end = time.perf_counter()
    report = report_of(plan, answers, works, measures, {"write": end - start, "total": plan.spent + end - begin})
    if request.report is not None:
        write_text(request.report, report.to_json(), replace=request.replaces)
    if request.html is not None:
        write_text(request.html, plan.sink.page(plan, report, shown), replace=request.replaces)
    return report


def _of_all(monitor, answer, answers):
    """Monitor for the work on one of several answers, each of which takes as long."""
    count, before = len(answers), answer.answer - 1
    return lambda done, total, label: monitor(before * total + done, count * total, label)
