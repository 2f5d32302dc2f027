"""What comes back of every kind of picture in every format: the table of docs/formats.md, measured through the command
line.

`make formats` writes the table anew.
"""

import io
import re
import struct
import tempfile
import warnings
import zlib
from importlib.util import find_spec
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import plain_codecs
import pytest
import tifffile
from click.testing import CliRunner
from conftest import ROOT, put_between, smooth
from PIL import Image, ImageCms

from tdc_cli.cli.main import main
from tdc_cli.media import formats
from tdc_cli.names import FORMATS

PAGE = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
DPI = 300
HEIGHT, WIDTH = 12, 14
CHANNELS = {"L": None, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4, "grey array": None, "array of 3": 3}
NAMES = {
    "png": "PNG", "jpg": "JPEG", "tif": "TIFF", "webp": "WebP", "jxl": "JPEG XL", "jp2": "JPEG 2000",
    "j2k": "JPEG 2000 codestream", "exr": "OpenEXR", "bmp": "BMP", "npy": "NPY",
}  # fmt: skip
OF_A_TRADE = ("jp2", "j2k", "exr")  # advised only to those whose files are of the same kind
# Format, mode, type of the values; what a format cannot hold is not here.
SOURCES = [
    *(("png", mode, dtype) for mode in ("L", "LA", "RGB", "RGBA") for dtype in ("uint8", "uint16")),
    ("png", "palette", "uint8"),
    ("png", "palette with transparency", "uint8"),
    ("png", "1 bit", "uint8"),
    *(("jpg", mode, "uint8") for mode in ("L", "RGB", "CMYK")),
    *(
        ("tif", mode, dtype)
        for mode in ("L", "LA", "RGB", "RGBA")
        for dtype in ("uint8", "uint16", "float32", "float64")
    ),
    *(("tif", "CMYK", dtype) for dtype in ("uint8", "uint16")),
    ("tif", "palette", "uint8"),
    *(("webp", mode, "uint8") for mode in ("RGB", "RGBA")),
    *(("jxl", mode, dtype) for mode in ("L", "LA", "RGB", "RGBA") for dtype in ("uint8", "uint16", "float32")),
    *(("jp2", mode, dtype) for mode in ("L", "LA", "RGB", "RGBA") for dtype in ("uint8", "uint16")),
    ("jp2", "RGB", "12 bits"),
    ("jp2", "L", "int16"),
    *(("j2k", mode, dtype) for mode in ("L", "RGB") for dtype in ("uint8", "uint16")),
    *(("exr", mode, dtype) for mode in ("L", "LA", "RGB", "RGBA") for dtype in ("float16", "float32")),
    *(("bmp", mode, "uint8") for mode in ("L", "RGB", "palette", "1 bit")),
    *(
        ("npy", mode, dtype)
        for mode in ("grey array", "array of 3")
        for dtype in ("uint8", "uint16", "float32", "float64")
    ),
]
EXR = find_spec("OpenEXR") is not None
HOLE = np.zeros((HEIGHT, WIDTH), dtype=bool)
HOLE[5:7, 6:9] = True


def exif_bytes():
    exif = Image.Exif()
    exif[271] = "Maker"
    return exif.tobytes()


def values_of(mode, dtype):
    """Values with true black, true white, and random lowest bits and alpha."""
    rng = np.random.default_rng(0)
    values = smooth(HEIGHT, WIDTH, CHANNELS[mode]).astype(float)
    values[0, :3], values[0, 3:6] = 0, 255
    if mode in ("LA", "RGBA"):
        values[..., -1] = rng.integers(0, 256, (HEIGHT, WIDTH))
    if dtype == "12 bits":
        return np.clip(values * 16 + rng.integers(-8, 9, values.shape), 0, 4095).astype(np.uint16)
    if dtype == "uint16":
        return np.clip(values * 257 + rng.integers(-128, 129, values.shape), 0, 65535).astype(dtype)
    return (values.round() if dtype == "uint8" else values * 30 - 1000 + rng.random(values.shape)).astype(dtype)


