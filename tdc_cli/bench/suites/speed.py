"""Time and peak memory of every method, and how they grow with size, missing ratio and rank.

Protocol: a photograph that scikit-image brings along (astronaut), reduced to squares of 32 to 192 pixels, three
channels, entries missing at random; each method with its defaults. Sizes are run at 60 % missing, missing ratios and
ranks at 64x64 pixels, ranks for the methods that have such a parameter. Seconds are of the method alone, compiled
before; memory is the peak beyond what its process had before. A growth exponent g is the slope of the logarithm: twice
the entries take 2^g times as long. Run it with nothing else running and one job.
"""

import math
from dataclasses import fields

import numpy as np

from ... import holes, methods, metrics
from ...view.page import Figure, Table
from .. import figures as drawing
from .. import samples
from ..cells import Cell, Choice
from ..completing import complete
from ..tables import MISSING, by_method, mean
from . import images

DEFAULTS = Choice(
    methods=tuple(name for name in images.NAMES if methods.get(name).needs is None),
    ratios=(0.3, 0.6, 0.9),
    seeds=1,
)
PICTURE = "astronaut"
SIDES, RATIO = (32, 64, 128, 192), 0.6
SIDE, RANKS = 64, (10, 20, 40, 80)
HOLES_STREAM = 0
# Sweep -> what varies, in words, and what it grows with.
SWEEPS = {"size": "entries", "ratio": "share that is missing", "rank": "rank"}
COSTS = {"seconds": "time, s", "memory": "peak memory, MiB"}
LEAST_MEMORY = 1 << 20  # less cannot be told from what the allocator happens to hold


def cells(choice):
    """Seed by seed, method by method."""
    for seed in range(choice.seeds):
        for method in choice.methods:
            for side in SIDES:
                yield _cell(method, RATIO, seed, "size", side)
            for ratio in choice.ratios:
                yield _cell(method, ratio, seed, "ratio", SIDE)
            if "rank" in {field.name for field in fields(methods.get(method).load().Config)}:
                for rank in RANKS:
                    yield _cell(method, RATIO, seed, "rank", SIDE, {"rank": rank})


def _cell(method, ratio, seed, sweep, side, parameters=None):
    return Cell(method, f"{PICTURE} {side}x{side}", ratio, seed, {"sweep": sweep, "side": side}, parameters or {})


def seconds(cell):
    """Rough seconds of a cell."""
    return images.seconds_of(cell, cell.problem["side"])


def run(cell, data):
    """Complete the photograph."""
    truth = samples.photograph(PICTURE, cell.problem["side"]) / 255
    observed = holes.simulate(truth.shape, cell.ratio, "entries", np.random.default_rng([cell.seed, HOLES_STREAM]))
    done = complete(cell, truth, observed, ordered_modes=(0, 1), resolution=1 / 255)
    return done.outcome(
        {"psnr": metrics.psnr(truth, np.where(observed, truth, np.clip(done.completion.mean, 0, 1)), 1.0)}
    )


def _place(record):
    """Where a record stands in its sweep: the number of entries, the missing ratio, the rank."""
    values = {
        "size": 3 * record["problem"]["side"] ** 2,
        "ratio": record["ratio"],
        "rank": record["parameters"].get("rank"),
    }
    return values[record["problem"]["sweep"]]


def _curves(records, sweep, cost):
    """Method -> (places, mean costs) in a sweep, places without a cost left out."""
    made = {}
    for method, own in by_method([each | {"parameters": {}} | {"place": _place(each)} for each in records
                                  if each["problem"]["sweep"] == sweep]).items():  # fmt: skip
        places = sorted({each["place"] for each in own})
        values = [mean([each for each in own if each["place"] == place], cost).value for place in places]
        least = LEAST_MEMORY if cost == "memory" else 0
        known = [(place, value) for place, value in zip(places, values) if value is not None and value >= least]
        made[method] = tuple(zip(*known)) if known else ((), ())
    return made


def growth(places, values):
    """Slope of the logarithm of values over that of places by least squares; None of fewer than three."""
    if len(places) < 3:
        return None
    return float(np.polyfit(np.log(places), np.log(values), 1)[0])


def tables(records):
    """Costs at every place of a sweep, and their growth."""
    made = []
    for sweep, words in SWEEPS.items():
        for cost, unit in COSTS.items():
            curves = _curves(records, sweep, cost)
            places = sorted({place for own, _ in curves.values() for place in own})
            rows = []
            for method, (own, values) in curves.items():
                known = dict(zip(own, values))
                found = [
                    _short(known[place] / (2**20 if cost == "memory" else 1)) if place in known else MISSING
                    for place in places
                ]
                exponent = growth(own, values)
                rows.append((method, *found, MISSING if exponent is None else f"{exponent:.2f}"))
            head = ("method", *(f"{place:g}" for place in places), "growth exponent")
            if rows:
                made.append(Table(f"{cost}-{sweep}", f"{unit[0].upper()}{unit[1:]}, by {words}", head, tuple(rows)))
    return made


def _short(value):
    """Two digits that count."""
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def figures(records):
    """Costs over each sweep, logarithmic."""
    with drawing.canvas(len(COSTS), len(SWEEPS), height=4.6, sharex="col") as (figure, axes):
        for i, (cost, unit) in enumerate(COSTS.items()):
            for j, (sweep, words) in enumerate(SWEEPS.items()):
                one = axes[i, j]
                names = list(_curves(records, "size", cost))
                for method, (places, values) in _curves(records, sweep, cost).items():
                    scaled = [value / (2**20 if cost == "memory" else 1) for value in values]
                    one.plot(places, scaled, label=method, **drawing.line_style(names.index(method)))
                one.set(xlabel=words if i else "", ylabel=unit if j == 0 else "")
                drawing.logarithmic(one.xaxis, plain=sweep != "size")
                drawing.logarithmic(one.yaxis)
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=min(6, max(1, len(handles[0]))))
        title = (
            "Time and peak memory of completing a photograph, over its entries, the share that is missing and the rank"
        )
        return [Figure("speed", title, drawing.png(figure))]
