"""BRTF: Bayesian robust CP factorisation, which sets outliers aside while it finds the rank.

The model is that of `tdc_cli.peers.variational` with one more term: an observed entry is y_i = x_i + s_i + noise, x the
CP tensor, s_i ~ N(0, 1 / alpha_i) and alpha_i ~ Gamma(a, b). An iteration maximises the evidence lower bound in closed
form over the rows of one factor after the other, the relevances, the sparse part s, the precisions alpha and the noise
precision tau; then components driven to zero are left out. Once the first iterations are over it is also maximised over
a and b: b = a / mean(alpha), and a solves log a - digamma(a) = log mean(alpha) - mean(log alpha). The bound never
falls, up to the terms of components that are left out. Stops where it grows by less than `tolerance` times its value
after the second iteration. The estimate is the CP tensor alone.

The authors' program looks for a with a general minimiser that may stop early; the equation above has one root, and a
bracket finds it.

References
----------
Q. Zhao, G. Zhou, L. Zhang, A. Cichocki, S. Amari: Bayesian robust tensor factorization for incomplete multiway data,
IEEE Transactions on Neural Networks and Learning Systems 27(4), 2016, DOI 10.1109/TNNLS.2015.2423694. Parameters are
those of the authors' program BayesRCP_TC.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from .fbcp import PATIENCE, growth_of_bound, rank_parameter, slowed, spread, start_rank
from .variational import PRIOR, Factors, Gamma, decompose, likelihood, noise_posterior

# Logarithms between which the shape of the outliers' precisions is looked for, and a difference of logarithms that both
# ends enclose.
LOG_SHAPES, LEAST_GAP = (-30.0, 30.0), 1e-12


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of BRTF."""

    rank: int | None = rank_parameter()
    iterations: int = most_iterations(100)
    tolerance: float = growth_of_bound(1e-6)
    learn_outliers: bool = parameter(True, "False keeps the prior of the outliers' precisions as good as flat.")


class Outliers:
    """Posterior of the sparse part at the observed entries.

    Attributes
    ----------
    mean, variance : (n,) ndarray
    precision : Gamma
        Of the n entries.
    prior : tuple of float
        Shape and rate of the prior of the precisions.
    """

    def __init__(self, count):
        self.mean, self.variance = np.zeros(count), np.ones(count)
        self.precision = Gamma(np.ones(count), np.ones(count))
        self.prior = PRIOR, PRIOR

    def update(self, residual, tau):
        """Sparse part and its precisions, given the data less the CP tensor and the mean noise precision."""
        self.variance = 1 / (tau + self.precision.mean)
        self.mean = tau * self.variance * residual
        shape, rate = self.prior
        self.precision = Gamma(np.full(len(self.mean), shape + 0.5), rate + 0.5 * (self.mean**2 + self.variance))

    def update_prior(self):
        """Shape and rate of the largest bound, given the precisions."""
        mean = self.precision.mean.mean()
        gap = max(np.log(mean) - self.precision.mean_log.mean(), LEAST_GAP)
        shape = math.exp(brentq(lambda log_shape: log_shape - digamma(math.exp(log_shape)) - gap, *LOG_SHAPES))
        self.prior = shape, shape / mean

    def bound(self):
        """Part of the evidence lower bound that belongs to the sparse part."""
        square = self.mean**2 + self.variance
        log_prior = self.precision.mean_log - self.precision.mean * square
        return 0.5 * float(np.sum(log_prior + 1 + np.log(self.variance))) + self.precision.gain(*self.prior)


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Posterior mean of every entry of the CP tensor."""
    config = replace(config, rank=start_rank(config, values.size))
    # The authors leave the data as they are, drawn with a standard deviation of 2 to 3; here it is the number of modes,
    # as for fbcp.
    unit = spread(values, observed) / values.ndim
    data = np.where(observed, values, 0.0) / unit
    factors = Factors(observed, decompose(data, config.rank, rng))
    count = np.count_nonzero(observed)
    outliers, noise, clean = Outliers(count), Gamma(1.0, 1.0), data.copy()
    ranks, bounds = [], []
    for iteration in range(1, config.iterations + 1):
        for mode in range(data.ndim):
            factors.update(mode, clean, noise.mean)
        factors.update_relevance()
        estimate = factors.reconstruct()
        outliers.update((data - estimate)[observed], noise.mean)
        clean[observed] = data[observed] - outliers.mean
        square = factors.expected_square(clean, estimate) + float(outliers.variance.sum())
        noise = noise_posterior(count, square)
        if config.learn_outliers and iteration > PATIENCE:
            outliers.update_prior()
        bounds.append(factors.bound() + outliers.bound() + likelihood(count, square, noise))
        if iteration > 1:
            factors.prune()
        ranks.append(factors.rank)
        monitor(iteration, config.iterations, "iteration")
        if iteration > PATIENCE and slowed(bounds, config.tolerance):
            monitor(iteration, iteration, "iteration")
            break
    mean = unit * factors.reconstruct()
    return Completion(
        mean=mean,
        rank={"value": factors.rank, "posterior": {str(factors.rank): 1.0}, "paper_count": None},
        noise_std=unit / math.sqrt(noise.mean),
        parameters={"rank": config.rank},
        traces={"rank": [ranks], "bound": [bounds]},
        low_rank=mean,
    )
