"""`tdc complete-tensor`, as a user calls it."""

import io
import json
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import tifffile
from conftest import report_of

from tdc_cli import methods
from tdc_cli.run.report import SCHEMA
from tdc_cli.tensor import cp_to_tensor

SHAPES = [(9, 8), (8, 7, 6), (6, 5, 4, 4), (5, 4, 3, 3, 3), (4, 3, 3, 2, 3, 2)]


def low_rank(shape, dtype="float64"):
    """Tensor of rank 2 without zeros."""
    rng = np.random.default_rng(5)
    return (100 * cp_to_tensor(np.ones(2), [rng.uniform(0.5, 1.5, (n, 2)) for n in shape])).astype(dtype)


@pytest.fixture
def tensor(folder):
    """Write `a.npy` of a shape and a type; returns its values."""

    def write(shape=(8, 7, 6), dtype="float64", name="a.npy"):
        values = low_rank(shape, dtype)
        np.save(name, values)
        return values

    return write


@pytest.fixture
def run(tdc):
    """Complete `a.npy` into `b.npy` by HaLRTC, with further options; returns click's result."""
    return lambda *args, **more: tdc("complete-tensor", "a.npy", "-o", "b.npy", "--method", "halrtc", *args, **more)


def refused(result, code=2):
    """The one line of a run that was refused."""
    assert result.exit_code == code, result.stderr
    lines = [line for line in result.stderr.splitlines() if not line.startswith(("tdc: note", "tdc: warning"))]
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize("shape", SHAPES, ids=len)
@pytest.mark.parametrize("method", ["tmac", "fbcp", "spc-qv", "nearest"])
def test_orders_two_to_six(tensor, run, shape, method):
    truth = tensor(shape)
    report = report_of(run("--missing-ratio", 0.2, "--method", method, "--json"))
    done = np.load("b.npy")
    assert done.shape == shape and np.isfinite(done).all()
    assert report["missing"]["count"] == report["missing"]["pixels"] == round(0.2 * truth.size)
    assert np.count_nonzero(done != truth) <= report["missing"]["count"]  # known entries bit for bit
    assert report["metrics"]["missing"]["rre"] < 1 and report["metrics"]["all"]["ssim"] is None
    assert report["input"]["mode"] == "tensor" and report["input"]["shape"] == list(shape)


def test_the_default_is_the_papers_model(tensor, tdc):
    truth = tensor((7, 6, 5))
    command = [
        "--missing-ratio",
        0.3,
        "--burn-in",
        60,
        "--samples",
        20,
        "--residual",
        "none",
        "--uncertainty",
        "sd.npy",
        "--json",
    ]
    report = report_of(tdc("complete-tensor", "a.npy", "-o", "b.npy", *command))
    assert report["method"]["name"] == "datc" and report["diagnostics"]["chains"] == 2
    assert report["metrics"]["missing"]["rre"] < 0.01
    sd = np.load("sd.npy")
    assert sd.dtype == np.float64 and np.array_equal(sd > 0, np.load("b.npy") != truth)
    first = Path("b.npy").read_bytes()
    report_of(tdc("complete-tensor", "a.npy", "-o", "b.npy", *command, "--overwrite"))
    assert Path("b.npy").read_bytes() == first


