"""Groups of similar patches, each completed by a low-rank Gaussian: the method for photographs; `tdc_cli.patches` has the algorithm.

Two rounds: the first, with some observed entries held out, chooses the start and measures how large errors are; the second uses
everything. The start is the coloured field, blended with the paper's global model where that predicts held-out entries better.
"""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
from scipy.ndimage import distance_transform_cdt

from ..errors import ConfigError, InputError
from ..patches import calibrate, field
from ..patches.refine import Settings, refine
from . import Completion, datc, silent

# Entries of a patch that are worth their cost, and channels that are worked on together.
MOST_ENTRIES, MOST_CHANNELS = 150, 32
SHARE_HELD_OUT = 0.05
# Holes of strokes this deep, in pixels to the nearest observed one (the 90th percentile), are filled better by larger patches.
DEEP = 2
DEEP_SIZE, DEEP_MEMBERS, DEEP_STRIDE = 8, 64, 4
# Passes where most is missing, and where the holes are strokes, which change little after the first few; the held-out round, which only
# measures errors, goes this share of them.
PASSES, STROKE_PASSES, HELD_OUT_PASSES = 18, 12, 2 / 3
# The global model: how it is tried, how it is run in earnest, up to which size, and the least weight at which it is worth it.
TRIAL = {"rank": 60, "burn_in": 10, "samples": 8}
EARNEST = {"rank": 100, "burn_in": 40, "samples": 30}
MOST_GLOBAL, LEAST_WEIGHT = 4_000_000, 0.05
# Where the global model is worth this much beside the field, the picture repeats itself, and similar patches are looked for farther off.
MUCH, FAR = 0.3, 30
LIMITS = {"size": (2, 16), "members": (2, 512), "window": (1, 200), "stride": (1, 16), "passes": (1, 1000)}


@dataclass(frozen=True)
class Config:
    """Parameters of the passes; None: decided by the picture and its holes.

    Attributes
    ----------
    size : int or None
        Side of a patch; None: 6, or 8 for deep strokes, smaller with many channels.
    members : int or None
        Patches in a group; None: 48, or 64 for deep strokes.
    window : int or None
        Largest shift at which similar patches are looked for; None: 18, or 30 where the picture repeats itself.
    stride : int or None
        Distance of reference patches; None: half the size.
    passes : int or None
        None: 18, or 12 where the holes are strokes.
    start : {"auto", "field", "global"}
        First estimate; `auto` blends both by what they predict, and blends the global model into the result as well.
    calibrate : bool
        False leaves out the held-out round: half the time, and no standard deviations.
    noise_std : float or "auto"
        Standard deviation of the noise in data units; 0: observed entries are exact; `auto`: learnt by the field.
    """

    size: int | None = None
    members: int | None = None
    window: int | None = None
    stride: int | None = None
    passes: int | None = None
    start: str = "auto"
    calibrate: bool = True
    noise_std: float | str = 0.0

    def __post_init__(self):
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigError(f"{name} is {value}; it must be from {least} to {most}")
        if self.start not in ("auto", "field", "global"):
            raise ConfigError(f"start '{self.start}' is not one of auto, field, global")
        if isinstance(self.noise_std, str):
            if self.noise_std != "auto":
                raise ConfigError(f"noise_std '{self.noise_std}' is neither a number nor auto")
        elif not (math.isfinite(self.noise_std) and self.noise_std >= 0):
            raise ConfigError(f"noise_std is {self.noise_std:g}; it must be 0 or a finite standard deviation")
        if self.stride is not None and self.size is not None and self.stride > self.size:
            raise ConfigError(f"stride {self.stride} is larger than the patch size {self.size}: pixels in between would be left out")


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Posterior mean of every entry, and standard deviations calibrated on held-out observed entries.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Modes 0 and 1 are the picture, all further modes together its channels. Entries where `observed` is False are never read.
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
    InputError
        Nothing is observed, or observed entries are not finite.
    """
    if not observed.any():
        raise InputError("no entry is observed: nothing to complete from")
    bad = np.count_nonzero(observed & ~np.isfinite(values))
    if bad:
        raise InputError(f"{bad} observed entries are NaN or infinite; mark them as missing")
    shape = values.shape
    values, observed = values.reshape(*shape[:2], -1), observed.reshape(*shape[:2], -1)
    settings = settings_for(observed, config)
    held = calibrate.hold_out(observed, SHARE_HELD_OUT, rng) if config.calibrate or config.start == "auto" else np.zeros_like(observed)
    kept = observed & ~held
    rehearsal = replace(settings, passes=math.ceil(HELD_OUT_PASSES * settings.passes))
    progress = _Progress(monitor, (settings.passes + (rehearsal.passes if config.calibrate else 0)) * len(_blocks(values)))

    first = _field(values, kept, config)
    noise = first.noise_variance if config.noise_std == "auto" else float(config.noise_std) ** 2
    config = replace(config, noise_std=math.sqrt(noise))
    partner = _Partner.of(values, kept, held, first.mean, config, rng)
    window = config.window or (FAR if partner.start > MUCH else Settings.window)
    settings, rehearsal = replace(settings, window=window), replace(rehearsal, window=window)
    scale, verdict, warnings = None, None, []
    if config.calibrate:
        start = first.mean + partner.start * (partner.estimate - first.mean)
        estimate, variance = _refine(values, kept, start, rehearsal, noise, rng, progress, True)
        if config.start == "auto" and partner.start:
            partner = replace(partner, share=_best_weight(values, estimate, partner.estimate, held))
        estimate += partner.share * (partner.estimate - estimate)
        errors, spreads = (estimate - values)[held], np.sqrt(variance[held])
        scale = calibrate.fit_scale(errors, spreads, noise)
        verdict = {"count": int(held.sum()), "coverage90": calibrate.coverage_by_halves(errors, spreads, noise, rng)}
        if scale is None:
            warnings.append(f"only {int(held.sum())} observed entries could be held out: the standard deviations are not calibrated")

    smooth = _field(values, observed, config).mean
    other = _global(values, observed, EARNEST, rng) if partner.start else smooth
    start = smooth + partner.start * (other - smooth)
    estimate, variance = _refine(values, observed, start, settings, noise, rng, progress, config.calibrate)
    estimate += partner.share * (other - estimate)
    sd = None
    if config.calibrate:
        spread = np.sqrt(variance)
        sd = spread if scale is None else scale(spread)
        sd = np.where(observed, 0.0, sd) if noise == 0 else sd
    used = {name: getattr(settings, name) for name in LIMITS}
    return Completion(
        mean=estimate.reshape(shape),
        sd=None if sd is None else sd.reshape(shape),
        predictive_sd=None if sd is None else np.sqrt(sd**2 + noise).reshape(shape),
        noise_std=math.sqrt(noise) if noise else None,
        held_out=verdict,
        parameters=asdict(config) | used | {"global_in_start": partner.start, "global_in_result": partner.share},
        warnings=tuple(warnings),
    )


def settings_for(observed, config):
    """Settings of the passes for a picture and its holes, `config` first.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    config : Config

    Returns
    -------
    Settings
    """
    absent = ~observed
    strokes = calibrate.are_strokes(absent)
    deep = strokes and config.noise_std == 0 and _depth(absent) > DEEP
    channels = min(observed.shape[2], MOST_CHANNELS)
    most = max(2, math.isqrt((2 if deep else 1) * MOST_ENTRIES // channels))
    size = min(config.size or min(DEEP_SIZE if deep else Settings.size, most), *observed.shape[:2])
    stride = config.stride or max(1, size // 2)
    return Settings(size=size, members=config.members or (DEEP_MEMBERS if deep else Settings.members),
                    stride=min(stride, size), passes=config.passes or (STROKE_PASSES if strokes else PASSES))  # fmt: skip


def _depth(absent):
    """How far inside the holes missing pixels lie: 90th percentile of the distance to the nearest pixel with an observed entry."""
    holes = absent.all(axis=2)
    return np.percentile(distance_transform_cdt(holes, "chessboard")[holes], 90) if holes.any() and not holes.all() else 0


def _blocks(values):
    """Slices of the channels that are worked on together."""
    return [slice(c, c + MOST_CHANNELS) for c in range(0, values.shape[2], MOST_CHANNELS)]


def _field(values, observed, config):
    return field.solve(values, observed, None if config.noise_std == "auto" else float(config.noise_std) ** 2)


def _global(values, observed, parameters, rng):
    """Estimate of every entry by the paper's model, with coherence and without a mixture, from a short run of one chain."""
    shape = values.shape if values.shape[2] > 1 else values.shape[:2]
    config = datc.Config(residual="none", spatial=True, ordered_modes=(0, 1), chains=1, **parameters)
    found = datc.complete(np.where(observed, values, 0.0).reshape(shape), observed.reshape(shape), config, rng=rng)
    return found.mean.reshape(values.shape)


