"""What a run will take, said before it begins; see `pipeline.cost`."""

import math
import os

from .cost import cost


def describe(plan):
    """What a run would do, ready for JSON.

    Parameters
    ----------
    plan : pipeline.Plan

    Returns
    -------
    dict
    """
    seconds, space = cost(plan.method, plan.observed.size, plan.missing["count"])
    return {
        "input": plan.media.path,
        "shape": list(plan.media.values.shape),
        "missing": plan.missing,
        "method": plan.method.name,
        "outputs": {key: str(path) for key, path in plan.job.outputs.items()},
        "warnings": [*plan.notes, *plan.warnings],
        "estimate": {"seconds": round(seconds, 1), "bytes": int(space)},
    }


def lack_of_memory(plan):
    """Words for a run that may want more memory than the machine has, or None.

    Parameters
    ----------
    plan : pipeline.Plan
    """
    lack = too_much(plan.media.path, cost(plan.method, plan.observed.size, plan.missing["count"])[1])
    return lack and f"{lack}; try a part of it"


def too_much(path, space):
    """Words for a run on `path` that may want `space` bytes of memory, if the machine has less; else None."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told on every system
        return None
    if space <= there:
        return None
    return f"{path}: may take {space / 1e9:.1f} GB of memory, and the machine has {there / 1e9:.1f} GB"


def together(estimates, jobs):
    """Estimate of a batch from those of its pictures, `jobs` at a time."""
    return {"seconds": sum(e["seconds"] for e in estimates), "bytes": jobs * max((e["bytes"] for e in estimates), default=0)}


def in_words(estimate):
    """Such as ``about 3 min on one core and 300 MB``."""
    seconds, space = estimate["seconds"], estimate["bytes"]
    for unit, name in ((3600, "h"), (60, "min"), (1, "s")):
        if seconds >= unit:
            time = f"{math.ceil(seconds / unit)} {name}"
            break
    else:
        time = "1 s"
    return f"about {time} on one core and {math.ceil(space / 1e7) * 10} MB"