def test_the_report_keeps_to_its_schema(tensor, run):
    jsonschema = pytest.importorskip("jsonschema")
    tensor()
    result = run("--missing-ratio", 0.2, "--report", "r.json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(Path("r.json").read_text())
    jsonschema.validate(report, SCHEMA)
    assert report["outputs"] == {"tensor": "b.npy", "report": "r.json"}
    assert result.stdout.startswith("b.npy: 67 of 336 entries missing (19.9%), halrtc, ")
    assert result.stderr == ""


def test_nan_alone_says_what_is_missing(tensor, run):
    truth = tensor()
    holed = np.where(np.random.default_rng(0).random(truth.shape) < 0.2, np.nan, truth)
    np.save("a.npy", holed)
    report = report_of(run("--json"))
    done = np.load("b.npy")
    assert report["missing"]["source"] == "nan" and report["metrics"] is None
    assert np.array_equal(done[np.isfinite(holed)], holed[np.isfinite(holed)]) and np.isfinite(done).all()


def test_metrics_leave_out_what_nobody_knows(tensor, run):
    truth = tensor()
    holed = truth.copy()
    holed[0, 0] = np.nan
    np.save("a.npy", holed)
    report = report_of(run("--missing-ratio", 0.3, "--json"))
    done, known = np.load("b.npy"), np.isfinite(holed)
    error = np.linalg.norm((done - truth)[known]) / np.linalg.norm(truth[known])
    assert report["metrics"]["all"]["rre"] == pytest.approx(error)
    assert "metrics leave out 6 entries whose truth is not known" in report["warnings"]


@pytest.mark.parametrize("shape", [(8, 7, 6), (8, 7), (1, 7, 6)])
@pytest.mark.parametrize("invert", [False, True])
def test_a_mask_and_a_reference(tensor, run, shape, invert):
    truth = tensor()
    marked = np.random.default_rng(1).random(shape) < 0.3
    np.save("m.npy", marked != invert)
    np.save("truth.npy", truth)
    np.save(
        "a.npy", np.where(np.broadcast_to(marked.reshape(shape + (1,) * (3 - len(shape))), truth.shape), -1e6, truth)
    )
    result = run("--mask", "m.npy", "--reference", "truth.npy", "--json", *(["--invert-mask"] if invert else []))
    report = report_of(result)
    assert report["missing"]["source"] == "mask" and report["missing"]["mask"] == "m.npy"
    assert report["missing"]["count"] == marked.sum() * (truth.size // marked.size)
    assert report["metrics"]["all"]["rre"] < 0.3  # what lay under the mask is not believed


def test_whole_fibers_are_hidden_whatever_the_method(tensor, run):
    truth = tensor((6, 5, 4, 4))
    hidden = []
    for method in ("halrtc", "nearest"):
        command = [
            "--missing-ratio",
            0.3,
            "--missing-pattern",
            "fibers:0,1,3",
            "--save-incomplete",
            "i.npy",
            "--overwrite",
        ]
        assert run(*command, "--method", method).exit_code == 0
        hidden.append(np.isnan(np.load("i.npy")))
    assert np.array_equal(*hidden)
    assert np.array_equal(hidden[0].any(axis=2), hidden[0].all(axis=2))
    assert hidden[0].any(axis=2).sum() == round(0.3 * 6 * 5 * 4)
    assert np.array_equal(np.load("i_mask.npy"), hidden[0].astype(np.uint8))
    assert np.array_equal(np.load("i.npy")[~hidden[0]], truth[~hidden[0]])
    # The mask as understood says the same when it is given back.
    assert run("--mask", "i_mask.npy", "--method", "nearest", "--overwrite").exit_code == 0


def test_slices_without_anything_are_told(tensor, run):
    tensor()
    np.save("m.npy", np.arange(8)[:, None, None] < 3)
    result = run("--mask", "m.npy")
    assert (
        "tdc: warning: nothing is known in 3 of 8 slices of mode 0: low rank does not tell how these differ from the "
        "others"
        in result.stderr
    )


@pytest.mark.parametrize(
    "method, lost, filled", [("halrtc", 2, 2), ("tmac", 1, 1), ("datc", 2, 0), ("field", 2, 0), ("halrtc", 0, 0)]
)
def test_slices_that_are_filled_with_zero_are_told_with_what_does_better(tensor, tdc, method, lost, filled):
    truth = tensor() + 100
    truth[:lost] = np.nan
    truth[4, 2:4, 1:3] = np.nan
    np.save("lost.npy", truth)
    short = ["--burn-in", 10, "--samples", 5, "--chains", 1] if method == "datc" else []
    result = tdc("complete-tensor", "lost.npy", "-o", "b.npy", "--method", method, *short)
    assert result.exit_code == 0, result.stderr
    size = np.nanmean(truth)
    line = (
        f"method {method} fills {lost} of 8 slices of mode 0, of which nothing is known, with about 0, and entries "
        f"that are known have a size of {size:.3g}; method datc or field does better\n"
    )
    assert result.stderr.count("with about 0") == (filled > 0) and (line in result.stderr) == (filled > 0)
    made = np.load("b.npy")
    assert not filled or np.abs(made[:lost]).mean() < 0.05 * size


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int64", "uint32", "float16", "float32"])
def test_the_type_stays(tensor, run, dtype):
    truth = tensor(dtype=dtype)
    report = report_of(run("--missing-ratio", 0.2, "--json"))
    done = np.load("b.npy")
    assert done.dtype == dtype and np.count_nonzero(done != truth) <= report["missing"]["count"]
    assert report["metrics"]["missing"]["rre"] < 0.5


def test_estimates_of_integers_stay_within_their_type(tensor, run):
    values = np.full((6, 6, 6), 127, dtype=np.int8)
    np.save("a.npy", values)
    assert run("--missing-ratio", 0.2, "--add-noise", 40).exit_code == 0
    assert np.load("b.npy").dtype == np.int8


def test_matlab_in_and_out(tensor, tdc):
    truth = tensor()
    holed = truth.copy()
    holed[::2, 0, 0] = np.nan
    scipy.io.savemat("a.mat", {"flow": holed, "lost": np.isnan(holed), "station": np.arange(8.0)})
    result = tdc("complete-tensor a.mat:flow -o b.mat --mask a.mat:lost --method tmac --uncertainty s.mat")
    assert "method tmac gives no uncertainty" in refused(result)
    assert (
        tdc("complete-tensor", "a.mat:flow", "-o", "b.mat", "--mask", "a.mat:lost", "--method", "tmac").exit_code == 0
    )
    held = scipy.io.loadmat("b.mat")
    assert held["flow"].shape == truth.shape and np.isfinite(held["flow"]).all()
    assert np.array_equal(held["station"][0], np.arange(8.0))
    result = tdc("complete-tensor", "a.mat:flow", "-o", "b.npz", "--method", "tmac")
    assert "tdc: warning: b.npz: without lost, station, which a.mat holds as well" in result.stderr
    assert np.load("b.npz").files == ["flow"]


def test_a_stack_of_pages_comes_back_as_one(tensor, tdc):
    stack = low_rank((5, 8, 9), "float32")
    tifffile.imwrite("a.tif", stack, photometric="minisblack")
    result = tdc("complete-tensor", "a.tif", "-o", "b.tif", "--missing-ratio", 0.2, "--method", "tmac")
    assert result.exit_code == 0, result.stderr
    assert tifffile.imread("b.tif").shape == (5, 8, 9)


def test_standard_input_and_output(tensor, tdc):
    tensor()
    command = ["-o", "-", "--missing-ratio", 0.2, "--method", "tmac"]
    result = tdc("complete-tensor", "-", *command, input=Path("a.npy").read_bytes())
    assert result.exit_code == 0 and result.stdout_bytes.startswith(b"\x93NUMPY")
    assert "standard output: 67 of 336 entries missing" in result.stderr
    assert tdc("complete-tensor", "a.npy", *command[:1], "b.npy", *command[2:]).exit_code == 0
    assert Path("b.npy").read_bytes() == result.stdout_bytes


def test_noise_is_added_and_estimated(tensor, run):
    truth = tensor()
    short = ["--burn-in", 20, "--samples", 10, "--chains", 1, "--residual", "mixture"]
    report = report_of(
        run("--add-noise", 1, "--noise-std", 1, "--missing-ratio", 0.1, "--method", "datc", *short, "--json")
    )
    assert report["noise_std"] == pytest.approx(1, rel=0.01) and 0 < report["metrics"]["all"]["rre"] < 0.05
    assert np.count_nonzero(np.load("b.npy") == truth) == 0


def test_ordered_modes_reach_the_method(tensor, run):
    tensor((8, 7, 6))
    report = report_of(run("--missing-ratio", 0.2, "--method", "spc-qv", "--ordered-modes", "0,2", "--json"))
    assert report["method"]["parameters"]["ordered_modes"] == [0, 2]
    assert (
        run("--missing-ratio", 0.2, "--method", "datc-sc", "--ordered-modes", "1", "--dry-run", "--overwrite").exit_code
        == 0
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ["--method", "tmac", "--ordered-modes", "0"],
            "tdc: method tmac has no ordered modes; leave out --ordered-modes or use one of: ",
        ),
        (
            ["--method", "datc", "--ordered-modes", "0"],
            "tdc: method datc looks at --ordered-modes only with --spatial; add it, or leave",
        ),
        (
            ["--method", "datc", "--spatial"],
            "tdc: --spatial needs --ordered-modes, such as 0,1: the modes along which neighbours",
        ),
        (
            ["--method", "stdc", "--ordered-modes", "0,3"],
            "tdc: --ordered-modes names mode 3; a tensor of order 3 has modes 0 to 2",
        ),
        (["--method", "stdc", "--ordered-modes", "0,0"], "tdc: --ordered-modes 0,0 names a mode twice, or one below 0"),
        (
            ["--method", "stdc", "--ordered-modes", "x"],
            "tdc: Invalid value for '--ordered-modes': 'x' is not of the form 0,1",
        ),
        (
            ["--method", "stdc", "--ordered-modes", "0,,1"],
            "tdc: Invalid value for '--ordered-modes': '0,,1' is not of the form 0,1",
        ),
        (
            ["--method", "stdc", "--param", "ordered_modes=0,,1"],
            "tdc: parameter ordered_modes='0,,1' is not understood; expected tuple",
        ),
        (
            ["--missing-pattern", "fibers:0,,1"],
            "tdc: no missing pattern 'fibers:0,,1' of tensors; there are: entries, and fibers:AXES",
        ),
        (
            ["--missing-pattern", "fibers:0, 12"],
            "tdc: missing pattern 'fibers:0, 12' names axis 12; a tensor of order 3 has axes 0 to 2",
        ),
        (
            ["--missing-pattern", "fibers:-1"],
            "tdc: missing pattern 'fibers:-1' names an axis below 0; they are counted from 0",
        ),
        (
            ["--missing-pattern", "fibers:0,7"],
            "tdc: missing pattern 'fibers:0,7' names axis 7; a tensor of order 3 has axes 0 to 2",
        ),
        (
            ["--missing-pattern", "rows"],
            "tdc: no missing pattern 'rows' of tensors; there are: entries, and fibers:AXES such as",
        ),
        (["--mask", "a.npy"], "tdc: --mask and --missing-ratio exclude each other"),
        (["--invert-mask"], "tdc: --invert-mask needs a --mask"),
        (
            ["--uncertainty", "s.png", "--method", "datc"],
            "tdc: s.png: extension '.png' is not known; use one of .mat, .npy, .npz",
        ),
        (["--json", "-o", "-"], "tdc: --json and -o - both want standard output"),
        (["-o", "."], "tdc: .: is a folder; name a file in it"),
        (["-o", ""], "tdc: Invalid value for '-o' / '--output': the name is empty"),
        (["-o", "a.npy/b.npy"], "tdc: a.npy/b.npy: a.npy is a file, no folder; name another place"),
        (["-o", "a.npy/c/b.npy"], "tdc: a.npy/c/b.npy: a.npy is a file, no folder; name another place"),
        (["-o", "none/b.npy"], "tdc: none/b.npy: folder none does not exist; create it first"),
        (["--report", "a.npy/r.json"], "tdc: a.npy/r.json: a.npy is a file, no folder; name another place"),
        (["-o", "b.csv"], "tdc: b.csv: extension '.csv' is not known"),
        (["-o", "a.npy", "--overwrite"], "tdc: a.npy: is the input itself; name another file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_found_before_any_work(tensor, run, options, line):
    tensor()
    assert refused(run("--missing-ratio", 0.2, *options)).startswith(line)


def test_further_mistakes(tensor, tdc, run):
    tensor()
    assert "a.npy: nothing says what is missing; give --mask FILE (any number but 0 = missing)" in refused(run())
    assert "--missing-pattern needs a --missing-ratio" in refused(run("--missing-pattern", "entries"))
    np.save("a.npy", np.zeros((2,) * 7))
    assert "array of order 7, shape (2, 2, 2, 2, 2, 2, 2); tensors of order 2 to 6 are taken" in refused(
        run("--missing-ratio", 0.2)
    )
    tensor((4, 4))
    assert (
        refused(run("--missing-ratio", 0.2, "--method", "tsvd")) == "tdc: method tsvd takes tensors of order 3, not 2"
    )
    np.savez("a.npz", x=low_rank((4, 4)), y=low_rank((3, 3)))
    assert refused(tdc("complete-tensor", "a.npz:x", "-o", "a.npz", "--missing-ratio", 0.2, "--overwrite")) == (
        "tdc: a.npz: is the input itself; name another file"
    )
    np.save("t.npy", low_rank((3, 3)))
    assert "reference t.npy is 3x3 float64 but tensor a.npy is 4x4 float64" in refused(
        run("--missing-ratio", 0.2, "--reference", "t.npy")
    )


ONES = np.ones((8, 7, 6))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((8, 7, 6), "a"), ": values of text; give numbers: 0 stands for known, any other for missing"),
        (ONES.astype("M8[s]"), ": values of dates; give numbers: 0 stands for known, any other for missing"),
        (1j * ONES, ": values of complex128; give numbers: 0 stands for known, any other for missing"),
        (
            np.zeros((8, 7, 6), dtype=[("a", "f4")]),
            ": values of records; give numbers: 0 stands for known, any other for missing",
        ),
        (
            np.where(np.arange(6) == 3, np.nan, ONES),
            ": 56 values are NaN; 0 stands for known, any other number for missing: write 1 where an entry is "
            "missing (NaN in the tensor itself needs no mask)",
        ),
        (
            np.full((8, 7, 6), None),
            ": not a readable .npy file (it holds Python objects, which are not read: they may run programs); "
            "save an array of numbers",
        ),
        (ONES[:7], " has shape 7x7x6 but a.npy has 8x7x6; a mask has the same size in every mode, or 1"),
        (ONES[:, :, :0], " has shape 8x7x0 but a.npy has 8x7x6; a mask has the same size in every mode, or 1"),
        (
            ONES,
            " marks all of a.npy as missing: nothing is left to complete from; any number but 0 = missing: if meant "
            "the other way round, use --invert-mask",
        ),
    ],
)
def test_arrays_that_are_no_mask_are_told_in_one_line(tensor, run, values, words):
    tensor()
    np.save("mask.npy", values, allow_pickle=True)
    assert refused(run("--mask", "mask.npy")) == f"tdc: mask mask.npy{words}"


