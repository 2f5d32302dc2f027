"""The coloured Gaussian field, against dense Gaussian algebra and through the command line."""

import gc
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.fft
from conftest import ROOT, smooth
from scipy.ndimage import gaussian_filter
from scipy.sparse.linalg import splu

from tdc_cli import field, methods
from tdc_cli.errors import ConfigError, InputError
from tdc_cli.field import factored, learner, pieces, spectrum
from tdc_cli.field import window as windows
from tdc_cli.field.solve import channel_groups
from tdc_cli.methods.solve import solve
from tdc_cli.run import threads

COVARIANCE = np.array([[1.0, 0.8, 0.5], [0.8, 1.0, 0.7], [0.5, 0.7, 1.3]])


@pytest.fixture
def exact(monkeypatch):
    """Conjugate gradients to the end, and no averaging of variances over neighbours."""
    for name in ("TOLERANCE", "SAMPLE_TOLERANCE"):
        monkeypatch.setattr(pieces, name, 1e-9)
    monkeypatch.setattr(windows, "VARIANCE_BLUR", 1e-3)


def rough(height=9, width=8, channels=3, share=0.5, together=False):
    """Values that are smooth as a random walk is, NaN where not observed, and which are observed; of whole pixels where
    channels are observed `together`.
    """
    rng = np.random.default_rng(4)
    values = rng.normal(size=(height, width, channels)).cumsum(axis=0).cumsum(axis=1)
    observed = rng.random(values.shape) > share
    if together:
        observed[:] = observed[..., :1]
    return np.where(observed, values, np.nan), observed


def laplacian(n):
    """Of a line of n pixels with free ends."""
    return np.diag(np.r_[1, np.full(n - 2, 2), 1]) - np.eye(n, k=1) - np.eye(n, k=-1)


def density(eigenvalues, exponent=spectrum.EXPONENT):
    """Eigenvalues of the field's precision from those of the Laplacian."""
    return (eigenvalues + spectrum.DELTA) * (eigenvalues + spectrum.EPSILON) ** (exponent - 1)


def drawn_from_the_prior(side, rng):
    """A square of the field with `COVARIANCE`, (side, side, 3)."""
    line = 2 - 2 * np.cos(np.pi * np.arange(side) / side)
    normals = rng.standard_normal((3, side, side)) / np.sqrt(density(line[:, None] + line))
    mixed = np.einsum("ij,jhw->ihw", np.linalg.cholesky(COVARIANCE), normals)
    return np.moveaxis(scipy.fft.idctn(mixed, axes=(1, 2), norm="ortho"), 0, 2)


def dense(values, observed, covariance, noise, offset, exponent=spectrum.EXPONENT):
    """Posterior mean and covariance matrix by dense algebra, (n,) and (n, n) in C order; 0 rows where known exactly."""
    height, width, _ = values.shape
    grid = np.kron(laplacian(height), np.eye(width)) + np.kron(np.eye(height), laplacian(width))
    eigenvalues, vectors = np.linalg.eigh(grid)
    precision = np.kron((vectors * density(eigenvalues, exponent)) @ vectors.T, np.linalg.inv(covariance))
    seen = observed.ravel()
    data = np.where(observed, values - offset, 0).ravel()
    if noise:
        posterior = np.linalg.inv(precision + np.diag(seen / noise))
        return offset + (posterior @ (data / noise)).reshape(values.shape), posterior
    posterior = np.zeros_like(precision)
    posterior[np.ix_(~seen, ~seen)] = np.linalg.inv(precision[np.ix_(~seen, ~seen)])
    return offset + (data - posterior @ precision @ data).reshape(values.shape), posterior


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.05, 20.0])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_mean_is_that_of_dense_algebra(exact, noise, channels):
    values, observed = rough(channels=channels)
    covariance = COVARIANCE[:channels, :channels]
    fitted = field.solve(values, observed, noise, channel_covariance=covariance)
    wanted, _ = dense(values, observed, covariance, noise, fitted.offset)
    assert np.allclose(fitted.mean, wanted, rtol=0, atol=1e-6)
    assert np.allclose(fitted.channel_covariance, covariance) and fitted.noise_variance == pytest.approx(noise)
    assert noise or np.array_equal(fitted.mean[observed], values[observed])


