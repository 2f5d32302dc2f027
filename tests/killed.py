"""Run the command line, and kill it before every call that changes a name, one after another; the tests look at what is
left.

``python killed.py SCENARIO`` is a process without threads, so that it may fork: a child for every call. It runs once
itself before, so that the children need not import anything. A line of JSON for each tells what its run has left and
what the next run has made of that.
"""

import contextlib
import json
import os
import shutil
import sys
import threading
from pathlib import Path

CALLS = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "tdc.exchange"}


def tree(root="."):
    """Relative path to content of every file below `root`, bytes as text."""
    return {
        str(p.relative_to(root)): p.read_bytes().decode("latin-1") for p in sorted(Path(root).rglob("*")) if p.is_file()
    }


def run(words, number=None):
    """Exit code of the command line in a child, which kills itself before call `number`; with None it lives to its end.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 99
    try:
        if number is not None:
            _die_before(number)
        code = _called(words)
    finally:
        os._exit(code)


def _called(words):
    """Exit code of the command line in this process; what it says goes nowhere."""
    from tdc_cli.cli.main import main

    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        try:
            main(words)
        except SystemExit as end:
            return end.code


def _die_before(number):
    from tdc_cli.media import parts

    left = [number]

    def count(event, args=()):
        if event in CALLS and not str(args[:1]).startswith("('/proc"):
            if not left[0]:
                os._exit(9)
            left[0] -= 1

    plain = parts.exchange

    def exchange(*names):
        count("tdc.exchange")
        if os.environ.get("TDC_TEST_EXCHANGE") == "no":
            raise OSError(38, "Function not implemented")
        plain(*names)

    parts.exchange = exchange
    sys.addaudithook(count)


def main(start, first, then):
    """Kill `first` before each of its calls, in a copy of the folder `start`, and run `then`."""
    shutil.copytree(start, "once", symlinks=True)
    os.chdir("once")
    if _called(first) or threading.active_count() > 1:
        raise SystemExit("the run fails by itself, or begins threads")
    os.chdir("..")
    for number in range(200):
        shutil.rmtree("tried", ignore_errors=True)
        shutil.copytree(start, "tried", symlinks=True)
        os.chdir("tried")
        code = run(first, number)
        left = tree()
        after = run(then)
        print(json.dumps({"code": code, "left": left, "after": after, "made": tree()}), flush=True)
        os.chdir("..")
        if code != 9:
            return
    raise SystemExit("more calls than are looked at")


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
