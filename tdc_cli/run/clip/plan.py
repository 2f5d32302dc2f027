"""Everything about a clip that can be found before any work."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ... import methods
from ...errors import ConfigError, MaskError
from ...media import STANDARD
from ...media.video import check_clip, read_clip
from ...view.side_by_side import Layout
from .. import completing, options, outputs
from ..cost import clip_cost
from . import holes
from .chunks import Chunk, divide
from .given import Given, Survey, check_alike, survey
from .job import ClipJob, frame_numbers, frame_range
from .store import Store

UNCERTAINTY_FORMATS = (".npy", ".tif", ".tiff")
# Memory that a chunk may take where the user names no number of frames, if that is possible at all.
CHUNK_BYTES = 1e9


@dataclass(frozen=True)
class Plan:
    """A job that has passed every check; the clip has been looked at, but nothing of it is held.

    Attributes
    ----------
    job : ClipJob
    given : Given
    method : methods.Method
    config : dataclass of the method
    survey : Survey
    chunks : tuple of Chunk
    seconds, bytes : float
        What the work will take on one core.
    missing : dict
        As in the report.
    notes, warnings : tuple of str
    spent : float
        Seconds spent so far.
    store : Store
        Where finished chunks are kept.
    """

    job: ClipJob
    given: Given
    method: methods.Method
    config: object
    survey: Survey
    chunks: tuple[Chunk, ...]
    seconds: float
    bytes: float
    missing: dict
    notes: tuple
    warnings: tuple
    spent: float
    store: Store

    @property
    def clip(self):
        """The input."""
        return self.given.clip

    @property
    def scale(self):
        """Factor from the method's units to those of the file."""
        return self.clip.full_range or 1.0

    @property
    def gives_deviations(self):
        """Whether standard deviations come with the estimates."""
        return self.method.uncertainty and getattr(self.config, "calibrate", True)

    @property
    def estimate(self):
        """Seconds of one core and bytes of memory, ready for JSON; see `cost`."""
        return {"seconds": round(self.seconds, 1), "bytes": int(self.bytes)}

    def changed(self, number):
        """Whether the frame of this number is estimated."""
        inside = self.given.begin <= number < self.given.end
        return bool(inside and (self.survey.counts[number] or completing.estimates_known(self.config)))


def prepare(job, monitor=methods.silent):
    """Check everything that can be checked before any work, and look at the clip and its holes once.

    Parameters
    ----------
    job : ClipJob
    monitor : callable

    Returns
    -------
    Plan

    Raises
    ------
    ConfigError, InputError, MaskError, OutputError
        See `pipeline.prepare`.
    """
    start = time.perf_counter()
    method = methods.get(job.method)
    options.check_masks(job)
    options.check_numbers(job, method)
    if job.mask_frames is not None and (job.mask is None or str(job.mask) == "alpha"):
        raise ConfigError("--mask-frames needs a --mask that is a picture or a clip")
    if STANDARD in (str(job.input), str(job.output)):
        raise ConfigError("- stands for standard input or output; a clip is read from and written to a file or a folder: name one")
    outputs.check_paths(job, replace=job.overwrite, folders=("clip", "incomplete", "side_by_side"))
    outputs.check_extensions(job, UNCERTAINTY_FORMATS)
    clip = _at_rate(read_clip(job.input), job.frame_rate)
    begin, end = frame_range(job.frames, clip.count)
    numbers = frame_numbers(job.mask_frames, clip.count, "--mask-frames") if job.mask_frames is not None else tuple(range(clip.count))
    order = len(clip.colour_shape) + 1
    config = options.configure(job, method, clip.full_range, ordered_modes=(0, 1, order - 1), frames=order - 1)
    options.check_order(method, order, f"; {'grey' if order == 3 else 'coloured'} frames one after the other have order {order}")
    lost = _check_outputs(job, clip)
    found, described, mask_sha256, notes, warnings = holes.decide(job, clip, numbers, begin, end)
    simulated = job.mask is None and (job.missing_ratio is not None or job.add_noise)
    truth = read_clip(job.reference) if job.reference is not None else clip if simulated else None
    if truth is not None and truth is not clip:
        check_alike(truth, clip)
    given = Given(clip, found, begin, end, job.add_noise, job.seed, truth)
    seen = survey(given, monitor)
    _check_holes(job, given, seen, described, notes, warnings)
    if truth is not None and truth.dtype.kind == "f" and not np.isfinite([seen.low, seen.high]).all():
        given = replace(given, truth=None)
        warnings.append("metrics are null: the truth has entries that are not finite")
    count = int(seen.counts.sum())
    described |= {"count": count, "pixels": int(seen.pixels.sum()), "ratio": count / (clip.count * int(np.prod(given.shape)))}
    described["grey_levels"] = seen.grey_levels
    changed = np.flatnonzero(seen.counts) if not completing.estimates_known(config) else np.arange(begin, end)
    estimated = np.full(clip.count, np.prod(given.shape)) if completing.estimates_known(config) else seen.counts
    most = job.chunk or _usual_chunk(method, given.shape, int(estimated.max()))
    chunks = divide(changed, begin, end, most, method.context)
    _check_chunks(given, seen, method, chunks, most)
    windows = [(c.stop - c.start, int(estimated[c.start : c.stop].sum())) for c in chunks]
    seconds, space = clip_cost(method, int(np.prod(given.shape)), windows)
    store = Store(job.work_folder, _fingerprint(job, given, config, chunks, mask_sha256))
    store.check(resume=job.resume, replace=job.overwrite, output=job.output)
    return Plan(
        job, given, method, config, seen, chunks, seconds, space, described,
        (*clip.notes, *notes), tuple(lost + warnings), time.perf_counter() - start, store,
    )  # fmt: skip


