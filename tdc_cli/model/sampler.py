"""The two Gibbs samplers of the model and the chain that runs either.

`sweep_literal` is Algorithm 1 as printed (with the errata): the residual ``e`` is drawn, weights and factors one scalar
at a time. `sweep_collapsed` has the same posterior: ``e`` is integrated out where it is not needed, weights and factor
rows are drawn as blocks.
"""

from dataclasses import replace

import numpy as np

from ..errors import NumericalError
from . import conditionals as given
from . import kernels
from .problem import SEGMENTS_AT_A_TIME


def cp_values(problem, state):
    """``x`` at every observed entry, (n,)."""
    out = np.zeros(problem.data.size)
    if state.rank:
        kernels.cp_at(np.concatenate(state.factors), problem.first, problem.data.coordinates, state.weights, out)
    return out


def observation_law(problem, state):
    """Precision and target of every observed entry once ``e`` is integrated out.

    Given its component ``d``, ``y`` is ``N(x + mu_d, 1/tau0 + 1/tau_d)``.

    Returns
    -------
    precisions, targets : (n,) ndarray
        ``1 / v_z`` and ``y - mu_z``.
    """
    component = 1.0 / (1.0 / state.noise_precision + 1.0 / state.component_precisions)
    return component[state.labels], problem.data.values - state.component_means[state.labels]


def draw_low_rank(problem, state, rng, *, precisions=None, targets=None):
    """Weights with their hyperparameters, then every factor matrix, as blocks (eq16 to eq24, eq51).

    Parameters
    ----------
    problem : Problem
    state : State
    rng : numpy.random.Generator or None
        None gives the conditional means of weights and factors in place of draws and leaves the hyperparameters alone:
        regularised alternating least squares.
    precisions, targets : (n,) ndarray, optional
        In place of those of `observation_law`.

    Returns
    -------
    State
    """
    if precisions is None:
        precisions, targets = observation_law(problem, state)
    data, rank = problem.data, state.rank
    stack = np.concatenate(state.factors)
    bounds = np.append(problem.first, len(stack))
    grams = np.empty((min(SEGMENTS_AT_A_TIME, max(len(b.begins) for one in problem.batches for b in one)), rank, rank))
    products = np.empty((len(grams), rank))

    def accumulate(mode, batch):
        kernels.segment_products(
            stack,
            problem.first,
            data.coordinates,
            data.order[mode],
            batch.begins,
            batch.ends,
            mode,
            precisions,
            targets,
            grams,
            products,
        )

    state = draw_weights(problem, state, stack, accumulate, grams, products, precisions, targets, rng)
    factors = list(state.factors)
    for position, mode in enumerate(problem.mode_order()):
        factor = stack[bounds[mode]:bounds[mode + 1]]
        for batch in problem.batches[mode]:
            if position or mode != problem.shared:  # the shared mode's sums are still there from the weights
                accumulate(mode, batch)
            diagonals, shifts = given.row_prior(
                factor, batch.rows, state.factor_means[mode], state.factor_precisions[mode], problem.coherences[mode]
            )
            noise = np.zeros((len(batch.rows), rank)) if rng is None else rng.standard_normal((len(batch.rows), rank))
            rows = np.empty((len(batch.rows), rank))
            kernels.draw_rows(grams, products, batch.bounds, state.weights, diagonals, shifts, noise, rows)
            if not np.isfinite(rows).all():
                raise NumericalError(
                    f"factor rows of mode {mode} are not finite: the data may span too many orders of magnitude"
                )
            factor[batch.rows] = rows
        factors[mode] = factor.copy()
    return replace(state, factors=tuple(factors))


