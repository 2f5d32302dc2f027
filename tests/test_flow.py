"""One way through the house: options are declared once, and what they say reaches pictures, clips and tensors alike."""

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import report_of, smooth

from tdc_cli import metrics
from tdc_cli.errors import ConfigError
from tdc_cli.names import CLIP, KINDS_OF_INPUT, MEASURES, PICTURE, TENSOR
from tdc_cli.run.option import options_of
from tdc_cli.run.request import Request, check, worded

COMMANDS = {PICTURE: "complete-image", CLIP: "complete-video", TENSOR: "complete-tensor"}


def plane(height=12, width=10):
    return np.add.outer(np.arange(height) * 2.0, np.arange(width))


# -- one declaration
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS_OF_INPUT)
def test_bounds_hold_from_python_as_on_the_command_line(kind):
    request = Request(kind=kind, input="a", output="b", method="biharmonic")
    check(request)
    for change, words in (
        ({"missing_ratio": 1.0}, "`missing_ratio` is 1; it must be at least 0 and below 1"),
        ({"seed": -1}, "`seed` is -1; it must be 0 or more"),
        ({"threads": 0}, "`threads` is 0; it must be from 1 to 10000"),
        ({"add_noise": float("nan")}, "`add_noise` is nan; it must be 0 or more"),
        ({"residual": "some"}, "`residual` is 'some'; it must be one of auto, mixture, none, separable"),
    ):
        with pytest.raises(ConfigError) as raised:
            check(replace(request, **change))
        assert str(raised.value) == words


def test_an_option_of_another_kind_of_input_is_refused():
    with pytest.raises(ConfigError, match="`chunk` is for a clip, not for a picture"):
        check(Request(kind=PICTURE, input="a", output="b", chunk=4))


def test_messages_name_fields_below_the_command_line_and_options_on_it():
    assert worded("give `mask_dilate=2`, or `overwrite` it") == "give --mask-dilate 2, or --overwrite it"
    assert worded("use `invert_mask=True`; `nothing` is known") == "use --invert-mask; `nothing` is known"


def test_finished_regions_depend_on_every_option_that_affects_the_result():
    first = Request(kind=CLIP, input="a", output="b").fingerprint()
    affecting = {name for name, (declared, _) in options_of(Request, CLIP).items() if declared.affects_result}
    assert set(first) == affecting >= {"mask_dilate", "missing_value", "seed", "noise_std", "rank", "param", "chunk"}
    assert not affecting & {"overwrite", "report", "threads", "resume", "codec"}
    assert Request(kind=CLIP, input="a", output="b", mask_dilate=1).fingerprint() != first


# -- a measure
# ----------------------------------------------------------------------------------------------------------------


def test_measures_have_a_name_and_a_function_each():
    assert {measure.key for measure in MEASURES} == set(metrics.MEASURES)


def test_the_mean_absolute_error_is_reported_for_every_kind_of_input(tdc):
    np.save("p.npy", plane())
    np.save("c.npy", np.stack([plane()] * 3))
    for name, command in (("p.npy", "complete-image"), ("c.npy", "complete-video"), ("p.npy", "complete-tensor")):
        method = "halrtc" if command == "complete-tensor" else "nearest"
        made = report_of(
            tdc(command, name, "-o", "o.npy", "--missing-ratio", 0.2, "--method", method, "--json", "--overwrite", "-q")
        )
        truth, filled = np.load(name), np.load("o.npy")
        assert made["metrics"]["all"]["mae"] == pytest.approx(np.abs(filled - truth).mean(), rel=1e-12), command
        assert made["metrics"]["missing"]["mae"] == pytest.approx(
            np.abs(filled - truth).sum() / made["missing"]["count"], rel=1e-12
        )
    words = tdc(
        "complete-image p.npy -o o.npy --missing-ratio 0.2 --method nearest --overwrite --html h.html"
    )
    assert "MAE " in words.stdout
    with open("h.html", encoding="utf-8") as page:
        assert "mean absolute error" in page.read()


def test_the_mean_absolute_error_does_not_depend_on_the_unit():
    truth, estimate, observed = plane() * 1e200, plane() * 1e200 + 3e200, np.ones((12, 10), bool)
    observed[3, 3] = False
    found, _ = metrics.compare(truth, estimate, observed, 1e202)
    assert found["all"]["mae"] == pytest.approx(3e200) and found["missing"]["mae"] == pytest.approx(3e200)


# -- values that stand for what is missing
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, dtype",
    [
        (PICTURE, np.float32),
        (PICTURE, np.uint8),
        (CLIP, np.uint8),
        (CLIP, np.float64),
        (TENSOR, np.float64),
        (TENSOR, np.int32),
    ],
)
def test_values_that_stand_for_what_is_missing(tdc, kind, dtype):
    missing = [255, 250] if dtype is np.uint8 else [-9999, -1]
    values = (np.stack([plane()] * 3) if kind == CLIP else plane()).astype(dtype)
    holed = values.copy()
    holed[..., 4:6, 3], holed[..., 7, 5] = missing
    np.save("a.npy", holed)
    method = "halrtc" if kind == TENSOR else "biharmonic"
    given = [word for number in missing for word in ("--missing-value", number)]
    made = report_of(tdc(COMMANDS[kind], "a.npy", "-o", "o.npy", *given, "--method", method, "--json", "-q"))
    assert made["missing"]["source"] == "value" and made["missing"]["count"] == 3 * (len(values) if kind == CLIP else 1)
    filled = np.load("o.npy")
    known = ~np.isin(holed, missing)
    assert np.array_equal(filled[known], values[known]) and not np.isin(filled, missing).any()
    assert filled.dtype == dtype


