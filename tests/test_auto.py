"""Method auto: patches where a hole can be predicted, exemplar inside of deep ones."""

import json

import numpy as np
import pytest
from PIL import Image

from tdc_cli import methods
from tdc_cli.exemplar.deep import RIM, SIDE, core, deep
from tdc_cli.methods import auto, patches
from tdc_cli.methods.solve import solve
from tdc_cli.names import CLIP, DEFAULT_METHODS, PICTURE
from tdc_cli.run import regions

FEW = {"passes": 1, "members": 12}


def waves(height, width, noise=0.02, length=1):
    """Waves with grain, (H, W) in 0 to 1; of `length` times the usual one."""
    rows, columns = np.mgrid[:height, :width] / length
    plain = 0.5 + 0.2 * np.sin(rows / 4) * np.cos(columns / 5)
    return plain + np.random.default_rng(0).normal(0, noise, plain.shape)


def by(name, truth, lost, seed=0, **parameters):
    config = methods.get(name).configure(FEW | parameters)
    return solve(methods.get(name), config, truth.copy(), ~lost, rng=np.random.default_rng(seed))


def thin(shape):
    lost = np.zeros(shape, bool)
    lost[8:12] = lost[:, 20:24] = True
    return lost


def scattered(shape):
    return np.random.default_rng(1).random(shape) < 0.97


@pytest.mark.parametrize("holes", [thin, scattered])
def test_holes_that_are_thin_or_scattered_come_out_as_patches_has_them(holes):
    truth = waves(48, 60)
    lost = holes(truth.shape)
    one, other = by("auto", truth, lost), by("patches", truth, lost)
    assert np.array_equal(one.mean, other.mean) and np.array_equal(one.sd, other.sd) and one.invented is None


def test_so_do_those_of_clips():
    truth = np.stack([waves(24, 32)] * 3, axis=2)
    lost = np.broadcast_to(thin((24, 32))[..., None], truth.shape).copy()
    one, other = (by(name, truth, lost, frames=2) for name in ("auto", "patches"))
    assert np.array_equal(one.mean, other.mean) and np.array_equal(one.sd, other.sd) and one.invented is None


