"""The number of mixture components: from at most six down, during burn-in.

Zhao, Meng et al. (ICML 2014) merge two components once their variances are nearly equal. Here a merge is tried on the
residuals themselves: two components become one when the likelihood, refitted by a few steps of
expectation-maximisation, loses less than the Bayesian information criterion charges for a component. Components that
are equal lose nothing, so the printed rule is contained.
"""

from dataclasses import replace

import numpy as np

from .sampler import cp_values, draw_labels

PARAMETERS_A_COMPONENT = 3
REFIT_STEPS = 25
RANKING_STEPS = 5
# Residuals looked at: enough to tell components apart, few enough to take no time.
MOST_RESIDUALS = 10_000


def maximise(deviations, weights, means, variances, floor, steps=REFIT_STEPS):
    """Expectation-maximisation of a mixture of Gaussians.

    Parameters
    ----------
    deviations : (n,) ndarray
    weights, means, variances : (D,) ndarray
        Start.
    floor : float
        Smallest variance: that of the noise, with which every component is convolved.
    steps : int

    Returns
    -------
    weights, means, variances : (D,) ndarray
    total : float
        Log likelihood before the last step.
    """
    total = -np.inf
    for _ in range(steps):
        with np.errstate(divide="ignore"):
            constants = np.log(weights) - 0.5 * np.log(variances)
        scores = constants[:, None] - 0.5 * (deviations - means[:, None]) ** 2 / variances[:, None]
        top = scores.max(axis=0)
        shares = np.exp(scores - top)
        sums = shares.sum(axis=0)
        total = float(np.sum(top + np.log(sums)) - 0.5 * len(deviations) * np.log(2 * np.pi))
        shares /= sums
        counts = np.maximum(shares.sum(axis=1), np.finfo(float).tiny)
        means = shares @ deviations / counts
        variances = np.maximum(shares @ deviations**2 / counts - means**2, floor)
        weights = counts / counts.sum()
    return weights, means, variances, total


def reduce_components(problem, state, rng):
    """Drop empty components and merge those that the residuals do not tell apart; only for burn-in.

    Returns
    -------
    State
        Labels are redrawn where the number changed.
    """
    deviations = problem.data.values - cp_values(problem, state)
    if len(deviations) > MOST_RESIDUALS:
        deviations = rng.choice(deviations, MOST_RESIDUALS, replace=False)
    floor = 1.0 / state.noise_precision
    counts = np.bincount(state.labels, minlength=len(state.component_means))
    used = (counts >= min(3, counts.max())) & (state.component_weights > 0)
    fit = (state.component_weights[used] / state.component_weights[used].sum(), state.component_means[used],
           floor + 1.0 / state.component_precisions[used])
    *fit, level = maximise(deviations, *fit, floor)
    charge = 0.5 * PARAMETERS_A_COMPONENT * np.log(len(deviations))
    while len(fit[0]) > 1:
        trials = [
            maximise(deviations, *merged(*fit, a, b), floor, RANKING_STEPS)
            for a in range(len(fit[0]))
            for b in range(a)
        ]
        best = maximise(deviations, *max(trials, key=lambda trial: trial[3])[:3], floor)
        if level - best[3] > charge:
            break
        *fit, level = best
    if len(fit[0]) == len(state.component_means):
        return state
    return with_components(problem, state, *fit, rng)


def merged(weights, means, variances, a, b):
    """Mixture with components `a` and `b` replaced by one of the same mass, mean and variance."""
    weight = weights[a] + weights[b]
    mean = (weights[a] * means[a] + weights[b] * means[b]) / weight
    variance = (
        weights[a] * (variances[a] + means[a] ** 2) + weights[b] * (variances[b] + means[b] ** 2)
    ) / weight - mean**2
    rest = [d for d in range(len(weights)) if d not in (a, b)]
    return np.append(weights[rest], weight), np.append(means[rest], mean), np.append(variances[rest], variance)


def with_components(problem, state, weights, means, variances, rng):
    """State with another mixture, whose `variances` include the noise's; every entry goes to a component drawn for it.
    """
    noise = 1.0 / state.noise_precision
    precisions = 1.0 / np.maximum(variances - noise, 1e-3 * noise)
    state = replace(state, component_weights=weights, component_means=means, component_precisions=precisions)
    labels = draw_labels(problem, state, problem.data.values - cp_values(problem, state), noise + 1.0 / precisions, rng)
    return replace(state, labels=labels)
