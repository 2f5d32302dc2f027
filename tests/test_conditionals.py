"""Every conditional against the joint density: along one unknown, log_joint(a) - log_joint(b) is the conditional's
difference.

The collapsed sampler's conditionals have ``e`` integrated out. Their joint density is `log_joint` less the log density
of ``e`` given everything else, which is the same number for every ``e`` only if eq33 is right; that is tested first.
"""

from dataclasses import astuple, replace

import numpy as np
import pytest
from joint import draw_prior, log_joint, neighbour_laplacian
from scipy import stats

from tdc_cli.model import conditionals as given
from tdc_cli.model import kernels, sampler
from tdc_cli.model.coherence import Coherence
from tdc_cli.model.problem import Problem
from tdc_cli.model.state import Priors
from tdc_cli.tensor import Observed, cp_to_tensor

PRIORS = Priors(
    factor_mean=0.3, factor_strength=2.0, factor_shape=6.0, factor_rate=5.0,
    residual_mean=-0.4, residual_strength=1.5, residual_shape=5.0, residual_rate=3.0,
    concentration=np.array([2.0, 3.0, 1.5]), kappa_shape=4.0, kappa_rate=3.0, noise_shape=5.0, noise_rate=1.2,
)
SHAPE, RANK, COMPONENTS = (5, 4, 3), 3, 3
KINDS = ["plain", "coherent", "learnt", "constant"]


def make(kind, seed=0, shape=SHAPE):
    """A problem of one kind with a state drawn from its prior and data drawn from that."""
    rng = np.random.default_rng(seed)
    observed = rng.random(shape) < 0.7
    coherences = tuple(Coherence.of(n, 0.3, 2.0) for n in shape) if kind == "coherent" else None
    constant = kind == "constant"
    state, values = draw_prior(
        shape, observed, RANK, COMPONENTS, PRIORS, rng, constant_residual=constant, coherences=coherences
    )
    tensor = np.full(shape, np.nan)
    tensor[observed] = values
    problem = Problem.of(
        Observed.of(tensor, observed),
        PRIORS,
        constant_residual=constant,
        learn_noise=kind == "learnt",
        coherences=coherences,
    )
    return problem, replace(state, noise_precision=float(state.noise_precision)), rng


@pytest.fixture(params=KINDS)
def case(request):
    return make(request.param)


@pytest.fixture
def mixture():
    return make("learnt")


pytestmark = pytest.mark.usefixtures("one_thread")


def log_normal(x, mean, precision):
    return np.sum(stats.norm.logpdf(x, mean, 1.0 / np.sqrt(precision)))


def log_joint_without_residuals(problem, state):
    """Log of the joint density with ``e`` integrated out, by Bayes' rule at the state's own ``e``."""
    if problem.constant_residual:
        return log_joint(problem, state)
    means, precisions = state.component_means[state.labels], state.component_precisions[state.labels]
    deviations = problem.data.values - sampler.cp_values(problem, state)
    return log_joint(problem, state) - log_normal(state.residuals, *given.residual_posterior(
        deviations, state.noise_precision, means, precisions))


def agrees(problem, a, b, claimed, density=log_joint):
    """Whether the densities of two states differ by what a conditional claims, and the difference is worth the name."""
    difference = density(problem, a) - density(problem, b)
    assert difference != 0
    np.testing.assert_allclose(claimed, difference, rtol=1e-8, atol=1e-8)


# The joint density itself.


