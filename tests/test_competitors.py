"""The low-rank methods of other papers: what is theirs beyond the contract of `test_contract`."""

import numpy as np
import pytest
from conftest import report_of, smooth
from PIL import Image

from tdc_cli import errors, methods
from tdc_cli.methods.solve import solve
from tdc_cli.peers import lowrank
from tdc_cli.tensor import cp_to_tensor, unfold

NAMES = ("falrtc", "halrtc", "rptc-scad", "tmac", "stdc", "tsvd", "spc-qv", "spc-tv")


def low_rank_tensor(shape=(20, 18, 15), rank=2, seed=0):
    """Random tensor of CP rank `rank`, and which entries are observed: two thirds."""
    rng = np.random.default_rng(seed)
    truth = cp_to_tensor(np.ones(rank), [rng.standard_normal((n, rank)) for n in shape])
    return truth, rng.random(shape) > 1 / 3


def run(name, values, observed, **parameters):
    method = methods.get(name)
    return solve(method, method.configure(parameters), values, observed, rng=np.random.default_rng(0))


def error(estimate, truth, observed):
    """Relative error of the missing entries."""
    return np.linalg.norm((estimate - truth)[~observed]) / np.linalg.norm(truth[~observed])


def nuclear_norms(tensor, weights):
    """Weighted sum of the nuclear norms of the unfoldings."""
    return sum(w * np.linalg.svd(unfold(tensor, i), compute_uv=False).sum() for i, w in enumerate(weights))


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (6, 6)])
@pytest.mark.parametrize("kind", [float, complex])
def test_shrinking_through_the_gram_matrix_is_that_of_the_decomposition(shape, kind):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind is complex else 0)
    u, s, vh = np.linalg.svd(matrix, full_matrices=False)
    shrunk, singular = lowrank.shrink_singular_values(matrix, lowrank.soft(1.0))
    np.testing.assert_allclose(singular, s[::-1], rtol=1e-10)
    np.testing.assert_allclose(shrunk, (u * np.maximum(s - 1, 0)) @ vh, atol=1e-10)
    np.testing.assert_allclose(lowrank.singular_values(matrix), s[::-1], rtol=1e-10)


def test_modes_of_few_rows_weigh_little():
    np.testing.assert_allclose(lowrank.mode_weights((), (256, 256, 3)), np.array([1, 1, 1e-3]) / 2.001)
    np.testing.assert_allclose(lowrank.mode_weights((), (30, 30, 30)), 1 / 3)
    np.testing.assert_allclose(lowrank.mode_weights((), (4, 3)), 1 / 2)
    np.testing.assert_allclose(lowrank.mode_weights((1, 3), (4, 3)), [0.25, 0.75])
    with pytest.raises(errors.ConfigError, match="2 weights are given, but the tensor has 3 modes"):
        lowrank.mode_weights((1, 3), (4, 3, 2))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_takes_it(tdc, name):
    report = report_of(
        tdc("complete-image", "a.png", "-o", "b.png", "--missing-ratio", "0.3", "--method", name, "--json")
    )
    assert report["method"]["name"] == name
    assert report["metrics"]["all"]["psnr"] > report["metrics"]["incomplete"]["psnr"] + 6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", [1e-200, 1e-3, 255.0, 1e200])
