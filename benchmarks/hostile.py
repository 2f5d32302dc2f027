"""Hostile use at random: odd names, links, pipes, damaged files, odd numbers, results that exist, leftovers, kills,
signals, limits, closed streams, folders that are read-only, modules that lie about.

    .venv/bin/python benchmarks/hostile.py [--runs N] [--seed N] [--program N]

Everything is loaded once; each run is the command line in a fork of this process, in a folder of its own, with little
to compute; every twentieth is the program itself, started anew. A run must end with one of the exit codes that are
documented, in time, without a traceback or an unexpected error; give no orders to a terminal; execute nothing that
lies about; leave every file as it was that no option says may be replaced; leave nothing of its own but results and
what is kept to go on with; and write no table that a spreadsheet would execute, no page with tags of a name, and no
JSON that cannot be read. A run that was killed is followed by one that begins anew, or by one that goes on, whose
output must be that of a run left alone; both clear up.
"""

import argparse
import collections
import contextlib
import csv
import ctypes
import importlib
import io
import json
import os
import pkgutil
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# A process with threads must not fork.
os.environ |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import click
import imagecodecs
import numpy as np
import tifffile
from PIL import Image

import tdc_cli
from tdc_cli.cli.main import COMMANDS
from tdc_cli.cli.main import main as tdc

ROOT = Path(tdc_cli.__file__).parent.parent
SECONDS, WAIT = 30, 300  # of a processor, and of the clock, for a run
EXIT_CODES = {0, 1, 2, 3, 130, 141, 143}
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
    "a.gif",
    "a.npz",
    "a.mat",
    "a.mkv",
    "a.csv",
    "@f.bmp",
    "$HOME.png",
    "*.png",
    "a.png.json",
    "~.png",
    "<b id=x>.png",
    "a&b;c,d.png",
)
NUMBERS = (
    "0",
    "-1",
    "0.3",
    "0.99",
    "1",
    "2",
    "32",
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
    "deep",
    "pages",
    "moving",
    "array",
    "archive",
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
    "scan",
    "film",
)
LIKELY = ("0", "1", "2", "0.3", "0.5")
# Names that suit a result, and others that suit nothing.
SUITED = {
    "--report": "r.json",
    "--html": "r.html",
    "--panel": "p.png",
    "--uncertainty": "u.npy",
    "--save-incomplete": "i.png",
    "--side-by-side": "s",
}
# Values of options that are no numbers and no paths.
WORDS = {
    "--mask-color": ("#f0f", "red", "", "#12"),
    "--mask-box": ("0,0,2,2", "-1,-1,1,1", "9,9,9,9", "1,2,3", "5%,5%,50%,50%", "a,b,c,d"),
    "--missing-pattern": ("rows", "entries", "none", "pixels"),
    "--param": ("x=1", "x", "=", "", "iterations=2"),
    "--format": ("png", "jpg", "gif", ""),
    "--codec": ("ffv1", "h264", "x", ""),
    "--mask-frames": ("0", "1:2", "2:1", "1-2", ""),
    "--frames": ("0:1", "1:", "-1:", "0:0", "9:", "1-2", ""),
    "--frame-rate": ("25", "30000/1001", "0", "1/0", "x"),
    "--memory": ("1MB", "200MB", "0", "x", "", "1e9"),
    "--cluster": ("x", "", "localhost", "tcp://", "tcp://127.0.0.1:x", "tcp://[::1", "ftp://127.0.0.1:1"),
    "--region": ("32", "whole", "0", "x", ""),
    "--chunk": ("1", "2", "0", "x", "whole"),
    "--mask-suffix": ("_mask", "", "/", "x"),
    "--ordered-modes": ("0", "0,1", "9", "x"),
    "--pages": ("all", "x"),
    "--residual": ("gaussian", "x"),
}
KEPT = {"--mask": ("alpha", "ir", "-"), "--keep": ("nodata",)}  # words that stand for no file
# What each folder holds, and of what kind.
OWN = {"a.png": "picture", "m.png": "grey", "scan.tif": "scan", "t.npy": "array", "in": "folder"}
RATIO, MASK, PAGES, IR = ["--missing-ratio", "0.3"], ["--mask", "m.png"], ["--pages", "all"], ["--mask", "ir"]
# Work that can be done: input, options, outputs.
USUAL = {
    "complete-image": (
        ("a.png", RATIO, ("new.png", "new.tif", "new.jp2", "new.npy", "out/new.png")),
        ("a.png", MASK, ("new.png", "new.tif", "-")),
        ("a.png", ["--resume", "--region", "32", *RATIO], ("new.png",)),
        ("in", RATIO, ("out", "new")),
        ("in", MASK, ("out", "new")),
        ("scan.tif", IR, ("new.tif", "new.png")),
        ("scan.tif", [*PAGES, *RATIO], ("new.tif",)),
    ),
    "complete-video": (
        ("in", RATIO, ("out", "new", "new.tif", "new.png", "new.gif", "new.mkv", "new.npy")),
        ("in", MASK, ("out", "new", "new.tif")),
        ("in", ["--chunk", "1", *RATIO], ("out", "new.tif", "new.npy")),
        ("in", ["--memory", "200MB", "--resume", *MASK], ("out", "new.tif")),
    ),
    "complete-tensor": (("t.npy", RATIO, ("new.npy", "new.npz", "new.mat", "new.tif")),),
}
METHODS = ("nearest",) * 8 + ("linear",) * 3 + ("biharmonic", "auto", "exemplar", "field", "halrtc", "falrtc", "x")
SLOW = {"--burn-in", "--samples", "--chains", "--rank", "--components", "--jobs", "--threads", "--method"}
RESULTS = {
    "--report",
    "--html",
    "--panel",
    "--uncertainty",
    "--save-incomplete",
    "--side-by-side",
    "--output",
    "--plot",
}
PICTURES = (".png", ".tif", ".jp2", ".exr", ".npy")  # whose bytes depend on the input alone
# Not tdc_cli itself: under ``python -m`` that would be the program.
TRAPS = ("numpy", "click", "PIL", "scipy", "numba", "av", "tifffile", "sitecustomize", "json", "secrets", "signal")


