"""`tdc complete-image`."""

from pathlib import Path

import click

from . import options
from .progress import shown

DEFAULT_METHOD = "patches"


def _file(name, help_text):
    return click.option(name, type=click.Path(path_type=Path), metavar="FILE", help=help_text)


@click.command()
@click.argument("input", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="File to write, or a folder to write into.")
@options.what_is_missing
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="How to complete; see 'tdc methods'.",
              shell_complete=options.method_names)  # fmt: skip
@options.how_to_complete
@_file("--report", "Write the report, a JSON file.")
@_file("--uncertainty", "Write the standard deviation of every entry in the output's units: .npy or .tif, or .png as a picture.")
@_file("--panel", "Write a PNG of the incomplete, completed, uncertain and true pictures side by side.")
@_file("--save-incomplete", "Write the picture with its holes as 0.")
@options.how_to_run
@options.config(options.own_table)
@click.pass_context
def complete_image(
    ctx,
    input,
    output,
    method,
    parameters,
    missing_pattern,
    report,
    save_incomplete,
    as_json,
    dry_run,
    quiet,
    verbose,
    progress,
    overwrite,
    **chosen,
):
    """Fill in the missing pixels of the picture INPUT: 8-bit PNG, JPEG or TIFF, grey or RGB, or a .npy array of floats.

    What is missing is said by a mask, white = missing, by NaN in an array, or simulated with --missing-ratio. Known pixels
    come back bit for bit unless a noise level is given.
    """
    if missing_pattern and chosen["missing_ratio"] is None:
        raise click.UsageError("--missing-pattern needs a --missing-ratio", ctx)

    from .. import pipeline

    given = {key: chosen.pop(key) for key in options.METHOD_OPTIONS}
    job = pipeline.Job(
        input=input,
        output=output / input.name if output.is_dir() else output,
        missing_pattern=missing_pattern or "entries",
        method=method,
        parameters=options.method_parameters(given, parameters),
        report=report,
        incomplete=save_incomplete,
        overwrite=overwrite,
        command=tuple((ctx.obj or {}).get("command", ())),
        **chosen,
    )
    plan = pipeline.prepare(job)
    _tell(plan, quiet, verbose)
    if dry_run:
        _describe(plan, as_json)
        return
    with options.working(), shown(progress if progress is not None else not quiet) as monitor:
        done = pipeline.execute(plan, monitor)
    if not quiet:
        for text in done.warnings[len(plan.notes) + len(plan.warnings) :]:
            click.echo(f"tdc: warning: {text}", err=True)
    if as_json:
        click.echo(done.to_json().encode(errors="backslashreplace"), nl=False)
    elif not quiet:
        click.echo(done.summary())


def _tell(plan, quiet, verbose):
    """Print what the user should know before the work begins."""
    if quiet:
        return
    for text in plan.notes:
        click.echo(f"tdc: note: {text}", err=True)
    for text in plan.warnings:
        click.echo(f"tdc: warning: {text}", err=True)
    if verbose:
        click.echo(f"tdc: {plan.method.name}: {plan.config}", err=True)


def _describe(plan, as_json):
    """Print what a dry run would do."""
    job = plan.job
    planned = {
        "input": plan.media.path,
        "shape": list(plan.media.values.shape),
        "missing": plan.missing,
        "method": plan.method.name,
        "outputs": {key: str(path) for key, path in job.outputs.items()},
    }
    if as_json:
        import json

        click.echo(json.dumps(planned, indent=2, ensure_ascii=False))
        return
    source = {"mask": f"by mask {job.mask}", "nan": "as NaN", "simulated": "simulated"}[plan.missing["source"]]
    click.echo(
        f"{plan.media.path}: {plan.missing['count']} of {plan.observed.size} entries missing ({plan.missing['ratio']:.1%}) "
        f"{source}, to be completed by {plan.method.name}"
    )
    for key, path in planned["outputs"].items():
        click.echo(f"  {key}: {path}")
