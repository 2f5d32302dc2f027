"""Folders and experiments on a Dask scheduler with two workers, all on this machine; what happens when one of them
goes.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_suite
from conftest import ROOT, smooth
from PIL import Image
from test_batch import contents, summary_of, wait_for

from tdc_cli.errors import ClusterError
from tdc_cli.run import cluster as clusters
from tdc_cli.run.cluster import Terms, connected, suit, versions
from tdc_cli.run.request import Request

distributed = pytest.importorskip("distributed", reason="distributed is not installed")

PATIENCE = 300  # seconds, on a machine that has much else to do
HOLES = ["--method", "linear", "--missing-ratio", "0.3", "-q"]
# On a worker the method takes its time, so that a run has a middle, and a picture of 13 rows is too much for it.
SLOW_AND_DEADLY = """
import os, signal, time
from tdc_cli.methods import linear
linear.plain = getattr(linear, "plain", linear.complete)  # what is loaded first is run twice
def complete(values, *args, **more):
    time.sleep(0.1)
    if values.shape[0] == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return linear.plain(values, *args, **more)
linear.complete = complete
"""
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
}


class Machines:
    """A scheduler and workers in processes of their own."""

    def __init__(self, place):
        self._place, self._running = place, []
        (place / "preload.py").write_text(SLOW_AND_DEADLY)
        file = place / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        wait_for(lambda: file.exists() and file.read_text().endswith("}"), PATIENCE)
        self.address = json.loads(file.read_text())["address"]
        self.more("--nworkers", "2", "--nthreads", "1", "--preload", place / "preload.py")
        self.wait(2)

    def more(self, *words):
        """Start further workers; the process that holds them."""
        return self._start("worker", self.address, "--local-directory", self._place, *words)

    def wait(self, count):
        """Until so many workers are there."""
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE)

    def _start(self, what, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *map(str, words), "--no-dashboard"]
        log = (self._place / f"{what}.log").open("a")
        running = subprocess.Popen(
            command, env=os.environ | ENVIRONMENT, stdout=log, stderr=log, start_new_session=True
        )
        self._running.append(running)
        return running

    def end(self):
        for running in self._running:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Holds the machines, which one test may take away from the others."""
    place = tmp_path_factory.mktemp("machines")
    machines = []
    yield (
        lambda: (
            machines[-1]
            if machines and machines[-1].scheduler.poll() is None
            else machines.append(Machines(place)) or machines[-1]
        )
    )
    for each in machines:
        each.end()


@pytest.fixture
def machines(held):
    return held()


@pytest.fixture
def pictures(folder):
    """`in` with twenty small pictures, and what comes of them on this machine."""
    Path("in").mkdir()
    for i in range(20):
        Image.fromarray(np.roll(smooth(12 + 4 * (i % 3), 14), i, axis=1)).save(f"in/{i}.png")
    return folder


@pytest.fixture
def expected(tdc, pictures):
    assert tdc("complete-image", "in", "-o", "alone", *HOLES).exit_code == 0
    return contents("alone")


def meanwhile(condition, action):
    """Do something in a thread as soon as a condition holds."""

    def wait():
        wait_for(condition, PATIENCE)
        action()

    threading.Thread(target=wait, daemon=True).start()


def written():
    return [name for name in os.listdir("out") if name.endswith(".png")] if os.path.isdir("out") else []


def some_written():
    return len(written()) > 0


def pids(machines):
    with connected(machines.address) as cluster:
        return {cluster.executor.submit(pid_after, 0.2).result() for _ in range(2)}


def pid_after(seconds):
    time.sleep(seconds)
    return os.getpid()


