"""What a run may replace or remove: what a run of this program has written, as it is at that moment, and nothing that
is read.
"""

import json
import os
from functools import wraps
from pathlib import Path

import numpy as np
import pytest
from conftest import smooth
from PIL import Image

from tdc_cli.methods import exemplar, nearest

CLIP = ["complete-video", "in", "-o", "out", "--method", "nearest", "--threads", "1"]
HOLES = ["--missing-ratio", "0.3"]
PICTURES = ["complete-image", "in", "-o", "out", "--method", "nearest", *HOLES]


@pytest.fixture
def frames(folder):
    """Folder `in` with three frames, which are pictures as well."""
    Path("in").mkdir()
    for k in range(3):
        Image.fromarray(np.roll(smooth(20, 24), k, axis=1)).save(f"in/{k}.png")
    return folder


def refused(result, words, code=2):
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (code, f"tdc: {words}")


def tree():
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def meanwhile(monkeypatch, act, method=nearest):
    """Have something happen when the work of a method begins, the first time only."""
    plain, happened = method.complete, []

    @wraps(plain)
    def complete(*args, **more):
        if not happened:
            happened.append(True)
            act()
        return plain(*args, **more)

    monkeypatch.setattr(method, "complete", complete)


# -- folders of frames
# ----------------------------------------------------------------------------------------------------------


def test_a_folder_of_frames_is_replaced_by_the_next_run(tdc, frames):
    assert tdc(*CLIP, *HOLES).exit_code == 0
    before = tree()
    assert tdc(*CLIP, *HOLES, "--seed", "1", "--overwrite").exit_code == 0
    after = tree()
    assert before.keys() == after.keys() and all(before[f"out/{k}.png"] != after[f"out/{k}.png"] for k in range(3))


@pytest.mark.parametrize("change", ["added", "altered", "linked", "folder", "no list"])
def test_a_folder_with_anything_that_no_run_has_written_stays(tdc, frames, change):
    assert tdc(*CLIP, *HOLES).exit_code == 0
    name = {"added": "mine.txt", "altered": "1.png", "linked": "0.png", "folder": "more", "no list": "0.png"}[change]
    path = Path("out") / name
    if change == "added":
        path.write_text("mine")
    elif change == "altered":
        Image.fromarray(smooth(20, 24)).save(path)
    elif change == "linked":
        os.replace(path, "moved.png")
        path.symlink_to(Path("moved.png").absolute())
    elif change == "folder":
        path.mkdir()
    else:
        os.remove("out/.tdc-contents.json")
    before = tree()
    words = (
        f"out: holds {name}, which no run of tdc has written as it is; "
        "give an empty folder or a new name, or remove what is there"
    )
    refused(tdc(*CLIP, *HOLES, "--overwrite"), words)
    assert tree() == before


def test_a_mask_in_the_folder_of_frames_stays(tdc, frames):
    assert tdc(*CLIP, *HOLES).exit_code == 0
    os.replace("m.png", "out/m.png")
    before = tree()
    refused(tdc(*CLIP, "--mask", "out/m.png", "--overwrite"), "out: holds out/m.png, the mask; name another folder")
    assert tree() == before


def test_frames_that_are_reached_through_links_stay(tdc, frames):
    assert tdc(*CLIP, *HOLES).exit_code == 0
    Path("linked").mkdir()
    for k in range(3):
        Path(f"linked/{k}.png").symlink_to(f"../out/{k}.png")
    before = tree()
    words = [*CLIP, *HOLES, "--overwrite"]
    words[1] = "linked"
    result = tdc(*words)
    assert result.exit_code == 2 and "which is read by this run; name another place" in result.stderr
    assert tree() == before


def test_what_comes_into_a_folder_while_it_is_replaced_is_kept(tdc, frames, monkeypatch):
    assert tdc(*CLIP, *HOLES).exit_code == 0
    meanwhile(monkeypatch, lambda: Path("out/mine.txt").write_text("mine"))
    before = Path("out/0.png").read_bytes()
    result = tdc(*CLIP, *HOLES, "--seed", "1", "--overwrite")
    refused(
        result,
        "out: holds mine.txt, which no run of tdc has written as it is; "
        "give an empty folder or a new name, or remove what is there",
        code=1,
    )
    assert Path("out/mine.txt").read_text() == "mine" and Path("out/0.png").read_bytes() == before


