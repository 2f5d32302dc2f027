"""Compiled loops over patches: find similar ones, estimate them as one Gaussian group, add the estimates up.

A picture is planar, (C, H, W) float32. A patch is the `size` x `size` square of every channel, a vector of ``D = C size^2`` entries in
the order (channel, row, column), and is named by its position ``top * W + left``. A group is a row of positions: a reference patch,
first, and those most like it.

Every function is deterministic: groups do not depend on each other, and every entry's sums run over the groups in their order, whatever
the number of threads. Each public kernel has a plain NumPy twin of the same name in tests/reference.py.
"""

import numpy as np
from numba import njit, prange

from ..kernels import CACHE, foreign
from .kernels_lanes import LANES, TILE, factorise, substitute_back

_ssyrk = foreign("ssyrk", "cython_blas", 10)
_UPPER_OF_ROWS, _NO = ord("L"), ord("N")  # Fortran sees the row-major upper triangle as a column-major lower one

# Rows of the picture that a thread adds estimates into at a time.
STRIP = 16
# Groups that share one thread's workspace.
SHARE = 16


@njit(cache=CACHE, error_model="numpy")
def _distances(image, top, left, size, first_row, last_row, first, columns, contrast, distances):
    """Distances from the patch at (top, left) to those at rows first_row..last_row and columns first..first + columns - 1."""
    channels = image.shape[0]
    sums = np.empty(columns, np.float32)
    share = np.float32(contrast / (size * size))
    for row in range(first_row, last_row + 1):
        line = distances[(row - first_row) * columns : (row - first_row + 1) * columns]
        line[:] = np.float32(0.0)
        for c in range(channels):
            sums[:] = np.float32(0.0)
            for r in range(size):
                theirs = image[c, row + r]
                mine = image[c, top + r]
                for s in range(size):
                    value = mine[left + s]
                    start = first + s
                    for i in range(columns):
                        difference = theirs[start + i] - value
                        line[i] += difference * difference
                        sums[i] += difference
            if share > 0:
                for i in range(columns):
                    line[i] -= share * sums[i] * sums[i]


