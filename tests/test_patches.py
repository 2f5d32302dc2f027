"""Passes over patch groups, the calibration of their standard deviations, and the method, in Python and through the
command line.
"""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from conftest import ROOT, pixels, report_of, smooth
from PIL import Image
from scipy.ndimage import distance_transform_cdt, find_objects, label

from tdc_cli import field, methods
from tdc_cli.errors import ConfigError, InputError
from tdc_cli.holes import simulate
from tdc_cli.methods import blocks, patches
from tdc_cli.methods.solve import solve
from tdc_cli.patches import borders, calibrate, schedule
from tdc_cli.patches import refine as passes
from tdc_cli.patches.refine import refine
from tdc_cli.patches.schedule import Settings
from tdc_cli.run import threads

SAMPLES = ROOT / "sample_data"
FEW = Settings(passes=6)
pytestmark = pytest.mark.usefixtures("one_thread")


def rng(seed=0):
    return np.random.default_rng(seed)


def photograph(name="astronaut", top=130, left=60, height=40, width=48):
    """(height, width, C) crop of a sample photograph, 0..1."""
    whole = pixels(SAMPLES / f"{name}.png") / 255
    return whole.reshape(*whole.shape[:2], -1)[top : top + height, left : left + width]


def scattered(shape, share=0.6, seed=0):
    """Which entries are observed if `share` of them is missing."""
    return rng(seed).random(shape) > share


def holed(truth, observed):
    return np.where(observed, truth, np.nan)


def psnr(estimate, truth, where):
    return -10 * np.log10(np.mean((estimate - truth)[where] ** 2))


def refined(truth, observed, settings=FEW, start=None, **more):
    start = (
        field.solve(holed(truth, observed), observed, more.get("noise_variance", 0.0)).mean if start is None else start
    )
    stages = settings if isinstance(settings, tuple) else (settings,)
    return refine(holed(truth, observed), observed, start, stages, rng=rng(), **more)


# -- passes
# -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, top, left", [("astronaut", 130, 60), ("chelsea", 60, 80), ("camera", 100, 100)])
def test_passes_better_the_field_and_keep_what_is_observed(name, top, left):
    truth = photograph(name, top, left)
    observed = scattered(truth.shape)
    start = field.solve(holed(truth, observed), observed, 0.0).mean
    estimate, variance = refined(truth, observed, Settings(passes=10), start)
    assert psnr(estimate, truth, ~observed) > psnr(start, truth, ~observed) + 0.5
    assert np.array_equal(estimate[observed], truth[observed])
    assert variance is None


def test_noisy_observed_entries_are_denoised():
    """Their error is at most 0.7 of the noise, and a pass over them leaves no group out."""
    truth = photograph()
    observed = scattered(truth.shape, 0.3)
    noise = 0.05 * rng(1).standard_normal(truth.shape)
    estimate, _ = refined(truth + noise, observed, noise_variance=0.05**2)
    assert np.std((estimate - truth)[observed]) < 0.7 * np.std(noise[observed])


def test_noise_is_taken_out_of_a_picture_without_holes():
    truth = photograph()
    noisy = truth + 0.05 * rng(1).standard_normal(truth.shape)
    everything = np.ones(truth.shape, dtype=bool)
    estimate, _ = refined(noisy, everything, noise_variance=0.05**2)
    assert np.std(estimate - truth) < 0.6 * 0.05


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_scale_and_offset_carry_over(noise):
    truth = photograph()
    observed = scattered(truth.shape)
    start = field.solve(holed(truth, observed), observed, noise**2).mean
    settings = replace(FEW, passes=2)
    one, variance = refined(truth, observed, settings, start, noise_variance=noise**2, variance=True)
    other, scaled = refined(
        truth * 1000 + 50, observed, settings, start * 1000 + 50, noise_variance=1e6 * noise**2, variance=True
    )
    error = np.abs(other - (one * 1000 + 50)) / 1000
    # Rounding may exchange two patches that are equally alike, here and there.
    assert np.quantile(error, 0.95) < 1e-4 and error.max() < 0.02
    assert np.quantile(np.abs(scaled / 1e6 - variance), 0.95) < 1e-3 * variance.max()


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_same_bits_with_any_number_of_threads(noise):
    truth = photograph()
    observed = scattered(truth.shape)
    start = field.solve(holed(truth, observed), observed, noise**2).mean
    results = []
    for count in (1, 2):
        with threads.limited(count):
            results.append(
                refined(truth, observed, replace(FEW, passes=3), start, noise_variance=noise**2, variance=True)
            )
    assert all(np.array_equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize("garbage", [np.inf, 1e30, -7.0])
def test_what_is_under_the_mask_is_never_read(garbage):
    truth = photograph()
    observed = scattered(truth.shape)
    start = np.full(truth.shape, 0.5)
    settings = replace(FEW, passes=2)
    clean, spread = refined(truth, observed, settings, start, variance=True)
    dirty, other = refine(np.where(observed, truth, garbage), observed, start, (settings,), rng=rng(), variance=True)
    assert np.isfinite(clean).all() and np.array_equal(clean, dirty) and np.array_equal(spread, other)


def test_every_pass_is_told_and_draws_another_grid(monkeypatch):
    truth = photograph()
    observed = scattered(truth.shape)
    grids, told = [], []
    plain = passes._grid
    monkeypatch.setattr(passes, "_grid", lambda *args: grids.append(plain(*args)) or grids[-1])
    refined(truth, observed, tick=lambda: told.append(len(grids)))
    assert told == [1, 2, 3, 4, 5, 6]
    assert len({tuple(grid) for grid in grids}) > 1


def test_the_variance_is_larger_where_errors_are():
    """Entries of the upper half of the spreads have at least twice the mean squared error of the lower half."""
    truth = photograph()
    observed = scattered(truth.shape)
    estimate, variance = refined(truth, observed, variance=True)
    squares, spread = (estimate - truth)[~observed] ** 2, variance[~observed]
    assert (spread > 0).all()
    upper = spread > np.median(spread)
    assert squares[upper].mean() > 2 * squares[~upper].mean()


def test_chunks_of_groups_change_nothing_but_rounding(monkeypatch):
    truth = photograph()
    observed = scattered(truth.shape)
    one = refined(truth, observed, replace(FEW, passes=1), variance=True)
    monkeypatch.setattr(passes, "CHUNK", 7)
    other = refined(truth, observed, replace(FEW, passes=1), variance=True)
    assert all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(one, other, strict=True))


# -- where the passes go
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_touched_is_that_of_brute_force(size, share):
    chosen = rng(size).random((11, 9)) < share
    wanted = [[chosen[r : r + size, c : c + size].any() for c in range(9 - size + 1)] for r in range(11 - size + 1)]
    assert np.array_equal(passes._touched(chosen[None], Settings(size=size, stride=1))[0], wanted)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_touched_looks_at_all_frames_of_a_patch(depth):
    chosen = rng(depth).random((5, 9, 8)) < 0.02
    found = passes._touched(chosen, Settings(size=4, depth=depth))
    assert found.shape == (5 - depth + 1, 6, 5)
    for t, r, c in np.ndindex(found.shape):
        assert found[t, r, c] == chosen[t : t + depth, r : r + 4, c : c + 4].any()


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_the_whole_grid_covers_every_pixel(size):
    """For every stride up to the size, whatever the origin, on pictures that the stride does not divide."""
    for stride in range(1, size + 1):
        for height, width in [(size, size), (size + 1, 23), (17, 20)]:
            wanted = np.ones((1, height - size + 1, width - size + 1), dtype=bool)
            for seed in range(12):
                covered = np.zeros((height, width), dtype=bool)
                for position in passes._grid(wanted, Settings(size=size, stride=stride), rng(seed)):
                    top, left = divmod(position, width)
                    assert top <= height - size and left <= width - size
                    covered[top : top + size, left : left + size] = True
                assert covered.all()


