r"""Coloured Gaussian field: a smooth picture whose channels are correlated, completed by its posterior mean.

The picture x of H x W pixels and C channels is a constant per channel plus a Gaussian field,

    x ~ N(offset, (Q (x) S^-1)^-1),    Q = (L + delta I) (L + eps I)^(p - 1),

where L is the Laplacian of the grid with free (Neumann) borders, so that the discrete cosine transform diagonalises Q,
and S the C x C covariance of the channels, learnt together with the field. Over more than a few pixels the field is a
membrane: inside a hole its mean is the harmonic surface that its surroundings carry, and does not return to the offset,
for delta is next to nothing. An observed entry is x + N(0, noise_variance). With D the diagonal precision of the
observations (0 where nothing was observed), the posterior is N(offset + u, A^-1) with

    A = Q (x) S^-1 + D,    A u = D (y - offset);

without noise A is restricted to the missing entries, and A_mm u = -(Q (x) S^-1)_mo (y - offset). Both are solved by
conjugate gradients. The preconditioner is R [W (Q / q + d I)^-1 W + I - W^2] R, where R is, pixel by pixel, the
symmetric root of the inverse of the pixel's block q S^-1 + D (q: the mean eigenvalue of Q), and W^2 is the share of the
prior in the precision of an entry, 1 where it is missing. A posterior sample is u + A^-1 b with b ~ N(0, A) (perturb
and optimise). S is the fixed point of

    S = E[x^T Q x | y] / (H W),

an EM iteration with one sample for the expectation, accelerated by extrapolation.

Pictures of more than `WHOLE` pixels are worked on in windows with a margin, those with something to estimate only, and
pixels farther than `REACH` from anything observed are estimated on a coarser grid first. What is many channels is taken
in groups of at most `COUPLED` consecutive ones, each with a covariance of its own.

References
----------
F. Lindgren, H. Rue, J. Lindstrom: An explicit link between Gaussian fields and Gaussian Markov random fields, J. R.
Stat. Soc. B, 2011. R. Varadhan, C. Roland: Simple and globally convergent methods for accelerating the convergence of
any EM algorithm (SQUAREM), Scand. J. Stat., 2008. P. Siden, F. Lindgren, D. Bolin, M. Villani: Efficient covariance
approximations for large sparse precision matrices, J. Comput. Graph. Stat., 2018.
"""

import contextlib
import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.ndimage

from ..tensor import largest_size

# Exponent p of the field's precision, and eps, both found by trial on photographs; delta only keeps the mean of a
# window finite.
EXPONENT = 2.0
EPSILON = 0.5
DELTA = 1e-6
# Rounds of the accelerated iteration for the channel covariance, and the correlation of channels that it starts from.
STEPS = 4
START_CORRELATION = 0.87
# Share of the mean channel variance that is added to each, so that a picture with equal channels keeps S invertible.
RIDGE = 1e-4
# Energy of the error, relative to that of zero, at which conjugate gradients stop: for a result, while learning, and
# for a sample.
TOLERANCE, LEARNING_TOLERANCE, SAMPLE_TOLERANCE = 5e-4, 2e-3, 1e-2
MOST_ITERATIONS = 200
# d of the preconditioner, relative to the mean eigenvalue of Q.
SHIFT = 0.05
# Pixels up to which a picture is solved in one piece; above, cores of CORE x CORE pixels with a margin, and a coarser
# grid for pixels farther than REACH from everything observed.
WHOLE, CORE, MARGIN, REACH, COARSER = 400 * 400, 256, 32, 24, 4
# Longest side of what is solved in one piece: memory grows with its square.
LONGEST_SIDE = 2000
# Windows that the covariance is learnt from, and the least share of observed entries that one must have.
LEARNT_FROM, LEAST_SHARE = 4, 0.02
# Longest extrapolation of the accelerated iteration, in EM steps; change of the log covariance at which it has settled.
LONGEST, SETTLED = 8.0, 0.01
# Largest number of channels with a covariance of their own; entries up to which the arithmetic is in double precision.
COUPLED, DOUBLE = 8, 40_000
# Scale of a picture all of whose observed entries are equal, relative to them.
FLAT = 1e-6
# Smallest noise variance that is believed in and first guess where it is to be learnt, relative to the variance of the
# data.
LEAST_NOISE, FIRST_NOISE = 1e-8, 1e-2
# Radius, in pixels, over which the noisy part of the variance is averaged.
VARIANCE_BLUR = 1.0


