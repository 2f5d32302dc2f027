"""Whether the files that a run reads are still what they were when it was planned."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..names import STANDARD

# A folder with more files than this is known by its own time alone: looking at a million files twice would take
# minutes.
MOST_FILES = 100_000


@dataclass(frozen=True)
class Snapshot:
    """What the system says of files: identity, size, and times of the content and of the entry.

    Attributes
    ----------
    seen : dict of Path to tuple
    identities : frozenset of (int, int)
        Device and inode of them all, and of further files that are to be spared.
    """

    seen: dict
    identities: frozenset

    @classmethod
    def of(cls, paths, further=()):
        """Of files and of the files in folders; what is standard input or is not there has none.

        Parameters
        ----------
        paths : iterable of path-like or None
        further : iterable of path-like
            Files that have been read to the end, which may change but are to be spared.
        """
        seen = {}
        for path in paths:
            if path is None or str(path) == STANDARD or not os.path.exists(path):
                continue
            seen[Path(path)] = _identity(path)
            if os.path.isdir(path):
                entries = list(os.scandir(path))
                if len(entries) <= MOST_FILES:
                    seen |= {Path(entry.path): _identity(entry.path) for entry in entries}
        known = [found for found in (*seen.values(), *map(_identity, further)) if found is not None]
        return cls(seen, frozenset(found[:2] for found in known))

    def check(self):
        """InputError where a file has been changed, replaced or removed since."""
        for path, before in self.seen.items():
            if _identity(path) != before:
                raise InputError(
                    f"{path}: was changed while it was worked on, so that nothing is written; run again when it is "
                    "left alone"
                )


def _identity(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    times = (found.st_mtime_ns,) if os.path.isdir(path) else (found.st_mtime_ns, found.st_ctime_ns)
    return found.st_dev, found.st_ino, found.st_size, *times
