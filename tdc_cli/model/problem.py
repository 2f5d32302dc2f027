"""What is given and stays fixed while the chain runs: observed entries, priors, and how the work is cut into segments."""

from dataclasses import dataclass

import numpy as np

from ..tensor import Observed
from .state import Priors

# A row with very many entries is cut into segments so that few rows (colour channels) still feed every thread; at most this many.
MOST_SEGMENTS_A_ROW = 64
SMALLEST_SEGMENT = 2048
# The sums of the mode with fewest rows come from those of pairs of rows with a partner mode, if a pair has this many entries on
# average; with fewer the pairs' matrices cost more than the pass over the entries that they save.
SMALLEST_PAIR = 16
# Segments whose Gram matrices are held at a time: bounds the memory of a sweep to this many R x R matrices.
SEGMENTS_AT_A_TIME = 128


@dataclass(frozen=True)
class Batch:
    """Rows of one mode that are drawn together, with their segments of observed entries.

    Attributes
    ----------
    rows : (m,) int64 ndarray
    begins, ends : (S,) int64 ndarray
        Segment `s` is ``order[mode][begins[s]:ends[s]]``.
    bounds : (m + 1,) int64 ndarray
        Row `i` of the batch owns the segments ``bounds[i]:bounds[i + 1]``.
    owners : (S,) int64 ndarray
        Row of the mode that each segment belongs to.
    partners : (S,) int64 ndarray
        Row of the partner mode that each segment belongs to; 0 where there is no partner.
    """

    rows: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    bounds: np.ndarray
    owners: np.ndarray
    partners: np.ndarray


@dataclass(frozen=True)
class Problem:
    """Data and fixed choices of the model.

    Attributes
    ----------
    data : Observed
        Standardised observed entries.
    priors : Priors
    constant_residual : bool
        E is one constant and ``tau0`` is learnt (residual `none`) in place of a mixture.
    learn_noise : bool
        Whether ``tau0`` is drawn.
    noise_ceiling : float
        Largest ``tau0`` that is accepted (the data's own quantisation); infinite for none.
    coherences : tuple of Coherence or None
        One for every mode.
    first : (K,) int64 ndarray
        Row of the stacked factors at which each mode begins.
    batches : tuple of tuple of Batch
        For every mode, in the order in which they are drawn.
    shared : int
        Mode with fewest rows, whose Gram matrices also serve the CP weights; -1 if it has too many segments for that.
    partner : int
        Mode whose segments are split by the rows of the shared mode too, so that one pass over the entries serves both; or -1.
    pair_order : (n,) int32 ndarray
        Observed entries sorted by partner row, then by shared row; empty without a partner.
    """

    data: Observed
    priors: Priors
    constant_residual: bool
    learn_noise: bool
    noise_ceiling: float
    coherences: tuple
    first: np.ndarray
    batches: tuple
    shared: int
    partner: int
    pair_order: np.ndarray

    @classmethod
    def of(cls, data, priors=Priors(), *, constant_residual=False, learn_noise=False, noise_ceiling=np.inf, coherences=None):
        """Cut the observed entries into batches and segments; the arguments are the attributes."""
        coherences = coherences or (None,) * len(data.shape)
        offsets = data.offsets
        batches = [_batches(offsets[k][:-1, None], offsets[k][1:, None], data.size, coherences[k]) for k in range(len(data.shape))]
        shared = int(np.argmin(data.shape))
        if len(batches[shared]) != 1:
            shared = -1
        partner = _partner(data, shared)
        pair_order = np.empty(0, dtype=np.int32)
        if partner >= 0:
            pair = data.coordinates[partner].astype(np.int64) * data.shape[shared] + data.coordinates[shared]
            pair_order = np.argsort(pair, kind="stable").astype(np.int32)
            stops = np.cumsum(np.bincount(pair, minlength=data.shape[partner] * data.shape[shared])).reshape(data.shape[partner], -1)
            starts = np.concatenate([[0], stops.ravel()[:-1]]).reshape(stops.shape)
            batches[partner] = _batches(starts, stops, data.size, coherences[partner])
        first = np.concatenate([[0], np.cumsum(data.shape)[:-1]]).astype(np.int64)
        return cls(data, priors, constant_residual, learn_noise, noise_ceiling, coherences, first, tuple(batches), shared, partner,
                   pair_order)


def _partner(data, shared):
    """The mode to pair with the shared one: that with the fewest rows of the others, if its pairs have entries enough."""
    if shared < 0 or len(data.shape) < 3:
        return -1
    partner = min((k for k in range(len(data.shape)) if k != shared), key=lambda k: data.shape[k])
    enough = data.size >= SMALLEST_PAIR * data.shape[partner] * data.shape[shared]
    return partner if enough and data.shape[shared] <= SEGMENTS_AT_A_TIME // 4 else -1


def _batches(starts, stops, size, coherence):
    """Batches of one mode: rows that are neighbours never share one.

    Parameters
    ----------
    starts, stops : (n, P) int64 ndarray
        Entries of every row, split by partner row (P = 1: not split).
    size : int
        Number of observed entries.
    coherence : Coherence or None
    """
    groups = coherence.colours if coherence is not None else (np.arange(len(starts)),)
    longest = max(SMALLEST_SEGMENT, -(-size // MOST_SEGMENTS_A_ROW))
    made = []
    for group in groups:
        rows, begins, ends, bounds, partners = [], [], [], [0], []
        for row in group:
            pieces = np.maximum(1, -(-(stops[row] - starts[row]) // longest))
            if begins and len(begins) + pieces.sum() > SEGMENTS_AT_A_TIME:
                made.append(_batch(rows, begins, ends, bounds, partners))
                rows, begins, ends, bounds, partners = [], [], [], [0], []
            for partner, (start, stop, count) in enumerate(zip(starts[row], stops[row], pieces)):
                cuts = start + (stop - start) * np.arange(count + 1) // count
                begins.extend(cuts[:-1])
                ends.extend(cuts[1:])
                partners.extend([partner] * count)
            rows.append(row)
            bounds.append(len(begins))
        made.append(_batch(rows, begins, ends, bounds, partners))
    return tuple(made)


def _batch(rows, begins, ends, bounds, partners):
    rows, begins, ends, bounds, partners = (np.array(a, dtype=np.int64) for a in (rows, begins, ends, bounds, partners))
    return Batch(rows, begins, ends, bounds, np.repeat(rows, np.diff(bounds)), partners)