def test_the_same_bytes_also_where_a_worker_is_killed_in_the_middle(tdc, machines, expected):
    victim = pids(machines).pop()
    meanwhile(some_written, lambda: os.kill(victim, signal.SIGKILL))
    words = ["complete-image", "in", "-o", "out", *HOLES, "--report", "r", "--json", "--cluster", machines.address]
    values = summary_of(tdc(*words))
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)
    assert contents("out") == expected
    assert {entry["status"] for entry in values["files"]} <= {"done", "skipped"} and len(values["files"]) == 20
    assert values["environment"] == values["environment"] | {"threads": 1}
    assert all(entry["path"] == str(Path("in").absolute() / Path(entry["path"]).name) for entry in values["files"])
    assert not list(Path().glob(".tdc-*")), "what was laid out for the workers to see is gone"


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize(
    "command, name, shape",
    [("complete-image", "large.npy", (64, 192)), ("complete-video", "clip.npy", (6, 40, 70, 3))],
)
def test_regions_of_one_large_input_travel_there_as_arrays(tdc, machines, folder, command, name, shape, kill):
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    np.save(name, values)
    words = [command, name, "--region", "32", *HOLES, "--seed", "4"]
    assert tdc(*words, "-o", "alone.npy").exit_code == 0
    if kill:
        work, lost = Path(".there.npy.tdc-work"), next(iter(pids(machines)))
        meanwhile(lambda: any(work.glob("*.npz")), lambda: os.kill(lost, signal.SIGKILL))
    done = tdc(*words, "-o", "there.npy", "--cluster", machines.address)
    assert done.exit_code == 0, done.stderr
    assert Path("there.npy").read_bytes() == Path("alone.npy").read_bytes()
    machines.wait(2)


def test_a_picture_that_kills_its_workers_is_one_failed_file(tdc, machines, pictures):
    for i in range(2, 20):
        os.remove(f"in/{i}.png")
    Image.fromarray(smooth(13, 14)).save("in/deadly.png")
    done = tdc("complete-image", "in", "-o", "out", *HOLES, "--cluster", machines.address)
    path = Path("in/deadly.png").absolute()
    assert (done.exit_code, sorted(contents("out"))) == (3, ["0.png", "1.png"])
    words = (
        "not done, because a worker process was killed; "
        "if memory was short, try fewer --jobs, or workers that have more"
    )
    assert done.stderr == f"tdc: {path}: {words}\n"


def test_an_experiment_runs_there(tdc, machines, monkeypatch):
    tiny_suite.register()
    monkeypatch.setenv("MISHAP", "killed")
    done = tdc("bench", "tiny", "-o", "out", "--seeds", "1", "--ratios", "0.2", "--json", "--cluster", machines.address)
    assert done.exit_code == 0, done.stderr
    records = {record["method"]: record for record in json.loads(done.stdout)["records"]}
    assert records["linear"]["status"] == "done" and records["linear"]["memory"] >= 0 and records["linear"]["arrays"]
    assert records["nearest"]["error"] == "the process was killed (exit code -9); was memory short?"


def test_ctrl_c_leaves_nothing_with_the_scheduler(machines, pictures):
    words = [
        sys.executable,
        "-m",
        "tdc_cli",
        "complete-image",
        "in",
        "-o",
        "out",
        *HOLES,
        "--cluster",
        machines.address,
    ]
    environment = os.environ | ENVIRONMENT
    running = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(some_written, PATIENCE)
    running.send_signal(signal.SIGINT)
    assert (running.communicate(timeout=PATIENCE)[1], running.returncode) == ("tdc: interrupted\n", 130)
    with distributed.Client(machines.address, set_as_default=False) as client:
        wait_for(lambda: client.run_on_scheduler(tasks_of) == 0, PATIENCE)
    assert len(contents("out")) < 20


def tasks_of(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_a_worker_that_comes_later_is_looked_at_too(machines):
    with connected(machines.address) as cluster:
        further = machines.more("--nthreads", "2", "--no-nanny", "--name", "crowded")
        machines.wait(cluster.workers + 1)
        futures = [cluster.executor.submit(pid_after, 0.3) for _ in range(8)]
        errors = [future.exception() for future in futures]
        words = "works on 2 calls at a time in one process; begin workers with --nthreads 1, one for each core"
        assert any(isinstance(error, ClusterError) and str(error).endswith(words) for error in errors)
        assert None in errors
    with pytest.raises(ClusterError, match=words), connected(machines.address):
        pass
    os.killpg(further.pid, signal.SIGKILL)
    with distributed.Client(machines.address, set_as_default=False) as client:
        wait_for(lambda: len(client.nthreads()) == 2, PATIENCE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("_installed", lambda package: "1.0"), f"has numpy {np.__version__}, not 1.0; install the same version there"),
        (("__version__", "7"), "has tdc 0.1.0, not 7; install the same version there"),
    ],
)
def test_workers_of_other_versions_are_refused(tdc, machines, pictures, monkeypatch, change, words):
    monkeypatch.setattr(clusters, *change)
    done = tdc("complete-image", "in", "-o", "out", *HOLES, "--cluster", machines.address)
    assert (
        done.exit_code == 2
        and done.stderr.startswith("tdc: worker tcp://127.0.0.1:")
        and done.stderr.endswith(f" {words}\n")
    )
    assert not Path("out").exists()


