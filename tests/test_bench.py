"""`tdc bench`: records, going on after a kill, what fails, tables, the page."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_suite
from PIL import Image
from test_page import Parsed

from tdc_cli import __version__
from tdc_cli import bench as experiment
from tdc_cli.bench import cells, memory, results, samples, tables
from tdc_cli.bench.suites import smoke
from tdc_cli.view.page import Table

COSTS = ("seconds", "memory")
DASH = tables.MISSING
TIMED_OUT = "took longer than 1.0 s"


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.delenv("TDC_BENCH_DATA", raising=False)  # which is --data, too
    monkeypatch.setitem(experiment.SUITES, "tiny", tiny_suite.Tiny("tiny", "for tests"))


def records(folder):
    """Records of a folder without what differs from run to run."""
    held = json.loads(Path(folder, "results.json").read_text(encoding="utf-8"))
    return [{key: value for key, value in each.items() if key not in COSTS} for each in held["records"]]


def test_a_run_writes_records_tables_figures_and_a_page(tdc):
    done = tdc("bench", "tiny", "-o", "out", "--jobs", "2", "--seeds", "1", "--json")
    assert done.exit_code == 0, done.stderr
    held = json.loads(done.stdout)
    assert held == json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    assert held["settings"] == {
        "suite": "tiny",
        "methods": ["nearest", "linear"],
        "ratios": [0.2, 0.5],
        "seeds": 1,
        "data": None,
        "threads": 1,
        "timeout": 3600.0,
        "version": held["tool"]["version"],
    }
    assert [(each["method"], each["ratio"]) for each in held["records"]] == [
        ("nearest", 0.2), ("linear", 0.2), ("nearest", 0.5), ("linear", 0.5)]  # fmt: skip
    first = held["records"][0]
    assert (
        first["status"] == "done"
        and first["seconds"] > 0
        and first["metrics"]["none"] is None
        and first["details"] == {"ratio": 0.2}
    )
    assert np.load(Path("out", first["arrays"]))["mean"].shape == (8, 9)
    rows = list(csv.DictReader(Path("out/results.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["rre"]) for row in rows] == [each["metrics"]["rre"] for each in held["records"]] and rows[0][
        "none"
    ] == ""
    text = Path("out/tables.md").read_text(encoding="utf-8")
    assert text.startswith(
        "### RRE of a ramp\n\n| method | 20% | paper | difference | 50% | paper | difference |\n|---|"
    )
    linear = next(line for line in text.splitlines() if line.startswith("| linear"))
    figure = held["records"][1]["metrics"]["rre"]
    assert linear.split(" | ")[1:4] == [f"**{figure:.4f}**", "0.2500", f"{figure - 0.25:+.4f}"]
    assert Image.open("out/bars.png").size == (600, 300)
    page = Parsed(Path("out/report.html").read_text(encoding="utf-8"))
    assert "RRE of a ramp" in page.text and f"{figure:.4f}" in page.text
    (picture,) = page.all("img")
    assert picture["src"].startswith("data:image/png;base64,") and picture["alt"] == "Bars <of> nothing"


def test_the_number_of_jobs_changes_no_record(tdc):
    for folder, jobs in (("a", 1), ("b", 3)):
        assert (
            tdc("bench", "tiny", "-o", folder, "--jobs", jobs, "--seeds", "1", "--ratios", "0.5", "-q").exit_code == 0
        )
    assert records("a") == records("b")


@pytest.mark.parametrize(
    ("mishap", "more", "status", "error"),
    [
        ("raise", (), "failed", "ValueError: out of order"),
        ("nan", (), "failed", "36 observed entries are NaN or infinite; mark them as missing"),
        ("killed", (), "failed", "the process was killed (exit code -9); was memory short?"),
        ("slow", ("--timeout", "1"), "timeout", TIMED_OUT),
    ],
)
def test_what_fails_is_a_record(tdc, monkeypatch, mishap, more, status, error):
    monkeypatch.setenv("MISHAP", mishap)
    methods = "nearest" if more else "nearest,linear"
    done = tdc("bench", "tiny", "-o", "out", "--seeds", "1", "--ratios", "0.5", "--methods", methods, *more)
    assert (done.exit_code, done.stderr.count("\n")) == (1 if more else 0, 1)
    assert done.stderr.startswith("tdc: every run failed: " if more else "tdc: warning: 1 run failed: ")
    assert " ".join(error.split()) in done.stderr
    held = records("out")
    assert (held[0]["status"], held[0]["metrics"]) == (status, {}) and error in held[0]["error"]
    assert "1 of them failed" in done.stdout
    if not more:
        assert held[1]["status"] == "done"
        assert f"| nearest | {DASH} | 0.2500 | {DASH} |" in Path("out/tables.md").read_text(encoding="utf-8")
    assert error in Parsed(Path("out/report.html").read_text(encoding="utf-8")).text


def started(*words, **environment):
    """`tdc` with these words as a process that leads a group of its own and knows the tiny suite."""
    code = (
        "import sys, tiny_suite; tiny_suite.register(); from tdc_cli.__main__ import main; sys.argv[0] = 'tdc'; main()"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=os.environ | environment | {"PYTHONPATH": paths},
        text=True,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_until(reached, process):
    """Wait for something that a process that is alive brings about."""
    end = time.monotonic() + 120
    while not reached():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)


def wait_for_the_end_of(group):
    """Wait until no process of the group is left."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a worker is left")


