"""One of the named arrays that a file holds, and which of them is meant."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import InputError

ORDERS = (2, 6)  # of the tensors that are completed
# Integers beyond this size are not all numbers of double precision, which is what methods compute with.
LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Variable:
    """An array in a file.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype or None
        None where it is not a plain array.
    kind : str
        What it holds, in words without an article, such as ``float64`` or ``cell array``.
    load : callable
        ``load()`` returns the (n_1, ..., n_K) ndarray.
    copy : callable or None
        ``copy(file)`` writes it to an open binary file as it stands in its container, without holding all of it.
    """

    shape: tuple
    dtype: np.dtype | None
    kind: str
    load: Callable
    copy: Callable | None = None

    @classmethod
    def of(cls, values):
        """Variable of an ndarray that is in memory."""
        return cls.stored(values.shape, values.dtype, lambda: values)

    @classmethod
    def stored(cls, shape, dtype, load, copy=None):
        """Variable of an array that `load` reads."""
        return cls(shape, dtype, kind_of(dtype), load, copy)

    @property
    def is_numbers(self):
        """Whether it holds numbers, truth values among them."""
        return self.dtype is not None and self.dtype.kind in "biufc"

    @property
    def in_words(self):
        """Such as ``3x4x5 float64``."""
        return f"{'x'.join(str(n) for n in self.shape)} {self.kind}".strip()


def kind_of(dtype):
    """What values of a type are, in words: ``text``, or the name of a type of numbers such as ``float64``."""
    words = {"U": "text", "S": "text", "M": "dates", "m": "spans of time", "O": "Python objects", "V": "records"}
    return words.get(dtype.kind, dtype.name)


def choose(variables, name, path, orders=ORDERS):
    """Name of the variable that is meant.

    Parameters
    ----------
    variables : dict of str to Variable
    name : str or None
        As given; None: the only one that it can be.
    path : str
        Of the file, for messages.
    orders : (int, int)
        Smallest and largest number of modes of one that is meant without its name.

    Returns
    -------
    str

    Raises
    ------
    InputError
        No such variable, none that could be meant, or several.
    """
    there = ", ".join(f"{key} ({variable.in_words})" for key, variable in variables.items()) or "nothing"
    if name is not None:
        if name not in variables:
            raise InputError(f"{path}: holds no array {name!r}; it holds {there}")
        return name
    meant = [
        key
        for key, variable in variables.items()
        if variable.is_numbers and orders[0] <= len(variable.shape) <= orders[1]
    ]
    if not meant:
        raise InputError(
            f"{path}: holds no array of numbers of order {orders[0]} to {orders[1]}; it holds {there}; give a file "
            "with one"
        )
    if len(meant) > 1:
        raise InputError(f"{path}: holds {there}; say which one is meant, as in {path}:{meant[0]}")
    return meant[0]


def tensor(values, path):
    """`values` in the byte order of this machine, found fit to be completed.

    Raises
    ------
    InputError
        Order, type or size of the values.
    """
    least, most = ORDERS
    if not least <= values.ndim <= most:
        raise InputError(
            f"{path}: array of order {values.ndim}, shape {values.shape}; tensors of order {least} to {most} are taken"
        )
    if not values.size:
        raise InputError(f"{path}: array of shape {values.shape} is empty")
    if values.dtype.kind == "c":
        raise InputError(f"{path}: complex values; complete real and imaginary parts each by itself")
    if values.dtype.kind == "b":
        raise InputError(
            f"{path}: values are true or false, and a completed one lies between: convert them to float32, NaN where "
            "missing"
        )
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        raise InputError(
            f"{path}: values of {kind_of(values.dtype)}; only integers, float16, float32 and float64 are taken: "
            "convert them"
        )
    if (
        values.dtype.kind in "iu"
        and values.dtype.itemsize == 8
        and max(int(values.max()), -int(values.min())) > LARGEST_INTEGER
    ):
        raise InputError(
            f"{path}: integers beyond 2**53, which cannot be computed with exactly; convert them to float64"
        )
    return values.astype(values.dtype.newbyteorder("="), copy=False)
