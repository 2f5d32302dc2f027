"""Locks on files and folders: they show that whoever holds one lives, and go with it however it ends."""

import contextlib
import os

from ..errors import OutputError

try:
    import fcntl
except ImportError:  # no locks there: what killed runs leave then stays
    fcntl = None  # type: ignore[assignment]

EXIST = fcntl is not None


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


def lock(file, *, wait):
    """Lock an open file until it is closed; whether that was possible."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by another process, or a file system without locks
        return False
    return True


@contextlib.contextmanager
def locked_folder(folder, *, wait):
    """Within the block a folder is locked, if that is possible; yields whether it is."""
    with _open_folder(folder) as handle:
        yield handle is not None and lock(handle, wait=wait)


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
