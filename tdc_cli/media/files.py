"""Whole files: written under a temporary name, brought to the disk, then renamed."""

import contextlib
import hashlib
import os
import re
import sys
from contextvars import ContextVar
from pathlib import Path

from .. import interrupts
from ..errors import InputError, OutputError, OutputExists
from ..names import STANDARD
from . import journal
from .parts import Part, PartFolder, Standard

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
    """Why no file or folder can be made at `path`, in words that end with what to try; None where nothing is known to
    be in the way.

    Folders above it that are missing are no hindrance.
    """
    there = nearest_folder(path)
    if not there.is_dir():
        return f"{there} is a file, no folder; name another place"
    if not os.access(there, os.W_OK):
        return f"folder {there} is not writable; name another place"
    if not os.path.exists(path) and there.resolve().parts[1:2] in (("proc",), ("sys",)):
        return f"folder {there} is the system's own and takes no files; name another place"
    return None


def read_bytes(path):
    """Content of a file, or of standard input, and its SHA-256 in hexadecimal; InputError if it cannot be read."""
    try:
        if str(path) == STANDARD:
            if sys.stdin is None or sys.stdin.isatty():
                raise InputError(
                    f"{path}: standard input is no data; pipe a file in, as in 'tdc complete-image - ... < a.png'"
                )
            content = sys.stdin.buffer.read()
            if not content:
                raise InputError(f"{path}: nothing came on standard input; look whether the program before it failed")
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

    The temporary file is in the same folder, so that the renaming never crosses file systems. Something that is not a
    regular file (a pipe, a device) is written directly, as standard output is. A symbolic link is followed. Within
    `together` files and standard output come later.

    Parameters
    ----------
    path : path-like
    content : bytes
    replace : bool or callable
        Whether a file that exists is replaced; ``replace(path)`` tells of the one that is there at that moment. If not,
        one that appeared since it was last looked for is not touched either.

    Raises
    ------
    OutputExists
        The file exists.
    OutputError
        Missing folder, no permission, full disk.
    """
    if str(path) == STANDARD:
        stream = Standard(content)
        stream.publish() if _waiting.get() is None else _waiting.get().append(stream)
        return
    with _in_words(path):
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_bytes(content)
            return
        _make(Part, path, replace, lambda file: file.write(content))


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
        _make(Part, path, replace, fill)


def write_folder(path, fill, *, replace=False):
    """As `write_file`, for a folder that appears whole or not at all: ``fill(folder)`` writes files into a Path.

    Parameters
    ----------
    path : path-like
        Nothing, or an empty folder.
    fill : callable
    replace : bool
        Whether a folder that is not empty is replaced. All in it must be as a run has written it, see `contents`.
    """
    with _in_words(path):
        _make(PartFolder, path, replace, fill)


@interrupts.held()
def _make(kind, path, replace, fill):
    """Fill a part, `Part` or `PartFolder`, and give it its name, now or at the end of `together`."""
    waiting, part = _waiting.get(), kind(path, replace)
    try:
        with interrupts.heard():
            part.fill(fill)
    except BaseException:
        part.close()
        raise
    if waiting is None:
        _publish([part])
    else:
        waiting.append(part)


@contextlib.contextmanager
def together(reads=frozenset(), spent=None):
    """Within the block files are written under their temporary names only; at its end all of them appear, or none.

    It stands within `interrupts.held`, what takes long in it within `interrupts.heard`.

    The last one written appears first, so that the first one, once it is there, tells that the others are there too.
    What a process that is killed between two of them leaves undone, `sweep` does.

    Parameters
    ----------
    reads : set of (int, int)
        Device and inode of the files that are read, none of which is replaced, whatever its name has become.
    spent : (Path, list of str) or None
        A folder beside the first file, and files in it, that go when all is there.

    Raises
    ------
    OutputExists, OutputError
        See `write_bytes`.
    """
    waiting = []
    before = _waiting.set(waiting)
    try:
        try:
            yield
        finally:
            _waiting.reset(before)
    except BaseException:
        _close(waiting)
        raise
    _publish(waiting, reads, spent)


@interrupts.held()
def _publish(waiting, reads=frozenset(), spent=None):
    """Give all parts their names, the first one last, and let go of them."""
    appeared = []
    try:
        for part in waiting:
            with _in_words(part.path):
                part.check(reads)
        with journal.kept(waiting, spent):
            try:
                for part in reversed(waiting):
                    with _in_words(part.path):
                        part.publish()
                    appeared.append(part)
            except Exception:
                for part in appeared:
                    part.undo()
                raise
    finally:
        _close(waiting)


def _close(waiting):
    for part in waiting:
        part.close()


def make_folder(path):
    """Make a folder and those above it, where they are missing; OutputError if that is not possible."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: folder cannot be made ({error.strerror or error})") from error


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
        part = Part(Path(folder) / "probe", False)
    try:
        yield part.name
    finally:
        part.close()


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
