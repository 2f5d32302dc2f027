"""An input gone through frame by frame once its regions are finished."""

from dataclasses import dataclass

import numpy as np

from ..holes import in_any_channel
from .frames import Frame
from .solve import estimates_known
from .values import holed, unscaled


@dataclass(frozen=True)
class Completed:
    """One frame after it was completed.

    Attributes
    ----------
    given : Frame
    incomplete, colour : ndarray
        Colours with the added noise, and completed ones, as written.
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
    sd: np.ndarray | None
    changed: bool
    transparent: bool

    @property
    def holed(self):
        """The incomplete colours with holes as 0, as NaN in floats."""
        return holed(self.incomplete, self.given.absent)

    def shown(self, values):
        """Colours such as `holed` for the eye: what is kept, which may stand for something else than a level, as NaN in floats."""
        return values if self.given.kept is None or values.dtype.kind != "f" else np.where(self.given.kept, np.nan, values)

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


def completed(plan, *, truth=False):
    """Iterate over all frames as `Completed`; with their truth, if asked for and known."""
    regions, region, values, sd = iter(plan.regions), None, None, None
    place = 0
    source = plan.incomplete.source
    for frame in plan.incomplete.frames(truth=truth):
        number = frame.number
        while region is None or number >= region.end:
            following = next(regions, None)
            if following is None:
                break
            region, place = following, 0
            values, sd = plan.store.load(region)
        noisy = plan.incomplete.noise and frame.inside
        given = frame.media.colour
        incomplete = given if not noisy else unscaled(plan.incomplete.values(frame), source.dtype, source.full_range, source.path)
        if noisy and frame.kept is not None:
            incomplete = np.where(frame.kept, given, incomplete)
        deviation = np.zeros(given.shape, plan.sd_dtype) if plan.gives_uncertainty else None
        transparent = plan.decision.source == "alpha"
        if not plan.changed(number):
            yield Completed(frame, incomplete, incomplete, deviation, bool(noisy), transparent)
            continue
        estimated = frame.estimated(estimates_known(plan.config))
        count = int(np.count_nonzero(estimated))
        colour = np.array(incomplete)
        colour[estimated] = values[place : place + count]
        if sd is not None:
            deviation[estimated] = sd[place : place + count]
        place += count
        yield Completed(frame, incomplete, colour, deviation, True, transparent)