def put(path, kind, rng, known):
    """Make something of a kind at `path`."""
    values = np.random.default_rng(rng.randrange(100)).integers(1, 250, (9, 11, 3), dtype=np.uint8)
    if kind in ("picture", "grey", "alpha", "cut", "twice"):
        mode = {"grey": "L", "alpha": "RGBA"}.get(kind, "RGB")
        Image.fromarray(values).convert(mode).save(path, "PNG")
        if kind == "cut":
            path.write_bytes(path.read_bytes()[: rng.randrange(90)])
    elif kind == "deep":
        Image.fromarray(values[..., 0].astype(np.uint16) * 257).save(path, "PNG")
    elif kind in ("pages", "moving"):
        first, *others = (Image.fromarray(np.roll(values, k, axis=0)) for k in range(3))
        first.save(path, "TIFF" if kind == "pages" else rng.choice(["GIF", "WEBP", "PNG"]), save_all=True,
                   append_images=others)  # fmt: skip
    elif kind == "array":
        with open(path, "wb") as file:
            np.save(file, values[..., 0].astype(rng.choice([np.float32, np.float64, np.int16, np.uint8, bool])))
    elif kind == "archive":
        with open(path, "wb") as file:
            np.savez(file, x=values / 2, allow_pickle=values[..., 0])
    elif kind in ("empty", "text"):
        path.write_bytes(b"" if kind == "empty" else b"[complete-image]\nseed = 1\n")
    elif kind == "scan":
        infrared = np.where(values[..., 0] > 230, 40, 200).astype(np.uint8)
        with tifffile.TiffWriter(path) as file:
            for page in rng.choice([(values, infrared), (infrared, values), (values, infrared[:4]), (values, values)]):
                file.write(page, metadata=None)
    elif kind == "film":
        _film(path, values, rng.choice([".jp2", ".exr"]))
    elif kind == "folder":
        path.mkdir()
        suffix = rng.choice([".png"] * 4 + [".jp2", ".exr"])
        odd = rng.random() < 0.3
        for k in range(rng.choice([0, 1, 2, 2, 3, 3])):
            frame, name = np.roll(values, k, axis=0), f"{rng.choice(NAMES)[:200] if odd else ''}{k}{suffix}"
            if suffix == ".png":
                Image.fromarray(frame).save(path / name, "PNG")
            else:
                _film(path / name, frame, suffix)
        if rng.random() < 0.3:
            name = rng.choice([".tdc-0123456789ab.part", "mine.txt", ".tdc-0123456789ab.journal", ".tdc-contents.json"])
            (path / name).write_bytes(b"{}")
    elif kind in ("link", "dangling", "loop"):
        target = rng.choice(known) if kind == "link" and known else path.name if kind == "loop" else "nowhere"
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)


