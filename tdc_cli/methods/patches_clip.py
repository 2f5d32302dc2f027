"""Clips by groups of similar patches from several frames: what `patches` does where a mode counts frames.

The frames lie one below the other, as `tdc_cli.patches.refine` wants a clip. As with pictures the first part of the
passes, while some observed entries are held out, measures how large errors are; the last one uses everything. Where a
place is observed in the frames beside it, the first estimate is what these say; elsewhere it is the coloured field of
the frame.
"""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np

from .. import field
from ..patches import calibrate, motion, noise
from ..patches.schedule import Schedule, Settings
from . import Completion
from .blocks import Progress, blocks, refine_blocks

# Share of the observed entries that is held out, of single ones at the same place in all frames, which no frame beside
# them shows meanwhile, and under noise of single entries more; how far the model is trusted about observed entries, as
# a standard deviation of the ratio of variances.
SHARE_HELD_OUT, SHARE_STAYING, SHARE_LONE, TRUST = 0.05, 0.02, 0.03, 0.25
# How many times as many independent errors a piece has that is held out of all frames as one of a single frame: what is
# beneath it moves.
MOVED = 2
# Samples of the field that tell how sure it is of what is scattered.
SAMPLES = 2
# Largest shift at which similar patches are looked for, in pixels and in frames.
WINDOW, REACH = 10, 3
# Where single entries are missing: passes, members of a group, and ridge of the first pass.
PASSES, MEMBERS, FIRST_RIDGE = 6, 64, 1e-2
# Where holes are strokes or whole frames: the same, with the ridges of the first and the last pass, not over-relaxed.
# Where the frames beside show most of what is missing, the first estimate is good: fewer passes do, and the nearest
# patches tell more than many.
STROKE_PASSES, STROKE_MEMBERS, STROKE_RIDGES = 7, 120, (3e-3, 1e-3)
SHOWN_PASSES, SHOWN_MEMBERS = 5, 60
# Patches of a group that are estimated, the nearest first, by what all of them say: the others are estimated better by
# groups of their own.
ESTIMATED = 16
# Under noise, after a first pass that shrinks singular values: the same, and the size of patches.
NOISY_PASSES, NOISY_MEMBERS, NOISY_RIDGE, NOISY_SIZE = 2, 64, 1e-3, 4
# The last passes, which go with everything observed: first on the same grid, where there are enough, then on one denser
# by a factor.
BACK_PASSES, DENSE_PASSES, DENSE = 1, 1, 2 / 3
# Frames that the field's covariance is learnt from.
LEARNT_FROM = 3


def complete(values, observed, config, *, rng, monitor, wanted=None):
    """As `patches.complete`, for values whose mode `config.frames` counts frames."""
    clip = _Clip.of(values, observed, ~observed if wanted is None else wanted, config.frames)
    variance = _learnt_noise(clip) if config.noise_std == "auto" else float(config.noise_std) ** 2
    schedule = schedule_for(clip, variance, config)
    progress = Progress(monitor, len(blocks(clip.values)), schedule.passes)
    held = lone = np.zeros_like(clip.observed)
    if config.calibrate:
        held = hold_out(clip, rng)
        if variance:
            lone = clip.observed & ~held & (rng.random(held.shape) < SHARE_LONE)
    kept = replace(clip, observed=clip.observed & ~held & ~lone, wanted=clip.wanted | held | lone)
    estimate = first_estimate(kept, variance)
    estimate, spread = _refined(kept, estimate, schedule.draft, variance, rng, progress, config.calibrate)
    if config.calibrate:
        errors, spreads, lone_errors = (
            (estimate - clip.values)[held],
            np.sqrt(spread[held]),
            (estimate - clip.values)[lone],
        )
    draft = estimate
    if schedule.finish:
        # The standard deviations of observed entries under noise are those of estimates with their own observations.
        estimate, own = _refined(
            clip, estimate, schedule.finish, variance, rng, progress, config.calibrate and variance > 0
        )
        spread = spread if own is None else np.where(clip.observed, own, spread)
    if not variance:
        estimate = np.where(clip.observed, clip.values, estimate)
    sd, verdict, warnings = None, None, []
    if config.calibrate:
        scale = calibrate.fit_scale(errors, spreads, variance, independent(clip, held))
        absent = ~clip.observed
        sd = np.sqrt(spread)
        if scale is not None:
            sd[absent] = scale(sd[absent])
            if not any(clip.strokes):  # beneath strokes the pieces that are given back lie elsewhere
                changes = (estimate - draft)[clip.wanted & absent]
                sd[absent] *= calibrate.factor_of_last_passes(changes, errors, variance)
        sd[clip.observed] *= _factor_of_observed(lone_errors, spread[lone], variance) if variance else 0.0
        calibrate.bound(sd, clip.values, clip.observed)
        verdict = {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, variance, rng)}
        if absent.any():
            warnings.extend(calibrate.uncalibrated(scale, errors))
    used = {
        name: getattr(schedule.draft[0], name) for name in ("size", "members", "window", "stride", "depth", "reach")
    }
    return Completion(
        mean=clip.restored(estimate),
        sd=None if sd is None else clip.restored(sd),
        predictive_sd=None if sd is None else clip.restored(np.sqrt(sd**2 + variance) if variance else sd),
        noise_std=math.sqrt(variance) if variance else None,
        held_out=verdict,
        parameters=asdict(config) | used | {"passes": schedule.passes},
        warnings=tuple(warnings),
    )


