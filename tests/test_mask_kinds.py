"""What is missing and what comes of it, to the level and to the pixel, through the command line."""

import os
import stat
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from conftest import pixels, report_of, smooth
from PIL import Image

from tdc_cli import media
from tdc_cli.media.video import Clip, write_clip

NEAREST = ["--method", "nearest", "--threads", "1"]


@pytest.fixture
def missing(tdc):
    """Function that completes `a.png` with options and returns which pixels were missing."""

    def run(*words, picture="a.png"):
        result = tdc(
            "complete-image", picture, "-o", "b.png", *NEAREST, "--save-incomplete", "i.png", "--overwrite", *words
        )
        assert result.exit_code == 0, result.stderr
        return pixels("i_mask.png") > 0

    return run


def save16(path, values):
    Path(path).write_bytes(imagecodecs.png_encode(np.ascontiguousarray(values, dtype=np.uint16)))


def mask_of(values, base=0):
    """(20, 24) levels, `base` but for the first ones of the second row."""
    levels = np.full((20, 24), base)
    levels[1, : len(values)] = values
    return levels


# -- levels
# ---------------------------------------------------------------------------------------------------------------------


def test_levels_of_a_16_bit_mask_are_257_times_those_of_8_bits(missing):
    save16("w.png", mask_of([0, 32768, 32895, 32896, 65535]))
    assert missing("--mask", "w.png")[1, :6].tolist() == [False, False, False, True, True, False]


def test_a_mask_pixel_of_just_the_threshold_is_missing(missing):
    Image.fromarray(mask_of([99, 100, 101, 255]).astype(np.uint8)).save("w.png")
    assert missing("--mask", "w.png", "--mask-threshold", "100")[1, :5].tolist() == [False, True, True, True, False]
    assert missing("--mask", "w.png")[1, :5].tolist() == [False, False, False, True, False]


@pytest.mark.parametrize("white", [1, 255])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_a_mask_of_one_or_of_255_is_white(missing, dtype, white):
    np.save("w.npy", mask_of([white]).astype(dtype))
    assert missing("--mask", "w.npy")[1, :2].tolist() == [True, False]


@pytest.mark.parametrize(("values", "words"), [
    (np.zeros((20, 24), complex), "values of complex128; give numbers, the largest = missing, 0 = known"),
    (np.full((20, 24), "a"), "values of text; give numbers, the largest = missing, 0 = known"),
    (np.zeros((2, 20, 24, 3)), "array of shape (2, 20, 24, 3); a mask has shape (height, width), those of a clip "
                               "(frames, height, width)"),
    (np.zeros((0, 24)), "array of shape (0, 24); a mask has shape (height, width), those of a clip (frames, height, "
                        "width)"),
])  # fmt: skip
def test_an_array_that_is_no_mask_is_told_so(tdc, values, words):
    np.save("w.npy", values)
    done = tdc("complete-image a.png -o b.png --mask w.npy")
    assert (done.exit_code, done.stderr) == (2, f"tdc: mask w.npy: {words}\n")


def test_a_mask_as_stored_of_a_turned_picture_is_told_how_it_counts(tdc):
    turned = Image.Exif()
    turned[274] = 6
    Image.open("a.png").save("a.jpg", exif=turned)
    done = tdc("complete-image a.jpg -o b.png --mask m.png")
    sizes = "mask m.png is 24x20 pixels but picture a.jpg is 20x24; they must have the same size"
    hint = "a picture that its EXIF orientation turns counts as it is shown, upright"
    assert (done.exit_code, done.stderr) == (2, f"tdc: {sizes}; {hint}\n")


@pytest.mark.parametrize("deep", [False, True])
def test_what_is_painted_on_a_layer_is_missing_from_half_opaque_on(missing, deep):
    levels, alpha = mask_of([255, 255, 255, 255, 0, 255]), mask_of([127, 128, 255, 0, 255, 127])
    if deep:
        values = np.stack([levels, levels, levels, alpha], axis=2) * 257
        values[1, 5, 3] = 128 * 257 - 1
        save16("w.png", values)
    else:
        Image.fromarray(np.stack([levels, alpha], axis=2).astype(np.uint8), "LA").save("w.png")
    assert missing("--mask", "w.png")[1, :6].tolist() == [False, True, True, False, False, False]


def test_the_grey_of_a_colour_mask_weighs_red_more_than_blue(missing):
    values = np.zeros((20, 24, 3), np.uint8)
    values[1, 0], values[1, 1], values[1, 2], values[1, 3] = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
    Image.fromarray(values).save("w.png")
    for threshold, expected in ((20, [1, 1, 1, 1]), (70, [1, 1, 0, 1]), (80, [0, 1, 0, 1]), (152, [0, 0, 0, 1])):
        assert missing("--mask", "w.png", "--mask-threshold", threshold)[1, :5].tolist() == [
            bool(e) for e in [*expected, 0]
        ]