def _film(path, values, suffix):
    """Write a frame as JPEG 2000 or OpenEXR."""
    if suffix == ".jp2":
        path.write_bytes(imagecodecs.jpeg2k_encode(values, reversible=True, codecformat="jp2"))
    else:
        import OpenEXR

        content = io.BytesIO()
        OpenEXR.File({"type": OpenEXR.scanlineimage}, {"RGB": (values / 255).astype(np.float32)}).write(content)
        path.write_bytes(content.getvalue())


def scene(rng):
    """Files in the current folder; their names."""
    names = rng.sample(NAMES, rng.randrange(2, 6)) + [*OWN, "out"]
    known = []
    for name in dict.fromkeys(names):
        # Frames of a folder, where there are any, are what most commands need.
        kind = (
            OWN[name]
            if name in OWN
            else rng.choice(("folder", "nothing", "nothing", "link"))
            if name == "out"
            else rng.choice(KINDS)
        )
        put(Path(name), kind, rng, known)
        known.append(name)
    if rng.random() < 0.2:
        for name in rng.sample(TRAPS, 3):
            Path(f"{name}.py").write_text("open('EXECUTED', 'w')\n")
        Path("matplotlibrc").write_text("backend: nosuch\nfigure.dpi: x\n")
    return known


def words(rng, known):
    """A command line, and the names of its results."""
    command = rng.choices([*COMMANDS], [40, 25, 15, 3, 2, 1, 1, 1])[0]
    calm = command in USUAL and rng.random() < 0.65  # few oddities at a time, so that most of the work is done

    def some():
        return rng.choice([*known, "new.png", "out", "in", "new", "none/x.png", "new.mkv", rng.choice(NAMES)])

    options = {each.opts[-1]: each for each in tdc.get_command(None, command).params if isinstance(each, click.Option)}
    chosen, results = [command], []
    if rng.random() < (0.02 if calm else 0.1):
        chosen = ["--config", some(), command]
    open_to = sorted(options.keys() - SLOW)
    used = rng.sample(open_to, min(len(open_to), rng.choice([0, 0, 0, 1]) if calm else rng.randrange(7)))
    method = rng.choice(METHODS)
    if calm:
        suited = [name for name in SUITED if name in options and name not in used and rng.random() < 0.2]
        used += suited
        method = "field" if "--uncertainty" in suited else rng.choice([*{*METHODS} - {"x"}, "nearest", "linear"])
    for name in used:
        option = options[name]
        if option.is_flag:
            chosen += [name]
        elif name in WORDS:
            chosen += [name, rng.choice(WORDS[name])]
        elif name in RESULTS and name != "--output":
            results.append(SUITED[name] if calm and name in SUITED else some())
            chosen += [name, results[-1]]
        elif isinstance(option.type, click.Path):
            chosen += [name, rng.choice(KEPT[name]) if name in KEPT and rng.random() < 0.3 else some()]
        else:
            chosen += [name, rng.choice(LIKELY if calm and rng.random() < 0.8 else NUMBERS)]
    if calm:
        usual, more, outputs = rng.choice(USUAL[command])
        inputs, output = [usual], rng.choice(outputs)
        chosen += more + rng.choice([[], [], ["--overwrite"], ["--overwrite"], ["--json"], ["-q"], ["-v"]])
    elif command in USUAL:
        several = command == "complete-image" and rng.random() < 0.2
        inputs, output = [rng.choice(["a.png", "in", "-", some()]) for _ in range(2 if several else 1)], some()
        own = {"complete-image": "--skip-existing", "complete-video": "--resume", "complete-tensor": "-v"}[command]
        chosen += rng.sample([own, "--overwrite", "--overwrite", "--json", "-q", "-v"], rng.randrange(3))
        if rng.random() < 0.7 and "--missing-ratio" not in used:
            chosen += RATIO
    if command in USUAL:
        if "--jobs" in options and rng.random() < 0.01:
            chosen += ["--jobs", "2"]
        results.append(output)
        chosen += ["-o", output, "--method", method, "--threads", "1", "--", *inputs]
    elif command == "synth":
        chosen += ["--shape", rng.choice(["3,4,5", "0,1", "x"]), "--methods", rng.choice(["halrtc", "x", ""])]
    elif command == "bench":
        chosen += [rng.choice(["--list", "nosuch", ""])]
    elif command == "methods":
        chosen += [rng.choice(["datc", "x", ""])] if rng.random() < 0.5 else []
    return chosen, results


