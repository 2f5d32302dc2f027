"""Whole files: written under a temporary name, brought to the disk, then renamed."""

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path

from ..errors import InputError, OutputError


def read_bytes(path):
    """Content of a file and its SHA-256 in hexadecimal; InputError if it cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return content, hashlib.sha256(content).hexdigest()


def write_bytes(path, content):
    """Write `content` so that `path` holds all of it or what it held before.

    The temporary file is in the same folder, so that the renaming never crosses file systems. Something that is not a regular
    file (a pipe, a device) is written directly. A symbolic link is followed.

    Parameters
    ----------
    path : path-like
    content : bytes

    Raises
    ------
    OutputError
        Missing folder, no permission, full disk.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_bytes(content)
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f".tdc-{secrets.token_hex(6)}.part")
        try:
            with open(part, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():  # a private file stays private
                os.chmod(part, stat.S_IMODE(target.stat().st_mode))
            os.replace(part, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from error
