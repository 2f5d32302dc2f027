"""Pictures larger than what is held at a time: regions, reading and writing by rows, memory, killing and going on."""

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

from tdc_cli import memory, methods, metrics
from tdc_cli.media import limits, stored
from tdc_cli.run import cost, division, regions

HEIGHT, WIDTH = 150, 300
REGION = ["--region", "64"]
QUICK = ["--method", "nearest"]


def heights(dtype, channels=0):
    """Values with neither edges nor noise, as a raster may have them."""
    return (
        (smooth(HEIGHT, WIDTH, channels or 1) * 1.0).astype(dtype).reshape(HEIGHT, WIDTH, *(channels,) * bool(channels))
    )


@pytest.fixture
def holes(folder):
    """Mask of a few small holes, `h.png`, some of which lie across the borders of regions; its (H, W) array, True =
    missing.
    """
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
def test_a_picture_that_stays_in_its_file_gives_the_same_bytes(
    tdc, holes, from_the_file, name, dtype, channels, options
):
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
    found = report_of(
        tdc(
            "complete-image",
            "a.npy",
            "-o",
            "b.npy",
            "--mask",
            "h.png",
            *QUICK,
            *REGION,
            "--reference",
            "a.npy",
            "--json",
        )
    )
    observed = np.broadcast_to(~holes[..., None], values.shape)
    expected, _ = metrics.compare(values, np.load("b.npy"), observed, float(values.max() - values.min()))
    for part in expected:
        assert measured(found, part) == pytest.approx(measured({"metrics": expected}, part), rel=1e-6)


def test_what_is_kept_of_a_picture_that_stays_in_its_file_stays_and_is_not_measured(tdc, holes, from_the_file):
    values = heights("float32")
    np.save("a.npy", values)
    kept = np.zeros_like(holes)
    kept[55:70, :40] = kept[:8, 180:240] = True
    Image.fromarray(np.where(kept, 255, 0).astype(np.uint8)).save("k.png")
    values[kept] = -9999
    np.save("k.npy", values)
    words = [
        "complete-image",
        "k.npy",
        "--mask",
        "h.png",
        "--keep",
        "k.png",
        *QUICK,
        *REGION,
        "--reference",
        "a.npy",
        "--json",
    ]
    whole = report_of(tdc(*words, "-o", "held.npy"))
    from_the_file()
    by_rows = report_of(tdc(*words, "-o", "rows.npy"))
    assert Path("rows.npy").read_bytes() == Path("held.npy").read_bytes()
    completed = np.load("rows.npy")
    assert np.array_equal(completed[kept], values[kept]) and (completed[holes & ~kept] != values[holes & ~kept]).any()
    assert by_rows["missing"] == whole["missing"] and by_rows["missing"]["pixels"] == np.count_nonzero(holes & ~kept)
    assert by_rows["metrics"] == whole["metrics"] and whole["metrics"]["all"]["ssim"] is None
    assert f"metrics leave out {np.count_nonzero(kept)} entries whose truth is not known" in whole["warnings"]
    expected, _ = metrics.compare_tensor(
        np.where(kept, np.nan, np.load("a.npy")), completed, ~holes | kept, np.ptp(np.load("a.npy")[~kept])
    )
    for part in expected:
        assert measured(by_rows, part) == pytest.approx(measured({"metrics": expected}, part), rel=1e-6)


def test_nodata_nan_and_simulated_holes_of_a_picture_that_stays_in_its_file(tdc, holes, from_the_file):
    values = heights("float32")
    values[holes] = np.nan
    np.save("a.npy", values)
    tifffile.imwrite(
        "a.tif",
        np.where(holes, -9999, values),
        metadata=None,
        tile=(32, 32),
        extratags=[(42113, "s", 0, "-9999", True)],
    )
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


# Regions and memory