def test_the_grid_is_where_something_is_missing_and_covers_that():
    absent = rng(3).random((40, 37)) < 0.01
    absent[-1, -1] = absent[0, 0] = True
    settings = Settings(size=6, stride=3)
    wanted = passes._touched(absent[None], settings)
    for seed in range(6):
        covered = np.zeros((40, 37), dtype=bool)
        for position in passes._grid(wanted, settings, rng(seed)):
            top, left = divmod(position, 37)
            assert wanted[0, top, left]
            covered[top : top + 6, left : left + 6] = True
        assert covered[absent].all()


def test_groups_far_from_a_hole_are_not_worked_on(monkeypatch):
    truth = photograph()
    observed = np.ones(truth.shape, dtype=bool)
    observed[10:13, 30:33] = False
    seen = []
    plain = passes._Problem._one_pass
    monkeypatch.setattr(passes._Problem, "_one_pass", lambda *args: seen.append(args[2]) or plain(*args))
    estimate, _ = refined(truth, observed, Settings(passes=3, size=4, stride=2))
    for positions in seen:
        rows, columns = np.divmod(positions, truth.shape[1])
        assert len(positions) and ((rows >= 7) & (rows <= 12) & (columns >= 27) & (columns <= 32)).all()
    assert np.array_equal(estimate[observed], truth[observed])


def test_groups_that_have_settled_are_left_alone_until_the_last_pass(monkeypatch):
    truth = photograph()
    truth[:, :28] = 0.5
    observed = np.ones(truth.shape, dtype=bool)
    observed[10:13, 8:11] = observed[24:27, 38:41] = False
    start = truth.copy()
    start[24:27, 38:41] = 0.9
    seen = []
    plain = passes._Problem._one_pass
    monkeypatch.setattr(passes._Problem, "_one_pass", lambda *args: seen.append(args[2]) or plain(*args))

    def flat_groups(settled):
        """Of every pass, how many groups lie about the flat hole; each has some about the other."""
        seen.clear()
        refined(truth, observed, Settings(passes=4, size=4, stride=2, members=24, settled=settled), start)
        assert all((positions % truth.shape[1] > 28).any() for positions in seen)
        return [np.sum(positions % truth.shape[1] < 28) for positions in seen]

    assert min(flat_groups(0.0)) > 0
    first, *middle, last = flat_groups(0.03)
    assert first and last and not any(middle)


def test_where_all_has_settled_passes_change_nothing():
    truth = photograph()
    observed = scattered(truth.shape)
    start = field.solve(holed(truth, observed), observed, 0.0).mean
    one = replace(FEW, passes=2, step=1.0, momentum=0.0, first_ridge=1e-3, last_ridge=1e-3)
    few, _ = refined(truth, observed, (one,), start)
    many, _ = refined(truth, observed, (replace(one, passes=9, settled=1e9),), start)
    # Two passes that work; the grids of the last ones differ.
    assert 0 < np.abs(few - many).max() < 0.2 and psnr(few, many, ~observed) > 35


def test_a_stage_of_some_share_is_averaged_with_what_it_began_with():
    truth = photograph()
    observed = scattered(truth.shape)
    one = replace(FEW, passes=2)
    start = np.full(truth.shape, 0.5)
    half, spread = refined(truth, observed, (replace(one, share=0.25),), start, variance=True)
    full, _ = refined(truth, observed, one, start)
    assert spread is None  # nothing but a stage that stands alone has a variance
    assert np.allclose(half[~observed], (0.75 * start + 0.25 * full)[~observed], atol=1e-6)
    both, first = refined(truth, observed, (one, replace(one, size=4, share=0.5)), start, variance=True)
    assert np.array_equal(first, refined(truth, observed, one, start, variance=True)[1]) and not np.array_equal(
        both, full
    )


def test_nothing_missing_is_returned_as_it_is():
    truth = photograph()
    estimate, variance = refined(
        truth, np.ones(truth.shape, dtype=bool), replace(FEW, passes=2), truth + 0.1, variance=True
    )
    assert np.array_equal(estimate, truth) and (variance == 0).all()


@pytest.mark.parametrize("shape, size, window, wanted", [((40, 48), 6, 18, 48), ((6, 6), 6, 18, 1), ((7, 8), 6, 18, 6),
                                                         ((1, 9), 1, 3, 4), ((40, 48), 6, 2, 9)])  # fmt: skip
def test_a_group_has_no_more_members_than_the_window_of_a_corner(shape, size, window, wanted):
    assert passes.members((1, *shape), Settings(size=size, window=window)) == wanted


@pytest.mark.parametrize(
    "frames, depth, reach, wanted", [(5, 1, 2, 25 + 2 * 9), (5, 1, 9, 25 + 4 * 9), (2, 2, 3, 25), (3, 2, 3, 25 + 9)]
)
def test_a_group_has_no_more_members_than_the_windows_of_a_corner_of_the_first_frame(frames, depth, reach, wanted):
    settings = Settings(size=6, members=1000, window=4, drift=2, reach=reach, depth=depth)
    assert passes.members((frames, 20, 20), settings) == wanted


# -- what is hidden
# -----------------------------------------------------------------------------------------------------------


def absent_by(pattern, ratio, shape=(120, 100, 3), seed=0):
    return ~simulate(shape, ratio, pattern, rng(seed))


def mask(name):
    return np.repeat((pixels(SAMPLES / f"mask_{name}.png") > 0)[..., None], 3, axis=2)


@pytest.mark.parametrize("ratio", [0.0, 0.02, 0.3, 0.6, 0.9, 0.98])
@pytest.mark.parametrize("pattern", ["entries", "pixels"])
def test_scattered_holes_are_no_strokes(pattern, ratio):
    assert calibrate.are_strokes(absent_by(pattern, ratio)) is False


@pytest.mark.parametrize("pattern", ["text", "scratches", "blocks", "rows", "columns"])
def test_what_hangs_together_is_strokes(pattern):
    assert calibrate.are_strokes(absent_by(pattern, 0.2, (256, 256, 3))) is True


@pytest.mark.parametrize("name", ["text", "scratches", "dots"])
def test_the_sample_masks_are_strokes(name):
    assert calibrate.are_strokes(mask(name)) is True


@pytest.mark.parametrize("where", [np.s_[3:9, 4:11], np.s_[-1], np.s_[:, -1], np.s_[0], np.s_[:, 0], np.s_[-1:, -4:]])
@pytest.mark.filterwarnings("error")
def test_one_block_is_strokes_wherever_it_lies(where):
    absent = np.zeros((20, 24, 3), dtype=bool)
    absent[where] = True
    assert calibrate.are_strokes(absent) is True


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("where", [np.s_[4, 5], np.s_[-1, -1], np.s_[0, 0]])
def test_one_pixel_is_no_stroke(where):
    absent = np.zeros((20, 24, 3), dtype=bool)
    absent[where] = True
    assert calibrate.are_strokes(absent) is False


HOLES = {
    "entries 60 %": absent_by("entries", 0.6),
    "entries 95 %": absent_by("entries", 0.95),
    "pixels 60 %": absent_by("pixels", 0.6),
    "nothing": np.zeros((30, 40, 3), dtype=bool),
    "text": absent_by("text", 0.15, (200, 220, 3)),
    "scratches": absent_by("scratches", 0.05, (200, 220, 3)),
    "rows": absent_by("rows", 0.3),
    "text mask": mask("text"),
    "scratches mask": mask("scratches"),
}


@pytest.mark.parametrize("holes", HOLES)
@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_about_the_share_is_hidden_and_only_observed_entries(holes, share):
    absent = HOLES[holes]
    held = calibrate.hold_out(~absent, share, rng(1))
    assert held.shape == absent.shape and not (held & absent).any()
    relative = held.sum() / (share * np.sum(~absent))
    piece = (
        calibrate.PIECE**2 * absent.mean() * 3 / (share * np.sum(~absent)) if calibrate.are_strokes(absent) else 0.01
    )
    assert 0.45 < relative < 1 + 3 * piece
    assert (absent | held).all(axis=(0, 1)).sum() == 0


def test_no_more_than_the_most_is_hidden_where_entries_are_scattered():
    assert calibrate.hold_out(~HOLES["entries 60 %"], 0.05, rng(1), 50).sum() == 50
    assert calibrate.hold_out(~HOLES["text mask"], 0.05, rng(1), 50).sum() > 1000


