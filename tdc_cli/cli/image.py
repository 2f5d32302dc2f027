"""`tdc complete-image`."""

import os
from pathlib import Path

import click

from ..names import PICTURE, STANDARD
from . import options, single
from .folder import complete_many


@options.completing("Fill in the missing pixels of pictures and of folders of pictures.")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=options.File())
@click.option(
    "-o",
    "--output",
    type=options.File(str),
    required=True,
    help="File to write, or a folder to write into, or - for standard output.",
)
@options.declared(PICTURE)
@options.dry_run
@options.telling
@options.config(options.own_table)
@click.pass_context
def complete_image(
    ctx, inputs, output, mask_suffix, recursive, fail_fast, json, dry_run, quiet, verbose, progress, **chosen
):
    """Fill in the missing pixels of the picture INPUT: PNG, JPEG, JPEG XL, JPEG 2000, TIFF, WebP, OpenEXR, BMP or a
    .npy array; - is standard input.

    Several pictures, or a folder of them, are completed into the folder OUTPUT, which mirrors the folder; what else is
    written goes to folders too.

    What is missing is said by a mask, white = missing, by transparency, by boxes, by a colour, by an infrared scan, by
    values that stand for it, as NaN in floats does, or simulated with --missing-ratio. Known pixels come back bit for
    bit unless a noise level is given or the output is a JPEG.
    """
    if json and output == STANDARD:
        raise click.UsageError("--json and -o - both want standard output; write the report with --report FILE", ctx)
    if chosen["overwrite"] and chosen["skip_existing"]:
        raise click.UsageError("--overwrite and --skip-existing exclude each other", ctx)
    if mask_suffix and not (chosen["mask"] and chosen["mask"].is_dir()):
        raise click.UsageError("--mask-suffix needs a --mask that is a folder", ctx)

    request = single.request(ctx, PICTURE, "", Path(output), chosen)
    how = {"as_json": json, "dry_run": dry_run, "quiet": quiet, "verbose": verbose, "progress": progress}
    if len(inputs) > 1 or inputs[0].is_dir():
        if output == STANDARD or Path(STANDARD) in inputs:
            raise click.UsageError("- stands for one picture; several are read from files and written to a folder", ctx)
        if request.pages:
            raise click.UsageError("--pages is for one file", ctx)
        many = {"recursive": recursive, "mask_suffix": mask_suffix, "fail_fast": fail_fast}
        return complete_many(request, inputs, **many, **how)
    one = _of_one(request, inputs[0], output.endswith(os.sep), mask_suffix)
    if request.pages:
        if json:
            raise click.UsageError("--json tells of one picture; name a --page, or leave it out", ctx)
        if request.cluster is not None:
            raise click.UsageError(
                "--cluster is for one picture or a folder of them; name a --page, or leave it out", ctx
            )
        del how["as_json"]
        return single.complete_pages(one, **how)
    return single.complete(one, **how)


def _of_one(request, path, into_folder, mask_suffix):
    """Request for one picture: its name where the output is a folder, its mask where masks are in a folder."""
    from dataclasses import replace

    from ..run.folders import Companions

    into_folder = into_folder or request.output.is_dir()
    place = Path(path.name)
    return replace(
        request,
        input=path,
        output=_in_folder(request.output, path, request.format) if into_folder else request.output,
        mask=Companions(request.mask, mask_suffix, "mask").of(place, path),
        reference=Companions(request.reference, "", "reference").of(place, path),
        make_folders=into_folder and request.output.absolute().parent.is_dir(),
    )


def _in_folder(folder, input, extension):
    """Path in `folder` for the result of `input`: its name, with another extension where one is given."""
    if str(input) == STANDARD:
        raise click.UsageError(
            f"-o {folder} is a folder, and standard input has no name; name a file in it", click.get_current_context()
        )
    return folder / (input.with_suffix(f".{extension}") if extension else input).name
