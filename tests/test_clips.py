"""`tdc complete-video` from one end to the other: masks, simulated holes, chunks, going on after a kill, what comes
out.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import report_of, smooth
from PIL import Image
from skimage.metrics import structural_similarity

from tdc_cli import holes as missing
from tdc_cli import metrics
from tdc_cli.cli.main import main
from tdc_cli.errors import ConfigError, MaskError, OutputError
from tdc_cli.media import locks
from tdc_cli.names import CLIP_PATTERNS
from tdc_cli.run import division, regions
from tdc_cli.run.cost import CLIP_COSTS
from tdc_cli.run.frame_numbers import frame_numbers, frame_range
from tdc_cli.run.report import SCHEMA
from tdc_cli.run.store import Folder

FRAMES, HEIGHT, WIDTH = 10, 20, 24
QUICK = ("--method", "field")


def moving(count=FRAMES, channels=3):
    """(T, H, W[, C]) uint8: a smooth picture that moves by a pixel a frame."""
    wide = smooth(HEIGHT + count, WIDTH, channels)
    return np.stack([wide[t : t + HEIGHT] for t in range(count)])


@pytest.fixture
def clip(folder):
    """The values of `a.npy`, a clip in the working folder."""
    np.save("a.npy", moving())
    return moving()


@pytest.fixture
def run(tdc, clip):
    """Complete `a.npy` into `b.npy` quickly, with further options; returns click's result."""
    return lambda *args, output="b.npy", **more: tdc("complete-video", "a.npy", "-o", output, *QUICK, *args, **more)


def refused(result, line, code=2):
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (code, f"tdc: {line}")


def made(result, path="b.npy"):
    assert result.exit_code == 0, result.stderr
    return np.load(path)


# Simulated holes


def streams(number):
    return np.random.default_rng([5, number])


def test_the_command_line_names_all_patterns_of_clips():
    assert missing.CLIP_PATTERNS == CLIP_PATTERNS


@pytest.mark.parametrize("pattern", missing.PATTERNS)
def test_the_count_is_exact_in_every_frame(pattern):
    shape = (40, 31, 3)
    drawn = [~missing.simulate_frame(shape, 0.3, pattern, t, streams) for t in range(5)]
    assert len({absent.sum() for absent in drawn}) == 1
    assert all((drawn[0] != other).any() for other in drawn[1:])
    assert (missing.simulate_frame(shape, 0.3, pattern, 3, streams) == ~drawn[3]).all()  # whatever was drawn before
    if pattern not in ("entries", "rows", "columns"):
        assert drawn[0].sum() == 3 * round(0.3 * 40 * 31)


def test_blocks_move_on_from_frame_to_frame():
    drawn = [~missing.simulate_frame((60, 80), 0.1, "blocks", t, streams) for t in range(20)]
    common = [(drawn[0] & other).sum() / drawn[0].sum() for other in drawn]
    assert common[1] > 0.35 > 0.25 > common[19]
    assert not (drawn[0] == drawn[1]).all()


def test_lost_frames_are_counted_exactly():
    assert missing.lost_frames(10, 0.25, streams(0)).sum() == 2
    with pytest.raises(MaskError, match="leaves no frame of 3"):
        missing.lost_frames(3, 0.9, streams(0))


def test_holes_depend_neither_on_the_method_nor_on_chunks(tdc, clip):
    seen = []
    for more in (
        ("--method", "field"),
        ("--method", "nearest", "--chunk", 3),
        ("--method", "field", "--frames", "0:10", "--chunk", 4),
    ):
        words = ("--missing-ratio", 0.3, "--missing-pattern", "text", "--save-incomplete", "i.npy", "--overwrite")
        seen.append(made(tdc("complete-video", "a.npy", "-o", "b.npy", *words, *more), "i.npy"))
    assert all((one == seen[0]).all() for one in seen)
    assert {(frame == 0).all(axis=2).sum() for frame in seen[0]} == {round(0.3 * HEIGHT * WIDTH)}


# Frames and chunks


def test_frames_are_named_as_in_python():
    assert frame_numbers("0::2", 7, "mask_frames") == (0, 2, 4, 6)
    assert frame_numbers("5, 0,-1 ,1:3", 7, "mask_frames") == (0, 1, 2, 5, 6)
    assert (frame_range("2:", 7), frame_range(":-1", 7), frame_range(None, 7)) == ((2, 7), (0, 6), (0, 7))
    for text, words in (
        ("7", "has 7, from 0 to 6"),
        ("x", "is not understood"),
        ("9:", "names none"),
        ("::0", "step of 0"),
        ("", "under"),
    ):
        with pytest.raises(ConfigError, match=words):
            frame_numbers(text, 7, "mask_frames")
    for text in ("3", "0:9:2", "0,4", "a:b"):
        with pytest.raises(ConfigError, match="`frames`"):
            frame_range(text, 7)


def test_chunks_hold_every_frame_once_and_see_what_is_beside():
    for changed in (range(100), range(0, 100, 20), (3, 4, 60, 61, 62), (99,)):
        for most in (1, 5, 16):
            divided = regions.divide(changed, 0, 100, most, 4, (6, 8))
            inside = [number for c in divided for number in range(c.first, c.end)]
            assert len(set(inside)) == len(inside) and set(changed) <= set(inside)
            assert all(c.end - c.first <= most for c in divided)
            assert all(c.start == max(0, c.first - 4) and c.stop == min(100, c.end + 4) for c in divided)
    assert (
        len(regions.divide(range(0, 100, 20), 0, 100, 16, 4, (6, 8))) == 5
    )  # what is far from all of them is left out
    whole = ((0, 16), (0, 6), (0, 8))
    assert regions.divide([3], 0, 16, 16, 4, (6, 8)) == (regions.Region(whole, whole),)
    assert regions.divide([], 0, 16, 16, 4, (6, 8)) == ()


