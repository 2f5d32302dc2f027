"""The Gaussian tensor with separable covariance: its likelihood, its posterior, and when it is chosen."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tdc_cli.errors import ConfigError
from tdc_cli.methods import datc
from tdc_cli.model import separable
from tdc_cli.tensor import cp_to_tensor

pytestmark = pytest.mark.usefixtures("one_thread")


def covariance(size, rng):
    """A random covariance whose slices are much alike."""
    root = rng.standard_normal((size, 2))
    return root @ root.T + 0.1 * np.eye(size)


def problem(shape=(3, 4, 7), length=60, seed=0, noise=0.05, missing=0.5):
    """Values of shape + (length,), which whole fibers are observed, z, and the covariances it was drawn with."""
    rng = np.random.default_rng(seed)
    covariances = [covariance(n, rng) for n in shape]
    joint = covariances[0]
    for one in covariances[1:]:
        joint = np.kron(joint, one)
    truth = rng.multivariate_normal(np.zeros(len(joint)), joint, length).T.reshape(*shape, length)
    hidden = rng.permutation(len(joint))[: round(missing * len(joint))]
    known = np.ones(len(joint), dtype=bool)
    known[hidden] = False
    observed = np.broadcast_to(known.reshape(*shape, 1), truth.shape).copy()
    return truth + noise * rng.standard_normal(truth.shape), observed, truth, covariances


def kron(matrices):
    joint = np.eye(1)
    for one in matrices:
        joint = np.kron(joint, one)
    return joint


def error(estimate, truth, observed):
    return np.linalg.norm((estimate - truth)[~observed]) / np.linalg.norm(truth[~observed])


def complete(values, observed, **parameters):
    config = datc.Config(**{"burn_in": 40, "samples": 20, "chains": 1, "rank": 8} | parameters)
    return datc.complete(np.where(observed, values, np.nan), observed, config, rng=np.random.default_rng(0))


def test_fibers_are_found_along_the_longest_mode_that_is_whole():
    observed = np.ones((4, 9, 10), dtype=bool)
    assert separable.fiber_mode(observed) is None  # nothing is missing
    observed[1, :, 2] = False
    assert separable.fiber_mode(observed) == 1
    observed[3] = False
    assert separable.fiber_mode(observed) == 1
    observed[0, 0, 0] = False
    assert separable.fiber_mode(observed) is None
    slabs = np.ones((4, 9, 10), dtype=bool)
    slabs[2] = False  # constant along both others
    assert separable.fiber_mode(slabs) == 2
    assert separable.fiber_mode(slabs[:, :, 0]) is None
    pixels = np.ones((30, 30, 3), dtype=bool)
    pixels[7, 9] = False
    assert separable.fiber_mode(pixels) is None  # three colours are too few draws
    spectra = np.ones((40, 40, 9), dtype=bool)
    spectra[7, 9] = False
    assert separable.fiber_mode(spectra) is None  # more fibers than a covariance of all of them could hold
    assert separable.fiber_mode(spectra[:20]) == 2


def test_the_deviance_is_that_of_the_gaussian_and_falls():
    values, observed, _, _ = problem()
    found = separable.fit(values, observed, 3)
    assert len(found.deviances) > 10 and np.all(np.diff(found.deviances) < 1e-9)
    known = observed[..., 0].ravel()
    fibers = values.reshape(len(known), -1)[known]
    law = kron(found.covariances)[np.ix_(known, known)] + found.noise_variance * np.eye(known.sum())
    density = multivariate_normal(np.zeros(len(fibers)), law).logpdf(fibers.T).sum()
    constant = known.sum() * np.log(2 * np.pi)
    assert found.deviances[-1] == pytest.approx(-2 * density / fibers.shape[1] - constant)


def test_the_result_is_the_conditional_law():
    values, observed, _, _ = problem()
    found = separable.fit(np.where(observed, values, np.nan), observed, 3)
    known = observed[..., 0].ravel()
    joint = kron(found.covariances)
    inverse = np.linalg.inv(joint[np.ix_(known, known)] + found.noise_variance * np.eye(known.sum()))
    gain = joint[:, known] @ inverse
    np.testing.assert_allclose(
        found.mean.reshape(len(known), -1), gain @ values.reshape(len(known), -1)[known], atol=1e-8
    )
    variance = np.diag(joint - gain @ joint[known]).reshape(*observed.shape[:3], 1)
    np.testing.assert_allclose(found.variance, np.broadcast_to(variance, observed.shape), atol=1e-8)


def test_the_order_of_the_modes_does_not_matter():
    values, observed, _, _ = problem()
    one = separable.fit(values, observed, 3)
    other = separable.fit(np.moveaxis(values, 3, 1), np.moveaxis(observed, 3, 1), 1)
    np.testing.assert_allclose(np.moveaxis(other.mean, 1, 3), one.mean, atol=1e-8)
    np.testing.assert_allclose(np.moveaxis(other.variance, 1, 3), one.variance, atol=1e-8)


def test_second_moments_that_are_separable_are_kept():
    rng = np.random.default_rng(1)
    truth = [covariance(n, rng) for n in (2, 3, 4)]
    found = [np.eye(n) for n in (2, 3, 4)]
    for _ in range(3):
        found = separable.maximised(found, kron(truth))
    np.testing.assert_allclose(kron(found), kron(truth), rtol=1e-3, atol=1e-4)


def test_nearly_as_good_as_with_the_covariances_known():
    values, observed, truth, covariances = problem(length=200)
    known = observed[..., 0].ravel()
    joint = kron(covariances)
    best = joint[:, known] @ np.linalg.solve(
        joint[np.ix_(known, known)] + 0.05**2 * np.eye(known.sum()), values.reshape(84, -1)[known]
    )
    floor = error(best.reshape(truth.shape), truth, observed)
    assert error(separable.fit(values, observed, 3).mean, truth, observed) < 1.25 * floor


def test_chosen_where_it_predicts_hidden_fibers_best_and_its_intervals_hold():
    values, observed, truth, _ = problem(length=100)
    done = complete(values, observed)
    assert done.parameters["residual"] == "separable"
    assert done.rank is None and done.noise_std == pytest.approx(0.05, rel=0.3)
    assert error(done.mean, truth, observed) < 0.8 * error(
        complete(values, observed, residual="none").mean, truth, observed
    )
    inside = np.abs(done.mean - values) <= 1.645 * done.interval_sd
    assert 0.85 < inside[~observed].mean() < 0.95


def test_not_chosen_where_few_components_explain_everything():
    rng = np.random.default_rng(2)
    truth = cp_to_tensor(np.ones(2), [rng.standard_normal((n, 2)) for n in (8, 9, 20)])
    observed = np.broadcast_to(rng.random((8, 9, 1)) > 0.4, truth.shape)
    done = complete(truth + 0.01 * rng.standard_normal(truth.shape), observed)
    assert set(done.parameters["held_out_rmse"]) == {"none", "mixture", "separable"}
    assert done.parameters["residual"] != "separable" and error(done.mean, truth, observed) < 0.05


def test_whole_fibers_are_held_out_where_whole_fibers_are_missing():
    from tdc_cli.tensor import Observed

    values, observed, _, _ = problem()
    held = datc.held_out(Observed.of(values, observed), 3, np.random.default_rng(0))
    hidden = np.zeros(observed.shape, dtype=bool)
    hidden[observed] = held
    assert (hidden == hidden[..., :1]).all() and hidden[..., 0].sum() == round(0.1 * observed[..., 0].sum())


@pytest.mark.parametrize("scale, offset", [(1e6, 0.0), (1e-6, 0.0), (-3.0, 2.0)])
def test_equivariant_to_scale_and_offset(scale, offset):
    values, observed, _, _ = problem(length=20)
    one, other = (complete(v, observed, residual="separable") for v in (values, scale * values + offset))
    np.testing.assert_allclose((other.mean - offset) / scale, one.mean, atol=1e-6)
    np.testing.assert_allclose(other.sd / abs(scale), one.sd, rtol=1e-3)


def test_constant_and_noise_free_tensors():
    observed = np.broadcast_to(np.arange(12).reshape(3, 4, 1) % 3 > 0, (3, 4, 9))
    flat = complete(np.full(observed.shape, 3.5), observed, residual="separable")
    np.testing.assert_allclose(flat.mean, 3.5)
    alike = complete(np.broadcast_to(np.sin(np.arange(9.0)), observed.shape), observed, residual="separable")
    np.testing.assert_allclose(alike.mean, np.broadcast_to(np.sin(np.arange(9.0)), observed.shape), atol=0.02)


def test_refused_where_no_whole_fibers_are_missing():
    values, observed, _, _ = problem()
    observed[0, 0, 0, 0] ^= True
    with pytest.raises(ConfigError, match="whole fibers"):
        complete(values, observed, residual="separable")
