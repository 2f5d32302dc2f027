"""A method at work: on arrays, and on an input region by region; what comes of each region goes into the store."""

import time
from dataclasses import asdict, dataclass, replace

import numpy as np

from .. import methods, metrics
from ..errors import NumericalError
from ..holes import in_any_channel
from ..methods.solve import solve as completion_of
from . import threads
from .frames import Window
from .streams import DRAWS, stream
from .values import unscaled

# Arrays of a completion that `uncertainty` chooses from.
SPREADS = ("sd", "predictive_sd", "interval_sd", "latent_interval_sd")
# What is noted of a completed region beside its estimates.
NOTED = ("rank", "mixture", "noise_std", "diagnostics", "held_out", "parameters")


def estimates_known(config):
    """Whether the known entries are estimated too, because they are noisy, rather than restored."""
    return getattr(config, "noise_std", 0.0) != 0


def gives_uncertainty(method, config):
    """Whether standard deviations come with the estimates."""
    return method.uncertainty and getattr(config, "calibrate", True)


def warm_up(method, config, order, monitor=methods.silent):
    """Compile what the method needs.

    Parameters
    ----------
    method : methods.Method
    config : dataclass of the method
    order : int
        Number of modes.
    monitor : callable

    Returns
    -------
    notes : tuple of str
        What the user should know about it.
    """
    module = method.load()
    if not hasattr(module, "warm_up"):
        return ()
    from ..kernels import CACHE, NOT_KEPT

    monitor(0, 1, "compile")
    module.warm_up(order, config)
    monitor(1, 1, "compile")
    return () if CACHE else (NOT_KEPT,)


def complete(method, config, values, observed, *, rng, path, monitor=methods.silent, **further):
    """Completion of arrays, with nothing to do where nothing is missing and nothing is noisy; see `methods.solve`.

    Returns
    -------
    completion : methods.Completion
        With its `uncertainty`.
    compiling : float
        Seconds spent compiling.
    """
    if observed.all() and not estimates_known(config):
        zero = np.zeros(values.shape) if method.uncertainty else None
        return methods.Completion(mean=values, interval_sd=zero, uncertainty=zero, parameters=asdict(config)), 0.0
    start = time.perf_counter()
    notes = warm_up(method, config, values.ndim, monitor)
    compiling = time.perf_counter() - start
    done = apply(method, config, values, observed, rng=rng, path=path, monitor=monitor, **further)
    sd = uncertainty(done, config, observed)
    return replace(done, uncertainty=sd, warnings=(*done.warnings, *notes)), compiling


def apply(method, config, values, observed, *, path, **how):
    """Completion by a method, see `methods.solve.solve`; an error of the numbers names the input `path`."""
    try:
        return completion_of(method, config, values, observed, **how)
    except NumericalError as error:
        raise NumericalError(f"{path}: {error}") from error


def uncertainty(completion, config, observed):
    """Standard deviation of every entry in the method's units, 0 where known exactly; None if there is none.

    Parameters
    ----------
    completion : methods.Completion
    config : dataclass of the method
    observed : ndarray of bool
    """
    if estimates_known(config):
        return completion.sd if completion.latent_interval_sd is None else completion.latent_interval_sd
    sd = completion.predictive_sd if completion.interval_sd is None else completion.interval_sd
    sd = completion.sd if sd is None else sd
    return None if sd is None else np.where(observed, 0.0, sd)


@dataclass(frozen=True)
class Work:
    """What the work on all regions has told.

    Attributes
    ----------
    compiling : float
        Seconds spent compiling.
    notes : tuple of str
    """

    compiling: float = 0.0
    notes: tuple = ()


def solve(plan, monitor=methods.silent):
    """Complete the regions that the store does not have yet.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        Called as ``monitor(done, total, label)``: of one region as its method does; of several, or of frames that follow each other, with
        the label "frames" and the share of the region that is done.

    Returns
    -------
    Work

    Raises
    ------
    TdcError
    """
    left = [region for region in plan.regions if not plan.store.holds(region)]
    if not left:
        return Work()
    with threads.limited(plan.request.threads):
        start = time.perf_counter()
        notes = warm_up(plan.method, plan.config, plan.order, monitor)
        seconds = time.perf_counter() - start
        window = Window(plan.incomplete.frames(truth=True))
        total = sum(region.end - region.first for region in plan.regions)
        done = total - sum(region.end - region.first for region in left)
        in_time = plan.incomplete.in_time
        for region in left:
            if in_time:
                monitor(done, total, "frames")
            inner = _within(monitor, done, region.end - region.first, total) if in_time else monitor
            _complete(plan, region, window.take(region.start, region.stop), inner)
            done += region.end - region.first
        if in_time:
            monitor(done, total, "frames")
    return Work(seconds, notes)


