"""FBCP: fully Bayesian CP factorisation, its rank found by automatic relevance determination, for tensors of any kind.

Maximises the evidence lower bound of the model of `tdc_cli.peers.variational`. An iteration updates, in closed form,
the posterior of the rows of one factor after the other, of the relevances, and of the noise precision; then components
driven to zero are left out. The bound never falls, up to the terms of components that are left out. Stops where it
grows by less than `tolerance` times its value after the second iteration. The authors start once, from the singular
vectors of the unfoldings; that may end with a component too few, which a second, random start may find and a larger
bound tells. The estimate is the posterior mean, the standard deviation that of the CP tensor under the posterior of the
factors.

`fbcp-image` (`tdc_cli.peers.fbcp_image`) is the same model as its authors run it on photographs.

References
----------
Q. Zhao, L. Zhang, A. Cichocki: Bayesian CP factorization of incomplete tensors with automatic rank determination, IEEE
Transactions on Pattern Analysis and Machine Intelligence 37(9), 2015, DOI 10.1109/TPAMI.2015.2392756. Parameters are
those of the authors' program BCPF_TC.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from ..tensor import largest_size
from .variational import Factors, Gamma, decompose, likelihood, noise_posterior

# Up to this many entries a tensor starts with the first rank, above with the second.
SMALL = 100_000
RANKS = 30, 100
# The bound is not looked at before this iteration: at first it grows by leaps, but not always.
PATIENCE = 5


def rank_parameter():
    """The field `rank` of the methods that find one: where they start."""
    what = "Number of CP components at the start; None: 30 up to 100,000 entries, 100 above."
    return parameter(None, what, ge=1, le=1000)


def growth_of_bound(share):
    """The field `tolerance` of the methods that raise a bound."""
    what = "Growth of the bound, relative to its value after two iterations, below which to stop."
    return parameter(share, what, ge=0, lt=1)


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of FBCP."""

    rank: int | None = rank_parameter()
    iterations: int = most_iterations(100)
    tolerance: float = growth_of_bound(1e-5)
    starts: int = parameter(
        2,
        "The first from singular vectors, all others at random; that of the largest bound is kept. The authors' "
        "program has the first alone.",
        ge=1,
        le=1000,
    )


def start_rank(config, size):
    """Number of components at the start for a tensor of `size` entries."""
    return config.rank or RANKS[size > SMALL]


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Posterior mean and standard deviation of every entry."""
    config = replace(config, rank=start_rank(config, values.size))
    # The authors bring the standard deviation of the observed entries to the number of modes.
    unit = spread(values, observed) / values.ndim
    data = np.where(observed, values, 0.0) / unit
    best = None
    for start in range(config.starts):
        means = (
            [rng.standard_normal((n, config.rank)) for n in values.shape]
            if start
            else decompose(data, config.rank, rng)
        )
        factors = Factors(observed, means)
        noise, traces = fit(factors, data, Gamma(1.0, 1.0), config, slowed, _shifted(monitor, start, config))
        bound = traces["bound"][0][-1]
        if best is None or bound > best[0]:
            best = bound, factors, noise, traces
    monitor(config.starts, config.starts, "start")
    _, factors, noise, traces = best
    return summary(factors, noise, unit, config, traces)


def _shifted(monitor, start, config):
    """Monitor of the iterations of one start among all."""
    return lambda done, total, label: monitor(
        start * config.iterations + done, config.starts * config.iterations, label
    )


def spread(values, observed):
    """Standard deviation of the observed entries; their largest size where they are all equal."""
    top = largest_size(values, observed)
    relative = float(np.std(np.where(observed, values, 0.0) / top, where=observed))
    return top * relative if relative > 1e-12 else top


def slowed(bounds, tolerance):
    """Whether the bound has all but stopped growing."""
    return bounds[-1] - bounds[-2] < tolerance * abs(bounds[1])


def fit(factors, data, noise, config, converged, monitor, smooths=None):
    """Iterate until convergence; `factors` is changed in place.

    Parameters
    ----------
    factors : Factors
    data : (n_1, ..., n_K) ndarray
        0 where not observed.
    noise : Gamma
        Noise precision at the start.
    config : dataclass
        With `iterations` and `tolerance`.
    converged : callable
        ``converged(bounds, tolerance)`` says of the bounds so far whether to stop.
    monitor : callable
    smooths : list of (n_k, n_k) ndarray or None, optional
        What the means of each mode are multiplied by after its update.

    Returns
    -------
    Gamma
        Noise precision.
    dict
        Traces of rank and bound, one chain each.
    """
    count = np.count_nonzero(factors.observed)
    ranks, bounds = [], []
    for iteration in range(1, config.iterations + 1):
        for mode in range(data.ndim):
            factors.update(mode, data, noise.mean, smooths[mode] if smooths else None)
        factors.update_relevance()
        square = factors.expected_square(data, factors.reconstruct())
        noise = noise_posterior(count, square)
        bounds.append(factors.bound() + likelihood(count, square, noise))
        if iteration > 1:
            factors.prune()
        ranks.append(factors.rank)
        monitor(iteration, config.iterations, "iteration")
        if iteration > PATIENCE and converged(bounds, config.tolerance):
            monitor(iteration, iteration, "iteration")
            break
    return noise, {"rank": [ranks], "bound": [bounds]}


def summary(factors, noise, unit, config, traces):
    """Completion in data units."""
    mean, variance = unit * factors.reconstruct(), factors.variance()
    return Completion(
        mean=mean,
        sd=unit * np.sqrt(variance),
        predictive_sd=unit * np.sqrt(variance + 1 / noise.mean),
        rank={"value": factors.rank, "posterior": {str(factors.rank): 1.0}, "paper_count": None},
        noise_std=unit / np.sqrt(noise.mean),
        parameters={"rank": config.rank},
        traces=traces,
        low_rank=mean,
    )