@pytest.mark.parametrize("holes", ["pixels 60 %", "nothing", "text", "scratches mask"])
def test_whole_pixels_are_hidden_where_whole_pixels_are_missing(holes):
    held = calibrate.hold_out(~HOLES[holes], 0.05, rng(2))
    assert held.any() and np.array_equal(held.all(axis=2), held.any(axis=2))


def test_entries_are_hidden_where_channels_differ():
    """Of those hidden in one channel, about a twentieth is hidden in the next one too, as by chance."""
    held = calibrate.hold_out(~HOLES["entries 60 %"], 0.05, rng(2))
    together = np.sum(held[..., 0] & held[..., 1]) / held[..., 0].sum()
    assert held.any() and together < 0.05
    assert not np.array_equal(held, calibrate.hold_out(~HOLES["entries 60 %"], 0.05, rng(3)))


@pytest.mark.parametrize("name", ["text", "scratches"])
def test_strokes_are_hidden_as_pieces_of_strokes(name):
    """What is hidden hangs together as the mask does, and is the mask elsewhere, less what is missing anyway: of a hole
    that a square of `PIECE` pixels holds all or nothing, of others such squares, `APART` from what is missing.
    """
    absent = mask(name)
    held = calibrate.hold_out(~absent, 0.02, rng(4))
    assert calibrate.are_strokes(held)
    flat, found = absent[..., 0], held[..., 0]
    holes, _ = label(flat, np.ones((3, 3)))
    large = [k + 1 for k, s in enumerate(find_objects(holes)) if max(a.stop - a.start for a in s) > calibrate.PIECE]
    far = distance_transform_cdt(~flat, "chessboard") > calibrate.APART
    rows, columns = np.indices(flat.shape) // calibrate.PIECE
    units = np.where(np.isin(holes, large), -1 - 8 * rows - columns, holes) * flat
    # One of its pixels came from some missing pixel: these are all the moves that there can be.
    moves = (np.argwhere(found)[0] - np.argwhere(flat)) % 256
    hidden = np.argwhere(found)
    matching = []
    for move in moves:
        if flat[tuple(((hidden - move) % 256).T)].all():
            there, apart, back = (np.roll(a, -move, (0, 1)) for a in (~flat, far, found))
            chosen = np.unique(units[back])
            if np.array_equal(np.isin(units, chosen) & np.where(units > 0, there, apart & flat), back):
                matching.append((move, len(chosen)))
    ((move, count),) = matching
    assert move.any() and 0 < count < len(np.unique(units)) - 1


@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_hidden_whole_and_away_from_what_is_missing(seed):
    absent = np.zeros((128, 128, 3), dtype=bool)
    for row, column in ((10, 20), (14, 80), (60, 50), (70, 100), (100, 8)):
        absent[row : row + 12, column : column + 12] = True
    held = calibrate.hold_out(~absent, 0.03, rng(seed))[..., 0]
    assert distance_transform_cdt(~absent[..., 0], "chessboard")[held].min() > calibrate.APART
    # Moves are cyclic: a block that goes over the border comes in two parts.
    holes, count = label(np.tile(held, (2, 2)), np.ones((3, 3)))
    assert count and held.sum() % 144 == 0
    middle = np.unique(holes[76:180, 76:180])[1:]
    assert all(np.sum(holes == k) == 144 for k in middle)


@pytest.mark.parametrize("seed", range(4))
def test_a_deep_hole_at_the_border_is_held_out_at_a_border(seed):
    absent = np.zeros((96, 96, 1), dtype=bool)
    absent[:16, 36:56] = True
    held = calibrate.hold_out(~absent, 0.05, rng(seed))[..., 0]
    holes, count = label(held, np.ones((3, 3)))
    assert count and all({0, 95} & set(np.nonzero(holes == k)[0]) for k in range(1, count + 1))


def test_a_long_hole_is_held_out_as_deep_as_it_is():
    absent = np.zeros((256, 256, 1), dtype=bool)
    absent[52:76] = True

    def mean_depth(where):
        return distance_transform_cdt(where[..., 0], "chessboard")[where[..., 0]].mean()

    held = [mean_depth(calibrate.hold_out(~absent, 0.03, rng(seed), long=True)) for seed in range(8)]
    assert np.median(held) > 0.85 * mean_depth(absent)


def test_samples_with_deep_holes_are_estimated_where_they_are_held_out_alone(monkeypatch):
    values = photograph(height=64, width=96)
    absent = np.zeros(values.shape, dtype=bool)
    absent[:, 40:52] = True
    seen = {}

    def draft(values, observed, wanted, held, *rest):
        seen[len(seen)] = wanted.sum(), held.sum()
        return told(values, observed, wanted, held, *rest)

    told = patches._draft
    monkeypatch.setattr(patches, "_draft", draft)
    shared = patches.share([(values, ~absent, absent)] * 2, patches.Config(passes=4), rng=rng())
    assert len(seen) == 2 and all(not wanted for wanted, _ in seen.values())
    assert sum(held for _, held in seen.values()) == shared.verdict["count"] > 0.075 * 2 * np.sum(~absent)


@pytest.mark.parametrize("side", [12, 16, 32, 33, 40])
def test_a_small_picture_has_strokes_to_hide_and_keeps_most(side):
    absent = np.zeros((side, side, 3), dtype=bool)
    absent[2:6, 3:8] = True
    for seed in range(10):
        held = calibrate.hold_out(~absent, 0.05, rng(seed))
        assert 0 < held.sum() < 0.25 * np.sum(~absent)


def test_a_small_hole_in_a_large_picture_is_moved_more_than_once():
    absent = np.zeros((240, 240, 3), dtype=bool)
    absent[50:54, 60:64] = True
    assert calibrate.hold_out(~absent, 0.05, rng()).sum() > 4 * absent.sum()


def test_a_channel_is_never_hidden_whole():
    """The only observed entry of channel 1 stays, however much is asked for; and nothing is hidden if everything is
    asked for.
    """
    observed = scattered((12, 12, 3), 0.5)
    observed[..., 1] = False
    observed[4, 4, 1] = True
    helds = [calibrate.hold_out(observed, 0.9, rng(seed)) for seed in range(10)]
    assert all(held.any() and not held[4, 4, 1] for held in helds)
    assert not calibrate.hold_out(observed, 1.0, rng()).any()


# -- scales
# -------------------------------------------------------------------------------------------------------------------


def drawn(kind, count, seed, factor=lambda spread: 0.3 * spread):
    """Errors whose standard deviations are a function of the spreads, and the spreads, which vary over a decade and
    more.
    """
    random = rng(seed)
    spreads = np.exp(0.8 * random.standard_normal(count))
    unit = random.standard_normal(count) if kind == "normal" else random.laplace(size=count) / np.sqrt(2)
    return unit * factor(spreads), spreads


def inside(scale, errors, spreads):
    return np.mean(np.abs(errors) <= calibrate.NORMAL_90 * scale(spreads))


@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_intervals_of_fresh_errors_hold_ninety_percent(kind):
    scale = calibrate.fit_scale(*drawn(kind, 6000, 1))
    assert 0.88 < inside(scale, *drawn(kind, 20000, 2)) < 0.92


@pytest.mark.parametrize("kind", ["normal", "laplace"])
@pytest.mark.parametrize("count", [20, 40, 150, 400])
def test_intervals_from_few_errors_hold_ninety_percent_on_average(kind, count):
    shares = [
        inside(calibrate.fit_scale(*drawn(kind, count, seed)), *drawn(kind, 4000, 1000 + seed)) for seed in range(100)
    ]
    assert 0.88 < np.mean(shares) < 0.92


@pytest.mark.parametrize("holes", [4, 8, 16])
def test_intervals_from_few_holes_hold_ninety_percent_on_average(holes):
    """All errors within a hole are one error."""

    def of_holes(count, seed):
        random = rng(seed)
        errors = np.repeat(random.standard_normal(count), 400)
        return errors, 1 + 0.1 * random.random(len(errors))

    shares = [inside(calibrate.fit_scale(*of_holes(holes, seed), 0.0, holes), *of_holes(100, 1000 + seed))
              for seed in range(200)]  # fmt: skip
    assert 0.87 < np.mean(shares) < 0.95


