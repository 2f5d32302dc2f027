"""The literal and the collapsed sampler have one posterior: mean and standard deviation of the completed tensor, entry
by entry.

Each sampler runs in independent chains, and the spread between chains gives the Monte Carlo error of every figure. The
data are drawn from the model, so that the state that made them is itself a draw from the posterior: chains start there
and need little burn-in.
"""

from dataclasses import replace

import numpy as np
from joint import draw_prior
from threadpoolctl import threadpool_limits

from tdc_cli import library_threads
from tdc_cli.model import sampler
from tdc_cli.model.problem import Problem
from tdc_cli.model.state import Priors
from tdc_cli.tensor import Observed, cp_to_tensor

SHAPE, RANK, COMPONENTS, NOISE_PRECISION = (6, 5, 4), 2, 2, 10.0
PRIORS = Priors(factor_mean=0.3, factor_strength=2.0, factor_shape=6.0, factor_rate=5.0, residual_strength=1.5,
                residual_shape=5.0, residual_rate=1.0, concentration=3.0, kappa_shape=4.0, kappa_rate=30.0)
CHAINS, BURN_IN, SWEEPS = 10, 50, 700


def given_data():
    rng = np.random.default_rng(12)
    observed = rng.random(SHAPE) < 0.7
    state, values = draw_prior(SHAPE, observed, RANK, COMPONENTS, PRIORS, rng, noise_precision=NOISE_PRECISION)
    tensor = np.zeros(SHAPE)
    tensor[observed] = values
    return Problem.of(Observed.of(tensor, observed), PRIORS), replace(state, noise_precision=NOISE_PRECISION)


def moments(problem, state, sweep, seed):
    """Mean and log standard deviation of x + sum pi mu over one chain, (2, entries)."""
    rng = np.random.default_rng(seed)
    draws = []
    for i, new in zip(range(BURN_IN + SWEEPS), sampler.chain(problem, state, rng, sweep)):
        if i >= BURN_IN:
            draws.append(cp_to_tensor(new.weights, new.factors).ravel() + new.component_weights @ new.component_means)
    return np.array([np.mean(draws, axis=0), np.log(np.std(draws, axis=0))])


def compare(problem, state, sweeps):
    """Mean of each figure for each sampler, and its Monte Carlo error: two arrays (samplers, 2, entries)."""
    with threadpool_limits(1), library_threads.kernels(1):
        found = np.array([[moments(problem, state, sweep, seed) for seed in range(CHAINS)] for sweep in sweeps])
    return found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(CHAINS)


def differences(means, errors):
    """Difference of the samplers over its Monte Carlo error, (2, entries)."""
    return (means[0] - means[1]) / np.sqrt(np.sum(errors**2, axis=0))


def test_both_samplers_agree_on_mean_and_spread():
    problem, state = given_data()
    means, errors = compare(problem, state, [sampler.sweep_literal, sampler.sweep_collapsed])
    spread = np.exp(means[:, 1])
    # Worth comparing: the error of a mean is a small part of the posterior's own spread, that of a spread a small part
    # of itself.
    assert np.median(errors[:, 0] / spread) < 0.06
    assert np.median(errors[:, 1]) < 0.06
    scores = differences(means, errors)
    # 120 entries, t with about 18 degrees of freedom: |t| reaches 4.5 in one of them in 3 of 100 seeds; mean square 18
    # / 16.
    assert np.abs(scores).max() < 4.5
    assert np.all(np.mean(scores**2, axis=1) < 3.0)


def test_disagreement_is_seen(monkeypatch):
    """A collapsed sampler that takes e for given in the precisions but not in the targets."""
    problem, state = given_data()
    right = sampler.observation_law

    def law(problem, state):
        precisions, targets = right(problem, state)
        return np.full_like(precisions, state.noise_precision), targets
    monkeypatch.setattr(sampler, "observation_law", law)
    monkeypatch.setattr("test_agreement.SWEEPS", 150)
    scores = differences(*compare(problem, state, [sampler.sweep_literal, sampler.sweep_collapsed]))
    assert np.abs(scores).max() > 4.5
