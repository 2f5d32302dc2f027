"""Rasters and scans: what the directory of a TIFF file says is kept, nodata is missing, and copies beside the picture
are no pages.
"""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import report_of, smooth
from PIL import Image

from tdc_cli import media
from tdc_cli.media import tiff_tags

QUICK = ["--method", "biharmonic"]
# Tags of GDAL and GeoTIFF: pixel size, tie point, keys, metadata, and others.
METADATA = (
    '<GDALMetadata><Item name="SENSOR">made up</Item><Item name="STATISTICS_MEAN" sample="0">5</Item>'
    '<Item name="OFFSET" sample="0" role="offset">1.5</Item></GDALMetadata>'
)
GEO = [
    (33550, "d", 3, (30.0, 30.0, 0.0), True),
    (33922, "d", 6, (0, 0, 0, 500000.0, 4600000.0, 0), True),
    (34735, "H", 16, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633), True),
    (42112, "s", 0, METADATA, True),
    (269, "s", 0, "map 7", True),
    (33723, 1, None, b"\x1c\x02\x78\x00\x04word", True),
]
KEPT = {33550, 33922, 34735, 269, 33723, 42113}


def heights(dtype, bands=1, nodata=-9999):
    """(48, 64[, bands]) heights with a gap, and where that is."""
    rows, columns = np.mgrid[:48, :64]
    planes = [60 + 30 * np.sin(rows / 9 + band) + 20 * np.cos(columns / 7) for band in range(bands)]
    values = np.stack(planes, axis=2).astype(dtype) if bands > 1 else planes[0].astype(dtype)
    gap = (rows + columns // 4) % 17 < 2
    values[gap] = nodata
    return values, gap


def write(path, values, nodata, **options):
    planes = np.moveaxis(values, 2, 0) if options.get("planarconfig") == "separate" else values
    tifffile.imwrite(path, planes, extratags=[*GEO, (42113, "s", 0, str(nodata), True)], metadata=None, **options)


def tags(path):
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        return {tag.code: tag.value for tag in page.tags}, page


@pytest.mark.parametrize(
    "dtype, nodata",
    [
        ("float32", -9999),
        ("float64", -1.7976931348623157e308),
        ("int16", -9999),
        ("uint16", 0),
        ("int32", -(2**31)),
        ("uint32", 2**32 - 1),
        ("uint8", 255),
        ("int8", -128),
    ],
)
@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"tile": (16, 32)},
        {"byteorder": ">", "compression": "zlib"},
        {"tile": (16, 16), "planarconfig": "separate"},
    ],
)
@pytest.mark.parametrize("bands", [1, 5])
def test_a_raster_comes_back_with_its_gaps_filled(tdc, dtype, nodata, layout, bands):
    if bands == 1 and "planarconfig" in layout:
        layout = {key: value for key, value in layout.items() if key != "planarconfig"}
    values, gap = heights(dtype, bands, nodata)
    write(
        "dem.tif",
        values,
        nodata,
        photometric="minisblack",
        **({"planarconfig": "contig"} if bands > 1 else {}) | layout,
    )
    result = tdc("complete-image", "dem.tif", "-o", "b.tif", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert f"tdc: note: dem.tif: its nodata value {nodata:g} counts as missing\n" in result.stderr
    made = media.read("b.tif")
    assert made.nodata == () and np.array_equal(made.values[~gap], values[~gap])
    assert made.values.dtype == np.dtype(dtype) and made.values[gap].min() >= 0 and made.values[gap].max() <= 127
    (before, page), (after, written) = tags("dem.tif"), tags("b.tif")
    assert all(before[code] == after[code] for code in KEPT)
    assert "STATISTICS" not in after[42112] and "SENSOR" in after[42112] and "OFFSET" in after[42112]
    for name in (
        "is_tiled",
        "planarconfig",
        "tilewidth",
        "rowsperstrip",
        "extrasamples",
        "photometric",
        "sampleformat",
    ):
        assert getattr(page, name) == getattr(written, name), name
    assert page.parent.byteorder == written.parent.byteorder


def test_nodata_is_no_height_where_a_mask_says_less(tdc):
    values, gap = heights("float32")
    write("dem.tif", values, -9999)
    mask = np.zeros((48, 64), dtype=np.uint8)
    mask[:, :20] = 255 * gap[:, :20]
    Image.fromarray(mask).save("m.png")
    result = tdc("complete-image", "dem.tif", "-o", "b.tif", "--mask", "m.png", *QUICK)
    assert "further entries are NaN or -9999 and count as missing" in result.stderr
    assert media.read("b.tif").values.min() >= 0
    report = report_of(tdc("complete-tensor", "dem.tif", "-o", "c.tif", "--method", "linear", "--json"))
    assert report["missing"]["source"] == "value" and report["missing"]["count"] == gap.sum()


def test_a_number_that_no_entry_has_changes_nothing(tdc):
    values, _ = heights("float32", nodata=70)
    write("dem.tif", values, -9999)
    report = report_of(tdc("complete-image", "dem.tif", "-o", "b.tif", "--missing-ratio", 0.2, *QUICK, "--json"))
    assert report["metrics"]["all"]["psnr"] > 20
    result = tdc("complete-image", "dem.tif", "-o", "c.tif", *QUICK)
    assert result.exit_code == 2 and "nothing says what is missing" in result.stderr


def test_pages_of_a_raster_in_time_declare_nodata_too(tdc):
    values, gap = heights("int16")
    with tifffile.TiffWriter("t.tif") as file:
        for k in range(4):
            file.write(values + np.int16(k) * ~gap, extratags=[(42113, "s", 0, "-9999", True)], metadata=None)
    result = tdc("complete-video", "t.tif", "-o", "b.tif", "--method", "linear")
    assert result.exit_code == 0, result.stderr
    assert "t.tif: its nodata value -9999 counts as missing" in result.stderr
    assert tifffile.imread("b.tif").min() >= 0


def test_frames_of_a_folder_declare_nodata_too(tdc):
    Path("f").mkdir()
    for k in range(3):
        values, gap = heights("int16")
        write(f"f/{k}.tif", values + np.int16(k) * ~gap, -9999)
    result = tdc("complete-video", "f", "-o", "b.npy", "--method", "linear")
    assert result.exit_code == 0 and "f/0.tif: its nodata value -9999 counts as missing" in result.stderr
    assert np.load("b.npy").min() >= 0


@pytest.mark.parametrize("number", ["nan", "-inf", "-9999.5", "70000", "no number", ""])
def test_numbers_that_no_entry_can_have_are_kept_and_left_alone(tdc, number):
    values, _ = heights("uint16", nodata=70)
    write("dem.tif", values, number)
    result = tdc("complete-image", "dem.tif", "-o", "b.tif", "--missing-ratio", 0.1, *QUICK)
    assert result.exit_code == 0 and "counts as missing" not in result.stderr
    assert tags("b.tif")[0].get(42113, "") == number


def test_what_other_formats_lose_of_a_raster_is_named(tdc):
    values, _ = heights("uint16", nodata=0)
    write("dem.tif", values, 0)
    result = tdc("complete-image", "dem.tif", "-o", "b.png", *QUICK)
    wanted = "IPTC, name of the document, georeference, GDAL metadata, nodata value; write to .tif to keep it"
    assert result.stderr.endswith("\n") and f"PNG cannot hold all that the input has: without {wanted}" in result.stderr


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("command", ["complete-image", "complete-video", "complete-tensor"])
def test_a_thumbnail_is_no_page(tdc, command, dtype, first):
    rows, columns = np.mgrid[:20, :24]
    values = np.stack([100 + 3 * rows, 90 + columns, rows + columns], axis=2).astype(dtype)
    pages = [(values, 0), (values[::4, ::4], 1)]
    with tifffile.TiffWriter("scan.tif") as file:
        for page, kind in pages[::-1] if first else pages:
            file.write(page, photometric="rgb", subfiletype=kind, metadata=None)
    result = tdc(command, "scan.tif", "-o", "b.tif", "--missing-ratio", 0.1, "--method", "linear")
    assert result.exit_code == 0, result.stderr
    assert "scan.tif: is read without its reduced copies or masks on further pages" in result.stderr
    assert tifffile.imread("b.tif").shape == (20, 24, 3)


def test_of_several_pages_the_way_out_names_one_that_is_no_thumbnail(tdc):
    values = np.zeros((20, 24), dtype=np.uint16)
    with tifffile.TiffWriter("scan.tif") as file:
        for page, kind in ((values[::4, ::4], 1), (values, 0), (values, 0)):
            file.write(page, subfiletype=kind, metadata=None)
    result = tdc("complete-image", "scan.tif", "-o", "b.tif", "--mask", "m.png")
    assert (
        result.exit_code == 2 and result.stderr == "tdc: scan.tif: holds 2 pages; give --page 1 or 2, or --pages all\n"
    )
    other = tdc("complete-image", "a.png", "-o", "b.tif", "--mask", "scan.tif")
    assert other.exit_code == 2 and other.stderr.endswith("magick 'scan.tif[1]' page.png\n")


def test_pyramids_layers_and_small_copies_in_resources_are_told_or_left_out(tdc):
    block = b"8BIM" + (1036).to_bytes(2, "big") + b"\0\0" + (5).to_bytes(4, "big") + b"small\0"
    other = b"8BIM" + (1005).to_bytes(2, "big") + b"\3abc" + (2).to_bytes(4, "big") + b"ok"
    values = np.full((64, 64, 3), 90, dtype=np.uint8)
    with tifffile.TiffWriter("scan.tif") as file:
        extra = [(34377, 1, None, block + other, True), (37724, 7, None, b"layers", True)]
        file.write(values, photometric="rgb", subifds=1, tile=(32, 32), extratags=extra, metadata=None)
        file.write(values[::2, ::2], photometric="rgb", subfiletype=1, metadata=None)
    result = tdc("complete-image", "scan.tif", "-o", "b.tif", "--missing-ratio", 0.1, *QUICK)
    assert "tdc: note: scan.tif: is read without its reduced copies, layers\n" in result.stderr
    assert tags("b.tif")[0][34377] == other


def test_directories_of_camera_and_place_go_into_tiles_of_any_byte_order(tdc):
    exif = Image.Exif()
    exif[271] = "Maker"
    exif.get_ifd(0x8769)[0x920A] = 50.0
    exif.get_ifd(0x8825)[1] = "N"
    Image.fromarray(np.full((20, 24, 3), 90, dtype=np.uint8)).save("x.jpg", exif=exif)
    read = media.read("x.jpg")
    for order in "<>":
        layout = tiff_tags.Layout(order, (16, 16), 20, False, 2, ())
        media.write(media.Media(read.values, "RGB", "", "", read.metadata | {"layout": layout}), "y.tif", replace=True)
        made = Image.open("y.tif").getexif()
        assert made[271] == "Maker" and made.get_ifd(0x8769)[0x920A] == 50 and made.get_ifd(0x8825)[1] == "N"
        assert np.array_equal(tifffile.imread("y.tif"), read.values)


def test_rasterio_finds_the_same_place(tdc):
    rasterio = pytest.importorskip("rasterio", reason="rasterio, which judges GeoTIFF, is not installed")
    values, _ = heights("float32")
    write("dem.tif", values, -9999, tile=(16, 16), compression="zlib")
    assert tdc("complete-image", "dem.tif", "-o", "b.tif", *QUICK).exit_code == 0
    with rasterio.open("dem.tif") as before, rasterio.open("b.tif") as after:
        assert (before.crs, before.transform, before.nodata, before.profile) == (
            after.crs,
            after.transform,
            after.nodata,
            after.profile,
        )
        assert after.crs.to_epsg() == 32633 and after.tags()["SENSOR"] == "made up" and after.read().min() > 0


@pytest.mark.parametrize("dtype, shape", [("uint8", (20, 24, 3)), ("uint16", (20, 24)), ("float32", (20, 24, 5))])
@pytest.mark.parametrize("command", ["complete-image", "complete-video", "complete-tensor"])
def test_a_big_endian_bigtiff_is_read(tdc, command, dtype, shape):
    if command == "complete-video" and shape[-1] == 5:
        shape = shape[:2]
    values = np.random.default_rng(0).integers(1, 200, shape).astype(dtype)
    extra = [(33550, "d", 3, (30.0, 30.0, 0.0), True), (270, "s", 0, "map 7", True)]
    how = {"photometric": "rgb" if shape[-1] == 3 else "minisblack", "metadata": None}
    if shape[-1] == 5:
        how["planarconfig"] = "contig"
    tifffile.imwrite("b.tif", values, bigtiff=True, byteorder=">", extratags=extra, **how)
    done = tdc(command, "b.tif", "-o", "c.tif", "--missing-ratio", "0.2", "--method", "nearest")
    assert done.exit_code == 0, done.stderr
    made = tifffile.imread("c.tif")
    assert made.shape == shape and np.mean(made == values) > 0.75
    found, page = tags("c.tif")
    assert found[33550] == (30.0, 30.0, 0.0) and found[270] == "map 7" and page.parent.byteorder == ">"


def test_kinds_of_further_channels_that_tiff_does_not_name_are_unnamed(tdc, folder):
    tifffile.imwrite("e.tif", np.dstack([smooth(20, 24), smooth(20, 24)[..., 0]]), photometric="rgb", extrasamples=[0])
    with tifffile.TiffFile("e.tif", mode="r+") as file:
        file.pages[0].tags[338].overwrite(999)
    result = tdc("complete-image", "e.tif", "-o", "o.tif", "--mask", "m.png", "--method", "nearest")
    assert result.exit_code == 0, result.stderr
    with tifffile.TiffFile("o.tif") as file:
        assert file.pages[0].shape == (20, 24, 4) and [int(e) for e in file.pages[0].extrasamples] == [0]