def test_errors_within_a_square_as_wide_as_a_hole_count_as_one():
    held = np.zeros((80, 80, 3), bool)
    held[10:30, 10:30] = held[50:70, 40:60] = True
    assert 2 <= calibrate.independent(held) <= 5
    assert calibrate.independent(scattered((80, 80, 3), 0.98)) == scattered((80, 80, 3), 0.98).any(axis=2).sum()


def test_the_factor_is_the_ratio_of_errors_to_spreads():
    scale = calibrate.fit_scale(*drawn("normal", 20000, 1))
    assert np.all(np.diff(scale.spreads) > 0) and len(scale.spreads) == calibrate.MOST_BINS
    assert np.allclose(scale.factors, 0.3, rtol=0.1)


@pytest.mark.parametrize("factor", [lambda s: 0.3 * np.sqrt(s), lambda s: 0.1 * s**1.5, lambda s: np.full_like(s, 0.4)])
def test_the_scale_follows_the_spread(factor):
    """Errors that grow otherwise than the spreads do: every quarter of the fresh ones is covered, small spreads as well
    as large.
    """
    scale = calibrate.fit_scale(*drawn("normal", 12000, 1, factor))
    errors, spreads = drawn("normal", 40000, 2, factor)
    for quarter in np.array_split(np.argsort(spreads), 4):
        assert 0.88 < inside(scale, errors[quarter], spreads[quarter]) < 0.92
    middle = np.array([0.5, 1.0, 2.0])
    assert np.allclose(scale(middle), factor(middle), rtol=0.15)


def test_noise_is_taken_out_of_the_errors():
    errors, spreads = drawn("normal", 12000, 1)
    noisy = errors + 0.4 * rng(3).standard_normal(len(errors))
    middle = np.array([1.0, 2.0, 4.0])
    assert np.allclose(calibrate.fit_scale(noisy, spreads, 0.16)(middle), 0.3 * middle, rtol=0.2)
    assert calibrate.fit_scale(noisy, spreads)(1.0) == pytest.approx(0.5, rel=0.1)
    assert calibrate.coverage_by_halves(noisy, spreads, 0.16, rng()) == pytest.approx(0.9, abs=0.01)


def test_noise_larger_than_the_errors_leaves_a_small_positive_deviation():
    errors, spreads = drawn("normal", 2000, 1)
    sd = calibrate.fit_scale(errors, spreads, 100.0)(spreads)
    assert (sd > 0).all() and np.sum(sd**2) < 0.15 * np.sum(errors**2)


@pytest.mark.filterwarnings("error")
def test_spreads_of_nought_get_a_deviation_too():
    errors, spreads = drawn("normal", 1000, 1)
    spreads[:300] = 0.0
    sd = calibrate.fit_scale(errors, spreads)(np.array([0.0, 1e-30, 1.0]))
    assert (sd > 0).all() and np.isfinite(sd).all()
    assert inside(calibrate.fit_scale(errors, spreads), errors, spreads) > 0.87


@pytest.mark.filterwarnings("error")
def test_errors_of_nought_get_a_small_deviation():
    _, spreads = drawn("normal", 1000, 1)
    sd = calibrate.fit_scale(np.zeros(1000), spreads)(spreads)
    assert (sd > 0).all() and (sd < 1e-5 * spreads.max()).all()


def test_too_few_entries_or_no_spread_give_no_scale():
    errors, spreads = drawn("normal", 100, 1)
    fewest = 20
    assert calibrate.fit_scale(errors[: fewest - 1], spreads[: fewest - 1]) is None
    assert calibrate.fit_scale(errors[:fewest], spreads[:fewest]) is not None
    assert calibrate.fit_scale(errors, np.zeros(100)) is None
    assert calibrate.coverage_by_halves(errors[: 2 * fewest - 1], spreads[: 2 * fewest - 1], 0.0, rng()) is None
    assert calibrate.coverage_by_halves(errors[: 2 * fewest], spreads[: 2 * fewest], 0.0, rng()) is not None
    assert calibrate.coverage_by_halves(errors[:0], spreads[:0], 0.0, rng()) is None


@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_coverage_by_halves_is_ninety_percent(kind):
    assert calibrate.coverage_by_halves(*drawn(kind, 8000, 1), 0.0, rng()) == pytest.approx(0.9, abs=0.01)


def test_coverage_by_halves_judges_a_half_by_the_other():
    """A share judged by a scale that was fitted to the same errors would hardly vary."""
    shares = [calibrate.coverage_by_halves(*drawn("normal", 60, seed), 0.0, rng(seed)) for seed in range(150)]
    own = []
    for seed in range(150):
        errors, spreads = drawn("normal", 60, seed)
        own.append(inside(calibrate.fit_scale(errors, spreads), errors, spreads))
    assert np.mean(shares) == pytest.approx(0.9, abs=0.02)
    assert np.std(shares) > 2 * np.std(own)


# -- the method
# ---------------------------------------------------------------------------------------------------------------


def completed(truth, observed, seed=0, **parameters):
    return patches.complete(holed(truth, observed), observed, patches.Config(**parameters), rng=rng(seed))


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("mean", "sd", "predictive_sd"))


def check(done, truth, observed):
    """What holds of every completion without noise."""
    assert done.mean.shape == done.sd.shape == done.predictive_sd.shape == truth.shape
    assert np.isfinite(done.mean).all() and np.isfinite(done.sd).all()
    assert np.array_equal(done.mean[observed], truth[observed]) and (done.sd[observed] == 0).all()


@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 3),
        (1, 2),
        (2, 2),
        (2, 3, 3),
        (6, 6, 3),
        (7, 6, 1),
        (1, 9, 3),
        (9, 1, 3),
        (1, 40, 1),
        (2, 40, 3),
        (9, 8, 3, 2),
        (7, 7, 2, 2, 2),
    ],
)
@pytest.mark.filterwarnings("error")
def test_tiny_pictures_of_any_order(shape):
    truth = rng(1).random(shape)
    observed = rng(2).random(shape) > 0.4
    observed.flat[0], observed.flat[-1] = True, False
    done = completed(truth, observed, passes=2)
    check(done, truth, observed)
    assert done.parameters["size"] <= min(shape[:2])


@pytest.mark.parametrize("shape", [(1, 9, 3), (2, 3, 3), (6, 6)])
def test_tiny_pictures_start_from_the_global_model_where_asked(shape):
    truth = rng(1).random(shape)
    observed = rng(2).random(shape) > 0.4
    observed.flat[0], observed.flat[-1] = True, False
    done = completed(truth, observed, passes=2, start="global")
    check(done, truth, observed)
    assert done.parameters["global_in_start"] == 1


def many_channels(count, height=20, width=24):
    """One grey photograph in every channel, and some noise of its own."""
    return photograph("camera", 100, 100, height, width) + 0.01 * rng(0).standard_normal((height, width, count))


@pytest.mark.parametrize("count, size", [(1, 6), (2, 6), (4, 6), (9, 4), (40, 2)])
def test_any_number_of_channels_is_completed_from_its_own_and_the_others(count, size):
    truth = many_channels(count, 16, 18)
    observed = scattered(truth.shape, 0.5)
    done = completed(truth, observed, passes=3, start="field")
    check(done, truth, observed)
    assert done.parameters["size"] == size
    alone = completed(truth[..., :1], observed[..., :1], passes=3, start="field")
    missing = ~observed[..., :1]
    error, single = (np.std((d.mean - truth)[..., :1][missing]) for d in (done, alone))
    assert error < 0.85 * single if count > 1 else error == single


def test_channels_without_observed_entries_are_finite():
    truth = many_channels(40, 12, 12)
    observed = scattered(truth.shape, 0.5)
    observed[..., 32:] = False  # all of the second block of channels
    check(completed(truth, observed, passes=2, start="field"), truth, observed)


