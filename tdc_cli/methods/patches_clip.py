"""Clips by groups of similar patches from several frames: what `patches` does where a mode counts frames.

The frames lie one below the other, as `tdc_cli.patches.refine` wants a clip. Two rounds as for pictures: the first, with some observed
entries held out, measures how large errors are; the second uses everything. Where a place is observed in the frames beside it, the first
estimate is what these say; elsewhere it is the coloured field of the frame.
"""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..patches import calibrate, field
from ..patches.refine import Settings, refine
from . import Completion

SHARE_HELD_OUT = 0.05
# Frames on each side that an estimate looks at directly.
CONTEXT = 4
# Channels that are worked on together.
MOST_CHANNELS = 32
# Largest shift at which similar patches are looked for, in pixels and in frames, and passes.
WINDOW, REACH, PASSES = 10, 3, 5
# The same under noise, after a first pass that shrinks singular values: members, size of patches two frames deep, passes, isotropic rest.
NOISY_MEMBERS, NOISY_SIZE, NOISY_PASSES, NOISY_REST = 64, 4, 1, 1e-3


def complete(values, observed, config, *, rng, monitor):
    """As `patches.complete`, for values whose mode `config.frames` counts frames.

    Parameters
    ----------
    values : (H, W, ..., T, ...) ndarray of float
        Modes 0 and 1 are the rows and columns of a frame; all but `config.frames` of the others together are its channels.
    observed : ndarray of bool
    config : patches.Config
        `frames` is not None.
    rng : numpy.random.Generator
    monitor : callable

    Returns
    -------
    Completion
    """
    clip = _Clip.of(values, observed, config.frames)
    noise = config.noise_std
    if noise == "auto":
        noise = math.sqrt(np.mean([field.solve(v, o, None).noise_variance for v, o in clip.each_frame() if o.any()]))
    variance = float(noise) ** 2
    stages = stages_for(clip, variance, config)
    passes = sum(s.passes for s in stages) * len(clip.blocks)
    progress = _Progress(monitor, passes * (2 if config.calibrate else 1))
    errors, spreads = np.empty(0), np.empty(0)
    if config.calibrate:
        held = hold_out(clip, rng)
        kept = replace(clip, observed=clip.observed & ~held)
        estimate, spread = _refined(kept, stages, variance, rng, progress, True)
        errors, spreads = (estimate - clip.values)[held], np.sqrt(spread[held])
    estimate, spread = _refined(clip, stages, variance, rng, progress, config.calibrate)
    sd, verdict, warnings = None, None, []
    if config.calibrate:
        scale = calibrate.fit_scale(errors, spreads, variance)
        estimated = ~clip.observed if variance == 0 else np.ones_like(clip.observed)
        sd = np.zeros(spread.shape)
        sd[estimated] = np.sqrt(spread[estimated]) if scale is None else scale(np.sqrt(spread[estimated]))
        verdict = {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, variance, rng)}
        if scale is None:
            warnings.append(f"only {len(errors)} observed entries could be held out: the standard deviations are not calibrated")
    used = {name: getattr(stages[0], name) for name in ("size", "members", "window", "stride", "depth", "reach")}
    return Completion(
        mean=clip.restored(estimate),
        sd=None if sd is None else clip.restored(sd),
        predictive_sd=None if sd is None else clip.restored(np.sqrt(sd**2 + variance) if variance else sd),
        noise_std=math.sqrt(variance) if variance else None,
        held_out=verdict,
        parameters=asdict(config) | used | {"passes": sum(s.passes for s in stages)},
        warnings=tuple(warnings),
    )


