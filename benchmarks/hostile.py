"""Hostile use at random: odd names, links, pipes, damaged files, odd numbers, results that exist, leftovers.

    .venv/bin/python benchmarks/hostile.py [--runs N] [--seed N]

Each run is the command line in this process, in a folder of its own, with a method that takes no time. It must end with
one of the exit codes that are documented, in time, without a traceback or an unexpected error; give no orders to a
terminal; leave every file as it was that no option says may be replaced; and leave nothing of its own but results and
what is kept to go on with.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from PIL import Image

from tdc_cli.cli.main import main as tdc

SECONDS = 30  # of a run
NAMES = (
    "a.png",
    "b c.png",
    "=1+1.png",
    "-x.png",
    "\x1b[31mr.png",
    "n\nl.png",
    "größe.png",
    "\udcff.png",
    "'q\".png",
    "%s.png",
    "..png",
    "a.PNG",
    "x" * 200 + ".png",
    "a.jpg",
    "a.tif",
    "a.npy",
    "a.webp",
    "@f.bmp",
    "$HOME.png",
    "*.png",
    "a.png.json",
    "~.png",
)
NUMBERS = (
    "0",
    "-1",
    "0.3",
    "0.99",
    "1",
    "1e400",
    "nan",
    "inf",
    "-0",
    "0x10",
    "1_0",
    "٣",
    "",
    " ",
    "0.3x",
    "99999999999999999999",
)
KINDS = (
    "picture",
    "grey",
    "alpha",
    "array",
    "nothing",
    "empty",
    "cut",
    "text",
    "folder",
    "link",
    "dangling",
    "pipe",
    "loop",
    "twice",
)
OPTIONS = {
    "--missing-ratio": NUMBERS,
    "--mask-threshold": NUMBERS,
    "--mask-dilate": NUMBERS,
    "--seed": NUMBERS,
    "--add-noise": NUMBERS,
    "--mask-tolerance": NUMBERS,
    "--missing-value": NUMBERS,
    "--threads": ("1", "0", "x"),
    "--mask-color": ("#f0f", "red", "", "#12"),
    "--mask-box": ("0,0,2,2", "-1,-1,1,1", "9,9,9,9", "1,2,3", "5%,5%,50%,50%", "a,b,c,d"),
    "--missing-pattern": ("rows", "entries", "none"),
    "--param": ("x=1", "x", "=", ""),
    "--quality": NUMBERS,
    "--format": ("png", "jpg", "gif", ""),
}
FLAGS = (
    "--overwrite",
    "--skip-existing",
    "--resume",
    "--dry-run",
    "--json",
    "-q",
    "-v",
    "--invert-mask",
    "--recursive",
    "--fail-fast",
)
RESULTS = ("--report", "--html", "--panel", "--uncertainty", "--save-incomplete", "--side-by-side")
READ = ("--mask", "--reference", "--source")


def put(path, kind, rng, known):
    """Make something of a kind at `path`."""
    values = np.random.default_rng(rng.randrange(100)).integers(1, 250, (9, 11, 3), dtype=np.uint8)
    if kind in ("picture", "grey", "alpha", "cut", "twice"):
        mode = {"grey": "L", "alpha": "RGBA"}.get(kind, "RGB")
        Image.fromarray(values).convert(mode).save(path, "PNG")
        if kind == "cut":
            path.write_bytes(path.read_bytes()[: rng.randrange(90)])
    elif kind == "array":
        with open(path, "wb") as file:
            np.save(file, values[..., 0].astype(rng.choice([np.float32, np.float64, np.int16, np.uint8, bool])))
    elif kind in ("empty", "text"):
        path.write_bytes(b"" if kind == "empty" else b"[complete-image]\nseed = 1\n")
    elif kind == "folder":
        path.mkdir()
        for k in range(rng.randrange(4)):
            Image.fromarray(np.roll(values, k, axis=0)).save(path / f"{k}.png", "PNG")
        if rng.random() < 0.3:
            (
                path
                / rng.choice([".tdc-0123456789ab.part", "mine.txt", ".tdc-0123456789ab.journal", ".tdc-contents.json"])
            ).write_bytes(b"{}")
    elif kind in ("link", "dangling", "loop"):
        target = rng.choice(known) if kind == "link" and known else path.name if kind == "loop" else "nowhere"
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)


def scene(rng):
    """Files in the current folder; their names."""
    names = rng.sample(NAMES, rng.randrange(2, 6)) + ["a.png", "in", "out"]
    known = []
    for name in dict.fromkeys(names):
        # Frames of a folder, where there are any, are what most commands need.
        kind = (
            "picture"
            if name == "a.png"
            else "folder"
            if name == "in"
            else rng.choice(("folder", "nothing", "nothing"))
            if name == "out"
            else rng.choice(KINDS)
        )
        put(Path(name), kind, rng, known)
        known.append(name)
    return known


def words(rng, known):
    """A command line, and the names of its results."""
    calm = rng.random() < 0.6  # few oddities at a time, so that most of the work is done
    command = rng.choice(["complete-image"] * 4 + ["complete-video"] * 3 + ["complete-tensor"])

    def some():
        return rng.choice([*known, "new.png", "out", "in", "new", "none/x.png", rng.choice(NAMES)])

    usual = {"complete-image": "a.png", "complete-video": "in", "complete-tensor": rng.choice(known)}[command]
    inputs = [
        usual if calm else rng.choice(["a.png", "in", some()])
        for _ in range(1 if command != "complete-image" or rng.random() < 0.8 else 2)
    ]
    output = rng.choice(["new.png", "out"]) if calm else some()
    chosen, results = [command], [output]
    if rng.random() < (0.02 if calm else 0.1):
        chosen = ["--config", some(), command]
    if calm or rng.random() < 0.7:
        chosen += ["--missing-ratio", "0.3"]
    for option in rng.sample(sorted(OPTIONS), rng.random() < 0.2 if calm else rng.randrange(3)):
        chosen += [option, rng.choice(OPTIONS[option])]
    own = {"complete-image": "--skip-existing", "complete-video": "--resume", "complete-tensor": "-v"}[command]
    chosen += rng.sample(
        [own, "--overwrite", "--overwrite", "--json", "-q", "-v", "--dry-run"] if calm else FLAGS, rng.randrange(3)
    )
    for option in rng.sample(RESULTS, rng.choice([0, 0, 0, 1] if calm else [0, 0, 1, 2])):
        results.append(some())
        chosen += [option, results[-1]]
    for option in rng.sample(READ, 0 if calm else rng.choice([0, 0, 1])):
        chosen += [option, some()]
    chosen += ["-o", output, "--method", rng.choice(["nearest", "nearest", "linear"]), "--", *inputs]
    return chosen, results


def files():
    """Path to what is there, of every file, link and pipe below the current folder; links to folders are not entered.
    """
    found = {}
    for folder, inner, names in os.walk("."):
        for name in [*names, *(name for name in inner if os.path.islink(os.path.join(folder, name)))]:
            path = os.path.join(folder, name)
            found[path] = (
                f"link to {os.readlink(path)}"
                if os.path.islink(path)
                else Path(path).read_bytes()
                if os.path.isfile(path)
                else "pipe"
            )
    return found


def faults(result, before, after, chosen, results):
    """What is wrong with a run, in words."""
    found = []
    if result.exit_code not in (0, 1, 2, 3):
        found.append(f"exit code {result.exit_code}")
    told = result.stdout + result.stderr
    if (
        "Traceback" in told
        or "unexpected" in told
        or (result.exception and not isinstance(result.exception, SystemExit))
    ):
        found.append(f"unexpected: {result.exception!r}")
    if any(not c.isprintable() and c not in "\n\N{NO-BREAK SPACE}" for c in told if not "\udc80" <= c <= "\udcff"):
        found.append("orders to a terminal")
    if result.exit_code == 2 and result.stderr.count("\n") < 1:
        found.append("an error without words")
    replaced = {os.path.realpath(name) for name in results} if "--overwrite" in chosen else set()
    for path, content in before.items():
        of_result = any(
            os.path.realpath(path) == name or os.path.realpath(path).startswith(name + os.sep) for name in replaced
        )
        of_a_killed_run = Path(path).name.startswith(".tdc-")
        if after.get(path) != content and not (of_result or of_a_killed_run):
            found.append(f"lost: {path}")
    new = [
        path
        for path in after
        if path not in before and Path(path).name.startswith(".tdc-") and not path.endswith(".tdc-contents.json")
    ]
    if new:
        found.append(f"left: {new}")
    return found


def one(seed):
    """Words of a run and what is wrong with it."""
    rng = random.Random(seed)
    known = scene(rng)
    chosen, results = words(rng, known)
    before = files()
    signal.alarm(SECONDS)
    result = CliRunner().invoke(tdc, chosen)
    signal.alarm(0)
    return chosen, faults(result, before, files(), chosen, results), result


def late(*_):
    """End a run that does not end by itself."""
    raise TimeoutError("took too long")


def main():
    """Make the runs, tell what is wrong, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    asked = parser.parse_args()
    signal.signal(signal.SIGALRM, late)
    start, wrong, codes, here = time.process_time(), 0, {}, os.getcwd()
    for seed in range(asked.seed, asked.seed + asked.runs):
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        try:
            chosen, found, result = one(seed)
        finally:
            os.chdir(here)
            shutil.rmtree(folder, ignore_errors=True)
        codes[result.exit_code] = codes.get(result.exit_code, 0) + 1
        if found:
            wrong += 1
            print(
                f"seed {seed}: {json.dumps(chosen)}\n  {'; '.join(found)}\n  {json.dumps(result.stderr[-500:])}",
                flush=True,
            )
    told = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    seconds = time.process_time() - start
    print(f"{asked.runs} runs, {wrong} of them wrong; exit codes: {told}; {seconds:.0f} s of processor time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
