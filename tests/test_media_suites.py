"""Suites of `tdc bench` on photographs, clips and faces: what they read, that they run, and what they show."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tdc_cli import bench as experiment
from tdc_cli.bench import cells, gallery, media, samples
from tdc_cli.bench.suites import faces, images, spatial, videos
from tdc_cli.errors import InputError
from tdc_cli.view.display import to_bytes
from tdc_cli.view.page import Table


@pytest.fixture
def data(folder):
    """A small folder of one's own."""
    rng = np.random.default_rng(0)
    for kind in ("images", "videos", "masks", "faces"):
        Path("own", kind).mkdir(parents=True)
    for name in ("facade", "other"):
        Image.fromarray(rng.integers(256, size=(20, 24, 3), dtype=np.uint8)).save(f"own/images/{name}.png")
    np.save("own/videos/suzie.npy", rng.integers(256, size=(5, 16, 18, 3), dtype=np.uint8))
    scribble = np.zeros((16, 18), dtype=np.uint8)
    scribble[3, 4:9] = 255
    Image.fromarray(scribble).save("own/masks/scribble_16x18.png")
    np.save("own/faces/set.npy", rng.integers(256, size=(4, 2, 3, 16), dtype=np.uint8))
    return Path("own").resolve()


def record(suite, cell, outcome, folder=None):
    """Record as figures get it: with the path of its arrays."""
    kept = cells.record(suite, cell, outcome)
    if folder is not None and outcome.arrays:
        kept["arrays"] = Path(folder, f"{abs(hash(cell.key))}.npz")
        np.savez(kept["arrays"], **outcome.arrays)
    return kept


def ran(name, data, folder, **choice):
    """Module of a suite and the records of its run."""
    module = experiment.get(name).load()
    _, grid = experiment.plan(experiment.get(name), data=data, **choice)
    return module, [record(name, cell, module.run(cell, data), folder) for cell in grid]


def drawn(made):
    """Every figure is a PNG."""
    assert made and all(figure.png.startswith(b"\x89PNG") for figure in made)
    return [figure.name for figure in made]


@pytest.mark.parametrize("name", ["images", "videos", "faces", "spatial"])
def test_without_a_folder_there_are_samples(name):
    choice, grid = experiment.plan(experiment.get(name))
    module = experiment.get(name).load()
    assert len({cell.key for cell in grid}) == len(grid) > 0 and all(module.seconds(cell) > 0 for cell in grid)
    assert {cell.method for cell in grid} == set(choice.methods or spatial.METHODS)


def test_samples_are_what_they_say():
    assert media.photograph(None, "chelsea")[0].shape == (samples.SIDE, samples.SIDE, 3)
    clip, _ = media.clip(None, "astronaut-pan")
    assert clip.shape == (48, 64, 3, samples.FRAMES)
    assert np.array_equal(clip[1:, 2:, :, 0], clip[:-1, :-2, :, 1])  # it moves
    made = media.faces(None, "reliefs", 3)
    assert made.shape == (3, samples.POSES, samples.LIGHTS, samples.FACE_SIDE**2) and made.max() <= 1
    assert made.std(axis=(1, 2, 3)).min() > 0.05
    assert 0.8 < media.mask(None, "scribble", (48, 64)).mean() < 0.95


def test_a_folder_is_read(data):
    assert media.names(data, "images", ()) == ("facade", "other")
    stored = np.load(data / "videos/suzie.npy")
    clip, step = media.clip(data, "suzie")
    assert step == 1 / 255 and np.array_equal(clip, np.moveaxis(stored, 0, -1) / 255)
    observed = media.mask(data, "scribble", (16, 18))
    assert (~observed).sum() == 5 and not observed[3, 4]
    assert np.array_equal(media.faces(data, "set", 3), np.load(data / "faces/set.npy")[:3] / 255)


def test_what_a_folder_lacks_is_told_before_any_work(tdc, data):
    (data / "faces/set.npy").unlink()
    done = tdc("bench", "faces", "-o", "out", "--data", data)
    assert (done.exit_code, done.stderr) == (
        2,
        f"tdc: {data}: has nothing in faces/; docs/bench.md says how the folder is laid out\n",
    )


@pytest.mark.parametrize(
    "values", [np.zeros((3, 4, 5), dtype=np.uint8), np.zeros((3, 4, 5, 10), dtype=np.uint8), np.zeros((2, 2, 2, 4))]
)
def test_arrays_that_are_no_faces(data, values):
    np.save(data / "faces/set.npy", values)
    with pytest.raises(InputError, match="faces are unsigned integers"):
        media.faces(data, "set", 3)


