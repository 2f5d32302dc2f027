"""How values become something to look at: the range shown, grey or colours, and one colour scale for what is a size.

Arrays in, arrays out; files and figures are made elsewhere.
"""

import math

import numpy as np
from PIL import Image

from .plot import load

# Perceptually uniform, also in grey, and readable by people who see fewer colours.
COLOUR_SCALE = "viridis"
# The scale ends where this share of what is not 0 has been reached: a few wild pixels must not turn the rest dark.
SHOWN_SHARE = 0.98
# Two light greys of the checkerboard behind what is transparent, and about how many squares its longer side has.
CHECKERBOARD = (204, 238)
SQUARES = 32


def limits(full_range, *pictures):
    """Values shown as black and as white, the same for all `pictures` so that they can be compared.

    Parameters
    ----------
    full_range : int or None
        Largest value of the integer type; None for floats, shown from their smallest to their largest finite value.
    *pictures : ndarray

    Returns
    -------
    low, high : float
        ``low < high``.
    """
    if full_range:
        return 0.0, float(full_range)
    finite = [picture[np.isfinite(picture)] for picture in pictures]
    low = min((float(f.min()) for f in finite if f.size), default=0.0)
    high = max((float(f.max()) for f in finite if f.size), default=low)
    return low, high if high > low else low + 1.0


def to_bytes(picture, low, high, inks=False):
    """`picture` as uint8 of shape (H, W) or (H, W, 3); channels that are not RGB are averaged, values that are not
    finite are 0.

    Parameters
    ----------
    picture : (H, W) or (H, W, C) ndarray
    low, high : float
        See `limits`.
    inks : bool
        Whether the channels are cyan, magenta, yellow and black, which darken from white.
    """
    if inks:
        light = 1 - (picture - low) / (high - low)
        return np.rint(255 * light[..., :3] * light[..., 3:]).astype(np.uint8)
    if picture.ndim == 3 and picture.shape[2] != 3:
        picture = picture.mean(axis=2)
    if picture.dtype == np.uint8 and (low, high) == (0, 255):
        return picture
    with np.errstate(invalid="ignore", over="ignore"):
        # Halves first: the width of a range of doubles may be larger than any double.
        share = (picture / 2 - low / 2) / (high / 2 - low / 2)
    return np.rint(255 * np.clip(np.nan_to_num(share, nan=0.0), 0, 1)).astype(np.uint8)


def over_checkerboard(shown, alpha, premultiplied=False):
    """`shown` as it looks in front of a checkerboard, whose squares grow with the picture.

    Parameters
    ----------
    shown : (H, W) or (H, W, 3) ndarray of uint8
    alpha : (H, W) ndarray of float, or None
        0 is transparent, 1 opaque; None leaves `shown` as it is.
    premultiplied : bool
        Whether `shown` is multiplied by alpha already.

    Returns
    -------
    ndarray of uint8 of the shape of `shown`
    """
    if alpha is None:
        return shown
    height, width = alpha.shape
    square = max(2, max(height, width) // SQUARES)
    odd = np.add.outer(np.arange(height) // square, np.arange(width) // square) % 2
    opacity = np.clip(np.nan_to_num(alpha, nan=0.0), 0, 1)
    behind = (1 - opacity) * np.take(CHECKERBOARD, odd)
    if shown.ndim == 3:
        opacity, behind = opacity[..., None], behind[..., None]
    return np.rint(np.clip((shown if premultiplied else opacity * shown) + behind, 0, 255)).astype(np.uint8)


def reduction(height, width, most, longest=math.inf):
    """Smallest whole number by which both sides are divided so that `most` pixels are left, and no side above
    `longest`.
    """
    factor = max(1, math.isqrt(height * width // most), math.ceil(max(height, width) / longest))
    while -(-height // factor) * -(-width // factor) > most:
        factor += 1
    return factor


def units_of(full_range):
    """What values are counted in, in words for a reader."""
    return f"of\N{NO-BREAK SPACE}{full_range}" if full_range else "in data units"


def reduced(values, factor):
    """Means over squares of `factor` times `factor` pixels, smaller ones at the far edges.

    Parameters
    ----------
    values : (H, W) or (H, W, 3) ndarray of uint8, or (H, W) ndarray of float
    factor : int

    Returns
    -------
    ndarray of uint8 or float32
    """
    if values.dtype != np.uint8:
        values = values.astype(np.float32)
    return np.asarray(Image.fromarray(np.ascontiguousarray(values)).reduce(factor)) if factor > 1 else values


def over_channels(values):
    """(H, W) mean over channels, in double precision."""
    return np.asarray(values if values.ndim == 2 else values.mean(axis=2, dtype=float), dtype=float)


def top(*sizes):
    """Upper end of a colour scale from 0 that all `sizes` share, and whether some values lie above it.

    Parameters
    ----------
    *sizes : ndarray
        Not negative.

    Returns
    -------
    top : float
        Above 0.
    beyond : bool
    """
    ends = [float(np.quantile(size[size > 0], SHOWN_SHARE)) for size in sizes if (size > 0).any()]
    end = max(ends, default=1.0)
    return end, any(bool((size > end).any()) for size in sizes)


def colours():
    """(256, 3) uint8 RGB of the colour scale, from 0 to its top."""
    return np.rint(255 * load().colormaps[COLOUR_SCALE](np.arange(256))[:, :3]).astype(np.uint8)
