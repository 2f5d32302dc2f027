"""Where results go: what can be refused before anything is read."""

import os
import sys
from pathlib import Path

from ..errors import OutputError
from ..media import files, journal
from ..media.parts import check_unread, same_file
from ..names import STANDARD

UNCERTAINTY_FORMATS = (".npy", ".tif", ".tiff", ".png")


def check_paths(wanted, *, replace=False, make_folders=False, standard=(), folders=()):
    """Refuse to clobber, to write nowhere, and to write two things into one file; nothing has been read yet.

    Parameters
    ----------
    wanted : Request, or another object with its `outputs` and `sources`
    replace : bool or callable
        Whether outputs may exist; ``replace(path)`` tells of one that is there.
    make_folders : bool
        Whether folders of outputs may be missing.
    standard : sequence of str
        Names of the outputs that may go to standard output.
    folders : sequence of str
        Names of the outputs that may be folders.

    Raises
    ------
    OutputError
    """
    seen = {}
    for name, path in wanted.outputs.items():
        if str(path) == STANDARD:
            _check_standard(name, path, standard)
            continue
        hindrance = files.hindrance(path)
        if hindrance:
            raise OutputError(f"{path}: {hindrance}")
        if path.is_dir() and name not in folders:
            raise OutputError(f"{path}: is a folder; name a file in it")
        real = os.path.realpath(path)
        for role, source in {**wanted.sources, **wanted.consulted}.items():
            # The reference may well be the input itself, but no result may replace something that is read.
            if source is not None and (
                real == os.path.realpath(source) or (path.exists() and same_file(path, source))
            ):
                raise OutputError(f"{path}: is the {role} itself; name another file")
            if source is not None and _within(real, os.path.realpath(source)):
                raise OutputError(f"{path}: lies in the folder {source}, the {role}; name a place outside of it")
            if source is not None and os.path.exists(source) and _within(os.path.realpath(source), real):
                raise OutputError(f"{path}: holds {source}, the {role}; name another folder")
        if real in seen:
            raise OutputError(f"{path}: named twice, as {seen[real]} and as {name}; give each result a file of its own")
        for other, what in seen.items():
            if _within(real, other) or _within(other, real):
                raise OutputError(
                    f"{path}: {name} and {what} lie one in the other; give each result a place of its own"
                )
        seen[real] = name
        if files.waits(path) or os.path.islink(real):
            raise OutputError(
                f"{path}: is a pipe, a socket, a disk, or a link to itself; name a file, or - for standard output"
            )
        if not path.parent.is_dir() and not make_folders:
            raise OutputError(f"{path}: folder {path.parent} does not exist; create it first")
        there = path.is_file() or (path.is_dir() and any(path.iterdir()))
        if there and not (replace(path) if callable(replace) else replace):
            raise OutputError(f"{path}: exists already; give `overwrite` to replace it")


def check_extensions(request, uncertainty=UNCERTAINTY_FORMATS):
    """Refuse names of further results of pictures and clips whose extensions say something else.

    Raises
    ------
    OutputError
    """
    if request.uncertainty is not None and Path(request.uncertainty).suffix.lower() not in uncertainty:
        raise OutputError(f"{request.uncertainty}: uncertainty is written to {', '.join(uncertainty)}")
    if request.panel is not None and Path(request.panel).suffix.lower() != ".png":
        raise OutputError(f"{request.panel}: a panel is written to .png")
    if request.html is not None and Path(request.html).suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"{request.html}: a page is written to .html")


def check_spared(wanted, reads):
    """OutputError if a result would take the place of a file that is read, whatever its name, or of a folder that holds
    one.

    Parameters
    ----------
    wanted : Request
    reads : set of (int, int)
        Device and inode of the files that are read.
    """
    for path in wanted.outputs.values():
        if path.exists():
            check_unread(path, reads)


def sweep(requests):
    """Bring to its end, or remove, what killed runs have left in the folders that `requests` write into."""
    paths = {path for request in requests for path in request.outputs.values()}
    for folder in {Path(os.path.realpath(path)).parent for path in paths}:
        journal.sweep(folder)


def _check_standard(name, path, standard):
    if name not in standard:
        raise OutputError(f"{path}: only the completed input goes to standard output; name a file for the {name}")
    if not _takes_data(sys.stdout):
        raise OutputError(
            f"{path}: standard output is a terminal or closed; lead it into a file or a program, as in 'tdc ... -o - > "
            "FILE'"
        )


def _takes_data(stream):
    """Whether a standard stream is open for writing, and leads to something else than a terminal."""
    if stream is None or stream.isatty():
        return False
    try:
        import fcntl

        return fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except (ImportError, OSError, ValueError):  # nobody tells, as with one that is no file
        return True


def _within(path, folder):
    """Whether a real path lies below another."""
    return path.startswith(os.path.join(folder, ""))