def test_one_observed_entry_is_enough():
    truth = photograph()
    observed = np.zeros(truth.shape, dtype=bool)
    observed[4, 4, 1] = True
    done = completed(truth, observed, passes=2)
    check(done, truth, observed)
    assert done.held_out == {"count": 0, "coverage90": None}
    assert done.warnings == ("only 0 observed entries could be held out: the standard deviations are not calibrated",)


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_a_constant_picture_is_completed_by_its_constant(value):
    truth = np.full((40, 48, 3), value)
    observed = scattered(truth.shape)
    done = completed(truth, observed, passes=2)
    check(done, truth, observed)
    assert done.mean == pytest.approx(value, abs=1e-6) and (done.sd < 1e-5).all()


@pytest.mark.parametrize("scale", [1e-290, 1e-30, 1e30, 1e290])
@pytest.mark.filterwarnings("error")
def test_values_of_any_size_are_completed(scale):
    truth = photograph(height=24, width=26)
    observed = scattered(truth.shape)
    parameters = {"passes": 2, "start": "field"}
    for noise in (0.0, 0.05) if scale == 1e290 else (0.05,):
        one, other = (
            solve(
                methods.get("patches"),
                patches.Config(noise_std=noise * size, **parameters),
                truth * size,
                observed,
                rng=rng(),
            )
            for size in (1.0, scale)
        )
        for name in ("mean", "sd", "predictive_sd"):
            error = np.abs(getattr(other, name) / scale - getattr(one, name))
            assert np.quantile(error, 0.95) < 1e-4
        assert other.parameters["noise_std"] == pytest.approx(noise * scale)
        assert (other.noise_std or 0.0) == pytest.approx(noise * scale)


def test_scale_and_offset_of_the_data_carry_over():
    truth = photograph()
    observed = scattered(truth.shape)
    one, other = (completed(t, observed, passes=3, start="field") for t in (truth, truth * 1000 + 50))
    assert np.quantile(np.abs((other.mean - 50) / 1000 - one.mean), 0.95) < 1e-3
    assert np.quantile(np.abs(other.sd / 1000 - one.sd), 0.95) < 1e-2
    assert other.held_out["count"] == one.held_out["count"]


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e300])
@pytest.mark.parametrize("start", ["auto", "field"])
def test_what_is_under_the_mask_changes_nothing(garbage, start):
    truth = photograph(height=24, width=26)
    observed = scattered(truth.shape)
    config = patches.Config(passes=2, start=start)
    one = patches.complete(np.where(observed, truth, 0.5), observed, config, rng=rng())
    other = patches.complete(np.where(observed, truth, garbage), observed, config, rng=rng())
    assert same(one, other) and one.held_out == other.held_out and one.parameters == other.parameters


def test_progress_counts_every_pass():
    truth = photograph(height=24, width=26)
    observed = scattered(truth.shape)
    total = 6
    for calibrated in (True, False):
        told = []
        config = patches.Config(passes=6, start="field", calibrate=calibrated)
        patches.complete(truth, observed, config, rng=rng(), monitor=lambda *args, told=told: told.append(args))
        assert told == [(done, total, "pass") for done in range(1, total + 1)]


def test_intervals_hold_what_they_promise_and_so_do_the_held_out_ones():
    truth = photograph("astronaut", 60, 60, 64, 64)
    observed = scattered(truth.shape)
    done = completed(truth, observed, start="field")
    covered = np.mean(np.abs(done.mean - truth)[~observed] <= 1.645 * done.sd[~observed])
    assert covered == pytest.approx(0.9, abs=0.04)
    assert done.held_out["count"] == pytest.approx(0.05 * observed.sum(), abs=1)
    assert done.held_out["coverage90"] == pytest.approx(0.9, abs=0.05)
    assert np.array_equal(done.predictive_sd, done.sd) and done.noise_std is None


def test_noise_is_taken_out_and_its_intervals_hold_what_they_promise():
    """On the average of three draws of the noise: by one, shares scatter by .03."""
    truth = photograph("astronaut", 60, 60, 64, 64)
    observed = scattered(truth.shape, 0.3)
    latent, fresh = [], []
    for seed in (1, 2, 3):
        noisy = truth + 0.05 * rng(seed).standard_normal(truth.shape)
        done = completed(noisy, observed, start="field", passes=6, noise_std=0.05)
        assert np.std((done.mean - truth)[observed]) < 0.6 * 0.05
        assert done.noise_std == pytest.approx(0.05) and (done.sd > 0).all()
        assert np.allclose(done.predictive_sd**2, done.sd**2 + 0.05**2)
        latent.append(np.abs(done.mean - truth) <= 1.645 * done.sd)
        fresh.append((np.abs(done.mean - noisy) <= 1.645 * done.predictive_sd)[~observed])
    for chosen in (observed, ~observed):
        assert np.mean(latent, axis=0)[chosen].mean() == pytest.approx(0.9, abs=0.05)
    assert np.mean(fresh) == pytest.approx(0.9, abs=0.04)


def test_noise_is_learnt():
    truth = photograph("astronaut", 60, 60, 80, 80)
    observed = scattered(truth.shape, 0.3)
    noisy = truth + 0.05 * rng(1).standard_normal(truth.shape)
    done = completed(noisy, observed, start="field", passes=3, calibrate=False, noise_std="auto")
    assert done.noise_std == done.parameters["noise_std"] == pytest.approx(0.05, rel=0.25)
    assert np.std((done.mean - truth)[observed]) < 0.8 * 0.05


def test_without_calibration_nothing_is_said_of_errors():
    truth = photograph(height=24, width=26)
    done = completed(truth, scattered(truth.shape), passes=2, start="field", calibrate=False)
    assert done.sd is done.predictive_sd is done.held_out is None and done.warnings == ()


def test_the_start_is_what_was_asked_for(monkeypatch):
    """The field, the global model, or, where both are wrong by about as much, a point in between."""
    truth = photograph(height=24, width=26)
    observed = scattered(truth.shape)
    prior = patches._prior(holed(truth, observed), observed, patches.Config())
    smooth = field.solve(holed(truth, observed), observed, prior=prior).mean
    model = truth + 0.05 * rng(5).standard_normal(truth.shape)
    starts, helds = [], []
    plain, hold_out = blocks.refine, calibrate.hold_out
    monkeypatch.setattr(calibrate, "hold_out", lambda *args: helds.append(hold_out(*args)) or helds[-1])
    monkeypatch.setattr(patches, "_global", lambda *args: model)
    monkeypatch.setattr(blocks, "refine", lambda values, observed, start, *args, **more: starts.append(start.copy())
                        or plain(values, observed, start, *args, **more))  # fmt: skip
    done = [completed(truth, observed, passes=1, start=s, calibrate=False) for s in ("field", "global", "auto")]
    weights = [d.parameters["global_in_start"] for d in done]
    assert weights[:2] == [0, 1] and 0.1 < weights[2] < 0.9
    assert np.allclose(starts[0], smooth) and np.allclose(starts[1], model)
    kept = observed & ~helds[-1]
    smooth = field.solve(holed(truth, kept), kept, prior=prior).mean
    assert np.allclose(starts[2], smooth + weights[2] * (model - smooth))


def test_the_global_model_helps_where_the_picture_is_of_low_rank():
    """Stripes in both directions, too fast for the field: the start takes the global model, by what it predicts."""
    random = rng(0)
    truth = np.einsum(
        "ir,jr,kr->ijk",
        random.standard_normal((40, 2)),
        random.standard_normal((48, 2)),
        random.standard_normal((3, 2)),
    )
    observed = scattered(truth.shape, 0.4)
    done = completed(truth, observed, passes=3)
    assert done.parameters["global_in_start"] > 0.9 and done.parameters["window"] == patches.TUNED.far
    alone = completed(truth, observed, passes=3, start="field", calibrate=False)
    assert np.std((done.mean - truth)[~observed]) < 0.3 * np.std((alone.mean - truth)[~observed])


@pytest.mark.parametrize("noise", [1e-6, 0.02])
def test_the_global_model_has_no_say_in_what_is_observed_with_noise(noise):
    vector = rng(0).standard_normal((60, 1))
    truth = (vector @ vector.T)[..., None] * [1, 0.8, 0.6] + 0.02 * rng(1).standard_normal((60, 60, 3))
    observed = scattered(truth.shape, 0.5)
    done = completed(truth, observed, passes=4, noise_std=noise)
    assert done.parameters["global_in_result"] > 0.5
    assert np.std((done.mean - truth)[observed]) < 0.5 * np.std((done.mean - truth)[~observed])


