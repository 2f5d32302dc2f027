"""The door for Python: arrays in, a Completion out, with the same bits as the command line."""

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import methods
from .errors import ConfigError, InputError
from .run import solve
from .run.configure import check_order
from .run.solve import SPREADS, estimates_known
from .run.streams import DRAWS, stream
from .run.threads import limited
from .run.values import check_size


def complete(array, observed=None, method="datc", *, rng=0, monitor=methods.silent, **parameters):
    """Complete an array with missing entries.

    Parameters
    ----------
    array : array_like of real numbers, (n_1, ..., n_K)
        Order 2 to 6, any scale; it is not changed. A masked array of NumPy, whose masked entries are missing, or a
        DataArray of xarray: the arrays of the result are of the same kind, with the same coordinates. Of 8-bit pictures
        give ``picture / 255``: noise levels are fractions of the full range then, as on the command line.
    observed : array_like of bool, (n_1, ..., n_K), optional
        True = observed, False = missing, whatever `array` holds there. Entries that are NaN are missing in any case;
        without `observed` they are all that is.
    method : str
        Name in ``tdc methods``: ``"datc"``, for tensors, or ``"patches"``, for pictures (height, width[, channels]).
    rng : int or numpy.random.Generator
        A seed gives the same bits as the command line with ``--seed``. A generator is drawn from.
    monitor : callable
        Called as ``monitor(done, total, label)`` while the method works.
    **parameters
        Of the method, as ``tdc methods NAME`` lists them, such as ``noise_std=0.1`` or ``rank=10``. What the command
        line fills in by itself for pictures is given here: ``ordered_modes=(0, 1)`` to methods that have it, of 8-bit
        pictures ``resolution=1 / 255``.

    Returns
    -------
    methods.Completion
        ``mean`` is the completed array, float64. Its observed entries are those of `array`, bit for bit, with standard
        deviations of 0, unless a ``noise_std`` was given: then they are estimated too. ``uncertainty`` is what the
        command line writes with ``--uncertainty``: ``mean`` plus and minus 1.645 times that is the 90 % interval.

    Raises
    ------
    InputError
        An array that cannot be used, or nothing that says what is missing.
    ConfigError
        No such method, or parameters that it does not take.
    NumericalError
        The method failed.

    Examples
    --------
    >>> import numpy as np
    >>> import tdc_cli
    >>> rows, columns = np.mgrid[:12, :10]
    >>> truth = 1.0 + np.sin(rows / 3) * np.cos(columns / 4)
    >>> holed = truth.copy()
    >>> holed[1:-1:3, 1:-1:2] = np.nan
    >>> done = tdc_cli.complete(holed, method="biharmonic")
    >>> bool(np.abs(done.mean - truth).max() < 0.05)
    True

    The same with an array that says what is observed:

    >>> again = tdc_cli.complete(truth, observed=~np.isnan(holed), method="biharmonic")
    >>> np.array_equal(again.mean, done.mean)
    True
    """
    chosen = methods.get(method)
    kind = _Kind.of(array)
    values = _values(kind.plain)
    check_order(chosen, values.ndim)
    config = chosen.configure(parameters)
    noisy = estimates_known(config)
    known, warnings = _known(values, kind.aligned(observed), noisy, kind.hidden)
    with limited(None):
        completion, _ = solve.complete(
            chosen, config, values, known, rng=_generator(rng), path="array", monitor=monitor
        )
    completion = replace(completion, warnings=(*warnings, *completion.warnings))
    return kind.restored(completion if noisy else _restored(completion, values, known))