def test_a_dry_run_tells_regions_memory_and_time(tdc, holes):
    np.save("a.npy", heights("float32"))
    words = ["complete-image", "a.npy", "-o", "b.npy", "--mask", "h.png", *QUICK, *REGION, "--jobs", "2", "--dry-run"]
    told = report_of(tdc(*words, "--json"))
    assert told["workers"] == 2 and told["estimate"]["bytes"] > 0
    missing = holes.copy()
    for region in told["regions"]:
        (top, bottom), (left, right) = region["rows"], region["columns"]
        missing[top:bottom, left:right] = False
        assert (
            region["seen_rows"][0] <= top < bottom <= region["seen_rows"][1]
            and max(bottom - top, right - left) <= 64 + 8
        )
    assert not missing.any()
    line = tdc(*words).stdout.splitlines()[-1]
    assert (
        line.startswith(f"  {len(told['regions'])} regions of up to ")
        and " pixels, margins and all, 2 at a time, about 1 s on one core and " in line
    )
    assert not Path("b.npy").exists()


def test_blocks_at_and_beside_what_is_missing_are_near_it():
    observed = np.ones((60, 90, 3), dtype=bool)
    observed[30, 40, 1] = observed[0, 0] = observed[59, 89, 2] = False
    one, other = regions.Coverage(observed.shape, False), regions.Coverage(observed.shape, False)
    one.add(observed, ~observed)
    assert one.near((0, 60), (0, 90)) == (9 + 4 + 4) * 64 * 3
    assert one.near((24, 40), (32, 48)) == 16 * 16 * 3, "no more than the box has"
    one.add(np.ones_like(observed), np.zeros_like(observed))
    other.add(observed, ~observed)
    other.add_whole()
    assert np.array_equal(one.seen, other.seen) and np.array_equal(one.known, other.known)
    assert one.within((0, 60), (0, 90)) == (5, 2 * 60 * 90 * 3 - 5)


@pytest.mark.parametrize("memory_, region", [("60M", None), ("1G", "whole")])
def test_a_picture_beyond_the_memory_is_refused_in_one_line_with_the_way_out(tdc, holes, memory_, region, monkeypatch):
    np.save("a.npy", heights("float32"))
    if region:  # an estimate of a small picture that is beyond it
        monkeypatch.setattr(division, "cost", lambda *_, **more: (1.0, 2.5e9))
    words = ["complete-image", "a.npy", "-o", "b.npy", "--mask", "h.png", *QUICK, "--memory", memory_]
    result = tdc(*words, *(["--region", region] if region else []))
    assert result.exit_code == 2 and result.stderr.startswith("tdc: a.npy: ") and result.stderr.count("\n") == 1
    assert f"more than the {division.words_of(memory.parsed(memory_))}" in result.stderr or "may take" in result.stderr
    assert "give --memory " in result.stderr and ("leave out --region whole" in result.stderr) == (region == "whole")


def test_methods_that_need_the_whole_are_refused_beyond_the_memory_with_the_way_out(tdc, holes):
    np.save("a.npy", heights("float32"))
    words = ["complete-image", "a.npy", "-o", "b.npy", "--mask", "h.png", "--method", "datc"]
    result = tdc(*words, "--memory", "150M")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert result.stderr.startswith("tdc: a.npy: method datc works on the whole at once and takes about ")
    assert result.stderr.endswith("or try a method that works region by region, such as patches or field\n")
    result = tdc(*words, *REGION)
    line = "--region: method datc needs the whole of a picture with these parameters; leave it out"
    assert (result.exit_code, result.stderr) == (2, f"tdc: {line}\n")


def test_a_deep_hole_beyond_the_memory_is_refused_and_a_method_that_divides_it_is_not(tdc, folder):
    np.save("a.npy", np.ones((800, 800), "float32"))
    words = ["complete-image", "a.npy", "-o", "b.npy", "--mask-box", "300,300,200,200", "--memory", "320M", "--dry-run"]
    result = tdc(*words)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert " of memory for its largest deep hole, which is completed as a whole, and may take 320 MB; " in result.stderr
    assert result.stderr.endswith(", or try method patches, which divides it\n")
    assert tdc(*words, "--method", "patches").exit_code == 0


