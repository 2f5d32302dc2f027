"""The joint density of data and unknowns, and exact draws from it.

It is the definition that the conditionals and the samplers are held against
(docs/model.md).
"""

import numpy as np
from scipy.special import gammaln, xlogy

from tdc_cli.model.sampler import cp_values
from tdc_cli.model.state import State


def neighbour_laplacian(coherence):
    """``D - W`` of an ordered mode (eq50), (n, n), built from the neighbours' weights alone.

    Parameters
    ----------
    coherence : Coherence
    """
    size = len(coherence.degrees)
    weights = np.zeros((size, size))
    for distance, weight in enumerate(coherence.kernel, 1):
        weights += weight * (np.eye(size, k=distance) + np.eye(size, k=-distance))
    return np.diag(weights.sum(axis=1)) - weights


def log_joint(problem, state):
    """Log density of the observed entries and of every unknown (eq2 to eq13, eq50), with all constants.

    ``z`` and ``e`` stand for the observed entries only; those of the missing ones integrate to one. With a constant
    residual the unknowns of the mixture are ``mu_1`` alone, whose prior is ``N(mu0, 1 / (beta0 tau0))``.

    Parameters
    ----------
    problem : Problem
    state : State

    Returns
    -------
    float
        ``log p(y, e, z, pi, mu_d, tau_d, tau0, lambda, gamma, kappa, U, mu^(k), tau^(k))``.
    """
    return log_likelihood(problem, state) + log_low_rank_prior(problem, state) + log_residual_prior(problem, state)


def log_likelihood(problem, state):
    """``log p(y | x, e, tau0)`` (eq3)."""
    residuals = state.component_means[0] if problem.constant_residual else state.residuals
    return np.sum(_log_normal(problem.data.values, cp_values(problem, state) + residuals, state.noise_precision))


def log_low_rank_prior(problem, state):
    """``log p(lambda, gamma, kappa, U, mu^(k), tau^(k))`` (eq9, eq12, eq13; with coherence eq50)."""
    priors = problem.priors
    total = np.sum(_log_normal(state.weights, 0.0, 1.0 / state.weight_variances))
    total += np.sum(_log_gamma(state.weight_variances, 1.0, state.weight_rates / 2.0))
    total += np.sum(_log_gamma(state.weight_rates, priors.kappa_shape, priors.kappa_rate))
    for factor, mean, precision, coherence in zip(
        state.factors, state.factor_means, state.factor_precisions, problem.coherences
    ):
        total += _log_normal(mean, priors.factor_mean, priors.factor_strength * precision)
        total += _log_gamma(precision, priors.factor_shape, priors.factor_rate)
        matrix = precision * np.eye(len(factor))
        if coherence is not None:
            matrix += coherence.strength * neighbour_laplacian(coherence)
        deviation = factor - mean
        total += 0.5 * factor.shape[1] * (np.linalg.slogdet(matrix)[1] - len(factor) * np.log(2.0 * np.pi))
        total -= 0.5 * np.sum(deviation * (matrix @ deviation))
    return total


def log_residual_prior(problem, state):
    """``log p(e, z, pi, mu_d, tau_d, tau0)`` (eq5, eq6), or of the constant and ``tau0`` where E is one constant."""
    priors = problem.priors
    total = 0.0
    if problem.learn_noise or problem.constant_residual:
        total += _log_gamma(state.noise_precision, priors.noise_shape, priors.noise_rate)
    if problem.constant_residual:
        precision = priors.residual_strength * state.noise_precision
        return total + _log_normal(state.component_means[0], priors.residual_mean, precision)
    means, precisions, weights = state.component_means, state.component_precisions, state.component_weights
    concentration = np.broadcast_to(priors.concentration, weights.shape)
    counts = np.bincount(state.labels, minlength=len(weights))
    total += np.sum(_log_normal(state.residuals, means[state.labels], precisions[state.labels]))
    total += np.sum(xlogy(counts + concentration - 1.0, weights))
    total += gammaln(concentration.sum()) - gammaln(concentration).sum()
    total += np.sum(_log_normal(means, priors.residual_mean, priors.residual_strength * precisions))
    return total + np.sum(_log_gamma(precisions, priors.residual_shape, priors.residual_rate))


