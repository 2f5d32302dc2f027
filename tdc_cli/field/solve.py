"""Fit the field to a picture, or to parts of one, and draw from it."""

import contextlib
import itertools
from dataclasses import dataclass

import numpy as np

from ..tensor import largest_size
from .factored import Factors
from .learner import LEAST_NOISE, SETTLED, Learner, first_covariance, moments
from .pieces import Group, Posterior, posterior, runner
from .spectrum import EXPONENT
from .window import DOUBLE

# Rounds of the accelerated iteration for the channel covariance.
STEPS = 4
# Largest number of channels with a covariance of their own.
COUPLED = 8
# Scale of a picture all of whose observed entries are equal, relative to them.
FLAT = 1e-6


@dataclass(frozen=True)
class Field:
    """A picture's field after it was fitted.

    Attributes
    ----------
    mean : (H, W, C) ndarray of float64
        Posterior mean; without noise the observed entries are the data themselves.
    channel_covariance : (C, C) ndarray
        S, in squared units of the data.
    offset : (C,) ndarray
        Constant of every channel.
    noise_variance : float
        Given or learnt, in squared units of the data.
    exponent : float
        p.
    """

    mean: np.ndarray
    channel_covariance: np.ndarray
    offset: np.ndarray
    noise_variance: float
    exponent: float


@dataclass(frozen=True)
class Prior:
    """What `solve` finds out before it solves, of a picture or, by `fit`, of parts of one.

    Attributes
    ----------
    offset : (C,) ndarray
        Constant of every channel.
    scale : float
        Spread of the data; the others are relative to it.
    covariance : (C, C) ndarray
        S over ``scale**2``.
    noise : float
        Noise variance over ``scale**2``.
    """

    offset: np.ndarray
    scale: float
    covariance: np.ndarray
    noise: float

    @property
    def noise_variance(self):
        """In squared units of the data."""
        return self.noise * self.scale * self.scale


