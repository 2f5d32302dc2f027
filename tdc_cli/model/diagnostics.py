"""Convergence: R-hat and effective sample size of quantities that the data determine, never of factors.

Factors are known only up to order, sign and scale, so their traces say nothing.
"""

import numpy as np

# Above this the chains do not agree (Vehtari et al. 2021 ask for 1.01 of a final analysis; a picture is usable well
# before that).
LARGEST_R_HAT = 1.1
LEAST_DRAWS = 4  # of each chain, that R-hat can be computed


def probes(observed, rng, count=8):
    """Flat indices of some missing entries (observed ones where nothing is missing) whose traces are kept."""
    candidates = np.flatnonzero(~observed) if not observed.all() else np.arange(observed.size)
    return np.sort(rng.choice(candidates, min(count, len(candidates)), replace=False))


def summarise(traces, still=()):
    """R-hat (rank-normalised, split) and bulk ESS of every trace.

    Parameters
    ----------
    traces : dict of str to (chains, draws) ndarray
    still : sequence of str
        Those of which it is no news that they are the same in all draws.

    Returns
    -------
    r_hat, ess : dict of str to float or None
        None where a trace is constant or too short to say.
    notes : list of str
    """
    from arviz_stats.base import array_stats

    chains, draws = next(iter(traces.values())).shape
    r_hat, ess, constant, notes = {}, {}, [], []
    for name, trace in traces.items():
        settled = (np.ptp(trace, axis=1) == 0).all()
        if settled or draws < LEAST_DRAWS:
            r_hat[name] = ess[name] = None
            if not np.ptp(trace):
                constant += [name] if name not in still else []
            elif settled:
                kept = ", ".join(f"{value:g}" for value in trace[:, 0])
                notes.append(f"the chains do not agree on {name}: each has kept to a value of its own ({kept})")
            continue
        with np.errstate(all="ignore"):
            r = float(array_stats.rhat(trace, chain_axis=0, draw_axis=1))
            e = float(array_stats.ess(trace, chain_axis=0, draw_axis=1, method="bulk"))
        r_hat[name] = r if np.isfinite(r) else None
        ess[name] = e if np.isfinite(e) else None
    if draws < LEAST_DRAWS:
        notes.append(f"no R-hat or ESS for {', '.join(traces)}: fewer than {LEAST_DRAWS} draws")
    elif constant:
        notes.append(f"no R-hat or ESS for {', '.join(constant)}: the same in all draws")
    if chains == 1 and any(value is not None for value in r_hat.values()):
        notes.append("one chain only: R-hat compares its two halves")
    return r_hat, ess, notes


def worst_r_hat(r_hat):
    """Name and value of the largest R-hat, or (None, None)."""
    known = {name: value for name, value in r_hat.items() if value is not None}
    if not known:
        return None, None
    name = max(known, key=known.get)
    return name, known[name]