def _of_version_5():
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"a": ONES})
    return buffer.getvalue()


def _of_version_73(name, fill):
    with h5py.File(name, "w") as file:
        fill(file)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (
            lambda: np.savez("m.npz", a=ONES, b=ONES),
            "m.npz: holds a (8x7x6 float64), b (8x7x6 float64); say which one is meant, as in m.npz:a",
        ),
        (
            lambda: np.savez("m.npz", a=np.full(3, "a")),
            "m.npz: holds no array of numbers of order 1 to 6; it holds a (3 text); give a file with one",
        ),
        (
            lambda: np.savez("m.npz", a=np.full(3, None)),
            "m.npz: holds no array of numbers of order 1 to 6; it holds a (Python objects); give a file with one",
        ),
        (
            lambda: scipy.io.savemat("m.mat", {"s": {"a": 1}, "t": "text"}),
            "m.mat: holds no array of numbers of order 1 to 6; it holds s (1x1 struct), t (1 text); give a file with "
            "one",
        ),
        (
            lambda: scipy.io.savemat("m.mat", {}),
            "m.mat: holds no array of numbers of order 1 to 6; it holds nothing; give a file with one",
        ),
        (
            lambda: _of_version_73(
                "m.mat", lambda f: f.update({"a": h5py.SoftLink("/none"), "b": h5py.ExternalLink("none", "/a")})
            ),
            "m.mat: holds no array of numbers of order 1 to 6; it holds a (link that leads nowhere), b (values in "
            "another file, which are not read); give a file with one",
        ),
        (
            lambda: _of_version_73(
                "m.mat", lambda f: f.create_dataset("c", data=np.array([[f.ref]], dtype=h5py.ref_dtype))
            ),
            "m.mat: holds no array of numbers of order 1 to 6; it holds c (1x1 references); give a file with one",
        ),
        (
            lambda: Path("m.mat").write_bytes(
                h5py.File("x", "w", driver="core", backing_store=False).id.get_file_image()[:600]
            ),
            "m.mat: damaged or cut short; get the file again",
        ),
        (lambda: Path("m.mat").write_text("no numbers\n" * 20), "m.mat: damaged or cut short; get the file again"),
        (
            lambda: Path("m.npy").write_text("no numbers"),
            "m.npy: not a readable .npy file (its content is something else); save the array with numpy.save",
        ),
        (lambda: Path("m.npy").write_bytes(b""), "m.npy: not a readable .npy file (it is empty); get the file again"),
        (
            lambda: Path("m.npy").write_bytes(Path("a.npy").read_bytes()[:300]),
            "m.npy: not a readable .npy file (damaged or cut short); get the file again",
        ),
        (
            lambda: Path("m.npz").write_text("no numbers"),
            "m.npz: not a readable .npz file (its content is something else); save the arrays with numpy.savez",
        ),
        (lambda: Path("m.npz").write_bytes(b"PK\3\4 cut short"), "m.npz: damaged or cut short; get the file again"),
        (
            lambda: zipped("m.npz", ("a.txt",), b"text"),
            "m.npz: holds no array of numbers of order 1 to 6; it holds a.txt (another file); give a file with one",
        ),
        (
            lambda: zipped("m.npz", ("a.npy",), Path("a.npy").read_bytes(), locked=True),
            "m.npz: not a readable .npz file (packed in a way that NumPy does not write); save the arrays with "
            "numpy.savez",
        ),
        (
            lambda: zipped("m.npz", ("a.npy", "a"), Path("a.npy").read_bytes()),
            "m.npz: holds several arrays called 'a'; save it again, each with a name of its own",
        ),
        (
            lambda: Path("m.mat").write_bytes(_of_version_5() + _of_version_5()[128:]),
            "m.mat: holds several variables of one name; save it again, each with a name of its own",
        ),
        (
            lambda: _of_version_73(
                "m.mat", lambda f: f.create_dataset("c", (10**5, 10**5, 10**4), "f8", chunks=(10, 10, 10))
            ),
            "m.mat: c (10000x100000x100000 float64) is larger than the memory; give a smaller array",
        ),
        (lambda: _with_a_damaged_type("m.tif"), "m.tif: damaged or cut short; get the file again"),
        (
            lambda: Path("m.tif").write_bytes(b"II*\0\0\0\0\0"),
            "m.tif: damaged or cut short (it has no pages); get the file again",
        ),
    ],
)
def test_files_that_hold_no_mask_and_no_tensor_are_told_in_one_line(tensor, tdc, write, words):
    tensor()
    write()
    name = words.partition(":")[0]
    assert refused(tdc("complete-tensor", "a.npy", "-o", "b.npy", "--mask", name)) == f"tdc: mask {words}"
    as_tensor = words.replace("of order 1", "of order 2")
    assert refused(tdc("complete-tensor", name, "-o", "b.npy", "--missing-ratio", 0.2)) == f"tdc: {as_tensor}"