@pytest.mark.parametrize("most", [0, factored.MOST_MISSING])
@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0])
def test_whole_pixels_have_the_mean_of_dense_algebra(exact, monkeypatch, exponent, most):
    """By a factor and, where many are missing or p is not a whole number, by iterations."""
    monkeypatch.setattr(factored, "MOST_MISSING", most)
    values, observed = rough(together=True)
    fitted = field.solve(values, observed, channel_covariance=COVARIANCE, exponent=exponent)
    wanted, _ = dense(values, observed, COVARIANCE, 0, fitted.offset, exponent)
    assert np.allclose(fitted.mean, wanted, rtol=0, atol=1e-6)


def test_one_factor_serves_learning_samples_groups_of_channels_and_frames(monkeypatch):
    made = []
    monkeypatch.setattr(factored, "splu", lambda *given, **how: made.append(given) or splu(*given, **how))
    values, observed = rough(channels=10, together=True)
    factors = field.Factors()
    for _ in range(2):
        field.solve_with_sd(values, observed, rng=np.random.default_rng(0), count=4, factors=factors)
    assert len(made) == 1


@pytest.mark.parametrize("divided", [False, True])
def test_a_factor_is_dropped_by_the_thread_that_made_it(request, monkeypatch, divided):
    """Else SciPy never gives its memory back."""
    by_its_own = []

    class Factor:
        def __init__(self, *given, **how):
            self.factor, self.thread = splu(*given, **how), threading.get_ident()

        def solve(self, right):
            return self.factor.solve(right)

        def __del__(self):
            by_its_own.append(threading.get_ident() == self.thread)

    monkeypatch.setattr(factored, "splu", Factor)
    if divided:
        request.getfixturevalue("small_windows")
    values, observed = smooth(100, 120) / 255, np.ones((100, 120, 3), bool)
    observed[30:34] = observed[70:74] = False

    def run():
        with scipy.fft.set_workers(2):
            field.solve_with_sd(values, observed, rng=np.random.default_rng(0), count=4)

    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run).result()
    gc.collect()
    assert len(by_its_own) >= (4 if divided else 2) and all(by_its_own)


@pytest.mark.parametrize("noise", [0.0, 0.05, 1.0])
def test_deviations_have_the_covariance_of_dense_algebra(exact, noise):
    """A sample is linear in its random numbers: those of a basis, one after the other, give its covariance without any
    chance.
    """
    values, observed = rough(5, 4, 2)
    covariance = COVARIANCE[:2, :2]
    wanted = dense(values, observed, covariance, noise, np.zeros(2))[1]
    planes = np.moveaxis(np.nan_to_num(values), 2, 0), np.moveaxis(observed, 2, 0)
    window = windows.Window(*planes, field.EXPONENT)
    window.set_parameters(covariance, noise)
    start = np.zeros_like(planes[0])
    outer, squares = np.zeros_like(wanted), 0
    for unit in np.eye(2 * start.size).reshape(-1, 2, *start.shape):
        x, conditional = window.deviation(unit, start, 1e-9)
        squares = squares + conditional**2
        flat = np.moveaxis(x, 0, 2).ravel()
        outer += np.outer(flat, flat)
    assert np.allclose(outer, wanted, rtol=0, atol=1e-6 * wanted.max())
    variance = np.moveaxis(window.variance(squares), 0, 2).ravel()
    assert np.allclose(variance, np.diag(wanted), rtol=1e-5)


def test_deviations_of_whole_pixels_have_the_covariance_of_dense_algebra(exact):
    """As above; the conditional means are those of channels that are independent and alike."""
    values, observed = rough(6, 5, 2, together=True)
    covariance = COVARIANCE[:2, :2]
    wanted = dense(values, observed, covariance, 0, np.zeros(2))[1]
    planes = np.moveaxis(np.nan_to_num(values), 2, 0), np.moveaxis(observed, 2, 0)
    window = factored.window(*planes, field.EXPONENT, 1, 0.0, factored.Factors())
    assert isinstance(window, factored.Factored)
    window.set_parameters(covariance, 0.0)
    outer, squares = np.zeros_like(wanted), 0
    for unit in np.eye(values.size).reshape(-1, *planes[0].shape):
        x, conditional = window.deviation((unit,), None, None)
        squares = squares + conditional**2
        flat = np.moveaxis(x, 0, 2).ravel()
        outer += np.outer(flat, flat)
    assert np.allclose(outer, wanted, rtol=0, atol=1e-9 * wanted.max())
    assert np.allclose(np.moveaxis(window.variance(squares), 0, 2).ravel(), np.diag(wanted), rtol=1e-5)


