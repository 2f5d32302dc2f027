"""What users of such tools have run into, with pictures and masks: each a kind of trouble, tried through the command
line.
"""

import json
import os
import struct
from pathlib import Path

import numpy as np
import plain_codecs
import pytest
import tifffile
from conftest import pixels, report_of, smooth
from PIL import Image, ImageCms

QUICK = ["--method", "biharmonic"]
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
HOLE = np.zeros((20, 24), dtype=bool)
HOLE[5:9, 10:14] = True


def save(name, values, **options):
    Image.fromarray(values).save(name, **options)
    return name


def white(hole=HOLE):
    """Mask of `hole`, as uint8."""
    return np.where(hole, 255, 0).astype(np.uint8)


def check_refused(result, words):
    """Exit code 2 and one line, which has `words` in it."""
    assert (
        result.exit_code == 2
        and result.stdout == ""
        and result.stderr.startswith("tdc: ")
        and result.stderr.count("\n") == 1
    )
    assert words in result.stderr


# 1. Mask of another size


@pytest.mark.parametrize(
    "picture, mask", [((64, 64), (32, 32)), ((33, 47), (47, 33)), ((20, 24), (40, 48)), ((20, 24), (1, 1))]
)
def test_case_01_a_mask_of_another_size_is_refused_with_both_names(tdc, picture, mask):
    save("p.png", smooth(*picture))
    save("mask.png", np.zeros(mask, dtype=np.uint8))
    result = tdc("complete-image", "p.png", "-o", "b.png", "--mask", "mask.png", *QUICK)
    check_refused(result, f"mask mask.png is {mask[1]}x{mask[0]} pixels but picture p.png is {picture[1]}x{picture[0]}")
    assert not os.path.exists("b.png")


@pytest.mark.parametrize("size", [(33, 47), (1, 30), (30, 1), (17, 16)])
@pytest.mark.parametrize("method", ["biharmonic", "field"])
def test_case_01_the_output_has_the_size_of_the_input(tdc, size, method):
    save("p.png", smooth(*size))
    assert tdc("complete-image", "p.png", "-o", "b.png", "--missing-ratio", "0.2", "--method", method).exit_code == 0
    assert pixels("b.png").shape == (*size, 3)


# 2. Transparent background comes out black


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_case_02_alpha_and_the_colours_beneath_it_stay(tdc, channels, depth):
    rng = np.random.default_rng(0)
    values = rng.integers(0, np.iinfo(depth).max, (20, 24, channels), dtype=depth, endpoint=True)
    values[:4, ..., -1] = 0  # a transparent background with colours beneath
    Path("x.png").write_bytes(plain_codecs.png(values))
    for target in ("y.png", "y.tif"):
        assert tdc("complete-image", "x.png", "-o", target, "--mask", "m.png", *QUICK).exit_code == 0
    found = plain_codecs.tiff_values(Path("y.tif").read_bytes())
    assert np.array_equal(found[..., -1], values[..., -1]) and np.array_equal(found[~HOLE], values[~HOLE])
    assert not np.array_equal(found[HOLE], values[HOLE])
    report = report_of(tdc("complete-image", "y.png", "-o", "z.tif", "--missing-ratio", "0", *QUICK, "--json"))
    assert report["input"]["mode"] == {2: "LA", 4: "RGBA"}[channels]
    assert np.array_equal(plain_codecs.tiff_values(Path("z.tif").read_bytes()), found)


# 3. A transparent mask does nothing


@pytest.mark.parametrize("erased", ["RGBA", "LA"])
@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_case_03_a_hole_in_the_alpha_of_a_mask_is_found(complete, erased, depth):
    channels = {"RGBA": 4, "LA": 2}[erased]
    mask = np.full((20, 24, channels), np.iinfo(depth).max, dtype=depth)
    mask[HOLE, -1] = 0
    Path("e.png").write_bytes(plain_codecs.png(mask))
    result = complete("--mask", "e.png", "--save-incomplete", "i.png")
    assert result.exit_code == 0 and "its alpha was used, transparent = missing" in result.stderr
    assert np.array_equal(pixels("i_mask.png") == 255, HOLE)