def test_the_unit_of_the_data_does_not_matter(name, unit):
    values, observed = smooth(16, 14) / 255, np.random.default_rng(1).random((16, 14, 3)) > 0.4
    plain = run(name, values, observed).mean
    np.testing.assert_allclose(run(name, unit * values, observed).mean / unit, plain, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_zeros_and_constants_come_back(name):
    observed = np.random.default_rng(1).random((8, 7, 6)) > 0.3
    closer = {"snr": 60.0} if name.startswith("spc") else {}
    assert not run(name, np.zeros(observed.shape), observed).mean.any()
    np.testing.assert_allclose(run(name, np.full(observed.shape, 3.0), observed, **closer).mean, 3.0, rtol=0.02)


@pytest.mark.parametrize("name", ["falrtc", "halrtc"])
def test_both_reach_the_least_sum_of_nuclear_norms(name):
    """Of the same convex problem, falrtc but for its smoothing; no step away within what is missing leads further down.
    """
    truth, observed = low_rank_tensor()
    found = run(name, np.where(observed, truth, np.nan), observed, iterations=2000, tolerance=1e-9).mean
    assert error(found, truth, observed) < 0.01
    least = nuclear_norms(found, np.full(3, 1 / 3))
    assert least <= nuclear_norms(truth, np.full(3, 1 / 3)) * (1 + 1e-3)
    rng = np.random.default_rng(3)
    for size in (1e-2, 1e-1):
        away = found + size * np.where(observed, 0, rng.standard_normal(truth.shape))
        assert nuclear_norms(away, np.full(3, 1 / 3)) > least


def test_smoothed_norms_fall_with_every_step_of_falrtc():
    """The inequality that the search for L ends with, at a fixed smoothing, from the gradient itself."""
    from tdc_cli.peers import falrtc

    rng = np.random.default_rng(0)
    tensor, weights, mu = rng.standard_normal((7, 6, 5)), np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.2, 0.1])
    value, gradient = falrtc.smoothed(tensor, weights, mu)
    assert value == pytest.approx(falrtc.objective(tensor, weights, mu))
    direction, step = rng.standard_normal(tensor.shape), 1e-5
    above, below = (falrtc.objective(tensor + sign * step * direction, weights, mu) for sign in (1, -1))
    slope = (above - below) / (2 * step)
    assert slope == pytest.approx(np.sum(gradient * direction), rel=1e-6)
    steepest = np.sum(weights**2 / mu)
    assert falrtc.objective(tensor - gradient / steepest, weights, mu) <= value - np.sum(gradient**2) / (2 * steepest)


def test_halrtc_starts_below_the_largest_singular_value():
    """With the authors' fixed penalty nothing would be left of the unfoldings, and the mean of the picture would be the
    result.
    """
    values = smooth(20, 24) / 255
    observed = np.random.default_rng(0).random(values.shape) > 0.9
    found = run("halrtc", values, observed).mean
    assert found[~observed].std() > 0.3 * values.std()


def test_tsvd_recovers_a_tensor_of_low_tubal_rank_and_minds_its_modes():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((24, 2, 6)), rng.standard_normal((2, 22, 6))
    transformed = np.einsum("irk,rjk->ijk", np.fft.fft(left), np.fft.fft(right))
    truth = np.fft.ifft(transformed).real
    observed = rng.random(truth.shape) > 0.4
    assert error(run("tsvd", np.where(observed, truth, np.nan), observed).mean, truth, observed) < 0.02
    turned = run(
        "tsvd", np.where(observed, truth, np.nan).transpose(0, 2, 1), observed.transpose(0, 2, 1)
    ).mean.transpose(0, 2, 1)
    assert error(turned, truth, observed) > 0.2


def test_tsvd_refuses_other_orders(tdc):
    Image.fromarray(smooth(20, 24, channels=None)).save("grey.png")
    result = tdc("complete-image", "grey.png", "-o", "b.png", "--mask", "m.png", "--method", "tsvd")
    line = "tdc: method tsvd takes tensors of order 3, not 2; a grey picture has order 2, one with colours 3\n"
    assert (result.exit_code, result.stderr) == (2, line)
    with pytest.raises(errors.InputError, match="tsvd takes tensors of 3 modes, not 4; try `method=halrtc`"):
        run("tsvd", np.ones((3, 3, 3, 3)), np.ones((3, 3, 3, 3), dtype=bool))


@pytest.mark.parametrize("name", ["spc-qv", "spc-tv"])
def test_every_sweep_of_spc_lowers_its_objective(name):
    values = smooth(20, 18) / 255
    observed = np.random.default_rng(0).random(values.shape) > 0.5
    done = run(name, values, observed, ordered_modes=(0, 1), snr=40.0, strength=0.3, iterations=60)
    objectives = np.array(done.traces["objective"][0])
    assert len(objectives) > 10 and done.rank["value"] > 2
    assert (np.diff(objectives) <= 1e-12 * objectives[0]).all()


