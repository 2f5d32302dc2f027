"""Completion in the shells themselves: each one is started on a terminal, and a line is typed into it up to the Tab
key.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tdc_cli import methods
from tdc_cli.names import PATTERNS

BIN = Path(sys.executable).parent

# Shell -> how to start it without the user's own set-up, and the line that docs/cli.md gives to put into that set-up.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(_TDC_COMPLETE=bash_source tdc)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(_TDC_COMPLETE=zsh_source tdc)"'),
    "fish": (["fish", "--no-config", "-i"], "_TDC_COMPLETE=fish_source tdc | source"),
}


class Terminal:
    """A shell on a terminal of its own, in the current folder."""

    def __init__(self, words, home):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
            os.execvpe(
                words[0], words, {"PATH": path, "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8", "PS1": "> "}
            )

    def read_until(self, done, seconds=30):
        """What is shown until ``done(text)``, or so far when the time is over."""
        text, end = "", time.monotonic() + seconds
        while not done(text) and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    text += os.read(self.master, 65536).decode(errors="replace")
                except OSError:  # the shell has ended
                    break
        return text

    def run(self, line):
        """Type a line and wait until it is done."""
        os.write(self.master, f"{line}; echo rea''dy\n".encode())
        shown = self.read_until(lambda text: "ready" in text)
        assert "ready" in shown, shown

    def tab(self, line, expected):
        """What is shown after `line` and a Tab; returns as soon as `expected` is there."""
        os.write(self.master, f"{line}\t".encode())
        shown = self.read_until(lambda text: expected in _plain(text))
        os.write(self.master, b"\x15")  # empty the line
        return _plain(shown)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)


def _plain(text):
    """`text` without control sequences of a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\r|\x07", "", text)


@pytest.fixture(params=list(SHELLS))
def shell(request, folder):
    words, line = SHELLS[request.param]
    if request.param != "bash" and shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    terminal = Terminal(words, folder)
    try:
        terminal.run(line)
        yield terminal
    finally:
        terminal.close()


def test_words_are_completed_at_the_tab_key(shell):
    cases = [
        ("tdc complete-im", "complete-image"),
        ("tdc report-s", "report-schema"),
        ("tdc complete-image a.png --missing-p", "--missing-pattern"),
        ("tdc complete-image a.png --missing-pattern scr", "scratches"),
        ("tdc complete-image a.png --method datc-s", "datc-sc"),
        ("tdc methods bih", "biharmonic"),
        ("tdc complete-image a.p", "a.png"),
        ("tdc complete-image a.png --mask m.p", "m.png"),
    ]
    for line, expected in cases:
        shown = shell.tab(line, expected)
        assert expected in shown, (line, shown)


def _suggested(*words):
    """What the program itself suggests for the last of `words`, asked as the script for bash asks."""
    variables = {"_TDC_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([BIN / "tdc"], env=os.environ | variables, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_every_command_method_and_pattern_is_suggested(folder):
    from tdc_cli.cli.main import COMMANDS

    assert set(_suggested("tdc", "")) == set(COMMANDS)
    assert _suggested("tdc", "complete-image", "--method", "") == list(methods.REGISTRY)
    assert _suggested("tdc", "complete-image", "--missing-pattern", "") == list(PATTERNS)
    assert "--uncertainty" in _suggested("tdc", "complete-image", "--u")


def test_a_broken_configuration_file_does_not_stop_completion(folder):
    Path("tdc.toml").write_text("[complete-image\n")
    assert "datc" in _suggested("tdc", "--config", "tdc.toml", "complete-image", "--method", "d")


def test_completion_loads_nothing_heavy(folder):
    code = (
        "import sys\nfrom tdc_cli.cli.main import main\n"
        "try: main(prog_name='tdc')\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'PIL', 'scipy', 'numba', 'tqdm') if m in sys.modules], file=sys.stderr)"
    )
    variables = {"_TDC_COMPLETE": "bash_complete", "COMP_WORDS": "tdc complete-image --method ", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, timeout=60
    )
    assert "patches" in done.stdout and done.stderr == "[]\n"


def test_the_lines_that_the_documentation_gives_are_those_tried_here():
    from conftest import ROOT

    for page in ("README.md", "docs/cli.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for _, line in SHELLS.values():
            assert line.removeprefix("autoload -Uz compinit; compinit -u -D; ") in text
