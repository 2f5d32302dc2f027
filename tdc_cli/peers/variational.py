"""Variational Bayes for a CP model of unknown rank: Gaussian factor rows under a shared automatic relevance
determination.

The model (Zhao, Zhang, Cichocki 2015, section 3) of an order-K tensor::

    y_i = sum_r prod_k a^(k)[i_k, r] + noise,   noise ~ N(0, 1 / tau),   i observed
    a^(k)[j] ~ N(0, diag(1 / relevance)),       relevance_r ~ Gamma(PRIOR, PRIOR),   tau ~ Gamma(PRIOR, PRIOR)

One relevance per component, common to all modes, is what finds the rank: a component that the data do not need is
driven to zero. The posterior is approximated by a product over rows, relevances and tau; each row keeps its full
covariance. Whoever iterates owns tau, since models differ in what they call noise.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.special import digamma, gammaln

from ..errors import NumericalError
from ..tensor import cp_to_tensor, unfold

# Shape and rate of every Gamma prior: as good as none.
PRIOR = 1e-6
# Largest number of values that an intermediate array of moments may hold, 64 MB.
BLOCK = 2**23
# Diagonals of precisions grow by this share, so that rounding cannot make one lose its definiteness.
RIDGE = 1e-12


@dataclass(frozen=True)
class Gamma:
    """Gamma distributions by `shape` and `rate`, scalars or arrays of equal size."""

    shape: float | np.ndarray
    rate: float | np.ndarray

    @property
    def mean(self):
        """Mean."""
        return self.shape / self.rate

    @property
    def mean_log(self):
        """Mean of the logarithm."""
        return digamma(self.shape) - np.log(self.rate)

    def gain(self, prior_shape=PRIOR, prior_rate=PRIOR):
        """Sum of the mean log prior density and the entropy: minus the divergence from a Gamma prior."""
        prior = (
            prior_shape * np.log(prior_rate)
            - gammaln(prior_shape)
            + (prior_shape - 1) * self.mean_log
            - prior_rate * self.mean
        )
        entropy = self.shape - np.log(self.rate) + gammaln(self.shape) + (1 - self.shape) * digamma(self.shape)
        return float(np.sum(prior + entropy))


def contract(tensor, factors, mode):
    """Product of the unfolding along `mode` with the Khatri-Rao product of the other factors, which is never formed.

    Parameters
    ----------
    tensor : (n_1, ..., n_K) ndarray
    factors : sequence of (n_k, R) ndarray
        That of `mode` is not read.
    mode : int

    Returns
    -------
    (n_mode, R) ndarray
    """
    # The longest mode goes first, by matrix product: what is left is smallest.
    first, *others = sorted((k for k in range(tensor.ndim) if k != mode), key=lambda k: -tensor.shape[k])
    rest = [k for k in range(tensor.ndim) if k != first]
    matrix = unfold(tensor, first).T
    result = np.empty((tensor.shape[mode], factors[first].shape[1]))
    width = max(1, BLOCK // len(matrix))
    for begin in range(0, result.shape[1], width):
        columns = slice(begin, begin + width)
        part = (matrix @ factors[first][:, columns]).reshape(*(tensor.shape[k] for k in rest), -1)
        left = list(rest)
        for k in others:
            axis = left.index(k)
            part = np.einsum("a...r,ar->...r", np.moveaxis(part, axis, 0), factors[k][:, columns])
            left.remove(k)
        result[:, columns] = part
    return result


def pairs(rank):
    """Row and column of every entry of the upper triangle of a `rank` x `rank` matrix, and how often it counts in a sum
    over all.
    """
    rows, columns = np.triu_indices(rank)
    return rows, columns, np.where(rows == columns, 1.0, 2.0)


class Factors:
    """Posterior of all factor rows and of the relevances.

    Attributes
    ----------
    means : list of (n_k, R) ndarray
    moments : list of (n_k, R (R + 1) / 2) ndarray
        Mean of a a' of every row, upper triangle.
    relevance : Gamma
        Of the R components.
    """

    def __init__(self, observed, means):
        """Rows at `means`, with unit covariances.

        As in the authors' programs the first moments are the covariances alone: what random means say of them is noise.

        Parameters
        ----------
        observed : (n_1, ..., n_K) ndarray of bool
            True = observed.
        means : sequence of (n_k, R) ndarray
        """
        self.observed = observed
        self.weights = observed.astype(float)
        self.means = list(means)
        rank = means[0].shape[1]
        self.moments = [np.tile(np.eye(rank)[np.triu_indices(rank)], (len(m), 1)) for m in means]
        self.log_determinants = [0.0] * len(means)
        self.relevance = Gamma(np.ones(rank), np.ones(rank))

    @property
    def rank(self):
        """Number of components."""
        return self.means[0].shape[1]

    def reconstruct(self):
        """Posterior mean of the CP tensor."""
        return cp_to_tensor(np.ones(self.rank), self.means)

    def variance(self):
        """Posterior variance of every entry of the CP tensor."""
        weight = pairs(self.rank)[2]
        return np.maximum(cp_to_tensor(weight, self.moments) - self.reconstruct() ** 2, 0.0)

    def update(self, mode, values, tau, smooth=None):
        """Posterior of the rows of one mode, given the others.

        Parameters
        ----------
        mode : int
        values : (n_1, ..., n_K) ndarray
            Data, 0 where not observed.
        tau : float
            Mean noise precision.
        smooth : (n_mode, n_mode) ndarray or None
            What the means are multiplied by afterwards.

        Raises
        ------
        NumericalError
            A covariance that is not positive definite.
        """
        rows, columns, _ = pairs(self.rank)
        gram = contract(self.weights, self.moments, mode)
        target = tau * contract(values, self.means, mode)
        prior = np.diag(self.relevance.mean)
        gram *= tau * np.where(rows == columns, 1 + RIDGE, 1.0)
        moments, means = np.empty_like(gram), np.empty_like(target)
        log_determinant = 0.0
        precision = np.zeros((self.rank, self.rank))
        for i in range(len(gram)):
            precision[columns, rows] = gram[i]
            factor, failed = lapack.dpotrf(precision + prior, lower=1)
            if failed:
                raise NumericalError(
                    f"the posterior covariance of row {i} of mode {mode} is not positive definite; try a lower rank"
                )
            covariance, _ = lapack.dpotri(factor, lower=1)
            log_determinant -= 2 * np.log(np.diag(factor)).sum()
            moments[i] = covariance[columns, rows]
            means[i], _ = lapack.dpotrs(factor, target[i], lower=1)
        if smooth is not None:
            means = smooth @ means
        moments += means[:, rows] * means[:, columns]
        self.means[mode], self.moments[mode], self.log_determinants[mode] = means, moments, log_determinant

    def update_relevance(self):
        """Posterior of the relevances, given the factors."""
        shape = PRIOR + 0.5 * sum(len(m) for m in self.means)
        self.relevance = Gamma(np.full(self.rank, shape), PRIOR + 0.5 * self.powers())

    def powers(self):
        """Mean square of every component's factors, summed over the rows of all modes."""
        rows, columns, _ = pairs(self.rank)
        return sum(m[:, rows == columns].sum(axis=0) for m in self.moments)

    def expected_square(self, values, estimate):
        """Mean of the summed squared residual over the observed entries.

        Parameters
        ----------
        values : (n_1, ..., n_K) ndarray
            Data, 0 where not observed.
        estimate : (n_1, ..., n_K) ndarray
            `reconstruct()`.
        """
        last = len(self.means) - 1
        second = float(np.sum(contract(self.weights, self.moments, last) * self.moments[last] @ pairs(self.rank)[2]))
        residual = float(np.sum((values - estimate) ** 2, where=self.observed))
        return residual + max(second - float(np.sum(estimate**2, where=self.observed)), 0.0)

    def prune(self):
        """Leave out the components whose factors are zero to rounding; at least one stays."""
        stacked = np.concatenate(self.means)
        power = (stacked**2).sum(axis=0)
        keep = power > len(stacked) * np.spacing(np.linalg.norm(stacked))
        if not keep.any():
            keep[np.argmax(power)] = True
        if keep.all():
            return
        rows, columns, _ = pairs(self.rank)
        both = keep[rows] & keep[columns]
        self.means = [m[:, keep] for m in self.means]
        self.moments = [m[:, both] for m in self.moments]
        self.relevance = Gamma(self.relevance.shape[keep], self.relevance.rate[keep])

    def bound(self):
        """Part of the evidence lower bound that belongs to factors and relevances."""
        total = sum(len(m) for m in self.means)
        log_prior = 0.5 * (total * np.sum(self.relevance.mean_log) - self.relevance.mean @ self.powers())
        entropy = 0.5 * (sum(self.log_determinants) + total * self.rank)
        return float(log_prior + entropy) + self.relevance.gain()


def noise_posterior(count, square):
    """Posterior of the noise precision from `count` observed entries and their expected summed squared residual."""
    return Gamma(PRIOR + 0.5 * count, PRIOR + 0.5 * square)


def likelihood(count, square, noise):
    """Mean log likelihood of the observed entries and the gain of the noise precision, the rest of the lower bound."""
    return 0.5 * count * (noise.mean_log - math.log(2 * math.pi)) - 0.5 * noise.mean * square + noise.gain()


def decompose(values, rank, rng):
    """Factor means to start from: left singular vectors of every unfolding, each times the root of its singular value.

    Parameters
    ----------
    values : (n_1, ..., n_K) ndarray
        Data, 0 where not observed.
    rank : int
    rng : numpy.random.Generator
        Draws, standard normal, the columns that an unfolding of lower rank leaves empty.

    Returns
    -------
    list of (n_k, rank) ndarray
    """
    means = []
    for mode, size in enumerate(values.shape):
        matrix = unfold(values, mode)
        # The root of the singular values of the smaller Gram matrix; what its squares lose in accuracy a start can
        # spare.
        tall = size > matrix.shape[1]
        squares, vectors = np.linalg.eigh(matrix.T @ matrix if tall else matrix @ matrix.T)
        singular = np.sqrt(np.maximum(squares[::-1][:rank], 0.0))
        vectors = vectors[:, ::-1][:, :rank]
        if tall:
            vectors = matrix @ (vectors / np.where(singular > 0, singular, 1.0))
        columns = vectors * np.sqrt(singular)
        means.append(np.hstack([columns, rng.standard_normal((size, rank - columns.shape[1]))]))
    return means