def test_a_mask_in_inks_is_white_where_there_are_none(missing):
    inks = np.full((20, 24, 4), 255, np.uint8)
    inks[1, 0], inks[1, 1], inks[1, 2] = (0, 0, 0, 0), (0, 0, 0, 100), (0, 0, 0, 200)
    Image.fromarray(inks, "CMYK").save("w.tif")
    assert missing("--mask", "w.tif")[1, :4].tolist() == [True, True, False, False]


def test_a_tolerance_is_the_largest_difference_of_a_channel(missing):
    values = smooth(20, 24)
    values[1, :6] = [(255, 0, 255), (254, 1, 255), (253, 2, 253), (252, 0, 255), (255, 4, 255), (255, 0, 251)]
    Image.fromarray(values).save("c.png")
    for tolerance, count in ((0, 1), (1, 2), (2, 3), (3, 4), (4, 6)):
        found = missing("--mask-color", "#f0f", "--mask-tolerance", tolerance, picture="c.png")
        assert found[1, :6].sum() == found.sum() == count, tolerance


def test_a_short_colour_doubles_its_digits(missing):
    values = smooth(20, 24)
    values[1, :2] = [(170, 0, 255), (160, 0, 240)]
    Image.fromarray(values).save("c.png")
    assert missing("--mask-color", "#a0f", picture="c.png")[1, :3].tolist() == [True, False, False]


def test_only_what_is_wholly_transparent_is_missing_and_becomes_opaque(missing):
    alpha = mask_of([0, 1, 127, 128, 254], 255)
    for deep in (False, True):
        values = np.dstack([smooth(20, 24), alpha.astype(np.uint8)])
        if deep:
            save16("c.png", values.astype(np.uint16) * 257)
        else:
            Image.fromarray(values, "RGBA").save("c.png")
        found = missing("--mask", "alpha", picture="c.png")
        assert found.sum() == 1 and found[1, 0]
        expected = np.array([255, 1, 127, 128, 254]) * (257 if deep else 1)
        written = media.read("b.png")
        assert written.values[1, :5, 3].tolist() == expected.tolist()
        assert written.alpha.max() == 1 and written.alpha[1, 1] == pytest.approx(1 / 255)


@pytest.mark.parametrize(("box", "rows", "columns"), [
    ("0,0,3,2", (0, 2), (0, 3)), ("-5,-4,3,2", (16, 18), (19, 22)), ("10,0,1,1", (0, 1), (10, 11)),
    ("50%,25%,25%,10%", (5, 7), (12, 18)), ("22,19,9,9", (19, 20), (22, 24)), ("0%,95%,100%,5%", (19, 20), (0, 24)),
])  # fmt: skip
def test_boxes_lie_where_their_numbers_say(missing, box, rows, columns):
    expected = np.zeros((20, 24), dtype=bool)
    expected[slice(*rows), slice(*columns)] = True
    assert np.array_equal(missing("--mask-box", box), expected)


@pytest.mark.parametrize(("pattern", "axis"), [("rows", 1), ("columns", 0)])
def test_a_simulated_share_is_the_nearest_that_there_is(tdc, pattern, axis):
    Image.fromarray(smooth(7, 5)).save("c.png")
    words = ["complete-image", "c.png", "-o", "b.png", *NEAREST, "--missing-ratio", "0.3", "--overwrite", "--json"]
    report = report_of(tdc(*words, "--save-incomplete", "i.png"))
    assert report["missing"]["count"] == 32 and report["missing"]["ratio"] == 32 / 105  # of 31.5
    report = report_of(tdc(*words, "--missing-pattern", pattern, "--save-incomplete", "i.png"))
    lost = (pixels("i_mask.png") > 0).all(axis=axis)
    assert (
        lost.sum() == 2 == (pixels("i_mask.png") > 0).any(axis=axis).sum()
        and report["missing"]["pixels"] == 2 * (7, 5)[axis == 1]
    )


