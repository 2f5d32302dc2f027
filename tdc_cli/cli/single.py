"""One picture, clip or tensor: its request, the work, and what is told before and after it."""

import contextlib

import click

from .. import interrupts
from ..memory import check_room
from ..names import CLIP, SAID_BY
from ..run.request import Request, worded
from . import options
from .folder import tell_compilation
from .progress import shown
from .streams import echo


def request(ctx, kind, input, output, chosen):
    """`Request` from the options of a command, which have the names of its fields; ConfigError where no library could
    be loaded.
    """
    check_room()
    command = tuple((ctx.obj or {}).get("command", ()))
    return Request(kind=kind, input=input, output=output, command=command, consulted=options.consulted(ctx), **chosen)


def complete(request, *, as_json, dry_run, quiet, verbose, progress):
    """Complete one input.

    Parameters
    ----------
    request : Request
    as_json, dry_run, quiet, verbose, progress
        The options of these names.
    """
    from ..errors import OutputExists
    from ..run import outputs
    from ..run.execute import execute
    from ..run.plan import prepare

    wanted = progress if progress is not None else not quiet
    if not dry_run:
        outputs.sweep([request])
    try:
        # Only a clip is gone through before the work, which may take a while.
        with shown(wanted and request.kind == CLIP) as monitor:
            plan = prepare(request, monitor)
    except OutputExists:
        if not (request.to_skip or request.resume):
            raise
        return _tell_skipped(request, quiet)
    if not quiet:
        _tell(plan, verbose, dry_run)
    if dry_run:
        return _describe(plan, as_json)
    try:
        with (
            interrupts.held(),
            _workers(plan) as (plan, executor),
            _kept(plan, quiet),
            options.working(),
            shown(wanted) as monitor,
        ):
            report = execute(plan, monitor, executor)
    except options.Failed as failed:
        if not (request.to_skip and isinstance(failed.error, OutputExists)):
            raise
        return _tell_skipped(request, quiet)  # another run was quicker
    return _tell_done(plan, report, as_json, quiet)


def complete_pages(request, *, dry_run, quiet, verbose, progress):
    """Complete every page of a file; see `complete`."""
    from ..errors import OutputExists
    from ..run import outputs, pages

    if not dry_run:
        outputs.sweep([request])
    try:
        planned = pages.plans(request)
    except OutputExists:
        if not request.to_skip:
            raise
        return _tell_skipped(request, quiet)
    for plan in planned:
        if not quiet:
            echo(f"tdc: note: page {plan.request.page}", err=True)
            _tell(plan, verbose, dry_run)
        if dry_run:
            _describe(plan, False)
    if dry_run:
        return None
    with options.working(), shown(progress if progress is not None else not quiet) as monitor:
        reports = pages.run(planned, monitor)
    for plan, report in zip(planned, reports):
        _tell_done(plan, report, False, quiet)
    return None


@contextlib.contextmanager
def _workers(plan):
    """Within the block, the plan for whoever does the work, and the executor of a cluster; None: this machine."""
    if plan.request.cluster is None:
        yield plan, None
        return
    from ..run.cluster import connected

    with connected(plan.request.cluster) as cluster:
        yield plan.by_workers(cluster.workers), cluster.executor


@contextlib.contextmanager
def _kept(plan, quiet):
    """If the block does not come to its end, say where finished regions are kept."""
    try:
        yield
    except BaseException:
        if plan.store.used and not quiet:
            kept = f"finished regions are kept in {plan.store.folder}"
            echo(f"tdc: note: {kept}; the same command with --resume goes on from there", err=True)
        raise


def _tell_skipped(request, quiet):
    if not quiet:
        lacks = f"; {', '.join(request.lacks)} not there, which --overwrite makes anew with it" if request.lacks else ""
        echo(f"tdc: note: {request.main}: exists already and is skipped{lacks}", err=True)


def _tell(plan, verbose, dry_run):
    """Print what the user should know before the work begins."""
    from ..run import cost

    for text in plan.notes:
        echo(f"tdc: note: {worded(text)}", err=True)
    lack = cost.too_much(plan.source.path, plan.bytes)
    way_out = "give a smaller --chunk" if plan.shrinks else "try a part of it"
    for text in (*plan.warnings, *([f"{lack}; {way_out}"] if lack else [])):
        echo(f"tdc: warning: {worded(text)}", err=True)
    if verbose:
        echo(f"tdc: {plan.method.name}: {plan.config}", err=True)
    if plan.request.kind == CLIP and not dry_run:
        echo(f"tdc: note: {_regions(plan)}", err=True)


def _regions(plan):
    """In words, how an input is divided and what that takes."""
    from ..run import cost

    if not plan.regions:
        return "nothing to complete"
    parts = []
    if plan.incomplete.in_time:
        count = len({region.first for region in plan.regions})
        longest = max(region.stop - region.start for region in plan.regions)
        chunks = f"{count} chunks of up to {longest} frames, overlaps and all"
        parts.append(chunks if count > 1 else f"one chunk of {longest} frame{'s' * (longest > 1)}")
    if plan.tiled:
        high, wide = (max(stop - start for start, stop in (r.seen[axis] for r in plan.regions)) for axis in (1, 2))
        size = f"{wide}x{high} pixels, margins and all"
        count = len(plan.regions)
        parts.append(
            f"{count} regions of up to {size}, {plan.workers} at a time" if count > 1 else f"one region of {size}"
        )
    return ", ".join([*parts, cost.in_words(plan.estimate)])


def _describe(plan, as_json):
    """Print what a dry run would do."""
    from ..run.describe import describe
    from ..run.report import dumps, missing_in_words

    if as_json:
        click.echo(dumps(describe(plan)).encode(errors="backslashreplace"), nl=False)
        return
    source, missing, in_time = plan.source, plan.missing, plan.incomplete.in_time
    lacks = missing_in_words(plan.described, missing)
    if in_time:
        changed = sum(plan.changed(number) for number in range(source.count))
        line = (
            f"{source.path}: {source.count} frames of {source.shape[1]}x{source.shape[0]}, {lacks}, "
            f"{changed} frame{'s' * (changed != 1)} to be completed by {plan.method.name}"
        )
    else:
        which = {"mask": missing["mask"], "color": plan.request.mask_color}.get(missing["source"])
        how = SAID_BY[missing["source"]] + (f" {which}" if which else "")
        line = f"{source.path}: {lacks} {how}, to be completed by {plan.method.name}"
    echo(line)
    for name, path in plan.request.outputs.items():
        echo(f"  {name}: {path}")
    echo(f"  {_regions(plan)}")


def _tell_done(plan, report, as_json, quiet):
    """Print what came out: warnings that came up during the work, and the report or its summary."""
    if not quiet:
        for text in report.warnings[len(plan.notes) + len(plan.warnings) :]:
            echo(f"tdc: warning: {text}", err=True)
        tell_compilation(report.timing["compile"])
    if as_json:
        click.echo(report.to_json().encode(errors="backslashreplace"), nl=False)
    elif not quiet:
        echo(*report.summary(), err=str(plan.request.output) == "-")
