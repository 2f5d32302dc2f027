"""What is still to be done so that several files and folders appear together: written down before the first of them
appears.

Each folder concerned has a journal of its own, which speaks of names in this folder only, since a journal may come from
anywhere. That of the main result is written last and removed last: all results are to appear if, and only if, it is
there. Whoever finds the journals of a run that was killed (`sweep`) brings them to their end, or takes everything back.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path

from ..errors import OutputError
from . import contents, locks, parts

_JOURNAL = ".tdc-{}.journal"
_NAMED = re.compile(r"\.tdc-[0-9a-f]{12}\.journal")
_PART = re.compile(r"\.tdc-[0-9a-f]{12}\.part")
_WORK = re.compile(r"\..+\.tdc-work", re.DOTALL)
_ANY = "?" * 12


@contextlib.contextmanager
def kept(waiting, spent=None):
    """Within the block, the end of a run that is killed can be made up for by `sweep`.

    Parameters
    ----------
    waiting : sequence of parts
        The main one first; those without a name on the disk are left out.
    spent : (Path, list of str) or None
        A folder beside the main result, and the files in it, which are not needed any more once all results are there.
    """
    named = [part for part in waiting if part.target is not None]
    if not spent and len(named) < 2 and not any(part.folder for part in named):  # one step by itself
        yield
        return
    by_folder = {}
    for part in named:
        by_folder.setdefault(part.target.parent, []).append(_move(part))
    name, (main, *others) = _JOURNAL.format(secrets.token_hex(6)), by_folder or [spent[0].parent]
    with contextlib.ExitStack() as held:
        for folder in (*others, main):
            entry = {"commit": os.path.relpath(main / name, folder), "moves": by_folder.get(folder, [])}
            if folder is main:
                entry |= {"others": [os.path.relpath(other / name, main) for other in others], "spent": None}
                if spent:
                    entry["spent"] = [spent[0].name, spent[1]]
            _write(folder / name, entry, held)
            # After a failure the main one goes first, since the last callback comes first.
            held.callback(
                _remove, folder / name
            )
        _settle(by_folder)
        try:
            yield
        except KeyboardInterrupt:  # of which part has appeared already
            with contextlib.suppress(OSError, OutputError):
                _carry_out(main / name)
            raise
        if spent:
            _remove_spent(*spent)
        _settle(by_folder)
        for other in others:  # as long as the main one is there, they are to be gone on with
            _remove(other / name)


def sweep(folder):
    """Bring to its end what killed runs have left in `folder`: results that were to appear together, temporary files
    and folders.

    A writer that lives holds a lock on its files, on this machine at least; a file that cannot be locked stays.
    """
    left = [*Path(folder).glob(parts.PART.format(_ANY))]  # before the journals: what these do not speak of has none
    spoken_of = set()
    for path in Path(folder).glob(_JOURNAL.format(_ANY)):
        if _NAMED.fullmatch(path.name) and not path.is_symlink():
            _finish(path)
            spoken_of |= {move["part"] for move in (_read(path) or {"moves": []})["moves"]}
    for part in left:
        if part.name not in spoken_of and not part.is_symlink():
            with contextlib.suppress(OSError):
                _discard(part)


def _move(part):
    """What is to be done with a part, ready for JSON."""
    made = os.stat(part.name).st_ino
    return {
        "part": part.name.name,
        "name": part.target.name,
        "inode": made,
        "replace": bool(part.replaces),
        "folder": part.folder,
    }


def _write(path, entry, held):
    """Have a journal appear whole, locked as long as `held` is open."""
    part = parts.Part(path, False)
    try:
        part.fill(lambda file: file.write(json.dumps(entry).encode()))
        if not locks.EXIST:
            part.file.close()  # Windows renames no open file
        os.rename(part.name, path)
    except BaseException:
        part.close()
        raise
    held.callback(part.close)


def _read(path):
    """Content of a journal; None where there is none, or none of ours."""
    try:
        entry = json.loads(path.read_bytes())
        moves = [*entry["moves"]]
        for move in moves:
            own = os.path.basename(move["name"]) == move["name"] not in ("", os.curdir, os.pardir)
            if not own or not _PART.fullmatch(move["part"]) or not {"inode", "replace", "folder"} <= move.keys():
                return None
        others = [os.path.basename(other) == path.name for other in entry.get("others", ())]
        folder, names = entry.get("spent") or (".x.tdc-work", [])
        inside = [os.path.basename(name) == name for name in names]
        usual = all(others) and all(inside) and _WORK.fullmatch(folder) and os.path.basename(folder) == folder
        return entry if usual and isinstance(entry["commit"], str) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _finish(path):
    """Do what a journal says, unless its writer lives."""
    with contextlib.suppress(OSError, OutputError), open(path, "r+b") as file:
        if locks.lock(file, wait=False):
            _carry_out(path, _finish)


def _carry_out(path, further=None):
    """Do what a journal says, and remove it; one that something stands in the way of stays.

    Parameters
    ----------
    path : Path
    further : callable
        Does what the journals of other folders say; None: this function.
    """
    entry, folder = _read(path), path.parent
    if entry is None:
        return
    if not (folder / entry["commit"]).exists():
        for move in entry["moves"]:
            with contextlib.suppress(FileNotFoundError):
                _discard(folder / move["part"])
        path.unlink()
        return
    others = [folder / other for other in entry.get("others", ())]
    for other in others:
        (further or _carry_out)(other)
    for move in reversed(entry["moves"]):
        _do(folder / move["part"], folder / move["name"], move)
    if entry.get("spent"):
        _remove_spent(folder / entry["spent"][0], entry["spent"][1])
    if not any(other.exists() for other in others):
        _settle([folder])
        path.unlink()


def _do(part, target, move):
    """Give a part its name, as far as that is still to be done."""
    new = os.path.lexists(part) and os.stat(part).st_ino == move["inode"]
    if not move["folder"]:
        if new:
            with contextlib.suppress(FileExistsError):  # another run's, or its own other name
                parts.name_file(part, target, move["replace"])
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
        return
    if new:
        if target.exists():
            parts.check_own(target)
        parts.name_folder(part, target)
    for old in (part, parts.old_name(part)):  # which was in this place before
        if old.exists():
            contents.remove(old, target)


def _discard(part):
    """Remove a temporary file or folder, unless its writer lives."""
    if part.is_dir():
        with locks.locked_folder(part, wait=False) as ours:
            if ours:
                shutil.rmtree(part)
        return
    with open(part, "r+b") as file:
        if locks.lock(file, wait=False):
            part.unlink()


def _remove_spent(folder, names):
    """Remove files that are not needed any more, and their folder if nothing else is in it."""
    if folder.is_symlink():
        return
    with contextlib.suppress(OSError):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                (folder / name).unlink()
        folder.rmdir()


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _settle(folders):
    """Bring the names in folders to the disk, where the system can."""
    for folder in folders:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
