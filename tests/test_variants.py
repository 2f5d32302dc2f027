"""Several answers to choose from: `--variants`."""

import json

import numpy as np
import pytest
from conftest import pixels, report_of, smooth
from jsonschema import Draft202012Validator
from PIL import Image

from tdc_cli.run.report import SCHEMA


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
        ("a.png", "b.png", ("--resume",),
         "--resume goes on with finished regions, and --variants keeps none; leave one of them out"),
        (".", "out", (), "--variants is for one picture, not for several or a folder; give one, or leave it out"),
    ],
)  # fmt: skip
def test_what_has_no_variants_is_refused(tdc, folder, source, output, more, line):
    before = sorted(folder.iterdir())
    done = tdc("complete-image", source, "-o", output, "--mask", "m.png", "--variants", 2, *more)
    assert (done.exit_code, done.stderr) == (2, f"tdc: {line}\n")
    assert sorted(folder.iterdir()) == before
