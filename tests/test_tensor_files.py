"""Tensors in files: what is read comes back, the other variables go along, and what cannot be read is told in one line.
"""

import io
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import tifffile

from tdc_cli.errors import InputError, MaskError, OutputError
from tdc_cli.media import tensor
from tdc_cli.media.tensor import matlab

SHAPES = [(4, 5), (4, 5, 3), (2, 3, 4, 5), (2, 3, 2, 4, 3), (2, 1, 3, 2, 3, 1)]
TYPES = ["uint8", "uint16", "float32", "float64", "int8", "int16", "int32", "int64", "uint32", "uint64", "float16"]


def values_of(shape, dtype="float64"):
    """Different values at every place, of both signs where the type has them."""
    counted = np.arange(np.prod(shape)).reshape(shape) % 120
    return (counted - (0 if np.dtype(dtype).kind == "u" else 50)).astype(dtype)


def write_v73(path, variables):
    """A MATLAB file of version 7.3, written by h5py as MATLAB does: axes reversed, the class as an attribute, a header
    in front.
    """
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, (kind, values) in variables.items():
            item = file.create_dataset(name, data=np.ascontiguousarray(values.T))
            item.attrs["MATLAB_class"] = np.bytes_(kind)
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  5 10:00:00 2026 HDF5 schema 1.00 .".ljust(
        116
    )
    with open(path, "r+b") as file:
        file.write(header + bytes(8) + struct.pack("<H", 0x0200) + b"IM")


def refused(path, error=InputError):
    """The line that says why `path` is not read."""
    with pytest.raises(error) as told:
        tensor.read(path)
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("extension", ["npy", "npz", "mat", "tif"])
def test_every_order_comes_back(tmp_path, shape, extension):
    np.save(tmp_path / "a.npy", values_of(shape))
    read = tensor.read(tmp_path / "a.npy")
    tensor.write(read, tmp_path / f"b.{extension}")
    again = tensor.read(tmp_path / f"b.{extension}")
    assert again.values.dtype == np.float64 and again.mode == "tensor"
    assert np.array_equal(again.values, values_of(shape))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extension", ["npy", "npz", "mat", "tif"])
def test_every_type_comes_back_or_is_refused(tmp_path, dtype, extension):
    np.save(tmp_path / "a.npy", values_of((4, 5, 6), dtype))
    read = tensor.read(tmp_path / "a.npy")
    if (dtype, extension) == ("float16", "mat"):
        with pytest.raises(
            OutputError, match=r"b.mat: MAT cannot hold a tensor of float16; write to .npy or .npz or .tif"
        ):
            tensor.write(read, tmp_path / "b.mat")
        return
    tensor.write(read, tmp_path / f"b.{extension}")
    again = tensor.read(tmp_path / f"b.{extension}").values
    assert again.dtype == dtype and np.array_equal(again, values_of((4, 5, 6), dtype))


def test_other_libraries_read_what_is_written(tmp_path):
    values = values_of((2, 3, 4, 5), "float32")
    np.save(tmp_path / "a.npy", values)
    read = tensor.read(tmp_path / "a.npy")
    for extension in ("npz", "mat", "tif"):
        tensor.write(read, tmp_path / f"b.{extension}")
    assert np.array_equal(np.load(tmp_path / "b.npz")["arr_0"], values)
    assert np.array_equal(scipy.io.loadmat(tmp_path / "b.mat")["tensor"], values)
    assert np.array_equal(tifffile.imread(tmp_path / "b.tif"), values)


@pytest.mark.parametrize(
    ("dtype", "order", "line"),
    [
        ("complex64", 3, "complex values; complete real and imaginary parts each by itself"),
        (
            "bool",
            3,
            "values are true or false, and a completed one lies between: convert them to float32, NaN where missing",
        ),
        ("U3", 3, "values of text; only integers, float16, float32 and float64 are taken: convert them"),
        ("float64", 1, "array of order 1, shape (2,); tensors of order 2 to 6 are taken"),
        ("float64", 7, "array of order 7, shape (2, 2, 2, 2, 2, 2, 2); tensors of order 2 to 6 are taken"),
    ],
)
def test_what_cannot_be_completed_is_refused(tmp_path, dtype, order, line):
    np.save(tmp_path / "a.npy", np.zeros((2,) * order, dtype=dtype))
    assert refused(tmp_path / "a.npy") == f"{tmp_path}/a.npy: {line}"


