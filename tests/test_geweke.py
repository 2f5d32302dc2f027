"""The samplers leave the prior alone: the one-sweep form of Geweke's (2004) test, after Gandy and Scott (2020).

Unknowns ``theta`` and data ``y`` are drawn exactly from the prior, then one sweep turns ``theta`` into ``theta'`` given
``y``. A right sweep leaves the joint law of ``(theta', y)`` what it was, so that ``f(theta', y) - f(theta, y)`` has
mean zero for every ``f``. Replicates are independent, which makes the z of the paired differences standard normal.
Statistics that multiply unknowns with data see slips that marginal ones do not.

The largest of some 60 |z| has to stay below 4 (a right sampler exceeds it once in 250 seeds). Seeds are fixed, so a
result never changes by itself. Broken samplers, each with one slip, are put through the same test and must be found
out.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from joint import draw_prior
from threadpoolctl import threadpool_limits

from tdc_cli.model import conditionals, kernels, sampler
from tdc_cli.model.coherence import Coherence
from tdc_cli.model.problem import Problem
from tdc_cli.model.state import Priors, State
from tdc_cli.tensor import Observed

SHAPE = (3, 4, 2)
OBSERVED = np.ones(SHAPE, dtype=bool)
OBSERVED[[0, 0, 1, 1, 2, 2, 2], [0, 2, 1, 3, 0, 1, 2], [1, 0, 1, 0, 0, 1, 1]] = False
PAIRS = ((0, 1), (1, 2), (2, 3))
# Hyperparameters of U and of E differ, so that mistaking one for the other shows.
PRIORS = Priors(
    factor_mean=0.3, factor_strength=2.0, factor_shape=6.0, factor_rate=5.0,
    residual_mean=-0.4, residual_strength=1.5, residual_shape=5.0, residual_rate=3.0,
    concentration=np.array([2.0, 3.0]), kappa_shape=4.0, kappa_rate=3.0, noise_shape=5.0, noise_rate=1.2,
)
NOISE_PRECISION = 4.0
LIMIT = 4.0


@dataclass(frozen=True)
class Case:
    """One version of the model under test."""

    name: str
    rank: int = 2
    priors: Priors = PRIORS
    constant_residual: bool = False
    learn_noise: bool = False
    coherent: bool = False

    def problem(self):
        coherences = tuple(Coherence.of(n, 0.7, 2.0) for n in SHAPE) if self.coherent else None
        return Problem.of(Observed.of(np.zeros(SHAPE), OBSERVED), self.priors, constant_residual=self.constant_residual,
                          learn_noise=self.learn_noise, coherences=coherences)

    def draw(self, problem, count, rng):
        known = None if self.learn_noise or self.constant_residual else NOISE_PRECISION
        return draw_prior(SHAPE, OBSERVED, self.rank, 2, self.priors, rng, noise_precision=known,
                          constant_residual=self.constant_residual, coherences=problem.coherences, draws=(count,))


def one_sweep(case, sweep, count, seed):
    """States before and after one sweep and the data, `count` independent replicates of each: (before, after, values).
    """
    problem = case.problem()
    rng = np.random.default_rng(seed)
    before, values = case.draw(problem, count, rng)
    names = [f.name for f in fields(State) if f.name not in ("factors", "noise_precision")]
    after = {name: np.empty_like(getattr(before, name)) for name in names}
    factors = tuple(np.empty_like(u) for u in before.factors)
    noise_precision = np.empty(count)
    with threadpool_limits(1):
        for j in range(count):
            problem.data.values[:] = values[j]
            state = State(
                **{name: getattr(before, name)[j] for name in names},
                factors=tuple(u[j] for u in before.factors),
                noise_precision=float(before.noise_precision[j]),
            )
            state = sweep(problem, state, rng)
            for name in names:
                after[name][j] = getattr(state, name)
            for u, new in zip(factors, state.factors):
                u[j] = new
            noise_precision[j] = state.noise_precision
    return before, State(**after, factors=factors, noise_precision=noise_precision), values


def statistics(state, y):
    """Functions of unknowns and data with finite variance, name -> (count,) ndarray."""
    size = np.log1p(y**2).mean(axis=1)
    rows = [u[:, i, :] for u, i in zip(state.factors, np.nonzero(OBSERVED))]
    parts = state.weights[:, None, :] * np.prod(rows, axis=0)
    x = parts.sum(axis=-1)
    found = residual_statistics(state, y, size, x)
    return found | low_rank_statistics(state, y, size, x, parts) if state.weights.shape[1] else found


def low_rank_statistics(state, y, size, x, parts):
    lam, gamma, kappa = state.weights, state.weight_variances, state.weight_rates
    s = {}
    for r in range(2):
        s[f"lambda {r}"] = np.tanh(lam[:, r])
        s[f"log gamma {r}"] = np.log(gamma[:, r])
        s[f"log kappa {r}"] = np.log(kappa[:, r])
    s["lambda^2/gamma"] = np.sum(lam**2 / gamma, axis=1)
    s["kappa gamma"] = np.sum(kappa * gamma, axis=1)
    s["|lambda|"] = np.tanh(np.abs(lam)).sum(axis=1)
    s["|lambda| y^2"] = s["|lambda|"] * size
    s["gamma y^2"] = np.log(gamma).sum(axis=1) * size
    for k, u in enumerate(state.factors):
        mean, precision = state.factor_means[:, k], state.factor_precisions[:, k]
        first_row = np.nonzero(OBSERVED)[k] == 0
        s[f"mu^{k}"] = mean
        s[f"log tau^{k}"] = np.log(precision)
        s[f"tau^{k} (mu-mu0)^2"] = precision * (mean - PRIORS.factor_mean) ** 2
        s[f"tau^{k} (u-mu)^2"] = precision * np.sum((u - mean[:, None, None]) ** 2, axis=(1, 2))
        s[f"u^{k}"] = np.tanh(u).mean(axis=(1, 2))
        s[f"u^{k} columns"] = np.tanh(u[..., 0] * u[..., 1]).mean(axis=1)
        s[f"u^{k} neighbours"] = np.tanh((u[:, 1:] - u[:, :-1]) ** 2).mean(axis=(1, 2))
        s[f"log tau^{k} y^2"] = np.log(precision) * size
        s[f"lambda u^{k} y"] = np.tanh(lam[:, 0] * u[:, 0, 0]) * np.tanh(y[:, first_row]).mean(axis=1)
    s["x"] = np.tanh(x).mean(axis=1)
    s["x^2"] = np.tanh(x**2).mean(axis=1)
    s["x y"] = (np.tanh(x) * np.tanh(y)).mean(axis=1)
    s["parts"] = np.tanh(parts[..., 0] * parts[..., 1]).mean(axis=1)
    s["part y"] = (np.tanh(parts[..., 0]) * np.tanh(y)).mean(axis=1)
    s["(y-x)^2"] = np.log1p((y - x) ** 2).mean(axis=1)
    s["e x"] = (np.tanh(state.residuals) * np.tanh(x)).mean(axis=1)
    return s


def residual_statistics(state, y, size, x):
    e, tau0 = state.residuals, state.noise_precision
    error = y - x - e
    s = {
        "e": np.tanh(e).mean(axis=1),
        "e y": (np.tanh(e) * np.tanh(y)).mean(axis=1),
        "tau0 error^2": tau0 * np.sum(error**2, axis=1),
        "error y": (np.tanh(error) * np.tanh(y)).mean(axis=1),
        "log tau0": np.log(tau0),
        "log tau0 y^2": np.log(tau0) * size,
    }
    means, precisions, pi = state.component_means, state.component_precisions, state.component_weights
    for d in range(means.shape[1]):
        s[f"mu_{d}"] = means[:, d]
        s[f"mu_{d} y"] = np.tanh(means[:, d]) * np.tanh(y).mean(axis=1)
    if means.shape[1] == 1:
        return s
    z = state.labels
    variances = 1.0 / tau0[:, None] + 1.0 / precisions
    deviation = e - np.take_along_axis(means, z, 1)
    s["tau_z (e-mu_z)^2"] = np.sum(np.take_along_axis(precisions, z, 1) * deviation**2, axis=1)
    s["tau_d (mu_d-mu0)^2"] = np.sum(precisions * (means - PRIORS.residual_mean) ** 2, axis=1)
    s["log pi"] = np.log(pi[:, 0])
    s["z"] = z.mean(axis=1)
    s["z pi"] = z.mean(axis=1) * np.tanh(np.log(pi[:, 1] / pi[:, 0]))
    s["z y"] = (z * np.tanh(y)).mean(axis=1)
    s["z log v"] = (z.mean(axis=1) - 0.6) * np.log(variances[:, 1] / variances[:, 0])
    s["z mu y"] = (z * np.tanh(y - x)).mean(axis=1) * np.tanh(means[:, 1] - means[:, 0])
    for d in range(2):
        s[f"log tau_{d}"] = np.log(precisions[:, d])
        s[f"log tau_{d} y^2"] = np.log(precisions[:, d]) * size
        s[f"log tau_{d} e^2"] = np.log(precisions[:, d]) * np.log1p(np.where(z == d, deviation, 0.0) ** 2).mean(axis=1)
    return s


def z_scores(case, sweep, count, seed):
    """z of the paired difference of every statistic that can change, name -> float."""
    before, after, values = one_sweep(case, sweep, count, seed)
    old, new = statistics(before, values), statistics(after, values)
    scores = {}
    for name in old:
        difference = new[name] - old[name]
        spread = difference.std()
        if spread > 0:
            scores[name] = difference.mean() / spread * np.sqrt(count)
    return scores


def largest(scores):
    """The statistic with the largest |z|, and that |z|."""
    name = max(scores, key=lambda n: abs(scores[n]))
    return name, abs(scores[name])


# Slips: each takes a monkeypatch and breaks one step of the samplers.


def gamma_not_inverted(patch):
    """Draws 1/gamma, the inverse Gaussian that is found first, and forgets to invert it (eq19)."""
    right = conditionals.draw_weight_variances
    patch.setattr(conditionals, "draw_weight_variances", lambda *a: 1.0 / right(*a))


def weight_rate_halved(patch):
    """eq21 with rate gamma in place of gamma / 2."""
    patch.setattr(conditionals, "weight_rates_posterior", lambda v, p: (p.kappa_shape + 1.0, p.kappa_rate + v))


def flat_weight_rates(patch):
    """eq21 as printed: a flat prior of kappa."""
    patch.setattr(conditionals, "weight_rates_posterior", lambda v, p: (2.0, v / 2.0))


def labels_without_log_variance(patch):
    """eq43 with the exponent of the normal density alone."""
    right = kernels.draw_labels
    patch.setattr(kernels, "draw_labels", lambda e, log_weights, m, variances, u, out: right(
        e, log_weights + 0.5 * np.log(variances), m, variances, u, out))


def labels_from_residual_variance(patch):
    """Collapsed labels from N(y - x; mu_d, 1/tau_d): the noise is left out of v_d."""
    right = kernels.draw_labels
    patch.setattr(kernels, "draw_labels", lambda e, log_weights, m, variances, u, out: right(
        e, log_weights, m, variances - 1.0 / NOISE_PRECISION, u, out))


def factor_precision_without_half(patch):
    """eq30-1 without the half that the mean's prior adds to the shape."""
    right = conditionals.factor_precision_posterior
    patch.setattr(conditionals, "factor_precision_posterior", lambda *a: (right(*a)[0] - 0.5, right(*a)[1]))


