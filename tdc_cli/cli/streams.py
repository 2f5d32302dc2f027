"""The standard streams, which may be closed, full, or left by their reader."""

import contextlib
import io
import os
import sys

import click

from ..names import shown


def echo(*lines, err=False):
    """Print lines for people, to standard output or standard error; see `names.shown`."""
    for line in lines:
        click.echo(shown(line), err=err)


def _abandon(stream):
    """Lead what is still to come on `stream` nowhere, so that the interpreter does not fail when it flushes it at its
    exit.
    """
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def abandon_output():
    """Lead what waits for standard output nowhere: a reader that takes nothing must not keep the program from its end.
    """
    if sys.stdout is not None:
        _abandon(sys.stdout)


class Unfailing:
    """A text stream that takes messages and never fails: where they cannot be written they are dropped.

    A warning that nobody can read is no reason to lose the result of the work.

    Parameters
    ----------
    stream : text stream
    """

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        """As the stream's own `write`."""
        try:
            return self._stream.write(text)
        except OSError:
            _abandon(self._stream)
            return len(text)

    def flush(self):
        """As the stream's own `flush`."""
        try:
            self._stream.flush()
        except OSError:
            _abandon(self._stream)

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def _whole_output():
    """Within the block, what is written to standard output is written whole, or the writing fails; the interpreter's
    exit does not.

    Where ``PYTHONUNBUFFERED`` or ``python -u`` takes its buffer away, a write to a disk that is nearly full, or to a
    pipe, may end halfway and say so in what it returns only, which hardly anybody looks at.
    """
    before = sys.stdout
    if isinstance(getattr(before, "buffer", None), io.RawIOBase):
        how = {"encoding": before.encoding, "errors": before.errors}
        sys.stdout = open(before.fileno(), "w", closefd=False, **how)  # noqa: SIM115 - closed below
    try:
        yield
    finally:
        if sys.stdout is not None:
            try:
                sys.stdout.flush()
            except OSError:  # which has been told when the writing failed
                _abandon(sys.stdout)
        if sys.stdout is not before:
            sys.stdout.close()
        sys.stdout = before


@contextlib.contextmanager
def guarded():
    """Within the block, writing to standard error never fails, and no file that is opened takes the number of a
    standard stream.

    With a standard stream closed, the next file would get its number, and what a library prints would go into that
    file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    if sys.stdout is None:
        # What the program itself writes fails, as it does elsewhere, since nothing is open for writing.
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115 - it lives as long as the program
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - it lives as long as the program
    before = sys.stderr
    sys.stderr = Unfailing(before)
    try:
        with _whole_output():
            yield
    finally:
        sys.stderr = before
