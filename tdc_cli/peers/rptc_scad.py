"""RPTC_scad: the product of the ranks of all unfoldings, each through a SCAD penalty of its singular values, by ADMM.

Minimises ``prod_i P_i(X_(i))`` over all X that agree with the observed entries, X_(i) its unfolding along mode i and
P_i(M) = sum_k psi_i(s_k) over the singular values of M. psi is the SCAD penalty, scaled to 1 where it is flat, so that
P_i is a soft count of the singular values: its slope is 2 / ((a + 1) lambda_i) up to lambda_i, falls from there to 0 at
a lambda_i, and stays 0. Every unfolding gets a copy M_i of X and a dual variable Y_i of the constraint M_i = X. An
iteration, with penalty rho, is

    w_i <- (1 / P_i) / sum_j (1 / P_j)       the derivative of the product, but for a factor that all share
    M_i <- unfold(X - Y_i / rho) with the k-th singular value lowered by w_i psi_i'(s_k) / rho, s_k that of the last M_i
    X   <- mean_i(M_i + Y_i / rho) where nothing is observed
    Y_i <- Y_i + rho (M_i - X)

and rho grows by the factor `growth`. psi is replaced by its tangent at the last M_i (local linear approximation), and
the product by its tangent in one factor; both are concave, so that neither is ever below what it replaces. It stops
when X changes by less than `tolerance` of the norm of the observed entries.

No program of the authors is public, and their constants are not known. Here a = 3.7, the usual one, and lambda_i is
`knee` times the median singular value of the unfolding with its missing entries at the mean, times sqrt((1 - p) / p)
where the share p is observed: most of those singular values are noise from what is missing, whose size relative to the
truth, itself shrunk to p of it, goes with that root. Where more than half is observed the root counts as 1: a smaller
knee would lie below all singular values, the penalty be flat at each of them, and the start stay as it is. The first
threshold is the largest singular value over `start`, as in `halrtc`.

References
----------
Q. Zhao, D. Meng, X. Kong, Q. Xie, W. Cao, Y. Wang, Z. Xu: A novel sparsity measure for tensor recovery, ICCV 2015.
J. Fan, R. Li: Variable selection via nonconcave penalized likelihood and its oracle properties, Journal of the American
Statistical Association 96, 2001: the SCAD penalty.
"""

from dataclasses import dataclass

import numpy as np

from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from ..tensor import fold, unfold
from . import lowrank
from .lowrank import in_data, in_units, shrink_singular_values, singular_values, split

A = 3.7
# Where the median singular value is nothing but rounding: knees of at least this share of the largest one.
LEAST_KNEE = 1e-6


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of RPTC_scad."""

    knee: float = parameter(
        0.3,
        "lambda of the penalty over the median singular value at the start, where half or more is observed; else times "
        "the root of the odds of missing.",
        gt=0,
        lt=1e6,
    )
    start: float = lowrank.threshold_parameter()
    growth: float = lowrank.growth_parameter()
    tolerance: float = lowrank.change_parameter()
    iterations: int = most_iterations(500)


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Complete by ADMM; the rank is the largest of the counts P_i, rounded."""
    data, unit = in_units(values, observed)
    completed = np.where(observed, data, data[observed].mean())
    singular = [singular_values(unfold(completed, i)) for i in range(data.ndim)]
    largest = max(s[-1] for s in singular) or 1.0
    odds = max(np.sum(~observed) / np.sum(observed), 1.0)
    knees = [max(config.knee * np.sqrt(odds) * np.median(s), LEAST_KNEE * largest) for s in singular]
    weights = tangent_weights(singular, knees)
    penalty = config.start * max(w * scad_slope(0.0, knee) for w, knee in zip(weights, knees)) / largest

    def copies(tensors, penalty):
        made, weights = [], tangent_weights(singular, knees)
        for i, tensor in enumerate(tensors):
            lowered = lower_by(weights[i] * scad_slope(singular[i], knees[i]) / penalty)
            copy, before = shrink_singular_values(unfold(tensor, i), lowered)
            made.append(fold(copy, i, data.shape))
            singular[i] = lowered(before)
        return made

    completed, warnings = split(completed, data, observed, penalty, copies, config, "rptc-scad", monitor)
    rank = round(max(soft_count(s, knee) for s, knee in zip(singular, knees)))
    return Completion(
        mean=in_data(completed, values, observed, unit),
        rank={"value": rank, "posterior": None, "paper_count": None},
        warnings=warnings,
    )


def lower_by(thresholds):
    """The `shrink` that lowers each singular value by its own threshold."""
    return lambda singular: np.maximum(singular - thresholds, 0.0)


def scad_slope(singular, knee):
    """Derivative of the scaled SCAD penalty."""
    return np.clip((A * knee - singular) / (A - 1.0), 0.0, knee) * 2.0 / ((A + 1.0) * knee**2)


def soft_count(singular, knee):
    """Sum of the scaled SCAD penalty: about 1 for each singular value well above the knee."""
    steep = 2.0 * singular / ((A + 1.0) * knee)
    bend = 1.0 - (np.minimum(singular, A * knee) - A * knee) ** 2 / ((A**2 - 1.0) * knee**2)
    return float(np.sum(np.where(singular <= knee, steep, bend)))


def tangent_weights(singular, knees):
    """Derivatives of the product of the soft counts by each of them, scaled to the sum 1.

    A count below 1e-12, that of zeros, counts as so much.
    """
    inverse = np.array([1.0 / max(soft_count(s, knee), 1e-12) for s, knee in zip(singular, knees)])
    return inverse / inverse.sum()
