"""Damaged files and odd calls of `tdc complete-tensor` end in one line and an exit code; `make fuzz` tries many more.
"""

import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import tifffile
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import check_call, damaged, numbers, placed, tries
from test_tensor_files import values_of, write_v73

from tdc_cli.cli.main import main

SHAPE = (5, 4, 3)


def _bytes(write, *args, **more):
    buffer = io.BytesIO()
    write(buffer, *args, **more)
    return buffer.getvalue()


def _valid():
    """Name to bytes of small valid files of every kind."""
    whole, holed = values_of(SHAPE, "int16"), np.where(values_of(SHAPE) == 7, np.nan, values_of(SHAPE))
    cell = np.empty((1, 2), dtype=object)
    cell[0] = ["a", 3.0]
    held = {"x": holed, "lost": np.isnan(holed), "about": {"unit": "K"}, "names": cell}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mat"
        write_v73(path, {"x": ("double", holed), "ok": ("logical", np.eye(3, dtype=np.uint8))})
        version_73 = path.read_bytes()
    return {
        "whole.npy": _bytes(np.save, whole),
        "holed.npy": _bytes(np.save, holed),
        "one.npz": _bytes(np.savez, whole),
        "two.npz": _bytes(np.savez_compressed, x=holed, names=np.array(["a", "b"])),
        "plain.mat": _bytes(scipy.io.savemat, held),
        "packed.mat": _bytes(scipy.io.savemat, held, do_compression=True),
        "new.mat": version_73,
        "old.mat": _bytes(scipy.io.savemat, {"x": whole[0].astype(float)}, format="4"),
        "pages.tif": _bytes(tifffile.imwrite, whole, photometric="minisblack", compression="zlib"),
        "imagej.tif": _bytes(tifffile.imwrite, holed.astype("float32"), imagej=True),
    }


VALID = _valid()
OPTIONS = {
    "--missing-ratio": st.sampled_from(["0", "0.1", "0.5", "0.99", "1", "nan", "-0.1", "1e-9"]),
    "--missing-pattern": st.sampled_from(
        ["entries", "fibers:0", "fibers:0,2", "fibers:9", "fibers:", "fibers:0,0", "x"]
    ),
    "--add-noise": numbers,
    "--seed": numbers,
    "--ordered-modes": st.sampled_from(["0", "0,1", "5", "-1", "0,0", "", "x", "9" * 30]),
    "--method": st.sampled_from(["nearest", "tmac", "stdc", "tsvd", "magic"]),
    "--report": st.sampled_from(["r.json", "a", ".", "none/r.json", "kept.txt"]),
    "--save-incomplete": st.sampled_from(["i.npy", "i.npz", "i.mat", "i.tif", "i.png"]),
    "--uncertainty": st.sampled_from(["u.npy", "u.png"]),
}
FLAGS = ["--invert-mask", "--json", "-q", "-v", "--dry-run", "--overwrite", "--help"]


@st.composite
def files(draw):
    """(extension, bytes): sound, damaged, or named like another kind."""
    name = draw(st.sampled_from(list(VALID)))
    content = VALID[name] if draw(st.integers(0, 3)) == 0 else draw(damaged(VALID[name]))
    return draw(st.sampled_from([Path(name).suffix] * 9 + [".npy"])), content


@st.composite
def calls(draw):
    """(input, mask or None, words): a whole call."""
    content, mask = draw(files()), draw(st.none() | files())
    words = ["--missing-ratio", "0.3"] if mask is None and draw(st.booleans()) else []
    for option in draw(st.lists(st.sampled_from(list(OPTIONS)), max_size=2, unique=True)):
        words += [option, draw(OPTIONS[option])]
    words += draw(st.lists(st.sampled_from(FLAGS), max_size=2, unique=True))
    words = words if "--method" in words else ["--method", draw(st.sampled_from(["nearest", "tmac"])), *words]
    return content, mask, [*words, "-o", f"out{draw(st.sampled_from(['.npy', '.npz', '.mat', '.tif']))}"]


@tries(0.3, 200)
@given(calls())
def test_any_call_ends_well(call):
    check_call("complete-tensor", *call)


@pytest.mark.parametrize("name", VALID)
def test_every_kind_is_read_when_it_is_whole(name):
    """What the damage is done to would otherwise be refused for another reason."""
    with placed((Path(name).suffix, VALID[name]), None) as names:
        chosen = f"{names[0]}:x" if name in ("new.mat", "plain.mat", "packed.mat", "two.npz") else names[0]
        words = ["-o", "o.npy", "--method", "nearest", "--missing-ratio", "0.3", "--json"]
        result = CliRunner().invoke(main, ["complete-tensor", chosen, *words])
        assert result.exit_code == 0 and json.loads(result.stdout)["input"]["mode"] == "tensor", result.stderr
