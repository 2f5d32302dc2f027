"""Everything that can be found before any work."""

import hashlib
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .. import holes, methods
from ..errors import ConfigError, InputError, MaskError, OutputExists
from ..holes import in_any_channel
from ..media.files import absence, check_file, digest
from ..media.limits import keeping_to
from ..memory import budget
from ..methods.solve import Unit, in_unit
from ..names import CLIP, PICTURE, STANDARD, TENSOR
from . import configure, outputs, sinks, sources
from .division import divided
from .frame_numbers import frame_numbers, frame_range
from .frames import Incomplete, Survey, survey
from .holes import Decision, decide, may_be_copied, with_values
from .job import deviation_dtype
from .regions import Region
from .reporting import missing_of
from .request import MAIN, Request, check
from .solve import estimates_known, gives_uncertainty
from .store import Folder, Memory
from .unchanged import Snapshot

# Bytes of an entry that waits for a worker elsewhere: a double and whether it is observed, as they are and as they are
# sent.
_SENT = 18


@dataclass(frozen=True)
class Plan:
    """A request that has passed every check.

    Attributes
    ----------
    request : Request
    incomplete : Incomplete
        A clip has been looked at, but nothing of it is held.
    decision : Decision
        What says which entries are missing.
    method : methods.Method
    config : dataclass of the method
    survey : Survey
    regions : tuple of Region
    tiled : bool
        Whether frames are cut into rows and columns.
    workers : int
        Regions that are worked on at a time.
    seconds, bytes : float
        What the work will take on one core, and of all processes.
    missing : dict
        As in the report.
    notes, warnings : tuple of str
    spent : float
        Seconds spent so far.
    store : store.Folder or store.Memory
        Where finished regions are kept.
    sink : sinks.Sink
    files : Snapshot
        Of what is read.
    further : dict
        Keywords for the method beyond those of all methods.
    answer : int
        Which of several answers it is for, counted from 1; see `answers`.
    """

    request: Request
    incomplete: Incomplete
    decision: Decision
    method: methods.Method
    config: object
    survey: Survey
    regions: tuple[Region, ...]
    tiled: bool
    workers: int
    seconds: float
    bytes: float
    missing: dict
    notes: tuple
    warnings: tuple
    spent: float
    store: Folder | Memory
    sink: object
    files: Snapshot
    further: dict
    answer: int = 1

    @property
    def source(self):
        """The input."""
        return self.incomplete.source

    @property
    def shape(self):
        """Of all that is completed, frames as the last mode."""
        return *self.source.colour_shape, *(self.source.count,) * self.incomplete.in_time

    @property
    def scale(self):
        """Factor from the method's units to those of the file."""
        return self.source.full_range or 1.0

    @property
    def sd_dtype(self):
        """Type of standard deviations."""
        return deviation_dtype(self.source.dtype)

    @property
    def gives_uncertainty(self):
        """Whether standard deviations come with the estimates."""
        return gives_uncertainty(self.method, self.config)

    @property
    def answers(self):
        """Plans for one answer each, a tuple. Only draws differ: simulated holes and noise are of the first seed."""
        first, *others = self.request.answers
        return replace(self, request=first), *(
            replace(self, request=other, store=self.store.of(number), answer=number)
            for number, other in enumerate(others, 2)
        )

    @property
    def shares(self):
        """Whether the method decides something once for all regions: those of one picture."""
        return self.tiled and not self.incomplete.in_time

    @property
    def estimate(self):
        """Seconds of one core and bytes of memory, ready for JSON; see `cost`."""
        return {"seconds": round(self.seconds, 1), "bytes": int(self.bytes)}

    @property
    def shrinks(self):
        """Whether fewer frames of a clip could be completed at a time."""
        return self.incomplete.in_time and any(region.end - region.first > 1 for region in self.regions)

    @property
    def described(self):
        """The entry `input` of the report."""
        source = self.source
        shape = list(source.shape)
        said = {
            "path": source.path,
            "sha256": source.sha256,
            "shape": shape,
            "dtype": str(source.dtype),
            "mode": source.mode,
        }
        if not self.incomplete.in_time:
            return said
        rate = None if source.rate is None else str(source.rate)
        return said | {"shape": [source.count, *shape], "frames": source.count, "rate": rate}

    def by_workers(self, count):
        """The same on so many workers elsewhere, or on as many as regions can be held for; with one thread each unless
        asked.

        What travels to them waits here meanwhile: values, what is observed, and both once more while they are sent.
        """
        pixels = int(np.prod(self.source.shape[:2]))
        channels = self.incomplete.entries // pixels
        largest = max((_SENT * channels * _seen_pixels(region) for region in self.regions), default=1)
        allowed = budget(self.request.memory)
        if allowed is not None:
            count = max(1, min(count, int(allowed // largest)))
        return replace(self, workers=count, request=replace(self.request, threads=self.request.threads or 1))

    def changed(self, number):
        """Whether the frame of this number is estimated."""
        inside = self.incomplete.begin <= number < self.incomplete.end
        return bool(inside and (self.survey.counts[number] or estimates_known(self.config)))


def _seen_pixels(region):
    return math.prod(stop - start for start, stop in region.seen)


def prepare(request, monitor=methods.silent):
    """Check everything that can be checked before any work, and read a picture or tensor or look at a clip once.

    Parameters
    ----------
    request : Request
    monitor : callable

    Returns
    -------
    Plan

    Raises
    ------
    ConfigError
        Options that contradict each other or that the method does not have.
    InputError, MaskError
        Files that cannot be read or that do not fit each other.
    OutputExists
        With `skip_existing` or `resume`, all is done already.
    OutputError
        Results that could not be written.
    """
    with keeping_to(request.memory):
        return _prepare(request, monitor)


def _prepare(request, monitor):
    start = time.perf_counter()
    method, kind = methods.get(request.method), request.kind
    check(request)
    if kind == PICTURE:
        _check_there(request)
    done = request.resume and not request.overwrite and request.finished and not _store_folder(request).exists()
    outputs.check_paths(
        request, replace=request.to_skip or done or request.replaces, make_folders=request.make_folders,
        standard=() if kind == CLIP else (MAIN[kind],), folders=sinks.folders(request),
    )  # fmt: skip
    sink = sinks.named(request)
    configure.check_method(request, method)  # which loads it, most of a second
    if done or request.to_skip:
        raise OutputExists(f"{request.main}: exists already")
    files = Snapshot.of(request.sources.values(), request.consulted.values())
    outputs.check_spared(request, files.identities)
    source = sources.read(request, hasattr(method.load(), "margin"))
    warnings = sink.fit(request, source)
    begin, end = frame_range(request.frames, source.count)
    numbers = (
        range(source.count)
        if request.mask_frames is None
        else frame_numbers(request.mask_frames, source.count, "mask_frames")
    )
    config = configure.configure(request, method, source)
    truth, reasons = sources.truth(request, source)
    decision = decide(request, source, tuple(numbers), begin, end)
    copied = may_be_copied(request, source)
    incomplete = Incomplete(source, decision.holes, begin, end, request.add_noise, request.seed, truth)
    copyable = (np.ones(source.shape[:2], bool) if copied is None else copied) if method.copies else None
    undivided = None if request.kind == TENSOR else method.undivided
    seen = survey(incomplete, monitor, method.by_channel, undivided, copyable)
    decision, more = _checked(request, incomplete, decision, seen)
    if (
        copied is not None
        and not incomplete.in_time
        and not (copied & ~in_any_channel(~next(incomplete.frames()).observed)).any()
    ):
        raise MaskError(
            f"source {request.source} lies wholly within what is missing or kept of {source.path}: nothing is left to "
            "copy"
        )
    if seen.uncopied is not None:
        of = "" if copied is None else "of `source` "
        raise MaskError(
            f"{incomplete.name(seen.uncopied)}: {method.name} copies whole pixels, and no pixel {of}is observed in all "
            "channels; try method patches"
        )
    if (
        incomplete.in_time
        and truth is not None
        and truth.dtype.kind == "f"
        and not np.isfinite([seen.low, seen.high]).all()
    ):
        incomplete = replace(incomplete, truth=None)
        reasons.append("metrics are null: the truth has entries that are not finite")
    if not incomplete.in_time and source.full_range is None:
        # Values too large to compute with, and a noise level out of proportion to them.
        in_unit(config, Unit.of(*incomplete.span(next(incomplete.frames()))))
    if request.grain and truth is not None:
        decision = replace(decision, notes=(*decision.notes, "`grain`: the metrics are of the estimates without it"))
    count = int(seen.counts.sum())
    missing = missing_of(decision, source.count * incomplete.entries, count, int(seen.pixels.sum()), seen.grey_levels)
    division = divided(request, method, config, incomplete, seen, copied)
    fingerprint = {
        **request.fingerprint(),
        "input": source.sha256,
        "mask_sha256": decision.sha256,
        "config": str(config),
        "truth": None if truth is None else truth.sha256,
        "kept": None if request.sources["keep"] is None else digest(request.sources["keep"]),
        "copied": None if copied is None else hashlib.sha256(copied.tobytes()).hexdigest(),
        "regions": [[r.used, r.seen] for r in division.regions],
    }
    kept = kind == CLIP or (division.tiled and str(request.output) != STANDARD)
    store = Folder(_store_folder(request), fingerprint) if kept else Memory()
    store.check(resume=request.resume, replace=request.overwrite or request.skip_existing, output=request.output)
    return Plan(
        request, incomplete, decision, method, config, seen, division.regions, division.tiled, division.workers,
        division.seconds * len(request.answers), division.bytes, missing,
        (*source.notes, *decision.notes, *division.notes), (*warnings, *more, *reasons),
        time.perf_counter() - start, store, sink, files, {} if copied is None else {"source": copied},
    )  # fmt: skip


def _check_there(request):
    """Refuse files that are read of a picture and are not there."""
    check_file(request.input, piped=True)
    for role, path in request.sources.items():
        is_word = role == "mask" and (request.by_transparency or request.by_infrared)
        if path is not None and str(path) != STANDARD and not is_word and absence(path):
            raise InputError(f"{role} {path}: {absence(path)}")


def _store_folder(request):
    """Where finished regions are kept until the run comes to its end: hidden, beside the output."""
    output = Path(request.output).absolute()
    return output.with_name(f".{output.name}.tdc-work")


def _checked(request, incomplete, decision, seen):
    """Refuse holes that leave nothing to do or nothing to start from; the decision with what NaN adds to it, and a list
    of warnings.
    """
    source, entries = incomplete.source, incomplete.entries
    inside, kept = (counts[incomplete.begin : incomplete.end] for counts in (seen.counts, seen.kept))
    if not inside.any():
        if not request.names_holes:
            raise ConfigError(
                f"{source.path}: nothing says what is missing; give {_ways(request.kind, source.has_alpha)}"
            )
        if incomplete.in_time and request.mask_color is not None:
            raise MaskError(
                f"{source.path}: no pixel of any frame has the colour {request.mask_color}; give another colour or a "
                "`mask_tolerance`"
            )
        if incomplete.in_time and request.mask is not None:
            said = f"nothing is marked as missing in frames {incomplete.begin} to {incomplete.end - 1}"
            decision = replace(decision, notes=(*decision.notes, said))
    if (inside + kept == entries).all():
        every = "every entry of every frame" if incomplete.in_time else "every entry"
        either = " or kept" if kept.any() else ""
        raise MaskError(f"{source.path}: {every} is missing{either}: nothing is left to complete from")
    if kept.any() and not inside.any() and not request.keeps_nodata:
        raise MaskError(f"keep {request.keep} marks all that is missing in {source.path}: nothing is left to fill")
    decision = with_values(request, source, decision, seen.by_value)
    if kept.any() and not request.keeps_nodata:
        decision = replace(
            decision, notes=(*decision.notes, f"keep {request.keep}: {kept.sum()} entries stay as they are")
        )
    warnings = list(decision.warnings)
    if decision.moving and inside.sum() > 0.5 * inside.size * entries:
        share = inside.sum() / (inside.size * entries)
        warnings.append(holes.much_marked(request.mask, share, "pixels", "white = missing", request.invert_mask))
    if request.kind == TENSOR:
        frame = next(incomplete.frames())
        warnings += [
            f"nothing is known in {count} of {source.shape[mode]} slices of mode {mode}: low rank does not tell how "
            "these differ from the others"
            for mode, count in holes.empty_slices(frame.observed, frame.absent).items()
        ]
    return decision, warnings


def _ways(kind, has_alpha):
    """How a user can say what is missing, in words."""
    if kind == TENSOR:
        return (
            "`mask=FILE` (any number but 0 = missing), NaN in the tensor, "
            "or `missing_ratio=0.5` to hide half of a whole one"
        )
    what, name = ("picture", "FILE") if kind == PICTURE else ("clip", "PATH")
    transparent = " (or `mask=alpha`: what is transparent)" if has_alpha else ""
    return (
        f"`mask={name}` (white = missing){transparent}, `mask_box=X,Y,W,H`, or `missing_ratio=0.5` to hide half of a "
        f"whole {what}"
    )
