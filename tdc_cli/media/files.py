"""Whole files: written under a temporary name, brought to the disk, then renamed."""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from contextvars import ContextVar
from pathlib import Path

from ..errors import InputError, OutputError, OutputExists
from ..names import STANDARD

try:
    import fcntl
except ImportError:  # no locks there: temporary files of killed runs then stay
    fcntl = None  # type: ignore[assignment]

_PART = ".tdc-{}.part"
# Files of `together` that wait for their names; None outside of it.
_waiting: ContextVar[list | None] = ContextVar("waiting", default=None)


def natural(name):
    """Key that sorts numbers within names by what they count, and letters without regard to case."""
    return [int(part) if k % 2 else part.casefold() for k, part in enumerate(re.split(r"(\d+)", name))]


def absence(path):
    """Why there is nothing at `path`, in words; None where there is something."""
    if Path(path).exists():
        return None
    return "a link that leads nowhere" if Path(path).is_symlink() else "no such file"


def check_file(path, *, folder=False, piped=False):
    """InputError unless a regular file is at `path`, or it is standard input.

    Nothing is opened: a pipe would wait for a writer, and a terminal may never end.

    Parameters
    ----------
    path : path-like
    folder : bool
        Whether a folder will do as well.
    piped : bool
        Whether this input may come from standard input, which the error then says.
    """
    if str(path) == STANDARD:
        return
    nothing = absence(path)
    if nothing:
        raise InputError(f"{path}: {nothing}")
    if Path(path).is_dir():
        if folder:
            return
        raise InputError(f"{path}: is a folder; give one file")
    if not Path(path).is_file():
        way = "give - as the input and pipe the data in, or " if piped else ""
        raise InputError(f"{path}: not a regular file; {way}write it to a file first")


def waits(path):
    """Whether what is at `path` might keep a writer waiting for ever: a pipe with a name, a socket, a disk.

    Devices such as /dev/null, and the streams of this process under their names, do not.
    """
    path = Path(path)
    if not path.exists() or path.is_file() or path.is_dir():
        return False
    return not os.path.realpath(path).startswith(("/dev/", "/proc/")) or path.is_block_device() or path.is_socket()


def nearest_folder(path):
    """The nearest of the folders above `path` that is there."""
    return next((parent for parent in Path(path).parents if parent.exists()), Path(os.curdir))


def hindrance(path):
    """Why no file or folder can be made at `path`, in words that end with what to try; None where nothing is known to be in the way.

    Folders above it that are missing are no hindrance.
    """
    there = nearest_folder(path)
    if not there.is_dir():
        return f"{there} is a file, no folder; name another place"
    if not os.access(there, os.W_OK):
        return f"folder {there} is not writable; name another place"
    return None


def read_bytes(path):
    """Content of a file, or of standard input, and its SHA-256 in hexadecimal; InputError if it cannot be read."""
    try:
        if str(path) == STANDARD:
            if sys.stdin is None or sys.stdin.isatty():
                raise InputError(f"{path}: standard input is no data; pipe a file in, as in 'tdc complete-image - ... < a.png'")
            content = sys.stdin.buffer.read()
        else:
            check_file(path)
            content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return content, hashlib.sha256(content).hexdigest()


def digest(path):
    """SHA-256 of a file in hexadecimal, without holding its content; InputError if it cannot be read."""
    try:
        check_file(path)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def write_bytes(path, content, *, replace=False):
    """Write `content` so that `path` holds all of it or what it held before.

    The temporary file is in the same folder, so that the renaming never crosses file systems. Something that is not a regular
    file (a pipe, a device) is written directly, as standard output is. A symbolic link is followed. Within `together` files and
    standard output come later.

    Parameters
    ----------
    path : path-like
    content : bytes
    replace : bool
        Whether a file that exists is replaced. If not, one that appeared since it was last looked for is not touched either.

    Raises
    ------
    OutputExists
        The file exists.
    OutputError
        Missing folder, no permission, full disk.
    """
    if str(path) == STANDARD:
        stream = _Standard(content)
        stream.publish() if _waiting.get() is None else _waiting.get().append(stream)
        return
    with _in_words(path):
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_bytes(content)
            return
        _make(_Part(path, replace), lambda file: file.write(content))


