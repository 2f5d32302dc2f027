"""Damaged files, odd masks and any options: one clear line or a right result, and no file is touched that should not
be.

A small run, always the same, is part of the tests. ``TDC_FUZZ=10000`` (or ``make fuzz``) tries that many new inputs in
this process and a fiftieth of them through the installed program.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tifffile
from click.testing import CliRunner
from conftest import smooth
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from PIL import Image

from tdc_cli import methods
from tdc_cli.cli.main import main
from tdc_cli.names import PATTERNS

SCRIPT = str(Path(sys.executable).with_name("tdc"))
BIG = int(os.environ.get("TDC_FUZZ", "0"))
SIZE = (5, 6)  # of the pictures: most of the time goes to what is around the work

_health = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def tries(many, few):
    """Settings for a share of the big run, or for the small one."""
    if BIG:
        return settings(
            max_examples=max(1, int(BIG * many)),
            deadline=None,
            suppress_health_check=_health,
            print_blob=True,
            database=None,
        )
    return settings(max_examples=few, deadline=None, suppress_health_check=_health, derandomize=True, database=None)


# -- files
# --------------------------------------------------------------------------------------------------------------------


def _pillow(values, kind, mode=None, **more):
    buffer = io.BytesIO()
    picture = Image.fromarray(values)
    (picture.convert(mode) if mode else picture).save(buffer, kind, **more)
    return buffer.getvalue()


def _tiff(values, **more):
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, **more)
    return buffer.getvalue()


def _npy(values):
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def _valid():
    """Name to bytes of small valid files of every kind that people have, whether they can be read or not."""
    grey, rgb = smooth(*SIZE, None), smooth(*SIZE)
    rgba, floats = smooth(*SIZE, 4), rgb.astype(np.float32)
    deep, holed = rgb.astype(np.uint16) * 257, np.where(grey > 200, np.nan, grey.astype(float))
    exif = Image.Exif()
    exif[274], exif[271] = 6, "maker"
    more = {"exif": exif.tobytes(), "icc_profile": b"profile" * 30}
    files = {
        "grey.png": _pillow(grey, "PNG"),
        "rgb.png": _pillow(rgb, "PNG", dpi=(300, 300), **more),
        "rgba.png": _pillow(rgba, "PNG"),
        "la.png": _pillow(rgba, "PNG", "LA"),
        "deep.png": _pillow(deep[..., 0], "PNG"),
        "palette.png": _pillow(rgb, "PNG", "P"),
        "bit.png": _pillow(rgb, "PNG", "1"),
        "rgb.jpg": _pillow(rgb, "JPEG", **more),
        "grey.jpeg": _pillow(grey, "JPEG"),
        "cmyk.jpg": _pillow(rgb, "JPEG", "CMYK"),
        "rgb.tif": _pillow(rgb, "TIFF", compression="tiff_lzw", **more),
        "rgba.tiff": _pillow(rgba, "TIFF", compression="tiff_deflate"),
        "bit.tif": _pillow(rgb, "TIFF", "1", compression="group4"),
        "jpeg.tif": _pillow(rgb, "TIFF", compression="jpeg"),
        "float.tif": _tiff(floats, photometric="rgb"),
        "deep.tif": _tiff(deep, photometric="rgb"),
        "planes.tif": _tiff(np.moveaxis(deep, 2, 0), photometric="rgb", planarconfig="separate"),
        "pages.tif": _tiff(np.stack([grey] * 3), photometric="minisblack"),
        "double.tif": _tiff(holed),
        "rgb.webp": _pillow(rgb, "WEBP", lossless=True),
        "rgba.webp": _pillow(rgba, "WEBP"),
        "rgb.bmp": _pillow(rgb, "BMP"),
        "palette.bmp": _pillow(rgb, "BMP", "P"),
        "rgb.gif": _pillow(rgb, "GIF"),
        "single.npy": _npy(floats),
        "double.npy": _npy(holed),
        "bytes.npy": _npy(rgb),
        "odd.npy": _npy(np.array([1 + 2j, 3])),
        "text.txt": b"no picture",
    }
    return files


VALID = _valid()
EXTENSIONS = sorted({Path(name).suffix for name in VALID})
# Numbers that headers are wrong by.
NASTY = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


@st.composite
def damaged(draw, content):
    """`content` with bytes changed, numbers replaced, parts cut out, repeated or swapped, or what follows cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        # Headers are where it hurts: half of the places are in the first hundred bytes.
        at = draw(st.integers(0, min(len(data), 100) - 1) | st.integers(0, len(data) - 1))
        what = draw(st.sampled_from(["byte", "number", "cut", "drop", "repeat", "insert"]))
        if what == "byte":
            data[at] = draw(st.integers(0, 255))
        elif what == "number":
            size = draw(st.sampled_from([2, 4]))
            order = draw(st.sampled_from(["big", "little"]))
            data[at : at + size] = (draw(st.sampled_from(NASTY)) % 256**size).to_bytes(size, order)
        elif what == "cut":
            del data[at:]
        elif what == "drop":
            del data[at : at + draw(st.integers(1, 40))]
        elif what == "repeat":
            data[at:at] = data[at : at + draw(st.integers(1, 40))]
        else:
            data[at:at] = draw(st.binary(min_size=1, max_size=12))
    return bytes(data)


