"""Coloured Gaussian field: a smooth picture with correlated channels, fitted in a second; `tdc_cli.field` has
the model.
"""

import math
from dataclasses import dataclass

import numpy as np

from .. import field
from ..patches import calibrate
from ..patches.schedule import validation_windows
from . import Completion, silent
from .parameters import Parameters, noise_level, parameter

# Share of the observed entries that is held out to scale the standard deviation, and the samples that this takes.
HELD_OUT, HELD_OUT_SAMPLES = 0.05, 4


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the field."""

    exponent: float = parameter(
        field.EXPONENT,
        "p of the precision Laplacian (Laplacian + eps)^(p - 1): the larger, the smoother.",
        ge=0.5,
        le=4.0,
    )
    steps: int = parameter(
        field.STEPS, "Rounds that learn the channel covariance, and the noise where it is to be learnt.", ge=0, le=1000
    )
    samples: int = parameter(4, "Posterior samples behind the standard deviation, at least 1.", ge=1, le=10_000)
    noise_std: float | str = noise_level("0: the observed entries are exact; `auto`: learnt.")


@dataclass(frozen=True)
class Shared:
    """What is decided once for all regions of a picture.

    Attributes
    ----------
    prior : field.Prior
    scale : calibrate.Scale or None
    verdict : dict or None
        See `Completion.held_out`.
    warnings : tuple of str
        What the user should know of it.
    """

    prior: field.Prior
    scale: calibrate.Scale | None
    verdict: dict | None
    warnings: tuple


def margin(config):
    """See the package; that of the windows that `tdc_cli.field` works in."""
    return field.MARGIN


def share(samples, config, *, rng, monitor=silent):
    """`Shared` of all regions: covariance and noise learnt from the samples, and the scale of standard deviations."""
    samples = [tuple(_flat(a) for a in sample) for sample in samples]
    prior = field.fit([(v, o) for v, o, _ in samples], _noise(config), exponent=config.exponent, steps=config.steps)
    found = [_errors(*sample, prior, config.exponent, rng) for sample in samples]
    errors, spreads, count = _pooled(found)
    verdict = None if prior.noise else _verdict(errors, spreads, rng)
    scale = calibrate.fit_scale(errors, spreads, count=count)
    return Shared(prior, scale, verdict, calibrate.uncalibrated(scale, errors))


def complete(values, observed, config=Config(), *, rng, monitor=silent, wanted=None, part=None):
    """Fit the field: modes 0 and 1 are the picture, all others its channels; only standard deviations are drawn.

    Without noise the standard deviations of missing entries are scaled by the errors of observed ones that are held
    out. Under noise these errors are larger than those of the estimate, by a noise that is known roughly: there they
    are an upper bound to the model's own standard deviations.
    """
    shape = values.shape
    values, observed, wanted = (_flat(a) for a in (values, observed, ~observed if wanted is None else wanted))
    noise, prior = _noise(config), part and part.shared.prior
    fitted, sd = field.solve_with_sd(
        values,
        observed,
        noise,
        rng=rng,
        count=config.samples,
        exponent=config.exponent,
        steps=config.steps,
        monitor=monitor,
        prior=prior,
        wanted=wanted,
    )
    if part is not None:
        scale, verdict, warnings = part.shared.scale, part.shared.verdict, part.shared.warnings
    else:
        errors, spreads, count = _held_out(values, observed, wanted, fitted, rng)
        scale = calibrate.fit_scale(errors, spreads, count=count)
        warnings = calibrate.uncalibrated(scale, errors) if not observed.all() else ()
        verdict = None if fitted.noise_variance else _verdict(errors, spreads, rng)
    if scale is not None:
        own = sd[~observed]
        sd[~observed] = np.minimum(own, scale(own)) if fitted.noise_variance else scale(own)
    # Nothing tells how a channel that is observed nowhere relates to the others: it may be anything that they are.
    blind = ~observed.any(axis=(0, 1))
    if blind.any():
        sd[..., blind] = np.maximum(sd[..., blind], values[observed].std() if prior is None else prior.scale)
    np.minimum(sd, calibrate.widest(values, observed), out=sd)
    sd = sd.reshape(shape)
    noise_std = math.sqrt(fitted.noise_variance)
    return Completion(
        mean=fitted.mean.reshape(shape),
        sd=sd,
        predictive_sd=np.hypot(sd, noise_std) if noise_std else sd,
        noise_std=noise_std if noise != 0 else None,
        held_out=verdict,
        warnings=warnings,
    )


def _flat(array):
    """`array` with all modes behind the second as one."""
    return array.reshape(*array.shape[:2], -1)


def _noise(config):
    """Variance of the noise, None where it is to be learnt."""
    return None if config.noise_std == "auto" else float(config.noise_std) ** 2


def _verdict(errors, spreads, rng):
    return {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, 0.0, rng)}


def _held_out(values, observed, wanted, fitted, rng):
    """Errors of held-out entries under the fitted field, the standard deviations that it gives them, both (n,), and how
    many of the errors are independent.
    """
    found = [_errors(values[w], observed[w], wanted[w], fitted, fitted.exponent, rng, fitted.mean[w])
             for w in validation_windows(observed, rng, wanted)]  # fmt: skip
    return _pooled(found)


def _pooled(found):
    """What `_errors` found in all windows."""
    errors, spreads, counts = zip(*found)
    return np.concatenate(errors), np.concatenate(spreads), sum(counts)


def _errors(values, observed, wanted, known, exponent, rng, start=None):
    """`_held_out` of one window; `known` is a `field.Prior`, or a `field.Field` with its mean there, `start`."""
    held = calibrate.hold_out(observed, HELD_OUT, rng, wanted=wanted)
    like = {"prior": known} if start is None else {"channel_covariance": known.channel_covariance, "start": start}
    again, sd = field.solve_with_sd(
        values,
        observed & ~held,
        known.noise_variance,
        rng=rng,
        count=HELD_OUT_SAMPLES,
        exponent=exponent,
        wanted=wanted | held,
        **like,
    )
    return (again.mean - values)[held], sd[held], calibrate.independent(held)
