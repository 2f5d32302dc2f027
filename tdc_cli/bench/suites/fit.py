"""The distribution of the residual that is found, table Fittness and figure mtpi of the paper.

Protocol: the problems of suite `synthetic` with all five kinds of residual E, 70 % missing, completed by `datc` with
its defaults and the noise given. Its mixture, the mean over the draws, is set beside the parts that E was drawn from, a
uniform part as the Gaussian of its mean and variance; which component stands for which part is decided by overlap and
weight (`mixtures.match`). Where `datc` chose no mixture, all that it found beyond the noise is one Gaussian.

Parts are not what a mixture of Gaussians finds at its best: of uniform parts it could only ever find the most likely
mixture of as many Gaussians. That one, of all entries of the drawn E, is found by expectation-maximisation
(`tdc_cli/bench/likeliest.py`), and the fitted one is measured by the integral of the absolute difference of the
densities. Where a component of either is narrower than the noise, both are compared as seen through it.
"""

import numpy as np

from ...view.page import Figure, Table
from .. import figures as drawing
from .. import mixtures, paper, synth, tensors
from ..cells import Choice
from ..likeliest import FLOOR, density_difference, likeliest
from ..tables import MISSING, Column, Mean, mean

METHOD = "datc"
DEFAULTS = Choice(ratios=(0.7,), seeds=5)
KINDS = {
    "zero": "zero",
    "sparse": "sparse",
    "gaussian": "Gaussian",
    "mixture": "mixture",
    "mixture-shifted": "shifted mixture",
}
PARAMETERS = ("weight", "mean", "precision")
MOST_PRECISE = 1e12  # what the paper prints for a part without variance
# Densities that differ by less are called alike.
ALIKE = 0.05
POINTS = 1201


def cells(choice):
    """Seed by seed, kind by kind."""
    for seed in range(choice.seeds):
        for kind in KINDS:
            yield from tensors.cells(METHOD, kind, choice, seed)


seconds = tensors.seconds


def run(cell, data):
    """Complete a problem and compare the mixtures."""
    problem = tensors.draw(cell)
    done, found = tensors.completed(cell, problem)
    fitted = _fitted(problem, done.completion)
    best = likeliest(problem, fitted)
    noise = problem.noise_std**2
    narrow = bool(min(fitted[2].min(), best[2].min()) < noise)
    measured = {
        "rre": found["rre"],
        "components": len(fitted[0]),
        "density_difference": density_difference(fitted, best, noise if narrow else 0.0),
        "through_noise": float(narrow),
    }
    for name, mixture in (("", fitted), ("likeliest_", best)):
        for part, component in _matched(problem, mixture):
            for parameter, value in zip(
                PARAMETERS, (mixture[0][component], mixture[1][component], 1.0 / mixture[2][component])
            ):
                measured[f"{name}{parameter}_{part + 1}"] = float(value)
    return done.outcome(measured, {"fitted": [part.tolist() for part in fitted]})


def _fitted(problem, completion):
    """Weights, means and variances of what a run says of the residual."""
    if completion.mixture is None:  # one Gaussian and no noise apart: the variance beyond the noise's is the residual's
        offset = float(np.mean((completion.mean - completion.low_rank)[~problem.observed]))
        return np.ones(1), np.array([offset]), np.array([max(completion.noise_std**2 - problem.noise_std**2, FLOOR)])
    weights, means, precisions = (np.array(completion.mixture[name]) for name in ("weights", "means", "precisions"))
    return weights, means, 1.0 / precisions


def _matched(problem, mixture):
    """(part of the residual, component of the mixture that stands for it) where there is one."""
    parts = synth.KINDS[problem.kind]
    true = [part.share for part in parts], [part.mean for part in parts], [part.variance for part in parts]
    return [(i, j) for i, j in mixtures.match(true, mixture, problem.noise_std**2) if i is not None and j is not None]


