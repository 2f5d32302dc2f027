"""What a program meets in the wild: full disks, streams that are closed or full, folders that cannot be written, values
of any size.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import pixels, report_of, smooth
from PIL import Image

import tdc_cli
from tdc_cli import compiled

SCRIPT = str(Path(sys.executable).with_name("tdc"))
COMPLETE = ["complete-image", "a.png", "-o", "b.png", "--method", "biharmonic"]


def through_shell(redirections, *words, **more):
    """Run the installed program by a shell, with its streams led elsewhere; both that are left are captured."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {redirections}', "bash", SCRIPT, *words],
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )


def one_line(text):
    """Whether `text` is one message of the program and no unexpected one."""
    return text.startswith("tdc: ") and text.count("\n") == 1 and "unexpected" not in text


# -- streams
# ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-", "2> >(exec true)"])
def test_a_message_that_cannot_be_written_costs_nothing(folder, where):
    Image.new("L", (24, 20)).save("empty.png")  # a mask that is noted on standard error
    done = through_shell(where, *COMPLETE, "--mask", "empty.png", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["outputs"] == {"image": "b.png"}
    assert np.array_equal(pixels("a.png"), pixels("b.png"))


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_an_error_that_cannot_be_written_keeps_its_exit_code(folder, where):
    done = through_shell(where, *COMPLETE, "--mask", "none.png")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def inside(where, code, *words):
    """Run the program after `code` has changed something in its process, with its streams led elsewhere."""
    code = f"import os, sys\nfrom tdc_cli.cli.main import main\n{code}\nmain(sys.argv[1:])"
    return subprocess.run(
        ["bash", "-c", f'"$@" {where}', "bash", sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("where", ["", "<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(folder, where):
    """What a library of C prints while a result is written must not go into the result."""
    printing = "sync = os.fsync\nos.fsync = lambda file: (os.write(1, b'out'), os.write(2, b'err'), sync(file))"
    done = inside(where, printing, *COMPLETE, "--missing-ratio", "0.2", "--report", "r.json", "-q")
    assert done.returncode == 0
    assert ("err" in done.stderr) == ("2>&-" not in where) and ("out" in done.stdout) == (
        ">&-" not in where.replace("2>&-", "")
    )
    assert pixels("b.png").shape == (20, 24, 3)
    assert b"err" not in Path("b.png").read_bytes() and b"out" not in Path("b.png").read_bytes()
    assert json.loads(Path("r.json").read_text())["warnings"] == []


def test_progress_goes_nowhere_but_to_standard_error(folder):
    """``print`` writes to standard output where standard error is None, as it is when closed."""
    often = "import tdc_cli.cli.progress as progress\nprogress.LINE_SECONDS = 0.0"
    done = inside("2>&-", often, *COMPLETE, "--missing-ratio", "0.2", "--json", "--progress")
    assert done.returncode == 0 and json.loads(done.stdout)["outputs"] == {"image": "b.png"}


@pytest.mark.parametrize(
    "words", [["info"], ["methods"], ["report-schema"], ["--help"], ["complete-image", "--help"], ["--version"]]
)
def test_output_to_a_full_disk_is_a_failure(folder, words):
    done = through_shell(">/dev/full", *words)
    assert (done.returncode, done.stderr) == (1, "tdc: standard output: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [["complete-image", "a.npy", "-o", "-", "--method", "nearest"], ["methods", "--json"]]
)
def test_output_that_does_not_fit_is_a_failure(folder, words, unbuffered):
    """Without a buffer Python's own writing stops halfway, and says so to nobody."""
    np.save("a.npy", np.where(np.arange(2000) % 9, 1.0, np.nan).reshape(40, 50))
    with open("out", "wb") as out:
        done = subprocess.run(
            [SCRIPT, *words],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        )
    assert (done.returncode, done.stderr) == (1, "tdc: standard output: File too large\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_failure_but_has_its_code(folder, unbuffered):
    np.save("a.npy", np.where(np.arange(60_000) % 9, 1.0, np.nan).reshape(200, 300))
    done = subprocess.run(
        [
            "bash",
            "-c",
            '"$@" | head -c 10 > out; echo "${PIPESTATUS[0]}"',
            "bash",
            SCRIPT,
            "complete-image",
            "a.npy",
            "-o",
            "-",
            "--method",
            "nearest",
            "-q",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    assert (done.stdout, done.stderr) == ("141\n", "") and len(Path("out").read_bytes()) == 10


# -- disks and signals
# --------------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full_leaves_no_half_file(folder):
    """As a limit on the size of files, which the system enforces while the file is written."""
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (100, 100, 3), dtype=np.uint8)).save("a.png")
    done = subprocess.run(
        [SCRIPT, *COMPLETE, "--missing-ratio", "0.01"], capture_output=True, text=True, timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "tdc: b.png: cannot be written (File too large)\n")
    assert sorted(os.listdir()) == ["a.png", "m.png"]


@pytest.mark.parametrize("wait", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(
    ("number", "line", "code"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143)]
)
def test_a_signal_ends_with_its_code_and_one_line(folder, wait, number, line, code):
    Image.fromarray(smooth(1000, 1000)).save("a.png")  # which takes longer than the longest wait
    words = [SCRIPT, *COMPLETE, "--missing-ratio", "0.5", "-v", "--no-progress"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline() == "tdc: biharmonic: Config()\n"  # the work begins
        time.sleep(wait)
        running.send_signal(number)
        assert (running.stderr.read(), running.wait(60)) == (f"tdc: {line}\n", code)
    assert sorted(os.listdir()) == ["a.png", "m.png"]


def test_ctrl_c_ends_with_its_code_where_python_would_end_with_a_signal(folder):
    """As Python does once a KeyboardInterrupt has come out of code given as text, as that of data classes is."""
    code = (
        "import signal\nfrom tdc_cli.methods import biharmonic\n"
        "def complete(*_, **__):\n    exec('signal.raise_signal(signal.SIGINT)', {'signal': signal})\n"
        "biharmonic.complete = complete"
    )
    done = inside("", code, *COMPLETE, "--mask", "m.png")
    assert (done.returncode, done.stderr) == (130, "tdc: interrupted\n")


# -- folders that cannot be written
# -------------------------------------------------------------------------------------------


@pytest.fixture
def read_only(folder):
    """Run Python where neither the package nor the home nor a cache folder can be written; ``read_only(*words)``."""
    package = folder / "site" / "tdc_cli"
    shutil.copytree(Path(tdc_cli.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    home = folder / "home"
    home.mkdir()
    closed = [home, package.parent, package, *(path for path in package.rglob("*") if path.is_dir())]
    for path in closed:
        path.chmod(0o555)
    # Permission bits do not bind the superuser, unless it gives its capabilities away.
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if drop and subprocess.run([*drop, "true"], capture_output=True, check=False).returncode:
        pytest.skip("run by the superuser, and setpriv, which takes its rights away, is not there or not allowed")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR")
    }
    environment = kept | {"HOME": str(home), "PYTHONPATH": str(package.parent)}
    yield lambda *words: subprocess.run(
        [*drop, sys.executable, *words], capture_output=True, text=True, timeout=300, env=environment
    )
    for path in closed:
        path.chmod(0o755)


@pytest.mark.parametrize("words", [
    ("complete-image", "a.png", "-o", "home/b.png", "--missing-ratio", "0.2"),
    ("complete-tensor", "t.npy", "-o", "home/b.npy"),
    ("complete-video", "t.npy", "-o", "home/b.npy", "--missing-ratio", "0.2"),
    ("synth", "-o", "home/p.npz"),
    ("synth", "--plot", "home"),
    ("bench", "smoke", "-o", "home/out"),
], ids=" ".join)  # fmt: skip
def test_a_folder_that_cannot_be_written_to_is_found_before_any_work(read_only, words):
    np.save("t.npy", np.ones((4, 5, 6)))
    done = read_only("-m", "tdc_cli", *words)
    name = "home/densities.png" if words[-1] == "home" else next(word for word in words if word.startswith("home/"))
    assert (done.returncode, done.stderr) == (2, f"tdc: {name}: folder home is not writable; name another place\n")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such folder here")
def test_a_folder_of_the_system_is_refused_before_any_work(tdc):
    done = tdc(*COMPLETE[:2], "-o", "/proc/b.png", *COMPLETE[4:], "--missing-ratio", "0.2", "--dry-run")
    told = "folder /proc is the system's own and takes no files; name another place"
    assert (done.exit_code, done.stderr) == (2, f"tdc: /proc/b.png: {told}\n")


def test_a_read_only_package_and_home_are_no_hindrance(read_only):
    done = read_only("-m", "tdc_cli", *COMPLETE, "--missing-ratio", "0.2", "--panel", "p.png", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert pixels("b.png").shape == (20, 24, 3) and Image.open("p.png").width > 100
    facts = read_only("-m", "tdc_cli", "info", "--json")
    assert (facts.returncode, facts.stderr, json.loads(facts.stdout)["cache"]) == (0, "", None)
    assert sorted(os.listdir("home")) == []


def test_kernels_are_compiled_where_they_cannot_be_kept(read_only):
    """A small kernel of its own: all kernels of a method would take half a minute."""
    done = read_only(
        "-c", "from tdc_cli.kernels import CACHE, njit\nprint(CACHE, njit(cache=CACHE)(lambda x: x + 1)(1))"
    )
    assert (done.stdout, done.stderr) == ("False 2\n", "")


def test_a_disk_without_room_for_compiled_code_does_not_end_the_run(folder):
    """A small kernel of its own, and files of at most 100 bytes."""
    Path("tried.py").write_text(
        "import resource\nfrom tdc_cli.compiled import not_kept\nfrom tdc_cli.kernels import njit\n"
        "print(bool(not_kept()))\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "@njit(cache=True)\ndef twice(x):\n    return 2 * x\nprint(twice(21), not_kept())\n"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(folder / "kept"),
        "PYTHONPATH": str(Path(tdc_cli.__file__).parent.parent),
    }
    # Through a pipe, since the limit also holds for a file that takes standard output.
    run = subprocess.run([sys.executable, "tried.py"], env=environment, capture_output=True, text=True, timeout=120)
    assert run.stderr == "" and run.stdout.startswith(
        "False\n42 ('compiled code cannot be kept (File too large), so every run compiles anew: set NUMBA_CACHE_DIR"
    )
    assert [path.name for path in Path("kept").rglob("*") if path.is_file()] == []


def test_that_compiled_code_is_not_kept_is_noted_once(complete, monkeypatch):
    monkeypatch.setattr(compiled, "kept", False)
    result = complete("--missing-ratio", "0.2")
    assert result.exit_code == 0 and result.stderr.count("set NUMBA_CACHE_DIR to a folder that can be written") == 1


# -- values
# -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, line",
    [
        (["--mask-threshold", "nan"], "Invalid value for '--mask-threshold': nan is not a finite number"),
        (["--missing-ratio", "nan"], "Invalid value for '--missing-ratio': nan is not a finite number"),
        (["--add-noise", "inf"], "Invalid value for '--add-noise': inf is not a finite number"),
        (["--report", ""], "Invalid value for '--report': the name is empty"),
        (["--mask", ""], "Invalid value for '--mask': the name is empty"),
        (["--threads", "9" * 30], f"Invalid value for '--threads': {'9' * 30} is not in the range 1<=x<=10000"),
    ],
)
def test_values_that_mean_nothing_are_refused(complete, options, line):
    result = complete(*options)
    assert (result.exit_code, result.stderr) == (2, f"tdc: {line}; see 'tdc complete-image --help'\n")


@pytest.mark.parametrize(
    "text, words",
    [
        ("[complete-image]\nx = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("[complete-image]\nseed = " + "9" * 5000, "5000 digits"),
        ("[complete-image]\nseed = 0x" + "9" * 5000, "integer string conversion"),
    ],
    ids=["nesting", "digits", "hexadecimal"],
)
def test_configuration_files_that_overflow_are_refused(tdc, text, words):
    Path("tdc.toml").write_text(text)
    result = tdc("--config", "tdc.toml", "methods")
    assert result.exit_code == 2 and one_line(result.stderr) and words in result.stderr


@pytest.mark.parametrize("method", ["biharmonic", "field", "datc"])
@pytest.mark.parametrize("size", [1e-300, 1e160, 1e289])
def test_no_size_of_the_data_makes_a_library_warn(folder, method, size):
    np.save("x.npy", smooth(9, 11, None) / 255 * size)
    words = ["complete-image", "x.npy", "-o", "y.npy", "--method", method, "--missing-ratio", "0.3", "--json"]
    words += ["--burn-in", "5", "--samples", "5"] if method == "datc" else []
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tdc_cli", *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    assert np.isfinite(np.load("y.npy")).all() and json.loads(done.stdout)["metrics"]["all"]["psnr"] > 10


def test_values_that_cannot_be_added_up_are_refused(tdc):
    np.save("x.npy", smooth(9, 11, None) / 255 * 1e308)
    np.save("y.npy", smooth(9, 11, None) / 255)
    words = ["-o", "z.npy", "--method", "field", "--missing-ratio", "0.3"]
    for more in (["x.npy"], ["y.npy", "--add-noise", "1e308"], ["y.npy", "--reference", "x.npy"]):
        result = tdc("complete-image", *more, *words)
        assert result.exit_code == 2 and one_line(result.stderr)
        assert "too large to compute with, the limit is 1e+290; " in result.stderr


def test_noise_that_drowns_the_picture_is_noise_nevertheless(complete):
    assert report_of(complete("--missing-ratio", "0.2", "--add-noise", "1", "--json"))["metrics"]["all"]["psnr"] < 10


def test_noise_that_drowns_an_array_is_noise_nevertheless(tdc):
    np.save("a.npy", smooth(20, 24) / 255)
    done = tdc("complete-image a.npy -o b.npy --method nearest --missing-ratio 0.2 --add-noise 1e140 --json")
    assert report_of(done)["metrics"]["all"]["rre"] > 1e100 and np.isfinite(np.load("b.npy")).all()


# -- files that lie
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planes", [False, True])
def test_rows_that_are_not_in_a_tiff_file_are_no_black_ones(tdc, planes):
    values = smooth(20, 24).astype(np.uint16)
    layout = {"planarconfig": "separate"} if planes else {}
    tifffile.imwrite("x.tif", np.moveaxis(values, 2, 0) if planes else values, photometric="rgb", **layout)
    content = bytearray(Path("x.tif").read_bytes())
    with tifffile.TiffFile("x.tif") as file:
        tag = file.pages[0].tags["ImageLength"]
    content[tag.valueoffset : tag.valueoffset + 2] = (500).to_bytes(2, "little")
    Path("x.tif").write_bytes(content)
    result = tdc("complete-image", "x.tif", "-o", "y.tif", "--method", "biharmonic", "--missing-ratio", "0.1")
    assert result.exit_code == 2 and one_line(result.stderr)
    assert result.stderr.startswith("tdc: x.tif: damaged or cut short (")


@pytest.mark.parametrize("kind", ["folder", "loop", "dangling"])
@pytest.mark.parametrize("role", ["input", "--mask", "--reference"])
def test_what_is_no_file_is_one_line(tdc, kind, role):
    if kind == "folder":
        Path("x.png").mkdir()
    else:
        os.symlink("x.png" if kind == "loop" else "none.png", "x.png")
    words = ["x.png", "--missing-ratio", "0.2"] if role == "input" else ["a.png", role, "x.png"]
    words += ["--missing-ratio", "0.2"] if role == "--reference" else []
    result = tdc("complete-image", *words, "-o", "b.png", "--method", "biharmonic")
    assert result.exit_code == 2 and one_line(result.stderr) and "x.png" in result.stderr
    assert not os.path.exists("b.png")


@pytest.mark.parametrize("size", [(1, 1), (1, 30_000), (30_000, 1), (8, 30_000), (2, 2), (1, 7), (7, 1)])
@pytest.mark.parametrize("method", ["biharmonic", "field"])
def test_pictures_of_any_shape_are_completed(tdc, method, size):
    picture = smooth(*size)
    Image.fromarray(picture).save("x.png")
    mask = np.zeros(size, dtype=np.uint8)
    mask.reshape(-1)[1::97] = 255
    Image.fromarray(mask).save("xm.png")
    result = tdc("complete-image", "x.png", "-o", "y.png", "--mask", "xm.png", "--method", method, "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    assert np.array_equal(pixels("y.png")[mask == 0], picture[mask == 0])
    assert np.abs(pixels("y.png").astype(int) - picture).max() < 60


def test_memory_does_not_grow_with_the_square_of_a_side():
    """Of a mode of 3000 rows: 3000 x 3000 numbers are 72 megabytes."""
    import tracemalloc

    from tdc_cli.model.coherence import Coherence
    from tdc_cli.model.rank import rank_one_starts

    tensor = np.random.default_rng(0).random((3000, 2, 3))
    tracemalloc.start()
    try:
        coherence = Coherence.of(3000, 0.5, 1.0)
        starts = rank_one_starts(tensor, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10e6
    assert len(coherence.eigenvalues) == 3000 and coherence.eigenvalues.min() < 1e-12 < coherence.eigenvalues.max()
    left = np.linalg.svd(tensor.reshape(3000, 6), full_matrices=False)[0]
    for column, (vector, *_) in enumerate(starts):
        assert abs(vector @ left[:, column]) == pytest.approx(1)


def test_a_small_file_of_a_huge_picture_is_refused_before_it_is_decoded(tdc):
    Image.new("1", (20_000, 10_000)).save("x.png")
    assert os.path.getsize("x.png") < 100_000
    result = tdc("complete-image", "x.png", "-o", "y.png", "--method", "field", "--missing-ratio", "0.1")
    assert result.exit_code == 2 and one_line(result.stderr) and "megapixels are read" in result.stderr


def test_a_damaged_file_of_compiled_code_is_compiled_anew(folder):
    """Numba's cache of a kernel that takes no time to compile, loaded by the program's own settings."""
    Path("tried.py").write_text(
        "from numba import njit\nfrom tdc_cli.kernels import CACHE\n@njit(cache=CACHE)\ndef twice(x):\n    return 2 * "
        "x\nprint(twice(21), sum(twice.stats.cache_hits.values()))\n"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(folder / "kept"),
        "PYTHONPATH": str(Path(tdc_cli.__file__).parent.parent),
    }

    def tried():
        run = subprocess.run([sys.executable, "tried.py"], env=environment, capture_output=True, text=True, timeout=120)
        return run.stdout.split() or run.stderr

    assert (tried(), tried()) == (["42", "0"], ["42", "1"])
    kept = [*Path("kept").rglob("*.nbi"), *Path("kept").rglob("*.nbc")]
    assert len(kept) == 2
    # The index may be empty or cut short, the code overwritten.
    for path in kept:
        whole = path.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2]) if path.suffix == ".nbi" else (b"\0" * 500,):
            path.write_bytes(damaged)
            assert tried() == ["42", "0"], path
    assert tried() == ["42", "1"]