def draw_weights(problem, state, stack, accumulate, grams, products, precisions, targets, rng):
    """Weights, their variances and rates (eq16, eq19, eq21); leaves the shared mode's sums in `grams` and `products`.
    """
    rank = state.rank
    gram, product = np.empty((rank, rank)), np.empty(rank)
    if problem.shared >= 0:
        batch = problem.batches[problem.shared][0]
        accumulate(problem.shared, batch)
        kernels.contract_rows(grams, products, batch.owners, state.factors[problem.shared], gram, product)
    else:
        data = problem.data
        cuts = data.size * np.arange(len(grams) + 1) // len(grams)
        kernels.segment_products(
            stack,
            problem.first,
            data.coordinates,
            data.order[0],
            cuts[:-1],
            cuts[1:],
            -1,
            precisions,
            targets,
            grams,
            products,
        )
        kernels.contract_rows(grams, products, np.zeros(len(grams), dtype=np.int64), np.ones((1, rank)), gram, product)
    mean, root = given.weights_posterior(gram, product, state.weight_variances)
    if rng is None:
        return replace(state, weights=mean)
    weights = mean + root @ rng.standard_normal(rank)
    variances = given.draw_weight_variances(weights, state.weight_rates, rng)
    return replace(state, weights=weights, weight_variances=variances,
                   weight_rates=given.draw_weight_rates(variances, problem.priors, rng))


def draw_low_rank_one_by_one(problem, state, rng):
    """Weights with their hyperparameters, then every factor matrix, one scalar at a time given ``e`` (Algorithm 1,
    steps 1 to 4).
    """
    data = problem.data
    stack = np.concatenate(state.factors)
    bounds = np.append(problem.first, len(stack))
    residuals = data.values - state.residuals - cp_values(problem, state)
    weights = state.weights.copy()
    kernels.draw_weights_one_by_one(
        stack,
        problem.first,
        data.coordinates,
        state.noise_precision,
        state.weight_variances,
        rng.standard_normal(state.rank),
        residuals,
        weights,
    )
    variances = given.draw_weight_variances(weights, state.weight_rates, rng)
    rates = given.draw_weight_rates(variances, problem.priors, rng)
    for mode in range(len(data.shape)):
        factor = stack[bounds[mode]:bounds[mode + 1]]
        for batch in problem.batches[mode]:
            diagonals, shifts = given.row_prior(
                factor, batch.rows, state.factor_means[mode], state.factor_precisions[mode], problem.coherences[mode]
            )
            noise = rng.standard_normal((len(batch.rows), state.rank))
            kernels.draw_rows_one_by_one(
                stack,
                problem.first,
                data.coordinates,
                data.order[mode],
                data.offsets[mode],
                mode,
                batch.rows,
                state.noise_precision,
                weights,
                diagonals,
                shifts,
                noise,
                residuals,
            )
    factors = tuple(stack[bounds[k]:bounds[k + 1]].copy() for k in range(len(data.shape)))
    return replace(state, weights=weights, weight_variances=variances, weight_rates=rates, factors=factors)


def draw_factor_laws(problem, state, rng):
    """Mean and precision of every factor matrix's entries (eq27, eq30)."""
    means, precisions = state.factor_means.copy(), state.factor_precisions.copy()
    if state.rank:
        for k, factor in enumerate(state.factors):
            means[k] = given.draw_factor_mean(factor, precisions[k], problem.priors, rng)
            precisions[k] = given.draw_factor_precision(
                factor, means[k], precisions[k], problem.priors, problem.coherences[k], rng
            )
    return draw_scales(problem, replace(state, factor_means=means, factor_precisions=precisions), rng)


def draw_scales(problem, state, rng):
    """Move scale between the weights and the factors of coherent modes; X stays as it is."""
    for k, coherence in enumerate(problem.coherences):
        if coherence is None or not state.rank:
            continue
        factor, mean, precision = state.factors[k], state.factor_means[k], state.factor_precisions[k]
        grown = np.exp(given.draw_scale(factor, mean, precision, state.weight_rates, problem.priors, coherence, rng))
        means, precisions = state.factor_means.copy(), state.factor_precisions.copy()
        means[k], precisions[k] = mean * grown, precision / grown**2
        factors = tuple(u * grown if j == k else u for j, u in enumerate(state.factors))
        state = replace(
            state,
            factors=factors,
            factor_means=means,
            factor_precisions=precisions,
            weights=state.weights / grown,
            weight_variances=state.weight_variances / grown**2,
            weight_rates=state.weight_rates * grown**2,
        )
    return state


def draw_labels(problem, state, values, variances, rng):
    """``z`` from `values`, which are normal about the component's mean with `variances` (D,) (eq42, eq43)."""
    labels = np.empty(problem.data.size, dtype=np.int64)
    with np.errstate(divide="ignore"):
        log_weights = np.log(state.component_weights)
    kernels.draw_labels(values, log_weights, state.component_means, variances, rng.random(problem.data.size), labels)
    return labels


