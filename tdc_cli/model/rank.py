"""The rank: which CP components the data support, and the removal of the others during burn-in.

Weak components are shrunk to nothing by the reweighted Laplace prior. What it cannot see is a *split* component: two
nearly collinear ones that share a true one, both with large weights. Both kinds are found in the same way: delete the
component, refit the rest by least squares, and see whether the deviance rises by more than a component that fits only
noise could lower it.
"""

from dataclasses import replace

import numpy as np

from ..tensor import unfold
from . import kernels
from .sampler import cp_values, draw_low_rank
from .state import unit_weights

# Least-squares sweeps after a deletion; a true component's loss and a superfluous one's are an order of magnitude apart
# by then.
REFIT_SWEEPS = 40
# Sweeps after which a trial is given up once its fall, kept up to the end, would not bring it under the threshold.
PATIENCE = 8
# A refit has settled once a sweep lowers the deviance by less than this share of what noise can reach.
SETTLED = 0.01
# A component must lower the deviance by this many times what noise can reach at most: on few entries noise reaches a
# little further than the law for a full tensor says.
SAFETY = 1.5
# The paper counts weights above this, once the factor columns have unit root mean square.
PAPER_THRESHOLD = 1e-4


def noise_threshold(shape):
    """Fall of the deviance that a component fitting pure noise can reach: ``(sum_k sqrt(n_k))^2``.

    The largest value of a rank-one form on a standard Gaussian tensor is about ``sum_k sqrt(n_k)``.
    """
    return float(np.sum(np.sqrt(shape)) ** 2)


def energies(problem, state, precisions):
    """Weighted sum of squares that every component contributes by itself, (R,)."""
    return unit_weights(state) ** 2 * precisions.sum()


def supported(problem, state, precisions):
    """Which components have more energy than noise alone can reach, (R,) bool."""
    return energies(problem, state, precisions) > noise_threshold(problem.data.shape)


def paper_count(state, scale):
    """The paper's rank: weights above 1e-4 in the units of the data, for unit factor columns.

    Parameters
    ----------
    state : State
    scale : float
        Data units per unit of the standardised data.
    """
    return int(np.sum(unit_weights(state) * scale > PAPER_THRESHOLD))


def expected_law(problem, state):
    """Deviance of the observed entries, and the weights and targets of the next least-squares step.

    The components' labels are averaged over in place of drawn (one E-step), so that a fit is not held to labels that an
    earlier one has drawn.

    Returns
    -------
    deviance : float
        ``-2 sum log p(y)``.
    precisions, targets : (n,) ndarray
    """
    deviations = problem.data.values - cp_values(problem, state)
    variances = 1.0 / state.noise_precision + 1.0 / state.component_precisions
    with np.errstate(divide="ignore"):
        log_weights = np.log(state.component_weights)
    densities, precisions, shifts = np.empty((3, len(deviations)))
    kernels.expected_labels(deviations, log_weights, state.component_means, variances, densities, precisions, shifts)
    return -2.0 * float(densities.sum()), precisions, problem.data.values - shifts


def refit(problem, state, *, goal=-np.inf, sweeps=REFIT_SWEEPS):
    """Regularised least squares from `state`: conditional means in place of draws, labels averaged over.

    Parameters
    ----------
    problem : Problem
    state : State
    goal : float, optional
        Stop as soon as the deviance is below this, or once it is plain that it will not get there.
    sweeps : int
        At most so many; fewer once the deviance has settled.

    Returns
    -------
    state : State
    deviance : float
    """
    deviance, precisions, targets = expected_law(problem, state)
    for sweep in range(sweeps if state.rank else 0):
        if deviance < goal:
            break
        before = deviance
        state = draw_low_rank(problem, state, None, precisions=precisions, targets=targets)
        deviance, precisions, targets = expected_law(problem, state)
        if before - deviance < SETTLED * noise_threshold(problem.data.shape):
            break
        if sweep >= PATIENCE and deviance - (before - deviance) * (sweeps - sweep) > goal > -np.inf:
            break
    return state, deviance


def remove_unsupported(problem, state):
    """Remove components without which the others fit the data as well: those that fit noise, and halves of split ones.

    Only for burn-in: the choice is no draw from the posterior.

    Parameters
    ----------
    problem : Problem
    state : State

    Returns
    -------
    state : State
        The refitted state where anything was removed, else `state` itself.
    deviance : float
        Of the refitted state.
    """
    threshold = SAFETY * noise_threshold(problem.data.shape)
    fitted = state
    while fitted.rank:
        rises = weight_rises(problem, fitted)
        weakest = int(np.argmin(rises))
        if rises[weakest] >= threshold:
            break
        fitted = fitted.keep_components(np.arange(fitted.rank) != weakest)
    fitted, level = refit(problem, fitted)
    essential = np.zeros(fitted.rank, dtype=bool)
    while not essential.all():
        rises = np.where(essential, np.inf, weight_rises(problem, fitted))
        weakest = int(np.argmin(rises))
        trial, deviance = refit(
            problem, fitted.keep_components(np.arange(fitted.rank) != weakest), goal=level + threshold
        )
        if deviance < level + threshold:
            # the others may come down further: what counts for the next deletion is the best fit with those that are
            # left
            fitted, level = refit(problem, trial)
            essential = np.zeros(fitted.rank, dtype=bool)
        else:
            essential[weakest] = True
    return (fitted if fitted.rank < state.rank else state), level


