"""Whether an installation works: three methods on small data, each within bounds that a sound one keeps with room to
spare.

Protocol: two sample photographs of 64x64 pixels with 60 % of the entries missing at random, completed by `patches` and
`field`; a tensor of 15x15x15 and rank 3 without and with a sparse residual (`tdc_cli/bench/synth.py`), 60 % missing,
noise of variance .001 given, completed by `datc`. PSNR is of the estimate clipped to the range, the observed entries
put back; RRE is against the latent tensor; coverage is the share of the missing entries inside their 90 % interval.
"""

import numpy as np

from ... import holes, metrics
from ...view.page import Table
from .. import samples, synth
from ..cells import Cell, Choice
from ..completing import complete

DEFAULTS = Choice()
PICTURES, SIDE, RATIO = ("astronaut", "chelsea"), 64, 0.6
KINDS, SHAPE, RANK = ("zero", "sparse"), (15, 15, 15), 3
HOLES_STREAM = 0
# (method, kind of data, metric) -> lowest and highest value of a sound installation.
BOUNDS = {
    ("patches", "picture", "psnr"): (22.0, 60.0),
    ("patches", "picture", "coverage"): (0.75, 0.99),
    ("field", "picture", "psnr"): (21.0, 60.0),
    ("field", "picture", "coverage"): (0.70, 0.995),
    ("datc", "zero", "rre"): (0.0, 0.03),
    ("datc", "zero", "rank"): (3, 3),
    ("datc", "sparse", "rre_over_floor"): (0.9, 1.1),
    ("datc", "sparse", "rank"): (3, 3),
}


def cells(choice):
    """All cells; nothing can be chosen."""
    for name in PICTURES:
        for method in ("patches", "field"):
            yield Cell(method, name, RATIO, 0, {"kind": "picture"})
    for kind in KINDS:
        yield Cell("datc", f"{kind}, rank {RANK}", RATIO, 0, {"kind": kind})


def seconds(cell):
    """Seconds of a cell, start of its process and all."""
    return 5


def run(cell, data):
    """Complete a picture or a tensor."""
    return _picture(cell) if cell.problem["kind"] == "picture" else _tensor(cell)


def _picture(cell):
    truth = samples.photograph(cell.data, SIDE) / 255
    observed = holes.simulate(truth.shape, cell.ratio, "entries", np.random.default_rng([cell.seed, HOLES_STREAM]))
    done = complete(cell, truth, observed, ordered_modes=(0, 1), resolution=1 / 255)
    found = done.completion
    filled = np.where(observed, truth, np.clip(found.mean, 0, 1))
    sd = found.interval_sd if found.interval_sd is not None else found.sd
    return done.outcome(
        {
            "psnr": metrics.psnr(truth, filled, 1.0),
            "coverage": metrics.coverage(truth[~observed], found.mean[~observed], sd[~observed]),
        }
    )


def _tensor(cell):
    problem = synth.draw(SHAPE, RANK, cell.problem["kind"], missing_ratio=cell.ratio, seed=cell.seed)
    done = complete(cell, problem.incomplete, problem.observed, noise_std=problem.noise_std)
    rre, floor = metrics.rre(problem.latent, done.completion.mean), problem.oracle_floor
    return done.outcome(
        {"rre": rre, "rre_over_floor": rre / floor if floor else None, "rank": done.completion.rank["value"]}
    )


def tables(records):
    """Every figure beside its bounds."""
    rows = tuple(
        (
            each["method"],
            each["data"],
            metric,
            f"{value:.4g}" if value is not None else each["error"] or "none",
            f"{low:g} to {high:g}",
            "yes" if _within(value, low, high) else "NO",
        )
        for each, metric, value, low, high in _bounded(records)
    )
    head = ("method", "data", "figure", "value", "bounds", "within")
    return [Table("smoke", "Figures and the bounds of a sound installation", head, rows)]


def figures(records):
    """None: the table says it all."""
    return []


def check(records):
    """A line for each bound that is broken."""
    return [
        f"{metric} of {each['method']} on {each['data']} is {value:.4g}, not within {low:g} and {high:g}"
        if value is not None
        else f"{each['method']} on {each['data']} failed: {each['error'] or f'it gave no {metric}'}"
        for each, metric, value, low, high in _bounded(records)
        if not _within(value, low, high)
    ]


def _bounded(records):
    """(record, metric, value or None, lowest, highest) of every bound."""
    for each in records:
        for (method, kind, metric), (low, high) in BOUNDS.items():
            if (method, kind) == (each["method"], each["problem"]["kind"]):
                yield each, metric, each["metrics"].get(metric), low, high


def _within(value, low, high):
    return value is not None and low <= value <= high
