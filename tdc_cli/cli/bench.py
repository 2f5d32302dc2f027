"""`tdc bench`."""

import contextlib

import click

from ..memory import check_room
from . import options
from .progress import shown
from .streams import echo

_path = options.File()


def _suites(ctx, param, incomplete):
    """The suites that begin with what was typed, for a shell that completes."""
    from click.shell_completion import CompletionItem

    from .. import bench as experiment

    return [
        CompletionItem(suite.name, help=suite.summary)
        for suite in experiment.SUITES.values()
        if suite.name.startswith(incomplete)
    ]


@click.command(
    cls=options.Command,
    sections={
        "What is run": ("output", "data", "methods", "ratios", "seeds", "as_list"),
        "How it is run": ("jobs", "cluster", "threads", "timeout", "resume"),
    },
    short_help="Run an experiment of the paper, or others: tables and figures.",
)
@click.argument("suite", required=False, shell_complete=_suites)
@options.config(options.own_table)
@click.option("-o", "--output", type=_path, metavar="FOLDER", help="Folder for the results, made if missing.")
@click.option(
    "--data",
    type=_path,
    metavar="FOLDER",
    help="Pictures, clips and faces of your own, for the suites that take some; see docs/bench.md.",
)
@click.option("--methods", type=options.Listed(str, "a,b", once=True), help="Methods to run.  [default: the suite's]")
@click.option(
    "--ratios",
    type=options.Listed(options.FiniteRange(0, 1, max_open=True), "0.7,0.9", once=True),
    help="Shares that are missing.  [default: the suite's]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    metavar="N",
    help="Runs of each combination: seeds 0 to N - 1.  [default: the suite's]",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs at the same time."
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on the workers of the Dask scheduler at tcp://HOST:PORT, in place of --jobs; see docs/scale.md.",
)
@click.option("--threads", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Threads of each run.")
@click.option(
    "--timeout",
    type=options.FiniteRange(0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up a run that takes longer, and note that it did.",
)
@click.option("--resume", is_flag=True, help="Go on with what FOLDER holds, which must be of the same options.")
@click.option(
    "--list",
    "as_list",
    is_flag=True,
    help="List the suites, how many runs each has and about how long they take; run nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results, or the list, as JSON on standard output.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.option("-v", "--verbose", is_flag=True, expose_value=False, help="Print tracebacks of unexpected errors.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Show progress: a bar on a terminal, else a plain line now and then.  [default: shown, unless -q]",
)
@click.pass_context
def bench(
    ctx,
    suite,
    output,
    data,
    methods,
    ratios,
    seeds,
    jobs,
    cluster,
    threads,
    timeout,
    resume,
    as_list,
    as_json,
    quiet,
    progress,
):
    """Run the experiments of SUITE: a grid of methods, data, missing ratios and seeds.

    FOLDER gets results.json with a record for each run, results.csv, tables.md with the figures of the paper beside,
    figures as PNG, and report.html with everything. A run that fails is a record that says so. 'tdc bench --list' names
    the suites.
    """
    import time

    from .. import __version__
    from .. import bench as experiment

    chosen = {"methods": methods, "ratios": ratios, "seeds": seeds, "data": data}
    if as_list:
        # Of all suites at once some leave no choice of what others do.
        suites = [experiment.get(suite)] if suite else experiment.SUITES.values()
        return _list([_planned(each, chosen if suite else _open_to(each, chosen)) for each in suites], as_json)
    if suite is None:
        raise click.UsageError("no suite was given; 'tdc bench --list' names them")
    if output is None:
        raise click.UsageError("no folder for the results was given; try -o FOLDER")
    if cluster is not None and jobs > 1:
        raise click.UsageError("--cluster and --jobs exclude each other: the cluster's workers do the work", ctx)
    check_room()
    from ..bench import report, results
    from ..bench.run import run

    start = time.perf_counter()
    plan = experiment.get(suite)
    if (
        data is not None
        and not plan.media
        and ctx.get_parameter_source("data") is click.core.ParameterSource.COMMANDLINE
    ):
        raise click.UsageError(f"suite {suite} has data of its own; leave out --data", ctx)
    if cluster is not None and data is not None:
        chosen["data"] = data.absolute()
    choice, cells = experiment.plan(plan, **chosen)
    settings = {
        "suite": suite,
        "methods": list(choice.methods),
        "ratios": list(choice.ratios),
        "seeds": choice.seeds,
        "data": str(choice.data.resolve()) if choice.data else None,
        "threads": threads,
        "timeout": timeout,
        "version": __version__,
    }
    with (
        _of_cluster(cluster, choice.data) if cluster is not None else contextlib.nullcontext({"jobs": jobs}) as how,
        results.begin(output, cells, settings, resume=resume) as kept,
        options.working(),
        shown(progress if progress is not None else not quiet) as monitor,
    ):
        run(plan, cells, kept, data=choice.data, count=threads, timeout=timeout, monitor=monitor, **how)
        report.write(plan, kept)
    if as_json:
        click.echo(kept.to_json().encode(errors="backslashreplace"), nl=False)
    elif not quiet:
        failed = sum(each["status"] != "done" for each in kept.records)
        rest = f", {failed} of them failed" if failed else ""
        page = output / report.PAGE
        echo(
            f"{output}: {_runs(len(kept.records))} of suite {suite}{rest}, {time.perf_counter() - start:.1f} s; see "
            f"{page}"
        )
    _tell_failures(kept.records, quiet)
    if hasattr(plan.load(), "check"):
        broken = plan.load().check(kept.records)
        if broken:
            raise options.Failed("; ".join(broken))
        if not (quiet or as_json):
            echo("  all figures are within their bounds: the installation works")
    return 0


@contextlib.contextmanager
def _of_cluster(address, data):
    """Within the block, what `bench.run.run` is told of who does the work: the workers of a cluster, which must see the
    user's media.
    """
    from ..run.cluster import connected

    with connected(address, reads=[data] if data else [], processes=True) as cluster:
        yield {"jobs": cluster.ahead, "executor": cluster.executor}


def _tell_failures(records, quiet):
    """Print what has gone wrong, each kind of error once; options.Failed if nothing else came out."""
    from collections import Counter

    errors = Counter(each["error"] for each in records if each["status"] != "done")
    if errors and errors.total() == len(records):
        raise options.Failed(f"every run failed: {'; '.join(errors)}")
    for error, count in () if quiet else errors.items():
        echo(f"tdc: warning: {_runs(count)} failed: {' '.join(error.split())}", err=True)


def _runs(count):
    return f"{count} run{'s' if count != 1 else ''}"


def _open_to(suite, chosen):
    """What of the options a suite leaves to the user."""
    return {name: value for name, value in chosen.items() if name == "data" or getattr(suite.load().DEFAULTS, name)}


def _planned(suite, chosen):
    """A line of the list."""
    from .. import bench as experiment

    choice, cells = experiment.plan(suite, **chosen)
    hours = sum(map(suite.load().seconds, cells)) / 3600
    return {
        "name": suite.name,
        "summary": suite.summary,
        "runs": len(cells),
        "seeds": choice.seeds or 1,
        "hours": round(hours, 3),
    }


def _list(rows, as_json):
    """Print the suites."""
    if as_json:
        import json

        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        hours = f"{row['hours']:.1f} h" if row["hours"] >= 1 else f"{max(1, round(60 * row['hours']))} min"
        echo(f"{row['name']:{width}}  {row['summary']} ({row['runs']} runs, about {hours} of one core)")
