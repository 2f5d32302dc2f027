"""Stacks of microscopes: axes, sizes of pixels and time steps of ImageJ and OME files come back whatever the command.
"""

import numpy as np
import pytest
import tifffile
from conftest import report_of

SHAPE = (3, 4, 16, 20)


def stack(dtype="uint16", shape=SHAPE):
    """Smooth values with something to fill."""
    grids = np.ix_(*(np.arange(n) for n in shape))
    return (400 + 300 * np.sin(sum(g / (5 + k) for k, g in enumerate(grids)))).astype(dtype)


def write_imagej(path, values, axes):
    tifffile.imwrite(
        path,
        values,
        imagej=True,
        resolution=(2.5, 2.5),
        metadata={"axes": axes, "spacing": 0.5, "unit": "um", "finterval": 1.5, "Labels": ["first", "second"]},
    )


def write_ome(path, values, axes, **options):
    sizes = {
        "PhysicalSizeX": 0.4,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": 0.4,
        "PhysicalSizeYUnit": "µm",
        "PhysicalSizeZ": 0.5,
        "PhysicalSizeZUnit": "µm",
        "TimeIncrement": 1.5,
        "TimeIncrementUnit": "s",
    }
    tifffile.imwrite(path, values, ome=True, metadata={"axes": axes, "Channel": {"Name": ["dye"]}, **sizes}, **options)


def said(path):
    """What a file says of its axes and sizes, as tifffile's own readers of ImageJ and OME have it."""
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        facts = {
            "kind": series.kind,
            "axes": series.axes,
            "shape": series.shape,
            "resolution": file.pages[0].get_resolution(),
        }
        if file.is_imagej:
            facts |= {
                key: file.imagej_metadata.get(key)
                for key in ("spacing", "unit", "finterval", "Labels", "frames", "slices")
            }
        if file.is_ome:
            pixels = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
            facts |= {key: pixels[key] for key in pixels if key.startswith(("Physical", "Time", "Size", "Channel"))}
        return facts


@pytest.mark.parametrize(
    "write, axes", [(write_imagej, "TZYX"), (write_imagej, "ZCYX"), (write_ome, "TZYX"), (write_ome, "ZYX")]
)
@pytest.mark.parametrize("command", ["complete-tensor", "complete-video"])
def test_a_stack_comes_back_with_its_axes_and_sizes(tdc, write, axes, command):
    values = stack(shape=SHAPE[-len(axes) :])
    write("s.ome.tif" if write is write_ome else "s.tif", values, axes)
    name = "s.ome.tif" if write is write_ome else "s.tif"
    mask = np.zeros(values.shape[-2:], np.uint8)
    mask[5:8, 6:9] = 255
    tifffile.imwrite("m.tif", mask)
    np.save("m.npy", np.broadcast_to(mask, values.shape))
    marks = "m.npy" if command == "complete-tensor" else "m.tif"
    method = "halrtc" if command == "complete-tensor" else "linear"
    result = tdc(command, name, "-o", f"b.{name}", "--mask", marks, "--method", method)
    assert result.exit_code == 0, result.stderr
    assert said(f"b.{name}") == said(name)
    made, holes = tifffile.imread(f"b.{name}"), np.broadcast_to(mask > 0, values.shape)
    assert (
        made.dtype == values.dtype and np.array_equal(made[~holes], values[~holes]) and "without" not in result.stderr
    )


@pytest.mark.parametrize(
    "options", [{"tile": (16, 16)}, {"compression": "zlib"}, {"byteorder": ">"}, {"bigtiff": True}]
)
def test_other_layouts_of_an_ome_stack(tdc, options):
    values = stack()
    write_ome("s.ome.tif", values, "TZYX", **options)
    result = tdc("complete-tensor", "s.ome.tif", "-o", "b.ome.tif", "--missing-ratio", 0.2, "--method", "linear")
    assert result.exit_code == 0, result.stderr
    assert said("b.ome.tif") == said("s.ome.tif")
    assert (tifffile.imread("b.ome.tif") == values).mean() > 0.75


def test_a_picture_with_sizes_comes_back_with_them(tdc):
    for write, name in ((write_imagej, "s.tif"), (write_ome, "s.ome.tif")):
        write(name, stack()[0, 0], "YX")
        assert report_of(
            tdc("complete-image", name, "-o", f"b.{name}", "--missing-ratio", 0.1, "--method", "linear", "--json")
        )
        assert said(f"b.{name}") == said(name)


@pytest.mark.parametrize(
    "command, output",
    [
        ("complete-tensor", "b.npy"),
        ("complete-tensor", "b.npz"),
        ("complete-video", "b.npy"),
        ("complete-video", "frames/"),
    ],
)
def test_what_other_formats_lose_of_a_stack_is_told(tdc, command, output):
    write_imagej("s.tif", stack(shape=SHAPE[1:]), "ZYX")
    result = tdc(command, "s.tif", "-o", output, "--missing-ratio", 0.1, "--method", "linear")
    assert result.exit_code == 0, result.stderr
    assert "ImageJ description" in result.stderr