@pytest.mark.parametrize("name", ["spc-qv", "spc-tv"])
def test_spc_recovers_a_tensor_of_low_rank_and_ends_at_its_aim(name):
    truth, observed = low_rank_tensor()
    done = run(name, np.where(observed, truth, np.nan), observed, snr=60.0)
    assert done.warnings == () and error(done.mean, truth, observed) < 0.005
    early = run(name, np.where(observed, truth, np.nan), observed, snr=60.0, iterations=2)
    assert early.warnings == ("spc had not met the observed entries after 2 sweeps; a lower snr asks for less",)


def test_spc_wants_neighbours_alike():
    rng = np.random.default_rng(0)
    values = smooth(24, 20) / 255 + 0.05 * rng.standard_normal((24, 20, 3))
    observed = rng.random(values.shape) > 0.6
    rough, smoothed = (run("spc-qv", values, observed, ordered_modes=modes).mean for modes in ((), (0, 1)))
    assert np.abs(np.diff(smoothed, axis=0)).mean() < np.abs(np.diff(rough, axis=0)).mean()
    assert error(smoothed, smooth(24, 20) / 255, observed) < error(rough, smooth(24, 20) / 255, observed)


@pytest.mark.parametrize("n", [1, 2, 3, 20])
@pytest.mark.parametrize("strength", [0.0, 0.01, 0.5, 5.0])
def test_the_flattened_sequence_is_the_minimiser(n, strength):
    """Its dual, a least squares problem within bounds, is solved by SciPy."""
    from scipy.optimize import lsq_linear

    from tdc_cli.peers.spc import flatten

    values = np.random.default_rng(n).standard_normal(n)
    steps = np.diff(np.eye(n), axis=0)
    expected = values
    if n > 1 and strength:
        expected = (
            values - steps.T @ lsq_linear(steps.T, values, bounds=(-strength, strength), tol=1e-14, max_iter=5000).x
        )
    np.testing.assert_allclose(flatten(values, strength), expected, atol=1e-6)


def test_contraction_with_all_vectors_but_one():
    from tdc_cli.peers.spc import contract

    rng = np.random.default_rng(0)
    tensor, vectors = rng.standard_normal((2, 3, 4, 5)), [rng.standard_normal(n) for n in (2, 3, 4, 5)]
    np.testing.assert_allclose(contract(tensor, vectors, 0), np.einsum("ijkl,j,k,l", tensor, *vectors[1:]))
    np.testing.assert_allclose(contract(tensor, vectors, 2), np.einsum("ijkl,i,j,l", tensor, *vectors[:2], vectors[3]))


def test_the_product_of_soft_ranks_recovers_what_nuclear_norms_cannot():
    truth, _ = low_rank_tensor((20, 20, 20), rank=3)
    observed = np.random.default_rng(4).random(truth.shape) > 0.75
    done = run("rptc-scad", np.where(observed, truth, np.nan), observed)
    assert error(done.mean, truth, observed) < 1e-3 and done.rank["value"] == 3
    assert error(run("halrtc", np.where(observed, truth, np.nan), observed).mean, truth, observed) > 0.1


def test_rptc_scad_moves_where_little_is_missing():
    rng = np.random.default_rng(0)
    truth = cp_to_tensor(np.ones(3), [rng.standard_normal((n, 3)) for n in (24, 22, 20)])
    noisy = truth + 0.3 * rng.standard_normal(truth.shape)
    observed = rng.random(truth.shape) > 0.1
    done = run("rptc-scad", np.where(observed, noisy, np.nan), observed)
    assert np.std((done.mean - truth)[~observed]) < 0.2 * np.std(truth[~observed])