def test_a_work_folder_that_is_a_link_is_refused(tdc, frames):
    Path("mine").mkdir()
    np.savez("mine/00000000-00000002_00000000-00000020_00000000-00000024.npz", a=np.zeros(2))
    Path(".out.tdc-work").symlink_to("mine")
    before = tree()
    result = tdc(*CLIP, *HOLES)
    assert result.exit_code == 2 and "which is a link; move it away, or name another output" in result.stderr
    assert tree() == before


def test_other_files_in_a_work_folder_stay(tdc, frames):
    Path(".out.tdc-work").mkdir()
    np.savez(".out.tdc-work/mine.npz", a=np.zeros(2))
    assert tdc(*CLIP, *HOLES).exit_code == 0
    assert os.listdir(".out.tdc-work") == ["mine.npz"]


def test_resume_of_what_is_finished_is_done(tdc, frames):
    words = [*CLIP, *HOLES, "--report", "r.json"]
    assert tdc(*words).exit_code == 0
    before = tree()
    result = tdc(*words, "--resume")
    assert (result.exit_code, result.stderr) == (0, "tdc: note: out: exists already and is skipped\n")
    assert tdc(*words, "--resume", "--quiet").stderr == ""
    assert tree() == before
    os.remove("r.json")
    refused(tdc(*words, "--resume"), "out: exists already; give --overwrite to replace it")


# -- files
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r/summary.json", "r/summary.csv", "p/index.html"])
@pytest.mark.parametrize("how", ["--skip-existing", "--overwrite"])
def test_a_summary_or_index_that_no_run_has_written_stays(tdc, frames, name, how):
    words = [*PICTURES, "--report", "r", "--html", "p", how]
    assert tdc(*words).exit_code == 0
    Path(name).write_text("<!DOCTYPE html><p>mine</p>")
    before = tree()
    refused(tdc(*words), f"{name}: is there and no run of tdc has written it; move it away, or name another folder")
    assert tree() == before


def test_a_summary_that_comes_while_the_folder_is_worked_on_stays(tdc, frames, monkeypatch):
    def put():
        Path("r").mkdir(exist_ok=True)
        Path("r/summary.json").write_text("mine")

    meanwhile(monkeypatch, put)
    result = tdc(*PICTURES, "--report", "r", "--skip-existing")
    assert result.exit_code == 3 and "r/summary.json: exists already" in result.stderr
    assert Path("r/summary.json").read_text() == "mine" and len(os.listdir("out")) == 3


def test_a_further_result_that_no_run_has_written_stays(tdc, frames):
    Path("r").mkdir()
    Path("r/1.png.json").write_text("mine")
    result = tdc(*PICTURES, "--report", "r", "--skip-existing")
    assert result.exit_code == 3 and "r/1.png.json: exists already" in result.stderr
    assert Path("r/1.png.json").read_text() == "mine" and sorted(os.listdir("out")) == ["0.png", "2.png"]


@pytest.mark.parametrize("option", ["-o", "--report", "--panel", "--uncertainty", "--html", "--save-incomplete"])
def test_no_result_takes_the_place_of_a_configuration_file(tdc, folder, option):
    name = {"-o": "c.png", "--report": "c.json", "--html": "c.html"}.get(option, "c.png")
    Path(name).write_text("[complete-image]\nseed = 3\n")
    before = tree()
    outputs = [option, name] + ([] if option == "-o" else ["-o", "b.png"])
    words = ["complete-image", "a.png", *outputs, "--mask", "m.png", "--method", "field", "--overwrite"]
    refused(tdc("--config", name, *words), f"{name}: is the configuration itself; name another file")
    assert tree() == before


def test_no_summary_takes_the_place_of_a_configuration_file(tdc, frames):
    Path("r").mkdir()
    for name in ("r/summary.json", "r/0.png.json"):
        Path(name).write_text("[complete-image]\nseed = 3\n")
        before = tree()
        result = tdc("--config", name, *PICTURES, "--report", "r", "--overwrite")
        assert result.exit_code == 2 and name in result.stderr
        assert tree() == before
        os.remove(name)


def test_no_result_of_experiments_takes_the_place_of_a_configuration_file(tdc, folder):
    Path("c.json").write_text("[synth]\nseed = 3\n")
    refused(
        tdc("--config", "c.json", "synth", "--report", "c.json", "--overwrite"),
        "c.json: is the configuration itself; name another file",
    )
    assert Path("c.json").read_text() == "[synth]\nseed = 3\n"