def test_joint_density_is_the_product_of_its_laws(case):
    """Against scipy.stats, one law at a time."""
    problem, state, _ = case
    p = problem.priors
    total = stats.norm.logpdf(state.weights, 0.0, np.sqrt(state.weight_variances)).sum()
    total += stats.expon.logpdf(state.weight_variances, scale=2.0 / state.weight_rates).sum()
    total += stats.gamma.logpdf(state.weight_rates, p.kappa_shape, scale=1.0 / p.kappa_rate).sum()
    for u, mean, precision, coherence in zip(
        state.factors, state.factor_means, state.factor_precisions, problem.coherences
    ):
        q = precision * np.eye(len(u)) + (
            0 if coherence is None else coherence.strength * neighbour_laplacian(coherence)
        )
        total += stats.multivariate_normal.logpdf(u.T, np.full(len(u), mean), np.linalg.inv(q)).sum()
        total += stats.norm.logpdf(mean, p.factor_mean, 1.0 / np.sqrt(p.factor_strength * precision))
        total += stats.gamma.logpdf(precision, p.factor_shape, scale=1.0 / p.factor_rate)
    x = cp_to_tensor(state.weights, state.factors).ravel()[problem.data.flat]
    if problem.learn_noise or problem.constant_residual:
        total += stats.gamma.logpdf(state.noise_precision, p.noise_shape, scale=1.0 / p.noise_rate)
    if problem.constant_residual:
        total += log_normal(problem.data.values, x + state.component_means, state.noise_precision)
        total += log_normal(state.component_means, p.residual_mean, p.residual_strength * state.noise_precision)
    else:
        z = state.labels
        total += log_normal(problem.data.values, x + state.residuals, state.noise_precision)
        total += log_normal(state.residuals, state.component_means[z], state.component_precisions[z])
        total += np.log(state.component_weights[z]).sum() + stats.dirichlet.logpdf(
            state.component_weights, p.concentration
        )
        total += log_normal(state.component_means, p.residual_mean, p.residual_strength * state.component_precisions)
        total += stats.gamma.logpdf(state.component_precisions, p.residual_shape, scale=1.0 / p.residual_rate).sum()
    np.testing.assert_allclose(log_joint(problem, state), total, rtol=1e-12)


def test_prior_draws_have_one_shape_with_and_without_leading_axes():
    observed = np.ones(SHAPE, dtype=bool)
    one, y = draw_prior(SHAPE, observed, 2, 3, PRIORS, np.random.default_rng(0))
    many, ys = draw_prior(SHAPE, observed, 2, 3, PRIORS, np.random.default_rng(0), draws=(7,))
    assert ys.shape == (7, *y.shape) == (7, 60)
    for a, b in zip(astuple(one), astuple(many)):
        for single, several in zip(a, b) if isinstance(a, tuple) else [(a, b)]:
            assert several.shape == (7, *np.shape(single))


# Residuals, and the joint density without them.


def test_residuals(mixture):
    """eq33-1."""
    problem, state, rng = mixture
    other = replace(state, residuals=state.residuals + rng.standard_normal(problem.data.size))
    law = given.residual_posterior(problem.data.values - sampler.cp_values(problem, state), state.noise_precision,
                                   state.component_means[state.labels], state.component_precisions[state.labels])
    agrees(problem, state, other, log_normal(state.residuals, *law) - log_normal(other.residuals, *law))


def test_residuals_of_a_constant_component():
    mean, precision = given.residual_posterior(np.array([3.0]), 4.0, np.array([0.5]), np.array([np.inf]))
    assert mean == 0.5 and np.isinf(precision)
    assert (
        given.draw_residuals(np.array([3.0]), 4.0, np.array([0.5]), np.array([np.inf]), np.random.default_rng(0)) == 0.5
    )


def test_observation_law(case):
    """Without ``e`` the observed entries are normal about x with the law that weights and factors are drawn from."""
    problem, state, _ = case
    other = replace(state, weights=1.3 * state.weights + 0.2, weight_variances=state.weight_variances)
    precisions, targets = sampler.observation_law(problem, state)
    claimed = [log_normal(targets, sampler.cp_values(problem, s), precisions)
               + log_normal(s.weights, 0.0, 1.0 / s.weight_variances) for s in (state, other)]
    agrees(problem, state, other, claimed[0] - claimed[1], log_joint_without_residuals)


# The low-rank part.


def sums(problem, state, mode):
    """What `segment_products` accumulates for the rows of `mode`: batch, Gram matrices, right sides."""
    batch = problem.batches[mode][0] if problem.coherences[mode] is None else one_batch(problem, mode)
    grams, products = np.zeros((len(batch.begins), RANK, RANK)), np.zeros((len(batch.begins), RANK))
    kernels.segment_products(
        np.concatenate(state.factors),
        problem.first,
        problem.data.coordinates,
        problem.data.order[mode],
        batch.begins,
        batch.ends,
        mode,
        *sampler.observation_law(problem, state),
        grams,
        products,
    )
    return batch, grams, products


def one_batch(problem, mode):
    """All rows of a coherent mode in one batch: for looking at each conditional, not for drawing."""
    return Problem.of(problem.data).batches[mode][0]


