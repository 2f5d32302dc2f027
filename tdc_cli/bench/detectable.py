"""Whether the weakest true component of a synthetic problem is there to be found, which is a matter of the problem, not
of a run.
"""

from dataclasses import replace

import numpy as np

from ..model.posterior import Scale
from ..model.problem import Problem
from ..model.rank import noise_threshold, refit
from ..model.state import State, unit_weights
from ..tensor import Observed
from . import synth

# A component counts as detectable if deleting it costs this many times what a component that fits only noise could
# gain.
DETECTABLE = 2.0


def detectable(problem):
    """Whether the data show the weakest true component.

    Deleting it from the truth and refitting the others must raise the deviance (-2 log p of the observed entries,
    labels averaged over) by more than `DETECTABLE` times ``T = (sum_k sqrt(n_k))^2``. Every part of the residual stands
    as the Gaussian of its mean and variance, with the true noise.

    Parameters
    ----------
    problem : synth.SyntheticProblem

    Returns
    -------
    bool
    """
    data = Observed.of(problem.incomplete, problem.observed)
    scale = Scale.of(data.values)
    model = Problem.of(replace(data, values=(data.values - scale.centre) / scale.spread))
    parts = synth.KINDS[problem.kind]
    with np.errstate(divide="ignore"):
        precisions = 1.0 / np.array([part.variance for part in parts])
    rank, order = problem.rank, len(problem.shape)
    state = State(
        weights=problem.weights / scale.spread, weight_variances=np.full(rank, 10.0), weight_rates=np.ones(rank),
        factors=problem.factors, factor_means=np.zeros(order), factor_precisions=np.ones(order),
        labels=np.zeros(data.size, dtype=np.int64), residuals=np.zeros(data.size),
        component_means=(np.array([part.mean for part in parts]) - scale.centre) / scale.spread,
        component_precisions=precisions * scale.spread**2, component_weights=np.array([part.share for part in parts]),
        noise_precision=(scale.spread / problem.noise_std) ** 2)  # fmt: skip
    state, whole = refit(model, state)
    _, without = refit(model, state.keep_components(np.arange(rank) != np.argmin(unit_weights(state))))
    return bool(without - whole > DETECTABLE * noise_threshold(problem.shape))
