"""A method at work on arrays, and the standard deviations that it gives."""

import time
from dataclasses import asdict, replace

import numpy as np

from .. import methods, metrics
from ..errors import NumericalError
from ..methods import solve as door

# Arrays of a completion that `uncertainty` chooses from.
SPREADS = ("sd", "predictive_sd", "interval_sd", "latent_interval_sd")


def estimates_known(config):
    """Whether the known entries are estimated too, because they are noisy, rather than restored."""
    return getattr(config, "noise_std", 0.0) != 0


def warm_up(method, config, order, monitor=methods.silent):
    """Compile what the method needs.

    Parameters
    ----------
    method : methods.Method
    config : dataclass of the method
    order : int
        Number of modes.
    monitor : callable

    Returns
    -------
    notes : tuple of str
        What the user should know about it.
    """
    module = method.load()
    if not hasattr(module, "warm_up"):
        return ()
    from ..kernels import CACHE, NOT_KEPT

    monitor(0, 1, "compile")
    module.warm_up(order, config)
    monitor(1, 1, "compile")
    return () if CACHE else (NOT_KEPT,)


def complete(method, config, values, observed, *, rng, path, monitor=methods.silent, **further):
    """Completion, seconds spent compiling, seconds spent completing.

    Parameters
    ----------
    method : methods.Method
    config : dataclass of the method
    values : ndarray of float64
    observed : ndarray of bool, of the same shape
    rng : numpy.random.Generator
    path : str
        For messages.
    monitor : callable
    **further
        Keywords that this method takes beyond those of all methods.

    Raises
    ------
    NumericalError
        The method gave values that are not finite.
    """
    if observed.all() and not estimates_known(config):
        zero = np.zeros(values.shape) if method.uncertainty else None
        return methods.Completion(mean=values, interval_sd=zero, parameters=asdict(config)), 0.0, 0.0
    start = time.perf_counter()
    notes = warm_up(method, config, values.ndim, monitor)
    warm = time.perf_counter()
    completion = solve(method, config, values, observed, rng=rng, path=path, monitor=monitor, **further)
    return replace(completion, warnings=(*completion.warnings, *notes)), warm - start, time.perf_counter() - warm


def solve(method, config, values, observed, *, rng, path, monitor=methods.silent, **further):
    """Completion by the method, whatever is observed; see `complete`."""
    try:
        return door.solve(method, config, values, observed, rng=rng, monitor=monitor, **further)
    except NumericalError as error:
        raise NumericalError(f"{path}: {error}") from error


def uncertainty(completion, config, observed, dtype, scale):
    """Standard deviation of every entry in the units of the file, 0 where known exactly; None if there is none.

    Parameters
    ----------
    completion : methods.Completion
    config : dataclass of the method
    observed : ndarray of bool
    dtype : numpy.dtype
        Of the file.
    scale : float
        Factor from the method's units to those of the file.
    """
    if estimates_known(config):
        sd = completion.sd if completion.latent_interval_sd is None else completion.latent_interval_sd
    else:
        sd = completion.predictive_sd if completion.interval_sd is None else completion.interval_sd
        sd = completion.sd if sd is None else sd
    if sd is None:
        return None
    if not estimates_known(config):
        sd = np.where(observed, 0.0, sd)
    # Double precision where the data have it: single precision ends at 3e38.
    return (sd * scale).astype(np.float64 if dtype == np.float64 else np.float32)


def describe_uncertainty(completion, config, observed, sd, truth, scale):
    """The entry `uncertainty` of the report.

    Parameters
    ----------
    completion, config, observed, scale
        As for `uncertainty`.
    sd : ndarray or None
        What that gave.
    truth : ndarray or None
        In the units of the file.

    Returns
    -------
    dict or None
    """
    if sd is None:
        return None
    absent = ~observed
    estimated = np.ones_like(observed) if estimates_known(config) else absent
    inside = None
    if truth is not None:
        judged = absent & np.isfinite(truth)
        inside = metrics.coverage(truth[judged], completion.mean[judged] * scale, sd[judged])
    return {"mean_sd": float(sd[estimated].mean(dtype=float)) if estimated.any() else 0.0, "coverage90": inside,
            "held_out": completion.held_out}
