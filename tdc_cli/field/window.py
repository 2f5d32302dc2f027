"""Posterior of one piece of a picture, by conjugate gradients; `tdc_cli.field` has the equations."""

import numpy as np
import scipy.ndimage

from .spectrum import dct, grid, idct, laplacian

# Of conjugate gradients.
MOST_ITERATIONS = 200
# d of the preconditioner, relative to the mean eigenvalue of Q.
SHIFT = 0.05
# Depth in pixels up to which holes of all channels do without the smooth part of the preconditioner.
SHALLOW = 3
# Entries up to which the arithmetic is in double precision.
DOUBLE = 40_000
# Radius, in pixels, over which the noisy part of the variance is averaged.
VARIANCE_BLUR = 1.0


def _mix(matrix, a):
    """`matrix` applied to the channels of `a` (C, H, W); einsum, since BLAS may differ in the last bit with its
    threads.
    """
    return np.einsum("ij,jhw->ihw", matrix, a)


def _filtered(a, response):
    """`a` (C, H, W) with its transform multiplied by `response` (H, W), in place."""
    transformed = dct(a, overwrite=True)
    transformed *= response
    a[:] = idct(transformed)
    return a


def dot(a, b):
    return float(np.einsum("ihw,ihw->i", a, b).sum(dtype=float))


def root(matrices, power=0.5):
    """Symmetric `power` of symmetric positive semi-definite matrices, (..., C, C)."""
    values, vectors = np.linalg.eigh(matrices)
    top = np.maximum(values, np.finfo(float).tiny) ** power
    return np.einsum("...ij,...j,...kj->...ik", vectors, top, vectors)


