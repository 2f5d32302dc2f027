"""An input gone through frame by frame once its regions are finished."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from ..holes import in_any_channel
from .frames import Frame
from .solve import estimates_known
from .streams import GRAIN, stream
from .values import holed, unscaled


@dataclass(frozen=True)
class Completed:
    """One frame after it was completed.

    Attributes
    ----------
    given : Frame
    incomplete, colour : ndarray
        Colours with the added noise, and completed ones, as written.
    estimate : ndarray
        As `colour`, without the grain, if any was asked for.
    sd : ndarray or None
        In the units of the file.
    changed : bool
        Whether it is not the input's own frame.
    transparent : bool
        Whether the holes were transparent and become opaque.
    """

    given: Frame
    incomplete: np.ndarray
    colour: np.ndarray
    estimate: np.ndarray
    sd: np.ndarray | None
    changed: bool
    transparent: bool

    @property
    def holed(self):
        """The incomplete colours with holes as 0, as NaN in floats."""
        return holed(self.incomplete, self.given.absent)

    def shown(self, values):
        """Colours such as `holed` for the eye: what is kept, which may stand for something else than a level, as NaN in
        floats.
        """
        return (
            values if self.given.kept is None or values.dtype.kind != "f" else np.where(self.given.kept, np.nan, values)
        )

    @property
    def holes(self):
        """(H, W) bool, where any channel is missing."""
        return in_any_channel(self.given.absent)

    @property
    def media(self):
        """The frame as it is written."""
        if not self.changed:
            return self.given.media
        return self.given.media.with_colour(self.colour, opaque=self.holes if self.transparent else None)


def completed(plan, *, truth=False, sd=True):
    """Iterate over all frames as `Completed`; with their truth, if asked for and known, and without their `sd`, if that
    is of no use.
    """
    waiting, open_regions = deque(sorted(plan.regions, key=lambda region: region.first)), []
    source = plan.incomplete.source
    for frame in plan.incomplete.frames(truth=truth):
        number = frame.number
        while waiting and waiting[0].first <= number:
            open_regions.append(_Open(waiting.popleft()))
        open_regions = [each for each in open_regions if each.region.end > number]
        noisy = plan.incomplete.noise and frame.inside
        given = frame.media.colour
        incomplete = (
            given
            if not noisy
            else unscaled(plan.incomplete.values(frame), source.dtype, source.full_range, source.path)
        )
        if noisy and frame.kept is not None:
            incomplete = np.where(frame.kept, given, incomplete)
        deviation = np.zeros(given.shape, plan.sd_dtype) if sd and plan.gives_uncertainty else None
        transparent = plan.decision.source == "alpha"
        if not plan.changed(number):
            yield Completed(frame, incomplete, incomplete, incomplete, deviation, bool(noisy), transparent)
            continue
        estimate = np.array(incomplete)
        invented = np.zeros(estimate.shape, bool) if plan.request.grain else None
        for each in open_regions:
            each.fill(plan, frame, estimate, deviation, invented)
        colour = estimate if invented is None else _grained(plan, frame, estimate, invented)
        yield Completed(frame, incomplete, colour, estimate, deviation, True, transparent)


def _grained(plan, frame, estimate, invented):
    """An estimate with the grain of the frame, where it was predicted."""
    from .grain import grained  # and SciPy with it, of which most runs have no need

    source, number = plan.source, frame.number
    predicted = frame.absent & ~invented
    known = np.isfinite(estimate) & ~frame.absent
    if frame.kept is not None:
        known &= ~frame.kept
    made = grained(estimate.astype(float), predicted, known, stream(plan.request.seed, GRAIN, number))
    stored = unscaled(made[predicted] / plan.scale, source.dtype, source.full_range, plan.incomplete.name(number))
    colour = np.array(estimate)
    colour[predicted] = stored
    return colour


class _Open:
    """A region whose estimates are put in their places, frame by frame; they are held from its first frame to its last.
    """

    def __init__(self, region):
        self.region = region
        self._values = self._sd = self._invented = None
        self._place = 0

    def fill(self, plan, frame, colour, deviation, invented):
        """Put the estimates of the next frame that is estimated into its colours and, where not None, the others."""
        if self._values is None:
            self._values, self._sd = plan.store.load(self.region)
            self._invented = plan.store.invented(self.region) if invented is not None else None
        plane = self.region.plane if colour.ndim > 1 and plan.source.mode != "tensor" else ()
        estimated = frame.estimated(estimates_known(plan.config), plane)
        count = int(np.count_nonzero(estimated))
        part = slice(self._place, self._place + count)
        colour[plane][estimated] = self._values[part]
        if deviation is not None and self._sd is not None:
            deviation[plane][estimated] = self._sd[part]
        if self._invented is not None:
            invented[plane][estimated] = self._invented[part]
        self._place += count
        if self.region.end == frame.number + 1:
            self._values = self._sd = self._invented = None
