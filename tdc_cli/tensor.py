"""Tensors: unfolding, the CP product, and the observed entries sorted for row-wise updates.

Shape grammar: a tensor has ``order`` modes of sizes ``shape = (n_1, ..., n_K)``; factor matrix ``k`` is ``(n_k, R)``;
the CP weights are ``(R,)``; ``observed`` arrays are bool, True = observed.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from .errors import InputError

# Values within these sizes can be squared and their squares summed; others are brought to size 1 first.
SMALLEST, LARGEST = 1e-100, 1e100


def unfold(tensor, mode):
    """Matrix whose rows are the slices of `tensor` along `mode`.

    Parameters
    ----------
    tensor : (n_1, ..., n_K) ndarray
    mode : int
        Mode that becomes the rows, from 0.

    Returns
    -------
    (n_mode, prod of the others) ndarray
        The other modes keep their order, the last one fastest.
    """
    return np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def fold(matrix, mode, shape):
    """Inverse of `unfold`: the tensor of `shape` whose unfolding along `mode` is `matrix`."""
    rest = [n for k, n in enumerate(shape) if k != mode]
    return np.moveaxis(matrix.reshape([shape[mode], *rest]), 0, mode)


def khatri_rao(factors):
    """Column-wise Kronecker product of matrices with equal numbers of columns, the last one's rows fastest.

    Parameters
    ----------
    factors : sequence of (n_k, R) ndarray

    Returns
    -------
    (prod n_k, R) ndarray
    """
    return reduce(lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]), factors)


def norm(values):
    """Frobenius norm of an array, the same to the last bit whatever the number of threads, unlike `numpy.linalg.norm`.
    """
    return float(np.sqrt(np.sum(np.square(values))))


def cp_to_tensor(weights, factors):
    """Tensor ``sum_r weights[r] * u_r^(1) o ... o u_r^(K)`` (eq7).

    Parameters
    ----------
    weights : (R,) ndarray
    factors : sequence of (n_k, R) ndarray

    Returns
    -------
    (n_1, ..., n_K) ndarray
    """
    shape = tuple(len(u) for u in factors)
    # One matrix product; the split that makes the two Khatri-Rao factors most alike keeps memory and time low.
    split = min(range(1, len(shape)), key=lambda s: np.prod(shape[:s]) + np.prod(shape[s:])) if len(shape) > 1 else 1
    left = khatri_rao(factors[:split]) * weights
    right = khatri_rao(factors[split:]) if split < len(shape) else np.ones((1, len(weights)))
    return (left @ right.T).reshape(shape)


def check_observed(tensor, observed):
    """Refuse a tensor of another shape than `observed`, of which nothing is observed, or an observed entry is not
    finite.

    Parameters
    ----------
    tensor : (n_1, ..., n_K) ndarray
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.

    Raises
    ------
    InputError
    """
    if tensor.shape != observed.shape:
        raise InputError(
            f"values have shape {tensor.shape} but observed has shape {observed.shape}; they must be equal"
        )
    if not observed.any():
        raise InputError("no entry is observed: nothing to complete from")
    bad = np.count_nonzero(observed & ~np.isfinite(tensor))
    if bad:
        raise InputError(f"{bad} observed entries are NaN or infinite; mark them as missing")


def largest_size(tensor, observed):
    """Largest absolute value of the observed entries, a unit to measure the others by; 1 in place of 0."""
    return float(np.max(np.abs(tensor), where=observed, initial=0.0)) or 1.0


@dataclass(frozen=True)
class Observed:
    """Observed entries of a tensor in C order, with an index that groups them by row of every mode.

    Attributes
    ----------
    shape : tuple of int
    values : (n,) float64 ndarray
    coordinates : (K, n) int32 ndarray
    order : (K, n) int32 ndarray
        ``order[k]`` lists the entries sorted by their coordinate in mode `k`, ties in C order.
    offsets : tuple of (n_k + 1,) int64 ndarray
        ``order[k][offsets[k][i]:offsets[k][i + 1]]`` are the entries of row `i` of mode `k`.
    flat : (n,) int64 ndarray
        C-order index of every entry, so that ``tensor.ravel()[flat]`` are the values.
    """

    shape: tuple
    values: np.ndarray
    coordinates: np.ndarray
    order: np.ndarray
    offsets: tuple
    flat: np.ndarray

    @property
    def size(self):
        """Number of observed entries."""
        return len(self.values)

    @classmethod
    def of(cls, tensor, observed):
        """Collect the entries of `tensor` where `observed` is True; the others are never read.

        Parameters
        ----------
        tensor : (n_1, ..., n_K) ndarray
        observed : (n_1, ..., n_K) ndarray of bool
            True = observed.
        """
        flat = np.flatnonzero(observed)
        values = np.ascontiguousarray(tensor.reshape(-1)[flat], dtype=float)
        coordinates = np.array(np.unravel_index(flat, tensor.shape), dtype=np.int32)
        order = np.array([np.argsort(c, kind="stable") for c in coordinates], dtype=np.int32)
        offsets = tuple(
            np.concatenate([[0], np.cumsum(np.bincount(c, minlength=n))]) for c, n in zip(coordinates, tensor.shape)
        )
        return cls(tensor.shape, values, coordinates, order, offsets, flat)
