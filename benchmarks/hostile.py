"""Hostile use at random: odd names, links, pipes, damaged files, odd numbers, results that exist, leftovers, kills,
signals, limits, closed streams, modules that lie about.

    .venv/bin/python benchmarks/hostile.py [--runs N] [--seed N] [--program N]

Everything is loaded once; each run is the command line in a fork of this process, in a folder of its own, with little
to compute; every twentieth is the program itself, started anew. A run must end with one of the exit codes that are
documented, in time, without a traceback or an unexpected error; give no orders to a terminal; execute nothing that
lies about; leave every file as it was that no option says may be replaced; and leave nothing of its own but results and
what is kept to go on with. A run that was killed is followed by one that goes on or begins anew, which clears up.
"""

import argparse
import collections
import contextlib
import importlib
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
import numpy as np
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
    "--mask-frames": ("0", "1-2", "2-1", "x", ""),
    "--frames": ("0", "1-2", "0-0", "9", "x", ""),
    "--frame-rate": ("25", "30000/1001", "0", "1/0", "x"),
    "--memory": ("1MB", "200MB", "0", "x", "", "1e9"),
    "--cluster": ("x", "", "localhost"),  # addresses that nobody waits for
    "--region": ("32", "whole", "0", "x", ""),
    "--chunk": ("1", "2", "0", "x", "whole"),
    "--mask-suffix": ("_mask", "", "/", "x"),
    "--ordered-modes": ("0", "0,1", "9", "x"),
    "--pages": ("all", "x"),
    "--residual": ("gaussian", "x"),
}
KEPT = {"--mask": ("alpha", "ir", "-"), "--keep": ("nodata",)}  # words that stand for no file
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
    elif kind == "folder":
        path.mkdir()
        for k in range(rng.randrange(4)):
            Image.fromarray(np.roll(values, k, axis=0)).save(path / f"{k}.png", "PNG")
        if rng.random() < 0.3:
            name = rng.choice(
                [".tdc-0123456789ab.part", "mine.txt", ".tdc-0123456789ab.journal", ".tdc-contents.json"]
            )
            (path / name).write_bytes(b"{}")
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
    if rng.random() < 0.2:
        for name in rng.sample(TRAPS, 3):
            Path(f"{name}.py").write_text("open('EXECUTED', 'w')\n")
        Path("matplotlibrc").write_text("backend: nosuch\nfigure.dpi: x\n")
    return known


def words(rng, known):
    """A command line, the names of its results, and how it is to be called: environment, jobs."""
    calm = rng.random() < 0.6  # few oddities at a time, so that most of the work is done
    command = rng.choices([*COMMANDS], [40, 25, 15, 3, 2, 1, 1, 1])[0]

    def some():
        return rng.choice([*known, "new.png", "out", "in", "new", "none/x.png", "new.mkv", rng.choice(NAMES)])

    options = {each.opts[-1]: each for each in tdc.get_command(None, command).params if isinstance(each, click.Option)}
    chosen, results = [command], []
    if rng.random() < (0.02 if calm else 0.1):
        chosen = ["--config", some(), command]
    open_to = sorted(options.keys() - SLOW)
    used = rng.sample(open_to, min(len(open_to), rng.choice([0, 1, 1, 2]) if calm else rng.randrange(7)))
    if calm:
        used += [name for name in SUITED if name in options and name not in used and rng.random() < 0.15]
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
    if command.startswith("complete"):
        usual = {"complete-image": "a.png", "complete-video": "in", "complete-tensor": rng.choice(known)}[command]
        several = command == "complete-image" and rng.random() < 0.2
        inputs = [usual if calm else rng.choice(["a.png", "in", "-", some()]) for _ in range(2 if several else 1)]
        output = rng.choice(["new.png", "new.tif", "out"]) if calm else rng.choice(["-", some(), some()])
        results.append(output)
        if (calm or rng.random() < 0.7) and "--missing-ratio" not in used:
            chosen += ["--missing-ratio", "0.3"]
        own = {"complete-image": "--skip-existing", "complete-video": "--resume", "complete-tensor": "-v"}[command]
        chosen += rng.sample([own, "--overwrite", "--overwrite", "--json", "-q", "-v"], rng.randrange(3))
        if "--jobs" in options and rng.random() < 0.01:
            chosen += ["--jobs", "2"]
        chosen += ["-o", output, "--method", rng.choice(METHODS), "--threads", "1", "--", *inputs]
    elif command == "synth":
        chosen += ["--shape", rng.choice(["3,4,5", "0,1", "x"]), "--methods", rng.choice(["halrtc", "x", ""])]
    elif command == "bench":
        chosen += [rng.choice(["--list", "nosuch", ""])]
    elif command == "methods":
        chosen += [rng.choice(["datc", "x", ""])] if rng.random() < 0.5 else []
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


class Outcome:
    """What came of a run: `code` (negative: the signal that ended it), `out` and `err` as text."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


def disturbance(rng):
    """What surrounds a run: its name, and a function that is called in the process before the program, or (signal,
    seconds) that reaches it.
    """
    kind = rng.choices(
        ["nothing", "SIGKILL", "SIGTERM", "SIGINT", "size of files", "open files", "memory", "streams"],
        [60, 10, 8, 8, 5, 3, 3, 3],
    )[0]
    if kind.startswith("SIG"):
        return kind, (getattr(signal, kind), 10 ** rng.uniform(-3, -0.3))
    most = {"size of files": rng.randrange(2000, 20000), "open files": rng.randrange(5, 30)}.get(kind, 0)
    more, closed = rng.randrange(2**22, 2**28), rng.choice([0, 1, 2])

    def act():
        if kind == "size of files":
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        elif kind == "open files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        elif kind == "memory":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            size = pages * resource.getpagesize() + more
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        elif kind == "streams" and closed < 2:
            os.close(closed)
            setattr(sys, ("stdin", "stdout")[closed], None)
        elif kind == "streams":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)

    return kind, act


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
        return 98
    return 0


def faults(outcome, kind, before, after, chosen, results):
    """What is wrong with a run, in words."""
    found, killed = [], kind == "SIGKILL" and outcome.code == -signal.SIGKILL
    early = outcome.code == -signal.SIGTERM and kind == "SIGTERM"  # before the program could listen
    if outcome.code not in EXIT_CODES and not killed and not early:
        found.append(f"exit code {outcome.code}")
    if outcome.code in (130, 143) and not kind.startswith("SIG"):
        found.append("ended by a signal that nobody sent")
    told = outcome.err + (outcome.out if "-" not in results else "")
    if "Traceback" in told or "unexpected" in told or "Exception ignored" in told:
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
    return found


def _of_ours(path, kept):
    """Whether a file is one that no run leaves behind, other than regions that are kept."""
    name = Path(path).name
    if ".tdc-work" in path:
        return not kept
    return name.startswith(".tdc-") and name != ".tdc-contents.json"


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
        again = [chosen[0], "--overwrite", *(word for word in chosen[1:] if word not in ("--resume", "--overwrite"))]
        if chosen[0] == "--config":
            again = [*chosen[:3], "--overwrite", *(word for word in chosen[3:] if word != "--resume")]
        second = called(again, lambda: None, beside, 0)
        made = files()
        found += [f"afterwards: {each}" for each in faults(second, "nothing", after, made, again, results)]
        left = [path for path in made if path not in before and _of_ours(path, False)]
        if second.code == 0 and left and "--dry-run" not in again:
            found.append(f"not cleared up: {left}")
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
