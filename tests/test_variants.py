"""Several answers to choose from: `--variants`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import pixels, report_of, smooth
from jsonschema import Draft202012Validator
from PIL import Image
from test_page_clip import Parsed, player, shown_by

from tdc_cli.errors import TdcError
from tdc_cli.run.report import SCHEMA
from tdc_cli.run.store import Folder


@pytest.fixture
def hole(folder):
    """`p.png`, 44x40 pixels of noise over smooth colours, and `hole.png`, too deep for an estimate; where it is."""
    noise = np.random.default_rng(0).integers(0, 60, (40, 44, 3)).astype(np.uint8)
    Image.fromarray(smooth(40, 44) // 2 + noise).save("p.png")
    mask = np.zeros((40, 44), np.uint8)
    mask[14:26, 14:28] = 255
    Image.fromarray(mask).save("hole.png")
    return mask > 0


def invent(tdc, output, *more):
    return tdc("complete-image", "p.png", "-o", output, "--mask", "hole.png", "--method", "exemplar", *more)


def test_each_answer_is_that_of_its_seed(tdc, hole):
    report = report_of(invent(tdc, "o.png", "--variants", 3, "--seed", 4, "--report", "r.json", "--json"))
    Draft202012Validator(SCHEMA).validate(report)
    assert report["variants"] == [{"path": f"o-{k + 1}.png", "seed": 4 + k} for k in range(3)]
    assert report["outputs"] == {"image": "o-1.png", "variant_2": "o-2.png", "variant_3": "o-3.png", "report": "r.json"}
    assert report["seed"] == 4
    answers = [pixels(f"o-{k}.png") for k in (1, 2, 3)]
    for k, answer in enumerate(answers):
        assert invent(tdc, f"alone{k}.png", "--seed", 4 + k).exit_code == 0
        assert np.array_equal(answer, pixels(f"alone{k}.png"))
        assert np.array_equal(answer[~hole], pixels("p.png")[~hole])
    assert (answers[0] != answers[1]).any() and (answers[1] != answers[2]).any()


def test_the_page_shows_the_answers_side_by_side(tdc, hole):
    done = invent(tdc, "o.png", "--variants", 2, "--html", "h.html")
    assert done.exit_code == 0, done.stderr
    assert "2 answers, of seeds 0 to 1" in done.stdout
    with open("h.html", encoding="utf-8") as file:
        page = file.read()
    first, second, incomplete = (page.index(f'data-name="{name}"') for name in ("completed", "variant_2", "incomplete"))
    assert first < second < incomplete
    assert "The result of seed 0, before any compression with loss." in page and "The result of seed 1." in page
    shown = [page[page.index("src=", at) : page.index(" width=", at)] for at in (first, second)]
    assert shown[0] != shown[1]


def test_an_answer_that_exists_is_not_replaced_and_none_is_written(complete, folder):
    (folder / "b-3.png").write_bytes(b"mine")
    before = sorted(path.name for path in folder.iterdir())
    done = complete("--mask", "m.png", "--variants", 3)
    assert done.exit_code == 2
    assert done.stderr == "tdc: b-3.png: exists already; give --overwrite to replace it\n"
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / "b-3.png").read_bytes() == b"mine"
    assert complete("--mask", "m.png", "--variants", 3, "--overwrite").exit_code == 0
    assert np.array_equal(pixels("b-3.png"), pixels("b-1.png"))


def test_what_is_there_is_skipped(complete, folder):
    assert complete("--mask", "m.png", "--variants", 2).exit_code == 0
    (folder / "b-2.png").unlink()
    done = complete("--mask", "m.png", "--variants", 2, "--skip-existing")
    assert done.exit_code == 0
    lacks = "variant_2 not there, which --overwrite makes anew with it"
    assert done.stderr == f"tdc: note: b-1.png: exists already and is skipped; {lacks}\n"
    assert not (folder / "b-2.png").exists()


def test_answers_that_are_the_same_are_told(complete):
    done = complete("--mask", "m.png", "--variants", 2)
    assert done.stderr == "tdc: warning: no pixel was invented: the 2 answers are the same\n"


def test_simulated_holes_are_the_same_for_all(complete):
    how = ("--missing-ratio", 0.3, "--missing-pattern", "pixels", "--save-incomplete", "i.png")
    report = report_of(complete(*how, "--variants", 2, "--json"))
    assert report["missing"]["pixels"] == 144
    known = pixels("i_mask.png") == 0
    for name in ("b-1.png", "b-2.png"):
        assert np.array_equal(pixels(name)[known], pixels("a.png")[known])


def test_a_dry_run_names_every_answer(complete, folder):
    how = ("--mask", "m.png", "--dry-run", "--json")
    one, two = (json.loads(complete(*how, *more).stdout) for more in ((), ("--variants", 2)))
    assert two["outputs"] == {"image": "b-1.png", "variant_2": "b-2.png"}
    assert two["estimate"]["seconds"] >= one["estimate"]["seconds"]
    assert not list(folder.glob("b*"))


@pytest.mark.parametrize(
    "source, output, more, line",
    [
        ("a.png", "-", (), "--variants are several files, and - stands for one; name out.png for out-1.png, out-2.png"),
        ("a.png", "b.tif", ("--pages", "all"),
         "--variants is of one picture; leave it out, or name a --page in place of --pages"),
        (".", "out", (), "--variants is for one picture, not for several or a folder; give one, or leave it out"),
    ],
)  # fmt: skip
def test_what_has_no_variants_is_refused(tdc, folder, source, output, more, line):
    before = sorted(folder.iterdir())
    done = tdc("complete-image", source, "-o", output, "--mask", "m.png", "--variants", 2, *more)
    assert (done.exit_code, done.stderr) == (2, f"tdc: {line}\n")
    assert sorted(folder.iterdir()) == before


# -- clips
# --------------------------------------------------------------------------------------------------------------------

HOLE = ("--mask-box", "12,10,12,12", "--chunk", 2, "--threads", 1)
WORK = Path(".o.npy.tdc-work")


@pytest.fixture
def clip(folder):
    """Values of `c.npy`, four frames of 36x32, noise over smooth colours that move."""
    rng = np.random.default_rng(0)
    frames = [np.roll(smooth(32, 36) // 2, t, axis=1) + rng.integers(0, 60, (32, 36, 3)) for t in range(4)]
    values = np.stack(frames).astype(np.uint8)
    np.save("c.npy", values)
    return values


@pytest.fixture
def invented(tdc, clip):
    """Complete `c.npy` in two chunks by a method whose answer hangs on the seed; returns click's result."""
    return lambda output, *more: tdc("complete-video", "c.npy", "-o", output, "--method", "exemplar", *HOLE, *more)


