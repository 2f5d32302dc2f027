"""The page of a run: what was missing, what came out, how sure it is, and how it was made."""

import shlex
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from ...names import MEASURES
from .. import display
from ..display import reduction, units_of
from . import charts, pictures
from .render import number, percent, render

# What methods trace over their sweeps, and whether it is in the units of the values; see `methods.Completion`.
TRACES = {
    "rank": ("Rank", False),
    "noise_std": ("Noise, standard deviation", True),
    "log_likelihood": ("Log likelihood", False),
}
WATCHED = "probe_"
METRICS = (("all", "All entries"), ("missing", "Missing entries"), ("incomplete", "Before, holes as 0"))


@dataclass(frozen=True)
class Pictures:
    """What a page shows; arrays are (H, W) or (H, W, C), all of the same shape and in the units of the file.

    Attributes
    ----------
    incomplete, completed : ndarray
        Holes in `incomplete` are 0 or NaN.
    observed : ndarray of bool
        True = observed.
    given : ndarray or None
        The input as it was where a mask said what to replace.
    sd, truth : ndarray or None
    full_range : int or None
        Largest value of the integer type, None for floats.
    inks : bool
        Whether the channels are those of CMYK.
    alpha, given_alpha : (H, W) ndarray of float, or None
        Of the result and of the input, 0 is transparent, 1 opaque.
    premultiplied : bool
        Whether the values are multiplied by alpha already.
    icc_profile : bytes or None
    variants : tuple of ndarray
        Further answers than `completed`.
    """

    incomplete: np.ndarray
    completed: np.ndarray
    observed: np.ndarray
    given: np.ndarray | None = None
    sd: np.ndarray | None = None
    truth: np.ndarray | None = None
    full_range: int | None = None
    inks: bool = False
    alpha: np.ndarray | None = None
    given_alpha: np.ndarray | None = None
    premultiplied: bool = False
    icc_profile: bytes | None = None
    variants: tuple = ()


@dataclass(frozen=True)
class Figure:
    """A picture of the page.

    Attributes
    ----------
    name, title, note : str
    uri : str
    end : float or None
        Upper end of the colour scale, if it has one.
    beyond : bool
        Whether values lie beyond `end`.
    """

    name: str
    title: str
    note: str
    uri: str
    end: float | None = None
    beyond: bool = False