class Window:
    """Posterior of one piece of a picture, in units of the data's spread.

    Parameters
    ----------
    values, observed : (C, H, W) ndarray
        Deviations from the offset, 0 where not observed; True = observed.
    exponent : float
    cell : int
        Side of what is a pixel here, in pixels of the picture.
    """

    system = None  # of a window that is solved by a factor

    def __init__(self, values, observed, exponent, cell=1):
        kind = np.float64 if values.size <= DOUBLE else np.float32
        self.observed = observed
        # How many channels have the same variances but for a factor each.
        self.alike = 1
        self.values = values.astype(kind)
        self.level, spectrum, self.diagonal = grid(values.shape[1:], exponent, cell)
        self.spectrum = spectrum.astype(kind)
        self.excess = (spectrum - 1).astype(kind)
        self.smoother = (1 / (spectrum + SHIFT)).astype(kind)
        weights = 1 << np.arange(len(values))
        codes = np.einsum("ihw,i->hw", observed, weights)
        self.patterns, self.pattern = np.unique(codes, return_inverse=True)
        self.pattern = self.pattern.reshape(codes.shape)
        self.patterns = (self.patterns[:, None] & weights) > 0  # (patterns, C), True = observed
        # Scattered entries need no smoothing in the preconditioner: half the transforms, a third more iterations.
        deep = scipy.ndimage.minimum_filter(~observed.any(axis=0), 2 * SHALLOW + 1)
        self.shallow = not (self.together or deep.any())

    @property
    def together(self):
        """Whether every pixel is observed in all channels or in none."""
        return bool((self.patterns.all(axis=1) == self.patterns.any(axis=1)).all())

    def set_parameters(self, covariance, noise):
        """Make the posterior that of `covariance` (C, C) and noise variance `noise`, 0: what is observed is exact."""
        kind = self.values.dtype
        self.covariance, self.noise = covariance, noise
        coupling = np.linalg.inv(covariance) * self.level
        self.coupling = coupling.astype(kind)
        self.coupling_root = root(coupling).astype(kind)
        blocks = np.zeros((len(self.patterns), *covariance.shape))
        share = np.ones(self.patterns.shape)
        for block, own, seen in zip(blocks, share, self.patterns):
            if noise:
                inverse = np.linalg.inv(coupling + np.diag(seen / noise))
                block[:] = root(inverse)
                own[:] = np.diag(coupling) / (np.diag(coupling) + seen / noise)
            else:
                rest = np.ix_(~seen, ~seen)
                block[rest] = root(coupling[rest], -0.5)
        # B, the inverse of a pixel's block q S^-1 + D, and B (q S^-1) B, by which the block near the border is put
        # right.
        inverses = np.einsum("nij,njk->nik", blocks, blocks)
        bends = np.einsum("nij,jk,nki->ni", inverses, coupling, inverses)
        self.block_variance = np.moveaxis(np.einsum("nii->ni", inverses)[self.pattern], 2, 0)
        self.sure_variance = self.block_variance - (self.diagonal - 1) * np.moveaxis(bends[self.pattern], 2, 0)
        self.root, self.coupled_root = (
            np.ascontiguousarray(np.moveaxis(matrices.astype(kind)[self.pattern], (2, 3), (0, 1)))
            for matrices in (blocks, coupling @ blocks)
        )
        self.free = np.ones_like(self.values) if noise else (~self.observed).astype(kind)
        self.data_precision = (self.observed / noise).astype(kind) if noise else None
        self.share = np.moveaxis(np.sqrt(share)[self.pattern], 2, 0).astype(kind) if noise else None

    def prior_precision(self, x):
        """(Q (x) S^-1) x."""
        return _filtered(_mix(self.coupling, x), self.spectrum)

    def precision(self, x):
        """A x."""
        product = self.prior_precision(x)
        if self.data_precision is not None:
            return product + self.data_precision * x
        return product * self.free

    def local(self, r):
        """R r."""
        return np.einsum("ijhw,jhw->ihw", self.root, r)

    def _rooted_precision(self, x, out):
        """R A R x into `out`: since R is the root of the inverse of the blocks q S^-1 + D, only Q / q - I is left."""
        np.einsum("ijhw,jhw->ihw", self.coupled_root, x, out=out)
        np.einsum("ijhw,jhw->ihw", self.root, _filtered(out, self.excess), out=out)
        out += x

    def _smooth(self, r, out):
        """The preconditioner less its R on both sides, applied to `r`, into `out`."""
        if self.noise == 0:
            np.copyto(out, r)
            if not self.shallow:
                _filtered(out, self.smoother)
                out *= self.free
        else:
            np.multiply(self.share, r, out=out)
            _filtered(out, self.smoother)
            out *= self.share
            out += (1 - self.share**2) * r

    def solve(self, b, start, tolerance):
        """A^-1 b by conjugate gradients from `start`, None: from 0, and R times the residual that is left.

        They go on ``u = R^-1 (x - start)``. Everything is done in place: fresh memory for each of these arrays takes
        as long as a transform.
        """
        r = self.local(b)
        direction, z, image = (np.empty_like(r) for _ in range(3))
        self._smooth(r, z)
        now = energy = dot(r, z)
        if start is not None:
            r = self.local(b - self.precision(start * self.free))
            self._smooth(r, z)
            now = dot(r, z)
        u = np.zeros_like(r)
        direction[:] = z
        for _ in range(MOST_ITERATIONS):
            if not now > tolerance**2 * energy:
                break
            self._rooted_precision(direction, image)
            step = now / dot(direction, image)
            image *= step
            r -= image
            np.multiply(direction, step, out=image)
            u += image
            self._smooth(r, z)
            now, before = dot(r, z), now
            direction *= now / before
            direction += z
        x = self.local(u)
        return x if start is None else x + start * self.free, r

    def mean(self, start, tolerance):
        """Posterior mean of what is not exactly known, (C, H, W)."""
        b = self.data_precision * self.values if self.noise else -self.prior_precision(self.values) * self.free
        return self.solve(b, start, tolerance)[0]

    def draw_normals(self, rng):
        """The random numbers that one sample needs."""
        kind = self.values.dtype
        return rng.standard_normal(self.values.shape, dtype=kind), rng.standard_normal(self.values.shape, dtype=kind)

    def deviation(self, normals, start, tolerance, given=None):
        """Sample of N(0, A^-1), and the mean of every pixel's entries given all its other pixels, near the border an
        approximation; where `given` (C, H, W) is not 0, an observation deviates so much.
        """
        b = _mix(self.coupling_root, idct(normals[0] * np.sqrt(self.spectrum))) * self.free
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
        return x, x - self.local(self.local(b) - r)

    def variance(self, squares):
        """Variance of every entry, (C, H, W): given its neighbours, and of that conditional mean, `squares` by a few
        samples.

        With z = x - B A x, Var(x) = E[z^2] + 2 B - B A B for any B. The first term is noisy: relative to the rest it is
        averaged over a few pixels, missing entries and observed ones apart.
        """
        ratio = squares / np.maximum(self.block_variance, np.finfo(np.float32).tiny)
        variance = np.zeros_like(self.block_variance)
        for members in (~self.observed, self.observed) if self.noise else (~self.observed,):
            variance += members * (self.sure_variance + self.block_variance * averaged(ratio, members))
        return variance

    def spread(self, x):
        """x^T Q x by channels, (C, C)."""
        transformed = dct(x)
        return np.einsum("ihw,jhw->ij", transformed * self.spectrum, transformed).astype(float) * self.level

    def first_guess(self):
        """Missing entries from averages over ever wider neighbourhoods, of all channels together, then of each."""
        eigenvalues = laplacian(self.values.shape[1:])
        seen = self.observed.astype(self.values.dtype)
        coarse = _fill(self.values, seen, eigenvalues, (3.0, 6.0, 12.0, 30.0))
        shared = ((self.values - coarse) * seen).sum(axis=0, keepdims=True)
        count = seen.sum(axis=0, keepdims=True)
        shared = _fill(shared, count, eigenvalues, (0.7, 1.4, 2.8, 6.0))
        own = (self.values - coarse - shared) * seen
        return coarse + shared + _fill(own, seen, eigenvalues, (0.7, 1.4, 2.8, 6.0))


def averaged(ratio, members):
    """`ratio` (..., H, W), averaged over neighbouring `members` of the same shape."""
    weights, axes = members.astype(float), (-2, -1)
    total = scipy.ndimage.gaussian_filter(ratio * weights, VARIANCE_BLUR, axes=axes)
    return total / np.maximum(scipy.ndimage.gaussian_filter(weights, VARIANCE_BLUR, axes=axes), 1e-6)


def _fill(values, weights, eigenvalues, widths):
    """Average of `values` (0 where the weight is 0) over Gaussian windows, the narrowest that hold enough weight."""
    transforms = dct(values), dct(weights)
    filled, left = np.zeros_like(values), np.ones_like(values)
    for width in widths:
        kernel = np.exp(-0.5 * width**2 * eigenvalues).astype(values.dtype)
        total, weight = (idct(t * kernel) for t in transforms)
        weight = np.maximum(weight, 0)
        trust = np.minimum(weight * np.float32(2 * np.pi * width**2), 1)
        filled += left * trust * total / np.maximum(weight, 1e-5)
        left *= 1 - trust
    return filled
