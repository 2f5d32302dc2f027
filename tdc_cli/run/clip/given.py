"""A clip gone through frame by frame, with what is known of each frame beside it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ...holes import in_any_channel
from ...media import Media
from ...media.video import Clip
from ...view.display import limits
from .. import holes
from ..seeds import NOISE, stream
from ..values import check_size, scaled
from . import holes as holes_of


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
    inside : bool
        Whether the frame is worked on at all; if not, everything is observed.
    truth : ndarray or None
        Colours that the result is measured against.
    grey_levels, nan : int
        Pixels of the mask that are neither black nor white; further entries that are NaN.
    """

    number: int
    media: Media | None
    observed: np.ndarray
    inside: bool
    truth: np.ndarray | None
    grey_levels: int = 0
    nan: int = 0


@dataclass(frozen=True)
class Given:
    """What a clip is completed from.

    Attributes
    ----------
    clip : Clip
    holes : object
        See `clip.holes`.
    begin, end : int
        Frames that are worked on.
    noise : float
        Standard deviation of the noise to add.
    seed : int
    truth : Clip or None
        The reference, or the clip itself where holes or noise are simulated.
    """

    clip: Clip
    holes: Any
    begin: int
    end: int
    noise: float
    seed: int
    truth: Clip | None

    @property
    def shape(self):
        """Shape of a frame's colours."""
        return self.clip.colour_shape

    @property
    def must_look(self):
        """Whether the holes depend on what is in the frames."""
        return self.clip.dtype.kind == "f" or isinstance(self.holes, (holes_of.Coloured, holes_of.Transparent))

    def frames(self, start=0, stop=None, *, pictures=True, truth=False) -> Iterator[Frame]:
        """Iterate over frames, each decoded as it goes.

        Parameters
        ----------
        start, stop : int
        pictures : bool
            False: their holes only; `must_look` says where that is not possible.
        truth : bool
            Whether the frames have their `truth`, where it is known.
        """
        stop = self.clip.count if stop is None else stop
        everything = np.broadcast_to(True, self.shape)
        read = self.holes.reader(start)
        medias = self.clip.frames(start, stop) if pictures else iter([None] * (stop - start))
        truths = self.truth.frames(start, stop) if truth and self.truth is not None and self.truth is not self.clip else None
        for number, media in zip(range(start, stop), medias):
            reference = None if truths is None else next(truths).colour
            if truth and self.truth is self.clip:
                reference = media.colour
            inside = self.begin <= number < self.end
            mask = read(number, media)
            if not inside:
                yield Frame(number, media, everything, False, reference)
                continue
            yield self._frame(number, media, mask, everything, reference)

    def _frame(self, number, media, mask, everything, reference):
        observed, grey = everything, 0
        if mask is not None:
            observed = mask.over(self.shape)
            grey = mask.grey_levels
        further = 0
        if media is not None and self.clip.dtype.kind == "f":
            nan = holes.find_nan(media.colour, f"{self.clip.path}, frame {number}")
            if nan.any():
                further = int(np.count_nonzero(nan & observed))
                observed = observed & ~nan
        return Frame(number, media, observed, True, reference, grey, further)

    def values(self, frame):
        """Colours of a frame as a method gets them, with the noise that was asked for, which is the same whatever frames are asked for."""
        noise = self.noise if frame.inside else 0.0
        rng = stream(self.seed, NOISE, frame.number)
        return scaled(frame.media.colour, self.clip.full_range, f"{self.clip.path}, frame {frame.number}", noise=noise, rng=rng)


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
    counts, pixels : (T,) ndarray of int
        Missing entries, and positions with any of them, of every frame.
    grey_levels, nan : int
    low, high : float
        Of the truth; not finite where it has such entries.
    limits : (float, float)
        Values that are shown as black and as white.
    """

    counts: np.ndarray
    pixels: np.ndarray
    grey_levels: int
    nan: int
    low: float
    high: float
    limits: tuple


def survey(given, monitor):
    """Go through all frames once; a `Survey`.

    Raises
    ------
    InputError, MaskError
        Values that cannot be worked with.
    """
    count = given.clip.count
    counts, pixels = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    grey = nan = 0
    low, high = np.inf, -np.inf
    shown = [] if given.clip.full_range else [np.zeros(0)]
    ranged = given.truth is not None and given.truth.dtype.kind == "f"
    for frame in given.frames(pictures=given.must_look or ranged, truth=ranged):
        absent = ~frame.observed
        counts[frame.number] = np.count_nonzero(absent)
        pixels[frame.number] = np.count_nonzero(in_any_channel(absent)) if counts[frame.number] else 0
        grey += frame.grey_levels
        nan += frame.nan
        if frame.truth is not None and frame.inside:
            low, high = np.minimum(low, frame.truth.min()), np.maximum(high, frame.truth.max())  # these keep NaN
        if given.clip.full_range is None:
            shown = [np.array(limits(None, frame.media.colour, *shown))]
        monitor(frame.number + 1, count, "reading")
    if ranged and np.isfinite([low, high]).all():
        check_size(np.array([low, high]), given.truth.path, "scale it down")
    return Survey(counts, pixels, grey, nan, float(low), float(high), limits(given.clip.full_range, *shown))


def check_alike(reference, clip):
    """Refuse a reference that is not like the clip; InputError."""
    if (reference.count, tuple(reference.shape), reference.dtype) != (clip.count, tuple(clip.shape), clip.dtype):
        raise InputError(
            f"reference {reference.path} is {_in_words(reference)} but clip {clip.path} is {_in_words(clip)}; they must be alike"
        )


def _in_words(clip):
    return f"{clip.count} frames of {clip.shape[1]}x{clip.shape[0]} {clip.mode} {clip.dtype}"
