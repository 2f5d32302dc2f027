"""Finished regions of a run that was stopped: taken by the next one only where they are whole and of the same input and
options.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from tdc_cli.errors import TdcError
from tdc_cli.run import regions
from tdc_cli.run.store import Folder

CLIP = [
    "complete-video",
    "c.npy",
    "-o",
    "b.npy",
    "--method",
    "nearest",
    "--missing-ratio",
    "0.3",
    "--chunk",
    "2",
    "--threads",
    "1",
]


@pytest.fixture
def stopped(tdc, monkeypatch):
    """Run that fails when two of three regions of `c.npy` are kept; what one that is not stopped gives is in
    `whole.npy`.
    """
    np.save("c.npy", np.random.default_rng(0).random((6, 8, 9)))
    whole = [word.replace("b.npy", "whole.npy") for word in CLIP]
    assert tdc(*whole).exit_code == 0
    save, kept = Folder.save, []

    def some(self, region, *finished):
        if len(kept) == 2:
            raise TdcError("stopped")
        kept.append(region)
        save(self, region, *finished)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "save", some)
        assert tdc(*CLIP).exit_code == 1
    return sorted(Path(".b.npy.tdc-work").glob("*.npz"))


@pytest.fixture
def saved(monkeypatch):
    """First frames of the regions that are done."""
    save, done = Folder.save, []
    monkeypatch.setattr(
        Folder, "save", lambda self, region, *more: (done.append(region.first), save(self, region, *more))[1]
    )
    return done


def rewritten(path, change):
    """Write the arrays of a region anew, after a change."""
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez_compressed(path, **arrays)


def test_a_run_goes_on_with_what_is_kept(tdc, stopped, saved):
    assert len(stopped) == 2
    assert tdc(*CLIP, "--resume").exit_code == 0
    assert saved == [4] and Path("b.npy").read_bytes() == Path("whole.npy").read_bytes()
    assert not Path(".b.npy.tdc-work").exists()


@pytest.mark.parametrize("change", [
    lambda arrays: arrays.pop("facts"),
    lambda arrays: arrays.update(facts=np.array("{")),
    lambda arrays: arrays.update(facts=np.array("")),
], ids=["no facts", "half a fact", "empty"])  # fmt: skip
def test_a_region_without_its_facts_is_done_again(tdc, stopped, saved, change):
    rewritten(stopped[1], change)
    result = tdc(*CLIP, "--resume", "--report", "r.json")
    assert result.exit_code == 0, result.stderr
    assert saved == [2, 4] and Path("b.npy").read_bytes() == Path("whole.npy").read_bytes()


@pytest.mark.parametrize("damage", ["cut short", "a bit", "empty"])
def test_a_damaged_region_is_done_again(tdc, stopped, saved, damage):
    content = bytearray(stopped[0].read_bytes())
    if damage == "a bit":
        content[content.index(b"values.npy") + 60] ^= 4
    stopped[0].write_bytes({"cut short": content[: len(content) // 2], "a bit": content, "empty": b""}[damage])
    assert tdc(*CLIP, "--resume").exit_code == 0
    assert saved == [0, 4] and Path("b.npy").read_bytes() == Path("whole.npy").read_bytes()


@pytest.mark.parametrize("mark", [None, "", "{}"])
def test_regions_without_what_they_depend_on_are_done_again(tdc, stopped, saved, mark):
    """Other options, and no fingerprint that would tell: nothing of the earlier run may come into the result."""
    path = Path(".b.npy.tdc-work/run.json")
    if mark is None:
        os.remove(path)
    else:
        path.write_text(mark)
    words = [*CLIP, "--seed", "5"]
    result = tdc(*words, "--resume")
    if mark is None:
        assert result.exit_code == 0 and saved == [0, 2, 4]
    else:
        assert result.exit_code == 2 and "are of another input, other options or another version" in result.stderr
        assert tdc(*words, "--overwrite").exit_code == 0
    expected = [word.replace("b.npy", "other.npy") for word in words]
    assert tdc(*expected).exit_code == 0
    assert Path("b.npy").read_bytes() == Path("other.npy").read_bytes() != Path("whole.npy").read_bytes()


def test_regions_of_another_input_are_refused(tdc, stopped):
    values = np.load("c.npy")
    values[5] += 1
    np.save("c.npy", values)
    result = tdc(*CLIP, "--resume")
    assert result.exit_code == 2 and "are of another input" in result.stderr


def test_a_method_sees_the_frames_beside_a_region():
    made = regions.divide(range(3, 40), 0, 40, 10, 4, (6, 8))
    assert made[0].first == 3 and made[-1].end == 40
    for each in made:
        assert (each.start, each.stop) == (max(0, each.first - 4), min(40, each.end + 4))
