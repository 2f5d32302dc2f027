"""The rules of docs/masks.md that are not about mask pictures alone: transparency, a colour, and the mask as
understood.
"""

import json
import os
from pathlib import Path

import numpy as np
import plain_codecs
import pytest
import tifffile
from conftest import pixels, report_of, smooth
from PIL import Image

QUICK = ["--method", "biharmonic"]
HOLE = np.zeros((20, 24), dtype=bool)
HOLE[5:9, 10:14] = True


def check_refused(result, line):
    assert (result.exit_code, result.stderr, result.stdout) == (2, f"tdc: {line}\n", "")


@pytest.fixture
def fill(tdc):
    """Complete a picture into a TIFF, whose values come back with click's result."""

    def run(name, *args):
        result = tdc("complete-image", name, "-o", "out.tif", *QUICK, *args, "--overwrite")
        return result, plain_codecs.tiff_values(Path("out.tif").read_bytes()) if result.exit_code == 0 else None

    return run


# -- transparency
# -------------------------------------------------------------------------------------------------------------


def transparent(channels, depth):
    """Picture with alpha 0 in HOLE, random black there, and other alpha of 1 and more elsewhere."""
    values = smooth(20, 24, channels).astype(depth) * (np.iinfo(depth).max // 255)
    values[..., -1] = np.random.default_rng(0).integers(1, np.iinfo(depth).max, (20, 24), endpoint=True)
    values[HOLE] = 0
    return values


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_what_is_transparent_is_filled_and_made_opaque(fill, channels, depth):
    values = transparent(channels, depth)
    Path("x.png").write_bytes(plain_codecs.png(values))
    result, found = fill("x.png", "--mask", "alpha", "--json")
    report = report_of(result)
    assert (
        report["missing"]["source"] == "alpha"
        and report["missing"]["mask"] is None
        and report["missing"]["pixels"] == HOLE.sum()
    )
    assert np.array_equal(found[~HOLE], values[~HOLE])
    assert (found[HOLE, -1] == np.iinfo(depth).max).all() and (found[HOLE][..., :-1] > 0).all()
    assert (
        report["missing"]["grey_levels"] == (values[..., -1] > 0).sum() - (values[..., -1] == np.iinfo(depth).max).sum()
    )
    assert "pixels are partly transparent and count as known" in result.stderr


def test_float_alpha_becomes_one(fill):
    values = smooth(20, 24, 4).astype(np.float32)
    values[..., -1] = np.where(HOLE, 0, 1)
    tifffile.imwrite("x.tif", values, photometric="rgb", extrasamples=["unassalpha"])
    result, found = fill("x.tif", "--mask", "alpha")
    assert result.stderr == "" and (found[..., -1] == 1).all()


def test_dilation_reaches_what_is_partly_transparent(fill):
    values = transparent(4, np.uint8)
    Path("x.png").write_bytes(plain_codecs.png(values))
    result, found = fill("x.png", "--mask", "alpha", "--mask-dilate", "1", "--save-incomplete", "i.png")
    grown = np.zeros((20, 24), dtype=bool)
    grown[4:10, 9:15] = True
    assert "partly transparent and count as known" in result.stderr and result.stderr.endswith("give --mask-dilate 3\n")
    assert (found[grown, -1] == 255).all() and np.array_equal(found[~grown], values[~grown])
    assert np.array_equal(pixels("i_mask.png") == 255, grown)
    assert np.array_equal(pixels("i.png")[..., -1], values[..., -1])  # as it came


def test_pictures_without_holes_or_without_alpha(fill):
    save = Image.fromarray(smooth(20, 24, 4))
    save.save("opaque.png")
    result, found = fill("opaque.png", "--mask", "alpha")
    assert result.stderr == "tdc: note: opaque.png: no pixel is wholly transparent: the output equals the input\n"
    assert np.array_equal(found, smooth(20, 24, 4))
    check_refused(
        fill("a.png", "--mask", "alpha")[0],
        "a.png: --mask alpha needs a picture with transparency, and this one is mode RGB with 8 bits",
    )
    Image.fromarray(smooth(20, 24, 4) * np.array([1, 1, 1, 0], dtype=np.uint8)).save("none.png")
    check_refused(
        fill("none.png", "--mask", "alpha")[0], "none.png: every pixel is transparent: nothing is left to complete from"
    )


# -- a colour
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
@pytest.mark.parametrize("color", ["#ff00ff", "FF00FF", "#f0f"])
def test_pixels_of_a_colour_are_missing(fill, depth, color):
    unit = np.iinfo(depth).max // 255
    values = smooth(20, 24).astype(depth) * unit
    values[HOLE] = np.array([255, 0, 255]) * unit
    Path("x.png").write_bytes(plain_codecs.png(values))
    result, found = fill("x.png", "--mask-color", color, "--json")
    report = report_of(result)
    assert report["missing"]["source"] == "color" and report["missing"]["pixels"] == HOLE.sum()
    assert np.array_equal(found[~HOLE], values[~HOLE]) and (found[HOLE, 1] > 0).all()


@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_the_tolerance_is_of_255_in_each_channel(fill, depth):
    unit = np.iinfo(depth).max // 255
    values = np.full((20, 24, 3), 100 * unit, dtype=depth)
    values[5, 5], values[5, 6], values[5, 7] = np.array([[255, 0, 255], [250, 5, 250], [249, 0, 255]]) * unit
    Path("x.png").write_bytes(plain_codecs.png(values))
    for tolerance, count in ((0, 1), (4, 1), (5, 2), (6, 3)):
        result, _ = fill("x.png", "--mask-color", "#ff00ff", "--mask-tolerance", tolerance, "--json")
        assert report_of(result)["missing"]["pixels"] == count
    result, _ = fill("x.png", "--mask-color", "#ff00ff", "--mask-dilate", "1", "--json")
    assert report_of(result)["missing"]["pixels"] == 9


def test_a_colour_in_a_jpeg_wants_a_tolerance(tdc):
    values = np.full((32, 32, 3), 100, dtype=np.uint8)
    values[8:24, 8:24] = (255, 0, 255)
    Image.fromarray(values).save("x.jpg", quality=90, subsampling=0)
    result = tdc(
        "complete-image", "x.jpg", "-o", "y.png", "--mask-color", "#ff00ff", "--mask-tolerance", "20", *QUICK, "--json"
    )
    assert report_of(result)["missing"]["pixels"] == 256
    words = ("complete-image", "x.jpg", "-o", "y.png", "--overwrite", "--mask-color", "#ff00ff", *QUICK)
    further = "--mask-tolerance 48 with --mask-dilate 2, as JPEG changes colours"
    check_refused(tdc(*words), "x.jpg: no pixel has the colour #ff00ff; the nearest differs by 1 of 255: give another "
                               f"colour or {further}")  # fmt: skip
    values[20:28:2] = (255, 0, 255)
    Image.fromarray(values).save("x.jpg", quality=90)  # with colours at half the resolution, as most programs do
    more = "tdc: warning: x.jpg: {} pixels are missing by the colour #ff00ff, and {} more are within 64 of 255 of it; "
    more += f"if those are missing too, give {further}\n"
    assert tdc(*words).stderr == more.format(59, 214)
    assert tdc(*words, "--mask-tolerance", "16").stderr == more.format(196, 77)
    assert tdc(*words, "--mask-tolerance", "48", "--mask-dilate", "2").stderr == ""


def test_grey_pictures_want_a_grey(fill):
    values = smooth(20, 24, None)
    values[HOLE] = 255
    Image.fromarray(values).save("x.png")
    result, found = fill("x.png", "--mask-color", "#fff")
    assert result.exit_code == 0 and np.array_equal(found[~HOLE], values[~HOLE]) and (found[HOLE] < 255).all()
    check_refused(fill("x.png", "--mask-color", "#ff00ff")[0],
                  "x.png is grey, and --mask-color #ff00ff is not; give a grey such as '#ffffff'")  # fmt: skip


def test_alpha_stays_where_a_colour_is_filled(fill):
    values = transparent(4, np.uint8)
    values[HOLE, 0] = 255
    values[HOLE, 1:3] = 0
    Path("x.png").write_bytes(plain_codecs.png(values))
    assert np.array_equal(fill("x.png", "--mask-color", "#ff0000")[1][..., -1], values[..., -1])


@pytest.mark.parametrize(
    "options, line",
    [
        (
            ["--mask-color", "#ff00ff"],
            "a.png: no pixel has the colour #ff00ff; the nearest differs by 139 of 255: give another colour",
        ),
        (
            ["--mask-color", "#808080", "--mask-tolerance", "255"],
            "a.png: every pixel has the colour #808080: nothing is left to complete from",
        ),
        (
            ["--mask-color", "magenta"],
            "--mask-color 'magenta' is not of the form '#ff00ff': red, green, blue, two hexadecimal digits each",
        ),
        (
            ["--mask-color", "#ff00ff", "--mask", "m.png"],
            "--mask-color and --mask exclude each other: holes are said in one way",
        ),
        (
            ["--mask-color", "#ff00ff", "--missing-ratio", "0.5"],
            "--mask-color and --missing-ratio exclude each other: holes are said in one way",
        ),
        (["--mask-tolerance", "3", "--mask", "m.png"], "--mask-tolerance needs a --mask-color"),
        (
            ["--mask", "alpha", "--invert-mask"],
            "--invert-mask needs a mask picture; --mask alpha always takes what is transparent as missing",
        ),
        (["--mask-color", "#ff00ff", "--invert-mask"], "--invert-mask and --mask-dilate need a --mask"),
    ],
)
def test_what_makes_no_sense_is_refused(complete, options, line):
    check_refused(complete(*options), line)
    assert sorted(os.listdir()) == ["a.png", "m.png"]


@pytest.mark.parametrize("name", ["x.npy", "x.tif"])
def test_colours_are_of_integer_pictures(tdc, name):
    if name == "x.npy":
        np.save(name, smooth(20, 24).astype(float))
    else:
        Image.fromarray(smooth(20, 24, 4), mode="CMYK").save(name)
    kind = "an array of float64" if name == "x.npy" else "mode CMYK with 8 bits"
    check_refused(
        tdc("complete-image", name, "-o", f"y{name}", "--mask-color", "#ff00ff", *QUICK),
        f"{name}: --mask-color is for grey and RGB pictures with 8 or 16 bits, not for {kind}",
    )


# -- the mask as understood
# ---------------------------------------------------------------------------------------------------


def test_the_mask_is_written_beside_the_incomplete_picture(complete):
    report = report_of(complete("--mask", "m.png", "--mask-dilate", "1", "--save-incomplete", "i.tif", "--json"))
    assert report["outputs"] == {"image": "b.png", "incomplete": "i.tif", "mask": "i_mask.png"}
    mask = pixels("i_mask.png")
    assert mask.dtype == np.uint8 and set(np.unique(mask)) == {0, 255} and (mask == 255).sum() == 36
    assert np.array_equal((pixels("i.tif") == 0).all(axis=2), mask == 255)
    again = report_of(complete("--mask", "i_mask.png", "--json", "--overwrite"))
    assert again["missing"]["count"] == report["missing"]["count"]


def test_a_pixel_with_one_missing_channel_is_white(complete):
    assert complete("--missing-ratio", "0.1", "--save-incomplete", "i.png").exit_code == 0
    assert np.array_equal(pixels("i_mask.png") == 255, (pixels("i.png") == 0).any(axis=2))


@pytest.mark.parametrize(
    "there, options, line",
    [
        ("i_mask.png", [], "i_mask.png: exists already; give --overwrite to replace it"),
        ("i_mask.png", ["--mask", "i_mask.png", "--overwrite"], "i_mask.png: is the mask itself; name another file"),
        (
            "none",
            ["--panel", "i_mask.png"],
            "i_mask.png: named twice, as mask and as panel; give each result a file of its own",
        ),
    ],
)
def test_the_mask_is_checked_as_every_output(complete, there, options, line):
    Path(there).write_bytes(Path("m.png").read_bytes())
    mask = [] if "--mask" in options else ["--mask", "m.png"]
    check_refused(complete(*mask, "--save-incomplete", "i.png", *options), line)
    assert Path(there).read_bytes() == Path("m.png").read_bytes() and not os.path.exists("b.png")


@pytest.mark.parametrize(
    "options, words", [(["--mask", "alpha"], "as transparent"), (["--mask-color", "#000"], "by color #000")]
)
def test_a_dry_run_says_where_the_holes_come_from(tdc, options, words):
    Path("x.png").write_bytes(plain_codecs.png(transparent(4, np.uint8)))
    result = tdc("complete-image", "x.png", "-o", "y.png", *QUICK, *options, "--dry-run")
    assert (
        f"16 of 480 pixels missing (3.3%) {words}, to be completed by biharmonic" in result.stdout
        and not os.path.exists("y.png")
    )
    planned = json.loads(tdc("complete-image", "x.png", "-o", "y.png", *QUICK, *options, "--dry-run", "--json").stdout)
    assert planned["missing"]["count"] == 48


def test_nearly_all_is_not_called_all_and_json_names_options_as_the_command_line_does(tdc, folder):
    Image.new("L", (64, 64), 100).save("a.png")
    mask = np.full((64, 64), 255, np.uint8)
    mask[5, 7] = 0
    Image.fromarray(mask).save("m.png")
    words = ("complete-image", "a.png", "-o", "b.png", "--mask", "m.png", "--method", "nearest")
    told = tdc(*words, "--dry-run")
    assert "4095 of 4096 pixels missing (more than 99.9%)" in told.stdout
    planned, done = (json.loads(tdc(*words, *more, "--json").stdout)["warnings"] for more in (["--dry-run"], []))
    marked = "mask m.png marks more than 99.9% of the pixels as missing; white = missing: if it is meant"
    assert planned == done == [f"{marked} the other way round, use --invert-mask"]
