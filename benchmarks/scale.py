"""Pictures and clips larger than what is held at a time: memory, time, borders of regions, killing and going on.

    python benchmarks/scale.py --what borders same kill photograph raster clip

Material is made by mirroring and shifting what is in sample_data; every run is the program itself on one thread.
Memory is the peak of the largest process, and of all of them together, above that of a bare interpreter.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SAMPLES = Path(__file__).parents[1] / "sample_data"
NEAR = 3  # pixels from a border of regions


@dataclass(frozen=True)
class Used:
    """What a run took: seconds of clock and processors, bytes of memory of the largest process and of all together."""

    clock: float
    processor: float
    largest: int
    together: int

    def __str__(self):
        memory = f"{self.largest / 2**20:.0f} MiB in the largest process, {self.together / 2**20:.0f} MiB in all"
        return f"{self.clock:.0f} s, {self.processor:.0f} s of processors, {memory}"


def run(*words, bare=0):
    """`Used` by the program, which must come to its end."""
    return watched([sys.executable, "-m", "tdc_cli", *map(str, words), "--no-progress", "-q"], bare)


def watched(command, bare=0):
    """`Used` by a command and what it starts; `bare` bytes are taken off for each process."""
    begin, before = time.perf_counter(), os.times()
    process = subprocess.Popen(command, start_new_session=True)
    largest = together = 0
    while process.poll() is None:
        sizes = [size - bare for size in _sizes(process.pid)]
        largest, together = max([largest, *sizes]), max(together, sum(sizes))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"exit code {process.returncode}: {' '.join(command)}")
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Used(time.perf_counter() - begin, spent, largest, together)


def _sizes(session):
    """Bytes of memory of every process of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                found.append(int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        except (OSError, IndexError):  # has ended
            continue
    return found


def bare_interpreter():
    """Bytes of memory of an interpreter that does nothing."""
    return watched([sys.executable, "-c", "import time; time.sleep(0.5)"]).largest


def mirrored(name, height, width):
    """(height, width, 3) uint8 of a sample, mirrored and shifted until it is large enough."""
    from PIL import Image

    picture = np.asarray(Image.open(SAMPLES / name).convert("RGB"))
    rows = np.arange(height) + picture.shape[0] // 3
    columns = np.arange(width) + picture.shape[1] // 5
    places = [np.abs((index + n) % (2 * n) - n) % n for index, n in zip((rows, columns), picture.shape)]
    return np.ascontiguousarray(picture[places[0][:, None], places[1]])


def save(values, path):
    from PIL import Image

    Image.fromarray(values).save(path)
    return path


def letters(height, width):
    """Mask of text that fills a picture, 255 where it is."""
    from PIL import Image

    text = np.asarray(Image.open(SAMPLES / "mask_text.png").convert("L"))
    return np.tile(text, (-(-height // text.shape[0]), -(-width // text.shape[1])))[:height, :width]


def planned(*words):
    """What a dry run tells."""
    command = [sys.executable, "-m", "tdc_cli", *map(str, words), "--dry-run", "--json", "-q"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compared(words, used):
    """Estimate of a dry run beside what a run took, in words."""
    told = planned(*words)["estimate"]
    return (f"told before: {told['seconds']:.0f} s ({told['seconds'] / max(used.processor, 0.1):.2f} of it), "
            f"{told['bytes'] / 2**20:.0f} MiB ({told['bytes'] / used.together:.2f} of it)")  # fmt: skip


def borders(place, chosen):
    """Error near the borders of regions over that elsewhere, and what dividing costs, for several kinds of holes."""
    side = chosen.side
    truth = mirrored("astronaut.png", side, side)
    picture, mask = save(truth, place / "a.png"), save(letters(side, side), place / "text.png")
    holes = {"60 %": ["--missing-ratio", "0.6"], "90 %": ["--missing-ratio", "0.9"], "text": ["--mask", mask]}
    for method in chosen.methods:
        for name, said in holes.items():
            words = ["complete-image", picture, *said, "--method", method, "--threads", "1", "--overwrite"]
            divided = [*words, "-o", place / "divided.png", "--region", chosen.region]
            regions = planned(*divided)["regions"]
            run(*divided)
            run(*words, "-o", place / "whole.png", "--region", "whole", "--save-incomplete", place / "holes.png")
            results = [_read(place / f"{kind}.png").astype(float) - truth for kind in ("divided", "whole")]
            near, missing = _near(regions, truth.shape[:2]), _read(place / "holes_mask.png") > 0
            ratios = [
                np.sqrt((error[missing & near] ** 2).mean() / (error[missing & ~near] ** 2).mean()) for error in results
            ]
            lost = 10 * np.log10((results[0] ** 2).mean() / (results[1] ** 2).mean())
            print(
                f"{method}, {name}, {len(regions)} regions: error near borders over elsewhere {ratios[0]:.4f}, "
                f"undivided at the same places {ratios[1]:.4f}, quotient {ratios[0] / ratios[1]:.4f}; {lost:+.3f} dB "
                "lost",
                flush=True,
            )


def _read(path):
    from PIL import Image

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


def same(place, chosen):
    """One picture by one process and by two: the same bytes, and how much faster."""
    picture = save(mirrored("astronaut.png", chosen.side, chosen.side), place / "a.png")
    words = [
        "complete-image",
        picture,
        "--missing-ratio",
        "0.6",
        "--method",
        chosen.methods[0],
        "--region",
        chosen.region,
        "--threads",
        "1",
    ]
    used = {jobs: run(*words, "-o", place / f"{jobs}.png", "--jobs", jobs) for jobs in (1, 2)}
    alike = (place / "1.png").read_bytes() == (place / "2.png").read_bytes()
    print(f"{chosen.side}x{chosen.side}, {chosen.methods[0]}: {used[1].clock:.0f} s and {used[2].clock:.0f} s, "
          f"{used[1].clock / used[2].clock:.2f} times as fast; the same bytes: {alike}")  # fmt: skip


def kill(place, chosen):
    """Kill a run at ten moments, go on each time, and compare with a run that was left alone."""
    picture = save(mirrored("astronaut.png", chosen.side, chosen.side), place / "a.png")
    words = [
        "complete-image",
        picture,
        "--missing-ratio",
        "0.6",
        "--method",
        chosen.methods[0],
        "--region",
        chosen.region,
        "--threads",
        "1",
    ]
    whole = run(*words, "-o", place / "whole.png", "--jobs", 2).clock
    moments, work = random.Random(0), place / ".b.png.tdc-work"
    command = [
        sys.executable,
        "-m",
        "tdc_cli",
        *map(str, words),
        "-o",
        str(place / "b.png"),
        "--jobs",
        "2",
        "--no-progress",
        "-q",
        "--resume",
    ]
    for i in range(chosen.kills):
        process = subprocess.Popen(command, start_new_session=True)
        before = len(list(work.glob("*.npz")))
        while (
            i % 3 and process.poll() is None and len(list(work.glob("*.npz"))) <= before
        ):  # every third may hit the start as well
            time.sleep(0.005)
        time.sleep(moments.uniform(0, whole / chosen.kills))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"  kill {i + 1}: {len(list(work.glob('*.npz')))} regions are kept", flush=True)
    finished = (place / "b.png").exists() or subprocess.run(command, check=True).returncode == 0
    alike = finished and (place / "b.png").read_bytes() == (place / "whole.png").read_bytes()
    left = sorted(set(os.listdir(place)) - {"a.png", "b.png", "whole.png"})
    print(f"killed {chosen.kills} times: the same bytes: {alike}; left behind: {left}")


def photograph(place, chosen):
    """4000x3000, 60 % of the entries missing, and 512x512 for comparison."""
    bare, costs = bare_interpreter(), {}
    for height, width in ((512, 512), (3000, 4000)):
        picture = save(mirrored("astronaut.png", height, width), place / f"{width}.png")
        words = [
            "complete-image",
            picture,
            "-o",
            place / f"{width}-out.png",
            "--missing-ratio",
            "0.6",
            "--memory",
            "2G",
            "--threads",
            "1",
            "--method",
            chosen.methods[0],
        ]
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
        words = [
            "complete-image",
            place / "a.tif",
            "-o",
            place / f"{method}.tif",
            "--mask",
            place / "m.png",
            "--method",
            method,
            "--memory",
            "2G",
            "--threads",
            "1",
        ]
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
    words = [
        "complete-video",
        place / "in",
        "-o",
        place / "out",
        "--mask-box",
        "-260,40,220,90",
        "--method",
        chosen.methods[0],
        "--memory",
        "2G",
        "--threads",
        "1",
    ]
    used = run(*words, bare=bare_interpreter())
    print(f"1920x1080, {frames} frames, {chosen.methods[0]}: {used}; {compared([*words, '--overwrite'], used)}")


CASES = {case.__name__: case for case in (borders, same, kill, photograph, raster, clip)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--methods", nargs="+", default=["field"], help="the first one where a case takes only one")
    parser.add_argument("--side", type=int, default=1024, help="of the pictures of borders, same and kill")
    parser.add_argument("--region", type=int, default=256, help="side of their regions")
    parser.add_argument("--raster", type=int, default=10_980, help="side of the band")
    parser.add_argument("--frames", type=int, default=48, help="of the clip")
    parser.add_argument("--kills", type=int, default=10)
    chosen = parser.parse_args()
    for what in chosen.what:
        with tempfile.TemporaryDirectory() as place:
            CASES[what](Path(place), chosen)


if __name__ == "__main__":
    main()
