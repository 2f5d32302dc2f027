"""`tdc synth`."""

import re

import click

from ..memory import check_room
from ..names import DEFAULT_METHODS, RESIDUAL_LAWS, TENSOR
from . import options
from .folder import tell_compilation
from .progress import shown
from .streams import echo

NOISE_STD = 0.001**0.5
# Options that say what is drawn, which a problem from a file has already.
DRAWN = ("shape", "rank", "kind", "missing_ratio", "noise_std")


def _method_lists(ctx, param, incomplete):
    """What may follow the last comma."""
    done, comma, begun = incomplete.rpartition(",")
    found = options.method_names(ctx, param, begun)
    for item in found:
        item.value = f"{done}{comma}{item.value}"
    return found


def _worded(text):
    """A message with parameters, fields in backticks, as they are given here, where they have no options."""
    return re.sub(r"`([a-z_0-9]+)`", r"--param \1", text)


@click.command(
    cls=options.Command,
    sections={
        "The problem": ("shape", "rank", "kind", "missing_ratio", "noise_std", "seed", "problem"),
        "How it is completed": ("methods", "param", "threads"),
        "What is written": ("output", "report", "plot", "overwrite"),
    },
    short_help="Draw a synthetic problem with known truth, complete it, and judge the methods.",
)
@click.option(
    "--shape", type=options.Listed(int, "30,30,30"), default="30,30,30", show_default=True, help="Size of every mode."
)
@click.option("--rank", type=click.IntRange(1), default=5, show_default=True, help="CP rank of the low-rank part X.")
@click.option(
    "--kind", type=click.Choice(RESIDUAL_LAWS), default="mixture-shifted", show_default=True, help="Law of the rest, E."
)
@click.option(
    "--missing-ratio",
    type=options.FiniteRange(0, 1, max_open=True),
    default=0.7,
    show_default=True,
    metavar="SHARE",
    help="Share of the entries that is hidden.",
)
@click.option(
    "--noise-std",
    type=options.FiniteRange(0),
    default=NOISE_STD,
    metavar="SD",
    help="Standard deviation of the noise on every entry; told to methods with a noise level.  [default: 0.0316]",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the problem and of the methods' draws."
)
@click.option(
    "--problem", type=options.File(), metavar="FILE.npz", help="Read the problem that -o has written; nothing is drawn."
)
@click.option("-o", "--output", type=options.File(), metavar="FILE.npz", help="Write the problem with its truth.")
@click.option(
    "--methods",
    type=options.Listed(str, "datc,fbcp"),
    default=DEFAULT_METHODS[TENSOR],
    show_default=True,
    metavar="a,b",
    shell_complete=_method_lists,
    help="Methods to complete it by, with commas between.",
)
@options.single("param")
@click.option("--report", type=options.File(), metavar="PATH", help="Write what --json prints.")
@click.option(
    "--plot",
    type=options.File(),
    metavar="FOLDER",
    help="Write figures: densities.png, weights.png, and convergence.png of methods that sample.",
)
@options.single("threads")
@options.single("overwrite")
@options.telling
@options.config(options.own_table)
@click.pass_context
def synth(
    ctx,
    methods,
    param,
    problem,
    output,
    report,
    plot,
    threads,
    overwrite,
    json,
    quiet,
    verbose,
    progress,
    seed,
    **drawn,
):
    """Draw a tensor L = X + E with X of low rank, hide entries of L with noise, complete it, and compare with the
    truth.

    The five kinds of E are zero; Gaussian with mean 0.1 and variance 0.01; sparse, a tenth uniform in [-2, 2]; a
    mixture of that with two Gaussians of mean zero; and one whose parts have other means. Printed are rank, relative
    errors (RRE) against L and X beside that of an oracle, and the mixture that was found beside the true one.
    """
    # What a configuration file says of every problem is no contradiction.
    unsaid = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)
    given = [key for key in DRAWN if ctx.get_parameter_source(key) not in unsaid]
    if problem is not None and given:
        raise click.UsageError(f"--problem has all that is drawn; leave out --{given[0].replace('_', '-')}", ctx)

    check_room()
    from ..bench import trial
    from ..bench.trial import files, text

    chosen = trial.Files(problem, output, report, plot, overwrite, options.consulted(ctx))
    chosen.check()
    source = trial.read(problem) if problem is not None else trial.draw(seed=seed, **drawn)
    if problem is not None and ctx.get_parameter_source("seed") is click.core.ParameterSource.DEFAULT:
        seed = source.problem.seed
    plans = trial.prepare(methods, len(source.problem.shape), source.problem.noise_std, param or {})
    if not quiet and verbose:
        for method, config in plans:
            echo(f"tdc: {method.name}: {config}", err=True)
    command = tuple((ctx.obj or {}).get("command", ()))
    trials = []
    with options.working(), shown(progress if progress is not None else not quiet) as monitor:
        for method, config in plans:
            trials.append(
                trial.run(
                    source,
                    method,
                    config,
                    seed=seed,
                    threads_limit=threads,
                    command=command,
                    outputs=chosen.named(plans),
                    monitor=monitor,
                    watched=plot is not None,
                )
            )
        files.write(chosen, source, trials)
    reports = [done.report for done in trials]
    if json:
        click.echo(files.to_json(reports).encode(errors="backslashreplace"), nl=False)
    if quiet:
        return
    for done in reports:
        for warning in done.warnings:
            echo(f"tdc: warning: {done.method['name']}: {_worded(warning)}", err=True)
    for name in files.unseen(trials) if plot is not None else ():
        echo(f"tdc: note: {name} tells no mixture and no CP weights and does not sample: no figure shows it", err=True)
    tell_compilation(sum(done.timing["compile"] for done in reports))
    if not json:
        parts = [text.problem(source), *map(text.trial, reports), *([text.comparison(reports)] if reports[1:] else [])]
        echo(*"\n\n".join(parts).split("\n"))
