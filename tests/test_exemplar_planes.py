"""Sums over squares, distances and groups of exemplar-based filling against SciPy's."""

import numpy as np
import pytest
from scipy import ndimage
from scipy.spatial import cKDTree

from tdc_cli.exemplar import blend, kernels, planes, pyramid, regions


@pytest.fixture(params=range(12))
def scattered(request):
    """A generator and a mask of some pixels, few to nearly all."""
    rng = np.random.default_rng(request.param)
    mask = rng.random(rng.integers(5, 40, 2)) < (0.03, 0.3, 0.6, 0.97)[request.param % 4]
    mask[tuple(rng.integers(0, 5, 2))] = True
    return rng, mask


def test_squares(scattered):
    rng, mask = scattered
    assert np.array_equal(planes.grown(mask, 5), ndimage.maximum_filter(mask, 5, mode="constant"))
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 0)):
        plane = rng.integers(0, 255, mask.shape).astype(dtype) / dtype(3)
        expected = ndimage.uniform_filter(plane, 5)[2:-2, 2:-2]
        found = planes.means(plane, 5)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    weight, total = (
        ndimage.uniform_filter(each, 5, mode="constant") for each in (mask.astype(float), np.where(mask, plane, 0.0))
    )
    shown = weight > 0.02
    np.testing.assert_allclose(planes.around(plane, mask, 5)[shown], (total / np.maximum(weight, 0.02))[shown])
    assert not planes.around(plane, mask, 5)[~shown].any()


def test_nearest(scattered):
    _, known = scattered
    distances, places = planes.nearest(known)
    np.testing.assert_allclose(distances, ndimage.distance_transform_edt(~known))
    assert known.flat[places].all()
    apart = np.stack(np.divmod(places, known.shape[1])) - np.indices(known.shape)
    np.testing.assert_allclose(np.hypot(*apart), distances)
    near, _ = planes.nearest(known, reach=3.5)
    assert np.array_equal(near <= 3.5, distances <= 3.5)
    assert np.array_equal(near[near <= 3.5], distances[near <= 3.5])


def test_halved(scattered):
    _, known = scattered
    layers = np.random.default_rng(1).normal(0, 100, (*known.shape, 2)).astype(np.float32)
    weights, (height, width) = np.array([1, 3, 3, 1]) / 8, known.shape
    weight, total = (np.pad(each, ((0, height % 2), (0, width % 2), (0, 0)), "edge").astype(float)
                     for each in (known[..., None], layers * known[..., None]))  # fmt: skip
    for axis in (0, 1):
        weight, total = (ndimage.convolve1d(each, weights, axis, mode="nearest") for each in (weight, total))
    made, sums = pyramid.halved(layers, known)
    np.testing.assert_allclose(sums, weight[::2, ::2, 0], rtol=1e-6)
    np.testing.assert_allclose(made, (total / np.maximum(weight, 1e-6))[::2, ::2], rtol=1e-4, atol=1e-4)


def test_groups(scattered, monkeypatch):
    _, mask = scattered
    for apart in (0, 2, 4):
        monkeypatch.setattr(regions, "APART", apart)
        labels, boxes = regions.together(mask)
        expected, _ = ndimage.label(ndimage.maximum_filter(mask, apart + 1), np.ones((3, 3)))
        assert np.array_equal(labels, expected)
        assert boxes == ndimage.find_objects(expected)


def test_a_winding_group_is_one():
    spiral = np.zeros((41, 41), bool)
    for k in range(0, 20, 2):
        spiral[k, max(0, k - 2) : 41 - k] = spiral[k : 41 - k, 40 - k] = True
        spiral[40 - k, k : 41 - k] = spiral[k + 2 : 41 - k, k] = True
    expected, count = ndimage.label(spiral, np.ones((3, 3)))
    labels, boxes = regions._labelled(spiral)
    assert count == len(boxes) == 1 and np.array_equal(labels, expected)


@pytest.mark.parametrize("channels", [1, 4])
def test_nearest_colours(channels):
    rng = np.random.default_rng(channels)
    colours, others = (rng.random((n, channels), dtype=np.float32) * 500 for n in (300, 70))
    others[::2] = others[0]
    colours[:5] = others[:5]
    found = kernels.nearest_colours(colours, others)
    np.testing.assert_allclose(found, cKDTree(others).query(colours)[0] ** 2, rtol=1e-9, atol=1e-9)
    assert not found[:5].any()


def test_the_light_is_the_solution_of_its_equations():
    """Against a dense solver: a hole of 3 x 2 pixels, whose neighbours beyond it have the correction 0."""
    rng, shape = np.random.default_rng(3), (3, 2)
    number = np.pad(np.arange(6).reshape(shape), 1, constant_values=6)
    neighbours = np.stack([number[1:-1, 2:], number[2:, 1:-1], number[1:-1, :-2], number[:-2, 1:-1]]).reshape(4, 6)
    changes, weights = rng.normal(size=(4, 6, 2)), np.ones((4, 6))
    matrix = np.diag(0.1 + weights.sum(axis=0))
    for k in range(4):
        inside = neighbours[k] < 6
        matrix[np.flatnonzero(inside), neighbours[k, inside]] -= 1
    expected = np.linalg.solve(matrix, -changes.sum(axis=0))
    np.testing.assert_allclose(blend._field(neighbours, changes, weights, 0.1), expected, atol=2e-3)