def channel_groups(channels):
    """Slices of consecutive channels that share a covariance."""
    bounds = np.linspace(0, channels, -(-channels // COUPLED) + 1).round().astype(int)
    return [slice(a, b) for a, b in itertools.pairwise(bounds)]


def solve(values, observed, noise_variance=0.0, **how):
    """Fit the field to a picture: posterior mean, channel covariance, and noise level where that is to be learnt.

    Parameters
    ----------
    values : (H, W, C) ndarray of float64
        Never read where `observed` is False.
    observed : (H, W, C) ndarray of bool
        True = observed.
    noise_variance : float or None
        Variance of the noise of the observed entries, in squared units of the data. 0: they are exact. None: learnt.
    exponent : float
        p, above 0.
    channel_covariance : (C, C) ndarray or None
        S, positive definite, in squared units of the data; only its parts within `COUPLED` consecutive channels are
        used. None: learnt.
    steps : int
        Rounds, of two EM iterations each, that learn the covariance and the noise.
    wanted : (H, W, C) ndarray of bool or None
        Missing entries that are asked for; others may be left at the offset. None: all.
    monitor : callable
        Called as ``monitor(done, total, label)``.
    prior : Prior or None
        From `fit`, in place of all that else is learnt from these values; then `noise_variance` and
        `channel_covariance` are not looked at.
    start : (H, W, C) ndarray or None
        An estimate that is near already, which saves iterations; None: averages over neighbourhoods.
    factors : Factors or None
        What other frames of the same size were solved by; None: nothing.

    Returns
    -------
    Field
        Its random numbers are fixed: the same picture gives the same bits, whatever the number of threads.
    """
    return _solve(values, observed, noise_variance, **how)[0]


def solve_with_sd(values, observed, noise_variance=0.0, *, rng, count, **how):
    """As `solve`, with the posterior standard deviation of every entry.

    The variance is that of an entry given all the others, which is known, and that of its conditional mean, which comes
    from `count` posterior samples and is averaged over `VARIANCE_BLUR` pixels. `how` is as of `solve`.

    Returns
    -------
    field : Field
    sd : (H, W, C) ndarray of float64
        Of the noise-free entry; without noise 0 where observed.
    """
    return _solve(values, observed, noise_variance, rng=rng, count=count, **how)


def fit(parts, noise_variance=0.0, *, exponent=EXPONENT, steps=STEPS):
    """What is learnt once of a large picture, from a few parts of it.

    Parameters
    ----------
    parts : sequence of ((H, W, C) ndarray of float64, (H, W, C) ndarray of bool)
        Values and observed entries of each.
    noise_variance, exponent, steps
        See `solve`.

    Returns
    -------
    Prior
    """
    with contextlib.ExitStack() as stack:
        return _learnt(
            parts, noise_variance, exponent, None, steps, Factors(), runner(stack), lambda done, total, label: None
        )[0]


def _learnt(parts, noise_variance, exponent, channel_covariance, steps, factors, run, monitor):
    """`Prior` of parts of a picture, or of the one that is all of it; then also the mean that was found on the way,
    (H, W, C), or None.
    """
    channels = parts[0][0].shape[2]
    unit = max(largest_size(*part) for part in parts)
    offset, spread = moments(parts, unit)
    scale = unit * (float(np.sqrt(spread.mean())) or FLAT)
    offset, spread = offset * unit, spread * (unit / scale) ** 2
    noise = noise_variance and max(noise_variance / scale / scale, LEAST_NOISE)
    covariance, noises = np.zeros((channels, channels)), []
    shape = parts[0][0].shape
    mean = np.empty(shape) if len(parts) == 1 else None
    groups = channel_groups(channels)
    total = len(groups) * (steps + 1)
    for k, own in enumerate(groups):
        if channel_covariance is not None:
            covariance[own, own] = channel_covariance[own, own] / scale / scale
        if channel_covariance is not None and noise is not None:
            mean = None
            continue
        start = first_covariance(spread[own]) if channel_covariance is None else covariance[own, own]
        pictures = [
            Group(v[..., own], o[..., own], ~o[..., own], offset[own], scale, exponent, factors) for v, o in parts
        ]
        windows = [window for picture in pictures for window in picture.learning_windows(noise)]
        learner = Learner(windows, start, noise, np.random.default_rng(k))
        at_once = steps and noise == 0 and all(window.together for window, _ in windows)
        if at_once:
            learner.settle()
        for step in range(0 if at_once else steps):
            moved = learner.round(run)
            monitor(k * steps + step + 1, total, "channel covariance")
            if moved < SETTLED:
                break
        learnt, learnt_noise = learner.unpacked()
        if mean is not None and windows[0][0].values.shape[1:] == shape[:2]:
            mean[..., own] = np.moveaxis(learner.means[0], 0, 2) * scale + offset[own]
        else:
            mean = None
        if channel_covariance is None:
            covariance[own, own] = learnt
        noises.append((learnt_noise, sum(np.count_nonzero(picture.observed) for picture in pictures)))
    if noise is None:
        noise = sum(n * m for n, m in noises) / max(sum(m for _, m in noises), 1)
    return Prior(offset, scale, covariance, noise), mean


def _solve(
    values,
    observed,
    noise_variance,
    *,
    exponent=EXPONENT,
    channel_covariance=None,
    steps=STEPS,
    wanted=None,
    monitor=lambda done, total, label: None,
    prior=None,
    start=None,
    factors=None,
    rng=None,
    count=0,
):
    groups = channel_groups(values.shape[2])
    total = len(groups) * (steps + 1)
    factors, learnt = factors or Factors(), None
    with contextlib.ExitStack() as stack:
        run = runner(stack)
        if prior is None:
            prior, learnt = _learnt(
                [(values, observed)], noise_variance, exponent, channel_covariance, steps, factors, run, monitor
            )
        offset, scale, covariance, noise = prior.offset, prior.scale, prior.covariance, prior.noise
        missing = ~observed if wanted is None else wanted
        asked = observed | missing if noise else missing
        start = learnt if start is None else start
        mean = np.broadcast_to(offset, values.shape).copy() if noise else np.where(observed, values, offset)
        variance = np.zeros(values.shape, np.float32) if count else None
        for k, own in enumerate(groups):
            near = None if start is None else start[..., own]
            entries = values[..., own], observed[..., own], asked[..., own]
            group = Group(*entries, offset[own], scale, exponent, factors, start=near)
            out = Posterior(mean[..., own], None if variance is None else variance[..., own], None)

            def tick(done, of, begun=len(groups) * steps + k):
                monitor(begun * of + done, total * of, "picture")

            posterior(group, covariance[own, own], noise, out, rng=rng, count=count, keep=False, run=run, tick=tick)
    monitor(total, total, "picture")
    with np.errstate(over="ignore"):  # squares of values that themselves are still in range
        fitted = Field(mean, covariance * scale * scale, offset, noise * scale * scale, exponent)
    return fitted, None if variance is None else np.sqrt(variance, dtype=float) * scale


def sample(field, values, observed, count, rng):
    """Samples of the posterior of a fitted field.

    Parameters
    ----------
    field : Field
        From `solve` with the same `values` and `observed`.
    values, observed : (H, W, C) ndarrays
    count : int
    rng : numpy.random.Generator

    Yields
    ------
    (H, W, C) ndarray
        `count` times; without noise the observed entries are those of the data. Windows of a large picture are sampled
        each by itself.
    """
    scale = float(np.sqrt(np.trace(field.channel_covariance) / len(field.offset)))
    noise = field.noise_variance / scale**2
    asked, factors = ~observed | (noise > 0), Factors()
    for _ in range(count):
        drawn = field.mean.copy()
        deviations = np.zeros((1, *values.shape), np.float32 if values.size > DOUBLE else np.float64)
        with contextlib.ExitStack() as stack:
            run = runner(stack)
            for own in channel_groups(values.shape[2]):
                entries = values[..., own], observed[..., own], asked[..., own]
                group = Group(*entries, field.offset[own], scale, field.exponent, factors)
                out = Posterior(np.empty_like(drawn[..., own]), None, deviations[..., own])
                within = field.channel_covariance[own, own] / scale**2
                posterior(group, within, noise, out, rng=rng, count=1, keep=True, run=run)
        drawn += deviations[0] * scale
        yield drawn
