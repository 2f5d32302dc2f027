"""The kernels of exemplar-based filling against their plain twins."""

import numpy as np
import pytest
import reference

from tdc_cli.exemplar import kernels

HEIGHT, WIDTH, SIZE = 19, 23, 5


@pytest.fixture
def scene():
    """Layers that repeat every 6 columns and 5 rows, a hole, and sources of the patches over it, a few of them missing.
    """
    rng = np.random.default_rng(11)
    tile = rng.integers(-kernels.LARGEST, kernels.LARGEST + 1, (5, 6, 3))
    layers = np.tile(tile, (4, 4, 1))[:HEIGHT, :WIDTH].astype(np.int16)
    layers += (
        rng.integers(-3, 4, layers.shape).astype(np.int16).clip(-kernels.LARGEST - layers, kernels.LARGEST - layers)
    )
    hole = np.zeros((HEIGHT, WIDTH), bool)
    hole[6:11, 8:14] = True
    over = np.zeros((HEIGHT, WIDTH), bool)
    over[2:11, 4:14] = True
    allowed = ~over
    allowed[HEIGHT - SIZE + 1 :] = allowed[:, WIDTH - SIZE + 1 :] = False
    targets = np.flatnonzero(over)
    sources = np.full(HEIGHT * WIDTH, -1, np.int32)
    sources[targets] = rng.choice(np.flatnonzero(allowed), len(targets))
    sources[rng.choice(targets, 9, replace=False)] = -1
    votes = np.zeros(HEIGHT * WIDTH, np.float32)
    votes[targets] = rng.random(len(targets))
    return rng, layers, hole, allowed.ravel(), targets, sources, votes


@pytest.mark.parametrize("tries", [0, 1, 3])
def test_search(scene, tries):
    rng, layers, _, allowed, targets, sources, _ = scene
    weights = rng.integers(0, 8, (HEIGHT, WIDTH)).astype(np.int16)
    weights[:4, :8] = 0  # a target that nothing is known of
    draws = rng.random((len(targets), 5 * tries, 2), dtype=np.float32) * 2 - 1
    favour = rng.uniform(0, 1e4, HEIGHT * WIDTH).astype(np.float32)
    given = layers, weights, allowed, favour, SIZE, targets, sources, np.array([1, 2, 4]), draws, 5
    found = []
    for search in (kernels.search, reference.search):
        made, costs = sources.copy(), np.empty(len(targets), np.float32)
        search(*given, made, costs)
        found.append((made, costs))
    assert np.array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)
    assert np.array_equal(np.delete(found[0][0], targets), np.delete(sources, targets))
    if tries == 3:
        assert found[0][1].min() < 20  # the repetition is found by some
        # One that is favoured enough is taken for it, and told with what it costs.
        favour[:] = np.where(np.arange(len(favour)) == np.flatnonzero(allowed)[7], 1e9, 0)
        kernels.search(*given, made, costs)
        assert (made[targets] == np.flatnonzero(allowed)[7]).any() and costs.min() >= 0


def test_vote_and_choose(scene):
    rng, _, hole, _, _, sources, votes = scene
    sources[6 * WIDTH + 8 - 4 * WIDTH - 4 :][: 4 * WIDTH] = -1  # no patch proposes anything for some pixels
    layers = rng.standard_normal((HEIGHT, WIDTH, 4)).astype(np.float32)
    # Neighbouring patches agree in places, so that votes add up.
    sources[np.flatnonzero(sources >= 0)[::2]] = np.flatnonzero(sources >= 0)[::2] % WIDTH
    pixels = np.flatnonzero(hole)
    made, twin = np.empty((2, len(pixels), 4), np.float32)
    kernels.vote(layers, hole, SIZE, pixels, sources, votes, made)
    reference.vote(layers, hole, SIZE, pixels, sources, votes, twin)
    np.testing.assert_allclose(made, twin, rtol=1e-4, atol=1e-5)
    origins, expected = np.empty((2, len(pixels)), np.int64)
    kernels.choose(hole, SIZE, pixels, sources, votes, origins)
    reference.choose(hole, SIZE, pixels, sources, votes, expected)
    assert np.array_equal(origins, expected)
    assert not hole.ravel()[origins[origins >= 0]].any()
    nothing = np.full_like(sources, -1)
    kernels.vote(layers, hole, SIZE, pixels, nothing, votes, made)
    kernels.choose(hole, SIZE, pixels, nothing, votes, origins)
    assert np.isnan(made).all() and (origins == -1).all()


@pytest.mark.parametrize("shift", [(0.0, 0.0), (3.0, -2.0), (1.25, 0.5)])
def test_sample(shift):
    rng = np.random.default_rng(3)
    one, other = rng.standard_normal((2, HEIGHT, WIDTH)).astype(np.float32)
    slopes = np.stack(np.gradient(other))
    known = rng.random((HEIGHT, WIDTH)) < 0.8
    rows, columns = np.divmod(np.arange(HEIGHT * WIDTH), WIDTH)
    map_ = np.eye(3)
    map_[:2, 2] = shift
    if shift[0] == 1.25:
        map_[:2, :2] += rng.uniform(-0.1, 0.1, (2, 2))
    found = []
    for sample in (kernels.sample, reference.sample):
        shown, apart, inclines = np.empty(len(rows), bool), np.zeros(len(rows)), np.zeros((2, len(rows)))
        sample(one, other, known, slopes, rows, columns, map_, 0.999, shown, apart, inclines)
        found.append((shown, apart * shown, inclines * shown))
    assert 50 < found[0][0].sum() < len(rows) and np.array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)
    np.testing.assert_allclose(found[0][2], found[1][2], atol=1e-5)