# -- values
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", [255, 65535])
def test_a_copied_value_is_that_value_at_every_level(tdc, folder, top):
    """Rows in threes, the middle one missing: whichever is nearest, the value is that of the rows beside it."""
    levels = np.repeat(np.arange(256).reshape(8, 32), 3, axis=0) * (top // 255)
    mask = np.zeros(levels.shape, np.uint8)
    mask[1::3] = 255
    Image.fromarray(mask).save("m.png")
    if top > 255:
        save16("c.png", levels)
    else:
        Image.fromarray(levels.astype(np.uint8)).save("c.png")
    assert tdc("complete-image", "c.png", "-o", "b.png", *NEAREST, "--mask", "m.png").exit_code == 0
    assert np.array_equal(media.read("b.png").values, levels)


def test_estimates_are_rounded_to_the_nearest_level(tdc, folder):
    """Every third row known, in steps of two levels: linear between them."""
    rows = np.arange(10)
    save16("c.png", np.repeat(np.where(rows % 3, 0, rows * 2 // 3)[:, None], 7, axis=1))
    Image.fromarray(np.repeat((rows % 3 > 0)[:, None], 7, axis=1).astype(np.uint8) * 255).save("m.png")
    assert tdc("complete-image", "c.png", "-o", "b.png", "--method", "linear", "--mask", "m.png").exit_code == 0
    found = media.read("b.png")
    assert found.full_range == 65535 and (found.values == np.rint(rows * 2 / 3)[:, None]).all()


def test_holes_of_floats_are_saved_as_nan_and_of_integers_as_zero(tdc, folder):
    for name, values in (("c.npy", smooth(8, 9).astype(np.float32)), ("d.npy", smooth(8, 9))):
        np.save(name, values)
        words = ["-o", f"b{name}", *NEAREST, "--missing-ratio", "0.3", "--save-incomplete", f"i{name}"]
        assert tdc("complete-image", name, *words).exit_code == 0
    mask = pixels("ic_mask.png") > 0
    assert np.isnan(np.load("ic.npy"))[mask].any() and not np.isnan(np.load("ic.npy"))[~mask].any()
    assert (np.load("id.npy")[pixels("id_mask.png") > 0] == 0).any() and np.load("id.npy").dtype == np.uint8


def test_what_is_known_exactly_has_no_uncertainty(tdc):
    words = ["--method", "field", "--threads", "1", "--mask", "m.png", "--uncertainty", "u.npy"]
    assert tdc("complete-image", "a.png", "-o", "b.png", *words).exit_code == 0
    assert np.array_equal(np.load("u.npy") > 0, np.repeat(pixels("m.png")[..., None] > 0, 3, axis=2))


def test_the_coverage_is_that_of_what_is_missing(tdc):
    words = [
        "--method",
        "field",
        "--threads",
        "1",
        "--missing-ratio",
        "0.3",
        "--add-noise",
        "0.02",
        "--noise-std",
        "0.02",
        "--json",
    ]
    report = report_of(tdc("complete-image", "a.png", "-o", "b.png", *words))
    assert report["missing"]["ratio"] == 0.3 and 0.6 < report["uncertainty"]["coverage90"] <= 1


@pytest.mark.parametrize("kind", ["smaller", "wider", "deeper", "grey"])
def test_a_reference_that_is_not_alike_is_refused(tdc, kind):
    reference = {
        "smaller": smooth(19, 24),
        "wider": smooth(20, 25),
        "deeper": smooth(20, 24),
        "grey": smooth(20, 24, 0),
    }[kind]
    if kind == "deeper":
        save16("r.png", reference.astype(np.uint16) * 257)
    else:
        Image.fromarray(reference).save("r.png")
    result = tdc("complete-image", "a.png", "-o", "b.png", *NEAREST, "--mask", "m.png", "--reference", "r.png")
    assert result.exit_code == 2 and "but picture a.png is 24x20 RGB uint8; they must be alike" in result.stderr
    assert not Path("b.png").exists()


def test_a_pixel_of_an_animation_is_transparent_below_half_alpha(tmp_path):
    """GIF knows opaque and transparent only; what comes from another GIF is nothing between, so that no command shows
    this.
    """
    values = np.dstack([smooth(20, 24), mask_of([0, 63, 64, 127, 128, 200], 255).astype(np.uint8)])
    clip = Clip("a.gif", "", "GIF", 2, values.shape, values.dtype, "RGBA")
    write_clip([media.Media(values, "RGBA", "a.gif", "")] * 2, tmp_path / "b.gif", clip)
    with Image.open(tmp_path / "b.gif") as picture:
        shown = np.asarray(picture.convert("RGBA"))[..., 3] > 0
    assert shown[1, :7].tolist() == [False, False, False, False, True, True, True]


# -- files
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_a_replaced_file_and_folder_keep_their_permissions(tdc, folder, mode):
    Path("b.png").write_bytes(b"before")
    os.chmod("b.png", mode)
    assert tdc("complete-image", "a.png", "-o", "b.png", *NEAREST, "--mask", "m.png", "--overwrite").exit_code == 0
    assert stat.S_IMODE(os.stat("b.png").st_mode) == mode
    Path("in").mkdir()
    os.link("a.png", "in/0.png")
    words = ["complete-video", "in", "-o", "out", *NEAREST, "--mask", "m.png"]
    assert tdc(*words).exit_code == 0
    os.chmod("out", mode | 0o100)
    assert tdc(*words, "--overwrite").exit_code == 0
    assert stat.S_IMODE(os.stat("out").st_mode) == mode | 0o100


def test_a_report_counts_entries_and_pixels(tdc):
    report = report_of(tdc("complete-image", "a.png", "-o", "b.png", *NEAREST, "--missing-ratio", "0.3", "--json"))
    found = report["missing"]
    assert (found["count"], found["ratio"]) == (432, 0.3) and 432 / 3 < found["pixels"] < 432