def test_whole_pixels_are_solved_without_learning_too(exact):
    values, observed = rough(together=True)
    fitted = field.solve(values, observed, steps=0)
    assert np.allclose(fitted.mean, dense(values, observed, np.eye(3), 0, fitted.offset)[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("noise, together", [(0.0, False), (0.05, False), (0.0, True)])
def test_samples_scatter_about_the_mean(noise, together):
    values, observed = rough(5, 4, 2, together=together)
    fitted = field.solve(values, observed, noise, channel_covariance=COVARIANCE[:2, :2])
    drawn = np.array(list(field.sample(fitted, values, observed, 300, np.random.default_rng(2))))
    wanted = np.diag(dense(values, observed, COVARIANCE[:2, :2], noise, fitted.offset)[1]).reshape(values.shape)
    unknown = wanted > 0
    assert np.allclose(drawn.var(axis=0)[unknown] / wanted[unknown], 1, atol=0.35)
    assert (np.abs(drawn.mean(axis=0) - fitted.mean)[unknown] < 4 * np.sqrt(wanted[unknown] / 300)).all()
    assert noise or np.array_equal(drawn[0][observed], values[observed])


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_variance_is_that_of_dense_algebra(exact, noise):
    values, observed = rough(5, 4, 2)
    fitted, sd = field.solve_with_sd(values, observed, noise, rng=np.random.default_rng(0), count=1000, steps=0)
    wanted = np.diag(dense(values, observed, fitted.channel_covariance, noise, fitted.offset)[1]).reshape(values.shape)
    unknown = wanted > 0
    assert np.array_equal(sd > 0, unknown)
    assert np.allclose(sd[unknown] ** 2 / wanted[unknown], 1, atol=0.15)


def test_sd_of_few_samples_is_near_that_of_many():
    values, observed = rough(40, 40)
    few, many = (field.solve_with_sd(values, observed, rng=np.random.default_rng(n), count=n)[1] for n in (8, 400))
    ratio = few[~observed] / many[~observed]
    assert ratio.mean() == pytest.approx(1, abs=0.03) and ratio.std() < 0.12


def test_the_channel_covariance_is_learnt():
    """From a draw of the prior with half of its entries missing; the wrong start is far off."""
    rng = np.random.default_rng(0)
    drawn = drawn_from_the_prior(96, rng)
    observed = rng.random(drawn.shape) > 0.5
    fitted = field.solve(np.where(observed, drawn, np.nan), observed)
    assert np.allclose(fitted.channel_covariance, COVARIANCE, atol=0.06)


def test_channels_that_are_observed_together_have_their_likeliest_covariance(monkeypatch):
    """At once: ``y^T K y / n`` by dense algebra, K the precision of what is observed of one channel."""
    monkeypatch.setattr(learner, "LEARNING_TOLERANCE", 1e-9)
    values, _ = rough()
    observed = np.random.default_rng(0).random(values.shape[:2]) > 0.5
    values = np.where(observed[..., None], np.random.default_rng(1).normal(size=values.shape), np.nan)
    fitted = field.solve(values, np.repeat(observed[..., None], 3, axis=2))
    y = (values - fitted.offset)[observed]
    grid = np.kron(laplacian(9), np.eye(8)) + np.kron(np.eye(9), laplacian(8))
    eigenvalues, vectors = np.linalg.eigh(grid)
    variance = (vectors / density(eigenvalues)) @ vectors.T
    seen = observed.ravel()
    likeliest = y.T @ np.linalg.solve(variance[np.ix_(seen, seen)], y) / len(y)
    assert np.allclose(fitted.channel_covariance, likeliest, rtol=1e-3, atol=1e-3 * np.trace(likeliest))


def test_an_extrapolation_leaves_the_covariance_of_equal_channels_invertible():
    values = np.repeat(smooth(16, 16, 0)[..., None] / 255.0, 3, axis=2)
    observed = np.random.default_rng(0).random(values.shape) > 0.5
    group = pieces.Group(values, observed, ~observed, np.zeros(3), 1.0, field.EXPONENT, field.Factors())
    learning = learner.Learner(group.learning_windows(None), np.eye(3), None, np.random.default_rng(0))
    learning.parameters = learning._pack(np.diag([1e-30, 1e-20, 3.0]), 0.01)
    assert np.allclose(np.linalg.eigvalsh(learning.unpacked()[0]), [learner.RIDGE, learner.RIDGE, 3.0])


def test_correlated_channels_fill_each_other():
    grey = np.random.default_rng(0).normal(size=(32, 32, 1)).cumsum(axis=0).cumsum(axis=1)
    values = grey * [1.0, 0.5, 2.0] + [0.0, 3.0, 10.0]
    observed = np.random.default_rng(1).random(values.shape) > 0.6
    together = field.solve(np.where(observed, values, np.nan), observed)
    apart = field.solve(np.where(observed, values, np.nan), observed, channel_covariance=np.diag([1.0, 0.25, 4.0]))
    errors = [np.sqrt(np.mean((f.mean - values)[~observed] ** 2)) for f in (together, apart)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("noise", [0.0, 0.01, None])
def test_scale_and_offset_carry_over(noise):
    values, observed = rough(20, 18)
    one, sd = field.solve_with_sd(values, observed, noise, rng=np.random.default_rng(0), count=4)
    scaled_noise = noise and noise * 1e6
    other, scaled = field.solve_with_sd(
        values * 1000 + 50, observed, scaled_noise, rng=np.random.default_rng(0), count=4
    )
    spread = np.nanstd(values)
    assert np.allclose(other.mean, one.mean * 1000 + 50, rtol=0, atol=1e-4 * spread * 1000)
    assert np.allclose(other.channel_covariance, one.channel_covariance * 1e6, rtol=1e-4)
    assert other.noise_variance == pytest.approx(one.noise_variance * 1e6, rel=1e-4)
    assert np.allclose(scaled, sd * 1e3, rtol=1e-3, atol=1e-4 * scaled.max())


def test_noise_is_taken_out_and_learnt():
    clean = smooth(64, 64) / 255.0
    rng = np.random.default_rng(0)
    noisy = clean + 0.05 * rng.standard_normal(clean.shape)
    observed = rng.random(clean.shape) > 0.3
    values = np.where(observed, noisy, np.nan)
    given, learnt = field.solve(values, observed, 0.05**2), field.solve(values, observed, None)
    assert np.sqrt(learnt.noise_variance) == pytest.approx(0.05, rel=0.15)
    for fitted in (given, learnt):
        assert np.sqrt(np.mean((fitted.mean - clean) ** 2)) < 0.025  # half of the noise


def test_a_channel_without_observed_entries_follows_the_others():
    truth = np.random.default_rng(0).normal(size=(20, 20, 1)).cumsum(axis=0).cumsum(axis=1) * [1.0, 1.0, 1.1]
    observed = np.random.default_rng(1).random(truth.shape) > 0.5
    observed[..., 1] = False
    values = np.where(observed, truth, np.nan)
    fitted, sd = field.solve_with_sd(values, observed, rng=np.random.default_rng(0), count=4)
    assert np.isfinite(fitted.mean).all() and np.isfinite(sd).all()
    assert sd[..., 1].mean() > sd[..., 0].mean()
    assert np.corrcoef(fitted.mean[..., 1].ravel(), truth[..., 1].ravel())[0, 1] > 0.8


@pytest.mark.parametrize("scale", [1e-290, 1e-30, 1e30, 1e290])
def test_values_of_any_size_are_completed(scale):
    values, observed = rough(16, 16)
    method = methods.get("field")
    one, other = (
        solve(method, method.configure({}), v, observed, rng=np.random.default_rng(0)) for v in (values, values * scale)
    )
    assert np.allclose(other.mean / scale, one.mean, rtol=1e-4) and np.allclose(other.sd / scale, one.sd, rtol=1e-4)


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_a_constant_picture_is_completed_by_its_constant(value):
    observed = np.random.default_rng(0).random((12, 12, 3)) > 0.7
    fitted, sd = field.solve_with_sd(np.where(observed, value, np.nan), observed, rng=np.random.default_rng(0), count=4)
    assert fitted.mean == pytest.approx(value, abs=1e-6) and (sd < 1e-4).all()


def test_one_observed_entry_is_enough():
    values, observed = np.full((8, 9, 3), np.nan), np.zeros((8, 9, 3), dtype=bool)
    values[4, 4, 1], observed[4, 4, 1] = 0.3, True
    assert np.isfinite(field.solve(values, observed).mean).all()


def test_many_channels_go_in_groups():
    """Twenty channels in three groups: each filled from its neighbours in the group."""
    walk = np.random.default_rng(1).normal(size=(24, 24, 1)).cumsum(axis=0).cumsum(axis=1)
    values = np.repeat(walk, 20, axis=2)
    values += 0.01 * np.random.default_rng(0).normal(size=values.shape)
    observed = np.random.default_rng(2).random(values.shape) > 0.5
    fitted = field.solve(np.where(observed, values, np.nan), observed)
    assert np.std((fitted.mean - values)[~observed]) < 0.1 * np.std(values)
    assert channel_groups(20) == [slice(0, 7), slice(7, 13), slice(13, 20)]
    assert (fitted.channel_covariance[:7, 7:] == 0).all() and (fitted.channel_covariance[:7, :7] > 0).all()


# -- windows
# ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_windows(monkeypatch):
    """Windows of 32 pixels with margins of 16, above 48 x 48 pixels."""
    for name, value in {"WHOLE": 48 * 48, "CORE": 32, "MARGIN": 16, "REACH": 12}.items():
        monkeypatch.setattr(pieces, name, value)


def test_windows_cover_every_pixel_once(small_windows):
    count = np.zeros((100, 131), dtype=int)
    for rows, columns, core_rows, core_columns in pieces.windows(count.shape):
        count[core_rows, core_columns] += 1
        assert rows.start <= core_rows.start and core_rows.stop <= rows.stop <= 100
        assert columns.start <= core_columns.start and core_columns.stop <= columns.stop <= 131
        assert (rows.stop - rows.start, columns.stop - columns.start) == (64, 64)
    assert (count == 1).all()


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_windows_agree_with_the_whole(monkeypatch, request, noise):
    truth = smooth(100, 120) / 255 + 0.02 * np.random.default_rng(1).standard_normal((100, 120, 3))
    observed = np.random.default_rng(0).random(truth.shape) > 0.6
    values = np.where(observed, truth, np.nan)
    monkeypatch.setattr(pieces, "TOLERANCE", 1e-5)
    covariance = field.solve(values, observed, noise).channel_covariance
    whole = field.solve(values, observed, noise, channel_covariance=covariance).mean
    request.getfixturevalue("small_windows")
    divided = field.solve(values, observed, noise, channel_covariance=covariance).mean
    assert not np.array_equal(whole, divided)
    assert np.abs(whole - divided).max() < 2e-3 and np.sqrt(np.mean((whole - divided) ** 2)) < 1e-4
    learnt = field.solve(values, observed, noise).channel_covariance  # from some windows only
    assert np.allclose(learnt, covariance, rtol=0, atol=0.2 * covariance.max())


def test_only_windows_with_something_missing_are_worked_on(small_windows, monkeypatch):
    values, observed = smooth(128, 128) / 255, np.ones((128, 128, 3), dtype=bool)
    observed[70:74, 70:74] = False
    told = []
    fitted = field.solve(values, observed, monitor=lambda done, total, label: told.append((done, total, label)))
    assert (
        next(line for line in told if line[2] == "picture")[1] == told[-1][1] == field.STEPS + 1
    )  # one window, not sixteen
    assert np.array_equal(fitted.mean[observed], values[observed])
    assert np.abs(fitted.mean - values).max() < 0.02


def test_the_inside_of_a_large_hole_comes_from_a_coarser_grid(small_windows):
    values, observed = smooth(120, 120) / 255, np.ones((120, 120, 3), dtype=bool)
    observed[20:100, 20:100] = False
    fitted, sd = field.solve_with_sd(
        np.where(observed, values, np.nan), observed, rng=np.random.default_rng(0), count=8
    )
    group = pieces.Group(values, observed, ~observed, fitted.offset, 1.0, field.EXPONENT, field.Factors())
    assert group.deep()[60, 60] and not group.deep()[25, 60]
    # No step where the two grids meet: within the hole neighbours differ by less than in the picture itself.
    inside = fitted.mean[24:96, 24:96]
    assert max(np.abs(np.diff(inside, axis=a)).max() for a in (0, 1)) < np.abs(np.diff(values, axis=0)).max()
    middle = sd[:, 60].mean(axis=1)
    assert middle[22] < middle[28] < middle[40] and middle[60] > middle[28]
    drawn = next(field.sample(fitted, np.where(observed, values, np.nan), observed, 1, np.random.default_rng(1)))
    assert np.array_equal(drawn[observed], values[observed]) and np.std((drawn - fitted.mean)[40:80, 40:80]) > 0


# -- bits
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("pieces", [False, True])
def test_the_same_bits_with_any_number_of_threads(request, pieces, together):
    if pieces:
        request.getfixturevalue("small_windows")
    truth = smooth(90, 70) / 255
    observed = np.random.default_rng(0).random(truth.shape) > 0.7
    observed[20:60, 20:60] = False
    if together:
        observed[:] = observed[..., :1]
    results = []
    for count in (1, 2, 3):
        with threads.limited(count):
            assert scipy.fft.get_workers() == count
            results.append(
                field.solve_with_sd(np.where(observed, truth, np.nan), observed, rng=np.random.default_rng(0), count=3)
            )
    for fitted, sd in results[1:]:
        assert np.array_equal(fitted.mean, results[0][0].mean) and np.array_equal(sd, results[0][1])


# -- the method
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(14, 12), (14, 12, 3), (10, 9, 3, 2), (6, 7, 2, 2, 2)])
def test_every_order_is_taken(shape):
    values = np.random.default_rng(0).normal(size=shape).cumsum(axis=0).cumsum(axis=1)
    observed = np.random.default_rng(1).random(shape) > 0.4
    method = methods.get("field")
    done = method.load().complete(
        np.where(observed, values, np.nan), observed, method.configure({}), rng=np.random.default_rng(0)
    )
    assert done.mean.shape == done.sd.shape == shape
    assert (
        np.array_equal(done.mean[observed], values[observed])
        and (done.sd[~observed] > 0).all()
        and (done.sd[observed] == 0).all()
    )


def test_intervals_hold_what_they_promise():
    """On a draw of the prior: 90 % of the missing entries within 1.645 standard deviations, with noise and without."""
    rng = np.random.default_rng(0)
    truth = drawn_from_the_prior(128, rng)
    observed = rng.random(truth.shape) > 0.6
    noise = 0.35 * rng.standard_normal(truth.shape)  # 1.6 times what an entry differs by from what its neighbours say
    method = methods.get("field")
    for level in (0.0, 0.35):
        values = truth + noise * (level > 0)
        config = method.configure({"noise_std": level})
        done = method.load().complete(
            np.where(observed, values, np.nan), observed, config, rng=np.random.default_rng(0)
        )
        latent = np.abs(done.mean - truth)[~observed] < 1.645 * done.sd[~observed]
        noisy = np.abs(done.mean - values)[~observed] < 1.645 * done.predictive_sd[~observed]
        assert latent.mean() == pytest.approx(0.9, abs=0.015) and noisy.mean() == pytest.approx(0.9, abs=0.015)


@pytest.mark.parametrize(
    "parameters, line",
    [
        ({"exponent": "0.1"}, "exponent is 0.1; it must be from 0.5 to 4"),
        ({"exponent": "nan"}, "exponent is nan; it must be from 0.5 to 4"),
        ({"steps": "-1"}, "steps is -1; it must be from 0 to 1000"),
        ({"samples": "0"}, "samples is 0; it must be from 1 to 10000"),
        ({"noise_std": "-1"}, "noise_std is -1; it must be 0 or more and finite"),
        ({"noise_std": "some"}, "noise_std 'some' is neither a number nor auto"),
    ],
)
def test_bad_parameters_are_refused(parameters, line):
    with pytest.raises(ConfigError) as caught:
        methods.get("field").configure(parameters)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    "bad, line", [("nothing", "no entry is observed"), ("nan", "1 observed entries are NaN or infinite")]
)
def test_bad_data_are_refused(bad, line):
    values, observed = rough()
    if bad == "nothing":
        observed[:] = False
    else:
        values[tuple(np.argwhere(observed)[0])] = np.inf
    with pytest.raises(InputError, match=line):
        solve(methods.get("field"), methods.get("field").configure({}), values, observed, rng=np.random.default_rng(0))