def component_precision_without_half(patch):
    """eq39-1 without the half that the mean's prior adds to the shape."""
    right = conditionals.component_precision_posterior
    patch.setattr(conditionals, "component_precision_posterior", lambda *a: (right(*a)[0] - 0.5, right(*a)[1]))


def component_precision_as_printed(patch):
    """eq39-1 as printed: the sum of the residuals where their squared deviations belong (its size, to keep the rate
    positive).
    """
    def draw(residuals, labels, means, precisions, priors, rng):
        count = np.bincount(labels, minlength=len(means)).astype(float)
        total = np.bincount(labels, weights=residuals, minlength=len(means))
        means = conditionals.draw_component_mean(count, total, precisions, priors, rng)
        shape, rate = conditionals.component_precision_posterior(count, np.abs(total), means, priors)
        return means, rng.gamma(shape, 1.0 / rate)
    patch.setattr(conditionals, "draw_components", draw)


def stale_residuals(patch):
    """Collapsed: mu_d, tau_d and pi from the e of the sweep before, with the labels of this one."""
    seen = {}
    low_rank, mixture = sampler.draw_low_rank, sampler.draw_mixture

    def remember(problem, state, rng):
        seen["residuals"] = state.residuals
        return low_rank(problem, state, rng)

    def draw(problem, state, rng):
        return replace(mixture(problem, replace(state, residuals=seen["residuals"]), rng), residuals=state.residuals)
    patch.setattr(sampler, "draw_low_rank", remember)
    patch.setattr(sampler, "draw_mixture", draw)


