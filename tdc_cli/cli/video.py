"""`tdc complete-video`."""

import click

from ..names import CLIP
from . import options, single


@options.completing("Fill in the missing pixels of a clip: text, scratches, lost blocks or frames, noise.")
@click.argument("input", metavar="INPUT", type=options.File())
@click.option(
    "-o",
    "--output",
    type=options.File(),
    required=True,
    metavar="PATH",
    help="Clip to write: a file, or a folder of frames.",
)
@options.declared(CLIP)
@options.dry_run
@options.telling
@options.config(options.own_table)
@click.pass_context
def complete_video(ctx, input, output, json, dry_run, quiet, verbose, progress, **chosen):
    """Fill in the missing pixels of the clip INPUT: a video file, a folder of frames, a TIFF with a page for each
    frame, an animated GIF, PNG or WebP, or a .npy array (frames, height, width[, channels]).

    Frames without holes and without noise pass as they are; sound, subtitles, rate and times are kept. Long clips are
    completed in chunks, so that memory does not grow with the length, and --resume goes on where a run stopped.
    """
    request = single.request(ctx, CLIP, input, output, chosen)
    return single.complete(request, as_json=json, dry_run=dry_run, quiet=quiet, verbose=verbose, progress=progress)
