"""How what surrounds a hole moves from one frame to another: one affine map, found where both frames are known.

Squared differences, those of outliers weighing less, are lowered by Gauss-Newton steps from coarse to fine scales;
light that changes alike everywhere is a further unknown. A simpler map is taken wherever it agrees as well: none, whole
pixels, a translation. So what stands still is copied as it is, and nothing is interpolated without need.

References
----------
B. D. Lucas, T. Kanade: An iterative image registration technique with an application to stereo vision, IJCAI, 1981.
M. J. Black, P. Anandan: The robust estimation of multiple motions, Computer Vision and Image Understanding, 1996.
M. Granados, K. I. Kim, J. Tompkin, J. Kautz, C. Theobalt: Background inpainting for videos with dynamic objects and a
free-moving camera, ECCV, 2012.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import kernels
from .pyramid import halved, nearest

# The coarsest scale is at least this wide, and shifts up to FARTHEST of its pixels are tried there.
COARSEST, FARTHEST = 24, 4
# Pixels that a step looks at, at most, and the choice between maps, since those of the steps may agree by chance; the
# least that an affine map asks for.
MOST, MORE, LEAST = 4000, 40_000, 200
# Steps at a scale; a step that moves no pixel by more than this ends them.
STEPS, SETTLED = 12, 5e-3
# A simpler map may agree worse by this many standard errors of a mean of squares; a difference is an outlier from this
# many median ones on.
SIMPLER, OUTLIER = 4.0, 6.0
# Pixels of less weight are not looked at.
NEXT_TO_NOTHING = 0.02
# Share of a pixel that is known, from which on it counts as known.
WHOLE = 0.999
IDENTITY = np.eye(3)
NO_SLOPES = np.empty((0, 0, 0), np.float32)
# From a scale to the one half as fine: pixel i of that lies in the middle of pixels 2 i and 2 i + 1.
HALVING = np.array([[0.5, 0, -0.25], [0, 0.5, -0.25], [0, 0, 1]])


@dataclass(frozen=True)
class View:
    """A frame at several scales, finest first.

    Attributes
    ----------
    greys : tuple of (h, w) float32 ndarray
        Means of the channels; where not known as the nearest pixel that is.
    known : tuple of (h, w) bool ndarray
    weights : tuple of (h, w) float32 ndarray
        How much every pixel counts; 0 where not known.
    """

    greys: tuple
    known: tuple
    weights: tuple

    @classmethod
    def of(cls, values, known, weights):
        """That of (H, W, C) `values` known at (H, W) `known`, somewhere at least, with (H, W) `weights`."""
        grey = nearest(values, known).mean(axis=2, dtype=np.float32)
        greys, masks, counting = [grey], [np.ascontiguousarray(known)], [_counting(weights, known)]
        while min(grey.shape) >= 2 * COARSEST:
            plane, weight = halved(greys[-1][..., None], masks[-1])
            if not (weight >= WHOLE).any():
                break
            masks.append(weight >= WHOLE)
            grey = np.ascontiguousarray(nearest(plane, masks[-1])[..., 0])
            greys.append(grey)
            weights = halved(weights[..., None], np.ones_like(masks[-2]))[0][..., 0]
            counting.append(_counting(weights, masks[-1]))
        return cls(tuple(greys), tuple(masks), tuple(counting))

    @cached_property
    def judged(self):
        """Rows and columns of the pixels, at the finest scale, by which maps are chosen among."""
        return points(self.weights[0] > 0, MORE)


def _counting(weights, known):
    """Weights where known, (h, w) float32, but for those too small to be worth a look, if there are others."""
    counting = np.where(known & (weights >= NEXT_TO_NOTHING), weights, 0.0).astype(np.float32)
    return counting if counting.any() else known.astype(np.float32)


def register(one, other, start=None):
    """The map from pixels of `one` to places of `other`, and how well the frames agree under it.

    Parameters
    ----------
    one, other : View
        Of the same shape.
    start : (3, 3) ndarray or None
        A map to begin with at the finest scale; None: looked for from the coarsest on.

    Returns
    -------
    (3, 3) ndarray
        Of ``(row, column, 1)``.
    float
        Mean squared difference where both are known, outliers cut, the change of light taken out.
    """
    depth = min(len(one.greys), len(other.greys))
    if start is None:
        found = _shift(one, other, depth - 1)
        for level in range(depth - 1, -1, -1):
            found = _improved(one, other, level, found, affine=False)
            if level:
                found = np.linalg.inv(HALVING) @ found @ HALVING
        start = found
    else:
        start = _improved(one, other, 0, start, affine=False)
    affine = _improved(one, other, 0, start, affine=True)
    shift = IDENTITY.copy()
    shift[:2, 2] = np.rint(start[:2, 2])
    pure = np.allclose(start[:2, :2], np.eye(2), atol=1e-9)
    candidates = [IDENTITY, shift, start, affine] if pure else [start, affine]
    costs = [agreement(one, other, m) for m in candidates]
    fair = [cost / (1 + _noise_left(one, m)) for cost, m in zip(costs, candidates, strict=True)]
    weights = one.weights[0][one.judged].astype(float)
    worse = 1 + SIMPLER * np.sqrt(2 * (weights**2).sum()) / weights.sum()
    chosen = next(k for k, cost in enumerate(fair) if cost <= worse * min(fair) + 1e-12)
    return candidates[chosen], costs[chosen]


def _noise_left(one, map_):
    """Share of the variance of the noise that is left between pixels, where the mean of four is taken.

    Without it noise would seem to move.
    """
    parts = moved(map_, *points(one.weights[0] > 0)) % 1
    return float(((1 - parts) ** 2 + parts**2).prod(axis=0).mean())


def agreement(one, other, map_):
    """Mean squared difference of two frames where both are known, outliers cut, the change of light taken out; infinite
    where none is.
    """
    apart, rows, columns, _ = _differences(one, other, 0, map_, one.judged)
    if not len(apart):
        return np.inf
    weights = one.weights[0][rows, columns]
    limit = OUTLIER * _median(np.abs(apart), weights)
    return float(np.average(np.minimum(apart**2, limit**2), weights=weights)) if limit else 0.0


def _median(sizes, weights):
    """Median of sizes, (n,), that have weights."""
    order = np.argsort(sizes)
    total = np.cumsum(weights[order])
    return float(sizes[order[np.searchsorted(total, total[-1] / 2)]])


def moved(map_, rows, columns):
    """Places, (2, n) float64, of the pixels at `rows` and `columns` under a map."""
    return map_[:2] @ np.stack([rows, columns, np.ones(len(rows))])


def whole(map_):
    """Whether a map moves all by whole pixels."""
    return bool((map_[:2, :2] == np.eye(2)).all() and (map_ == np.rint(map_)).all())


def points(pixels, most=MOST):
    """Rows and columns of up to `most` of the pixels, evenly."""
    places = np.flatnonzero(pixels)
    return np.divmod(places[:: -(-len(places) // most) or 1], pixels.shape[1])


def _differences(one, other, level, map_, at, slopes=NO_SLOPES):
    """Differences of the frames where both are known of the rows and columns `at`, (n,) float64, their median taken
    out; which rows and columns they belong to, and the `slopes` (K, h, w) of the other frame there, (K, n) float64.
    """
    rows, columns = at
    apart, inclines = np.empty(len(rows)), np.empty((len(slopes), len(rows)))
    shown = np.empty(len(rows), bool)
    kernels.sample(
        one.greys[level], other.greys[level], other.known[level], slopes, rows, columns, map_, WHOLE, shown, apart,
        inclines,
    )  # fmt: skip
    apart = apart[shown]
    return apart - (np.median(apart) if len(apart) else 0.0), rows[shown], columns[shown], inclines[:, shown]


def _shift(one, other, level):
    """The best translation by whole pixels of a scale."""
    best, lowest, at = IDENTITY, np.inf, points(one.weights[level] > 0)
    steps = [(r, c) for r in range(-FARTHEST, FARTHEST + 1) for c in range(-FARTHEST, FARTHEST + 1)]
    for step in sorted(steps, key=lambda s: s[0] ** 2 + s[1] ** 2):
        map_ = IDENTITY.copy()
        map_[:2, 2] = step
        apart, rows, columns, _ = _differences(one, other, level, map_, at)
        if 2 * len(apart) <= len(at[0]):
            continue
        cost = np.average(np.abs(apart), weights=one.weights[level][rows, columns])
        if cost < lowest:
            best, lowest = map_, cost
    return best


def _improved(one, other, level, map_, affine):
    """A map after Gauss-Newton steps on the differences of one scale."""
    if min(other.greys[level].shape) < 2:
        return map_
    slopes, at = np.stack(np.gradient(other.greys[level])), points(one.weights[level] > 0)
    middle, unit = (np.array(one.greys[level].shape) - 1) / 2, max(one.greys[level].shape) / 2
    for _ in range(STEPS):
        apart, rows, columns, (down, across) = _differences(one, other, level, map_, at, slopes)
        if len(apart) < LEAST if affine else len(apart) < 2:
            break
        terms = [down, across, np.ones(len(apart))]
        if affine:
            y, x = (rows - middle[0]) / unit, (columns - middle[1]) / unit
            terms += [down * y, down * x, across * y, across * x]
        terms = np.stack(terms)
        weights = one.weights[level][rows, columns]
        scale = max(OUTLIER * _median(np.abs(apart), weights), 1e-6)
        weights = weights * np.maximum(1 - (apart / scale) ** 2, 0) ** 2
        normal = (terms * weights) @ terms.T
        normal[np.diag_indices(len(normal))] += (
            1e-3 * np.trace(normal[:2, :2]) / 2 * (np.arange(len(normal)) != 2) + 1e-12
        )
        change = np.linalg.solve(normal, -(terms * weights) @ apart)
        step = np.zeros((3, 3))
        step[:2, 2] = change[:2]
        if affine:
            step[:2, :2] = change[3:].reshape(2, 2) / unit
            step[:2, 2] -= step[:2, :2] @ middle
        map_ = map_ + step
        if np.abs(change[:2]).max() < SETTLED and np.abs(change[3:]).max(initial=0) < SETTLED:
            break
    return map_
