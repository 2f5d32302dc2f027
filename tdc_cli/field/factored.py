"""Posterior of one piece of a picture of which few whole pixels are missing, by a factor of its precision;
`tdc_cli.field` has the equations.

Where every pixel is observed in all channels or in none, and exactly, A is Q_mm (x) S^-1: one sparse factor of Q_mm
serves all channels, the mean and the samples, and every entry's variance is that of one field times its channel's.
"""

import functools
import operator
import threading

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from .spectrum import DELTA, EPSILON, idct
from .window import Window, averaged, root

# Most missing pixels of a piece. Scattered pixels fill the factor most: of 39,000 it costs as much as the iterations.
MOST_MISSING = 40_000


def window(values, observed, exponent, cell, noise, factors):
    """`Factored`, by `factors`, where it can be and pays, else `Window`; `noise` is a variance, or None."""
    missing = ~observed[0]
    sparse = noise == 0 and float(exponent).is_integer() and 0 < np.count_nonzero(missing) <= MOST_MISSING
    if sparse and (observed == observed[0]).all():
        return Factored(values, observed, exponent, cell, factors)
    return Window(values, observed, exponent, cell)


class Factored(Window):
    """A `Window` that is solved exactly; `exponent` is a whole number, so that Q couples near pixels only."""

    def __init__(self, values, observed, exponent, cell, factors):
        super().__init__(values, observed, exponent, cell)
        self.alike, self.missing = len(values), ~observed[0]
        self.shifts = (DELTA * cell**2, *[EPSILON * cell**2] * (int(exponent) - 1))
        self.factors = factors

    def set_parameters(self, covariance, noise):
        """Make the posterior that of `covariance` (C, C); the `noise` variance is 0."""
        self.covariance = covariance
        # Here, since threads that share this window begin afterwards.
        self.system = self.system or self.factors.of(self.missing, self.shifts)

    def _placed(self, entries):
        """`entries` (n, C) of the missing pixels in their places, 0 elsewhere, (C, H, W)."""
        out = np.zeros_like(self.values)
        out[:, self.missing] = entries.T
        return out

    def mean(self, start, tolerance):
        """See `Window`; nothing is iterated."""
        known = self.values.reshape(len(self.values), -1).T
        return self._placed(self.system.solve(-(self.system.rows @ known.astype(float))))

    def draw_normals(self, rng):
        """See `Window`; there is no noise to draw."""
        return (rng.standard_normal(self.values.shape, dtype=self.values.dtype),)

    def deviation(self, normals, start, tolerance, given=None):
        """See `Window`, but the conditional means are those of a field whose channels are independent and alike."""
        mixing = root(self.covariance)
        weighted = idct(normals[0] * np.sqrt(self.spectrum * self.level))[:, self.missing].T.astype(float)
        b = weighted
        if given is not None:
            unmixed = np.linalg.solve(mixing, given.reshape(len(given), -1))
            b = weighted - self.system.rows @ unmixed.T
        u = self.system.solve(np.ascontiguousarray(b))
        x = self._placed(u @ mixing)
        return x if given is None else x + given, self._placed(u - weighted / self.system.diagonal[:, None])

    def variance(self, squares):
        """See `Window`; of all channels together."""
        ratio = np.zeros(self.missing.shape)
        ratio[self.missing] = squares[:, self.missing].mean(axis=0) * self.system.diagonal
        certain = np.zeros(self.missing.shape)
        certain[self.missing] = 1 / self.system.diagonal
        return np.diag(self.covariance)[:, None, None] * certain * (1 + averaged(ratio, self.missing))

    def first_guess(self):
        """Zeros, the offset: nothing is iterated."""
        return np.zeros_like(self.values)


class Factors:
    """What the pieces of one picture, or of the frames of one clip, are solved by.

    The last one is kept: learning, all groups of channels, and frames that follow each other often have the same holes.
    But not one that another thread has made, which works on a window of its own: SciPy gives the memory of a factor
    back only where it is dropped by the thread that made it (its issue 15921).
    """

    def __init__(self):
        self._laplacians, self._last, self._thread = {}, (None, None), threading.get_ident()

    def of(self, missing, shifts):
        """`_System` of the `missing` pixels, (H, W) bool."""
        key = missing.shape, np.packbits(missing).tobytes(), shifts
        last, system = self._last
        if key != last:
            own = threading.get_ident() == self._thread
            if own:  # gives its memory back before the next one takes as much
                self._last = system = None, None
            system = _System([self._shifted(missing.shape, shift) for shift in shifts], np.flatnonzero(missing))
            if own:
                self._last = key, system
        return system

    def _shifted(self, shape, shift):
        """Laplacian of a grid with free borders, (H W, H W), plus `shift` on its diagonal."""
        if (shape, shift) not in self._laplacians:
            rows, columns = (
                scipy.sparse.diags_array([-np.ones(n - 1), np.r_[1, np.full(n - 2, 2.0), 1] if n > 1 else [0.0],
                                          -np.ones(n - 1)], offsets=[-1, 0, 1])
                for n in shape
            )  # fmt: skip
            laplacian = scipy.sparse.kronsum(columns, rows) + shift * scipy.sparse.eye_array(shape[0] * shape[1])
            self._laplacians[shape, shift] = laplacian.tocsr()
        return self._laplacians[shape, shift]


class _System:
    """Q of the `chosen` pixels of a grid, the product of the shifted `laplacians`.

    Attributes
    ----------
    rows : (n, H W) sparse array
    diagonal : (n,) ndarray
    solve : callable
        The inverse of Q among these pixels, applied to (n, C) numbers.
    """

    def __init__(self, laplacians, chosen):
        first, *others = laplacians
        self.rows = functools.reduce(operator.matmul, others, first[chosen])
        own = self.rows[:, chosen].tocsc()
        self.diagonal = own.diagonal()
        self.solve = splu(own, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve
