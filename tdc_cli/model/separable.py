"""A Gaussian tensor with separable covariance, for tensors of which whole fibers are missing.

Every position along the fibers, a pixel of a set of faces say, is a draw of its own of one and the same Gaussian over
all other modes:

    z_j ~ N(0, K_1 x ... x K_m) (Kronecker product),   y_j = z_j + noise of variance v

It is where a CP model of ever more components ends whose factor columns are Gaussian with the covariances ``K_k``:
nothing is left of the rank, and what the data decide is how alike the slices of every mode are. With the covariances
known a missing fiber follows from all observed ones in closed form, however few share an index with it; an arbitrary
set of CP factors would have to extrapolate. Covariances and noise are maximum likelihood estimates, found by
expectation and conditional maximisation.

References
----------
P. Dutilleul: The MLE algorithm for the matrix normal distribution, Journal of Statistical Computation and Simulation
64(2), 1999. P. D. Hoff: Separable covariance arrays via the Tucker product, with applications to multivariate
relational data, Bayesian Analysis 6(2), 2011, DOI 10.1214/11-BA606.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.linalg import cho_solve, cholesky

# Number of fibers up to which a covariance of all of them is affordable: of this many ten seconds.
MOST_FIBERS = 1000
# Length of a fiber from which on it has enough draws to learn covariances from; the colours of a picture have not.
SHORTEST = 8
MOST_ITERATIONS = 200
# Fall of the deviance, per observed entry, below which to stop.
TOLERANCE = 1e-4
# Start: any two slices of a mode have this correlation, and the noise has this share of the data's power.
START_CORRELATION, START_NOISE = 0.5, 0.05
# Noise variance that is believed in at least, as a share of the data's power: without any, covariances of equal slices
# are singular.
LEAST_NOISE = 1e-6
# Share of its mean variance that is added to the diagonal of a covariance before it is inverted: equal slices make it
# singular.
RIDGE = 1e-6


@dataclass(frozen=True)
class Gaussian:
    """What the observed fibers say.

    Attributes
    ----------
    mean : (n_1, ..., n_K) ndarray
        Posterior mean of every entry of z.
    variance : (n_1, ..., n_K) ndarray
        Posterior variance, the same along a fiber; a read-only view.
    noise_variance : float
    covariances : list of (n_k, n_k) ndarray
        ``K_k``, of all modes but that of the fibers.
    deviances : list of float
        -2 log likelihood before every iteration, up to a constant, per position along the fibers.
    """

    mean: np.ndarray
    variance: np.ndarray
    noise_variance: float
    covariances: list
    deviances: list


def fiber_mode(observed):
    """The longest mode along which every fiber is either observed or missing as a whole, if this model can be fitted
    then.

    Parameters
    ----------
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.

    Returns
    -------
    int or None
        None where there is no such mode, where nothing is missing, for matrices, of which a missing row shares nothing
        with others, and where the fibers are shorter than `SHORTEST` or more than `MOST_FIBERS`.
    """
    if observed.ndim < 3 or observed.all():
        return None
    whole = [k for k, n in enumerate(observed.shape)
             if n >= SHORTEST and observed.size <= MOST_FIBERS * n and (observed == observed.take([0], axis=k)).all()]
    return max(whole, key=lambda k: observed.shape[k], default=None)


def fit(values, observed, mode, *, least_noise=0.0, step=lambda: None):
    """Estimate covariances and noise, and from them every entry.

    Parameters
    ----------
    values : (n_1, ..., n_K) ndarray of float
        With mean 0 or nearly so; entries where `observed` is False are never read.
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed; constant along `mode`.
    mode : int
        That of the fibers, as `fiber_mode` finds it.
    least_noise : float
        Smallest noise variance that is believed in.
    step : callable
        Called after every iteration.

    Returns
    -------
    Gaussian
    """
    known = observed.take(0, axis=mode)
    shape, known = known.shape, known.ravel()
    fibers = np.moveaxis(values, mode, -1).reshape(len(known), -1)[known]
    # The likelihood sees no more of the fibers than their products with each other.
    products = fibers @ fibers.T / fibers.shape[1]
    count = len(fibers)
    power = np.trace(products) / count or 1.0
    least_noise = max(least_noise, LEAST_NOISE * power)
    covariances = [np.full((n, n), START_CORRELATION) + (1 - START_CORRELATION) * np.eye(n) for n in shape]
    covariances[0] *= power
    noise = max(START_NOISE * power, least_noise)
    deviances = []
    for _ in range(MOST_ITERATIONS):
        prior = reduce(np.kron, covariances)
        lower = cholesky(prior[np.ix_(known, known)] + noise * np.eye(count), lower=True)
        gain = cho_solve((lower, True), prior[known]).T
        posterior = prior - gain @ prior[known]
        deviances.append(float(np.trace(cho_solve((lower, True), products)) + 2 * np.log(np.diag(lower)).sum()))
        step()
        if len(deviances) > 1 and deviances[-2] - deviances[-1] < TOLERANCE * count:
            break
        left = np.eye(count) - gain[known]
        noise = max((np.sum((left @ products) * left) + np.trace(posterior[np.ix_(known, known)])) / count, least_noise)
        covariances = maximised(covariances, gain @ products @ gain.T + posterior)
    mean = (gain @ fibers).reshape(*shape, -1)
    variance = np.maximum(np.diag(posterior), 0.0).reshape(*shape, 1)
    variance = np.broadcast_to(variance, mean.shape)
    return Gaussian(np.moveaxis(mean, -1, mode), np.moveaxis(variance, -1, mode), noise, covariances, deviances)


def maximised(covariances, second):
    """Covariances of the modes that fit the second moments of z best, each given the others, one after the other.

    Parameters
    ----------
    covariances : list of (n_k, n_k) ndarray
    second : (N, N) ndarray
        Mean of ``z z'``, N the product of all n_k.

    Returns
    -------
    list of (n_k, n_k) ndarray
    """
    order, covariances = len(covariances), list(covariances)
    shape = [len(c) for c in covariances]
    second = second.reshape(shape + shape)
    for mode, size in enumerate(shape):
        operands = [second, list(range(2 * order))]
        for other in range(order):
            if other != mode:
                operands += [inverse(covariances[other]), [other, order + other]]
        found = np.einsum(*operands, [mode, order + mode], optimize=True) * size / np.prod(shape)
        covariances[mode] = (found + found.T) / 2
    return covariances


def inverse(covariance):
    """Inverse of a covariance that may be singular to rounding."""
    size = len(covariance)
    ridge = RIDGE * np.trace(covariance) / size + np.finfo(float).tiny
    return cho_solve((cholesky(covariance + ridge * np.eye(size), lower=True), True), np.eye(size))
