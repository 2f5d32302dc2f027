"""Passes over groups of similar patches, each completed as one Gaussian of low rank plus a rest.

In every pass, reference patches on a grid, whose origin moves from pass to pass, collect the patches most like them in the current
estimate. The patches of a group are taken for samples of one Gaussian, ``N(m, S + rest I)``, with m and S their mean and tapered
covariance, and each becomes its posterior mean given its own observed entries only (`kernels.estimate`). Every entry's new value is
the mean of its estimates; observed entries are restored unless they are noisy. The isotropic rest falls geometrically from pass to
pass, as an annealed empirical Bayes; the map is iterated with over-relaxation and momentum, because plain passes converge slowly.

References
----------
M. Lebrun, A. Buades, J.-M. Morel: A nonlocal Bayesian image denoising algorithm, SIAM J. Imaging Sci., 2013.
G. Yu, G. Sapiro, S. Mallat: Solving inverse problems with piecewise linear estimators, IEEE Trans. Image Process., 2012.
R. Furrer, M. Genton, D. Nychka: Covariance tapering for interpolation of large spatial datasets, J. Comput. Graph. Stat., 2006.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..kernels import kernel_threads
from . import kernels

# Groups estimated at a time: bounds the memory of the estimates, which is CHUNK * members * D floats.
CHUNK = 512


@dataclass(frozen=True)
class Settings:
    """How the passes go.

    Attributes
    ----------
    size : int
        Side of a patch, in pixels.
    members : int
        Patches in a group.
    window : int
        Largest shift at which patches are looked for, in pixels.
    stride : int
        Distance of reference patches, in pixels.
    passes : int
    contrast : float
        How far a difference of channel means is forgiven in matching, 0 to 1.
    taper : float
        Length in pixels over which covariances are trusted: they are multiplied by ``exp(-distance^2 / (2 taper^2))``.
    first_rest, last_rest : float
        Variance of the isotropic rest in the first and last pass, relative to the variance of the observed entries.
    step : float
        Over-relaxation: how much of the change of a pass is made, 1 = as it is.
    momentum : float
        Share of the last change that is made again.
    """

    size: int = 6
    members: int = 48
    window: int = 18
    stride: int = 3
    passes: int = 24
    contrast: float = 0.5
    taper: float = 10.0
    first_rest: float = 5e-2
    last_rest: float = 3e-4
    step: float = 1.5
    momentum: float = 0.5


def refine(values, observed, start, settings, *, noise_variance=0.0, rng, tick=lambda: None, variance=False):
    """Complete a picture by patch groups, from a first estimate.

    Parameters
    ----------
    values : (H, W, C) float64 ndarray
        Entries where `observed` is False are never read.
    observed : (H, W, C) ndarray of bool
    start : (H, W, C) ndarray
        First estimate of every entry.
    settings : Settings
    noise_variance : float
        0: observed entries are exact and restored; else they are estimated.
    rng : numpy.random.Generator
        Moves the grid.
    tick : callable
        Called after every pass.
    variance : bool
        Whether to return the variance too.

    Returns
    -------
    (H, W, C) float64 ndarray
        Estimate.
    (H, W, C) float64 ndarray or None
        Variance of the mixture of all the posteriors of an entry: the mean of their variances plus the variance of their means. A
        relative figure: overlapping estimates share their data.
    """
    centre, unit = _scale(values[observed] if observed.any() else start)
    known = _planar(observed, bool)
    data = _planar(np.where(observed, (values - centre) / unit, 0.0), np.float32)
    estimate = _planar((start - centre) / unit, np.float32)
    noise = noise_variance / unit**2
    if not noise:
        estimate[known] = data[known]
    before, spread = estimate, None
    taper = _taper(len(data), settings.size, settings.taper)
    wanted = _touched(np.ones_like(known) if noise else ~known, settings.size)
    rests = np.geomspace(settings.first_rest, settings.last_rest, settings.passes)
    with kernel_threads():
        for number, rest in enumerate(rests):
            last = variance and number == settings.passes - 1
            positions = _grid(wanted, settings, rng)
            mean, spread = _one_pass(estimate, data, known, positions, taper, rest, noise, settings, last)
            ahead = settings.step * (mean - estimate) + settings.momentum * (estimate - before)
            before, estimate = estimate, (estimate + ahead).astype(np.float32)
            if not noise:
                estimate[known] = data[known]
            tick()
    result = centre + unit * np.moveaxis(estimate, 0, 2).astype(float)
    if not noise:
        result[observed] = values[observed]  # without the rounding of single precision
    return result, None if spread is None else unit**2 * np.moveaxis(spread, 0, 2)


def members(shape, settings):
    """Patches in a group, where the picture is so small that a window holds fewer than asked for."""
    return min(settings.members, math.prod(min(settings.window, n - settings.size) + 1 for n in shape[:2]))


def _scale(seen):
    """Mean and standard deviation; 1 in place of 0."""
    return seen.mean(), seen.std() or 1.0


def _planar(array, dtype):
    return np.ascontiguousarray(np.moveaxis(array, 2, 0), dtype=dtype)


def _taper(channels, size, length):
    """Factors of the covariances of two entries of a patch, by the distance of their pixels, (D, D)."""
    rows, columns = (axis.ravel() for axis in np.mgrid[:size, :size])
    squared = (rows[:, None] - rows) ** 2 + (columns[:, None] - columns) ** 2
    return np.tile(np.exp(-squared / (2 * length**2)), (channels, channels)).astype(np.float32)


def _touched(chosen, size):
    """For every patch by its top left pixel, whether it holds a chosen entry, (H - size + 1, W - size + 1)."""
    counts = np.pad(chosen.any(axis=0).astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    return counts[size:, size:] + counts[:-size, :-size] > counts[size:, :-size] + counts[:-size, size:]


def _grid(wanted, settings, rng):
    """Flat positions of the reference patches of a pass: a grid of random origin and its border lines, where `wanted`."""
    lines = [np.unique(np.r_[0, np.arange(rng.integers(settings.stride), n, settings.stride), n - 1]) for n in wanted.shape]
    rows, columns = (axis.ravel() for axis in np.meshgrid(*lines, indexing="ij"))
    kept = wanted[rows, columns]
    return rows[kept] * (wanted.shape[1] + settings.size - 1) + columns[kept]


def _one_pass(image, data, known, positions, taper, rest, noise, settings, variance):
    """Mean of all estimates of every entry, (C, H, W) float64, and the variance of their mixture or None."""
    size, count = settings.size, members(image.shape[1:], settings)
    total, weight = np.zeros(image.shape), np.zeros(image.shape[1:])
    squares, again = (np.zeros(image.shape), np.zeros(image.shape[1:])) if variance else (None, None)
    length = len(taper)
    estimates = np.empty((min(CHUNK, len(positions)), count, length), np.float32)
    variances = np.empty(estimates.shape if variance else (0, 0, 0), np.float32)
    groups = np.empty((len(positions), count), np.int32)
    kernels.match(image, positions, size, settings.window, settings.contrast, groups)
    for begin in range(0, len(groups), CHUNK):
        chunk = groups[begin : begin + CHUNK]
        found, spread = estimates[: len(chunk)], variances[: len(chunk)]
        kernels.estimate(image, data, known, chunk, size, taper, np.float32(rest), np.float32(noise), found, spread)
        kernels.add_up(chunk, found, size, total, weight)
        if variance:
            kernels.add_up(chunk, spread + found**2, size, squares, again)
    reached = weight > 0
    weight[~reached] = 1.0
    mean = np.where(reached, total / weight, image)
    if variance:
        squares = np.maximum(squares / weight - mean**2, 0.0) * reached
    return mean, squares