def rows_root_not_transposed(patch):
    """L^-1 where L^-T is the root of the covariance of a factor row."""
    def draw(grams, products, bounds, weights, diagonals, shifts, noise, rows):
        for i in range(len(rows)):
            gram = np.triu(grams[bounds[i]:bounds[i + 1]].sum(axis=0))
            precision = weights[:, None] * (gram + np.triu(gram, 1).T) * weights + diagonals[i] * np.eye(len(weights))
            right = weights * products[bounds[i]:bounds[i + 1]].sum(axis=0) + shifts[i]
            rows[i] = np.linalg.solve(precision, right) + np.linalg.solve(np.linalg.cholesky(precision), noise[i])
    patch.setattr(kernels, "draw_rows", draw)


def jacobi_modes(patch):
    """Every factor matrix from the others as they were when the sweep began."""
    right, seen = kernels.segment_products, {"stack": None}

    def accumulate(stack, *rest):
        if seen["stack"] is not stack:
            seen.update(stack=stack, start=stack.copy())
        right(seen["start"], *rest)
    patch.setattr(kernels, "segment_products", accumulate)


def residuals_kept_in_the_low_rank_part(patch):
    """Collapsed: weights of the observations as if e were given, targets as if it were not."""
    right = sampler.observation_law

    def law(problem, state):
        precisions, targets = right(problem, state)
        return np.full_like(precisions, state.noise_precision), targets
    patch.setattr(sampler, "observation_law", law)