def files():
    """Path to what is there, of every file, link and pipe below the current folder; links to folders are not
    entered.
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


class Outcome:
    """What came of a run: `code` (negative: the signal that ended it), `out` and `err` as text."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


def disturbance(rng):
    """What surrounds a run: its name, and a function that is called in the process before the program, or (signal,
    seconds) that reaches it.
    """
    kind = rng.choices(
        ["nothing", "SIGKILL", "SIGTERM", "SIGINT", "size of files", "open files", "memory", "streams", "read-only"],
        [55, 12, 8, 8, 4, 3, 3, 3, 4],
    )[0]
    if kind.startswith("SIG"):
        return kind, (getattr(signal, kind), 10 ** rng.uniform(-3, -0.3))
    most = {"size of files": rng.randrange(2000, 20000), "open files": rng.randrange(5, 30)}.get(kind, 0)
    more, closed, which = rng.randrange(2**22, 2**28), rng.choice([0, 1, 2]), rng.choice([".", "in", "out"])

    def act():
        if kind == "size of files":
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        elif kind == "open files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        elif kind == "memory":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            size = pages * resource.getpagesize() + more
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        elif kind == "read-only":
            if os.path.isdir(which):
                os.chmod(which, 0o555)
            _bound_by_permissions()
        elif kind == "streams" and closed < 2:
            os.close(closed)
            setattr(sys, ("stdin", "stdout")[closed], None)
        elif kind == "streams":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)

    return kind, act


def _bound_by_permissions():
    """Give away what lets the superuser write everywhere; others have it not."""
    library, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if library.capget(header, sets):
        raise OSError("the rights of this process are not known")
    sets[0] &= ~(1 << 1)  # CAP_DAC_OVERRIDE, of those that count
    if library.capset(header, sets):
        raise OSError("the rights of this process cannot be given away")


def called(chosen, disturb, beside, program):
    """Outcome of a command line, with its streams in files in the folder `beside`."""
    act, sent = (disturb, None) if callable(disturb) else (lambda: None, disturb)
    for name in ("out", "err"):
        (beside / name).write_bytes(b"")
    started = _program(chosen, beside, program) if program else _fork(chosen, act, beside)
    begin, code, forced = time.monotonic(), None, False
    while code is None:
        ended, status = os.waitpid(started, os.WNOHANG)
        now = time.monotonic() - begin
        if ended:
            code = os.waitstatus_to_exitcode(status)
        elif now > WAIT or (sent and now >= sent[1]):
            os.kill(started, signal.SIGKILL if now > WAIT else sent[0])
            forced, sent = now > WAIT, None
        else:
            time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started, signal.SIGKILL)  # workers, where it was killed
    out, err = ((beside / name).read_text(errors="surrogateescape") for name in ("out", "err"))
    return Outcome("hangs" if forced else code, out, err)


def _program(chosen, beside, number):
    """Start the program itself; its process id."""
    how = (["-m", "tdc_cli"], ["-c", "from tdc_cli.__main__ import main; main()"])[number % 2]
    alone = ["-P"] if number % 2 else []  # as an installed script, which does not look in the current folder
    with open(beside / "out", "wb") as out, open(beside / "err", "wb") as err:
        return subprocess.Popen(
            [sys.executable, *alone, *how, *chosen], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
        ).pid  # fmt: skip


