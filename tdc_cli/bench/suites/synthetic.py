"""Recovery of synthetic tensors, tables performance and effectivenss of the paper.

Protocol: tensors of 30x30x30, CP factors standard normal, weights uniform in [-2, 2], rank 5 and 10, plus a residual E
that is zero, sparse or the mixture with shifted means (`tdc_cli/bench/synth.py`), plus noise of variance .001, of which
70, 80 or 90 % of the entries are missing at random; a new problem for each seed, the same for all methods. Methods run
with their defaults, `tmac` to a tolerance of 1e-12; those that know a noise level are given it. RRE is against the
latent tensor L = X + E, of the estimate as the method returns it.

Methods by the name of the paper: `datc` is Ours, `datc-ne` and `datc-nx` are its variants, run on the shifted mixture
only as in the paper, the second with 6, 10, 20 and 50 Gaussians.

Beside the paper's tables: the floor, the RRE of an oracle that knows X, and E at observed entries, and puts the mean of
E elsewhere; and where E = 0 the root mean squared error of X beside that of least squares with the true rank, started
at the truth.
"""

import numpy as np

from ...model.diagnostics import worst_r_hat
from ...view.page import Figure, Table
from .. import figures as drawing
from .. import paper, tensors
from ..cells import Choice
from ..least_squares import from_the_truth
from ..tables import MISSING, Column, by_method, comparison, mean, standing

DEFAULTS = Choice(
    methods=("datc", "datc-ne", "datc-nx", "falrtc", "halrtc", "rptc-scad", "tmac", "stdc", "tsvd", "fbcp", "brtf"),
    ratios=paper.RATIOS,
    seeds=5,
)
KINDS = {"zero": "E = 0", "sparse": "sparse E", "mixture-shifted": "shifted mixture E"}
OURS = "datc"
VARIANTS = {"datc-nx": [{"components": count} for count in (6, 10, 20, 50)], "datc-ne": [{}]}
VARIED = "mixture-shifted"  # the kind that the variants are run on
BELOW_THE_FLOOR = (
    "What E is at a missing entry nobody can know: no method can be expected below the oracle's floor, which has a "
    "table further down. Where the paper's figure is lower, its problems were others than its text describes."
)


def cells(choice):
    """Seed by seed, kind by kind."""
    for seed in range(choice.seeds):
        for kind in KINDS:
            for method in choice.methods:
                if kind == VARIED or method not in VARIANTS:
                    yield from tensors.cells(method, kind, choice, seed, VARIANTS.get(method, [{}]))


seconds = tensors.seconds


def run(cell, data):
    """Complete a problem; ours is also set beside least squares where there is no residual."""
    problem = tensors.draw(cell)
    done, found = tensors.completed(cell, problem)
    found |= _diagnostics(done.completion)
    if cell.method == OURS and problem.kind == "zero":
        found["rmse"] = _rms(done.completion.mean - problem.low_rank)
        found["rmse_least_squares"] = _rms(from_the_truth(problem) - problem.low_rank)
        found["rmse_over_least_squares"] = found["rmse"] / found["rmse_least_squares"]
    return done.outcome(found)


def _diagnostics(completion):
    """Worst R-hat, least effective sample size, and whether a mixture was chosen; nothing of methods that do not
    sample.
    """
    if completion.diagnostics is None or not completion.diagnostics.get("r_hat"):
        return {}
    sizes = [value for value in completion.diagnostics["ess"].values() if value is not None]
    return {
        "r_hat": worst_r_hat(completion.diagnostics["r_hat"])[1],
        "ess": min(sizes, default=None),
        "mixture": float(completion.mixture is not None),
    }


def _rms(values):
    return float(np.sqrt(np.mean(values**2)))


def figure_of_the_paper(record, column):
    """The paper's RRE for the method of a record at the kind, rank and ratio of a column, or None."""
    rows = paper.PERFORMANCE.get((column.where["kind"], column.where["rank"]), {})
    return paper.at(rows.get(record["method"]), paper.RATIOS, column.where["ratio"])


