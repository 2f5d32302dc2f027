"""What a run has written into a folder: a list in a hidden file of the folder, by which later runs know what they may
replace.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path

LIST = ".tdc-contents.json"
_SCHEMA = "tdc-contents/1"


def record(folder):
    """Write the list of all files in a folder, with their SHA-256; nothing in it depends on when or where it was made.
    """
    listed = {path.name: _digest(path) for path in sorted(Path(folder).iterdir())}
    (Path(folder) / LIST).write_text(
        json.dumps({"schema": _SCHEMA, "files": listed}, indent=1) + "\n", encoding="utf-8"
    )


def foreign(folder):
    """Name of the first thing in a folder that no run has written as it is, or None; its files are read for that."""
    listed = _listed(folder)
    names = sorted(set(os.listdir(folder)) - {LIST})
    return next((name for name in names if not _as_written(Path(folder) / name, listed.get(name))), None)


def remove(folder, place):
    """Remove a folder with all that is as a run has written it.

    What else has come into it meanwhile goes into the folder `place`, where its name is free; else it and the folder
    stay.
    """
    listed = _listed(folder)
    for name in sorted(os.listdir(folder)):
        path = Path(folder) / name
        if name == LIST:
            continue
        if _as_written(path, listed.get(name)):
            path.unlink()
        elif not os.path.lexists(Path(place) / name):
            os.rename(path, Path(place) / name)
    if not set(os.listdir(folder)) - {LIST}:
        with contextlib.suppress(FileNotFoundError):
            (Path(folder) / LIST).unlink()
        os.rmdir(folder)


def _listed(folder):
    """Name to SHA-256 of the files that the list of a folder names; empty where there is no list of ours."""
    path = Path(folder) / LIST
    try:
        if path.is_symlink():
            return {}
        found = json.loads(path.read_bytes())
        return dict(found["files"]) if found["schema"] == _SCHEMA else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _as_written(path, sha256):
    try:
        return sha256 is not None and path.is_file() and not path.is_symlink() and _digest(path) == sha256
    except OSError:
        return False


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
