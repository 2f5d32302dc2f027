"""HaLRTC: the weighted nuclear norms of all unfoldings, minimised by ADMM.

Minimises ``sum_i w_i ||X_(i)||_*`` over all X that agree with the observed entries, X_(i) its unfolding along mode i.
Every norm gets a copy M_i of X and a dual variable Y_i of the constraint M_i = X. An iteration, with penalty rho, is

    M_i <- fold(shrink(unfold(X - Y_i / rho), w_i / rho))     singular values lowered by w_i / rho
    X   <- mean_i(M_i + Y_i / rho) where nothing is observed
    Y_i <- Y_i + rho (M_i - X)

and rho grows by the factor `growth`. It stops when X changes by less than `tolerance` of the norm of the observed
entries.

The first rho is relative to the data: `start` times max w_i / s, s the largest singular value of the unfoldings, so
that the first threshold is s / `start`. A fixed number in its place, as in the authors' program (1e-6 for values of 0
to 255), may set every M_i to 0, and X, which then does not change either, is taken for converged. The growth is what
ends the run: as rho grows, X comes to a halt wherever it is, and where few entries are observed that may be before the
minimum. Slower growth comes nearer.

References
----------
J. Liu, P. Musialski, P. Wonka, J. Ye: Tensor completion for estimating missing values in visual data, IEEE Transactions
on Pattern Analysis and Machine Intelligence 35(1), 2013.
"""

from dataclasses import dataclass

import numpy as np

from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations
from ..tensor import fold, unfold
from . import lowrank
from .lowrank import in_data, in_units, mode_weights, shrink_singular_values, singular_values, soft, split


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of HaLRTC."""

    weights: tuple[float, ...] = lowrank.weights_parameter()
    start: float = lowrank.threshold_parameter()
    growth: float = lowrank.growth_parameter()
    tolerance: float = lowrank.change_parameter()
    iterations: int = most_iterations(500)


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Complete by ADMM."""
    data, unit = in_units(values, observed)
    weights = mode_weights(config.weights, data.shape)
    completed = np.where(observed, data, data[observed].mean())
    largest = max(singular_values(unfold(completed, i))[-1] for i in range(data.ndim)) or 1.0
    penalty = config.start * weights.max() / largest

    def copies(tensors, penalty):
        return [low_rank(tensor, i, weights[i] / penalty) for i, tensor in enumerate(tensors)]

    completed, warnings = split(completed, data, observed, penalty, copies, config, "halrtc", monitor)
    return Completion(mean=in_data(completed, values, observed, unit), parameters={"weights": weights.tolist()},
                      warnings=warnings)  # fmt: skip


def low_rank(tensor, mode, threshold):
    """`tensor` with the singular values of its unfolding along `mode` lowered by `threshold`."""
    return fold(shrink_singular_values(unfold(tensor, mode), soft(threshold))[0], mode, tensor.shape)
