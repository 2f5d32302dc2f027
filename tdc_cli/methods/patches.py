"""Groups of similar patches, each completed by a low-rank Gaussian: the method for photographs; `tdc_cli.patches` has the algorithm.

Two rounds: the first, with some observed entries held out, chooses the start and measures how large errors are; the second uses
everything. The start is the coloured field, blended with the paper's global model where that predicts held-out entries better.
"""

import math
from collections import deque
from dataclasses import asdict, dataclass, replace

import numpy as np
from scipy.ndimage import distance_transform_cdt

from ..errors import ConfigError
from ..patches import calibrate, field
from ..patches.refine import Settings
from . import Completion, datc, patches_clip, silent
from .blocks import MOST_CHANNELS, Progress, blocks, refine_blocks
from .parameters import Parameters, noise_level, parameter

# Entries of a patch that are worth their cost.
MOST_ENTRIES = 150
SHARE_HELD_OUT = 0.05
# Holes of strokes this deep, in pixels to the nearest observed one (the 90th percentile), are filled better by larger patches.
DEEP = 2
DEEP_SIZE, DEEP_MEMBERS = 8, 64
# Passes in all: usually, where more than SPARSE is missing, and where the holes are strokes, which change little after the first few; the
# held-out round, which only measures errors, goes this share of them.
PASSES, SPARSE_PASSES, STROKE_PASSES, HELD_OUT_PASSES = 18, 14, 12, 2 / 3
# Share of scattered missing entries above which what they leave open is reckoned with; then groups are smaller.
SPARSE, SPARSE_MEMBERS = 0.75, 36
# The other course, where more than this is missing: variance of the rest in the first pass, relative to that of the observed entries, and
# the weight of what it gives beside the usual course, where held-out entries ask for it.
VERY_SPARSE, HIGH_REST, FALLING_SHARE = 0.85, 0.3, 0.6
# The most passes that go over wider patches, by so much, where entries are sparse or holes deep, and over finer patches at the end where
# what is missing is scattered; the finer ones' result is averaged with what they began with.
WIDE_PASSES, WIDER, WIDE_MEMBERS = 3, 5 / 4, 48
FINE_PASSES, FINER, FINE_MEMBERS, FINE_SHARE = 2, 2 / 3, 32, 0.5
# The global model: how it is tried, how it is run in earnest, up to which size, and the least weight at which it is worth it.
TRIAL = {"rank": 60, "burn_in": 10, "samples": 8}
EARNEST = {"rank": 100, "burn_in": 40, "samples": 30}
MOST_GLOBAL, LEAST_WEIGHT = 4_000_000, 0.05
# A picture of more than REHEARSED squares of this side is rehearsed on so many of them, and the global model has no part in it.
REHEARSED, SQUARE = 4, 256
# Longest side of a picture that the global model has a part in: the time of its coherence grows with the square of the side.
LONGEST_GLOBAL = 4000
# Where the global model is worth this much beside the field, the picture repeats itself, and similar patches are looked for farther off.
MUCH, FAR = 0.3, 30


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the passes; None: decided by the picture and its holes."""

    size: int | None = parameter(
        None,
        "Side of a patch; None: 6, or 8 for deep strokes, smaller with many channels. In clips 6, under noise the last pass 4.",
        ge=2,
        le=16,
    )
    members: int | None = parameter(
        None,
        "Patches in a group; None: 48, or 64 for deep strokes, and 36 where more than three quarters are missing. In clips 64, or 150 "
        "where the holes are strokes.",
        ge=2,
        le=512,
    )
    window: int | None = parameter(
        None,
        "Largest shift at which similar patches are looked for; None: 18, or 30 where the picture repeats itself. In clips 10, about "
        "where the patch has moved to.",
        ge=1,
        le=200,
    )
    stride: int | None = parameter(
        None,
        "Distance of reference patches; None: half the size. In clips 3, or 4 where the holes are strokes, and 2 in the last pass "
        "under noise.",
        ge=1,
        le=16,
    )
    passes: int | None = parameter(
        None,
        "How often all groups are completed; None: 18, or 14 where more than three quarters are missing, or 12 where the holes are "
        "strokes. In clips 5, or 2 under noise.",
        ge=1,
        le=1000,
    )
    start: str = parameter(
        "auto",
        "First estimate; `auto` blends both by what they predict, and blends the global model into the result as well. Clips begin with "
        "the frames before and after, and the field.",
        choices=("auto", "field", "global"),
    )
    calibrate: bool = parameter(True, "False leaves out the held-out round: about half the time, and no standard deviations.")
    noise_std: float | str = noise_level("0: observed entries are exact; `auto`: learnt by the field.")
    frames: int | None = parameter(
        None, "Mode that counts the frames of a clip, after the rows and the columns; None: the values are a picture.", ge=2
    )

    def __post_init__(self):
        super().__post_init__()
        if self.stride is not None and self.size is not None and self.stride > self.size:
            raise ConfigError(f"stride {self.stride} is larger than the patch size {self.size}: pixels in between would be left out",
                              fields=("stride", "size"))  # fmt: skip


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Posterior mean of every entry, and standard deviations calibrated on held-out observed entries.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Modes 0 and 1 are the picture, all further modes together its channels, but for the one that counts the frames of a clip. Entries
        where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    config : Config
    rng : numpy.random.Generator
    monitor : callable
        Called as ``monitor(done, total, label)``.

    Returns
    -------
    Completion

    Raises
    ------
    ConfigError
        `frames` is not a mode of the values.
    """
    if config.frames is not None:
        if config.frames >= values.ndim:
            raise ConfigError(f"frames is {config.frames}, but the modes of the values are 0 to {values.ndim - 1}")
        if values.shape[config.frames] > 1:
            return patches_clip.complete(values, observed, config, rng=rng, monitor=monitor)
    shape = values.shape
    values, observed = values.reshape(*shape[:2], -1), observed.reshape(*shape[:2], -1)
    courses = courses_for(observed, config)
    windows = rehearsal_windows(observed, rng) if config.calibrate or config.start == "auto" else []
    if config.start == "auto" and (len(windows) > 1 or max(shape[:2]) > LONGEST_GLOBAL):
        config = replace(config, start="field")
        windows = windows if config.calibrate else []
    # The other course is gone to its end, for it is cheap, and what it is worth shows only there.
    rehearsed = [_shortened(courses[0]), *courses[1:]] if config.calibrate else []
    progress = Progress(monitor, len(blocks(values)), len(windows) * _passes(rehearsed) + _passes(courses))
    if config.noise_std == "auto":
        config = replace(config, noise_std=math.sqrt(field.solve(values, observed, None).noise_variance))
    noise = float(config.noise_std) ** 2

    tries = [_rehearse(values[w], observed[w], rehearsed, noise, config, rng, progress) for w in windows]
    best, errors, spreads = _best(tries)
    progress.leave_out(_passes(courses[best + 1 :]))
    courses = courses[: best + 1]
    partner = tries[0].partners[best] if len(tries) == 1 else _Partner()
    if config.start == "global":
        partner = replace(partner, start=1.0)
    scale = calibrate.fit_scale(errors, spreads, noise)

    whole = _global(values, observed, EARNEST, rng) if partner.start else None
    courses = [partner.widened(stages, config) for stages in courses]
    results = _results(values, observed, _start(values, observed, noise, partner, whole), courses, noise, rng, progress, config.calibrate)
    estimate, variance = deque(results, maxlen=1).pop()
    if partner.share:
        # What is observed, if only with noise, the patches know better: the global model does not know how much noise there is.
        estimate = np.where(observed, estimate, estimate + partner.share * (whole - estimate))
    if noise == 0:
        estimate = np.where(observed, values, estimate)
    sd, verdict, warnings = None, None, []
    if config.calibrate:
        estimated = ~observed if noise == 0 else np.ones_like(observed)
        spread = np.sqrt(variance[estimated])
        del variance
        sd = np.zeros(values.shape)
        sd[estimated] = spread if scale is None else scale(spread)
        verdict = {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, noise, rng)}
        if scale is None:
            warnings.append(f"only {len(errors)} observed entries could be held out: the standard deviations are not calibrated")
    used = {name: getattr(courses[0][0], name) for name in ("size", "members", "window", "stride")} | {"passes": _passes(courses)}
    return Completion(
        mean=estimate.reshape(shape),
        sd=None if sd is None else sd.reshape(shape),
        predictive_sd=None if sd is None else (np.sqrt(sd**2 + noise) if noise else sd).reshape(shape),
        noise_std=math.sqrt(noise) if noise else None,
        held_out=verdict,
        parameters=asdict(config) | used | {"global_in_start": partner.start, "global_in_result": partner.share,
                                      "falling_in_result": FALLING_SHARE if best else 0.0},
        warnings=tuple(warnings),
    )