def _fork(chosen, act, beside):
    """Run the command line in a fork; its process id."""
    early = {signal.SIGINT, signal.SIGTERM}  # these wait until the program begins
    signal.pthread_sigmask(signal.SIG_BLOCK, early)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, early)
        return child
    code = 99
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        streams = [os.open(os.devnull, os.O_RDONLY)]
        streams += [os.open(beside / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("out", "err")]
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as long as the process lives, as the two others
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
        sys.argv = ["tdc", *chosen]
        act()
        code = _ended()
    finally:
        os._exit(code)


def _ended():
    """Exit code of the program in this process."""
    from tdc_cli.__main__ import main

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    except KeyboardInterrupt:
        return 130
    try:
        main()
    except SystemExit as end:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        return end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        return 98
    return 0


def faults(outcome, kind, before, after, chosen, results):
    """What is wrong with a run, in words."""
    found, killed = [], kind == "SIGKILL" and outcome.code == -signal.SIGKILL
    # Before the program could listen, while Python itself began.
    early = kind in ("SIGTERM", "SIGINT") and outcome.code == -getattr(signal, kind)
    early |= kind == "SIGINT" and outcome.err.endswith("KeyboardInterrupt\n") and "tdc_cli" not in outcome.err
    if outcome.code not in EXIT_CODES and not killed and not early:
        found.append(f"exit code {outcome.code}")
    if outcome.code in (130, 143) and not kind.startswith("SIG"):
        found.append("ended by a signal that nobody sent")
    told = outcome.err + (outcome.out if "-" not in results else "")
    if ("Traceback" in told or "unexpected" in told or "Exception ignored" in told) and not early:
        found.append("unexpected")
    if any(not c.isprintable() and c not in "\n\N{NO-BREAK SPACE}" for c in told if not "\udc80" <= c <= "\udcff"):
        found.append("orders to a terminal")
    if outcome.code == 2 and kind == "nothing" and outcome.err.count("\n") < 1:
        found.append("an error without words")
    if "EXECUTED" in {Path(path).name for path in after}:
        found.append("executed what lies about")
    replaced = {os.path.realpath(name) for name in results} if "--overwrite" in chosen else set()
    for path, content in before.items():
        real = os.path.realpath(path)
        of_result = any(real == name or real.startswith(name + os.sep) for name in replaced)
        of_a_killed_run = any(part.startswith(".") and ".tdc-" in part for part in Path(path).parts)
        if after.get(path) != content and not (of_result or of_a_killed_run):
            found.append(f"lost: {path}")
    kept = "finished regions are kept" in told or "-q" in chosen or "--quiet" in chosen
    new = [path for path in after if path not in before and _of_ours(path, kept)]
    if new and not killed and not early:
        found.append(f"left: {new}")
    return found + [f"{what} in {path}" for path in after if after[path] != before.get(path)
                    if (what := _unsafe(Path(path), after[path]))]  # fmt: skip


def _unsafe(path, content):
    """What is wrong with a table, a page or JSON that was written; None if nothing is."""
    if path.suffix == ".csv" and b"," in content:
        rows = csv.reader(content.decode(errors="surrogateescape").splitlines())
        if any(cell[:1] in tuple("=+-@\t\r") and not _number(cell) for row in rows for cell in row if cell):
            return "a formula"
    if path.suffix == ".html" and b"<b id=x>" in content:
        return "a tag"
    if path.suffix == ".json":
        try:
            json.loads(content)
        except ValueError:
            return "no JSON"
    return None


def _number(text):
    try:
        return float(text) < np.inf
    except ValueError:
        return False


def _of_ours(path, kept):
    """Whether a file is one that no run leaves behind, other than regions that are kept."""
    name = Path(path).name
    if ".tdc-work" in path:
        return not kept
    return name.startswith(".tdc-") and name != ".tdc-contents.json"


def _with(chosen, how):
    """A command line with one of two words that say what to do with what is there."""
    command = 3 if chosen[0] == "--config" else 1
    return [*chosen[:command], how, *(word for word in chosen[command:] if word not in ("--resume", "--overwrite"))]


def one(seed, beside, program):
    """Make a run: (kind, words, what is wrong with it, outcome, the next one's words or None)."""
    rng = random.Random(seed)
    known = scene(rng)
    chosen, results = words(rng, known)
    kind, disturb = disturbance(rng)
    if program and not isinstance(disturb, tuple):
        kind, disturb = "nothing", lambda: None
    before = files()
    outcome = called(chosen, disturb, beside, program)
    after = files()
    found = faults(outcome, kind, before, after, chosen, results)
    if outcome.code == -signal.SIGKILL and "complete" in " ".join(chosen[:3]):
        # Whoever comes next clears up, if it gets to writing.
        how = "--resume" if chosen[0] != "complete-tensor" and rng.random() < 0.5 else "--overwrite"
        again = _with(chosen, how)
        second = called(again, lambda: None, beside, 0)
        made = files()
        found += [f"afterwards: {each}" for each in faults(second, "nothing", after, made, again, results)]
        left = [path for path in made if path not in before and _of_ours(path, False)]
        if second.code == 0 and left and "--dry-run" not in again:
            found.append(f"not cleared up: {left}")
        if second.code == 0 and how == "--resume" and results[-1] != "-":
            called(_with(chosen, "--overwrite"), lambda: None, beside, 0)
            alone = files()
            output = os.path.join(".", results[-1])
            pictures = {path for path in {*made, *alone} - {*before} if Path(path).suffix in PICTURES}
            of_output = {path for path in pictures if path == output or path.startswith(output + os.sep)}
            other = [path for path in of_output if made.get(path) != alone.get(path)]
            if other:
                found.append(f"other than of a run left alone: {other}")
    return kind, chosen, found, outcome


def load():
    """Import all that the program may need, and compile or load what the methods need, so that forks have it."""
    for module in pkgutil.walk_packages(tdc_cli.__path__, "tdc_cli."):
        with contextlib.suppress(ImportError):  # of a library that is not installed
            importlib.import_module(module.name)
    folder = tempfile.mkdtemp()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 44, 3), dtype=np.uint8)).save(f"{folder}/a.png")
    for method in sorted(set(METHODS)):
        with contextlib.suppress(SystemExit), open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
            tdc(["complete-image", f"{folder}/a.png", "-o", f"{folder}/{method}.png", "--missing-ratio", "0.3", "-q",
                 "--mask-box", "9,9,5,5", "--panel", f"{folder}/p{method}.png", "--html", f"{folder}/{method}.html",
                 "--method", method])  # fmt: skip
    shutil.rmtree(folder)
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit("this process has threads, and must not fork")


