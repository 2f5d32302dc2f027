"""The kernels of patch groups against their plain twins."""

import numba
import numpy as np
import pytest
import reference

from tdc_cli import library_threads
from tdc_cli.patches import kernels, kernels_dense, kernels_lanes, kernels_match, kernels_motion, kernels_shrink, refine

LANES = kernels_lanes.LANES
NO_LEAST = np.float32(0.0)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def systems(rng, order, extra, height):
    """Random positive definite matrices with right sides, in the layout of the lanes; and the same as (LANES, ...)
    arrays.
    """
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
    kernels_lanes.factorise(matrix, order, height, extra, NO_LEAST, False)
    reference.factorise(twin, order, height, extra)
    shape = (order + 1, height, LANES)
    lower = np.arange(height)[None, :] >= np.arange(order)[:, None]
    lower &= np.arange(height)[None, :] < order + extra
    np.testing.assert_allclose(
        matrix.reshape(shape)[:order][lower], twin.reshape(shape)[:order][lower], rtol=2e-3, atol=2e-3
    )
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
    matrix[: order * height * LANES].reshape(order, height, LANES)[:, order + 1 : 2 * order + 1] = np.eye(order)[
        ..., None
    ]
    twin = matrix.astype(float)
    kernels_lanes.factorise(matrix, order, height, order + 1, NO_LEAST, True)
    kernels_lanes.invert_lanes(matrix, order, height)
    cells = np.arange(order)[:, None] * order + np.arange(order) + order * height
    got = matrix.reshape(-1, LANES)[cells].transpose(2, 1, 0)  # (LANES, row, column)
    reference.factorise(twin, order, height, order + 1)
    below = np.tril_indices(order)
    for lane in range(LANES):
        np.testing.assert_allclose(
            got[lane][below], reference.invert_lanes(twin, order, height)[lane][below], rtol=5e-3, atol=5e-3
        )
        np.testing.assert_allclose(got[lane][below], -np.linalg.inv(matrices[lane])[below], rtol=5e-3, atol=5e-3)


def test_a_system_has_the_same_solution_in_any_lane_and_any_company(rng):
    order, height = 12, 17
    matrix, _, _ = systems(rng, order, 1, height)
    other, _, _ = systems(rng, order, 1, height)
    view, strange = matrix.reshape(-1, LANES), other.reshape(-1, LANES)
    strange[:, 11] = view[:, 2]
    for one in (matrix, other):
        kernels_lanes.factorise(one, order, height, 1, NO_LEAST, False)
        kernels_lanes.substitute_back(one, order, height)
    cells = order * height + np.arange(order)
    np.testing.assert_array_equal(view[cells, 2], strange[cells, 11])


@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_a_row_whose_pivot_is_too_small_is_left_out(rng, least):
    """The sixth row is the third, but for what float32 forgets or, above, a pivot of 5e-4."""
    order, height = 8, 13
    matrix, matrices, sides = systems(rng, order, 1, height)
    matrices[:, 5], matrices[:, :, 5] = matrices[:, 2], matrices[:, :, 2]
    matrices[:, 5, 5] = matrices[:, 2, 2] + least / 2 - 1e-4 * (least == 0)
    matrix.reshape(order + 1, height, LANES)[:order, :order] = matrices.transpose(2, 1, 0)
    kernels_lanes.factorise(matrix, order, height, 1, np.float32(least), False)
    kernels_lanes.substitute_back(matrix, order, height)
    got = matrix.reshape(order + 1, height, LANES)[order, :order].T
    kept = np.arange(order) != 5
    exact = [np.linalg.solve(a[np.ix_(kept, kept)], b[0, kept]) for a, b in zip(matrices, sides, strict=True)]
    np.testing.assert_allclose(got[:, kept], exact, rtol=5e-3, atol=5e-3)
    assert not got[:, 5].any()


@pytest.mark.parametrize("width", [16, 32, 48, 112])  # one vector, whole pairs of vectors, and one left over
def test_dense_matrices(rng, width):
    patches = rng.standard_normal((40, width)).astype(np.float32)
    covariance, twin = np.zeros((width, width), np.float32), np.zeros((width, width))
    kernels_dense.gram(patches, covariance)
    reference.gram(patches.astype(float), twin)
    np.testing.assert_allclose(np.triu(covariance), np.triu(twin), rtol=1e-5, atol=1e-4)
    covariance += 40 * np.eye(width, dtype=np.float32)
    twin[:] = covariance
    kernels_dense.invert(covariance, np.full_like(covariance, np.nan))
    reference.invert(twin, None)
    np.testing.assert_allclose(covariance, twin, rtol=1e-4, atol=1e-6)
    products, its = np.empty((8, width), np.float32), np.empty((8, width))
    kernels_dense.multiply(patches[:8], covariance, products)
    reference.multiply(patches[:8].astype(float), twin, its)
    np.testing.assert_allclose(products, its, rtol=1e-4, atol=1e-5)


