"""Groups of similar patches, each completed by a low-rank Gaussian: the method for photographs; `tdc_cli.patches` has the algorithm.

Two rounds: the first, with some observed entries held out, chooses the start and measures how large errors are; the second uses
everything. The start is the coloured field, blended with the paper's global model where that predicts held-out entries better.
"""

import math
from collections import deque
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..errors import ConfigError
from ..patches import calibrate, field
from ..patches.schedule import TUNED, Settings, passes_of, schedules_for, shortened, validation_windows
from . import Completion, datc, patches_clip, silent
from .blocks import Progress, blocks, refine_blocks
from .parameters import Parameters, noise_level, parameter

# The global model: how it is tried, and how it is run in earnest.
TRIAL = {"rank": 60, "burn_in": 10, "samples": 8}
EARNEST = {"rank": 100, "burn_in": 40, "samples": 30}


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
    flat = (*values.shape[:2], -1)
    done = _completed(values.reshape(flat), observed.reshape(flat), config, rng, monitor)
    arrays = {name: getattr(done, name) for name in ("mean", "sd", "predictive_sd")}
    return replace(done, **{name: None if a is None else a.reshape(values.shape) for name, a in arrays.items()})


def _completed(values, observed, config, rng, monitor):
    """`complete` of (H, W, C) values of order 1."""
    schedules = schedules_for(observed, config)
    windows = validation_windows(observed, rng) if config.calibrate or config.start == "auto" else []
    if config.start == "auto" and (len(windows) > 1 or max(values.shape[:2]) > TUNED.longest_global):
        config = replace(config, start="field")
        windows = windows if config.calibrate else []
    # The other schedule is gone to its end, for it is cheap, and what it is worth shows only there.
    tried = [shortened(schedules[0]), *schedules[1:]] if config.calibrate else []
    progress = Progress(monitor, len(blocks(values)), len(windows) * passes_of(tried) + passes_of(schedules))
    if config.noise_std == "auto":
        config = replace(config, noise_std=math.sqrt(field.solve(values, observed, None).noise_variance))
    noise = float(config.noise_std) ** 2

    rounds = [_validate(values[w], observed[w], tried, noise, config, rng, progress) for w in windows]
    best, errors, spreads = _best(rounds)
    progress.leave_out(passes_of(schedules[best + 1 :]))
    blend = rounds[0].blends[best] if len(rounds) == 1 else _Blend()
    if config.start == "global":
        blend = replace(blend, start=1.0)
    schedules = [blend.widened(stages, config) for stages in schedules[: best + 1]]
    scale = calibrate.fit_scale(errors, spreads, noise)

    estimate, variance = _result(values, observed, schedules, blend, noise, rng, progress, config.calibrate)
    used = {name: getattr(schedules[0][0], name) for name in ("size", "members", "window", "stride")} | {"passes": passes_of(schedules)}
    parameters = asdict(config) | used | {"global_in_start": blend.start, "global_in_result": blend.share,
                                          "falling_in_result": TUNED.falling_share if best else 0.0}  # fmt: skip
    done = Completion(mean=estimate, noise_std=math.sqrt(noise) if noise else None, parameters=parameters)
    if not config.calibrate:
        return done
    sd = _deviations(variance, ~observed if noise == 0 else np.ones_like(observed), scale)
    verdict = {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, noise, rng)}
    few = f"only {len(errors)} observed entries could be held out: the standard deviations are not calibrated"
    return replace(done, sd=sd, predictive_sd=np.sqrt(sd**2 + noise) if noise else sd, held_out=verdict,
                   warnings=(few,) if scale is None else ())  # fmt: skip


def _result(values, observed, schedules, blend, noise, rng, progress, wanted):
    """Estimate of every entry by the last of `_results`, the global model blended in, and its relative variance if `wanted`."""
    whole = _global(values, observed, EARNEST, rng) if blend.start else None
    results = _results(values, observed, _start(values, observed, noise, blend, whole), schedules, noise, rng, progress, wanted)
    estimate, variance = deque(results, maxlen=1).pop()
    if blend.share:
        # What is observed, if only with noise, the patches know better: the global model does not know how much noise there is.
        estimate = np.where(observed, estimate, estimate + blend.share * (whole - estimate))
    return (np.where(observed, values, estimate) if noise == 0 else estimate), variance