@pytest.mark.parametrize("mode", range(3))
def test_weights_as_a_block(case, mode):
    """eq16, all ranks at once, the sums gathered over the rows of any mode."""
    problem, state, rng = case
    batch, grams, products = sums(problem, state, mode)
    gram, product = np.empty((RANK, RANK)), np.empty(RANK)
    kernels.contract_rows(grams, products, batch.owners, state.factors[mode], gram, product)
    mean, root = given.weights_posterior(gram, product, state.weight_variances)
    law = stats.multivariate_normal(mean, root @ root.T)
    other = replace(state, weights=rng.standard_normal(RANK))
    agrees(problem, state, other, law.logpdf(state.weights) - law.logpdf(other.weights), log_joint_without_residuals)


def test_weights_of_a_component_that_is_gone():
    """Prior variances from 1 to 1e-300: no overflow, and the dead weight stays as small as its prior."""
    mean, root = given.weights_posterior(np.eye(3) + 0.5, np.ones(3), np.array([1.0, 1e-300, 1e-20]))
    assert np.isfinite(mean).all() and np.isfinite(root).all()
    assert abs(root[1]).max() <= 1e-150


def test_weights_one_by_one(case):
    """eq15-1, eq16: each scalar given e and the weights drawn before it."""
    problem, state, rng = case
    noise = rng.standard_normal(RANK)

    def draw(values):
        weights = state.weights.copy()
        errors = problem.data.values - state.residuals - sampler.cp_values(problem, state)
        kernels.draw_weights_one_by_one(np.concatenate(state.factors), problem.first, problem.data.coordinates,
                                        state.noise_precision, state.weight_variances, values, errors, weights)
        x = sampler.cp_values(problem, replace(state, weights=weights))
        np.testing.assert_allclose(errors, problem.data.values - state.residuals - x, atol=1e-10)
        return weights

    for r in range(RANK):
        mean, spread = scalar_law(draw, noise, r)
        now = np.where(np.arange(RANK) < r, draw(noise), state.weights)
        a, b = replace(state, weights=now), replace(state, weights=np.where(np.arange(RANK) == r, now + 0.7, now))
        agrees(
            problem, a, b, stats.norm.logpdf(a.weights[r], mean, spread) - stats.norm.logpdf(b.weights[r], mean, spread)
        )


def scalar_law(draw, noise, place):
    """Mean and standard deviation of the scalar at `place` of what `draw` returns: noise 0 and noise 1 there."""
    low, high = noise.copy(), noise.copy()
    low[place], high[place] = 0.0, 1.0
    return draw(low)[place], draw(high)[place] - draw(low)[place]


@pytest.mark.parametrize("mode", range(3))
def test_factor_rows_as_a_block(case, mode):
    """eq23, eq24 and with coherence eq51, a row at a time without e."""
    problem, state, rng = case
    batch, grams, products = sums(problem, state, mode)
    factor, rows = state.factors[mode], np.arange(SHAPE[mode])
    prior = given.row_prior(
        factor, rows, state.factor_means[mode], state.factor_precisions[mode], problem.coherences[mode]
    )

    def draw(noise):
        out = np.empty(factor.shape)
        kernels.draw_rows(
            grams.copy(), products.copy(), batch.bounds, state.weights, *prior, np.tile(noise, (len(rows), 1)), out
        )
        return out

    mean = draw(np.zeros(RANK))
    roots = np.stack([draw(line) - mean for line in np.eye(RANK)], axis=-1)
    for i in rows:
        other = with_row(state, mode, i, rng.standard_normal(RANK))
        law = stats.multivariate_normal(mean[i], roots[i] @ roots[i].T)
        agrees(
            problem,
            state,
            other,
            law.logpdf(factor[i]) - law.logpdf(other.factors[mode][i]),
            log_joint_without_residuals,
        )


def with_row(state, mode, row, values):
    """The state with one factor row replaced."""
    factor = state.factors[mode].copy()
    factor[row] = values
    return replace(state, factors=tuple(factor if k == mode else u for k, u in enumerate(state.factors)))


