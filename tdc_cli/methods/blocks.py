"""Channels that are worked on together, and how far the work has come: what pictures and clips by patches share."""

import numpy as np

from ..patches.refine import refine
from ..patches.schedule import MOST_CHANNELS


def blocks(values):
    """Slices of the channels of (H, W, C) `values` that are worked on together."""
    return [slice(c, c + MOST_CHANNELS) for c in range(0, values.shape[2], MOST_CHANNELS)]


def refine_blocks(
    values, observed, start, stages, noise, rng, progress, variance, frames=1, wanted=None, units=None, origin=(0, 0)
):  # fmt: skip
    """`refine`, in blocks of channels, which have a unit each; `progress` is called after every pass."""
    parts = blocks(values)
    starts = [start[..., b] for b in parts]
    del start  # as soon as it is read: a large picture should not be held more often than it must
    parts = [
        refine(
            values[..., b],
            observed[..., b],
            starts.pop(0),
            stages,
            frames=frames,
            noise_variance=noise,
            rng=rng,
            tick=progress,
            variance=variance,
            wanted=None if wanted is None else wanted[..., b],
            unit=units and units[k],
            origin=origin,
        )
        for k, b in enumerate(parts)
    ]
    if len(parts) == 1:
        return parts[0]
    spread = np.concatenate([v for _, v in parts], axis=2) if variance else None
    return np.concatenate([estimate for estimate, _ in parts], axis=2), spread


class Progress:
    """Counts passes, over `blocks` of channels each, for a monitor."""

    def __init__(self, monitor, blocks, passes):
        self.monitor, self.blocks, self.done, self.total = monitor, blocks, 0, blocks * passes

    def __call__(self):
        self.done += 1
        self.monitor(self.done, self.total, "pass")
