"""Coloured Gaussian field: a smooth picture with correlated channels, fitted in a second; `tdc_cli.patches.field` has the model."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from ..errors import ConfigError
from ..patches import field
from ..tensor import check_observed, largest_size
from . import Completion, check_loudness, check_noise_std, silent

# Bounds that keep a slip of the keyboard from asking for more than the arithmetic holds.
EXPONENTS = (0.5, 4.0)
MOST_SAMPLES, MOST_STEPS = 10_000, 1000


@dataclass(frozen=True)
class Config:
    """Parameters of the field.

    Attributes
    ----------
    exponent : float
        p of the precision (Laplacian + eps)^p: the larger, the smoother.
    steps : int
        Rounds that learn the channel covariance, and the noise where it is to be learnt.
    samples : int
        Posterior samples behind the standard deviation, at least 1.
    noise_std : float or "auto"
        Standard deviation of the noise, as a fraction of the full range of integer pictures, in data units of floats; 0: the observed
        entries are exact; `auto`: learnt.
    """

    exponent: float = field.EXPONENT
    steps: int = field.STEPS
    samples: int = 8
    noise_std: float | str = 0.0

    def __post_init__(self):
        if not EXPONENTS[0] <= self.exponent <= EXPONENTS[1]:
            raise ConfigError(f"exponent is {self.exponent:g}; it must be from {EXPONENTS[0]:g} to {EXPONENTS[1]:g}")
        if not 0 <= self.steps <= MOST_STEPS:
            raise ConfigError(f"steps is {self.steps}; it must be from 0 to {MOST_STEPS}")
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise ConfigError(f"samples is {self.samples}; it must be from 1 to {MOST_SAMPLES}")
        check_noise_std(self.noise_std)


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

    Raises
    ------
    InputError
        Nothing is observed, or observed entries are not finite.
    ConfigError
        The noise is out of proportion to the data.
    """
    check_observed(values, observed)
    check_loudness(config.noise_std, largest_size(values, observed))
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
