"""Names of files are data: they give orders neither to a terminal nor to a spreadsheet, and each is printed on one
line.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import smooth
from PIL import Image

from tdc_cli.names import cell, shown

SCRIPT = str(Path(sys.executable).with_name("tdc"))
ODD = "\x1b[31mred\nnext\r\x07\u202e\x9b\x7f.png"
ESCAPED = "\\x1b[31mred\\nnext\\r\\x07\\u202e\\x9b\\x7f.png"
FORMULAS = ["=1+1.png", "+a.png", "-b.png", "@c.png", "\td.png", "\re.png"]
NEAREST = ["--method", "nearest", "--missing-ratio", "0.3"]


@pytest.fixture
def odd(folder):
    """A picture of an odd name, in the current folder and in `in`, beside one that is none."""
    Path("in").mkdir()
    for name in (ODD, f"in/{ODD}"):
        Image.fromarray(smooth(10, 12)).save(name)
    Path(f"in/broken{ODD}").write_bytes(b"nothing")
    return folder


def check(text):
    """Nothing in a text is an order to a terminal."""
    found = {c for c in text if not c.isprintable()} - {"\n", "\N{NO-BREAK SPACE}"}
    assert not found, found


def told(result, code=0):
    """Lines on standard output and standard error, which hold no orders."""
    assert result.exit_code == code, result.stderr
    check(result.stdout)
    check(result.stderr)
    return result.stdout.splitlines(), result.stderr.splitlines()


def test_a_name_is_one_line_whatever_is_told_of_it(tdc, odd):
    words = ["complete-image", ODD, "-o", f"b{ODD}", *NEAREST]
    out, err = told(tdc(*words, "--report", f"r{ODD}.json", "--html", "p.html"))
    assert err == [] and out[0].startswith(f"b{ESCAPED}: ") and f"  report: r{ESCAPED}.json" in out
    assert told(tdc(*words, "--skip-existing"))[1] == [f"tdc: note: b{ESCAPED}: exists already and is skipped"]
    assert len(told(tdc(*words), 2)[1]) == 1
    out, err = told(tdc(*words, "--overwrite", "--dry-run"))
    assert out[0].startswith(f"{ESCAPED}: ") and out[1] == f"  image: b{ESCAPED}" and len(out) == 3
    assert len(told(tdc("complete-image", f"no{ODD}", "-o", "c.png", *NEAREST), 2)[1]) == 1
    assert len(told(tdc("complete-image", ODD, "-o", "c.png", "--mask", f"in/broken{ODD}"), 2)[1]) == 1
    for more in (["--method", ODD], ["--missing-ratio", ODD], [f"--{ODD}"], ["--param", ODD], ["--frames", ODD]):
        assert len(told(tdc("complete-image", ODD, "-o", "c.png", *more), 2)[1]) == 1
    assert len(told(tdc(ODD), 2)[1]) == 1
    Path(f"c{ODD}").write_text("no table")
    assert len(told(tdc("--config", f"c{ODD}", *words), 2)[1]) == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_names_in_a_folder_are_one_line_each(odd, jobs):
    words = [
        SCRIPT,
        "complete-image",
        "in",
        "-o",
        "out",
        *NEAREST,
        "--jobs",
        jobs,
        "--threads",
        "1",
        "-v",
        "--no-progress",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    check(done.stdout + done.stderr)
    assert done.returncode == 3 and [line[:24] for line in done.stderr.splitlines()] == ["tdc: in/broken\\x1b[31mre"]
    assert [line[:4] for line in done.stdout.splitlines()] == ["out:"]


def test_names_in_a_dry_run_of_a_folder(tdc, odd):
    out, err = told(tdc("complete-image", "in", "-o", "out", *NEAREST, "--dry-run"), 3)
    assert out[0].startswith(f"in/{ESCAPED}: ") and len(out) == 2 and len(err) == 1
    for words in (["in", "-o", "out"], [ODD, "-o", "b.png"]):
        result = tdc("complete-image", *words, *NEAREST, "--dry-run", "--json")
        check(result.stdout)
        json.loads(result.stdout)


def test_names_in_pages_and_reports(tdc, odd):
    result = tdc("complete-image", "in", "-o", "out", *NEAREST, "--html", "p", "--report", "r", "--json")
    assert result.exit_code == 3
    check(result.stdout)
    texts = [path.read_text() for folder in ("p", "r") for path in Path(folder).iterdir() if path.suffix != ".csv"]
    for text in texts:
        check(text)
    assert len(texts) == 4 and ESCAPED in Path("p/index.html").read_text()
    assert f"in/{ODD}" in [each["path"] for each in json.loads(result.stdout)["files"]]  # as it is, for programs


def test_cells_of_the_summary_are_neither_formulas_nor_orders(tdc, odd):
    for name in FORMULAS:
        Image.fromarray(smooth(10, 12)).save(name)
    named = [name if name[0] != "-" else f"./{name}" for name in FORMULAS]
    assert tdc("complete-image", *named, ODD, "-o", "out", *NEAREST, "--report", "r").exit_code == 0
    text = Path("r/summary.csv").read_bytes().decode()
    check(text)
    rows = list(csv.DictReader(text.splitlines()))
    names = [row["path"] for row in rows]
    assert sorted(names) == sorted([*("'" + shown(name) for name in FORMULAS), ESCAPED])
    cells = [value for row in rows for value in row.values()]
    assert not [value for value in cells if value[:1] in ("=", "+", "@", "\t", "\r")]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t1", "\r1"])
def test_a_text_that_begins_as_a_formula_is_none(text):
    assert cell(text) == f"'{shown(text)}"


def test_numbers_and_gaps_stay_what_they_are():
    assert cell(-1) == -1 and cell(None) is None and cell("1-1") == "1-1"


def test_standard_error_of_a_terminal_gets_no_orders(odd):
    """A pseudo terminal, where colours and bars are drawn."""
    leader, follower = os.openpty()
    words = [SCRIPT, "complete-image", f"in/broken{ODD}", "-o", "out.png", *NEAREST]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=follower, timeout=120)
    os.close(follower)
    text = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 2 and text.startswith("tdc: ") and "\x1b" not in text and text.count("\n") == 1


def test_letters_of_other_scripts_stay_as_they_are():
    for text in (
        "größe.png",
        "写真.png",
        "a\N{NO-BREAK SPACE}b.png",
        "\N{IDEOGRAPHIC SPACE}",
        "e\N{COMBINING ACUTE ACCENT}",
        "🙂",
    ):
        assert shown(text) == text == cell(text)


def test_values_of_clips_with_odd_names(tdc, folder):
    np.save(f"c{ODD}.npy", np.random.default_rng(0).random((3, 8, 9)))
    words = ["complete-video", f"c{ODD}.npy", "-o", f"d{ODD}.npy", *NEAREST]
    out, err = told(tdc(*words))
    assert out[0].startswith(f"d{ESCAPED}.npy: ") and all(line.startswith("tdc: note: ") for line in err)
    assert told(tdc(*words, "--resume"))[1] == [f"tdc: note: d{ESCAPED}.npy: exists already and is skipped"]