def _within(monitor, before, length, total):
    """Monitor for the method, which knows nothing of the other regions."""

    def tell(done, steps, label):
        monitor(before + (length * min(done, steps) // steps if steps else 0), total, "frames")

    return tell


def _complete(plan, region, frames, monitor):
    """Complete one region and keep what was estimated."""
    start = time.perf_counter()
    values, observed, kept = _joined(plan, frames)
    path = plan.incomplete.source.path
    if plan.incomplete.in_time:
        path = f"{path}, frames {region.start} to {region.stop - 1}"
    rng = stream(plan.request.seed, DRAWS, region.first)
    wanted = None if kept is None else ~(observed | kept)
    done = apply(plan.method, plan.config, values, observed, rng=rng, path=path, monitor=monitor, wanted=wanted, **plan.further)
    del values
    source = plan.incomplete.source
    sd = uncertainty(done, plan.config, observed)
    if sd is not None:
        sd = (sd * plan.scale).astype(plan.sd_dtype)
    stored = unscaled(done.mean, source.dtype, source.full_range, path)
    kept, deviations, invented = [], [], 0
    sums = dict.fromkeys(("estimated", "sd", "missing", "inside"), 0)
    for frame in frames[region.first - region.start : region.end - region.start]:
        if not plan.changed(frame.number):
            continue
        place = (..., frame.number - region.start) if plan.incomplete.in_time else ...
        absent, estimated = frame.absent, frame.estimated(estimates_known(plan.config))
        guessed = np.zeros_like(absent) if done.invented is None else _invented(done.invented, place, plan, absent)
        invented += int(np.count_nonzero(in_any_channel(guessed)))
        kept.append(stored[place][estimated])
        if sd is None:
            continue
        deviations.append(sd[place][estimated])
        tally = counted(done.mean[place] * plan.scale, sd[place], estimated, absent & ~guessed, frame.truth)
        sums = {key: sums[key] + more for key, more in tally.items()}
    facts = {"seconds": time.perf_counter() - start, "sums": sums, "warnings": list(done.warnings),
             "invented": None if done.invented is None else invented,
             "traces": {} if plan.incomplete.in_time else done.traces, **{name: getattr(done, name) for name in NOTED}}  # fmt: skip
    plan.store.save(region, np.concatenate(kept), np.concatenate(deviations) if sd is not None else None, facts)


def _invented(invented, place, plan, absent):
    """Entries of a frame that were invented, from the (H, W) or, of frames that follow each other, (H, W, T) pixels of a completion."""
    pixels = invented[place] if plan.incomplete.in_time else invented
    return absent & pixels.reshape(*pixels.shape, *(1,) * (absent.ndim - 2))


def counted(mean, sd, estimated, absent, truth):
    """What the entry `uncertainty` of a report is made from.

    Parameters
    ----------
    mean, sd : ndarray
    estimated, absent : ndarray of bool
        What was estimated, and what was missing and is predicted rather than invented.
    truth : ndarray or None
        In the units of the mean; not finite where it is not known.

    Returns
    -------
    dict
        ``estimated`` entries and the sum ``sd`` of their standard deviations; ``missing`` entries whose truth is known, and those of them
        ``inside`` their 90 % interval.
    """
    sums = {"estimated": int(np.count_nonzero(estimated)), "sd": float(sd[estimated].sum(dtype=float)), "missing": 0, "inside": 0}
    judged = absent & np.isfinite(truth) if truth is not None else np.zeros_like(absent)
    if judged.any():
        sums["missing"] = int(np.count_nonzero(judged))
        sums["inside"] = round(metrics.coverage(truth[judged], mean[judged], sd[judged]) * sums["missing"])
    return sums


def _joined(plan, frames):
    """Values, observed and kept entries (or None) of some frames as the method gets them: those that follow each other along a last mode."""
    if not plan.incomplete.in_time:
        return plan.incomplete.values(frames[0]), np.ascontiguousarray(frames[0].observed), frames[0].kept
    values = np.stack([plan.incomplete.values(frame) for frame in frames], axis=-1)
    kept = None
    if any(frame.kept is not None for frame in frames):
        kept = np.stack([np.zeros_like(frame.observed) if frame.kept is None else frame.kept for frame in frames], axis=-1)
    return values, np.stack([frame.observed for frame in frames], axis=-1), kept