def draw_constant_residual(problem, state, rng):
    """E as one constant, then ``tau0`` (residual `none`)."""
    deviations = problem.data.values - cp_values(problem, state)
    mean, precision = given.constant_residual_posterior(deviations, state.noise_precision, problem.priors)
    mean += rng.standard_normal() / np.sqrt(precision)
    shape, rate = given.constant_noise_posterior(deviations, mean, problem.priors)
    return replace(state, component_means=np.array([mean]), residuals=np.full(problem.data.size, mean),
                   noise_precision=min(rng.gamma(shape, 1.0 / rate), problem.noise_ceiling))


def draw_noise_precision(problem, state, rng):
    """``tau0`` given ``y - x - e``, if it is to be learnt."""
    if not problem.learn_noise:
        return state
    errors = problem.data.values - cp_values(problem, state) - state.residuals
    shape, rate = given.noise_precision_posterior(errors, problem.priors)
    return replace(state, noise_precision=min(rng.gamma(shape, 1.0 / rate), problem.noise_ceiling))


def expect_residuals(problem, state):
    """``e`` at its conditional mean (eq33), after the low-rank part was changed: given the old one the literal sampler
    would undo that.
    """
    mean, _ = given.residual_posterior(problem.data.values - cp_values(problem, state), state.noise_precision,
                                       state.component_means[state.labels], state.component_precisions[state.labels])
    return replace(state, residuals=mean)


def draw_mixture(problem, state, rng):
    """``mu_d``, ``tau_d`` and ``pi`` (eq36, eq39, eq45) given ``e`` and ``z``."""
    means, precisions = given.draw_components(
        state.residuals, state.labels, state.component_means, state.component_precisions, problem.priors, rng
    )
    weights = given.draw_mixture_weights(state.labels, len(means), problem.priors, rng)
    return replace(state, component_means=means, component_precisions=precisions, component_weights=weights)


def sweep_collapsed(problem, state, rng):
    """One sweep with ``e`` integrated out of the low-rank part and of the labels; weights and rows drawn as blocks.

    A valid partially collapsed order: ``e`` is drawn right after ``z`` and before anything that uses it.
    """
    if state.rank:
        state = draw_low_rank(problem, state, rng)
    state = draw_factor_laws(problem, state, rng)
    if problem.constant_residual:
        return draw_constant_residual(problem, state, rng)
    deviations = problem.data.values - cp_values(problem, state)
    variances = 1.0 / state.noise_precision + 1.0 / state.component_precisions
    labels = draw_labels(problem, state, deviations, variances, rng)
    residuals = given.draw_residuals(deviations, state.noise_precision, state.component_means[labels],
                                     state.component_precisions[labels], rng)
    state = draw_mixture(problem, replace(state, labels=labels, residuals=residuals), rng)
    return draw_noise_precision(problem, state, rng)


def sweep_literal(problem, state, rng):
    """One iteration of Algorithm 1: every unknown given all others, in the printed order."""
    if state.rank:
        state = draw_low_rank_one_by_one(problem, state, rng)
    state = draw_factor_laws(problem, state, rng)
    if problem.constant_residual:
        return draw_constant_residual(problem, state, rng)
    deviations = problem.data.values - cp_values(problem, state)
    residuals = given.draw_residuals(deviations, state.noise_precision, state.component_means[state.labels],
                                     state.component_precisions[state.labels], rng)
    state = replace(state, residuals=residuals)
    means, precisions = given.draw_components(
        residuals, state.labels, state.component_means, state.component_precisions, problem.priors, rng
    )
    state = replace(state, component_means=means, component_precisions=precisions)
    labels = draw_labels(problem, state, residuals, 1.0 / precisions, rng)
    weights = given.draw_mixture_weights(labels, len(means), problem.priors, rng)
    return draw_noise_precision(problem, replace(state, labels=labels, component_weights=weights), rng)


SWEEPS = {"collapsed": sweep_collapsed, "literal": sweep_literal}


def chain(problem, state, rng, sweep=sweep_collapsed):
    """Endless sequence of states, each one sweep after the one before; progress, storage and stopping are the caller's.
    """
    while True:
        state = sweep(problem, state, rng)
        yield state
