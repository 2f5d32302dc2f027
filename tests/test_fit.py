"""The fit as a whole: rank and mixture found in burn-in, equivariance, variants, orders, and what it says of itself."""

from dataclasses import replace

import numpy as np
import pytest

from tdc_cli import methods, metrics
from tdc_cli.bench import synth
from tdc_cli.errors import ConfigError
from tdc_cli.methods import datc
from tdc_cli.methods.solve import solve
from tdc_cli.model import diagnostics, fit, mixture, rank
from tdc_cli.model.posterior import Scale
from tdc_cli.model.problem import Problem
from tdc_cli.model.sampler import cp_values, sweep_collapsed
from tdc_cli.tensor import Observed, cp_to_tensor

pytestmark = pytest.mark.usefixtures("one_thread")


def low_rank(shape, components, seed=0, noise=0.01):
    """CP tensor with noise, a third of it missing: values, observed, truth."""
    rng = np.random.default_rng(seed)
    truth = cp_to_tensor(rng.uniform(0.7, 1.5, components), [rng.standard_normal((n, components)) for n in shape])
    return truth + noise * rng.standard_normal(shape), rng.random(shape) > 1 / 3, truth


def complete(values, observed, seed=0, **parameters):
    config = datc.Config(**{"burn_in": 60, "samples": 30, "chains": 1, "rank": 6} | parameters)
    return solve(methods.get("datc"), config, values, observed, rng=np.random.default_rng(seed))


def error(done, truth):
    return np.linalg.norm(done.mean - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("residual", ["none", "mixture"])
@pytest.mark.parametrize("shape", [(30, 25), (14, 12, 10), (8, 7, 6, 5), (5, 5, 4, 4, 4), (4, 4, 3, 4, 3, 3)])
def test_orders_two_to_six(shape, residual):
    values, observed, truth = low_rank(shape, 2)
    done = complete(values, observed, residual=residual, noise_std=0.01)
    assert done.rank["value"] == 2
    assert error(done, truth) < 0.03


@pytest.mark.parametrize("residual", ["none", "mixture", "auto"])
@pytest.mark.parametrize("scale, offset", [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e5), (-3.0, 2.0)])
def test_equivariant_to_scale_and_offset(scale, offset, residual):
    values, observed, _ = low_rank((14, 12, 10), 2)
    one = complete(values, observed, residual=residual, noise_std=0.01)
    other = complete(scale * values + offset, observed, residual=residual, noise_std=0.01 * abs(scale))
    if scale > 0:  # the draws are the same ones; a change of sign gives others
        # an offset of 1e5 leaves the standardised values about ten digits, and a chain multiplies what is lost
        tolerance = 1e-3 if offset == 1e5 else 1e-6
        np.testing.assert_allclose((other.mean - offset) / scale, one.mean, atol=tolerance)
        np.testing.assert_allclose(other.sd / abs(scale), one.sd, rtol=0.2, atol=tolerance)
    assert other.rank["value"] == one.rank["value"] == 2
    assert other.noise_std == pytest.approx(abs(scale) * one.noise_std, rel=0.05)


def test_an_offset_costs_no_rank():
    values, observed, _ = low_rank((14, 12, 10), 2)
    assert complete(values + 50.0, observed, residual="none").rank["value"] == 2


@pytest.mark.parametrize("residual", ["none", "mixture"])
def test_pure_noise_has_rank_zero(residual):
    rng = np.random.default_rng(4)
    values, observed = rng.standard_normal((15, 14, 13)), rng.random((15, 14, 13)) > 0.4
    done = complete(values, observed, residual=residual, noise_std=1.0)
    assert done.rank["value"] == 0
    assert np.std(done.mean[~observed]) < 0.2


@pytest.mark.parametrize("residual", ["none", "mixture", "auto"])
def test_a_constant_tensor(residual):
    observed = np.random.default_rng(0).random((8, 7, 6)) > 0.5
    done = complete(np.full((8, 7, 6), 3.5), observed, residual=residual)
    np.testing.assert_allclose(done.mean, 3.5, atol=1e-3)
    assert np.isfinite(done.sd).all()


