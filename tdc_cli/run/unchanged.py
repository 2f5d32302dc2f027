"""Whether the files that a run reads are still what they were when it was planned."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..names import STANDARD

# A folder with more files than this is known by its own time alone: looking at a million files twice would take minutes.
MOST_FILES = 100_000


@dataclass(frozen=True)
class Snapshot:
    """What the system says of files: identity, size, and times of the content and of the entry.

    Attributes
    ----------
    seen : dict of Path to tuple
    """

    seen: dict

    @classmethod
    def of(cls, paths):
        """Of files and of the files in folders; what is standard input or is not there has none."""
        seen = {}
        for path in paths:
            if path is None or str(path) == STANDARD or not os.path.exists(path):
                continue
            seen[Path(path)] = _identity(path)
            if os.path.isdir(path):
                entries = list(os.scandir(path))
                if len(entries) <= MOST_FILES:
                    seen |= {Path(entry.path): _identity(entry.path) for entry in entries}
        return cls(seen)

    def check(self):
        """InputError where a file has been changed, replaced or removed since."""
        for path, before in self.seen.items():
            if _identity(path) != before:
                raise InputError(f"{path}: was changed while it was worked on, so that nothing is written; run again when it is left alone")


def _identity(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    times = (found.st_mtime_ns,) if os.path.isdir(path) else (found.st_mtime_ns, found.st_ctime_ns)
    return found.st_dev, found.st_ino, found.st_size, *times
