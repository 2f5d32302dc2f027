"""Folders: which files become what, going on where a run stopped, several runs and processes at once."""

import csv
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from conftest import pixels, report_of, smooth
from PIL import Image

from tdc_cli import media, methods
from tdc_cli.errors import OutputError
from tdc_cli.media import parts
from tdc_cli.methods import biharmonic
from tdc_cli.run import cost, folders, summary
from tdc_cli.run.batch import share
from tdc_cli.run.request import Request

SCRIPT = str(Path(sys.executable).with_name("tdc"))
VALIDATOR = jsonschema.Draft202012Validator(summary.SCHEMA)
KINDS = ", ".join(media.extensions())
HOLES = ["--method", "biharmonic", "--missing-ratio", "0.3"]


def written(path):
    """Which file stands at `path` and when it was written; not when it was read, for reading moves that."""
    found = Path(path).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def put(path, seed=0, size=(20, 24)):
    """Write a small picture, another one for every seed."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.roll(smooth(*size), seed, axis=1)).save(path)


def put_mask(path):
    mask = np.zeros((20, 24), dtype=np.uint8)
    mask[5:9, 10:14] = 255
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(mask).save(path)


@pytest.fixture
def tree(folder):
    """`in` with f1, f2, f10 and sub/x, and `m` with a mask for each."""
    for seed, name in enumerate(("f1", "f2", "f10", "sub/x")):
        put(f"in/{name}.png", seed)
        put_mask(f"m/{name}.png")
    return folder


def contents(root):
    """Relative path to bytes of every file below `root`."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(Path(root).rglob("*")) if path.is_file()}


def finished(root):
    """Names of the files right below `root` that are no temporary ones."""
    return (
        {name for name in os.listdir(root) if not name.endswith((".part", ".journal"))}
        if os.path.isdir(root)
        else set()
    )


def summary_of(result, code=0):
    assert result.exit_code == code, result.stderr
    values = json.loads(result.stdout)
    VALIDATOR.validate(values)
    return values


def statuses(values):
    return {entry["path"]: entry["status"] for entry in values["files"]}


def template(**more):
    return Request(input="", output=Path("out"), method="biharmonic", missing_ratio=0.3, **more)


# -- which files become what
# --------------------------------------------------------------------------------------------------


def test_the_schema_is_one_and_is_printed(tdc):
    VALIDATOR.check_schema(summary.SCHEMA)
    assert json.loads(tdc("report-schema", "--batch").stdout) == summary.SCHEMA


