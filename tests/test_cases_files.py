"""Files of professionals that once failed, made here anew: what a file says is kept or told, and advice is true."""

import re
import shlex
import struct
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import report_of
from PIL import Image, ImageCms
from threadpoolctl import threadpool_info, threadpool_limits

from tdc_cli.methods import patches
from tdc_cli.peers import halrtc

LIGHT = (215.0, 208.0, 200.0)
QUICK = ["--method", "linear"]


@pytest.fixture(autouse=True)
def here(folder):
    """Files are made in a folder of the test's own."""


def photo(height=40, width=48):
    rows, columns = np.mgrid[:height, :width]
    return np.stack([120 + 60 * np.sin(rows / 7 + c) + 40 * np.cos(columns / 9) for c in range(3)], axis=2).astype(
        np.uint8
    )


def save_mask(path="hole.png", height=40, width=48):
    mask = np.zeros((height, width), np.uint8)
    mask[10:14, 20:30] = 255
    Image.fromarray(mask).save(path)
    return mask > 0


def advised(text):
    """Extensions that a line says to write to."""
    return re.findall(r"\.\w+", re.search(r"write to ([^;:\n]*?)(?: to keep|$|\n)", text)[1])


@pytest.mark.parametrize("mode", ["CMYK", "RGB", "L"])
def test_advice_of_a_jpeg_can_be_followed(tdc, mode):
    Image.fromarray(photo()).convert(mode).save("a.jpg")
    save_mask()
    how = ["complete-image", "a.jpg", "--mask", "hole.png", *QUICK]
    result = tdc(*how, "-o", "b.jpg")
    for extension in advised(result.stderr):
        assert tdc(*how, "-o", f"c{extension}").exit_code == 0
    refused = tdc(*how, "-o", "d.png")
    assert refused.exit_code == (2 if mode == "CMYK" else 0)
    for extension in advised(refused.stderr) if mode == "CMYK" else ():
        assert tdc(*how, "-o", f"e{extension}").exit_code == 0


def with_segment(content, marker, data):
    return content[:2] + b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data + content[2:]


@pytest.mark.parametrize("name", ["stereo.jpg", "stereo.mpo", "STEREO.MPO"])
def test_the_second_picture_of_an_mpo_is_told(tdc, name):
    views = [Image.fromarray(np.roll(photo(), k, axis=1)) for k in range(2)]
    views[0].save("made.mpo", format="MPO", save_all=True, append_images=views[1:], quality=95)
    Path("made.mpo").rename(name)
    hole = save_mask()
    result = tdc("complete-image", name, "-o", "b.png", "--mask", "hole.png", *QUICK)
    assert result.exit_code == 0 and f"{name}: is read without its further pictures" in result.stderr
    assert np.array_equal(np.asarray(Image.open("b.png"))[~hole], np.asarray(Image.open(name))[~hole])
    refused = tdc("complete-image", name, "-o", "b.mpo", "--mask", "hole.png", *QUICK)
    assert (
        refused.exit_code == 2
        and "b.mpo: extension '.mpo' is not known; use one of .bmp, .exr, .j2c, .j2k, .jp2, .jpeg" in refused.stderr
    )


def test_a_gain_map_is_neither_kept_nor_announced(tdc):
    picture, gains = (Image.fromarray(a) for a in (photo(), photo()[::4, ::4, 0]))
    xmp = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
        b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
        b'xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        b'hdrgm:Version="1.0" '
        b'dc:source="roll 7"/></rdf:RDF></x:xmpmeta>'
    )
    picture.save("base.jpg", quality=95)
    gains.save("gains.jpg", quality=90)
    base = with_segment(Path("base.jpg").read_bytes(), 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)
    Path("uhdr.jpg").write_bytes(base + Path("gains.jpg").read_bytes())
    save_mask()
    result = tdc("complete-image", "uhdr.jpg", "-o", "b.jpg", "--mask", "hole.png", *QUICK)
    assert result.exit_code == 0 and "uhdr.jpg: is read without its gain map" in result.stderr
    made = Path("b.jpg").read_bytes()
    assert b"hdrgm:Version" not in made and b"roll 7" in made


