"""Formats that are not read: the line says what turns them into one that is."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name, way",
    [
        (
            "f.DPX",
            "is a frame of scanned film, which is not read; convert it to TIFF of 16 bits: oiiotool 'f.DPX' -d uint16 "
            "-o 'f.tif'",
        ),
        ("f.heic", "is HEIF, which is not read; convert it to PNG: heif-dec 'f.heic' 'f.png'"),
        ("f.psd", "is Photoshop's own, which is not read; take its flattened picture: magick 'f.psd[0]' 'f.tif'"),
        ("f.NEF", "is a raw file of a camera, which is not read; develop it first: dcraw_emu -T -4 'f.NEF'"),
        (
            "f.nii.gz",
            "is NIfTI, which is not read; docs/python.md has the lines for it with nibabel and tdc_cli.complete",
        ),
        ("f.fits", "is FITS, which is not read; docs/python.md has the lines for it with astropy and tdc_cli.complete"),
        ("f.nc", "is NetCDF, which is not read; docs/python.md has the lines for it with xarray and tdc_cli.complete"),
        ("f.h5", "is HDF5, which is not read; docs/python.md has the lines for it with h5py and tdc_cli.complete"),
        (
            "f.csv",
            "is a table, which is not read; docs/python.md has the lines for it with pandas and tdc_cli.complete",
        ),
    ],
)
def test_every_command_names_the_way_out(tdc, name, way):
    Path(name).write_bytes(b"anything")
    for command in ("complete-image", "complete-video", "complete-tensor"):
        result = tdc(command, name, "-o", "b.npy", "--missing-ratio", "0.1", "--method", "linear")
        assert (result.exit_code, result.stderr) == (2, f"tdc: {name}: {way}\n")


def test_frames_of_such_a_format_too(tdc):
    Path("scan").mkdir()
    Path("scan/0001.dpx").write_bytes(b"SDPX")
    result = tdc("complete-video", "scan", "-o", "b", "--missing-ratio", "0.1")
    assert result.exit_code == 2 and result.stderr.startswith(
        "tdc: scan/0001.dpx: is a frame of scanned film, which is not read; convert"
    )


def test_an_output_of_such_a_format_names_those_that_are_written(tdc):
    result = tdc("complete-image", "a.png", "-o", "b.dpx", "--mask", "m.png")
    assert result.exit_code == 2 and "b.dpx: extension '.dpx' is not known; use one of .bmp" in result.stderr
