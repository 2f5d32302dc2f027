"""The method of a cell at work: its time and its memory."""

import time
from dataclasses import dataclass, fields

import numpy as np

from .. import methods
from ..run.solve import apply, warm_up
from .cells import Outcome
from .memory import peak

# The method's draws come from a stream of their own, apart from those of the problem (`synth.STREAMS` and others, all
# small numbers).
METHOD_STREAM = 100


@dataclass(frozen=True)
class Completed:
    """A completion and what it cost.

    Attributes
    ----------
    completion : methods.Completion
    seconds : float
    memory : int or None
        See `cells.Outcome`.
    """

    completion: methods.Completion
    seconds: float
    memory: int | None

    def outcome(self, metrics, details=None, arrays=None):
        """Outcome of the cell with these figures."""
        return Outcome(metrics, self.seconds, self.memory, details or {}, arrays or {})


def complete(cell, values, observed, *, watch=None, **facts):
    """Run the method of `cell`, compiled before its time counts.

    Parameters
    ----------
    cell : cells.Cell
        Its method, parameters and seed count.
    values : (n_1, ..., n_K) ndarray of float
        The method gets NaN in place of what is not observed.
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.
    watch : callable or None
        For methods that can be watched; see `methods.datc.complete`.
    **facts
        What is known of the data, such as ``noise_std=0.03`` or ``ordered_modes=(0, 1)``: for the methods that have
        such a parameter.

    Returns
    -------
    Completed

    Raises
    ------
    NumericalError
        The estimate is not finite.
    TdcError
        What the method raises.
    """
    method = methods.get(cell.method)
    known = {f.name for f in fields(method.load().Config)}
    config = method.configure({key: value for key, value in facts.items() if key in known} | cell.parameters)
    warm_up(method, config, values.shape, 1 - observed.mean())
    rng = np.random.default_rng([cell.seed, METHOD_STREAM])
    more = {} if watch is None else {"watch": watch}
    with peak() as used:
        begin = time.perf_counter()
        completion = apply(method, config, values, observed, rng=rng, path=cell.data, **more)
        seconds = time.perf_counter() - begin
    return Completed(completion, seconds, used.bytes)