@pytest.mark.parametrize("more", [(), ("--add-noise", 6, "--noise-std", 6)])
def test_chunks_are_not_seen_in_the_result(tdc, folder, more):
    wide = smooth(HEIGHT + 20, WIDTH) + np.random.default_rng(0).normal(0, 5, (HEIGHT + 20, WIDTH, 3))
    truth = np.stack([wide[t : t + HEIGHT] for t in range(20)])
    np.save("a.npy", truth.astype(np.float32))
    words = ("--missing-ratio", 0.4, "--missing-pattern", "pixels", "--param", "samples=1", *more)
    one = made(tdc("complete-video", "a.npy", "-o", "1.npy", *QUICK, *words, "--chunk", 5), "1.npy")
    other = made(tdc("complete-video", "a.npy", "-o", "2.npy", *QUICK, *words, "--chunk", 7), "2.npy")
    error, apart = (np.sqrt((d**2).mean(axis=(1, 2, 3))) for d in (one - truth, one - other))
    assert 0 < apart.max() < error.max()
    # From frame to frame errors change no more where a chunk ends than elsewhere.
    change = np.sqrt((np.diff(one - truth, axis=0) ** 2).mean(axis=(1, 2, 3)))
    ends = np.arange(1, 20) % 5 == 0
    assert change[ends].max() < 1.25 * change[~ends].max()


@pytest.mark.parametrize("method", ["auto", "patches"])
def test_chunks_of_whole_frames_between_holes_are_passed_on(tdc, folder, method):
    truth = moving(9)
    lost = np.zeros(truth.shape[:3], np.uint8)
    lost[[2, 6], 3:6, 4:7] = 255
    np.save("a.npy", truth)
    np.save("m.npy", lost)
    words = ("--mask", "m.npy", "--method", method, "--param", "passes=1", "--param", "members=8", "--chunk", 1)
    found = made(tdc("complete-video", "a.npy", "-o", "b.npy", *words))
    assert (found == truth)[lost == 0].all()


def test_chunks_of_the_default_method_hold_what_it_looks_at():
    from tdc_cli import methods
    from tdc_cli.methods import patches_clip

    # Patches are two frames deep: the farthest one reaches one frame beyond where its first frame lies.
    assert methods.get("patches").context >= patches_clip.REACH + 1


def test_memory_decides_how_many_frames_are_completed_at_a_time(run, clip, monkeypatch):
    assert len(json.loads(run("--missing-ratio", 0.3, "--dry-run", "--json").stdout)["chunks"]) == 1
    each = CLIP_COSTS["tdc_cli.methods.field"]  # with holes of its own in every frame
    room = (13 * each.space_each + each.space_own) * clip[0].size
    monkeypatch.setattr(division, "REGION_BYTES", each.space + room)
    told = json.loads(run("--missing-ratio", 0.3, "--dry-run", "--json").stdout)
    assert max(c["stop"] - c["start"] for c in told["chunks"]) <= 13 and len(told["chunks"]) == 2
    assert told["estimate"]["bytes"] <= division.REGION_BYTES


# Masks


def squares(*places):
    """Masks with a white square of 4x4 pixels at each (row, column); None: a black one."""
    masks = np.zeros((len(places), HEIGHT, WIDTH), dtype=np.uint8)
    for mask, place in zip(masks, places):
        if place:
            mask[place[0] : place[0] + 4, place[1] : place[1] + 4] = 255
    return masks


def test_one_mask_is_for_all_frames_or_for_named_ones(run, clip):
    Image.fromarray(squares((5, 6))[0]).save("m.png")
    report = report_of(run("--mask", "m.png", "--json"))
    assert (report["missing"]["count"], report["missing"]["source"]) == (FRAMES * 48, "mask")
    done = np.load("b.npy")
    outside = squares((5, 6))[0] == 0
    assert (done[:, outside] == clip[:, outside]).all() and (done != clip).any(axis=(1, 2, 3)).all()
    report = report_of(run("--mask", "m.png", "--mask-frames", "0::4", "--json", output="c.npy"))
    assert report["missing"]["pixels"] == 3 * 16
    done = np.load("c.npy")
    changed = (done != clip).any(axis=(1, 2, 3))
    assert set(np.flatnonzero(changed)) <= {0, 4, 8}


def test_masks_may_be_one_a_frame(run, clip):
    places = [(t, 2 * t) if t % 3 == 0 else None for t in range(FRAMES)]
    np.save("m.npy", squares(*places) > 0)
    Path("masks").mkdir()
    for t, mask in enumerate(squares(*places)):
        Image.fromarray(mask).save(f"masks/m{t}.png")
    Image.fromarray(squares(*places)[0]).save(
        "m.tif", save_all=True, append_images=[Image.fromarray(m) for m in squares(*places)[1:]]
    )
    results = []
    for name in ("m.npy", "masks", "m.tif"):
        report = report_of(run("--mask", name, "--overwrite", "--json"))
        assert report["missing"]["count"] == 4 * 48
        results.append(np.load("b.npy"))
    assert all((one == results[0]).all() for one in results)
    hidden = np.repeat(squares(*places)[..., None] > 0, 3, axis=3)
    assert (results[0][~hidden] == clip[~hidden]).all()