def test_nodata_of_a_raster_is_no_height_with_and_without_a_mask(tdc):
    rows, columns = np.mgrid[:48, :64]
    heights = (900 + 60 * np.sin(rows / 9) + 20 * np.cos(columns / 7)).astype(np.float32)
    nodata = (columns > 40 + rows // 4) | ((rows - 20) ** 2 + (columns - 10) ** 2 < 20)
    tags = [(42113, "s", 0, "-9999", True), (33550, "d", 3, (30.0, 30.0, 0.0), True)]
    tifffile.imwrite("dem.tif", np.where(nodata, np.float32(-9999), heights), extratags=tags, metadata=None)
    mask = np.zeros(heights.shape, np.uint8)
    mask[15:26, 5:16] = 255
    Image.fromarray(mask).save("gap.png")
    alone = tdc("complete-image", "dem.tif", "-o", "b.tif", "--method", "field")
    assert alone.exit_code == 0 and "its nodata value -9999 counts as missing" in alone.stderr
    both = tdc("complete-image", "dem.tif", "-o", "c.tif", "--mask", "gap.png", "--method", "field")
    assert "-9999 and count as missing; --keep nodata leaves them as they are" in both.stderr
    for name in ("b.tif", "c.tif"):
        assert tifffile.imread(name).min() > 780 and tifffile.imread(name).max() < 1020
    kept = tdc("complete-image", "dem.tif", "-o", "d.tif", "--mask", "gap.png", "--keep", "nodata", "--method", "field")
    assert kept.exit_code == 0
    made = tifffile.imread("d.tif")
    assert (made[nodata & (mask == 0)] == -9999).all() and made[mask > 0].min() > 780
    with tifffile.TiffFile("d.tif") as file:
        assert file.pages[0].tags.valueof(42113) == "-9999" and file.pages[0].tags.valueof(33550) == (30.0, 30.0, 0.0)


def test_what_lies_outside_of_a_head_stays_nan(tdc):
    rng = np.random.default_rng(0)
    truth = 600 * sum(np.einsum("i,j,k->ijk", *(rng.uniform(0.5, 1, n) for n in (8, 12, 10))) for _ in range(2))
    outside = np.zeros(truth.shape, bool)
    outside[0] = outside[:, :3] = outside[:, :, 8:] = True
    lost = np.zeros(truth.shape, bool)
    lost[3:5, 5:8, 3:6] = True
    np.save("bold.npy", np.where(outside, np.nan, truth))
    np.save("lost.npy", lost)
    how = ["complete-tensor", "bold.npy", "--mask", "lost.npy", "--method", "halrtc"]
    filled = tdc(*how, "-o", "a.npy")
    assert "further entries are NaN and count as missing; --keep nodata leaves them as they are" in filled.stderr
    assert "of mode 0, of which nothing is known, with about 0" in filled.stderr
    kept = tdc(*how, "-o", "b.npy", "--keep", "nodata")
    assert kept.exit_code == 0 and "with about 0" not in kept.stderr
    made = np.load("b.npy")
    assert np.array_equal(np.isnan(made), outside) and np.abs(made - truth)[lost].mean() < 0.2 * truth.mean()


@pytest.mark.parametrize("command", ["complete-image", "complete-tensor"])
def test_a_pyramid_is_told_and_its_tiles_stay(tdc, command):
    values = photo(64, 80)
    with tifffile.TiffWriter("pyramid.tif") as file:
        file.write(values, photometric="rgb", subifds=1, tile=(32, 32), metadata=None)
        file.write(values[::4, ::4], photometric="rgb", subfiletype=1, tile=(16, 16), metadata=None)
    result = tdc(command, "pyramid.tif", "-o", "b.tif", "--missing-ratio", "0.1", *QUICK)
    assert result.exit_code == 0 and "reduced copies" in result.stderr
    with tifffile.TiffFile("b.tif") as file:
        assert file.pages[0].tile == (32, 32) and len(file.pages) == 1 and file.pages[0].subifds is None


def test_two_pictures_in_one_file_are_told_apart(tdc):
    values = photo()
    with tifffile.TiffWriter("two.tif") as file:
        file.write(values, photometric="rgb", metadata=None)
        file.write(values[..., 0].astype(np.uint16) * 16, photometric="minisblack", metadata=None)
    save_mask()
    how = ["complete-image", "two.tif", "-o", "b.tif", "--mask", "hole.png", *QUICK]
    line = tdc(*how).stderr
    assert line.startswith("tdc: two.tif: holds 2 pages; give --page 0 or 1, or --pages all")
    for words in ("--page 0", "--page 1", "--pages all"):
        assert tdc(*how, *shlex.split(words), "--overwrite").exit_code == 0


def test_colours_of_inks_keep_their_profile(tdc):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.fromarray(photo()).convert("CMYK").save("a.tif", icc_profile=profile)
    save_mask()
    report = report_of(tdc("complete-image", "a.tif", "-o", "b.tif", "--mask", "hole.png", *QUICK, "--json"))
    assert report["input"]["mode"] == "CMYK" and Image.open("b.tif").info["icc_profile"] == profile


def wall(frames=1):
    """(frames, 90, 120, 3) levels of a light wall beside a dark one, each frame with its own noise of 1.5, and where a
    hole of 36 x 36 is.
    """
    truth = np.full((frames, 90, 120, 3), LIGHT)
    truth[:, :, 75:] = 70, 40, 30
    hole = np.zeros((90, 120), bool)
    hole[27:63, 20:56] = True
    Image.fromarray(np.uint8(255 * hole)).save("hole.png")
    return np.round(truth + np.random.default_rng(0).normal(0, 1.5, truth.shape)).astype(np.uint8), hole


@pytest.mark.parametrize("how", ["--method field", "--param start=field --param calibrate=false --param passes=3"])
def test_a_hole_in_a_flat_wall_gets_no_stain(tdc, how):
    (picture,), hole = wall()
    Image.fromarray(picture).save("wall.png")
    assert tdc("complete-image", "wall.png", "-o", "b.png", "--mask", "hole.png", *how.split()).exit_code == 0
    made = np.asarray(Image.open("b.png"))
    assert np.abs(made[40:50, 33:43].mean(axis=(0, 1)) - LIGHT).max() < 2 and np.array_equal(
        made[~hole], picture[~hole]
    )


def test_nor_one_that_stays_in_a_clip(tdc):
    clip, hole = wall(3)
    np.save("clip.npy", clip)
    how = ["complete-video", "clip.npy", "-o", "b.npy", "--mask", "hole.png", "--uncertainty", "sd.npy"]
    result = tdc(*how)
    assert result.exit_code == 0, result.stderr
    made, sd = np.load("b.npy"), np.load("sd.npy")
    assert np.abs(made[:, 40:50, 33:43].mean(axis=(0, 1, 2)) - LIGHT).max() < 2
    assert np.mean(np.abs(made - LIGHT)[:, hole] <= 1.645 * sd[:, hole]) > 0.85


def test_a_small_hole_is_no_work_for_a_model_of_the_whole(tdc, monkeypatch):
    """Below 512 x 512 pixels it was fitted nevertheless, for minutes, and then given no weight."""
    monkeypatch.setattr(patches, "_global", None)
    (picture,), _ = wall()
    Image.fromarray(picture).save("wall.png")
    how = ["complete-image", "wall.png", "--mask-box", "100,5,12,8", "--method", "patches", "--param", "passes=1"]
    assert tdc(*how, "-o", "b.png").exit_code == 0
    assert tdc(*how, "-o", "c.png", "--param", "start=field").exit_code == 0
    assert Path("b.png").read_bytes() == Path("c.png").read_bytes()


def test_a_small_tensor_takes_one_thread_whatever_else_the_machine_does(tdc, monkeypatch):
    """A second one waits for the first at each of many small steps: 60 s in place of 3 beside another job."""
    found, own = set(), halrtc.complete

    def watched(*args, **more):
        found.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return own(*args, **more)

    monkeypatch.setattr(halrtc, "complete", watched)
    values = np.einsum("i,jk->ijk", np.arange(1.0, 7), photo()[..., 0]).astype(np.uint16)
    lost = np.random.default_rng(0).random(values.shape) < 0.15
    tifffile.imwrite("t.tif", np.where(lost, 0, values).astype(np.uint16), imagej=True, metadata={"axes": "TYX"})
    np.save("lost.npy", lost)
    with threadpool_limits(2, "blas"):
        result = tdc("complete-tensor", "t.tif", "-o", "b.tif", "--mask", "lost.npy", "--method", "halrtc")
    assert result.exit_code == 0, result.stderr
    assert found == {1}