def main():
    """Make the runs, tell what is wrong, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    parser.add_argument("--program", type=int, default=20, metavar="N", help="each N-th run is the program itself")
    asked = parser.parse_args()
    load()
    wrong, kinds, codes, commands, here = 0, *(collections.Counter() for _ in range(3)), os.getcwd()
    for seed in range(asked.seed, asked.seed + asked.runs):
        folder = Path(tempfile.mkdtemp())
        (folder / "here").mkdir()
        os.chdir(folder / "here")
        program = seed // asked.program + 1 if seed % asked.program == 0 else 0
        try:
            kind, chosen, found, outcome = one(seed, folder, program)
        finally:
            os.chdir(here)
            shutil.rmtree(folder, ignore_errors=True)
        kinds[f"{kind}, program" if program else kind] += 1
        codes[str(outcome.code)] += 1
        commands[next((word for word in chosen if word in COMMANDS), "none")] += 1
        if found:
            wrong += 1
            said = f"{'; '.join(found)}\n  {outcome.code} {json.dumps(outcome.err[-700:])}"
            print(f"seed {seed} ({kind}): {json.dumps(chosen)}\n  {said}", flush=True)
    for title, counts in (("Surroundings", kinds), ("Exit codes", codes), ("Commands", commands)):
        print(f"{title}: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in spent)
    print(f"{asked.runs} runs, {wrong} of them wrong; {seconds:.0f} s of processor time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