def add_missed(problem, state, most):
    """Add components that the state has missed, one after the other, as long as the data support them.

    Only for burn-in. The best of several rank-one starts on what is left over is refitted together with all others,
    then `remove_unsupported` decides.

    Parameters
    ----------
    problem : Problem
    state : State
    most : int
        Components that may be added at most.

    Returns
    -------
    State
    """
    threshold = SAFETY * noise_threshold(problem.data.shape)
    _, level = refit(problem, state)
    for _ in range(most):
        # A missed component is heavy-tailed, and the mixture may have taken its largest entries for residual: weighting
        # by the mixture finds the weak ones, not weighting the strong ones.
        trials = [refit(problem, with_component(problem, state, weighted)) for weighted in (True, False)]
        grown, deviance = min(trials, key=lambda trial: trial[1])
        if level - deviance < threshold:
            break
        grown, deviance = remove_unsupported(problem, grown)
        if grown.rank <= state.rank or level - deviance < threshold * (grown.rank - state.rank):
            break
        state, level = grown, deviance
    return state


def with_component(problem, state, weighted):
    """State with one more component: the best rank-one fit of the left-over that the starts lead to.

    Parameters
    ----------
    problem : Problem
    state : State
    weighted : bool
        Weight every entry by its precision under the mixture, or all alike.
    """
    data = problem.data
    _, precisions, targets = expected_law(problem, state)
    left = targets - cp_values(problem, state)
    if not weighted:
        precisions = np.full_like(precisions, precisions.mean())
    gathered = np.zeros(data.shape)
    gathered.reshape(-1)[data.flat] = precisions * left
    starts = [vectors for mode in range(len(data.shape)) for vectors in rank_one_starts(gathered, mode)]
    fits = [fit_rank_one(data, precisions, left, vectors) for vectors in starts]
    vectors = max(fits, key=lambda fit: fit[1])[0]
    size, factors = 1.0, []
    for factor, vector in zip(state.factors, vectors):
        length = np.sqrt(np.mean(vector**2)) + np.finfo(float).tiny
        width = np.sqrt(np.mean(factor**2)) if state.rank else 1.0
        factors.append(np.hstack([factor, (vector * width / length)[:, None]]))
        size *= length / width
    # a prior as wide as the data: the shrinkage is for later, when the component has had the chance to find its place
    return replace(state, weights=np.append(state.weights, size), factors=tuple(factors),
                   weight_variances=np.append(state.weight_variances, max(1.0, size**2)),
                   weight_rates=np.append(state.weight_rates, 1.0))


def rank_one_starts(tensor, mode, count=3):
    """Starts for a rank-one fit: leading left singular vectors along `mode`, each with the rest found the same way.

    Unfolding first finds components that are too weak for a random start (Richard and Montanari, NIPS 2014).

    Returns
    -------
    list of list of (n_k,) ndarray
    """
    if tensor.ndim == 1:
        return [[tensor]]
    matrix = unfold(tensor, mode)
    if len(matrix) <= matrix.shape[1]:
        _, vectors = np.linalg.eigh(matrix @ matrix.T)
    else:  # from the smaller side: a long mode would want the square of its length in memory
        vectors = matrix @ np.linalg.eigh(matrix.T @ matrix)[1]
        vectors /= np.linalg.norm(vectors, axis=0) + np.finfo(float).tiny
    starts = []
    for column in range(1, min(count, vectors.shape[1]) + 1):
        vector = vectors[:, -column]
        rest = rank_one_starts(np.tensordot(vector, tensor, (0, mode)), 0, count=1)[0]
        starts.append([*rest[:mode], vector, *rest[mode:]])
    return starts


def fit_rank_one(data, precisions, left, vectors, sweeps=10):
    """Weighted least-squares rank-one fit to observed entries from a start.

    Returns
    -------
    vectors : list of (n_k,) ndarray
    gain : float
        Fall of the weighted residual.
    """
    vectors = list(vectors)
    gain = 0.0
    for _ in range(sweeps):
        for mode, positions in enumerate(data.coordinates):
            others = np.prod([v[c] for k, (v, c) in enumerate(zip(vectors, data.coordinates)) if k != mode], axis=0)
            cross = np.bincount(positions, weights=precisions * left * others, minlength=data.shape[mode])
            square = np.bincount(positions, weights=precisions * others**2, minlength=data.shape[mode])
            # a row with few entries must not run away: shrink by the information of an average row's tenth
            vectors[mode] = cross / (square + 0.1 * square.mean() + np.finfo(float).tiny)
            gain = float(cross @ vectors[mode])
    return vectors, gain


def weight_rises(problem, state):
    """Rise of the deviance on deleting each component when only the other weights are refitted, (R,).

    An upper bound of the rise once the factors are refitted too; by the normal equations ``lambda_r^2 / (G^-1)_rr``.
    """
    _, precisions, targets = expected_law(problem, state)
    stack = np.concatenate(state.factors)
    rank, data = state.rank, problem.data
    grams, products = np.empty((1, rank, rank)), np.empty((1, rank))
    kernels.segment_products(
        stack,
        problem.first,
        data.coordinates,
        data.order[0],
        np.array([0]),
        np.array([data.size]),
        -1,
        precisions,
        targets,
        grams,
        products,
    )
    gram = np.triu(grams[0]) + np.triu(grams[0], 1).T
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(gram / scale[:, None] / scale)
    values = np.maximum(values, 1e-12)
    inverse = (vectors / values) @ vectors.T
    weights = (inverse @ (products[0] / scale)) / scale
    return (weights * scale) ** 2 / np.diag(inverse)
