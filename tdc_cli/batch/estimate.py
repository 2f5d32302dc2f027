"""What a run will take, from what runs have taken.

A guess to plan by: within a factor of three for photographs on a processor like that of the measurements, and nothing is known of how the
holes lie, on which much depends.
"""

import math

# Method -> microseconds of one core for each entry, for each missing entry; bytes for each entry, beyond the idle program. Measured on
# photographs of 128x128 to 512x512 with scratches over 5 % and with half of the pixels missing.
COSTS = {
    "field": (4.0, 9.0, 350),
    "biharmonic": (0.4, 9.0, 450),
    "patches": (60.0, 120.0, 700),
    "datc": (1000.0, 0.0, 500),
}
_START_BYTES = 150e6


def cost(method, entries, missing):
    """Seconds of one core and bytes that completing a picture takes.

    Parameters
    ----------
    method : methods.Method
        Variants cost what the method that they are variants of costs.
    entries, missing : int

    Returns
    -------
    (float, float)
    """
    each, hole, space = COSTS[method.module.rpartition(".")[2]]
    return (each * entries + hole * missing) * 1e-6 if missing else 0.0, _START_BYTES + space * entries


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
        "estimate": {"seconds": round(seconds, 1), "bytes": int(space)},
    }


def in_words(seconds, bytes):
    """Such as ``about 3 min on one core and 300 MB``."""
    for unit, name in ((3600, "h"), (60, "min"), (1, "s")):
        if seconds >= unit:
            time = f"{math.ceil(seconds / unit)} {name}"
            break
    else:
        time = "1 s"
    return f"about {time} on one core and {math.ceil(bytes / 1e7) * 10} MB"