@st.composite
def png_chunks(draw):
    """A PNG whose chunks are dropped, doubled, out of order or made up, their check sums right: what is in them is
    read.
    """
    content = VALID[draw(st.sampled_from([name for name in VALID if name.endswith(".png")]))]
    chunks, at = [], 8
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
        at += 12 + length
    names = [
        b"IHDR",
        b"PLTE",
        b"IDAT",
        b"IEND",
        b"tRNS",
        b"iCCP",
        b"eXIf",
        b"pHYs",
        b"iTXt",
        b"zTXt",
        b"gAMA",
        b"acTL",
        b"fcTL",
        b"fdAT",
    ]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(chunks) - 1)) if chunks else 0
        what = draw(st.sampled_from(["drop", "double", "change", "new", "swap"]))
        if what == "new" or not chunks:
            chunks.insert(at, (draw(st.sampled_from(names)), draw(st.binary(max_size=20))))
        elif what == "drop":
            del chunks[at]
        elif what == "double":
            chunks.insert(at, chunks[at])
        elif what == "swap":
            chunks[at], chunks[0] = chunks[0], chunks[at]
        else:
            chunks[at] = (chunks[at][0], draw(damaged(chunks[at][1])) if chunks[at][1] else b"\0")
    made = content[:8]
    for name, data in chunks:
        made += len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")
    return made


@st.composite
def files(draw):
    """(extension, bytes): sound, damaged, or named like another kind."""
    if draw(st.integers(0, 5)) == 0:
        return ".png", draw(png_chunks())
    name = draw(st.sampled_from(list(VALID)))
    content = VALID[name] if draw(st.integers(0, 4)) == 0 else draw(damaged(VALID[name]))
    lies = draw(st.integers(0, 9)) == 0
    return (draw(st.sampled_from(EXTENSIONS)) if lies else Path(name).suffix), content


masks = files() | st.lists(st.sampled_from([0, 1, 127, 128, 254, 255]), min_size=30, max_size=30).map(
    lambda levels: (".png", _pillow(np.array(levels, dtype=np.uint8).reshape(SIZE), "PNG"))
)

# -- options
# ------------------------------------------------------------------------------------------------------------------

numbers = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "3",
        "-1",
        "0.5",
        "1e-300",
        "1e308",
        "nan",
        "inf",
        "-inf",
        "",
        "x",
        "9" * 30,
        "128",
        "255",
        "256",
        "0x10",
    ]
)
OPTIONS = {
    "--missing-ratio": st.sampled_from(["0", "0.1", "0.5", "0.99", "1", "nan", "-0.1", "1e-9"]),
    "--missing-pattern": st.sampled_from([*PATTERNS, "x"]),
    "--mask-threshold": numbers,
    "--mask-dilate": numbers,
    "--add-noise": numbers,
    "--noise-std": numbers | st.just("auto"),
    "--seed": numbers,
    "--threads": st.sampled_from(["1", "0", "x"]),
    "--method": st.sampled_from(["field", "biharmonic", "biharmonic", "magic", ""]),
    "--param": st.sampled_from(
        ["exponent=1.5", "steps=0", "samples=1", "exponent=nan", "x", "=", "a=b", "samples=1e9"]
    ),
    "--rank": numbers,
    "--samples": numbers,
    "--report": st.sampled_from(["r.json", "a", "", ".", "none/r.json", "kept.txt"]),
    "--uncertainty": st.sampled_from(["u.npy", "u.tif", "u.png", "u.xyz"]),
    "--save-incomplete": st.sampled_from(["i.png", "i.npy", "i.tif"]),
    "--config": st.sampled_from(["none.toml", "kept.txt"]),
}
FLAGS = ["--invert-mask", "--json", "-q", "-v", "--dry-run", "--progress", "--overwrite", "--spatial", "--help"]


