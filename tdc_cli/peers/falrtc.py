"""FaLRTC: the weighted nuclear norms of all unfoldings, smoothed and minimised by Nesterov's method.

Minimises, over all X that agree with the observed entries, the smooth approximation

    f(X) = sum_i max { w_i <X_(i), Y> - mu_i / 2 ||Y||_F^2 : ||Y|| <= 1 }

of ``sum_i w_i ||X_(i)||_*``, which is the sum of w_i s - mu_i / 2 over the singular values s above mu_i / w_i, and of
(w_i s)^2 / (2 mu_i) over the others. Its gradient replaces each s by w_i min(1, w_i s / mu_i). An iteration, with a =
(1 + sqrt(1 + 4 L A)) / (2 L), is

    W <- (A X + a Z) / (A + a)
    X <- W - g / L and Z <- Z - a g where nothing is observed, g the gradient at W
    A <- A + a

where L grows by 1 / 0.6 until f(X) <= f(W) - ||g||^2 / (2 L). The mu_i fall from 0.3 w_i times the largest singular
value, as k^-1.15 in the iteration k, to 5 w_i / sqrt(n_i) in units of which 255 are the largest observed size, and stay
there for the last 15 iterations. It stops when X changes by less than `tolerance` of the norm of the observed entries.

References
----------
J. Liu, P. Musialski, P. Wonka, J. Ye: Tensor completion for estimating missing values in visual data, IEEE Transactions
on Pattern Analysis and Machine Intelligence 35(1), 2013.
"""

from dataclasses import dataclass

import numpy as np

from ..methods import Completion, silent
from ..methods.parameters import Parameters, parameter
from ..tensor import fold, unfold
from . import lowrank
from .lowrank import in_data, in_units, mode_weights, shrink_singular_values, singular_values

# The authors' constants hold for values up to 255.
GREY_LEVELS = 255.0
SMOOTHING_START, SMOOTHING_END, SMOOTHING_DECAY, LAST_STEPS = 0.3, 5.0 / GREY_LEVELS, 1.15, 15
LIPSCHITZ_START, LIPSCHITZ_FACTOR = 1e-5 * GREY_LEVELS, 0.6


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of FaLRTC."""

    weights: tuple[float, ...] = lowrank.weights_parameter()
    tolerance: float = lowrank.change_parameter()
    iterations: int = parameter(
        500, "At most so many; the smoothing falls over this number.", ge=LAST_STEPS + 2, le=1_000_000
    )


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Complete by Nesterov's method."""
    data, unit = in_units(values, observed)
    weights = mode_weights(config.weights, data.shape)
    estimate = np.where(observed, data, data[observed].mean())
    smoothing = smoothings(estimate, weights, config.iterations)
    lipschitz, total, leader = LIPSCHITZ_START, 0.0, estimate
    limit = config.tolerance * (np.linalg.norm(data) or 1.0)
    warnings = (f"falrtc had not converged after {config.iterations} iterations",)
    for step in range(1, config.iterations + 1):
        mu = smoothing(step)
        before = estimate
        # From this constant on the inequality holds for certain, but for rounding.
        steepest = np.sum(weights**2 / mu)
        while True:
            weight = (1.0 + np.sqrt(1.0 + 4.0 * lipschitz * total)) / (2.0 * lipschitz)
            point = (total * before + weight * leader) / (total + weight)
            value, gradient = smoothed(point, weights, mu)
            gradient[observed] = 0.0
            estimate = point - gradient / lipschitz
            if lipschitz >= steepest or objective(estimate, weights, mu) <= value - np.sum(gradient**2) / (
                2.0 * lipschitz
            ):
                break
            lipschitz /= LIPSCHITZ_FACTOR
        leader = leader - weight * gradient
        total += weight
        monitor(step, config.iterations, "iteration")
        if np.linalg.norm(estimate - before) < limit:
            monitor(step, step, "iteration")
            warnings = ()
            break
    return Completion(mean=in_data(estimate, values, observed, unit), parameters={"weights": weights.tolist()},
                      warnings=warnings)  # fmt: skip


def smoothings(start, weights, iterations):
    """Function from the iteration, from 1, to the (K,) smoothing parameters mu_i."""
    last = SMOOTHING_END * weights / np.sqrt(start.shape)
    first = np.maximum(
        last, [SMOOTHING_START * w * singular_values(unfold(start, i))[-1] for i, w in enumerate(weights)]
    )
    flat = iterations - LAST_STEPS
    end = flat**-SMOOTHING_DECAY
    return lambda step: last + (first - last) * max(0.0, (step**-SMOOTHING_DECAY - end) / (1.0 - end))


def objective(tensor, weights, mu):
    """The smoothed sum of nuclear norms."""
    return sum(smoothed_norm(singular_values(unfold(tensor, i)), weights[i], mu[i]) for i in range(tensor.ndim))


def smoothed(tensor, weights, mu):
    """The smoothed sum of nuclear norms, and its gradient."""
    value, gradient = 0.0, np.zeros(tensor.shape)
    for i, (w, m) in enumerate(zip(weights, mu)):
        slope, singular = shrink_singular_values(unfold(tensor, i), lambda s, w=w, m=m: w * np.minimum(1.0, w * s / m))
        gradient += fold(slope, i, tensor.shape)
        value += smoothed_norm(singular, w, m)
    return value, gradient


def smoothed_norm(singular, weight, mu):
    """Smoothed nuclear norm of a matrix with these singular values."""
    scaled = weight * singular
    return np.sum(np.where(scaled > mu, scaled - mu / 2.0, scaled**2 / (2.0 * mu)))
