"""Coloured Gaussian field: a smooth picture with correlated channels, fitted in a second; `tdc_cli.patches.field` has the model."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from ..patches import field
from . import Completion, silent
from .parameters import Parameters, noise_level, parameter


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the field."""

    exponent: float = parameter(field.EXPONENT, "p of the precision Laplacian (Laplacian + eps)^(p - 1): the larger, the smoother.", ge=0.5, le=4.0)
    steps: int = parameter(field.STEPS, "Rounds that learn the channel covariance, and the noise where it is to be learnt.", ge=0, le=1000)
    samples: int = parameter(8, "Posterior samples behind the standard deviation, at least 1.", ge=1, le=10_000)
    noise_std: float | str = noise_level("0: the observed entries are exact; `auto`: learnt.")


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Fit the field: modes 0 and 1 are the picture, all further modes together its channels.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Entries where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    config : Config
    rng : numpy.random.Generator
        For the standard deviation alone; the estimate does not depend on it.
    monitor : callable
        Called as ``monitor(done, total, label)``.

    Returns
    -------
    Completion
    """
    shape = (*values.shape[:2], -1)
    noise = None if config.noise_std == "auto" else float(config.noise_std) ** 2
    fitted, sd = field.solve_with_sd(
        values.reshape(shape),
        observed.reshape(shape),
        noise,
        rng=rng,
        count=config.samples,
        exponent=config.exponent,
        steps=config.steps,
        monitor=monitor,
    )
    sd = sd.reshape(values.shape)
    noise_std = math.sqrt(fitted.noise_variance)
    return Completion(
        mean=fitted.mean.reshape(values.shape),
        sd=sd,
        predictive_sd=np.hypot(sd, noise_std) if noise_std else sd,
        noise_std=noise_std if noise != 0 else None,
        parameters=asdict(config),
    )