def make(form, mode, dtype):
    """Bytes of a file of that kind, and the values that must come back."""
    buffer = io.BytesIO()
    kept = {"icc_profile": PROFILE, "dpi": (DPI, DPI), "exif": exif_bytes()} if form != "bmp" else {"dpi": (DPI, DPI)}
    if form == "webp":
        exif = Image.Exif()
        exif.load(exif_bytes())
        exif[282] = exif[283] = DPI
        kept |= {"exif": exif.tobytes(), "lossless": True, "exact": True}
    pillow = {"png": "PNG", "jpg": "JPEG", "tif": "TIFF", "webp": "WEBP", "bmp": "BMP"}.get(form)
    if mode.startswith("palette"):
        index = np.random.default_rng(1).integers(0, 16, (HEIGHT, WIDTH), dtype=np.uint8)
        colours = np.random.default_rng(2).integers(0, 256, (16, 3), dtype=np.uint8)
        picture = Image.fromarray(index, mode="P")
        picture.putpalette(colours.tobytes())
        see_through = mode.endswith("transparency")
        picture.save(buffer, pillow, **kept, **({"transparency": 3} if see_through else {}))
        alpha = [np.where(index == 3, 0, 255)[..., None].astype(np.uint8)] if see_through else []
        return buffer.getvalue(), np.concatenate([colours[index], *alpha], axis=2)
    if mode == "1 bit":
        bits = np.random.default_rng(1).random((HEIGHT, WIDTH)) < 0.5
        Image.fromarray(bits).save(buffer, pillow, **kept)
        return buffer.getvalue(), np.where(bits, 255, 0).astype(np.uint8)
    values = values_of(mode, dtype)
    if form == "npy":
        np.save(buffer, values)
    elif form in ("jp2", "j2k"):
        bits = 12 if dtype == "12 bits" else None
        stream = imagecodecs.jpeg2k_encode(values, level=0, codecformat="j2k", reversible=True, bitspersample=bits)
        content = plain_codecs.jp2(stream, values, bits, PROFILE, DPI, exif_bytes()) if form == "jp2" else stream
        return content, spread(values, bits)
    elif form == "exr":
        pytest.importorskip("OpenEXR")
        planes = dict(zip({"L": "Y", "LA": "YA"}.get(mode, mode), np.moveaxis(np.atleast_3d(values), 2, 0)))
        return plain_codecs.exr(planes, [("xDensity", "float", struct.pack("<f", DPI))]), values.astype(np.float32)
    elif form == "png":
        return plain_codecs.png(values, plain_codecs.png_metadata(PROFILE, DPI, exif_bytes())), values
    elif form == "jxl":
        exif = Image.Exif()
        exif.load(exif_bytes())
        exif[282] = exif[283] = DPI
        box = bytes(4) + exif.tobytes().removeprefix(b"Exif\0\0")
        box = (8 + len(box)).to_bytes(4, "big") + b"Exif" + box
        return imagecodecs.jpegxl_encode(values, lossless=True, usecontainer=True) + box, values
    elif form == "tif":
        tifffile.imwrite(
            buffer,
            values,
            photometric={"L": "minisblack", "LA": "minisblack", "CMYK": "separated"}.get(mode, "rgb"),
            extrasamples=["unassalpha"] if mode in ("LA", "RGBA") else None,
            planarconfig="contig" if values.ndim == 3 else None,
            iccprofile=PROFILE,
            resolution=(DPI, DPI),
            resolutionunit="INCH",
            extratags=[(271, "s", 0, "Maker", True)],
            metadata=None,
        )
    else:
        picture = Image.fromarray(values, mode="CMYK") if mode == "CMYK" else Image.fromarray(values)
        picture.save(buffer, pillow, **kept, **({"quality": 100} if form == "jpg" else {}))
        values = np.asarray(Image.open(io.BytesIO(buffer.getvalue())))
    return buffer.getvalue(), values


def spread(levels, bits):
    """Levels of 12 bits over the whole range of 16, others as they are."""
    return np.rint(levels * (65535 / 4095)).astype(np.uint16) if bits == 12 else levels


