"""Completion by the t-SVD: the tensor nuclear norm of a tensor of three modes, minimised by ADMM.

Minimises ``sum_k ||F_k||_*`` over all X that agree with the observed entries, F_k the frontal slices of the discrete
Fourier transform of X along its last mode. With M the observed entries (0 elsewhere), E = M - X where nothing is
observed and 0 where something is, the dual variable Y and the penalty rho, an iteration is

    X <- inverse transform of shrink(F_k, 1 / rho), F the transform of M - E + Y / rho
    E <- M - X + Y / rho where nothing is observed
    Y <- Y + rho (M - X - E)

and rho grows by the factor `growth`. It stops when neither X nor E nor M - X - E changes any entry by more than
`tolerance`. All this is in units of the largest observed size; the values of a photograph are of that order.

The modes are not alike: the first two are the matrices, the last is the one that is transformed. For a picture that is
its colours.

References
----------
Z. Zhang, G. Ely, S. Aeron, N. Hao, M. Kilmer: Novel methods for multilinear data completion and de-noising based on
tensor-SVD, CVPR 2014. C. Lu, J. Feng, Y. Chen, W. Liu, Z. Lin, S. Yan: Tensor robust principal component analysis with
a new tensor nuclear norm, IEEE Transactions on Pattern Analysis and Machine Intelligence 42(4), 2020: the schedule of
the penalty.
"""

from dataclasses import dataclass

import numpy as np
import scipy.fft

from ..errors import InputError
from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from .lowrank import in_data, in_units, shrink_singular_values, soft

LARGEST_PENALTY = 1e10


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the t-SVD."""

    penalty: float = parameter(1e-4, "rho at the start.", gt=0, lt=LARGEST_PENALTY)
    growth: float = parameter(1.1, "Factor of the penalty in every iteration, at least 1.", ge=1, le=2)
    tolerance: float = parameter(1e-8, "Change that ends the run, in units of the largest observed size.", gt=0, lt=1)
    iterations: int = most_iterations(500)


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Complete by ADMM."""
    if values.ndim != 3:
        raise InputError(f"tsvd takes tensors of 3 modes, not {values.ndim}; try `method=halrtc`")
    data, unit = in_units(values, observed)
    penalty = config.penalty
    estimate, rest, dual = (np.zeros(data.shape) for _ in range(3))
    warnings = (f"tsvd had not converged after {config.iterations} iterations",)
    for step in range(1, config.iterations + 1):
        before = estimate, rest
        estimate = low_rank(data - rest + dual / penalty, 1.0 / penalty)
        rest = np.where(observed, 0.0, data - estimate + dual / penalty)
        left = data - estimate - rest
        monitor(step, config.iterations, "iteration")
        if max(np.abs(change).max() for change in (estimate - before[0], rest - before[1], left)) < config.tolerance:
            monitor(step, step, "iteration")
            warnings = ()
            break
        dual += penalty * left
        penalty = min(config.growth * penalty, LARGEST_PENALTY)
    return Completion(mean=in_data(estimate, values, observed, unit), warnings=warnings)


def low_rank(tensor, threshold):
    """`tensor` with the singular values of all slices of its transform along the last mode lowered by `threshold`."""
    depth = tensor.shape[2]
    # The others are the conjugates of these.
    slices = np.ascontiguousarray(
        np.moveaxis(scipy.fft.rfft(tensor, axis=2), 2, 0)
    )
    shrunk = np.empty_like(slices)
    for k, matrix in enumerate(slices):
        # These two are real, which makes them four times faster.
        shrunk[k] = shrink_singular_values(matrix.real if k == 0 or 2 * k == depth else matrix, soft(threshold))[0]
    return scipy.fft.irfft(np.moveaxis(shrunk, 0, 2), n=depth, axis=2)