@dataclass(frozen=True)
class Field:
    """A picture's field after it was fitted.

    Attributes
    ----------
    mean : (H, W, C) ndarray of float64
        Posterior mean; without noise the observed entries are the data themselves.
    channel_covariance : (C, C) ndarray
        S, in squared units of the data.
    offset : (C,) ndarray
        Constant of every channel.
    noise_variance : float
        Given or learnt, in squared units of the data.
    exponent : float
        p.
    """

    mean: np.ndarray
    channel_covariance: np.ndarray
    offset: np.ndarray
    noise_variance: float
    exponent: float


@dataclass(frozen=True)
class Prior:
    """What `solve` finds out before it solves, of a picture or, by `fit`, of parts of one.

    Attributes
    ----------
    offset : (C,) ndarray
        Constant of every channel.
    scale : float
        Spread of the data; the others are relative to it.
    covariance : (C, C) ndarray
        S over ``scale**2``.
    noise : float
        Noise variance over ``scale**2``.
    """

    offset: np.ndarray
    scale: float
    covariance: np.ndarray
    noise: float

    @property
    def noise_variance(self):
        """In squared units of the data."""
        return self.noise * self.scale * self.scale


def _dct(a):
    return scipy.fft.dctn(a, type=2, axes=(1, 2), norm="ortho", workers=1)


def _idct(a):
    return scipy.fft.idctn(a, type=2, axes=(1, 2), norm="ortho", workers=1, overwrite_x=True)


def _mix(matrix, a):
    """`matrix` applied to the channels of `a` (C, H, W); einsum, since BLAS may differ in the last bit with its
    threads.
    """
    return np.einsum("ij,jhw->ihw", matrix, a)


def _dot(a, b):
    return float(np.einsum("ihw,ihw->i", a, b).sum(dtype=float))


def _eigenvalues(shape):
    """Eigenvalues of the Laplacian of a grid with free borders, in the order of the DCT, (H, W)."""
    rows, columns = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in shape)
    return rows[:, None] + columns


def _density(eigenvalues, exponent, cell=1):
    """Eigenvalues of Q from those of the Laplacian, on a grid of squares of `cell` pixels."""
    return (eigenvalues + DELTA * cell**2) * (eigenvalues + EPSILON * cell**2) ** (exponent - 1)


@functools.lru_cache(maxsize=8)
def _grid(shape, exponent, cell):
    """Mean eigenvalue q of Q on a grid of `shape` squares of `cell` pixels, the eigenvalues over q, and the diagonal of
    Q over q.

    The last two are (H, W); the diagonal is 1 but near the border.
    """
    eigenvalues = _density(_eigenvalues(shape), exponent, cell)
    level = eigenvalues.mean()
    squares = [
        np.where(np.arange(n)[:, None], 1 + np.cos(np.pi * np.outer(np.arange(n), 2 * np.arange(n) + 1) / n), 1) / n
        for n in shape
    ]
    diagonal = np.einsum("kl,lj->kj", eigenvalues, squares[1])
    return level, eigenvalues / level, np.einsum("ki,kj->ij", squares[0], diagonal) / level


def _root(matrices, power=0.5):
    """Symmetric `power` of symmetric positive semi-definite matrices, (..., C, C)."""
    values, vectors = np.linalg.eigh(matrices)
    top = np.maximum(values, np.finfo(float).tiny) ** power
    return np.einsum("...ij,...j,...kj->...ik", vectors, top, vectors)


class _Window:
    """Posterior of one piece of a picture, in units of the data's spread.

    Parameters
    ----------
    values, observed : (C, H, W) ndarray
        Deviations from the offset, 0 where not observed; True = observed.
    exponent : float
    cell : int
        Side of what is a pixel here, in pixels of the picture.
    """

    def __init__(self, values, observed, exponent, cell=1):
        kind = np.float64 if values.size <= DOUBLE else np.float32
        self.observed = observed
        self.values = values.astype(kind)
        self.level, spectrum, self.diagonal = _grid(values.shape[1:], exponent, cell)
        self.spectrum = spectrum.astype(kind)
        self.smoother = (1 / (spectrum + SHIFT)).astype(kind)
        weights = 1 << np.arange(len(values))
        codes = np.einsum("ihw,i->hw", observed, weights)
        self.patterns, self.pattern = np.unique(codes, return_inverse=True)
        self.pattern = self.pattern.reshape(codes.shape)
        self.patterns = (self.patterns[:, None] & weights) > 0  # (patterns, C), True = observed

    def set_parameters(self, covariance, noise):
        """Make the posterior that of `covariance` (C, C) and of noise variance `noise`, 0: observed entries are exact.
        """
        kind = self.values.dtype
        self.covariance, self.noise = covariance, noise
        coupling = np.linalg.inv(covariance) * self.level
        self.coupling = coupling.astype(kind)
        self.coupling_root = _root(coupling).astype(kind)
        blocks = np.zeros((len(self.patterns), *covariance.shape))
        share = np.ones(self.patterns.shape)
        for block, own, seen in zip(blocks, share, self.patterns):
            if noise:
                inverse = np.linalg.inv(coupling + np.diag(seen / noise))
                block[:] = _root(inverse)
                own[:] = np.diag(coupling) / (np.diag(coupling) + seen / noise)
            else:
                rest = np.ix_(~seen, ~seen)
                block[rest] = _root(coupling[rest], -0.5)
        # B, the inverse of a pixel's block q S^-1 + D, and B (q S^-1) B, by which the block near the border is put
        # right.
        inverses = np.einsum("nij,njk->nik", blocks, blocks)
        bends = np.einsum("nij,jk,nki->ni", inverses, coupling, inverses)
        self.block_variance = np.moveaxis(np.einsum("nii->ni", inverses)[self.pattern], 2, 0)
        self.sure_variance = self.block_variance - (self.diagonal - 1) * np.moveaxis(bends[self.pattern], 2, 0)
        self.root = np.ascontiguousarray(np.moveaxis(blocks.astype(kind)[self.pattern], (2, 3), (0, 1)))
        self.free = np.ones_like(self.values) if noise else (~self.observed).astype(kind)
        self.data_precision = (self.observed / noise).astype(kind) if noise else None
        self.share = np.moveaxis(np.sqrt(share)[self.pattern], 2, 0).astype(kind) if noise else None

    def prior_precision(self, x):
        """(Q (x) S^-1) x."""
        return _idct(_dct(_mix(self.coupling, x)) * self.spectrum)

    def precision(self, x):
        """A x."""
        product = self.prior_precision(x)
        if self.data_precision is not None:
            return product + self.data_precision * x
        return product * self.free

    def local(self, r):
        """R r."""
        return np.einsum("ijhw,jhw->ihw", self.root, r)

    def precondition(self, r):
        near = self.local(r)
        if self.share is None:
            return self.local(_idct(_dct(near) * self.smoother))
        inner = self.share * _idct(_dct(self.share * near) * self.smoother)
        return self.local(inner + (1 - self.share**2) * near)

    def solve(self, b, start, tolerance):
        """A^-1 b by conjugate gradients from `start`, and the residual that is left."""
        energy = _dot(b, self.precondition(b))
        x = start * self.free
        r = b - self.precision(x)
        z = self.precondition(r)
        direction, now = z, _dot(r, z)
        for _ in range(MOST_ITERATIONS):
            if not now > tolerance**2 * energy:
                break
            image = self.precision(direction)
            step = now / _dot(direction, image)
            x += step * direction
            r -= step * image
            z = self.precondition(r)
            now, before = _dot(r, z), now
            direction = z + (now / before) * direction
        return x, r

    def mean(self, start, tolerance):
        """Posterior mean of what is not exactly known, (C, H, W)."""
        b = self.data_precision * self.values if self.noise else -self.prior_precision(self.values) * self.free
        return self.solve(b, start, tolerance)[0]

    def draw_normals(self, rng):
        """The random numbers that one sample needs."""
        kind = self.values.dtype
        return rng.standard_normal(self.values.shape, dtype=kind), rng.standard_normal(self.values.shape, dtype=kind)

    def deviation(self, normals, start, tolerance, given=None):
        """Sample of N(0, A^-1) and A times it; where `given` (C, H, W) is not 0, an observation deviates by that much.
        """
        b = _mix(self.coupling_root, _idct(normals[0] * np.sqrt(self.spectrum))) * self.free
        if self.noise:
            b += np.sqrt(self.data_precision) * normals[1]
        if given is None:
            x, r = self.solve(b, start, tolerance)
        elif self.noise:
            b += self.data_precision * given
            x, r = self.solve(b, start, tolerance)
        else:
            x, r = self.solve(b - self.prior_precision(given) * self.free, start, tolerance)
            x += given
        return x, b - r

    def conditional_mean(self, x, image):
        """Mean of every pixel's entries given all other pixels of `x`, where `image` is A x; near the border an
        approximation.
        """
        return x - self.local(self.local(image))

    def variance(self, squares):
        """Variance of every entry, (C, H, W): given its neighbours, and of that conditional mean, `squares` by a few
        samples.

        With z = x - B A x, Var(x) = E[z^2] + 2 B - B A B for any B. The first term is noisy: relative to the rest it is
        averaged over a few pixels, missing entries and observed ones apart.
        """
        spread = (0, VARIANCE_BLUR, VARIANCE_BLUR)
        ratio = squares / np.maximum(self.block_variance, np.finfo(np.float32).tiny)
        variance = np.zeros_like(self.block_variance)
        for members in (~self.observed, self.observed) if self.noise else (~self.observed,):
            weights = members.astype(float)
            total = scipy.ndimage.gaussian_filter(ratio * weights, spread)
            average = total / np.maximum(scipy.ndimage.gaussian_filter(weights, spread), 1e-6)
            variance += weights * (self.sure_variance + self.block_variance * average)
        return variance

    def spread(self, x):
        """x^T Q x by channels, (C, C)."""
        transformed = _dct(x)
        return np.einsum("ihw,jhw->ij", transformed * self.spectrum, transformed).astype(float) * self.level

    def first_guess(self):
        """Missing entries from averages over ever wider neighbourhoods, first of all channels together, then of each.
        """
        eigenvalues = _eigenvalues(self.values.shape[1:])
        seen = self.observed.astype(self.values.dtype)
        coarse = _fill(self.values, seen, eigenvalues, (3.0, 6.0, 12.0, 30.0))
        shared = ((self.values - coarse) * seen).sum(axis=0, keepdims=True)
        count = seen.sum(axis=0, keepdims=True)
        shared = _fill(shared, count, eigenvalues, (0.7, 1.4, 2.8, 6.0))
        own = (self.values - coarse - shared) * seen
        return coarse + shared + _fill(own, seen, eigenvalues, (0.7, 1.4, 2.8, 6.0))


