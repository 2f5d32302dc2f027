"""What came of a batch, as JSON and as a table.

The layout is fixed by `SCHEMA` and versioned by its name, as that of reports.
"""

import csv
import io
import platform
from dataclasses import dataclass

from .. import __version__
from ..names import MEASURES, cell
from . import report

VERSION = "tdc-batch/1"
STATUSES = ("done", "skipped", "failed", "not_run")

_COUNT = {"type": "integer", "minimum": 0}


def _object(properties, **more):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


_REPORT = {key: value for key, value in report.SCHEMA.items() if not key.startswith("$")}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": VERSION,
    "title": "Summary of a batch of tdc",
    **_object(
        {
            "schema": {"const": VERSION},
            "tool": _object({"name": {"const": "tdc"}, "version": {"type": "string"}}),
            "command": {"type": "array", "items": {"type": "string"}, "description": "arguments as given"},
            "seed": _COUNT,
            "files": {
                "type": "array",
                "items": _object(
                    {
                        "path": {"type": "string", "description": "the picture that was read"},
                        "status": {
                            "enum": list(STATUSES),
                            "description": "skipped: done before; not_run: after a failure, with fail_fast",
                        },
                        "error": {"type": ["string", "null"]},
                        "report": {
                            "anyOf": [{"type": "null"}, {"$ref": "#/$defs/report"}],
                            "description": "of this run, or of the earlier one whose report file was found beside a "
                                           "skipped picture",
                        },
                    }
                ),
            },
            "counts": _object(
                {
                    "files": _COUNT,
                    **dict.fromkeys(STATUSES, _COUNT),
                    "ignored": _object(
                        dict.fromkeys(("hidden", "other", "masks", "folders"), _COUNT),
                        description="passed over: hidden files, other kinds of files, masks beside their pictures, "
                                    "folders not entered",
                    ),
                }
            ),
            "seconds": {"type": "number", "minimum": 0},
            "environment": _object(
                {
                    "python": {"type": "string"},
                    "jobs": {"type": "integer", "minimum": 1},
                    "threads": {"type": "integer", "minimum": 1},
                },
                description="threads of each job",
            ),
        }
    ),
    "$defs": {"report": _REPORT},
}

# Column of the table -> path into the report.
_COLUMNS = {
    "output": ("outputs", "image"),
    "method": ("method", "name"),
    "missing_ratio": ("missing", "ratio"),
    **{m.key: ("metrics", "all", m.key) for m in MEASURES},
    "psnr_missing": ("metrics", "missing", "psnr"),
    "mean_sd": ("uncertainty", "mean_sd"),
    "seconds": ("timing", "total"),
}


@dataclass(frozen=True)
class Record:
    """What came of one file.

    Attributes
    ----------
    path : str
    status : str
        One of `STATUSES`.
    error : str or None
        One line.
    report : dict or None
        As `report.Report.to_dict` makes it.
    trace : str or None
        Traceback of an unexpected error; not part of the summary.
    thumbnail : bytes or None
        For the index of pages; not part of the summary.
    lacks : tuple of str
        Further outputs that a skipped file has not; not part of the summary.
    """

    path: str
    status: str
    error: str | None = None
    report: dict | None = None
    trace: str | None = None
    thumbnail: bytes | None = None
    lacks: tuple = ()


@dataclass(frozen=True)
class Summary:
    """What came of all files; the fields are those of `SCHEMA`."""

    command: list
    seed: int
    records: tuple
    ignored: dict
    seconds: float
    jobs: int
    threads: int

    def count(self, status):
        """Number of files of that status."""
        return sum(record.status == status for record in self.records)

    def to_json(self):
        """JSON text, two spaces of indent, with a final newline."""
        values = {
            "schema": VERSION,
            "tool": {"name": "tdc", "version": __version__},
            "command": list(self.command),
            "seed": self.seed,
            "files": [{"path": r.path, "status": r.status, "error": r.error, "report": r.report} for r in self.records],
            "counts": {
                "files": len(self.records),
                **{status: self.count(status) for status in STATUSES},
                "ignored": self.ignored,
            },
            "seconds": self.seconds,
            "environment": {"python": platform.python_version(), "jobs": self.jobs, "threads": self.threads},
        }
        return report.dumps(values)

    def to_csv(self):
        """Table as text, a line a file; what is not known is empty."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["path", "status", "error", "width", "height", *_COLUMNS, "warnings"])
        for record in self.records:
            made = record.report or {}
            height, width = made["input"]["shape"][:2] if made else (None, None)
            figures = {name: _at(made, way) for name, way in _COLUMNS.items()}
            row = [
                record.path,
                record.status,
                record.error,
                width,
                height,
                *figures.values(),
                "; ".join(made.get("warnings", ())),
            ]
            table.writerow(map(cell, row))
        return text.getvalue()


def _at(values, way):
    for key in way:
        values = values.get(key) if values else None
    return values