@pytest.fixture
def grained(tdc, clip):
    """The same by the fastest way to answers that differ."""
    return lambda output, *more: tdc(
        "complete-video", "c.npy", "-o", output, "--method", "nearest", "--grain", *HOLE, *more
    )


def saves(monkeypatch, most=None):
    """List that gets the names of regions as they are saved; instead of one after the first `most` the run fails."""
    save, saved = Folder.save, []

    def counting(self, region, *finished):
        if len(saved) == most:
            raise TdcError("stopped")
        save(self, region, *finished)
        saved.append(self._path(region).name)

    monkeypatch.setattr(Folder, "save", counting)
    return saved


def test_each_answer_of_a_clip_is_that_of_its_seed(invented, clip):
    report = report_of(invented("o.npy", "--variants", 3, "--seed", 4, "--threads", 2, "--report", "r.json", "--json"))
    Draft202012Validator(SCHEMA).validate(report)
    assert report["variants"] == [{"path": f"o-{k + 1}.npy", "seed": 4 + k} for k in range(3)]
    assert report["outputs"] == {"clip": "o-1.npy", "variant_2": "o-2.npy", "variant_3": "o-3.npy", "report": "r.json"}
    known = np.ones(clip.shape, bool)
    known[:, 10:22, 12:24] = False
    answers = [Path(f"o-{k}.npy").read_bytes() for k in (1, 2, 3)]
    assert len(set(answers)) == 3
    for k, answer in enumerate(answers):
        assert invented(f"alone{k}.npy", "--seed", 4 + k).exit_code == 0
        assert Path(f"alone{k}.npy").read_bytes() == answer
        assert np.array_equal(np.load(f"o-{k + 1}.npy")[known], clip[known])
    assert not list(Path().glob(".*"))


