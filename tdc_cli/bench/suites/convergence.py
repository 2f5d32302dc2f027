"""How the error falls from sweep to sweep, figure convergence of the paper.

Protocol: the problems of suite `synthetic` with the shifted mixture. `datc` runs with its defaults, one chain for each
seed, once with the collapsed sampler and once with the literal one, Algorithm 1 of the paper; the mixture is asked for,
so that the pilot runs fall away. Each sweep's state says what it expects of every entry; its RRE is against the latent
tensor. From the end of the burn-in on, the RRE of the mean of the draws that count is kept as well, which is what the
method returns.

The literal sampler draws one factor entry after the other, given the residuals, and stands almost still: hundreds of
sweeps do not bring it to where the collapsed one is after some dozens. That it arrives at all is what the revisions of
the rank do for it, at half of the burn-in and later (`tdc_cli/model/fit.py`), which refit the low-rank part by least
squares.
"""

import numpy as np

from ...view.page import Figure, Table
from .. import figures as drawing
from .. import tensors
from ..cells import Choice
from ..curve import Curve
from ..tables import MISSING, Column, mean

METHOD, KIND = "datc", "mixture-shifted"
DEFAULTS = Choice(ratios=(0.7, 0.8, 0.9), seeds=3)
SAMPLERS = {"collapsed": {"burn_in": 200, "samples": 100}, "literal": {"burn_in": 600, "samples": 200}}
FLOOR = "black"
NEAR = 1.05  # a chain has arrived at a sweep when no later draw errs more than this times the floor


def cells(choice):
    """Seed by seed, sampler by sampler."""
    for seed in range(choice.seeds):
        variants = [
            {"residual": "mixture", "chains": 1, "sampler": sampler, **length} for sampler, length in SAMPLERS.items()
        ]
        yield from tensors.cells(METHOD, KIND, choice, seed, variants)


def seconds(cell):
    """Rough seconds of a cell."""
    return 4


def run(cell, data):
    """Complete a problem and keep the error of every sweep."""
    problem = tensors.draw(cell)
    curve = Curve(problem.latent)
    done, found = tensors.completed(cell, problem, watch=curve.watch)
    draws, means = np.array(curve.draws[0]), np.array(curve.means[0])
    far = np.flatnonzero(draws > NEAR * problem.oracle_floor)
    arrived = int(far[-1]) + 2 if len(far) else 1
    measured = {
        "rre": found["rre"],
        "floor": found["floor"],
        "rre_of_a_draw": float(draws[~np.isnan(means)].mean()),
        "sweeps": arrived if arrived <= len(draws) else None,
    }
    return done.outcome(measured, {"draws": draws.tolist(), "means": means.tolist()})


def tables(records):
    """Sweeps until the error stays near the floor, and the error at the end."""
    rows = []
    for sampler in SAMPLERS:
        own = [each for each in records if each["parameters"]["sampler"] == sampler]
        for rank in tensors.RANKS:
            for column in tensors.columns(own, rank=rank):
                group = column.of(own)
                arrived = [sweeps for each in group if (sweeps := each["metrics"].get("sweeps")) is not None]
                errors = [mean(group, name).text(4) for name in ("rre_of_a_draw", "rre", "floor")]
                median = f"{np.median(arrived):g}" if arrived else MISSING
                rows.append((sampler, str(rank), column.title, f"{len(arrived)} of {len(group)}", median, *errors))
    head = (
        "sampler",
        "rank",
        "missing",
        "runs that arrive",
        "sweeps, median",
        "RRE of a draw",
        "RRE of the mean",
        "floor",
    )
    title = f"Sweeps until the error of all later draws stays within {100 * NEAR - 100:.0f} % of the oracle's floor"
    return [Table("convergence", title, head, tuple(rows))]


def figures(records):
    """RRE over the sweeps, a panel for each rank and sampler, a line for each ratio and seed."""
    ratios = sorted({each["ratio"] for each in records})
    with drawing.canvas(len(SAMPLERS), len(tensors.RANKS), height=4.2, sharey=True, sharex="row") as (figure, axes):
        for i, sampler in enumerate(SAMPLERS):
            for j, rank in enumerate(tensors.RANKS):
                one = axes[i, j]
                for each in Column("", {"rank": rank}).of(records):
                    if each["parameters"]["sampler"] != sampler or not each["details"]:
                        continue
                    number, (draws, means) = (
                        ratios.index(each["ratio"]),
                        (each["details"][name] for name in ("draws", "means")),
                    )
                    label = f"{each['ratio']:.0%} missing" if each["seed"] == 0 else None
                    style = {
                        "color": drawing.COLOURS[number],
                        "linestyle": drawing.DASHES[number % len(drawing.DASHES)],
                    }
                    one.plot(range(1, len(draws) + 1), draws, label=label, linewidth=0.7, **style)
                    kept = [(sweep, value) for sweep, value in enumerate(means, 1) if value is not None]
                    one.plot(*zip(*kept), linewidth=1.6, alpha=0.6, **style)
                    one.axhline(each["metrics"]["floor"], color=FLOOR, linestyle=":", linewidth=0.6)
                one.set(title=f"{sampler} sampler, rank {rank}")
                drawing.logarithmic(one.yaxis)
        drawing.label(axes, "sweep", "RRE")
        for one in axes[0]:
            one.set_xlabel("")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        handles += axes[0, 0].plot([], [], color="grey", linewidth=1.6, alpha=0.6) + axes[0, 0].plot(
            [], [], color=FLOOR, linestyle=":"
        )
        figure.legend(
            handles, [*labels, "mean of the draws", "oracle's floor"], loc="outside lower center", ncols=len(handles)
        )
        title = (
            "RRE after every sweep: thin lines are single draws, thick ones the mean of the draws that count, a line "
            "for each seed; steps are revisions of the rank, which refit the low-rank part by least squares"
        )
        return [Figure("convergence", title, drawing.png(figure))]