def test_a_whole_row_missing_is_filled_from_the_prior_with_a_large_sd():
    values, observed, _ = low_rank((14, 12, 10), 2)
    observed[3] = False
    done = complete(values, observed, residual="none")
    assert np.isfinite(done.mean).all()
    assert np.median(done.sd[3]) > 5 * np.median(done.sd[4])


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("residual", ["none", "mixture", "auto"])
def test_hardly_anything_observed(count, residual):
    values, observed, _ = low_rank((6, 5, 4), 1)
    observed[:] = False
    observed.flat[:count] = True
    done = complete(values, observed, residual=residual)
    assert np.isfinite(done.mean).all() and np.isfinite(done.sd).all() and np.isfinite(done.interval_sd).all()


def standardised(problem):
    """Problem and start of the collapsed chain for a synthetic problem, with its scale."""
    data = Observed.of(problem.noisy, problem.observed)
    scale = Scale.of(data.values)
    data = replace(data, values=(data.values - scale.centre) / scale.spread)
    model = Problem.of(data)
    rng = np.random.default_rng(0)
    return model, fit.start(model, 12, 6, (scale.spread / problem.noise_std) ** 2, rng), rng


@pytest.fixture(scope="module")
def burnt_in():
    """A synthetic problem of rank 4 after 80 sweeps from 12 components, with components split and noise fitted."""
    problem = synth.draw((20, 20, 20), 4, "zero", missing_ratio=0.6, noise_std=0.03, seed=1)
    model, state, rng = standardised(problem)
    for _ in range(80):
        state = sweep_collapsed(model, state, rng)
    return model, state, rng


def test_superfluous_components_are_removed_and_x_hardly_moves(burnt_in):
    model, state, _ = burnt_in
    kept, deviance = rank.remove_unsupported(model, state)
    assert state.rank == 12 and kept.rank == 4
    spread = np.sqrt(1.0 / state.noise_precision)
    assert np.sqrt(np.mean((cp_values(model, kept) - cp_values(model, state)) ** 2)) < spread
    assert np.isfinite(deviance)


def test_a_lost_component_is_found_again(burnt_in):
    model, state, _ = burnt_in
    kept, _ = rank.remove_unsupported(model, state)
    for gone in range(4):
        found = rank.add_missed(model, kept.keep_components(np.arange(4) != gone), most=3)
        assert found.rank == 4
        assert np.abs(cp_values(model, found) - cp_values(model, kept)).mean() < np.sqrt(1.0 / kept.noise_precision)


def test_a_split_component_is_joined(burnt_in):
    """Two nearly collinear components that share a true one have large weights: only deleting and refitting shows them.
    """
    model, state, rng = burnt_in
    kept, _ = rank.remove_unsupported(model, state)
    shift = [0.15 * np.std(u[:, :1]) * rng.standard_normal((len(u), 1)) for u in kept.factors]
    strongest = int(np.argmax(rank.energies(model, kept, np.ones(model.data.size))))
    weights = np.append(kept.weights, 0.5 * kept.weights[strongest])
    weights[strongest] *= 0.5
    halves = replace(kept, weights=weights, weight_variances=np.append(kept.weight_variances, 1.0),
                     weight_rates=np.append(kept.weight_rates, 1.0),
                     factors=tuple(np.hstack([u, u[:, [strongest]] + s]) for u, s in zip(kept.factors, shift)))
    assert rank.energies(model, halves, np.full(model.data.size, kept.noise_precision)).min() > rank.noise_threshold(
        (20, 20, 20)
    )
    assert rank.remove_unsupported(model, halves)[0].rank == 4


