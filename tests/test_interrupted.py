"""Signals at any moment: one line, one exit code, nothing half there; also where a library swallows what they raise."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, smooth
from PIL import Image

from tdc_cli.methods import biharmonic

TOOL = Path(__file__).with_name("interrupted.py")
NEAREST = ["--method", "nearest", "--missing-ratio", "0.3", "--threads", "1", "-q"]
RUNS = {
    "tiles": ["complete-image", "a.png", "-o", "out/b.png", "--report", "r/b.json", "--region", "32", *NEAREST],
    "clip": ["complete-video", "in", "-o", "out/c", "--report", "r/c.json", "--chunk", "2", *NEAREST],
    "folder": ["complete-image", "in", "-o", "out/d", "--report", "r/d", *NEAREST],
}
ENDS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}


@pytest.fixture
def start(folder):
    """Folder `start` with a picture that is divided and a folder of pictures."""
    for name in ("start/out", "start/r", "start/in"):
        Path(name).mkdir(parents=True)
    Image.fromarray(smooth(36, 48)).save("start/a.png")
    for k in range(3):
        Image.fromarray(np.roll(smooth(10, 12), k, axis=1)).save(f"start/in/{k}.png")


def hidden(names):
    return {name for name in names if any(part.startswith(".") for part in Path(name).parts)}


@pytest.mark.parametrize(
    ("what", "number", "offset"),
    [("tiles", signal.SIGINT, 5), ("clip", signal.SIGTERM, 23), ("folder", signal.SIGTERM, 3)],
)  # fmt: skip
def test_a_signal_at_any_moment_leaves_nothing_half_there(start, what, number, offset):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])}
    words = [sys.executable, str(TOOL), json.dumps(["start", RUNS[what], 24, offset, number])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    word, code = ENDS[number]
    assert len(found) == 24
    for each in found:
        # What comes when all is there, or after the last line, changes nothing any more.
        assert (each["code"], each["said"]) in ((code, f"tdc: {word}\n"), (0, "")), each
        left = hidden(each["left"]) - {"out/c/.tdc-contents.json"}
        finished = {name for name in left if name.endswith(".npz")}
        # Finished regions are kept to go on with, with what they belong to, and nothing else is.
        assert {Path(name).name for name in left - finished} <= ({"run.json"} if finished else set()), each["moment"]
        made = {name for name in each["left"] if name.startswith(("out/", "r/"))} - left
        if what == "clip":
            assert len(made - {"out/c/.tdc-contents.json"}) in (0, 4)
        if what == "tiles":
            assert made in (set(), {"out/b.png", "r/b.json"})
    assert {each["code"] for each in found} >= {code} and any(hidden(each["left"]) for each in found) == (
        what != "folder"
    )


def swallowed(number, then):
    """A method in which a signal is raised by a callback of C, which throws exceptions away; it ends by itself only if
    that was the last of it.
    """

    def complete(values, observed, config, *, rng, monitor, **further):
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            then(monitor)
        raise AssertionError("nobody has heard the signal")

    return complete


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_that_a_library_swallows_is_raised_again(complete, monkeypatch, number):
    monkeypatch.setattr(biharmonic, "complete", swallowed(number, lambda monitor: None))
    result = complete("--mask", "m.png")
    word, code = ENDS[number]
    assert (result.exit_code, result.stderr) == (code, f"tdc: {word}\n") and sorted(os.listdir()) == ["a.png", "m.png"]


@pytest.mark.parametrize("more", [[], ["-q"]])
def test_where_there_is_no_timer_it_is_raised_at_the_next_step(complete, monkeypatch, more):
    monkeypatch.delattr(signal, "setitimer")
    monkeypatch.setattr(biharmonic, "complete", swallowed(signal.SIGINT, lambda monitor: monitor(1, 2, "step")))
    result = complete("--mask", "m.png", *more)
    assert (result.exit_code, result.stderr) == (130, "tdc: interrupted\n")


def test_no_signal_is_raised_within_the_compiler(complete, monkeypatch):
    """What LLVM has freed before it is noted in Python would be freed again, and end the process with SIGSEGV."""
    steps, module = [], {"__name__": "llvmlite.binding.linker"}
    exec("def call(step):\n    step()\n    note()", module)
    module["note"] = lambda: steps.append("freed")

    def complete_compiling(*_, **__):
        module["call"](lambda: [signal.raise_signal(signal.SIGTERM), time.sleep(0.1)])
        begin = time.monotonic()
        while time.monotonic() < begin + 60:
            pass
        raise AssertionError("nobody has heard the signal")

    monkeypatch.setattr(biharmonic, "complete", complete_compiling)
    result = complete("--mask", "m.png")
    assert (result.exit_code, result.stderr, steps) == (143, "tdc: terminated\n", ["freed"])


def test_what_signals_do_afterwards_is_what_they_did_before(complete):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers], sys.unraisablehook
    assert complete("--mask", "m.png").exit_code == 0
    assert ([signal.getsignal(number) for number in numbers], sys.unraisablehook) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
