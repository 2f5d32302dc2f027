"""Posterior moments of every entry, accumulated draw by draw from reconstructions (never from factors), and interval
widths.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ..metrics import NORMAL_90
from ..tensor import cp_to_tensor
from . import conditionals as given

# Draws of the mixture that are kept for interval widths, and widths that are solved for; both only set the table's
# resolution.
MOST_MIXTURES = 50
TABLE_SIZE = 32


def mixture_moments(state):
    """Mean of the mixture, and its variance about that mean.

    With the paper's priors a component that holds fewer than three entries has no variance (its predictive law is a
    Student t with hardly any degrees of freedom): such components are left out and the weights renormalised.
    """
    weights, means, precisions = predictive_components(state)
    mean = float(weights @ means)
    return mean, float(weights @ (1.0 / precisions + (means - mean) ** 2))


def predictive_components(state):
    """Weights, means and precisions of the components that a missing entry may come from."""
    if len(state.component_means) == 1:
        return np.ones(1), state.component_means, state.component_precisions
    counts = np.bincount(state.labels, minlength=len(state.component_means))
    held = (counts >= min(3, counts.max())) & (state.component_weights > 0)
    weights = np.where(held, state.component_weights, 0.0)
    return weights[held] / weights.sum(), state.component_means[held], state.component_precisions[held]


class Moments:
    """Streaming mean and variance of the latent tensor over draws.

    At a missing entry the latent value is ``x + e`` with ``e`` from the mixture: the mean of ``x + sum pi mu`` and, for
    the variance, the mean of the mixture's variance plus the variance of ``x + sum pi mu`` over draws. At an observed
    entry ``e`` has its conditional law (eq33) instead. Everything of one draw comes from one and the same state.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem):
        self.problem = problem
        self.count = 0
        self.mean = np.zeros(problem.data.shape)
        self.low_rank = np.zeros(problem.data.shape)
        self.squares = np.zeros(problem.data.shape)
        self.missing_variance = 0.0
        self.observed_variance = np.zeros(problem.data.size)
        self.noise_variance = 0.0
        self.mixtures = []

    def add(self, state):
        """Take in one draw; returns its low-rank part plus expected residual, (n_1, ..., n_K)."""
        data = self.problem.data
        value = cp_to_tensor(state.weights, state.factors) if state.rank else np.zeros(data.shape)
        self.count += 1
        self.low_rank += (value - self.low_rank) / self.count
        mean, variance = mixture_moments(state)
        flat = value.reshape(-1)
        fitted = flat[data.flat]
        residual, precision = given.residual_posterior(
            data.values - fitted,
            state.noise_precision,
            state.component_means[state.labels],
            state.component_precisions[state.labels],
        )
        flat += mean
        flat[data.flat] = fitted + residual
        change = value - self.mean
        self.mean += change / self.count
        self.squares += change * (value - self.mean)
        self.missing_variance += variance
        self.observed_variance += 1.0 / precision
        self.noise_variance += 1.0 / state.noise_precision
        self.mixtures.append((mean, *predictive_components(state)))
        return value

    def spread(self):
        """Variance over draws of the conditional mean, (n_1, ..., n_K)."""
        return self.squares / max(self.count - 1, 1)

    def variance(self):
        """Variance of the latent entry, (n_1, ..., n_K)."""
        total = self.spread()
        inside = np.full(total.size, self.missing_variance / self.count)
        inside[self.problem.data.flat] = self.observed_variance / self.count
        return total + inside.reshape(total.shape)

    def mean_noise_variance(self):
        """Mean of ``1 / tau0``."""
        return self.noise_variance / self.count

    def interval_sd(self, noise_variance=0.0):
        """Half-width of the central 90 % interval over 1.645, from the mixture's own quantiles at missing entries.

        Parameters
        ----------
        noise_variance : float
            0 for the latent entry, the noise's for an observation of it.

        Returns
        -------
        (n_1, ..., n_K) ndarray
        """
        spread = self.spread()
        low, high = np.sqrt(max(spread.min(), 0.0)), np.sqrt(spread.max())
        nodes = np.unique(np.linspace(low, high, TABLE_SIZE))
        chosen = self.mixtures[:: -(-len(self.mixtures) // MOST_MIXTURES)]
        weights = np.concatenate([w / len(chosen) for _, w, _, _ in chosen])
        centres = np.concatenate([m - centre for centre, _, m, _ in chosen])
        variances = np.concatenate([1.0 / p for _, _, _, p in chosen])
        widths = [half_width(weights, centres, np.sqrt(variances + node**2 + noise_variance)) for node in nodes]
        result = np.interp(np.sqrt(spread), nodes, widths).reshape(-1) / NORMAL_90
        inside = self.observed_variance / self.count + noise_variance
        result[self.problem.data.flat] = np.sqrt(spread.reshape(-1)[self.problem.data.flat] + inside)
        return result.reshape(spread.shape)


def half_width(weights, means, sds):
    """Half the distance between the 5 % and the 95 % quantile of a mixture of Gaussians."""
    if not np.any(sds > 0):
        return 0.0
    sds = np.maximum(sds, np.finfo(float).tiny)
    low, high = (means - 9 * sds).min(), (means + 9 * sds).max()

    def quantile(level):
        return brentq(lambda x: weights @ ndtr((x - means) / sds) - level, low, high, xtol=1e-9 * (high - low) + 1e-300)

    return (quantile(0.95) - quantile(0.05)) / 2.0


@dataclass(frozen=True)
class Scale:
    """Standardisation of the data: ``values = centre + spread * standardised``.

    Results are equivariant to scale and offset because the model only ever sees standardised values.
    """

    centre: float
    spread: float

    @classmethod
    def of(cls, values):
        """Mean and standard deviation of `values`; the spread is 1 where they are all equal."""
        # Sums and squares of very large or small values would leave the range of floats.
        top = (
            float(np.abs(values).max()) or 1.0
        )
        scaled = values / top
        spread = float(np.std(scaled))
        return cls(top * float(np.mean(scaled)), top * spread if spread > 1e-12 else 1.0)
