"""`patches` on clips: groups across frames."""

import numpy as np
import pytest

from tdc_cli import methods
from tdc_cli.errors import ConfigError, InputError
from tdc_cli.methods import patches
from tdc_cli.methods.solve import solve

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


@pytest.mark.parametrize(
    "mode, words", [(1, "frames is 1; it must be 2 or more"), (4, "the modes of the values are 0 to 3")]
)
def test_frames_that_is_no_mode_of_frames_is_refused(mode, words):
    truth = clip(frames=2)
    with pytest.raises(ConfigError, match=words):
        solve(methods.get("patches"), patches.Config(frames=mode), truth, np.ones(truth.shape, bool), rng=rng())


def test_nothing_observed_is_refused():
    truth = clip(frames=2)
    with pytest.raises(InputError, match="no entry is observed"):
        solve(methods.get("patches"), patches.Config(frames=3), truth, np.zeros(truth.shape, bool), rng=rng())


def test_one_frame_is_a_picture():
    truth = clip(frames=1)
    observed = masked(truth.shape)
    one = completed(truth, observed, start="field")
    picture = patches.complete(truth[..., 0], observed[..., 0], patches.Config(**QUICK, start="field"), rng=rng())
    assert np.array_equal(one.mean[..., 0], picture.mean) and np.array_equal(one.sd[..., 0], picture.sd)


def test_noise_is_taken_from_all_frames():
    truth = clip()
    observed = masked(truth.shape)
    noisy = truth + 0.05 * rng(1).standard_normal(truth.shape)
    found = completed(noisy, observed, noise_std=0.05)
    assert error(found, truth, observed) < 0.025
    assert found.noise_std == 0.05
    assert (found.sd > 0).all()


def test_whole_frames_are_told_by_those_beside_them():
    truth = clip()
    observed = np.ones(truth.shape, bool)
    observed[..., [2, 5]] = False
    found = completed(truth, observed, passes=3)
    plain = np.sqrt(np.mean((beside(truth, observed) - truth)[~observed] ** 2))
    assert error(found, truth, ~observed) < 0.8 * plain
    assert found.held_out["count"] >= truth[..., 0].size
    assert (found.sd[..., [2, 5]] > 0).all()


def test_what_the_frames_beside_show_wants_smaller_groups_and_fewer_passes():
    truth = clip(frames=4)
    alternating = masked(truth.shape)
    standing = np.broadcast_to(alternating[..., :1], truth.shape)
    used = [
        completed(truth, observed, members=None, passes=None, calibrate=False).parameters
        for observed in (alternating, standing)
    ]
    assert [(u["members"], u["passes"]) for u in used] == [(60, 5), (120, 7)]


@pytest.mark.parametrize("missing", [[0, 1], [3, 4, 5], [6, 7]])
def test_several_frames_in_a_row_may_be_missing(missing):
    truth = clip()
    observed = np.ones(truth.shape, bool)
    observed[..., missing] = False
    found = completed(truth, observed, passes=1, calibrate=False)
    assert np.isfinite(found.mean).all()
    assert error(found, truth, ~observed) < truth.std()


def test_two_frames():
    truth = clip(frames=2)
    observed = masked(truth.shape)
    found = completed(truth, observed)
    assert error(found, truth, ~observed) < 0.5 * truth.std()
    assert np.array_equal(found.mean[observed], truth[observed])


@pytest.mark.parametrize("shape", [(1, 1, 1, 3), (2, 3, 3, 2), (7, 1, 2), (4, 5, 3)])
@pytest.mark.parametrize("noise_std", [0.0, 0.1, "auto"])
def test_tiny_clips(shape, noise_std):
    values = rng(1).random(shape)
    observed = rng(2).random(shape) < 0.6
    observed.flat[0] = True
    found = completed(values, observed, noise_std=noise_std)
    assert found.mean.shape == shape and np.isfinite(found.mean).all() and np.isfinite(found.sd).all()


@pytest.mark.parametrize("unit, offset", [(65535.0, 0.0), (1e-6, 0.0), (1e150, 0.0), (1.0, -500.0)])
def test_any_scale_gives_the_same(unit, offset):
    truth = clip(frames=4)
    observed = masked(truth.shape)
    config = patches.Config(frames=3, **QUICK)
    one, other = (solve(methods.get("patches"), config, t, observed, rng=rng()) for t in (truth, unit * truth + offset))
    np.testing.assert_allclose((other.mean - offset) / unit, one.mean, atol=2e-3)


def test_a_constant_clip_stays_constant():
    truth = np.full((12, 14, 3, 4), 0.25)
    observed = np.ones(truth.shape, bool)
    observed[3:6, 2:9, :, 1] = False
    found = completed(truth, observed)
    assert np.allclose(found.mean, 0.25, atol=1e-6)


def test_a_clip_without_holes_and_noise_is_returned_as_it_is_without_work(monkeypatch):
    truth = clip()
    monkeypatch.setattr(patches.patches_clip.field, "solve_with_sd", None)
    monkeypatch.setattr(patches.patches_clip.motion, "predict", None)
    found = completed(truth, np.ones(truth.shape, bool))
    assert np.array_equal(found.mean, truth) and (found.sd == 0).all() and not found.warnings


