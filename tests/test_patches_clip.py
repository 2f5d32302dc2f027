"""`patches` on clips: groups across frames."""

import numpy as np
import pytest

from tdc_cli.errors import ConfigError, InputError
from tdc_cli.methods import patches

FRAMES, SIDE = 8, 24
QUICK = {"passes": 2, "members": 16, "window": 5}


def rng(seed=0):
    return np.random.default_rng(seed)


def clip(frames=FRAMES, channels=3, speed=1.0):
    """Waves and an edge that move to the right, (H, W, C, T), in [0, 1]."""
    rows, columns, _, times = np.mgrid[:SIDE, :SIDE, :1, :frames].astype(float)
    place = columns - speed * times
    phases = np.arange(channels)[None, None, :, None]
    waves = 0.25 * np.sin(0.9 * place + 0.3 * rows + phases) + 0.25 * np.cos(0.5 * rows - 0.2 * place)
    return np.clip(0.5 + waves + 0.2 * (place > 8) - 0.1, 0, 1)


def masked(shape):
    """Bars missing in every second frame."""
    observed = np.ones(shape, bool)
    observed[4:18, 7:10, ..., ::2] = False
    observed[14:16, 3:21, ..., ::2] = False
    return observed


def completed(truth, observed, seed=0, **parameters):
    config = patches.Config(frames=truth.ndim - 1, **QUICK | parameters)
    return patches.complete(np.where(observed, truth, np.nan), observed, config, rng=rng(seed))


def error(found, truth, chosen):
    return float(np.sqrt(np.mean((found.mean - truth)[chosen] ** 2)))


def beside(truth, observed):
    """Mean of the frames on both sides, or the only one there is."""
    padded = np.pad(np.where(observed, truth, np.nan), [(0, 0)] * (truth.ndim - 1) + [(1, 1)], constant_values=np.nan)
    sides = np.stack([padded[..., :-2], padded[..., 2:]])
    return np.nansum(sides, axis=0) / np.maximum(np.sum(~np.isnan(sides), axis=0), 1)


def test_bars_in_every_second_frame_are_filled_better_than_by_the_frames_beside_them():
    truth = clip()
    observed = masked(truth.shape)
    found = completed(truth, observed)
    plain = np.sqrt(np.mean((beside(truth, observed) - truth)[~observed] ** 2))
    assert error(found, truth, ~observed) < 0.5 * plain
    assert np.array_equal(found.mean[observed], truth[observed])
    assert (found.sd[observed] == 0).all() and (found.sd[~observed] > 0).all()


def test_a_grey_clip_without_a_mode_of_channels():
    truth = clip(channels=1)[:, :, 0]
    observed = masked(truth.shape)
    found = completed(truth, observed)
    assert found.mean.shape == truth.shape == found.sd.shape
    assert np.array_equal(found.mean[observed], truth[observed])


def test_frames_may_be_any_mode_but_the_first_two():
    truth = clip(frames=4)
    observed = masked(truth.shape)
    one = completed(truth, observed)
    config = patches.Config(frames=2, **QUICK)
    swapped = [np.swapaxes(a, 2, 3) for a in (truth, observed)]
    other = patches.complete(*swapped, config, rng=rng())
    assert np.array_equal(np.swapaxes(one.mean, 2, 3), other.mean)


@pytest.mark.parametrize("mode, words", [(1, "modes 0 and 1 are the rows and columns"), (4, "the modes of the values are 0 to 3")])
def test_frames_that_is_no_mode_of_frames_is_refused(mode, words):
    truth = clip(frames=2)
    with pytest.raises(ConfigError, match=words):
        patches.complete(truth, np.ones(truth.shape, bool), patches.Config(frames=mode), rng=rng())


def test_nothing_observed_is_refused():
    truth = clip(frames=2)
    with pytest.raises(InputError, match="no entry is observed"):
        completed(truth, np.zeros(truth.shape, bool))


def test_one_frame_is_a_picture():
    truth = clip(frames=1)
    observed = masked(truth.shape)
    one = completed(truth, observed)
    picture = patches.complete(truth[..., 0], observed[..., 0], patches.Config(**QUICK), rng=rng())
    assert np.array_equal(one.mean[..., 0], picture.mean) and np.array_equal(one.sd[..., 0], picture.sd)


def test_noise_is_taken_from_all_frames():
    truth = clip()
    observed = masked(truth.shape)
    noisy = truth + 0.05 * rng(1).standard_normal(truth.shape)
    found = completed(noisy, observed, noise_std=0.05)
    assert error(found, truth, observed) < 0.025
    assert found.noise_std == 0.05
    assert (found.sd > 0).all()
