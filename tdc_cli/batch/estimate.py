"""What a run will take, from what runs have taken.

A guess to plan by, within a factor of three for photographs on a processor like that of the measurements; much depends on how the holes
lie, which it does not look at.
"""

import math
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Seconds of one core and bytes of memory, linear in the numbers of entries and of missing entries.

    Attributes
    ----------
    each, missing : float
        Microseconds for every entry, for every missing entry.
    first : float
        Microseconds for every entry of the first `FIRST`; what is learnt once from a part of the picture.
    space : float
        Bytes of a run without a picture: interpreter, libraries, compiled code.
    space_each, space_missing : float
        Bytes for every entry, for every missing entry.
    """

    each: float
    missing: float
    space: float
    space_each: float
    space_missing: float = 0.0
    first: float = 0.0


FIRST = 250_000
# Module of the method -> cost. Fitted by eye to processor time and peak memory of runs on one thread: a photograph
# of 128x128, 256x256 and 512x512 (field and biharmonic) with scratches over 5 % and with half of the pixels missing; 4000x3000 with
# scratches over 1 %. From `fbcp` on: pictures of 256x256 or 512x512 with half of the pixels missing alone.
COSTS = {
    "tdc_cli.methods.field": Cost(1.5, 5, 120e6, 50),
    "tdc_cli.methods.biharmonic": Cost(0.4, 10, 80e6, 40, 500),
    "tdc_cli.methods.patches": Cost(0.5, 530, 250e6, 60, first=40),
    "tdc_cli.methods.datc": Cost(100, 0, 200e6, 300),
    "tdc_cli.methods.fbcp": Cost(25, 0, 80e6, 500),
    "tdc_cli.methods.fbcp_image": Cost(15, 0, 80e6, 500),
    "tdc_cli.methods.brtf": Cost(13, 0, 80e6, 550),
    "tdc_cli.methods.falrtc": Cost(55, 0, 90e6, 110),
    "tdc_cli.methods.halrtc": Cost(16, 0, 90e6, 150),
    "tdc_cli.methods.rptc_scad": Cost(25, 0, 90e6, 150),
    "tdc_cli.methods.tmac": Cost(10, 0, 90e6, 80),
    "tdc_cli.methods.stdc": Cost(30, 0, 90e6, 145),
    "tdc_cli.methods.tsvd": Cost(33, 0, 90e6, 100),
    "tdc_cli.methods.spc": Cost(13, 0, 90e6, 60),
    "tdc_cli.methods.opencv": Cost(0.1, 1.5, 80e6, 70),
    "tdc_cli.methods.linear": Cost(0.1, 15, 90e6, 60, 340),
    "tdc_cli.methods.nearest": Cost(0.1, 0.1, 80e6, 40),
    "tdc_cli.methods.cp_masked": Cost(6, 0, 90e6, 120),
}


def cost(method, entries, missing):
    """Seconds of one core and bytes that completing a picture takes.

    Parameters
    ----------
    method : methods.Method
        A variant of another method costs what that one does.
    entries, missing : int

    Returns
    -------
    (float, float)
    """
    each = COSTS[method.module]
    seconds = 1e-6 * (each.each * entries + each.missing * missing + each.first * min(entries, FIRST)) if missing else 0.0
    return seconds, each.space + each.space_each * entries + each.space_missing * missing


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
    _, space = cost(plan.method, plan.observed.size, plan.missing["count"])
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told on every system
        return None
    if space <= there:
        return None
    return f"{plan.media.path}: may take {space / 1e9:.1f} GB of memory, and the machine has {there / 1e9:.1f} GB; try a part of it"


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
