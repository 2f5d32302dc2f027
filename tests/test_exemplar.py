"""Large holes filled with what looks right: structures go on, repetition keeps its beat, nothing depends on what is
hidden.
"""

from pathlib import Path

import imageio.v3 as iio
import numba
import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import binary_dilation, binary_erosion

from tdc_cli import library_threads
from tdc_cli.errors import ConfigError, InputError
from tdc_cli.exemplar import blend
from tdc_cli.exemplar.fill import fill
from tdc_cli.exemplar.layers import layers
from tdc_cli.exemplar.pyramid import build
from tdc_cli.exemplar.regions import APART, LEAST, MOST, divide
from tdc_cli.methods import exemplar

SAMPLES = Path(__file__).parents[1] / "sample_data"
SIDE, RADIUS = 160, 30
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE].astype(float)
HOLE = (ROWS - 78) ** 2 + (COLUMNS - 82) ** 2 <= RADIUS**2


def filled(picture, hole=HOLE, seed=0, **keywords):
    """Completion of a picture, (H, W) or (H, W, C), with a hole, (H, W)."""
    observed = np.broadcast_to(~hole.reshape(*hole.shape, *(1,) * (picture.ndim - 2)), picture.shape)
    return exemplar.complete(np.where(observed, picture, np.nan), observed, rng=np.random.default_rng(seed), **keywords)


def edge(degrees):
    """Dark and light halves with a straight, smoothed edge through the hole."""
    angle = np.deg2rad(degrees)
    return 60 + 140 * np.clip((COLUMNS - 84) * np.cos(angle) + (ROWS - 75) * np.sin(angle) + 0.5, 0, 1)


