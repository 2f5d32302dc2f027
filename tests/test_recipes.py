"""The recipes of docs/python.md for the libraries of other trades, each run where its library is there."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

RECIPES = dict(
    re.findall(r"```python (\w+)\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.S)
)
TRUTH = np.add.outer(np.add.outer(np.arange(6.0), np.linspace(1, 4, 7)), np.linspace(0, 9, 8))
HOLES = np.random.default_rng(0).random(TRUTH.shape) < 0.2


def run(name, folder):
    """Run a recipe in a folder, in a process of its own."""
    pytest.importorskip(name)
    done = subprocess.run([sys.executable, "-c", RECIPES[name]], cwd=folder, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_recipe_has_a_test():
    assert set(RECIPES) == {"nibabel", "astropy", "xarray", "pandas", "h5py"}


def test_nibabel(tmp_path):
    nib = pytest.importorskip("nibabel")
    affine = np.diag([2.0, 2.0, 3.0, 1.0])
    nib.save(nib.Nifti1Image(np.where(HOLES, 0, TRUTH).astype(np.float32), affine), tmp_path / "volume.nii.gz")
    nib.save(nib.Nifti1Image(HOLES.astype(np.uint8), affine), tmp_path / "lost.nii.gz")
    run("nibabel", tmp_path)
    made = nib.load(tmp_path / "filled.nii.gz")
    assert np.array_equal(made.affine, affine) and made.header.get_zooms() == (2, 2, 3)
    assert np.array_equal(made.get_fdata()[~HOLES], TRUTH.astype(np.float32)[~HOLES])
    assert np.abs(made.get_fdata() - TRUTH)[HOLES].max() < 1


def test_astropy(tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    frame, hit = TRUTH[:, :, 0], HOLES[:, :, 0]
    header = fits.Header({"EXPTIME": 30.0})
    parts = [
        fits.PrimaryHDU(np.where(hit, 9e4, frame).astype(">f4"), header),
        fits.ImageHDU(hit.astype(np.int16), name="DQ"),
    ]
    fits.HDUList(parts).writeto(tmp_path / "frame.fits")
    run("astropy", tmp_path)
    with fits.open(tmp_path / "filled.fits") as made:
        assert made[0].header["EXPTIME"] == 30 and np.array_equal(made["DQ"].data > 0, hit)
        assert np.abs(made[0].data - frame).max() < 1 and np.array_equal(
            made[0].data[~hit], frame.astype(np.float32)[~hit]
        )


def test_xarray(tmp_path):
    xarray = pytest.importorskip("xarray")
    coords = {"time": np.arange(6), "lat": np.linspace(50, 53, 7), "lon": np.linspace(5, 9, 8)}
    xarray.DataArray(np.where(HOLES, np.nan, TRUTH), coords, attrs={"units": "K"}, name="sst").to_netcdf(
        tmp_path / "sst.nc", engine="scipy"
    )
    run("xarray", tmp_path)
    with xarray.open_dataarray(tmp_path / "filled.nc") as made:
        assert (
            made.dims == ("time", "lat", "lon")
            and made.attrs["units"] == "K"
            and np.array_equal(made.lat, coords["lat"])
        )
        assert np.array_equal(made.values[~HOLES], TRUTH[~HOLES]) and np.abs(made.values - TRUTH).max() < 1


def test_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    days, truth, holes = pandas.date_range("2024-01-01", periods=42), TRUTH.reshape(42, 8), HOLES.reshape(42, 8)
    pandas.DataFrame(np.where(holes, np.nan, truth), days, list("abcdefgh")).to_csv(tmp_path / "sensors.csv")
    run("pandas", tmp_path)
    made = pandas.read_csv(tmp_path / "filled.csv", index_col=0, parse_dates=True)
    assert (made.index == days).all() and list(made) == list("abcdefgh")
    assert np.allclose(made.to_numpy()[~holes], truth[~holes]) and np.abs(made.to_numpy() - truth).max() < 2


def test_h5py(tmp_path):
    import h5py

    with h5py.File(tmp_path / "scan.h5", "w") as file:
        file["entry/data"], file["entry/mask"] = np.where(HOLES, -1, TRUTH), HOLES.astype(np.uint32)
    run("h5py", tmp_path)
    with h5py.File(tmp_path / "scan.h5") as file:
        made = file["entry/filled"][...]
        assert np.array_equal(made[~HOLES], TRUTH[~HOLES]) and np.abs(made - TRUTH).max() < 1
        assert (file["entry/data"][...][HOLES] == -1).all()
