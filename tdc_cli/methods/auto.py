"""Holes that can be predicted by `patches`, the inside of deep ones by `exemplar`: decided pixel by pixel, by what the posterior knows.

Where no hole is deep (`tdc_cli.exemplar.deep`) the result is that of `patches`, bit for bit. In a deep hole its estimate is kept where its
variance is at most a share of the variance of the surroundings; where it is more, the mean says less than it leaves open, and the pixel is
filled with what looks right, what was predicted beside it being known.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import binary_opening, find_objects, uniform_filter

from ..errors import ConfigError
from ..exemplar.deep import RIM, core, deep
from ..tensor import check_observed
from . import exemplar, patches, silent
from .parameters import parameter

# Pixels beside the holes that the estimate looks at.
MARGIN = 64
# The variance of the surroundings of a pixel is the mean of those within patches of known pixels in a square about it, of these sides.
PATCH, SURROUNDINGS = 7, 4 * RIM + 1


@dataclass(frozen=True)
class Config(patches.Config):
    """Parameters of the passes, as of `patches`, and where inventing begins."""

    line: float = parameter(
        0.5, "In deep holes, share of the variance of the surroundings that an estimate may leave open; what leaves more is invented.", ge=0
    )


def complete(values, observed, config=Config(), *, rng, monitor=silent, source=None):
    """As `patches.complete`, and as `exemplar.complete` where holes are too deep for that.

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
    source : (H, W) ndarray of bool, or None
        True = may be copied. None: all known pixels.

    Returns
    -------
    Completion
        Its standard deviations are those of `patches` where it was predicted, and those of `exemplar` where it was invented.

    Raises
    ------
    ConfigError
        `frames` is not a mode of the values, or `source` has another size.
    """
    check_observed(values, observed)
    if source is not None and source.shape != values.shape[:2]:
        raise ConfigError(f"source has {' x '.join(map(str, source.shape))} pixels, the values {' x '.join(map(str, values.shape[:2]))}")
    if config.frames is not None:
        return patches.complete(values, observed, config, rng=rng, monitor=monitor)
    flat = (*values.shape[:2], -1)
    known = observed.reshape(flat)
    whole = known.all(axis=2) if source is None else known.all(axis=2) & source
    holes = deep(~known.any(axis=2)) if whole.any() else np.zeros(values.shape[:2], bool)
    if not holes.any():
        return patches.complete(values, observed, config, rng=rng, monitor=monitor)
    box = _box(~known.all(axis=2)) if config.noise_std == 0 else np.s_[:, :]
    done = patches.complete(
        values[box], observed[box], config, rng=rng, monitor=lambda k, total, label: monitor(k, total + 1, label), left_out=core
    )
    mean = np.where(observed, values, 0.0)
    mean[box] = done.mean
    sd, invented = np.zeros(values.shape), holes
    if done.sd is not None:
        sd[box] = done.sd
        part = known[box].any(axis=2)
        invented = holes.copy()
        invented[box] &= ~_sure(done.mean.reshape(known[box].shape), done.sd.reshape(known[box].shape), part, config.line)
    left = np.broadcast_to(~invented[..., None], known.shape)
    exemplar.fill_picture(mean.reshape(flat), sd.reshape(flat), left, source, rng, lambda share: monitor(99 + share, 100, "filling"), "",
                          predicted=holes & ~invented)  # fmt: skip
    if done.sd is None:
        return replace(done, mean=mean, invented=invented)
    return replace(done, mean=mean, sd=sd, predictive_sd=np.hypot(sd, done.noise_std) if done.noise_std else sd, invented=invented)


def _box(lost):
    """Rows and columns about everything that is lost, (H, W), and `MARGIN` more."""
    return tuple(slice(max(0, s.start - MARGIN), s.stop + MARGIN) for s in find_objects(lost.astype(np.int8))[0])


def _sure(mean, sd, known, line):
    """Pixels, (H, W), whose estimates leave open at most the share `line` of the variance of the known pixels around, channels together."""
    variance = np.zeros(known.shape)
    for c in range(mean.shape[2]):
        # From the middle of the range, so that little is lost in the difference of squares.
        centred = mean[..., c] - mean[..., c].mean()
        first, second = (_around(power, known, PATCH) for power in (centred, centred**2))
        variance += _around(np.maximum(second - first**2, 0.0), known, SURROUNDINGS)
    sure = ((sd**2).sum(axis=2) <= line * variance) & ~core(~known)
    # Without specks that are predicted, which nothing known is next to.
    return binary_opening(sure | known, np.ones((3, 3))) & ~known


def _around(plane, known, side):
    """Mean of what is `known` of a plane in the square of a side about every pixel; 0 where nothing is."""
    weight = uniform_filter(known.astype(float), side, mode="constant")
    total = uniform_filter(np.where(known, plane, 0.0), side, mode="constant")
    return np.where(weight > 0.5 / side**2, total / np.maximum(weight, 0.5 / side**2), 0.0)


def warm_up(order, config):
    """Compile every kernel on tiny pictures, so that compilation is not counted as work."""
    patches.warm_up(order, config)
    hole = np.zeros((16, 16, 1), bool)
    hole[6:9, 6:9] = True
    picture = np.random.default_rng(0).random(hole.shape)
    exemplar.fill_picture(picture, np.zeros(hole.shape), ~hole, None, np.random.default_rng(0), lambda share: None, "")