def test_mixture_components_that_the_residuals_do_not_tell_apart_are_merged():
    problem = synth.draw((20, 20, 20), 2, "mixture-shifted", missing_ratio=0.3, noise_std=0.03, seed=2)
    model, state, rng = standardised(problem)
    for _ in range(60):
        state = sweep_collapsed(model, state, rng)
    fewer = mixture.reduce_components(model, state, rng)
    assert len(state.component_means) == 6
    assert len(fewer.component_means) in (3, 4)  # two Gaussians, and one or two for a uniform
    assert np.isclose(fewer.component_weights.sum(), 1.0)
    alone = mixture.reduce_components(model, fewer, rng)
    assert len(alone.component_means) == len(fewer.component_means)


def test_merging_keeps_mass_mean_and_variance():
    weights, means, variances = np.array([0.2, 0.5, 0.3]), np.array([1.0, -1.0, 2.0]), np.array([0.5, 1.0, 2.0])
    w, m, v = mixture.merged(weights, means, variances, 0, 2)
    assert np.isclose(w.sum(), 1.0) and np.isclose(w @ m, weights @ means)
    assert np.isclose(w @ (v + m**2), weights @ (variances + means**2))


def test_under_noise_the_mixture_is_preferred_for_what_it_gains_at_observed_entries():
    alike = {"none": 0.05, "mixture": 0.051}
    assert datc.preferred_residual(alike, missing=0.1, noise_std=0.03) == "mixture"
    assert datc.preferred_residual(alike, missing=0.99, noise_std=0.03) == "none"
    assert datc.preferred_residual(alike, missing=0.1, noise_std=0.0) == "none"
    assert datc.preferred_residual(alike, missing=0.1, noise_std="auto") == "none"
    # what is left is the noise alone: nothing to gain
    assert datc.preferred_residual({"none": 0.0301, "mixture": 0.0302}, missing=0.1, noise_std=0.03) == "none"
    assert datc.preferred_residual({"none": 0.06, "mixture": 0.05}, missing=0.5, noise_std=0.0) == "mixture"


def test_a_clip_with_texture_beyond_low_rank_and_noise_is_denoised_at_observed_entries():
    rng = np.random.default_rng(3)
    low_rank = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((n, 2)) for n in (12, 11, 10)))
    latent = low_rank + 0.3 * rng.standard_normal(low_rank.shape)
    observed = rng.random(latent.shape) > 0.1
    noisy = latent + 0.3 * rng.standard_normal(latent.shape)
    auto, none = (complete(noisy, observed, residual=residual, noise_std=0.3) for residual in ("auto", "none"))
    assert auto.parameters["residual"] == "mixture"
    wrong = [np.mean((done.mean - latent)[observed] ** 2) for done in (auto, none)]
    assert wrong[0] < 0.75 * wrong[1]


def test_the_residual_is_chosen_by_prediction():
    """Outliers call for the mixture, a smooth tensor with a Gaussian misfit does not."""
    sparse = synth.draw((20, 20, 20), 2, "sparse", missing_ratio=0.5, noise_std=0.03, seed=3)
    done = complete(sparse.noisy, sparse.observed, noise_std=0.03)
    assert done.parameters["residual"] == "mixture"
    errors = done.parameters["held_out_rmse"]
    assert errors["mixture"] < errors["none"]
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 3, 40)
    surface = np.sin(grid[:, None, None] * grid[None, :, None] + np.arange(3)) + 0.3 * np.cos(9 * grid)[:, None, None]
    assert complete(surface, rng.random(surface.shape) > 0.5, rank=8).parameters["residual"] == "none"


def test_variants_by_name():
    values, observed, truth = low_rank((14, 12, 10), 2)
    done = {}
    for name in ("datc", "datc-sc", "datc-ne", "datc-nx"):
        method = methods.get(name)
        config = method.configure({"burn_in": 40, "samples": 20, "chains": 1, "rank": 6, "ordered_modes": (0, 1)})
        done[name] = method.load().complete(
            np.where(observed, values, np.nan), observed, config, rng=np.random.default_rng(0)
        )
    assert done["datc-sc"].parameters["spatial"] and not done["datc"].parameters["spatial"]
    assert done["datc-ne"].parameters["residual"] == "none" and done["datc-ne"].mixture is None
    assert done["datc-nx"].rank["value"] == 0
    assert error(done["datc-nx"], truth) > 0.5 > 0.05 > error(done["datc-ne"], truth)