@pytest.mark.parametrize("errors, weight", [(7, 0.0), (8, 0.4)])
def test_where_few_errors_are_independent_a_small_weight_of_the_global_model_is_chance(monkeypatch, errors, weight):
    monkeypatch.setattr(patches, "_global", lambda *args: np.full((6, 6, 1), 2.5))
    monkeypatch.setattr(calibrate, "independent", lambda held: errors)
    held = np.ones((6, 6, 1), dtype=bool)
    found = patches._global_part(
        np.ones((6, 6, 1)), ~held, held, np.zeros((6, 6, 1)), patches.Config(), schedule.Schedule((), ()), rng(0)
    )
    assert found[0] == pytest.approx(weight) and (found[1] is None) == (weight == 0)


@pytest.mark.parametrize(
    "hole, left_out, asked",
    [
        (np.s_[10:28, 10:28], None, True),
        (np.s_[10:22, 10:22], None, False),
        (np.s_[20:60:10, 5:60], None, False),
        (np.s_[10:28, 10:28], lambda missing: np.zeros_like(missing), False),
    ],
    ids=["deep", "small", "thin", "deep, its core left to others"],
)
def test_where_little_is_missing_the_global_model_is_asked_about_deep_holes_alone(monkeypatch, hole, left_out, asked):
    starts = []
    monkeypatch.setattr(patches, "_global_part", lambda *args: starts.append(args[4].start) or (0.0, None))
    truth, observed = rng(0).random((64, 64, 1)), np.ones((64, 64, 1), dtype=bool)
    observed[hole] = False
    patches.complete(holed(truth, observed), observed, patches.Config(passes=2), rng=rng(1), left_out=left_out)
    assert starts == ["auto" if asked else "field"]


@pytest.mark.parametrize("command", ["complete-image", "complete-video"])
def test_of_a_channel_that_nothing_shows_the_uncertainty_is_how_far_all_values_vary(tdc, command):
    values = smooth(24, 32).astype(float)
    values = values if command == "complete-image" else np.stack([values] * 2)
    values[..., 2] = np.nan
    np.save("a.npy", values)
    done = tdc(command, "a.npy", "-o", "b.npy", "--method", "patches", "--param", "passes=1", "--uncertainty", "u.npy")
    assert done.exit_code == 0, done.stderr
    assert np.allclose(np.load("u.npy")[..., 2], np.nanstd(values), rtol=1e-3)


def test_no_standard_deviation_is_larger_than_half_the_range_of_what_is_seen():
    sd, values = np.array([[0.2], [3.0], [0.0]]), np.array([[1.0], [-1.5], [0.5]])
    calibrate.bound(sd, values, np.ones((3, 1), bool))
    assert sd.tolist() == [[0.2], [1.25], [0.0]]
    calibrate.bound(sd, values, np.zeros((3, 1), bool))  # of a region in which nothing is known
    assert sd.tolist() == [[0.2], [1.25], [0.0]]
    truth = smooth(48, 48)[..., :1] / 255 + 0.1 * rng(0).standard_normal((48, 48, 1))
    observed = np.ones(truth.shape, dtype=bool)
    observed[:, -20:] = False
    assert completed(truth, observed, passes=4).sd.max() <= np.ptp(truth[observed]) / 2


def test_the_factor_of_the_last_passes():
    left, change = rng(1).standard_normal(40_000), 0.5 * rng(2).standard_normal(40_000)
    assert calibrate.factor_of_last_passes(change, left + change, 0.0) == pytest.approx(1 / np.sqrt(1.25), rel=0.02)
    noisy = left + change + rng(3).standard_normal(40_000)
    assert calibrate.factor_of_last_passes(change, noisy, 1.0) == pytest.approx(1 / np.sqrt(1.25), rel=0.02)
    assert calibrate.factor_of_last_passes(9 * change, left, 0.0) == calibrate.LEAST_LEFT**0.5
    assert (
        calibrate.factor_of_last_passes(change, left, 100.0)
        == calibrate.factor_of_last_passes(change[:0], left, 0.0)
        == 1
    )


def test_few_large_changes_say_nothing_of_most_errors():
    left, change = rng(1).standard_normal(40_000), 0.5 * rng(2).standard_normal(40_000)
    before = np.full(40_000, np.sqrt(1.25))
    alike = calibrate.factor_of_most_changes(change, before)
    assert alike == pytest.approx(1 / np.sqrt(1.25), rel=0.02)
    assert np.mean(np.abs(left) <= 1.645 * alike * before) == pytest.approx(0.9, abs=0.01)
    change[:400] = 50
    assert calibrate.factor_of_most_changes(change, before) == pytest.approx(alike, rel=0.02)
    assert calibrate.factor_of_most_changes(9 * change, before) == calibrate.LEAST_LEFT**0.5
    assert calibrate.factor_of_most_changes(change[:0], before[:0]) == 1


def test_what_was_held_out_is_given_back_to_the_holes_beside_it():
    """Where the draft is off by a constant around a hole, half of which was held out, so is it in what is left of the
    hole, and there only.
    """
    truth = np.repeat(smooth(40, 40)[..., :1] / 255, 3, axis=2)
    observed = np.ones(truth.shape, bool)
    observed[10:14, 10:14] = observed[30:34, 30:34] = False
    estimate = truth.copy()
    estimate[8:16, 8:16] += 0.2
    found = patches._given_back(estimate, truth, observed, ~observed)
    assert np.abs(found - truth)[10:14, 10:14].max() < 1e-6
    assert np.array_equal(found[30:34, 30:34], estimate[30:34, 30:34])
    assert np.array_equal(patches._given_back(truth, truth, observed, ~observed), truth)


@pytest.mark.parametrize(
    "one, other, weight",
    [
        (0.0, 1.0, 1.0),
        (0.0, 4.0, 0.25),
        (0.5, 2.0, 1 / 3),
        (0.0, -1.0, 0.0),
        (0.0, 0.9, 1.0),
        (1.0, 0.0, 0.0),
        (0.5, 0.5, 0.0),
    ],
)
def test_the_best_weight_is_that_of_least_squares_between_nought_and_one(one, other, weight):
    truth = rng(0).standard_normal((9, 8, 3))
    held = rng(1).random(truth.shape) < 0.3
    values = np.where(held, truth, np.nan)
    assert patches._best_weight(values, one * truth, other * truth, held, 0.15) == pytest.approx(weight)


# -- settings
# -----------------------------------------------------------------------------------------------------------------


def stages_of(observed, **parameters):
    usual = schedule.schedule_for(observed, patches.Config(**parameters))
    return [[(s.size, s.members, s.stride, s.passes) for s in stages] for stages in (usual.draft, usual.finish)]


def test_stages_follow_the_holes():
    thin, deep = np.ones((2, 60, 60, 3), dtype=bool)
    thin[:, 30] = False
    deep[20:40, 20:40] = False
    usual, sparse = scattered((60, 60, 3)), scattered((60, 60, 3), 0.9)
    assert stages_of(usual) == [[(6, 64, 6, 10)], [(6, 64, 4, 3), (6, 64, 3, 1), (4, 32, 3, 1)]]
    assert stages_of(sparse) == [[(6, 48, 6, 6), (8, 48, 8, 1)], [(6, 48, 4, 3), (8, 48, 5, 1), (4, 32, 3, 1)]]
    assert stages_of(thin) == [[(6, 64, 6, 8)], [(6, 64, 4, 3), (6, 64, 3, 1)]]
    assert stages_of(deep) == [[(10, 96, 10, 8)], [(10, 96, 7, 3), (10, 96, 5, 1)]]
    assert (
        stages_of(deep, noise_std=0.1)
        == stages_of(deep, noise_std="auto")
        == [[(6, 64, 6, 8)], [(6, 64, 4, 3), (6, 64, 3, 1)]]
    )
    assert stages_of(deep, size=5, members=20, passes=7) == [[(5, 20, 5, 5)], [(5, 20, 3, 1), (5, 20, 2, 1)]]
    assert stages_of(deep, stride=2)[0][0] == (10, 96, 2, 8)
    assert stages_of(np.ones((4, 60, 3), dtype=bool), size=9, stride=8)[0][0][::2] == (
        4,
        4,
    )  # no larger than the picture
    for count in range(1, 40):
        for holes in (usual, sparse, thin, deep):
            found = schedule.schedule_for(holes, patches.Config(passes=count))
            assert found.passes == count and found.draft
    careful = schedule.schedule_for(sparse, patches.Config())
    stages = (*careful.draft, *careful.finish)
    assert all(s.uncertain and s.first_ridge == s.last_ridge == Settings.last_ridge for s in stages)
    assert [s.share for s in stages] == [1, 1, 1, 1, 0.5]
    assert schedule.schedule_for(scattered((60, 60, 3), 0.77), patches.Config()) == careful
    only = schedule.schedule_for(deep, patches.Config())
    assert all(s.share == 1 and not s.uncertain for s in (*only.draft, *only.finish))