def test_deep_holes_hold_a_square():
    lost = np.zeros((60, 80), bool)
    lost[10 : 10 + SIDE, 10 : 10 + SIDE] = True
    lost[30 : 30 + SIDE - 1, 5:75] = True
    found = deep(lost)
    assert np.array_equal(found, lost & (np.arange(60) < 25)[:, None])
    lost[10 + SIDE // 2, :] = True  # a stroke from a deep hole stays one
    assert np.array_equal(deep(lost), found)
    assert not core(lost).any()


def test_a_strip_along_the_border_counts_twice():
    lost = np.zeros((40, 60), bool)
    lost[: SIDE // 2] = True
    assert not deep(lost).any()
    lost[: SIDE // 2 + 1] = True
    assert np.array_equal(deep(lost), lost)


def test_gaps_between_scattered_pixels_are_no_deep_holes():
    lost = np.random.default_rng(0).random((80, 80)) < 0.99
    assert not deep(lost).any()


def test_the_core_is_what_lies_beyond_the_rim():
    lost = np.zeros((60, 60), bool)
    lost[10:50, 20:50] = True
    expected = np.zeros_like(lost)
    expected[10 + RIM : 50 - RIM, 20 + RIM : 50 - RIM] = True
    assert np.array_equal(core(lost), expected)


def hole_in_waves(noise, length=1):
    truth = waves(64, 72, noise, length)
    lost = np.zeros(truth.shape, bool)
    lost[20:44, 24:50] = True
    return truth, lost


def test_what_can_be_predicted_of_a_deep_hole_is_and_the_rest_is_invented():
    truth, lost = hole_in_waves(0.003, length=2)
    done = by("auto", truth, lost, passes=4)
    assert core(lost).sum() <= done.invented.sum() < lost.sum()
    assert not done.invented[~lost].any()
    assert np.array_equal(done.mean[~lost], truth[~lost]) and not done.sd[~lost].any()
    assert done.mean[lost].std() > 0.5 * truth[lost].std()  # no smear


@pytest.mark.parametrize("line, invented", [(0.0, "all"), (1.0, "core")])
def test_the_line_decides(line, invented):
    truth, lost = hole_in_waves(0.02)
    expected = lost if invented == "all" else core(lost)
    assert np.array_equal(by("auto", truth, lost, line=line).invented, expected)


def test_an_edge_nearby_makes_no_smear_a_prediction():
    """Grain with a dark bar beside the hole: the variance of the bar is no reason to keep an estimate of the grain."""
    truth = 0.5 + np.random.default_rng(0).normal(0, 0.05, (64, 72))
    truth[:, 56:62] = 0.0
    lost = np.zeros(truth.shape, bool)
    lost[20:44, 24:50] = True
    done = by("auto", truth, lost)
    assert done.invented.sum() > 0.9 * lost.sum()
    assert 0.8 < done.mean[lost].std() / 0.05 < 1.25


def test_without_standard_deviations_deep_holes_are_invented_as_a_whole():
    truth, lost = hole_in_waves(0.02)
    done = by("auto", truth, lost, calibrate=False)
    assert done.sd is None and np.array_equal(done.invented, lost)


def test_same_seed_same_bits():
    truth, lost = hole_in_waves(0.02)
    first, again, other = (by("auto", truth, lost, seed=seed).mean for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_nothing_to_copy_is_left_to_patches():
    truth = np.stack([waves(40, 40)] * 2, axis=2)
    lost = np.zeros(truth.shape, bool)
    lost[..., 0] = True
    lost[10:30, 10:30] = True
    lost[::2, :, 0] = False
    lost[::2, :, 1] = True
    assert by("auto", truth, lost).invented is None


def test_it_is_the_default_and_tells_what_it_invented(tdc):
    truth, lost = hole_in_waves(0.02)
    Image.fromarray(np.uint8(255 * truth.clip(0, 1))).save("p.png")
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    done = tdc("complete-image p.png -o o.png --mask m.png --param passes=1 --json --html h.html")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["method"]["name"] == "auto" == DEFAULT_METHODS[PICTURE] == DEFAULT_METHODS[CLIP]
    assert core(lost).sum() <= report["invented"] <= report["missing"]["pixels"] == lost.sum()
    assert report["method"]["parameters"]["line"] == auto.Config().line
    with open("h.html", encoding="utf-8") as page:
        assert f"{report['invented']} pixels were invented" in page.read()


def test_patches_leaves_out_what_it_is_told_to():
    truth, lost = hole_in_waves(0.02)
    how = {"rng": np.random.default_rng(0), "left_out": core}
    done = patches.complete(np.where(lost, np.nan, truth), ~lost, patches.Config(passes=1), **how)
    left = core(lost)
    assert np.isfinite(done.mean).all() and (done.sd[lost & ~left] > 0).all()


def test_deep_holes_have_regions_of_their_own_and_everything_is_in_one():
    lost = np.zeros((100, 140), bool)
    lost[20:60, 30:60] = lost[62:80, 50:90] = True
    lost[:, 10:13] = lost[90:94] = True
    coverage = regions.Coverage(lost.shape, False)
    coverage.add(~lost, lost)
    whole = regions.whole_boxes(deep(lost), 5)
    (rows, columns), seen = whole[0]
    assert len(whole) == 1 and deep(lost)[slice(*rows), slice(*columns)].sum() == deep(lost).sum()
    assert all(a - b >= 69 or b == 0 for (a, _), (b, _) in zip(whole[0][0], seen))
    times = np.zeros(lost.shape, int)
    for side in (24, 64, 200):
        times[:] = 0
        for (rows, columns), _ in regions.tiles(coverage, side, 5, undivided=whole):
            times[slice(*rows), slice(*columns)] += 1
        assert times.max() == 1 and times[lost].min() == 1


def test_a_large_picture_is_filled_region_by_region_the_same_by_any_number_of_jobs(tdc):
    """And deep holes the same however large the regions are."""
    truth = waves(96, 128)
    lost = np.zeros(truth.shape, bool)
    lost[30:50, 60:84] = lost[80:82] = lost[:, 20:22] = True
    Image.fromarray(np.uint8(255 * truth.clip(0, 1))).save("p.png")
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    reports = []
    for name, side, jobs in (("one.png", "32", "1"), ("two.png", "32", "2"), ("wide.png", "64", "1")):
        how = ("--mask", "m.png", "--region", side, "--jobs", jobs, "--param", "passes=1", "--json")
        done = tdc("complete-image", "p.png", "-o", name, *how)
        assert done.exit_code == 0, done.stderr
        reports.append(json.loads(done.stdout))
    a, b, wide = (np.asarray(Image.open(name)) for name in ("one.png", "two.png", "wide.png"))
    assert np.array_equal(wide[deep(lost)], a[deep(lost)])
    assert np.array_equal(a, b) and np.array_equal(a[~lost], np.uint8(255 * truth.clip(0, 1))[~lost])
    assert len({report["invented"] for report in reports}) == 1 and reports[0]["invented"] >= core(lost).sum()
    assert a[30:50, 60:84].std() > 0.5 * 255 * truth[30:50, 60:84].std()  # no smear


def test_of_what_a_region_does_not_use_nothing_is_said():
    truth = waves(40, 160)
    lost = np.zeros(truth.shape, bool)
    lost[10:30, 20:40] = lost[:, 150:152] = True
    method, used = methods.get("auto"), (slice(0, 40), slice(0, 60))
    done = solve(method, method.configure(FEW), truth, ~lost, rng=np.random.default_rng(0), used=used)
    assert done.invented.any() and not any("nothing is known" in warning for warning in done.warnings)


def test_regions_of_thin_holes_are_those_of_patches(tdc):
    truth = waves(64, 80)
    Image.fromarray(np.uint8(255 * truth.clip(0, 1))).save("p.png")
    Image.fromarray(np.uint8(255 * thin(truth.shape))).save("m.png")
    for name in ("auto", "patches"):
        how = ("--method", name, "--mask", "m.png", "--region", "32", "--param", "passes=1")
        done = tdc("complete-image", "p.png", "-o", f"{name}.png", *how)
        assert done.exit_code == 0, done.stderr
    assert np.array_equal(*(np.asarray(Image.open(f"{name}.png")) for name in ("auto", "patches")))


def test_what_deep_holes_cost_is_less(tdc):
    Image.fromarray(np.uint8(255 * waves(192, 256).clip(0, 1))).save("p.png")
    deep_, scattered_ = np.zeros((192, 256), bool), np.zeros((192, 256), bool)
    deep_[20:70, 20:70] = True
    scattered_.flat[::20] = True
    seconds = []
    for number, lost in enumerate((deep_, scattered_)):
        Image.fromarray(np.uint8(255 * lost)).save(f"m{number}.png")
        done = tdc("complete-image", "p.png", "-o", "o.png", "--mask", f"m{number}.png", "--dry-run", "--json")
        assert done.exit_code == 0, done.stderr
        seconds.append(json.loads(done.stdout)["estimate"]["seconds"])
    assert seconds[0] < 0.8 * seconds[1]


def flat_ground(kind, height=96, width=112):
    """Without its noise, (H, W), 0 to 255."""
    ground = np.full((height, width), 210.0)
    if kind == "beside the dark":
        ground[:, :20] = 45.0
    if kind == "gradient":
        ground -= np.linspace(0, 15, width)
    return ground


@pytest.mark.parametrize("frames", [None, 3])
@pytest.mark.parametrize("kind", ["one colour", "beside the dark", "gradient"])
def test_flat_ground_has_no_stain_and_its_intervals_hold(tdc, kind, frames):
    ground, rng = flat_ground(kind), np.random.default_rng(2)
    shape = ground.shape if frames is None else (frames, *ground.shape)
    truth = np.rint(ground + rng.normal(0, 1.5, shape)).astype(np.uint8)
    lost = np.zeros(ground.shape, bool)
    lost[28:68, 40:80] = True
    np.save("truth.npy", truth)
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    command = "complete-image" if frames is None else "complete-video"
    done = tdc(command, "truth.npy", "-o", "o.npy", "--mask", "m.png", "--uncertainty", "sd.npy", "--param", "passes=2")
    assert done.exit_code == 0, done.stderr
    made, sd = np.load("o.npy").astype(float), np.load("sd.npy")
    middle = (made - ground)[..., 43:53, 55:65].mean(axis=(-2, -1))
    assert np.abs(middle).max() < 1.5
    assert (np.abs(made - truth) <= 1.645 * sd)[..., lost].mean() >= 0.85
    assert 0.8 < (made - ground)[..., lost].std() / 1.5 < 1.25  # no smear


def test_clips_that_are_divided_have_deep_holes_in_one_region(tdc):
    truth = np.uint8(255 * np.stack([waves(64, 96)] * 2).clip(0, 1))
    lost = np.zeros((64, 96), bool)
    lost[24:40, 44:62] = lost[:, 20:22] = True
    np.save("c.npy", truth)
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    how = ("--mask", "m.png", "--region", "32", "--param", "passes=1", "--json")
    done = tdc("complete-video", "c.npy", "-o", "o.npy", *how)
    assert done.exit_code == 0, done.stderr
    made = np.load("o.npy")
    assert json.loads(done.stdout)["invented"] == 2 * deep(lost).sum() and np.array_equal(
        made[:, ~lost], truth[:, ~lost]
    )
    assert made[:, deep(lost)].std() > 0.5 * truth[:, deep(lost)].std()  # no smear


@pytest.mark.parametrize("frames", [None, 2])
def test_what_may_be_copied_is_seen_by_a_region_however_far_away_it_is(tdc, frames):
    truth = np.uint8(255 * waves(64, 400).clip(0, 1))
    truth[:, 340:] = 7
    lost, source = np.zeros(truth.shape, bool), np.zeros(truth.shape, bool)
    lost[24:40, 44:62] = True
    source[8:56, 350:390] = True
    np.save("p.npy", truth if frames is None else np.stack([truth] * frames))
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    Image.fromarray(np.uint8(255 * source)).save("s.png")
    command = "complete-image" if frames is None else "complete-video"
    how = ("--mask", "m.png", "--source", "s.png", "--region", "32", "--param", "passes=1", "--json")
    done = tdc(command, "p.npy", "-o", "o.npy", *how)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["invented"] == (frames or 1) * deep(lost).sum()
    assert "--source had no part" not in done.stderr


def test_exemplar_fills_a_clip_of_large_frames_hole_by_hole(tdc):
    truth = np.uint8(255 * np.stack([waves(64, 600)] * 3).clip(0, 1))
    lost = np.zeros((64, 600), bool)
    lost[24:40, 40:58] = lost[30:36, 500:520] = True
    np.save("c.npy", truth)
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    how = ("--method", "exemplar", "--mask", "m.png", "--region", "64", "--json")
    told = tdc("complete-video", "c.npy", "-o", "o.npy", *how, "--dry-run")
    places = [(place["rows"], place["columns"]) for place in json.loads(told.stdout)["regions"]]
    assert len(places) == 2 and all(right - left < 340 for _, (left, right) in places)
    done = tdc("complete-video", "c.npy", "-o", "o.npy", *how)
    assert done.exit_code == 0, done.stderr
    made = np.load("o.npy")
    assert json.loads(done.stdout)["invented"] == 3 * lost.sum()
    assert np.array_equal(made[:, ~lost], truth[:, ~lost]) and made[:, lost].std() > 0.5 * truth[:, lost].std()


def test_a_large_frame_of_a_clip_does_not_shorten_what_exemplar_sees_of_it(tdc):
    """What is held is what lies around a hole, so that as many frames are filled together as of a small clip."""
    np.save("c.npy", np.zeros((12, 720, 1280), np.uint8))
    words = ["complete-video", "c.npy", "-o", "o.npy", "--method", "exemplar", "--mask-box", "100,100,80,60"]
    told = tdc(*words, "--dry-run", "--json")
    assert told.exit_code == 0, told.stderr
    assert len(json.loads(told.stdout)["regions"]) == 1


def test_grain_and_variants_of_a_hole_that_is_partly_predicted(tdc):
    """Grain falls on what was predicted alone; the answers differ in what was invented, and the page shows them."""
    _, lost = hole_in_waves(0.0)
    rows, columns = np.mgrid[:64, :72]
    truth = 0.2 + 0.002 * rows + 0.006 * columns + np.random.default_rng(0).normal(0, 0.002, lost.shape)
    np.save("p.npy", truth)
    Image.fromarray(np.uint8(255 * lost)).save("m.png")
    few = ["--param", "passes=1", "--param", "start=field"]

    def answer(name, *more):
        done = tdc("complete-image", "p.npy", "-o", name, "--mask", "m.png", "--json", *few, *more)
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    report = answer("plain.npy")
    predicted = lost.sum() - report["invented"]
    assert 0 < predicted < lost.sum()
    assert answer("grain.npy", "--grain")["invented"] == report["invented"]
    answer("both.npy", "--grain", "--variants", 2, "--html", "h.html")
    plain, grain, first, second = (np.load(f"{name}.npy") for name in ("plain", "grain", "both-1", "both-2"))
    assert np.count_nonzero((grain != plain)[lost]) == predicted
    assert np.array_equal(first, grain)
    assert np.count_nonzero((second != first)[lost & (grain == plain)]) > 0.5 * report["invented"]
    for made in (grain, first, second):
        assert np.array_equal(made[~lost], truth[~lost])
    with open("h.html", encoding="utf-8") as page:
        text = page.read()
    assert 'data-name="variant_2"' in text and f"{report['invented']} pixels were invented" in text


def test_a_lost_frame_beside_deep_holes_is_left_to_the_groups(tdc, folder):
    truth = np.stack([np.roll(waves(60, 64), t, axis=1) for t in range(5)])
    lost = np.zeros(truth.shape, np.uint8)
    lost[:, 10:50, 12:52] = 255
    lost[3] = 255
    np.save("c.npy", truth.astype(np.float32))
    np.save("m.npy", lost)
    few = [word for name, value in FEW.items() for word in ("--param", f"{name}={value}")]
    done = tdc("complete-video", "c.npy", "-o", "o.npy", "--mask", "m.npy", *few)
    assert done.exit_code == 0, done.stderr
    made = np.load("o.npy")
    assert np.isfinite(made).all() and (made == truth.astype(np.float32))[lost == 0].all()
