"""What `--keep` names stays as it is: neither filled, nor taken for data, nor worked on."""

from pathlib import Path

import numpy as np
import pytest
from conftest import pixels, report_of
from PIL import Image
from scipy.io import savemat

from tdc_cli import methods
from tdc_cli.patches import calibrate


def heights():
    """(40, 48) float32 heights with -9999 outside of a footprint and in a gap inside of it; footprint and gap, bool."""
    rows, columns = np.mgrid[:40, :48]
    values = (60 + 20 * np.sin(rows / 9) + 10 * np.cos(columns / 7)).astype(np.float32)
    outside = (rows - 20) ** 2 + (columns - 24) ** 2 > 19**2
    gap = np.zeros_like(outside)
    gap[18:22, 20:26] = True
    values[outside | gap] = -9999
    return values, outside, gap


def save_mask(path, marked):
    Image.fromarray(np.where(marked, 255, 0).astype(np.uint8)).save(path)


@pytest.mark.parametrize(
    "method", ["linear", "nearest", "biharmonic", "telea", "field", "patches", "exemplar", "halrtc"]
)
def test_the_rest_of_the_nodata_is_kept_by_every_kind_of_method(tdc, method):
    values, outside, gap = heights()
    np.save("dem.npy", values)
    save_mask("m.png", gap)
    report = report_of(
        tdc(
            f"complete-image dem.npy -o b.npy --missing-value -9999 --mask m.png --keep nodata --method {method} --json"
        )
    )
    made = np.load("b.npy")
    assert np.array_equal(made[~gap], values[~gap])
    assert made[gap].min() > 30 and made[gap].max() < 95  # -9999 was no data
    assert report["missing"]["count"] == gap.sum() and report["missing"]["source"] == "mask"
    assert f"dem.npy: {outside.sum()} further entries are NaN or -9999 and stay as they are" in report["warnings"]


def test_a_picture_says_what_stays(tdc):
    values, outside, gap = heights()
    np.save("dem.npy", values)
    save_mask("sea.png", outside)
    how = ["complete-image", "dem.npy", "--missing-value", -9999, "--keep", "sea.png", "--method", "field"]
    page = ["--html", "p.html", "--panel", "p.png", "--uncertainty", "sd.npy", "--save-incomplete", "i.npy"]
    report = report_of(tdc(*how, "-o", "b.npy", *page, "--json"))
    made, incomplete = np.load("b.npy"), np.load("i.npy")
    assert np.array_equal(made[~gap], values[~gap]) and abs(made[gap] - 90).max() < 30
    assert (
        report["missing"]["count"] == gap.sum()
        and f"keep sea.png: {outside.sum()} entries stay as they are" in report["warnings"]
    )
    assert np.array_equal(np.isnan(incomplete), gap) and (incomplete[outside] == -9999).all()
    assert np.array_equal(pixels("i_mask.png") > 0, gap) and np.array_equal(np.load("sd.npy") > 0, gap)
    # The pages show heights, not -9999 as black and all else as white.
    assert pixels("p.png")[..., 0].std() > 20


def test_nothing_of_what_stays_is_measured(tdc):
    values, outside, _ = heights()
    rows, columns = np.mgrid[:40, :48]
    truth = np.where(outside, -9999, 60 + 20 * np.sin(rows / 9) + 10 * np.cos(columns / 7)).astype(np.float32)
    np.save("dem.npy", values)
    np.save("t.npy", truth)
    save_mask("sea.png", outside)
    metrics = report_of(
        tdc(
            "complete-image dem.npy -o b.npy --missing-value -9999 --keep sea.png --reference t.npy --method "
            "linear --json"
        )
    )["metrics"]
    inside, error = truth[~outside], (np.load("b.npy") - truth)[~outside]
    assert metrics["missing"]["mae"] < 3
    assert metrics["all"]["psnr"] == pytest.approx(20 * np.log10(np.ptp(inside) / np.sqrt(np.mean(error**2))), abs=0.01)
    hidden = report_of(
        tdc(
            "complete-image dem.npy -o c.npy --missing-value -9999 --keep nodata --missing-ratio 0.2 --method "
            "linear --json"
        )
    )
    made = np.load("c.npy")
    assert (made[values == -9999] == -9999).all() and hidden["metrics"]["missing"]["mae"] < 3
    assert 0 < hidden["missing"]["count"] < round(0.2 * values.size)