def test_a_mask_and_values_both_say_what_is_missing(tdc):
    holed = plane()
    holed[2, 2] = -1
    np.save("a.npy", holed)
    mask = np.zeros((12, 10))
    mask[6, 6] = 1
    np.save("m.npy", mask)
    done = tdc("complete-image a.npy -o o.npy --mask m.npy --missing-value -1 --method biharmonic --json")
    assert report_of(done)["missing"]["count"] == 2
    assert "a.npy: 1 further entries are NaN or -1 and count as missing" in done.stderr


def test_a_value_that_no_entry_has_is_no_empty_mask(tdc):
    np.save("a.npy", plane())
    result = tdc("complete-image", "a.npy", "-o", "o.npy", "--missing-value", -9999)
    assert (result.exit_code, result.stderr) == (2, "tdc: a.npy: no entry is -9999; give another --missing-value\n")


def test_an_input_with_missing_values_is_no_truth(tdc):
    holed = plane()
    holed[2, 2] = -1
    np.save("a.npy", holed)
    how = ("--missing-value", -1, "--missing-ratio", 0.2, "--method", "biharmonic", "--json")
    made = report_of(tdc("complete-image", "a.npy", "-o", "o.npy", *how))
    assert made["metrics"] is None and any("metrics are null" in text for text in made["warnings"])


# -- one report
# ---------------------------------------------------------------------------------------------------------------


def test_a_picture_and_a_clip_of_one_frame_are_completed_alike(tdc):
    picture = smooth(20, 24)
    np.save("p.npy", picture)
    np.save("c.npy", picture[None])
    how = ("--missing-ratio", 0.3, "--method", "biharmonic", "--report", "r.json", "--overwrite", "-q")
    assert tdc("complete-image", "p.npy", "-o", "po.npy", *how).exit_code == 0
    with open("r.json", encoding="utf-8") as file:
        one = json.load(file)
    assert tdc("complete-video", "c.npy", "-o", "co.npy", *how).exit_code == 0
    with open("r.json", encoding="utf-8") as file:
        other = json.load(file)
    assert np.array_equal(np.load("po.npy"), np.load("co.npy")[0])
    assert one["missing"] == other["missing"] and one["method"] == other["method"]
    assert one["metrics"]["missing"]["mae"] == pytest.approx(other["metrics"]["missing"]["mae"], rel=1e-12)


# -- boxes
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("boxes, rows, columns", [
    (["3,2,4,5"], range(2, 7), range(3, 7)),
    (["-4,-5,4,5"], range(15, 20), range(20, 24)),
    (["-4,-5,9,9"], range(15, 20), range(20, 24)),
    (["50%,25%,25%,10%"], range(5, 7), range(12, 18)),
    (["0,0,2,20", "2,0,1,20"], range(20), range(3)),
])  # fmt: skip
def test_a_box_is_missing_in_pictures_and_clips(tdc, boxes, rows, columns):
    picture = smooth(20, 24)
    np.save("p.npy", picture)
    np.save("c.npy", np.stack([picture] * 2))
    given = [word for box in boxes for word in ("--mask-box", box)]
    expected = np.zeros((20, 24), bool)
    expected[np.ix_(rows, columns)] = True
    for command, frames in (("complete-image", 1), ("complete-video", 2)):
        source = "p.npy" if frames == 1 else "c.npy"
        how = ("--method", "nearest", "--json", "--overwrite", "--save-incomplete", "i.npy")
        made = report_of(tdc(command, source, "-o", "o.npy", *given, *how))
        assert made["missing"]["source"] == "box" and made["missing"]["pixels"] == frames * expected.sum()
        assert np.array_equal((np.load("i.npy").reshape(frames, 20, 24, 3)[0] == 0).all(axis=-1), expected)


def test_a_box_that_reaches_beyond_the_picture_is_cut_with_a_note(complete):
    cut = complete("--mask-box", "20,15,10,10", "--mask-box", "0,0,4,4", "--json")
    assert report_of(cut)["missing"]["pixels"] == 4 * 5 + 4 * 4
    notes = [text for text in report_of(cut)["warnings"] if "--mask-box" in text]
    beyond = "rows 15 to 19 and columns 20 to 23 are missing"
    assert notes == [f"a.png: --mask-box 20,15,10,10 reaches beyond its 24x20 pixels: {beyond}"]


@pytest.mark.parametrize(
    "options, line",
    [
        (
            ["--mask-box", "3,2,4"],
            "--mask-box '3,2,4' is not of the form X,Y,W,H, such as 10,10,120,40 or -20%,-10%,20%,10%",
        ),
        (
            ["--mask-box", "3,2,0,5"],
            "--mask-box '3,2,0,5' has no extent; width and height, the last two numbers, must be above 0",
        ),
        (
            ["--mask-box", "30,2,4,5"],
            "a.png: --mask-box 30,2,4,5 lies outside of its 24x20 pixels; X and Y are counted from the left and the "
            "top",
        ),
        (["--mask-box", "0,0,100%,100%"], "a.png: the boxes cover every pixel: nothing is left to complete from"),
        (
            ["--mask-box", "0,0,5,5", "--mask", "m.png"],
            "--mask and --mask-box exclude each other: holes are said in one way; paint the boxes into the mask",
        ),
    ],
)
def test_boxes_that_make_no_sense(complete, options, line):
    result = complete(*options)
    assert (result.exit_code, result.stderr) == (2, f"tdc: {line}\n")