def test_masks_that_are_made_shorter_while_they_are_read_are_told(run, monkeypatch):
    """Of a mapped file what is gone would end the program by a signal."""
    np.save("m.npy", squares(*[(5, 6)] * FRAMES) / 255)
    whole = missing.largest_level

    def largest_level(*args):
        os.truncate("m.npy", 12_000)
        return whole(*args)

    monkeypatch.setattr(missing, "largest_level", largest_level)
    refused(run("--mask", "m.npy"), "m.npy: was made shorter while it was worked on; run again when it is left alone")


def test_masks_of_named_frames_may_differ(run, clip):
    np.save("m.npy", squares((1, 1), (9, 9)))
    done = made(run("--mask", "m.npy", "--mask-frames", "2,7", "--save-incomplete", "i.npy"), "i.npy")
    assert [tuple(t) for t in np.argwhere((done == 0).all(axis=3))[::16]] == [(2, 1, 1), (7, 9, 9)]


@pytest.mark.parametrize(("command", "name", "what"), [
    ("image", "a.mkv", "is a clip; 'tdc complete-video' completes it"),
    ("image", "a.npz", "holds arrays; 'tdc complete-tensor' completes them"),
    ("video", "a.jpg", "is a picture; 'tdc complete-image' completes it"),
    ("video", "a.mat", "holds arrays; 'tdc complete-tensor' completes them"),
    ("tensor", "a.mp4", "is a clip; 'tdc complete-video' completes it"),
])  # fmt: skip
def test_every_command_names_the_one_for_what_it_does_not_read(tdc, command, name, what):
    Path(name).touch()
    refused(tdc(f"complete-{command}", name, "-o", "b.npy", "--missing-ratio", 0.5), f"{name}: {what}")


def test_one_picture_as_a_clip_is_noted(tdc):
    done = tdc("complete-video a.png -o b.npy --mask m.png --dry-run")
    assert "tdc: note: a.png: holds one picture; 'tdc complete-image' is for these\n" in done.stderr


def test_another_number_of_masks_is_told_with_both(run):
    np.save("m.npy", squares(*[(1, 1)] * 9))
    advice = "give one picture for all frames, one a frame, or say with --mask-frames which frames they are for"
    refused(run("--mask", "m.npy"), f"mask m.npy has 9 frames but clip a.npy has 10; {advice}")
    refused(
        run("--mask", "m.npy", "--mask-frames", "0:4"),
        "mask m.npy has 9 frames but --mask-frames names 4 of the 10 of clip a.npy; give 4 masks, or one picture for "
        "all of them",
    )
    assert not Path("b.npy").exists()


