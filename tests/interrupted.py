"""Run the command line, and have a signal reach it at one moment after another; the tests look at what is left.

``python interrupted.py SCENARIO`` is a process without threads, so that it may fork: a child for every moment. Moments
are the instructions of Python in what makes, names and clears up files, and in contextlib, which stands between these;
they are counted in a run that nothing disturbs. A line of JSON for each tells what came of its run.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from killed import tree

import tdc_cli

PACKAGE = Path(tdc_cli.__file__).parent
WATCHED = {contextlib.__file__, str(PACKAGE / "interrupts.py")}
WATCHED |= {str(PACKAGE / "run" / f"{name}.py") for name in ("batch", "execute", "store", "work")}
WATCHED |= {str(PACKAGE / "media" / f"{name}.py") for name in ("contents", "files", "journal", "locks", "parts")}


def run(words, act=None, number=None):
    """What comes of the command line in a child: its exit code, what it says on standard error, and how many moments it
    had.

    Parameters
    ----------
    words : list of str
    act : callable
        What happens at a moment.
    number : int or None
        Which one; None: at none.
    """
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with open(reading) as pipe:
            said = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return json.loads(said) if said else [code, "", 0]
    outcome = [99, "", 0]
    try:
        os.close(reading)
        outcome = _called(words, _Moments(act, number))
    finally:
        os.write(writing, json.dumps(outcome).encode())
        os._exit(0)


def _called(words, moments):
    """Exit code of the command line in this process, what it says on standard error, and the number of moments."""
    from tdc_cli.cli.main import main

    told = io.StringIO()
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(told):
        try:
            sys.settrace(moments.frame)
            main(words)
        except SystemExit as end:
            code = end.code
        finally:
            sys.settrace(None)
    return [code, told.getvalue(), moments.count]


class _Moments:
    """Function for `sys.settrace` that counts the instructions of what is watched."""

    def __init__(self, act, number):
        self.count, self._act, self._number = 0, act, number

    def frame(self, frame, event, argument):
        """Of a function that begins."""
        if frame.f_code.co_filename not in WATCHED:
            return None
        frame.f_trace_opcodes = True
        return self._instruction

    def _instruction(self, frame, event, argument):
        if event == "opcode" and signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:  # as long as the program listens
            self.count += 1
            if self.count - 1 == self._number:
                self._act()
        return self._instruction


def main(start, words, count, offset, number):
    """Have signal `number` reach the run at `count` moments, evenly from `offset`, each in a copy of `start`, a folder.
    """
    shutil.copytree(start, "once", symlinks=True)
    os.chdir("once")
    code, said, moments = _called(words, _Moments(None, None))
    if code or threading.active_count() > 1:
        raise SystemExit(f"the run fails by itself, or begins threads: {said}")
    os.chdir("..")
    for k in range(-1, count):
        shutil.rmtree("tried", ignore_errors=True)
        shutil.copytree(start, "tried", symlinks=True)
        os.chdir("tried")
        if k < 0:  # counted without what is done only once in a process
            code, said, moments = run(words)
        else:
            moment = offset + k * moments // count
            code, said, _ = run(words, lambda: signal.raise_signal(number), moment)
            print(json.dumps({"moment": moment, "code": code, "said": said, "left": tree()}), flush=True)
        os.chdir("..")


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
