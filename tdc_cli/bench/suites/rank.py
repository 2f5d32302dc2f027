"""The rank that is inferred, figure rank of the paper.

Protocol: the problems of suite `synthetic`; the paper shows the mixture with shifted means, here the two other kinds
are run too. `datc` counts the components that the data support, the most frequent number over its draws; `fbcp` and
`brtf` those that their relevance determination has left. A problem whose weakest true component cannot be detected
(`tdc_cli/bench/detectable.py`) is set aside in the table: no method can be asked to find it.
"""

from ...view.page import Figure, Table
from .. import figures as drawing
from .. import tensors
from ..cells import Choice
from ..detectable import detectable
from ..tables import MISSING, Column, by_method, mean

DEFAULTS = Choice(methods=("datc", "fbcp", "brtf"), ratios=(0.7, 0.8, 0.9), seeds=5)
KINDS = ("mixture-shifted", "sparse", "zero")
SHOWN = KINDS[0]


def cells(choice):
    """Seed by seed, kind by kind."""
    for seed in range(choice.seeds):
        for kind in KINDS:
            for method in choice.methods:
                yield from tensors.cells(method, kind, choice, seed)


seconds = tensors.seconds


def run(cell, data):
    """Complete a problem and judge whether its rank can be found."""
    problem = tensors.draw(cell)
    done, found = tensors.completed(cell, problem)
    names = ("rre", "rank")
    return done.outcome({name: found[name] for name in names} | {"detectable": float(detectable(problem))})


def tables(records):
    """For each method, how often the rank is right."""
    rows = []
    for name, own in by_method(records).items():
        for kind in KINDS:
            for rank in tensors.RANKS:
                for column in tensors.columns(own, kind=kind, rank=rank):
                    rows.append((name, kind, str(rank), column.title, *_row(column.of(own), rank)))
    head = ("method", "E", "rank", "missing", "runs", "set aside", "right", "ranks found where wrong")
    return [
        Table(
            "rank", "Rank found, runs set aside where the weakest true component cannot be detected", head, tuple(rows)
        )
    ]


def _row(records, rank):
    """Runs, runs set aside, right ones, and what was found in the others."""
    done = [each for each in records if each["metrics"].get("rank") is not None]
    seen = [each for each in done if each["metrics"]["detectable"]]
    wrong = [each["metrics"]["rank"] for each in seen if each["metrics"]["rank"] != rank]
    failed = f" ({len(records) - len(done)} failed)" if len(done) < len(records) else ""
    return (str(len(records)) + failed, str(len(done) - len(seen)), f"{len(seen) - len(wrong)} of {len(seen)}",
            ", ".join(str(each) for each in sorted(wrong)) or MISSING)  # fmt: skip


def figures(records):
    """Mean rank found, bars beside the true one."""
    groups = by_method(records)
    ratios = sorted({each["ratio"] for each in records})
    with drawing.canvas(1, len(tensors.RANKS), height=2.2) as (figure, axes):
        for one, rank in zip(axes[0], tensors.RANKS):
            columns = [Column("", {"kind": SHOWN, "rank": rank, "ratio": ratio}) for ratio in ratios]
            means = {name: [mean(column.of(own), "rank") for column in columns] for name, own in groups.items()}
            heights = {name: [each.value for each in row] for name, row in means.items()}
            errors = {name: [each.error for each in row] for name, row in means.items()}
            drawing.grouped_bars(one, [f"{ratio:.0%}" for ratio in ratios], heights, errors)
            one.axhline(rank, color="black", linestyle="--", linewidth=0.8)
            one.set(title=f"rank {rank}", xlabel="missing")
        axes[0, 0].set_ylabel("rank found")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=max(1, len(groups)))
        title = "Rank found with the shifted mixture, means and standard errors over seeds; dashed: the true rank"
        return [Figure("rank", title, drawing.png(figure))]