def test_the_scad_penalty_has_the_slope_that_it_says_and_weights_are_those_of_the_product():
    from tdc_cli.peers import rptc_scad

    knee, step = 0.8, 1e-6
    for s in (0.1, 0.7, 0.9, 2.5, 2.9, 3.1, 9.0):
        rise = rptc_scad.soft_count(np.array([s + step]), knee) - rptc_scad.soft_count(np.array([s - step]), knee)
        assert rise / (2 * step) == pytest.approx(rptc_scad.scad_slope(s, knee), abs=1e-8)
    assert rptc_scad.soft_count(np.array([0.0, 3.0, 100.0]), knee) == pytest.approx(2)
    weights = rptc_scad.tangent_weights([np.array([100.0]), np.array([100.0, 100.0])], [knee, knee])
    np.testing.assert_allclose(weights, [2 / 3, 1 / 3])


def test_tmac_recovers_a_tensor_of_low_rank_with_ranks_that_grow():
    truth, observed = low_rank_tensor((24, 22, 20))
    done = run(
        "tmac", np.where(observed, truth, np.nan), observed, ranks=(1, 1, 1), most_ranks=(2, 2, 2), tolerance=1e-6
    )
    assert error(done.mean, truth, observed) < 1e-3
    assert done.rank["value"] == 2 and done.parameters["final_ranks"] == [2, 2, 2]
    low = run("tmac", np.where(observed, truth, np.nan), observed, ranks=(1, 1, 1), most_ranks=(1, 1, 1))
    assert error(low.mean, truth, observed) > 0.3


def test_ranks_of_tmac_by_size():
    from tdc_cli.peers import tmac

    ranks, most = tmac.allowed_ranks(tmac.Config(), (256, 256, 3))
    assert ranks.tolist() == [5, 5, 1] and most.tolist() == [50, 50, 2]
    ranks, most = tmac.allowed_ranks(tmac.Config(), (30, 30, 1))
    assert ranks.tolist() == [4, 4, 1] and most.tolist() == [8, 8, 1]


def test_factors_of_tmac_fit_better_than_the_best_left_one():
    from tdc_cli.peers import tmac

    rng = np.random.default_rng(0)
    matrix, right = rng.standard_normal((9, 20)), rng.standard_normal((3, 20))
    left, fitted = tmac.fit_factors(matrix, right)
    best_left = matrix @ np.linalg.pinv(right)
    assert np.linalg.norm(left @ fitted - matrix) < np.linalg.norm(best_left @ right - matrix)
    more = tmac.grown(rng, fitted, 2)
    np.testing.assert_array_equal(more[:3], fitted)
    np.testing.assert_allclose(more[3:] @ fitted.T, 0, atol=1e-10)


def test_stdc_fills_rows_that_are_missing_as_a_whole_from_their_neighbours():
    values = smooth(20, 24) / 255
    observed = np.random.default_rng(0).random(values.shape) > 0.2
    observed[7] = False
    smoothed, plain = (run("stdc", values, observed, ordered_modes=modes).mean for modes in ((0, 1), ()))
    assert error(smoothed[7], values[7], observed[7]) < 0.5 * error(plain[7], values[7], observed[7])


def test_the_core_of_stdc_is_the_minimiser_and_a_step_of_a_factor_goes_down():
    from tdc_cli.peers import stdc

    rng = np.random.default_rng(0)
    target, factors = rng.standard_normal((5, 6, 3)), {0: rng.standard_normal((5, 5)), 1: rng.standard_normal((6, 6))}
    core, ridge = stdc.best_core(target, factors, 0.3), 0.3
    misfit = target - stdc.multiply(core, {i: v.T for i, v in factors.items()})
    np.testing.assert_allclose(stdc.multiply(misfit, factors), ridge * core, atol=1e-10)

    matrix, wanted, factor = rng.standard_normal((6, 9)), rng.standard_normal((6, 9)), np.eye(6)
    laplacian, likeness, eta = stdc.unit_laplacian(6, 2), 2.0, 0.7
    assert np.linalg.norm(laplacian, 2) == pytest.approx(1) and np.allclose(laplacian.sum(axis=0), 0)

    def objective(v):
        return (np.linalg.norm(v, "nuc") + likeness * np.trace(v @ laplacian @ v.T)
                + eta / 2 * np.linalg.norm(wanted - v.T @ matrix) ** 2)  # fmt: skip

    heights = [objective(factor)]
    for _ in range(20):
        factor = stdc.next_factor(factor, matrix, wanted, laplacian, likeness, eta)
        heights.append(objective(factor))
    assert (np.diff(heights) <= 1e-10).all() and heights[-1] < 0.9 * heights[0]