@pytest.mark.parametrize("size", ["1x24", "24x1"])
def test_a_picture_of_one_line_is_completed(tdc, size):
    width, height = map(int, size.split("x"))
    Image.fromarray(smooth(height, width)).save("line.png")
    for method in ("patches", "auto"):
        words = ("line.png", "-o", "out.png", "--missing-ratio", "0.4", "--method", method, "--overwrite")
        assert tdc("complete-image", *words).exit_code == 0


@pytest.mark.parametrize("side", range(4))
def test_border_lines_with_a_tone_of_their_own_are_completed_in_it(side):
    """Half dark, the darkness another one in each channel, as scanners leave them."""

    def turned(array):
        return np.rot90(array, side)

    clean = photograph("chelsea", 60, 60, 64, 64)
    truth = turned(clean.copy())
    truth[0] = [0.1, 0.0, 0.3] + [0.4, 0.6, 0.3] * truth[0]
    truth, observed = np.rot90(truth, -side), scattered(clean.shape, 0.7)
    values = np.where(observed, truth, np.nan)
    tones = borders.tones(values, observed, 0.0)
    assert np.sqrt(np.mean((turned(tones) - turned(truth - clean))[0] ** 2)) < 0.04
    assert not turned(tones)[1:].any() and not borders.tones(clean, observed, 0.0).any()
    done = patches.complete(values, observed, patches.Config(passes=3, start="field", calibrate=False), rng=rng())
    np.testing.assert_array_equal(done.mean[observed], truth[observed])
    assert psnr(turned(done.mean)[0], turned(truth)[0], ~turned(observed)[0]) > 30  # with the line as it is 25 to 27


def test_a_border_line_that_only_starts_otherwise_has_no_tone():
    """What is seen of the line brightens over a flat sky, and says nothing of the ramp beside the part that is lost."""
    columns = np.arange(96.0)
    sky = np.where(columns < 40, 0.4, 0.4 + 0.006 * (columns - 40))
    values = np.repeat(np.repeat(sky[None], 96, axis=0)[..., None], 3, axis=2)
    values += 1e-3 * rng().standard_normal(values.shape)
    values[0] = 0.4 + 0.002 * columns[:, None]
    observed = np.ones(values.shape, bool)
    observed[0, 40:] = False
    assert not borders.tones(np.where(observed, values, np.nan), observed, 0.0).any()


def test_the_depth_of_holes_is_the_distance_from_their_edge():
    absent = np.zeros((60, 60, 3), dtype=bool)
    assert calibrate.depth(absent) == calibrate.depth(~absent) == 0
    absent[20:41, 20:41] = True
    assert calibrate.depth(absent) == 8  # 25 of 441 pixels are deeper, 49 at least as deep
    absent[..., 0] = False
    assert calibrate.depth(absent) == 0  # another channel is observed there


@pytest.fixture
def small_squares(monkeypatch):
    """Pictures of more than two squares of 16 pixels count as large."""
    small = replace(schedule.TUNED, windows=2, square=16)
    for module in (patches, schedule):
        monkeypatch.setattr(module, "TUNED", small)


def test_a_large_picture_with_all_that_is_missing_in_one_square(small_squares, tdc):
    Image.fromarray(smooth(40, 48)).save("p.png")
    report = report_of(tdc("complete-image p.png -o b.png --mask-box 4,4,5,5 --region whole --method patches --json"
                           " --param passes=4"))  # fmt: skip
    assert report["missing"]["pixels"] == 25 and report["uncertainty"]["mean_sd"] > 0


def test_a_large_picture_is_rehearsed_on_squares_with_something_missing_and_something_observed(small_squares):
    observed = np.ones((51, 35, 3), dtype=bool)
    observed[40:, 20:] = observed[:20, :20] = False
    chosen = set()
    for seed in range(30):
        windows = schedule.validation_windows(observed, rng(seed))
        assert 1 <= len(windows) <= 2
        for window in windows:
            assert observed[window].shape == (16, 16, 3)  # all of it within the picture
            assert observed[window].any() and not observed[window].all()
        chosen |= {(w[0].start, w[1].start) for w in windows}
    assert len(chosen) > 2
    assert len(schedule.validation_windows(np.ones_like(observed), rng())) == 2
    assert schedule.validation_windows(observed[:16, :32], rng()) == [(slice(None), slice(None))]


@pytest.mark.parametrize("shape", [(33, 35, 3), (1, 600, 3), (49, 17, 1)])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_large_picture_is_completed_and_calibrated_without_the_global_model(small_squares, monkeypatch, shape, noise):
    monkeypatch.setattr(patches, "_global", None)  # not called
    truth = (
        photograph("chelsea", 0, 0, 60, 60)[: shape[0], : shape[1], : shape[2]]
        if shape[0] > 1
        else rng(0).random(shape)
    )
    observed = scattered(truth.shape, 0.4)
    done = completed(truth, observed, passes=2, noise_std=noise)
    assert np.isfinite(done.mean).all() and np.isfinite(done.sd).all() and (done.sd[~observed] > 0).all()
    assert 0 < done.held_out["count"] <= 2 * 0.05 * 16 * 16 * 3
    assert completed(truth, observed, passes=2, noise_std=noise, calibrate=False).sd is None


# -- refusals
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters, line",
    [
        ({"size": "1"}, "size is 1; it must be from 2 to 16"),
        ({"size": "17"}, "size is 17; it must be from 2 to 16"),
        ({"members": "1"}, "members is 1; it must be from 2 to 512"),
        ({"window": "0"}, "window is 0; it must be from 1 to 200"),
        ({"stride": "17"}, "stride is 17; it must be from 1 to 16"),
        ({"passes": "0"}, "passes is 0; it must be from 1 to 1000"),
        ({"size": "4", "stride": "5"}, "stride 5 is larger than the patch size 4: pixels in between would be left out"),
        ({"start": "zero"}, "start 'zero' is not one of auto, field, global"),
        ({"noise_std": "-1"}, "noise_std is -1; it must be 0 or more and finite"),
        ({"noise_std": "inf"}, "noise_std is inf; it must be 0 or more and finite"),
        ({"noise_std": "some"}, "noise_std 'some' is neither a number nor auto"),
        ({"calibrate": "perhaps"}, "parameter calibrate='perhaps' is not understood; expected bool"),
        (
            {"sise": "6"},
            "method patches has no parameter 'sise'; it has: calibrate, frames, members, noise_std, passes, size, "
            "start, stride, window",
        ),
    ],
)
def test_bad_parameters_are_refused_in_one_line(tdc, parameters, line):
    with pytest.raises(ConfigError) as caught:
        methods.get("patches").configure(parameters)
    assert str(caught.value) == line
    given = [word for key, value in parameters.items() for word in ("--param", f"{key}={value}")]
    result = tdc("complete-image", "a.png", "-o", "b.png", "--mask", "m.png", "--method", "patches", *given)
    assert (result.exit_code, result.stderr, result.stdout) == (2, f"tdc: {line}\n", "")


