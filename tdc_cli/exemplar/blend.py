"""Copy pixels into a hole so that neither its rim nor the lines between copies from different places show.

References
----------
P. Perez, M. Gangnet, A. Blake: Poisson image editing, ACM SIGGRAPH, 2003.
"""

import numpy as np

from .kernels import nearest_colours
from .planes import grown

# The correction of the light fades over 1 / sqrt(FADING) pixels from where it is needed, that of the rim over
# 1 / sqrt(RIM_FADING).
FADING, RIM_FADING = 3e-4, 0.1
# A difference so many times the usual one counts half in the light.
USUAL = 1.5
# Where it is said what may be copied, colours stay within this share of the range of all that is known of one that may,
# or of one beside the hole, within a square of the side RIM; a correction that leads farther is shortened by halves, so
# many times.
STRAY, RIM, HALVINGS = 0.02, 7, 6
# Share of the right side that the solution may leave, and steps that it may take.
TOLERANCE, MOST_STEPS = 1e-3, 1000


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
    count = len(pixels)
    # Of a pixel outside of the hole `count`: its correction is 0.
    number = np.full(hole.size, count)
    number[pixels] = np.arange(count)
    origin = np.arange(hole.size)
    origin[pixels] = origins
    usable = ~blank.ravel()
    neighbours, paired = np.full((4, count), count), np.zeros((4, count), bool)
    changes = np.zeros((4, count, flat.shape[1]))
    for k, (down, across) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
        step = down * width + across

        def inside(places, down=down, across=across):
            rows, columns = places // width + down, places % width + across
            return (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)

        paired[k] = inside(pixels)
        paired[k, paired[k]] = usable[pixels[paired[k]] + step]
        here = pixels[paired[k]]
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
        neighbours[k, paired[k]] = number[there]
        changes[k, paired[k]] = np.where(
            votes > 0, wanted / np.maximum(votes, 1) - (flat[origin[there]] - flat[origin[here]]), 0.0
        )
    sizes = np.linalg.norm(changes, axis=2)
    usual = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    light = _field(neighbours, changes, paired / (1 + (sizes / (USUAL * usual)) ** 2), FADING)
    rim = (neighbours == count)[..., None]
    left = np.where(rim, changes + light, 0.0)
    return flat[origins] + light + _field(neighbours, left, paired.astype(float), RIM_FADING)


def bounded(made, origins, values, hole, known, copyable):
    """`made` with every correction shortened until the colour lies near one that may be copied, or one beside the hole.

    Between what does not belong together, such as a wall and a black table in front of it, corrections of the channels
    part, and end in colours that are nowhere.

    Parameters
    ----------
    made : (P, C) float64 ndarray
        See `copy`.
    origins : (P,) int64 ndarray
        Pixels that they are copied from.
    values : (H, W, C) float64 ndarray
    hole, known, copyable : (H, W) bool ndarray
        To be filled; known; where may be copied from, as far as it is known.

    Returns
    -------
    (P, C) float64 ndarray
    """
    copies = values.reshape(-1, values.shape[2])[origins]
    colours = values[known & (copyable | grown(hole, RIM))].astype(np.float32)
    least = (STRAY * np.ptp(values[known])) ** 2
    far = np.flatnonzero(nearest_colours(made.astype(np.float32), colours) > least)
    share, step = np.zeros(len(far)), 0.5
    for _ in range(HALVINGS):
        tried = copies[far] + (share + step)[:, None] * (made[far] - copies[far])
        share += step * (nearest_colours(tried.astype(np.float32), colours) <= least)
        step /= 2
    kept = made.copy()
    kept[far] = copies[far] + share[:, None] * (made[far] - copies[far])
    return kept


def _field(neighbours, changes, weights, fading):
    """Values, (P, C), whose differences from their neighbours' are nearly what changes say, pair by pair as far as
    weights do, and that fade.

    Parameters
    ----------
    neighbours : (4, P) int64 ndarray
        Their numbers; P is one with the value 0. Of two with values each is a neighbour of the other.
    changes : (4, P, C) float64 ndarray
        The neighbour's value minus the own.
    weights : (4, P) float64 ndarray
        Both ways the same.
    fading : float
        Weight of the values' squares.
    """
    diagonal = fading + weights.sum(axis=0)
    padded = np.zeros(weights.shape[1] + 1)

    def times(values):
        """The matrix of the normal equations times values, (P,)."""
        padded[:-1] = values
        return diagonal * values - (weights * padded[neighbours]).sum(axis=0)

    right = -(weights[..., None] * changes).sum(axis=0)
    return np.stack([_conjugate_gradients(times, column, diagonal) for column in right.T], axis=1)


def _conjugate_gradients(times, right, diagonal):
    """x of ``times(x) = right``, (P,), for a symmetric positive definite matrix with this diagonal, which steadies it.

    Of SciPy's solver the loading alone takes longer than a hole of some thousand pixels.
    """
    found, left = np.zeros_like(right), right.copy()
    least = TOLERANCE * np.linalg.norm(right)
    direction, before = np.zeros_like(right), 1.0
    for _ in range(MOST_STEPS):
        if np.linalg.norm(left) <= least:
            break
        steadied = left / diagonal
        now = left @ steadied
        direction = steadied + now / before * direction
        moved = times(direction)
        length = now / (direction @ moved)
        found += length * direction
        left -= length * moved
        before = now
    return found
