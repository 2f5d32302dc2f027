"""A picture gone through in bands of rows once its regions are finished: what `completed` is to frames, where a picture
is not held.
"""

from dataclasses import dataclass

import numpy as np

from ..media.stored import ROWS
from .solve import estimates_known


@dataclass(frozen=True)
class Band:
    """Some rows of a completed picture, all columns of each.

    Attributes
    ----------
    colour : ndarray
        As written.
    sd : ndarray or None
        In the units of the file.
    absent : ndarray of bool
        What was to be filled.
    truth : ndarray or None
    """

    colour: np.ndarray
    sd: np.ndarray | None
    absent: np.ndarray
    truth: np.ndarray | None


def bands(plan, *, sd=False, truth=False):
    """Iterate over all rows of a tiled picture, from the top, as `Band`; with what is asked for beside the colours.

    Tiles that lie side by side have the same rows: these are a band. What lies between has nothing that is estimated.
    """
    frame = next(plan.incomplete.frames(truth=truth))
    by_rows = {}
    for region in plan.regions:
        by_rows.setdefault(region.used[1], []).append(region)
    row = 0
    for start, end in sorted(by_rows):
        yield from (_band(plan, frame, rows, (), sd) for rows in _between(row, start))
        yield _band(plan, frame, slice(start, end), by_rows[start, end], sd)
        row = end
    yield from (_band(plan, frame, rows, (), sd) for rows in _between(row, plan.source.shape[0]))


def _between(start, end):
    return [slice(row, min(row + ROWS, end)) for row in range(start, end, ROWS)]


def _band(plan, frame, rows, regions, wanted):
    colour = np.array(frame.media.colour[rows])
    sd = np.zeros(colour.shape, plan.sd_dtype) if wanted else None
    for region in regions:
        columns = region.plane[1]
        values, deviations = plan.store.load(region)
        estimated = frame.estimated(estimates_known(plan.config), (rows, columns))
        colour[:, columns][estimated] = values
        if wanted and deviations is not None:
            sd[:, columns][estimated] = deviations
    return Band(colour, sd, frame.estimated(False, (rows,)), None if frame.truth is None else frame.truth[rows])