@njit(cache=CACHE, error_model="numpy")
def _sink(distances, indices, root, count):
    """Restore the order of a heap, largest on top, after its root was replaced."""
    distance, index = distances[root], indices[root]
    while True:
        child = 2 * root + 1
        if child >= count:
            break
        if child + 1 < count and (distances[child + 1], indices[child + 1]) > (distances[child], indices[child]):
            child += 1
        if (distances[child], indices[child]) <= (distance, index):
            break
        distances[root], indices[root] = distances[child], indices[child]
        root = child
    distances[root], indices[root] = distance, index


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def match(image, positions, size, window, contrast, groups):
    """For every reference patch the patches most like it, by falling likeness.

    The distance of two patches is the sum of their squared differences, less `contrast` times the part that a change of the channels'
    means explains. Ties go to the patch that comes first.

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
    positions : (G,) int64 ndarray
        Reference patches.
    size : int
        Side of a patch.
    window : int
        Largest shift, in rows and in columns, at which patches are looked for.
    contrast : float
        From 0, plain squared differences, to 1, differences after the means are taken out.
    groups : (G, K) int32 ndarray
        Written; K is at most the number of patches in the smallest window, that of a corner.
    """
    height, width = image.shape[1:]
    count = groups.shape[1]
    for g in prange(len(positions)):
        top, left = positions[g] // width, positions[g] % width
        first_row, last_row = max(0, top - window), min(height - size, top + window)
        first, last = max(0, left - window), min(width - size, left + window)
        columns = last - first + 1
        distances = np.empty((last_row - first_row + 1) * columns, np.float32)
        _distances(image, top, left, size, first_row, last_row, first, columns, contrast, distances)
        distances[(top - first_row) * columns + left - first] = np.float32(-np.inf)
        nearest = distances[:count].copy()
        indices = np.arange(count)
        for root in range(count // 2 - 1, -1, -1):
            _sink(nearest, indices, root, count)
        for i in range(count, len(distances)):
            if distances[i] < nearest[0]:
                nearest[0], indices[0] = distances[i], i
                _sink(nearest, indices, 0, count)
        for last_place in range(count - 1, -1, -1):
            index = indices[0]
            groups[g, last_place] = (first_row + index // columns) * width + first + index % columns
            nearest[0], indices[0] = nearest[last_place], indices[last_place]
            _sink(nearest, indices, 0, last_place)


@njit(cache=CACHE, error_model="numpy")
def _take(image, position, size, patch):
    """Copy the patch at `position` out of a picture."""
    top, left = position // image.shape[2], position % image.shape[2]
    d = 0
    for c in range(image.shape[0]):
        for r in range(size):
            line = image[c, top + r]
            for s in range(size):
                patch[d] = line[left + s]
                d += 1


@njit(cache=CACHE, error_model="numpy")
def _gaussian(patches, taper, rest, mean, covariance):
    """Mean of the patches, and their tapered covariance with `rest` on its diagonal; the patches are left without their mean."""
    count, length = patches.shape
    mean[:] = np.float32(0.0)
    for k in range(count):
        for d in range(length):
            mean[d] += patches[k, d]
    for d in range(length):
        mean[d] /= np.float32(count)
    for k in range(count):
        for d in range(length):
            patches[k, d] -= mean[d]
    letters = np.array([_UPPER_OF_ROWS, _NO], np.uint8)
    sizes = np.array([length, count], np.int32)
    scalars = np.array([1.0 / count, 0.0], np.float32)
    _ssyrk(letters.ctypes, letters[1:].ctypes, sizes.ctypes, sizes[1:].ctypes, scalars.ctypes, patches.ctypes, sizes.ctypes,
           scalars[1:].ctypes, covariance.ctypes, sizes.ctypes)  # fmt: skip
    for d in range(length):
        for e in range(d):
            covariance[e, d] *= taper[e, d]
            covariance[d, e] = covariance[e, d]
        covariance[d, d] += rest


@njit(cache=CACHE, error_model="numpy")
def _load(matrix, lane, order, height, covariance, mean, noise, seen, count, target):
    """Write the system of one patch, ``(S_oo + noise I) a = y_o - m_o``, into its lane, filled up with the identity to `order`."""
    for j in range(count):
        base = j * height * LANES + lane
        row = covariance[seen[j]]
        matrix[base + j * LANES] = row[seen[j]] + noise
        for i in range(j + 1, count):
            matrix[base + i * LANES] = row[seen[i]]
        for i in range(count, order):
            matrix[base + i * LANES] = np.float32(0.0)
        matrix[base + order * LANES] = target[seen[j]] - mean[seen[j]]
    for j in range(count, order):
        base = j * height * LANES + lane
        for i in range(j + 1, order + 1):
            matrix[base + i * LANES] = np.float32(0.0)
        matrix[base + j * LANES] = np.float32(1.0)


@njit(cache=CACHE, error_model="numpy")
def _load_rows(matrix, lane, order, height, covariance, seen, count):
    """Write the rows ``S_:o`` of one patch below its right side."""
    for j in range(order):
        base = (j * height + order + 1) * LANES + lane
        for d in range(len(covariance)):
            matrix[base + d * LANES] = covariance[seen[j], d] if j < count else np.float32(0.0)


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def estimate(image, data, observed, groups, size, taper, rest, noise, estimates, variances):
    """Posterior mean and variance of every patch of every group, given its own observed entries only.

    The patches of a group, as `image` has them now, give the mean ``m`` and the covariance ``S``, their sample covariance,
    entry by entry times `taper`, plus ``rest I``: a low-rank part and an isotropic rest. A patch with observed entries ``o`` becomes

        m + S_:o (S_oo + noise I)^-1 (y_o - m_o),    with variances    diag(S - S_:o (S_oo + noise I)^-1 S_o:).

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
        Current estimate.
    data : (C, H, W) float32 ndarray
        Observed values; not read where not observed.
    observed : (C, H, W) bool ndarray
    groups : (G, K) int32 ndarray
    size : int
    taper : (D, D) float32 ndarray
        Symmetric, with ones on the diagonal.
    rest, noise : float32
        Variances.
    estimates : (G, K, D) float32 ndarray
        Written.
    variances : (G, K, D) or (0, 0, 0) float32 ndarray
        Written, or left alone if empty.
    """
    members = groups.shape[1]
    length = image.shape[0] * size * size
    wanted = len(variances) > 0
    extra = 1 + (length if wanted else 0)
    for share in prange((len(groups) + SHARE - 1) // SHARE):
        patches = np.empty((members, length), np.float32)
        targets = np.empty((members, length), np.float32)
        seen = np.zeros((members, length + TILE), np.int64)
        counts = np.zeros(members, np.int64)
        flags = np.empty(length, np.bool_)
        mean = np.empty(length, np.float32)
        covariance = np.empty((length, length), np.float32)
        tallest = (length + TILE + extra + TILE) | 1
        matrix = np.zeros((length + TILE) * tallest * LANES, np.float32)
        for g in range(share * SHARE, min(len(groups), (share + 1) * SHARE)):
            for k in range(members):
                _take(image, groups[g, k], size, patches[k])
                _take(data, groups[g, k], size, targets[k])
                _take(observed, groups[g, k], size, flags)
                counts[k] = 0
                for d in range(length):
                    if flags[d]:
                        seen[k, counts[k]] = d
                        counts[k] += 1
            _gaussian(patches, taper, rest, mean, covariance)
            by_count = np.argsort(counts, kind="mergesort")  # alike counts in a batch: little filling up
            for first in range(0, members, LANES):
                batch = min(LANES, members - first)
                order = (counts[by_count[first + batch - 1]] + TILE - 1) // TILE * TILE
                height = (order + (extra + TILE - 1) // TILE * TILE) | 1
                for lane in range(LANES):
                    k = by_count[first + min(lane, batch - 1)]
                    _load(matrix, lane, order, height, covariance, mean, noise, seen[k], counts[k], targets[k])
                    if wanted:
                        _load_rows(matrix, lane, order, height, covariance, seen[k], counts[k])
                factorise(matrix, order, height, extra)
                if wanted:
                    for lane in range(batch):
                        variance = variances[g, by_count[first + lane]]
                        for d in range(length):
                            variance[d] = covariance[d, d]
                    for j in range(order):
                        for d in range(length):
                            base = (j * height + order + 1 + d) * LANES
                            for lane in range(batch):
                                variances[g, by_count[first + lane], d] -= matrix[base + lane] * matrix[base + lane]
                substitute_back(matrix, order, height)
                for lane in range(batch):
                    k = by_count[first + lane]
                    result = estimates[g, k]
                    result[:] = mean
                    for j in range(counts[k]):
                        weight = matrix[(order * height + j) * LANES + lane]
                        row = covariance[seen[k, j]]
                        for d in range(length):
                            result[d] += weight * row[d]


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def add_up(groups, estimates, size, total, weight):
    """Add every patch estimate to the picture of sums, and one to the count of its pixels.

    Parameters
    ----------
    groups : (G, K) int32 ndarray
    estimates : (G, K, D) float32 ndarray
    size : int
    total : (C, H, W) float64 ndarray
        Added to.
    weight : (H, W) float64 ndarray
        Added to: the number of estimates of each pixel.
    """
    channels, height, width = total.shape
    lowest = np.min(groups) // width // STRIP
    highest = (np.max(groups) // width + size - 1) // STRIP
    for strip in prange(lowest, highest + 1):
        begin, end = strip * STRIP, min(height, (strip + 1) * STRIP)
        for g in range(len(groups)):
            for k in range(groups.shape[1]):
                top, left = groups[g, k] // width, groups[g, k] % width
                for r in range(max(0, begin - top), min(size, end - top)):
                    for c in range(channels):
                        line = total[c, top + r]
                        start = (c * size + r) * size
                        for s in range(size):
                            line[left + s] += estimates[g, k, start + s]
                    for s in range(size):
                        weight[top + r, left + s] += 1.0
