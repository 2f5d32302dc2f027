"""Several pictures by `tdc complete-image`: what is printed, and the exit code."""

import contextlib
import re

import click

from .. import interrupts
from ..compiled import not_kept
from ..listed import percent
from ..run.request import worded
from . import options
from .progress import shown
from .streams import echo

SOME_FAILED = 3
LONG_COMPILATION = 5.0  # seconds; loading what was compiled before takes less
_PASSED_OVER = {
    "hidden": "hidden {}",
    "other": "files of other kinds {}",
    "masks": "masks {}",
    "folders": "folders {} (--recursive enters them)",
}


def complete_many(template, inputs, *, recursive, mask_suffix, fail_fast, as_json, dry_run, quiet, verbose, progress):
    """Complete pictures and folders of pictures.

    Parameters
    ----------
    template : Request
        See `run.folders.plan`.
    inputs : sequence of Path
    recursive, mask_suffix, fail_fast, as_json, dry_run, quiet, verbose, progress
        The options of these names.

    Returns
    -------
    int
        Exit code.
    """
    import time

    from ..run import folders, outputs
    from ..run.batch import run
    from ..run.summary import Summary

    start = time.perf_counter()
    extension = template.format and f".{template.format}"
    if template.cluster is not None:
        template, inputs = template.absolute(), [path.absolute() for path in inputs]
    batch = folders.plan(template, inputs, recursive=recursive, mask_suffix=mask_suffix, extension=extension)
    if not dry_run:
        outputs.sweep([task.request for task in batch.tasks if task.request is not None])
    folders.check_free(batch, template)
    if template.cluster is not None:
        workers = _of_cluster(batch, template.cluster, template.threads, dry_run)
    else:
        workers = _of_this_machine(batch, template.jobs, template.threads, quiet)
    with interrupts.held(), workers as how, options.working():
        with shown(progress if progress is not None else not quiet) as monitor:
            records = run(batch, dry=dry_run, fail_fast=fail_fast, monitor=monitor, **how)
        took = time.perf_counter() - start
    summary = Summary(template.command, template.seed, records, batch.ignored, took, how["jobs"], how["threads"])
    _tell(records, quiet, verbose)
    if dry_run:
        _describe(summary, as_json)
    elif as_json:
        click.echo(summary.to_json().encode(errors="backslashreplace"), nl=False)
    elif not quiet:
        echo(*_in_words(template.output, summary))
    written = dry_run or _write(batch, summary)
    return 0 if written and not summary.count("failed") else SOME_FAILED


@contextlib.contextmanager
def _of_this_machine(batch, jobs, threads, quiet):
    """Within the block, what `run.batch.run` is told of who does the work: processes of this machine."""
    from ..run.batch import share
    from ..run.threads import available

    jobs, threads = share(jobs, len(batch.tasks), threads)
    if jobs * threads > available() and not quiet:
        echo(f"tdc: note: {jobs} jobs of {threads} threads share {available()} cores", err=True)
    yield {"jobs": jobs, "threads": threads}


@contextlib.contextmanager
def _of_cluster(batch, address, threads, dry_run):
    """As `_of_this_machine`, for the workers of a cluster; what the first picture needs, all of them must see."""
    from ..media.files import nearest_folder
    from ..run.cluster import connected

    first = [task.request for task in batch.tasks if task.request is not None][:1]
    reads = [path for request in first for path in request.sources.values() if path is not None and path.exists()]
    writes = [nearest_folder(path) for request in first for path in request.outputs.values() if not dry_run]
    with connected(address, reads=reads, writes=writes) as cluster:
        yield {"jobs": cluster.workers, "threads": threads or 1, "executor": cluster.executor, "ahead": cluster.ahead}


def tell_compilation(seconds):
    """Say where the time went, if much of it went into compiling."""
    if seconds > LONG_COMPILATION:
        later = "" if not_kept() else ", which later runs need not do again"
        echo(f"tdc: note: {seconds:.0f} s went into compiling{later}", err=True)