def bricks():
    shifted = COLUMNS + np.where(ROWS // 12 % 2, 15, 0)
    return np.where((ROWS % 12 < 2) | (shifted % 30 < 2), 200.0, 110.0)


PATTERNS = {
    "stripes": 127 + 100 * np.sin(2 * np.pi * COLUMNS / 9),
    "slanted stripes": 127 + 100 * np.sin(2 * np.pi * (COLUMNS * np.cos(0.5) + ROWS * np.sin(0.5)) / 11),
    "bars": np.where(COLUMNS // 8 % 2, 200.0, 50.0),
    "checkerboard": np.where((ROWS // 10 + COLUMNS // 10) % 2, 210.0, 40.0),
    "gradient": 40 + 150 * COLUMNS / SIDE,
    "slanted gradient": 40 + 90 * COLUMNS / SIDE + 60 * ROWS / SIDE,
    "bricks": bricks(),
} | {f"edge at {angle} degrees": edge(angle) for angle in (0, 17, 45, 71, 90, 130)}


@pytest.mark.parametrize("name", PATTERNS)
def test_what_runs_into_a_hole_goes_on_through_it(name):
    truth = PATTERNS[name]
    errors = np.abs(filled(truth).mean - truth)[HOLE] / np.ptp(truth)
    assert np.median(errors) < 0.02
    assert np.mean(errors) < 0.03  # a broken line or a lost beat


def test_what_lies_nowhere_beside_a_hole_does_not_come_into_it():
    """A logo over the sky of the sample clip: by what touches the hole alone a rock that lies below fits there too."""
    frame = next(iio.imiter(SAMPLES / "bunny.mp4", plugin="pyav")).astype(float)
    hole = np.zeros(frame.shape[:2], bool)
    hole[6:28, 148:186] = True
    for seed in (0, 1):
        made = filled(frame, hole, seed).mean
        assert 10 * np.log10(255**2 / np.mean((made - frame)[hole] ** 2)) > 20  # with the rock 16 to 17


@pytest.mark.parametrize("half", [False, True])
def test_flat_ground_leaves_no_stain(half):
    truth = np.full((SIDE, SIDE), 180.0) + np.random.default_rng(2).normal(0, 1.5, (SIDE, SIDE))
    truth[:, :40] -= 120 * half
    done = filled(truth)
    centre = binary_erosion(HOLE, iterations=15)
    assert abs(done.mean[centre].mean() - 180) < 1.5
    assert 1.0 < done.mean[centre].std() < 2.0  # grain as around it
    assert 1.0 < done.sd[centre].mean() < 4.0  # sources differ by the grain


def test_light_goes_on_inside():
    """A texture under light that doubles from left to right: what is copied is as light as its place."""
    grain = np.random.default_rng(3).normal(0, 4, (SIDE, SIDE))
    light = 60 + 120 * COLUMNS / SIDE
    made = filled(light + grain).mean
    for third in (HOLE & (COLUMNS < 70), HOLE & (COLUMNS > 94)):
        assert abs((made - light)[third].mean()) < 4


def test_what_is_copied_keeps_its_depth_and_its_range():
    """Neither rounding to the levels that patches are compared in, nor values beyond those that are known."""
    truth = bricks() / 255 + np.random.default_rng(4).normal(0, 1e-4, (SIDE, SIDE))
    made = filled(truth).mean
    assert len(np.unique(made[HOLE])) > 0.9 * np.count_nonzero(HOLE)
    assert truth[~HOLE].min() <= made.min() and made.max() <= truth[~HOLE].max()


@pytest.mark.parametrize("slant", [0.0, 0.05])
@pytest.mark.parametrize("period", [10, 13])
def test_a_scale_that_shows_nothing_of_what_the_hole_is_in_is_left_out(period, slant):
    """Stripes of which 10 pixels are left beside the hole: a patch and a half, and at half the scale none."""
    rows, columns = np.mgrid[:100, :130].astype(float)
    stripes = np.where((rows + slant * columns) % period < period / 2, 200.0, 40.0)
    around = 90 + 40 * np.sin(rows / 9) * np.cos(columns / 7) + np.random.default_rng(0).normal(0, 2, rows.shape)
    truth = np.where((columns < 60) & (rows >= 15) & (rows < 85), stripes, around)
    hole = np.zeros(truth.shape, bool)
    hole[30:70, 10:50] = True
    assert np.median(np.abs(filled(truth, hole).mean - truth)[hole]) < 0.02 * 160


@pytest.mark.parametrize("channels", [1, 2, 3, 9])
def test_any_number_of_channels(channels):
    truth = np.stack([bricks() * (c + 1) for c in range(channels)], axis=2)
    errors = np.abs(filled(truth).mean - truth)[HOLE] / np.ptp(truth, axis=(0, 1))
    assert np.median(errors) < 0.02


def test_invented_pixels_are_told():
    done = filled(PATTERNS["bars"])
    assert np.array_equal(done.invented, HOLE)
    assert not done.sd[~HOLE].any()


def test_with_next_to_nothing_to_copy_the_spread_is_that_of_all_that_is_known():
    """All but three rows are missing: of most halves of the sources no patch is there."""
    truth = np.random.default_rng(5).random((64, 64, 3))
    hole = np.ones((64, 64), bool)
    hole[30:33] = False
    done = filled(truth, hole)
    assert 0.5 < np.median(done.sd[hole]) / truth[~hole].std() < 2


def test_on_flat_ground_the_spread_does_not_hang_on_the_seed():
    """Each seed draws other halves of the sources, in which more or fewer patches find again what was copied."""
    ground = np.add.outer(np.linspace(-0.04, 0.04, 80), np.linspace(-0.15, 0.15, 108))[..., None] + np.full(3, 0.7)
    truth, hole = ground + np.random.default_rng(0).normal(0, 0.006, ground.shape), np.zeros(ground.shape[:2], bool)
    hole[27:47, 27:47] = True
    done = [filled(truth, hole, seed) for seed in range(6)]
    assert min(np.mean(np.abs(d.mean - truth)[hole] <= 1.645 * d.sd[hole]) for d in done) > 0.87


def test_observed_entries_of_a_pixel_are_kept():
    truth = np.stack([bricks(), bricks() / 2], axis=2)
    observed = np.stack([~HOLE, np.ones_like(HOLE)], axis=2)
    done = exemplar.complete(np.where(observed, truth, np.nan), observed, rng=np.random.default_rng(0))
    assert np.array_equal(done.mean[observed], truth[observed])
    assert np.array_equal(done.invented, HOLE)


def test_source_limits_what_is_copied():
    """Plain ground with stripes far from the hole: they are copied only where nothing else may be."""
    truth = np.where(COLUMNS > 120, 120 + 60 * np.sin(ROWS), 120 + np.random.default_rng(5).normal(0, 3, (SIDE, SIDE)))
    contrasts = [filled(truth, source=source).mean[HOLE].std() for source in (None, COLUMNS > 120)]
    assert contrasts[0] < 5 and contrasts[1] > 25


def test_with_a_source_no_colour_comes_up_that_is_neither_in_it_nor_beside_the_hole(tdc):
    """A wall in front of which stands a black table: light made up for between them came out green."""
    picture = Image.open(SAMPLES / "astronaut.png").convert("RGB").crop((140, 60, 256, 156))
    picture.save("p.png")
    source, hole = Image.new("L", picture.size), Image.new("L", picture.size)
    source.paste(255, (90, 0, 116, 44))
    hole.paste(255, (32, 0, 98, 76))
    source.save("s.png")
    done = tdc("complete-image p.png -o o.png --mask-box 32,0,66,76 --source s.png --method exemplar --no-progress")
    assert done.exit_code == 0, done.stderr
    levels, made = np.asarray(picture, int), np.asarray(Image.open("o.png"), int)
    source, hole = np.asarray(source) > 0, np.asarray(hole) > 0
    known = np.unique(levels[~hole & (source | binary_dilation(hole, np.ones((7, 7))))], axis=0)
    apart = np.sqrt(((made[hole][:, None] - known) ** 2).sum(axis=2).min(axis=1))
    assert apart.max() < 0.02 * 255 + 1


def test_another_seed_gives_another_answer_and_the_same_seed_the_same():
    truth = np.random.default_rng(6).normal(0, 1, (SIDE, SIDE)).cumsum(axis=1)
    first, again, other = (filled(truth, seed=seed).mean for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_the_number_of_threads_changes_no_bit():
    truth = np.random.default_rng(7).normal(0, 1, (SIDE, SIDE)).cumsum(axis=0)
    found = []
    for threads in (1, 2):
        with library_threads.kernels(threads):
            done = filled(truth)
            used = library_threads.of_kernels(numba.config.NUMBA_NUM_THREADS)
        found.append((done.mean, done.sd))
    assert used > 1 or numba.config.NUMBA_NUM_THREADS == 1
    assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


@pytest.mark.parametrize("shape", [(1, 9), (5, 40), (3, 3), (40, 6)])
def test_small_pictures(shape):
    truth = np.arange(np.prod(shape), dtype=float).reshape(shape)
    hole = np.zeros(shape, bool)
    hole[0, : shape[1] // 2] = True
    made = filled(truth, hole).mean
    assert np.isin(made[~hole], truth).all() and np.isfinite(made).all()


def test_a_hole_at_the_border():
    hole = np.zeros((SIDE, SIDE), bool)
    hole[:40, :50] = hole[-30:, 60:90] = True
    truth = PATTERNS["checkerboard"]
    assert np.median(np.abs(filled(truth, hole).mean - truth)[hole]) < 4


def test_nothing_to_copy_is_an_error():
    observed = np.zeros((8, 8, 2), bool)
    observed[..., 0] = True
    with pytest.raises(
        InputError,
        match=r"^exemplar copies whole pixels, and no pixel is observed in all channels; try method patches$",
    ):
        exemplar.complete(np.ones(observed.shape), observed, rng=np.random.default_rng(0))
    hole = HOLE[50:110, 50:110]
    with pytest.raises(InputError, match=r"^exemplar copies whole pixels, and no pixel of `source` is observed"):
        filled(np.ones(hole.shape), hole, source=hole)
    with pytest.raises(ConfigError, match=r"^source has 3 x 4 pixels, the values 60 x 60$"):
        filled(np.ones(hole.shape), hole, source=np.ones((3, 4), bool))


COPIES = "exemplar copies whole pixels, and no pixel {}is observed in all channels; try method patches"


def test_a_frame_or_channel_without_a_pixel_to_copy_is_refused_before_any_work(tdc, folder):
    values = np.random.default_rng(0).random((3, 20, 24, 2)).astype(np.float32)
    values[:, 5:9, 10:14] = values[1, ..., 0] = np.nan
    np.save("a.npy", values)
    np.save("b.npy", values[1])
    Image.fromarray(np.where(np.arange(24) < 9, np.full((20, 1), 255), 0).astype(np.uint8)).save("s.png")
    for command, line in (
        ("complete-video a.npy", f"a.npy, frame 1: {COPIES.format('')}"),
        ("complete-image b.npy", f"b.npy: {COPIES.format('')}"),
        ("complete-video a.npy --frames 0:1 --mask-box 0,0,12,20 --source s.png",
         f"a.npy, frame 0: {COPIES.format('of `source` ')}"),
    ):  # fmt: skip
        done = tdc(f"{command} -o o.npy --method exemplar --dry-run")
        assert (done.exit_code, done.stderr) == (2, f"tdc: {line}\n".replace("`source`", "--source"))


@pytest.mark.parametrize(
    "method, told",
    [
        ("exemplar", "all that is known has one colour: an uncertainty of 0 says only that no source differs\n"),
        ("auto", "mean uncertainty 128 of 255\n"),
    ],
)
def test_a_picture_of_which_one_pixel_is_known_is_filled_and_its_uncertainty_told_or_called_empty(tdc, method, told):
    holes = np.full((64, 64), 255, np.uint8)
    holes[30, 20] = 0
    Image.fromarray(holes).save("h.png")
    Image.fromarray(np.full((64, 64), 77, np.uint8)).save("g.png")
    done = tdc(f"complete-image g.png -o o.png --mask h.png --method {method} --no-progress")
    assert done.exit_code == 0, done.stderr
    assert told in done.stderr + done.stdout
    assert (np.asarray(Image.open("o.png")) == 77).all()


def test_regions_hold_their_hole_and_stay_small():
    hole = np.zeros((3000, 4000), bool)
    hole[100:130, 200:210] = hole[120:125, 215:220] = hole[2000:2500, 3000:3600] = True
    regions = divide(hole)
    assert [np.count_nonzero(region.hole) for region in regions] == [325, 300_000]
    beside = LEAST + APART // 2
    assert regions[0].box == (slice(100 - beside, 130 + beside), slice(200 - beside, 220 + beside))
    assert regions[1].hole.size <= MOST
    everywhere = divide(hole, source=np.arange(4000) < np.full((3000, 1), 3))
    assert all(region.box[1].start == 0 for region in everywhere)


def test_levels_halve_what_is_known():
    values = np.stack([ROWS, COLUMNS], axis=2)
    blank = np.zeros_like(HOLE)
    blank[:20, :20] = True
    compared = layers(values, ~(HOLE | blank), 5)
    levels = build(compared, HOLE, blank, ~HOLE, 7, 3)
    assert [level.hole.shape for level in levels] == [(160, 160), (80, 80), (40, 40)]
    for level, scale in zip(levels, (1, 2, 4), strict=True):
        assert np.count_nonzero(level.hole) * scale**2 == pytest.approx(np.count_nonzero(HOLE), rel=0.1)
        assert not (level.hole & level.blank).any()
        assert not np.isin(np.flatnonzero(level.allowed), level.targets).any()
    # Far from hole and borders a coarser pixel is the mean of its four.
    means = levels[0].layers[..., 0].reshape(80, 2, 80, 2).mean(axis=(1, 3))
    far = np.zeros((80, 80), bool)
    far[2:-2, 70:78] = True
    np.testing.assert_allclose(levels[1].layers[..., 0][far], means[far], rtol=1e-4)


def test_copies_from_one_place_are_shifted_to_meet_the_rim():
    """The same picture 20 lighter elsewhere: the differences are right, so the blend takes the 20 away again."""
    left = 100 + 30 * np.sin(ROWS / 3) * np.cos(COLUMNS / 4)
    values = np.concatenate([left, left + 20], axis=1)[..., None]
    hole = np.zeros(values.shape[:2], bool)
    hole[70:80, 60:70] = True
    pixels = np.flatnonzero(hole)
    made = blend.copy(values, hole, np.zeros_like(hole), pixels, pixels + SIDE)
    np.testing.assert_allclose(made, values.reshape(-1, 1)[pixels], atol=0.5)


def test_an_edge_at_the_rim_is_made_up_for_there_and_nowhere_else():
    """Something dark reaches the hole on one side, and light ground is copied: nothing dark is drawn far into it."""
    values = np.full((100, 120, 1), 200.0) + np.random.default_rng(0).normal(0, 2, (100, 120, 1))
    values[20:40, 60:70] -= 100
    hole = np.zeros(values.shape[:2], bool)
    hole[20:40, 20:60] = True
    pixels = np.flatnonzero(hole)
    origins = pixels + 40 * 120
    made = blend.copy(values, hole, np.zeros_like(hole), pixels, origins)
    change = (made - values.reshape(-1, 1)[origins]).reshape(20, 40)
    assert change[5:15, -1].mean() < -50
    # 10 pixels in it would be more than 20 if all pairs counted alike.
    assert np.abs(change[5:15, :30].mean(axis=0)).max() < 5


def test_a_narrow_margin_is_not_passed_over_for_what_is_far():
    values, hole = np.full((96, 96, 1), 0.9), np.zeros((96, 96), bool)
    values += np.random.default_rng(0).normal(0, 0.005, values.shape)
    values[:, :24] -= 0.7
    hole[18:78, 30:86] = True
    done = fill(values, hole, np.zeros_like(hole), ~hole, rng=np.random.default_rng(0), tell=lambda share: None)
    assert done.values.min() > 0.8
