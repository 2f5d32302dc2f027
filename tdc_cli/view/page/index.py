"""The index of many runs: thumbnails and figures, sorted as the reader likes."""

import os
from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote

from ...names import MEASURES
from .pictures import data_uri
from .render import render


@dataclass(frozen=True)
class Entry:
    """A line of the index.

    Attributes
    ----------
    name : str
        Path of the picture as the reader knows it.
    status : str
        One word, such as ``done`` or ``failed``.
    page : str or None
        Path of the picture's own page relative to the index, with ``/`` between folders; None where there is none.
    report : dict or None
        Report of the run, as of `Report.to_dict`.
    thumbnail : bytes or None
        JPEG; see `thumbnail`.
    error : str or None
        What went wrong.
    """

    name: str
    status: str
    page: str | None = None
    report: dict | None = None
    thumbnail: bytes | None = None
    error: str | None = None


@dataclass(frozen=True)
class Column:
    """A figure of every report.

    Attributes
    ----------
    title : str
    where : tuple of str
        Keys that lead to it in a report; the length of a list is its figure.
    digits : int
        After the point.
    share : bool
        Whether it is shown as a percentage.
    averaged : bool
        Whether its mean says anything.
    """

    title: str
    where: tuple
    digits: int = 0
    share: bool = False
    averaged: bool = True


COLUMNS = (
    Column("Missing", ("missing", "ratio"), share=True),
    *(Column(m.title + m.unit.replace(" ", ", "), ("metrics", "all", m.key), m.digits) for m in MEASURES),
    Column("PSNR of missing, dB", ("metrics", "missing", "psnr"), 2),
    Column("Mean uncertainty", ("uncertainty", "mean_sd"), 2),
    Column("In 90 % interval", ("uncertainty", "coverage90"), share=True),
    Column("Rank", ("rank", "value")),
    Column("Warnings", ("warnings",), averaged=False),
    Column("Time, s", ("timing", "total"), 1),
)


def index(entries, *, title="Completed pictures"):
    """Page with a line for each of `entries`; a column that no report fills is left out.

    Parameters
    ----------
    entries : sequence of Entry
        In the order of the page as it opens.
    title : str

    Returns
    -------
    str
    """
    figures = [[_figure(entry.report, column.where) for column in COLUMNS] for entry in entries]
    filled = [i for i in range(len(COLUMNS)) if any(row[i] is not None for row in figures)]
    known = [[row[i] for row in figures if row[i] is not None] for i in filled]
    return render(
        "index.html",
        ("sort.js",),
        title=title,
        counts=Counter(entry.status for entry in entries),
        columns=[COLUMNS[i] for i in filled],
        means=[sum(values) / len(values) if COLUMNS[i].averaged else None for i, values in zip(filled, known)],
        rows=[(entry, [row[i] for i in filled]) for entry, row in zip(entries, figures)],
        data_uri=data_uri,
        link=lambda path: quote(os.fsencode(path)),
    )


def _figure(report, where):
    """Number at the path `where` of a report, the length of a list, or None."""
    value = report
    for key in where:
        value = value and value[key]
    return len(value) if isinstance(value, list) else value
