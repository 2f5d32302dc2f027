"""The streamed moments of the completed tensor against drawn residuals, entry by entry."""

from dataclasses import replace

import numpy as np
import pytest
from joint import draw_prior
from scipy import stats

from tdc_cli.model import conditionals, sampler
from tdc_cli.model.posterior import Moments, half_width, mixture_moments
from tdc_cli.model.problem import Problem
from tdc_cli.model.state import Priors
from tdc_cli.tensor import Observed, cp_to_tensor

SHAPE = (5, 4, 3)
PRIORS = Priors(
    factor_mean=0.3, factor_strength=2.0, factor_shape=6.0, factor_rate=5.0,
    residual_mean=-0.4, residual_strength=1.5, residual_shape=5.0, residual_rate=3.0,
    concentration=np.array([4.0, 6.0]), kappa_shape=4.0, kappa_rate=3.0, noise_shape=5.0, noise_rate=1.2,
)
DRAWS, RESIDUALS_A_DRAW = 60, 2000
Z90 = stats.norm.ppf(0.95)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=["mixture", "constant"])
def chain(request):
    """A problem and some states of its chain, every component of which holds three entries or more."""
    constant = request.param == "constant"
    rng = np.random.default_rng(4)
    observed = rng.random(SHAPE) < 0.7
    state, values = draw_prior(SHAPE, observed, 2, 2, PRIORS, rng, noise_precision=5.0, constant_residual=constant)
    tensor = np.full(SHAPE, np.nan)
    tensor[observed] = values
    problem = Problem.of(Observed.of(tensor, observed), PRIORS, constant_residual=constant)
    states = []
    for new in sampler.chain(problem, replace(state, noise_precision=5.0), rng):
        if np.bincount(new.labels, minlength=len(new.component_means)).min() >= 3:
            states.append(new)
        if len(states) == DRAWS:
            return problem, states, rng


def moments_of(problem, states):
    moments = Moments(problem)
    for state in states:
        moments.add(state)
    return moments


def drawn_tensors(problem, states, rng):
    """The latent tensor with drawn residuals: eq33 at observed entries, the mixture elsewhere, (draws, many, entries).
    """
    data = problem.data
    found = []
    for state in states:
        x = cp_to_tensor(state.weights, state.factors).ravel()
        labels = rng.choice(len(state.component_weights), size=(RESIDUALS_A_DRAW, x.size), p=state.component_weights)
        e = rng.normal(state.component_means[labels], 1.0 / np.sqrt(state.component_precisions[labels]))
        for line in e:
            line[data.flat] = conditionals.draw_residuals(
                data.values - x[data.flat], state.noise_precision, state.component_means[state.labels],
                state.component_precisions[state.labels], rng)
        found.append(x + e)
    return np.array(found)


def test_moments_are_those_of_drawn_tensors(chain):
    """Mean and variance over draws and residuals; at missing entries the covariance of x and the mixture's mean counts.
    """
    problem, states, rng = chain
    moments = moments_of(problem, states)
    drawn = drawn_tensors(problem, states, rng)
    centres = drawn.mean(axis=1)
    # exact over the draws at hand, so that only the residuals' Monte Carlo error is left: the spread over draws has its
    # own n - 1
    variance = drawn.var(axis=1).mean(axis=0) + centres.var(axis=0, ddof=1)
    error = np.sqrt(drawn.var(axis=1).mean(axis=0) / (DRAWS * RESIDUALS_A_DRAW))
    assert np.all(np.abs(moments.mean.ravel() - centres.mean(axis=0)) <= 5 * error + 1e-12)
    np.testing.assert_allclose(moments.variance().ravel(), variance, rtol=0.03, atol=1e-12)
    low_rank = np.mean([cp_to_tensor(s.weights, s.factors) for s in states], axis=0)
    np.testing.assert_allclose(moments.low_rank, low_rank)


def test_moments_do_not_mind_order_and_sign_of_components(chain):
    problem, states, _ = chain
    scrambled = []
    for i, state in enumerate(states):
        other = state.keep_components(np.array([1, 0]) if i % 2 else np.array([0, 1]))
        sign = np.array([-1.0, 1.0])
        scrambled.append(replace(other, factors=(sign * other.factors[0], -other.factors[1], -sign * other.factors[2])))
    one, other = moments_of(problem, states), moments_of(problem, scrambled)
    np.testing.assert_allclose(other.mean, one.mean, atol=1e-10)
    np.testing.assert_allclose(other.variance(), one.variance(), atol=1e-10)


def test_intervals_hold_nine_tenths(chain):
    """Half the width between the 5 % and the 95 % quantile, over 1.645; over draws the spread is treated as Gaussian.
    """
    problem, states, rng = chain
    moments = moments_of(problem, states)
    widths = moments.interval_sd().ravel() * Z90
    if problem.constant_residual:  # then there is nothing else
        np.testing.assert_allclose(widths, Z90 * np.sqrt(moments.variance().ravel()), rtol=1e-6)
        return
    drawn = drawn_tensors(problem, states, rng).reshape(-1, widths.size)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(widths, (high - low) / 2.0, rtol=0.12, atol=1e-9)
    assert np.median(np.abs(2.0 * widths / (high - low) - 1.0)) < 0.04


def test_mixture_moments(chain):
    _, states, _ = chain
    for state in states:
        pi, mu = state.component_weights, state.component_means
        second = pi @ (1.0 / state.component_precisions + mu**2)
        np.testing.assert_allclose(mixture_moments(state), (pi @ mu, second - (pi @ mu) ** 2), atol=1e-12)


def test_width_of_one_gaussian():
    np.testing.assert_allclose(half_width(np.ones(1), np.array([3.0]), np.array([2.0])), 2.0 * Z90, rtol=1e-6)
    assert half_width(np.ones(1), np.array([3.0]), np.zeros(1)) == 0.0
