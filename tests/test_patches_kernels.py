"""The kernels of patch groups against their plain twins."""

import numba
import numpy as np
import pytest
import reference

from tdc_cli.patches import kernels, kernels_lanes

LANES = kernels_lanes.LANES


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def systems(rng, order, extra, height):
    """Random positive definite matrices with right sides, in the layout of the lanes; and the same as (LANES, ...) arrays."""
    roots = rng.standard_normal((LANES, order, order + 3))
    matrices = roots @ roots.transpose(0, 2, 1)
    sides = rng.standard_normal((LANES, extra, order))
    flat = np.zeros((order + 1, height, LANES), np.float32)
    flat[:order, :order] = matrices.transpose(2, 1, 0)
    flat[:order, order : order + extra] = sides.transpose(2, 1, 0)
    return flat.reshape(-1), matrices, sides


@pytest.mark.parametrize("order", [0, 4, 12, 44])
@pytest.mark.parametrize("extra", [1, 2, 7])
def test_lanes_factorise_and_substitute_back(rng, order, extra):
    height = (order + 8) | 1
    matrix, matrices, sides = systems(rng, order, extra, height)
    twin = matrix.astype(float)
    kernels_lanes.factorise(matrix, order, height, extra)
    reference.factorise(twin, order, height, extra)
    shape = (order + 1, height, LANES)
    lower = np.arange(height)[None, :] >= np.arange(order)[:, None]
    lower &= np.arange(height)[None, :] < order + extra
    np.testing.assert_allclose(matrix.reshape(shape)[:order][lower], twin.reshape(shape)[:order][lower], rtol=2e-3, atol=2e-3)
    kernels_lanes.substitute_back(matrix, order, height)
    reference.substitute_back(twin, order, height)
    got = matrix.reshape(shape)[order, :order].T
    np.testing.assert_allclose(got, twin.reshape(shape)[order, :order].T, rtol=5e-3, atol=5e-3)
    exact = [np.linalg.solve(a, b[0]) for a, b in zip(matrices, sides, strict=True)]
    np.testing.assert_allclose(got, exact, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("order", [0, 4, 12, 44])
def test_lanes_invert(rng, order):
    height = (2 * order + 5) | 1
    flat, matrices, _ = systems(rng, order, 1, height)
    matrix = np.zeros((order * (height + order + 1) + height) * LANES, np.float32)
    matrix[: flat.size] = flat
    matrix[: order * height * LANES].reshape(order, height, LANES)[:, order + 1 : 2 * order + 1] = np.eye(order)[..., None]
    twin = matrix.astype(float)
    kernels_lanes.factorise(matrix, order, height, order + 1)
    kernels_lanes.invert(matrix, order, height)
    cells = np.arange(order)[:, None] * order + np.arange(order) + order * height
    got = matrix.reshape(-1, LANES)[cells].transpose(2, 1, 0)  # (LANES, row, column)
    reference.factorise(twin, order, height, order + 1)
    below = np.tril_indices(order)
    for lane in range(LANES):
        np.testing.assert_allclose(got[lane][below], reference.invert(twin, order, height)[lane][below], rtol=5e-3, atol=5e-3)
        np.testing.assert_allclose(got[lane][below], -np.linalg.inv(matrices[lane])[below], rtol=5e-3, atol=5e-3)


def test_a_system_has_the_same_solution_in_any_lane_and_any_company(rng):
    order, height = 12, 17
    matrix, _, _ = systems(rng, order, 1, height)
    other, _, _ = systems(rng, order, 1, height)
    view, strange = matrix.reshape(-1, LANES), other.reshape(-1, LANES)
    strange[:, 11] = view[:, 2]
    for one in (matrix, other):
        kernels_lanes.factorise(one, order, height, 1)
        kernels_lanes.substitute_back(one, order, height)
    cells = order * height + np.arange(order)
    np.testing.assert_array_equal(view[cells, 2], strange[cells, 11])


@pytest.fixture(params=[0.4, 0.95], ids=["much missing", "little missing"])
def picture(rng, request):
    image = rng.random((3, 23, 19)).astype(np.float32)
    observed = rng.random(image.shape) < request.param
    observed[:, :7, :7] = False  # patches without any observed entry
    return image, np.where(observed, image + np.float32(0.1), np.float32(np.nan)), observed


def positions(image, size, stride=3):
    rows, columns = np.arange(0, image.shape[1] - size + 1, stride), np.arange(0, image.shape[2] - size + 1, stride)
    return (rows[:, None] * image.shape[2] + columns).ravel()


@pytest.mark.parametrize("contrast", [0.0, 0.5])
@pytest.mark.parametrize("window", [6, 40])
def test_match(picture, contrast, window):
    image = picture[0]
    where = positions(image, 5)
    found, twin = np.empty((2, len(where), 20), np.int32)
    kernels.match(image, where, 5, window, contrast, found)
    reference.match(image, where, 5, window, contrast, twin)
    np.testing.assert_array_equal(found, twin)
    np.testing.assert_array_equal(found[:, 0], where)


def test_match_breaks_ties_by_position():
    image = np.zeros((1, 12, 12), np.float32)
    where = np.array([5 * 12 + 5])
    found, twin = np.empty((2, 1, 9), np.int32)
    kernels.match(image, where, 4, 5, 0.0, found)
    reference.match(image, where, 4, 5, 0.0, twin)
    np.testing.assert_array_equal(found, twin)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("members", [7, 20])
@pytest.mark.parametrize("uncertain", [False, True])
def test_estimate(picture, rng, noise, members, uncertain):
    image, data, observed = picture
    where = positions(image, 4, 2)
    groups = np.empty((len(where), members), np.int32)
    kernels.match(image, where, 4, 9, 0.0, groups)
    shape = (*groups.shape, 3 * 16)
    taper = rng.random((48, 48)).astype(np.float32)
    taper = (taper @ taper.T) / np.sqrt(np.outer(np.sum(taper**2, axis=1), np.sum(taper**2, axis=1)))
    found, variances = np.empty((2, *shape), np.float32)
    twin, twin_variances = np.empty((2, *shape))
    kernels.estimate(image, data, observed, groups, 4, taper, np.float32(0.01), np.float32(noise), uncertain, found,
                     variances)  # fmt: skip
    reference.estimate(image, data, observed, groups, 4, taper, 0.01, noise, uncertain, twin, twin_variances)
    np.testing.assert_allclose(found, twin, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(variances, twin_variances, rtol=1e-2, atol=1e-4)
    again = np.empty(shape, np.float32)
    kernels.estimate(image, data, observed, groups, 4, taper, np.float32(0.01), np.float32(noise), uncertain, again,
                     np.empty((0, 0, 0), np.float32))  # fmt: skip
    np.testing.assert_allclose(again, found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("squared", [False, True])
def test_add_up(picture, rng, weighted, squared):
    image = picture[0]
    groups = rng.choice(positions(image, 4, 1), (9, 6)).astype(np.int32)
    patches = rng.standard_normal((9, 6, 48)).astype(np.float32)
    variances = rng.standard_normal(patches.shape if weighted else (0, 0, 0)).astype(np.float32)  # rounding can make some negative
    found, twin = (tuple(np.zeros(image.shape if wanted else (0, 0, 0)) for wanted in (True, True, squared)) for _ in range(2))
    kernels.add_up(groups, patches, variances, 4, np.float32(0.01), *found)
    reference.add_up(groups, patches, variances, 4, 0.01, *twin)
    for one, other in zip(found, twin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core only")
def test_same_bits_with_one_and_two_threads(picture, uncertain):
    image, data, observed = picture
    where = positions(image, 4, 1)
    taper = np.ones((48, 48), np.float32)
    results = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        try:
            groups = np.empty((len(where), 18), np.int32)
            kernels.match(image, where, 4, 8, 0.5, groups)
            estimates, variances = np.empty((2, *groups.shape, 48), np.float32)
            kernels.estimate(image, data, observed, groups, 4, taper, np.float32(0.01), np.float32(0.0), uncertain, estimates,
                             variances)  # fmt: skip
            total, weight, squares = np.zeros((3, *image.shape))
            kernels.add_up(groups, estimates, variances, 4, np.float32(0.01), total, weight, squares)
        finally:
            numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        results.append((groups, estimates, variances, total, weight, squares))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