def test_files_that_a_worker_does_not_see_are_named(machines, folder):
    path = folder / "elsewhere.png"
    words = "files must lie on a file system that all machines share, under the same names"
    with (
        pytest.raises(ClusterError, match=f"worker tcp://[0-9.:]+ does not see {path}; {words}"),
        connected(machines.address, reads=[path]),
    ):
        pass
    with pytest.raises(ClusterError, match=f"^has another file as {folder / 'a.png'}; {words}"):
        suit(Terms(versions(), ((str(folder / "a.png"), 3),)))


def test_a_worker_that_cannot_start_processes_is_refused_for_experiments(monkeypatch):
    suit(Terms(versions(), (), processes=True))
    monkeypatch.setattr(clusters.multiprocessing.current_process(), "_config", {"daemon": True})
    with pytest.raises(ClusterError, match="cannot start processes"):
        suit(Terms(versions(), ((".", None),), processes=True))


def test_nobody_answers(tdc, pictures, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.2)
    for words in (["complete-image", "in", "-o", "out", *HOLES], ["bench", "smoke", "-o", "out"]):
        done = tdc(*words, "--cluster", "tcp://127.0.0.1:9")
        assert done.exit_code == 2 and done.stderr.startswith("tdc: tcp://127.0.0.1:9: no Dask scheduler answers (")
        assert len(done.stderr.splitlines()) == 1 and not Path("out").exists()


def test_without_the_library_the_way_out_is_told(tdc, pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = tdc("complete-image", "in", "-o", "out", *HOLES, "--cluster", "tcp://127.0.0.1:9")
    words = "tdc: --cluster needs distributed, which is not installed; try pip install 'tdc-cli[cluster]'\n"
    assert (done.exit_code, done.stderr) == (2, words)


def test_what_excludes_a_cluster(tdc, pictures):
    line = "--cluster and --jobs exclude each other: the cluster's workers do the work"
    for words in (
        ["complete-image", "in", "-o", "out"],
        ["complete-video", "in", "-o", "out.npy"],
        ["bench", "smoke", "-o", "out"],
    ):
        done = tdc(*words, "--jobs", "2", "--cluster", "tcp://127.0.0.1:9")
        assert done.exit_code == 2 and done.stderr.startswith(f"tdc: {line}"), done.stderr


def test_paths_are_those_of_all_machines(folder):
    request = Request(input="in/a.png", output="b.png", mask="alpha", report="r", add_noise=0.1).absolute()
    assert (request.input, request.output, request.report) == tuple(
        folder / name for name in ("in/a.png", "b.png", "r")
    )
    assert request.mask == "alpha" and request.html is None
    assert Request(input="-", output="-").absolute() == Request(input="-", output="-")


def test_a_scheduler_that_goes_is_one_line_and_the_rest_is_done_later(tdc, machines, expected):
    meanwhile(some_written, lambda: os.killpg(machines.scheduler.pid, signal.SIGKILL))
    done = tdc("complete-image", "in", "-o", "out", *HOLES, "--cluster", machines.address)
    assert done.exit_code == 1, done.stderr
    assert (
        done.stderr.startswith(f"tdc: {machines.address}: the scheduler has gone (")
        and len(done.stderr.splitlines()) == 1
    )
    assert 0 < len(written()) < 20
    assert tdc("complete-image", "in", "-o", "out", *HOLES, "--skip-existing").exit_code == 0
    assert contents("out") == expected


def test_what_is_no_address_is_refused_at_once(tdc, pictures):
    done = tdc("complete-image", "in", "-o", "out", *HOLES, "--cluster", "nonsense")
    assert done.exit_code == 2 and "--cluster is 'nonsense'; give the address" in done.stderr