def test_masks_that_cannot_be_meant_are_refused(run, clip):
    np.save("m.npy", np.zeros((FRAMES, 5, 6), np.uint8))
    refused(run("--mask", "m.npy"), "mask m.npy is 6x5 pixels but clip a.npy is 24x20; they must have the same size")
    np.save("m.npy", (squares(*[(1, 1)] * FRAMES) // 4))
    refused(
        run("--mask", "m.npy"),
        "mask m.npy marks nothing in any frame: its brightest pixel is 63 of 255, below the threshold 128; "
        "white = missing; give a lower --mask-threshold or repaint the mask",
    )
    refused(
        run("--mask", "m.npy", "--mask-threshold", 20, "--mask-frames", "x"),
        "--mask-frames 'x' is not understood; give frames such as 0,4,7 or slices such as 0::2, counted from 0",
    )
    refused(
        run("--mask-frames", "1", "--missing-ratio", 0.1), "--mask-frames needs a --mask that is a picture or a clip"
    )
    assert run("--mask", "m.npy", "--mask-threshold", 20).exit_code == 0


def test_what_compression_leaves_in_black_masks_is_no_hole(run, clip):
    masks = squares(*[(1, 1) if t == 4 else None for t in range(FRAMES)])
    masks[5, 3, 3] = 1  # alone it would be read as a mask of 0 and 1
    np.save("m.npy", masks)
    assert report_of(run("--mask", "m.npy", "--json"))["missing"]["count"] == 48


def test_a_colour_stands_for_holes_in_the_frames_that_have_it(run, clip):
    marked = clip.copy()
    marked[3, 4:7, 4:7] = (255, 0, 255)
    np.save("a.npy", marked)
    report = report_of(run("--mask-color", "#f0f", "--json"))
    assert (report["missing"]["source"], report["missing"]["pixels"]) == ("color", 9)
    refused(run("--mask-color", "#0f0", output="c.npy"),
            "a.npy: no pixel of any frame has the colour #0f0; give another colour or a --mask-tolerance")  # fmt: skip


def test_nan_is_missing_in_floats(run, clip):
    values = clip.astype(np.float32)
    values[2, 3:6, 3:6] = np.nan
    np.save("a.npy", values)
    report = report_of(run("--json"))
    assert (report["missing"]["source"], report["missing"]["count"]) == ("nan", 27)
    done = np.load("b.npy")
    assert np.isfinite(done).all() and (done[np.isfinite(values)] == values[np.isfinite(values)]).all()
    assert np.abs(done - clip).max() < 20


def test_nothing_that_says_what_is_missing_is_refused(run):
    refused(
        run(),
        "a.npy: nothing says what is missing; give --mask PATH (white = missing), --mask-box X,Y,W,H, or "
        "--missing-ratio 0.5 to hide half of a whole clip",
    )


# What comes out


def test_known_entries_come_back_and_measures_are_those_of_the_whole_clip(run, clip):
    report = report_of(
        run("--missing-ratio", 0.3, "--chunk", 3, "--json", "--report", "r.json", "--uncertainty", "u.npy")
    )
    jsonschema.validate(report, SCHEMA)
    assert json.loads(Path("r.json").read_text()) == report
    assert report["input"] | {"sha256": ""} == {
        "path": "a.npy",
        "sha256": "",
        "shape": [10, 20, 24, 3],
        "dtype": "uint8",
        "mode": "array",
        "frames": 10,
        "rate": None,
    }
    done, sd = np.load("b.npy"), np.load("u.npy")
    assert sd.dtype == np.float32 and sd.shape == clip.shape and (done[sd == 0] == clip[sd == 0]).all()
    assert np.count_nonzero(sd) == report["missing"]["count"] == FRAMES * round(0.3 * clip[0].size)
    assert report["uncertainty"]["mean_sd"] == pytest.approx(sd[sd > 0].mean(), rel=1e-5)
    assert 0.5 < report["uncertainty"]["coverage90"] <= 1
    error = (done.astype(float) - clip) ** 2
    measured = report["metrics"]
    assert measured["all"]["psnr"] == pytest.approx(10 * np.log10(255**2 / error.mean()))
    assert measured["missing"]["psnr"] == pytest.approx(10 * np.log10(255**2 / error[sd > 0].mean()))
    assert measured["all"]["rre"] == pytest.approx(metrics.rre(clip, done))
    ssims = [structural_similarity(a, b, channel_axis=2, data_range=255) for a, b in zip(clip, done)]
    assert measured["all"]["ssim"] == pytest.approx(np.mean(ssims))
    assert [frame["ssim"] for frame in measured["frames"]] == pytest.approx(ssims)
    assert [frame["psnr"] for frame in measured["frames"]] == pytest.approx(
        [10 * np.log10(255**2 / e.mean()) for e in error]
    )
    assert [frame["frame"] for frame in measured["frames"]] == list(range(FRAMES))


def test_measures_of_floats_do_not_depend_on_their_unit(run, clip):
    np.save("a.npy", clip.astype(float))
    how = ("--missing-ratio", 0.3, "--method", "nearest", "--json", "--overwrite")
    small = report_of(run(*how))["metrics"]
    np.save("a.npy", clip * 1e200)
    large = report_of(run(*how))["metrics"]
    for key in ("all", "missing", "incomplete"):
        for measure in ("psnr", "rre"):
            assert large[key][measure] == pytest.approx(small[key][measure], rel=1e-3)


def test_a_reference_is_the_truth_of_a_real_mask(run, clip):
    np.save("truth.npy", clip)
    holed = clip.copy()
    holed[:, 5:9, 6:10] = 255
    np.save("a.npy", holed)
    Image.fromarray(squares((5, 6))[0]).save("m.png")
    measured = report_of(run("--mask", "m.png", "--reference", "truth.npy", "--json"))["metrics"]
    assert measured["missing"]["psnr"] > 30
    np.save("truth.npy", clip[:9])
    refused(
        run("--mask", "m.png", "--reference", "truth.npy", output="c.npy"),
        "reference truth.npy is 9 frames of 24x20 array uint8 but clip a.npy is 10 frames of 24x20 array uint8; they "
        "must be alike",
    )


def test_noise_is_taken_out_of_every_frame_and_added_the_same_way(run, clip):
    words = ("--missing-ratio", 0.2, "--add-noise", 0.05, "--noise-std", 0.05, "--save-incomplete", "i.npy", "--json")
    report = report_of(run(*words))
    jsonschema.validate(report, SCHEMA)
    noisy, done = np.load("i.npy"), np.load("b.npy")
    assert report["noise_std"] == pytest.approx(0.05)
    assert (noisy.astype(float) - clip)[noisy > 0].std() == pytest.approx(0.05 * 255, rel=0.1)
    assert ((done.astype(float) - clip)[noisy > 0]).std() < 0.04 * 255
    report_of(run(*words, "--chunk", 4, "--overwrite"))
    assert (np.load("i.npy") == noisy).all()


def test_frames_out_of_range_pass_as_they_are(run, clip):
    report = report_of(run("--missing-ratio", 0.3, "--frames", "2:5", "--json"))
    done = np.load("b.npy")
    assert set(np.flatnonzero((done != clip).any(axis=(1, 2, 3)))) == {2, 3, 4}
    assert [frame["frame"] for frame in report["metrics"]["frames"]] == [2, 3, 4]
    refused(
        run("--missing-ratio", 0.3, "--frames", "20:30", output="c.npy"),
        "--frames '20:30' names none of the 10 frames of the clip",
    )


def test_lost_frames_are_completed_from_those_beside(run, clip):
    report = report_of(run("--missing-ratio", 0.3, "--missing-pattern", "frames", "--json"))
    assert report["missing"]["pixels"] == 3 * HEIGHT * WIDTH
    assert report["metrics"]["missing"]["psnr"] is not None
    done = np.load("b.npy")
    assert (done == clip).all(axis=(1, 2, 3)).sum() >= 7


def test_a_method_that_looks_at_single_frames_cannot_make_lost_ones(tdc, clip):
    words = ("--missing-ratio", 0.3, "--missing-pattern", "frames", "--method", "nearest")
    result = tdc("complete-video", "a.npy", "-o", "b.npy", *words)
    assert (
        result.exit_code == 2
        and "is missing altogether, and method nearest completes each frame by itself" in result.stderr
    )


def test_a_gap_too_long_for_a_chunk_is_found_before_any_work(run, clip):
    np.save("m.npy", np.repeat(np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 1], bool), HEIGHT * WIDTH).reshape(clip.shape[:3]))
    result = run("--mask", "m.npy", "--chunk", 1)
    assert (
        result.exit_code == 2
        and "are all missing altogether, and no more than 1 are completed at a time" in result.stderr
    )