@pytest.mark.parametrize("said", ["2X", "-1G", "0", "", "nan"])
def test_sizes_of_memory_that_are_none_are_refused(complete, said):
    result = complete("--mask", "m.png", "--memory", said)
    assert (result.exit_code, result.stderr) == (2, f"tdc: --memory is {said!r}; give a size such as 2G or 500M\n")


@pytest.mark.parametrize(
    "said, size", [("2G", 2 * 10**9), ("500M", 500 * 10**6), ("1.5 GiB", 3 * 2**29), ("4096", 4096), ("64kb", 64_000)]
)
def test_sizes_of_memory_are_read_as_people_write_them(said, size):
    assert memory.parsed(said) == size


def test_less_memory_makes_smaller_regions_and_says_which(tdc, holes, monkeypatch):
    np.save("a.npy", heights("float32"))
    monkeypatch.setattr(division, "WHOLE", 0)
    monkeypatch.setattr(division, "SIDES", (128, 64, 32))
    monkeypatch.setattr(division, "cost", lambda method, extent, **more: (1.0, 1e8 + 1e4 * extent.entries))
    words = ["complete-image", "a.npy", "--mask", "h.png", "--method", "biharmonic", "-o"]
    plenty, little = tdc(*words, "b.npy", "--memory", "2G"), tdc(*words, "c.npy", "--memory", "267M")
    assert (plenty.exit_code, plenty.stderr.count("regions of")) == (0, 0)
    note = "a.npy: is completed in regions of 64 pixels, to keep to 270 MB of memory; where there is more, --region 64"
    assert little.exit_code == 0 and f"tdc: note: {note} gives the same result" in little.stderr.splitlines()
    assert tdc(*words, "d.npy", "--memory", "2G", "--region", "64", "-q").exit_code == 0
    assert Path("c.npy").read_bytes() == Path("d.npy").read_bytes()


def test_a_bomb_is_refused_unless_memory_is_named_that_holds_it(tdc, monkeypatch):
    Image.new("1", (12_000, 12_000)).save("bomb.png", optimize=True)
    words = ["complete-image", "bomb.png", "-o", "b.png", "--missing-ratio", "0.1", *QUICK]
    result = tdc(*words)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert (
        result.stderr.startswith("tdc: bomb.png: 12000x12000 pixels in a file of ")
        and "give a --memory that holds them" in result.stderr
    )
    result = tdc(*words, "--memory", "100M")
    line = (
        "12000x12000 pixels take 0.1 GiB of memory, more than the 0.1 GiB that may be taken; give more --memory, crop"
    )
    assert (
        result.exit_code == 2 and result.stderr.startswith(f"tdc: bomb.png: {line}") and result.stderr.count("\n") == 1
    )
    Image.new("1", (600, 400)).save("small.png")
    monkeypatch.setattr(limits, "LARGEST", 100_000)
    words[1] = "small.png"
    assert tdc(*words).exit_code == 2
    assert tdc(*words, "--memory", "2G", "-q").exit_code == 0


def test_files_side_by_side_share_the_memory(tdc, holes):
    for name in ("in/a.npy", "in/b.npy"):
        Path("in").mkdir(exist_ok=True)
        np.save(name, heights("float32"))
    words = ["complete-image", "in", "--mask", "h.png", "--method", "datc", "--memory", "300M", "--dry-run", "-o"]
    refused = tdc(*words, "out", "--jobs", "2").stderr
    assert "more than the 150 MB that it may take" in refused and tdc(*words, "out").exit_code == 0


# Side by side, and going on


