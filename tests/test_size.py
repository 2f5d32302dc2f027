"""Pictures larger than what is held at a time: regions, reading and writing by rows, memory, killing and going on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import pixels, report_of, smooth
from PIL import Image
from test_batch import wait_for
from test_rasters import GEO, KEPT, tags

from tdc_cli import memory, metrics
from tdc_cli.media import limits, stored
from tdc_cli.run import division

HEIGHT, WIDTH = 150, 300
REGION = ["--region", "64"]
QUICK = ["--method", "nearest"]


def heights(dtype, channels=0):
    """Values with neither edges nor noise, as a raster may have them."""
    return (smooth(HEIGHT, WIDTH, channels or 1) * 1.0).astype(dtype).reshape(HEIGHT, WIDTH, *(channels,) * bool(channels))


@pytest.fixture
def holes(folder):
    """Mask of a few small holes, `h.png`, some of which lie across the borders of regions; its (H, W) array, True = missing."""
    missing = np.zeros((HEIGHT, WIDTH), dtype=bool)
    for row, column in ((60, 10), (62, 64), (0, 190), (148, 100), (20, 128), (100, 60)):
        missing[max(0, row - 2) : row + 3, max(0, column - 3) : column + 4] = True
    Image.fromarray(np.where(missing, 255, 0).astype(np.uint8)).save("h.png")
    return missing


@pytest.fixture
def from_the_file(monkeypatch):
    """Call it, and every picture whose format can do so stays in its file, which is never read as a whole."""

    def stay():
        monkeypatch.setattr(stored, "LEAST", 0)
        monkeypatch.setattr(stored, "ROWS", 24)
        read = stored.Stored.__getitem__

        def few(self, place):
            part = read(self, place)
            assert part.shape[:2] != (HEIGHT, WIDTH), "all of it was read at once"
            return part

        monkeypatch.setattr(stored.Stored, "__getitem__", few)

    return stay


def measured(report, part):
    """Those measures of a part that have a value."""
    return {name: value for name, value in report["metrics"][part].items() if value is not None}


# Reading and writing by rows


@pytest.mark.parametrize("name, dtype, channels, options", [
    ("a.tif", "float32", 0, {"tile": (32, 48)}), ("a.tif", "uint8", 3, {"rowsperstrip": 7, "photometric": "rgb"}),
    ("a.tif", "uint16", 0, {"byteorder": ">", "compression": "zlib", "rowsperstrip": HEIGHT}),
    ("a.tif", "int16", 5, {"tile": (16, 16), "planarconfig": "contig", "photometric": "minisblack"}),
    ("a.tif", "uint8", 0, {"tile": (16, 16), "predictor": 2, "compression": "zlib"}),
    ("a.npy", "float32", 0, None), ("a.npy", "uint16", 3, None),
])  # fmt: skip
def test_a_picture_that_stays_in_its_file_gives_the_same_bytes(tdc, holes, from_the_file, name, dtype, channels, options):
    values, suffix = heights(dtype, channels), name[1:]
    if options is None:
        np.save(name, values)
    else:
        tifffile.imwrite(name, values, extratags=GEO, metadata=None, resolution=(72, 72), **options)
    words = ["complete-image", name, "--mask", "h.png", *QUICK, *REGION, "--reference", name, "--json"]
    whole = report_of(tdc(*words, "-o", f"held{suffix}"))
    from_the_file()
    by_rows = report_of(tdc(*words, "-o", f"rows{suffix}"))
    assert Path(f"rows{suffix}").read_bytes() == Path(f"held{suffix}").read_bytes()
    completed = np.load(f"rows{suffix}") if options is None else tifffile.imread(f"rows{suffix}")
    assert np.array_equal(completed[~holes], values[~holes]) and not np.array_equal(completed, values)
    assert (by_rows["missing"], by_rows["input"]) == (whole["missing"], whole["input"])
    for part in ("all", "missing", "incomplete"):
        assert measured(by_rows, part) == pytest.approx(measured(whole, part), rel=1e-9)
    if options is not None:
        before, after = tags(name)[0], tags(f"rows{suffix}")[0]
        kept = KEPT - {42113}
        assert {code: after.get(code) for code in kept} == {code: before[code] for code in kept}


def test_measures_taken_by_rows_are_those_of_the_whole(tdc, holes, from_the_file):
    values = heights("float32", 3)
    np.save("a.npy", values)
    from_the_file()
    found = report_of(tdc("complete-image", "a.npy", "-o", "b.npy", "--mask", "h.png", *QUICK, *REGION, "--reference", "a.npy", "--json"))
    observed = np.broadcast_to(~holes[..., None], values.shape)
    expected, _ = metrics.compare(values, np.load("b.npy"), observed, float(values.max() - values.min()))
    for part in expected:
        assert measured(found, part) == pytest.approx(measured({"metrics": expected}, part), rel=1e-6)


def test_nodata_nan_and_simulated_holes_of_a_picture_that_stays_in_its_file(tdc, holes, from_the_file):
    values = heights("float32")
    values[holes] = np.nan
    np.save("a.npy", values)
    tifffile.imwrite("a.tif", np.where(holes, -9999, values), metadata=None, tile=(32, 32), extratags=[(42113, "s", 0, "-9999", True)])
    np.save("full.npy", heights("float32"))
    runs = {"a.npy": [], "a.tif": [], "full.npy": ["--missing-ratio", "0.2"]}

    def results(mark):
        made = []
        for name, more in runs.items():
            output = f"{mark}-{name}"
            result = tdc("complete-image", name, "-o", output, *QUICK, *REGION, *more, "-q")
            assert (result.exit_code, result.stderr) == (0, "")
            made.append(Path(output).read_bytes())
        return made

    whole = results("held")
    from_the_file()
    assert results("rows") == whole


def test_standard_deviations_are_written_by_rows_too(tdc, holes, from_the_file):
    np.save("a.npy", heights("float32"))
    words = ["complete-image", "a.npy", "--mask", "h.png", "--method", "field", *REGION, "-q"]
    assert tdc(*words, "-o", "held.npy", "--uncertainty", "sd-held.tif").exit_code == 0
    from_the_file()
    assert tdc(*words, "-o", "rows.npy", "--uncertainty", "sd-rows.tif").exit_code == 0
    assert Path("rows.npy").read_bytes() == Path("held.npy").read_bytes()
    sd = tifffile.imread("sd-rows.tif")
    assert np.array_equal(sd, tifffile.imread("sd-held.tif")) and (sd[holes] > 0).all() and not sd[~holes].any()


def test_what_needs_the_whole_picture_still_works(tdc, holes, monkeypatch):
    monkeypatch.setattr(stored, "LEAST", 0)
    tifffile.imwrite("a.tif", heights("uint8", 3), photometric="rgb")
    words = ["complete-image", "a.tif", "--mask", "h.png", *QUICK, *REGION, "-q"]
    assert tdc(*words, "-o", "rows.tif").exit_code == 0
    result = tdc(*words, "-o", "b.png", "--panel", "p.png", "--html", "p.html", "--save-incomplete", "i.tif")
    assert (result.exit_code, result.stderr) == (0, "")
    assert np.array_equal(pixels("b.png"), tifffile.imread("rows.tif"))
    assert all(Path(name).exists() for name in ("p.png", "p.html", "i.tif", "i_mask.png"))


def test_damage_within_a_picture_that_stays_in_its_file_is_told_and_nothing_is_left(tdc, holes, from_the_file):
    tifffile.imwrite("a.tif", heights("uint16"), tile=(32, 32), compression="zlib", metadata=None)
    with tifffile.TiffFile("a.tif") as file:
        place = file.pages[0].dataoffsets[-1]
    content = bytearray(Path("a.tif").read_bytes())
    content[place : place + 40] = bytes(40)
    Path("a.tif").write_bytes(content)
    from_the_file()
    result = tdc("complete-image", "a.tif", "-o", "b.tif", "--mask", "h.png", *QUICK, *REGION, "-q")
    assert result.exit_code != 0 and result.stderr.startswith("tdc: a.tif: damaged") and result.stderr.count("\n") == 1
    assert not any(name.startswith((".", "b.")) for name in os.listdir())