def tables(records):
    """The paper's tables, who is ahead, the floor and least squares."""
    made = []
    for kind, words in KINDS.items():
        chosen = [each for each in records if each["problem"]["kind"] == kind]
        for rank in tensors.RANKS:
            columns = tensors.columns(chosen, kind=kind, rank=rank)
            methods = [each for each in chosen if each["method"] not in VARIANTS]
            if columns:
                made.append(
                    comparison(
                        f"performance-{kind}-{rank}",
                        f"RRE, {words}, rank {rank}",
                        methods,
                        "rre",
                        columns,
                        paper=figure_of_the_paper,
                        notes=() if kind == "zero" else (BELOW_THE_FLOOR,),
                    )
                )
    variants = [each for each in records if each["problem"]["kind"] == VARIED and each["method"] in (OURS, *VARIANTS)]
    if any(each["method"] in VARIANTS for each in variants):
        for rank in tensors.RANKS:
            columns = tensors.columns(variants, kind=VARIED, rank=rank)
            title = f"RRE of the model and its parts, {KINDS[VARIED]}, rank {rank}"
            made.append(comparison(f"effectiveness-{rank}", title, variants, "rre", columns, paper=figure_of_the_paper))
    rows = [
        Column(f"{column.where['kind']}, rank {rank}, {column.title}", column.where)
        for kind in KINDS
        for rank in tensors.RANKS
        for column in tensors.columns(records, kind=kind, rank=rank)
    ]
    made.append(
        standing(
            "standing", "RRE of ours beside the best competitor", records, "rre", rows, OURS, beside=_variants(records)
        )
    )
    made += [_floor(records, rows), _least_squares(records, rows), _runs(records, rows)]
    return made


def _variants(records):
    """Names of the variants of ours."""
    return [name for name, own in by_method(records).items() if own[0]["method"] in VARIANTS]


def _floor(records, rows):
    """RRE of ours over the oracle's."""
    ours = [each for each in records if each["method"] == OURS and each["problem"]["kind"] != "zero"]
    names = ("rre", "floor", "rre_over_floor")
    fields = [(row.title, *(mean(row.of(ours), name).text(4) for name in names)) for row in rows if row.of(ours)]
    head = ("", "RRE", "floor", "RRE / floor")
    return Table("floor", "RRE of ours beside that of an oracle", head, tuple(fields)) if fields else None


def _least_squares(records, rows):
    """Error of X beside least squares."""
    ours = [each for each in records if each["method"] == OURS and each["problem"]["kind"] == "zero"]
    names = ("rmse", "rmse_least_squares", "rmse_over_least_squares")
    fields = [
        (row.title, *(mean(row.of(ours), name).text(5) for name in names), *_spread(row.of(ours), names[2], 3, np.max))
        for row in [*rows, Column("all")]
        if row.of(ours)
    ]
    head = ("", "RMSE of X", "least squares", "ratio", "median", "largest")
    title = "E = 0: RMSE of X of ours beside least squares with the true rank, started at the truth"
    return Table("least-squares", title, head, tuple(fields)) if fields else None


def _runs(records, rows):
    """How well the chains of ours have mixed, and what they chose for the residual."""
    ours = [each for each in records if each["method"] == OURS]
    fields = []
    for row in rows:
        own = row.of(ours)
        chosen = [each["metrics"]["mixture"] for each in own if "mixture" in each["metrics"]]
        if chosen:
            mixed = (*_spread(own, "r_hat", 3, np.max), *_spread(own, "ess", 0, np.min))
            fields.append((row.title, *mixed, f"{sum(chosen):g} of {len(chosen)}", mean(own, "seconds").text(1)))
    head = ("", "worst R-hat, median", "largest", "least ESS, median", "smallest", "mixture chosen", "seconds")
    note = "R-hat above 1.1: the two chains differ, most often in how they split the residual into components."
    return Table("runs", "Chains of ours", head, tuple(fields), notes=(note,)) if fields else None


def _spread(records, name, digits, extreme):
    """Median and an extreme of a metric."""
    values = [each["metrics"][name] for each in records if each["metrics"].get(name) is not None]
    return (f"{np.median(values):.{digits}f}", f"{extreme(values):.{digits}f}") if values else (MISSING, MISSING)


def figures(records):
    """RRE over the missing ratio, a panel for each kind and rank."""
    records = [each for each in records if each["method"] not in VARIANTS]
    groups = by_method(records)
    ranks, kinds = tensors.RANKS, list(KINDS)
    with drawing.canvas(len(ranks), len(kinds), height=4.4, sharex=True, sharey="col") as (figure, axes):
        for i, rank in enumerate(ranks):
            for j, kind in enumerate(kinds):
                columns = tensors.columns(records, kind=kind, rank=rank)
                for number, (name, own) in enumerate(groups.items()):
                    points = [(100 * column.where["ratio"], mean(column.of(own), "rre").value) for column in columns]
                    points = [point for point in points if point[1] is not None]
                    axes[i, j].plot(*zip(*points) if points else ((), ()), label=name, **drawing.line_style(number))
                axes[i, j].set(title=f"{KINDS[kind]}, rank {rank}")
                drawing.logarithmic(axes[i, j].yaxis)
        drawing.label(axes, "missing, %", "RRE")
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(5, max(1, len(groups)))
        )
        return [
            Figure(
                "performance",
                "RRE on synthetic tensors over the share that is missing, means over seeds",
                drawing.png(figure),
            )
        ]