def values_in(content, form):
    """Values of an output by a library that did not write it: JPEG, WebP and BMP by OpenCV where it has the mode, JPEG
    2000 by GDAL.

    JPEG XL and OpenEXR are the exceptions: those no other library at hand reads.
    """
    if form in ("jp2", "j2k"):
        bits = content[content.index(b"\xff\x51") + 40] + 1
        rasterio = pytest.importorskip("rasterio")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.MemoryFile(content, ext=f".{form}") as file, file.open() as raster:
                values = np.moveaxis(raster.read(), 0, 2)
        return spread(values[..., 0] if values.shape[2] == 1 else values, bits)
    if form == "exr":
        with pytest.importorskip("OpenEXR").File(io.BytesIO(content), separate_channels=True) as file:
            planes = {name: channel.pixels.copy() for name, channel in file.channels().items()}
        order = [name for name in "YRGBA" if name in planes]
        values = np.stack([planes[name].astype(np.float32) for name in order], axis=2)
        return values[..., 0] if len(order) == 1 else values
    if form == "jxl":
        return imagecodecs.jpegxl_decode(content)
    if form == "npy":
        return np.load(io.BytesIO(content))
    if form == "tif":
        return plain_codecs.tiff_values(content)
    if form == "jpg" and Image.open(io.BytesIO(content)).mode == "CMYK":
        return np.asarray(Image.open(io.BytesIO(content)))
    values = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    if form == "png" and content[25] == 4:  # grey with alpha, which OpenCV repeats to four channels
        return values[..., [0, 3]]
    if form == "bmp" and Image.open(io.BytesIO(content)).mode == "L" and values.ndim == 3:
        return values[..., 0]
    return values if values.ndim == 2 else values[..., [2, 1, 0, 3][: values.shape[2]]]


def metadata_in(content, form):
    """Which of "profile", "resolution" and "EXIF" an output holds, unchanged."""
    if form in ("npy", "j2k"):
        return set()
    if form == "exr":
        with pytest.importorskip("OpenEXR").File(io.BytesIO(content)) as file:
            return {"resolution"} if abs(file.header().get("xDensity", 0) - DPI) < 0.1 else set()
    if form == "jp2":
        boxes, exif = plain_codecs.boxes(content), Image.Exif()
        exif.load(boxes.get(plain_codecs.JP2_EXIF, b""))
        maker, dpi = exif.get(271), Image.open(io.BytesIO(content)).info.get("dpi", (0,))[0]
        profile = plain_codecs.boxes(boxes[b"jp2h"])[b"colr"][3:]
    elif form == "tif":
        with tifffile.TiffFile(io.BytesIO(content)) as file:
            tags = {tag.code: tag.value for tag in file.pages[0].tags}
        profile, maker = tags.get(34675), tags.get(271)
        dpi = tags[282][0] / tags[282][1] if tags.get(296) == 2 else 0
    elif form == "jxl":
        exif = Image.Exif()
        exif.load(plain_codecs.boxes(content).get(b"Exif", b"")[4:])
        maker, dpi, profile = exif.get(271), exif.get(282, 0), None
    else:
        picture = Image.open(io.BytesIO(content))
        exif = picture.getexif()
        maker, dpi = exif.get(271), exif.get(282, 0) if form == "webp" else picture.info.get("dpi", (0,))[0]
        compressed = plain_codecs.png_chunks(content).get(b"iCCP") if form == "png" else None
        profile = (
            zlib.decompress(compressed.partition(b"\0\0")[2]) if compressed else PROFILE if PROFILE in content else None
        )
    found = {"profile": profile == PROFILE, "resolution": abs(dpi - DPI) < 0.1, "EXIF": maker == "Maker"}
    return {key for key, there in found.items() if there}


