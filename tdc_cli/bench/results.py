"""The folder of an experiment: its records, kept after every cell so that a run can go on where it stopped, and its
tables and figures.
"""

import contextlib
import csv
import hashlib
import io
import json
import platform
from pathlib import Path

import numpy as np

from .. import __version__
from ..errors import ConfigError, InputError, OutputError
from ..media.files import hindrance, make_folder, write_bytes, write_text
from ..media.journal import sweep
from ..media.locks import sole_use
from ..names import cell
from ..run.report import dumps
from .cells import cell_of, is_record

VERSION = "tdc-bench/1"
NAME = "results.json"
ARRAYS = "arrays"  # subfolder
_DAMAGED = "no results of tdc bench, or damaged; give another folder"
# What a folder's records have in common -> the option that decides it.
OPTIONS = {
    "suite": "the suite",
    "methods": "--methods",
    "ratios": "--ratios",
    "seeds": "--seeds",
    "data": "--data",
    "threads": "--threads",
    "timeout": "--timeout",
    "version": "the version of tdc",
}


class Results:
    """Records of a run in the order of its cells.

    Parameters
    ----------
    folder : Path
    cells : sequence of Cell
    settings : dict
        Values of `OPTIONS`.
    kept : sequence of dict
        Records of an earlier run with the same settings.
    """

    def __init__(self, folder, cells, settings, kept=()):
        self.folder = Path(folder)
        self.settings = settings
        self._place = {cell.key: i for i, cell in enumerate(cells)}
        self._records = {key: each for each in kept if (key := cell_of(each).key) in self._place}

    def __contains__(self, key):
        return key in self._records

    @property
    def records(self):
        """Records in the order of the cells."""
        return [self._records[key] for key in sorted(self._records, key=self._place.__getitem__)]

    def add(self, record, arrays):
        """Keep a record and its arrays on the disk.

        Raises
        ------
        OutputError
        """
        key = cell_of(record).key
        if arrays:
            name = f"{ARRAYS}/{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            make_folder(self.folder / ARRAYS)
            write_bytes(self.folder / name, buffer.getvalue(), replace=True)
            record = record | {"arrays": name}
        self._records[key] = record
        self.save()

    def save(self):
        """Write all records, so that the file holds what it held before or all of them."""
        write_text(self.folder / NAME, self.to_json(), replace=True)

    def to_json(self):
        """Text of the file of results."""
        values = {
            "schema": VERSION,
            "tool": {"name": "tdc", "version": __version__},
            "settings": self.settings,
            "environment": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "machine": platform.machine(),
            },
            "records": self.records,
        }
        return dumps(values, indent=1)

    def to_csv(self):
        """A line for each record; parameters as JSON, a column for every metric."""
        records = self.records
        metrics = list(dict.fromkeys(name for each in records for name in each["metrics"]))
        single = ["suite", "method", "data", "ratio", "seed", "parameters", "status", "error", "seconds", "memory"]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*single, *metrics])
        for each in records:
            fields = [json.dumps(each[name]) if name == "parameters" else each[name] for name in single]
            writer.writerow(map(cell, [*fields, *(each["metrics"].get(name) for name in metrics)]))
        return stream.getvalue()


@contextlib.contextmanager
def begin(folder, cells, settings, *, resume=False):
    """Within the block, results of a folder, empty or with what an earlier run of the same settings has left; no other
    run gets it.

    Parameters
    ----------
    folder : Path
        Made where it is missing.
    cells : sequence of Cell
    settings : dict
        Values of `OPTIONS`.
    resume : bool
        Whether the folder may hold something.

    Yields
    ------
    Results

    Raises
    ------
    ConfigError
        The folder holds results of other settings.
    InputError
        Its results cannot be read.
    OutputError
        The folder holds something and is not to be gone on with, or cannot be made, or another run is at work in it.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file; give a folder for the results")
    in_the_way = hindrance(folder / NAME)
    if in_the_way:
        raise OutputError(f"{folder}: {in_the_way}")
    make_folder(folder)
    with sole_use(folder):
        sweep(folder)
        kept = ()
        if any(folder.iterdir()):
            if not resume:
                raise OutputError(
                    f"{folder}: is not empty; give --resume to go on with the run in it, or another folder"
                )
            kept = _earlier(folder, settings)
        results = Results(folder, cells, settings, kept)
        results.save()
        yield results


def _earlier(folder, settings):
    """Records in a folder; ConfigError if they belong to other settings."""
    path = folder / NAME
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        schema, before, records = held["schema"], dict(held["settings"]), list(held["records"])
    except FileNotFoundError:
        raise InputError(f"{folder}: has no {NAME}, so it is no run to go on with; give another folder") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give another folder") from error
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path}: {_DAMAGED}") from error
    if schema != VERSION:
        raise InputError(f"{path}: has the layout {schema}, not {VERSION}; give another folder")
    for name, what in OPTIONS.items():
        if before.get(name) != settings[name]:
            then, now = (json.dumps(each) for each in (before.get(name), settings[name]))
            raise ConfigError(
                f"{folder}: was begun with {then}, not {now}, for {what}; give the same, or another folder"
            )
    if not all(map(is_record, records)):
        raise InputError(f"{path}: {_DAMAGED}")
    return records
