"""What is invented is told apart from what is predicted, in the report, in words and on the page."""

import json

import numpy as np
import pytest
from conftest import smooth
from jsonschema import Draft202012Validator
from PIL import Image

from tdc_cli.run.report import SCHEMA


@pytest.mark.parametrize(
    "command, source, method",
    [
        ("complete-image", "p.npy", "exemplar"),
        ("complete-image", "p.npy", "auto"),
        ("complete-video", "c.npy", "exemplar"),
    ],
)
def test_invented_pixels_are_counted_and_claim_no_interval(tdc, command, source, method):
    picture = np.random.default_rng(0).integers(0, 255, (40, 44, 3)).astype(np.uint8) // 4 + smooth(40, 44) // 2
    np.save("p.npy", picture)
    np.save("c.npy", np.stack([picture] * 2))
    mask = np.zeros((40, 44), np.uint8)
    mask[14:26, 14:28] = 255
    Image.fromarray(mask).save("hole.png")
    pages = ("--html", "h.html", "--report", "r.json", "--reference", source)
    done = tdc(command, source, "-o", "o.npy", "--mask", "hole.png", "--method", method, *pages)
    assert done.exit_code == 0, done.stderr
    with open("r.json", encoding="utf-8") as file:
        report = json.load(file)
    Draft202012Validator(SCHEMA).validate(report)
    count = 12 * 14 * (2 if command == "complete-video" else 1)
    assert report["invented"] == count == report["missing"]["pixels"]
    assert report["uncertainty"]["coverage90"] is None
    assert report["uncertainty"]["held_out"] is None
    assert (
        f"{count} pixels invented: their uncertainty is the spread among equally good sources, no interval"
        in done.stdout
    )
    with open("h.html", encoding="utf-8") as page:
        assert f"{count} pixels were invented" in page.read()


def test_what_is_predicted_says_nothing_of_invention(complete):
    done = complete("--mask", "m.png", "--json")
    assert "invented" not in json.loads(done.stdout)


def test_only_what_is_marked_may_be_copied(tdc):
    picture = np.random.default_rng(0).integers(0, 100, (40, 60)).astype(np.uint8)
    picture[:, 30:] += 150
    Image.fromarray(picture).save("p.png")
    for name, columns in (("hole.png", slice(4, 16)), ("right.png", slice(34, 60))):
        marked = np.zeros((40, 60), np.uint8)
        marked[14:26 if name == "hole.png" else None, columns] = 255
        Image.fromarray(marked).save(name)
    how = (
        "complete-image",
        "p.png",
        "-o",
        "o.png",
        "--mask",
        "hole.png",
        "--method",
        "exemplar",
        "--overwrite",
        "--source",
        "right.png",
    )
    done = tdc(*how)
    assert done.exit_code == 0, done.stderr
    anywhere = tdc(*how[:-2], "--save-incomplete", "i.png")
    assert anywhere.exit_code == 0
    marked[:], marked[20, 4:16] = 0, 255
    Image.fromarray(marked).save("hole.png")
    done = tdc(*how[:7], "auto", *how[8:])
    assert done.stderr == "tdc: warning: no pixel was invented, since no hole is deep: --source had no part\n"
    done = tdc(*how[:7], "biharmonic", *how[8:])
    assert done.stderr == "tdc: method biharmonic copies nothing; leave out --source or use one of: auto, exemplar\n"


@pytest.mark.parametrize("hole, warned", [("0,0,30,70", False), ("0,0,40,70", True), ("20,5,60,60", False)])
def test_what_lies_deeper_than_anything_held_out_is_told_to_be_a_guess(tdc, hole, warned):
    Image.fromarray(smooth(70, 100)).save("p.png")
    done = tdc(f"complete-image p.png -o o.png --method field --mask-box {hole} --no-progress")
    assert done.exit_code == 0, done.stderr
    words = "lies more than 32 pixels from all that is known: its standard deviations are a guess"
    assert (words in done.stderr) is warned


@pytest.mark.parametrize("method", ["field", "patches"])
def test_where_next_to_nothing_is_known_the_uncertainty_is_as_wide_as_that_allows(tdc, method):
    values = np.random.default_rng(0).integers(0, 256, (16, 20, 3)).astype(np.uint8)
    values[2, 3:5] = 80
    Image.fromarray(values).save("a.png")
    for known in ([(8, 9)], [(2, 3), (2, 4)], [(2, 3), (12, 14), (5, 18)]):
        mask = np.full((16, 20), 255, np.uint8)
        mask[tuple(zip(*known))] = 0
        Image.fromarray(mask).save("m.png")
        words = ["complete-image", "a.png", "-o", "b.png", "--mask", "m.png", "--method", method, "--uncertainty"]
        assert tdc(*words, "sd.npy", "--overwrite").exit_code == 0
        deviations = np.load("sd.npy")[mask > 0]
        alike = len(known) < 3
        least = 127.5 if alike else values[mask == 0].std()
        assert deviations.min() >= least - 1e-3
        np.save("a.npy", values / 255.0)  # no range is known of these, but the size of what is
        assert tdc("complete-image", "a.npy", *words[2:3], "b.npy", *words[4:], "sd2.npy", "--overwrite").exit_code == 0
        least = values[mask == 0].max() if alike else least
        assert np.load("sd2.npy")[mask > 0].min() >= least / 255 - 1e-5