def draw_prior(
    shape,
    observed,
    rank,
    components,
    priors,
    rng,
    *,
    noise_precision=None,
    constant_residual=False,
    coherences=None,
    draws=(),
):
    """Draw every unknown from its prior, then the observed entries given them: one exact draw from `log_joint`.

    Parameters
    ----------
    shape : tuple of int
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.
    rank, components : int
        Number of CP components and of mixture components.
    priors : Priors
        All of it proper, and its concentration large enough to be drawn from.
    rng : numpy.random.Generator
    noise_precision : float, optional
        ``tau0`` where it is given; drawn from its own prior otherwise.
    constant_residual : bool
        E is one constant, as in `Problem`.
    coherences : tuple of Coherence or None, optional
        One for every mode.
    draws : tuple of int
        Leading axes of independent draws.

    Returns
    -------
    state : State
        Every array with the axes of `draws` in front; ``noise_precision`` is an array of shape `draws`.
    values : draws + (n,) ndarray
        The observed entries in C order.
    """
    coherences = coherences or (None,) * len(shape)
    draws = tuple(draws)
    entries = np.nonzero(observed)
    rates = rng.gamma(priors.kappa_shape, 1.0 / priors.kappa_rate, (*draws, rank))
    variances = rng.exponential(2.0 / rates)
    weights = np.sqrt(variances) * rng.standard_normal((*draws, rank))
    modes = len(shape)
    factor_precisions = rng.gamma(priors.factor_shape, 1.0 / priors.factor_rate, (*draws, modes))
    factor_means = rng.normal(priors.factor_mean, 1.0 / np.sqrt(priors.factor_strength * factor_precisions))
    factors = tuple(_draw_factor(size, rank, factor_means[..., k], factor_precisions[..., k], coherences[k], rng)
                    for k, size in enumerate(shape))
    x = np.sum(weights[..., None, :] * np.prod([u[..., i, :] for u, i in zip(factors, entries)], axis=0), axis=-1)

    if noise_precision is None:
        noise_precision = rng.gamma(priors.noise_shape, 1.0 / priors.noise_rate, draws)
    noise_precision = np.broadcast_to(np.asarray(noise_precision, dtype=float), draws)
    if constant_residual:
        labels = np.zeros(x.shape, dtype=np.int64)
        component_precisions = np.full((*draws, 1), np.inf)
        component_weights = np.ones((*draws, 1))
        sd = 1.0 / np.sqrt(priors.residual_strength * noise_precision[..., None])
        component_means = rng.normal(priors.residual_mean, sd)
        residuals = np.broadcast_to(component_means, x.shape).copy()
    else:
        component_precisions = rng.gamma(priors.residual_shape, 1.0 / priors.residual_rate, (*draws, components))
        component_means = rng.normal(
            priors.residual_mean, 1.0 / np.sqrt(priors.residual_strength * component_precisions)
        )
        component_weights = rng.gamma(np.broadcast_to(priors.concentration, components), size=(*draws, components))
        component_weights /= component_weights.sum(axis=-1, keepdims=True)
        edges = np.cumsum(component_weights, axis=-1)[..., None, :-1]
        labels = np.sum(rng.random(x.shape)[..., None] >= edges, axis=-1)
        residuals = rng.normal(np.take_along_axis(component_means, labels, -1),
                               1.0 / np.sqrt(np.take_along_axis(component_precisions, labels, -1)))
    values = x + residuals + rng.standard_normal(x.shape) / np.sqrt(noise_precision[..., None])
    state = State(
        weights,
        variances,
        rates,
        factors,
        factor_means,
        factor_precisions,
        labels,
        residuals,
        component_means,
        component_precisions,
        component_weights,
        noise_precision,
    )
    return state, values


def _draw_factor(size, rank, mean, precision, coherence, rng):
    """A factor matrix for every entry of `mean` and `precision`: columns from ``N(mu 1, Q^-1)``."""
    noise = rng.standard_normal((*mean.shape, size, rank))
    if coherence is None:
        return mean[..., None, None] + noise / np.sqrt(precision)[..., None, None]
    eigenvalues, vectors = np.linalg.eigh(neighbour_laplacian(coherence))
    spread = 1.0 / np.sqrt(precision[..., None] + coherence.strength * np.maximum(eigenvalues, 0.0))
    return mean[..., None, None] + vectors @ (spread[..., None] * noise)


def _log_normal(x, mean, precision):
    return 0.5 * (np.log(precision / (2.0 * np.pi)) - precision * (x - mean) ** 2)


def _log_gamma(x, shape, rate):
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * np.log(x) - rate * x
