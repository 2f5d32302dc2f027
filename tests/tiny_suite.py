"""A suite for tests: small matrices, and methods that fail as they are told."""

import os
import signal
import time

import numpy as np

from tdc_cli import bench as experiment
from tdc_cli import metrics
from tdc_cli.bench import figures as drawing
from tdc_cli.bench.cells import Cell, Choice
from tdc_cli.bench.completing import complete
from tdc_cli.bench.tables import Column, comparison
from tdc_cli.view.page import Figure

DEFAULTS = Choice(methods=("nearest", "linear"), ratios=(0.2, 0.5), seeds=2)


class Tiny(experiment.Suite):
    module = "tiny_suite"


def register():
    experiment.SUITES["tiny"] = Tiny("tiny", "for tests")


def cells(choice):
    for seed in range(choice.seeds):
        for ratio in choice.ratios:
            for method in choice.methods:
                yield Cell(
                    method, "ramp", ratio, seed, {"mishap": os.environ.get("MISHAP")} if method == "nearest" else {}
                )


def seconds(cell):
    return 1800


def run(cell, data):
    mishap = cell.problem.get("mishap")
    if mishap == "raise":
        raise ValueError("out\nof order")
    if mishap == "nan":
        return complete(cell, np.full((6, 6), np.inf), np.ones((6, 6), dtype=bool)).outcome({})
    if mishap == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if mishap == "slow":
        time.sleep(60)
    truth = np.add.outer(np.arange(8.0), np.arange(9.0)) + 1
    observed = np.random.default_rng([cell.seed, 0]).random(truth.shape) >= cell.ratio
    done = complete(cell, truth, observed, noise_std=0.1)
    shown = {"mean": done.completion.mean.astype(np.float32)}
    return done.outcome(
        {"rre": metrics.rre(truth, done.completion.mean), "none": float("nan")}, {"ratio": cell.ratio}, shown
    )


def tables(records):
    columns = [Column(f"{ratio:.0%}", {"ratio": ratio}) for ratio in sorted({each["ratio"] for each in records})]
    return [comparison("tiny", "RRE of a ramp", records, "rre", columns, paper=lambda record, column: 0.25)]


def figures(records):
    with drawing.canvas(width=2, height=1) as (figure, axes):
        drawing.grouped_bars(axes[0, 0], ["a"], {"b": [1.0], "c": [None]}, {"b": [0.1], "c": [None]})
        return [Figure("bars", "Bars <of> nothing", drawing.png(figure))]