def test_photographs(data, folder):
    module, found = ran("images", data, folder, methods=("nearest", "linear", "biharmonic"), ratios=(0.6, 0.9))
    assert [(each["data"], each["ratio"]) for each in found if each["arrays"]] == [("facade", 0.9)] * 3
    for each in found:
        assert (
            0 < each["metrics"]["rre"] < 1 and 0 < each["metrics"]["psnr"] < 40 and each["metrics"]["coverage"] is None
        )
    table = next(table for table in module.tables(found) if table and table.name == "images-psnr")
    assert table.head == ("method", "60% missing", "paper", "difference", "90% missing", "paper", "difference")
    assert drawn(module.figures(found)) == ["shown-facade"]
    truth, estimate = gallery.load(found[3], "truth"), gallery.load(found[3], "estimate")
    assert np.array_equal(truth, np.asarray(Image.open(data / "images/facade.png")))
    assert (estimate == truth).mean() >= 0.1  # what was observed is put back


def test_the_holes_are_the_same_for_every_method(data, folder):
    _, found = ran("images", data, folder, methods=("nearest", "linear"), ratios=(0.9,))
    one, other = (gallery.load(each, "incomplete") for each in found if each["arrays"])
    assert np.array_equal(one, other)


def test_the_paper_s_figures_of_photographs():
    class Column:
        where = {"ratio": 0.9}

    assert images.figure_of_the_paper({"method": "datc"}, Column) == (0.197, 19.8088, 0.4549)
    assert images.figure_of_the_paper({"method": "patches"}, Column) is None
    Column.where = {"data": "suzie"}
    assert videos.figure_of_the_paper({"method": "fbcp"}, Column) == (0.0426, 34.6221, 0.9103)


def test_clips(data, folder):
    module, found = ran("videos", data, folder, methods=("nearest", "field"))
    assert [each["data"] for each in found] == ["suzie", "suzie"] and all(each["ratio"] is None for each in found)
    assert all(0 < each["metrics"]["rre"] < 1 for each in found)
    incomplete = gallery.load(found[0], "incomplete")
    assert not incomplete[3, 4:9].any() and incomplete.any()  # the frame that is shown has a mask
    assert "videos-ssim" in [table.name for table in module.tables(found) if table]
    assert drawn(module.figures(found)) == ["shown-suzie"]


def test_faces(data, folder):
    module, found = ran("faces", data, folder, methods=("nearest", "halrtc"), ratios=(0.5,), seeds=2)
    assert len(found) == 4
    for each in found:
        assert each["metrics"]["rre_missing"] > each["metrics"]["rre"] > 0
    names = [table.name for table in module.tables(found) if table]
    assert names == [
        "faces-set",
        "faces-missing-set",
        "seconds-set",
    ]  # without ours and fbcp there is no standing and no gain
    assert drawn(module.figures(found)) == ["faces-set"]


def test_faces_as_they_are_shown_and_the_gain():
    truth = np.arange(9 * 16).reshape(9, 16) / 200
    square = faces._mosaic(truth, np.array([2, 5]))
    assert np.array_equal(square[:4, 4:8], to_bytes(truth[5].reshape(4, 4), 0, 1)) and not square[:4, 8:].any()
    found = [cells.record("faces", cells.Cell(method, "own", 0.7, 0), cells.Outcome({"rre": value}, 1.0))
             for method, value in (("datc", 0.15), ("fbcp", 0.2))]  # fmt: skip
    gain = next(table for table in faces.tables(found) if isinstance(table, Table) and table.name == "gain-own")
    assert gain.rows == (("70% missing", "25 %", "18 %"),)


def test_spatial(monkeypatch, data, folder):
    monkeypatch.setattr(spatial, "METHODS", ("nearest", "linear"))
    module, found = ran("spatial", data, folder, ratios=(0.6,))
    assert [(each["data"], each["method"]) for each in found][-2:] == [("suzie", "nearest"), ("suzie", "linear")]
    assert [table.name for table in module.tables(found)] == [
        f"spatial-{kind}-{metric}" for kind in ("photographs", "clips") for metric in ("rre", "psnr", "ssim")
    ]
    assert drawn(module.figures(found)) == ["spatial"] and module.figures([]) == []


def test_the_busiest_part_is_enlarged():
    picture = np.zeros((40, 60), dtype=np.uint8)
    picture[25:35:2, 45:55:2] = 255
    top, left, side = gallery.busiest(picture)
    assert side == 10 and 15 <= top <= 35 and 35 <= left <= 55
    assert picture[top : top + side, left : left + side].any()