def _tell(records, quiet, verbose):
    """Warnings, each told once with the number of files, and what failed."""
    if not quiet:
        alike = {}
        for record in records:
            for text in record.report.get("warnings", ()) if record.report else ():
                alike.setdefault(_gist(text, record), []).append(_named(text, record))
        for texts in alike.values():
            more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
            echo(f"tdc: warning: {texts[0]}{more}", err=True)
        tell_compilation(
            max(
                (r.report["timing"]["compile"] for r in records if r.status == "done" and "timing" in r.report),
                default=0,
            )
        )
    for record in records:
        if record.error is not None:
            echo(f"tdc: {record.error}", err=True)
        if record.trace is not None and verbose:
            echo(*record.trace.rstrip("\n").split("\n"), err=True)


def _names(record):
    return [name for name in (record.path, record.report["missing"]["mask"]) if name]


def _named(text, record):
    """A warning with the name of its file."""
    return text if any(name in text for name in _names(record)) else f"{record.path}: {text}"


def _gist(text, record):
    """What a warning says, whatever the file and the numbers in it."""
    for name in _names(record):
        text = text.replace(name, "")
    return re.sub(r"\d+", "", text)


def _in_words(output, summary):
    """Lines for a human."""
    counts = [
        (summary.count("skipped"), "skipped"),
        (summary.count("failed"), "failed"),
        (summary.count("not_run"), "not begun"),
    ]
    rest = "".join(f", {count} {what}" for count, what in counts if count)
    line = (
        f"{output}: {summary.count('done')} of {len(summary.records)} pictures completed{rest}, {summary.seconds:.1f} s"
    )
    return [line, *_lacking(summary), *_passed_over(summary)]


def _lacking(summary):
    """A line on skipped pictures that lack other results, or none."""
    lacking = [record.lacks for record in summary.records if record.lacks]
    names = ", ".join(sorted(set().union(*lacking)))
    return [f"  skipped without {names}: {len(lacking)} (--overwrite makes all anew)"] if lacking else []


def _passed_over(summary):
    """A line on what was not looked at, or none."""
    passed = ", ".join(_PASSED_OVER[kind].format(count) for kind, count in summary.ignored.items() if count)
    return [f"  passed over: {passed}"] if passed else []


def _write(batch, summary):
    """Write the summary into the folder of reports and the index into that of pages; whether that worked."""
    from ..errors import TdcError
    from ..media.files import make_folder, write_text
    from ..run.written import is_ours

    try:
        texts = dict(zip(batch.summaries, (summary.to_json(), summary.to_csv())))
        if batch.index is not None:
            from ..run.index import index

            texts[batch.index] = index(batch, summary.records)
        for path, text in texts.items():
            make_folder(path.parent)
            write_text(path, text, replace=is_ours)
    except TdcError as error:
        echo(f"tdc: {worded(str(error))}", err=True)
        return False
    return True


def _describe(summary, as_json):
    """What a dry run has found: a line a file, and the sum."""
    from ..run import cost

    found = [
        record for record in summary.records if record.status == "done"
    ]  # a file that was skipped has the report of its run
    whole = cost.together([record.report for record in found], summary.jobs)
    if as_json:
        from ..run.report import dumps

        files = [
            {"path": r.path, "status": r.status, "error": r.error, "plan": r.report if r.status == "done" else None}
            for r in summary.records
        ]
        values = {"files": files, "ignored": summary.ignored, "estimate": whole}
        click.echo(dumps(values).encode(errors="backslashreplace"), nl=False)
        return
    for record in summary.records:
        if record.status == "done":
            plan = record.report
            by = f"by mask {plan['missing']['mask']}" if plan["missing"]["mask"] else plan["missing"]["source"]
            echo(f"{record.path}: {percent(plan['missing']['ratio'])} missing, {by}, to {plan['outputs']['image']}")
        elif record.status == "skipped":
            echo(f"{record.path}: done already")
    for line in (f"{len(found)} pictures, {cost.in_words(whole)}", *_passed_over(summary)):
        echo(line)