def test_a_folder_is_mirrored(tdc, tree):
    Path("in/Thumbs.db").write_bytes(b"x")
    put("in/.hidden.png")
    put("in/.cache/y.png")
    result = tdc("complete-image", "in", "-o", "out", *HOLES, "--recursive", "--json", "--report", "r", "--panel", "p",
                 "--save-incomplete", "i")  # fmt: skip
    values = summary_of(result)
    assert list(statuses(values)) == ["in/f1.png", "in/f2.png", "in/f10.png", "in/sub/x.png"]
    assert values["counts"]["done"] == 4 and values["counts"]["ignored"] == {
        "hidden": 2,
        "other": 1,
        "masks": 0,
        "folders": 0,
    }
    pictures = {"f1.png", "f2.png", "f10.png", "sub/x.png"}
    assert set(contents("out")) == pictures
    assert set(contents("i")) == pictures | {name.replace(".png", "_mask.png") for name in pictures}
    assert set(contents("p")) == {f"{name}.png" for name in pictures}
    assert set(contents("r")) == {f"{name}.json" for name in pictures} | {"summary.json", "summary.csv"}
    assert json.loads(Path("r/summary.json").read_text(encoding="utf-8")) == values
    assert [json.loads(Path(f"r/{e['path'][3:]}.json").read_text(encoding="utf-8")) for e in values["files"]] == [
        e["report"] for e in values["files"]
    ]
    rows = list(csv.DictReader(Path("r/summary.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["output"] for row in rows] == ["out/f1.png", "out/f2.png", "out/f10.png", "out/sub/x.png"]
    assert float(rows[0]["psnr"]) == values["files"][0]["report"]["metrics"]["all"]["psnr"]


def test_without_recursive_folders_in_folders_are_counted(tdc, tree):
    result = tdc("complete-image", "in", "-o", "out", *HOLES)
    assert result.exit_code == 0 and set(contents("out")) == {"f1.png", "f2.png", "f10.png"}
    first, second = result.stdout.splitlines()
    assert first.startswith("out: 3 of 3 pictures completed, ")
    assert second == "  passed over: folders 1 (--recursive enters them)"


def test_several_inputs_keep_their_names(tdc, tree):
    put("other/f1.png", 7)
    result = tdc("complete-image", "in", "other", "a.png", "a.png", "-o", "out/", *HOLES)
    assert result.exit_code == 0, result.stderr
    assert set(contents("out")) == {"in/f1.png", "in/f2.png", "in/f10.png", "other/f1.png", "a.png"}


def test_one_file_into_a_new_folder(tdc):
    assert tdc("complete-image", "a.png", "-o", "new/", "--mask", "m.png", "--method", "biharmonic").exit_code == 0
    assert os.listdir("new") == ["a.png"]


@pytest.mark.parametrize(
    "inputs, more, line",
    [
        (["in", "a.png"], ["-o", "b.png"], "b.png: is a file; for several pictures, name a folder"),
        (
            ["in"],
            ["-o", "new.PNG"],
            "new.PNG: named like a file, and results of the folder in go into a folder: name one, or make this first",
        ),
        (
            ["in", "a.png"],
            ["-o", "out", "--report", "r.json"],
            "r.json: named like a file, and results of in and 1 more go into a folder: name one, or make this first",
        ),
        (["in", "a.png", "none.png"], ["-o", "out"], "none.png: no such file"),
        (["in"], ["-o", "none/out"], "none/out: folder none does not exist; create it first"),
        (["in"], ["-o", "b.png/out"], "b.png/out: b.png is a file, no folder; name another place"),
        (["in"], ["-o", "in"], "in: is the folder of the inputs itself; name another folder"),
        (["in"], ["-o", "out", "--report", "in"], "in: is the folder of the inputs itself; name another folder"),
        (["in/f1.png", "in/f2.png"], ["-o", "in"], "in/f1.png: is one of the inputs itself; name another folder"),
        (
            ["in/f1.png", "in/sub/f1.png"],
            ["-o", "out"],
            "out/f1.png: would be the result of both in/f1.png and in/sub/f1.png; rename one, or complete them apart",
        ),
        (
            ["in"],
            ["-o", "out", "--save-incomplete", "out"],
            "out/f1.png: would be the result of both in/f1.png and in/f1.png; rename one, or complete them apart",
        ),
        (
            ["empty"],
            ["-o", "out"],
            "empty: no pictures found (passed over: folders 1); --recursive enters folders in folders",
        ),
        (
            ["in"],
            ["-o", "out", "--overwrite", "--skip-existing"],
            "--overwrite and --skip-existing exclude each other; see 'tdc complete-image --help'",
        ),
        (
            ["in"],
            ["-o", "out", "--mask-suffix", "_m"],
            "--mask-suffix needs a --mask that is a folder; see 'tdc complete-image --help'",
        ),
        (["in"], ["-o", "out", "--rank", "3"], "method biharmonic has no parameters; leave out rank"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(tdc, tree, inputs, more, line):
    Path("b.png").write_bytes(b"x")
    put("in/sub/f1.png")
    Path("empty/more").mkdir(parents=True)
    before = contents(".")
    result = tdc("complete-image", *inputs, *HOLES, *more)
    assert (result.exit_code, result.stderr, result.stdout) == (2, f"tdc: {line}\n", "")
    assert contents(".") == before and not Path("out").exists()


def test_a_folder_that_is_there_may_be_named_like_a_file(tdc, tree):
    Path("new.png").mkdir()
    assert tdc("complete-image", "in", "-o", "new.png", *HOLES).exit_code == 0
    assert set(contents("new.png")) == {"f1.png", "f2.png", "f10.png"}


def test_nothing_that_says_what_is_missing_is_one_line(tdc, tree):
    result = tdc("complete-image", "in", "-o", "out")
    line = ("tdc: nothing says what is missing; give --mask FOLDER (a mask for every picture, white = missing), "
            "--mask FILE (one for all), or --missing-ratio 0.5 to hide half of whole pictures\n")  # fmt: skip
    assert (result.exit_code, result.stderr) == (2, line)
    values = smooth(20, 24).astype(np.float32)
    values[3:5] = np.nan
    np.save("in/x.npy", values)
    values = summary_of(tdc("complete-image", "in", "-o", "out", "--method", "biharmonic", "--json"), code=3)
    assert statuses(values) == {
        "in/f1.png": "failed",
        "in/f2.png": "failed",
        "in/f10.png": "failed",
        "in/x.npy": "done",
    }


def test_names_that_differ_in_their_accents_only_collide(tree):
    for form in ("NFC", "NFD"):
        put(f"in/{unicodedata.normalize(form, 'é')}.png")
    with pytest.raises(OutputError, match="would be the result of both"):
        folders.plan(template(), ["in"])


def test_names_that_differ_in_case_collide_where_the_file_system_folds_case(tree, monkeypatch):
    put("in/F1.png")
    assert len(folders.plan(template(), ["in"]).tasks) == 4
    monkeypatch.setattr(folders, "_folds_case", lambda folder: True)
    with pytest.raises(OutputError, match="would be the result of both"):
        folders.plan(template(), ["in"])


def test_one_format_for_all_collides(tree):
    put("in/f1.jpg")
    assert len(folders.plan(template(), ["in"]).tasks) == 4
    with pytest.raises(OutputError, match=r"out/f1.png: would be the result of both in/f1.jpg and in/f1.png"):
        folders.plan(template(), ["in"], extension=".png")


def test_outputs_inside_the_input_are_not_read_again(tdc, tree):
    words = ["complete-image", "in", "-o", "in/out", *HOLES, "--recursive", "--save-incomplete", "in/holes", "--json"]
    first = summary_of(tdc(*words))
    again = summary_of(tdc(*words, "--skip-existing"))
    assert list(statuses(again)) == list(statuses(first)) and again["counts"]["skipped"] == 4


def test_links_are_harmless(tdc, tree):
    os.symlink("..", "in/sub/up")
    os.symlink("loop.png", "in/loop.png")
    os.symlink("f1.png", "in/link.png")
    values = summary_of(tdc("complete-image", "in", "-o", "out", *HOLES, "--recursive", "--json"), code=3)
    assert [path for path, status in statuses(values).items() if status == "failed"] == ["in/loop.png"]
    assert "out/link.png" in [str(path) for path in Path("out").iterdir()] and not os.path.islink("out/link.png")
    assert values["counts"]["files"] == 6 and values["counts"]["ignored"]["folders"] == 1


def test_a_folder_that_cannot_be_read_is_a_failure(tree, monkeypatch):
    plain = os.scandir

    def scandir(path):
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path)

    monkeypatch.setattr(folders.os, "scandir", scandir)
    batch = folders.plan(template(), ["in"], recursive=True)
    assert [task.error for task in batch.tasks if task.error] == ["in/sub: cannot be read (Permission denied)"]


# -- masks
# --------------------------------------------------------------------------------------------------------------------


def test_each_picture_has_its_mask(tdc, tree):
    os.rename("m/f2.png", "m/f2.TIF.png")
    Image.open("m/f2.TIF.png").save("m/f2.tif")
    os.remove("m/f10.png")
    put_mask("m/f1.jpg")
    values = summary_of(
        tdc("complete-image", "in", "-o", "out", "--mask", "m", "--method", "biharmonic", "--recursive", "--json"), 3
    )
    found = {
        entry["path"]: (entry["error"], entry["report"] and entry["report"]["missing"]["mask"])
        for entry in values["files"]
    }
    assert found == {
        "in/f1.png": ("in/f1.png: several files could be its mask: m/f1.jpg, m/f1.png; leave one of them", None),
        "in/f2.png": (None, "m/f2.tif"),
        "in/f10.png": (f"in/f10.png: no mask m/f10.* ({KINDS})", None),
        "in/sub/x.png": (None, "m/sub/x.png"),
    }


@pytest.mark.parametrize("names, found", [
    (["f1.tif"], "f1.tif"),
    (["f1.PNG", "f2.png"], "f1.PNG"),
    (["f1.png.png"], "f1.png.png"),
    (["f1.PNG.tif"], "f1.PNG.tif"),
    (["f1_mask.png"], "f1_mask.png"),
    (["f1.png_mask.png"], "f1.png_mask.png"),
    (["f1.png", "f1.png.png", "f1_mask.png"], "f1.png.png"),
    (["f1.png", "f1_mask.png"], "f1.png"),
])  # fmt: skip
def test_masks_are_found_by_the_names_that_programs_give_them(tdc, names, found):
    Image.open("a.png").save("f1.png")
    os.mkdir("masks")
    for name in names:
        Image.open("m.png").save(Path("masks", name), format={".tif": "TIFF"}.get(Path(name).suffix.lower(), "PNG"))
    how = ["complete-image", "f1.png", "-o", "b.png", "--mask", "masks", "--method", "linear"]
    assert report_of(tdc(*how, "--json"))["missing"]["mask"] == f"masks/{found}"
    # Where the user says what follows the name, no other name will do.
    result = tdc(*how, "--mask-suffix", "_hole", "--overwrite")
    assert (result.exit_code, result.stderr) == (2, f"tdc: f1.png: no mask masks/f1_hole.* ({KINDS})\n")


def test_so_are_those_of_a_folder_whatever_the_case_of_an_extension(tdc, folder):
    kinds = {".JPG": "JPEG", ".Jpeg": "JPEG", ".PNG": "PNG", ".Tif": "TIFF", ".bmp": "BMP"}
    masks = ("{0}.bmp", "{0}{1}.PNG", "{0}_mask.Tif", "{0}{1}_mask.png")
    wanted = {}
    for number, (kind, mask) in enumerate(itertools.product(kinds, masks)):
        picture, name = f"{number}.v2{kind}", mask.format(f"{number}.v2", kind.swapcase())
        Path("in").mkdir(exist_ok=True)
        Path("masks").mkdir(exist_ok=True)
        Image.open("a.png").save(f"in/{picture}", format=kinds[kind])
        Image.open("m.png").save(f"masks/{name}")
        wanted[f"in/{picture}"] = f"masks/{name}"
    values = summary_of(tdc("complete-image in -o out --mask masks --method linear --json"))
    assert {entry["path"]: entry["report"]["missing"]["mask"] for entry in values["files"]} == wanted


def test_a_missing_mask_of_one_file_exits_with_2(tdc, tree):
    result = tdc("complete-image", "in/f1.png", "-o", "b.png", "--mask", "in/sub", "--method", "biharmonic")
    assert (result.exit_code, result.stderr) == (2, f"tdc: in/f1.png: no mask in/sub/f1.* ({KINDS})\n")
    assert tdc("complete-image", "in/f1.png", "-o", "b.png", "--mask", "m", "--method", "biharmonic").exit_code == 0


def test_masks_beside_their_pictures(tdc, tree):
    for name in ("f1", "f2", "f10"):
        shutil.move(f"m/{name}.png", f"in/{name}_mask.png")
    words = ["complete-image", "in", "-o", "out", "--mask", "in", "--method", "biharmonic"]
    result = tdc(*words)
    assert result.exit_code == 2 and "holds both the pictures and their masks; give --mask-suffix TEXT" in result.stderr
    values = summary_of(tdc(*words, "--mask-suffix", "_mask", "--json"))
    assert (
        list(statuses(values)) == ["in/f1.png", "in/f2.png", "in/f10.png"] and values["counts"]["ignored"]["masks"] == 3
    )


def test_masks_inside_the_input_are_not_completed(tdc, tree):
    shutil.move("m", "in/masks")
    shutil.copy("in/masks/f1.png", "in/one_for_all.png")
    words = ["complete-image", "in", "-o", "out", "--method", "biharmonic", "--recursive", "--json", "--mask"]
    values = summary_of(tdc(*words, "in/masks"), code=3)
    assert statuses(values) == {
        "in/f1.png": "done",
        "in/f2.png": "done",
        "in/f10.png": "done",
        "in/one_for_all.png": "failed",
        "in/sub/x.png": "done",
    }
    values = summary_of(tdc(*words, "in/one_for_all.png", "--overwrite"))
    assert "in/one_for_all.png" not in statuses(values) and values["counts"]["ignored"]["masks"] == 1


def test_a_mask_found_whatever_form_its_accents_have(tree):
    put(f"in/{unicodedata.normalize('NFC', 'é')}.png")
    put_mask(f"m/{unicodedata.normalize('NFD', 'é')}.png")
    masks = folders.Companions("m", "", "mask")
    assert masks.of(Path(unicodedata.normalize("NFC", "é.png")), "in/é.png") == Path(
        f"m/{unicodedata.normalize('NFD', 'é')}.png"
    )


def test_references_of_a_folder(tdc, tree):
    words = [
        "complete-image",
        "in",
        "-o",
        "out",
        "--mask",
        "m",
        "--reference",
        "in",
        "--method",
        "biharmonic",
        "--json",
    ]
    alone = summary_of(tdc(*words))  # pictures that are whole, of which the masks hide a part
    shutil.copytree("in", "truth")
    words[words.index("in", 2)] = "truth"
    words.append("--overwrite")
    values = summary_of(tdc(*words))
    assert all(entry["report"]["metrics"]["missing"]["psnr"] > 20 for entry in values["files"])
    assert [e["report"]["metrics"] for e in values["files"]] == [e["report"]["metrics"] for e in alone["files"]]


# -- what does not matter
# -----------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_jobs_threads_order_or_place(tdc, tree):
    def bytes_of(out, *words):
        run = subprocess.run(
            [SCRIPT, "complete-image", "-o", out, "--method", "field", "--missing-ratio", "0.3", *words],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        return {Path(name).name: content for name, content in contents(out).items()}

    expected = bytes_of("one", "in", "--recursive", "--threads", "1")
    assert len(expected) == 4
    assert bytes_of("two", "in", "--recursive", "--jobs", "2", "--threads", "1") == expected
    shutil.copytree("in", "elsewhere/deep")
    assert bytes_of("three", "elsewhere/deep/sub/x.png", "elsewhere/deep/f10.png", "in/f2.png", "in/f1.png") == expected


def test_cores_are_shared_out(monkeypatch):
    monkeypatch.setattr("tdc_cli.run.batch.available", lambda: 8)
    assert share(1, 100, None) == (1, 8)
    assert share(3, 100, None) == (3, 2)
    assert share(16, 100, None) == (16, 1)
    assert share(16, 4, None) == (4, 2)
    assert share(4, 100, 8) == (4, 8)


def test_natural_order():
    names = ["f10", "F2", "f1", "f", "a/2", "a/10", "a", "b", "x²", "x\N{ARABIC-INDIC DIGIT ONE}"]
    ordered = ["a", "a/2", "a/10", "b", "f", "f1", "F2", "f10", "x\N{ARABIC-INDIC DIGIT ONE}", "x²"]
    assert sorted(names, key=folders.natural) == ordered


# -- failures
# -----------------------------------------------------------------------------------------------------------------


def test_an_unexpected_error_is_one_failure(tdc, tree, monkeypatch):
    plain = biharmonic.complete
    calls = []

    def complete(*args, **more):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("two\nlines")
        return plain(*args, **more)

    monkeypatch.setattr(biharmonic, "complete", complete)
    result = tdc("complete-image", "in", "-o", "out", *HOLES, "-q")
    line = "tdc: in/f2.png: unexpected ValueError: two lines; run again with -v for the traceback\n"
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", line)
    calls.clear()
    again = tdc("complete-image", "in", "-o", "out", *HOLES, "-v", "--overwrite")
    assert again.stderr.startswith(line + "Traceback (most recent call last):")


def test_warnings_are_told_once(tdc, tree):
    for name in ("f1", "f2"):
        put(f"jpegs/{name}.jpg")
    result = tdc("complete-image", "jpegs", "-o", "out", *HOLES)
    assert result.exit_code == 0
    assert result.stderr.count("warning: jpegs/f1.jpg: JPEG compresses with loss") == 1 and result.stderr.endswith(
        "bit for bit (and 1 more like it)\n"
    )


def test_an_interrupt_exits_with_130(tdc, tree, monkeypatch):
    plain = biharmonic.complete
    calls = []

    def complete(*args, **more):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*args, **more)

    monkeypatch.setattr(biharmonic, "complete", complete)
    result = tdc("complete-image", "in", "-o", "out", *HOLES)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "tdc: interrupted\n")
    assert set(contents("out")) == {"f1.png"}


def start(*words, **more):
    """Start the program in a process group of its own."""
    return subprocess.Popen(
        [SCRIPT, "complete-image", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **more,
    )


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def many(folder):
    """`in` with 12 pictures that take some time each, and how to complete them."""
    for i in range(12):
        put(f"in/{i}.png", i, size=(96, 96))
    return ["in", "-o", "out", "--method", "biharmonic", "--missing-ratio", "0.4"]


def alive(group):
    """Processes of a group that are no zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are counted in /proc")
@pytest.mark.parametrize(
    ("send", "number", "line", "code"),
    [
        (os.killpg, signal.SIGINT, "interrupted", 130),  # what a terminal does: every process of the group gets it
        (os.kill, signal.SIGTERM, "terminated", 143),
        (os.killpg, signal.SIGTERM, "terminated", 143),  # what systemd does
    ],
)
def test_a_signal_ends_the_workers(many, send, number, line, code):
    running = start(*many, "--jobs", "2", "--threads", "1")
    wait_for(lambda: finished("out"))
    send(running.pid, number)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (code, "", f"tdc: {line}\n")
    wait_for(lambda: not alive(running.pid), 10)
    assert contents("out") and all(pixels(f"out/{name}").shape == (96, 96, 3) for name in contents("out"))


def test_a_killed_worker_is_told(many):
    running = start(*many, "--jobs", "2", "--threads", "1")
    wait_for(lambda: finished("out"))
    workers = [pid for pid in alive(running.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    err = running.communicate(timeout=60)[1]
    assert running.returncode == 3
    assert (
        "not done, because a worker process was killed; if memory was short, try fewer --jobs" in err.splitlines()[-1]
    )
    again = subprocess.run(
        [SCRIPT, "complete-image", *many, "--skip-existing"], capture_output=True, text=True, timeout=120
    )
    assert again.returncode == 0 and len(contents("out")) == 12


def test_a_closed_pipe_exits_with_141(many):
    with start(*many[:-1], "0.01", "--json") as running:
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(60) == 141
    assert len(contents("out")) == 12


def test_a_full_disk_leaves_no_half_file(folder):
    for i in range(3):
        put(f"in/{i}.png", i, size=(8, 8))
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)).save("in/1.png")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))  # noqa: E731
    run = subprocess.run(
        [SCRIPT, "complete-image", "in", "-o", "out", *HOLES, "--report", "r"],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
    )
    assert run.returncode == 3
    assert run.stderr == "tdc: in/1.png: out/1.png: cannot be written (File too large)\n"
    assert set(contents("out")) == {"0.png", "2.png"} and set(contents("r")) >= {"0.png.json", "2.png.json"}
    assert "1.png.json" not in contents("r")


def test_pages_and_summaries_are_whole_or_not_there_on_a_full_disk(tdc, tree):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (500, 2_000, 12_000, 40_000):  # of a file: for nothing, a summary, an index and no page, for all
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        try:
            result = tdc(
                "complete-image in -o out --mask m --method linear --recursive --html h --report r --overwrite"
            )
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert result.exit_code == (0 if room == 40_000 else 3), result.stderr
        found = {Path(path): content for root in ("out", "h", "r") for path, content in contents(root).items()}
        assert all(len(content) <= room for content in found.values())
        for path, content in found.items():
            if path.suffix == ".html":
                assert content.endswith(b"</html>\n")
            elif path.suffix == ".json":
                json.loads(content)
        assert {path.suffix for path in found} <= {".png", ".html", ".json", ".csv"}


# -- going on
# -----------------------------------------------------------------------------------------------------------------


def test_a_picture_that_is_there_is_finished_and_what_it_lacks_is_told(tdc, tree):
    words = ["complete-image", "in", "-o", "out", *HOLES, "--skip-existing", "--report", "r", "--json"]
    first = summary_of(tdc(*words))
    os.remove("r/f2.png.json")
    os.remove("out/f10.png")
    Path("out/f2.png").write_bytes(b"of a run without reports")
    second = summary_of(tdc(*words))
    assert statuses(second) == {"in/f1.png": "skipped", "in/f2.png": "skipped", "in/f10.png": "done"}
    assert Path("out/f2.png").read_bytes() == b"of a run without reports" and not Path("r/f2.png.json").exists()
    assert second["files"][0]["report"] == first["files"][0]["report"]  # read from its file
    rows = csv.DictReader(Path("r/summary.csv").read_text(encoding="utf-8").splitlines())
    spent = {row["path"]: row["seconds"] for row in rows}
    # Of the run that made it; of what has no report nobody knows.
    assert float(spent["in/f1.png"]) == first["files"][0]["report"]["timing"]["total"]
    assert spent["in/f2.png"] == "" and float(spent["in/f10.png"]) > 0
    told = tdc(*words[:-1]).output.splitlines()
    assert "  skipped without report: 1 (--overwrite makes all anew)" in told


def test_a_result_of_a_run_that_was_quicker_stays(tdc, tree, monkeypatch):
    plain = biharmonic.complete

    def complete(*args, **more):
        Path("out").mkdir(exist_ok=True)
        Path("out/f1.png").write_bytes(b"of another run")
        return plain(*args, **more)

    monkeypatch.setattr(biharmonic, "complete", complete)
    values = summary_of(tdc("complete-image", "in", "-o", "out", *HOLES, "--skip-existing", "--report", "r", "--json"))
    assert statuses(values) == {"in/f1.png": "skipped", "in/f2.png": "done", "in/f10.png": "done"}
    assert Path("out/f1.png").read_bytes() == b"of another run" and not Path("r/f1.png.json").exists()
    result = tdc("complete-image", "a.png", "-o", "out/f1.png", *HOLES, "--skip-existing")
    assert (result.exit_code, result.stderr) == (0, "tdc: note: out/f1.png: exists already and is skipped\n")


def test_two_runs_at_once(many):
    runs = [start(*many, "--skip-existing", "--json", "--jobs", jobs, "--threads", "1") for jobs in ("1", "2")]
    ends = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends
    counts = [json.loads(out)["counts"] for out, err in ends]
    assert counts[0]["done"] + counts[1]["done"] == 12 and all(c["done"] + c["skipped"] == 12 for c in counts)
    assert sorted(contents("out"), key=folders.natural) == [f"{i}.png" for i in range(12)]


def test_a_picture_that_another_run_finishes_between_two_looks_is_skipped(tdc, folder, monkeypatch):
    words = ["complete-image", "a.png", "-o", "b.png", *HOLES, "--skip-existing"]
    assert tdc(*words).exit_code == 0
    before = written("b.png")
    assert tdc(*words).stderr == "tdc: note: b.png: exists already and is skipped\n"
    monkeypatch.setattr("tdc_cli.run.batch._finished", lambda job: None)  # what the other run did came after this look
    Path("in").mkdir()
    Path("out").mkdir()
    shutil.copy("a.png", "in/a.png")
    shutil.copy("b.png", "out/a.png")
    done = tdc("complete-image", "in", "-o", "out", *HOLES, "--skip-existing", "--json")
    assert json.loads(done.stdout)["counts"]["skipped"] == 1 and written("b.png") == before


def test_results_appear_together(complete, monkeypatch):
    """The picture comes last, and where one result cannot be written there is none."""
    appeared = []
    plain = parts.Part.publish
    monkeypatch.setattr(parts.Part, "publish", lambda part: (appeared.append(str(part.path)), plain(part)))
    assert complete("--mask", "m.png", "--report", "r.json", "--panel", "p.png").exit_code == 0
    assert appeared == ["r.json", "p.png", "b.png"]
    for name in appeared:
        os.remove(name)
    monkeypatch.setattr("tdc_cli.run.report.Report.to_json", lambda report: 1 / 0)
    assert complete("--mask", "m.png", "--report", "r.json", "--panel", "p.png").exit_code == 1
    assert sorted(os.listdir()) == ["a.png", "m.png"]


def test_leftovers_of_killed_runs_are_removed_and_those_of_living_ones_stay(tdc, tree):
    Path("out").mkdir()
    Path("out/.tdc-0123456789ab.part").write_bytes(b"x")
    Path("in/.tdc-0123456789ab.part").write_bytes(b"x")
    hold = (
        "import sys; from tdc_cli.media.parts import Part; "
        "p = Part('out/z.png', False); print(p.name, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        alive = writer.stdout.readline().strip()
        result = tdc("complete-image", "in", "-o", "out", *HOLES)
        assert result.exit_code == 0
        assert set(contents("out")) == {"f1.png", "f2.png", "f10.png", os.path.basename(alive)}
        writer.kill()
    assert tdc("complete-image", "a.png", "-o", "out/a.png", *HOLES).exit_code == 0
    assert set(contents("out")) == {"f1.png", "f2.png", "f10.png", "a.png"}
    assert ".tdc-0123456789ab.part" in contents("in")  # nothing is ever removed from where only reading is done


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_at_any_moment_and_gone_on_with(many, jobs):
    words = [*many, "--report", "r", "--jobs", jobs, "--threads", "1"]
    undisturbed = [w.replace("out", "whole") for w in many]
    assert subprocess.run([SCRIPT, "complete-image", *undisturbed], capture_output=True, timeout=120).returncode == 0
    expected = contents("whole")
    moments = random.Random(int(jobs))
    for _ in range(3 if jobs == "1" else 2):
        before = finished("out")
        running = start(*words, "--skip-existing")
        while running.poll() is None and finished("out") <= before:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.03))
        running.kill()
        assert "Warning" not in running.communicate(timeout=60)[1]
        assert all(Path("out", name).read_bytes() == expected[name] for name in finished("out"))
    wait_for(lambda: not alive(running.pid), 20)
    done = subprocess.run(
        [SCRIPT, "complete-image", *words, "--skip-existing", "--json"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and json.loads(done.stdout)["counts"]["skipped"] > 0
    assert contents("out") == expected
    assert set(contents("r")) == {f"{name}.json" for name in expected} | {"summary.json", "summary.csv"}


# -- dry runs
# -----------------------------------------------------------------------------------------------------------------


def test_a_dry_run_says_which_file_gets_which_mask(tdc, tree):
    os.remove("m/f10.png")
    Path("out").mkdir()
    Path("out/.tdc-0123456789ab.part").write_bytes(b"x")
    words = ["complete-image", "in", "-o", "out", "--mask", "m", "--method", "biharmonic", "--dry-run"]
    before = contents(".")
    result = tdc(*words)
    assert result.exit_code == 3 and contents(".") == before
    assert result.stdout.splitlines() == [
        "in/f1.png: 3.3% missing, by mask m/f1.png, to out/f1.png",
        "in/f2.png: 3.3% missing, by mask m/f2.png, to out/f2.png",
        "2 pictures, about 1 s on one core and 90 MB",
        "  passed over: folders 1 (--recursive enters them)",
    ]
    assert result.stderr == f"tdc: in/f10.png: no mask m/f10.* ({KINDS})\n"
    values = json.loads(tdc(*words, "--json").stdout)
    assert values["files"][0]["plan"]["missing"]["count"] == 48 and values["estimate"]["bytes"] > 5e7
    alone = [file["plan"]["estimate"]["seconds"] for file in values["files"] if file["plan"]]
    assert values["estimate"]["seconds"] < sum(alone), "the program starts once"


def test_a_dry_run_says_what_is_done_already(tdc, tree):
    words = ["complete-image", "in", "-o", "out", *HOLES, "--report", "r", "--skip-existing"]
    assert tdc(*words).exit_code == 0
    os.remove("out/f2.png")
    assert tdc(*words, "--dry-run").stdout.splitlines()[:3] == [
        "in/f1.png: done already",
        "in/f2.png: 30.0% missing, simulated, to out/f2.png",
        "in/f10.png: done already",
    ]
    values = json.loads(tdc(*words, "--dry-run", "--json").stdout)
    assert [bool(entry["plan"]) for entry in values["files"]] == [False, True, False]


def test_going_on_with_nothing_starts_no_process(tdc, tree, monkeypatch):
    words = ["complete-image", "in", "-o", "out", *HOLES, "--skip-existing"]
    assert tdc(*words).exit_code == 0
    monkeypatch.setattr("tdc_cli.run.batch.Processes", lambda *given: pytest.fail("started"))
    assert tdc(*words, "--jobs", "2").stdout.startswith("out: 0 of 3 pictures completed, 3 skipped, ")


def test_every_method_has_a_cost():
    extent = cost.Extent(10**6, 10**5, corners=10**5)
    for method in methods.REGISTRY.values():
        seconds, space = cost.cost(method, extent)
        assert 0 < seconds < 10**5 and 5e7 < space < 1e10
        assert cost.cost(method, cost.Extent(10**6, 0))[0] == 0
    patches = methods.get("patches")
    seconds = cost.cost(patches, extent)[0]
    assert cost.cost(patches, replace(extent, near=2 * 10**5))[0] < seconds, "what is scattered takes longer"
    assert cost.cost(patches, extent, learns=False)[0] < seconds
    assert cost.in_words({"seconds": 59.2, "bytes": 1e9}) == "about 60 s on one core and 1000 MB"
    assert cost.in_words({"seconds": 7201, "bytes": 1}) == "about 3 h on one core and 10 MB"
    plans = [{"method": "field", "estimate": {"seconds": seconds, "bytes": 10}} for seconds in (2.0, 3.0, 4.0)]
    started = cost.COSTS[methods.get("field").module].start
    assert cost.together(plans, 2) == {"seconds": 9.0 - started, "bytes": 20}, "each job is started once"


def test_extensions_come_last_in_natural_order():
    names = ["cat10.jpg", "b/cat.png", "cat.png", "cat2.png", "a.png"]
    assert sorted(names, key=folders.natural) == ["a.png", "b/cat.png", "cat.png", "cat2.png", "cat10.jpg"]


def test_notes_that_are_alike_are_told_once_also_by_a_dry_run(tdc, folder):
    Path("in").mkdir()
    Path("in/deeper").mkdir()
    Path("masks").mkdir()
    for i in range(3):
        Image.fromarray(smooth(20, 24)).save(f"in/p{i}.png")
        mask = np.zeros((20, 24), dtype=np.uint8)
        mask[5:9, 10:14], mask[9, 10 : 12 + i] = 255, 100
        Image.fromarray(mask).save(f"masks/p{i}.png")
    for more in (["--dry-run"], []):
        done = tdc("complete-image", "in", "-o", "out", "--mask", "masks", "--method", "nearest", *more)
        assert done.exit_code == 0
        (line,) = [line for line in done.stderr.splitlines() if "soft edges" in line]
        assert "mask masks/p0.png has soft edges: 2 grey pixels" in line and line.endswith(" (and 2 more like it)")
        assert "passed over: folders 1 (--recursive enters them)" in done.stdout


def test_names_that_are_not_utf_8_have_a_place_in_the_index(tdc, folder):
    Path("in").mkdir()
    Image.fromarray(smooth(20, 24)).save(os.fsdecode(b"in/bad\xff.png"))
    done = tdc("complete-image in -o out --mask m.png --method nearest --html pages --report reports")
    assert done.exit_code == 0 and 'href="bad%FF.png.html"' in Path("pages/index.html").read_text(encoding="utf-8")
    assert Path("reports/summary.csv").exists()


def test_the_folder_of_inputs_may_be_that_of_the_references(tdc, folder):
    Path("in").mkdir()
    Image.fromarray(smooth(20, 24)).save("in/a.png")
    done = tdc("complete-image in -o out --mask m.png --method nearest --reference in --json")
    assert done.exit_code == 0 and json.loads(done.stdout)["files"][0]["report"]["metrics"]["all"]["psnr"] > 20
