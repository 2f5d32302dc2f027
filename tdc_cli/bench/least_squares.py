"""How well the low-rank part of a problem without residual can be known at all: least squares, started at the truth."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array


def from_the_truth(problem, most_steps=200):
    """Low-rank part by least squares on the noisy observed entries, true rank, started at the truth (Levenberg and
    Marquardt).

    Parameters
    ----------
    problem : synth.SyntheticProblem
        Of kind zero.
    most_steps : int

    Returns
    -------
    (n_1, ..., n_K) ndarray
    """
    coordinates = np.nonzero(problem.observed)
    values = problem.noisy[problem.observed]
    factors = [problem.factors[0] * problem.weights, *problem.factors[1:]]
    left = values - _at(factors, coordinates)
    damping = 1e-6
    for _ in range(most_steps):
        slopes = _jacobian(factors, coordinates)
        hessian, gradient = (slopes.T @ slopes).toarray(), slopes.T @ left
        before = left @ left
        while True:
            try:
                step = cho_solve(cho_factor(hessian + damping * np.eye(len(hessian))), gradient)
            except LinAlgError:
                damping *= 10.0
                continue
            pieces = np.split(step, np.cumsum([u.size for u in factors])[:-1])
            trial = [u + piece.reshape(u.shape) for u, piece in zip(factors, pieces)]
            trial_left = values - _at(trial, coordinates)
            if trial_left @ trial_left <= before or damping > 1e12:
                break
            damping *= 10.0
        fall = before - trial_left @ trial_left
        if fall > 0:
            factors, left = trial, trial_left
        if fall < 1e-11 * before:
            break
        damping = max(damping / 10.0, 1e-9)
    return _whole(factors)


def _whole(factors):
    """CP tensor of some factors."""
    shape = [len(u) for u in factors]
    return _at(factors, [each.ravel() for each in np.indices(shape)]).reshape(shape)


def _at(factors, coordinates):
    """Value of the CP tensor at some entries."""
    return np.prod([u[c] for u, c in zip(factors, coordinates)], axis=0).sum(axis=1)


def _jacobian(factors, coordinates):
    """Derivatives of `_at` by all factor entries, sparse."""
    rows = [u[c] for u, c in zip(factors, coordinates)]
    count, rank = rows[0].shape
    first = np.cumsum([0, *(u.size for u in factors)])
    slopes = np.hstack([np.prod([row for j, row in enumerate(rows) if j != k], axis=0) for k in range(len(factors))])
    columns = np.hstack([first[k] + c[:, None] * rank + np.arange(rank) for k, c in enumerate(coordinates)])
    starts = np.arange(count + 1) * slopes.shape[1]
    return csr_array((slopes.ravel(), columns.ravel(), starts), shape=(count, first[-1]))
