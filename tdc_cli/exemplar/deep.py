"""Where holes are deep: too far from what is known for an estimate to be more than a smear, and with enough around them
to copy from.
"""

import numpy as np
from scipy.ndimage import label, maximum_filter, mean, minimum_filter

# A hole is deep where a square of this side lies wholly within it.
SIDE = 9
# Missing pixels farther than this from every known one are not worth an estimate.
RIM = 6
# Of the pixels within AROUND of a deep hole, this share is known; where less is, what is missing is scattered.
AROUND, KNOWN = 8, 0.5


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
    with np.errstate(invalid="ignore"):  # a hole with nothing around it, in a picture that is lost but for it: no share
        shares = mean(~lost, near, np.arange(1, count + 1))
    return np.r_[False, np.nan_to_num(shares) >= KNOWN][labels]


def core(lost):
    """Pixels of deep holes that are not worth an estimate; as `deep`."""
    return deep(lost) & minimum_filter(lost, 2 * RIM + 1)