def test_a_run_that_has_not_converged_says_so():
    truth, observed = low_rank_tensor()
    assert run("halrtc", truth, observed, iterations=3).warnings == ("halrtc had not converged after 3 iterations",)
    assert run("halrtc", truth, observed).warnings == ()


def test_ranks_that_do_not_fit_are_refused():
    truth, observed = low_rank_tensor((8, 7, 6))
    for parameters, message in (
        ({"ranks": (2, 2)}, "2 ranks are given, but the tensor has 3 modes"),
        ({"most_ranks": (9, 2, 2)}, "most_ranks are 9, 2, 2; they can be at most 8, 7, 6"),
        ({"ranks": (3, 3, 3), "most_ranks": (2, 4, 4)}, "ranks are 3, 3, 3; they can be at most 2, 4, 4"),
    ):
        with pytest.raises(errors.ConfigError) as caught:
            run("tmac", truth, observed, **parameters)
        assert str(caught.value) == message


@pytest.mark.parametrize("name", ["spc-qv", "stdc"])
def test_an_ordered_mode_that_is_not_there_is_refused(name):
    truth, observed = low_rank_tensor((8, 7, 6))
    with pytest.raises(errors.ConfigError, match="ordered mode 3 does not exist: the tensor has modes 0 to 2"):
        run(name, truth, observed, ordered_modes=(0, 3))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("halrtc", {"tolerance": 0.0}, "tolerance is 0; it must be above 0 and below 1"),
        ("halrtc", {"iterations": 0}, "iterations is 0; it must be from 1 to 1000000"),
        ("halrtc", {"start": 1.0}, "start is 1; it must be above 1 and below 1e+06"),
        ("halrtc", {"growth": 0.9}, "growth is 0.9; it must be from 1 to 2"),
        ("halrtc", {"weights": "1,-2"}, "weights are 1, -2; they must be above 0 and finite"),
        ("falrtc", {"iterations": 16}, "iterations is 16; it must be from 17 to 1000000"),
        ("tsvd", {"penalty": 0.0}, "penalty is 0; it must be above 0 and below 1e+10"),
        ("spc-qv", {"penalty": "cubic"}, "penalty 'cubic' is not one of quadratic, variation"),
        ("spc-qv", {"strength": -1.0}, "strength is -1; it must be at least 0 and below 1e+09"),
        ("spc-qv", {"snr": 0.0}, "snr is 0; it must be above 0 and at most 120"),
        ("spc-tv", {"refitted": 0}, "refitted is 0; it must be from 1 to 10000"),
        ("spc-tv", {"patience": 1.0}, "patience is 1; it must be above 0 and below 1"),
        ("rptc-scad", {"knee": 0.0}, "knee is 0; it must be above 0 and below 1e+06"),
        ("rptc-scad", {"start": 0.5}, "start is 0.5; it must be above 1 and below 1e+06"),
        ("rptc-scad", {"growth": 0.5}, "growth is 0.5; it must be from 1 to 2"),
        ("tmac", {"ranks": "5,0"}, "ranks are 5, 0; they must be 1 or more"),
        ("tmac", {"increment": 0}, "increment is 0; it must be from 1 to 1000"),
        ("stdc", {"kappa": 0.0}, "kappa is 0; it must be above 0 and below 1e+06"),
        ("stdc", {"neighbours": 0}, "neighbours is 0; it must be from 1 to 1000"),
        ("stdc", {"growth": 1.0}, "growth is 1; it must be above 1 and at most 2"),
        ("tsvd", {"growth": 3.0}, "growth is 3; it must be from 1 to 2"),
    ],
)
def test_bad_parameters_are_refused(name, parameters, message):
    with pytest.raises(errors.ConfigError) as caught:
        methods.get(name).configure(parameters)
    assert str(caught.value) == message
