"""What is given and stays fixed while the chain runs: observed entries, priors, and how the work is cut into segments.
"""

from dataclasses import dataclass

import numpy as np

from ..tensor import Observed
from .state import Priors

# A row with very many entries is cut into segments so that few rows (colour channels) still feed every thread; at most
# this many.
MOST_SEGMENTS_A_ROW = 64
SMALLEST_SEGMENT = 2048
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
    """

    rows: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    bounds: np.ndarray
    owners: np.ndarray


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
        Mode whose Gram matrices also serve the CP weights (the one with fewest rows), or -1 if it has too many
        segments.
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

    @classmethod
    def of(
        cls, data, priors=Priors(), *, constant_residual=False, learn_noise=False, noise_ceiling=np.inf, coherences=None
    ):
        """Cut the observed entries into batches and segments; the arguments are the attributes."""
        coherences = coherences or (None,) * len(data.shape)
        batches = tuple(_batches(data.offsets[k], data.size, coherences[k]) for k in range(len(data.shape)))
        shared = int(np.argmin(data.shape))
        if len(batches[shared]) != 1:
            shared = -1
        first = np.concatenate([[0], np.cumsum(data.shape)[:-1]]).astype(np.int64)
        return cls(data, priors, constant_residual, learn_noise, noise_ceiling, coherences, first, batches, shared)

    def mode_order(self):
        """Modes in the order in which a sweep draws their factors: the shared one first."""
        modes = list(range(len(self.data.shape)))
        return sorted(modes, key=lambda k: k != self.shared)


def _batches(offsets, size, coherence):
    """Batches of one mode: rows that are neighbours never share one."""
    groups = coherence.colours if coherence is not None else (np.arange(len(offsets) - 1),)
    longest = max(SMALLEST_SEGMENT, -(-size // MOST_SEGMENTS_A_ROW))
    made = []
    for group in groups:
        rows, begins, ends, bounds = [], [], [], [0]
        for row in group:
            start, stop = offsets[row], offsets[row + 1]
            pieces = max(1, -(-(stop - start) // longest))
            if begins and len(begins) + pieces > SEGMENTS_AT_A_TIME:
                made.append(_batch(rows, begins, ends, bounds))
                rows, begins, ends, bounds = [], [], [], [0]
            cuts = start + (stop - start) * np.arange(pieces + 1) // pieces
            rows.append(row)
            begins.extend(cuts[:-1])
            ends.extend(cuts[1:])
            bounds.append(len(begins))
        made.append(_batch(rows, begins, ends, bounds))
    return tuple(made)


def _batch(rows, begins, ends, bounds):
    as_int = [np.array(a, dtype=np.int64) for a in (rows, begins, ends, bounds)]
    return Batch(*as_int, owners=np.repeat(as_int[0], np.diff(as_int[3])))
