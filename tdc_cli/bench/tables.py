"""From records to tables: means over seeds with their standard errors, the paper's figures beside, and who is ahead."""

import math
from collections import defaultdict
from dataclasses import dataclass, field

from ..view.page import Table

MISSING = "\N{EN DASH}"


@dataclass(frozen=True)
class Column:
    """A group of cells that a table compares the methods on.

    Attributes
    ----------
    title : str
    where : dict
        Values that the records have, of the record itself or of its problem: ``{"ratio": 0.7, "kind": "zero"}``.
    """

    title: str
    where: dict = field(default_factory=dict)

    def of(self, records):
        """The records of the group."""
        return [
            each for each in records if all(each.get(k, each["problem"].get(k)) == v for k, v in self.where.items())
        ]


@dataclass(frozen=True)
class Mean:
    """Mean of a figure over seeds.

    Attributes
    ----------
    by_seed : dict of int to float
        Mean over the data of each seed.
    failed : int
        Cells without the figure.
    """

    by_seed: dict
    failed: int = 0

    @property
    def value(self):
        """The mean, or None where there is nothing."""
        return sum(self.by_seed.values()) / len(self.by_seed) if self.by_seed else None

    @property
    def error(self):
        """Standard error of the mean, or None of fewer than two seeds."""
        return standard_error(list(self.by_seed.values()))

    def text(self, digits):
        """``0.0041 ± 0.0003``, with the number of cells that failed."""
        if self.value is None:
            return MISSING
        error = f" ± {self.error:.{digits}f}" if self.error is not None else ""
        return f"{self.value:.{digits}f}{error}" + (f" ({self.failed} failed)" if self.failed else "")


def standard_error(values):
    """Standard error of the mean of independent values; None of fewer than two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def mean(records, metric):
    """Mean of a metric, or of ``seconds`` or ``memory``, over records of one method.

    Returns
    -------
    Mean
    """
    found, failed = defaultdict(list), 0
    for each in records:
        value = each["metrics"].get(metric, each.get(metric))
        if value is None:
            failed += 1
        else:
            found[each["seed"]].append(value)
    return Mean({seed: sum(values) / len(values) for seed, values in sorted(found.items())}, failed)


def name_of(record):
    """Method of a record as tables name it: with the parameters that differ from its defaults."""
    given = ", ".join(f"{key}={value}" for key, value in record["parameters"].items())
    return f"{record['method']} ({given})" if given else record["method"]


def by_method(records):
    """Name of a method -> its records, in the order in which they come."""
    groups = defaultdict(list)
    for each in records:
        groups[name_of(each)].append(each)
    return dict(groups)


def comparison(name, title, records, metric, columns, *, paper=None, higher=False, digits=4, notes=()):
    """A row for each method, three fields for each column: the mean, the paper's figure, and how far the mean lies
    above it.

    Parameters
    ----------
    name : str
        Of the file.
    title : str
    records : sequence of dict
    metric : str
    columns : sequence of Column
    paper : callable or None
        ``paper(record, column)`` is the paper's figure for the method of that record, or None; without it there are no
        such fields.
    higher : bool
        Whether more is better; the best of each column is marked.
    digits : int
    notes : sequence of str

    Returns
    -------
    page.Table
    """
    groups = by_method(records)
    means = {method: [mean(column.of(own), metric) for column in columns] for method, own in groups.items()}
    best = [_best([row[i] for row in means.values()], higher) for i in range(len(columns))]
    head, rows, marked = ["method"], [], set()
    for column in columns:
        head += [column.title, "paper", "difference"] if paper else [column.title]
    for method, row in means.items():
        fields = [method]
        for i, value in enumerate(row):
            if value.value is not None and value.value == best[i]:
                marked.add((len(rows), len(fields)))
            fields.append(value.text(digits))
            if paper:
                figure = paper(groups[method][0], columns[i])
                fields.append(MISSING if figure is None else f"{figure:.{digits}f}")
                gap = None if None in (figure, value.value) else value.value - figure
                fields.append(MISSING if gap is None else f"{gap:+.{digits}f}")
        rows.append(tuple(fields))
    return Table(name, title, tuple(head), tuple(rows), frozenset(marked), tuple(notes))


def _best(means, higher):
    """Best of the values of which no cell failed, or None."""
    values = [each.value for each in means if each.value is not None and not each.failed]
    return (max if higher else min)(values, default=None)


def standing(name, title, records, metric, columns, ours, *, beside=(), higher=False, digits=4):
    """A row for each column: `ours` beside the best competitor, the difference by seeds, and whether it is ahead.

    Ahead: better. Level: not worse by more than one standard error of the mean difference over seeds. Behind: else.

    Parameters
    ----------
    name, title, records, metric, columns, higher, digits
        See `comparison`.
    ours : str
        Method as `name_of` has it.
    beside : sequence of str
        Methods that are no competitors, such as variants of ours.

    Returns
    -------
    page.Table or None
        None without records of ours or of a competitor.
    """
    groups = by_method(records)
    others = [method for method in groups if method != ours and method not in beside]
    if ours not in groups or not others:
        return None
    rows = []
    for column in columns:
        mine = mean(column.of(groups[ours]), metric)
        theirs = {method: mean(column.of(groups[method]), metric) for method in others}
        known = {method: each for method, each in theirs.items() if each.value is not None}
        if mine.value is None or not known:
            rows.append((column.title, mine.text(digits), MISSING, MISSING, MISSING, "behind" if known else MISSING))
            continue
        rival = (max if higher else min)(known, key=lambda method: known[method].value)
        gaps = [
            known[rival].by_seed[seed] - value for seed, value in mine.by_seed.items() if seed in known[rival].by_seed
        ]
        gap = Mean(dict(enumerate(-each if higher else each for each in gaps)))
        rows.append(
            (
                column.title,
                mine.text(digits),
                rival,
                known[rival].text(digits),
                gap.text(digits),
                verdict(gap, mine.failed),
            )
        )
    head = ("", ours, "best competitor", "its figure", "better by", "standing")
    one = len({each["seed"] for each in records}) == 1
    notes = (
        ("One seed, so no standard error: any difference, however small, counts as ahead or behind.",) if one else ()
    )
    return Table(name, title, head, tuple(rows), notes=notes)


def verdict(gap, failed=0):
    """``ahead``, ``level`` or ``behind`` from a `Mean` of how much better ours is."""
    if gap.value is None or failed:
        return "behind"
    if gap.value > 0:
        return "ahead"
    return "level" if gap.value >= -(gap.error or 0.0) else "behind"


def markdown(table):
    """A table in Markdown, what is marked in bold."""
    lines = [f"### {table.title}", "", _row(table.head), "|" + "---|" * len(table.head)]
    for i, fields in enumerate(table.rows):
        lines.append(_row(f"**{text}**" if (i, j) in table.best else text for j, text in enumerate(fields)))
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _row(fields):
    return "| " + " | ".join(str(each).replace("|", "\\|") for each in fields) + " |"
