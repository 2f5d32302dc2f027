"""`tdc complete-tensor`."""

import click

from . import messages, options
from .progress import shown

DEFAULT_METHOD = "datc"


def _file(name, help_text, metavar="PATH"):
    return click.option(name, type=options.File(), metavar=metavar, help=help_text)


@click.command(short_help="Fill in the missing entries of a tensor: spectra, traffic, faces, measurements.")
@click.argument("input", metavar="INPUT", type=options.File())
@click.option("-o", "--output", type=options.File(), required=True, help="File to write, or - for standard output.")
@_file("--mask", "Array that marks the missing entries: any number but 0 = missing.", "FILE[:NAME]")
@click.option("--invert-mask", is_flag=True, help="0 = missing instead, where the array says what is observed.")
@options.missing_ratio
@click.option(
    "--missing-pattern",
    metavar="entries|fibers:AXES",
    help="What --missing-ratio hides: single entries, or together all that share their indices in the named modes, as in fibers:0,1.  "
    "[default: entries]",
)
@options.add_noise
@_file("--reference", "The true tensor, for metrics where a mask is real.", "FILE[:NAME]")
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="How to complete; see 'tdc methods'.",
              shell_complete=options.method_names)  # fmt: skip
@click.option(
    "--ordered-modes",
    type=options.Listed(int, "0,1: numbers of modes from 0, with commas between"),
    default=(),
    metavar="MODES",
    help="Modes with an order in space or time, such as 0,1, counted from 0.",
)
@options.how_to_complete
@_file("--report", "Write the report, a JSON file.")
@_file("--uncertainty", "Write the standard deviation of every entry, in the units of the output, in any of the formats.")
@_file("--save-incomplete", "Write the tensor with its holes as NaN, 0 in integers, and beside it the mask as understood.")
@options.how_to_run
@options.config(options.own_table)
@click.pass_context
def complete_tensor(ctx, json, dry_run, quiet, verbose, progress, **chosen):
    """Fill in the missing entries of the tensor INPUT, an array with 2 to 6 modes: .npy, .npz, .mat, or TIFF; - is standard input.

    Where a file holds several arrays, FILE:NAME says which one is meant, as in data.npz:flow.

    What is missing is NaN, or marked by a mask, or simulated with --missing-ratio. Known entries come back bit for bit unless a noise
    level is given.
    """
    if json and str(chosen["output"]) == "-":
        raise click.UsageError("--json and -o - both want standard output; write the report with --report FILE", ctx)

    from .. import run as pipeline
    from ..run import tensors

    job = pipeline.TensorJob(**options.job_fields(ctx, chosen))
    plan = tensors.prepare(job)
    messages.tell(plan, quiet, verbose)
    if dry_run:
        messages.describe(plan, json)
        return
    pipeline.sweep([job])
    with options.working(), shown(progress if progress is not None else not quiet) as monitor:
        done = tensors.execute(plan, monitor)
    messages.tell_done(plan, done, json, quiet)