def write_text(path, text, *, replace=False):
    """As `write_bytes`, for text; what of a name is no Unicode is written as an escape."""
    write_bytes(path, text.encode(errors="backslashreplace"), replace=replace)


def write_file(path, fill, *, replace=False):
    """As `write_bytes`, for what is too long to be held: ``fill(file)`` writes to an open binary file.

    Parameters
    ----------
    path : path-like
        Not standard output, no pipe and no device.
    fill : callable
    replace : bool
    """
    with _in_words(path):
        _make(_Part(path, replace), fill)


def write_folder(path, fill, *, replace=False):
    """As `write_file`, for a folder that appears whole or not at all: ``fill(folder)`` writes files into a Path.

    Parameters
    ----------
    path : path-like
        Nothing, or an empty folder.
    fill : callable
    replace : bool
        Whether a folder that is not empty is replaced with all that is in it.
    """
    with _in_words(path):
        _make(_PartFolder(path, replace), fill)


def _make(part, fill):
    """Fill a part, and give it its name, now or at the end of `together`."""
    waiting = _waiting.get()
    try:
        part.fill(fill)
        if waiting is None:
            part.publish()
    except BaseException:
        part.close()
        raise
    if waiting is None:
        part.close()
    else:
        waiting.append(part)


@contextlib.contextmanager
def together():
    """Within the block files are written under their temporary names only; at its end all of them appear, or none.

    The last one written appears first. So the first one, once it is there, tells that the others are there too, even if the process
    is killed between two of them.

    Raises
    ------
    OutputExists, OutputError
        See `write_bytes`.
    """
    parts = []
    before = _waiting.set(parts)
    try:
        yield
        for part in parts:
            with _in_words(part.path):
                part.check()
        for part in reversed(parts):
            with _in_words(part.path):
                part.publish()
    finally:
        _waiting.reset(before)
        for part in parts:
            part.close()


def make_folder(path):
    """Make a folder and those above it, where they are missing; OutputError if that is not possible."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: folder cannot be made ({error.strerror or error})") from error


def sweep(folder):
    """Remove the temporary files and folders in `folder` whose writers are gone, because they were killed or the power failed.

    A writer that lives holds a lock on its file, on this machine at least; a file that cannot be locked stays.
    """
    for part in Path(folder).glob(_PART.format("?" * 12)):
        with contextlib.suppress(OSError):
            if part.is_dir():
                with _locked_folder(part, wait=False) as ours:
                    if ours:
                        shutil.rmtree(part)
                continue
            with open(part, "r+b") as file:
                if _lock(file, wait=False):
                    part.unlink()


@contextlib.contextmanager
def probe(folder):
    """Within the block a temporary file lies in `folder`, a name that others may look for; it is swept as all of them.

    Yields
    ------
    Path

    Raises
    ------
    OutputError
        No file can be made there.
    """
    with _in_words(folder):
        part = _Part(Path(folder) / "probe", False)
    try:
        yield part.name
    finally:
        part.close()


def hold(path):
    """Lock a file that is there, to show that this process lives.

    Returns
    -------
    file or None
        Locked until it is closed; None where another process holds it.
    """
    file = open(path, "r+b")  # noqa: SIM115 - open as long as it is held
    if _taken(file):
        file.close()
        return None
    return file


@contextlib.contextmanager
def sole_use(folder):
    """Within the block no other process has sole use of a folder that is there.

    Raises
    ------
    OutputError
        One has it.
    """
    with _open_folder(folder) as handle:
        if handle is not None and _taken(handle):
            raise OutputError(f"{folder}: another run is at work in it; wait for its end, or give another folder")
        yield


@contextlib.contextmanager
def _in_words(path):
    """Turn the errors of the system into ours, with the name that the user gave."""
    try:
        yield
    except FileExistsError as error:
        raise OutputExists(f"{path}: exists already; give `overwrite` to replace it") from error
    except OSError as error:
        if str(path) == STANDARD:  # has its own words and exit codes
            raise
        raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from error


def _taken(file):
    """Lock an open file or folder until it is closed, where that is possible; whether another process has locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        pass
    return False


