"""Large holes of clips: frames show each other's holes where what surrounds them moves, and what none shows moves
along.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, gaussian_filter, shift

from tdc_cli import methods
from tdc_cli.errors import InputError
from tdc_cli.exemplar import clip
from tdc_cli.exemplar.register import View, moved, register, whole
from tdc_cli.methods.solve import solve

HEIGHT, WIDTH, COUNT = 72, 90, 6


def texture(height, width, seed=0, smooth=1.2):
    made = gaussian_filter(np.random.default_rng(seed).normal(0, 1, (height, width)), smooth)
    return 0.5 + 0.12 * made / made.std()


def panning(step):
    """A window that moves over a texture by (rows, columns) a frame, (H, W, T)."""
    whole_ = texture(HEIGHT + 60, WIDTH + 60)
    return np.stack([whole_[30 + step[0] * t :, 30 + step[1] * t :][:HEIGHT, :WIDTH] for t in range(COUNT)], axis=2)


def moving_box(side=24, step=12):
    """What a box that moves to the right by `step` pixels a frame hides."""
    lost = np.zeros((HEIGHT, WIDTH, COUNT), bool)
    for t in range(COUNT):
        lost[24 : 24 + side, 2 + step * t : 2 + step * t + side, t] = True
    return lost


def filled(name, truth, lost, seed=0):
    method = methods.get(name)
    return solve(
        method, method.configure({"frames": truth.ndim - 1}), truth.copy(), ~lost, rng=np.random.default_rng(seed)
    )


@pytest.mark.parametrize("name", ["auto", "exemplar"])
@pytest.mark.parametrize("step", [(0, 0), (1, -2)])
def test_what_another_frame_shows_is_taken_from_there(name, step):
    truth, lost = panning(step), moving_box()
    done = filled(name, truth, lost)
    np.testing.assert_allclose(done.mean, truth, atol=1e-9)
    assert not done.invented.any()


def test_what_no_frame_shows_moves_with_what_surrounds_it():
    truth = panning((0, 2))
    lost = np.zeros(truth.shape, bool)
    lost[20:50, 25:65] = True
    done = filled("auto", truth, lost)
    inner = np.s_[22:48, 27:61]
    kept = done.mean[22:48, 29:63, :-1] - done.mean[(*inner, slice(1, None))]
    changed = done.mean[(*inner, slice(None, -1))] - done.mean[(*inner, slice(1, None))]
    assert np.abs(kept).mean() < 0.2 * np.abs(changed).mean()  # moved along, it is the same
    theirs = np.diff(truth[lost.any(axis=2)], axis=1)
    assert 0.7 < np.abs(np.diff(done.mean[lost.any(axis=2)], axis=1)).mean() / np.abs(theirs).mean() < 1.3
    assert (
        0.8
        < np.abs(np.diff(done.mean[22:48, 27:63], axis=0)).mean() / np.abs(np.diff(truth[22:48, 27:63], axis=0)).mean()
        < 1.25
    )
    assert 0 < done.invented.sum() < lost.sum()
    assert np.array_equal(done.mean[~lost], truth[~lost])


def test_over_what_stands_still_it_stands_still_with_the_grain_of_every_frame():
    noise = np.random.default_rng(1).normal(0, 0.02, (HEIGHT, WIDTH, COUNT))
    truth = texture(HEIGHT, WIDTH)[..., None] + noise
    lost = np.zeros(truth.shape, bool)
    lost[20:50, 25:65] = True
    done = filled("auto", truth, lost)
    assert done.invented.sum() == lost.sum()
    changes = np.diff(done.mean, axis=2)
    assert 0.7 < changes[22:48, 27:63].std() / np.diff(noise, axis=2).std() < 1.3


def test_what_moves_in_front_is_not_taken_for_the_surroundings():
    truth, lost = np.repeat(texture(HEIGHT, WIDTH)[..., None], COUNT, axis=2), np.zeros((HEIGHT, WIDTH, COUNT), bool)
    lost[24:48, 8:32] = True
    someone = 0.35 + texture(HEIGHT, WIDTH, seed=3)
    for t in range(COUNT):  # comes from the right, at last to the rim of the hole
        truth[:, 57 - 5 * t :, t] = someone[:, : WIDTH - 57 + 5 * t]
    done = filled("exemplar", truth, lost)
    assert done.invented.sum() == lost.sum()
    inside = done.mean[lost].reshape(-1, COUNT)
    assert np.abs(np.diff(inside, axis=1)).mean() < 0.02
    assert inside.max() < truth[:, :30, 0].max() + 0.02


def test_maps_of_a_long_clip_do_not_drift_and_are_found_once_a_frame(monkeypatch):
    wide, calls = texture(HEIGHT, WIDTH + 8, smooth=2.0), []
    frames = [shift(wide, (0, 0.3 * t), order=3, mode="reflect")[:, 8:] for t in range(10)]
    noise = np.random.default_rng(1).normal(0, 0.02, (10, HEIGHT, WIDTH))
    hole = np.zeros(noise.shape, bool)
    hole[:, 20:50, 25:65] = True
    monkeypatch.setattr(clip, "register", lambda *views: calls.append(1) or register(*views))
    one = clip.Clip((frames + noise)[..., None], hole, np.zeros_like(hole))
    assert np.abs(one.maps[-1][:2, 2] - (0, 0.3 * 9)).max() < 0.15
    assert len(calls) <= 2 * 10


def test_what_was_spread_around_a_hole_makes_what_lies_beside_it_in_another_frame_unsure():
    truth, lost = panning((0, 0))[..., :2], np.zeros((HEIGHT, WIDTH, 2), bool)
    lost[20:44, 30:54, 0] = True
    lost[14:50, 34:50, 1] = np.arange(16) % 8 < 4
    spread = binary_dilation(lost[..., 1], np.ones((1, 5))) & ~lost[..., 1]
    given = truth.copy()
    given[spread, 1] += np.random.default_rng(1).normal(0, 0.03, np.count_nonzero(spread))
    done = filled("exemplar", given, lost)
    shown = lost & ~done.invented
    assert 0.85 < np.mean(np.abs(done.mean - truth)[shown] <= 1.645 * done.sd[shown]) < 0.97


def test_light_that_changes_from_frame_to_frame_does_so_inside():
    light = 0.05 * np.sin(np.arange(COUNT))
    truth, lost = panning((0, 0)) + light, moving_box()
    np.testing.assert_allclose(filled("exemplar", truth, lost).mean, truth, atol=1e-6)


def test_between_pixels_frames_are_interpolated():
    plain = texture(HEIGHT, WIDTH, smooth=2.5)
    truth = np.stack([shift(plain, (0.3 * t, 0.4 * t), order=3, mode="reflect") for t in range(COUNT)], axis=2)
    lost = moving_box()
    done = filled("exemplar", truth, lost)
    assert np.sqrt(np.mean((done.mean - truth)[lost] ** 2)) < 0.05 * truth.std()
    assert np.mean(np.abs(done.mean - truth)[lost] <= 1.645 * done.sd[lost] + 1e-3) > 0.8


def test_same_seed_same_bits():
    truth = panning((0, 2))
    lost = np.zeros(truth.shape, bool)
    lost[20:50, 25:65] = True
    first, again, other = (filled("exemplar", truth, lost, seed).mean for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_a_frame_that_is_lost_as_a_whole_is_an_error():
    truth = panning((0, 0))
    lost = np.zeros(truth.shape, bool)
    lost[..., 2] = True
    with pytest.raises(InputError, match=r"no pixel is observed in all channels in frame 2; try method patches$"):
        filled("exemplar", truth, lost)


def view(values, hole=None):
    known = np.ones(values.shape, bool)
    if hole is not None:
        known[hole] = False
    return View.of(np.where(known, values, 0.0)[..., None], known, np.ones(known.shape))


@pytest.mark.parametrize("step", [(0, 0), (3, -5), (-9, 11)])
def test_whole_pixels_are_found_as_such(step):
    large = texture(160, 170)
    one, other = large[20:140, 20:150], large[20 - step[0] : 140 - step[0], 20 - step[1] : 150 - step[1]]
    map_, error = register(view(one, np.s_[40:80, 50:90]), view(other, np.s_[30:70, 50:90]))
    assert whole(map_) and error < 1e-12
    assert np.array_equal(map_[:2, 2], step)


def test_an_affine_map_is_found():
    plain = texture(120, 130, smooth=2.5)
    turned = np.array([[1.01, 0.02, -1.3], [-0.015, 0.99, 2.1], [0, 0, 1]])
    from scipy.ndimage import affine_transform

    # other(map x) = one(x)
    other = affine_transform(plain, np.linalg.inv(turned), order=3, mode="reflect")
    map_, error = register(view(plain, np.s_[40:80, 50:90]), view(other))
    rows, columns = (axis.ravel() for axis in np.mgrid[10:110:10, 10:120:10])
    assert np.abs(moved(map_, rows, columns) - moved(turned, rows, columns)).max() < 0.2
    assert error < 0.02 * plain.var()


def test_frames_without_anything_in_common_do_not_agree():
    one, other = texture(80, 90, 1), texture(80, 90, 2)
    assert register(view(one), view(other))[1] > 0.5 * one.var()


def test_noise_does_not_seem_to_move():
    rng = np.random.default_rng(0)
    known = np.ones((96, 112), bool)
    known[30:60, 40:80] = False
    ramp = np.linspace(0, 0.2, 112)[None, :, None]
    views = [View.of(ramp + rng.normal(0, 0.006, (96, 112, 1)), known, known) for _ in range(6)]
    assert all(np.array_equal(register(one, other)[0], np.eye(3)) for one, other in pairwise(views))
