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
        if not Path(path).is_file():  # a pipe or a terminal may never end
            raise InputError(f"{path}: not a regular file; write the data to a file first")
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return content, hashlib.sha256(content).hexdigest()


def write_bytes(path, content, *, replace=False):
    """Write `content` so that `path` holds all of it or what it held before.

    The temporary file is in the same folder, so that the renaming never crosses file systems. Something that is not a regular
    file (a pipe, a device) is written directly. A symbolic link is followed.

    Parameters
    ----------
    path : path-like
    content : bytes
    replace : bool
        Whether a file that exists is replaced. If not, one that appeared since it was last looked for is not touched either.

    Raises
    ------
    OutputError
        The file exists, missing folder, no permission, full disk.
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
            _publish(part, target, replace)
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
    except FileExistsError as error:
        raise OutputError(f"{path}: exists already; give --overwrite to replace it") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from error


def _publish(part, target, replace):
    """Give the finished temporary file its name; FileExistsError if that is taken and not to be replaced."""
    if not replace:
        try:
            os.link(part, target)  # unlike renaming, it fails where something is
            return
        except FileExistsError:
            raise
        except OSError:  # file systems without hard links: the check leaves a gap of microseconds
            if os.path.lexists(target):
                raise FileExistsError(target) from None
    os.replace(part, target)
