"""Linear interpolation on the Delaunay triangles of the observed pixels of the same channel; outside of them the
nearest pixel.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import LinearNDInterpolator
from scipy.ndimage import binary_dilation
from scipy.spatial import QhullError

from . import Completion, nearest, silent
from .channels import fill_channels
from .parameters import Parameters


@dataclass(frozen=True)
class Config(Parameters):
    """Linear interpolation has no parameters."""


def margin(config):
    """See the package; triangles are hardly ever longer."""
    return 48


def complete(values, observed, config=Config(), *, rng=None, monitor=silent, wanted=None):
    """Fill every channel by itself."""
    return Completion(mean=fill_channels(values, observed, fill, "linear", monitor, wanted))


def fill(channels, known, wanted):
    """Channels with their holes interpolated where `wanted`, and the nearest known pixel in the others.

    Parameters
    ----------
    channels : (H, W, C) ndarray of float
    known, wanted : (H, W) ndarray of bool

    Returns
    -------
    (H, W, C) ndarray of float
    """
    # A pixel none of whose eight neighbours is missing is no corner of a triangle with a hole inside: the circle around
    # such a triangle holds no known pixel, so that at that corner it is no larger than the one around a square of four
    # pixels.
    border = known & binary_dilation(~known, np.ones((3, 3)))
    result = nearest.fill(channels, known)
    try:
        interpolate = LinearNDInterpolator(np.argwhere(border), channels[border])
    except (QhullError, ValueError):  # fewer than three pixels, or all on one line
        return result
    inside = interpolate(np.argwhere(wanted))
    result[wanted] = np.where(np.isnan(inside), result[wanted], inside)
    return result