def test_what_else_is_written_of_a_clip_is_of_the_first_answer(grained):
    words = ("save-incomplete", "side-by-side", "uncertainty", "panel")
    for name, more in (("one", ()), ("o", ("--variants", 2))):
        names = [f"--{word}={name}_{word}.{'png' if word == 'panel' else 'npy'}" for word in words]
        done = grained(f"{name}.npy", *names, *more, "--method", "field")
        assert done.exit_code == 0, done.stderr
    for word in words:
        ending = "png" if word == "panel" else "npy"
        assert Path(f"o_{word}.{ending}").read_bytes() == Path(f"one_{word}.{ending}").read_bytes()
    assert Path("o-1.npy").read_bytes() == Path("one.npy").read_bytes() != Path("o-2.npy").read_bytes()


def test_the_player_has_every_answer_to_choose(grained):
    done = grained("o.npy", "--variants", 3, "--seed", 7, "--html", "h.html")
    assert done.exit_code == 0, done.stderr
    text = Path("h.html").read_text(encoding="utf-8")
    for frame, made in enumerate(shown_by(text)):
        for name, k in (("completed", 1), ("variant_2", 2), ("variant_3", 3)):
            assert np.array_equal(made[name], np.load(f"o-{k}.npy")[frame])
    parsed = Parsed(text)
    chosen = [attrs for attrs in parsed.all("img") if "data-name" in attrs]
    assert [attrs["data-title"] for attrs in chosen] == ["Answer 1", "Answer 2", "Answer 3", "Incomplete", "Missing"]
    assert [attrs["alt"].partition(": ")[2] for attrs in chosen[:3]] == [
        "The result of seed 7, before any compression with loss.", "The result of seed 8.", "The result of seed 9."
    ]  # fmt: skip
    strip = [attrs["alt"] for attrs in parsed.all("img") if attrs.get("alt", "").endswith(", frame 2")]
    assert strip == [f"{row}, frame 2" for row in ("Answer 1", "Answer 2", "Answer 3", "Incomplete")]


def test_there_is_room_for_every_answer(grained, monkeypatch):
    """Of a clip that is too long the player has fewer frames the more answers it shows; those that it has, whole."""
    from tdc_cli.view.page import reel

    monkeypatch.setattr(reel, "ROOM", 12 * 32 * 36)
    for count, frames in ((2, 4), (4, 2)):
        assert grained("o.npy", "--variants", count, "--html", "h.html", "--overwrite").exit_code == 0
        held = player(Path("h.html").read_text(encoding="utf-8"))["frames"]
        assert [len(frame["pictures"]) for frame in held] == [count + 2] * frames  # and what they lack and the mask


def test_a_stopped_run_goes_on_in_the_answer_where_it_stopped(invented, monkeypatch):
    assert invented("whole.npy", "--variants", 3).exit_code == 0
    with monkeypatch.context() as patched:
        saves(patched, 3)
        done = invented("o.npy", "--variants", 2)
    assert done.exit_code == 1 and "finished regions are kept in" in done.stderr
    region = "{:08d}-{:08d}_00000000-00000032_00000000-00000036"
    first, second = region.format(0, 2), region.format(2, 4)
    names = [f"{first}.npz", f"{first}_2.npz", f"{second}.npz", "run.json"]
    assert sorted(path.name for path in WORK.iterdir()) == names and not list(Path().glob("o*"))
    assert invented("o.npy", "--variants", 2).exit_code == 2  # neither taken nor thrown away unasked
    saved = saves(monkeypatch)
    done = invented("o.npy", "--variants", 3, "--resume")  # one more than before
    assert done.exit_code == 0, done.stderr
    assert saved == [f"{second}_2.npz", f"{first}_3.npz", f"{second}_3.npz"]
    for k in (1, 2, 3):
        assert Path(f"o-{k}.npy").read_bytes() == Path(f"whole-{k}.npy").read_bytes()
    assert not WORK.exists()
    done = invented("o.npy", "--variants", 3, "--resume")
    assert (done.exit_code, done.stderr) == (0, "tdc: note: o-1.npy: exists already and is skipped\n")
    Path("o-2.npy").unlink()
    done = invented("o.npy", "--variants", 3, "--resume")
    assert (done.exit_code, done.stderr) == (2, "tdc: o-1.npy: exists already; give --overwrite to replace it\n")


def test_an_answer_of_a_clip_that_exists_is_not_replaced_and_none_is_written(grained):
    Path("o-3.npy").write_bytes(b"mine")
    done = grained("o.npy", "--variants", 3)
    assert (done.exit_code, done.stderr) == (2, "tdc: o-3.npy: exists already; give --overwrite to replace it\n")
    assert [path.name for path in Path().glob("*o*.npy")] == ["o-3.npy"]
    assert grained("o.npy", "--variants", 3, "--overwrite").exit_code == 0
    assert np.load("o-3.npy").shape == (4, 32, 36, 3)


