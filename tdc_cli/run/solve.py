"""A method at work on arrays."""

import time
from dataclasses import asdict, replace

import numpy as np

from .. import methods, metrics
from ..compiled import not_kept
from ..errors import NumericalError
from ..methods.solve import solve as completion_of

# Arrays of a completion that `uncertainty` chooses from.
SPREADS = ("sd", "predictive_sd", "interval_sd", "latent_interval_sd")


def estimates_known(config):
    """Whether the known entries are estimated too, because they are noisy, rather than restored."""
    return getattr(config, "noise_std", 0.0) != 0


def gives_uncertainty(method, config):
    """Whether standard deviations come with the estimates."""
    return method.uncertainty and getattr(config, "calibrate", True)


def warm_up(method, config, shape, missing):
    """Compile what the method needs.

    Parameters
    ----------
    method : methods.Method
    config : dataclass of the method
    shape : tuple of int
        Of what is completed.
    missing : float
        Share of the entries that are missing.
    """
    module = method.load()
    if hasattr(module, "warm_up"):
        module.warm_up(shape, config, missing)


def complete(method, config, values, observed, *, rng, path, monitor=methods.silent, **further):
    """Completion of arrays, with nothing to do where nothing is missing and nothing is noisy; see `methods.solve`.

    Returns
    -------
    completion : methods.Completion
        With its `uncertainty`.
    compiling : float
        Seconds spent compiling.
    """
    if observed.all() and not estimates_known(config):
        zero = np.zeros(values.shape) if method.uncertainty else None
        return methods.Completion(mean=values, interval_sd=zero, uncertainty=zero, parameters=asdict(config)), 0.0
    start = time.perf_counter()
    warm_up(method, config, values.shape, 1 - observed.mean())
    compiling = time.perf_counter() - start
    done = apply(method, config, values, observed, rng=rng, path=path, monitor=monitor, **further)
    sd = uncertainty(done, config, observed)
    return replace(done, uncertainty=sd, warnings=(*done.warnings, *not_kept())), compiling


def apply(method, config, values, observed, *, path, **how):
    """Completion by a method, see `methods.solve.solve`; an error of the numbers names the input `path`."""
    try:
        return completion_of(method, config, values, observed, **how)
    except NumericalError as error:
        raise NumericalError(f"{path}: {error}") from error


def uncertainty(completion, config, observed):
    """Standard deviation of every entry in the method's units, 0 where known exactly; None if there is none.

    Parameters
    ----------
    completion : methods.Completion
    config : dataclass of the method
    observed : ndarray of bool
    """
    if estimates_known(config):
        return completion.sd if completion.latent_interval_sd is None else completion.latent_interval_sd
    sd = completion.predictive_sd if completion.interval_sd is None else completion.interval_sd
    sd = completion.sd if sd is None else sd
    return None if sd is None else np.where(observed, 0.0, sd)


def counted(mean, sd, estimated, absent, truth):
    """What the entry `uncertainty` of a report is made from.

    Parameters
    ----------
    mean, sd : ndarray
    estimated, absent : ndarray of bool
        What was estimated, and what was missing and is predicted rather than invented.
    truth : ndarray or None
        In the units of the mean; not finite where it is not known.

    Returns
    -------
    dict
        ``estimated`` entries and the sum ``sd`` of their standard deviations; ``missing`` entries whose truth is known,
        and those of them ``inside`` their 90 % interval.
    """
    sums = {
        "estimated": int(np.count_nonzero(estimated)),
        "sd": float(sd[estimated].sum(dtype=float)),
        "missing": 0,
        "inside": 0,
    }
    judged = absent & np.isfinite(truth) if truth is not None else np.zeros_like(absent)
    if judged.any():
        sums["missing"] = int(np.count_nonzero(judged))
        sums["inside"] = round(metrics.coverage(truth[judged], mean[judged], sd[judged]) * sums["missing"])
    return sums
