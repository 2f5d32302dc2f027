"""What coherence of neighbouring rows of the factors gains, figure SpatialC of the paper.

Protocol: the paper's model without and with spatial coherence (`datc`, `datc-sc`), on photographs as in suite `images`
and on clips as in suite `videos`. The paper prints bars without numbers.
"""

from ...view.page import Figure
from .. import figures as drawing
from .. import media, samples, visual
from ..cells import Cell, Choice
from ..tables import Column, by_method, comparison, mean
from . import images, videos

DEFAULTS = Choice(ratios=images.DEFAULTS.ratios, seeds=1)
METHODS = ("datc", "datc-sc")


def cells(choice):
    """Photographs first; clips only where the folder has any."""
    pictures = media.names(choice.data, "images", samples.COLOURED)
    clips = media.names(choice.data, "videos", samples.CLIPS)
    for seed in range(choice.seeds):
        for name in pictures:
            for ratio in choice.ratios:
                for method in METHODS:
                    yield Cell(method, name, ratio, seed, {"kind": "photograph"})
        for name in clips:
            for method in METHODS:
                yield Cell(method, name, None, seed, {"kind": "clip"})


def seconds(cell):
    """Rough seconds of a cell."""
    return (images if cell.problem["kind"] == "photograph" else videos).seconds(cell)


def run(cell, data):
    """Complete a photograph or a clip."""
    return (visual.photograph if cell.problem["kind"] == "photograph" else visual.clip)(cell, data, False)


def _columns(records):
    """Title of a row of panels -> its records and groups."""
    pictures, clips = ([each for each in records if each["problem"]["kind"] == kind] for kind in ("photograph", "clip"))
    ratios, names = sorted({each["ratio"] for each in pictures}), dict.fromkeys(each["data"] for each in clips)
    return {
        "photographs": (pictures, [Column(f"{ratio:.0%}", {"ratio": ratio}) for ratio in ratios]),
        "clips": (clips, [Column(name, {"data": name}) for name in names]),
    }


def tables(records):
    """The measures as numbers."""
    return [
        comparison(f"spatial-{kind}-{metric}", f"{label}, {kind}", own, metric, columns, higher=higher, digits=digits)
        for kind, (own, columns) in _columns(records).items() if own
        for metric, (label, higher, digits) in visual.METRICS.items()
    ]  # fmt: skip


def figures(records):
    """The paper's bars: photographs above, clips below."""
    rows = {kind: value for kind, value in _columns(records).items() if value[0]}
    if not rows:
        return []
    with drawing.canvas(len(rows), len(visual.METRICS), height=2 * len(rows) + 0.4) as (figure, axes):
        for i, (own, columns) in enumerate(rows.values()):
            for j, (metric, (label, _, _)) in enumerate(visual.METRICS.items()):
                means = {
                    name: [mean(column.of(theirs), metric) for column in columns]
                    for name, theirs in by_method(own).items()
                }
                heights = {name: [each.value for each in row] for name, row in means.items()}
                drawing.grouped_bars(axes[i, j], [column.title for column in columns], heights,
                                     {name: [each.error for each in row] for name, row in means.items()})  # fmt: skip
                low = min((value for row in heights.values() for value in row if value is not None), default=0)
                axes[i, j].set(ylabel=label, ylim=(0 if metric == "rre" else 0.8 * low, None))
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return [
            Figure(
                "spatial",
                "The model without (datc) and with (datc-sc) spatial coherence; above photographs over the share that "
                "is missing, below clips",
                drawing.png(figure),
            )
        ]
