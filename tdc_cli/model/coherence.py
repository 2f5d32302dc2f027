"""Spatial coherence (eq50): a mode whose rows have an order draws every factor row towards its neighbours.

The printed conditionals normalise the neighbours' weights row by row, which makes them asymmetric at the ends of the
mode, so that they belong to no joint density. Here ``w_ij = exp(-2 rho (i - j)^2) / Z`` with one ``Z`` for all rows,
identical inside the mode: the joint prior of a column is ``N(mu 1, Q^-1)``, ``Q = tau I + eta0 (D - W)`` with ``D`` the
row sums of ``W``.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvals_banded

# Neighbours whose weight relative to the nearest one falls below this are left out; they could not be felt.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Coherence:
    """Neighbour weights of one ordered mode.

    Attributes
    ----------
    strength : float
        ``eta0``.
    kernel : (reach,) ndarray
        Weight of the neighbours at distance 1, 2, ...
    degrees : (n,) ndarray
        Row sums of ``W``.
    eigenvalues : (n,) ndarray
        Of ``D - W``; the smallest is 0.
    colours : tuple of (m,) int64 ndarray
        Rows in groups of which no two are neighbours: every row in exactly one.
    """

    strength: float
    kernel: np.ndarray
    degrees: np.ndarray
    eigenvalues: np.ndarray
    colours: tuple

    @classmethod
    def of(cls, size, observed_fraction, strength):
        """Coherence of a mode with `size` rows when a share of `observed_fraction` of the entries is observed."""
        distance = np.arange(1, max(size, 2))
        kernel = np.exp(-2.0 * observed_fraction * (distance.astype(float) ** 2 - 1.0))
        kernel = kernel[kernel >= NEGLIGIBLE]
        kernel = (kernel / (2.0 * kernel.sum()))[: size - 1]
        reach = len(kernel)
        degrees = np.zeros(size)
        bands = np.zeros((reach + 1, size))  # of D - W: the diagonal and those below it
        for d, w in enumerate(kernel, 1):
            degrees[d:] += w
            degrees[:-d] += w
            bands[d, :-d] = -w
        bands[0] = degrees
        eigenvalues = np.maximum(eigvals_banded(bands, lower=True), 0.0)
        colours = tuple(np.arange(c, size, reach + 1) for c in range(min(reach + 1, size)))
        return cls(strength, kernel, degrees, eigenvalues, colours)

    def pull(self, factor, rows):
        """``eta0 sum_j w_ij u_j`` for the given rows, (m, R)."""
        total = np.zeros((len(rows), factor.shape[1]))
        for d, w in enumerate(self.kernel, 1):
            up, down = rows - d, rows + d
            total += w * np.where((up >= 0)[:, None], factor[np.maximum(up, 0)], 0.0)
            total += w * np.where((down < len(factor))[:, None], factor[np.minimum(down, len(factor) - 1)], 0.0)
        return self.strength * total

    def roughness(self, factor):
        """``sum_r u_r' (D - W) u_r``: the weighted squared differences between neighbours, each pair once."""
        return sum(w * np.sum((factor[d:] - factor[:-d]) ** 2) for d, w in enumerate(self.kernel, 1))