def _fill(values, weights, eigenvalues, widths):
    """Average of `values` (0 where the weight is 0) over Gaussian windows, the narrowest that hold enough weight."""
    transforms = _dct(values), _dct(weights)
    filled, left = np.zeros_like(values), np.ones_like(values)
    for width in widths:
        kernel = np.exp(-0.5 * width**2 * eigenvalues).astype(values.dtype)
        total, weight = (_idct(t * kernel) for t in transforms)
        weight = np.maximum(weight, 0)
        trust = np.minimum(weight * np.float32(2 * np.pi * width**2), 1)
        filled += left * trust * total / np.maximum(weight, 1e-5)
        left *= 1 - trust
    return filled


# -- the channel covariance
# ---------------------------------------------------------------------------------------------------


class _Learner:
    """Channel covariance, and noise variance where that is not given, from some windows of a group of channels.

    Parameters
    ----------
    windows : list of _Window
    covariance : (C, C) ndarray
        To start from.
    noise : float or None
        None: learnt.
    rng : numpy.random.Generator
    """

    def __init__(self, windows, covariance, noise, rng):
        self.windows, self.given_noise = windows, noise
        self.normals = [w.draw_normals(rng) for w in windows]
        self.means = [w.first_guess() for w in windows]
        self.deviations = [np.zeros_like(w.values) for w in windows]
        self.parameters = self._pack(covariance, FIRST_NOISE if noise is None else noise)

    def _pack(self, covariance, noise):
        values, vectors = np.linalg.eigh(covariance)
        logarithm = (vectors * np.log(values)) @ vectors.T
        return np.append(logarithm.ravel(), np.log(noise) if self.given_noise is None else 0.0)

    def unpacked(self):
        """Covariance (C, C) and noise variance."""
        size = len(self.windows[0].values)
        values, vectors = np.linalg.eigh(self.parameters[:-1].reshape(size, size))
        noise = float(np.exp(self.parameters[-1])) if self.given_noise is None else self.given_noise
        values = np.exp(values)
        # An extrapolation may leave what every iteration keeps to; of equal channels S would be singular.
        return (vectors * np.maximum(values, RIDGE * values.mean())) @ vectors.T, noise

    def round(self, run):
        """Two EM iterations and an extrapolation; returns how far the parameters moved."""
        first = self.parameters
        second = self.parameters = self._iterate(run)
        third = self.parameters = self._iterate(run)
        change, bend = second - first, third - 2 * second + first
        length = np.linalg.norm(change) / max(np.linalg.norm(bend), 1e-12)
        length = min(max(length, 1.0), LONGEST)
        self.parameters = first + 2 * length * change + length**2 * bend
        return np.linalg.norm(self.parameters - first)

    def _iterate(self, run):
        seen = sum(np.count_nonzero(w.observed) for w in self.windows)
        if not seen:  # a group of channels without any data has nothing to learn from
            return self.parameters
        covariance, noise = self.unpacked()
        for window in self.windows:
            window.set_parameters(covariance, noise)

        def work(task):
            k, sampled = task
            window = self.windows[k]
            if sampled:
                self.deviations[k] = window.deviation(self.normals[k], self.deviations[k], LEARNING_TOLERANCE)[0]
            else:
                self.means[k] = window.mean(self.means[k], LEARNING_TOLERANCE)

        run(work, [(k, sampled) for k in range(len(self.windows)) for sampled in (False, True)])
        pixels = sum(w.pattern.size for w in self.windows)
        pairs = list(zip(self.windows, self.means, self.deviations))
        fitted = sum(w.spread(m if noise else w.values + m) for w, m, _ in pairs)
        uncertain = sum(w.spread(e) for w, _, e in pairs)
        if not noise:
            # The scale of S has a closed form: y^T K^-1 y / n. The sample, drawn with the old one, is brought to it.
            uncertain *= np.sum(fitted * np.linalg.inv(covariance)) / seen
        covariance = (fitted + uncertain) / pixels
        covariance += (RIDGE * np.trace(covariance) / len(covariance) + 1e-10) * np.eye(len(covariance))
        if self.given_noise is None:
            misfit = sum(_dot((w.values - m) * w.observed, w.values - m) + _dot(e * w.observed, e) for w, m, e in pairs)
            noise = max(misfit / seen, LEAST_NOISE)
        return self._pack(covariance, noise)


