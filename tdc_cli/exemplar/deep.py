"""Where holes are deep: too far from what is known for an estimate to be more than a smear, and with enough around them
to copy from.
"""

import numpy as np
from scipy.ndimage import label, maximum_filter, mean, minimum_filter

from .planes import around

# A hole is deep where a square of this side lies wholly within it.
SIDE = 9
# Missing pixels farther than this from every known one are not worth an estimate.
RIM = 6
# Of the pixels within AROUND of a deep hole, this share is known; where less is, what is missing is scattered.
AROUND, KNOWN = 8, 0.5
# The variance of the surroundings of a pixel is the mean of those within patches of known pixels in a square about it,
# of these sides.
PATCH, SURROUNDINGS = 7, 4 * RIM + 1


def deep(lost):
    """Pixels of deep holes: the opening of what is lost by a square, but for those among scattered missing pixels.

    Beyond its border a picture is taken to go on as its mirror image: a strip along the border counts twice its width.

    Parameters
    ----------
    lost : (H, W) ndarray of bool
        Pixels of which nothing is known.

    Returns
    -------
    (H, W) ndarray of bool
    """
    centres = minimum_filter(lost, SIDE)
    if not centres.any():
        return centres
    holes = maximum_filter(centres, SIDE) & lost
    labels, count = label(holes, np.ones((3, 3)))
    near = maximum_filter(labels, 2 * AROUND + 1) * ~holes
    shares = mean(~lost, near, np.arange(1, count + 1))
    # A hole with nothing around it, in a picture that is lost but for it, has no share at all.
    return np.r_[False, np.nan_to_num(shares) >= KNOWN][labels]


def core(lost):
    """Pixels of deep holes that are not worth an estimate; as `deep`."""
    return deep(lost) & minimum_filter(lost, 2 * RIM + 1)


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