def row(source, folder):
    """Cells of the table for one kind of input, None where a library is missing; checks what must hold in every cell,
    and the words of refusals.
    """
    form, mode, dtype = source
    content, values = make(*source)
    (folder / f"in.{form}").write_bytes(content)
    (folder / "mask.png").write_bytes(plain_codecs.png(np.where(HOLE, 255, 0).astype(np.uint8)))
    had = metadata_in(content, form)
    assert had == {
        "bmp": {"resolution"}, "npy": set(), "jxl": {"resolution", "EXIF"}, "j2k": set(), "exr": {"resolution"},
    }.get(form, {"profile", "resolution", "EXIF"})  # fmt: skip
    cells, refusals = [], {}
    for target in FORMATS:
        if target == "exr" and not EXR:
            cells.append(None)
            continue
        output = folder / f"out.{target}"
        words = [
            "complete-image",
            f"{folder}/in.{form}",
            "-o",
            str(output),
            "--mask",
            f"{folder}/mask.png",
            "--method",
            "biharmonic",
        ]
        result = CliRunner().invoke(main, words)
        if result.exit_code == 2:
            assert result.stderr.count("\n") == 1 and not output.exists(), result.stderr
            refusals[target] = result.stderr.partition(f"out.{target}: ")[2].strip()
            cells.append("refused")
            continue
        assert result.exit_code == 0, result.stderr
        written = output.read_bytes()
        found = values_in(written, target)
        assert found.dtype == values.dtype and found.shape == values.shape
        assert np.isfinite(found).all()
        same = np.array_equal(found[~HOLE], values[~HOLE])
        if mode in ("LA", "RGBA"):
            assert np.array_equal(found[..., -1], values[..., -1])
        if target == "jpg":
            assert (
                np.abs(found.astype(int) - values)[~HOLE].mean() < 12 and "JPEG compresses with loss" in result.stderr
            )
        else:
            assert same
        lost = [key for key in ("profile", "resolution", "EXIF") if key in had - metadata_in(written, target)]
        assert bool(lost) == (f"{NAMES[target]} cannot hold all that the input has" in result.stderr), result.stderr
        cells.append(", no ".join(["lossy" if target == "jpg" else "✓", *(["/".join(lost)] if lost else [])]))
    depth = "with 12 bits" if dtype == "12 bits" else f"with {dtype.removeprefix('uint')} bits"
    if dtype.startswith(("float", "int")):
        depth = f"of {dtype.replace('float16', 'float32')}"
    written_as = {"palette": "RGB", "palette with transparency": "RGBA", "1 bit": "L"}.get(mode, mode)
    kind = f"{'an array' if 'array' in mode else f'mode {written_as}'} {depth}"
    able = " or ".join(f".{t}" for t in FORMATS if t not in refusals and (t not in OF_A_TRADE or t == form))
    for target, words in refusals.items():
        reason = kind
        if mode in ("LA", "RGBA") and (form, target) == ("exr", "npy"):
            reason = "colours that are multiplied by their alpha, which the input has"
        elif "array" in mode and str(values.dtype) in formats.named(f"o.{target}").types:
            reason = "an array, of which nothing says that it is grey, RGB or another mode"
        elif mode in ("LA", "RGBA") and target == "exr" and dtype == "float32":
            reason += " whose colours are not multiplied by it"
        assert words == f"{NAMES[target]} cannot hold {reason}; write to {able}", words
    return cells


def title(source):
    form, mode, dtype = source
    return f"{NAMES[form]} {mode}, {dtype}"


def line(source, cells):
    return f"| {' | '.join([title(source), *cells])} |"


@pytest.fixture(autouse=True)
def no_deprecations():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Image.fromarray's mode, in some versions of Pillow
        yield


@pytest.mark.parametrize("source", SOURCES, ids=title)
def test_every_kind_comes_back_as_the_table_says(source, tmp_path):
    measured = row(source, tmp_path)
    told = re.search(rf"^{re.escape(line(source, []))} (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    cells = told[1].split(" | ")
    assert [cell if cell is not None else there for cell, there in zip(measured, cells, strict=True)] == cells


def test_the_table_has_these_rows_and_no_others():
    measured = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert re.findall(r"^\| (.*?) \|", measured, re.M)[1:] == [title(source) for source in SOURCES]


def write_page():
    """Measure everything and put it into the page."""
    lines = [f"| input | {' | '.join(NAMES[f] for f in FORMATS)} |", "|---" * (len(FORMATS) + 1) + "|"]
    for source in SOURCES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(line(source, row(source, Path(folder))))
    put_between(PAGE, BEGIN, END, lines)


if __name__ == "__main__":
    write_page()
