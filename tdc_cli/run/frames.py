"""An input gone through frame by frame, with what is known of each frame beside it; a picture and a tensor are one
frame.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..holes import in_any_channel, over
from ..media import Media
from ..media.stored import Stored, row_slices
from ..media.video import Clip
from ..view.display import limits
from .holes import Holes
from .regions import Coverage
from .sources import Source
from .streams import NOISE, stream
from .values import check_size, scaled


@dataclass(frozen=True)
class Frame:
    """One frame before it is completed.

    Attributes
    ----------
    number : int
    media : Media or None
        None where only the holes were asked for.
    observed : ndarray of bool, of the shape of the colours
        True = observed.
    kept : ndarray of bool, of the same shape, or None
        What stays as it is, neither observed nor to be filled.
    inside : bool
        Whether the frame is worked on at all; if not, everything is observed.
    truth : ndarray or None
        Colours that the result is measured against.
    grey_levels, by_value : int
        Pixels of the mask that are neither black nor white; further entries that their values say are missing.
    """

    number: int
    media: Media | None
    observed: np.ndarray
    inside: bool
    truth: np.ndarray | None
    grey_levels: int = 0
    by_value: int = 0
    kept: np.ndarray | None = None

    @property
    def absent(self):
        """Entries that are to be filled, an ndarray of bool."""
        return self.estimated(False)

    def estimated(self, known, window=()):
        """Entries of a window that are estimated, an ndarray of bool: those to be filled, and where `known` observed
        ones too.
        """
        left = np.broadcast_to(False, self.observed.shape) if known else self.observed
        return ~left[window] if self.kept is None else ~(left | self.kept)[window]


@dataclass(frozen=True)
class Incomplete:
    """What is completed: an input, its holes, and the noise that is added.

    Attributes
    ----------
    source : Source
    holes : Holes
    begin, end : int
        Frames that are worked on.
    noise : float
        Standard deviation of the noise to add.
    seed : int
    truth : Source or None
        The reference, or the input itself where holes or noise are simulated.
    """

    source: Source
    holes: Holes
    begin: int
    end: int
    noise: float
    seed: int
    truth: Source | None

    @property
    def in_time(self):
        """Whether there are frames that follow each other."""
        return isinstance(self.source, Clip)

    @property
    def entries(self):
        """Of a frame's colours, or of a tensor."""
        return int(np.prod(self.source.colour_shape))

    def name(self, number):
        """What a frame is called in messages."""
        return f"{self.source.path}, frame {number}" if self.in_time else self.source.path

    def frames(self, start=0, stop=None, *, pictures=True, truth=False) -> Iterator[Frame]:
        """Iterate over frames, each decoded as it goes.

        Parameters
        ----------
        start, stop : int
        pictures : bool
            False: their holes only; `Holes.looks` says where that is not possible.
        truth : bool
            Whether the frames have their `truth`, where it is known.
        """
        stop = self.source.count if stop is None else stop
        everything = np.broadcast_to(True, self.source.colour_shape)
        read = self.holes.reader(start)
        medias = self.source.frames(start, stop) if pictures else iter([None] * (stop - start))
        truths = (
            self.truth.frames(start, stop)
            if truth and self.truth is not None and self.truth is not self.source
            else None
        )
        for number, media in zip(range(start, stop), medias):
            reference = None if truths is None else next(truths).colour
            if truth and self.truth is self.source and media is not None:
                reference = media.colour
            inside = self.begin <= number < self.end
            mask = read(number, media)
            if mask is None or not inside:
                yield Frame(number, media, everything, inside, reference)
            else:
                shape = self.source.colour_shape
                kept = None if mask.kept is None else over(mask.kept, shape)
                if kept is not None and reference is not None:
                    reference = _measured(reference, kept)
                yield Frame(number, media, mask.over(shape), inside, reference, mask.grey_levels, mask.by_value, kept)

    def values(self, frame, window=()):
        """Colours of a frame as a method gets them, with the noise that was asked for, which is the same whatever is
        asked for.

        Parameters
        ----------
        frame : Frame
        window : tuple of slice
            Rows and columns; all without it.
        """
        colour, full_range, name = frame.media.colour, self.source.full_range, self.name(frame.number)
        if not (self.noise and frame.inside):
            return scaled(colour[window], full_range, name)
        return scaled(colour, full_range, name, noise=self.noise, rng=stream(self.seed, NOISE, frame.number))[window]

    def span(self, frame):
        """Smallest and largest observed entry of a frame, some rows at a time."""
        low, high = np.inf, -np.inf
        for rows in row_slices(frame.observed.shape):
            values, observed = self.values(frame, (rows,)), frame.observed[rows]
            low = min(low, float(np.min(values, where=observed, initial=np.inf)))
            high = max(high, float(np.max(values, where=observed, initial=-np.inf)))
        return low, high


def _measured(truth, kept):
    """The truth of a frame with NaN where it is kept, which is not measured; where it stays in its file, read as it is
    cut.
    """
    if not isinstance(truth, Stored):
        return np.where(kept, np.nan, truth)
    dtype = np.result_type(truth.dtype, np.nan)
    return Stored(truth.shape, dtype, lambda *part: np.where(kept[part], np.nan, truth[part]))


