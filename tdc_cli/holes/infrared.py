"""Dust and scratches on film, by a scan in infrared: the dyes of film let infrared through, what lies on it does not.

References
----------
A. D. Edgar: Method and apparatus for reducing defects in scanned images, US patent 5,266,805, 1993.
"""

import numpy as np

from ..errors import MaskError
from .marks import Mask, grown

# Side of the blocks whose brightest pixels but for a quarter tell how much infrared the film lets through there.
BLOCK, BRIGHT = 32, 75
# Dust is darker than its surroundings by so many standard deviations of the noise, and by this share of them at least.
DEVIATIONS, LEAST = 6.0, 0.06
# Its edges are half as dark: pixels that the holes are grown by.
EDGE = 1
# Film that blocks infrared itself is suspected where more than this share of a picture is dust.
TOO_MUCH = 0.25


def from_infrared(levels, *, picture, dilate=0):
    """Find dust in an infrared scan, with a threshold that comes from the scan itself.

    Parameters
    ----------
    levels : (H, W) ndarray of real numbers
        Bright where the film lets infrared through.
    picture : str
        Name of the file, for messages.
    dilate : int
        Grow the holes by so many pixels in every direction, beside the `EDGE`.

    Returns
    -------
    Mask

    Raises
    ------
    MaskError
        Nothing is darker than its surroundings, or the scan has no levels to compare.
    """
    levels = np.asarray(levels, dtype=float)
    around = _surroundings(levels)
    if not np.isfinite(around).all() or around.min() <= 0:
        raise MaskError(
            f"{picture}: its infrared scan is black or not finite in places as large as {BLOCK} pixels; give a mask "
            "picture"
        )
    shares = levels / around
    clean = np.median(shares)
    noise = 1.4826 * np.median(np.abs(shares - clean))
    threshold = clean - max(DEVIATIONS * noise, LEAST)
    dust = shares < threshold
    if not dust.any():
        raise MaskError(
            f"{picture}: nothing in its infrared scan is darker than {threshold:.0%} of its surroundings; give a mask "
            "picture"
        )
    missing = grown(dust, EDGE + dilate)
    share = f"{missing.mean():.2%} of the pixels"
    note = (
        f"{picture}: what is darker than {threshold:.0%} of its surroundings in the infrared scan is missing: {share}"
    )
    warning = (
        f"{picture}: {share} are much for dust; "
        "black-and-white film and Kodachrome block infrared themselves: give a mask picture"
    )
    return Mask(~missing, notes=(note,), warnings=(warning,) if missing.mean() > TOO_MUCH else ())


def _surroundings(levels):
    """Level of clean film around every pixel, (H, W): that of blocks, interpolated between their middles."""
    from scipy.ndimage import map_coordinates  # half a second that no other run needs

    blocks = [np.array_split(np.arange(n), max(1, round(n / BLOCK))) for n in levels.shape]
    bright = np.array(
        [[np.percentile(levels[r[0] : r[-1] + 1, c[0] : c[-1] + 1], BRIGHT) for c in blocks[1]] for r in blocks[0]]
    )
    places = [
        np.interp(np.arange(n), [part.mean() for part in parts], np.arange(len(parts)))
        for n, parts in zip(levels.shape, blocks)
    ]
    return map_coordinates(bright, np.meshgrid(*places, indexing="ij"), order=1, mode="nearest")