def _learnt_noise(clip):
    """Variance of the noise: from differences between frames or, where too few are observed, as the field of each frame
    learns it.
    """
    level = noise.level(clip.by_frame(clip.values), clip.by_frame(clip.observed))
    if level is not None:
        return level**2
    return float(np.mean([field.solve(v, o, None).noise_variance for v, o in clip.each_frame() if o.any()]))


def _factor_of_observed(errors, spreads, variance):
    """Factor of the standard deviations of observed entries under noise.

    An estimate without the entry's own observation, the error of which is known but for the noise, has variance v; with
    it ``1 / (1 / v + 1 / variance)``. The few entries that tell it are weighed against the model's own figure, which is
    trusted to within `TRUST`.

    Parameters
    ----------
    errors : (n,) ndarray
        Of single entries that were held out, noise included.
    spreads : (n,) ndarray
        Variances of the same entries, estimated with their observations.
    variance : float
        Of the noise.
    """
    if not len(errors):
        return 1.0
    whole = max(np.mean(errors**2), variance)  # of the differences, noise included
    found = (1 - variance / whole) * variance / spreads.mean()
    unsure = math.sqrt(2 / len(errors)) * variance**2 / whole / spreads.mean()
    weight = (TRUST / unsure) ** 2
    return math.sqrt((1 + weight * found) / (1 + weight))


@dataclass(frozen=True)
class _Clip:
    """Frames one below the other, and how to get back from there.

    Attributes
    ----------
    values, observed, wanted : (T H, W, C) ndarray
        With what is observed, and what is missing and to be estimated.
    frames : int
    mode : int
        That of the frames in `shape`.
    shape : tuple
        As the values were given.
    strokes : tuple of bool
        For every frame, whether what was missing of it as the clip was given hangs together, or is all of it.
    stays : tuple of bool
        For every frame, whether what was missing of it was missing from the frame before or after far more often than
        by chance.
    """

    values: np.ndarray
    observed: np.ndarray
    wanted: np.ndarray
    frames: int
    mode: int
    shape: tuple
    strokes: tuple
    stays: tuple

    @classmethod
    def of(cls, values, observed, wanted, mode):
        count, (height, width) = values.shape[mode], values.shape[:2]
        stacked = [np.moveaxis(a, mode, 0).reshape(count * height, width, -1) for a in (values, observed, wanted)]
        absent = stacked[2].reshape(count, height, width, -1)
        strokes = tuple(bool(a.all()) or calibrate.are_strokes(a) for a in absent)
        return cls(*stacked, count, mode, values.shape, strokes, tuple(_stays(absent, t) for t in range(count)))

    @property
    def height(self):
        return len(self.values) // self.frames

    @property
    def shown_beside(self):
        """Whether more than half of what is wanted is observed, at the same place, in the frame before or after."""
        shown, wanted = self.by_frame(self.observed), self.by_frame(self.wanted)
        beside = np.zeros_like(shown)
        beside[1:] |= shown[:-1]
        beside[:-1] |= shown[1:]
        return 2 * np.count_nonzero(beside & wanted) > np.count_nonzero(wanted)

    @property
    def together(self):
        """Whether there are several channels, and every pixel is observed in all of them or in none."""
        return self.observed.shape[2] > 1 and bool((self.observed.all(axis=2) == self.observed.any(axis=2)).all())

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