def test_noise_is_not_taken_out_of_what_stays(tdc):
    values, outside, gap = heights()
    np.save("dem.npy", values)
    save_mask("m.png", gap)
    assert not tdc(
        "complete-image dem.npy -o b.npy --missing-value -9999 --mask m.png --keep nodata --method field "
        "--noise-std 0.5 --add-noise 0.5"
    ).exit_code
    made = np.load("b.npy")
    assert (
        (made[outside] == -9999).all()
        and (made[~outside] != values[~outside]).mean() > 0.9
        and made[~outside].min() > 30
    )


@pytest.mark.parametrize("suffix", [".npy", ".mat"])
def test_a_volume_is_filled_inside_of_the_head_alone(tdc, suffix):
    rng = np.random.default_rng(0)
    truth = sum(np.einsum("i,j,k->ijk", *(rng.random(n) for n in (10, 11, 12))) for _ in range(2))
    outside, lost = np.zeros(truth.shape, bool), np.zeros(truth.shape, bool)
    outside[:, :3], lost[2, 4:9, 5], outside[9] = True, True, True  # a slice of the first mode is outside as a whole
    np.save("bold.npy", np.where(outside, np.nan, truth))
    if suffix == ".npy":
        np.save("m.npy", lost), np.save("o.npy", outside)
        mask, head = "m.npy", "o.npy"
    else:
        savemat("m.mat", {"lost": lost, "outside": outside})
        mask, head = "m.mat:lost", "m.mat:outside"
    for keep in ("nodata", head):
        for method in ("linear", "halrtc"):
            result = tdc(
                f"complete-tensor bold.npy -o o2.npy --mask {mask} --keep {keep} --method {method} --overwrite"
            )
            assert result.exit_code == 0, result.stderr
            made = np.load("o2.npy")
            assert np.array_equal(np.isnan(made), outside) and np.array_equal(
                made[~(outside | lost)], truth[~(outside | lost)]
            )
            assert np.abs(made[lost] - truth[lost]).max() < 0.7
            assert "slices" not in result.stderr and "stay as they are" in result.stderr


def test_frames_of_a_clip_keep_what_lies_outside(tdc):
    values, outside, gap = heights()
    clip = np.stack([values + np.float32(k) for k in range(4)])
    clip[:, outside] = np.nan
    np.save("c.npy", clip)
    save_mask("m.png", gap)
    for method in ("linear", "patches"):
        result = tdc(
            f"complete-video c.npy -o b.npy --mask m.png --keep nodata --method {method} --overwrite --html "
            "p.html --panel p.png"
        )
        assert result.exit_code == 0, result.stderr
        made = np.load("b.npy")
        assert np.isnan(made[:, outside]).all() and np.array_equal(made[:, ~(outside | gap)], clip[:, ~(outside | gap)])
        assert made[:, gap].min() > 30 and made[:, gap].max() < 95
    assert f"{4 * outside.sum()} further entries are NaN and stay as they are" in result.stderr


@pytest.mark.parametrize(
    "args, error",
    [
        (
            ["--keep", "nodata", "--missing-value", 3],
            "--keep nodata leaves what is missing by its value as it is; say with a --mask",
        ),
        (
            ["--keep", "nodata", "--mask", "m.png"],
            "has nothing to keep: whole numbers hold no NaN, and neither --missing-value nor the file",
        ),
        (["--keep", "none.png", "--mask", "m.png"], "keep none.png: no such file"),
        (["--keep", "black.png", "--mask", "m.png"], "keep black.png marks nothing; white = stays as it is"),
        (["--keep", "white.png", "--mask", "m.png"], "keep white.png marks all of a.png: nothing is left to fill"),
        (
            ["--keep", "small.png", "--mask", "m.png"],
            "keep small.png is 3x2 pixels but picture a.png is 24x20; they must have the same size",
        ),
        (["--keep", "most.png", "--mask", "m.png"], "every entry is missing or kept: nothing is left to complete from"),
    ],
)
def test_what_cannot_be_kept_is_said_in_a_line(tdc, args, error):
    mask = pixels("m.png") > 0
    for name, marked in {
        "black": mask & False,
        "white": mask | True,
        "most": ~mask,
        "small": np.ones((2, 3), bool),
    }.items():
        save_mask(f"{name}.png", marked)
    result = tdc("complete-image", "a.png", "-o", "b.png", *args, "--method", "linear")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and error in result.stderr
    assert not Path("b.png").exists()


def test_holes_are_hidden_in_the_shape_of_what_is_to_be_filled():
    """And only where something is observed, however much is kept beside."""
    absent, kept = np.zeros((2, 90, 90, 1), bool)
    absent[40, 10:80], kept[:, 45:] = True, True
    absent &= ~kept
    held = calibrate.hold_out(~(absent | kept), 0.05, np.random.default_rng(0), wanted=absent)
    assert held.any() and not (held & (absent | kept)).any()
    beside, below = held[:, 1:] & held[:, :-1], held[1:] & held[:-1]
    assert beside.sum() > 3 * below.sum()  # a line, as what is to be filled, and no block, as what is kept


