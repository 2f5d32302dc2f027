"""Files and folders under temporary names, beside the place that they are for, until they get their own."""

import contextlib
import os
import secrets
import shutil
import stat
import sys
from pathlib import Path

from .. import interrupts
from ..errors import OutputError
from ..names import STANDARD
from . import contents, locks
from .exchange import exchange

PART, OLD = ".tdc-{}.part", ".tdc-{}.old"


class Part:
    """A file under its temporary name, locked to show that its writer lives.

    Parameters
    ----------
    path : path-like
        What it is to be called, as the user named it.
    replace : bool or callable
        Whether a file of that name is replaced; ``replace(path)`` tells of the file that is there.
    """

    folder = False

    def __init__(self, path, replace):
        self.path, self._replace = path, replace
        self.target = Path(os.path.realpath(path))
        self._linked = False
        while True:
            self.name = self.target.with_name(PART.format(secrets.token_hex(6)))
            self.file = open(self.name, "xb")  # noqa: SIM115 - open until it has its name
            locks.lock(self.file, wait=True)
            if self.name.exists():  # else `sweep` was there before the lock
                return
            self.file.close()

    @property
    def replaces(self):
        """Whether what is there now may be replaced."""
        if callable(self._replace):
            return os.path.lexists(self.target) and self._replace(self.target)
        return self._replace

    def fill(self, fill):
        """Have everything written, ``fill(file)``, and bring it to the disk."""
        fill(self.file)
        self.file.flush()
        os.fsync(self.file.fileno())
        if self.target.exists():  # a private file stays private
            os.chmod(self.name, stat.S_IMODE(self.target.stat().st_mode))

    def check(self, reads=frozenset()):
        """FileExistsError if the name is taken and not to be replaced; OutputError if it is that of a file that is
        read.
        """
        if os.path.lexists(self.target):
            check_unread(self.path, reads)
            if not self.replaces:
                raise FileExistsError(self.target)

    def publish(self):
        """Give the file its name; FileExistsError if that is taken and not to be replaced."""
        if not locks.EXIST:
            self.file.close()  # Windows renames no open file
        self._linked = name_file(self.name, self.target, self.replaces)

    def undo(self):
        """Take the name back, where nothing was replaced."""
        if self._linked and same_file(self.name, self.target):
            self.target.unlink()

    def close(self):
        """Let go of the file; its temporary name is gone afterwards."""
        with contextlib.suppress(FileNotFoundError):
            self.name.unlink()
        with contextlib.suppress(OSError):  # what could not be written is told already
            self.file.close()


class PartFolder:
    """A folder under its temporary name, as `Part` is a file; the same parameters, but `replace` is a bool."""

    folder = True

    def __init__(self, path, replace):
        self.path, self.replaces = path, replace
        self.target = Path(os.path.realpath(path))
        self._held = contextlib.ExitStack()
        while True:
            self.name = self.target.with_name(PART.format(secrets.token_hex(6)))
            self.name.mkdir()
            self._held.enter_context(locks.locked_folder(self.name, wait=True))
            if self.name.exists():  # else `sweep` was there before the lock
                self._made = self.name.stat().st_ino
                return

    def fill(self, fill):
        """Have everything written, ``fill(folder)``, and bring it to the disk, with a list of it."""
        fill(self.name)
        contents.record(self.name)
        for file in self.name.iterdir():
            with open(file, "rb+") as written:
                os.fsync(written.fileno())
        if self.target.exists():
            os.chmod(self.name, stat.S_IMODE(self.target.stat().st_mode))

    def check(self, reads=frozenset()):
        """FileExistsError if there is something at the name that is not to be replaced; an empty folder is nothing.

        Raises
        ------
        OutputError
            The folder holds what no run has written, or what this run reads.
        """
        if not os.path.lexists(self.target):
            return
        if not self.target.is_dir() or (any(self.target.iterdir()) and not self.replaces):
            raise FileExistsError(self.target)
        check_own(self.path)
        check_unread(self.path, reads)

    def publish(self):
        """Give the folder its name; see `check`."""
        name_folder(self.name, self.target)

    def undo(self):
        """Nothing: a folder is the main result, after which no other appears."""

    def close(self):
        """Let go of the folder; its temporary name is gone afterwards."""
        with contextlib.suppress(OSError):
            if self.name.stat().st_ino == self._made:
                shutil.rmtree(self.name)
            else:  # interrupted when it had changed its place with what was there
                contents.remove(self.name, self.target)
        self._held.close()


class Standard:
    """What goes to standard output; it waits as a `Part` does."""

    path = STANDARD
    target = None

    def __init__(self, content):
        self._content = content

    def check(self, reads=frozenset()):
        """Nothing can be in its way."""

    def publish(self):
        """Write everything, to a reader that may take its time."""
        with interrupts.heard():
            self._write()

    def _write(self):
        sys.stdout.buffer.write(self._content)
        sys.stdout.buffer.flush()

    def undo(self):
        """What is written is written."""

    def close(self):
        """Nothing is left over."""


def name_file(part, target, replace):
    """Give a file its name in one step.

    Returns
    -------
    bool
        Whether it has its temporary name, too.

    Raises
    ------
    FileExistsError
        The name is taken and not to be replaced.
    """
    if not replace:
        try:
            os.link(part, target)  # unlike renaming, it fails where something is
            return True
        except FileExistsError:
            raise
        except OSError as error:  # file systems without hard links: the check leaves a gap of microseconds
            if os.path.lexists(target):
                raise FileExistsError(target) from error
    os.replace(part, target)
    return False


def name_folder(part, target):
    """Give a folder its name in place of what a run has written there, in one step where the system can; `part` is gone
    then.
    """
    if not target.exists() or not any(target.iterdir()):
        os.rename(part, target)  # fails if something has come there since
        return
    old = old_name(part)
    try:
        exchange(part, target)
        old = part
    except OSError:  # in two steps, between which a journal knows the way on
        os.rename(target, old)
        os.rename(part, target)
    contents.remove(old, target)


def old_name(part):
    """Where a folder waits for its removal whose place `part` takes in two steps."""
    return part.with_name(OLD.format(part.name[5:17]))


def check_own(folder):
    """OutputError if a folder holds anything that no run has written as it is."""
    name = contents.foreign(folder)
    if name is not None:
        raise OutputError(
            f"{folder}: holds {name}, which no run of tdc has written as it is; give an empty folder or a new name, or "
            "remove what is there"
        )


def check_unread(path, reads):
    """OutputError if `path`, or a file in the folder of that name, is one of the files `reads` by (device, inode)."""
    inside = [entry.path for entry in os.scandir(path)] if reads and os.path.isdir(path) else []
    for each in (path, *inside):
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(each)
            if (found.st_dev, found.st_ino) in reads:
                what = "is" if each is path else f"holds {os.path.basename(each)}, which is"
                raise OutputError(f"{path}: {what} read by this run; name another place")


def same_file(one, other):
    """Whether two paths lead to one file; False where either leads nowhere."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
