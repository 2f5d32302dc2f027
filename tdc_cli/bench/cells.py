"""The nouns of an experiment: what is chosen, a cell of the grid, what comes of it, and its record."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

# A cell that failed is the paper's dash.
STATUSES = ("done", "failed", "timeout")
_TEXT, _NUMBER = (str, type(None)), (int, float, type(None))
# Field of a record -> its types.
_FIELDS = {
    "suite": str,
    "method": str,
    "data": str,
    "ratio": _NUMBER,
    "seed": int,
    "problem": dict,
    "parameters": dict,
    "status": str,
    "error": _TEXT,
    "metrics": dict,
    "seconds": _NUMBER,
    "memory": _NUMBER,
    "details": dict,
    "arrays": _TEXT,
}


@dataclass(frozen=True)
class Choice:
    """What of a suite is run.

    Attributes
    ----------
    methods : tuple of str
        Names of the registry of methods.
    ratios : tuple of float
        Shares that are missing.
    seeds : int
        Seeds 0, 1, ... of every combination; 0 where the suite leaves no choice.
    data : Path or None
        Folder of the user's media.
    """

    methods: tuple = ()
    ratios: tuple = ()
    seeds: int = 0
    data: Path | None = None


@dataclass(frozen=True)
class Cell:
    """One run: a method on a problem.

    Attributes
    ----------
    method : str
        Name of the registry of methods.
    data : str
        What is completed, in the reader's words; with `problem`, `ratio` and `seed` it says all about it.
    ratio : float or None
        Share that is missing; None where something else decides it.
    seed : int
        Of the problem and of the method, which have streams of their own.
    problem : dict
        What else the suite has to know of the data, JSON-ready.
    parameters : dict
        Of the method, where they differ from its defaults, JSON-ready.
    """

    method: str
    data: str
    ratio: float | None
    seed: int
    problem: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)

    @property
    def key(self):
        """What tells the cells of a suite apart, as text."""
        return json.dumps(
            [self.method, self.data, self.ratio, self.seed, self.problem, self.parameters], sort_keys=True
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a cell.

    Attributes
    ----------
    metrics : dict of str to float or None
        Figures of the tables.
    seconds : float
        That the method took, compilation apart.
    memory : int or None
        Bytes that the method took at its peak beyond what the process had before; None where the system does not tell.
    details : dict
        What figures need besides, JSON-ready.
    arrays : dict of str to ndarray
        Pictures to show; kept in a file of their own.
    """

    metrics: dict
    seconds: float
    memory: int | None = None
    details: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)


def record(suite, cell, outcome=None, *, status="done", error=None):
    """JSON-ready dict of a cell and what came of it; what is not finite is None.

    Parameters
    ----------
    suite : str
    cell : Cell
    outcome : Outcome or None
        None where the cell failed.
    status : str
        One of `STATUSES`.
    error : str or None
    """
    if outcome is None:
        outcome = Outcome({}, math.nan)
    return _finite(
        {
            "suite": suite,
            "method": cell.method,
            "data": cell.data,
            "ratio": cell.ratio,
            "seed": cell.seed,
            "problem": cell.problem,
            "parameters": cell.parameters,
            "status": status,
            "error": error,
            "metrics": outcome.metrics,
            "seconds": outcome.seconds,
            "memory": outcome.memory,
            "details": outcome.details,
            "arrays": None,
        }
    )


def cell_of(kept):
    """Cell that a record belongs to."""
    return Cell(kept["method"], kept["data"], kept["ratio"], kept["seed"], kept["problem"], kept["parameters"])


def is_record(kept):
    """Whether something read from a file has what `record` makes, each of its kind."""
    if not isinstance(kept, dict) or not all(isinstance(kept.get(name, ...), kinds) for name, kinds in _FIELDS.items()):
        return False
    return kept["status"] in STATUSES and all(isinstance(figure, _NUMBER) for figure in kept["metrics"].values())


def _finite(value):
    """`value` with None in place of every float that is not finite."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