@pytest.mark.parametrize("method", [m.name for m in methods.REGISTRY.values() if m.takes("wanted") and m.needs is None])
def test_what_is_wanted_is_filled_alike_whether_the_rest_is_estimated_or_left_out(method):
    values, outside, gap = heights()
    values, observed = (
        np.where(outside | gap, np.nan, values.astype(float) / 60)[..., None],
        ~(outside | gap)[..., None],
    )
    module, parameters = methods.get(method).load(), methods.get(method).parameters
    config = methods.get(method).configure(
        {"start": "field"} if "start" in parameters else {}
    )  # the global model takes long
    made = [module.complete(values, observed, config, rng=np.random.default_rng(0), wanted=wanted).mean
            for wanted in (gap[..., None], ~observed)]  # fmt: skip
    assert np.isfinite(made[0]).all()
    exact = method in ("linear", "nearest", "biharmonic")  # the others learn from the shape of what they fill
    assert np.abs(made[0] - made[1])[gap].max() < (1e-9 if exact else 0.15)


@pytest.mark.parametrize("method", ["linear", "nearest", "biharmonic"])
def test_channels_are_filled_as_each_alone_whether_they_have_the_same_holes_or_not(method):
    """One of the holes of the third channel is kept; the fourth has nothing to fill, the last another hole."""
    rng = np.random.default_rng(0)
    values, observed = rng.random((16, 20, 5)), np.ones((16, 20, 5), bool)
    observed[3:8, 4:9, :3] = observed[11:14, 10:15, :3] = observed[2:9, 12:16, 4] = False
    wanted = ~observed
    wanted[3:8, 4:9, 2] = False
    module = methods.get(method).load()
    config = methods.get(method).configure({})
    made, alone = (
        np.concatenate(
            [module.complete(values[..., c], observed[..., c], config, wanted=wanted[..., c]).mean for c in parts],
            axis=2,
        )
        for parts in ([slice(None)], [slice(c, c + 1) for c in range(5)])
    )
    assert np.array_equal(made[observed], values[observed]) and np.abs(made - alone)[wanted].max() < 1e-12


def test_regions_of_a_picture_keep_what_lies_outside(tdc):
    """With and without tiles; what is kept is filled in none of them."""
    rows, columns = np.mgrid[:160, :176]
    truth = (60 + 20 * np.sin(rows / 9) + 10 * np.cos(columns / 7)).astype(np.float32)
    outside, gap = columns > 90 + rows / 3, np.zeros(truth.shape, bool)
    gap[20:26, 30:36], gap[120:124, 40:150] = True, True
    gap &= ~outside
    np.save("dem.npy", np.where(outside | gap, np.float32(-9999), truth))
    save_mask("m.png", gap)
    for method in ("linear", "field"):
        for region in ("128", "whole"):
            report = report_of(
                tdc(
                    f"complete-image dem.npy -o {region}.npy --missing-value -9999 --mask m.png --keep nodata "
                    f"--method {method} --region {region} --overwrite --json"
                )
            )
            made, rest = np.load(f"{region}.npy"), ~(outside | gap)
            assert np.array_equal(made[outside], np.full(outside.sum(), -9999)) and np.array_equal(
                made[rest], truth[rest]
            )
            assert np.abs(made - truth)[gap].max() < 4 and report["missing"]["count"] == gap.sum()


@pytest.mark.parametrize("command", ["complete-image", "complete-video", "complete-tensor"])
def test_keeping_all_that_is_missing_leaves_nothing_to_fill(tdc, command):
    given, output = {
        "complete-image": ("a.png", "b.png"),
        "complete-video": ("c.npy", "d.npy"),
        "complete-tensor": ("t.npy", "u.npy"),
    }[command]
    np.save("c.npy", np.stack([pixels("a.png")] * 3))
    np.save("t.npy", pixels("a.png").astype(float))
    np.save("m.npy", np.repeat((pixels("m.png") > 0)[..., None], 3, axis=2))
    mask = "m.npy" if command == "complete-tensor" else "m.png"
    result = tdc(command, given, "-o", output, "--mask", mask, "--keep", mask, "--method", "linear")
    assert (result.exit_code, result.stderr) == (
        2,
        f"tdc: keep {mask} marks all that is missing in {given}: nothing is left to fill\n",
    )
    assert not Path(output).exists()