def test_ctrl_c_ends_all_processes_with_one_line(tdc, folder):
    process = started(
        "bench", "tiny", "-o", "out", "--seeds", "1", "--jobs", "2", "--methods", "nearest", MISHAP="slow"
    )
    wait_until(Path("out/results.json").exists, process)
    time.sleep(0.2)  # the workers are being loaded: an interrupt must not reach them even now
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "tdc: interrupted\n") and records("out") == []
    wait_for_the_end_of(process.pid)


def test_a_killed_run_goes_on(tdc, folder):
    assert tdc("bench", "tiny", "-o", "whole", "--seeds", "1", "--jobs", "2", "-q").exit_code == 0
    path = Path("part/results.json")
    process = started("bench", "tiny", "-o", "part", "--seeds", "1")
    wait_until(lambda: path.exists() and len(records("part")) >= 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for_the_end_of(process.pid)
    held = records("part")
    assert 2 <= len(held) < 4
    kept = json.loads(path.read_text(encoding="utf-8"))["records"]
    assert tdc("bench", "tiny", "-o", "part", "--seeds", "1", "--resume", "-q").exit_code == 0
    assert records("part") == records("whole")
    assert json.loads(path.read_text(encoding="utf-8"))["records"][: len(kept)] == kept, "what was there was run again"


def test_a_folder_that_another_run_is_at_work_in_is_left_to_it(tdc, folder):
    process = started("bench", "tiny", "-o", "out", "--seeds", "1", "--methods", "nearest", MISHAP="slow")
    wait_until(Path("out/results.json").exists, process)
    for words in ((), ("--resume",)):
        done = tdc("bench", "tiny", "-o", "out", "--seeds", "1", "--methods", "nearest", *words)
        line = "tdc: out: another run is at work in it; wait for its end, or give another folder\n"
        assert (done.exit_code, done.stderr) == (2, line)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    wait_for_the_end_of(process.pid)
    assert tdc("bench", "tiny", "-o", "out", "--seeds", "1", "--methods", "nearest", "--resume", "-q").exit_code == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "tdc: out: is not empty; give --resume to go on with the run in it, or another folder"),
        (
            ("--resume", "--seeds", "3"),
            "tdc: out: was begun with 1, not 3, for --seeds; give the same, or another folder",
        ),
        (
            ("--resume", "--seeds", "1", "--methods", "linear"),
            'tdc: out: was begun with ["nearest", "linear"], not ["linear"], for --methods; give the same, or another '
            "folder",
        ),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_before_any_work(tdc, words, line):
    Path("out").mkdir()
    choice, grid = experiment.plan(experiment.get("tiny"), seeds=1)
    settings = {
        "suite": "tiny",
        "methods": list(choice.methods),
        "ratios": list(choice.ratios),
        "seeds": 1,
        "data": None,
        "threads": 1,
        "timeout": 3600.0,
        "version": __version__,
    }
    with results.begin(Path("out"), grid, settings):
        pass
    before = Path("out/results.json").read_bytes()
    done = tdc("bench", "tiny", "-o", "out", *words)
    assert (done.exit_code, done.stderr) == (2, line + "\n") and Path("out/results.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "tdc: no suite was given; 'tdc bench --list' names them; see 'tdc bench --help'"),
        (("tiny",), "tdc: no folder for the results was given; try -o FOLDER; see 'tdc bench --help'"),
        (
            ("tinny", "-o", "out"),
            f"tdc: no suite 'tinny'; did you mean tiny? there are: {', '.join([*experiment.SUITES, 'tiny'])}",
        ),
        (("tiny", "-o", "a.png"), "tdc: a.png: is a file; give a folder for the results"),
        (("tiny", "-o", "a.png/out"), "tdc: a.png/out: a.png is a file, no folder; name another place"),
        (("tiny", "-o", ""), "tdc: Invalid value for '-o' / '--output': the name is empty; see 'tdc bench --help'"),
        (("smoke", "-o", "out", "--methods", "field"), "tdc: suite smoke has methods of its own; leave out --methods"),
        (
            ("tiny", "-o", "out", "--ratios", "0.5,1"),
            "tdc: Invalid value for '--ratios': 1.0 is not in the range 0<=x<1; see 'tdc bench --help'",
        ),
        (
            ("tiny", "-o", "out", "--ratios", "0.7,,0.9"),
            "tdc: Invalid value for '--ratios': '0.7,,0.9' is not of the form 0.7,0.9; see 'tdc bench --help'",
        ),
        (
            ("tiny", "-o", "out", "--methods", ",field"),
            "tdc: Invalid value for '--methods': ',field' is not of the form a,b; see 'tdc bench --help'",
        ),
        (
            ("tiny", "-o", "out", "--methods", "field,field"),
            "tdc: Invalid value for '--methods': 'field,field' names something twice; see 'tdc bench --help'",
        ),
        (("images", "-o", "out", "--data", "nowhere"), "tdc: nowhere: no such folder"),
        (
            ("tiny", "-o", "out", "--data", "."),
            "tdc: suite tiny has data of its own; leave out --data; see 'tdc bench --help'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tdc, words, line):
    done = tdc("bench", *words)
    assert (done.exit_code, done.stderr) == (2, line + "\n") and not Path("out").exists()


def test_results_that_cannot_be_read_are_told(tdc):
    Path("out").mkdir()
    Path("out/other.txt").write_text("x")
    done = tdc("bench", "tiny", "-o", "out", "--resume")
    assert (done.exit_code, done.stderr) == (
        2,
        "tdc: out: has no results.json, so it is no run to go on with; give another folder\n",
    )
    line = "tdc: out/results.json: no results of tdc bench, or damaged; give another folder\n"
    for content in (
        "{",
        '{"x',
        "[]",
        "3",
        '{"schema": "tdc-bench/1"}',
        '{"schema": "tdc-bench/1", "settings": 5, "records": []}',
    ):
        Path("out/results.json").write_text(content)
        done = tdc("bench", "tiny", "-o", "out", "--resume")
        assert (done.exit_code, done.stderr) == (2, line), content
    Path("out/results.json").write_text('{"schema": "tdc-bench/0", "settings": {}, "records": []}')
    done = tdc("bench", "tiny", "-o", "out", "--resume")
    assert done.stderr == "tdc: out/results.json: has the layout tdc-bench/0, not tdc-bench/1; give another folder\n"


def test_records_that_are_damaged_are_told(tdc):
    words = ("bench", "tiny", "-o", "out", "--seeds", "1", "--ratios", "0.5")
    assert tdc(*words).exit_code == 0
    path = Path("out/results.json")
    whole = json.loads(path.read_text(encoding="utf-8"))
    first = whole["records"][0]
    for damaged in (
        3,
        {**first, "metrics": None},
        {**first, "metrics": {"rre": "x"}},
        {**first, "status": "well"},
        {**first, "seconds": "1"},
        {key: value for key, value in first.items() if key != "metrics"},
    ):
        path.write_text(json.dumps(whole | {"records": [damaged, *whole["records"][1:]]}))
        done = tdc(*words, "--resume")
        line = "tdc: out/results.json: no results of tdc bench, or damaged; give another folder\n"
        assert (done.exit_code, done.stderr) == (2, line), damaged


def test_a_suite_without_media_leaves_the_folder_alone(tdc, monkeypatch):
    monkeypatch.setenv("TDC_BENCH_DATA", "nowhere")  # for the suites that take some
    done = tdc("bench", "tiny", "-o", "out", "--seeds", "1", "--ratios", "0.5", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["settings"]["data"] is None


def test_the_list_follows_the_options(tdc):
    done = tdc("bench", "--list")
    assert done.exit_code == 0 and "tiny" in done.stdout and "(8 runs, about 4.0 h of one core)" in done.stdout
    (row,) = json.loads(tdc("bench", "tiny", "--list", "--seeds", "1", "--methods", "linear", "--json").stdout)
    assert row == {"name": "tiny", "summary": "for tests", "runs": 2, "seeds": 1, "hours": 1.0}
    assert tdc("bench", "--list", "--seeds", "1").exit_code == 0
    assert all(f"`{name}`" in Path(__file__).parent.parent.joinpath("docs/bench.md").read_text(encoding="utf-8")
               for name in experiment.SUITES if name != "tiny")  # fmt: skip


def _smoke(found, status="done"):
    """Records of the suite smoke with these metrics for `field` on a photograph."""
    cell = next(cell for cell in smoke.cells(smoke.DEFAULTS) if cell.method == "field")
    return [
        cells.record(
            "smoke", cell, cells.Outcome(found, 1.0), status=status, error=None if status == "done" else "no memory"
        )
    ]


def test_smoke_tells_a_broken_bound_and_a_failure():
    assert smoke.check(_smoke({"psnr": 25.0, "coverage": 0.9})) == []
    assert smoke.check(_smoke({"psnr": 10.0, "coverage": 0.9})) == [
        "psnr of field on astronaut is 10, not within 21 and 60"
    ]
    assert smoke.check(_smoke({"psnr": float("nan"), "coverage": 0.9})) == [
        "field on astronaut failed: it gave no psnr"
    ]
    assert smoke.check(_smoke({}, "failed"))[0] == "field on astronaut failed: no memory"
    assert "NO" in smoke.tables(_smoke({"psnr": 10.0, "coverage": 0.9}))[0].rows[0]


def test_smoke_passes_here_and_fails_with_exit_code_1(tdc, monkeypatch):
    done = tdc("bench", "smoke", "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert "6 runs of suite smoke, " in done.stdout and "failed" not in done.stdout
    monkeypatch.setitem(smoke.BOUNDS, ("field", "picture", "psnr"), (90.0, 99.0))
    done = tdc("bench", "smoke", "-o", "out", "--resume")
    assert (
        done.exit_code == 1
        and done.stderr.startswith("tdc: psnr of field on astronaut is ")
        and done.stderr.count("\n") == 1
    )


def test_peak_memory_counts_what_was_freed():
    with memory.peak() as used:
        held = np.ones(40 << 20, dtype=np.uint8)
        del held
    with memory.peak() as nothing:
        pass
    assert 38 << 20 < used.bytes < 60 << 20 and nothing.bytes < 5 << 20


def test_samples_are_photographs():
    for name in samples.NAMES:
        picture = samples.photograph(name, 64)
        assert picture.shape[:2] == (64, 64) and picture.dtype == np.uint8 and picture.std() > 20
    assert samples.photograph("camera", 32).ndim == 2


def _record(method, seed, rre, data="a", ratio=0.7, parameters=None):
    """A record with one figure, None for a failure."""
    cell = cells.Cell(method, data, ratio, seed, {"kind": "zero"}, parameters or {})
    if rre is None:
        return cells.record("s", cell, status="failed", error="broke down")
    return cells.record("s", cell, cells.Outcome({"rre": rre}, 1.0))


def test_means_are_over_seeds_after_the_data_of_each():
    held = [_record("a", 0, 1.0), _record("a", 0, 3.0, "b"), _record("a", 1, 4.0), _record("a", 2, None)]
    found = tables.mean(held, "rre")
    assert (found.value, found.error, found.failed) == (3.0, 1.0, 1) and found.text(2) == "3.00 ± 1.00 (1 failed)"
    assert tables.mean(held[:1], "rre").text(2) == "1.00" and tables.mean(held[3:], "rre").text(2) == DASH
    assert tables.mean(held, "seconds").value == 1.0


def test_a_comparison_marks_the_best_that_never_failed():
    held = [
        _record("a", 0, 2.0),
        _record("b", 0, 3.0),
        _record("c", 0, 1.0),
        _record("c", 1, None),
        _record("a", 0, 9.0, ratio=0.8),
        _record("b", 0, 8.0, parameters={"rank": 3}),
    ]
    columns = [tables.Column("70 %", {"ratio": 0.7, "kind": "zero"}), tables.Column("80 %", {"ratio": 0.8})]
    made = tables.comparison("t", "T", held, "rre", columns, digits=1)
    assert made.rows == (
        ("a", "2.0", "9.0"),
        ("b", "3.0", DASH),
        ("c", "1.0 (1 failed)", DASH),
        ("b (rank=3)", "8.0", DASH),
    )
    assert made.best == {(0, 1), (0, 2)}
    made = tables.comparison("t", "T", held, "rre", columns[:1], higher=True)
    assert made.best == {(3, 1)}


def test_the_standing_is_judged_by_differences_of_the_same_seeds():
    def standing(ours, theirs, higher=False):
        held = [_record("a", seed, value) for seed, value in enumerate(ours)] + [
            _record("b", seed, v) for seed, v in enumerate(theirs)
        ]
        return tables.standing("t", "T", held, "rre", [tables.Column("all")], "a", higher=higher, digits=2).rows[0]

    single = tables.standing("t", "T", [_record("a", 0, 1.0), _record("b", 0, 2.0)], "rre", [tables.Column("all")], "a")
    assert single.rows[0][5] == "ahead" and single.notes[0].startswith("One seed, so no standard error")
    assert standing([1.0, 2.0], [1.5, 2.5])[2:] == ("b", "2.00 ± 0.50", "0.50 ± 0.00", "ahead")
    assert standing([1.0, 2.0], [0.9, 1.9])[5] == "behind", "always a little worse"
    assert standing([1.0, 2.0], [0.5, 2.4])[5] == "level"
    assert standing([1.0, 2.0], [0.9, 1.9], higher=True)[5] == "ahead"
    assert standing([1.0, None], [2.0, 2.0])[5] == "behind", "a failure is none to be proud of"
    assert standing([1.0, 1.0], [None, None])[2:] == (DASH, DASH, DASH, DASH)
    assert tables.standing("t", "T", [_record("a", 0, 1.0)], "rre", [tables.Column("all")], "a") is None


def test_markdown_marks_the_best_and_keeps_bars_apart():
    table = Table("t", "Title", ("a|b", "c"), (("x", "1"),), frozenset({(0, 1)}), ("A note.",))
    assert tables.markdown(table) == "### Title\n\n| a\\|b | c |\n|---|---|\n| x | **1** |\n\nA note.\n"
