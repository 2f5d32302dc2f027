"""One method at work on a problem, and what is reported of it."""

import time
from dataclasses import dataclass, fields, replace

import numpy as np

from ... import methods, metrics
from ...errors import ConfigError
from ...model.state import unit_weights
from ...run import threads
from ...run.configure import check_order
from ...run.holes import Decision, Nothing
from ...run.report import Report
from ...run.reporting import compose, missing_of, uncertainty_of
from ...run.solve import complete, counted, estimates_known
from .. import synth
from ..completing import METHOD_STREAM
from ..curve import Curve


@dataclass(frozen=True)
class Trial:
    """What came out.

    Attributes
    ----------
    report : Report
    completion : methods.Completion
        Observed entries restored where the problem has no noise.
    curve : Curve or None
        Of methods that sample, if asked for.
    """

    report: Report
    completion: methods.Completion
    curve: Curve | None


def prepare(names, order, noise_std, parameters):
    """Methods and their configs; those that know a noise level get the problem's.

    Parameters
    ----------
    names : sequence of str
        In `methods.REGISTRY`, each once.
    order : int
        Modes of the problem.
    noise_std : float
    parameters : mapping of str to object
        Each goes to the methods that have it, and one of them must.

    Returns
    -------
    list of (methods.Method, config)

    Raises
    ------
    ConfigError
    """
    chosen = [methods.get(name) for name in names]
    if len(set(names)) < len(names):
        raise ConfigError(f"a method is named twice: {', '.join(names)}")
    known = {method.name: {field.name for field in fields(method.load().Config)} for method in chosen}
    left = [key for key in parameters if not any(key in its for its in known.values())]
    if left:
        chosen[0].configure({left[0]: parameters[left[0]]})  # says what parameters there are
    plans = []
    for method in chosen:
        check_order(method, order)
        own = {key: value for key, value in parameters.items() if key in known[method.name]}
        if "noise_std" in known[method.name] and not {"noise_std", "tau0"} & own.keys():
            own["noise_std"] = noise_std
        plans.append((method, method.configure(own)))
    return plans


def watchable(method):
    """Whether a method tells its estimate after every sweep."""
    return method.takes("watch")


def run(
    source, method, config, *, seed, threads_limit=None, command=(), outputs=None, monitor=methods.silent, watched=False
):
    """Complete a problem by one method and measure the result.

    Parameters
    ----------
    source : Source
    method, config
        See `prepare`.
    seed : int
        Of the method's draws.
    threads_limit : int or None
        None: all cores.
    command : sequence of str
        For the report.
    outputs : dict of str to str, optional
        For the report.
    monitor : callable
        See `methods.silent`.
    watched : bool
        Whether the relative error of every sweep is kept, which costs a reconstruction a sweep.

    Returns
    -------
    Trial

    Raises
    ------
    TdcError
        The method failed.
    """
    begin = time.perf_counter()
    problem, observed = source.problem, source.problem.observed
    curve = Curve(problem.latent) if watched and watchable(method) else None
    with threads.limited(threads_limit):
        start = time.perf_counter()
        completion, compiling = complete(
            method,
            config,
            problem.incomplete,
            observed,
            rng=np.random.default_rng([seed, METHOD_STREAM]),
            path=source.path,
            monitor=monitor,
            **({"watch": curve.watch} if curve else {}),
        )
        working = time.perf_counter() - start - compiling
    if problem.noise_std == 0:
        completion = replace(completion, mean=np.where(observed, problem.noisy, completion.mean))
    measured, reasons = _measure(problem, completion)
    total = time.perf_counter() - begin
    report = compose(
        method,
        completion.parameters,
        command=command,
        threads_asked=threads_limit,
        seed=seed,
        input={
            "path": source.path,
            "sha256": source.sha256,
            "shape": list(problem.shape),
            "dtype": "float64",
            "mode": "tensor",
        },
        missing=missing_of(Decision(Nothing(), pattern="entries"), observed.size, *2 * [int((~observed).sum())]),
        uncertainty=_uncertainty(problem, completion, config),
        metrics=measured,
        timing={
            "read": source.seconds,
            "compile": compiling,
            "complete": working,
            "write": 0.0,
            "total": source.seconds + total,
        },
        outputs=outputs or {},
        warnings=[*completion.warnings, *reasons],
        **{name: getattr(completion, name) for name in ("rank", "mixture", "noise_std", "diagnostics")},
        synthetic=_truth(problem, completion),
    )
    return Trial(report, completion, curve)


def _uncertainty(problem, completion, config):
    """The entry `uncertainty` of the report; None where the method gives none."""
    sd, absent = completion.uncertainty, ~problem.observed
    if sd is None:
        return None
    estimated = np.ones_like(absent) if estimates_known(config) else absent
    return uncertainty_of([counted(completion.mean, sd, estimated, absent, problem.latent)], [completion.held_out])


def _measure(problem, completion):
    """Metrics against L and against X, and why some are None."""
    latent = problem.latent
    measured, reasons = metrics.compare_tensor(latent, completion.mean, problem.observed, float(np.ptp(latent)))
    # The constant of the data belongs to E where there is one; else all of the estimate is X.
    low_rank = completion.mean if problem.kind == "zero" else completion.low_rank
    if low_rank is None:
        reasons = [*reasons, "metrics.low_rank is null: the method does not tell the low-rank part from the rest"]
    part = None if low_rank is None else {"rre": metrics.rre(problem.low_rank, low_rank)}
    return measured | {"low_rank": part, "oracle_floor": problem.oracle_floor, "frames": None}, reasons


def _truth(problem, completion):
    """The entry `synthetic` of the report."""
    parts = synth.KINDS[problem.kind]
    return {
        "kind": problem.kind,
        "rank": problem.rank,
        "noise_std": problem.noise_std,
        "mixture": {
            "weights": [part.share for part in parts],
            "means": [part.mean for part in parts],
            "precisions": [1.0 / part.variance if part.variance else None for part in parts],
        },
        "weights": {"true": np.sort(unit_weights(problem))[::-1].tolist(), "found": completion.weights},
    }
