"""The work on all regions of an input, one after another or side by side; what comes of each goes into the store."""

import contextlib
import time
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass

import numpy as np

from .. import interrupts, methods
from ..compiled import not_kept
from ..errors import WorkerLost
from ..methods.solve import share
from . import threads
from .frames import Window
from .job import Job, complete
from .regions import samples
from .solve import warm_up
from .streams import SHARED, stream


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


@interrupts.held()
def solve(plan, monitor=methods.silent, executor=None):
    """Complete the regions that the store does not have yet.

    Parameters
    ----------
    plan : Plan
    monitor : callable
        Called as ``monitor(done, total, label)``: of one region as its method does; of several tiles with the label
        "pixels", of frames that follow each other with "frames", and the share of a region that is done.
    executor : concurrent.futures.Executor or None
        Does the work, `plan.workers` regions at a time, in place of processes of this program.

    Returns
    -------
    Work

    Raises
    ------
    TdcError
    """
    with interrupts.heard():
        left = [region for region in plan.regions if not plan.store.holds(region)]
    if not left:
        return Work()
    with threads.limited(plan.request.threads):
        start = time.perf_counter()
        with interrupts.heard():
            warm_up(plan.method, plan.config, plan.shape, plan.missing["ratio"])
        seconds = time.perf_counter() - start
        shared = _shared(plan, monitor)
        progress = _Progress(plan, left, monitor)
        window = Window(plan.incomplete.frames(truth=True))
        calls = ((region, complete, *_prepared(plan, region, window, shared)) for region in left)
        for region, done in _worked_on(calls, executor, min(plan.workers, len(left)), progress):
            plan.store.save(region, done.values, done.sd, done.facts, done.invented)
            progress.done(region)
    return Work(seconds, not_kept())


def _worked_on(calls, executor, workers, progress):
    """Iterator over (region, Finished) as they end."""
    if executor is None and workers <= 1:
        for region, call, *arguments in calls:
            with interrupts.heard():
                done = call(*arguments, progress.within(region))
            yield region, done
            del arguments  # before the next region's are made
        return
    from .pool import Processes, completed  # most runs have no workers, and should not wait for this

    with contextlib.nullcontext(executor) if executor is not None else Processes(workers) as pool:
        for region, future in completed(pool, calls, workers + 1):
            try:
                yield region, future.result()
            except BrokenExecutor as error:
                raise WorkerLost(
                    "a worker process was killed; if memory was short, try fewer `jobs` or a smaller `memory`; "
                    "finished regions are kept"
                ) from error


@interrupts.heard()
def _shared(plan, monitor):
    """What the method decides once for all tiles, and the range of what is observed; None where there is one, or where
    frames follow.
    """
    if not plan.shares:
        return None
    frame = next(plan.incomplete.frames())
    rng = stream(plan.request.seed, SHARED)
    channels = plan.incomplete.entries // int(np.prod(plan.source.shape[:2]))
    parts = []
    for square in samples(plan.survey.coverage, channels, rng):
        window = tuple(slice(*axis) for axis in square)
        known = np.ascontiguousarray(frame.observed[window])
        parts.append((plan.incomplete.values(frame, window), known, frame.estimated(False, window)))
    span = plan.incomplete.span(frame)
    monitor(0, len(plan.regions), "samples")
    return span, share(plan.method, plan.config, parts, span=span, rng=rng)


class _Progress:
    """How far the work on several regions has come: by frames where they follow each other, else by pixels."""

    def __init__(self, plan, left, monitor):
        self._monitor, self._in_time = monitor, plan.incomplete.in_time
        self._label = "frames" if self._in_time else "pixels"
        self._tiles = {}
        for region in plan.regions:
            self._tiles[region.used[0]] = self._tiles.get(region.used[0], 0) + region.pixels
        self._total = sum(self._size(region) for region in plan.regions)
        self._done = self._total - sum(self._size(region) for region in left)
        self._alone = len(plan.regions) == 1 and not self._in_time
        if not self._alone:
            self._tell(0)

    def _size(self, region):
        """Frames, of several tiles their shares of them, or pixels."""
        if not self._in_time:
            return region.pixels
        return (region.end - region.first) * region.pixels / self._tiles[region.used[0]]

    def _tell(self, more):
        self._monitor(round(self._done + more), round(self._total), self._label)

    def within(self, region):
        """Monitor for the method, which knows nothing of the other regions."""
        if self._alone:
            return self._monitor
        return lambda done, steps, label: self._tell(self._size(region) * min(done, steps) / steps if steps else 0)

    def done(self, region):
        """Tell that a region is finished."""
        self._done += self._size(region)
        if not self._alone:
            self._tell(0)


@interrupts.heard()
def _prepared(plan, region, window, shared):
    """Job, values, observed entries, those to be filled or None, and truths of a region, whose frames `window` has."""
    source, incomplete = plan.source, plan.incomplete
    frames = window.take(region.start, region.stop)
    planar = source.mode != "tensor"
    seen, used = (region.window, region.plane) if planar else ((), ())
    values = [incomplete.values(frame, seen) for frame in frames]
    observed = [frame.observed[seen] for frame in frames]
    wanted = [frame.estimated(False, seen) for frame in frames]
    values, observed, wanted = (np.stack(a, axis=-1) if incomplete.in_time else np.ascontiguousarray(a[0])
                                for a in (values, observed, wanted))  # fmt: skip
    if all(frame.kept is None for frame in frames):
        wanted = None
    kept = frames[region.first - region.start : region.end - region.start]
    truths = [None if frame.truth is None else frame.truth[used] for frame in kept]
    further = dict(plan.further)
    if "source" in further and planar:
        further["source"] = further["source"][seen]
    if plan.tiled and plan.method.undivided is not None:
        further["used"] = region.inside
    path = source.path
    if incomplete.in_time:
        path = f"{path}, frames {region.start} to {region.stop - 1}"
    span = None
    if shared is not None:
        span, decided = shared
        if decided is not None:
            further["part"] = methods.Part(tuple(s.start for s in seen), decided)
    job = Job(
        plan.method.name,
        plan.config,
        plan.request.seed,
        region,
        path,
        source.dtype,
        source.full_range,
        incomplete.in_time,
        planar,
        tuple(plan.changed(frame.number) for frame in kept),
        _threads(plan),
        span,
        further,
        source.fields,
    )
    return job, values, observed, wanted, truths


def _threads(plan):
    """Threads of each worker; those of all together are the cores, unless the user says how many."""
    return plan.request.threads or (max(1, threads.available() // plan.workers) if plan.workers > 1 else None)