def literal_errors_not_updated(patch):
    """Literal: the weights change, y - e - x does not."""
    right = kernels.draw_weights_one_by_one

    def draw(stack, first, coordinates, precision, variances, noise, residuals, weights):
        right(stack, first, coordinates, precision, variances, noise, residuals.copy(), weights)
    patch.setattr(kernels, "draw_weights_one_by_one", draw)


def coherent_rows_together(patch):
    """All rows of a coherent mode at once, each from its neighbours' old values."""
    right = Coherence.of.__func__

    def of(cls, size, *rest):
        return replace(right(cls, size, *rest), colours=(np.arange(size),))
    patch.setattr(Coherence, "of", classmethod(of))


def coherent_precision_without_determinant(patch):
    """tau^(k) with coherence drawn from eq30, as if the rows were independent."""
    right = conditionals.draw_factor_precision
    patch.setattr(
        conditionals, "draw_factor_precision", lambda f, m, t, p, coherence, rng: right(f, m, t, p, None, rng)
    )


def metropolis_without_jacobian(patch):
    """A step in log tau accepted by the density of tau."""
    right = conditionals.log_coherent_precision
    patch.setattr(
        conditionals, "log_coherent_precision", lambda precision, *a: right(precision, *a) - np.log(precision)
    )


def noise_precision_with_half(patch):
    """tau0 with the half that belongs to the constant residual."""
    right = conditionals.noise_precision_posterior
    patch.setattr(conditionals, "noise_precision_posterior", lambda *a: (right(*a)[0] + 0.5, right(*a)[1]))


def constant_noise_without_half(patch):
    """tau0 beside a constant residual, whose prior is scaled by tau0, without the half."""
    right = conditionals.constant_noise_posterior
    patch.setattr(conditionals, "constant_noise_posterior", lambda *a: (right(*a)[0] - 0.5, right(*a)[1]))


