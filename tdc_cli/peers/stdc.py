"""STDC: simultaneous tensor decomposition and completion, with low-rank factors and neighbouring rows alike.

Writes X as Z x_1 V_1' ... x_N V_N' with a square factor V_i for every smooth mode, and minimises

    sum_i ||V_i||_* + sum_i tr(V_i B_i V_i') + gamma ||Z||^2

over all X that agree with the observed entries. B_i is a graph Laplacian of the rows along the mode i, whose weights
are exp(-(j - k)^2 / 4) for rows up to `neighbours` apart; tr(V B V') is the weighted sum of squared differences of the
columns of V, which make the rows of X. With the dual variable Y and the penalty eta, an iteration of the inexact
augmented Lagrangian method is

    V_i <- shrink(V_i - G_i / c_i, 1 / c_i), one after the other, G_i the gradient of the smooth part, c_i = eta ||M_i
    M_i'|| + 2 ||B_i||
           the bound of its curvature, M_i the unfolding along mode i of Z with all other factors
    Z   <- the minimiser, through the eigenvectors of V_i V_i'
    X   <- Z x_1 V_1' ... - Y / eta where nothing is observed
    Y   <- Y + eta (X - Z x_1 V_1' ...)
    eta <- 1.1 eta

from V_i = I, Z = X, missing entries 0. The constants are relative to the data: eta_0 = 1 / (tau ||X_(1) X_(1)'||),
gamma = omega / (tau ||X||^2), and ||B_i|| = kappa^2 / (2 tau).

It stops when ||X - Z x_1 V_1' ...|| is below `tolerance` of the norm of Z x_1 V_1' ..., or when that product moves by
less than `tolerance` of its norm. The second rule is not the authors'. The first iterations take rank from the factors,
and without rounding it never comes back, so that with many observed entries the product cannot meet them. In the
authors' program rounding grows to full rank in some 200 iterations, which fits the observed entries and loses some dB
on the missing ones; directions that a factor maps to rounding are left out here.

References
----------
Y.-L. Chen, C.-T. Hsu, H.-Y. M. Liao: Simultaneous tensor decomposition and completion using factor priors, IEEE
Transactions on Pattern Analysis and Machine Intelligence 36(3), 2014.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from ..tensor import fold, unfold
from .lowrank import in_data, in_units, shrink_singular_values, soft


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of STDC."""

    ordered_modes: tuple = parameter(
        (),
        "Modes with a factor, and whose neighbouring rows are alike; empty: all modes have a factor, and no rows are "
        "alike.",
    )
    kappa: float = parameter(10.0**0.2, "Strength of the likeness of neighbours.", gt=0, lt=1e6)
    omega: float = parameter(10.0**-0.8, "Strength of the penalty on the core.", gt=0, lt=1e6)
    tau: float = parameter(0.1, "Scale of all penalties.", gt=0, lt=1e6)
    neighbours: int = parameter(2, "How far rows may be apart to be called neighbours.", ge=1, le=1000)
    growth: float = parameter(1.1, "Factor of the penalty in every iteration, above 1.", gt=1, le=2)
    tolerance: float = parameter(1e-3, "Misfit or change, relative to the norm, that ends the run.", gt=0, lt=1)
    iterations: int = most_iterations(300)


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Complete by the inexact augmented Lagrangian method."""
    data, unit = in_units(values, observed)
    modes = sorted(set(config.ordered_modes)) or range(data.ndim)
    power = norm_of_gram(unfold(data, modes[0])) or 1.0
    eta, gamma = 1.0 / (config.tau * power), config.omega / (config.tau * (np.sum(data**2) or 1.0))
    likeness = config.kappa**2 / (2.0 * config.tau) if config.ordered_modes else 0.0
    laplacians = {i: unit_laplacian(data.shape[i], config.neighbours) for i in modes}
    completed, core, product, dual = data, data, data, np.zeros(data.shape)
    factors = {i: np.eye(data.shape[i]) for i in modes}
    warnings = (f"stdc had not converged after {config.iterations} iterations",)
    for step in range(1, config.iterations + 1):
        target = completed + dual / eta
        for i in modes:
            others = multiply(core, {k: factors[k].T for k in modes if k != i})
            factors[i] = next_factor(factors[i], unfold(others, i), unfold(target, i), laplacians[i], likeness, eta)
        core = best_core(target, factors, 2.0 * gamma / eta)
        before, product = product, multiply(core, {k: factors[k].T for k in modes})
        completed = np.where(observed, data, product - dual / eta)
        gap = completed - product
        dual = dual + eta * gap
        eta *= config.growth
        monitor(step, config.iterations, "iteration")
        if min(np.linalg.norm(gap), np.linalg.norm(product - before)) <= config.tolerance * np.linalg.norm(product):
            monitor(step, step, "iteration")
            warnings = ()
            break
    return Completion(mean=in_data(completed, values, observed, unit), warnings=warnings)


def unit_laplacian(n, neighbours):
    """(n, n) Laplacian of a path, rows up to `neighbours` apart joined, with spectral norm 1 (0 for a single row)."""
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    affinity = np.where((apart > 0) & (apart <= neighbours), np.exp(-(apart**2) / 4.0), 0.0)
    laplacian = np.diag(affinity.sum(axis=0)) - affinity
    return laplacian / (np.linalg.norm(laplacian, 2) or 1.0)


def next_factor(factor, matrix, target, laplacian, likeness, eta):
    """The V after one proximal step on ``||V||_* + likeness tr(V L V') + eta / 2 ||target - V' M||^2``, which lowers
    it.

    Parameters
    ----------
    factor : (n, n) ndarray
    matrix, target : (n, m) ndarray
    laplacian : (n, n) ndarray
        Of spectral norm 1.
    likeness, eta : float

    Returns
    -------
    (n, n) ndarray
    """
    slope = eta * matrix @ (matrix.T @ factor - target.T) + 2.0 * likeness * factor @ laplacian
    curvature = eta * norm_of_gram(matrix) + 2.0 * likeness
    if curvature == 0.0:  # of zeros anything is a factor
        return factor
    return shrink_singular_values(factor - slope / curvature, soft(1.0 / curvature))[0]


def norm_of_gram(matrix):
    """Spectral norm of ``matrix @ matrix.T``."""
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    last = len(small) - 1
    return scipy.linalg.eigh(small @ small.T, eigvals_only=True, subset_by_index=(last, last), check_finite=False)[0]


def multiply(tensor, matrices):
    """`tensor` multiplied along each mode by the matrix that `matrices` has for it."""
    for mode, matrix in matrices.items():
        shape = list(tensor.shape)
        shape[mode] = len(matrix)
        tensor = fold(matrix @ unfold(tensor, mode), mode, shape)
    return tensor


def best_core(target, factors, ridge):
    """The Z of least ``||target - Z x_1 V_1' ...||^2 + ridge ||Z||^2``, 0 in directions that a factor maps to rounding.
    """
    turned, scale, bases = target, np.ones((1,) * target.ndim), {}
    for i, factor in factors.items():
        squares, vectors = scipy.linalg.eigh(factor @ factor.T, driver="evd", check_finite=False)
        seen = squares > len(squares) * np.finfo(float).eps * squares[-1]
        bases[i] = vectors[:, seen]
        turned = multiply(turned, {i: bases[i].T @ factor})
        scale = scale * squares[seen].reshape([-1 if k == i else 1 for k in range(target.ndim)])
    return multiply(turned / (scale + ridge), bases)