def test_coherence_helps_where_neighbours_are_alike():
    grid = np.linspace(0, 3, 40)
    truth = np.sin(grid[:, None, None] * grid[None, :, None] + np.arange(3))
    observed = np.random.default_rng(0).random(truth.shape) > 0.85
    plain, coherent = (complete(truth, observed, residual="none", spatial=spatial, ordered_modes=(0, 1), rank=12)
                       for spatial in (False, True))
    assert error(coherent, truth) < 0.9 * error(plain, truth)


def test_noise_given_learnt_and_capped():
    values, observed, _ = low_rank((14, 12, 10), 2, noise=0.05)
    assert complete(values, observed, residual="mixture", noise_std=0.2).noise_std == pytest.approx(0.2)
    assert complete(values, observed, residual="mixture", tau0=100.0).noise_std == pytest.approx(0.1)
    assert complete(values, observed, residual="none").noise_std == pytest.approx(0.05, rel=0.1)
    assert complete(values, observed, residual="none", resolution=1.0).noise_std == pytest.approx(1.0 / np.sqrt(12.0))


def test_two_kinds_of_sd():
    values, observed, truth = low_rank((14, 12, 10), 2, noise=0.05)
    done = complete(values, observed, residual="none", samples=100)
    np.testing.assert_allclose(done.predictive_sd**2, done.sd**2 + done.noise_std**2, rtol=1e-9)
    inside = np.abs(done.mean - truth) < 1.645 * done.latent_interval_sd
    assert 0.8 < inside.mean() < 0.97  # the latent entry, in its 90 % interval
    noisy = truth + 0.05 * np.random.default_rng(9).standard_normal(truth.shape)
    assert 0.85 < (np.abs(done.mean - noisy) < 1.645 * done.interval_sd)[~observed].mean() < 0.95


def test_both_samplers_by_name():
    values, observed, truth = low_rank((10, 9, 8), 2, noise=0.1)
    for sampler in ("collapsed", "literal"):  # a large tau0 would make the literal one creep
        done = complete(values, observed, sampler=sampler, residual="mixture", noise_std=0.1)
        assert done.parameters["sampler"] == sampler
        assert error(done, truth) < 0.1


@pytest.mark.parametrize("sampler", ["collapsed", "literal"])
def test_both_samplers_keep_what_a_revision_has_found(sampler):
    problem = synth.draw((15, 14, 13), 2, "mixture-shifted", missing_ratio=0.5, noise_std=0.03, seed=0)
    done = complete(
        problem.incomplete,
        problem.observed,
        1,
        sampler=sampler,
        residual="mixture",
        burn_in=60,
        samples=20,
        chains=1,
        noise_std=0.03,
    )
    assert metrics.rre(problem.latent, done.mean) < 1.01 * problem.oracle_floor


def test_several_chains_and_their_diagnostics():
    values, observed, _ = low_rank((14, 12, 10), 2)
    done = complete(values, observed, residual="none", chains=2)
    assert done.diagnostics["chains"] == 2 and len(done.traces["log_likelihood"]) == 2
    assert set(done.diagnostics["r_hat"]) == {
        "rank",
        "noise_std",
        "log_likelihood",
        *(f"probe_{i}" for i in range(1, 9)),
    }
    assert done.diagnostics["r_hat"]["rank"] is None  # constant: nothing to compare
    assert 0.9 < done.diagnostics["r_hat"]["noise_std"] < 1.3
    assert not any("the same in all draws" in text for text in done.warnings)  # which is what a rank should be