def test_regions_side_by_side_in_any_number_give_the_same_bytes(tdc, holes):
    np.save("a.npy", heights("float32", 3))
    words = ["complete-image", "a.npy", "--mask", "h.png", "--method", "field", *REGION, "--seed", "3", "-q"]
    for jobs in (1, 2):
        assert tdc(*words, "--jobs", jobs, "-o", f"{jobs}.npy", "--uncertainty", f"sd{jobs}.npy").exit_code == 0
    assert (
        Path("1.npy").read_bytes() == Path("2.npy").read_bytes()
        and Path("sd1.npy").read_bytes() == Path("sd2.npy").read_bytes()
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_killed_goes_on_and_leaves_nothing_behind(tdc, holes, jobs):
    tifffile.imwrite("a.tif", heights("float32"), tile=(32, 32), metadata=None)
    words = [
        "complete-image",
        "a.tif",
        "--mask",
        "h.png",
        "--method",
        "field",
        "--region",
        "32",
        "--jobs",
        str(jobs),
        "-q",
        "-o",
    ]
    assert tdc(*words, "whole.tif").exit_code == 0
    work = Path(".b.tif.tdc-work")
    with subprocess.Popen([sys.executable, "-m", "tdc_cli", *words, "b.tif"], start_new_session=True) as process:
        wait_for(lambda: any(work.glob("*.npz")) or process.poll() is not None)
        os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and work.exists() and not Path("b.tif").exists()
    assert tdc(*words, "b.tif").exit_code == 2  # neither taken nor thrown away unasked
    assert tdc(*words, "b.tif", "--resume").exit_code == 0
    assert Path("b.tif").read_bytes() == Path("whole.tif").read_bytes()
    assert sorted(os.listdir()) == ["a.png", "a.tif", "b.tif", "h.png", "m.png", "whole.tif"]


# The method that is taken where none is named


def test_without_deep_holes_the_default_method_divides(tdc, holes):
    np.save("a.npy", heights("float32")[:70, :100])
    Image.fromarray(pixels("h.png")[:70, :100]).save("h.png")
    words = ["complete-image", "a.npy", "--mask", "h.png", *REGION, "-q", "-o"]
    assert tdc(*words, "default.npy").exit_code == 0
    assert tdc(*words, "patches.npy", "--method", "patches").exit_code == 0
    assert Path("default.npy").read_bytes() == Path("patches.npy").read_bytes()


@pytest.mark.parametrize("region", [["--region", "32"], []])
def test_no_border_cuts_a_deep_hole(tdc, folder, monkeypatch, region):
    np.save("a.npy", heights("float32")[:60, :64])
    words = ["complete-image", "a.npy", "--mask-box", "24,20,14,14", *region]
    told = report_of(tdc(*words, "-o", "b.npy", "--dry-run", "--json"))
    places = [(place["rows"], place["columns"]) for place in told.get("regions", [])]
    assert len(places) == bool(region), "nothing else is missing"
    assert all(top <= 20 and bottom >= 34 and left <= 24 and right >= 38 for (top, bottom), (left, right) in places)
    assert tdc(*words, "-q", "-o", "held.npy", "--reference", "a.npy", "--report", "held.json").exit_code == 0
    monkeypatch.setattr(stored, "LEAST", 0)
    assert tdc(*words, "-q", "-o", "rows.npy", "--reference", "a.npy", "--report", "rows.json").exit_code == 0
    assert Path("rows.npy").read_bytes() == Path("held.npy").read_bytes()


@pytest.mark.parametrize("method, least", [("patches", 1.25), ("linear", 1.6)])
def test_what_a_run_will_take_grows_with_what_is_missing_and_adds_up_over_regions(tdc, method, least):
    """Where twice as wide a part has holes it takes twice as long, but for what is learnt or read once."""
    values, rng = np.arange(400 * 800.0).reshape(400, 800), np.random.default_rng(0)
    lost = np.zeros((400, 800), bool)
    lost[:, :400] = rng.random((400, 400)) < 0.1
    few, more = lost, lost.copy()
    more[:200, 400:] = rng.random((200, 400)) < 0.1
    wide = lost | np.roll(lost, 400, axis=1)
    seconds = {}
    for name, holes in {"few": few, "more": more, "wide": wide}.items():
        np.save("a.npy", np.where(holes, np.nan, values))
        for region in ("100", "whole"):
            words = ["complete-image", "a.npy", "-o", "b.npy", "--method", method, "--region", region]
            seconds[name, region] = report_of(tdc(*words, "--dry-run", "--json"))["estimate"]["seconds"]
    for region in ("100", "whole"):
        assert seconds["more", region] > seconds["few", region]
        assert least < seconds["wide", region] / seconds["few", region] < 2.1
    assert seconds["few", "100"] > seconds["few", "whole"]  # margins are worked on more than once


@pytest.mark.parametrize("method", ["patches", "linear"])
def test_strokes_take_less_than_as_many_scattered_entries(tdc, method):
    lost = np.zeros((400, 600), bool)
    lost[:, 10::20] = lost[:, 11::20] = True
    seconds = []
    for holes in (lost, np.random.default_rng(0).permuted(lost, axis=1)):
        np.save("a.npy", np.where(holes, np.nan, 1.0))
        words = ["complete-image", "a.npy", "-o", "b.npy", "--method", method]
        seconds.append(report_of(tdc(*words, "--dry-run", "--json"))["estimate"]["seconds"])
    assert 0 < seconds[0] < 0.8 * seconds[1]


@pytest.mark.parametrize("method, less", [("biharmonic", 0.6), ("linear", 0.6), ("patches", 1.1)])
def test_channels_with_the_same_holes_cost_what_one_does_where_each_is_filled_by_itself(tdc, method, less):
    rng = np.random.default_rng(0)
    apart = rng.random((600, 400, 3)) < 0.2
    same = np.repeat(rng.random((600, 400, 1)) < 0.2, 3, axis=2)
    seconds = []
    for holes in (apart, same):
        np.save("a.npy", np.where(holes, np.nan, 1.0))
        words = ["complete-image", "a.npy", "-o", "b.npy", "--method", method]
        told = report_of(tdc(*words, "--dry-run", "--json"))["estimate"]["seconds"]
        seconds.append(told - cost.COSTS[methods.get(method).module].start)
    assert seconds[1] < less * seconds[0]


def test_frames_with_holes_of_their_own_take_the_field_longer_than_the_same_holes_in_all(tdc):
    told = []
    for columns in ([40] * 12, range(10, 130, 10)):
        clip = np.full((12, 96, 160, 3), 0.5)
        for frame, column in zip(clip, columns, strict=True):
            frame[30:33, column : column + 20] = np.nan
        np.save("a.npy", clip)
        words = ["complete-video", "a.npy", "-o", "b.npy", "--method", "field", "--dry-run", "--json"]
        told.append(report_of(tdc(*words))["estimate"])
    same, own = ({"seconds": each["seconds"] - 0.5, "bytes": each["bytes"]} for each in told)
    assert own["seconds"] > 3 * same["seconds"] and own["bytes"] > same["bytes"]


def test_discs_take_patches_longer_than_as_many_scattered_pixels_and_the_field_more_memory(tdc):
    discs = np.zeros((300, 300), bool)
    rows, columns = np.mgrid[:300, :300] % 30 - 15
    discs[rows**2 + columns**2 <= 20] = True
    told = {}
    for name, holes in {"discs": discs, "scattered": np.random.default_rng(0).permuted(discs.ravel())}.items():
        np.save("a.npy", np.where(holes.reshape(300, 300), np.nan, 1.0))
        for method in ("patches", "field"):
            words = ["complete-image", "a.npy", "-o", "b.npy", "--method", method, "--dry-run", "--json"]
            told[name, method] = report_of(tdc(*words))["estimate"]
    assert told["discs", "patches"]["seconds"] > 1.1 * told["scattered", "patches"]["seconds"]
    assert told["discs", "field"]["bytes"] > told["scattered", "field"]["bytes"]