class Window:
    """Frames of rising, overlapping ranges, each decoded once.

    Parameters
    ----------
    frames : iterator of Frame
        From frame 0 on.
    """

    def __init__(self, frames):
        self._frames = frames
        self._held = deque()

    def take(self, start, stop):
        """List of the frames from `start` to the one before `stop`."""
        while self._held and self._held[0].number < start:
            self._held.popleft()
        while not self._held or self._held[-1].number < stop - 1:
            frame = next(self._frames)
            if frame.number >= start:
                self._held.append(frame)
        return [frame for frame in self._held if frame.number < stop]


@dataclass(frozen=True)
class Survey:
    """What going through the holes of all frames once has told.

    Attributes
    ----------
    counts, pixels, kept : (T,) ndarray of int
        Missing entries, positions with any of them, and entries that stay as they are, of every frame.
    grey_levels, by_value : int
    low, high : float
        Of the truth in frames that follow each other; not finite where it has such entries.
    limits : (float, float)
        Values that frames are shown with as black and as white.
    coverage : regions.Coverage or None
        None of a tensor.
    undivided : (H, W) ndarray of bool, or None
        Pixels that the method completes in one region with those around them, of any frame; None where it has none.
    uncopied : int or None
        The first frame with holes in which no pixel may be copied; None where there is none, or nobody asked.
    steady : bool
        Whether all frames that are worked on have the same holes.
    """

    counts: np.ndarray
    pixels: np.ndarray
    kept: np.ndarray
    grey_levels: int
    by_value: int
    low: float
    high: float
    limits: tuple
    coverage: Coverage | None = None
    undivided: np.ndarray | None = None
    uncopied: int | None = None
    steady: bool = True


def survey(incomplete, monitor, by_channel=False, undivided=None, copyable=None):
    """Go through all frames once; a `Survey`.

    Parameters
    ----------
    incomplete : Incomplete
    monitor : callable
    by_channel : bool
        See `Coverage`.
    undivided : callable or None
        See `tdc_cli.methods`.
    copyable : (H, W) ndarray of bool, or None
        Pixels that may be copied where they are observed in all channels; None: nothing is copied.

    Raises
    ------
    InputError, MaskError
        Values that cannot be worked with.
    """
    source = incomplete.source
    counts, pixels, kept = np.zeros((3, source.count), dtype=np.int64)
    coverage = None if source.mode == "tensor" else Coverage(source.colour_shape, by_channel)
    grey, by_value, whole, uncopied = 0, 0, None, None
    first, steady = None, True
    low, high = np.inf, -np.inf
    shown = [] if source.full_range else [np.zeros(0)]
    ranged = incomplete.in_time and incomplete.truth is not None and incomplete.truth.dtype.kind == "f"
    for frame in incomplete.frames(pictures=incomplete.holes.looks or ranged, truth=ranged):
        lost = None if undivided is None else np.zeros(source.shape[:2], dtype=bool)
        whole_frame, copied = frame.observed.all(), copyable is None or uncopied is not None
        if whole_frame and coverage is not None and frame.inside:
            coverage.add_whole()
        if frame.inside:
            first = frame.observed if first is None else first
            steady = steady and (frame.observed is first or np.array_equal(frame.observed, first))
        for rows in () if whole_frame else row_slices(frame.observed.shape):
            observed, absent = frame.observed[rows], frame.estimated(False, (rows,))
            count = np.count_nonzero(absent)
            counts[frame.number] += count
            kept[frame.number] += 0 if frame.kept is None else np.count_nonzero(frame.kept[rows])
            if count:
                pixels[frame.number] += count if source.mode == "tensor" else np.count_nonzero(in_any_channel(absent))
            if coverage is not None and frame.inside:
                coverage.add(observed, absent, rows.start)
            copied = copied or (copyable[rows] & ~in_any_channel(~observed)).any()
            if lost is not None and count:
                lost[rows] = ~in_any_channel(observed) & in_any_channel(absent)
        if lost is not None and counts[frame.number]:
            found = undivided(lost)
            whole = found if whole is None else whole | found
        if counts[frame.number] and not copied:
            uncopied = frame.number
        grey += frame.grey_levels
        by_value += frame.by_value
        if frame.truth is not None and frame.inside:
            low, high = np.minimum(low, frame.truth.min()), np.maximum(high, frame.truth.max())  # these keep NaN
        if incomplete.in_time:
            if source.full_range is None:
                shown = [np.array(limits(None, frame.media.colour[frame.observed], *shown))]
            monitor(frame.number + 1, source.count, "reading")
    if ranged and np.isfinite([low, high]).all():
        check_size(np.array([low, high]), incomplete.truth.path, "scale it down")
    shown = limits(source.full_range, *shown) if incomplete.in_time else ()
    return Survey(
        counts, pixels, kept, grey, by_value, float(low), float(high), shown, coverage, whole, uncopied, steady
    )
