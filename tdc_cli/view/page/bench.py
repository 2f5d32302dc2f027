"""The report of an experiment: its tables and figures on one page."""

from collections import Counter
from dataclasses import dataclass

from .pictures import data_uri
from .render import render


@dataclass(frozen=True)
class Table:
    """A table of an experiment.

    Attributes
    ----------
    name : str
        Of its file, without an extension.
    title : str
    head : tuple of str
    rows : tuple of tuple of str
        As many fields each as `head`.
    best : frozenset of (row, field)
        What is marked as the best of its column.
    notes : tuple of str
        Sentences below.
    """

    name: str
    title: str
    head: tuple
    rows: tuple
    best: frozenset = frozenset()
    notes: tuple = ()


@dataclass(frozen=True)
class Figure:
    """A figure of an experiment.

    Attributes
    ----------
    name : str
        Of its file, without an extension.
    title : str
        What it shows; also read to those who do not see it.
    png : bytes
    """

    name: str
    title: str
    png: bytes


def bench(suite, summary, statuses, settings, tables, figures, failures):
    """Page of an experiment.

    Parameters
    ----------
    suite, summary : str
    statuses : iterable of str
        Of the cells.
    settings : dict of str to str
        In words.
    tables : sequence of Table
    figures : sequence of Figure
    failures : sequence of (str, str)
        Cells that failed, and why.

    Returns
    -------
    str
    """
    return render(
        "bench.html",
        (),
        suite=suite,
        summary=summary,
        counts=Counter(statuses),
        settings=settings,
        tables=tables,
        figures=[(figure, data_uri(figure.png, "png")) for figure in figures],
        failures=failures,
    )