def run(report, shown, traces=None):
    """Page of one run.

    Parameters
    ----------
    report : Report
    shown : Pictures
    traces : mapping of str to sequence of sequences of float, or None
        Quantities over the kept sweeps, chain by sweep; see `methods.Completion`.

    Returns
    -------
    str
    """
    values = report.to_dict()
    written = values["outputs"].get("image", "-")
    height, width = shown.completed.shape[:2]
    factor = reduction(height, width, pictures.MOST_PIXELS, pictures.LONGEST_SIDE)
    size = (-(-height // factor), -(-width // factor))
    units = units_of(shown.full_range)
    # For integer pictures noise, mixture and traces are fractions of the full range; the page has one unit for
    # everything.
    unit = shown.full_range or 1
    return render(
        "run.html",
        ("viewer.js",),
        report=values,
        name=PurePath(written if written != "-" else values["input"]["path"]).name,
        facts=facts(values, units),
        figures=_figures(shown, factor, values["seed"]),
        scale=pictures.scale(),
        units=units,
        original=(height, width),
        size=size,
        factor=factor,
        split=split(~shown.observed.reshape(height, width, -1).all(axis=2)),
        transparent=any(alpha is not None and bool((alpha < 1).any()) for alpha in (shown.alpha, shown.given_alpha)),
        enlarged=pictures.enlargement(*size),
        metrics=measures(values),
        measured=MEASURES,
        charts=model_charts(values, traces or {}, unit),
        watched=_watched(traces or {}, unit),
        label=label,
        unit=unit,
        command=shlex.join(["tdc", *values["command"]]),
    )


def split(missing):
    """Where the divider begins, in percent of the width: in the middle of what is `missing`, (H, W) bool, where both
    pictures show something of it.
    """
    columns = np.flatnonzero(missing.any(axis=0))
    return 50 * (columns[0] + columns[-1] + 1) / missing.shape[1] if len(columns) else 50


def facts(report, units):
    """(figure, what it is) of the handful that say most."""
    made = []
    metrics, uncertainty, rank = report["metrics"], report["uncertainty"], report["rank"]
    if metrics:
        made += [(number(metrics["all"]["psnr"], 2, " dB"), "PSNR"), (number(metrics["all"]["ssim"], 4), "SSIM")]
        made += [(number(metrics["missing"]["psnr"], 2, " dB"), "PSNR, missing entries")]
    if uncertainty:
        made.append((number(uncertainty["mean_sd"]), f"mean uncertainty, {units}"))
        if uncertainty["coverage90"] is not None:
            made.append((percent(uncertainty["coverage90"]), "of the truth in the 90\N{NO-BREAK SPACE}% interval"))
    if rank and rank["value"] is not None:
        made.append((number(rank["value"]), "rank"))
    return made


def answers(count, seed):
    """(name, title, note) of each of several answers, the first one of this seed, or of the only one."""
    title, of = ("Answer 1", f" of seed {seed}") if count > 1 else ("Completed", "")
    return [
        ("completed", title, f"The result{of}, before any compression with loss."),
        *((f"variant_{k}", f"Answer {k}", f"The result of seed {seed + k - 1}.") for k in range(2, count + 1)),
    ]


def measures(report):
    """Rows of the table of measures: what each is over, and its numbers in the order of `names.MEASURES`, as text."""
    rows = [(title, report["metrics"][key]) for key, title in METRICS] if report["metrics"] else []
    return [(title, [number(found.get(m.key), m.digits) for m in MEASURES]) for title, found in rows]


def _figures(shown, factor, seed):
    """Every picture that is known, scaled down by `factor`; of several answers the first one has this seed."""
    given = shown.given
    if given is not None and shown.truth is not None and np.array_equal(given, shown.truth):
        given = None
    hole = "white" if shown.inks else "black"
    results = (shown.completed, *shown.variants)
    named = answers(len(results), seed)
    # Pictures to compare with the result have its alpha, so that they differ in their colours alone.
    photographs = [
        ("incomplete", "Incomplete", f"What the method saw; holes are {hole}.", shown.incomplete, shown.alpha),
        *((*words, result, shown.alpha) for words, result in zip(named, results)),
        ("truth", "Truth", "What the result is measured against.", shown.truth, shown.alpha),
        ("given", "As given", "The input, with what the mask replaces.", given, shown.given_alpha),
    ]
    photographs = [row for row in photographs if row[3] is not None]
    low, high = display.limits(shown.full_range, *(picture for *_, picture, _ in photographs))
    made = {
        name: Figure(
            name,
            title,
            note,
            pictures.photograph(picture, low, high, factor, shown.inks, alpha, shown.premultiplied, shown.icc_profile),
        )
        for name, title, note, picture, alpha in photographs
    }
    missing = ~shown.observed
    apart = missing.ndim == 3 and bool((missing != missing[..., :1]).any())
    note = "The brighter, the more channels are missing." if apart else "White where pixels are missing."
    made["mask"] = Figure("mask", "Missing", note, pictures.holes(missing, factor))
    heats = []
    same = ", on the same scale as the error" if shown.truth is not None else ""
    if shown.sd is not None:
        heats.append(("uncertainty", "Uncertainty", f"Standard deviation{same}.", display.over_channels(shown.sd)))
    if shown.truth is not None:
        error = np.abs(shown.completed.astype(float) - shown.truth)
        heats.append(("error", "Error", "Absolute difference from the truth.", display.over_channels(error)))
    end, beyond = display.top(*(values for *_, values in heats)) if heats else (1.0, False)
    made |= {
        name: Figure(name, title, note, pictures.heat(values, end, factor), end, beyond)
        for name, title, note, values in heats
    }
    # In rows of two and of three: uncertainty and error side by side, whatever else there is.
    order = ("incomplete", "completed", "truth", "mask", "uncertainty", "error", "given")
    if shown.variants:  # side by side, before all else
        order = (*(name for name, *_ in named), *order[:1], *order[2:])
    return [made[name] for name in order if name in made]


def model_charts(report, traces, unit):
    """Charts of the rank and of the chains, where the method has them."""
    rank = report["rank"]
    made = [charts.posterior("Posterior of the rank", rank["posterior"])] if rank and rank["posterior"] else []
    drawn = [
        charts.trace(title, _times(traces[key], unit if scaled else 1))
        for key, (title, scaled) in TRACES.items()
        if key in traces
    ]
    return made + [chart for chart in drawn if chart is not None]


def _watched(traces, unit):
    """Charts of single entries."""
    drawn = [
        charts.trace(label(key), _times(chains, unit)) for key, chains in traces.items() if key.startswith(WATCHED)
    ]
    return [chart for chart in drawn if chart is not None]


def label(key):
    """A trace's name for a reader."""
    return TRACES[key][0] if key in TRACES else key.replace(WATCHED, "Entry ").capitalize()


def _times(chains, unit):
    return [[unit * value for value in chain] for chain in chains]