def courses_for(observed, config):
    """Courses of the passes for a picture and its holes, `config` first; the held-out round says whether the second pays.

    Deep strokes and sparse entries go on to wider patches. Scattered entries end with finer ones, averaged with what was there before.
    Very sparse entries have two courses: one with a small isotropic rest that reckons with what is left open, better for texture, and one
    whose rest falls from much higher. Where the picture is much the same again and again, their mean is better.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    config : Config

    Returns
    -------
    list of tuple of Settings
        Of each course its stages; as many passes in all.
    """
    absent = ~observed
    strokes = calibrate.are_strokes(absent)
    deep = strokes and config.noise_std == 0 and _depth(absent) > DEEP
    sparse = not strokes and absent.mean() > SPARSE
    smallest, channels = min(observed.shape[:2]), min(observed.shape[2], MOST_CHANNELS)
    most, widest = (min(smallest, max(2, math.isqrt(n * MOST_ENTRIES // channels))) for n in (1, 2))
    size = min(config.size or DEEP_SIZE, widest) if deep else min(config.size or Settings.size, most)
    stride = min(size, config.stride or max(1, size // 2))
    members = DEEP_MEMBERS if deep else SPARSE_MEMBERS if sparse else Settings.members
    passes = config.passes or (STROKE_PASSES if strokes else SPARSE_PASSES if sparse else PASSES)
    fine = 0 if strokes else min(FINE_PASSES, passes // 4)
    wide = min(WIDE_PASSES, passes // 4) if sparse or deep else 0
    main = Settings(size=size, members=config.members or members, stride=stride, passes=passes - fine - wide)
    wider = replace(_scaled(main, WIDER, widest), passes=wide, first_rest=main.last_rest)
    finer = replace(_scaled(main, FINER, most), passes=fine, first_rest=main.last_rest, members=config.members or FINE_MEMBERS, step=1.0,
                    momentum=0.0, share=FINE_SHARE)  # fmt: skip
    if not sparse:
        return [_without_empty(main, wider, finer)]
    wider = replace(wider, members=config.members or WIDE_MEMBERS)
    careful = _without_empty(*(replace(s, uncertain=True, first_rest=s.last_rest) for s in (main, wider, finer)))
    falling = (replace(main, passes=passes, first_rest=HIGH_REST),)
    return [careful, falling] if absent.mean() > VERY_SPARSE else [careful]


def _without_empty(*stages):
    """The stages that have passes."""
    return tuple(s for s in stages if s.passes)


def _shortened(stages):
    """The stages as the held-out round goes them."""
    return tuple(replace(s, passes=math.ceil(HELD_OUT_PASSES * s.passes)) for s in stages)


def _passes(courses):
    """Passes of all stages of all courses."""
    return sum(s.passes for stages in courses for s in stages)


def _scaled(settings, factor, most):
    """The same with patches of another size, up to `most`."""
    size = min(most, max(2, round(factor * settings.size)))
    return replace(settings, size=size, stride=max(1, min(size, round(factor * settings.stride))))


def _depth(absent):
    """How far inside the holes missing pixels lie: 90th percentile of the distance to the nearest pixel with an observed entry."""
    holes = absent.all(axis=2)
    return np.percentile(distance_transform_cdt(holes, "chessboard")[holes], 90) if holes.any() and not holes.all() else 0


def rehearsal_windows(observed, rng):
    """Parts of a picture on which the held-out round is run: all of it, or of a large one a few squares, the likelier the more they miss.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    rng : numpy.random.Generator

    Returns
    -------
    list of (slice, slice)
    """
    height, width = observed.shape[:2]
    if height * width <= REHEARSED * SQUARE**2:
        return [(slice(None), slice(None))]
    # The last squares lie within the picture too: a narrow rest could be smaller than a patch.
    rows, columns = (np.linspace(0, max(0, n - SQUARE), math.ceil(n / SQUARE)).astype(int) for n in (height, width))
    squares = [(slice(r, r + SQUARE), slice(c, c + SQUARE)) for r in rows for c in columns]
    squares = [s for s in squares if observed[s].any()]
    misses = np.array([np.sum(~observed[s]) for s in squares], dtype=float)
    if not misses.any():
        misses += 1
    count = min(REHEARSED, np.count_nonzero(misses))
    return [squares[k] for k in sorted(rng.choice(len(squares), count, replace=False, p=misses / misses.sum()))]


@dataclass(frozen=True)
class _Partner:
    """The part of the global model: its weight in the start, beside the field, and in the result, beside the patches."""

    start: float = 0.0
    share: float = 0.0

    def widened(self, stages, config):
        """`stages` with the largest shift at which similar patches are looked for."""
        window = config.window or (FAR if self.start > MUCH else Settings.window)
        return tuple(replace(settings, window=window) for settings in stages)


@dataclass(frozen=True)
class _Rehearsal:
    """What a round with held-out entries gave for every one of `_results`: errors, relative spreads, and the part of the global model."""

    partners: list
    errors: list
    spreads: list


def _best(tries):
    """Number of the result to take, and its errors and spreads in all `tries`.

    The first, unless another's squared errors are smaller by more than the standard error of their mean difference.
    """
    if not tries or not tries[0].errors:
        return 0, np.empty(0), np.empty(0)
    errors, spreads = ([np.concatenate(parts) for parts in zip(*(getattr(t, name) for t in tries))] for name in ("errors", "spreads"))
    if not len(errors[0]):
        return 0, errors[0], spreads[0]
    gains = [errors[0] ** 2 - other**2 for other in errors]
    sure = [gain.sum() - gain.std() * math.sqrt(len(gain)) for gain in gains]
    best = int(np.argmax(sure))
    return best, errors[best], spreads[best]


def _rehearse(values, observed, courses, noise, config, rng, progress):
    """Hide some observed entries, complete by every course, and compare; without courses only the start is decided."""
    held = calibrate.hold_out(observed, SHARE_HELD_OUT, rng)
    kept = observed & ~held
    start = field.solve(values, kept, noise).mean
    partner, whole = _Partner(), None
    possible = held.sum() >= calibrate.FEWEST and held.size <= MOST_GLOBAL and min(held.shape[:2]) > 2
    if config.start == "global" or (config.start == "auto" and possible):
        trial = 1.0 if config.start == "global" else _best_weight(values, start, _global(values, kept, TRIAL, rng), held)
        partner = _Partner(start=trial)
        if trial:
            whole = _global(values, kept, EARNEST, rng)
            start = start + trial * (whole - start)
    if not courses:
        return _Rehearsal([partner], [], [])
    partners, errors, spreads = [], [], []
    for estimate, variance in _results(values, kept, start, [partner.widened(c, config) for c in courses], noise, rng, progress, True):
        share = 0.0
        if config.start == "auto" and partner.start:
            share = _best_weight(values, estimate, whole, held)
            estimate = estimate + share * (whole - estimate)
        partners.append(replace(partner, share=share))
        errors.append((estimate - values)[held])
        spreads.append(np.sqrt(variance[held]))
    return _Rehearsal(partners, errors, spreads)


def _start(values, observed, noise, partner, whole):
    """First estimate of every entry: the field, blended with the global model's."""
    start = field.solve(values, observed, noise).mean
    return start + partner.start * (whole - start) if partner.start else start


def _global(values, observed, parameters, rng):
    """Estimate of every entry by the paper's model, with coherence and without a mixture, from a short run of one chain."""
    shape = values.shape if values.shape[2] > 1 else values.shape[:2]
    config = datc.Config(residual="none", spatial=True, ordered_modes=(0, 1), chains=1, **parameters)
    found = datc.complete(np.where(observed, values, 0.0).reshape(shape), observed.reshape(shape), config, rng=rng)
    return found.mean.reshape(values.shape)


def _best_weight(values, one, other, held):
    """Weight of the second estimate beside the first, least squares on the held-out entries; 0 where it is not worth its cost."""
    apart = (other - one)[held]
    weight = apart @ (values - one)[held] / max(apart @ apart, np.finfo(float).tiny)
    return float(min(weight, 1.0)) if weight >= LEAST_WEIGHT else 0.0


def _results(values, observed, start, courses, noise, rng, progress, variance):
    """Iterate over what `refine_blocks` gives: by the first course alone, and by each other one mixed with the first."""
    starts, first = [start] * len(courses), None
    del start  # as in `refine_blocks`
    for stages in courses:
        result = refine_blocks(values, observed, starts.pop(), stages, noise, rng, progress, variance)
        if first is None:
            first = result if starts else ()
        else:
            result = tuple(None if a is None else a + FALLING_SHARE * (b - a) for a, b in zip(first, result))
        yield result


def warm_up(order, config):
    """Compile every kernel on a tiny picture, so that compilation is not counted as work."""
    rng = np.random.default_rng(0)
    values = rng.random((12, 12, 2))
    for share in (0.3, 0.95):
        complete(values, rng.random(values.shape) < share, Config(passes=1), rng=rng)
