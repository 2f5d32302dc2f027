"""A clip gone through frame by frame once its chunks are finished."""

from dataclasses import dataclass

import numpy as np

from ...holes import in_any_channel
from .. import completing
from ..values import holed, unscaled
from .given import Frame
from .plan import deviations


@dataclass(frozen=True)
class Done:
    """One frame after it was completed.

    Attributes
    ----------
    given : Frame
    incomplete, colour : ndarray
        Colours with the added noise, and completed ones, as written.
    sd : ndarray or None
    changed : bool
        Whether it is not the input's own frame.
    """

    given: Frame
    incomplete: np.ndarray
    colour: np.ndarray
    sd: np.ndarray | None
    changed: bool

    @property
    def holed(self):
        """The incomplete colours with holes as 0, as NaN in floats."""
        return holed(self.incomplete, self.given.observed)

    @property
    def holes(self):
        """(H, W) bool, where any channel is missing."""
        return in_any_channel(~self.given.observed)


def completed(plan, *, truth=False):
    """Iterate over all frames as `Done`."""
    chunks, chunk, values, sd = iter(plan.chunks), None, None, None
    place = 0
    for frame in plan.given.frames(truth=truth):
        number = frame.number
        while chunk is None or (number >= chunk.end):
            following = next(chunks, None)
            if following is None:
                break
            chunk, place = following, 0
            values, sd = plan.store.load(chunk)
        noisy = plan.given.noise and frame.inside
        source = frame.media.colour
        incomplete = source if not noisy else unscaled(plan.given.values(frame), plan.clip.dtype, plan.clip.full_range, plan.clip.path)
        deviation = np.zeros(source.shape, deviations(plan.clip).dtype) if plan.gives_deviations else None
        if not plan.changed(number):
            yield Done(frame, incomplete, incomplete, deviation, bool(noisy))
            continue
        estimated = np.broadcast_to(True, source.shape) if completing.estimates_known(plan.config) else ~frame.observed
        count = int(np.count_nonzero(estimated))
        colour = np.array(incomplete)
        colour[estimated] = values[place : place + count]
        if sd is not None:
            deviation[estimated] = sd[place : place + count]
        place += count
        yield Done(frame, incomplete, colour, deviation, True)


def finished(plan, done):
    """`Media` of a completed frame; holes that were transparent are opaque."""
    if not done.changed:
        return done.given.media
    return done.given.media.with_colour(done.colour, opaque=done.holes if plan.missing["source"] == "alpha" else None)
