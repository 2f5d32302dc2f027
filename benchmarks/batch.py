"""Folders of small pictures: several processes beside one, killing and going on, memory.

    python benchmarks/batch.py --what speed kill memory

Pictures are drawn, so that nothing is needed but the package; every run is the installed program.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TDC = str(Path(sys.executable).with_name("tdc"))
SIDE = 48


def draw(folder, count):
    """Write `count` pictures of SIDE x SIDE, sums of waves with a little noise, into `folder`, and a mask for each into
    `folder`-masks.
    """
    from PIL import Image

    masks = folder.with_name(f"{folder.name}-masks")
    for place in (folder, masks):
        place.mkdir(parents=True)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    for i in range(count):
        rng = np.random.default_rng(i)
        picture = np.full((SIDE, SIDE, 3), 128.0)
        for _ in range(6):
            down, right = rng.uniform(-0.6, 0.6, 2)
            picture += rng.uniform(5, 20, 3) * np.sin(down * rows + right * columns + rng.uniform(0, 7))[..., None]
        picture += rng.normal(0, 2, picture.shape)
        Image.fromarray(np.clip(picture.round(), 0, 255).astype(np.uint8)).save(folder / f"{i}.png")
        mask = np.zeros((SIDE, SIDE), dtype=np.uint8)
        for _ in range(4):
            top, left = rng.integers(0, SIDE - 6, 2)
            mask[top : top + 6, left : left + 6] = 255
        Image.fromarray(mask).save(masks / f"{i}.png")
    return masks


def words(folder, masks, out, method, *more):
    return [TDC, "complete-image", str(folder), "-o", str(out), "--mask", str(masks), "--method", method, "-q", *more]


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def finished(folder):
    """Names of what is in `folder`, without temporary files."""
    return {name for name in os.listdir(folder) if not name.endswith(".part")} if folder.exists() else set()


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begin


def speed(place, count, method, repetitions):
    """Best of several runs in turn, with one process and with two, one thread each."""
    masks = draw(place / "in", count)
    best = {}
    for turn in range(repetitions):
        for jobs in ("1", "2"):
            out = place / f"out{jobs}"
            took = seconds(words(place / "in", masks, out, method, "--jobs", jobs, "--threads", "1", "--overwrite"))
            best[jobs] = min(took, best.get(jobs, took))
            print(f"  turn {turn + 1}, --jobs {jobs}: {took:.1f} s (load {os.getloadavg()[0]:.1f})", flush=True)
    same = bytes_of(place / "out1") == bytes_of(place / "out2")
    print(
        f"{count} files of {SIDE}x{SIDE}, {method}: {best['1']:.1f} s and {best['2']:.1f} s, "
        f"{best['1'] / best['2']:.2f} times as fast; the same bytes: {same}"
    )


def kill(place, count, method, kills):
    """Kill a run at random moments, go on, and compare with a run that was left alone."""
    masks = draw(place / "in", count)
    whole = seconds(words(place / "in", masks, place / "whole", method, "--jobs", "2", "--threads", "1"))
    expected, moments = bytes_of(place / "whole"), random.Random(0)
    command = words(
        place / "in", masks, place / "out", method, "--jobs", "2", "--threads", "1", "--report", str(place / "r")
    )
    for i in range(kills):
        before = finished(place / "out")
        running = subprocess.Popen([*command, "--skip-existing"])
        while (
            i % 4 and running.poll() is None and finished(place / "out") <= before
        ):  # every fourth may hit the start as well
            time.sleep(0.002)
        time.sleep(moments.uniform(0, whole / kills))
        running.kill()
        running.wait()
        made = finished(place / "out")
        wrong = [name for name in made if (place / "out" / name).read_bytes() != expected[name]]
        print(f"  kill {i + 1}: {len(made)} files, {len(wrong)} wrong", flush=True)
    done = json.loads(subprocess.run([*command, "--skip-existing", "--json"], check=True, capture_output=True).stdout)
    print(
        f"killed {kills} times, gone on with: {done['counts']}; the same bytes: {bytes_of(place / 'out') == expected}"
    )


def memory(place, counts, method):
    """Peak memory of the program for few and for many files."""
    for count in counts:
        masks = draw(place / f"in{count}", count)
        command = words(place / f"in{count}", masks, place / f"out{count}", method, "--threads", "1")
        pid = subprocess.Popen(command).pid
        peak = os.wait4(pid, 0)[2].ru_maxrss
        print(f"{count} files: {peak / 1024:.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", nargs="+", choices=("speed", "kill", "memory"), default=("speed", "kill", "memory"))
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--method", default="field")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    chosen = parser.parse_args()
    for what in chosen.what:
        with tempfile.TemporaryDirectory() as place:
            if what == "speed":
                speed(Path(place), chosen.files, chosen.method, chosen.repetitions)
            elif what == "kill":
                kill(Path(place), chosen.files, chosen.method, chosen.kills)
            else:
                memory(Path(place), (chosen.files // 10, chosen.files), chosen.method)


if __name__ == "__main__":
    main()