def _lock(file, *, wait):
    """Lock an open file until it is closed; whether that was possible."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by another process, or a file system without locks
        return False
    return True


@contextlib.contextmanager
def _locked_folder(folder, *, wait):
    """Within the block a folder is locked, if that is possible; yields whether it is."""
    with _open_folder(folder) as handle:
        yield handle is not None and _lock(handle, wait=wait)


@contextlib.contextmanager
def _open_folder(folder):
    """Within the block a folder is open; yields its handle, or None where folders cannot be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


class _Part:
    """A file under its temporary name, locked to show that its writer lives.

    Parameters
    ----------
    path : path-like
        What it is to be called, as the user named it.
    replace : bool
        Whether a file of that name is replaced.
    """

    def __init__(self, path, replace):
        self.path, self.replace = path, replace
        self.target = Path(os.path.realpath(path))
        while True:
            self.name = self.target.with_name(_PART.format(secrets.token_hex(6)))
            self.file = open(self.name, "xb")  # noqa: SIM115 - open until it has its name
            _lock(self.file, wait=True)
            if self.name.exists():  # else `sweep` was there before the lock
                return
            self.file.close()

    def fill(self, fill):
        """Have everything written, ``fill(file)``, and bring it to the disk."""
        fill(self.file)
        self.file.flush()
        os.fsync(self.file.fileno())
        if self.target.exists():  # a private file stays private
            os.chmod(self.name, stat.S_IMODE(self.target.stat().st_mode))

    def check(self):
        """FileExistsError if the name is taken and not to be replaced."""
        if not self.replace and os.path.lexists(self.target):
            raise FileExistsError(self.target)

    def publish(self):
        """Give the file its name; FileExistsError if that is taken and not to be replaced."""
        if fcntl is None:
            self.file.close()  # Windows renames no open file
        if not self.replace:
            try:
                os.link(self.name, self.target)  # unlike renaming, it fails where something is
                return
            except FileExistsError:
                raise
            except OSError:  # file systems without hard links: the check leaves a gap of microseconds
                self.check()
        os.replace(self.name, self.target)

    def close(self):
        """Let go of the file; its temporary name is gone afterwards."""
        with contextlib.suppress(FileNotFoundError):
            self.name.unlink()
        with contextlib.suppress(OSError):  # what could not be written is told already
            self.file.close()


class _PartFolder:
    """A folder under its temporary name, as `_Part` is a file; the same parameters."""

    def __init__(self, path, replace):
        self.path, self.replace = path, replace
        self.target = Path(os.path.realpath(path))
        self._held = contextlib.ExitStack()
        while True:
            self.name = self._new_name()
            self.name.mkdir()
            self._held.enter_context(_locked_folder(self.name, wait=True))
            if self.name.exists():  # else `sweep` was there before the lock
                return

    def _new_name(self):
        return self.target.with_name(_PART.format(secrets.token_hex(6)))

    def fill(self, fill):
        """Have everything written, ``fill(folder)``, and bring it to the disk."""
        fill(self.name)
        for file in self.name.iterdir():
            with open(file, "rb+") as written:
                os.fsync(written.fileno())
        if self.target.exists():
            os.chmod(self.name, stat.S_IMODE(self.target.stat().st_mode))

    def check(self):
        """FileExistsError if there is something at the name that is not to be replaced; an empty folder is nothing."""
        if os.path.lexists(self.target) and not (self.target.is_dir() and (self.replace or not any(self.target.iterdir()))):
            raise FileExistsError(self.target)

    def publish(self):
        """Give the folder its name; see `check`."""
        self.check()
        if not self.target.exists() or not any(self.target.iterdir()):
            os.rename(self.name, self.target)  # fails if something has come there since
            return
        # No name that `sweep` knows: whatever ends the process here, what was there is not lost.
        old = self.target.with_name(f".{self.target.name}.tdc-old-{secrets.token_hex(6)}")
        os.rename(self.target, old)
        os.rename(self.name, self.target)
        shutil.rmtree(old)

    def close(self):
        """Let go of the folder; its temporary name is gone afterwards."""
        shutil.rmtree(self.name, ignore_errors=True)
        self._held.close()


class _Standard:
    """What goes to standard output; it waits as a `_Part` does."""

    path = STANDARD

    def __init__(self, content):
        self._content = content

    def check(self):
        """Nothing can be in its way."""

    def publish(self):
        """Write everything."""
        sys.stdout.buffer.write(self._content)
        sys.stdout.buffer.flush()

    def close(self):
        """Nothing is left over."""