def test_answers_that_are_folders_of_frames(grained, clip):
    """Each is replaced as a whole, unless something else lies in one of them; the folder without a number is free."""
    os.mkdir("o")
    Path("o/mine.txt").write_text("mine")
    assert grained("o", "--variants", 2).exit_code == 0
    assert os.listdir("o") == ["mine.txt"]
    frames = [f"frame_000{k}.tif" for k in range(4)]
    assert sorted(path.name for path in Path("o-2").glob("[!.]*")) == frames
    assert grained("o", "--variants", 2, "--seed", 1, "--overwrite").exit_code == 0
    assert grained("alone.npy", "--seed", 2).exit_code == 0
    assert np.array_equal([pixels(f"o-2/{name}") for name in frames], np.load("alone.npy"))
    Path("o-2/mine.txt").write_text("mine")
    before = Path("o-1/frame_0000.tif").read_bytes()
    done = grained("o", "--variants", 2, "--overwrite")
    assert done.exit_code == 2 and done.stderr.startswith("tdc: o-2")
    assert Path("o-1/frame_0000.tif").read_bytes() == before


def test_a_dry_run_of_a_clip_names_every_answer_and_tells_the_work_of_all(grained):
    one, four = (json.loads(grained("o.npy", "--dry-run", "--json", *more).stdout)
                 for more in (("--method", "datc"), ("--method", "datc", "--variants", 4)))  # fmt: skip
    assert four["outputs"] == {"clip": "o-1.npy"} | {f"variant_{k}": f"o-{k}.npy" for k in (2, 3, 4)}
    seconds = one["estimate"]["seconds"]
    assert seconds > 1 and four["estimate"]["seconds"] == pytest.approx(4 * seconds, rel=0.1)
    assert four["estimate"]["bytes"] == one["estimate"]["bytes"]  # one after the other
    assert not list(Path().glob("o*"))


def test_progress_tells_of_the_work_on_all_answers(grained, monkeypatch):
    from tdc_cli.cli import progress

    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    told = [line.split(", ")[0] for line in grained("o.npy", "--variants", 2).stderr.splitlines()]
    for what in ("frames", "write"):
        assert [line for line in told if what in line][-1] == f"tdc: {what}: 8 of 8"
        assert all(line.endswith(" of 8") for line in told if f"tdc: {what}:" in line)


KILLED = """
import os, signal
from tdc_cli.cli.main import main
from tdc_cli.run.store import Folder
save, count = Folder.save, []
def counting(self, *args):
    save(self, *args)
    count.append(1)
    if len(count) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
Folder.save = counting
main()
"""


def test_a_run_killed_in_its_second_answer_leaves_no_output(grained):
    words = ["complete-video", "c.npy", "-o", "o.npy", "--method", "nearest", "--grain", *map(str, HOLE)]
    done = subprocess.run([sys.executable, "-c", KILLED, *words, "--variants", "2"], timeout=120, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(WORK.glob("*.npz"))) == 3 and not list(Path().glob("o*"))
    assert grained("o.npy", "--variants", 2, "--resume").exit_code == 0
    assert grained("whole.npy", "--variants", 2).exit_code == 0
    for k in (1, 2):
        assert Path(f"o-{k}.npy").read_bytes() == Path(f"whole-{k}.npy").read_bytes()
    assert not WORK.exists()


def test_answers_of_a_large_picture_keep_their_regions_too(tdc, folder, monkeypatch):
    Image.fromarray(smooth(40, 80)).save("a.png")
    words = ["complete-image", "a.png", "--missing-ratio", 0.3, "--method", "field", "--region", 40, "--variants", 2]
    assert tdc(*words, "-o", "whole.png").exit_code == 0
    with monkeypatch.context() as patched:
        saves(patched, 3)
        assert tdc(*words, "-o", "o.png").exit_code == 1
    saved = saves(monkeypatch)
    done = tdc(*words, "-o", "o.png", "--resume")
    assert done.exit_code == 0, done.stderr
    assert len(saved) == 1 and saved[0].endswith("_2.npz")
    for k in (1, 2):
        assert Path(f"o-{k}.png").read_bytes() == Path(f"whole-{k}.png").read_bytes()
    assert not list(Path().glob(".*"))
