"""`tdc complete-video`."""

import contextlib
from fractions import Fraction

import click

from . import messages, options
from .progress import shown

DEFAULT_METHOD = "patches"
LEAST_RATE, MOST_RATE = Fraction(1, 1000), 1000


class Chunk(click.ParamType):
    """A number of frames, or the word ``auto``."""

    name = "auto|N"

    def convert(self, value, param, ctx):
        if value is None or isinstance(value, int):
            return value
        if value == "auto":
            return None
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number of frames nor 'auto'", param, ctx)
        if number < 1:
            self.fail(f"{number} is less than 1", param, ctx)
        return number


class Rate(click.ParamType):
    """Frames a second, an exact number above 0: ``25``, ``30000/1001`` or ``23.976``."""

    name = "rate"

    def convert(self, value, param, ctx):
        if isinstance(value, Fraction):
            return value
        try:
            rate = Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no rate; give frames a second, such as 25 or 30000/1001", param, ctx)
        if not LEAST_RATE <= rate <= MOST_RATE:
            self.fail(f"{value} is not in the range {LEAST_RATE} to {MOST_RATE} frames a second", param, ctx)
        return rate


def _file(name, help_text):
    return click.option(name, type=options.File(), metavar="PATH", help=help_text)


@click.command(short_help="Fill in the missing pixels of a clip: text, scratches, lost blocks or frames, noise.")
@click.argument("input", metavar="INPUT", type=options.File())
@click.option("-o", "--output", type=options.File(), required=True, metavar="PATH", help="Clip to write: a file, or a folder of frames.")
@click.option("--codec", metavar="NAME", help="Of a video file, such as ffv1, without loss; see 'tdc info'.  [default: by the format]")
@click.option("--quality", type=click.IntRange(1, 100), metavar="N", help="Of a codec with loss, 1 to 100.  [default: by the codec]")
@click.option(
    "--mask",
    type=options.File(),
    metavar="PATH|alpha",
    help="Picture that marks the missing pixels of all frames, white = missing; or a folder or clip with one for each frame; or the word "
    "alpha: what is transparent is missing.",
)
@click.option(
    "--mask-frames", metavar="FRAMES", help="Frames that --mask is for, counted from 0: a slice such as 0::2, or a list such as 0,4,7."
)
@options.how_masks_are_read
@options.missing_ratio
@click.option(
    "--missing-pattern",
    type=click.Choice(options.CLIP_PATTERNS),
    help="What --missing-ratio hides in each frame; 'blocks' move, 'frames' loses whole frames.  [default: entries]",
)
@options.add_noise
@_file("--reference", "The true clip, for metrics where a mask is real.")
@click.option("--frames", metavar="START:STOP", help="Work on these frames only, counted from 0; the others pass as they are.")
@click.option("--frame-rate", type=Rate(), metavar="RATE", help="Frames a second, 25 or 30000/1001, of an input that holds no times.")
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="How to complete; see 'tdc methods'.",
              shell_complete=options.method_names)  # fmt: skip
@options.how_to_complete
@click.option(
    "--chunk",
    type=Chunk(),
    default="auto",
    show_default=True,
    help="Frames that are completed together; more take more memory.",
)
@_file("--report", "Write the report, a JSON file.")
@_file("--uncertainty", "Write the standard deviation of every entry in the output's units: .npy, or .tif with a page for each frame.")
@_file("--panel", "Write a PNG of some frames, incomplete, completed, uncertain and true, one below the other.")
@_file("--side-by-side", "Write a clip of the incomplete and the completed frames next to each other, and the true ones where known.")
@_file("--html", "Write a page to judge the result by, a file for the browser that needs no other.")
@_file("--save-incomplete", "Write the clip with its holes as 0, NaN in floats.")
@options.how_to_run
@click.option("--resume", is_flag=True, help="Go on with the finished chunks of a run that was interrupted or killed.")
@options.config(options.own_table)
@click.pass_context
def complete_video(ctx, json, dry_run, quiet, verbose, progress, **chosen):
    """Fill in the missing pixels of the clip INPUT: a video file, a folder of frames, a TIFF with a page for each frame, an animated GIF,
    PNG or WebP, or a .npy array (frames, height, width[, channels]).

    Frames without holes and without noise pass as they are; sound, subtitles, rate and times are kept. Long clips are completed in chunks,
    so that memory does not grow with the length, and --resume goes on where a run stopped.
    """
    from ..run import clip, sweep

    job = clip.ClipJob(**options.job_fields(ctx, chosen))
    wanted = progress if progress is not None else not quiet
    with shown(wanted) as monitor:
        plan = clip.prepare(job, monitor)
    if not quiet:
        _tell(plan, verbose, dry_run)
    if dry_run:
        _describe(plan, json)
        return
    sweep([job])
    with _kept(plan, quiet), options.working(), shown(wanted) as monitor:
        done = clip.execute(plan, monitor)
    messages.tell_done(plan, done, json, quiet)


@contextlib.contextmanager
def _kept(plan, quiet):
    """If the block does not come to its end, say where finished chunks are kept."""
    try:
        yield
    except BaseException:
        if plan.store.used and not quiet:
            kept = f"finished chunks are kept in {plan.store.folder}"
            click.echo(f"tdc: note: {kept}; the same command with --resume goes on from there", err=True)
        raise


def _tell(plan, verbose, dry_run):
    """Print what the user should know before the work begins."""
    from ..run import estimate

    lack = estimate.too_much(plan.clip.path, plan.bytes)
    messages.say(plan, lack and f"{lack}; give a smaller --chunk", verbose)
    if not dry_run:
        click.echo(f"tdc: note: {_chunks(plan)}", err=True)


def _chunks(plan):
    """In words, how the clip is divided and what that takes."""
    from ..run import estimate

    if not plan.chunks:
        return "nothing to complete"
    count, longest = len(plan.chunks), max(chunk.stop - chunk.start for chunk in plan.chunks)
    how = f"{count} chunks of up to {longest} frames, overlaps and all" if count > 1 else f"one chunk of {longest} frames"
    return f"{how}, {estimate.in_words(plan.estimate)}"


def _describe(plan, as_json):
    """Print what a dry run would do."""
    clip, job = plan.clip, plan.job
    outputs = {key: str(path) for key, path in job.outputs.items()}
    if as_json:
        import json

        planned = {
            "input": clip.path,
            "shape": [clip.count, *clip.shape],
            "frames": clip.count,
            "rate": None if clip.rate is None else str(clip.rate),
            "missing": plan.missing,
            "method": plan.method.name,
            "chunks": [{"first": c.first, "end": c.end, "start": c.start, "stop": c.stop} for c in plan.chunks],
            "outputs": outputs,
            "warnings": [*plan.notes, *plan.warnings],
            "estimate": plan.estimate,
        }
        click.echo(json.dumps(planned, indent=2, ensure_ascii=False))
        return
    changed = sum(plan.changed(number) for number in range(clip.count))
    click.echo(
        f"{clip.path}: {clip.count} frames of {clip.shape[1]}x{clip.shape[0]}, {plan.missing['ratio']:.1%} of the entries missing, "
        f"{changed} frames to be completed by {plan.method.name}"
    )
    for key, path in outputs.items():
        click.echo(f"  {key}: {path}")
    click.echo(f"  {_chunks(plan)}")
