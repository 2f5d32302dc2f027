"""Copy pixels into a hole so that neither its rim nor the lines between copies from different places show.

References
----------
P. Perez, M. Gangnet, A. Blake: Poisson image editing, ACM SIGGRAPH, 2003.
"""

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg

# The correction of the light fades over 1 / sqrt(FADING) pixels from where it is needed, that of the rim over
# 1 / sqrt(RIM_FADING).
FADING, RIM_FADING = 3e-4, 0.1
# A difference so many times the usual one counts half in the light.
USUAL = 1.5
# Share of the right side that the solution may leave.
TOLERANCE = 1e-3


def copy(values, hole, blank, pixels, origins):
    """Values of the pixels of a hole, copied and corrected by two smooth fields so that differences of neighbours are
    those at the origins.

    The first is the light. With c the copies and e the field, the sum over neighbours ``(e_q - e_p - r_pq)^2`` plus
    ``FADING e_p^2`` is least; r_pq is what the difference of copies must change to be that which both origins show
    (their mean), and e = 0 outside of the hole. Pairs whose r_pq is far beyond what is usual count little: there two
    things meet that do not belong together, and to make up for it would draw a haze through the hole.

    The second makes up for what the first leaves at the rim of the hole, all pairs alike. It fades over a few pixels,
    so that an edge along the rim is gone and nothing is seen of it further in.

    Parameters
    ----------
    values : (H, W, C) float64 ndarray
        Known pixels.
    hole, blank : (H, W) bool ndarray
        To be filled, and neither known nor to be filled.
    pixels, origins : (P,) int64 ndarray
        Pixels of the hole, ``row * W + column``, and which known ones they are copied from.

    Returns
    -------
    (P, C) float64 ndarray
    """
    height, width = hole.shape
    flat = values.reshape(-1, values.shape[2])
    known = ~(hole | blank).ravel()
    number = np.full(hole.size, -1)
    number[pixels] = np.arange(len(pixels))
    origin = np.arange(hole.size)
    origin[pixels] = origins
    usable = ~blank.ravel()
    pairs = []
    for down, across in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        step = down * width + across

        def inside(places, down=down, across=across):
            rows, columns = places // width + down, places % width + across
            return (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)

        here = pixels[inside(pixels)]
        here = here[usable[here + step]]
        there = here + step
        wanted, votes = np.zeros((len(here), flat.shape[1])), np.zeros((len(here), 1))
        # What the origin of the one says of the pair, and that of the other.
        for first, second, sure in (
            (origin[here], origin[here] + step, inside(origin[here])),
            (origin[there] - step, origin[there], hole.ravel()[there] & inside(origin[there], -down, -across)),
        ):
            sure = sure & known[np.clip(first, 0, hole.size - 1)] & known[np.clip(second, 0, hole.size - 1)]
            wanted[sure] += flat[second[sure]] - flat[first[sure]]
            votes[sure] += 1
        change = np.where(votes > 0, wanted / np.maximum(votes, 1) - (flat[origin[there]] - flat[origin[here]]), 0.0)
        pairs.append((number[here], number[there], change))
    first, second, change = (np.concatenate(side) for side in zip(*pairs, strict=True))
    sizes = np.linalg.norm(change, axis=1)
    usual = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    light = _field(first, second, change, 1 / (1 + (sizes / (USUAL * usual)) ** 2), FADING, len(pixels))
    left = np.where(second[:, None] < 0, change + light[first], 0.0)
    return flat[origins] + light + _field(first, second, left, np.ones(len(first)), RIM_FADING, len(pixels))


def _field(first, second, change, weights, fading, count):
    """Values, (count, C), whose differences ``second - first`` are nearly `change`, pair by pair as far as `weights`
    say, and that fade; a `second` below 0 has the value 0. Every pair of two with values is there twice, both ways.
    """
    degree = fading + np.bincount(first, weights, count)
    right = -np.stack([np.bincount(first, weights * column, count) for column in change.T], axis=1)
    both = second >= 0
    matrix = diags_array(degree).tocsr() - csr_array((weights[both], (first[both], second[both])), shape=(count, count))
    preconditioner = diags_array(1 / degree)
    solved = [cg(matrix, column, rtol=TOLERANCE, atol=0, M=preconditioner, maxiter=1000)[0] for column in right.T]
    return np.stack(solved, axis=1)
