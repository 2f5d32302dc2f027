"""Photographs, table avginpainting and the visual comparisons of the paper.

Protocol: the photographs of the folder, values in [0, 1], 60, 70, 80 or 90 % of the entries missing at random, drawn
anew for each seed, the same for all methods and photographs; methods run with their defaults. RRE, PSNR and SSIM
(scikit-image's windows of 7x7) are over all entries, of the estimate clipped to the range, the observed entries put
back; `coverage` is the share of missing entries in their 90 % interval. Means over photographs. `patches`, the default
for pictures, is ours; `datc` is the paper's model, without and with (`datc-sc`) spatial coherence. What facade at 90 %
and parrot at 70 % come out like is shown, with the busiest part enlarged; of other folders the first photograph at the
largest ratio.
"""

from importlib.util import find_spec

from ... import methods as registry
from ...run.cost import Extent, cost
from ...view.page import Figure
from .. import media, paper, samples, visual
from ..cells import Cell, Choice
from ..tables import Column

NAMES = (
    "patches",
    "datc",
    "datc-sc",
    "field",
    "falrtc",
    "halrtc",
    "rptc-scad",
    "tmac",
    "stdc",
    "tsvd",
    "spc-qv",
    "spc-tv",
    "fbcp",
    "fbcp-image",
    "fbcp-mp",
    "brtf",
    "biharmonic",
    "telea",
    "navier-stokes",
    "linear",
    "nearest",
    "cp-masked",
)
# Without those whose library is not there.
DEFAULTS = Choice(
    methods=tuple(name for name in NAMES if registry.get(name).needs is None or find_spec(registry.get(name).needs)),
    ratios=paper.IMAGE_RATIOS,
    seeds=1,
)
SHOWN = (("facade", 0.9), ("parrot", 0.7))
START_SECONDS = 2  # of a process
SIDE = 256  # of the photographs of the literature


def cells(choice):
    """Seed by seed, photograph by photograph."""
    names = media.names(choice.data, "images", samples.COLOURED)
    shown = [pair for pair in SHOWN if pair[0] in names and pair[1] in choice.ratios] or [
        (names[0], max(choice.ratios))
    ]
    for seed in range(choice.seeds):
        for name in names:
            for ratio in choice.ratios:
                for method in choice.methods:
                    problem = {"shown": seed == 0 and (name, ratio) in shown}
                    yield Cell(method, name, ratio, seed, problem)


def seconds(cell):
    """Rough seconds of a cell."""
    return seconds_of(cell, samples.SIDE if cell.data in samples.NAMES else SIDE)


def seconds_of(cell, side):
    """Rough seconds of a cell that completes a square photograph in colours."""
    entries = 3 * side**2
    return START_SECONDS + cost(registry.get(cell.method), Extent(entries, cell.ratio * entries))[0]


def run(cell, data):
    """Complete a photograph."""
    return visual.photograph(cell, data, cell.problem["shown"])


def figure_of_the_paper(record, column):
    """The paper's RRE, PSNR and SSIM for the method of a record at the ratio of a column, or None."""
    return paper.at(paper.IMAGES.get(record["method"]), paper.IMAGE_RATIOS, column.where["ratio"])


def tables(records):
    """The paper's table, a measure after the other, who is ahead, time."""
    columns = [
        Column(f"{ratio:.0%} missing", {"ratio": ratio}) for ratio in sorted({each["ratio"] for each in records})
    ]
    known = all(each["data"] not in samples.NAMES for each in records)
    count = len({each["data"] for each in records})
    return visual.tables(
        "images", f"mean of {count} photographs", records, columns, figure_of_the_paper if known else None
    )


def figures(records):
    """The visual comparisons."""
    return [
        Figure(f"shown-{name}", title, png)
        for name, title, png in visual.galleries(records, "as each method completes it")
    ]