def test_empty_arrays_and_integers_beyond_doubles_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 0)))
    assert "array of shape (2, 0) is empty" in refused(tmp_path / "a.npy")
    for edge in (2**53 + 1, -(2**53) - 1, -(2**63)):
        np.save(tmp_path / "a.npy", np.full((2, 2), edge))
        assert "integers beyond 2**53" in refused(tmp_path / "a.npy")


def test_the_other_byte_order_is_read(tmp_path):
    np.save(tmp_path / "a.npy", values_of((3, 4), ">i2"))
    assert np.array_equal(tensor.read(tmp_path / "a.npy").values, values_of((3, 4), "int16"))


def test_a_variable_is_said_by_its_name(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=values_of((3, 4)), y=values_of((2, 3)), when=np.array([1, 2]))
    assert refused(path) == (
        f"{path}: holds x (3x4 float64), y (2x3 float64), when (2 int64); say which one is meant, as in {path}:x"
    )
    assert tensor.read(f"{path}:y").values.shape == (2, 3)
    assert (
        refused(f"{path}:z") == f"{path}: holds no array 'z'; it holds x (3x4 float64), y (2x3 float64), when (2 int64)"
    )
    np.savez(path, when=np.array([1, 2]))
    assert (
        refused(path)
        == f"{path}: holds no array of numbers of order 2 to 6; it holds when (2 int64); give a file with one"
    )
    np.savez(path, x=values_of((3, 4)), when=np.array([1, 2]))
    assert tensor.read(path).values.shape == (3, 4)


def test_a_file_whose_name_holds_a_colon_is_that_file(tmp_path):
    np.savez(tmp_path / "a.npz", x=values_of((3, 4)))
    (tmp_path / "a.npz").rename(tmp_path / "a.npz:x")
    assert tensor.split(tmp_path / "a.npz:x") == (str(tmp_path / "a.npz:x"), None)
    assert tensor.split("C:\\data\\a.npy") == ("C:\\data\\a.npy", None)


@pytest.mark.parametrize("extension", ["npz", "mat"])
def test_the_other_variables_go_along(tmp_path, extension):
    others = {"wavelength": np.array([[1.5, 2.5]]), "site": np.array(["north"])}
    path = tmp_path / f"a.{extension}"
    (np.savez if extension == "npz" else lambda p, **v: scipy.io.savemat(p, v))(path, x=values_of((3, 4, 2)), **others)
    read = tensor.read(f"{path}:x")
    out = tmp_path / f"b.{extension}"
    tensor.write(read, out)
    assert tensor.left_out(tensor.named(out), read) == []
    held = np.load(out) if extension == "npz" else scipy.io.loadmat(out)
    assert np.array_equal(held["x"], values_of((3, 4, 2)))
    assert np.array_equal(held["wavelength"], others["wavelength"]) and held["site"] == ["north"]
    tensor.write(read, tmp_path / "c.npy")
    assert tensor.left_out(tensor.named("c.npy"), read) == list(others)


def test_structs_and_cells_of_matlab_go_along(tmp_path):
    cell = np.empty((1, 2), dtype=object)
    cell[0] = ["a", 3.0 + 2.0j]
    scipy.io.savemat(tmp_path / "a.mat", {"x": values_of((3, 4)), "about": {"unit": "K", "scale": 2.0}, "names": cell})
    tensor.write(tensor.read(tmp_path / "a.mat"), tmp_path / "b.mat")
    held = scipy.io.loadmat(tmp_path / "b.mat", simplify_cells=True)
    assert held["about"] == {"unit": "K", "scale": 2.0}
    assert list(held["names"]) == ["a", 3.0 + 2.0j]


def test_arrays_of_python_objects_are_left_out_and_never_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", x=values_of((3, 4)), things=np.array([{"a": 1}], dtype=object))
    read = tensor.read(tmp_path / "a.npz")
    assert tensor.left_out(tensor.named("b.npz"), read) == ["things"]
    assert refused(tmp_path / "a.npz:things").endswith(
        "a.npz: things is no array of numbers (Python objects); give one"
    )


