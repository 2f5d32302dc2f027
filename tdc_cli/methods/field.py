"""Coloured Gaussian field: a smooth picture with correlated channels, fitted in a second; `tdc_cli.patches.field` has the model."""

import math
from dataclasses import dataclass

import numpy as np

from ..patches import calibrate, field
from ..patches.schedule import validation_windows
from . import Completion, silent
from .parameters import Parameters, noise_level, parameter

# Share of the observed entries that is held out to scale the standard deviation, and the samples that this takes.
HELD_OUT, HELD_OUT_SAMPLES = 0.05, 4


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the field."""

    exponent: float = parameter(
        field.EXPONENT, "p of the precision Laplacian (Laplacian + eps)^(p - 1): the larger, the smoother.", ge=0.5, le=4.0
    )
    steps: int = parameter(field.STEPS, "Rounds that learn the channel covariance, and the noise where it is to be learnt.", ge=0, le=1000)
    samples: int = parameter(8, "Posterior samples behind the standard deviation, at least 1.", ge=1, le=10_000)
    noise_std: float | str = noise_level("0: the observed entries are exact; `auto`: learnt.")


def complete(values, observed, config=Config(), *, rng, monitor=silent, wanted=None):
    """Fit the field: modes 0 and 1 are the picture, all others its channels; only standard deviations are drawn.

    Without noise the standard deviations of missing entries are scaled by the errors of observed ones that are held out. Under noise they
    are the model's own: the noise of what is held out hides the error of the estimate.
    """
    shape = values.shape
    values, observed, wanted = (a.reshape(*shape[:2], -1) for a in (values, observed, ~observed if wanted is None else wanted))
    noise = None if config.noise_std == "auto" else float(config.noise_std) ** 2
    fitted, sd = field.solve_with_sd(
        values,
        observed,
        noise,
        rng=rng,
        count=config.samples,
        exponent=config.exponent,
        steps=config.steps,
        monitor=monitor,
        wanted=wanted,
    )
    verdict = None
    if noise == 0:
        errors, spreads = _held_out(values, observed, wanted, fitted, rng)
        scale = calibrate.fit_scale(errors, spreads)
        if scale is not None:
            sd[~observed] = scale(sd[~observed])
        verdict = {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, 0.0, rng)}
    # Nothing tells how a channel that is observed nowhere relates to the others: it may be anything that they are.
    blind = ~observed.any(axis=(0, 1))
    sd[..., blind] = np.maximum(sd[..., blind], values[observed].std())
    sd = sd.reshape(shape)
    noise_std = math.sqrt(fitted.noise_variance)
    return Completion(
        mean=fitted.mean.reshape(shape),
        sd=sd,
        predictive_sd=np.hypot(sd, noise_std) if noise_std else sd,
        noise_std=noise_std if noise != 0 else None,
        held_out=verdict,
    )


def _held_out(values, observed, wanted, fitted, rng):
    """Errors of held-out entries under the fitted field, and the standard deviations that it gives them, both (n,)."""
    errors, spreads = [], []
    for window in validation_windows(observed, rng, wanted):
        held = calibrate.hold_out(observed[window], HELD_OUT, rng, wanted=wanted[window])
        again, sd = field.solve_with_sd(
            values[window],
            observed[window] & ~held,
            rng=rng,
            count=HELD_OUT_SAMPLES,
            exponent=fitted.exponent,
            channel_covariance=fitted.channel_covariance,
            wanted=wanted[window] | held,
        )
        errors.append((again.mean - values[window])[held])
        spreads.append(sd[held])
    return np.concatenate(errors), np.concatenate(spreads)