@pytest.mark.parametrize("mode", range(3))
def test_factor_rows_one_by_one(case, mode):
    """eq23, eq24 and with coherence eq51: each scalar given e and the scalars drawn before it."""
    problem, state, rng = case
    data, first = problem.data, problem.first
    noise = rng.standard_normal(RANK)
    for i in range(SHAPE[mode]):
        rows = np.array([i])
        prior = given.row_prior(state.factors[mode], rows, state.factor_means[mode], state.factor_precisions[mode],
                                problem.coherences[mode])

        def draw(values, i=i, rows=rows, prior=prior):
            stack = np.concatenate(state.factors)
            errors = data.values - state.residuals - sampler.cp_values(problem, state)
            kernels.draw_rows_one_by_one(
                stack,
                first,
                data.coordinates,
                data.order[mode],
                data.offsets[mode],
                mode,
                rows,
                state.noise_precision,
                state.weights,
                *prior,
                values[None],
                errors,
            )
            row = stack[first[mode] + i]
            x = sampler.cp_values(problem, with_row(state, mode, i, row))
            np.testing.assert_allclose(errors, data.values - state.residuals - x, atol=1e-10)
            return row

        for r in range(RANK):
            mean, spread = scalar_law(draw, noise, r)
            now = np.where(np.arange(RANK) < r, draw(noise), state.factors[mode][i])
            a, b = (
                with_row(state, mode, i, now),
                with_row(state, mode, i, np.where(np.arange(RANK) == r, now + 0.7, now)),
            )
            agrees(
                problem, a, b, stats.norm.logpdf(now[r], mean, spread) - stats.norm.logpdf(now[r] + 0.7, mean, spread)
            )


def test_least_squares_form_gives_the_conditional_means(case):
    """Without noise the weights land where the joint density without e is stationary, and so do the rows drawn last."""
    problem, state, rng = case
    new = sampler.draw_low_rank(problem, state, None)
    last = problem.mode_order()[-1]
    at_weights = replace(state, weights=new.weights)
    step = 0.5 * rng.standard_normal(RANK)
    up, down = (
        log_joint_without_residuals(problem, replace(at_weights, weights=new.weights + s * step)) for s in (1, -1)
    )
    np.testing.assert_allclose(up, down, rtol=1e-9)
    rows = problem.batches[last][-1].rows
    up, down = (
        log_joint_without_residuals(problem, with_row(new, last, rows[-1], new.factors[last][rows[-1]] + s * step))
        for s in (1, -1)
    )
    np.testing.assert_allclose(up, down, rtol=1e-9)


def test_weight_variances(case):
    """eq18: the density that eq19 names."""
    problem, state, _ = case
    other = replace(state, weight_variances=1.7 * state.weight_variances[::-1])

    def log_density(s):
        g = s.weight_variances
        size, root = np.abs(s.weights), np.sqrt(s.weight_rates)
        np.testing.assert_allclose(
            np.diff(stats.geninvgauss.logpdf([g, 2 * g], 0.5, size * root, scale=size / root), axis=0)[0],
            -0.5 * np.log(2.0) - 0.5 * (s.weight_rates * g - 0.5 * s.weights**2 / g), rtol=1e-6, atol=1e-8)
        return np.sum(-0.5 * np.log(g) - 0.5 * (s.weight_rates * g + s.weights**2 / g))

    agrees(problem, state, other, log_density(state) - log_density(other))


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1e-4, 1e-2, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("rate", [0.01, 4.0])
def test_drawn_weight_variances_follow_their_law(size, rate):
    """eq19, Kolmogorov-Smirnov. 1/gamma is inverse Gaussian, which gives the distribution function without quadrature.
    """
    n = 20_000
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    drawn = given.draw_weight_variances(size * sign, np.full(n, rate), np.random.default_rng(3))
    b, scale = size * np.sqrt(rate), size / np.sqrt(rate)
    assert stats.kstest(drawn, lambda t: stats.invgauss.sf(1.0 / t, 1.0 / b, scale=rate)).pvalue > 1e-4
    if b >= 1e-2:  # below, its quadrature does not converge
        assert stats.kstest(drawn[:500], lambda t: stats.geninvgauss.cdf(t, 0.5, b, scale=scale)).pvalue > 1e-4
    reference = stats.geninvgauss.rvs(0.5, b, scale=scale, size=4000, random_state=np.random.default_rng(4))
    assert stats.ks_2samp(drawn, reference).pvalue > 1e-4


def test_weight_variances_at_weight_zero():
    """lambda = 0 exactly: a chi-square over kappa, and no division by zero."""
    n = 20_000
    with np.errstate(all="raise"):
        drawn = given.draw_weight_variances(np.zeros(n), np.full(n, 4.0), np.random.default_rng(3))
    assert stats.kstest(drawn, stats.chi2(1, scale=0.25).cdf).pvalue > 1e-4


