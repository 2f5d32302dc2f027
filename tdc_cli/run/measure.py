"""The result against the truth, where that is known."""

import numpy as np

from .. import metrics
from ..media.stored import Stored, row_slices
from ..names import CLIP, TENSOR


class _Whole:
    """Measures of what is one frame, as `metrics.ClipMeasures` takes those of many."""

    def __init__(self, compare, full_range):
        self._compare, self._range, self._found = compare, full_range, None

    def add(self, number, truth, estimate, observed):
        """Take the measures of the one frame."""
        data_range = self._range or float(np.nanmax(truth)) - float(np.nanmin(truth))
        self._found = self._compare(truth, estimate, observed, data_range)

    def result(self):
        """See `metrics.compare`."""
        measured, reasons = self._found
        return measured | {"frames": None}, reasons


def _range(truth):
    """Smallest and largest value of what is known of a picture, some rows at a time."""
    parts = (part[np.isfinite(part)] for part in (truth[rows] for rows in row_slices(truth.shape)))
    found = [(float(part.min()), float(part.max())) for part in parts if part.size]
    return min(low for low, _ in found), max(high for _, high in found)


def measures_for(plan):
    """What takes the measures of frames, with ``add(number, truth, estimate, observed)`` and ``result()``; None where
    no truth is known.
    """
    truth, source = plan.incomplete.truth, plan.incomplete.source
    if truth is None:
        return None
    if plan.request.kind != CLIP:
        partly = plan.request.kind == TENSOR or bool(plan.survey.kept.any())
        if plan.request.kind != TENSOR and (plan.tiled or isinstance(source.media.values, Stored)):
            low, high = _range(next(plan.incomplete.frames(truth=True)).truth)
            return metrics.RowMeasures(source.full_range or high - low, max(abs(low), abs(high)), partly)
        compare = metrics.compare_tensor if partly else metrics.compare
        return _Whole(compare, source.full_range)
    if source.full_range:
        return metrics.ClipMeasures(source.full_range)
    low, high = plan.survey.low, plan.survey.high
    return metrics.ClipMeasures(high - low, max(abs(low), abs(high)))
