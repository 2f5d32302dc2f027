"""Noise for what is predicted, like that of its surroundings: an estimate has none and looks like plastic."""

import functools

import numpy as np
from scipy.ndimage import binary_dilation, find_objects, gaussian_filter, label

# Pixels about a hole whose noise is measured; holes whose surroundings meet are one.
BAND = 8
# With fewer known pixels about a hole, those of the whole picture tell.
FEWEST = 100
# Width of the Gaussian, in pixels, that takes what is smooth out of the values; what it leaves is called rough.
SMOOTH = 1.5
# A Gaussian's median absolute value over its deviation. What is beyond `FAR` of these, edges above all, counts as that.
MEDIAN, FAR = 0.6745, 3.0
# Widths of the blur that the noise may have, in pixels: grain of film, and what demosaicing and compression leave.
WIDTHS = np.linspace(0.0, 2.4, 13)
_REACH = 10  # pixels that the widest blur looks at, on each side
_SIDE = 41  # pixels of the square on which blurs are compared


def grained(values, predicted, known, rng):
    """Values with a draw of the noise of the surroundings added to what is predicted.

    The rough part of a hole then varies as that of known pixels around, whatever the estimates have of that already.
    Channels are correlated as there, and neighbours as far as a Gaussian blur correlates them.

    Parameters
    ----------
    values : (H, W) or (H, W, C) ndarray of float64
    predicted, known : ndarray of bool
        Of the same shape. What is neither is not looked at.
    rng : numpy.random.Generator
        As many numbers are drawn as there are values, whatever is predicted.

    Returns
    -------
    ndarray
        Of the same shape; values that are not predicted are as they were.
    """
    flat = (*values.shape[:2], -1)
    made, wanted, seen = values.reshape(flat).copy(), predicted.reshape(flat), known.reshape(flat)
    white = rng.standard_normal(made.shape)
    rough, whole = _rough(made, wanted | seen), seen.all(axis=2)
    groups, _ = label(binary_dilation(wanted.any(axis=2), np.ones((3, 3)), iterations=BAND))
    for number, box in enumerate(find_objects(groups), 1):
        group = groups[box] == number
        around, inside = group & whole[box], group[..., None] & wanted[box]
        if np.count_nonzero(around) >= FEWEST:
            deviation, mixing, width = _measured(rough[box], around)
        else:
            deviation, mixing, width = _measured(rough, whole)
        has = np.array([_deviation(rough[box][..., c][inside[..., c]]) for c in range(made.shape[2])])
        lacks = np.sqrt(np.maximum(deviation**2 - has**2, 0))
        made[box] += np.where(inside, lacks * (_blurred(white, box, width) @ mixing), 0.0)
    return made.reshape(values.shape)


def _rough(values, there):
    """Values, (H, W, C), where they are `there`, without their weighted means over neighbours; 0 elsewhere."""
    width = (SMOOTH, SMOOTH, 0)
    held = np.where(there, values, 0.0)
    weights = gaussian_filter(there.astype(float), width)
    return np.where(there, held - gaussian_filter(held, width) / np.where(there, weights, 1.0), 0.0)


def _deviation(rough):
    """Standard deviation that edges do not count in; 0 of nothing."""
    return float(np.median(np.abs(rough))) / MEDIAN if rough.size else 0.0


def _measured(rough, around):
    """Of pixels `around`, (H, W): deviations, (C,), mixing of independent channels, (C, C), and width of the blur."""
    channels = rough.shape[2]
    deviation = np.array([_deviation(rough[..., c][around]) for c in range(channels)])
    unit = np.clip(rough / np.where(deviation > 0, deviation, np.inf), -FAR, FAR)
    both = unit[around].T @ unit[around]
    size = np.sqrt(np.diag(both))
    sizes = np.outer(size, size)
    correlation = np.where(np.eye(channels) > 0, 1.0, both / np.where(sizes > 0, sizes, np.inf))
    powers, axes = np.linalg.eigh(correlation)
    mixing = (axes * np.sqrt(np.maximum(powers, 0))) @ axes.T
    products = squares = 0.0
    for axis in (0, 1):
        turned, where = np.moveaxis(unit, axis, 0), np.moveaxis(around, axis, 0)
        pairs = where[:-1] & where[1:]
        one, other = turned[:-1][pairs], turned[1:][pairs]
        products += float((one * other).sum())
        squares += float((one**2 + other**2).sum()) / 2
    known = [_blur(width)[1] for width in WIDTHS]
    return deviation, mixing, float(np.interp(products / squares if squares else known[0], known, WIDTHS))


def _blurred(white, box, width):
    """White noise, (H, W, C), in the rows and columns of a box, blurred so that its rough part has a variance of 1."""
    wide = tuple(slice(max(0, side.start - _REACH), side.stop + _REACH) for side in box)
    within = tuple(slice(side.start - seen.start, side.stop - seen.start) for side, seen in zip(box, wide, strict=True))
    return gaussian_filter(white[wide], (width, width, 0))[within] / np.sqrt(_blur(width)[0])


@functools.lru_cache(maxsize=256)
def _blur(width):
    """Variance of the rough part of white noise that is blurred, and its correlation of neighbours."""
    point = np.zeros((_SIDE, _SIDE))
    point[_SIDE // 2, _SIDE // 2] = 1.0
    blurred = gaussian_filter(point, width)
    rough = blurred - gaussian_filter(blurred, SMOOTH)
    variance = float((rough**2).sum())
    return variance, float((rough[:-1] * rough[1:]).sum()) / variance
