"""Pictures and clips larger than what is held at a time: memory, time, borders of regions, killing and going on.

    python benchmarks/scale.py --what told borders same kill cluster photograph raster clip small long

Material is made by mirroring and shifting what is in sample_data; every run is the program itself on one thread.
Memory is the peak of the largest process, and of all of them together, above that of a bare interpreter.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

SAMPLES = Path(__file__).parents[1] / "sample_data"
NEAR = 3  # pixels from a border of regions


@dataclass(frozen=True)
class Used:
    """What a run took: seconds of clock and processors, those of the program's first process alone, bytes of memory of
    the largest process and of all together.
    """

    clock: float
    processor: float
    first: float
    largest: int
    together: int

    def __str__(self):
        memory = f"{self.largest / 2**20:.0f} MiB in the largest process, {self.together / 2**20:.0f} MiB in all"
        return f"{self.clock:.0f} s, {self.processor:.1f} s of processors, {memory}"


def run(*words, bare=0):
    """`Used` by the program, which must come to its end."""
    return watched(program(*words), bare)


def program(*words):
    """The command of a run."""
    return [sys.executable, "-m", "tdc_cli", *map(str, words), "--no-progress", "-q"]


def watched(command, bare=0):
    """`Used` by a command and what it starts; `bare` bytes are taken off for each process."""
    begin, before = time.perf_counter(), os.times()
    process = subprocess.Popen(command, start_new_session=True)
    largest = together = first = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):  # has ended
            first = _seconds(process.pid)[0]
        sizes = [size - bare for size in _sizes(process.pid)]
        largest, together = max([largest, *sizes]), max(together, sum(sizes))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"exit code {process.returncode}: {' '.join(command)}")
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Used(time.perf_counter() - begin, spent, first, largest, together)


def _sizes(session):
    """Bytes of memory of every process of a session."""
    found = []
    for process in _members(session):
        with contextlib.suppress(OSError, IndexError):  # has ended
            found.append(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return found


def _members(session):
    """Ids of the processes of a session."""
    found = []
    for process in (int(folder.name) for folder in Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):  # has ended
            if os.getsid(process) == session:
                found.append(process)
    return found


def _seconds(process):
    """Seconds of processors that a process has taken, and those that it has waited for, (float, float)."""
    ticks = [int(each) for each in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]]
    return sum(ticks[:2]) / os.sysconf("SC_CLK_TCK"), sum(ticks[2:]) / os.sysconf("SC_CLK_TCK")


def bare_interpreter():
    """Bytes of memory of an interpreter that does nothing."""
    return watched([sys.executable, "-c", "import time; time.sleep(0.5)"]).largest


def mirrored(name, height, width):
    """(height, width, 3) uint8 of a sample, mirrored and shifted until it is large enough."""
    picture = np.asarray(Image.open(SAMPLES / name).convert("RGB"))
    rows = np.arange(height) + picture.shape[0] // 3
    columns = np.arange(width) + picture.shape[1] // 5
    places = [np.abs((index + n) % (2 * n) - n) % n for index, n in zip((rows, columns), picture.shape)]
    return np.ascontiguousarray(picture[places[0][:, None], places[1]])


def save(values, path):
    Image.fromarray(values).save(path)
    return path


def marks(what, height, width):
    """Mask of text, scratches or dots that fills a picture, 255 where it is."""
    mask = np.asarray(Image.open(SAMPLES / f"mask_{what}.png").convert("L"))
    return np.tile(mask, (-(-height // mask.shape[0]), -(-width // mask.shape[1])))[:height, :width]


def hidden(place, side, holes):
    """Words that say what is missing of a picture of this side: marks, one deep hole, or a share of the entries."""
    if holes in ("text", "scratches", "dots"):
        return "--mask", save(marks(holes, side, side), place / "mask.png")
    if holes == "hole":
        return "--mask-box", f"{side // 3},{side // 3},{side // 5},{side // 4}"
    return "--missing-ratio", holes


def planned(*words):
    """What a dry run tells."""
    command = [sys.executable, "-m", "tdc_cli", *map(str, words), "--dry-run", "--json", "-q"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compared(words, used):
    """Estimate of a dry run beside what a run took, in words."""
    told = planned(*words)["estimate"]
    return (f"told before: {told['seconds']:.1f} s ({told['seconds'] / max(used.processor, 0.1):.2f} of it), "
            f"{told['bytes'] / 2**20:.0f} MiB ({told['bytes'] / used.together:.2f} of it)")  # fmt: skip


def borders(place, chosen):
    """Error near the borders of regions over that elsewhere, and what dividing costs, for several kinds of holes."""
    side = chosen.side
    truth = mirrored("astronaut.png", side, side)
    picture = save(truth, place / "a.png")
    for method in chosen.methods:
        for name in chosen.holes:
            words = ["complete-image", picture, *hidden(place, side, name), "--method", method, "--threads", "1",
                     "--overwrite"]  # fmt: skip
            divided = [*words, "-o", place / "divided.png", "--region", chosen.region]
            regions = planned(*divided)["regions"]
            undivided = [*words, "-o", place / "whole.png", "--region", "whole"]
            used = run(*divided)
            print(f"{method}, {name}, in {len(regions)} regions: {used}; {compared(divided, used)}", flush=True)
            used = run(*undivided, "--save-incomplete", place / "holes.png")
            print(f"{method}, {name}, undivided: {used}; {compared(undivided, used)}", flush=True)
            results = [_read(place / f"{kind}.png").astype(float) - truth for kind in ("divided", "whole")]
            near, missing = _near(regions, truth.shape[:2]), _read(place / "holes_mask.png") > 0
            ratios = [
                np.sqrt((error[missing & near] ** 2).mean() / (error[missing & ~near] ** 2).mean()) for error in results
            ]
            lost = 10 * np.log10((results[0] ** 2).mean() / (results[1] ** 2).mean())
            print(
                f"{method}, {name}: error near borders over elsewhere {ratios[0]:.4f}, "
                f"undivided at the same places {ratios[1]:.4f}, quotient {ratios[0] / ratios[1]:.4f}; PSNR "
                f"{-lost:+.3f} dB against undivided",
                flush=True,
            )


def _read(path):
    return np.asarray(Image.open(path))


def _near(regions, size):
    """(H, W) bool, within `NEAR` pixels of a border between regions."""
    near = np.zeros(size, dtype=bool)
    for row, column in ((r["rows"][0], r["columns"][0]) for r in regions):
        if row > min(r["rows"][0] for r in regions):
            near[row - NEAR : row + NEAR] = True
        if column > min(r["columns"][0] for r in regions):
            near[:, column - NEAR : column + NEAR] = True
    return near


def large(place, chosen):
    """Words of a run on one picture of several regions, on one thread."""
    picture = save(mirrored("astronaut.png", chosen.side, chosen.side), place / "a.png")
    holes = hidden(place, chosen.side, chosen.holes[0])
    return ("complete-image", picture, *holes, "--method", chosen.methods[0], "--region", chosen.region,
            "--threads", "1")  # fmt: skip


def same(place, chosen):
    """One picture by one process and by two, in turn: the same bytes, how much faster, and how much more work."""
    words, best = (*large(place, chosen), "--overwrite"), {}
    for turn in range(chosen.turns):
        for jobs in (1, 2):
            used = run(*words, "-o", place / f"{jobs}.png", "--jobs", jobs)
            print(f"  turn {turn + 1}, --jobs {jobs}: {used}, load {os.getloadavg()[0]:.1f}", flush=True)
            best[jobs] = min(best.get(jobs, used), used, key=lambda each: each.clock)
    alike = (place / "1.png").read_bytes() == (place / "2.png").read_bytes()
    # Of two quiet cores: what the first process does alone, and half of what the two others do.
    quiet = best[2].first + (best[2].processor - best[2].first) / 2
    print(f"{chosen.side}x{chosen.side}, {chosen.methods[0]}, {chosen.holes[0]}: {best[1].clock:.1f} s and "
          f"{best[2].clock:.1f} s, {best[1].clock / best[2].clock:.2f} times as fast; by the processor's seconds, of "
          f"which two jobs take {best[2].processor / best[1].processor:.2f} times as many, "
          f"{best[1].processor / quiet:.2f} times; the same bytes: {alike}; "
          f"{compared((*words, '-o', place / '1.png'), best[1])}")  # fmt: skip


def kill(place, chosen):
    """Kill a run at ten moments, go on each time, and compare with a run that was left alone."""
    words, work = large(place, chosen), place / ".b.png.tdc-work"
    whole = run(*words, "-o", place / "whole.png", "--jobs", 2).clock
    before, moments = set(os.listdir(place)) | {"b.png"}, random.Random(0)
    command = program(*words, "-o", place / "b.png", "--jobs", 2, "--resume")
    for i in range(chosen.kills):
        process = subprocess.Popen(command, start_new_session=True)
        kept = len(list(work.glob("*.npz")))
        # Every third may hit the start as well.
        while i % 3 and process.poll() is None and len(list(work.glob("*.npz"))) <= kept:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, whole / chosen.kills))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"  kill {i + 1}: {len(list(work.glob('*.npz')))} regions are kept", flush=True)
    finished = (place / "b.png").exists()
    subprocess.run(command, check=True)
    alike = (place / "b.png").read_bytes() == (place / "whole.png").read_bytes()
    left = sorted(set(os.listdir(place)) - before)
    print(f"killed {chosen.kills} times{', finished before the last' if finished else ''}: the same bytes: {alike}; "
          f"left behind: {left}")  # fmt: skip


class Machines:
    """A scheduler and two workers of one thread each, in processes of their own on this machine."""

    def __init__(self, place):
        self._log, file = (place / "machines.log").open("a"), place / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", 0, "--scheduler-file", file)
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.nanny = self._start("worker", self.address, "--nworkers", 2, "--nthreads", 1, "--local-directory", place)
        with self.executor() as (executor, workers):
            while workers < 2:
                time.sleep(0.1)
                workers = len({executor.submit(_held_for, 0.2).result() for _ in range(2)})

    @contextlib.contextmanager
    def executor(self):
        from tdc_cli.run.cluster import connected

        with connected(self.address) as cluster:
            yield cluster.executor, cluster.workers

    def _start(self, what, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *map(str, words), "--no-dashboard"]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log, start_new_session=True,
                                env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip

    def workers(self):
        """Ids of the processes that do the work."""
        with self.executor() as (executor, _):
            return {executor.submit(_held_for, 0.2).result() for _ in range(4)}

    def processor(self):
        """Seconds of processors that the scheduler and the workers have taken, (float, float)."""
        return tuple(sum(sum(_seconds(each)) for each in _members(one.pid)) for one in (self.scheduler, self.nanny))

    def end(self):
        for one in (self.nanny, self.scheduler):
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
        self._log.close()


def _held_for(seconds):
    time.sleep(seconds)
    return os.getpid()


def cluster(place, chosen):
    """A folder, one picture and a clip on a scheduler with two workers, alone, with a worker killed, with the scheduler
    killed; and what 1,000 calls cost.
    """
    (place / "in").mkdir()
    for i in range(chosen.files):
        save(np.roll(mirrored("astronaut.png", 48, 48), i, axis=1), place / "in" / f"{i:04d}.png")
    whole = mirrored("astronaut.png", 144, 176 + 2 * 24)
    np.save(place / "clip.npy", np.stack([whole[:, 2 * i : 2 * i + 176] for i in range(24)]))
    one_thread = ("--threads", 1, "--method", chosen.methods[0])
    cases = {
        f"folder of {chosen.files}": ("", "--skip-existing", lambda out: any(out.glob("*.png")),
            ("complete-image", place / "in", "--missing-ratio", 0.3, *one_thread)),
        f"{chosen.side}x{chosen.side}": (".png", "--resume", _some_kept, large(place, chosen)),
        "clip of 24 frames": (".npy", "--resume", _some_kept,
            ("complete-video", place / "clip.npy", "--missing-ratio", 0.3, "--chunk", 3, *one_thread)),
    }  # fmt: skip
    machines = Machines(place)
    try:
        print(_overhead(machines), flush=True)
        for name, (suffix, go_on, begun, words) in cases.items():
            outputs = [place / f"{kind}{suffix}" for kind in ("alone", "there", "worker", "scheduler")]
            used = run(*words, "-o", outputs[0])
            before = machines.processor()
            client = run(*words, "-o", outputs[1], "--cluster", machines.address)
            of_scheduler, of_workers = np.subtract(machines.processor(), before)
            print(f"{name}: {used.processor:.1f} s of processors here; there {client.processor:.1f} s in the program, "
                  f"{of_scheduler:.1f} in the scheduler, {of_workers:.1f} in the workers; "
                  f"the same bytes: {_alike(*outputs[:2])}", flush=True)  # fmt: skip
            victim = machines.workers().pop()
            done = _interrupted(
                words, outputs[2], machines, begun, lambda victim=victim: os.kill(victim, signal.SIGKILL)
            )
            print(f"  a worker killed: exit code {done.returncode}, {done.stderr!r}; "
                  f"the same bytes: {_alike(outputs[0], outputs[2])}", flush=True)  # fmt: skip
            kill_scheduler = partial(os.killpg, machines.scheduler.pid, signal.SIGKILL)
            done = _interrupted(words, outputs[3], machines, begun, kill_scheduler)
            print(f"  the scheduler killed: exit code {done.returncode}, {done.stderr!r}", flush=True)
            run(*words, "-o", outputs[3], go_on)
            print(f"  gone on with {go_on}: the same bytes: {_alike(outputs[0], outputs[3])}", flush=True)
            machines.end()
            machines = Machines(place)
    finally:
        machines.end()
    print(f"left behind: {[path.name for path in place.iterdir() if path.name.startswith('.')]}")


def _overhead(machines, calls=1000):
    """In words, what so many calls with nothing in them cost."""
    with machines.executor() as (executor, _):
        here, there, clock = sum(os.times()[:2]), machines.processor(), time.perf_counter()
        for future in [executor.submit(os.getpid) for _ in range(calls)]:
            future.result()
        here, there = sum(os.times()[:2]) - here, np.subtract(machines.processor(), there)
        return (f"{calls} calls with nothing in them: {time.perf_counter() - clock:.1f} s; of processors {here:.1f} s "
                f"in the program, {there[0]:.1f} in the scheduler, {there[1]:.1f} in the workers")  # fmt: skip


def _some_kept(output):
    """Whether a finished region of this output is kept."""
    return any(output.with_name(f".{output.name}.tdc-work").glob("*.npz"))


def _interrupted(words, output, machines, begun, action):
    """How a run on a cluster ended in which something happened as soon as it had begun."""
    command = program(*words, "-o", output, "--cluster", machines.address)
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not begun(output):
        time.sleep(0.005)
    if running.poll() is not None:
        print("  (it had ended before)")
    action()
    _, errors = running.communicate()
    return subprocess.CompletedProcess(command, running.returncode, stderr=errors)


def _alike(one, other):
    """Whether two files, or all files of two folders, are the same."""
    if one.is_dir():
        names = [sorted(path.name for path in folder.iterdir()) for folder in (one, other)]
        return names[0] == names[1] and all(_alike(one / name, other / name) for name in names[0])
    return one.read_bytes() == other.read_bytes()


def photograph(place, chosen):
    """4000x3000, 60 % of the entries missing, and 512x512 for comparison."""
    bare, costs = bare_interpreter(), {}
    for height, width in ((512, 512), (3000, 4000)):
        picture = save(mirrored("astronaut.png", height, width), place / f"{width}.png")
        words = ["complete-image", picture, "-o", place / f"{width}-out.png", "--missing-ratio", "0.6",
                 "--memory", "2G", "--threads", "1", "--method", chosen.methods[0]]  # fmt: skip
        used = run(*words, bare=bare)
        costs[width] = used.processor / (0.6 * 3 * height * width)
        print(f"{width}x{height}, {chosen.methods[0]}: {used}; {1e6 * costs[width]:.1f} us a missing entry; "
              f"{compared([*words, '--overwrite'], used)}", flush=True)  # fmt: skip
    print(f"cost of a missing entry over that of 512x512: {costs[4000] / costs[512]:.2f}")


def raster(place, chosen):
    """A band of single precision in a tiled TIFF, 5 % of it in stripes."""
    import tifffile

    side, geo = (
        chosen.raster,
        [(33550, "d", 3, (10.0, 10.0, 0.0), True), (33922, "d", 6, (0.0, 0.0, 0.0, 6e5, 5e6, 0.0), True)],
    )
    band = mirrored("camera.png", side, side)[..., 0]
    tifffile.imwrite(place / "a.tif", band.astype(np.float32) / 100, tile=(512, 512), metadata=None, extratags=geo)
    mask = np.zeros((side, side), dtype=np.uint8)
    for column in range(50, side, 120):
        mask[:, column : column + 6] = 255
    save(mask, place / "m.png")
    del band, mask
    bare = bare_interpreter()
    for method in chosen.methods:
        words = ["complete-image", place / "a.tif", "-o", place / f"{method}.tif", "--mask", place / "m.png",
                 "--method", method, "--memory", "2G", "--threads", "1"]  # fmt: skip
        used = run(*words, bare=bare)
        print(f"{side}x{side}, {method}: {used}; {compared([*words, '--overwrite'], used)}", flush=True)
        with tifffile.TiffFile(place / "a.tif") as one, tifffile.TiffFile(place / f"{method}.tif") as other:
            tags = [{code: file.pages[0].tags[code].value for code, *_ in geo} for file in (one, other)]
            tiles = [(file.pages[0].tilelength, file.pages[0].shape, file.pages[0].dtype) for file in (one, other)]
        print(f"  the same tags: {tags[0] == tags[1]}; the same tiles, shape and type: {tiles[0] == tiles[1]}")


def clip(place, chosen):
    """1920x1080, some frames with a logo."""
    import imageio.v3 as iio

    frames = chosen.frames
    wide = mirrored("astronaut.png", 1080, 1920 + 4 * frames)
    (place / "in").mkdir()
    for number in range(frames):
        iio.imwrite(place / "in" / f"{number:04d}.png", wide[:, 4 * number : 4 * number + 1920])
    words = ["complete-video", place / "in", "-o", place / "out", "--mask-box", "-260,40,220,90",
             "--method", chosen.methods[0], "--memory", "2G", "--threads", "1"]  # fmt: skip
    used = run(*words, bare=bare_interpreter())
    print(f"1920x1080, {frames} frames, {chosen.methods[0]}: {used}; {compared([*words, '--overwrite'], used)}")


def panned(height, width):
    """(2000, height, width, 3) uint8, to and fro over a picture."""
    wide = mirrored("astronaut.png", height, width + 500)
    return np.stack([wide[:, s : s + width] for s in (2 * abs((i + 250) % 500 - 250) for i in range(2000))])


def small(place, chosen):
    """2,000 frames of 64x48 with a logo."""
    np.save(place / "a.npy", panned(48, 64))
    words = ("complete-video", place / "a.npy", "-o", place / "b.npy", "--mask-box", "46,4,14,8", "--method",
             chosen.methods[0], "--threads", "1")  # fmt: skip
    used = run(*words, bare=bare_interpreter())
    print(f"64x48, 2000 frames, {chosen.methods[0]}: {used}; {compared([*words, '--overwrite'], used)}")


def long(place, chosen):
    """2,000 frames of 176x144 with strokes on every twentieth."""
    import imageio.v3 as iio

    np.save(place / "a.npy", panned(144, 176))
    with Image.open(SAMPLES / "mask_scratches.png") as strokes:
        iio.imwrite(place / "m.png", np.asarray(strokes.convert("L").resize((176, 144))))
    words = ("complete-video", place / "a.npy", "-o", place / "b.npy", "--mask", place / "m.png", "--mask-frames",
             "::20", "--method", chosen.methods[0], "--threads", "1")  # fmt: skip
    used = run(*words, bare=bare_interpreter())
    print(f"176x144, 2000 frames, {chosen.methods[0]}: {used}; {compared([*words, '--overwrite'], used)}")


# Pictures that estimates are compared on: side, channels, holes as of `hidden`, methods. Up to 512x512, mirrored ones
# repeat themselves, which `patches` goes after for several times the work, so these are 256x256 as they come.
TOLD = (
    (256, 1, "text", ("field", "patches", "auto")),
    (256, 3, "text", ("field", "patches", "auto")),
    (256, 3, "scratches", ("field", "patches")),
    (256, 3, "dots", ("field", "auto")),
    (256, 3, "0.6", ("field", "patches", "datc", "halrtc")),
    (256, 3, "0.9", ("field", "patches")),
    (256, 3, "hole", ("field", "auto", "patches", "exemplar")),
    (640, 1, "text", ("field", "patches")),
    (640, 3, "text", ("field", "patches")),
    (640, 3, "scratches", ("field", "patches")),
    (640, 3, "dots", ("field", "patches")),
    (640, 3, "0.3", ("field", "patches")),
    (640, 3, "0.6", ("field", "patches", "biharmonic")),
    (640, 3, "hole", ("field", "auto", "exemplar")),
    (1024, 3, "text", ("field", "patches")),
    (1024, 3, "hole", ("field", "auto", "exemplar")),
    (1024, 3, "0.3", ("nearest", "linear", "biharmonic", "telea")),
    (1024, 3, "0.9", ("nearest", "linear")),
    (2048, 3, "text", ("nearest", "linear", "biharmonic", "telea")),
)
# The same of the sample clip: what is missing, methods.
TOLD_CLIPS = (
    (("--mask", SAMPLES / "mask_text_192x108.png"), ("auto", "field")),
    (("--mask", SAMPLES / "mask_scratches_192x108.png"), ("auto",)),
    (("--mask-box", "-40,10,30,20"), ("auto", "exemplar")),
    (("--missing-ratio", "0.6"), ("auto", "field")),
    (("--missing-ratio", "0.2", "--missing-pattern", "text"), ("field",)),
    (("--missing-ratio", "0.2", "--missing-pattern", "blocks"), ("field",)),
)


def told(place, chosen):
    """What a dry run tells before, over what a run takes, for pictures and clips of several kinds; what is compiled,
    which a second run in the same environment does not need, counts too.
    """
    bare = bare_interpreter()
    for side, channels, holes, methods in TOLD:
        picture = mirrored("astronaut.png", side, side)
        if side == 256:
            picture = np.asarray(Image.open(SAMPLES / "astronaut.png"))
        picture = save(picture if channels == 3 else picture[..., 1], place / "a.png")
        for method in methods:
            words = ["complete-image", picture, "-o", place / "b.png", *hidden(place, side, holes), "--method", method,
                     "--threads", "1", "--overwrite"]  # fmt: skip
            used = run(*words, bare=bare)
            print(f"{side}x{side}x{channels}, {holes}, {method}: {used}; {compared(words, used)}", flush=True)
    for holes, methods in TOLD_CLIPS:
        for method in methods:
            words = ["complete-video", SAMPLES / "bunny.mp4", "-o", place / "b.mp4", *holes, "--method", method,
                     "--threads", "1", "--overwrite"]  # fmt: skip
            used = run(*words, bare=bare)
            print(f"bunny, {' '.join(map(str, holes))}, {method}: {used}; {compared(words, used)}", flush=True)


CASES = {case.__name__: case for case in (told, borders, same, kill, cluster, photograph, raster, clip, small, long)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--methods", nargs="+", default=["field"], help="the first one where a case takes only one")
    parser.add_argument("--side", type=int, default=1024, help="of the pictures of borders, same and kill")
    parser.add_argument("--region", type=int, default=256, help="side of their regions")
    parser.add_argument("--raster", type=int, default=10_980, help="side of the band")
    parser.add_argument("--frames", type=int, default=48, help="of the clip")
    words = "shares of the entries or text, for borders; the first for same, kill and cluster"
    parser.add_argument("--holes", nargs="+", default=["0.6", "0.9", "text"], help=words)
    parser.add_argument("--turns", type=int, default=3, help="of same")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--files", type=int, default=200, help="in the folder of cluster")
    chosen = parser.parse_args()
    for what in chosen.what:
        with tempfile.TemporaryDirectory() as place:
            CASES[what](Path(place), chosen)


if __name__ == "__main__":
    main()