@pytest.mark.parametrize("bad, error, line", [
    ("nothing", InputError, "no entry is observed: nothing to complete from"),
    ("inf", InputError, "1 observed entries are NaN or infinite; mark them as missing"),
    ("noise", ConfigError, "a noise level of 1e+200 is out of proportion to the data, whose largest size is 1"),
])  # fmt: skip
def test_bad_data_are_refused(bad, error, line):
    values, observed = np.ones((9, 8, 3)), scattered((9, 8, 3), 0.5)
    config = patches.Config(noise_std=1e200 if bad == "noise" else 0.0)
    if bad == "nothing":
        observed[:] = False
    elif bad == "inf":
        values[tuple(np.argwhere(observed)[0])] = np.inf
    with pytest.raises(error) as caught:
        solve(methods.get("patches"), config, values, observed, rng=rng())
    assert str(caught.value) == line


# -- through the command line
# -------------------------------------------------------------------------------------------------


@pytest.fixture
def patched(tdc, folder):
    """Complete the picture `p.png`, a crop of a photograph, with few passes; ``patched("b.png", ...)`` returns click's
    result.
    """
    Image.fromarray(pixels(SAMPLES / "astronaut.png")[130:170, 60:108]).save("p.png")
    Image.fromarray(pixels(SAMPLES / "camera.png")[100:140, 100:148]).save("g.png")
    for name in ("text", "scratches"):
        Image.fromarray(pixels(SAMPLES / f"mask_{name}.png")[100:140, 100:148]).save(f"{name}.png")
    common = ("--method", "patches", "--threads", "1")

    def run(output, *more, picture="p.png"):
        few = () if any("passes=" in str(word) for word in more) else ("--param", "passes=4")
        return tdc("complete-image", picture, "-o", output, *common, *few, *more)

    return run


def valid(tdc, report):
    """`report`, after it was held against the schema that the program prints."""
    jsonschema.Draft202012Validator(json.loads(tdc("report-schema").stdout)).validate(report)
    return report


@pytest.mark.parametrize("name", ["text", "scratches"])
@pytest.mark.parametrize("picture", ["p.png", "g.png"])
def test_a_mask_is_filled_and_the_rest_kept(patched, tdc, name, picture):
    start = "start=auto" if name == "text" else "start=field"
    options = ("--uncertainty", "u.npy", "--reference", picture, "--param", start, "--json")
    result = patched("b.png", "--mask", f"{name}.png", *options, picture=picture)
    report = valid(tdc, report_of(result))
    known = pixels(f"{name}.png") == 0
    before, after = pixels(picture), pixels("b.png")
    assert before.shape == after.shape and 0 < np.sum(~known) < known.size
    assert np.array_equal(before[known], after[known]) and not np.array_equal(before, after)
    assert report["metrics"]["missing"]["psnr"] > report["metrics"]["incomplete"]["psnr"]
    held = report["uncertainty"]["held_out"]
    assert 20 < held["count"] < 0.25 * before.size and 0.7 < held["coverage90"] < 1
    sd = np.load("u.npy")
    assert sd.shape == before.shape and (sd[known] == 0).all() and (sd[~known] > 0).all()
    assert report["uncertainty"]["mean_sd"] == pytest.approx(sd[~known].mean(), rel=1e-4)


@pytest.mark.parametrize("picture", ["p.png", "g.png"])
def test_simulated_holes_are_completed_better_than_by_biharmonic_inpainting(patched, tdc, picture):
    holes = ("--missing-ratio", "0.6", "--json")
    more = ("--save-incomplete", "i.png", "--param", "passes=12", "--param", "start=field")
    report = valid(tdc, report_of(patched("b.png", *holes, *more, picture=picture)))
    known = pixels("i.png") > 0
    assert np.array_equal(pixels("b.png")[known], pixels(picture)[known])
    other = report_of(tdc("complete-image", picture, "-o", "c.png", "--method", "biharmonic", *holes))
    assert report["missing"] == other["missing"]
    assert report["metrics"]["missing"]["psnr"] > other["metrics"]["missing"]["psnr"] + 0.5
    assert report["uncertainty"]["coverage90"] == pytest.approx(0.9, abs=0.1)
    assert report["uncertainty"]["held_out"]["count"] == pytest.approx(0.05 * 0.4 * pixels(picture).size, abs=1)


def test_the_output_files_do_not_depend_on_the_number_of_threads(patched):
    """With the global model in the start, the field, and the passes."""
    Image.fromarray(pixels("p.png")[:16, :16]).save("s.png")
    for count, name in (("1", "one"), ("2", "two")):
        options = (
            "--missing-ratio",
            "0.6",
            "--uncertainty",
            f"{name}.npy",
            "--threads",
            count,
            "--param",
            "start=global",
            "--param",
            "passes=2",
            "--json",
        )
        assert (
            report_of(patched(f"{name}.png", *options, picture="s.png"))["method"]["parameters"]["global_in_start"] == 1
        )
    assert Path("one.png").read_bytes() == Path("two.png").read_bytes()
    assert Path("one.npy").read_bytes() == Path("two.npy").read_bytes()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_missing_pixels(patched):
    for name, seed in (("b", "0"), ("c", "0"), ("d", "1")):
        assert patched(f"{name}.png", "--mask", "text.png", "--seed", seed, "--param", "start=field").exit_code == 0
    assert Path("b.png").read_bytes() == Path("c.png").read_bytes()
    known = pixels("text.png") == 0
    one, other = pixels("b.png"), pixels("d.png")
    assert np.array_equal(one[known], other[known]) and not np.array_equal(one[~known], other[~known])
    assert np.mean(np.abs(one[~known].astype(int) - other[~known])) < 10


def test_parameters_are_taken_and_reported(patched, tdc):
    given = {"size": 4, "members": 20, "window": 9, "stride": 3, "start": "global"}
    options = [word for key, value in given.items() for word in ("--param", f"{key}={value}")]
    parameters = valid(tdc, report_of(patched("b.png", "--mask", "text.png", *options, "--json")))["method"][
        "parameters"
    ]
    assert (given | {"passes": 4, "global_in_start": 1.0}).items() <= parameters.items()
    decided = report_of(patched("c.png", "--mask", "text.png", "--param", "start=field", "--json"))["method"][
        "parameters"
    ]
    wanted = {
        "start": "field",
        "size": 6,
        "members": 64,
        "window": 18,
        "stride": 6,
        "global_in_start": 0.0,
        "global_in_result": 0.0,
    }
    assert wanted.items() <= decided.items()


def test_without_calibration_there_is_no_uncertainty(patched, tdc, folder):
    plain = ("--mask", "text.png", "--param", "calibrate=false", "--param", "start=field")
    report = valid(tdc, report_of(patched("b.png", *plain, "--panel", "panel.png", "--json")))
    assert report["uncertainty"] is None and (folder / "panel.png").exists()
    before = sorted(path.name for path in folder.iterdir())
    result = patched("c.png", *plain, "--uncertainty", "u.npy")
    line = "method patches gives no uncertainty with calibrate=false; leave out --uncertainty or calibrate=false"
    assert (result.exit_code, result.stderr, result.stdout) == (2, f"tdc: {line}\n", "")
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("level", ["0.05", "auto"])
def test_denoising_through_the_command_line(patched, tdc, level):
    """Known entries come nearer to the truth than the noisy ones, and each entry has a standard deviation."""
    options = (
        "--missing-ratio",
        "0.3",
        "--add-noise",
        "0.05",
        "--noise-std",
        level,
        "--uncertainty",
        "u.npy",
        "--save-incomplete",
        "i.png",
    )
    report = valid(tdc, report_of(patched("b.png", *options, "--param", "start=field", "--json")))
    truth, noisy, after = (pixels(name).astype(float) for name in ("p.png", "i.png", "b.png"))
    known = noisy > 0
    assert np.std((after - truth)[known]) < 0.8 * np.std((noisy - truth)[known])
    assert report["noise_std"] == pytest.approx(0.05, rel=0.3)
    assert (np.load("u.npy") > 0).all()
    assert 0.8 < report["uncertainty"]["coverage90"] <= 1 and report["uncertainty"]["held_out"]["count"] > 100


def test_a_picture_without_holes_is_returned_and_nothing_is_hidden(patched):
    Image.new("L", (48, 40)).save("empty.png")
    result = patched("b.png", "--mask", "empty.png")
    assert result.exit_code == 0 and np.array_equal(pixels("p.png"), pixels("b.png"))