def test_case_03_white_that_is_nowhere_opaque_is_refused(complete):
    mask = np.zeros((20, 24, 4), dtype=np.uint8)
    mask[HOLE, :3] = 255  # white, but wholly transparent like the rest
    check_refused(
        complete("--mask", save("e.png", mask)), "mask e.png marks nothing: its brightest pixel is 255 of 255"
    )


# 4. Floats are refused or clipped


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["x.tif", "x.npy"])
def test_case_04_floats_of_any_range_with_nan_as_holes(tdc, channels, dtype, name):
    values = (smooth(20, 24, channels).astype(float) * 40 - 1500).astype(dtype)
    values[0, :3] = (
        [[-1000] * (channels or 1), [0] * (channels or 1), [8000] * (channels or 1)] if channels else [-1000, 0, 8000]
    )
    holed = values.copy()
    holed[HOLE] = np.nan
    if name == "x.tif":
        tifffile.imwrite(name, holed, photometric="rgb" if channels else "minisblack")
    else:
        np.save(name, holed)
    report = report_of(tdc("complete-image", name, "-o", f"out_{name}", *QUICK, "--json"))
    found = np.load("out_x.npy") if name == "x.npy" else plain_codecs.tiff_values(Path("out_x.tif").read_bytes())
    assert report["missing"]["source"] == "nan" and report["missing"]["pixels"] == HOLE.sum()
    assert found.dtype == dtype and np.isfinite(found).all() and np.array_equal(found[~HOLE], values[~HOLE])
    assert np.abs(found - values)[HOLE].max() < 500


# 5. One NaN outside the mask


@pytest.mark.parametrize("method", ["biharmonic", "field"])
def test_case_05_nan_outside_the_mask_joins_the_holes(tdc, method):
    values = smooth(20, 24).astype(np.float32)
    values[15, 3, 1] = np.nan
    tifffile.imwrite("x.tif", values, photometric="rgb")
    result = tdc("complete-image", "x.tif", "-o", "y.tif", "--mask", "m.png", "--method", method, "--json")
    assert "warning: x.tif: 1 further entries are NaN and count as missing" in result.stderr
    assert report_of(result)["missing"]["count"] == 3 * HOLE.sum() + 1
    found = plain_codecs.tiff_values(Path("y.tif").read_bytes())
    known = ~HOLE[..., None] & ~np.isnan(values)
    assert np.isfinite(found).all() and np.array_equal(found[known], values[known])


def test_case_05_infinity_is_an_error(tdc):
    values = smooth(20, 24).astype(np.float32)
    values[15, 3, 1] = -np.inf
    tifffile.imwrite("x.tif", values, photometric="rgb")
    check_refused(
        tdc("complete-image", "x.tif", "-o", "y.tif", "--mask", "m.png", *QUICK), "x.tif: 1 values are infinite"
    )


# 6. Soft mask edges


def soft_mask():
    """Mask of HOLE with a rim of three pixels that falls off: 192, 120, 40."""
    levels = np.zeros((20, 24), dtype=np.uint8)
    for distance, level in ((3, 40), (2, 120), (1, 192), (0, 255)):
        levels[5 - distance : 9 + distance, 10 - distance : 14 + distance] = level
    return levels


