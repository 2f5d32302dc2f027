"""Calls in processes of their own, and what runs side by side by any executor."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, smooth
from PIL import Image
from test_batch import alive, start, wait_for

from tdc_cli import compiled
from tdc_cli.cli import progress
from tdc_cli.run import batch, folders
from tdc_cli.run.pool import Processes, WorkerKilled, completed
from tdc_cli.run.request import Request

COMPLETE = ["complete-image", "in", "-o", "out", "--method", "linear", "--missing-ratio", "0.3"]
# Modules that a worker imports, from the package, its libraries and the standard library, most of them after `python
# -m` has begun.
TRAPS = (
    "numpy",
    "numba",
    "scipy",
    "skimage",
    "PIL",
    "click",
    "matplotlib",
    "tifffile",
    "json",
    "pickle",
    "random",
    "signal",
    "contextlib",
    "tempfile",
    "socket",
    "struct",
    "copy",
    "multiprocessing",
    "sitecustomize",
    "encodings",
)
TRAP = "import os\nopen(os.environ['SPRUNG'], 'a').write(__name__)\n"


def process_and_sum(*numbers):
    return os.getpid(), sum(numbers)


def compile_for_a_while():
    compiled.told(True)
    time.sleep(0.05)
    compiled.told(False)


def test_that_workers_compile_is_told_once(capsys, monkeypatch):
    monkeypatch.setattr(progress, "COMPILING_SECONDS", 0.0)
    with progress.shown(True), Processes(2) as pool:
        for done in [pool.submit(compile_for_a_while) for _ in range(3)]:
            done.result()
    said = capsys.readouterr().err
    assert said.startswith("tdc: compiling what this needs") and said.count("\n") == 1


def test_a_process_is_used_again_unless_each_call_has_a_fresh_one():
    with Processes(1) as pool:
        first, second = [pool.submit(process_and_sum, 1, n).result() for n in (2, 3)]
    assert first[0] == second[0] != os.getpid() and (first[1], second[1]) == (3, 4)
    with Processes(1, fresh=True) as pool:
        assert pool.submit(process_and_sum).result()[0] != pool.submit(process_and_sum).result()[0]


def test_what_happens_to_a_call_happens_to_no_other():
    with Processes(1, seconds=8) as pool:  # which the start of a process is part of
        killed, late, wrong = (
            pool.submit(*call) for call in ((signal.raise_signal, signal.SIGKILL), (time.sleep, 60), (json.loads, "{"))
        )
        right = pool.submit(sum, (1,))
        with pytest.raises(WorkerKilled, match=r"the process was killed \(exit code -9\)"):
            killed.result()
        with pytest.raises(TimeoutError, match="took longer than 8 s"):
            late.result()
        with pytest.raises(json.JSONDecodeError):
            wrong.result()
        assert right.result() == 1


def test_an_exception_ends_what_is_being_worked_on():
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Processes(2) as pool:
        futures = [pool.submit(time.sleep, 600) for _ in range(3)]
        time.sleep(1)
        raise KeyboardInterrupt
    assert time.monotonic() - begin < 60 and all(future.done() for future in futures)


def test_calls_are_submitted_as_others_end():
    taken = []

    def calls():
        for i in range(5):
            taken.append(i)
            yield i, pow, i, 2

    with ThreadPoolExecutor(1) as pool:
        for count, (key, future) in enumerate(completed(pool, calls(), 2)):
            assert future.result() == key**2 and len(taken) <= count + 2
    assert taken == [0, 1, 2, 3, 4]


@pytest.fixture
def pictures(folder):
    """`in` with four pictures."""
    Path("in").mkdir()
    for i in range(4):
        Image.fromarray(np.roll(smooth(20, 24), i, axis=1)).save(f"in/{i}.png")
    return folder


def test_a_folder_is_completed_by_any_executor(pictures):
    def written(output, **how):
        template = Request(input=Path("in"), output=Path(output), method="linear", missing_ratio=0.3)
        planned = folders.plan(template, [Path("in")], recursive=False, mask_suffix="", extension=None)
        assert [record.status for record in batch.run(planned, **how)] == ["done"] * 4
        return {path.name: path.read_bytes() for path in Path(output).iterdir()}

    expected = written("alone")
    assert written("processes", jobs=2) == expected
    with ThreadPoolExecutor(1) as pool:
        assert written("threads", jobs=2, executor=pool) == expected
        assert pool.submit(int).result() == 0, "one that was handed in is not shut down"


def environment(**more):
    """Where the program is found wherever it is started."""
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"} | more


BENCH = [
    "-c",
    "import tiny_suite; tiny_suite.register(); from tdc_cli.cli.main import main; main()",
    "bench",
    "tiny",
    "-o",
    "out",
    "-q",
]


@pytest.mark.parametrize(
    ("words", "safe"),
    [
        ([shutil.which("tdc", path=Path(sys.executable).parent), *COMPLETE, "--jobs", "2"], False),
        (["-m", "tdc_cli", *COMPLETE, "--jobs", "2"], False),
        ([*BENCH, "--seeds", "1", "--jobs", "2"], True),
    ],
    ids=["tdc", "python -m", "bench"],
)
def test_nothing_is_imported_from_the_current_folder(pictures, words, safe):
    # What Python itself imports before a module is begun by -m is out of reach.
    for name in TRAPS:
        Path(f"{name}.py").write_text(TRAP)
    python = [sys.executable] + ["-P"] * safe
    run = subprocess.run(
        [*python, *words], env=environment(SPRUNG="sprung"), capture_output=True, text=True, timeout=300
    )
    assert not Path("sprung").exists(), Path("sprung").read_text()
    assert run.returncode == 0, run.stderr
    assert Path("out").is_dir()


def test_the_trap_would_spring(pictures):
    Path("numpy.py").write_text(TRAP)
    subprocess.run([sys.executable, "-c", "import numpy"], env=environment(SPRUNG="sprung"), check=True, timeout=60)
    assert Path("sprung").read_text() == "numpy"


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are counted in /proc")
@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.8])
def test_ctrl_c_has_one_line_while_workers_are_loaded(pictures, seconds):
    for i in range(40):
        shutil.copy("in/0.png", f"in/more{i}.png")
    running = start(*COMPLETE[1:], "--jobs", "2", "--no-progress")
    wait_for(lambda: len(alive(running.pid)) > 1)
    time.sleep(seconds)
    os.killpg(running.pid, signal.SIGINT)
    assert (*running.communicate(timeout=120), running.returncode) == ("", "tdc: interrupted\n", 130)


def test_no_shared_memory_is_needed(pictures):
    """As where /dev/shm is read-only: nobody can make a semaphore."""
    Path("site").mkdir()
    Path("site/sitecustomize.py").write_text(
        "import _multiprocessing\ndef refuse(*_):\n    raise OSError(30, 'Read-only file "
        "system')\n_multiprocessing.SemLock = refuse\n"
    )
    paths = {"PYTHONPATH": f"{Path('site').absolute()}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-m", "tdc_cli", *COMPLETE, "--jobs", "2", "-q"]
    run = subprocess.run(words, env=environment(**paths), capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (0, "")