def test_methods_of_another_order_are_refused(tdc, clip):
    result = tdc("complete-video", "a.npy", "-o", "b.npy", "--missing-ratio", 0.1, "--method", "tsvd")
    refused(result, "method tsvd takes tensors of order 3, not 4; coloured frames one after the other have order 4")


@pytest.mark.parametrize("method", ["nearest", "patches", "halrtc"])
def test_a_grey_clip_by_other_methods(tdc, folder, method):
    np.save("a.npy", moving(6, None))
    more = {"halrtc": ("--param", "iterations=5"), "patches": ("--param", "passes=1")}.get(method, ())
    report = report_of(
        tdc("complete-video", "a.npy", "-o", "b.npy", "--missing-ratio", 0.3, "--method", method, "--json", *more)
    )
    jsonschema.validate(report, SCHEMA)
    assert np.load("b.npy").shape == (6, HEIGHT, WIDTH) and report["metrics"]["missing"]["psnr"] > 15


def test_without_standard_deviations_the_report_has_none(tdc, clip):
    words = (
        "--missing-ratio",
        0.3,
        "--frames",
        "0:2",
        "--method",
        "patches",
        "--param",
        "calibrate=false",
        "--param",
        "passes=1",
    )
    assert report_of(tdc("complete-video", "a.npy", "-o", "b.npy", *words, "--json"))["uncertainty"] is None


def test_the_summary_counts_frames_too(run):
    shown = run("--missing-ratio", 0.3, "--missing-pattern", "pixels").stdout.splitlines()
    assert shown[0].startswith("b.npy: 1440 of 4800 pixels missing (30.0%), field, ")


def test_everything_to_look_at(run):
    looked = ("--panel", "p.png", "--side-by-side", "s.npy", "--html", "h.html")
    result = run("--missing-ratio", 0.3, "--uncertainty", "u.npy", "--param", "samples=1", *looked)
    assert result.exit_code == 0, result.stderr
    assert Image.open("p.png").format == "PNG"
    assert np.load("s.npy").shape[0] == FRAMES and np.load("s.npy").shape[2] >= 3 * WIDTH
    assert "frame 0" in Path("h.html").read_text() and "<script" in Path("h.html").read_text()


def test_a_dry_run_tells_chunks_and_cost_and_writes_nothing(run):
    before = sorted(os.listdir())
    shown = run("--missing-ratio", 0.3, "--dry-run", "--chunk", 4)
    assert shown.stdout.splitlines() == [
        "a.npy: 10 frames of 24x20, 4320 of 14400 entries missing (30.0%), 10 frames to be completed by field",
        "  clip: b.npy",
        "  3 chunks of up to 10 frames, overlaps and all, about 1 s on one core and 130 MB",
    ]
    assert sorted(os.listdir()) == before


def test_a_dry_run_of_one_frame_names_one_frame(run):
    shown = run("--missing-ratio", 0.3, "--frames", "3:4", "--dry-run").stdout
    assert "1 frame to be completed by field" in shown and "one chunk of 1 frame," in shown


@pytest.mark.parametrize(
    "method, why",
    [
        ("exemplar", "what is missing lies in deep holes, which are not divided"),
        ("nearest", "frames are not divided"),
        ("field", None),
    ],
)
def test_a_region_that_changes_nothing_is_told(tdc, clip, method, why):
    words = ("--mask-box", "8,6,8,8", "--method", method, "--region", 32, "--dry-run")
    told = tdc("complete-video", "a.npy", "-o", "b.npy", *words).stderr
    said = f"tdc: note: a.npy: --region 32 changes nothing: with method {method} {why}\n"
    assert (said in told) if why else "--region" not in told


def test_a_smaller_chunk_is_advised_only_where_it_helps(tdc, folder):
    np.save("a.npy", np.repeat(moving(40, 1), 6, axis=1).repeat(6, axis=2))
    words = ("complete-video", "a.npy", "-o", "b.npy", "--missing-ratio", 0.3, *QUICK, "--chunk", 32, "--memory")
    told = [tdc(*words, size, "--dry-run") for size in ("160M", "130M")]
    assert [each.exit_code for each in told] == [2, 2]
    assert ["a smaller --chunk, or a part of it" in each.stderr for each in told] == [True, False]


def test_nothing_is_overwritten_unasked(run, clip):
    np.save("b.npy", clip)
    refused(run("--missing-ratio", 0.3), "b.npy: exists already; give --overwrite to replace it")
    refused(run("--missing-ratio", 0.3, output="a.npy"), "a.npy: is the input itself; name another file")
    assert (np.load("b.npy") == clip).all()
    assert (made(run("--missing-ratio", 0.3, "--overwrite")) != clip).any()


def test_clips_are_neither_read_from_nor_written_to_standard_streams(tdc, clip):
    for paths in (("-", "-o", "b.npy"), ("a.npy", "-o", "-")):
        refused(
            tdc("complete-video", *paths, "--missing-ratio", 0.3),
            "- stands for standard input or output; a clip is read from and written to a file or a folder: name one",
        )


def test_options_come_from_the_environment_and_from_a_file(tdc, clip):
    Path("tdc.toml").write_text('[complete-video]\nmethod = "field"\nmissing-ratio = 0.3\nchunk = 4\n')
    words = ("--config", "tdc.toml", "complete-video", "a.npy", "-o", "b.npy", "--dry-run")
    assert "3 chunks" in tdc(*words).stdout
    assert "10 chunks" in tdc(*words, env={"TDC_COMPLETE_VIDEO_CHUNK": "1"}).stdout


# Files of all kinds