@dataclass(frozen=True)
class _Partner:
    """The global model as a partner of the field and of the patches.

    Attributes
    ----------
    estimate : (H, W, C) ndarray
        Its estimate without the held-out entries; the field's where it has no part.
    start, share : float
        Its weight in the start, beside the field, and in the result, beside the patches.
    """

    estimate: np.ndarray
    start: float
    share: float = 0.0

    @classmethod
    def of(cls, values, kept, held, smooth, config, rng):
        """Weight in the start from the held-out entries, by a short trial."""
        possible = kept.size <= MOST_GLOBAL and min(kept.shape[:2]) > 2
        if config.start == "field" or (config.start == "auto" and not (possible and held.any())):
            return cls(smooth, 0.0)
        weight = 1.0
        if config.start == "auto":
            weight = _best_weight(values, smooth, _global(values, kept, TRIAL, rng), held)
        return cls(_global(values, kept, EARNEST, rng), weight) if weight else cls(smooth, 0.0)


def _best_weight(values, one, other, held):
    """Weight of the second estimate beside the first, least squares on the held-out entries; 0 where it is not worth its cost."""
    apart = (other - one)[held]
    weight = apart @ (values - one)[held] / max(apart @ apart, np.finfo(float).tiny)
    return float(min(weight, 1.0)) if weight >= LEAST_WEIGHT else 0.0


def _refine(values, observed, start, settings, noise, rng, progress, variance):
    """`refine`, in blocks of channels."""
    parts = [refine(values[..., b], observed[..., b], start[..., b], settings, noise_variance=noise, rng=rng, tick=progress,
                    variance=variance) for b in _blocks(values)]  # fmt: skip
    spread = np.concatenate([v for _, v in parts], axis=2) if variance else None
    return np.concatenate([estimate for estimate, _ in parts], axis=2), spread


class _Progress:
    """Counts passes for a monitor."""

    def __init__(self, monitor, total):
        self.monitor, self.total, self.done = monitor, total, 0

    def __call__(self):
        self.done += 1
        self.monitor(self.done, self.total, "pass")


def warm_up(order, config):
    """Compile every kernel on a tiny picture, so that compilation is not counted as work."""
    rng = np.random.default_rng(0)
    values = rng.random((12, 12, 2))
    for share in (0.3, 0.95):
        complete(values, rng.random(values.shape) < share, Config(passes=1), rng=rng)
