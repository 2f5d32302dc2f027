"""The noise of a clip."""

import numpy as np
import pytest

from tdc_cli.patches import noise


def frames(count=8, side=30, deviation=0.1):
    rng = np.random.default_rng(4)
    rows, columns = np.mgrid[:side, :side]
    still = 0.5 + 0.3 * (columns > 11) + 0.2 * (rows > 17)
    moving = np.stack([0.2 * (np.abs(columns - 3 * t) < 2) * (rows < 6) for t in range(count)])
    return (still + moving)[..., None] + deviation * rng.standard_normal((count, side, side, 2))


@pytest.mark.parametrize("deviation", [0.003, 0.1, 20.0])
def test_the_level_is_found_whatever_moves(deviation):
    clip = frames(deviation=deviation)
    assert noise.level(clip, np.ones(clip.shape, bool)) == pytest.approx(deviation, rel=0.08)


def test_what_is_missing_is_not_read():
    clip = frames()
    observed = np.ones(clip.shape, bool)
    observed[::2, 5:20, 5:9] = False
    clip[~observed] = np.nan
    assert noise.level(clip, observed) == pytest.approx(0.1, rel=0.08)


def test_too_little_tells_nothing():
    clip = frames()
    observed = np.random.default_rng(0).random(clip.shape) < 0.4
    assert noise.level(clip, observed) is None
    assert noise.level(clip[:2], np.ones(clip[:2].shape, bool)) is None
    assert noise.level(clip[:, :1], np.ones(clip[:, :1].shape, bool)) is None