@dataclass(frozen=True)
class _Kind:
    """What kind of array was given.

    Attributes
    ----------
    given : object
    plain : array_like
        Its values.
    hidden : ndarray of bool or None
        What its own mask hides.
    named : bool
        Whether its modes have names, as those of a DataArray of xarray.
    """

    given: Any
    plain: Any
    hidden: np.ndarray | None = None
    named: bool = False

    @classmethod
    def of(cls, array):
        """That of `array`; of xarray, which need not be there, by what its arrays can do."""
        if isinstance(array, np.ma.MaskedArray):
            return cls(array, array.data, np.ma.getmaskarray(array))
        if all(hasattr(array, name) for name in ("dims", "coords", "values", "copy", "transpose")):
            return cls(array, array.values, named=True)
        return cls(array, array)

    def aligned(self, observed):
        """`observed` with its modes in the order of the array's, where both have names for them; InputError where these
        differ.
        """
        if not (self.named and hasattr(observed, "dims")):
            return observed
        if set(observed.dims) != set(self.given.dims):
            raise InputError(f"observed has the dimensions {', '.join(map(str, observed.dims))} but array "
                             f"{', '.join(map(str, self.given.dims))}; they must be alike")  # fmt: skip
        return observed.transpose(*self.given.dims).values

    def restored(self, completion):
        """`completion` with arrays of this kind."""
        if self.hidden is None and not self.named:
            return completion
        arrays = {name: getattr(completion, name) for name in ("mean", "uncertainty", "low_rank", *SPREADS)}
        return replace(
            completion, **{name: self._like_given(values) for name, values in arrays.items() if values is not None}
        )

    def _like_given(self, values):
        return self.given.copy(data=values) if self.named else np.ma.MaskedArray(values, mask=False)


def _values(array):
    """`array` as a new array of float64."""
    values = _array(array, "array")
    if values.dtype.kind not in "fiub":
        raise InputError(f"array holds {values.dtype}; it must hold real numbers")
    if not values.size:
        raise InputError(f"array of shape {values.shape} has no entries")
    return values.astype(float)


def _array(given, name):
    """`given` as an array; InputError where its rows differ in length."""
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"{name} is no array: its rows differ in length") from error


def _known(values, observed, noisy, hidden):
    """Observed entries, bool, and warnings; `hidden` by the array's own mask, bool or None."""
    nan = np.isnan(values) if hidden is None else np.isnan(values) | hidden
    what = "NaN" if hidden is None else "NaN or masked"
    if observed is None:
        if not nan.any() and not noisy:
            raise InputError(
                f"nothing says what is missing: no entry of array is {what}; give observed, a bool array with True = "
                "observed"
            )
        known, warnings = ~nan, []
    else:
        if isinstance(observed, np.ma.MaskedArray):
            raise InputError("observed is a masked array; give a plain one of bool, True = observed")
        known = _array(observed, "observed")
        if known.dtype != bool:
            hint = "of a mask that marks the missing give mask == 0"
            raise InputError(f"observed holds {known.dtype}; it must be bool, True = observed; {hint}")
        if known.shape != values.shape:
            raise InputError(
                f"observed has shape {known.shape} but array {values.shape}; they must be alike, True = observed"
            )
        also = int(np.sum(nan & known))
        warnings = [f"{also} further entries are {what} and count as missing"] if also else []
        known = known & ~nan
        if known.all() and not noisy:
            warnings = ["observed is True everywhere: nothing is missing"]
    if not known.any():
        raise InputError("no entry is observed: nothing to complete from; in observed, True = observed")
    seen = values[known]
    infinite = int(np.isinf(seen).sum())
    if infinite:
        raise InputError(f"{infinite} observed entries are infinite; NaN, or False in observed, marks missing entries")
    check_size(seen, "array", "scale it down")
    return known, warnings


def _generator(rng):
    """The generator of a seed, as the command line makes it, or the one given."""
    if isinstance(rng, np.random.Generator):
        return rng
    if not isinstance(rng, numbers.Integral) or isinstance(rng, bool) or rng < 0:
        raise ConfigError(f"rng is {rng!r}; give a seed, 0 or more, or a numpy.random.Generator")
    return stream(int(rng), DRAWS)


def _restored(completion, values, known):
    """`completion` with the known entries as they were, certain."""
    spreads = {name: getattr(completion, name) for name in SPREADS}
    certain = {name: np.where(known, 0.0, sd) for name, sd in spreads.items() if sd is not None}
    return replace(completion, mean=np.where(known, values, completion.mean), **certain)