def written(path, rate):
    """Write the moving picture as a video file without loss, of `rate` frames a second."""
    import av

    with av.open(path, "w") as file:
        stream = file.add_stream("ffv1", rate=rate)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "bgr0"
        for values in moving():
            file.mux(
                stream.encode(
                    av.VideoFrame.from_ndarray(np.ascontiguousarray(values), format="rgb24").reformat(format="bgr0")
                )
            )
        file.mux(stream.encode())


def test_a_video_file_keeps_rate_times_and_known_pixels(tdc, clip):
    from tdc_cli.media.video import read_clip

    written("a.mkv", Fraction(30000, 1001))
    words = (
        "--missing-ratio",
        0.2,
        "--missing-pattern",
        "pixels",
        "--save-incomplete",
        "i.mkv",
        "--side-by-side",
        "s.mp4",
        "--json",
    )
    result = tdc("complete-video", "a.mkv", "-o", "b.mkv", "--codec", "ffv1", *QUICK, *words, "--chunk", 4)
    report = report_of(result)
    assert (report["input"]["rate"], report["input"]["mode"]) == ("30000/1001", "RGB")
    before, after = read_clip("a.mkv"), read_clip("b.mkv")
    assert (after.count, after.rate, after.times) == (before.count, before.rate, before.times)
    known = [frame.values for frame in read_clip("a.mkv").frames()]
    done = [frame.values for frame in after.frames()]
    same = np.mean([(a == b).all(axis=2).mean() for a, b in zip(known, done)])
    assert 0.8 <= same < 0.9
    assert read_clip("s.mp4").count == FRAMES


def test_a_rate_is_given_to_frames_that_have_none(tdc, clip):
    from tdc_cli.media.video import read_clip

    def completed(source, output, *more):
        return tdc("complete-video", source, "-o", output, "--method", "nearest", "--missing-ratio", 0.2, *more)

    Path("frames").mkdir()
    for t, values in enumerate(clip):
        Image.fromarray(values).save(f"frames/f{t}.png")
    for name in ("b.mkv", "b.mp4", "b.webp"):
        report = report_of(completed("frames", name, "--frame-rate", "30000/1001", "--json"))
        held = read_clip(name)
        assert held.count == FRAMES and report["input"]["rate"] == "30000/1001"
        off = max(abs(time - Fraction(1001 * k, 30000)) for k, time in enumerate(held.times))
        assert off <= (0 if name == "b.mp4" else Fraction(1, 1000)), "MKV and WebP count milliseconds"
        assert not any("rate" in warning for warning in report["warnings"])
    for name in ("c.mp4", "c.gif"):
        warning = (
            f"nothing is known of the input's frame rate; {name} shows 25 frames a second; give it by --frame-rate"
        )
        assert warning in report_of(completed("frames", name, "--json"))["warnings"]
        assert read_clip(name).times == tuple(Fraction(k, 25) for k in range(FRAMES))
    refused(
        completed("b.mp4", "d.mp4", "--frame-rate", "24"),
        "--frame-rate is for inputs that hold no times; b.mp4 has 30000/1001 frames a second: leave it out",
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("fast", "'fast' is no rate; give frames a second, such as 25 or 30000/1001"),
        ("25/0", "'25/0' is no rate; give frames a second, such as 25 or 30000/1001"),
        ("-25", "-25 is not in the range 1/1000 to 1000 frames a second"),
        ("1e9", "1e9 is not in the range 1/1000 to 1000 frames a second"),
    ],
)
def test_a_rate_that_is_none_is_refused(run, text, line):
    refused(run("--missing-ratio", 0.2, "--frame-rate", text, output="c.mp4"),
            f"Invalid value for '--frame-rate': {line}; see 'tdc complete-video --help'")  # fmt: skip


def test_folders_of_frames_keep_names_and_transparency(tdc, clip):
    Path("frames").mkdir()
    for t, values in enumerate(clip):
        alpha = np.full((HEIGHT, WIDTH, 1), 255, np.uint8)
        alpha[4:8, t : t + 4] = 0
        Image.fromarray(np.concatenate([values, alpha], axis=2)).save(f"frames/f{t}.png")
    report = report_of(tdc("complete-video", "frames", "-o", "done", "--mask", "alpha", *QUICK, "--json"))
    assert (report["missing"]["source"], report["missing"]["pixels"]) == ("alpha", FRAMES * 16)
    assert sorted(p.name for p in Path("done").glob("[!.]*")) == [f"f{t}.png" for t in range(FRAMES)]
    done = np.stack([np.asarray(Image.open(f"done/f{t}.png")) for t in range(FRAMES)])
    assert (done[..., 3] == 255).all() and np.abs(done[..., :3].astype(float) - clip).max() < 40
    assert (done[:, 10:, :, :3] == clip[:, 10:]).all()
    words = ("complete-video", "frames", "--mask", "alpha", *QUICK)
    refused(tdc(*words, "-o", "done"), "done: exists already; give --overwrite to replace it")
    refused(tdc(*words, "-o", "frames", "--overwrite"), "frames: is the input itself; name another file")
    assert tdc("complete-video", "frames", "-o", "done", "--mask", "alpha", *QUICK, "--overwrite").exit_code == 0


def test_a_codec_with_loss_is_warned_of(tdc, clip):
    result = tdc("complete-video", "a.npy", "-o", "b.npy", "--missing-ratio", 0.1, "--codec", "ffv1", *QUICK)
    assert result.exit_code == 2 and "takes no codec" in result.stderr
    written("a.mkv", 25)
    result = tdc("complete-video", "a.mkv", "-o", "b.mp4", "--missing-ratio", 0.1, *QUICK)
    assert result.exit_code == 0 and "tdc: warning: " in result.stderr and "loss" in result.stderr