def _deviations(variance, estimated, scale):
    """Standard deviations of the `estimated` entries by the scale that held-out ones asked for, if there is one; 0 elsewhere."""
    sd = np.zeros(variance.shape)
    spread = np.sqrt(variance[estimated])
    sd[estimated] = spread if scale is None else scale(spread)
    return sd


@dataclass(frozen=True)
class _Blend:
    """The part of the global model: its weight in the start, beside the field, and in the result, beside the patches."""

    start: float = 0.0
    share: float = 0.0

    def widened(self, stages, config):
        """`stages` with the largest shift at which similar patches are looked for."""
        window = config.window or (TUNED.far if self.start > TUNED.much else Settings.window)
        return tuple(replace(settings, window=window) for settings in stages)


@dataclass(frozen=True)
class _Validation:
    """What a validation round gave for every one of `_results`: errors, relative spreads, and the part of the global model."""

    blends: list
    errors: list
    spreads: list


def _best(rounds):
    """Number of the result to take, and its errors and spreads in all `rounds`.

    The first, unless another's squared errors are smaller by more than the standard error of their mean difference.
    """
    if not rounds or not rounds[0].errors:
        return 0, np.empty(0), np.empty(0)
    errors, spreads = ([np.concatenate(parts) for parts in zip(*(getattr(r, name) for r in rounds))] for name in ("errors", "spreads"))
    if not len(errors[0]):
        return 0, errors[0], spreads[0]
    gains = [errors[0] ** 2 - other**2 for other in errors]
    sure = [gain.sum() - gain.std() * math.sqrt(len(gain)) for gain in gains]
    best = int(np.argmax(sure))
    return best, errors[best], spreads[best]


def _validate(values, observed, schedules, noise, config, rng, progress):
    """Hide some observed entries, complete by every schedule, and compare; without schedules only the start is decided."""
    held = calibrate.hold_out(observed, TUNED.held_out, rng)
    kept = observed & ~held
    start = field.solve(values, kept, noise).mean
    blend, whole = _Blend(), None
    possible = held.sum() >= calibrate.FEWEST and held.size <= TUNED.most_global and min(held.shape[:2]) > 2
    if config.start == "global" or (config.start == "auto" and possible):
        trial = 1.0 if config.start == "global" else _best_weight(values, start, _global(values, kept, TRIAL, rng), held)
        blend = _Blend(start=trial)
        if trial:
            whole = _global(values, kept, EARNEST, rng)
            start = start + trial * (whole - start)
    if not schedules:
        return _Validation([blend], [], [])
    blends, errors, spreads = [], [], []
    for estimate, variance in _results(values, kept, start, [blend.widened(c, config) for c in schedules], noise, rng, progress, True):
        share = 0.0
        if config.start == "auto" and blend.start:
            share = _best_weight(values, estimate, whole, held)
            estimate = estimate + share * (whole - estimate)
        blends.append(replace(blend, share=share))
        errors.append((estimate - values)[held])
        spreads.append(np.sqrt(variance[held]))
    return _Validation(blends, errors, spreads)


def _start(values, observed, noise, blend, whole):
    """First estimate of every entry: the field, blended with the global model's."""
    start = field.solve(values, observed, noise).mean
    return start + blend.start * (whole - start) if blend.start else start


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
    return float(min(weight, 1.0)) if weight >= TUNED.least_weight else 0.0


def _results(values, observed, start, schedules, noise, rng, progress, variance):
    """Iterate over what `refine_blocks` gives: by the first schedule alone, and by each other one mixed with the first."""
    starts, first = [start] * len(schedules), None
    del start  # as in `refine_blocks`
    for stages in schedules:
        result = refine_blocks(values, observed, starts.pop(), stages, noise, rng, progress, variance)
        if first is None:
            first = result if starts else ()
        else:
            result = tuple(None if a is None else a + TUNED.falling_share * (b - a) for a, b in zip(first, result))
        yield result


def warm_up(order, config):
    """Compile every kernel on a tiny picture, so that compilation is not counted as work."""
    rng = np.random.default_rng(0)
    values = rng.random((12, 12, 2))
    for share in (0.3, 0.95):
        complete(values, rng.random(values.shape) < share, Config(passes=1), rng=rng)
