"""Biharmonic inpainting by scikit-image: the one-line fill that every method for pictures must beat.

References
----------
S. B. Damelin, N. S. Hoang: On surface completion and image inpainting by biharmonic functions, Int. J. Math. Math.
Sci., 2018.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import label, maximum_filter

from . import Completion, silent
from .channels import fill_channels
from .parameters import Parameters

# Pixels that the operator reaches from one that is missing.
REACH = 2


@dataclass(frozen=True)
class Config(Parameters):
    """Biharmonic inpainting has no parameters."""


def margin(config):
    """See the package; the equation couples pixels within two steps, and what lies behind known ones has no say."""
    return 32


def complete(values, observed, config=Config(), *, rng=None, monitor=silent, wanted=None):
    """Fill every channel by itself."""
    return Completion(mean=fill_channels(values, observed, _fill, "biharmonic", monitor, wanted))


def _fill(channels, known, wanted):
    """Channels, (H, W, C), with the holes filled that hold something `wanted`, and those so near to them that they
    depend on each other.
    """
    from skimage.restoration import inpaint_biharmonic

    holes = ~known
    labels, _ = label(maximum_filter(holes, 2 * REACH + 1), np.ones((3, 3)))
    holes &= np.isin(labels, np.unique(labels[wanted]))
    return inpaint_biharmonic(channels, holes, channel_axis=2)
