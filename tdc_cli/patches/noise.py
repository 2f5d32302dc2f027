"""Level of the noise of a clip, from what neither moves nor has edges."""

import math

import numpy as np

# The same differences, of independent noise, have this many times its variance; a Gaussian's median absolute value over
# its deviation.
GAIN, MEDIAN = 24, 0.6745
# Fewer differences than this tell the level worse than to within some 5 %.
FEWEST = 1000


def level(frames, observed):
    """Standard deviation of white noise: the median absolute second difference along time of mixed differences along
    rows and columns.

    What stands still or changes steadily cancels, and so do edges along rows or columns; the median does not care about
    the rest if it is less than half (F. Hampel: The influence curve and its role in robust estimation, J. Am. Stat.
    Assoc., 1974).

    Parameters
    ----------
    frames : (T, H, W, C) ndarray
    observed : (T, H, W, C) ndarray of bool

    Returns
    -------
    float or None
        None where fewer than `FEWEST` differences are observed in all twelve places.
    """
    if min(frames.shape[:3]) < 2 or len(frames) < 3:
        return None
    places = (slice(None, -1), slice(1, None))
    complete = np.logical_and.reduce(
        [observed[t : len(observed) - 2 + t, r, c] for t in range(3) for r in places for c in places]
    )
    if complete.sum() < FEWEST:
        return None
    mixed = np.diff(np.diff(np.where(observed, frames, 0.0), axis=1), axis=2)
    bent = mixed[2:] - 2 * mixed[1:-1] + mixed[:-2]
    return float(np.median(np.abs(bent[complete]))) / MEDIAN / math.sqrt(GAIN)
