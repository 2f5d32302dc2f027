"""Noise like that of the surroundings for what is predicted: `--grain`."""

import json

import numpy as np
import pytest
from conftest import pixels, report_of, smooth
from PIL import Image
from scipy.ndimage import binary_dilation, gaussian_filter

HOLE = (slice(12, 26), slice(14, 34))


@pytest.fixture
def hole(folder):
    """`p.png`, 48x36 pixels, smooth with noise of 10, half of it the same in all channels; `hole.png`; where it is."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:36, :48]
    noise = 7 * rng.standard_normal((36, 48, 1)) + 7 * rng.standard_normal((36, 48, 3))
    picture = 120 + rows[..., None] / 2 + columns[..., None] / 3 + noise
    Image.fromarray(picture.round().astype(np.uint8)).save("p.png")
    mask = np.zeros((36, 48), np.uint8)
    mask[HOLE] = 255
    Image.fromarray(mask).save("hole.png")
    return mask > 0


def fill(tdc, output, *more, source="p.png", method="biharmonic"):
    command = "complete-video" if source == "c.npy" else "complete-image"
    return tdc(command, source, "-o", output, "--mask", "hole.png", "--method", method, *more)


def rough(picture):
    """What a Gaussian blur of 1.2 pixels takes away."""
    values = picture.astype(float)
    return values - gaussian_filter(values, (1.2, 1.2, 0))


def test_the_hole_is_as_rough_as_the_ring_about_it(tdc, hole):
    assert fill(tdc, "plain.png").exit_code == 0
    assert fill(tdc, "grain.png", "--grain").exit_code == 0
    plain, grain = pixels("plain.png"), pixels("grain.png")
    ring = binary_dilation(hole, iterations=8) & ~hole
    assert rough(plain)[hole].var() < 0.3 * rough(plain)[ring].var()
    assert 0.8 < rough(grain)[hole].var() / rough(grain)[ring].var() < 1.25
    inside, around = (np.corrcoef(rough(grain)[where].T)[0, 1] for where in (hole, ring))
    assert abs(inside - around) < 0.2
    assert np.array_equal(grain[~hole], pixels("p.png")[~hole])
    assert abs((grain.astype(float) - plain)[hole].mean()) < 3


def test_what_has_no_noise_gets_none(tdc, hole):
    Image.fromarray(np.full((36, 48), 90, np.uint8)).save("p.png")
    assert fill(tdc, "grain.png", "--grain").exit_code == 0
    assert (pixels("grain.png") == 90).all()


@pytest.mark.parametrize("channel", [0, 2])
def test_a_channel_without_noise_gets_none(tdc, hole, channel):
    picture = pixels("p.png").copy()
    picture[..., channel] = 40
    Image.fromarray(picture).save("p.png")
    done = fill(tdc, "grain.png", "--grain")
    assert done.exit_code == 0, done.stderr
    assert (pixels("grain.png")[..., channel] == 40).all()
    assert rough(pixels("grain.png"))[..., 1][hole].std() > 1


def test_the_seed_says_the_grain(tdc, hole):
    for name, more in (("one", ()), ("two", ("--threads", 2)), ("other", ("--seed", 1))):
        assert fill(tdc, f"{name}.png", "--grain", *more).exit_code == 0
    assert np.array_equal(pixels("one.png"), pixels("two.png"))
    assert (pixels("one.png")[hole] != pixels("other.png")[hole]).mean() > 0.5


def test_each_frame_has_its_own_grain_however_a_clip_is_divided(tdc, hole):
    np.save("c.npy", np.stack([pixels("p.png")] * 3))
    for chunk in (1, 3):
        assert fill(tdc, f"o{chunk}.npy", "--grain", "--chunk", chunk, source="c.npy").exit_code == 0
    one, three = np.load("o1.npy"), np.load("o3.npy")
    assert np.array_equal(one, three)
    assert np.array_equal(one[:, ~hole], np.load("c.npy")[:, ~hole])
    assert all((one[k][hole] != one[k + 1][hole]).mean() > 0.5 for k in (0, 1))


@pytest.mark.parametrize("source, output", [("p.png", "o.png"), ("c.npy", "o.npy")])
def test_what_is_invented_stays_as_it_is(tdc, hole, source, output):
    np.save("c.npy", np.stack([pixels("p.png")] * 2))
    results = []
    for more in ((), ("--grain",)):
        done = fill(tdc, output, "--overwrite", *more, source=source, method="exemplar")
        assert done.exit_code == 0, done.stderr
        results.append(np.load(output) if output == "o.npy" else pixels(output))
    assert np.array_equal(*results)


def test_metrics_are_of_the_estimate_and_the_report_says_so(tdc, hole):
    how = ("--reference", "p.png", "--json", "--overwrite")
    plain, grain = (report_of(fill(tdc, "o.png", *how, *more)) for more in ((), ("--grain",)))
    assert plain["metrics"] == grain["metrics"]
    assert grain["warnings"] == ["--grain: the metrics are of the estimates without it"]
    assert plain["warnings"] == []


def test_noise_is_not_taken_away_and_added(tdc, hole):
    done = fill(tdc, "o.png", "--grain", "--noise-std", "auto", method="patches")
    line = "tdc: --grain adds the noise that --noise-std takes away; leave one of them out\n"
    assert (done.exit_code, done.stderr) == (2, line)


def test_floats_and_what_is_kept(tdc, hole):
    noise = np.random.default_rng(1).normal(0, 5, (36, 48))
    values = (smooth(36, 48, None) + noise).astype(np.float32)
    values[2:5, 20:30] = np.nan
    np.save("p.npy", values)
    done = fill(tdc, "o.npy", "--grain", "--keep", "nodata", "--json", source="p.npy")
    assert done.exit_code == 0, done.stderr
    made = np.load("o.npy")
    assert np.isfinite(made[hole]).all()
    assert np.array_equal(made[~hole], values[~hole], equal_nan=True)
    assert json.loads(done.stdout)["missing"]["pixels"] == hole.sum()