def _at_rate(clip, rate):
    """The clip, at the rate that the user gives, if any; ConfigError where the clip has times of its own."""
    if rate is None:
        return clip
    if clip.times is not None:
        own = f"{clip.rate} frames a second" if clip.rate else "times for its frames"
        raise ConfigError(f"--frame-rate is for inputs that hold no times; {clip.path} has {own}: leave it out")
    return clip.at_rate(rate)


def _check_outputs(job, clip):
    """Refuse formats that cannot hold what is to be written, with an OutputError; what the output cannot keep, a list of str."""
    lost = check_clip(job.output, clip, codec=job.codec, quality=job.quality)
    if job.incomplete is not None:
        check_clip(job.incomplete, clip)
    if job.uncertainty is not None:
        check_clip(job.uncertainty, deviations(clip))
    if job.side_by_side is not None:
        check_clip(job.side_by_side, joined(clip, layout_of(clip, False)))
    return lost


def deviations(clip):
    """The clip that standard deviations make: an array of floats as long as `clip`, with times as that has."""
    dtype = np.dtype(np.float64 if clip.dtype == np.float64 else np.float32)
    return replace(clip, shape=clip.colour_shape, dtype=dtype, mode="array", bits=None, details={}, source=None)


def layout_of(clip, truth):
    """How frames lie side by side, with the truth or without."""
    height, width = clip.shape[:2]
    return Layout(height, width, ("incomplete", "completed", *(["truth"] if truth else [])))


def joined(clip, layout):
    """The clip that joined frames make, as long as `clip`, with its times and its sound."""
    return replace(clip, shape=layout.shape, dtype=np.dtype(np.uint8), mode="RGB", bits=None, details={})


def _check_holes(job, given, seen, described, notes, warnings):
    """Refuse holes that leave nothing to do or nothing to start from, and say what is odd about them."""
    clip = given.clip
    entries = int(np.prod(given.shape))
    inside = seen.counts[given.begin : given.end]
    if not inside.any():
        if not job.names_holes:
            transparent = " (or --mask alpha: what is transparent)" if clip.has_alpha else ""
            raise ConfigError(
                f"{clip.path}: nothing says what is missing; give --mask PATH (white = missing){transparent}, "
                "or --missing-ratio 0.5 to hide half of a whole clip"
            )
        if job.mask_color is not None:
            raise MaskError(f"{clip.path}: no pixel of any frame has the color {job.mask_color}; give another color or a --mask-tolerance")
        if job.mask is not None:
            notes.append(f"nothing is marked as missing in frames {given.begin} to {given.end - 1}")
    if (inside == entries).all():
        raise MaskError(f"{clip.path}: every entry of every frame is missing: nothing is left to complete from")
    if seen.nan:
        if described["source"] == "simulated" and described["pattern"] is None:
            described["source"] = "nan"
        else:
            warnings.append(f"{clip.path}: {seen.nan} further entries are NaN and count as missing")
    if isinstance(given.holes, holes.Moving) and inside.sum() > 0.5 * inside.size * entries:
        warnings.append(
            f"mask {job.mask} marks {inside.sum() / (inside.size * entries):.1%} of the pixels as missing; white = missing: if it is meant "
            "the other way round, " + ("leave out --invert-mask" if job.invert_mask else "use --invert-mask")
        )


def _usual_chunk(method, shape, densest):
    """Frames of a chunk whose memory stays below `CHUNK_BYTES`, or one; `densest` entries of a frame are to be estimated at most."""
    entries = int(np.prod(shape))
    for most in range(method.chunk, 1, -1):
        _, space = clip_cost(method, entries, [(most + 2 * method.context, (most + 2 * method.context) * densest)])
        if space <= CHUNK_BYTES:
            return most
    return 1


def _check_chunks(given, seen, method, chunks, most):
    """Refuse chunks that have nothing observed, and lost frames where the method looks at each frame alone; MaskError."""
    lost = seen.counts == int(np.prod(given.shape))
    if method.context == 0 and lost.any():
        raise MaskError(
            f"frame {int(np.argmax(lost))} of {given.clip.path} is missing altogether, and method {method.name} completes each frame by "
            "itself; use another method, such as patches"
        )
    for chunk in chunks:
        if lost[chunk.start : chunk.stop].all():
            raise MaskError(
                f"frames {chunk.start} to {chunk.stop - 1} of {given.clip.path} are all missing altogether, and no more than {most} are "
                f"completed at a time; give a larger --chunk, up to {given.clip.count}"
            )


def _fingerprint(job, given, config, chunks, mask_sha256):
    """What the finished chunks depend on, ready for JSON."""
    truth = given.truth
    return {
        "input": given.clip.sha256,
        "mask": mask_sha256,
        "reference": None if truth is None else truth.sha256,
        "method": f"{job.method} {config}",
        "holes": [
            *(job.missing_ratio, job.missing_pattern, job.mask_frames, job.invert_mask, job.mask_threshold, job.mask_dilate),
            *(job.mask_color, job.mask_tolerance, None if job.mask is None else str(Path(job.mask).name)),
        ],
        "noise": job.add_noise,
        "seed": job.seed,
        "chunks": [[c.first, c.end, c.start, c.stop] for c in chunks],
    }
