"""Run the command line, and kill it before every call that changes a name, one after another; the tests look at what is left.

``python killed.py SCENARIO`` is a process without threads, so that it may fork: a child for every call. A line of JSON for each tells what its
run has left and what the next run has made of that.
"""

import json
import os
import shutil
import sys
from pathlib import Path

CALLS = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "tdc.exchange"}


def tree(root="."):
    """Relative path to content of every file below `root`, bytes as text."""
    return {str(p.relative_to(root)): p.read_bytes().decode("latin-1") for p in sorted(Path(root).rglob("*")) if p.is_file()}


def run(words, number=None):
    """Exit code of the command line in a child, which kills itself before call `number`; with None it lives to its end."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 99
    try:
        if number is not None:
            _die_before(number)
        from tdc_cli.cli.main import main

        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
            main(words, standalone_mode=True)
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code)


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
    import tdc_cli.media.video.frame_folder
    import tdc_cli.methods.nearest
    import tdc_cli.run.sinks.clip
    import tdc_cli.run.sinks.picture  # noqa: F401

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
