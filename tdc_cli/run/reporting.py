"""The report of a run: the one place where one is made."""

import math
import platform
from dataclasses import asdict

import numpy as np

from .. import __version__
from . import threads
from .report import Report
from .request import worded

_OF_ONE = ("rank", "mixture", "diagnostics")


def report(plan, answers, works, measures, timing):
    """`Report` of a run.

    Parameters
    ----------
    plan : Plan
    answers : sequence of Plan
        Its `answers`, completed. The first one is reported on; warnings and seconds are of all.
    works : sequence of work.Work
        What the work on each has told.
    measures : object or None
        See `measure.measures_for`.
    timing : dict
        ``write`` and ``total``, seconds.
    """
    of_each = [[answer.store.facts(region) for region in answer.regions] for answer in answers]
    facts = of_each[0]
    measured, reasons = None, []
    if measures is not None:
        measured, reasons = measures.result()
        frames = measured.pop("frames")
        measured |= {"low_rank": None, "oracle_floor": None, "frames": frames}
    only = facts[0] if len(facts) == 1 else dict.fromkeys(_OF_ONE)
    if len(facts) > 1 and any(fact[name] for fact in facts for name in _OF_ONE):
        reasons = [*reasons, f"rank, mixture and diagnostics are null: the input was completed in {len(facts)} regions"]
    warnings = {text: None for each in of_each for fact in each for text in fact["warnings"]}
    warnings |= {text: None for work in works for text in work.notes}
    levels = [fact["noise_std"] for fact in facts if fact["noise_std"] is not None]
    uncertainty = None
    if plan.gives_uncertainty:
        held_out = [fact["held_out"] for fact in facts]
        if plan.shares:  # they all have what was held out of the samples
            held_out = held_out[:1]
        uncertainty = uncertainty_of([fact["sums"] for fact in facts], held_out)
    invented = _sum([fact["invented"] for fact in facts])
    if invented and uncertainty is not None and not uncertainty["mean_sd"]:
        reasons = [*reasons, "all that is known has one colour: an uncertainty of 0 says only that no source differs"]
    told = (*plan.notes, *plan.warnings, *warnings, *reasons, *_nothing_copied(answers), *_alike(answers))
    # Regions side by side, and those of a run that was interrupted, together take longer than there was.
    seconds = min(sum(fact["seconds"] for each in of_each for fact in each), timing["total"] - timing["write"])
    return compose(
        plan.method,
        _parameters(plan, facts),
        command=plan.request.command,
        seed=plan.request.seed,
        threads_asked=plan.request.threads,
        input=plan.described,
        missing=plan.missing,
        invented=invented,
        noise_std=math.hypot(*levels) / math.sqrt(len(levels)) if levels else None,
        uncertainty=uncertainty,
        metrics=measured,
        timing={"read": plan.spent, "compile": sum(work.compiling for work in works), "complete": seconds, **timing},
        outputs={name: str(path) for name, path in plan.request.outputs.items()},
        warnings=[worded(text) for text in told],
        variants=[_named(answer.request) for answer in answers] if answers[1:] else None,
        **{name: only[name] for name in _OF_ONE},
    )


def compose(method, parameters, *, command, threads_asked, **entries):
    """`Report` with what all runs say of themselves: the program, its environment, the method.

    Parameters
    ----------
    method : methods.Method
    parameters : dict
        Of the method, those in force.
    command : sequence of str
    threads_asked : int or None
    **entries
        The other fields of `Report`.
    """
    return Report(
        tool={"name": "tdc", "version": __version__},
        command=list(command),
        method={"name": method.name, "parameters": parameters},
        environment={"python": platform.python_version(), "threads": threads_asked or threads.available()},
        **entries,
    )


def missing_of(decision, total, count, pixels, grey_levels=0):
    """The entry `missing` of a report.

    Parameters
    ----------
    decision : holes.Decision
    total, count, pixels : int
        Entries, those that are missing, and places with any that is missing.
    grey_levels : int
        Pixels of the mask that are neither black nor white.
    """
    return {
        "source": decision.source,
        "pattern": decision.pattern,
        "mask": decision.mask,
        "grey_levels": grey_levels,
        "count": count,
        "pixels": pixels,
        "ratio": count / total,
    }


def _named(request):
    """One of several answers in the report."""
    return {"path": str(request.output), "seed": request.seed}


def _nothing_copied(answers):
    """A line where it was said what may be copied, and nothing was; else none."""
    if answers[0].request.source is None or _anything_invented(answers):
        return []
    return ["no pixel was invented, since no hole is deep: `source` had no part"]


def _anything_invented(answers):
    return any(answer.store.facts(region)["invented"] for answer in answers for region in answer.regions)


def _alike(answers):
    """A line on how little several answers differ where nothing was invented or drawn in any of them; else none."""
    first, *others = answers
    if not others or first.request.grain or _anything_invented(answers):
        return []
    most = 0
    for region in first.regions:
        values = first.store.load(region)[0].astype(float)
        most = max(most, *(float(np.abs(other.store.load(region)[0] - values).max(initial=0)) for other in others))
    full = f" of {first.source.full_range}" if first.source.full_range else ""
    how = f"differ by at most {most:.3g}{full}" if most else "are the same"
    return [f"no pixel was invented: the {len(answers)} answers {how}"]


def _sum(counts):
    """Sum of what is not None; None where there is nothing else."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _parameters(plan, facts):
    """Parameters in force: those that all regions have in common, and None where they differ."""
    used = [fact["parameters"] for fact in facts if fact["parameters"]]  # none where a region had nothing to estimate
    if not used:
        return asdict(plan.config)
    return {key: value if all(other.get(key) == value for other in used) else None for key, value in used[0].items()}


def uncertainty_of(sums, held_out):
    """The entry `uncertainty` of a report.

    Parameters
    ----------
    sums : sequence of dict
        Of every region, see `solve.counted`.
    held_out : sequence of dict or None
        See `methods.Completion`.
    """
    total = {key: sum(each[key] for each in sums) for key in ("estimated", "sd", "missing", "inside")}
    held = [each for each in held_out if each]
    return {
        "mean_sd": total["sd"] / total["estimated"] if total["estimated"] else 0.0,
        "coverage90": total["inside"] / total["missing"] if total["missing"] else None,
        "held_out": _pooled(held) if len(held) > 1 else held[0] if held else None,
    }


def _pooled(held):
    judged = [one for one in held if one["coverage90"] is not None]
    count = sum(one["count"] for one in judged)
    inside = sum(one["count"] * one["coverage90"] for one in judged)
    return {"count": sum(one["count"] for one in held), "coverage90": inside / count if count else None}