FRAME = 11


@pytest.fixture(params=[0.4, 0.95], ids=["much missing", "little missing"])
def picture(rng, request):
    """A picture of 22 rows, or a clip of two frames of 11."""
    image = rng.random((3, 2 * FRAME, 19)).astype(np.float32)
    observed = rng.random(image.shape) < request.param
    observed[:, :7, :7] = False  # patches without any observed entry
    observed[:, :4, 8:] = True  # and some with all
    return image, np.where(observed, image + np.float32(0.1), np.float32(np.nan))


@pytest.fixture(params=[0.4, 0.95], ids=["much missing", "little missing"])
def together(rng, request):
    """The same, every pixel observed in all channels or in none."""
    image = rng.random((3, 2 * FRAME, 19)).astype(np.float32)
    observed = np.tile(rng.random(image.shape[1:]) < request.param, (3, 1, 1))
    return image, np.where(observed, image + np.float32(0.1), np.float32(np.nan))


def tapered(rng, length):
    """A random correlation matrix."""
    factor = rng.random((length, length)).astype(np.float32)
    lengths = np.sqrt(np.sum(factor**2, axis=1))
    return factor @ factor.T / np.outer(lengths, lengths)


def check_estimate(arguments, shape, apart=False):
    """That `kernels.estimate` gives what its twin does, with variances and without, and with those of whole groups."""
    found, variances = np.empty((2, *shape), np.float32)
    twin, twin_variances = np.empty((2, *shape))
    kernels.estimate(*arguments, found, variances)
    reference.estimate(*arguments, twin, twin_variances)
    np.testing.assert_allclose(found, twin, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(variances, twin_variances, rtol=1e-2, atol=1e-4)
    again = np.empty(shape, np.float32)
    kernels.estimate(*arguments, again, np.empty((0, 0, 0), np.float32))
    np.testing.assert_allclose(again, found, rtol=1e-5, atol=1e-5)
    if not apart:
        groups, twin_groups = np.empty((shape[0], 1, shape[2]), np.float32), np.empty((shape[0], 1, shape[2]))
        kernels.estimate(*arguments, again, groups)
        reference.estimate(*arguments, twin, twin_groups)
        np.testing.assert_allclose(again, found, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(groups, twin_groups, rtol=1e-2, atol=1e-4)


def positions(image, size, stride=3, frames=1, depth=1):
    rows, columns = (
        np.arange(0, image.shape[1] // frames - size + 1, stride),
        np.arange(0, image.shape[2] - size + 1, stride),
    )
    rows = (np.arange(frames - depth + 1)[:, None] * (image.shape[1] // frames) + rows).ravel()
    return (rows[:, None] * image.shape[2] + columns).ravel()


def match(image, where, frame, depth, size, window, reach, drift, contrast, found):
    """The search of `kernels_match`, as its twin is called."""
    searched = kernels_match.searchable(image, size, contrast)
    kernels_match.match(searched, where, frame, depth, size, window, reach, drift, found)


@pytest.mark.parametrize("count", [0, 8, 24, 32, 40, 72])
@pytest.mark.parametrize("minus", [0, 3])
def test_distances(rng, count, minus):
    image = rng.random(500).astype(np.float32)
    offsets = rng.permutation(300)[:20]
    patch = rng.random(20).astype(np.float32)
    found, twin = np.full((2, 90), 7, np.float32)
    kernels_match.distances(image, 11, offsets, patch, 17, minus, found, 5, count)
    reference.distances(image, 11, offsets, patch, 17, minus, twin, 5, count)
    np.testing.assert_allclose(found, twin, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("contrast", [0.0, 0.5])
@pytest.mark.parametrize("window", [6, 40])
def test_match(picture, contrast, window):
    image = picture[0]
    where = positions(image, 5)
    found, twin = np.empty((2, len(where), 20), np.int32)
    arguments = 2 * FRAME, 1, 5, window, 0, 0, contrast
    match(image, where, *arguments, found)
    reference.match(image, where, *arguments, twin)
    np.testing.assert_array_equal(found, twin)
    np.testing.assert_array_equal(found[:, 0], where)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("reach", [1, 2, 9])
@pytest.mark.parametrize("drift", [1, 4])
def test_match_across_frames(rng, depth, reach, drift):
    image = rng.random((2, 6 * FRAME, 17)).astype(np.float32)
    where = positions(image, 4, 2, frames=6, depth=depth)
    found, twin = np.empty((2, len(where), 16), np.int32)
    arguments = FRAME, depth, 4, 4, reach, drift, 0.5
    match(image, where, *arguments, found)
    reference.match(image, where, *arguments, twin)
    np.testing.assert_array_equal(found, twin)
    frames, rows = np.divmod(found // 17, FRAME)
    assert rows.max() == FRAME - 4
    assert frames.max() == 6 - depth
    assert np.abs(frames - frames[:, :1]).max() == min(reach, 6 - depth)


def test_match_follows_what_moves(rng):
    size, speed = 4, 3
    image = rng.random((1, 5 * 12, 24)).astype(np.float32)
    thing = rng.random((size, size)).astype(np.float32)
    for t in range(5):
        image[0, t * 12 + 3 : t * 12 + 3 + size, speed * t : speed * t + size] = thing
    found = np.empty((1, 5), np.int32)
    match(image, np.array([(2 * 12 + 3) * 24 + 2 * speed]), 12, 1, size, 8, 2, speed, 0.0, found)
    assert sorted(found[0]) == [(t * 12 + 3) * 24 + speed * t for t in range(5)]


def test_match_breaks_ties_by_position():
    image = np.zeros((1, 12, 12), np.float32)
    where = np.array([5 * 12 + 5])
    found, twin = np.empty((2, 1, 9), np.int32)
    match(image, where, 12, 1, 4, 5, 0, 0, 0.0, found)
    reference.match(image, where, 12, 1, 4, 5, 0, 0, 0.0, twin)
    np.testing.assert_array_equal(found, twin)


@pytest.mark.parametrize("size", [1, 6])
def test_what_has_changed_is_renewed_where_it_has(rng, size):
    """A picture of several tiles, one of them a single line: as if it were made searchable anew."""
    image = rng.random((2, kernels_match.TILE + 1, 3 * kernels_match.TILE - 5)).astype(np.float32)
    searched = kernels_match.searchable(image, size, 0.5)
    changing = np.zeros(image.shape[1:], bool)
    changing[-1, 2 * kernels_match.TILE] = True
    image[:, changing] = 7.0
    places = kernels_match.tiles(changing, size)
    assert len(places) == (1 if size == 1 else 4)
    kernels_match.renew(searched, image, size, 0.5, places)
    assert np.array_equal(searched, kernels_match.searchable(image, size, 0.5))


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("members", [7, 20])
@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("estimated", [None, 5])
def test_estimate(picture, rng, noise, members, uncertain, depth, estimated):
    image, data = picture
    where = positions(image, 4, 2, frames=2, depth=depth)
    groups = np.empty((len(where), members), np.int32)
    match(image, where, FRAME, depth, 4, 9, 0, 0, 0.0, groups)
    length = depth * 48
    shape = (len(groups), estimated or members, length)
    taper = tapered(rng, length)
    arguments = image, data, groups, FRAME, depth, 4, taper, np.float32(0.01), np.float32(noise), uncertain, False
    check_estimate(arguments, shape)


def test_rounding_leaves_no_less_than_nothing_open():
    """A steep edge whose colours are all but one another's multiples, four fifths of the pixels missing: estimates went
    hundreds of times too far where what is left open was a difference of large numbers.
    """
    rng, (rows, columns) = np.random.default_rng(1), np.mgrid[:48, :48]
    edge = np.tanh(rows - 24 + columns / 5)
    image = (8 * np.stack([edge, 0.9 * edge, 0.8 * edge]) + 1e-3 * rng.standard_normal((3, 48, 48))).astype(np.float32)
    data = np.where(rng.random((48, 48)) < 0.2, image, np.float32(np.nan))
    where = positions(image, 6, 6)
    groups = np.empty((len(where), 48), np.int32)
    match(image, where, 48, 1, 6, 18, 0, 0, 0.5, groups)
    taper = refine._taper(3, 6, 10.0)
    arguments = image, data, groups, 48, 1, 6, taper, np.float32(3e-4), np.float32(0), True, False
    found, left_open = np.empty((len(where), 32, 108), np.float32), np.empty((len(where), 1, 108), np.float32)
    twin, its = np.empty(found.shape), np.empty(left_open.shape)
    kernels.estimate(*arguments, found, left_open)
    reference.estimate(*arguments, twin, its)
    assert left_open.min() > 0
    np.testing.assert_allclose(left_open, its, rtol=0.1, atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("members", [12, 40])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("estimated", [None, 5])
def test_estimate_with_colours_apart(together, rng, noise, members, depth, estimated):
    image, data = together
    groups = rng.choice(positions(image, 4, 2, frames=2, depth=depth), (9, members)).astype(np.int32)
    shape = (9, estimated or members, depth * 48)
    taper = tapered(rng, depth * 16)
    arguments = image, data, groups, FRAME, depth, 4, taper, np.float32(0.01), np.float32(noise), False, True
    check_estimate(arguments, shape, apart=True)


def motion_problem(rng, height, gaps):
    """What `kernels_motion.find_motion` is given, without where it writes."""
    steps = np.array([(dy, dx) for dy in (0, -1, 1, 2) for dx in (0, 1, -2)])
    border, sides = 2 * max(abs(g) for g in gaps), len(gaps)
    planes = rng.random((1 + sides, 3, height + 2 * border, 23 + 2 * border)).astype(np.float32)
    weights = (rng.random((1 + sides, *planes.shape[2:])) < 0.6).astype(np.float32)
    share, prices = rng.random((height, 23), dtype=np.float32), rng.random(len(steps), dtype=np.float32) / 100
    return (planes[0], weights[0], planes[1:], weights[1:], np.array(gaps), share, steps, prices, np.float32(4e-4),
            np.array([5, 9]))  # fmt: skip


@pytest.mark.parametrize("height", [6, 40, 70])
@pytest.mark.parametrize("gaps", [(-1,), (-1, 1), (-2, 1)])
def test_find_motion(rng, height, gaps):
    arguments = motion_problem(rng, height, gaps)
    found, twin = (np.full((height, 23), np.inf, np.float32) for _ in range(2))
    motion, its = np.zeros((2, 2, height, 23), int)
    kernels_motion.find_motion(*arguments, found, motion)
    reference.find_motion(*arguments, twin, its)
    np.testing.assert_allclose(found, twin, rtol=1e-4)
    assert (motion == its).mean() > 0.999  # rounding decides between steps that are as good as each other


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core only")
def test_the_motion_is_the_same_with_one_and_two_threads(rng):
    arguments = motion_problem(rng, 150, (-1, 2))
    results = []
    for threads in (1, 2):
        with library_threads.kernels(threads):
            best, motion = np.full((150, 23), np.inf, np.float32), np.zeros((2, 150, 23), int)
            kernels_motion.find_motion(*arguments, best, motion)
        results.append((best, motion))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("members", [8, 60])
@pytest.mark.parametrize("noise", [0.002, 0.02, 3.0])
def test_shrink(rng, members, noise):
    rows, columns = np.mgrid[: 2 * FRAME, :19] / 9.0
    image = np.stack([np.sin(4 * rows) + columns**2, np.cos(3 * columns + rows)]) + noise**0.5 * rng.standard_normal(
        (2, 2 * FRAME, 19)
    )
    image = image.astype(np.float32)
    groups = rng.choice(positions(image, 4, 1, frames=2), (9, members)).astype(np.int32)
    found, variances, twin, twin_variances = np.empty((4, 9, members, 32), np.float32)
    kernels_shrink.shrink(image, groups, FRAME, 1, 4, np.float32(noise), found, variances)
    reference.shrink(image, groups, FRAME, 1, 4, noise, twin, twin_variances)
    np.testing.assert_allclose(found, twin, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(variances, twin_variances, rtol=1e-3)


@pytest.mark.parametrize("weights", [0, 1, 6])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_add_up(picture, rng, weights, squared, depth):
    image = picture[0]
    groups = rng.choice(positions(image, 4, 1, frames=2, depth=depth), (9, 6)).astype(np.int32)
    patches = rng.standard_normal((9, 6, depth * 48)).astype(np.float32)
    shape = (9, weights, depth * 48) if weights else (0, 0, 0)
    variances = rng.standard_normal(shape).astype(np.float32)  # rounding can make some negative
    found, twin = (
        tuple(np.zeros(image.shape if wanted else (0, 0, 0)) for wanted in (True, True, squared)) for _ in range(2)
    )
    kernels.add_up(groups, patches, variances, FRAME, depth, 4, np.float32(0.01), *found)
    reference.add_up(groups, patches, variances, FRAME, depth, 4, 0.01, *twin)
    for one, other in zip(found, twin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [(False, False), (True, False), (False, True)], ids=["plain", "uncertain", "apart"])
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core only")
def test_same_bits_with_one_and_two_threads(together, kind):
    image, data = together
    where = positions(image, 4, 1, frames=2)
    taper = np.ones((16, 16) if kind[1] else (48, 48), np.float32)
    results = []
    for threads in (1, 2):
        with library_threads.kernels(threads):
            groups = np.empty((len(where), 18), np.int32)
            match(image, where, FRAME, 1, 4, 8, 1, 3, 0.5, groups)
            estimates, variances = np.empty((2, *groups.shape, 48), np.float32)
            kernels.estimate(
                image,
                data,
                groups,
                FRAME,
                1,
                4,
                taper,
                np.float32(0.01),
                np.float32(0.0),
                *kind,
                estimates,
                variances,
            )
            total, weight, squares = np.zeros((3, *image.shape))
            kernels.add_up(groups, estimates, variances, FRAME, 1, 4, np.float32(0.01), total, weight, squares)
        results.append((groups, estimates, variances, total, weight, squares))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
