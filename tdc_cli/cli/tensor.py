"""`tdc complete-tensor`."""

import click

from ..names import STANDARD, TENSOR
from . import options, single


@options.completing("Fill in the missing entries of a tensor: spectra, traffic, faces, measurements.")
@click.argument("input", metavar="INPUT", type=options.File())
@click.option("-o", "--output", type=options.File(), required=True, help="File to write, or - for standard output.")
@options.declared(TENSOR)
@options.dry_run
@options.telling
@options.config(options.own_table)
@click.pass_context
def complete_tensor(ctx, input, output, json, dry_run, quiet, verbose, progress, **chosen):
    """Fill in the missing entries of the tensor INPUT, an array with 2 to 6 modes: .npy, .npz, .mat, or TIFF; - is
    standard input.

    Where a file holds several arrays, FILE:NAME says which one is meant, as in data.npz:flow.

    What is missing is NaN, or marked by a mask, or simulated with --missing-ratio. Known entries come back bit for bit
    unless a noise level is given.
    """
    if json and str(output) == STANDARD:
        raise click.UsageError("--json and -o - both want standard output; write the report with --report FILE", ctx)
    request = single.request(ctx, TENSOR, input, output, chosen)
    return single.complete(request, as_json=json, dry_run=dry_run, quiet=quiet, verbose=verbose, progress=progress)
