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
from functools import cached_property

import numpy as np

from ..kernels import kernel_threads
from . import kernels
from .kernels_match import match, renew, searchable, tiles
from .kernels_shrink import shrink

# Groups estimated at a time: bounds the memory of the estimates, which is CHUNK * members * D floats.
CHUNK = 512
# Variance added to that of an estimate in its weight, relative to that of the observed entries.
FLOOR = 3e-3
# Share of the pixels of a picture from which on all of them are gone through.
MOST = 0.5


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
    # Channel by channel: a large picture should not be held in double precision more often than it must.
    data = np.empty(known.shape, np.float32)
    for c in range(len(known)):
        standard = np.full(known.shape[1:], np.nan)
        np.subtract(values[..., c], centre, out=standard, where=known[c])
        data[c] = np.divide(standard, unit, out=standard)
    absent = ~known if wanted is None else _planar(wanted, bool)
    problem = _Problem(data, known, (known | absent if noise else absent).any(axis=0), noise, frames, origin)
    chosen, estimate = problem.chosen, data.copy()
    for c, line in enumerate(_lines(estimate)):
        line[chosen] = (start[..., c].reshape(-1)[chosen] - centre) / unit
    del start
    if not noise:
        np.copyto(estimate, data, where=known)
    spread = None
    with kernel_threads():
        for settings in stages:
            if settings.share == 1:
                spread = problem.passes(estimate, settings, rng, tick, variance)
            else:
                other = estimate.copy()
                problem.passes(other, settings, rng, tick, False)
                estimate += np.float32(settings.share) * (other - estimate)
    result = np.array(values, order="C")
    for c, line in enumerate(_lines(estimate)):
        column, own = result.reshape(-1, len(known))[:, c], centre + unit * line[chosen].astype(float)
        if not noise:
            np.copyto(own, column[chosen], where=_lines(known)[c, chosen])  # without the rounding of single precision
        column[chosen] = own
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

    @cached_property
    def changing(self):
        """Pixels that passes may change, (H, W)."""
        return np.ones(self.wanted.shape, bool) if self.noise else ~self.known.all(axis=0)

    @cached_property
    def chosen(self):
        """Their flat positions; where they are most, a slice of all, which is quicker."""
        return np.flatnonzero(self.changing) if self.changing.mean() < MOST else slice(None)

    def passes(self, estimate, settings, rng, tick, variance):
        """Run the passes on `estimate` in place; returns the variance of the last one's mixture, or None."""
        taper = _taper(settings.depth * (1 if settings.apart else len(estimate)), settings.size, settings.taper)
        every = wanted = _touched(self.wanted.reshape(self.shape), settings)
        searched, stale = searchable(estimate, settings.size, settings.contrast), tiles(self.changing, settings.size)
        chosen, lines, data, known = self.chosen, _lines(estimate), _lines(self.data), _lines(self.known)
        before, squares = lines[:, chosen].copy(), None
        for number, ridge in enumerate(np.geomspace(settings.first_ridge, settings.last_ridge, settings.passes)):
            last = number == settings.passes - 1
            positions = _grid(every if last else wanted, settings, rng, self.origin)
            total, weight, squares = self._one_pass(
                estimate, positions, searched, taper, ridge, settings, last, last and variance
            )
            moved = np.zeros(self.wanted.size, bool)
            for c, line in enumerate(lines):
                now, mean, sums = line[chosen], _lines(total)[c, chosen], _lines(weight)[c, chosen]
                reached = sums > 0
                np.divide(mean, sums, out=mean, where=reached)
                np.copyto(mean, now, where=~reached)
                if squares is not None:
                    second = _lines(squares)[c, chosen] / np.where(reached, sums, 1.0)
                    squares[c] = 0.0
                    _lines(squares)[c, chosen] = np.maximum(second - mean**2, 0.0) * reached
                if settings.settled:
                    moved[chosen] |= np.abs(mean - now) > settings.settled
                new = now + (settings.step * (mean - now) + settings.momentum * (now - before[c]))
                if not self.noise:
                    np.copyto(new, data[c, chosen], where=known[c, chosen])
                before[c] = now
                line[chosen] = new
            del total, weight, mean, sums  # before the next pass has its own
            if not last:
                renew(searched, estimate, settings.size, settings.contrast, stale)
                if settings.settled:
                    wanted = _touched((moved & self.wanted.reshape(-1)).reshape(self.shape), settings)
            tick()
        return squares

    def _one_pass(self, estimate, positions, searched, taper, ridge, settings, last, variance):
        """Sums of all weighted estimates of every entry, their weights, and the sums of their squares or None; all (C,
        H, W) float64.
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
            searched, positions, *place, settings.window, settings.reach, min(settings.drift, settings.window), groups
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
        return total, weight, squares if variance else None


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
    for axis, length in enumerate((settings.depth, settings.size, settings.size)):
        reach = 1
        while reach < length:
            step = min(reach, length - reach)
            one, other = (np.moveaxis(chosen, axis, 0)[s] for s in (slice(None, -step), slice(step, None)))
            chosen, reach = np.moveaxis(one | other, 0, axis), reach + step
    return chosen


def _grid(wanted, settings, rng, origin=(0, 0)):
    """Flat positions of the reference patches of a pass: a grid of random origin and its border lines, where `wanted`.
    """
    stride = settings.stride
    rows, columns = (np.unique(np.r_[0, np.arange((rng.integers(stride) - begun) % stride, n, stride), n - 1])
                     for n, begun in zip(wanted.shape[1:], origin))  # fmt: skip
    height, width = (n + settings.size - 1 for n in wanted.shape[1:])
    frame, row, column = np.nonzero(wanted[:, rows[:, None], columns])
    return (frame * height + rows[row]) * width + columns[column]


def _lines(planes):
    """(C, H, W) as (C, H W)."""
    return planes.reshape(len(planes), -1)
