"""What every kind of input has in common once its `Plan` is made: complete, restore what is known, measure, report."""

import platform
import time
from dataclasses import dataclass, replace

import numpy as np

from .. import __version__
from ..methods import Completion
from . import completing, threads
from .report import Report
from .seeds import DRAWS, stream
from .values import unscaled


@dataclass(frozen=True)
class Outcome:
    """What came out of the work, in the units and the dtype of the file.

    Attributes
    ----------
    values : ndarray
        The completed colours, or the completed tensor.
    incomplete : ndarray
        The input with the added noise; what is in its holes means nothing.
    sd : ndarray or None
        Standard deviation of every entry, 0 where known exactly.
    completion : methods.Completion
        Without its arrays.
    uncertainty, metrics : dict or None
        As in the report.
    reasons : list of str
        Why a measure is null.
    begun : float
        `time.perf_counter` at the start of the work.
    compile_seconds, complete_seconds : float
    """

    values: np.ndarray
    incomplete: np.ndarray
    sd: np.ndarray | None
    completion: Completion
    uncertainty: dict | None
    metrics: dict | None
    reasons: list
    begun: float
    compile_seconds: float
    complete_seconds: float


def work(plan, compare, monitor):
    """Complete and measure.

    Parameters
    ----------
    plan : Plan
    compare : callable
        ``compare(truth, estimate, observed, data_range)`` as `metrics.compare`.
    monitor : callable

    Returns
    -------
    Outcome

    Raises
    ------
    TdcError
        The method failed, or gave values that are not finite.
    """
    job, source = plan.job, plan.media
    begun = time.perf_counter()
    with threads.limited(job.threads):
        completion, compile_seconds, complete_seconds = completing.complete(
            plan.method, plan.config, plan.values, plan.observed, rng=stream(job.seed, DRAWS), path=source.path, monitor=monitor
        )
    incomplete = source.colour if not job.add_noise else unscaled(plan.values, source.values.dtype, source.full_range, source.path)
    values = unscaled(completion.mean, source.values.dtype, source.full_range, source.path)
    if not completing.estimates_known(plan.config):
        values = np.where(plan.observed, incomplete, values)
    sd = completing.uncertainty(completion, plan.config, plan.observed, source.values.dtype, plan.scale)
    uncertainty = completing.describe_uncertainty(completion, plan.config, plan.observed, sd, plan.truth, plan.scale)
    # The measures want memory of their own; all that is still to come of the estimates is in `values` and `sd`.
    completion = replace(completion, mean=None, **dict.fromkeys(completing.SPREADS))
    measured, reasons = None, []
    if plan.truth is not None:
        data_range = source.full_range or float(np.nanmax(plan.truth)) - float(np.nanmin(plan.truth))
        measured, reasons = compare(plan.truth, values, plan.observed, data_range)
        measured |= {"low_rank": None, "oracle_floor": None, "frames": None}
    return Outcome(values, incomplete, sd, completion, uncertainty, measured, reasons, begun, compile_seconds, complete_seconds)


def report(plan, outcome, write_seconds):
    """Report of a run.

    Parameters
    ----------
    plan : Plan
    outcome : Outcome
    write_seconds : float

    Returns
    -------
    Report
    """
    job, source, completion = plan.job, plan.media, outcome.completion
    return Report(
        tool={"name": "tdc", "version": __version__},
        command=list(job.command),
        seed=job.seed,
        input={
            "path": source.path,
            "sha256": source.sha256,
            "shape": list(source.values.shape),
            "dtype": str(source.values.dtype),
            "mode": source.mode,
        },
        missing=plan.missing,
        method={"name": plan.method.name, "parameters": completion.parameters},
        rank=completion.rank,
        mixture=completion.mixture,
        noise_std=completion.noise_std,
        diagnostics=completion.diagnostics,
        uncertainty=outcome.uncertainty,
        metrics=outcome.metrics,
        timing={
            "read": plan.seconds,
            "compile": outcome.compile_seconds,
            "complete": outcome.complete_seconds,
            "write": write_seconds,
            "total": plan.seconds + time.perf_counter() - outcome.begun,
        },
        environment={"python": platform.python_version(), "threads": job.threads or threads.available()},
        outputs={key: str(path) for key, path in job.outputs.items()},
        warnings=[*plan.notes, *plan.warnings, *completion.warnings, *outcome.reasons],
    )