@dataclass(frozen=True)
class _Clip:
    """Frames one below the other, and how to get back from there.

    Attributes
    ----------
    values, observed : (T H, W, C) ndarray
    frames : int
    mode : int
        That of the frames in `shape`.
    shape : tuple
        As the values were given.
    """

    values: np.ndarray
    observed: np.ndarray
    frames: int
    mode: int
    shape: tuple

    @classmethod
    def of(cls, values, observed, mode):
        count, (height, width) = values.shape[mode], values.shape[:2]
        stacked = [np.moveaxis(a, mode, 0).reshape(count * height, width, -1) for a in (values, observed)]
        return cls(*stacked, count, mode, values.shape)

    @property
    def height(self):
        return len(self.values) // self.frames

    @property
    def blocks(self):
        """Slices of the channels that are worked on together."""
        return [slice(c, c + MOST_CHANNELS) for c in range(0, self.values.shape[2], MOST_CHANNELS)]

    def by_frame(self, stacked):
        """A view, (T, H, W, C)."""
        return stacked.reshape(self.frames, self.height, *stacked.shape[1:])

    def each_frame(self):
        """Values and observed entries of every frame."""
        return zip(self.by_frame(self.values), self.by_frame(self.observed))

    def restored(self, stacked):
        """Entries in the order of the values as they were given."""
        others = [n for k, n in enumerate(self.shape) if k != self.mode]
        return np.ascontiguousarray(np.moveaxis(stacked.reshape(self.frames, *others), 0, self.mode))


def stages_for(clip, noise, config):
    """Stages of the passes.

    Parameters
    ----------
    clip : _Clip
    noise : float
        Variance.
    config : patches.Config

    Returns
    -------
    tuple of Settings
    """
    smallest = min(clip.height, clip.values.shape[1])
    size = min(config.size or Settings.size, smallest)
    stride = min(size, config.stride or max(1, size // 2))
    main = Settings(size=size, stride=stride, members=config.members or Settings.members, window=config.window or WINDOW, reach=REACH,
                    passes=config.passes or PASSES)  # fmt: skip
    if not noise:
        return (main,)
    first = replace(main, members=config.members or NOISY_MEMBERS, depth=2, passes=1, shrinks=True, step=1.0, momentum=0.0)
    small = min(config.size or NOISY_SIZE, smallest)
    second = replace(first, size=small, stride=min(small, config.stride or max(1, small // 2)), passes=config.passes or NOISY_PASSES,
                     shrinks=False, first_rest=NOISY_REST, last_rest=NOISY_REST)  # fmt: skip
    return first, second


def hold_out(clip, rng):
    """Observed entries to hide, frame by frame in the shape of what is missing; True = held out."""
    held = np.zeros_like(clip.observed)
    for part, observed in zip(clip.by_frame(held), clip.by_frame(clip.observed)):
        if not observed.all():
            part[:] = calibrate.hold_out(observed, SHARE_HELD_OUT, rng)
    return held


def first_estimate(clip, noise):
    """What the frames beside it say where they are observed, elsewhere the field of the frame."""
    shown, filled = clip.by_frame(clip.observed), np.empty(clip.values.shape)
    estimate = clip.by_frame(filled)
    for t, (values, observed) in enumerate(clip.each_frame()):
        if observed.any():
            estimate[t] = field.solve(values, observed, noise).mean
    fields = estimate.copy()
    for t in range(clip.frames):
        beside = [k for k in (t - 1, t + 1) if 0 <= k < clip.frames]
        weight = sum(shown[k].astype(float) for k in beside)
        total = sum(np.where(shown[k], fields[k], 0.0) for k in beside)
        wanted = ~shown[t] & (weight > 0)
        estimate[t][wanted] = total[wanted] / weight[wanted]
    return filled


def _refined(clip, stages, noise, rng, progress, variance):
    """`refine` from the first estimate, in blocks of channels."""
    start = first_estimate(clip, noise)
    parts = [refine(clip.values[..., b], clip.observed[..., b], start[..., b], stages, frames=clip.frames, noise_variance=noise, rng=rng,
                    tick=progress, variance=variance) for b in clip.blocks]  # fmt: skip
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([p[0] for p in parts], axis=2), np.concatenate([p[1] for p in parts], axis=2) if variance else None


class _Progress:
    """Counts passes for a monitor."""

    def __init__(self, monitor, total):
        self.monitor, self.done, self.total = monitor, 0, total

    def __call__(self):
        self.done += 1
        self.monitor(self.done, self.total, "pass")