def test_through_the_command_line(tdc, tmp_path):
    """Better than biharmonic inpainting by more than a decibel where entries are missing, known ones as they were."""
    report = {}
    for method in ("field", "biharmonic"):
        result = tdc(
            "complete-image",
            ROOT / "sample_data" / "chelsea.png",
            "-o",
            tmp_path / f"{method}.png",
            "--method",
            method,
            "--missing-ratio",
            "0.5",
            "--report",
            f"{method}.json",
        )
        assert result.exit_code == 0, result.stderr
        report[method] = json.loads((tmp_path / f"{method}.json").read_text())
    psnr = {method: r["metrics"]["missing"]["psnr"] for method, r in report.items()}
    assert psnr["field"] > psnr["biharmonic"] + 1


def test_uncertainty_and_denoising_through_the_command_line(tdc, tmp_path):
    common = (
        "complete-image",
        "a.png",
        "--method",
        "field",
        "--missing-ratio",
        "0.4",
        "--add-noise",
        "0.1",
        "--noise-std",
        "auto",
    )
    result = tdc(*common, "-o", "b.png", "--uncertainty", "u.npy", "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["noise_std"] == pytest.approx(0.1, rel=0.3)
    assert (np.load(tmp_path / "u.npy") > 0).all()


def test_the_standard_deviation_is_that_of_held_out_entries():
    """Single bright pixels make the field think that the picture is rough; what is missing is told well."""
    rng = np.random.default_rng(0)
    truth = smooth(96, 96) / 255
    values, observed = truth.copy(), np.ones(truth.shape, bool)
    values[rng.random(truth.shape[:2]) < 0.01] = 1.0
    observed[rng.random(truth.shape[:2]) < 0.05] = False
    method = methods.get("field")
    given = np.where(observed, values, np.nan), observed, method.configure({})
    done = method.load().complete(*given, rng=np.random.default_rng(0))
    own = field.solve_with_sd(np.where(observed, values, np.nan), observed, rng=np.random.default_rng(0), count=8)[1]
    inside = np.mean(np.abs(done.mean - truth)[~observed] <= 1.645 * done.sd[~observed])
    assert 0.85 < inside < 0.96 and done.sd[~observed].mean() < 0.7 * own[~observed].mean()
    assert done.held_out["count"] > 1000


@pytest.mark.parametrize("noise", ["0", "auto"])
def test_the_uncertainty_beneath_cosmic_rays_is_that_of_their_errors(tdc, noise):
    """A sky of 100 with noise of 5 beneath stars a hundred times as bright: the field takes stars for roughness."""
    rng = np.random.default_rng(0)
    sky = np.zeros((128, 128))
    sky[tuple(rng.integers(0, 128, (2, 24)))] = 10 ** rng.uniform(3, 5, 24)
    sky = 100 + gaussian_filter(sky, 1.3) + rng.normal(0, 5, sky.shape)
    rays = np.zeros(sky.shape, bool)
    for row, column in rng.integers(0, 120, (60, 2)):
        rays[row + np.arange(7), column + np.arange(7) // 2] = True
    np.save("sky.npy", sky + rays * rng.uniform(300, 20_000, sky.shape))
    np.save("rays.npy", rays)
    how = ["complete-image", "sky.npy", "-o", "b.npy", "--mask", "rays.npy", "--method", "field"]
    result = tdc(*how, "--noise-std", noise, "--uncertainty", "sd.npy")
    assert result.exit_code == 0, result.stderr
    errors, sd = np.abs(np.load("b.npy") - sky)[rays], np.load("sd.npy")[rays]
    assert 0.84 < np.mean(errors <= 1.645 * sd) < 0.96
    assert np.median(sd) == pytest.approx(1.48 * np.median(errors), rel=0.25)
