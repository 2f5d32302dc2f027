"""Compiled loops over patches: find the source most like every target patch, average what sources propose, choose among
them.

The picture is a stack of layers, (H, W, F) int16, colours beside texture: integer sums are the same in any order, so
that the compiler may use vectors. A patch is a `size` x `size` square of all layers, named by its top left corner,
``top * W + left``. `sources` is a plane, (H * W,) int32: the source of every target patch, -1 where a patch is no
target.

Every function is deterministic whatever the number of threads: what is found for one target or pixel depends only on
what was there before the call. Each has a plain NumPy twin of the same name in tests/reference.py.
"""

import numpy as np
from numba import njit

from ..kernels import INNER, OUTER, run_shares

# Size of a layer's values up to which sums of squares have room.
LARGEST = 1023
# Targets, and pixels, that a thread works on at a time are a multiple of it.
SHARE = 64


@njit(**INNER)
def _sum_of_squares(lines, mine, trust, even, top, begin, worst):
    """Sum of squared differences of a gathered patch and the one whose rows begin at (top, begin), weighted by `trust`
    unless all weights are even; may stop once it exceeds `worst`.
    """
    size, length = mine.shape
    total = np.int64(0)
    for r in range(size):
        theirs = lines[top + r, begin : begin + length]
        own, weight = mine[r], trust[r]
        line = np.int32(0)
        if even:
            for i in range(length):
                # Of 16 bits, for which processors have one instruction that squares and adds.
                d = np.int32(np.int16(np.int32(own[i]) - np.int32(theirs[i])))
                line = np.int32(line + np.int32(d * d))
        else:
            for i in range(length):
                d = np.int32(own[i]) - np.int32(theirs[i])
                line = np.int32(line + np.int32(np.int32(d * np.int32(weight[i])) * np.int32(d)))
        total += line
        if total > worst:
            break
    return total


