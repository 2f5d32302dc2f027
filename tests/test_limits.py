"""Limits of memory, a current folder that has gone, streams that nobody holds, variables of a shell: one line each, and
an end.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import smooth
from PIL import Image

from tdc_cli import memory

SCRIPT = str(Path(sys.executable).with_name("tdc"))
NEAREST = ["--method", "nearest", "--missing-ratio", "0.3", "--threads", "1"]
COMPLETE = ["complete-image", "a.png", "-o", "b.png", *NEAREST]


def limited(megabytes, *words):
    """Run the installed program with a limit of its address space."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes * 10**6,) * 2)  # noqa: E731
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=120, preexec_fn=limit)


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Function that sets the limit of a control group, and what it takes already."""

    def set_to(most, taken=0):
        for name, value in (("max", most), ("current", taken)):
            (tmp_path / f"memory.{name}").write_text(f"{value}\n")
        monkeypatch.setattr(memory, "_GROUPS", ((tmp_path / "memory.max", tmp_path / "memory.current"),))

    return set_to


# -- memory
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("megabytes", [200, 250, 300])
def test_too_little_for_the_libraries_is_one_line(folder, megabytes, jobs):
    for name in ("in/a.png", "in/b.png"):
        Path("in").mkdir(exist_ok=True)
        Image.fromarray(smooth(20, 24)).save(name)
    words = [["complete-image", "in", "-o", "out", *NEAREST, "--jobs", jobs], COMPLETE][jobs == "1"]
    done = limited(megabytes, *words)
    line = (
        f"tdc: this process may map {megabytes} MB (ulimit -v), "
        "and the libraries alone take up to 500 MB; raise the limit\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    assert not Path("b.png").exists() and not Path("out").exists()


def test_too_little_for_compiled_methods_is_one_line(folder):
    done = limited(
        700, "complete-image", "a.png", "-o", "b.png", "--method", "auto", "--missing-ratio", "0.3", "--threads", "1"
    )
    line = "tdc: this process may map 700 MB (ulimit -v), and the libraries alone take up to 900 MB; raise the limit\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize("words", [["methods"], ["--help"], ["complete-image", "--help"], ["--version"]])
def test_what_needs_no_library_needs_no_room(folder, words):
    assert limited(200, *words).returncode == 0


def test_a_picture_that_would_need_more_than_the_limit_is_refused_before_the_work(folder):
    Image.new("RGB", (3000, 2000), (9, 8, 7)).save("large.png")
    words = [
        "complete-image",
        "large.png",
        "-o",
        "b.png",
        "--method",
        "linear",
        "--missing-ratio",
        "0.3",
        "--threads",
        "1",
    ]
    done = limited(1000, *words, "--region", "whole")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    words = (
        "works on the whole at once and takes about 6.2 GB of memory, "
        "more than the 500 MB that it may take; give --memory"
    )
    assert words in done.stderr and not Path("b.png").exists()


def test_a_control_group_limits_as_the_machine_does(tdc, group):
    group(10**6)
    result = tdc(*COMPLETE)
    assert (
        result.exit_code == 2
        and "of memory in regions of 128 pixels, and may take 10 MB; give --memory" in result.stderr
    )
    assert not Path("b.png").exists()
    group("max")  # no limit
    assert tdc(*COMPLETE).exit_code == 0


def test_what_a_control_group_takes_already_is_not_free(group):
    group(5_000_000, 3_000_000)
    assert memory.free() == 2_000_000 and memory.budget(None) == 1_000_000
    group(5_000_000, 6_000_000)
    assert memory.free() == 0


@pytest.mark.parametrize(
    "error",
    [
        OSError("Could not find/load shared object file 'libllvmlite.so'"),
        RuntimeError("can't start new thread"),
        MemoryError(),
        ImportError("libscipy_openblas.so: failed to map segment from shared object"),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_a_library_without_memory_is_told_as_such(tdc, monkeypatch, error, many):
    from tdc_cli.methods import nearest

    def complete(*args, **more):
        raise error

    monkeypatch.setattr(nearest, "complete", complete)
    Path("in").mkdir()
    os.link("a.png", "in/a.png")
    words = ["complete-image", "in", "-o", "out", *NEAREST] if many else COMPLETE
    result = tdc(*words)
    assert (
        result.exit_code == (3 if many else 1)
        and "not enough memory; try" in result.stderr
        and "unexpected" not in result.stderr
    )
    assert "standard output" not in result.stderr


# -- a current folder that has gone, variables, streams
# -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [
    COMPLETE, ["complete-image", "-", "-o", "-", *NEAREST], ["complete-video", "a", "-o", "b", *NEAREST],
    ["complete-tensor", "a.npy", "-o", "b.npy", *NEAREST], ["synth"], ["bench", "smoke", "-o", "x"], ["methods"],
])  # fmt: skip
def test_a_current_folder_that_has_gone_is_one_line(tmp_path, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", gone, SCRIPT, *words], capture_output=True, text=True, timeout=120, input=""
    )
    assert (
        done.returncode == 2 and done.stderr == "tdc: the current folder is not there any more; change to another one\n"
    )


@pytest.mark.parametrize("value", ["bash_complete", "zsh_complete", "fish_complete", "nosuch", "", "bash_nosuch", "_"])
def test_a_variable_of_shells_by_itself_changes_nothing(folder, value):
    environment = {name: text for name, text in os.environ.items() if not name.startswith("COMP_")}
    done = subprocess.run(
        [SCRIPT, "methods", "nearest"],
        env=environment | {"_TDC_COMPLETE": value},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout.startswith("nearest: ") and done.stderr == ""


@pytest.mark.parametrize("position", ["x", "-1", "", "99999999999999999999"])
def test_odd_positions_of_a_word_end_in_no_traceback(folder, position):
    variables = {"_TDC_COMPLETE": "bash_complete", "COMP_WORDS": "tdc meth", "COMP_CWORD": position}
    done = subprocess.run([SCRIPT], env=os.environ | variables, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["methods"], ["methods", "--json"], ["--help"], ["--version"], ["report-schema"], COMPLETE]
)
@pytest.mark.parametrize(
    ("where", "reason"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")]
)
def test_what_cannot_be_written_is_an_error(folder, words, where, reason):
    done = subprocess.run(
        ["bash", "-c", f'"$@" {where}', "bash", SCRIPT, *words], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, f"tdc: standard output: {reason}\n")
    if words is COMPLETE:
        assert np.asarray(Image.open("b.png")).shape == (20, 24, 3)


def test_who_wants_no_words_needs_no_standard_output(folder):
    done = subprocess.run(
        ["bash", "-c", '"$@" >&-', "bash", SCRIPT, *COMPLETE, "-q"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "") and Path("b.png").exists()
