"""TMac: every unfolding as a product of two thin matrices, fitted together; the ranks grow.

Minimises ``sum_n w_n / 2 ||X_n Y_n - M_(n)||^2`` over the factors X_n (n_n x r_n) and Y_n and over all M that agree
with the observed entries. An iteration is

    X_n <- M_(n) Y_n'
    Y_n <- (X_n' X_n)^+ X_n' M_(n)
    M   <- sum_n w_n fold(X_n Y_n) where nothing is observed

X_n without the inverse of Y_n Y_n', since only the product matters. When the misfit of a mode on the observed entries,
||P(fold(X_n Y_n)
- T)||, changes by less than 1 % (10 times `tolerance` if that is more), its rank r_n grows by `increment`, up to
`most_ranks`: Y_n gets random rows orthogonal to those it has. The run ends when the sum of the squared misfits has
changed by less than `tolerance` of itself in three iterations one after the other, or when the weighted misfit is below
`tolerance` of the norm of the observed entries.

The first factors are random, and the ranks that suit a tensor are the user's to choose: this method has no way to find
them. A mode of full rank would fit the zeros that are first in place of missing entries as well as anything, so the
most that is taken by default is one less.

References
----------
Y. Xu, R. Hao, W. Yin, Z. Su: Parallel matrix factorization for low-rank tensor completion, Inverse Problems and Imaging
9(2), 2015.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..errors import ConfigError
from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from ..tensor import fold, unfold
from .lowrank import in_units

# Ranks by default: from 5 to 50, where a mode has so many rows.
START_RANK, MOST_RANK = 5, 50
PATIENCE = 1e-2
STEPS_AT_REST = 3


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of TMac."""

    ranks: tuple[int, ...] = parameter(
        (), "Rank of each mode at the start; empty: 5, at most half of the largest.", ge=1
    )
    most_ranks: tuple[int, ...] = parameter(
        (), "Largest rank of each mode; empty: a quarter of its rows, from 2 to 50 and less than all of them.", ge=1
    )
    increment: int = parameter(1, "How many a rank grows by.", ge=1, le=1000)
    weights: tuple[float, ...] = parameter((), "Weight of each mode, of any sum; empty: equal.", gt=0.0)
    tolerance: float = parameter(1e-4, "Relative change that ends the run.", gt=0, lt=1)
    iterations: int = most_iterations(500)


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Complete by factors of growing rank, random at the start; the observed entries are estimated too."""
    data, unit = in_units(values, observed)
    shape, modes = data.shape, range(data.ndim)
    weights = per_mode(config.weights or (1.0,) * data.ndim, shape, "weights") / np.sum(config.weights or data.ndim)
    ranks, most = allowed_ranks(config, shape)
    norm = np.linalg.norm(data)
    # The norm that the whole tensor has if its missing entries are like the others.
    expected = norm * np.sqrt(observed.size / np.count_nonzero(observed))
    right = [start_factor(rng, ranks[n], data.size // shape[n], expected) for n in modes]
    completed = data
    misfits = np.full(data.ndim, norm)
    at_rest, squares = 0, [float(np.sum(misfits**2))]
    warnings = (f"tmac had not converged after {config.iterations} iterations",)
    for step in range(1, config.iterations + 1):
        estimate, before = np.zeros(shape), misfits.copy()
        for n in modes:
            matrix = unfold(completed, n)
            left, right[n] = fit_factors(matrix, right[n])
            product = fold(left @ right[n], n, shape)
            misfits[n] = np.linalg.norm((product - data)[observed])
            estimate += weights[n] * product
        completed = np.where(observed, data, estimate)
        squares.append(float(np.sum(misfits**2)))
        monitor(step, config.iterations, "iteration")
        at_rest = at_rest + 1 if abs(squares[-1] - squares[-2]) < config.tolerance * squares[-2] else 0
        if at_rest >= STEPS_AT_REST or weights @ misfits <= config.tolerance * norm:
            monitor(step, step, "iteration")
            warnings = ()
            break
        for n in modes:
            still = abs(before[n] - misfits[n]) < max(PATIENCE, 10.0 * config.tolerance) * before[n]
            if still and ranks[n] < most[n]:
                right[n] = grown(rng, right[n], min(config.increment, most[n] - ranks[n]))
                ranks[n] = len(right[n])
    return Completion(
        mean=unit * estimate,
        rank={"value": int(max(ranks)), "posterior": None, "paper_count": None},
        parameters={"weights": weights.tolist(), "most_ranks": most.tolist(), "final_ranks": ranks.tolist()},
        warnings=warnings,
    )


def per_mode(chosen, shape, name):
    """One number for each mode.

    Raises
    ------
    ConfigError
        Another number of them.
    """
    if len(chosen) != len(shape):
        raise ConfigError(f"{len(chosen)} {name} are given, but the tensor has {len(shape)} modes")
    return np.array(chosen)


def allowed_ranks(config, shape):
    """Ranks at the start and largest ranks, (K,) arrays of int.

    Raises
    ------
    ConfigError
        Another number of them than of modes, or a rank above its largest or above the rows of its mode.
    """
    rows = np.array(shape)
    most = np.clip(np.minimum(np.maximum(np.round(rows / 4), 2), MOST_RANK), 1, np.maximum(rows - 1, 1)).astype(int)
    if config.most_ranks:
        most = per_mode(config.most_ranks, shape, "most_ranks")
    ranks = per_mode(config.ranks, shape, "ranks") if config.ranks else np.clip(most // 2, 1, START_RANK)
    for name, smaller, larger in (("most_ranks", most, rows), ("ranks", ranks, most)):
        if (smaller > larger).any():
            raise ConfigError(
                f"{name} are {', '.join(map(str, smaller))}; they can be at most {', '.join(map(str, larger))}"
            )
    return ranks, most


def fit_factors(matrix, right):
    """X = M Y' and then the Y of least ``||X Y - M||``: at least as near as the best X for the Y that was given.

    Parameters
    ----------
    matrix : (m, n) ndarray
    right : (r, n) ndarray

    Returns
    -------
    (m, r) ndarray
    (r, n) ndarray
    """
    left = matrix @ right.T
    return left, scipy.linalg.pinvh(left.T @ left) @ (left.T @ matrix)


def start_factor(rng, rank, columns, expected):
    """(rank, columns) random factor."""
    factor = rng.standard_normal((rank, columns))
    return factor * (np.sqrt(expected) / np.linalg.norm(factor) if expected else 0.0)


def grown(rng, factor, count):
    """`factor` with `count` further random rows, orthogonal to those it has and of their mean length."""
    rows = rng.standard_normal((count, factor.shape[1]))
    basis = scipy.linalg.orth(factor.T)
    rows -= (rows @ basis) @ basis.T
    length = np.linalg.norm(factor) / np.sqrt(len(factor))
    return np.vstack([factor, length * rows / np.linalg.norm(rows, axis=1, keepdims=True)])