def _stays(absent, t):
    """Whether what is `absent` (T, H, W, C) of a frame is so of the one before or after, far more often than by
    chance.
    """
    here, beside = absent[t], (*absent[max(0, t - 1) : t], *absent[t + 1 : t + 2])
    return any(bool(2 * np.sum(here & other) > here.sum() * (1 + here.mean())) for other in beside)


def schedule_for(clip, variance, config):
    """What the passes do.

    Parameters
    ----------
    clip : _Clip
    variance : float
        Of the noise.
    config : patches.Config

    Returns
    -------
    Schedule
    """
    smallest = min(clip.height, clip.values.shape[1])
    size = min(config.size or Settings.size, smallest)

    def settings(members, size=size, **others):
        return Settings(
            size=size,
            stride=min(size, config.stride or size),
            members=config.members or members,
            reach=REACH,
            window=config.window or WINDOW,
            **others,
        )

    shrinking = ()
    if variance:
        shrinking = (settings(NOISY_MEMBERS, depth=2, passes=1, shrinks=True, step=1.0, momentum=0.0),)
        main = settings(
            NOISY_MEMBERS,
            min(config.size or NOISY_SIZE, smallest),
            depth=2,
            passes=config.passes or NOISY_PASSES,
            first_ridge=NOISY_RIDGE,
            last_ridge=NOISY_RIDGE,
            step=1.0,
            momentum=0.0,
            estimated=ESTIMATED,
        )
    elif any(clip.strokes):
        first_ridge, last_ridge = STROKE_RIDGES
        passes, members = (SHOWN_PASSES, SHOWN_MEMBERS) if clip.shown_beside else (STROKE_PASSES, STROKE_MEMBERS)
        main = settings(
            members,
            depth=2,
            passes=config.passes or passes,
            first_ridge=first_ridge,
            last_ridge=last_ridge,
            step=1.0,
            momentum=0.0,
            apart=clip.together,
            estimated=ESTIMATED,
        )
    else:
        main = settings(MEMBERS, passes=config.passes or PASSES, first_ridge=FIRST_RIDGE, estimated=ESTIMATED)
    dense = min(DENSE_PASSES, main.passes - 1)
    back = max(0, min(BACK_PASSES, main.passes - dense - 2))
    again = replace(main, passes=back, first_ridge=main.last_ridge)
    denser = replace(again, passes=dense, stride=min(main.size, config.stride or round(DENSE * main.size)))
    finish = tuple(stage for stage in (again, denser) if stage.passes)
    return Schedule((*shrinking, replace(main, passes=main.passes - dense - back)), finish)


def hold_out(clip, rng):
    """Observed entries to hide, in the shape of what is missing.

    Scattered entries of every frame by itself, as of a picture; of strokes and of what stays where it is at the same
    place in all such frames: what a frame lacks, those beside it show no more than they show what is missing. Where
    frames are missing as a whole, further whole frames, if possible none beside another that is missing.

    Parameters
    ----------
    clip : _Clip
    rng : numpy.random.Generator

    Returns
    -------
    (T H, W, C) ndarray of bool
        True = held out.
    """
    held = np.zeros_like(clip.observed)
    frames = clip.by_frame(held)
    shown, wanted, drawn = clip.by_frame(clip.observed), clip.by_frame(clip.wanted), []
    for t, observed in enumerate(shown):
        if observed.any() and wanted[t].any():
            if clip.strokes[t] or clip.stays[t]:
                drawn.append(t)
            else:
                frames[t] = calibrate.hold_out(observed, SHARE_HELD_OUT, rng, wanted=wanted[t])
    if drawn:
        together, holes = (np.moveaxis(a[drawn], 0, 2) for a in (shown, wanted))
        flat = (*together.shape[:2], -1)
        share = SHARE_HELD_OUT if any(clip.strokes[t] for t in drawn) else SHARE_STAYING
        hidden = calibrate.hold_out(together.reshape(flat), share, rng, wanted=holes.reshape(flat))
        frames[drawn] = np.moveaxis(hidden.reshape(together.shape), 2, 0)
    seen = clip.by_frame(clip.observed).any(axis=(1, 2, 3))
    if not seen.all() and seen.sum() > 2:
        # One without frames on both sides is told worse than most of what is missing.
        poor = np.convolve(~seen, [1, 1, 1], mode="same") > 0
        poor[[0, -1]] = True
        order = sorted(rng.permutation(np.flatnonzero(seen)), key=lambda t: poor[t])
        chosen = []
        for t in order:
            if len(chosen) < max(1, round(SHARE_HELD_OUT * clip.frames)) and not any(
                abs(t - other) <= 1 for other in chosen
            ):
                chosen.append(t)
                frames[t] = clip.by_frame(clip.observed)[t]
    return held


