"""Passes over groups of similar patches, each completed as one Gaussian of low rank plus an isotropic variance, the
ridge.

In every pass, reference patches on a grid, whose origin moves from pass to pass, collect the patches most like them in
the current estimate. The patches of a group are taken for samples of one Gaussian, ``N(m, S + ridge I)``, with m and S
their mean and tapered covariance, and each becomes its posterior mean given its own observed entries only
(`kernels.estimate`). Every entry's new value is the mean of its estimates, in the last pass of a stage the surer ones
counting more; observed entries are restored unless they are noisy. The ridge falls geometrically from pass to pass, as
an annealed empirical Bayes; where patches have few observed entries, S includes what their missing ones leave open
instead. The map is iterated with over-relaxation and momentum, because plain passes converge slowly. Passes with the
same settings are a stage; a stage begins with the result of the one before.

A clip is given as its frames one below the other. Groups then reach across frames, and patches may be several frames
deep.

References
----------
M. Lebrun, A. Buades, J.-M. Morel: A nonlocal Bayesian image denoising algorithm, SIAM J. Imaging Sci., 2013.
G. Yu, G. Sapiro, S. Mallat: Solving inverse problems with piecewise linear estimators, IEEE Trans. Image Process.,
2012. R. Furrer, M. Genton, D. Nychka: Covariance tapering for interpolation of large spatial datasets, J. Comput.
Graph. Stat., 2006.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..kernels import kernel_threads
from . import kernels
from .kernels_match import match
from .kernels_shrink import shrink

# Groups estimated at a time: bounds the memory of the estimates, which is CHUNK * members * D floats.
CHUNK = 512
# Variance added to that of an estimate in its weight, relative to that of the observed entries.
FLOOR = 3e-3


def refine(
    values,
    observed,
    start,
    stages,
    *,
    frames=1,
    noise_variance=0.0,
    rng,
    tick=lambda: None,
    variance=False,
    wanted=None,
    unit=None,
    origin=(0, 0),
):
    """Complete a picture, or the frames of a clip, by patch groups, from a first estimate.

    Parameters
    ----------
    values : (H, W, C) float64 ndarray
        Entries where `observed` is False are never read.
    observed : (H, W, C) ndarray of bool
    start : (H, W, C) ndarray
        First estimate of every entry.
    stages : sequence of Settings
        One after the other, each from the result of the one before.
    frames : int
        Frames of equal height that lie one below the other.
    noise_variance : float
        0: observed entries are exact and restored; else they are estimated.
    rng : numpy.random.Generator
        Moves the grid.
    tick : callable
        Called after every pass.
    variance : bool
        Whether to return the variance too.
    wanted : (H, W, C) ndarray of bool, or None
        Missing entries to estimate; None: all. Groups are made of patches that hold one, under noise of those too that
        hold an observed entry; of the others most stay as they were.
    unit : (float, float) or None
        Centre and spread of a larger picture that this is a region of; None: those of what is observed here.
    origin : (int, int)
        Row and column of that picture where the region begins: the grids of all regions are one.

    Returns
    -------
    (H, W, C) float64 ndarray
        Estimate.
    (H, W, C) float64 ndarray or None
        Variance of the mixture of all the posteriors of an entry: the weighted mean of their variances plus the
        variance of their means, in the last pass of the last stage whose share is 1. A relative figure: overlapping
        estimates share their data.
    """
    centre, unit = unit or scale_of(values[observed] if observed.any() else start)
    known = _planar(observed, bool)
    noise = noise_variance / unit**2
    # In place and channel by channel: a large picture should not be held more often than it must.
    data, estimate = np.full(known.shape, np.nan, np.float32), np.empty(known.shape, np.float32)
    for c in range(len(known)):
        data[c, known[c]] = (values[..., c][known[c]] - centre) / unit
        estimate[c] = (start[..., c] - centre) / unit
    del start
    if not noise:
        np.copyto(estimate, data, where=known)
    absent = ~known if wanted is None else _planar(wanted, bool)
    problem = _Problem(data, known, (known | absent if noise else absent).any(axis=0), noise, frames, origin)
    spread = None
    with kernel_threads():
        for settings in stages:
            if settings.share == 1:
                spread = problem.passes(estimate, settings, rng, tick, variance)
            else:
                other = estimate.copy()
                problem.passes(other, settings, rng, tick, False)
                estimate += np.float32(settings.share) * (other - estimate)
    result = np.empty(values.shape)
    for c in range(len(known)):
        result[..., c] = centre + unit * estimate[c].astype(float)
        if not noise:
            np.copyto(result[..., c], values[..., c], where=known[c])  # without the rounding of single precision
    if spread is not None:
        spread *= unit**2
        spread = np.moveaxis(spread, 0, 2)
    return result, spread


@dataclass(frozen=True)
class _Problem:
    """What is known of a planar picture in units of its spread, and its pixels to estimate, (H, W); data are NaN where
    not known.
    """

    data: np.ndarray
    known: np.ndarray
    wanted: np.ndarray
    noise: float
    frames: int
    origin: tuple

    @property
    def shape(self):
        """Frames, rows of a frame, columns."""
        return self.frames, self.known.shape[1] // self.frames, self.known.shape[2]

    def passes(self, estimate, settings, rng, tick, variance):
        """Run the passes on `estimate` in place; returns the variance of the last one's mixture, or None."""
        before, spread = estimate.copy(), None
        taper = _taper(settings.depth * (1 if settings.apart else len(estimate)), settings.size, settings.taper)
        every = wanted = _touched(self.wanted.reshape(self.shape), settings)
        ridges = np.geomspace(settings.first_ridge, settings.last_ridge, settings.passes)
        for number, ridge in enumerate(ridges):
            last = number == settings.passes - 1
            positions = _grid(every if last else wanted, settings, rng, self.origin)
            mean, spread = self._one_pass(estimate, positions, taper, ridge, settings, last, last and variance)
            if settings.settled and not last:
                moved = (np.abs(mean - estimate) > settings.settled).any(axis=0) & self.wanted
                wanted = _touched(moved.reshape(self.shape), settings)
            for c in range(len(estimate)):
                ahead = settings.step * (mean[c] - estimate[c]) + settings.momentum * (estimate[c] - before[c])
                before[c] = estimate[c]
                estimate[c] += ahead
            del mean  # before the next pass has one of its own
            if not self.noise:
                np.copyto(estimate, self.data, where=self.known)
            tick()
        return spread

    def _one_pass(self, estimate, positions, taper, ridge, settings, last, variance):
        """Weighted mean of all estimates of every entry, (C, H, W) float64, and the variance of their mixture or None.
        """
        size, count = settings.size, members(self.shape, settings)
        length = settings.depth * len(estimate) * size**2
        place = self.shape[1], settings.depth, size
        total, weight = np.zeros(estimate.shape), np.zeros(estimate.shape)
        squares = np.zeros(estimate.shape if variance else (0, 0, 0))
        weighted = settings.uncertain or settings.shrinks or (last and (settings.weighted or variance))
        noisy = np.where(self.known, self.data, estimate) if settings.shrinks else None
        estimated = count if settings.shrinks else min(count, settings.estimated or count)
        estimates = np.empty((min(CHUNK, len(positions)), estimated, length), np.float32)
        # One for each group is enough for weights.
        each = 1 if settings.uncertain and not variance else estimated
        variances = np.empty((len(estimates), each, length) if weighted else (0, 0, 0), np.float32)
        groups = np.empty((len(positions), count), np.int32)
        match(
            estimate,
            positions,
            *place,
            settings.window,
            settings.reach,
            min(settings.drift, settings.window),
            settings.contrast,
            groups,
        )
        for begin in range(0, len(groups), CHUNK):
            chunk = groups[begin : begin + CHUNK]
            found, spread = estimates[: len(chunk)], variances[: len(chunk)]
            if settings.shrinks:
                shrink(noisy, chunk, *place, np.float32(self.noise), found, spread)
            else:
                kernels.estimate(estimate, self.data, chunk, *place, taper, np.float32(ridge), np.float32(self.noise),
                                 settings.uncertain, settings.apart, found, spread)  # fmt: skip
            kernels.add_up(chunk, found, spread, *place, np.float32(FLOOR), total, weight, squares)
        reached = weight > 0
        np.divide(total, weight, out=total, where=reached)
        np.copyto(total, estimate, where=~reached)
        if not variance:
            return total, None
        np.divide(squares, weight, out=squares, where=reached)
        for c in range(len(squares)):
            squares[c] = np.maximum(squares[c] - total[c] ** 2, 0.0) * reached[c]
        return total, squares


