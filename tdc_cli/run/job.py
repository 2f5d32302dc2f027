"""One region completed, here or in another process: a small description and arrays go in, what the store keeps comes
out.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from .. import methods
from ..holes import in_any_channel
from ..media.video.fields import apart
from . import interlaced, threads
from .regions import Region
from .solve import SPREADS, apply, counted, estimates_known, gives_uncertainty, uncertainty
from .streams import DRAWS, stream
from .values import unscaled

# What is noted of a completed region beside its estimates.
NOTED = ("rank", "mixture", "noise_std", "diagnostics", "held_out", "parameters")


@dataclass(frozen=True)
class Job:
    """What a region is completed by, beside its values: small, and ready to travel to another process.

    Attributes
    ----------
    method : str
    config : dataclass of the method
    seed : int
    region : Region
    path : str
        For messages.
    dtype : numpy.dtype
    full_range : int or None
        Of the file, see `values.unscaled`.
    in_time : bool
        Whether frames follow each other, as the last mode.
    planar : bool
        Whether modes 0 and 1 are rows and columns.
    changed : tuple of bool
        For every frame that is used, whether it is estimated.
    threads : int or None
    span : (float, float) or None
        Of the whole picture, see `methods.solve.solve`.
    further : dict
        Keywords for the method beyond those of all methods.
    fields : str or None
        Which field of interlaced frames comes first; the method gets fields.
    """

    method: str
    config: object
    seed: int
    region: Region
    path: str
    dtype: np.dtype
    full_range: int | None
    in_time: bool
    planar: bool
    changed: tuple
    threads: int | None
    span: tuple | None
    further: dict
    fields: str | None = None


@dataclass(frozen=True)
class Finished:
    """A completed region, as `store.Folder.save` takes it."""

    values: np.ndarray
    sd: np.ndarray | None
    facts: dict
    invented: np.ndarray | None = None


def complete(job, values, observed, wanted, truths, monitor=methods.silent):
    """Complete one region.

    Parameters
    ----------
    job : Job
    values : ndarray of float64
        What is seen, (H, W[, C][, T]) or a tensor; never read where not observed.
    observed : ndarray of bool
    wanted : ndarray of bool or None
        What is to be filled; None: all that is not observed.
    truths : list of ndarray or None
        For every frame that is used, what its rows and columns are measured against.
    monitor : callable

    Returns
    -------
    Finished
        The same wherever it is worked on.
    """
    inside = job.region.inside if job.planar else ()
    absent = ~observed[inside] if wanted is None else wanted[inside]
    # What is missing may lie in frames that are seen alone.
    if not any(job.changed) or (not absent.any() and not estimates_known(job.config)):
        return _nothing(job)
    with threads.limited(job.threads):
        return _complete(job, values, observed, wanted, truths, monitor)


def _nothing(job):
    """A tile of some frames in which nothing is to be estimated."""
    method, sd = methods.get(job.method), None
    if gives_uncertainty(method, job.config):
        sd = np.zeros(0, deviation_dtype(job.dtype))
    sums = dict.fromkeys(("estimated", "sd", "missing", "inside"), 0)
    facts = {"seconds": 0.0, "sums": sums, "warnings": [], "invented": None, "traces": {}, **dict.fromkeys(NOTED)}
    return Finished(np.zeros(0, job.dtype), sd, facts)


def _complete(job, values, observed, wanted, truths, monitor):
    start, region, method = time.perf_counter(), job.region, methods.get(job.method)
    rng = stream(job.seed, DRAWS, *(region.place if job.planar else region.place[:1]))
    given, further = (values, observed, wanted), job.further
    if job.fields:
        given = tuple(None if array is None else interlaced.apart(array, job.fields) for array in given)
        further = {name: np.logical_and(*apart(rows)) if name == "source" else rows for name, rows in further.items()}
    done = apply(
        method,
        job.config,
        *given[:2],
        rng=rng,
        path=job.path,
        monitor=monitor,
        span=job.span,
        wanted=given[2],
        shares=job.full_range is not None,
        **further,
    )
    if job.fields:
        done = interlaced.in_frames(done, job.fields)
    del values, given
    inside = region.inside if job.planar else ()
    mean, observed = done.mean[inside], observed[inside]
    wanted = ~observed if wanted is None else wanted[inside]
    sd, scale = uncertainty(replace(done, **_cut(done, inside)), job.config, observed), job.full_range or 1.0
    if sd is not None:
        sd = (sd * scale).astype(deviation_dtype(job.dtype))
    stored = unscaled(mean, job.dtype, job.full_range, job.path)
    kept, deviations, copied, invented = [], [], [], 0
    sums = dict.fromkeys(("estimated", "sd", "missing", "inside"), 0)
    for number, (changed, truth) in enumerate(zip(job.changed, truths)):
        if not changed:
            continue
        place = (..., region.first - region.start + number) if job.in_time else ...
        absent = wanted[place]
        guessed = (
            np.zeros_like(absent)
            if done.invented is None
            else _invented(done.invented[inside], place, job.in_time, absent)
        )
        invented += int(np.count_nonzero(in_any_channel(guessed)))
        estimated = absent | observed[place] if estimates_known(job.config) else absent
        kept.append(stored[place][estimated])
        copied.append(guessed[estimated])
        if sd is None:
            continue
        deviations.append(sd[place][estimated])
        tally = counted(mean[place] * scale, sd[place], estimated, absent & ~guessed, truth)
        sums = {key: sums[key] + more for key, more in tally.items()}
    facts = {"seconds": time.perf_counter() - start, "sums": sums, "warnings": list(done.warnings),
             "invented": None if done.invented is None else invented,
             "traces": {} if job.in_time else done.traces, **{name: getattr(done, name) for name in NOTED}}  # fmt: skip
    deviations = np.concatenate(deviations) if sd is not None else None
    return Finished(np.concatenate(kept), deviations, facts, np.concatenate(copied) if invented else None)


def _cut(done, inside):
    """The standard deviations of a completion at the rows and columns that are used."""
    return {name: None if getattr(done, name) is None else getattr(done, name)[inside] for name in SPREADS}


def deviation_dtype(dtype):
    """Type of standard deviations: double precision where the data have it, since single precision ends at 3e38."""
    return np.float64 if dtype == np.float64 else np.float32


def _invented(invented, place, in_time, absent):
    """Entries of a frame that were invented, from the (H, W) or, of frames that follow each other, (H, W, T) pixels of
    a completion.
    """
    pixels = invented[place] if in_time else invented
    return absent & pixels.reshape(*pixels.shape, *(1,) * (absent.ndim - 2))
