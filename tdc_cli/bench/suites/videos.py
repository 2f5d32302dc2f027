"""Clips with text and scribbles on them, table video and the visual comparisons of the paper.

Protocol: the clips of the folder, all frames, values in [0, 1], noise of variance .001, and a mask on frames 0, 2, 4
...: scribbles on suzie, text on all others. Methods get rows, columns, colours and frames as one tensor and run with
their defaults; those that know a noise level are given it. Measures are over all entries, of the estimate clipped to
the range: RRE, PSNR of the pooled squared error, and the mean of the frames' SSIM; `coverage` is the share of the
entries beneath the masks, with their noise, in their 90 % interval. `patches`, the default for clips, is ours; `datc`
is the paper's model, without and with (`datc-sc`) coherence along rows, columns and time. The nineteenth frame is
shown.
"""

from ...view.page import Figure
from .. import media, paper, samples, visual
from ..cells import Cell, Choice
from ..tables import Column

DEFAULTS = Choice(
    methods=("patches", "datc", "datc-sc", "falrtc", "halrtc", "rptc-scad", "tmac", "stdc", "fbcp", "brtf"),
    seeds=1,
)
# Seconds of a clip of 144x176x3x20 on one thread.
SECONDS = {"patches": 200, "datc": 650, "datc-sc": 650, "stdc": 50, "fbcp": 330, "brtf": 160}
OTHERS_SECONDS = 8
SMALL = 0.1  # share of that which a sample clip takes


def cells(choice):
    """Seed by seed, clip by clip."""
    names = media.names(choice.data, "videos", samples.CLIPS)
    for seed in range(choice.seeds):
        for name in names:
            for method in choice.methods:
                yield Cell(method, name, None, seed)


def seconds(cell):
    """Rough seconds of a cell."""
    return 2 + (SMALL if cell.data in samples.CLIPS else 1) * SECONDS.get(cell.method, OTHERS_SECONDS)


def run(cell, data):
    """Complete a clip."""
    return visual.clip(cell, data, cell.seed == 0)


def figure_of_the_paper(record, column):
    """The paper's RRE, PSNR and SSIM for the method of a record on the clip of a column, or None."""
    return paper.VIDEOS.get(record["method"], {}).get(column.where["data"])


def tables(records):
    """The paper's table, a measure after the other, who is ahead, time."""
    names = dict.fromkeys(each["data"] for each in records)
    known = any(name in paper.VIDEOS["datc"] for name in names)
    columns = [Column(name, {"data": name}) for name in names]
    return visual.tables(
        "videos", "clips with masks and noise", records, columns, figure_of_the_paper if known else None
    )


def figures(records):
    """The visual comparisons."""
    return [
        Figure(f"shown-{name}", title, png)
        for name, title, png in visual.galleries(records, "a frame as each method completes it")
    ]
