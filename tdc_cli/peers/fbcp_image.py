"""FBCP for photographs: the model of `fbcp` as its authors run it on pictures, `fbcp-mp` with a mixture prior that
wants rows alike.

What differs from `fbcp`: the data have the levels 0 to 255, the factors start at random, the noise precision starts at
10,000, that is, as good as without noise, and it stops where the bound's growth no longer changes: where its second
difference is below `tolerance` times its value after the second iteration.

With `smoothing` s above 0 the factors of modes 0 and 1 have a mixture prior (section 6 of the paper): each row is near
a weighted mean of its neighbours. As in the authors' program, after each update the mean of row i becomes a_i + 5 s
sum_j w_ij a_j, where w_ij is in proportion to exp(-2 q (i - j)^2) for j other than i, sums to 1 over j, and q is the
share of observed entries. This is no step up the lower bound, which may then fall.

References
----------
Q. Zhao, L. Zhang, A. Cichocki: Bayesian CP factorization of incomplete tensors with automatic rank determination, IEEE
Transactions on Pattern Analysis and Machine Intelligence 37(9), 2015, DOI 10.1109/TPAMI.2015.2392756. Parameters are
those of the authors' programs BCPF_IC and BCPF_MP.
"""

from dataclasses import dataclass

import numpy as np

from ..methods import silent
from ..methods.parameters import Parameters, most_iterations, parameter
from ..tensor import largest_size
from .fbcp import fit, summary
from .variational import Factors, Gamma

# The levels and the noise precision at the start, of the authors.
LEVELS, START_PRECISION = 255.0, 1e4
# Weight of the neighbours at smoothing 1, and how fast it falls with the distance when all entries are observed.
PULL, FALL = 5.0, 2.0


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of FBCP for photographs."""

    rank: int = parameter(100, "Number of CP components at the start.", ge=1, le=1000)
    iterations: int = most_iterations(20)
    tolerance: float = parameter(
        1e-4,
        "Second difference of the bound, relative to its value after two iterations, below which to stop.",
        ge=0,
        lt=1,
    )
    smoothing: float = parameter(
        0.0,
        "Strength of the mixture prior along modes 0 and 1; 0: none. The authors take 1, and 0.1 for a facade.",
        ge=0,
        le=1000,
    )


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Posterior mean and standard deviation of every entry; the largest observed size counts as level 255."""
    unit = largest_size(values, observed) / LEVELS
    data = np.where(observed, values, 0.0) / unit
    draw = rng.random if config.smoothing else rng.standard_normal
    factors = Factors(observed, [draw((n, config.rank)) for n in values.shape])
    smooths = None
    if config.smoothing:
        smooths = [neighbours(n, config.smoothing, observed.mean()) for n in values.shape[:2]] + [None] * (
            values.ndim - 2
        )
    noise, traces = fit(factors, data, Gamma(START_PRECISION, 1.0), config, steady, monitor, smooths)
    return summary(factors, noise, unit, config, traces)


def steady(bounds, tolerance):
    """Whether the bound's growth has all but stopped changing."""
    return abs(bounds[-1] - 2 * bounds[-2] + bounds[-3]) < tolerance * abs(bounds[1])


def neighbours(size, smoothing, share):
    """Matrix that adds to every row the weighted mean of its neighbours.

    Parameters
    ----------
    size : int
    smoothing : float
    share : float
        Of the observed entries.

    Returns
    -------
    (size, size) ndarray
    """
    rows = np.arange(size)
    kernel = np.exp(-FALL * share * (rows[:, None] - rows) ** 2)
    np.fill_diagonal(kernel, 0.0)
    # A single row has no neighbours.
    total = kernel.sum(axis=1, keepdims=True)
    return np.eye(size) + PULL * smoothing * np.divide(kernel, total, out=np.zeros_like(kernel), where=total > 0)
