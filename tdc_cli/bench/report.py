"""What an experiment leaves beside its records: a table of them, the suite's tables and figures, and one page with
everything.
"""

from ..media.files import write_bytes, write_text
from ..view import page
from .results import OPTIONS
from .tables import markdown, name_of

CSV, TABLES, PAGE = "results.csv", "tables.md", "report.html"


def write(suite, results):
    """Write the files; those of an earlier call are replaced.

    Parameters
    ----------
    suite : experiment.Suite
    results : results.Results

    Returns
    -------
    tuple of page.Table

    Raises
    ------
    OutputError
    """
    module, records, folder = suite.load(), results.records, results.folder
    shown = [each | {"arrays": folder / each["arrays"]} if each["arrays"] else each for each in records]
    tables, figures = [list(filter(None, made)) for made in (module.tables(records), module.figures(shown))]
    write_text(folder / CSV, results.to_csv(), replace=True)
    write_text(folder / TABLES, "\n".join(map(markdown, tables)), replace=True)
    for figure in figures:
        write_bytes(folder / f"{figure.name}.png", figure.png, replace=True)
    failures = [(_where(each), each["error"]) for each in records if each["status"] != "done"]
    settings = {what: _in_words(results.settings[name]) for name, what in OPTIONS.items()}
    text = page.bench(
        suite.name, suite.summary, [each["status"] for each in records], settings, tables, figures, failures
    )
    write_text(folder / PAGE, text, replace=True)
    return tuple(tables)


def _where(record):
    """A cell in words."""
    ratio = "" if record["ratio"] is None else f", {record['ratio']:.0%} missing"
    return f"{name_of(record)}: {record['data']}{ratio}, seed {record['seed']}"


def _in_words(value):
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "the suite's own"
    return str(value or "the suite's own")
