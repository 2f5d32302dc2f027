"""What methods that shrink singular values share: proximal step, ADMM over all unfoldings, unit of the data, weights of
the modes.
"""

from functools import partial

import numpy as np
import scipy.linalg

from ..errors import ConfigError
from ..methods.parameters import parameter
from ..tensor import largest_size

# A mode of fewer rows has too few singular values to tell low rank from full rank: the colours of a picture. Its weight
# is the share that the demo of HaLRTC gives it.
FEW_ROWS, FEW_ROWS_WEIGHT = 5, 1e-3

# Parameters that several of these methods have.
weights_parameter = partial(
    parameter, (), "Weight of each mode, of any sum; empty: equal, a thousandth for modes of fewer than 5 rows.", gt=0.0
)
threshold_parameter = partial(
    parameter, 1.5, "Largest singular value over the first threshold, above 1.", gt=1, lt=1e6
)
growth_parameter = partial(parameter, 1.05, "Factor of the penalty in every iteration, at least 1.", ge=1, le=2)
change_parameter = partial(
    parameter, 1e-5, "Change of X, relative to the observed entries, that ends the run.", gt=0, lt=1
)


def shrink_singular_values(matrix, shrink):
    """The matrix with its singular values replaced: ``U diag(shrink(s)) V^H``.

    Through the eigenvalues of the smaller Gram matrix, some four times faster than a singular value decomposition.
    Singular values below 1e-8 of the largest one are lost in rounding, so `shrink` should not enlarge them.

    Parameters
    ----------
    matrix : (m, n) ndarray, real or complex
    shrink : callable
        Takes the (min(m, n),) singular values and returns their replacements, none of them negative.

    Returns
    -------
    (m, n) ndarray
    (min(m, n),) ndarray
        The singular values of `matrix`, by rising size.
    """
    if matrix.shape[0] > matrix.shape[1]:
        turned, singular = shrink_singular_values(matrix.T, shrink)
        return turned.T, singular
    squares, vectors = scipy.linalg.eigh(matrix @ matrix.conj().T, driver="evd", overwrite_a=True, check_finite=False)
    singular = np.sqrt(np.maximum(squares, 0.0))
    kept = shrink(singular)
    used = (kept > 0) & (singular > 0)
    chosen = vectors[:, used]
    return (chosen * (kept[used] / singular[used])) @ (chosen.conj().T @ matrix), singular


def singular_values(matrix):
    """Singular values by rising size, through the smaller Gram matrix; those below 1e-8 of the largest are rounding.

    Parameters
    ----------
    matrix : (m, n) ndarray

    Returns
    -------
    (min(m, n),) ndarray
    """
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return np.sqrt(np.maximum(scipy.linalg.eigvalsh(small @ small.conj().T, overwrite_a=True, check_finite=False), 0.0))


def soft(threshold):
    """The `shrink` of a nuclear norm: every singular value is lowered by `threshold`, to no less than 0."""
    return lambda singular: np.maximum(singular - threshold, 0.0)


def split(completed, data, observed, penalty, copies, config, name, monitor):
    """Completion of the least sum of penalties of all unfoldings, by ADMM with a copy of the tensor for every mode.

    With the dual variable Y_i of the constraint M_i = X, an iteration is

        M_i <- what `copies` makes of X - Y_i / penalty
        X   <- mean_i(M_i + Y_i / penalty) where nothing is observed
        Y_i <- Y_i + penalty (M_i - X)

    after the penalty has grown by the factor `growth`. It stops when X changes by less than `tolerance` of the norm of
    the data.

    Parameters
    ----------
    completed : (n_1, ..., n_K) ndarray
        X at the start.
    data : (n_1, ..., n_K) ndarray
        0 where not observed.
    observed : (n_1, ..., n_K) ndarray of bool
    penalty : float
    copies : callable
        ``copies(tensors, penalty)`` gives the list of the M_i, from an iterator over one tensor for each mode.
    config : dataclass
        With `growth`, `tolerance` and `iterations`.
    name : str
        Of the method, for the warning.
    monitor : callable
        Called as ``monitor(done, total, label)`` after every iteration.

    Returns
    -------
    (n_1, ..., n_K) ndarray
    tuple of str
        A warning where it has not converged.
    """
    duals = [np.zeros(data.shape) for _ in range(data.ndim)]
    limit = config.tolerance * (np.linalg.norm(data) or 1.0)
    for step in range(1, config.iterations + 1):
        penalty *= config.growth
        made = copies((completed - dual / penalty for dual in duals), penalty)
        before = completed
        completed = np.where(observed, data, sum(copy + dual / penalty for copy, dual in zip(made, duals)) / len(duals))
        for dual, copy in zip(duals, made):
            dual += penalty * (copy - completed)
        monitor(step, config.iterations, "iteration")
        if np.linalg.norm(completed - before) < limit:
            monitor(step, step, "iteration")
            return completed, ()
    return completed, (f"{name} had not converged after {config.iterations} iterations",)


def in_units(values, observed):
    """Data in units of their largest observed size, 0 where nothing is observed, and that unit."""
    unit = largest_size(values, observed)
    return np.where(observed, values, 0.0) / unit, unit


def in_data(estimate, values, observed, unit):
    """`estimate` in the units of `values`, which are put back where observed."""
    return np.where(observed, values, unit * estimate)


def mode_weights(weights, shape):
    """Weights of the modes, adding up to 1.

    Parameters
    ----------
    weights : tuple of float
        One for each mode; empty: equal ones, but `FEW_ROWS_WEIGHT` for modes with fewer than `FEW_ROWS` rows beside
        others with more.
    shape : tuple of int

    Returns
    -------
    (K,) ndarray

    Raises
    ------
    ConfigError
        Another number of weights than of modes.
    """
    if not weights:
        few = np.array(shape) < FEW_ROWS
        weights = np.ones(len(shape)) if few.all() else np.where(few, FEW_ROWS_WEIGHT, 1.0)
    elif len(weights) != len(shape):
        raise ConfigError(f"{len(weights)} weights are given, but the tensor has {len(shape)} modes")
    return np.asarray(weights, dtype=float) / np.sum(weights)