@pytest.mark.parametrize("size", [5e-324, 1e-307, 1e-300, 1e-160, 1e150])
def test_weight_variances_at_extreme_weights(size):
    drawn = given.draw_weight_variances(np.full(1000, size), np.full(1000, 1e-3), np.random.default_rng(3))
    assert np.isfinite(drawn).all() and (drawn > 0).all()


@pytest.mark.parametrize("weight, rate", [(0.0, 2.0), (0.3, 2.0), (-5.0, 0.1), (20.0, 9.0)])
def test_mean_weight_variance(weight, rate):
    """theorem2: E[gamma] = |lambda| / sqrt(kappa) + 1 / kappa."""
    n = 200_000
    drawn = given.draw_weight_variances(np.full(n, weight), np.full(n, rate), np.random.default_rng(6))
    variance = np.abs(weight) / rate**1.5 + 2.0 / rate**2
    error = (drawn.mean() - np.abs(weight) / np.sqrt(rate) - 1.0 / rate) / np.sqrt(variance / n)
    assert abs(error) < 4


def test_weight_rates(case):
    """eq21 with the proper prior."""
    problem, state, _ = case
    other = replace(state, weight_rates=1.7 * state.weight_rates[::-1])
    shape, rate = given.weight_rates_posterior(state.weight_variances, problem.priors)
    law = stats.gamma(shape, scale=1.0 / rate)
    agrees(problem, state, other, np.sum(law.logpdf(state.weight_rates) - law.logpdf(other.weight_rates)))


