"""From the values of a file to those that a method works on, and back."""

import numpy as np

from ..errors import InputError, NumericalError
from ..media.tensor import LARGEST_INTEGER

# Values beyond this size are refused: sums over all entries of a picture would not be finite. `float64` ends at
# 1.8e308.
LARGEST_VALUE = 1e290


def scaled(stored, full_range, path, *, noise=0.0, rng=None):
    """Values as a method gets them: float64, 0..1 for integers, with the noise that was asked for.

    Parameters
    ----------
    stored : ndarray
        As in the file.
    full_range : int or None
        Largest value of an integer type; None for floats.
    path : str
        For messages.
    noise : float
        Standard deviation of noise to add, in the units of the result.
    rng : numpy.random.Generator or None
        For the noise.

    Raises
    ------
    InputError
        Values that are too large to compute with.
    """
    values = stored / full_range if full_range else stored.astype(float)
    check_size(values, path, "scale the input down")
    if noise:
        with np.errstate(over="ignore"):
            values = values + noise * rng.standard_normal(values.shape)
        check_size(values, f"{path} with noise of {noise:g}", "give a smaller `add_noise`")
    return values


def unscaled(values, dtype, full_range, path):
    """Inverse of `scaled`: in the units and dtype of the file, rounded and clipped where that is of integers.

    Raises
    ------
    NumericalError
        Values that are too large for a float type.
    """
    if full_range:
        return np.clip(np.rint(values * full_range), 0, full_range).astype(dtype)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.clip(np.rint(values), max(bounds.min, -LARGEST_INTEGER), min(bounds.max, LARGEST_INTEGER)).astype(
            dtype
        )
    with np.errstate(over="ignore"):
        stored = values.astype(dtype)
    if np.isinf(stored).any():
        raise NumericalError(
            f"{path}: {np.isinf(stored).sum()} values are too large for {dtype}; give the input as float64"
        )
    return stored


def holed(incomplete, absent):
    """`incomplete` with its holes as 0, as NaN in floats."""
    hole = np.nan if incomplete.dtype.kind == "f" else 0
    return np.where(absent, hole, incomplete).astype(incomplete.dtype)


def check_size(values, name, advice):
    """Refuse finite values that no longer can be added up; InputError."""
    largest = np.nanmax(np.abs(values), initial=0.0)
    if largest > LARGEST_VALUE:
        raise InputError(
            f"{name}: values up to {largest:.3g} are too large to compute with, the limit is {LARGEST_VALUE:g}; "
            f"{advice}"
        )