def write_npz(path, arrays):
    """An archive whose arrays may have any names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, values)


def test_any_name_is_a_name(tdc):
    """Those of the parameters of NumPy's writers, and of files outside, too."""
    names = ("file", "allow_pickle", "args", "kwds", "self", "a/b", "../c", "x y")
    arrays = {name: np.arange(12.0).reshape(3, 4) + k for k, name in enumerate(names)}
    arrays["file"][1, 1] = np.nan
    write_npz("a.npz", arrays)
    result = tdc("complete-tensor", "a.npz:file", "-o", "b.npz", "--method", "linear")
    assert result.exit_code == 0, result.stderr
    with np.load("b.npz") as held:
        assert sorted(held.files) == sorted(names) and np.isfinite(held["file"]).all()
        assert all(np.array_equal(held[name], arrays[name]) for name in names[1:])
    assert (
        tdc("complete-tensor a.npz:allow_pickle -o c.npz --method linear --missing-ratio 0.2").exit_code
        == 0
    )
    with np.load("c.npz") as held:
        assert sorted(held.files) == sorted(names) and held["allow_pickle"].shape == (3, 4)


def test_an_archive_is_written_as_numpy_writes_it(tmp_path):
    arrays = {"x": values_of((3, 4)), "y": np.asfortranarray(values_of((5, 6)))}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    tensor.write(tensor.read(f"{tmp_path}/a.npz:x"), tmp_path / "b.npz")
    assert (tmp_path / "b.npz").read_bytes() == (tmp_path / "a.npz").read_bytes()