@njit(**OUTER)
def _search(
    first, last, layers, weights, allowed, favour, size, targets, sources, jumps, draws, radii, new_sources, costs,
    mine, trust
):  # fmt: skip
    height, width, channels = layers.shape
    last_row, last_column = height - size, width - size
    length = size * channels
    lines = layers.reshape(height, width * channels)
    for t in range(first, last):
        top, left = targets[t] // width, targets[t] % width
        total = np.int64(0)
        even = True
        for r in range(size):
            for i in range(length):
                mine[r, i] = lines[top + r, left * channels + i]
            for c in range(size):
                total += weights[top + r, left + c]
                even &= weights[top + r, left + c] == 1
        if not even:
            for r in range(size):
                for i in range(length):
                    trust[r, i] = weights[top + r, left + i // channels]
        scale = np.float32(1.0) / np.float32(max(total, 1) * channels)
        best, lowest, found = sources[targets[t]], np.float32(np.inf), np.float32(np.inf)
        tried = 1 + 4 * len(jumps) + draws.shape[1]
        for k in range(tried):
            if k == 0:
                place = np.int64(best)
                if place < 0 or not allowed[place]:
                    continue
                row, column = place // width, place % width
            elif k <= 4 * len(jumps):
                jump, side = jumps[(k - 1) // 4], (k - 1) % 4
                down = jump if side == 0 else -jump if side == 1 else 0
                across = jump if side == 2 else -jump if side == 3 else 0
                row, column = top + down, left + across
                if row < 0 or row > last_row or column < 0 or column > last_column:
                    continue
                place = np.int64(sources[row * width + column])
                if place < 0:
                    continue
                row, column = place // width - down, place % width - across
            else:
                which = k - 1 - 4 * len(jumps)
                radius = max(height, width) * np.float32(0.5) ** (which % radii)
                row, column = (best // width, best % width) if best >= 0 else (top, left)
                row += np.int64(np.rint(radius * draws[t, which, 0]))
                column += np.int64(np.rint(radius * draws[t, which, 1]))
            if row < 0 or row > last_row or column < 0 or column > last_column:
                continue
            place = row * width + column
            if not allowed[place] or (k > 0 and place == best):
                continue
            worst = np.int64(min((lowest + favour[place]) / scale, np.float32(4e18))) + 1
            cost = np.float32(_sum_of_squares(lines, mine, trust, even, row, column * channels, worst)) * scale
            if cost - favour[place] < lowest:
                best, lowest, found = np.int32(place), cost - favour[place], cost
        new_sources[targets[t]] = best
        costs[t] = found


def search(layers, weights, allowed, favour, size, targets, sources, jumps, draws, radii, new_sources, costs):
    """One sweep of PatchMatch: every target tries the sources of its neighbours, moved along, and places around its
    own.

    The cost of a source is the mean squared difference of the layers, weighted pixel by pixel; infinite where a target
    has none. All targets look at what their neighbours had before the sweep.

    Parameters
    ----------
    layers : (H, W, F) int16 ndarray
        Within `LARGEST` of 0.
    weights : (H, W) int16 ndarray
        0 to 7: how much a pixel of a target counts.
    allowed : (H * W,) bool ndarray
        Patches that may be sources.
    favour : (H * W,) float32 ndarray
        By how much a source may cost more than another and be taken for it.
    size : int
    targets : (T,) int64 ndarray
    sources : (H * W,) int32 ndarray
    jumps : (J,) int64 ndarray
        Distances of the neighbours to the four sides.
    draws : (T, R, 2) float32 ndarray
        Uniform on -1 to 1: places to try around the best source so far, within a radius.
    radii : int
        The radius begins with the longer side of the picture, halves `radii` times, and begins again.
    new_sources : (H * W,) int32 ndarray
        Becomes the sources after the sweep at the targets; the rest is left.
    costs : (T,) float32 ndarray
        Becomes their costs.
    """
    run_shares(
        _search,
        len(targets),
        SHARE,
        layers,
        weights,
        allowed,
        favour,
        size,
        targets,
        sources,
        jumps,
        draws,
        radii,
        new_sources,
        costs,
        room=lambda: np.empty((2, size, size * layers.shape[2]), np.int16),
    )


@njit(**OUTER)
def _vote(first, last, layers, hole, size, pixels, sources, votes, made):
    height, width, channels = layers.shape
    for p in range(first, last):
        row, column = pixels[p] // width, pixels[p] % width
        made[p] = np.float32(0.0)
        total = np.float32(0.0)
        for top in range(max(0, row - size + 1), min(row, height - size) + 1):
            for left in range(max(0, column - size + 1), min(column, width - size) + 1):
                place = np.int64(sources[top * width + left])
                if place < 0:
                    continue
                y, x = place // width + row - top, place % width + column - left
                if hole[y, x]:
                    continue
                weight = votes[top * width + left]
                total += weight
                for f in range(channels):
                    made[p, f] += weight * layers[y, x, f]
        for f in range(channels):
            made[p, f] = made[p, f] / total if total > 0 else np.float32(np.nan)


def vote(layers, hole, size, pixels, sources, votes, made):
    """Mean of what the sources of all patches over a pixel propose for it, weighted by the patches.

    Parameters
    ----------
    layers : (H, W, F) float32 ndarray
    hole : (H, W) bool ndarray
        Pixels that propose nothing.
    size : int
    pixels : (P,) int64 ndarray
    sources : (H * W,) int32 ndarray
    votes : (H * W,) float32 ndarray
        Weight of every target patch.
    made : (P, F) float32 ndarray
        Becomes the means; NaN where no patch proposes anything.
    """
    run_shares(_vote, len(pixels), SHARE, layers, hole, size, pixels, sources, votes, made)


@njit(**OUTER)
def _choose(first, last, hole, size, pixels, sources, votes, origins, places, weights):
    height, width = hole.shape
    for p in range(first, last):
        row, column = pixels[p] // width, pixels[p] % width
        count = 0
        for top in range(max(0, row - size + 1), min(row, height - size) + 1):
            for left in range(max(0, column - size + 1), min(column, width - size) + 1):
                place = np.int64(sources[top * width + left])
                if place < 0:
                    continue
                y, x = place // width + row - top, place % width + column - left
                if hole[y, x]:
                    continue
                proposal, k = y * width + x, 0
                while k < count and places[k] != proposal:
                    k += 1
                if k == count:
                    places[k], weights[k] = proposal, np.float32(0.0)
                    count += 1
                weights[k] += votes[top * width + left]
        best = -1
        for k in range(count):
            if best < 0 or weights[k] > weights[best]:
                best = k
        origins[p] = places[best] if best >= 0 else -1


def choose(hole, size, pixels, sources, votes, origins):
    """Where a pixel is copied from: the proposal that has most of the votes of all patches over it.

    Patches that lie alike beside their sources propose the same place, and their votes add up. Ties go to the first.

    Parameters
    ----------
    hole, size, pixels, sources, votes
        As for `vote`.
    origins : (P,) int64 ndarray
        Becomes the pixel, ``row * W + column``, that is copied; -1 where no patch proposes any.
    """
    run_shares(_choose, len(pixels), SHARE, hole, size, pixels, sources, votes, origins,
               room=lambda: (np.empty(size * size, np.int64), np.empty(size * size, np.float32)))  # fmt: skip


@njit(**OUTER)
def _nearest_colours(first, last, colours, ordered, starts, squares):
    for p in range(first, last):
        least = np.inf
        for step in (1, -1):
            k = starts[p] if step == 1 else starts[p] - 1
            while 0 <= k < len(ordered):
                apart = np.float64(ordered[k, 0]) - colours[p, 0]
                if apart * apart >= least:
                    break
                square = 0.0
                for c in range(colours.shape[1]):
                    apart = np.float64(ordered[k, c]) - colours[p, c]
                    square += apart * apart
                least = min(least, square)
                k += step
        squares[p] = least


def nearest_colours(colours, others):
    """Squared distances of colours, (N, C) float32, from the nearest of others, (M, C) float32, M >= 1; (N,) float64.
    """
    # Gone through from the colour on in the channel in which most differ, until the next are too far in that alone.
    channels = np.argsort(-others.var(axis=0), kind="stable")
    ordered = np.unique(others[:, channels], axis=0)
    turned = np.ascontiguousarray(colours[:, channels])
    squares = np.empty(len(colours))
    starts = np.searchsorted(ordered[:, 0], turned[:, 0])
    run_shares(_nearest_colours, len(colours), SHARE, turned, ordered, starts, squares)
    return squares


@njit(**OUTER)
def sample(one, other, known, slopes, rows, columns, map_, least, shown, apart, inclines):
    """Differences of two frames at pixels of the one and at their places in the other, between whose pixels is
    interpolated linearly.

    Parameters
    ----------
    one, other : (h, w) float32 ndarray
    known : (h, w) bool ndarray
        Of the other frame.
    slopes : (K, h, w) float32 ndarray
        Of the other frame.
    rows, columns : (n,) int64 ndarray
    map_ : (3, 3) float64 ndarray
        From ``(row, column, 1)`` of a pixel to its place.
    least : float
        Share of a place that must be known.
    shown : (n,) bool ndarray
        Out: whether the place is known.
    apart : (n,) float64 ndarray
        Out: the other frame minus the one, where it is.
    inclines : (K, n) float64 ndarray
        Out: slopes there.
    """
    height, width = other.shape
    for n in range(len(rows)):
        y = map_[0, 0] * rows[n] + map_[0, 1] * columns[n] + map_[0, 2]
        x = map_[1, 0] * rows[n] + map_[1, 1] * columns[n] + map_[1, 2]
        shown[n] = False
        if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
            continue
        top, left = int(y), int(x)
        bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
        down, across = y - top, x - left
        corners = (1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across
        seen = (
            corners[0] * known[top, left]
            + corners[1] * known[top, right]
            + corners[2] * known[bottom, left]
            + corners[3] * known[bottom, right]
        )
        if seen < least:
            continue
        shown[n] = True
        apart[n] = _between(other, top, bottom, left, right, corners) - one[rows[n], columns[n]]
        for k in range(len(slopes)):
            inclines[k, n] = _between(slopes[k], top, bottom, left, right, corners)


@njit(**INNER)
def _between(plane, top, bottom, left, right, corners):
    return (
        corners[0] * plane[top, left]
        + corners[1] * plane[top, right]
        + corners[2] * plane[bottom, left]
        + corners[3] * plane[bottom, right]
    )
