"""Missing faces of a set, table face of the paper.

Protocol: the first three persons of a set of faces, all poses and lights, values in [0, 1]; of the faces 60, 70, 80 or
90 % are missing, drawn anew for each seed, the same for all methods, which run with their defaults. RRE is over all
entries, of the estimate as the method returns it; `rre_missing` that of the missing faces alone. `datc` is Ours, which
decides by itself that whole fibers are missing; `datc-ne` is the paper's CP model with Gaussian noise, which is what
`datc` would choose otherwise. Missing faces are shown at 70 %.

The paper has eleven poses, the set that it names has five of them here and is not handed on with this program: its
figures are beside for comparison of the gains, not of the errors.
"""

import numpy as np

from ... import holes, metrics
from ...view.display import to_bytes
from ...view.page import Figure, Table
from .. import figures as drawing
from .. import gallery, media, paper, samples
from ..cells import Cell, Choice
from ..completing import complete
from ..tables import MISSING, Column, by_method, comparison, mean, standing

DEFAULTS = Choice(
    methods=("datc", "datc-ne", "falrtc", "halrtc", "rptc-scad", "tmac", "stdc", "fbcp", "brtf"),
    ratios=(0.6, 0.7, 0.8, 0.9),
    seeds=3,
)
OURS, VARIANTS = "datc", ("datc-ne",)
PERSONS = 3
# The faces that a figure shows: so many in a square, at this ratio.
SHOWN, SHOWN_RATIO = 7, 0.7
HOLES_STREAM = 0
# Seconds of a set of 3x5x21 faces of 32x32 pixels on one thread.
SECONDS = {"datc": 5, "datc-ne": 35, "falrtc": 13, "stdc": 140, "fbcp": 45, "brtf": 5}
OTHERS_SECONDS = 2


def cells(choice):
    """Seed by seed, ratio by ratio."""
    sets = media.names(choice.data, "faces", samples.FACES)
    for seed in range(choice.seeds):
        for name in sets:
            for ratio in choice.ratios:
                for method in choice.methods:
                    yield Cell(method, name, ratio, seed)


def seconds(cell):
    """Rough seconds of a cell."""
    return 2 + SECONDS.get(cell.method, OTHERS_SECONDS)


def run(cell, data):
    """Complete a set of faces."""
    truth = media.faces(data, cell.data, PERSONS)
    observed = holes.simulate_tensor(
        truth.shape, cell.ratio, "fibers:0,1,2", np.random.default_rng([cell.seed, HOLES_STREAM])
    )
    done = complete(cell, truth, observed)
    estimate, hidden = done.completion.mean, ~observed
    arrays = {}
    if cell.seed == 0 and cell.ratio == SHOWN_RATIO:
        chosen = np.flatnonzero(hidden[..., 0])[: SHOWN**2]
        arrays = {"truth": _mosaic(truth, chosen), "estimate": _mosaic(estimate, chosen)}
    return done.outcome(
        {
            "rre": metrics.rre(truth, estimate),
            "rre_missing": metrics.rre(truth[hidden], estimate[hidden]),
            "coverage": None if done.completion.interval_sd is None
            else metrics.coverage(truth[hidden], estimate[hidden], done.completion.interval_sd[hidden]),
        },
        arrays=arrays,
    )  # fmt: skip


def _mosaic(values, chosen):
    """The chosen faces in a square, row by row."""
    faces = values.reshape(-1, values.shape[-1])[chosen]
    side = round(values.shape[-1] ** 0.5)
    square = np.zeros((SHOWN**2, side, side))
    square[: len(faces)] = faces.reshape(-1, side, side)
    return to_bytes(square.reshape(SHOWN, SHOWN, side, side).swapaxes(1, 2).reshape(SHOWN * side, SHOWN * side), 0, 1)


def figure_of_the_paper(record, column):
    """The paper's RRE for the method of a record at the ratio of a column, or None."""
    return paper.at(paper.FACES.get(record["method"]), paper.IMAGE_RATIOS, column.where["ratio"])


def tables(records):
    """The paper's table, that of the missing faces, who is ahead, time."""
    made = []
    for name in dict.fromkeys(each["data"] for each in records):
        own = [each for each in records if each["data"] == name]
        columns = [
            Column(f"{ratio:.0%} missing", {"ratio": ratio}) for ratio in sorted({each["ratio"] for each in own})
        ]
        beside = None if name in samples.FACES else figure_of_the_paper
        made += [
            comparison(f"faces-{name}", f"RRE, {name}", own, "rre", columns, paper=beside),
            comparison(f"faces-missing-{name}", f"RRE of the missing faces, {name}", own, "rre_missing", columns),
            standing(
                f"standing-{name}",
                f"RRE of ours beside the best competitor, {name}",
                own,
                "rre",
                columns,
                OURS,
                beside=VARIANTS,
            ),
            _gain(own, name, columns),
            comparison(f"seconds-{name}", f"Seconds, {name}", own, "seconds", columns, digits=1),
        ]
    return made


def _gain(records, name, columns):
    """How far below `fbcp` ours is, in percent of it, beside the paper's gain."""
    groups = by_method(records)
    if OURS not in groups or "fbcp" not in groups:
        return None
    rows = []
    for column in columns:
        ours, theirs = (mean(column.of(groups[method]), "rre").value for method in (OURS, "fbcp"))
        printed = [
            paper.at(paper.FACES[method], paper.IMAGE_RATIOS, column.where["ratio"]) for method in (OURS, "fbcp")
        ]
        rows.append((column.title, _below(ours, theirs), _below(*printed)))
    return Table(f"gain-{name}", f"RRE of ours below that of fbcp, {name}", ("", "here", "paper"), tuple(rows))


def _below(ours, theirs):
    return MISSING if None in (ours, theirs) else f"{100 * (1 - ours / theirs):.0f} %"


def figures(records):
    """RRE over the missing ratio, and missing faces as every method completes them."""
    made = []
    for name in dict.fromkeys(each["data"] for each in records):
        own = [each for each in records if each["data"] == name]
        groups = by_method(own)
        with drawing.canvas(width=drawing.COLUMN, height=2.8) as (figure, axes):
            for number, (method, theirs) in enumerate(groups.items()):
                ratios = sorted({each["ratio"] for each in theirs})
                points = [(100 * ratio, mean(Column("", {"ratio": ratio}).of(theirs), "rre").value) for ratio in ratios]
                points = [point for point in points if point[1] is not None]
                axes[0, 0].plot(*zip(*points) if points else ((), ()), label=method, **drawing.line_style(number))
            axes[0, 0].set(yscale="log")
            drawing.label(axes, "missing faces, %", "RRE")
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
            made.append(
                Figure(f"faces-{name}", f"RRE over the share of faces that is missing, {name}", drawing.png(figure))
            )
        shown = {each["method"]: each for each in own if each["arrays"]}
        if shown:
            pictures = {"truth": gallery.load(next(iter(shown.values())), "truth")}
            pictures |= {method: gallery.load(each, "estimate") for method, each in shown.items()}
            title = f"Missing faces as each method completes them, {SHOWN_RATIO:.0%} missing, {name}"
            made.append(Figure(f"shown-{name}", title, gallery.draw(pictures)))
    return made
