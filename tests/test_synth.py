"""The synthetic problems are those of the paper: shares, laws, weights, counts; and they survive a file."""

import dataclasses
import io

import numpy as np
import pytest

from tdc_cli.bench import synth
from tdc_cli.errors import ConfigError, InputError
from tdc_cli.tensor import cp_to_tensor


@pytest.mark.parametrize("kind", synth.KINDS)
def test_the_parts_of_the_problem_add_up(kind):
    problem = synth.draw((8, 9, 10), 3, kind, missing_ratio=0.7, seed=2)
    assert np.array_equal(problem.low_rank, cp_to_tensor(problem.weights, problem.factors))
    assert [u.shape for u in problem.factors] == [(8, 3), (9, 3), (10, 3)]
    assert np.array_equal(problem.latent, problem.low_rank + problem.residual)
    assert (~problem.observed).sum() == 504
    assert np.array_equal(np.isnan(problem.incomplete), ~problem.observed)
    assert np.array_equal(problem.incomplete[problem.observed], problem.noisy[problem.observed])


@pytest.mark.parametrize("kind", synth.KINDS)
def test_shares_sum_to_one(kind):
    assert sum(part.share for part in synth.KINDS[kind]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "kind, mean, variance",
    [
        ("zero", 0.0, 0.0),
        ("gaussian", 0.1, 0.01),
        ("sparse", 0.0, 0.1 * 16 / 12),
        ("mixture", 0.0, 0.1 * 16 / 12 + 0.3 * 0.1 + 0.6 * 0.005),
        ("mixture-shifted", 0.1, 0.1 * (25 / 12 + 1.5**2) + 0.2 * (0.1 + 0.01) + 0.7 * (1 / 300 + 0.01) - 0.01),
    ],
)
def test_the_residual_has_the_moments_of_the_paper(kind, mean, variance):
    rng = np.random.default_rng(0)
    drawn = synth.draw_residual((100, 100, 100), kind, rng)
    problem = synth.draw((4, 4), 1, kind)
    assert problem.residual_mean == pytest.approx(mean)
    assert drawn.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / drawn.size) + 1e-15)
    assert drawn.var() == pytest.approx(variance, rel=0.01)


def test_shares_are_counted_not_drawn():
    sparse = synth.draw(kind="sparse", seed=1).residual
    assert (sparse != 0).sum() == 2700 and np.abs(sparse).max() <= 2
    shifted = synth.draw(kind="mixture-shifted", seed=1).residual
    assert shifted.min() > -1.6 and 3.9 < shifted.max() <= 4
    assert (synth.draw(kind="zero", seed=1).residual == 0).all()


def test_the_parts_are_scattered_over_the_tensor():
    spread = (synth.draw(kind="sparse").residual != 0).reshape(30, -1).sum(axis=1)
    assert spread.min() > 50 and spread.max() < 130


def test_factors_weights_and_noise_have_their_laws():
    problem = synth.draw((300, 300), 50, noise_std=0.5)
    entries = np.concatenate(problem.factors).ravel()
    assert entries.mean() == pytest.approx(0, abs=0.03) and entries.std() == pytest.approx(1, abs=0.03)
    weights = np.concatenate([synth.draw((2, 2), 50, seed=s).weights for s in range(20)])
    assert np.abs(weights).max() <= 2 and weights.mean() == pytest.approx(0, abs=0.15)
    assert weights.var() == pytest.approx(4 / 3, rel=0.1)
    assert (problem.noisy - problem.latent).std() == pytest.approx(0.5, rel=0.02)
    clean = synth.draw((5, 5), 2, "mixture", noise_std=0)
    assert np.array_equal(clean.noisy, clean.latent)


def test_the_default_noise_has_variance_one_thousandth():
    problem = synth.draw()
    assert problem.noise_std**2 == pytest.approx(0.001)
    assert (problem.noisy - problem.latent).var() == pytest.approx(0.001, rel=0.05)


def test_kinds_and_ratios_share_the_rest_of_the_problem():
    one = synth.draw(kind="sparse", missing_ratio=0.7, seed=4)
    other = synth.draw(kind="mixture", missing_ratio=0.9, seed=4)
    assert np.array_equal(one.low_rank, other.low_rank)
    assert np.allclose(one.noisy - one.latent, other.noisy - other.latent, atol=1e-12)
    assert (one.observed | ~other.observed).all()  # what is missing at 70 % is missing at 90 %
    assert not np.array_equal(one.low_rank, synth.draw(kind="sparse", seed=5).low_rank)


def test_the_oracle_floor_is_the_error_of_the_oracle():
    problem = synth.draw(kind="mixture-shifted", missing_ratio=0.8, seed=3)
    oracle = np.where(problem.observed, problem.latent, problem.low_rank + 0.1)
    assert problem.oracle_floor == pytest.approx(
        np.linalg.norm(oracle - problem.latent) / np.linalg.norm(problem.latent)
    )
    assert synth.draw(kind="zero").oracle_floor == 0.0


@pytest.mark.parametrize("as_file", [False, True])
def test_a_saved_problem_comes_back_whole(tmp_path, as_file):
    problem = synth.draw((4, 5, 3, 2), 2, "sparse", missing_ratio=0.25, seed=9)
    file = io.BytesIO() if as_file else tmp_path / "problem.npz"
    synth.save(problem, file)
    if as_file:
        file.seek(0)
    loaded = synth.load(file)
    for field in dataclasses.fields(problem):
        kept, found = getattr(problem, field.name), getattr(loaded, field.name)
        pairs = zip(kept, found) if field.name == "factors" else [(kept, found)]
        assert all(np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype for a, b in pairs), field.name
    assert loaded.oracle_floor == problem.oracle_floor


@pytest.mark.parametrize("content", [b"", b"text", None])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    if content is None:
        np.savez(path, low_rank=np.zeros((2, 2)))
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match="not a synthetic problem"):
        synth.load(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(InputError, match="not a synthetic problem"):
        synth.load(tmp_path / "array.npy")
    with pytest.raises(InputError, match="no such file"):
        synth.load(tmp_path / "none.npz")


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"shape": (5,)}, "at least two modes"),
        ({"shape": (5, 0)}, "at least two modes"),
        ({"rank": 0}, "rank is 0"),
        ({"kind": "spare"}, "no kind of residual 'spare'; there are: zero, gaussian, sparse, mixture, mixture-shifted"),
        ({"missing_ratio": 1.0}, "missing_ratio is 1"),
        ({"missing_ratio": -0.1}, "missing_ratio is -0.1"),
        ({"missing_ratio": 0.99, "shape": (3, 3)}, "leaves nothing"),
        ({"noise_std": -1.0}, "noise_std is -1"),
        ({"noise_std": np.inf}, "noise_std is inf"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, words):
    with pytest.raises(ConfigError, match=words):
        synth.draw(**parameters)
