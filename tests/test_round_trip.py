"""What comes back of every kind of picture in every format: the table of docs/formats.md, measured through the command
line.

`make formats` writes the table anew.
"""

import io
import re
import tempfile
import warnings
import zlib
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
from tdc_cli.names import FORMATS

PAGE = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
DPI = 300
HEIGHT, WIDTH = 12, 14
CHANNELS = {"L": None, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4, "grey array": None, "array of 3": 3}
NAMES = {"png": "PNG", "jpg": "JPEG", "tif": "TIFF", "webp": "WebP", "jxl": "JPEG XL", "bmp": "BMP", "npy": "NPY"}
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
    *(("bmp", mode, "uint8") for mode in ("L", "RGB", "palette", "1 bit")),
    *(
        ("npy", mode, dtype)
        for mode in ("grey array", "array of 3")
        for dtype in ("uint8", "uint16", "float32", "float64")
    ),
]
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


def values_in(content, form):
    """Values of an output by a library that did not write it; JPEG, WebP and BMP by OpenCV where it has the mode.

    JPEG XL is the exception: that no other library at hand reads it.
    """
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
    if form == "npy":
        return set()
    if form == "tif":
        with tifffile.TiffFile(io.BytesIO(content)) as file:
            tags = {tag.code: tag.value for tag in file.pages[0].tags}
        profile, maker = tags.get(34675), tags.get(271)
        dpi = tags[282][0] / tags[282][1] if tags.get(296) == 2 else 0
    elif form == "jxl":
        exif = Image.Exif()
        exif.load(plain_codecs.jxl_boxes(content).get(b"Exif", b"")[4:])
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
    """Cells of the table for one kind of input; checks what must hold in every cell, and the words of refusals."""
    form, mode, dtype = source
    content, values = make(*source)
    (folder / f"in.{form}").write_bytes(content)
    (folder / "mask.png").write_bytes(plain_codecs.png(np.where(HOLE, 255, 0).astype(np.uint8)))
    had = metadata_in(content, form)
    assert had == {"bmp": {"resolution"}, "npy": set(), "jxl": {"resolution", "EXIF"}}.get(
        form, {"profile", "resolution", "EXIF"}
    )
    cells, refusals = [], {}
    for target in FORMATS:
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
    depth = f"of {dtype}" if dtype.startswith("float") else f"with {dtype.removeprefix('uint')} bits"
    written_as = {"palette": "RGB", "palette with transparency": "RGBA", "1 bit": "L"}.get(mode, mode)
    kind = f"{'an array' if 'array' in mode else f'mode {written_as}'} {depth}"
    able = " or ".join(f".{target}" for target in FORMATS if target not in refusals)
    for target, words in refusals.items():
        assert words == f"{NAMES[target]} cannot hold {kind}; write to {able}"
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
    assert line(source, row(source, tmp_path)) in PAGE.read_text(encoding="utf-8").splitlines()


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