def independent(clip, held):
    """About how many errors of the entries `held` out, (T H, W, C), are independent, see `calibrate.independent`."""
    frames, alike = clip.by_frame(held), np.array(clip.strokes) | np.array(clip.stays)
    apart = sum(calibrate.independent(frame) for frame in frames[~alike])
    return apart + (MOVED * calibrate.independent(frames[alike].any(axis=0)) if alike.any() else 0)


def first_estimate(clip, variance):
    """Estimate of every entry to begin with: what the frames beside it say, following what moves, and the field of the
    frame.

    Parameters
    ----------
    clip : _Clip
    variance : float
        Of the noise.

    Returns
    -------
    (T H, W, C) ndarray of float32
    """
    values, shown = clip.by_frame(clip.values), clip.by_frame(clip.observed)
    known = [t for t in range(clip.frames) if shown[t].any()]
    filled = np.empty(clip.values.shape, np.float32)
    fields, unsure = clip.by_frame(filled), {}
    # How channels go together is much the same in all frames.
    chosen = np.unique(np.linspace(0, len(known) - 1, LEARNT_FROM).round().astype(int))
    prior, factors = field.fit([(values[known[k]], shown[known[k]]) for k in chosen], variance), field.Factors()
    for t in known:
        if shown[t].all() and not variance:
            fields[t] = values[t]
        elif clip.strokes[t] or shown[t].all():
            fields[t] = field.solve(values[t], shown[t], prior=prior, factors=factors).mean
        else:
            fitted, unsure[t] = field.solve_with_sd(
                values[t], shown[t], prior=prior, factors=factors, rng=np.random.default_rng(t), count=SAMPLES
            )
            fields[t] = fitted.mean
    seen = shown.mean(axis=3, dtype=np.float32)
    estimate = filled.copy()
    for t in np.flatnonzero(~shown.all(axis=(1, 2, 3))):
        sides = [*[k for k in known if k < t][-1:], *[k for k in known if k > t][:1]]
        if not sides:
            continue
        if t not in known:
            fields[t] = np.mean([fields[k] for k in sides], axis=0)
        box = _box(~shown[t], motion.reach(max(abs(k - t) for k in sides)))
        own, sides = fields[t][box], [(k - t, fields[k][box], seen[k][box]) for k in sides]
        prediction, error = motion.predict(own, seen[t][box], sides)
        share = 1.0
        if t in known and not clip.strokes[t]:
            share = unsure[t][box] ** 2 / np.maximum(unsure[t][box] ** 2 + error[..., None], np.finfo(float).tiny)
        absent = ~shown[t][box]
        clip.by_frame(estimate)[t][box][absent] = (own + share * (prediction - own))[absent]
    return estimate


def _box(absent, margin):
    """Rows and columns of the part of a frame (H, W, C) in which all that is absent lies, and so much more on every
    side.
    """
    sides = [np.flatnonzero(absent.any(axis=axes)) for axes in ((1, 2), (0, 2))]
    return tuple(slice(max(0, side[0] - margin), side[-1] + margin + 1) for side in sides)


def _refined(clip, start, stages, variance, rng, progress, spread):
    """Estimate after the stages and, if `spread`, its relative variance."""
    return refine_blocks(
        clip.values, clip.observed, start, stages, variance, rng, progress, spread, clip.frames, clip.wanted
    )