def _with_a_damaged_type(name):
    """Write a TIFF file whose samples have a width that there is not."""
    tifffile.imwrite(name, np.ones((8, 7, 6), dtype=np.float32), photometric="minisblack")
    data = bytearray(Path(name).read_bytes())
    (place,) = (
        i for i in range(8, 100) if data[i : i + 4] == b"\x02\x01\x03\x00"
    )  # tag 258, BitsPerSample, of 16-bit integers
    data[place + 8] = 99
    Path(name).write_bytes(data)


def zipped(path, names, content, locked=False):
    """Write an archive of files with the same content, marked as locked by a password or not."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    data = bytearray(buffer.getvalue())
    if locked:
        data[6] |= 1
        data[data.rindex(b"PK\1\2") + 8] |= 1
    Path(path).write_bytes(data)


def test_a_failure_leaves_nothing(tensor, run, monkeypatch):
    tensor()
    module = methods.get("halrtc").load()
    complete = module.complete

    def broken(values, *args, **more):
        return methods.Completion(mean=np.full_like(complete(values, *args, **more).mean, np.nan))

    monkeypatch.setattr(module, "complete", broken)
    assert "method halrtc gave 336 values that are not finite" in refused(
        run("--missing-ratio", 0.2, "--report", "r.json", "--save-incomplete", "i.npy"), code=1
    )
    assert not any(Path(name).exists() for name in ("b.npy", "r.json", "i.npy", "i_mask.npy"))


def test_existing_outputs_stay(tensor, run):
    tensor()
    assert run("--missing-ratio", 0.2).exit_code == 0
    assert refused(run("--missing-ratio", 0.2)) == "tdc: b.npy: exists already; give --overwrite to replace it"


def test_a_dry_run_says_what_would_be_done(tensor, run):
    tensor()
    result = run("--missing-ratio", 0.25, "--method", "datc", "--dry-run")
    assert result.stdout.startswith(
        "a.npy: 84 of 336 entries missing (25.0%) simulated, to be completed by datc\n  tensor: b.npy\n"
    )
    assert refused(run("--missing-ratio", 0.25, "--dry-run", "-o", "no/b.npy")).startswith(
        "tdc: no/b.npy: folder no does not exist"
    )


def test_environment_and_file_give_defaults(tensor, run, folder):
    tensor()
    env = {
        "TDC_COMPLETE_TENSOR_MISSING_RATIO": "0.25",
        "TDC_COMPLETE_TENSOR_JSON": "1",
        "TDC_COMPLETE_TENSOR_PARAM": "iterations=7",
    }
    report = report_of(run(env=env))
    assert report["missing"]["count"] == 84 and report["method"]["parameters"]["iterations"] == 7
    (folder / "c.toml").write_text('[complete-tensor]\nmissing-ratio = 0.5\nmissing-pattern = "fibers:0"\n')
    assert report_of(run("--config", "c.toml", "--json", "--overwrite"))["missing"]["count"] == 168


def test_a_run_beyond_the_memory_is_told(tensor, run, monkeypatch):
    tensor()
    monkeypatch.setattr("tdc_cli.memory.os.sysconf", lambda name: 1000)
    result = run("--missing-ratio", 0.2, "--method", "datc", "--dry-run")
    assert (
        "tdc: warning: a.npy: may take 0.2 GB of memory, and the machine has 0.0 GB; try a part of it" in result.stderr
    )
