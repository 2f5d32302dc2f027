"""Frames predicted from the frames beside them."""

import numpy as np
import pytest

from tdc_cli.patches import motion

HEIGHT, WIDTH = 40, 44


def scene(shift, seed=0):
    """A smooth random scene moved by (rows, columns), (H, W, 2) float32."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    total = np.zeros((HEIGHT, WIDTH, 2))
    for _ in range(12):
        u, v = rng.uniform(-0.5, 0.5, 2)
        phases = u * (rows - shift[0]) + v * (columns - shift[1]) + rng.uniform(0, 6, 1)
        total += np.sin(phases)[..., None] * rng.standard_normal(2)
    return total.astype(np.float32)


def whole():
    return np.ones((HEIGHT, WIDTH), np.float32)


def off(prediction, truth):
    """RMS error inside, relative to the spread."""
    inside = np.s_[10:-10, 10:-10]
    return float(np.sqrt(np.mean((prediction - truth)[inside] ** 2)) / truth.std())


@pytest.mark.parametrize("speed", [(0, 0), (2, -3), (1, 0)])
def test_a_frame_of_which_nothing_is_seen_is_between_those_beside_it(speed):
    before, truth, after = (scene((speed[0] * t, speed[1] * t)) for t in (-1, 0, 1))
    sides = [(-1, before, whole()), (1, after, whole())]
    found, _ = motion.predict((before + after) / 2, 0 * whole(), sides)
    assert off(found, truth) < 0.05
    if any(speed):
        assert off(found, truth) < 0.3 * off((before + after) / 2, truth)


def test_a_hole_is_told_by_one_frame_and_what_surrounds_the_hole():
    before, truth = scene((-3, 1)), scene((0, 0))
    seen = whole()
    seen[18:22, 15:30] = 0
    frame = np.where(seen[..., None] > 0, truth, np.float32(9.0))
    found, error = motion.predict(frame, seen, [(-1, before, whole())])
    assert off(found, truth) < 0.05
    assert error.shape == (HEIGHT, WIDTH) and (error >= 0).all()


def test_the_frame_that_agrees_better_counts_more():
    truth = scene((0, 0))
    seen = whole()
    seen[18:22, 15:30] = 0
    poor = truth + np.random.default_rng(1).normal(0, truth.std(), truth.shape).astype(np.float32)
    found, _ = motion.predict(truth, seen, [(-1, truth, whole()), (1, poor, whole())])
    assert off(found, truth) < 0.1


def test_what_was_not_seen_beside_counts_little():
    truth = scene((0, 0))
    dark, seen = truth.copy(), whole()
    dark[15:25, 15:30], seen[15:25, 15:30] = 5, 0
    found, _ = motion.predict(truth, 0 * whole(), [(-1, dark, seen), (1, truth, whole())])
    assert off(found, truth) < 0.2


def test_two_frames_farther_off_are_reached_at_the_same_speed():
    before, truth, after = (scene((2 * t, -t)) for t in (-1, 0, 2))
    found, _ = motion.predict((before + after) / 2, 0 * whole(), [(-1, before, whole()), (2, after, whole())])
    assert off(found, truth) < 0.05


def test_constant_frames():
    flat = np.full((HEIGHT, WIDTH, 1), 3.0, np.float32)
    found, error = motion.predict(flat, 0 * whole(), [(-1, flat, whole()), (1, flat, whole())])
    assert np.allclose(found, 3) and np.allclose(error, 0)
