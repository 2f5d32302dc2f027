"""Completing a clip chunk by chunk: what comes of each goes into the store."""

import time
from dataclasses import replace

import numpy as np

from ... import methods, metrics
from .. import completing
from ..seeds import DRAWS, stream
from ..values import unscaled
from .given import Window


def complete_chunks(plan, monitor=methods.silent):
    """Complete the chunks that the store does not have yet.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        Called as ``monitor(done, total, "frames")``; while a chunk is worked on, by the share of it that is done.

    Returns
    -------
    seconds : float
        Spent compiling.
    notes : tuple of str

    Raises
    ------
    TdcError
    """
    left = [chunk for chunk in plan.chunks if not plan.store.holds(chunk)]
    total = sum(chunk.end - chunk.first for chunk in plan.chunks)
    done = total - sum(chunk.end - chunk.first for chunk in left)
    if not left:
        return 0.0, ()
    start = time.perf_counter()
    notes = completing.warm_up(plan.method, plan.config, len(plan.given.shape) + 1, monitor)
    seconds = time.perf_counter() - start
    window = Window(plan.given.frames(truth=True))
    for chunk in left:
        monitor(done, total, "frames")
        _complete(plan, chunk, window.take(chunk.start, chunk.stop), _within(monitor, done, chunk.end - chunk.first, total))
        done += chunk.end - chunk.first
    monitor(done, total, "frames")
    return seconds, notes


def _within(monitor, before, length, total):
    """Monitor for the method, which knows nothing of the other chunks."""

    def tell(done, steps, label):
        monitor(before + (length * min(done, steps) // steps if steps else 0), total, "frames")

    return tell


def _complete(plan, chunk, frames, monitor):
    """Complete one chunk and keep what was estimated."""
    start = time.perf_counter()
    values = np.stack([plan.given.values(frame) for frame in frames], axis=-1)
    observed = np.stack([frame.observed for frame in frames], axis=-1)
    path = f"{plan.clip.path}, frames {chunk.start} to {chunk.stop - 1}"
    # A chunk that begins with frame 0 draws as a picture or an array of the same seed does.
    rng = stream(plan.job.seed, DRAWS, chunk.first)
    completion = completing.solve(plan.method, plan.config, values, observed, rng=rng, path=path, monitor=monitor)
    sd = completing.uncertainty(completion, plan.config, observed, plan.clip.dtype, plan.scale)
    stored = unscaled(completion.mean, plan.clip.dtype, plan.clip.full_range, path)
    kept, deviations = [], []
    sums = {"estimated": 0, "sd": 0.0, "missing": 0, "inside": 0}
    for i in range(*chunk.inside.indices(len(frames))):
        frame = frames[i]
        if not plan.changed(frame.number):
            continue
        absent = ~observed[..., i]
        estimated = np.ones_like(absent) if completing.estimates_known(plan.config) else absent
        kept.append(stored[..., i][estimated])
        if sd is None:
            continue
        deviations.append(sd[..., i][estimated])
        sums["estimated"] += int(np.count_nonzero(estimated))
        sums["sd"] += float(deviations[-1].sum(dtype=float))
        if frame.truth is not None and absent.any():
            count = int(np.count_nonzero(absent))
            share = metrics.coverage(frame.truth[absent], completion.mean[..., i][absent] * plan.scale, sd[..., i][absent])
            sums["missing"] += count
            sums["inside"] += round(share * count)
    small = replace(completion, mean=None, traces={}, low_rank=None, **dict.fromkeys(completing.SPREADS))
    facts = {
        "seconds": time.perf_counter() - start,
        "sums": sums,
        **{key: _plain(getattr(small, key)) for key in ("rank", "mixture", "noise_std", "diagnostics", "held_out", "parameters")},
        "warnings": list(small.warnings),
    }
    plan.store.save(chunk, np.concatenate(kept), np.concatenate(deviations) if sd is not None else None, facts)


def _plain(value):
    """`value` with plain Python types in place of NumPy's."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
