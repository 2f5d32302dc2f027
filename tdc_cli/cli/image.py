"""`tdc complete-image`."""

import os
from pathlib import Path

import click

from . import messages, options
from .folder import complete_many
from .progress import shown

DEFAULT_METHOD = "patches"


def _file(name, help_text):
    return click.option(name, type=options.File(), metavar="PATH", help=help_text)


@click.command(short_help="Fill in the missing pixels of pictures and of folders of pictures.")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=options.File())
@click.option(
    "-o", "--output", type=options.File(str), required=True, help="File to write, or a folder to write into, or - for standard output."
)
@options.how_to_write
@options.what_is_missing
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="How to complete; see 'tdc methods'.",
              shell_complete=options.method_names)  # fmt: skip
@options.how_to_complete
@_file("--report", "Write the report, a JSON file. For a folder, this and the next four name folders.")
@_file("--html", "Write a page to judge the result by, a file for the browser that needs no other.")
@_file("--uncertainty", "Write the standard deviation of every entry in the output's units: .npy or .tif, or .png as a picture.")
@_file("--panel", "Write a PNG of the incomplete, completed, uncertain and true pictures side by side.")
@_file("--save-incomplete", "Write the picture with its holes as 0, NaN in floats, and beside it the mask as understood.")
@options.how_to_run_many
@options.how_to_run
@options.config(options.own_table)
@click.pass_context
def complete_image(
    ctx, inputs, output, mask_suffix, recursive, jobs, fail_fast, json, dry_run, quiet, verbose, progress, **chosen
):
    """Fill in the missing pixels of the picture INPUT: PNG, JPEG, TIFF, WebP, BMP or a .npy array; - is standard input.

    Several pictures, or a folder of them, are completed into the folder OUTPUT, which mirrors the folder; what else is written goes to
    folders too.

    What is missing is said by a mask, white = missing, by transparency, by a colour, by NaN in floats, or simulated with
    --missing-ratio. Known pixels come back bit for bit unless a noise level is given or the output is a JPEG.
    """
    if json and output == "-":
        raise click.UsageError("--json and -o - both want standard output; write the report with --report FILE", ctx)
    fields = options.job_fields(ctx, chosen)
    if chosen["overwrite"] and chosen["skip_existing"]:
        raise click.UsageError("--overwrite and --skip-existing exclude each other", ctx)
    if mask_suffix and not (chosen["mask"] and chosen["mask"].is_dir()):
        raise click.UsageError("--mask-suffix needs a --mask that is a folder", ctx)

    from .. import run as pipeline

    job = pipeline.Job(input="", output=Path(output), **fields)
    how = {"as_json": json, "dry_run": dry_run, "quiet": quiet, "verbose": verbose, "progress": progress}
    if len(inputs) > 1 or inputs[0].is_dir():
        if output == "-" or Path("-") in inputs:
            raise click.UsageError("- stands for one picture; several are read from files and written to a folder", ctx)
        return complete_many(job, inputs, recursive=recursive, mask_suffix=mask_suffix, jobs=jobs, fail_fast=fail_fast, **how)
    return _complete_one(_single(job, inputs[0], output.endswith(os.sep), mask_suffix), **how)


def _single(job, path, into_folder, mask_suffix):
    """Job for one picture: its name where the output is a folder, its mask where masks are in a folder."""
    from dataclasses import replace

    from ..run.folders import Companions

    into_folder = into_folder or job.output.is_dir()
    place = Path(path.name)
    return replace(
        job,
        input=path,
        output=_in_folder(job.output, path, job.format) if into_folder else job.output,
        mask=Companions(job.mask, mask_suffix, "mask").of(place, path),
        reference=Companions(job.reference, "", "reference").of(place, path),
        make_folders=into_folder and job.output.absolute().parent.is_dir(),
    )


def _complete_one(job, *, as_json, dry_run, quiet, verbose, progress):
    from .. import run as pipeline
    from ..errors import OutputExists

    try:
        plan = pipeline.prepare(job)
    except OutputExists:
        _skipped(job, quiet)
        return
    messages.tell(plan, quiet, verbose)
    if dry_run:
        messages.describe(plan, as_json)
        return
    pipeline.sweep([job])
    try:
        with options.working(), shown(progress if progress is not None else not quiet) as monitor:
            done = pipeline.execute(plan, monitor)
    except options.Failed as failed:
        if not (job.skip_existing and isinstance(failed.error, OutputExists)):
            raise
        _skipped(job, quiet)  # another run was quicker
        return
    messages.tell_done(plan, done, as_json, quiet)


def _in_folder(folder, input, extension):
    """Path in `folder` for the result of `input`: its name, with another extension where one is given."""
    if str(input) == "-":
        raise click.UsageError(f"-o {folder} is a folder, and standard input has no name; name a file in it", click.get_current_context())
    return folder / (input.with_suffix(f".{extension}") if extension else input).name


def _skipped(job, quiet):
    if not quiet:
        click.echo(f"tdc: note: {job.output}: exists already and is skipped", err=True)
