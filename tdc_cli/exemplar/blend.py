"""Copy pixels into a hole so that neither its rim nor the lines between copies from different places show.

References
----------
P. Perez, M. Gangnet, A. Blake: Poisson image editing, ACM SIGGRAPH, 2003.
"""

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg

# A correction fades over 1 / sqrt(FADING) pixels from where it is needed.
FADING = 3e-4
# A difference so many times the usual one counts half.
USUAL = 3.0
# Share of the right side that the solution may leave.
TOLERANCE = 1e-3


def copy(values, hole, blank, pixels, origins):
    """Values of the pixels of a hole, copied and corrected by a smooth field so that differences of neighbours are
    those at the origins.

    With u the values, c the copies and e = u - c, the sum over neighbours ``(e_q - e_p - r_pq)^2`` plus ``FADING
    e_p^2`` is least; r_pq is what the difference of copies must change to be that which both origins show (their mean),
    and e = 0 outside of the hole. Pairs whose r_pq is far beyond what is usual count little: there two things meet that
    do not belong together, and to make up for it would draw a haze through the hole.

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
    weights = 1 / (1 + (sizes / (USUAL * usual)) ** 2)
    degree = FADING + np.bincount(first, weights, len(pixels))
    right = -np.stack([np.bincount(first, weights * column, len(pixels)) for column in change.T], axis=1)
    both = second >= 0
    matrix = diags_array(degree).tocsr() - csr_array(
        (weights[both], (first[both], second[both])), shape=(len(pixels),) * 2
    )
    preconditioner = diags_array(1 / degree)
    fields = [cg(matrix, column, rtol=TOLERANCE, atol=0, M=preconditioner, maxiter=1000)[0] for column in right.T]
    return flat[origins] + np.stack(fields, axis=1)
