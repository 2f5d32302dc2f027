"""Killed before each call that links, renames or removes something: nothing is lost, nothing is half there, the next
run clears up.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, smooth
from PIL import Image

TOOL = Path(__file__).with_name("killed.py")
NEAREST = ["--method", "nearest", "--missing-ratio", "0.3", "--threads", "1"]
PICTURE = ["complete-image", "a.png", "-o", "out/b.png", "--report", "r/b.json", *NEAREST]
CLIP = ["complete-video", "in", "-o", "out", "--report", "r.json", "--chunk", "2", *NEAREST]


def tdc(*words, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "tdc_cli", *words], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def start(folder):
    """Folder `start` with a picture and a clip."""
    for name in ("start/out", "start/r", "start/in"):
        Path(name).mkdir(parents=True)
    shutil.copy("a.png", "start/a.png")
    for k in range(3):
        Image.fromarray(np.roll(smooth(10, 12), k, axis=1)).save(f"start/in/{k}.png")
    return folder / "start"


def ends(first, then, exchange="yes"):
    """What every kill has left, and what the run after it has made of that."""
    environment = os.environ | {"TDC_TEST_EXCHANGE": exchange, "PYTHONPATH": os.pathsep.join(sys.path + [str(ROOT)])}
    words = [sys.executable, str(TOOL), json.dumps(["start", first, then])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["code"] for each in found] == [9] * (len(found) - 1) + [0] and len(found) > 8
    return found


def seed_of(report):
    return json.loads(report.encode("latin-1"))["seed"]


def visible(tree):
    return {
        name: content for name, content in tree.items() if not any(part.startswith(".") for part in Path(name).parts)
    }


def leftovers(tree):
    return [
        name for name in tree if any(part.startswith(".") and part != ".tdc-contents.json" for part in Path(name).parts)
    ]


def test_a_picture_and_its_report_are_of_one_run_after_the_next(start):
    tdc(*PICTURE, cwd=start)
    old = (start / "out/b.png").read_bytes().decode("latin-1")
    found = ends([*PICTURE, "--seed", "1", "--overwrite"], [*PICTURE, "--seed", "1", "--skip-existing"])
    new = found[-1]["left"]["out/b.png"]
    assert old != new
    seeds = []
    for each in found:
        assert each["left"]["out/b.png"] in (old, new) and each["left"].keys() >= {"a.png", "r/b.json"}
        made = each["made"]
        assert each["after"] == 0 and not leftovers(made) and visible(made).keys() == visible(found[-1]["made"]).keys()
        seeds.append(seed_of(made["r/b.json"]))
        assert made["out/b.png"] == (new if seeds[-1] else old)
    assert seeds == sorted(seeds) and set(seeds) == {0, 1}


@pytest.mark.parametrize("exchange", ["yes", "no"])
def test_a_folder_of_frames_is_never_away_and_never_half_there(start, exchange):
    tdc(*CLIP, cwd=start)
    names = [f"out/{k}.png" for k in range(3)]
    old = [(start / name).read_bytes().decode("latin-1") for name in names]
    found = ends([*CLIP, "--seed", "1", "--overwrite"], [*CLIP, "--seed", "1", "--resume"], exchange)
    new = [found[-1]["left"][name] for name in names]
    assert old != new
    for each in found:
        there = [each["left"].get(name) for name in names]
        assert there in (old, new) or (exchange == "no" and there == [None] * 3)
        if (
            each["code"] == 9 and there == old
        ):  # before the journal: the old result stays, beside what can be gone on with
            assert each["after"] in (0, 2)
        if each["after"] == 0:
            made = each["made"]
            assert not leftovers(made)
            assert [made[name] for name in names] == (new if seed_of(made["r.json"]) else old)
    assert found[-1]["after"] == 0 and sum(each["after"] == 0 for each in found) > 4


def test_what_is_left_is_swept_by_a_run_that_begins_anew(start):
    tdc(*CLIP, cwd=start)
    again = [*CLIP, "--seed", "1", "--overwrite"]
    for each in ends(again, again):
        assert each["after"] == 0 and not leftovers(each["made"])