def test_chains_that_disagree_are_told():
    rng = np.random.default_rng(0)
    apart = {"noise_std": np.stack([rng.standard_normal(50), 10 + rng.standard_normal(50)])}
    r_hat, _, _ = diagnostics.summarise(apart)
    assert diagnostics.worst_r_hat(r_hat) == ("noise_std", r_hat["noise_std"])
    assert r_hat["noise_std"] > diagnostics.LARGEST_R_HAT
    assert diagnostics.worst_r_hat({"rank": None}) == (None, None)


def test_chains_that_keep_to_values_of_their_own_are_told():
    traces = {"rank": np.repeat([[4.0], [5.0]], 50, axis=1), "noise_std": np.full((2, 50), 0.1)}
    r_hat, ess, notes = diagnostics.summarise(traces)
    assert r_hat == ess == {"rank": None, "noise_std": None}
    assert notes == ["the chains do not agree on rank: each has kept to a value of its own (4, 5)",
                     "no R-hat or ESS for noise_std: the same in all draws"]  # fmt: skip
    assert (
        diagnostics.summarise({"rank": np.repeat([[4.0], [5.0]], 3, axis=1)})[2][-1]
        == "no R-hat or ESS for rank: fewer than 4 draws"
    )


def test_a_chain_in_a_poor_mode_goes_on_from_the_best_one(burnt_in):
    model, state, _ = burnt_in
    kept, _ = rank.remove_unsupported(model, state)
    strongest = int(np.argmax(rank.energies(model, kept, np.ones(model.data.size))))
    poor = kept.keep_components(np.arange(4) != strongest)
    states, restarted = fit.leave_poor_modes(model, [poor, kept])
    assert restarted == 1 and states[0] is kept and states[1] is kept
    assert fit.leave_poor_modes(model, [kept, kept])[1] == 0


def test_defaults_follow_the_size():
    small = datc.with_defaults(Observed.of(np.zeros((30, 30, 30)), np.ones((30, 30, 30), dtype=bool)), datc.Config())
    assert (small.rank, small.burn_in, small.samples) == (20, 200, 300)
    large = datc.with_defaults(Observed.of(np.zeros((200, 200, 3)), np.ones((200, 200, 3), dtype=bool)), datc.Config())
    assert large.rank == 130 and large.burn_in < small.burn_in
    assert datc.with_defaults(Observed.of(np.zeros((3, 3)), np.ones((3, 3), dtype=bool)), datc.Config(rank=7)).rank == 7


@pytest.mark.parametrize(
    "parameters",
    [
        {"residual": "both"},
        {"sampler": "nuts"},
        {"rank": 0},
        {"burn_in": 0},
        {"chains": 0},
        {"noise_std": "little"},
        {"tau0": 0.0},
        {"eta0": -1.0},
        {"alpha0": 0.0},
        {"noise_std": -1.0},
        {"noise_std": np.nan},
        {"noise_std": np.inf},
        {"mu0": np.nan},
        {"kappa_rate": np.inf},
        {"resolution": -1.0},
        {"components": 10**20},
        {"samples": 10**20},
        {"tau0": 1.0, "noise_std": 0.1},
    ],
)
def test_senseless_parameters_are_refused_in_one_line(parameters):
    with pytest.raises(ConfigError) as refused:
        datc.Config(**parameters)
    assert next(iter(parameters)) in str(refused.value) and "\n" not in str(refused.value)


def test_an_ordered_mode_that_does_not_exist():
    with pytest.raises(ConfigError, match="ordered mode 3"):
        complete(*low_rank((5, 5, 5), 1)[:2], ordered_modes=(0, 3))


def test_noise_out_of_proportion():
    with pytest.raises(ConfigError, match="out of proportion"):
        complete(*low_rank((5, 5, 5), 1)[:2], residual="mixture", noise_std=1e30)


@pytest.mark.parametrize("scale", [1e-300, 1e150, 1e300])
def test_values_near_the_ends_of_the_range_of_floats(scale):
    values, observed, truth = low_rank((12, 11, 10), 1)
    done = complete(values * scale / 100, observed, residual="none")
    assert error(replace(done, mean=done.mean / scale * 100), truth) < 0.05