# -- windows
# ------------------------------------------------------------------------------------------------------------------


def _solved_whole(shape):
    """Whether a picture of `shape` (H, W) is solved in one piece."""
    return shape[0] * shape[1] <= WHOLE and max(shape) <= LONGEST_SIDE


def _cores(length, other):
    """(window start, window stop, core start, core stop) along an axis of `length` pixels; `other` is the other axis.
    """
    if _solved_whole((length, other)) or length <= CORE + 2 * MARGIN:
        return [(0, length, 0, length)]
    size = CORE + 2 * MARGIN
    starts = range(0, length, CORE)
    windows = [min(max(start - MARGIN, 0), length - size) for start in starts]
    return [(w, w + size, start, min(start + CORE, length)) for w, start in zip(windows, starts)]


def _windows(shape):
    """Slices of every window and of its core, ``(rows, columns, core rows, core columns)``, for a picture of `shape`
    (H, W).
    """
    return [
        (slice(r[0], r[1]), slice(c[0], c[1]), slice(r[2], r[3]), slice(c[2], c[3]))
        for r in _cores(*shape)
        for c in _cores(*shape[::-1])
    ]


def _inside(window):
    """Slices of the core within its window."""
    rows, columns, core_rows, core_columns = window
    return (
        slice(core_rows.start - rows.start, core_rows.stop - rows.start),
        slice(core_columns.start - columns.start, core_columns.stop - columns.start),
    )