def test_only_groups_that_touch_a_hole_are_worked_on(monkeypatch):
    from tdc_cli.patches import refine as passes

    truth = clip()
    observed = np.ones(truth.shape, bool)
    observed[10:12, 10:12, :, 3] = False
    seen = []
    plain = passes._Problem._one_pass
    monkeypatch.setattr(passes._Problem, "_one_pass", lambda *args: seen.append(args[2]) or plain(*args))
    completed(truth, observed, calibrate=False)
    for positions in seen:
        frames, tops = np.divmod(positions // SIDE, SIDE)
        assert set(frames) <= {2, 3} and len(positions) and ((tops >= 5) & (tops <= 11)).all()


def test_the_motion_is_looked_for_around_the_holes_only(monkeypatch):
    from tdc_cli.methods import patches_clip

    truth = clip(frames=4)
    observed = np.ones(truth.shape, bool)
    observed[10:12, 20:, :, 1] = False
    seen = []
    plain = patches_clip.motion.predict
    monkeypatch.setattr(patches_clip.motion, "reach", lambda gap: 3 + gap)
    monkeypatch.setattr(
        patches_clip.motion, "predict", lambda frame, *more: seen.append(frame.shape) or plain(frame, *more)
    )
    completed(truth, observed, calibrate=False)
    assert seen == [(10, 8, 3)]


def test_the_noise_is_found():
    truth = clip()
    noisy = truth + 0.05 * rng(1).standard_normal(truth.shape)
    found = completed(noisy, masked(truth.shape), noise_std="auto")
    assert found.noise_std == pytest.approx(0.05, rel=0.15)


def test_intervals_hold_what_they_say_of_observed_and_of_missing_entries():
    truth = clip(frames=12)
    observed = masked(truth.shape)
    noisy = truth + 0.05 * rng(1).standard_normal(truth.shape)
    found = completed(noisy, observed, noise_std=0.05)
    inside = np.abs(found.mean - truth) <= 1.645 * found.sd
    assert 0.8 < inside[observed].mean() < 0.98
    assert inside[~observed].mean() > 0.75


def test_held_out_is_in_the_shape_of_what_is_missing():
    from tdc_cli.methods import patches_clip

    truth = clip()
    stacked = patches_clip._Clip.of(truth, masked(truth.shape), ~masked(truth.shape), 3)
    held = stacked.restored(patches_clip.hold_out(stacked, rng()))
    assert held[..., ::2].any() and not held[..., 1::2].any()
    assert not (held & ~masked(truth.shape)).any()
    whole = np.ones(truth.shape, bool)
    whole[..., 6] = False
    stacked = patches_clip._Clip.of(truth, whole, ~whole, 3)
    held = stacked.restored(patches_clip.hold_out(stacked, rng()))
    frames = held.all(axis=(0, 1, 2))
    assert frames.sum() == 1 and held.any(axis=(0, 1, 2)).sum() == 1
    assert not frames[5:8].any()


def test_holes_that_stay_where_they_are_are_held_out_in_all_frames_alike():
    """What a frame lacks the frames beside it lack too; errors of pieces of a logo are few that are independent."""
    from tdc_cli.methods import patches_clip

    truth = clip()
    specks, logo = np.ones((2, *truth.shape), bool)
    specks[rng().random((SIDE, SIDE)) < 0.1] = False
    logo[4:12, 6:18] = False
    found = []
    for observed in (specks, logo):
        stacked = patches_clip._Clip.of(truth, observed, ~observed, 3)
        held = patches_clip.hold_out(stacked, rng())
        frames = stacked.by_frame(held)
        assert frames[0].any() and (frames == frames[0]).all()
        found.append(patches_clip.independent(stacked, held))
    assert found[1] < 10 < found[0]
    moving = rng().random(truth.shape) > 0.1
    stacked = patches_clip._Clip.of(truth, moving, ~moving, 3)
    frames = stacked.by_frame(patches_clip.hold_out(stacked, rng()))
    assert (frames != frames[0]).any()


def test_the_factor_of_observed_entries():
    from tdc_cli.methods.patches_clip import _factor_of_observed

    noise, alone = 1.0, 0.25
    errors = rng().normal(0, np.sqrt(alone + noise), 200_000)
    true = alone * noise / (alone + noise)
    assert _factor_of_observed(errors, np.full(len(errors), 4 * true), noise) == pytest.approx(0.5, rel=0.05)
    assert _factor_of_observed(errors[:5], np.full(5, 4 * true), noise) == pytest.approx(1.0, abs=0.5)
    assert _factor_of_observed(errors[:0], errors[:0], noise) == 1.0


def test_same_bits_with_one_and_two_threads():
    from tdc_cli.run.threads import limited

    truth = clip(frames=3)
    observed = masked(truth.shape)
    results = []
    for threads in (1, 2):
        with limited(threads):
            results.append(completed(truth + 0.02 * rng(3).standard_normal(truth.shape), observed, noise_std=0.02))
    assert np.array_equal(results[0].mean, results[1].mean) and np.array_equal(results[0].sd, results[1].sd)
