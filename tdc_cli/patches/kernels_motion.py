"""Compiled search for the motion under which frames agree best. The plain NumPy twin is in tests/reference.py."""

import numpy as np
from numba import njit

from ..kernels import INNER, OUTER, run_shares

# Rows of a frame that running sums go on through: a strip begins anew, so that no bit depends on how the rows are
# divided among threads.
STRIP = 32


@njit(**INNER)
def _agreement(one, its_weight, other, other_weight, at, moved, least, line, weights):
    """Write weighted squared differences, and the weights, of a row of two frames, each moved by steps of its own.

    Frames (C, H + 2 P, W + 2 P) and weights (H + 2 P, W + 2 P) have a border; `at` and `moved` are the row and the
    first column within them.
    """
    width, channels = len(line), np.float32(len(one))
    for x in range(width):
        line[x] = np.float32(0.0)
    for c in range(len(one)):
        first, second = one[c, at[0], at[1] :], other[c, moved[0], moved[1] :]
        for x in range(width):
            apart = first[x] - second[x]
            line[x] += apart * apart
    first, second = its_weight[at[0], at[1] :], other_weight[moved[0], moved[1] :]
    for x in range(width):
        weights[x] = max(first[x] * second[x], least)
        line[x] *= weights[x] / channels


@njit(**INNER)
def _along_row(sums, side, smoothed):
    """Sums over `side` neighbours in a row, beyond whose ends it goes on as it ends."""
    half, last = side // 2, len(sums) - 1
    total = 0.0
    for k in range(-half, half + 1):
        total += sums[min(max(k, 0), last)]
    for x in range(last + 1):
        smoothed[x] = total
        total += sums[min(x + half + 1, last)] - sums[max(x - half, 0)]


@njit(**INNER)
def _error(first, last, height, one, its_weight, other, other_weight, border, here, there, least, side, errors):
    """Write the weighted mean over the surroundings, `side` pixels wide, of the squared differences of two frames, each
    moved by a step of its own, for the rows `first` to ``last - 1``; beyond the borders of a frame it is as on them.
    """
    half, width = side // 2, errors.shape[1]
    lines, weights = np.empty((side, width), np.float32), np.empty((side, width), np.float32)
    sums, shares, smoothed, spread = np.zeros(width), np.zeros(width), np.empty(width), np.empty(width)
    filled = max(first - half, 0)  # the next row that no line was made of
    for y in range(first - half, last + half):
        row = min(max(y, 0), height - 1)
        gone = y - side
        if gone >= first - half:  # before its place is taken
            old = min(max(gone, 0), height - 1) % side
            for x in range(width):
                sums[x] -= lines[old, x]
                shares[x] -= weights[old, x]
        new = row % side
        if row == filled:
            _agreement(one, its_weight, other, other_weight, (border + row + here[0], border + here[1]),
                       (border + row + there[0], border + there[1]), least, lines[new], weights[new])  # fmt: skip
            filled += 1
        for x in range(width):
            sums[x] += lines[new, x]
            shares[x] += weights[new, x]
        if y >= first + half:
            _along_row(sums, side, smoothed)
            _along_row(shares, side, spread)
            own = errors[y - half - first]
            for x in range(width):
                own[x] = max(smoothed[x], 0.0) / spread[x]


@njit(**OUTER)
def _find_motion(first, last, frame, seen, frames, weights, gaps, share, steps, prices, least, sides, best, motion):
    """`find_motion` for the rows `first` to ``last - 1``."""
    height, width = best.shape
    border, still = (frame.shape[1] - height) // 2, (0, 0)
    errors = np.empty((3, STRIP, width), np.float32)
    for begin in range(first, last, STRIP):
        end = min(last, begin + STRIP)
        for n in range(len(steps)):
            moved = [(gap * steps[n, 0], gap * steps[n, 1]) for gap in gaps]
            for k in range(len(frames)):
                _error(begin, end, height, frame, seen, frames[k], weights[k], border, still, moved[k], least, sides[0],
                       errors[k])  # fmt: skip
            if len(frames) > 1:
                _error(begin, end, height, frames[0], weights[0], frames[1], weights[1], border, moved[0], moved[1],
                       least, sides[1], errors[2])  # fmt: skip
            for y in range(begin, end):
                before, after, both = errors[0, y - begin], errors[1, y - begin], errors[2, y - begin]
                for x in range(width):
                    cost = before[x]
                    if len(frames) > 1:
                        agreed = np.float32(2.0) * before[x] * after[x]
                        agreed /= max(before[x] + after[x], np.float32(1e-37))
                        cost = share[y, x] * agreed + (np.float32(1.0) - share[y, x]) * both[x]
                    cost += prices[n]
                    if cost < best[y, x]:
                        best[y, x] = cost
                        motion[0, y, x], motion[1, y, x] = steps[n, 0], steps[n, 1]


def find_motion(frame, seen, frames, weights, gaps, share, steps, prices, least, sides, best, motion):
    """The step of every pixel at which its surroundings agree best.

    Where the frame is seen, what counts is the harmonic mean of the errors of both frames beside it, so that one that
    agrees is enough; else their error with each other. With one frame beside it, it is its error.

    Parameters
    ----------
    frame : (C, H + 2 P, W + 2 P) float32 ndarray
        With a border of P pixels, at least ``max(abs(gaps)) * max(abs(steps))``.
    seen : (H + 2 P, W + 2 P) float32 ndarray
        Weights of its pixels.
    frames, weights : (S, C, H + 2 P, W + 2 P), (S, H + 2 P, W + 2 P) float32 ndarray
        The same of one or two frames beside it.
    gaps : (S,) int64 ndarray
        How many frames later these are, below 0 if they come before.
    share : (H, W) float32 ndarray
        How much of the surroundings is seen.
    steps : (N, 2) int64 ndarray
        Rows and columns a frame; of equal ones the first counts.
    prices : (N,) float32 ndarray
        Added to the error of every step.
    least : float32
        Weight that any two pixels have at least.
    sides : (2,) int64 ndarray
        Odd widths of the surroundings that are compared with the frame, and of those of the others with each other.
    best : (H, W) float32 ndarray
        Written: error and price of the best step; infinite before.
    motion : (2, H, W) int64 ndarray
        Written.
    """
    given = frame, seen, frames, weights, gaps, share, steps, prices, least, sides
    run_shares(_find_motion, len(best), STRIP, *given, best, motion)