class _Group:
    """Some channels of a picture, in units of the data's spread, read window by window.

    Parameters
    ----------
    values : (H, W, C) ndarray
    observed, wanted : (H, W, C) ndarray of bool
        What is observed, and the entries whose posterior is asked for.
    offset : (C,) ndarray
    scale : float
    exponent : float
    cell : int
        Side of what is a pixel here, in pixels of the picture.
    """

    def __init__(self, values, observed, wanted, offset, scale, exponent, cell=1):
        self.values, self.observed, self.wanted, self.offset, self.scale = values, observed, wanted, offset, scale
        self.exponent, self.cell = exponent, cell
        self.shape = values.shape[:2]

    def cut(self, rows, columns):
        """Deviations from the offset (0 where not observed) and observed entries of a window, both (C, H, W)."""
        observed = np.ascontiguousarray(np.moveaxis(self.observed[rows, columns], 2, 0))
        values = np.moveaxis(self.values[rows, columns], 2, 0)
        with np.errstate(invalid="ignore", over="ignore"):
            values = (
                np.where(observed, values, 0.0) - np.where(observed, self.offset[:, None, None], 0.0)
            ) / self.scale
        return values, observed

    def learning_windows(self):
        """Windows to learn from: up to `LEARNT_FROM`, spread evenly over those with observed entries."""
        able = [w for w in _windows(self.shape) if np.mean(self.observed[w[0], w[1]]) > LEAST_SHARE] or _windows(
            self.shape
        )
        chosen = np.linspace(0, len(able) - 1, min(len(able), LEARNT_FROM)).round().astype(int)
        return [_Window(*self.cut(*able[k][:2]), self.exponent, self.cell) for k in chosen]

    def deep(self):
        """Pixels farther than `REACH` from everything observed, (H, W), or None: they are left to a coarser grid."""
        if _solved_whole(self.shape):
            return None
        any_observed = self.observed.any(axis=2).view(np.uint8)
        near = scipy.ndimage.maximum_filter(any_observed, size=2 * REACH + 1, mode="constant")
        return None if near.all() else near == 0

    def coarser(self, noisy):
        """The same picture on a grid of blocks of `COARSER` x `COARSER` pixels, of which the observed entries are
        averaged.

        All of it is asked for that is not observed exactly.
        """
        height, width = (-(-n // COARSER) for n in self.shape)
        sums = np.zeros((height, width, len(self.offset)))
        counts = np.zeros_like(sums)
        for i in range(COARSER):
            for j in range(COARSER):
                observed = self.observed[i::COARSER, j::COARSER]
                part = np.s_[: observed.shape[0], : observed.shape[1]]
                sums[part] += np.where(observed, self.values[i::COARSER, j::COARSER], 0.0)
                counts[part] += observed
        seen = counts > 0
        return _Group(
            sums / np.maximum(counts, 1),
            seen,
            ~seen | noisy,
            self.offset,
            self.scale,
            self.exponent,
            self.cell * COARSER,
        )


@dataclass
class _Posterior:
    """Of a group: `mean` (H, W, C), `variance` (H, W, C) or None, `deviations` (samples less the mean, (n, H, W, C)) or
    None.
    """

    mean: np.ndarray
    variance: np.ndarray | None
    deviations: np.ndarray | None


def _posterior(group, covariance, noise, out, *, rng, count, keep, run, tick=lambda done, total: None):
    """Posterior of a group: its mean, and from `count` samples its variance and, to `keep`, the samples themselves.

    `out` is a _Posterior of arrays to be filled where something is to be estimated: the mean in units of the data, the
    rest in units of their spread.
    """
    deep, coarse = group.deep(), None
    if deep is not None:
        smaller = group.coarser(noise > 0)
        shape = (*smaller.shape, len(group.offset))
        coarse = _Posterior(
            np.zeros(shape),
            np.zeros(shape, np.float32) if count else None,
            np.zeros((count, *shape), np.float32) if count else None,
        )
        # The same field on the coarser grid: the spectral density stays as it is.
        scaled = covariance * float(COARSER) ** (2 * group.exponent - 2)
        _posterior(smaller, scaled, noise / COARSER**2, coarse, rng=rng, count=count, keep=True, run=run)
    wanted = [w for w in _windows(group.shape) if group.wanted[w[2], w[3]].any()]
    tasks = list(zip(wanted, rng.spawn(len(wanted)) if count else [None] * len(wanted)))
    inner = run if len(tasks) == 1 else _in_turn

    def work(task):
        slices, own = task
        values, observed = group.cut(*slices[:2])
        guided = None if deep is None else deep[slices[:2]]
        exact = observed
        if guided is not None and guided.any():
            filled = _enlarged(coarse.mean, slices, guided) - group.offset[:, None]
            values[:, guided] = filled / group.scale
            exact = observed | guided
        window = _Window(values, exact, group.exponent, group.cell)
        window.set_parameters(covariance, noise)
        mean = window.mean(window.first_guess(), TOLERANCE)
        known = window.values if not noise else 0
        core = (slice(None), *_inside(slices))
        target = (*slices[2:], slice(None))
        todo = np.moveaxis(~observed[core] if not noise else np.ones_like(observed[core]), 0, 2)
        estimate = np.moveaxis((mean + known)[core], 0, 2) * group.scale + group.offset
        np.copyto(out.mean[target], estimate, where=todo)
        if not count:
            return
        normals = [window.draw_normals(own) for _ in range(count)]

        def one(k):
            given = None
            if exact is not observed:
                given = np.zeros_like(window.values)
                given[:, guided] = _enlarged(coarse.deviations[k], slices, guided)
            deviation, image = window.deviation(normals[k], np.zeros_like(mean), SAMPLE_TOLERANCE, given)
            square = window.conditional_mean(deviation, image) ** 2
            return deviation, square

        squares = 0
        for k, (deviation, square) in enumerate(inner(one, range(count))):
            squares = squares + square
            if keep:
                np.copyto(out.deviations[k][target], np.moveaxis(deviation[core], 0, 2), where=todo)
        if out.variance is not None:
            variance = window.variance(squares / count)
            if exact is not observed:
                variance[:, guided] = _enlarged(coarse.variance, slices, guided)
            np.copyto(out.variance[target], np.moveaxis(variance[core], 0, 2), where=todo, casting="same_kind")

    (run if len(tasks) > 1 else _in_turn)(work, tasks, tick)


def _enlarged(coarse, window, chosen):
    """`coarse` (h, w, C), on the grid of blocks, at the `chosen` pixels of a window, (C, n), by linear interpolation.
    """
    rows, columns = np.nonzero(chosen)
    places = [(i + s.start + 0.5) / COARSER - 0.5 for i, s in ((rows, window[0]), (columns, window[1]))]
    return np.stack(
        [scipy.ndimage.map_coordinates(coarse[..., c], places, order=1, mode="nearest") for c in range(coarse.shape[2])]
    )


def _in_turn(work, tasks, tick=lambda done, total: None):
    """Results of `work` for every task."""
    results = []
    for task in tasks:
        results.append(work(task))
        tick(len(results), len(tasks))
    return results


def _runner(stack):
    """`_in_turn` by as many threads as SciPy's transforms may use; the results do not depend on their number."""
    threads = scipy.fft.get_workers()
    if threads == 1:
        return _in_turn
    pool = stack.enter_context(ThreadPoolExecutor(threads))

    def run(work, tasks, tick=lambda done, total: None):
        results = []
        for result in pool.map(work, tasks):
            results.append(result)
            tick(len(results), len(tasks))
        return results

    return run


# -- the public functions
# -----------------------------------------------------------------------------------------------------


def _channel_groups(channels):
    """Slices of consecutive channels that share a covariance."""
    bounds = np.linspace(0, channels, -(-channels // COUPLED) + 1).round().astype(int)
    return [slice(a, b) for a, b in itertools.pairwise(bounds)]


def _moments(parts, unit):
    """Mean (C,) and variance (C,) of the observed entries over `unit`; channels without any get the average of the
    others.
    """
    channels = parts[0][0].shape[2]
    blocks = []
    for values, observed in parts:
        step = max(1, 1_000_000 // max(values[0].size, 1))
        blocks += [(values[i : i + step], observed[i : i + step]) for i in range(0, len(values), step)]
    count = sum(known.sum(axis=(0, 1)) for _, known in blocks)
    seen = count > 0
    if not seen.any():
        return np.zeros(channels), np.zeros(channels)
    total = sum((np.where(known, values, 0.0) / unit).sum(axis=(0, 1)) for values, known in blocks)
    mean = total / np.maximum(count, 1)
    mean[~seen] = mean[seen].mean()
    square = sum((np.where(known, values / unit - mean, 0.0) ** 2).sum(axis=(0, 1)) for values, known in blocks)
    variance = square / np.maximum(count, 1)
    variance[~seen] = variance[seen].mean()
    return mean, variance


def _start(variance):
    """Covariance to start from: the variances of the channels, and the correlation that photographs have."""
    deviation = np.sqrt(np.maximum(variance, 1e-3 * variance.mean() + 1e-12))
    correlation = np.full((len(variance),) * 2, START_CORRELATION)
    np.fill_diagonal(correlation, 1.0)
    return correlation * np.outer(deviation, deviation)


def solve(values, observed, noise_variance=0.0, **how):
    """Fit the field to a picture: posterior mean, channel covariance, and noise level where that is to be learnt.

    Parameters
    ----------
    values : (H, W, C) ndarray of float64
        Never read where `observed` is False.
    observed : (H, W, C) ndarray of bool
        True = observed.
    noise_variance : float or None
        Variance of the noise of the observed entries, in squared units of the data. 0: they are exact. None: learnt.
    exponent : float
        p, above 0.
    channel_covariance : (C, C) ndarray or None
        S, positive definite, in squared units of the data; only its parts within `COUPLED` consecutive channels are
        used. None: learnt.
    steps : int
        Rounds, of two EM iterations each, that learn the covariance and the noise.
    wanted : (H, W, C) ndarray of bool or None
        Missing entries that are asked for; others may be left at the offset. None: all.
    monitor : callable
        Called as ``monitor(done, total, label)``.
    prior : Prior or None
        From `fit`, in place of all that else is learnt from these values; then `noise_variance` and
        `channel_covariance` are not looked at.

    Returns
    -------
    Field
        Its random numbers are fixed: the same picture gives the same bits, whatever the number of threads.
    """
    return _solve(values, observed, noise_variance, **how)[0]


def solve_with_sd(values, observed, noise_variance=0.0, *, rng, count, **how):
    """As `solve`, with the posterior standard deviation of every entry.

    The variance is that of an entry given all the others, which is known, and that of its conditional mean, which comes
    from `count` posterior samples and is averaged over `VARIANCE_BLUR` pixels. `how` is as of `solve`.

    Returns
    -------
    field : Field
    sd : (H, W, C) ndarray of float64
        Of the noise-free entry; without noise 0 where observed.
    """
    return _solve(values, observed, noise_variance, rng=rng, count=count, **how)


def fit(parts, noise_variance=0.0, *, exponent=EXPONENT, steps=STEPS):
    """What is learnt once of a large picture, from a few parts of it.

    Parameters
    ----------
    parts : sequence of ((H, W, C) ndarray of float64, (H, W, C) ndarray of bool)
        Values and observed entries of each.
    noise_variance, exponent, steps
        See `solve`.

    Returns
    -------
    Prior
    """
    with contextlib.ExitStack() as stack:
        return _learnt(parts, noise_variance, exponent, None, steps, _runner(stack), lambda done, total, label: None)


def _learnt(parts, noise_variance, exponent, channel_covariance, steps, run, monitor):
    """`Prior` of parts of a picture, or of the one that is all of it."""
    channels = parts[0][0].shape[2]
    unit = max(largest_size(*part) for part in parts)
    offset, spread = _moments(parts, unit)
    scale = unit * (float(np.sqrt(spread.mean())) or FLAT)
    offset, spread = offset * unit, spread * (unit / scale) ** 2
    noise = noise_variance and max(noise_variance / scale / scale, LEAST_NOISE)
    covariance, noises = np.zeros((channels, channels)), []
    groups = _channel_groups(channels)
    total = len(groups) * (steps + 1)
    for k, own in enumerate(groups):
        if channel_covariance is not None:
            covariance[own, own] = channel_covariance[own, own] / scale / scale
        if channel_covariance is not None and noise is not None:
            continue
        start = _start(spread[own]) if channel_covariance is None else covariance[own, own]
        pictures = [_Group(v[..., own], o[..., own], ~o[..., own], offset[own], scale, exponent) for v, o in parts]
        windows = [window for picture in pictures for window in picture.learning_windows()]
        learner = _Learner(windows, start, noise, np.random.default_rng(k))
        for step in range(steps):
            moved = learner.round(run)
            monitor(k * steps + step + 1, total, "channel covariance")
            if moved < SETTLED:
                break
        learnt, learnt_noise = learner.unpacked()
        if channel_covariance is None:
            covariance[own, own] = learnt
        noises.append((learnt_noise, sum(np.count_nonzero(picture.observed) for picture in pictures)))
    if noise is None:
        noise = sum(n * m for n, m in noises) / max(sum(m for _, m in noises), 1)
    return Prior(offset, scale, covariance, noise)


def _solve(
    values,
    observed,
    noise_variance,
    *,
    exponent=EXPONENT,
    channel_covariance=None,
    steps=STEPS,
    wanted=None,
    monitor=lambda done, total, label: None,
    prior=None,
    rng=None,
    count=0,
):
    groups = _channel_groups(values.shape[2])
    total = len(groups) * (steps + 1)
    with contextlib.ExitStack() as stack:
        run = _runner(stack)
        if prior is None:
            prior = _learnt([(values, observed)], noise_variance, exponent, channel_covariance, steps, run, monitor)
        offset, scale, covariance, noise = prior.offset, prior.scale, prior.covariance, prior.noise
        missing = ~observed if wanted is None else wanted
        asked = observed | missing if noise else missing
        mean = np.broadcast_to(offset, values.shape).copy() if noise else np.where(observed, values, offset)
        variance = np.zeros(values.shape, np.float32) if count else None
        for k, own in enumerate(groups):
            group = _Group(values[..., own], observed[..., own], asked[..., own], offset[own], scale, exponent)
            out = _Posterior(mean[..., own], None if variance is None else variance[..., own], None)

            def tick(done, of, begun=len(groups) * steps + k):
                monitor(begun * of + done, total * of, "picture")

            _posterior(group, covariance[own, own], noise, out, rng=rng, count=count, keep=False, run=run, tick=tick)
    monitor(total, total, "picture")
    with np.errstate(over="ignore"):  # squares of values that themselves are still in range
        fitted = Field(mean, covariance * scale * scale, offset, noise * scale * scale, exponent)
    return fitted, None if variance is None else np.sqrt(variance, dtype=float) * scale


def sample(field, values, observed, count, rng):
    """Samples of the posterior of a fitted field.

    Parameters
    ----------
    field : Field
        From `solve` with the same `values` and `observed`.
    values, observed : (H, W, C) ndarrays
    count : int
    rng : numpy.random.Generator

    Yields
    ------
    (H, W, C) ndarray
        `count` times; without noise the observed entries are those of the data. Windows of a large picture are sampled
        each by itself.
    """
    scale = float(np.sqrt(np.trace(field.channel_covariance) / len(field.offset)))
    noise = field.noise_variance / scale**2
    asked = ~observed | (noise > 0)
    for _ in range(count):
        drawn = field.mean.copy()
        deviations = np.zeros((1, *values.shape), np.float32 if values.size > DOUBLE else np.float64)
        with contextlib.ExitStack() as stack:
            run = _runner(stack)
            for own in _channel_groups(values.shape[2]):
                group = _Group(
                    values[..., own], observed[..., own], asked[..., own], field.offset[own], scale, field.exponent
                )
                out = _Posterior(np.empty_like(drawn[..., own]), None, deviations[..., own])
                within = field.channel_covariance[own, own] / scale**2
                _posterior(group, within, noise, out, rng=rng, count=1, keep=True, run=run)
        drawn += deviations[0] * scale
        yield drawn
