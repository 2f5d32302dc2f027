"""The report of a clip, from what was noted of its chunks and measured of its frames."""

import platform
from dataclasses import asdict

import numpy as np

from ... import __version__, metrics
from .. import threads
from ..report import Report


def measures_for(plan):
    """`metrics.ClipMeasures` for the clip, None where no truth is known."""
    if plan.given.truth is None:
        return None
    if plan.clip.full_range:
        return metrics.ClipMeasures(plan.clip.full_range)
    low, high = plan.survey.low, plan.survey.high
    return metrics.ClipMeasures(high - low, max(abs(low), abs(high)))


def report_of(plan, measures, compiling, notes, timing):
    """`Report` of a run.

    Parameters
    ----------
    plan : Plan
    measures : metrics.ClipMeasures or None
    compiling : float
        Seconds.
    notes : tuple of str
    timing : dict
        ``write`` and ``total``, seconds.
    """
    job, clip = plan.job, plan.clip
    facts = [plan.store.facts(chunk) for chunk in plan.chunks]
    measured, reasons = None, []
    if measures is not None:
        measured, reasons = measures.result()
        measured |= {"low_rank": None, "oracle_floor": None}
    told = {text: None for fact in facts for text in fact["warnings"]} | dict.fromkeys(notes)
    only = facts[0] if len(facts) == 1 else dict.fromkeys(("rank", "mixture", "diagnostics"))
    if len(facts) > 1 and any(fact["rank"] or fact["mixture"] or fact["diagnostics"] for fact in facts):
        reasons.append(f"rank, mixture and diagnostics are null: the clip was completed in {len(facts)} chunks")
    levels = [fact["noise_std"] for fact in facts if fact["noise_std"] is not None]
    return Report(
        tool={"name": "tdc", "version": __version__},
        command=list(job.command),
        seed=job.seed,
        input={
            "path": clip.path,
            "sha256": clip.sha256,
            "shape": [clip.count, *clip.shape],
            "dtype": str(clip.dtype),
            "mode": clip.mode,
            "frames": clip.count,
            "rate": None if clip.rate is None else str(clip.rate),
        },
        missing=plan.missing,
        method={"name": plan.method.name, "parameters": _parameters(plan, facts)},
        rank=only["rank"],
        mixture=only["mixture"],
        noise_std=float(np.sqrt(np.mean(np.square(levels)))) if levels else None,
        diagnostics=only["diagnostics"],
        uncertainty=_uncertainty(plan, facts),
        metrics=measured,
        timing={
            "read": plan.spent,
            "compile": compiling,
            "complete": sum(fact["seconds"] for fact in facts),
            **timing,
        },
        environment={"python": platform.python_version(), "threads": job.threads or threads.available()},
        outputs={key: str(path) for key, path in job.outputs.items()},
        warnings=[*plan.notes, *plan.warnings, *told, *reasons],
    )


def _parameters(plan, facts):
    """Parameters in force: those that all chunks have in common, and None where they differ."""
    used = [fact["parameters"] for fact in facts]
    if not used:
        return asdict(plan.config)
    return {key: value if all(other.get(key) == value for other in used) else None for key, value in used[0].items()}


def _uncertainty(plan, facts):
    """The entry `uncertainty` of the report, pooled over the chunks."""
    if not plan.gives_deviations:
        return None
    sums = {key: sum(fact["sums"][key] for fact in facts) for key in ("estimated", "sd", "missing", "inside")}
    held = [fact["held_out"] for fact in facts if fact["held_out"]]
    judged = [one for one in held if one["coverage90"] is not None]
    count = sum(one["count"] for one in judged)
    return {
        "mean_sd": sums["sd"] / sums["estimated"] if sums["estimated"] else 0.0,
        "coverage90": sums["inside"] / sums["missing"] if sums["missing"] else None,
        "held_out": {
            "count": sum(one["count"] for one in held),
            "coverage90": sum(one["count"] * one["coverage90"] for one in judged) / count if count else None,
        }
        if held
        else None,
    }