@st.composite
def calls(draw):
    """(input, mask or None, words): a whole call of `tdc complete-image`."""
    content = draw(files())
    mask = draw(st.none() | masks)
    words = ["--missing-ratio", "0.3"] if mask is None and draw(st.booleans()) else []
    chosen = draw(st.lists(st.sampled_from(list(OPTIONS)), max_size=3, unique=True)) if draw(st.booleans()) else []
    for option in chosen:
        words += [option, draw(OPTIONS[option])]
    words += draw(st.lists(st.sampled_from(FLAGS), max_size=2, unique=True))
    if "--method" not in words:
        words = ["--method", draw(st.sampled_from(["field", "biharmonic"])), *words]
    out = draw(st.sampled_from([".png", ".npy", ".tif", ".jpg", content[0]]))
    return content, mask, [*words, "-o", f"out{out}"]


# -- the check
# ----------------------------------------------------------------------------------------------------------------


@contextmanager
def placed(content, mask):
    """Working folder with the input, its mask and a file that nobody named; yields words that name them."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            names = [f"a{content[0]}"]
            Path(names[0]).write_bytes(content[1])
            Path("kept.txt").write_text("not TOML, and precious")
            if mask is not None:
                names += ["--mask", f"m{mask[0]}"]
                Path(names[2]).write_bytes(mask[1])
            yield names
        finally:
            os.chdir(before)


def check(code, out, err, there, words):
    """What holds whatever went in; `there` is name to bytes of the files before the call."""
    note(f"{words}: {code}\n{out}\n{err}")
    assert code in (0, 1, 2)
    assert "Traceback" not in err and "Warning" not in err and "unexpected" not in err
    assert all(line.startswith("tdc: ") for line in err.splitlines())
    now = {path.name: path.read_bytes() for path in Path().iterdir()}
    writable = {"kept.txt"} if "--overwrite" in words else set()
    assert all(now[name] == content for name, content in there.items() if name not in writable)
    made = set(now) - set(there)
    assert not any(name.startswith(".tdc-") for name in made)
    if code:
        assert not made and err.splitlines()[-1].startswith("tdc: ")
    elif not {"--help", "--dry-run"} & set(words):
        assert any(name.startswith("out") for name in made)
        if "--json" in words:
            assert json.loads(out)["schema"] == "tdc-report/1"


def check_call(command, content, mask, words):
    """A whole call of `command` within this process, every warning an error; see `check`."""
    with placed(content, mask) as names, pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        there = {path.name: path.read_bytes() for path in Path().iterdir()}
        patch.setattr(sys, "warnoptions", ["error"])
        warnings.simplefilter("error")
        result = CliRunner().invoke(main, [command, *names, *words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception  # as -v asks for
        check(result.exit_code, result.stdout, result.stderr, there, words)


@tries(0.98, 250)
@given(calls())
def test_any_call_ends_well(call):
    check_call("complete-image", *call)


@tries(0.02, 6)
@given(calls())
def test_any_call_of_the_installed_program_ends_well(call):
    content, mask, words = call
    with placed(content, mask) as names:
        there = {path.name: path.read_bytes() for path in Path().iterdir()}
        done = subprocess.run(
            [SCRIPT, "complete-image", *names, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=120
        )
        check(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"), there, words)


@pytest.mark.parametrize("name", list(methods.REGISTRY))
@tries(0.0, 15)
@given(
    text=st.sampled_from(
        ["nan", "inf", "-inf", "1e308", "1e-308", "0", "-1", "9" * 400, "true", "none", "", "1,2", "0x1", "x" * 50]
    )
)
def test_any_value_of_a_parameter_is_taken_or_refused(name, text):
    method = methods.get(name)
    if method.needs:
        pytest.importorskip(method.needs, reason="the extra bench is not installed")
    for key in method.defaults():
        try:
            method.configure({key: text})
        except methods.ConfigError as error:
            assert key.split("_")[0] in str(error) or "noise" in str(error)