def test_of_an_archive_only_the_array_that_is_named_is_read(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=values_of((3, 4)), large=np.zeros(2**23))
    tracemalloc.start()
    read = tensor.read(f"{tmp_path}/a.npz:x")
    tensor.write(read, tmp_path / "b.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23, "large takes 2**26"
    with np.load(tmp_path / "b.npz") as held:
        assert held["large"].shape == (2**23,)


def test_an_array_that_no_memory_holds_is_refused_by_its_header(tdc):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**30, 2**20)})
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(80))
    result = tdc("complete-tensor", "a.npz", "-o", "b.npz")
    assert (result.exit_code, result.stderr) == (
        2, f"tdc: a.npz: damaged or cut short (x.npy has 80 bytes for an array of {2**53}); get the file again\n"
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["external", "virtual", "link", "path"])
def test_values_in_other_files_are_not_read(tdc, kind):
    """A file that somebody sends must not bring what else is on the disk into the output."""
    np.arange(48.0).tofile("secret.bin")
    with h5py.File("secret.h5", "w") as other:
        other["x"] = np.arange(48.0).reshape(6, 8)
    with h5py.File("a.mat", "w", userblock_size=512) as file:
        if kind == "external":
            file.create_dataset("x", (6, 8), "f8", external=[("secret.bin", 0, 384)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((6, 8), "f8")
            layout[:] = h5py.VirtualSource("absent.h5", "x", (6, 8))
            file.create_virtual_dataset("x", layout)
        elif kind == "link":
            file["x"] = h5py.ExternalLink("secret.h5", "/x")
        else:
            file["#refs#/other"] = h5py.ExternalLink("secret.h5", "/")
            file["x"] = h5py.SoftLink("/#refs#/other/x")
    result = tdc("complete-tensor", "a.mat:x", "-o", "b.npy", "--missing-ratio", 0.2, "--method", "linear")
    assert result.exit_code == 2 and not Path("b.npy").exists()
    why = "link that leads nowhere" if kind == "path" else "values in another file, which are not read"
    assert result.stderr == f"tdc: a.mat: x is no array of numbers ({why}); give one\n"


def test_matlab_integers_in_a_double_stay_doubles(tmp_path):
    """MATLAB stores a double matrix of small whole numbers in single bytes; its class says what it is."""
    numbers = bytes([1, 2, 3, 4, 5, 6]) + bytes(2)
    body = (
        struct.pack("<IIII", 6, 8, 6, 0)  # flags: class double
        + struct.pack("<IIii", 5, 8, 2, 3)  # dimensions
        + struct.pack("<II", 1, 1) + b"x" + bytes(7)  # name
        + struct.pack("<II", 2, 6) + numbers  # values as uint8
    )
    header = b"MATLAB 5.0 MAT-file".ljust(116) + bytes(8) + struct.pack("<H", 0x0100) + b"IM"
    (tmp_path / "a.mat").write_bytes(header + struct.pack("<II", 14, len(body)) + body)
    read = tensor.read(tmp_path / "a.mat").values
    assert read.dtype == np.float64
    assert np.array_equal(read, [[1, 3, 5], [2, 4, 6]])


def test_version_73_has_its_axes_as_matlab_has_them(tmp_path):
    path = tmp_path / "a.mat"
    held = values_of((2, 3, 4, 5), "float32")
    write_v73(
        path,
        {
            "x": ("single", held),
            "ok": ("logical", np.eye(3, dtype=np.uint8)),
            "name": ("char", np.zeros((1, 3), "uint16")),
        },
    )
    read = tensor.read(f"{path}:x")
    assert read.values.shape == (2, 3, 4, 5) and read.values.dtype == np.float32
    assert np.array_equal(read.values, held)
    assert (
        refused(path)
        == f"{path}: holds name (text), ok (3x3 bool), x (2x3x4x5 float32); say which one is meant, as in {path}:ok"
    )
    assert refused(f"{path}:name") == f"{path}: name is no array of numbers (text); give one"
    assert tensor.left_out(tensor.named("b.mat"), read) == ["name", "ok"]
    assert np.array_equal(tensor.read_mask(f"{path}:ok"), np.eye(3, dtype=bool))
    tensor.write(read, tmp_path / "b.mat")
    assert np.array_equal(scipy.io.loadmat(tmp_path / "b.mat")["x"], held)


def test_sparse_and_complex_matrices_of_matlab_are_told(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"s": scipy.sparse.eye(3, format="csc"), "z": np.ones((2, 2)) * 1j})
    assert "s is no array of numbers (3x3 sparse matrix); give one" in refused(tmp_path / "a.mat:s")
    assert "complex values" in refused(tmp_path / "a.mat:z")


def test_no_damaged_number_of_a_matlab_file_ends_the_program():
    """scipy reads the elements in C and trusts what they say of themselves."""
    cell = np.empty((1, 1), dtype=object)
    cell[0] = [np.eye(2) * 1j]
    buffer = io.BytesIO()
    scipy.io.savemat(
        buffer, {"c": cell, "s": scipy.sparse.eye(2, format="csc"), "t": {"unit": "K"}, "x": np.zeros((2, 3), "uint8")}
    )
    whole, told = buffer.getvalue(), 0
    for place in range(128, len(whole), 4):
        for number in (0, 3, 5, 14, 15, 0x10000, 0x7FFFFFFF, 0xFFFFFFFF):
            try:
                matlab.variables(whole[:place] + struct.pack("<I", number) + whole[place + 4 :], "a.mat")
            except InputError as error:
                told += str(error).startswith("a.mat: damaged or cut short (")
    assert told > len(whole)  # half of the numbers mean something


REAL = sorted((Path(scipy.io.__file__).parent / "matlab" / "tests" / "data").glob("*.mat"))


@pytest.mark.skipif(not REAL, reason="scipy is installed without its tests, which bring files along that MATLAB wrote")
def test_files_of_many_versions_of_matlab_are_read_as_scipy_reads_them():
    sound = 0
    for path in REAL:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                held = scipy.io.loadmat(path)
            except Exception:  # damaged on purpose, or of version 7.3
                continue
            read = matlab.variables(path.read_bytes(), path)
        assert set(read) == {name for name in held if not name.startswith("__")}, path.name
        for name, variable in read.items():
            if variable.is_numbers:
                assert np.array_equal(variable.load(), held[name], equal_nan=True), path.name
        sound += 1
    assert sound > 50


@pytest.mark.skipif(not REAL, reason="scipy is installed without its tests, which bring files along that MATLAB wrote")
def test_a_file_of_version_73_that_matlab_wrote_is_read():
    path = next(path for path in REAL if path.name == "testhdf5_7.4_GLNX86.mat")
    assert np.allclose(tensor.read(path).values, np.linspace(0, 2 * np.pi, 9)[None], atol=1e-12)


def test_a_variable_without_a_name_that_matlab_takes_gets_another(tmp_path):
    np.savez(tmp_path / "a.npz", **{"my data": values_of((3, 4))})
    tensor.write(tensor.read(tmp_path / "a.npz"), tmp_path / "b.mat")
    assert np.array_equal(scipy.io.loadmat(tmp_path / "b.mat")["tensor"], values_of((3, 4)))


def test_a_matlab_file_has_no_time_in_it(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", values_of((3, 4)))
    made = []
    for now in ("Sun Nov  1 12:00:00 2026", "Mon Nov  2 12:00:00 2026"):
        monkeypatch.setattr("time.asctime", lambda now=now: now)
        tensor.write(tensor.read(tmp_path / "a.npy"), tmp_path / "b.mat", replace=True)
        made.append((tmp_path / "b.mat").read_bytes())
    assert made[0] == made[1] and made[0].startswith(b"MATLAB 5.0 MAT-file")


def test_pages_of_a_tiff_are_a_tensor(tmp_path):
    stack = values_of((3, 4, 5, 6), "float32")
    tifffile.imwrite(tmp_path / "a.tif", stack, imagej=True)
    read = tensor.read(tmp_path / "a.tif")
    assert np.array_equal(read.values, stack)
    assert read.notes == (f"{tmp_path}/a.tif: axes ZCYX, shape 3x4x5x6",)
    with tifffile.TiffWriter(tmp_path / "b.tif") as writer:
        for page in stack[0]:
            writer.write(page, metadata=None, contiguous=False, photometric="minisblack")
    assert np.array_equal(tensor.read(tmp_path / "b.tif").values, stack[0])
    colours = values_of((4, 5, 3), "uint8")
    tifffile.imwrite(tmp_path / "c.tif", colours, photometric="rgb")
    tensor.write(tensor.read(tmp_path / "c.tif"), tmp_path / "d.tif")
    with tifffile.TiffFile(tmp_path / "d.tif") as file:
        assert file.pages[0].photometric == 2 and np.array_equal(file.asarray(), colours)


def test_a_tiff_of_a_palette_or_of_different_pages_is_refused(tmp_path):
    tifffile.imwrite(
        tmp_path / "a.tif", np.zeros((4, 5), "uint8"), photometric="palette", colormap=np.zeros((3, 256), "uint16")
    )
    assert "values are places in a palette, no numbers" in refused(tmp_path / "a.tif")
    with tifffile.TiffWriter(tmp_path / "b.tif") as writer:
        writer.write(np.zeros((4, 5)), photometric="minisblack")
        writer.write(np.zeros((6, 7)), photometric="minisblack")
    assert "holds 2 series of pages that differ" in refused(tmp_path / "b.tif")


@pytest.mark.parametrize("extension", ["npy", "npz", "mat", "tif"])
def test_cut_files_are_refused(tmp_path, extension):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((6, 7, 8)))
    tensor.write(tensor.read(tmp_path / "a.npy"), tmp_path / f"b.{extension}")
    content = (tmp_path / f"b.{extension}").read_bytes()
    for share in (0.05, 0.4, 0.9):
        (tmp_path / f"c.{extension}").write_bytes(content[: int(share * len(content))])
        refused(tmp_path / f"c.{extension}")
    (tmp_path / f"c.{extension}").write_bytes(b"")
    refused(tmp_path / f"c.{extension}")


def test_a_cut_file_of_version_73_is_refused(tmp_path):
    write_v73(tmp_path / "a.mat", {"x": ("double", values_of((30, 40)))})
    content = (tmp_path / "a.mat").read_bytes()
    for share in (0.1, 0.5, 0.9):
        (tmp_path / "b.mat").write_bytes(content[: int(share * len(content))])
        refused(tmp_path / "b.mat")


def test_names_that_lie_are_refused(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, values_of((3, 4)))
    (tmp_path / "a.mat").write_bytes(buffer.getvalue())
    assert (
        refused(tmp_path / "a.mat")
        == f"{tmp_path}/a.mat: named like a MAT file but its content is NPY; rename it or convert it"
    )
    assert "use one of .mat, .npy, .npz, .tif, .tiff" in refused(tmp_path / "a.xyz")
    assert refused(tmp_path / "a.png") == f"{tmp_path}/a.png: is a picture; 'tdc complete-image' completes it"
    assert refused(tmp_path) == f"{tmp_path}: is a folder; give one file"
    assert refused(tmp_path / "none.npy") == f"{tmp_path}/none.npy: no such file"


def test_a_mask_is_anything_but_zero(tmp_path):
    np.save(tmp_path / "m.npy", np.array([[0, -1, 0.5]]))
    assert np.array_equal(tensor.read_mask(tmp_path / "m.npy"), [[False, True, True]])
    np.save(tmp_path / "m.npy", np.array([[0, np.nan]]))
    with pytest.raises(MaskError, match="0 stands for known"):
        tensor.read_mask(tmp_path / "m.npy")


def test_an_existing_file_stays(tmp_path):
    np.save(tmp_path / "a.npy", values_of((3, 4)))
    read = tensor.read(tmp_path / "a.npy")
    with pytest.raises(OutputError, match="exists already"):
        tensor.write(read, tmp_path / "a.npy")