def tables(records):
    """Table Fittness, a part for each parameter, and the distance of the densities."""
    made = [_parameters(records, name) for name in PARAMETERS]
    rows = []
    for kind in KINDS:
        for rank in tensors.RANKS:
            own = Column("", {"kind": kind, "rank": rank}).of(records)
            gaps = [each["metrics"]["density_difference"] for each in own if "density_difference" in each["metrics"]]
            if gaps:
                counts = ", ".join(
                    f"{count:g}" for count in sorted({each["metrics"]["components"] for each in own if each["metrics"]})
                )
                seen = sum(each["metrics"].get("through_noise", 0.0) for each in own)
                rows.append(
                    (
                        kind,
                        str(rank),
                        str(len(own)),
                        counts,
                        mean(own, "density_difference").text(4),
                        f"{max(gaps):.4f}",
                        f"{sum(gap < ALIKE for gap in gaps)} of {len(gaps)}",
                        f"{seen:g}",
                    )
                )
    head = (
        "E",
        "rank",
        "runs",
        "components found",
        "difference",
        "largest",
        f"below {ALIKE:g}",
        "seen through the noise",
    )
    title = "Difference of the densities of the fitted mixture and the most likely one of the drawn residual"
    return [*made, Table("densities", title, head, tuple(rows)) if rows else None]


def _parameters(records, name):
    """One parameter of every part: true, and for each rank ours, the most likely mixture's and the paper's."""
    rows = []
    for kind, words in KINDS.items():
        own = Column("", {"kind": kind}).of(records)
        for i, part in enumerate(synth.KINDS[kind]) if own else ():
            true = {
                "weight": part.share,
                "mean": part.mean,
                "precision": 1.0 / part.variance if part.variance else MOST_PRECISE,
            }
            fields = [f"{words}, {i + 1}", f"{true[name]:.4g}"]
            for rank in tensors.RANKS:
                group, figure = Column("", {"rank": rank}).of(own), paper.FIT[kind, rank][name][i]
                fields += [_short(mean(group, f"{source}{name}_{i + 1}")) for source in ("", "likeliest_")]
                fields.append(MISSING if figure is None else f"{figure:.4g}")
            rows.append(tuple(fields))
    head = [
        "E, part",
        "true",
        *(f"rank {rank}, {what}" for rank in tensors.RANKS for what in ("ours", "most likely", "paper")),
    ]
    title = f"Mixture of the residual, {name}s: true, ours, most likely for the drawn residual, and the paper's"
    return Table(f"fit-{name}", title, tuple(head), tuple(rows)) if rows else None


def _short(value: Mean):
    """Mean and standard error with the digits that count; failures apart are parts without a component of their own."""
    if value.value is None:
        return MISSING
    error = f" ± {value.error:.2g}" if value.error is not None else ""
    return f"{value.value:.4g}{error}" + (f" ({value.failed} without)" if value.failed else "")


def figures(records):
    """True and fitted densities as seen through the noise, a panel for each kind and rank, first seed."""
    first = [each for each in records if each["seed"] == 0 and each["details"]]
    with drawing.canvas(len(tensors.RANKS), len(KINDS), height=3.6, sharey=True) as (figure, axes):
        for i, rank in enumerate(tensors.RANKS):
            for j, (kind, words) in enumerate(KINDS.items()):
                one, parts = axes[i, j], synth.KINDS[kind]
                reach = 1.2 * max(abs(part.mean) + 3 * np.sqrt(part.variance + tensors.NOISE_STD**2) for part in parts)
                values = np.linspace(-reach, reach, POINTS)
                true = sum(part.share * part.density(values, tensors.NOISE_STD) for part in parts)
                one.plot(values, true, color="black", linewidth=2.2, alpha=0.35, label="true")
                for each in Column("", {"kind": kind, "rank": rank}).of(first):
                    weights, means, variances = (np.array(part) for part in each["details"]["fitted"])
                    found = mixtures.density(values, weights, means, variances + tensors.NOISE_STD**2)
                    one.plot(values, found, color=drawing.COLOURS[1], linestyle="--", label="found")
                one.set(title=f"{words},\nrank {rank}", yscale="log", ylim=(1e-3, 30))
        drawing.label(axes, "E and noise", "density")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        title = "Density of the residual, true and found, as seen through the noise; 70 % missing, seed 0"
        return [Figure("densities", title, drawing.png(figure))]