def scale_without_jacobian(patch):
    """Scale of weights against factors drawn as if the rates' share of the orbit's Jacobian were not there."""
    right = conditionals.log_scale_density
    patch.setattr(conditionals, "log_scale_density",
                  lambda shift, factor, *rest: right(shift, factor, *rest) - 2.0 * factor.shape[1] * shift)


def mixture_weights_without_counts(patch):
    """eq46 without the counts of one component's labels."""
    right = conditionals.mixture_weights_posterior
    patch.setattr(
        conditionals, "mixture_weights_posterior", lambda labels, count, p: right(labels[labels > 0], count, p)
    )


PLAIN = Case("plain")
COHERENT = Case("coherent", coherent=True, learn_noise=True)
CONSTANT = Case("constant", constant_residual=True)
# No low-rank part, and components whose spreads differ much: cheap, and sharp for the steps of the mixture.
MIXTURE = Case("mixture", rank=0, priors=replace(PRIORS, residual_shape=2.0, residual_rate=1.0))
LEARNT = replace(MIXTURE, name="learnt", learn_noise=True)
CONSTANT_ALONE = Case("constant alone", rank=0, constant_residual=True)

# Replicates. Among those of the right samplers, a minute of one core, labels without log v, hard to see, would give an
# |z| of 25, a wrong half in a Gamma shape one of 15. A slip has as many as give an |z| of 6 or more.
RIGHT = [(PLAIN, 12_000), (COHERENT, 3_000), (CONSTANT, 8_000), (MIXTURE, 12_000)]
SLIPS = [
    (gamma_not_inverted, "collapsed", PLAIN, 1800),
    (weight_rate_halved, "collapsed", PLAIN, 600),
    (flat_weight_rates, "collapsed", PLAIN, 500),
    (labels_without_log_variance, "collapsed", MIXTURE, 3000),
    (labels_without_log_variance, "literal", PLAIN, 1100),
    (labels_from_residual_variance, "collapsed", MIXTURE, 5000),
    (factor_precision_without_half, "literal", PLAIN, 2300),
    (component_precision_without_half, "collapsed", MIXTURE, 1800),
    (component_precision_as_printed, "collapsed", PLAIN, 500),
    (stale_residuals, "collapsed", PLAIN, 800),
    (rows_root_not_transposed, "collapsed", PLAIN, 1800),
    (jacobi_modes, "collapsed", PLAIN, 500),
    (residuals_kept_in_the_low_rank_part, "collapsed", PLAIN, 500),
    (literal_errors_not_updated, "literal", PLAIN, 3800),
    (coherent_rows_together, "collapsed", COHERENT, 1000),
    (coherent_precision_without_determinant, "literal", COHERENT, 500),
    (metropolis_without_jacobian, "collapsed", COHERENT, 1500),
    (scale_without_jacobian, "literal", COHERENT, 500),
    (noise_precision_with_half, "literal", LEARNT, 4000),
    (constant_noise_without_half, "collapsed", CONSTANT_ALONE, 8000),
    (mixture_weights_without_counts, "literal", PLAIN, 300),
]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("case, count", RIGHT, ids=lambda v: getattr(v, "name", str(v)))
@pytest.mark.parametrize("sampler_name", sorted(sampler.SWEEPS))
def test_one_sweep_keeps_the_joint_law(sampler_name, case, count):
    scores = z_scores(case, sampler.SWEEPS[sampler_name], count, seed=20)
    assert len(scores) >= (40 if case.rank and not case.constant_residual else 20)
    name, size = largest(scores)
    assert size < LIMIT, f"{name}: |z| = {size:.2f}"


@pytest.mark.parametrize("slip, sampler_name, case, count", SLIPS,
                         ids=lambda v: getattr(v, "__name__", getattr(v, "name", str(v))))
def test_slips_are_found_out(slip, sampler_name, case, count, monkeypatch):
    slip(monkeypatch)
    name, size = largest(z_scores(case, sampler.SWEEPS[sampler_name], count, seed=21))
    assert size > LIMIT, f"largest |z| is {size:.2f} ({name})"