def test_a_result_never_takes_the_place_of_what_is_read_whatever_its_name(tdc, frames):
    os.link("in/0.png", "0.png")
    Path("out").mkdir()
    os.link("0.png", "out/1.png")
    before = tree()
    result = tdc(*PICTURES, "--overwrite")
    refused(result, "out/1.png: is one of the inputs itself; name another folder")
    assert tree() == before


def test_a_name_that_becomes_that_of_the_input_is_not_replaced(tdc, folder, monkeypatch):
    def put():
        os.symlink("a.png", "b.png")

    meanwhile(monkeypatch, put)
    before = Path("a.png").read_bytes()
    result = tdc("complete-image", "a.png", "-o", "b.png", "--mask", "m.png", "--method", "nearest", "--overwrite")
    refused(result, "b.png: is read by this run; name another place", code=1)
    assert Path("a.png").read_bytes() == before and os.path.islink("b.png")


# -- a source that changes
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", ["a.png", "m.png", "s.png", "t.png"])
@pytest.mark.parametrize("how", ["written", "replaced", "removed"])
def test_a_picture_that_is_changed_while_it_is_worked_on_gives_nothing(tdc, folder, monkeypatch, changed, how):
    Image.fromarray(np.full((20, 24), 255, np.uint8)).save("s.png")
    Image.fromarray(smooth(20, 24)).save("t.png")

    def act():
        if how == "written":
            with open(changed, "ab") as file:
                file.write(b"more")
        elif how == "replaced":
            Path("new").write_bytes(Path(changed).read_bytes())
            os.replace("new", changed)
        else:
            os.remove(changed)

    words = ["--mask", "m.png", "--reference", "t.png", "--method", "nearest", "--report", "r.json"]
    if changed == "s.png":  # which only this method takes
        words = ["--mask", "m.png", "--source", "s.png", "--method", "exemplar", "--report", "r.json"]
    meanwhile(monkeypatch, act, exemplar if changed == "s.png" else nearest)
    result = tdc("complete-image", "a.png", "-o", "b.png", *words)
    refused(
        result,
        f"{changed}: was changed while it was worked on, so that nothing is written; run again when it is left alone",
        code=1,
    )
    assert not Path("b.png").exists() and not Path("r.json").exists()
    assert not [path for path in os.listdir() if path.startswith(".tdc")]


@pytest.mark.parametrize("act", ["written", "replaced", "removed", "added"])
def test_frames_that_are_changed_while_they_are_worked_on_give_nothing(tdc, frames, monkeypatch, act):
    def change():
        if act == "written":
            Image.fromarray(smooth(20, 24)).save("in/2.png")
        elif act == "replaced":
            os.replace("in/1.png", "in/2.png")
        elif act == "removed":
            os.remove("in/0.png")
        else:
            Image.fromarray(smooth(20, 24)).save("in/3.png")

    meanwhile(monkeypatch, change)
    result = tdc(*CLIP, *HOLES, "--chunk", "1", "--report", "r.json")
    changed = "in/2.png" if act == "written" else "in"
    refused(result, f"{changed}: was changed while it was worked on, so that nothing is written; run again when it is "
                    "left alone", code=1)
    assert not Path("out").exists() and not Path("r.json").exists() and not Path(".out.tdc-work").exists()


def test_a_clip_that_is_rewritten_while_it_is_worked_on_gives_nothing(tdc, folder, monkeypatch):
    np.save("c.npy", np.random.default_rng(0).random((4, 8, 9)))
    meanwhile(monkeypatch, lambda: np.save("c.npy", np.zeros((4, 8, 9))))
    words = ["complete-video", "c.npy", "-o", "d.npy", *HOLES, "--method", "nearest", "--chunk", "2"]
    words_of = "c.npy: was changed while it was worked on, so that nothing is written; run again when it is left alone"
    refused(tdc(*words), words_of, code=1)
    assert not Path("d.npy").exists() and not Path(".d.npy.tdc-work").exists()


def test_a_picture_of_a_folder_that_is_changed_is_a_failure_of_its_own(tdc, frames, monkeypatch):
    meanwhile(monkeypatch, lambda: Path("in/0.png").write_bytes(Path("in/1.png").read_bytes()))
    result = tdc(*PICTURES, "--json")
    assert result.exit_code == 3 and json.loads(result.stdout)["counts"]["failed"] == 1
    assert "in/0.png: was changed while it was worked on" in result.stderr and sorted(os.listdir("out")) == [
        "1.png",
        "2.png",
    ]
