"""Bayesian CP (fbcp, fbcp-image, fbcp-mp, brtf) and the fills that users know: objectives, recovery, units, the command
line.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from conftest import pixels, report_of, smooth

from tdc_cli import methods
from tdc_cli.errors import ConfigError, InputError
from tdc_cli.methods import linear, nearest
from tdc_cli.methods.solve import solve
from tdc_cli.peers import brtf, fbcp, fbcp_image, variational
from tdc_cli.tensor import cp_to_tensor, khatri_rao, unfold

BAYES = ("fbcp", "fbcp-image", "fbcp-mp", "brtf")
FILLS = ("telea", "navier-stokes", "linear", "nearest", "cp-masked")


def low_rank(shape=(12, 11, 10), rank=2, seed=0, share=0.5):
    """Tensor of normal factors, and which entries are observed."""
    rng = np.random.default_rng(seed)
    truth = cp_to_tensor(np.ones(rank), [rng.standard_normal((n, rank)) for n in shape])
    return truth, rng.random(shape) < share


def run(name, values, observed, seed=0, **parameters):
    method = methods.get(name)
    if method.needs is not None:
        pytest.importorskip(method.needs, reason="the extra bench is not installed")
    config = method.configure(parameters)
    return solve(method, config, values, observed, rng=np.random.default_rng(seed))


def error(estimate, truth, where=True):
    return np.linalg.norm((estimate - truth) * where) / np.linalg.norm(truth * where)


# --- the posterior that they share


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (3, 2, 4, 3)])
def test_the_contraction_is_the_product_with_the_khatri_rao_product(shape, monkeypatch):
    monkeypatch.setattr(variational, "BLOCK", 30)  # several blocks of columns
    rng = np.random.default_rng(0)
    tensor, factors = rng.standard_normal(shape), [rng.standard_normal((n, 7)) for n in shape]
    for mode in range(len(shape)):
        others = khatri_rao([f for k, f in enumerate(factors) if k != mode])
        assert np.allclose(variational.contract(tensor, factors, mode), unfold(tensor, mode) @ others)


def test_a_row_has_the_posterior_of_a_linear_regression():
    truth, observed = low_rank((5, 6, 4))
    data, tau, rng = np.where(observed, truth, 0.0), 2.5, np.random.default_rng(1)
    factors = variational.Factors(observed, [rng.standard_normal((n, 3)) for n in truth.shape])
    for mode in (1, 2):  # so that the moments of the others are more than covariances
        factors.update(mode, data, tau)
    rows, columns, _ = variational.pairs(3)
    second = [np.zeros((n, 3, 3)) for n in truth.shape]
    for matrix, moments in zip(second, factors.moments):
        matrix[:, rows, columns] = matrix[:, columns, rows] = moments
    factors.update(0, data, tau)
    for i in range(truth.shape[0]):
        precision, target = np.eye(3), np.zeros(3)
        for j, k in np.argwhere(observed[i]):
            precision += tau * second[1][j] * second[2][k]
            target += tau * data[i, j, k] * factors.means[1][j] * factors.means[2][k]
        covariance = np.linalg.inv(precision)
        mean = covariance @ target
        assert np.allclose(factors.means[0][i], mean)
        assert np.allclose(factors.moments[0][i], (covariance + np.outer(mean, mean))[rows, columns])


def test_the_variance_is_that_of_drawn_factors():
    truth, observed = low_rank((4, 5, 3))
    data = np.where(observed, truth, 0.0)
    factors = variational.Factors(observed, variational.decompose(data, 2, np.random.default_rng(0)))
    for mode in range(3):
        factors.update(mode, data, 3.0)
    rng, count = np.random.default_rng(1), 20_000
    rows, columns, _ = variational.pairs(2)
    drawn = []
    for mean, moments in zip(factors.means, factors.moments):
        covariance = np.empty((len(mean), 2, 2))
        covariance[:, rows, columns] = covariance[:, columns, rows] = moments - mean[:, rows] * mean[:, columns]
        drawn.append(np.stack([rng.multivariate_normal(m, c, count) for m, c in zip(mean, covariance)], axis=1))
    samples = np.einsum("sir,sjr,skr->sijk", *drawn)
    assert np.allclose(factors.variance(), samples.var(axis=0), rtol=0.15, atol=1e-4)
    square = np.mean([np.sum((data - s)[observed] ** 2) for s in samples[:4000]])
    assert factors.expected_square(data, factors.reconstruct()) == pytest.approx(square, rel=0.05)


def test_the_gain_of_a_gamma_is_minus_its_divergence_from_the_prior():
    assert variational.Gamma(2.0, 3.0).gain(2.0, 3.0) == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(0)
    draws = rng.gamma(2.0, 1 / 3.0, 400_000)
    log_ratio = (np.log(1.5) - draws * 1.5) - (2 * np.log(3.0) + np.log(draws) - 3.0 * draws)  # prior Gamma(1, 1.5)
    assert variational.Gamma(2.0, 3.0).gain(1.0, 1.5) == pytest.approx(log_ratio.mean(), abs=0.01)


def test_the_start_has_the_singular_vectors_of_short_and_of_long_unfoldings():
    matrix = np.random.default_rng(0).standard_normal((9, 4))
    left, right = variational.decompose(matrix, 4, np.random.default_rng(1))
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    assert np.allclose(np.abs(left), np.abs(u) * np.sqrt(s)) and np.allclose(np.abs(right), np.abs(vt.T) * np.sqrt(s))
    assert [m.shape for m in variational.decompose(matrix, 6, np.random.default_rng(1))] == [(9, 6), (4, 6)]


# --- the methods


@pytest.mark.parametrize("name", ["fbcp", "fbcp-image", "brtf"])
def test_the_bound_never_falls_but_for_components_left_out(name):
    truth, observed = low_rank()
    noisy = truth + 0.1 * np.random.default_rng(1).standard_normal(truth.shape)
    done = run(name, noisy, observed, rank=8, iterations=40, tolerance=0.0)
    (ranks,), (bounds,) = done.traces["rank"], done.traces["bound"]
    kept = np.diff(ranks, prepend=8)[:-1] == 0
    steps = np.diff(bounds)
    assert kept.sum() > 20
    assert (steps[kept] > -1e-7 * np.abs(bounds[1:])[kept]).all()


@pytest.mark.parametrize("name", ["fbcp", "brtf"])
@pytest.mark.parametrize("shape", [(30, 25), (12, 11, 10), (6, 7, 5, 6)])
def test_a_low_rank_tensor_is_recovered_with_its_rank(name, shape):
    truth, observed = low_rank(shape)
    done = run(name, truth, observed, rank=6)
    assert error(done.mean, truth, ~observed) < 0.01
    assert done.rank["value"] in (2, 3)


def test_outliers_are_set_aside():
    truth, observed = low_rank((15, 15, 15), share=0.7)
    rng = np.random.default_rng(3)
    spoilt = truth + 10 * rng.standard_normal(truth.shape) * (rng.random(truth.shape) < 0.05)
    robust, plain = (run(name, spoilt, observed, rank=6) for name in ("brtf", "fbcp"))
    assert error(robust.mean, truth) < error(plain.mean, truth) / 4


def test_the_shape_of_the_outliers_prior_is_that_of_the_largest_bound():
    outliers = brtf.Outliers(200)
    rng = np.random.default_rng(0)
    outliers.update(rng.standard_t(3, 200), 5.0)
    outliers.update(rng.standard_t(3, 200), 5.0)
    before = outliers.bound()
    outliers.update_prior()
    best = outliers.bound()
    assert best > before
    shape, rate = outliers.prior
    for factor in (0.9, 1.1):
        outliers.prior = factor * shape, factor * rate
        assert outliers.bound() < best
        outliers.prior = shape, factor * rate
        assert outliers.bound() < best


@pytest.mark.parametrize("name", (*BAYES, *FILLS))
@pytest.mark.parametrize("shape", [(1, 9, 3), (9, 1, 3), (2, 2), (1, 8)])
def test_the_smallest_pictures_are_completed(name, shape):
    values = np.random.default_rng(0).random(shape)
    observed = np.ones(shape, dtype=bool)
    observed[-1, -1] = False
    done = run(name, values, observed)
    assert done.mean.shape == shape and np.isfinite(done.mean).all()
    assert done.sd is None or np.isfinite(done.sd).all()


@pytest.mark.parametrize("name", (*BAYES, *FILLS))
@pytest.mark.parametrize(
    "unit", [2.0**20, 2.0**-20, 2.0**900, 2.0**-900]
)  # smoothing makes more of rounding with every iteration
def test_units_change_nothing(name, unit):
    values = smooth(14, 12) / 255
    observed = np.random.default_rng(1).random(values.shape) > 0.4
    one, other = run(name, values, observed), run(name, unit * values, observed)
    assert np.allclose(other.mean / unit, one.mean)
    if one.sd is not None:
        assert np.allclose(other.sd / unit, one.sd)


@pytest.mark.parametrize("name", (*BAYES, *FILLS))
@pytest.mark.parametrize("level", [0.0, 0.7])
def test_a_constant_picture_stays_constant(name, level):
    values = np.full((13, 12, 3), level)
    observed = np.random.default_rng(1).random(values.shape) > 0.5
    assert np.allclose(run(name, values, observed).mean, level, atol=2e-3)


def test_the_standard_deviation_of_fbcp_covers_the_error():
    truth, observed = low_rank((16, 15, 14), share=0.3)
    noisy = truth + 0.2 * np.random.default_rng(1).standard_normal(truth.shape)
    done = run("fbcp", noisy, observed, rank=5)
    inside = np.abs(noisy - done.mean)[~observed] < 1.645 * done.predictive_sd[~observed]
    assert 0.86 < inside.mean() < 0.94
    assert done.noise_std == pytest.approx(0.2, rel=0.1)


def test_a_second_start_is_kept_for_its_larger_bound_only():
    truth, observed = low_rank((12, 12, 12), rank=4, seed=2, share=0.2)
    last = [run("fbcp", truth, observed, seed=5, starts=n).traces["bound"][0][-1] for n in (1, 4)]
    assert last[1] >= last[0]


def test_smoothing_weighs_neighbours_and_leaves_a_single_row_alone():
    weights = fbcp_image.neighbours(9, 1.0, 0.1)
    assert np.allclose(weights.sum(axis=1), 1 + fbcp_image.PULL) and np.allclose(np.diag(weights), 1)
    ratio = weights[4, 6] / weights[4, 5]
    assert ratio == pytest.approx(np.exp(-2 * 0.1 * (4 - 1)))
    assert np.array_equal(fbcp_image.neighbours(1, 1.0, 0.1), [[1.0]])


def test_the_mixture_prior_helps_where_most_is_missing():
    values = smooth(40, 36) / 255
    observed = np.random.default_rng(1).random(values.shape) > 0.85
    plain, smoothed = (
        error(run(name, values, observed, rank=30).mean, values, ~observed) for name in ("fbcp-image", "fbcp-mp")
    )
    assert smoothed < 0.7 * plain


# --- fills


def test_the_nearest_pixel_is_nearest():
    rng = np.random.default_rng(0)
    channel, known = rng.random((9, 8)), rng.random((9, 8)) > 0.7
    filled, places = nearest.fill(np.where(known, channel, np.nan), known), np.argwhere(known)
    for i, j in np.argwhere(~known):
        distance = ((places - (i, j)) ** 2).sum(axis=1)
        closest = places[distance == distance.min()]
        assert filled[i, j] in channel[closest[:, 0], closest[:, 1]]


def test_a_plane_is_interpolated_exactly_inside_the_known_pixels():
    rows, columns = np.mgrid[:20, :17]
    plane = 2.0 * rows - 3.0 * columns
    known = np.random.default_rng(0).random(plane.shape) > 0.6
    known[[0, 0, -1, -1], [0, -1, 0, -1]] = True
    known[7:13, 5:12] = False
    assert np.allclose(linear.fill(np.where(known, plane, 0.0), known, ~known), plane)


@pytest.mark.parametrize("places", [[(3, 3)], [(0, 0), (0, 5)], [(1, 1), (3, 3), (5, 5)]])
def test_what_makes_no_triangle_gives_the_nearest_pixel(places):
    channel, known = np.zeros((8, 7)), np.zeros((8, 7), dtype=bool)
    for value, place in enumerate(places, start=1):
        channel[place], known[place] = value, True
    assert np.array_equal(linear.fill(channel, known, ~known), nearest.fill(channel, known))


@pytest.mark.parametrize("name", ["telea", "navier-stokes"])
@pytest.mark.parametrize("shape", [(1, 9), (9, 1)])
def test_a_single_row_is_the_same_whatever_was_in_memory(name, shape):
    values, observed = np.linspace(0, 1, 9).reshape(shape), np.ones(shape, dtype=bool)
    observed[-1, -1] = False
    found = []
    for size in range(100, 130):
        np.full(size, 1e30, dtype=np.float32)  # leaves large values in memory that is given out next
        found.append(run(name, values, observed).mean[-1, -1])
    assert set(found) == {found[0]} and 0.5 < found[0] < 1.1


@pytest.mark.parametrize("name", ["telea", "navier-stokes"])
def test_whole_pixels_are_filled_as_opencv_fills_a_picture(name):
    cv2 = pytest.importorskip("cv2", reason="the extra bench is not installed")
    picture = smooth(24, 22)
    picture[0, :2] = [[0, 0, 0], [255, 255, 255]]  # the whole range, so that levels are levels
    holes = np.zeros(picture.shape[:2], dtype=np.uint8)
    holes[8:13, 6:12] = 1
    flag = {"telea": cv2.INPAINT_TELEA, "navier-stokes": cv2.INPAINT_NS}[name]
    theirs = cv2.inpaint(np.where(holes[..., None], 0, picture).astype(np.uint8), holes, 5, flag)
    ours = run(name, picture / 255, np.broadcast_to(holes[..., None] == 0, picture.shape))
    assert np.abs(255 * ours.mean - theirs).max() < 3


@pytest.mark.parametrize("name", ["telea", "navier-stokes", "linear", "nearest", "biharmonic"])
def test_a_channel_without_any_observed_entry_is_refused(name):
    values, observed = np.ones((6, 6, 3)), np.ones((6, 6, 3), dtype=bool)
    observed[..., 1] = False
    with pytest.raises(
        InputError, match=rf"{name} needs at least one observed entry in every channel; try `method=datc`"
    ):
        run(name, values, observed)


# --- bad parameters, and the command line


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        ("fbcp", {"rank": 0}, "rank is 0; it must be from 1 to 1000"),
        ("fbcp", {"iterations": 0}, "iterations is 0; it must be from 1 to 1000000"),
        ("fbcp", {"tolerance": float("nan")}, "tolerance is nan; it must be at least 0 and below 1"),
        ("fbcp", {"starts": 0}, "starts is 0; it must be from 1 to 1000"),
        ("fbcp-mp", {"smoothing": -1.0}, "smoothing is -1; it must be from 0 to 1000"),
        ("brtf", {"rank": 1001}, "rank is 1001; it must be from 1 to 1000"),
        ("telea", {"radius": 0.0}, "radius is 0; it must be from 1 to 100"),
        ("telea", {"algorithm": "x"}, "algorithm 'x' is not one of telea, navier-stokes"),
        ("cp-masked", {"rank": 0}, "rank is 0; it must be from 1 to 1000"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(name, parameters, text):
    method = methods.get(name)
    if method.needs is not None:
        pytest.importorskip(method.needs, reason="the extra bench is not installed")
    with pytest.raises(ConfigError) as refused:
        method.configure(parameters)
    assert str(refused.value) == text


@pytest.mark.parametrize("name", (*BAYES, *FILLS))
def test_through_the_command_line(tdc, name):
    needed = methods.get(name).needs
    if needed is not None:
        pytest.importorskip(needed, reason="the extra bench is not installed")
    result = tdc(f"complete-image a.png -o b.png --method {name} --mask m.png --reference a.png --json")
    report = report_of(result)
    known = pixels("m.png") == 0
    assert np.array_equal(pixels("b.png")[known], pixels("a.png")[known])
    assert report["metrics"]["missing"]["psnr"] > 15
    assert (report["rank"] is not None) == (name in (*BAYES, "cp-masked"))
    assert (report["uncertainty"] is not None) == name.startswith("fbcp")


@pytest.mark.parametrize(("name", "needed"), [("telea", "cv2"), ("navier-stokes", "cv2"), ("cp-masked", "tensorly")])
def test_a_library_that_is_not_there_is_named_with_its_extra(tdc, monkeypatch, name, needed):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda wanted, *more: None if wanted == needed else find(wanted, *more)
    )
    result = tdc("complete-image", "a.png", "-o", "b.png", "--method", name, "--mask", "m.png")
    assert result.exit_code == 2
    assert (
        result.stderr
        == f"tdc: method {name} needs {needed}, which is not installed; try: pip install 'tdc-cli[bench]'\n"
    )
    assert not Path("b.png").exists()


def test_fbcp_defaults_are_those_of_its_authors():
    assert methods.get("fbcp-mp").configure({}) == fbcp_image.Config(
        rank=100, iterations=30, tolerance=1e-4, smoothing=1.0
    )
    assert (fbcp.start_rank(fbcp.Config(), 100_000), fbcp.start_rank(fbcp.Config(), 100_001)) == (30, 100)