def members(shape, settings):
    """Patches in a group, where frames (T, H, W) are so small that a window holds fewer than asked for."""
    own, other = (
        math.prod(min(shift, n - settings.size) + 1 for n in shape[1:]) for shift in (settings.window, settings.drift)
    )
    return min(settings.members, own + min(settings.reach, shape[0] - settings.depth) * min(own, other))


def scale_of(seen):
    """Mean and standard deviation; 1 in place of 0."""
    return seen.mean(), seen.std() or 1.0


def _planar(array, dtype):
    return np.ascontiguousarray(np.moveaxis(array, 2, 0), dtype=dtype)


def _taper(channels, size, length):
    """Factors of the covariances of two entries of a patch, by the distance of their pixels, (D, D)."""
    rows, columns = (axis.ravel() for axis in np.mgrid[:size, :size])
    squared = (rows[:, None] - rows) ** 2 + (columns[:, None] - columns) ** 2
    return np.tile(np.exp(-squared / (2 * length**2)), (channels, channels)).astype(np.float32)


def _touched(chosen, settings):
    """For every patch by its first frame and top left pixel, whether it holds a chosen pixel of `chosen` (T, H, W).

    The result is (T - depth + 1, H - size + 1, W - size + 1).
    """
    depth, size = settings.depth, settings.size
    deep = np.logical_or.reduce([chosen[d : len(chosen) - depth + 1 + d] for d in range(depth)])
    counts = np.pad(deep.cumsum(axis=1, dtype=np.int32).cumsum(axis=2, dtype=np.int32), ((0, 0), (1, 0), (1, 0)))
    return counts[:, size:, size:] + counts[:, :-size, :-size] > counts[:, size:, :-size] + counts[:, :-size, size:]


def _grid(wanted, settings, rng, origin=(0, 0)):
    """Flat positions of the reference patches of a pass: a grid of random origin and its border lines, where `wanted`.
    """
    stride = settings.stride
    lines = [np.unique(np.r_[0, np.arange((rng.integers(stride) - begun) % stride, n, stride), n - 1])
             for n, begun in zip(wanted.shape[1:], origin)]  # fmt: skip
    chosen = np.zeros(wanted.shape[1:], bool)
    chosen[np.ix_(*lines)] = True
    frames, rows, columns = np.nonzero(wanted & chosen)
    height, width = (n + settings.size - 1 for n in wanted.shape[1:])
    return (frames * height + rows) * width + columns
