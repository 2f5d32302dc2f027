"""Two names that change places in one step, which only some systems can do."""

import ctypes
import errno
import os

_HERE = -100  # AT_FDCWD: relative names are of the current folder
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2), Linux 3.15


def exchange(one, other):
    """Have two files or folders of one file system change their names, at no moment of which one is missing.

    Raises
    ------
    OSError
        The system or the file system cannot do it; nothing has changed then.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), os.fspath(one))
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), ctypes.c_uint(_EXCHANGE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(one), None, os.fspath(other))