@pytest.mark.parametrize(
    "options, size",
    [([], 6), (["--mask-threshold", "100"], 8), (["--mask-threshold", "30"], 10), (["--mask-dilate", "2"], 10)],
)
def test_case_06_threshold_and_dilation_do_what_they_say(complete, options, size):
    save("soft.png", soft_mask())
    report = report_of(complete("--mask", "soft.png", *options, "--json"))
    assert report["missing"]["pixels"] == size**2
    assert report["missing"]["grey_levels"] == 10**2 - 4**2
    known = np.ones((20, 24), dtype=bool)
    known[7 - size // 2 : 7 + size // 2, 12 - size // 2 : 12 + size // 2] = False
    assert np.array_equal(pixels("b.png")[known], pixels("a.png")[known])


def test_case_06_a_rim_that_stays_is_told(complete):
    save("soft.png", soft_mask())
    assert "note: mask soft.png has soft edges: 64 grey pixels count as known" in complete("--mask", "soft.png").stderr


@pytest.mark.parametrize("quality", [30, 75, 95])
def test_case_06_the_greys_of_a_jpeg_mask_are_no_edges(tdc, quality):
    hole = np.zeros((64, 64), dtype=bool)
    hole[16:32, 24:40] = True
    save("p.png", smooth(64, 64))
    save("mask.jpg", white(hole), quality=quality)
    assert (
        tdc("complete-image", "p.png", "-o", "b.png", "--mask", "mask.jpg", "--save-incomplete", "i.png", *QUICK).stderr
        == ""
    )
    assert np.array_equal(pixels("i_mask.png") == 255, hole)


# 7. Masks of other depths and modes


def write_mask(kind):
    """A mask file of HOLE; returns its name."""
    if kind == "0 and 1":
        return save("k.png", HOLE.astype(np.uint8))
    if kind == "1 bit":
        return save("k.png", HOLE)
    if kind == "1 bit TIFF":
        return save("k.tif", HOLE)
    if kind == "palette":
        picture = Image.fromarray(np.where(HOLE, 1, 7).astype(np.uint8), mode="P")
        picture.putpalette([0, 0, 0, 255, 255, 255] + [0, 0, 0] * 6)
        picture.save("k.png")
        return "k.png"
    if kind in ("16 bits", "16 bits, 0 and 1"):
        Path("k.png").write_bytes(plain_codecs.png((HOLE * (65535 if kind == "16 bits" else 1)).astype(np.uint16)))
        return "k.png"
    if kind in ("16 bits of colour", "16 bits of colour, 0 and 1"):
        colours = np.repeat(HOLE[..., None], 3, axis=2) * (65535 if kind == "16 bits of colour" else 1)
        Path("k.png").write_bytes(plain_codecs.png(colours.astype(np.uint16)))
        return "k.png"
    if kind == "WebP":
        return save("k.webp", np.repeat(white()[..., None], 3, axis=2), lossless=True)
    if kind == "BMP":
        return save("k.bmp", white())
    if kind == "array of bool":
        np.save("k.npy", HOLE)
        return "k.npy"
    tifffile.imwrite("k.tif", HOLE.astype(np.float32))
    return "k.tif"


@pytest.mark.parametrize(
    "kind",
    [
        "0 and 1",
        "1 bit",
        "1 bit TIFF",
        "palette",
        "16 bits",
        "16 bits, 0 and 1",
        "16 bits of colour",
        "16 bits of colour, 0 and 1",
        "WebP",
        "BMP",
        "array of bool",
        "float TIFF",
    ],
)
def test_case_07_masks_of_every_depth_are_recognised(complete, kind):
    result = complete("--mask", write_mask(kind), "--save-incomplete", "i.png")
    assert result.exit_code == 0 and result.stderr == ""
    assert np.array_equal(pixels("i_mask.png") == 255, HOLE)


@pytest.mark.parametrize("level", [2, 100, 127])
def test_case_07_a_mask_too_dark_is_never_an_empty_one(complete, level):
    save("dark.png", (HOLE * level).astype(np.uint8))
    check_refused(complete("--mask", "dark.png"), f"mask dark.png marks nothing: its brightest pixel is {level} of 255")


# 8. Inverted mask


def test_case_08_an_inverted_mask_is_suspected(complete):
    save("inverse.png", white(~HOLE))
    result = complete("--mask", "inverse.png")
    assert result.exit_code == 0
    assert (
        "warning: mask inverse.png marks 96.7% of the pixels as missing" in result.stderr
        and "--invert-mask" in result.stderr
    )
    assert complete("--mask", "inverse.png", "--invert-mask", "--overwrite").stderr == ""
    assert np.array_equal(pixels("b.png")[~HOLE], pixels("a.png")[~HOLE])


# 9. Empty, full, whole rows, columns and channels


def test_case_09_an_empty_mask_copies_and_says_so(complete):
    result = complete("--mask", save("none.png", white(HOLE & False)))
    assert result.exit_code == 0 and np.array_equal(pixels("b.png"), pixels("a.png"))
    assert "note: mask none.png marks nothing as missing" in result.stderr


@pytest.mark.parametrize("invert", [False, True])
def test_case_09_a_full_mask_is_an_error(complete, invert):
    name = save("full.png", white(HOLE | True) if not invert else white(HOLE & False))
    result = complete("--mask", name, *(["--invert-mask"] if invert else []))
    check_refused(result, "marks every pixel of a.png as missing: nothing is left to complete from")


@pytest.mark.parametrize("where", [np.s_[7, :], np.s_[:, 11], np.s_[..., 1]], ids=["row", "column", "channel"])
def test_case_09_a_whole_row_column_or_channel_is_filled_with_a_large_deviation(tdc, where):
    values = smooth(20, 24).astype(np.float32)
    rng = np.random.default_rng(0)
    values += rng.normal(size=values.shape).astype(np.float32)
    holed = values.copy()
    holed[where] = np.nan
    holed[2, 2, 0] = np.nan  # a single entry, to compare with
    np.save("x.npy", holed)
    result = tdc("complete-image", "x.npy", "-o", "y.npy", "--method", "field", "--uncertainty", "u.npy")
    assert result.exit_code == 0, result.stderr
    found, sd = np.load("y.npy"), np.load("u.npy")
    assert np.isfinite(found).all() and np.array_equal(found[~np.isnan(holed)], holed[~np.isnan(holed)])
    assert (sd[where] > 0).all() and (sd[~np.isnan(holed)] == 0).all()
    assert sd[where].mean() > sd[2, 2, 0]


# 10. Known pixels change a little


@pytest.mark.parametrize("method", ["biharmonic", "field"])
@pytest.mark.parametrize("depth", [8, 16])
def test_case_10_known_pixels_are_bit_identical(tdc, method, depth):
    values = np.random.default_rng(0).integers(0, 2**depth, (20, 24, 3), dtype=f"uint{depth}")
    Path("x.png").write_bytes(plain_codecs.png(values))
    result = tdc("complete-image", "x.png", "-o", "y.tif", "--mask", "m.png", "--method", method)
    assert result.exit_code == 0, result.stderr
    found = plain_codecs.tiff_values(Path("y.tif").read_bytes())
    assert found.dtype == values.dtype and np.array_equal(found[~HOLE], values[~HOLE])


@pytest.mark.parametrize("level", [0, 255])
def test_case_10_black_and_white_are_values(tdc, level):
    values = smooth(20, 24)
    values[10:18, 2:20] = level
    save("x.png", values)
    report = report_of(tdc("complete-image", "x.png", "-o", "y.png", "--mask", "m.png", *QUICK, "--json"))
    assert report["missing"]["pixels"] == HOLE.sum() and np.array_equal(pixels("y.png")[~HOLE], values[~HOLE])


# 11. Grey comes back coloured


@pytest.mark.parametrize("extension", ["png", "jpg", "tif", "bmp"])
def test_case_11_grey_stays_grey(tdc, extension):
    save(f"x.{extension}", smooth(20, 24, None))
    assert tdc("complete-image", f"x.{extension}", "-o", f"y.{extension}", "--mask", "m.png", *QUICK).exit_code == 0
    assert Image.open(f"y.{extension}").mode == "L" and pixels(f"y.{extension}").shape == (20, 24)


@pytest.mark.parametrize("mode, note", [("1", "has 1 bit a pixel; it is completed and written as L"),
                                        ("P", "has a palette; it is completed and written as RGB")])  # fmt: skip
def test_case_11_palettes_and_single_bits_become_colours_and_grey(tdc, mode, note):
    picture = (
        Image.fromarray(smooth(20, 24)).quantize(16) if mode == "P" else Image.fromarray(smooth(20, 24)).convert("1")
    )
    picture.save("x.png")
    result = tdc("complete-image", "x.png", "-o", "y.png", "--mask", "m.png", *QUICK)
    assert result.exit_code == 0 and f"note: x.png: {note}" in result.stderr
    shown = np.asarray(picture.convert("RGB" if mode == "P" else "L"))
    assert np.array_equal(pixels("y.png")[~HOLE], shown[~HOLE])


# 12. Colour profile and metadata lost


@pytest.mark.parametrize("source", ["png", "jpg", "tif", "webp"])
@pytest.mark.parametrize("target", ["png", "jpg", "tif", "webp"])
def test_case_12_profile_and_camera_settings_stay(tdc, source, target):
    exif = Image.Exif()
    exif[271] = "Maker"
    exif[0x8769] = {33434: 0.01, 36867: "2020:01:02 03:04:05"}
    exif[0x8825] = {1: "N", 2: (51.0, 30.0, 0.0)}
    save(f"x.{source}", smooth(20, 24), icc_profile=PROFILE, exif=exif.tobytes(), dpi=(300, 300))
    result = tdc("complete-image", f"x.{source}", "-o", f"y.{target}", "--mask", "m.png", *QUICK)
    assert result.exit_code == 0 and "cannot hold all" not in result.stderr
    written = Image.open(f"y.{target}")
    kept = written.getexif()
    assert written.info["icc_profile"] == PROFILE and kept[271] == "Maker"
    assert kept.get_ifd(0x8769)[33434] == pytest.approx(0.01) and kept.get_ifd(0x8769)[36867] == "2020:01:02 03:04:05"
    assert kept.get_ifd(0x8825)[2] == (51.0, 30.0, 0.0)


def test_case_12_what_a_format_cannot_hold_is_told(tdc):
    save("x.png", smooth(20, 24), icc_profile=PROFILE, dpi=(300, 300))
    stderr = tdc("complete-image", "x.png", "-o", "y.bmp", "--mask", "m.png", *QUICK).stderr
    lost = "BMP cannot hold all that the input has: without colour profile"
    assert stderr == f"tdc: warning: {lost}; write to .png or .tif or .webp to keep it\n"


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.tif", "x.webp", "deep.png", "deep.tif"])
def test_case_12_the_orientation_is_applied_once(tdc, name):
    exif = Image.Exif()
    exif[274] = 6
    turned = np.rot90(smooth(20, 24)).copy()
    if name == "deep.png":
        deep = turned.astype(np.uint16) * 257
        Path(name).write_bytes(plain_codecs.png(deep, ((b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")),)))
    elif name == "deep.tif":
        tifffile.imwrite(name, turned.astype(np.uint16) * 257, photometric="rgb", extratags=[(274, "H", 1, 6, True)])
    else:
        save(name, turned, exif=exif)
    report = report_of(tdc("complete-image", name, "-o", f"y_{name}", "--mask", "m.png", *QUICK, "--json"))
    assert report["input"]["shape"] == [20, 24, 3] and report["missing"]["pixels"] == HOLE.sum()
    written = Image.open(f"y_{name}")
    assert written.size == (24, 20) and 274 not in written.getexif()


# 13. A JPEG becomes a huge PNG


def test_case_13_a_jpeg_stays_a_jpeg_unless_asked(tdc):
    save("x.jpg", smooth(20, 24))
    os.mkdir("out")
    result = tdc("complete-image", "x.jpg", "-o", "out", "--mask", "m.png", *QUICK)
    assert Image.open("out/x.jpg").format == "JPEG"
    assert (
        "warning: JPEG compresses with loss: known pixels change a little in the file; write to .png" in result.stderr
    )
    assert tdc("complete-image", "x.jpg", "-o", "out", "--format", "webp", "--mask", "m.png", *QUICK).stderr == ""
    assert Image.open("out/x.webp").format == "WEBP"


@pytest.mark.parametrize("extension", [None, "png", "tif"])
def test_case_13_a_folder_of_jpegs(tdc, extension):
    os.mkdir("in")
    for name in ("a", "b"):
        save(f"in/{name}.jpg", smooth(20, 24))
    more = ["--format", extension] if extension else []
    result = tdc("complete-image", "in", "-o", "out", "--mask", "m.png", *QUICK, *more, "--save-incomplete", "holes")
    assert result.exit_code == 0, result.stderr
    assert ("JPEG compresses with loss" in result.stderr) == (extension is None)
    assert sorted(os.listdir("out")) == [f"{name}.{extension or 'jpg'}" for name in "ab"]
    assert sorted(os.listdir("holes")) == sorted(
        f"{name}{tail}" for name in "ab" for tail in (f".{extension or 'jpg'}", "_mask.png")
    )


def test_case_13_quality_says_how_large(tdc):
    noisy = np.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    save("x.png", noisy)
    sizes, errors = {}, {}
    for quality in (None, 30, 95, 100):
        more = [] if quality is None else ["--quality", quality]
        assert (
            tdc("complete-image", "x.png", "-o", "y.jpg", "--mask", "m.png", *QUICK, *more, "--overwrite").exit_code
            == 0
        )
        sizes[quality] = os.path.getsize("y.jpg")
        errors[quality] = np.abs(pixels("y.jpg").astype(int) - noisy)[~HOLE].mean()
    assert sizes[30] < sizes[95] == sizes[None] < sizes[100] and errors[30] > errors[95] == errors[None] > errors[100]
    check_refused(tdc("complete-image", "x.png", "-o", "y.png", "--mask", "m.png", *QUICK, "--quality", "90"),
                  "--quality is of JPEG, and y.png is written as PNG, without loss; leave it out")  # fmt: skip


# 14. Decompression bomb


@pytest.mark.parametrize("size", [(20_000, 10_000), (100_000, 100_000)])
@pytest.mark.parametrize("bits", [1, 16])
def test_case_14_a_bomb_is_refused_before_it_is_decoded(tdc, size, bits):
    content = plain_codecs.png(np.zeros((1, 1), dtype=np.uint8))
    header = struct.pack(">IIBBBBB", *size, bits, 0, 0, 0, 0)
    rest = content[len(plain_codecs.SIGNATURE) + 25 :]
    Path("bomb.png").write_bytes(plain_codecs.SIGNATURE + plain_codecs.chunk(b"IHDR", header) + rest)
    check_refused(tdc("complete-image", "bomb.png", "-o", "b.png", "--mask", "m.png", *QUICK), "100 megapixels")
    check_refused(tdc("complete-image", "a.png", "-o", "b.png", "--mask", "bomb.png", *QUICK), "mask bomb.png: ")


def test_case_14_a_tiff_bomb_too(tdc):
    tifffile.imwrite("bomb.tif", np.zeros((1, 1, 3), dtype=np.uint16), photometric="rgb")
    with tifffile.TiffFile("bomb.tif", mode="r+b") as file:
        file.pages[0].tags[256].overwrite(60_000)
        file.pages[0].tags[257].overwrite(60_000)
    check_refused(tdc("complete-image", "bomb.tif", "-o", "b.tif", "--mask", "m.png", *QUICK), "100 megapixels")


# 16. SSIM of tiny pictures, PSNR of identical ones


def test_case_16_measures_without_a_value_are_null_with_a_reason(tdc):
    save("t.png", smooth(5, 5))
    save("tm.png", white(np.zeros((5, 5), dtype=bool)))
    result = tdc("complete-image", "t.png", "-o", "b.png", "--mask", "tm.png", "--reference", "t.png", *QUICK, "--json")
    report = report_of(result)

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    json.loads(result.stdout, parse_constant=refuse)
    measured = report["metrics"]["all"]
    assert measured["ssim"] is None and measured["psnr"] is None and measured["rre"] == 0
    assert any("7x7 window" in w for w in report["warnings"]) and any("psnr" in w.lower() for w in report["warnings"])