def test_mean_weight_rate_given_the_weight():
    """Under the flat prior E[kappa | lambda] = 12 / lambda^2, the exact form of theorem3; gamma and kappa in turn."""
    n = 40_000
    weights = np.repeat([0.1, 2.0], n // 2)
    flat, rng = replace(PRIORS, kappa_shape=1.0, kappa_rate=0.0), np.random.default_rng(8)
    rates = 12.0 / weights**2
    for _ in range(60):
        rates = given.draw_weight_rates(given.draw_weight_variances(weights, rates, rng), flat, rng)
    scaled = rates * weights**2  # mean 12, second moment 360
    assert abs(scaled.mean() - 12.0) < 4 * np.sqrt((360.0 - 144.0) / n)


def test_factor_means(case):
    """eq27-1, with and without coherence."""
    problem, state, rng = case
    for k, factor in enumerate(state.factors):
        law = given.factor_mean_posterior(factor, state.factor_precisions[k], problem.priors)
        other = replace(state, factor_means=state.factor_means + (np.arange(3) == k) * rng.standard_normal())
        agrees(problem, state, other, log_normal(state.factor_means[k], *law) - log_normal(other.factor_means[k], *law))


def test_factor_precisions(case):
    """eq30-1; with coherence its joint form."""
    problem, state, _ = case
    for k, factor in enumerate(state.factors):
        mean, coherence = state.factor_means[k], problem.coherences[k]
        other = replace(state, factor_precisions=state.factor_precisions * np.where(np.arange(3) == k, 2.3, 1.0))
        a, b = state.factor_precisions[k], other.factor_precisions[k]
        if coherence is None:
            shape, rate = given.factor_precision_posterior(factor, mean, problem.priors)
            claimed = np.subtract(*stats.gamma.logpdf([a, b], shape, scale=1.0 / rate))
        else:
            claimed = np.subtract(
                *(given.log_coherent_precision(t, factor, mean, problem.priors, coherence) for t in (a, b))
            )
        agrees(problem, state, other, claimed)


def test_scale_of_a_coherent_mode():
    """The orbit's density is the joint density along it, with the Jacobian of every unknown that moves."""
    problem, state, _ = make("coherent")
    for k, factor in enumerate(state.factors):
        if problem.coherences[k] is None:
            continue

        def moved(shift, k=k):
            at = np.arange(3) == k
            grown = np.exp(shift)
            return replace(state, factors=tuple(u * grown if j == k else u for j, u in enumerate(state.factors)),
                           factor_means=np.where(at, state.factor_means * grown, state.factor_means),
                           factor_precisions=np.where(at, state.factor_precisions / grown**2, state.factor_precisions),
                           weights=state.weights / grown, weight_variances=state.weight_variances / grown**2,
                           weight_rates=state.weight_rates * grown**2)

        jacobian = (
            factor.size + 1 - 2 - RANK - 2 * RANK + 2 * RANK
        )  # U, mu, tau, lambda, gamma, kappa: powers of the scale
        for shift in (-0.7, 0.3):
            claimed = np.subtract(
                *(
                    given.log_scale_density(
                        s,
                        factor,
                        state.factor_means[k],
                        state.factor_precisions[k],
                        state.weight_rates,
                        problem.priors,
                        problem.coherences[k],
                    )
                    for s in (shift, 0.0)
                )
            )
            agrees(problem, moved(shift), state, claimed - jacobian * shift)
        np.testing.assert_allclose(
            sampler.cp_values(problem, moved(0.4)), sampler.cp_values(problem, state), rtol=1e-12
        )


def test_drawn_factor_precisions_with_coherence():
    """The Metropolis steps in log tau^(k) have the stationary law of `log_coherent_precision`."""
    problem, state, rng = make("coherent")
    factor, mean, coherence = state.factors[0], state.factor_means[0], problem.coherences[0]
    grid = np.exp(np.linspace(-6.0, 5.0, 4001))
    log_density = [given.log_coherent_precision(t, factor, mean, PRIORS, coherence) + np.log(t) for t in grid]
    density = np.exp(log_density - np.max(log_density))
    running = np.cumsum(density) / density.sum()
    value, kept = 1.0, []
    for _ in range(12_000):
        value = given.draw_factor_precision(factor, mean, value, PRIORS, coherence, rng)
        kept.append(value)
    assert stats.kstest(kept[20::20], lambda t: np.interp(t, grid, running)).pvalue > 1e-3


def test_neighbour_weights():
    """The parts of `Coherence` against the matrix D - W."""
    rng = np.random.default_rng(0)
    for size, fraction in ((1, 0.5), (2, 0.5), (3, 0.01), (9, 0.05), (9, 0.9)):
        coherence, u = Coherence.of(size, fraction, 3.0), rng.standard_normal((size, 4))
        laplacian = neighbour_laplacian(coherence)
        w = np.diag(np.diag(laplacian)) - laplacian
        np.testing.assert_allclose(coherence.degrees, w.sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(coherence.eigenvalues, np.linalg.eigvalsh(laplacian), atol=1e-12)
        np.testing.assert_allclose(coherence.pull(u, np.arange(size)), 3.0 * w @ u, atol=1e-12)
        np.testing.assert_allclose(coherence.roughness(u), np.trace(u.T @ laplacian @ u), atol=1e-12)
        np.testing.assert_array_equal(np.sort(np.concatenate(coherence.colours)), np.arange(size))
        for rows in coherence.colours:
            assert not w[np.ix_(rows, rows)].any()
    distance = np.arange(1, 40)
    weights = np.exp(-2.0 * 0.3 * distance**2)
    inner = Coherence.of(81, 0.3, 1.0)
    reach = len(inner.kernel)
    np.testing.assert_allclose(inner.kernel, (weights / (2.0 * weights.sum()))[:reach], rtol=1e-5)  # eq50
    np.testing.assert_allclose(inner.degrees[40], 1.0)


# The residual part.


def probabilities(values, state, variances):
    """Chances of every label for each of `values`, (len(values), D), read off `draw_labels` on an even grid of
    uniforms.
    """
    n = 100_000
    uniforms, labels = (np.arange(n) + 0.5) / n, np.empty(n, dtype=np.int64)
    logs, means = np.log(state.component_weights), state.component_means
    found = []
    for value in values:
        kernels.draw_labels(np.full(n, value), logs, means, variances, uniforms, labels)
        found.append(np.bincount(labels, minlength=COMPONENTS) / n)
    return np.array(found)


@pytest.mark.parametrize("collapsed", [False, True], ids=["given e", "without e"])
def test_labels(mixture, collapsed):
    """eq42, eq43 given e, and with e integrated out."""
    problem, state, _ = mixture
    variances, values = 1.0 / state.component_precisions, state.residuals
    if collapsed:
        variances = variances + 1.0 / state.noise_precision
        values = problem.data.values - sampler.cp_values(problem, state)
    density = log_joint_without_residuals if collapsed else log_joint
    found = probabilities(values[:10], state, variances)
    for i in range(10):
        logs = np.array(
            [
                density(problem, replace(state, labels=np.where(np.arange(problem.data.size) == i, d, state.labels)))
                for d in range(COMPONENTS)
            ]
        )
        expected = np.exp(logs - logs.max())
        np.testing.assert_allclose(found[i], expected / expected.sum(), atol=2e-5)


def test_component_means(mixture):
    """eq36-1."""
    problem, state, rng = mixture
    count = np.bincount(state.labels, minlength=COMPONENTS)
    total = np.bincount(state.labels, weights=state.residuals, minlength=COMPONENTS)
    law = given.component_mean_posterior(count, total, state.component_precisions, problem.priors)
    other = replace(state, component_means=rng.standard_normal(COMPONENTS))
    agrees(problem, state, other, log_normal(state.component_means, *law) - log_normal(other.component_means, *law))


def test_component_precisions(mixture):
    """eq39-1 with squared deviations."""
    problem, state, rng = mixture
    count = np.bincount(state.labels, minlength=COMPONENTS)
    squares = (state.residuals - state.component_means[state.labels]) ** 2
    deviation = np.bincount(state.labels, weights=squares, minlength=COMPONENTS)
    shape, rate = given.component_precision_posterior(count, deviation, state.component_means, problem.priors)
    other = replace(state, component_precisions=rng.gamma(3.0, size=COMPONENTS))
    law = stats.gamma(shape, scale=1.0 / rate)
    agrees(
        problem, state, other, np.sum(law.logpdf(state.component_precisions) - law.logpdf(other.component_precisions))
    )


def test_mixture_weights(mixture):
    """eq46."""
    problem, state, rng = mixture
    law = stats.dirichlet(given.mixture_weights_posterior(state.labels, COMPONENTS, problem.priors))
    other = replace(state, component_weights=rng.dirichlet(np.ones(COMPONENTS)))
    agrees(problem, state, other, law.logpdf(state.component_weights) - law.logpdf(other.component_weights))


def test_drawn_mixture_weights():
    """eq45 through logarithms: right marginals, and finite where a parameter is 1e-6."""
    rng = np.random.default_rng(0)
    priors = replace(PRIORS, concentration=np.array([0.5, 2.0, 1.0]))
    labels = np.array([0, 0, 1])
    drawn = np.array([given.draw_mixture_weights(labels, 3, priors, rng) for _ in range(4000)])
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    for d, (a, rest) in enumerate([(2.5, 4.0), (3.0, 3.5), (1.0, 5.5)]):
        assert stats.kstest(drawn[:, d], stats.beta(a, rest).cdf).pvalue > 1e-4
    tiny = given.draw_mixture_weights(np.array([1, 1]), 3, Priors(), rng)
    assert np.isfinite(tiny).all() and tiny[1] > 0.99


def test_noise_precision(mixture):
    problem, state, _ = mixture
    errors = problem.data.values - sampler.cp_values(problem, state) - state.residuals
    shape, rate = given.noise_precision_posterior(errors, problem.priors)
    other = replace(state, noise_precision=2.0 * state.noise_precision)
    law = stats.gamma(shape, scale=1.0 / rate)
    agrees(problem, state, other, law.logpdf(state.noise_precision) - law.logpdf(other.noise_precision))


def test_constant_residual_and_its_noise():
    problem, state, _ = make("constant")
    deviations = problem.data.values - sampler.cp_values(problem, state)
    law = given.constant_residual_posterior(deviations, state.noise_precision, problem.priors)
    other = replace(state, component_means=state.component_means + 0.7)
    agrees(problem, state, other, log_normal(state.component_means, *law) - log_normal(other.component_means, *law))
    shape, rate = given.constant_noise_posterior(deviations, state.component_means[0], problem.priors)
    other = replace(state, noise_precision=2.0 * state.noise_precision)
    law = stats.gamma(shape, scale=1.0 / rate)
    agrees(problem, state, other, law.logpdf(state.noise_precision) - law.logpdf(other.noise_precision))


# Corners.


def run(problem, state, sweep, sweeps=25, seed=1):
    for _, new in zip(range(sweeps), sampler.chain(problem, state, np.random.default_rng(seed), sweep)):
        for part in astuple(new):
            for array in part if isinstance(part, tuple) else (part,):
                assert np.isfinite(array).all() or problem.constant_residual
    return new


both_samplers = pytest.mark.parametrize("sweep", sampler.SWEEPS.values(), ids=list(sampler.SWEEPS))


def corner(name):
    """A problem and a state at the edge of what is defined, with the paper's vague priors."""
    problem, state, rng = make("plain")
    tensor, observed = np.zeros(SHAPE), np.zeros(SHAPE, dtype=bool)
    tensor.ravel()[problem.data.flat] = problem.data.values
    observed.ravel()[problem.data.flat] = True
    if name == "empty slices":
        observed[0], observed[:, -1] = False, False
    data = Observed.of(tensor, observed)
    keep = observed.ravel()[problem.data.flat]
    state = replace(state, labels=state.labels[keep], residuals=state.residuals[keep])
    if name == "empty component":
        state = replace(state, labels=np.minimum(state.labels, 1))
    if name == "pi is zero":
        state = replace(state, component_weights=np.array([0.0, 1.0, 0.0]), labels=np.ones_like(state.labels))
    if name == "one component":
        state = replace(
            state,
            labels=np.zeros_like(state.labels),
            component_means=np.zeros(1),
            component_precisions=np.ones(1),
            component_weights=np.ones(1),
        )
    if name == "one entry":
        observed[:] = False
        observed[1, 1, 1] = True
        data = Observed.of(tensor, observed)
        state = replace(state, labels=np.zeros(1, dtype=np.int64), residuals=np.zeros(1))
    if name == "weight is zero":
        state = replace(state, weights=np.array([0.0, 1.0, 1.0]), weight_variances=np.array([1e-300, 1.0, 1.0]))
    if name == "no low-rank part":
        state = state.keep_components(np.zeros(RANK, dtype=bool))
    return Problem.of(data, Priors()), state, rng


@both_samplers
@pytest.mark.parametrize(
    "name",
    [
        "empty slices",
        "empty component",
        "pi is zero",
        "one component",
        "one entry",
        "weight is zero",
        "no low-rank part",
    ],
)
def test_corners_stay_finite(name, sweep):
    problem, state, _ = corner(name)
    run(problem, state, sweep)


def test_an_empty_component_keeps_its_parameters():
    """Its prior of shape 1e-6 cannot be drawn from: almost every draw underflows to 0."""
    rng = np.random.default_rng(0)
    means, precisions = np.array([0.0, 3.0]), np.array([1.0, 7.0])
    new_means, new_precisions = given.draw_components(
        rng.standard_normal(50), np.zeros(50, dtype=np.int64), means, precisions, Priors(), rng
    )
    assert (new_means[1], new_precisions[1]) == (3.0, 7.0)
    assert new_means[0] != 0.0 and new_precisions[0] != 1.0


@both_samplers
def test_an_empty_slice_echoes_its_prior(sweep):
    """Rows without an observed entry are draws from N(mu, 1/tau)."""
    problem, state, _ = corner("empty slices")
    problem = replace(problem, priors=PRIORS)
    rng = np.random.default_rng(2)
    scaled = []
    for _ in range(400):
        before = state
        state = sweep(problem, state, rng)
        scaled.append((state.factors[0][0] - before.factor_means[0]) * np.sqrt(before.factor_precisions[0]))
    assert stats.kstest(np.ravel(scaled), stats.norm.cdf).pvalue > 1e-4


@both_samplers
@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_under_the_mask_is_never_read(kind, sweep):
    problem, state, _ = make(kind)
    results = []
    for fill in (0.0, np.nan, np.inf, 1e300):
        tensor, observed = np.full(SHAPE, fill), np.zeros(SHAPE, dtype=bool)
        tensor.ravel()[problem.data.flat] = problem.data.values
        observed.ravel()[problem.data.flat] = True
        other = replace(problem, data=Observed.of(tensor, observed))
        results.append(run(other, state, sweep, sweeps=3))
    for result in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(result.factors, results[0].factors))
        assert np.array_equal(result.residuals, results[0].residuals)


def test_averages_of_reconstructions_do_not_mind_order_and_sign():
    """Components may be permuted and flipped between draws: the mean of X stays, the mean of factors does not."""
    problem, state, rng = make("plain")
    plain, scrambled, factor_sums = 0.0, 0.0, [0.0, 0.0]
    for _, draw in zip(range(10), sampler.chain(problem, state, rng)):
        signs = rng.choice([-1.0, 1.0], (3, RANK))
        other = draw.keep_components(rng.permutation(RANK))
        other = replace(other, weights=other.weights * signs.prod(axis=0),
                        factors=tuple(u * s for u, s in zip(other.factors, signs)))
        plain = plain + cp_to_tensor(draw.weights, draw.factors)
        scrambled = scrambled + cp_to_tensor(other.weights, other.factors)
        for i, one in enumerate((draw, other)):
            factor_sums[i] = factor_sums[i] + one.factors[0]
    np.testing.assert_allclose(scrambled, plain, atol=1e-10)
    assert np.abs(factor_sums[0] - factor_sums[1]).max() > 0.1
