"""Means over squares and distances, by NumPy alone: SciPy takes longer to load than many a hole to be filled."""

import numpy as np

# The variance of the surroundings of a pixel is the mean of those within patches of known pixels in a square about it,
# of these sides.
PATCH, SURROUNDINGS = 7, 25


def counts(mask, side):
    """How many pixels of a mask, (H, W) bool, lie in the squares of a side within it, by their top left corners;
    (H - side + 1, W - side + 1) int32.
    """
    return _summed(_summed(mask, side, 0, np.int32), side, 1, np.int32)


def means(plane, side):
    """Means of a plane, (H, W) of float, over the squares of a side within it, by their top left corners;
    (H - side + 1, W - side + 1) of the same type.
    """
    for axis in (0, 1):
        plane = (_summed(plane, side, axis, np.float64) / side).astype(plane.dtype)
    return plane


def _summed(plane, side, axis, dtype):
    running = np.moveaxis(np.cumsum(plane, axis, dtype), axis, 0)
    sums = running[side - 1 :].copy()
    sums[1:] -= running[:-side]
    return np.moveaxis(sums, 0, axis)


def grown(mask, side):
    """Pixels of a mask, (H, W), and all within squares of a side, odd, about them."""
    return counts(np.pad(mask, side // 2), side) > 0


def around(plane, known, side):
    """Mean of what is `known` of a plane in the square of a side, odd, about every pixel; 0 where nothing is."""
    count = counts(np.pad(known, side // 2), side)
    mean = means(np.pad(np.where(known, plane, 0.0), side // 2), side)
    return np.where(count > 0, mean * (side**2 / np.maximum(count, 1)), 0.0)


def patch_variance(values, known, side=SURROUNDINGS):
    """Variance within patches around every pixel, as far as they are known.

    Parameters
    ----------
    values : (H, W, C) ndarray of float
    known : (H, W) ndarray of bool
    side : int
        Of the square about a pixel whose patches are meant.

    Returns
    -------
    (H, W) ndarray of float64
        Sum over the channels; 0 where nothing near is known.
    """
    variance = np.zeros(known.shape)
    for c in range(values.shape[2]):
        # From the middle of the range, so that little is lost in the difference of squares.
        centred = np.where(known, values[..., c], 0.0) - values[..., c][known].mean()
        first, second = (around(power, known, PATCH) for power in (centred, centred**2))
        variance += around(np.maximum(second - first**2, 0.0), known, side)
    return variance


def extent(mask):
    """Rows and columns, slices, that hold all pixels of a mask, (H, W), which has some."""
    found = [np.flatnonzero(mask.any(axis=k)).tolist() for k in (1, 0)]
    return tuple(slice(places[0], places[-1] + 1) for places in found)


def nearest(known, reach=np.inf):
    """How far the nearest known pixel is.

    Parameters
    ----------
    known : (H, W) ndarray of bool
        Some are.
    reach : float
        What is farther need not be right.

    Returns
    -------
    distances : (H, W) ndarray of float64
        0 where known.
    places : (H, W) ndarray of int64
        Of the nearest known pixels, ``row * W + column``; of several the one furthest to the left.
    """
    distances, places = np.zeros(known.shape), np.arange(known.size).reshape(known.shape)
    lost = ~known
    if not lost.any():
        return distances, places
    # Only pixels beside what is lost can be nearest.
    box = tuple(slice(max(0, side.start - 1), side.stop + 1) for side in extent(lost))
    inside, rows = known[box], np.arange(known.shape[0])[box[0], None]
    never = 2 * sum(known.shape)
    above = np.maximum.accumulate(np.where(inside, rows, -never), axis=0)
    below = np.minimum.accumulate(np.where(inside, rows, 2 * never)[::-1], axis=0)[::-1]
    row = np.where(rows - above <= below - rows, above, below)
    # One number holds the squared distance and, below it, the column, so that the least is the nearest.
    columns = 1 << (inside.shape[1] - 1).bit_length()
    within = (row - rows) ** 2 * columns + np.arange(inside.shape[1])
    best, step = within.copy(), 1
    while step < min(inside.shape[1], reach + 1) and step**2 < best.max() // columns:
        farther = within + step**2 * columns
        np.minimum(best[:, step:], farther[:, :-step], out=best[:, step:])
        np.minimum(best[:, :-step], farther[:, step:], out=best[:, :-step])
        step += 1
    column = best % columns
    distances[box] = np.sqrt(best // columns)
    places[box] = np.take_along_axis(row, column, axis=1) * known.shape[1] + column + box[1].start
    return distances, places
