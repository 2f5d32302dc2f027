"""The relative error after every sweep of a sampler."""

import numpy as np

from ..metrics import rre


class Curve:
    """Keeps the error of every sweep's draw, and that of the mean of the draws that count, chain by chain.

    Parameters
    ----------
    truth : ndarray

    Attributes
    ----------
    draws, means : list of list of float
        For every chain, a number a sweep; NaN in `means` during the burn-in.
    """

    def __init__(self, truth):
        self._truth = truth
        self._sums = []
        self._counts = []
        self.draws = []
        self.means = []

    def watch(self, chain, estimate, kept):
        """Take in one sweep; see ``watch`` of `methods.datc.complete`."""
        while len(self.draws) <= chain:
            self._sums.append(np.zeros(self._truth.shape))
            self._counts.append(0)
            self.draws.append([])
            self.means.append([])
        self.draws[chain].append(rre(self._truth, estimate))
        if kept:
            self._sums[chain] += estimate
            self._counts[chain] += 1
        count = self._counts[chain]
        self.means[chain].append(rre(self._truth, self._sums[chain] / count) if count else np.nan)