# Going on

# A quick method that looks at the frames beside a chunk.
HOLES = ("--missing-ratio", 0.3, "--chunk", 2, "--method", "halrtc", "--param", "iterations=3")
KILLED = """
import os, signal, sys
from tdc_cli.cli.main import main
from tdc_cli.run.store import Folder
save, saved = Folder.save, []
def and_die(self, *args):
    save(self, *args)
    saved.append(args)
    if len(saved) == 2:
        os.kill(os.getpid(), signal.{})
Folder.save = and_die
main(sys.argv[1:])
"""


def stopped(how):
    """Complete `a.npy` in five chunks, in a process that gets a signal after the second one; the finished process."""
    words = ["complete-video", "a.npy", "-o", "b.npy", *QUICK, *map(str, HOLES)]
    return subprocess.run(
        [sys.executable, "-c", KILLED.format(how), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )


WORK = ".b.npy.tdc-work"


@pytest.mark.parametrize("name", ["b.mkv", "b.mp4"])
def test_a_clip_file_has_nothing_in_it_that_another_run_would_not_write(tdc, folder, name):
    for number, frame in enumerate(moving(2)):
        os.makedirs("in", exist_ok=True)
        Image.fromarray(frame).save(f"in/{number}.png")
    for other in ("one", "two"):
        os.mkdir(other)
        words = ["-o", f"{other}/{name}", "--method", "nearest", "--missing-ratio", 0.2]
        assert tdc("complete-video", "in", *words).exit_code == 0
    assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_so_has_a_larger_one_by_h264(tdc):
    """Of which x264 with AVX-512 makes one of several."""
    rows, columns = np.indices((180, 300))
    moving = [np.uint8(128 + 100 * np.sin((rows + t) / 9) * np.cos((columns + 2 * t) / 7)) for t in range(12)]
    os.mkdir("in")
    for number, frame in enumerate(moving):
        Image.fromarray(frame).convert("RGB").save(f"in/{number:02}.png")
    found = set()
    for _ in range(6):
        words = ["-o", "b.mp4", "--method", "nearest", "--mask-box", "5,5,9,9", "--overwrite"]
        assert tdc("complete-video", "in", *words).exit_code == 0
        found.add(Path("b.mp4").read_bytes())
    assert len(found) == 1


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder with what a killed run has left, and with `whole.npy`, what another one has come to."""
    with contextlib.chdir(tmp_path_factory.mktemp("killed")):
        np.save("a.npy", moving())
        assert stopped("SIGKILL").returncode == -signal.SIGKILL and not os.path.exists("b.npy")
        words = ["complete-video", "a.npy", "-o", "whole.npy", *QUICK, *map(str, HOLES)]
        assert CliRunner().invoke(main, words).exit_code == 0
        return Path.cwd()


@pytest.fixture
def leave(killed, clip):
    """Put what the killed run has left into the working folder."""
    return lambda: shutil.copytree(killed / WORK, WORK)


@pytest.fixture
def whole(killed):
    """What a run comes to that is left alone."""
    return np.load(killed / "whole.npy")


@pytest.fixture
def counted(monkeypatch):
    """First frames of the chunks that this process has saved."""
    saved, save = [], Folder.save

    def counting(self, chunk, *args):
        saved.append(chunk.first)
        save(self, chunk, *args)

    monkeypatch.setattr(Folder, "save", counting)
    return saved


FIRST, SECOND = (f"{k:08d}-{k + 2:08d}_00000000-00000020_00000000-00000024.npz" for k in (0, 2))


def test_after_a_kill_finished_chunks_are_not_done_again(run, leave, killed, counted):
    leave()
    assert sorted(p.name for p in Path(WORK).iterdir()) == [FIRST, SECOND, "run.json"]
    made(run(*HOLES, "--resume"))
    assert counted == [4, 6, 8] and not Path(WORK).exists()
    assert Path("b.npy").read_bytes() == (killed / "whole.npy").read_bytes()


def test_ctrl_c_keeps_finished_chunks_and_says_so(run, counted):
    result = stopped("SIGINT")
    assert result.returncode == 130
    assert [line for line in result.stderr.splitlines() if "chunks of" not in line] == [
        f"tdc: note: finished regions are kept in {Path(WORK).absolute()}; the same command with --resume "
        "goes on from there",
        "tdc: interrupted",
    ]
    assert run(*HOLES, "--resume", "--threads", 1).exit_code == 0 and counted == [4, 6, 8]


def test_what_a_stopped_run_has_left_is_neither_lost_nor_mixed_up(run, leave, clip, counted):
    leave()
    work = Path(WORK).absolute()
    left = f"b.npy: a run that did not come to its end has left finished regions in {work}"
    refused(run(*HOLES), f"{left}; go on with --resume, or begin anew with --overwrite")
    line = (
        f"--resume: the finished regions in {work} are of another input, other options or another version; repeat "
        "those, or begin anew with --overwrite in place of --resume"
    )
    refused(run(*HOLES, "--resume", "--seed", 1), line)
    np.save("a.npy", clip[:, ::-1])
    refused(run(*HOLES, "--resume"), line)
    assert len(list(work.iterdir())) == 3
    np.save("a.npy", clip)
    assert run(*HOLES, "--overwrite").exit_code == 0 and counted == [0, 2, 4, 6, 8] and not work.exists()


def test_what_is_left_without_a_finished_chunk_is_no_obstacle(run, counted):
    for name, more in (("b.npy", ()), ("c.npy", ("--resume",))):
        work = Path(f".{name}.tdc-work")
        work.mkdir()
        (work / "run.json").write_text("of another run")
        assert run(*HOLES, *more, output=name).exit_code == 0 and not work.exists()


@pytest.mark.parametrize("more", [(), ("--resume",), ("--overwrite",)])
def test_a_file_in_the_place_of_finished_chunks_is_refused(run, folder, more):
    (folder / ".b.npy.tdc-work").write_text("mine")
    refused(
        run(*HOLES, *more),
        f"b.npy: finished regions would be kept in {folder / '.b.npy.tdc-work'}, which is a file; move it away, or "
        "name another output",
        code=2,
    )
    assert (folder / ".b.npy.tdc-work").read_text() == "mine" and not (folder / "b.npy").exists()


@pytest.mark.parametrize(("output", "line"), [
    ("a.npy", "a.npy: is the input itself; name another file"),
    (".", ".: holds a.npy, the input; name another folder"),
    ("a.npy/b.npy", "a.npy/b.npy: a.npy is a file, no folder; name another place"),
    ("none/b.npy", "none/b.npy: folder none does not exist; create it first"),
    ("", "Invalid value for '-o' / '--output': the name is empty; see 'tdc complete-video --help'"),
])  # fmt: skip
def test_places_where_no_clip_can_be_written_are_found_before_any_work(run, output, line):
    refused(run(*HOLES, output=output), line)


def test_nothing_is_thrown_away_that_another_run_is_at_work_on(run, leave):
    leave()
    work = Path(WORK)
    before = sorted(work.iterdir())
    with locks.hold(work / "run.json"):
        refused(
            run(*HOLES, "--overwrite"), "b.npy: another run is at work on it; wait for its end or name another file"
        )
        with pytest.raises(OutputError, match="another run is at work"):
            Folder(work, {}).open(False, "b.npy")
    assert sorted(work.iterdir()) == before


def test_no_result_lies_in_what_is_read_or_in_another_result(tdc, clip):
    folder = Path("frames")
    folder.mkdir()
    for i, frame in enumerate(clip):
        Image.fromarray(frame).save(folder / f"{i}.png")
    words = ("complete-video", "frames", "-o", "b.npy", "--missing-ratio", 0.2, "--method", "nearest", "--overwrite")
    refused(
        tdc(*words, "--report", "frames/0.png"),
        "frames/0.png: lies in the folder frames, the input; name a place outside of it",
    )
    words = ("complete-video", "frames", "-o", "done", "--missing-ratio", 0.2, "--method", "nearest")
    line = "done/r.json: report and clip lie one in the other; give each result a place of its own"
    refused(tdc(*words, "--report", "done/r.json"), line)
    root = tdc(*words[:3], "/", *words[4:])
    assert root.exit_code == 2 and root.stderr.startswith("tdc: /: ") and root.stderr.count("\n") == 1


def test_damage_within_a_chunk_or_the_mark_is_found(run, leave, whole, counted):
    leave()
    kept = Path(WORK, FIRST)
    content = bytearray(kept.read_bytes())
    content[60:90] = b"\xff" * 30
    kept.write_bytes(content)
    assert (made(run(*HOLES, "--resume")) == whole).all()
    Path("b.npy").unlink()
    leave()
    Path(".b.npy.tdc-work/run.json").write_bytes(b"\xff\xfe\0")
    done = run(*HOLES, "--resume")
    assert done.exit_code == 2 and "are of another input, other options or another version" in done.stderr


def test_a_damaged_chunk_is_done_again(run, leave, whole, counted):
    leave()
    kept = Path(WORK, SECOND)
    kept.write_bytes(kept.read_bytes()[:-30])
    assert (made(run(*HOLES, "--resume")) == whole).all() and counted == [2, 4, 6, 8]


def test_two_runs_at_once_do_not_mix(run, leave):
    leave()
    hold = (
        "import sys; from tdc_cli.media.locks import hold; "
        "f = hold('.b.npy.tdc-work/run.json'); print(1, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        other.stdout.readline()
        refused(run(*HOLES, "--resume"), "b.npy: another run is at work on it; wait for its end or name another file")
        other.stdin.close()
    assert run(*HOLES, "--resume").exit_code == 0


def test_resume_without_anything_to_go_on_with_is_a_run_like_any_other(run):
    assert run(*HOLES, "--resume").exit_code == 0


def test_a_failure_leaves_no_half_file(run, monkeypatch):
    from tdc_cli.errors import OutputError
    from tdc_cli.run.sinks import clip as sink

    def full(*args, **more):
        raise OutputError("b.npy: cannot be written (No space left on device)")

    with monkeypatch.context() as patched:
        patched.setattr(sink, "write_clip", full)
        result = run(*HOLES, "--report", "r.json")
    refused(result, "b.npy: cannot be written (No space left on device)", 1)
    assert not Path("b.npy").exists() and not Path("r.json").exists()
    assert run(*HOLES, "--report", "r.json", "--resume").exit_code == 0


def test_frames_that_know_nothing_in_common_are_no_hindrance_to_copies(tdc, folder):
    """Noise, of which one frame moved onto another may show nothing that both know."""
    noise = np.random.default_rng(26).integers(1, 250, (9, 11, 3), dtype=np.uint8)
    np.save("n.npy", np.stack([np.roll(noise, k, axis=0) for k in range(3)]))
    result = tdc("complete-video", "n.npy", "-o", "o.npy", "--missing-ratio", "0.3", "--method", "exemplar")
    assert result.exit_code == 0, result.stderr
    assert np.load("o.npy").shape == (3, 9, 11, 3)
