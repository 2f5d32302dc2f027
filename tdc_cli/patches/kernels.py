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
from .kernels_lanes import LANES, TILE, factorise, invert, square, substitute_back

_ssyrk = foreign("ssyrk", "cython_blas", 10)
_ssymm = foreign("ssymm", "cython_blas", 12)
_spotrf = foreign("spotrf", "cython_lapack", 5)
_spotri = foreign("spotri", "cython_lapack", 5)
_UPPER_OF_ROWS, _NO = ord("L"), ord("N")  # Fortran sees the row-major upper triangle as a column-major lower one

# Rows of the picture that a thread adds estimates into at a time.
STRIP = 16
# Groups that share one thread's workspace.
SHARE = 16


@njit(cache=CACHE, error_model="numpy")
def _distances(image, means, top, left, size, contrast, row, first, line):
    """Distances from the patch at (top, left) to those of one row, from column `first` on, as many as `line` holds."""
    count = len(line)
    line[:] = np.float32(0.0)
    for c in range(image.shape[0]):
        for r in range(size):
            theirs = image[c, row + r, first : first + count + size - 1]
            mine = image[c, top + r, left : left + size]
            for s in range(0, size - 1, 2):  # two at a time: half the traffic on `line`
                one, two = mine[s], mine[s + 1]
                for i in range(count):
                    a, b = theirs[s + i] - one, theirs[s + 1 + i] - two
                    line[i] += a * a + b * b
            if size % 2:
                one = mine[size - 1]
                for i in range(count):
                    a = theirs[size - 1 + i] - one
                    line[i] += a * a
        theirs, own = means[c, row, first : first + count], means[c, top, left]
        share = np.float32(contrast * size * size)
        for i in range(count):
            a = theirs[i] - own
            line[i] -= share * a * a


@njit(cache=CACHE, error_model="numpy")
def _widened(image):
    """A copy with `LANES` further columns of zeros, so that vectors may be read over the edge."""
    channels, height, width = image.shape
    wide = np.zeros((channels, height, width + LANES), np.float32)
    wide[:, :, :width] = image
    return wide


@njit(cache=CACHE, error_model="numpy")
def _patch_means(image, size):
    """Mean of every channel of every patch, (C, H - size + 1, W - size + 1 + LANES), zeros in the last columns."""
    channels, height, width = image.shape
    means = np.zeros((channels, height - size + 1, width - size + 1 + LANES), np.float32)
    for c in range(channels):
        rows = np.empty(width, np.float32)
        for top in range(height - size + 1):
            rows[:] = np.float32(0.0)
            for r in range(size):
                rows += image[c, top + r]
            for left in range(width - size + 1):
                means[c, top, left] = np.sum(rows[left : left + size]) / np.float32(size * size)
    return means


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
    means, wide = _patch_means(image, size), _widened(image)
    for g in prange(len(positions)):
        top, left = positions[g] // width, positions[g] % width
        first_row, last_row = max(0, top - window), min(height - size, top + window)
        first, last = max(0, left - window), min(width - size, left + window)
        columns = (last - first + LANES) // LANES * LANES  # whole vectors; what lies beyond `last` is never chosen
        distances = np.empty((last_row - first_row + 1) * columns, np.float32)
        for row in range(first_row, last_row + 1):
            line = distances[(row - first_row) * columns : (row - first_row + 1) * columns]
            _distances(wide, means, top, left, size, contrast, row, first, line)
            line[last - first + 1 :] = np.float32(np.inf)
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
def _invert(covariance):
    """Replace a covariance by its inverse."""
    letters = np.array([_UPPER_OF_ROWS], np.uint8)
    sizes = np.array([len(covariance), 0], np.int32)
    _spotrf(letters.ctypes, sizes.ctypes, covariance.ctypes, sizes.ctypes, sizes[1:].ctypes)
    _spotri(letters.ctypes, sizes.ctypes, covariance.ctypes, sizes.ctypes, sizes[1:].ctypes)
    for d in range(len(covariance)):
        for e in range(d):
            covariance[d, e] = covariance[e, d]


@njit(cache=CACHE, error_model="numpy")
def _multiply(patches, precision, products):
    """``products = patches @ precision``, the precision symmetric."""
    letters = np.array([ord("L"), _UPPER_OF_ROWS], np.uint8)
    sizes = np.array([patches.shape[1], patches.shape[0]], np.int32)
    scalars = np.array([1.0, 0.0], np.float32)
    _ssymm(letters.ctypes, letters[1:].ctypes, sizes.ctypes, sizes[1:].ctypes, scalars.ctypes, precision.ctypes, sizes.ctypes,
           patches.ctypes, sizes.ctypes, scalars[1:].ctypes, products.ctypes, sizes.ctypes)  # fmt: skip


@njit(cache=CACHE, error_model="numpy")
def _load(matrix, lane, order, height, square, ridge, chosen, count, sides):
    """Write the system ``(square + ridge I)_cc a = sides_c`` of the chosen entries into its lane, the identity below up to `order`."""
    for j in range(count):
        base = j * height * LANES + lane
        row = square[chosen[j]]
        matrix[base + j * LANES] = row[chosen[j]] + ridge
        for i in range(j + 1, count):
            matrix[base + i * LANES] = row[chosen[i]]
        for i in range(count, order):
            matrix[base + i * LANES] = np.float32(0.0)
        matrix[base + order * LANES] = sides[chosen[j]]
    for j in range(count, order):
        base = j * height * LANES + lane
        for i in range(j + 1, order + 1):
            matrix[base + i * LANES] = np.float32(0.0)
        matrix[base + j * LANES] = np.float32(1.0)


@njit(cache=CACHE, error_model="numpy")
def _load_identity(matrix, order, height):
    """Write the columns of the identity as further right sides below the first, in every lane."""
    for j in range(order):
        base = (j * height + order + 1) * LANES
        matrix[base : base + order * LANES] = np.float32(0.0)
        matrix[base + j * LANES : base + (j + 1) * LANES] = np.float32(1.0)


@njit(cache=CACHE, error_model="numpy")
def _load_rows(matrix, order, height, rows, chosen, counts, held):
    """Write ``rows_cd`` for every d as further right sides below the first, for the patch that each lane holds."""
    length = rows.shape[1]
    own = np.empty(LANES, np.int64)
    for j in range(order):
        base = (j * height + order + 1) * LANES
        for lane in range(LANES):
            own[lane] = chosen[held[lane], j] if j < counts[held[lane]] else -1
        for d in range(length):  # the lanes of a vector one after the other, while it is at hand
            for lane in range(LANES):
                matrix[base + d * LANES + lane] = rows[own[lane], d] if own[lane] >= 0 else np.float32(0.0)


@njit(cache=CACHE, error_model="numpy")
def _add_uncertainty(matrix, covariance, taper, targets, chosen, counts, noise, inner, outer):
    """Add the mean posterior covariance of the members, ``S - S A S`` with A the mean of ``(S_oo + noise I)^-1``, tapered.

    `chosen` are the observed entries of each member; `inner` and `outer` (D, D) are workspace.
    """
    members, length = targets.shape
    inner[:] = np.float32(0.0)
    by_count = np.argsort(counts, kind="mergesort")
    for first in range(0, members, LANES):
        batch = min(LANES, members - first)
        order = (counts[by_count[first + batch - 1]] + TILE - 1) // TILE * TILE
        height = (order + (order + 1 + TILE - 1) // TILE * TILE) | 1
        for lane in range(LANES):
            k = by_count[first + min(lane, batch - 1)]
            _load(matrix, lane, order, height, covariance, noise, chosen[k], counts[k], targets[k])
        _load_identity(matrix, order, height)
        factorise(matrix, order, height, order + 1)
        invert(matrix, order, height)
        for lane in range(batch):
            k = by_count[first + lane]
            for j in range(counts[k]):
                base = (order * height + j * order) * LANES + lane
                for i in range(j, counts[k]):
                    inner[chosen[k, i], chosen[k, j]] += matrix[base + i * LANES]
    for d in range(length):
        for e in range(d):
            inner[e, d] = inner[d, e]
    _multiply(covariance, inner, outer)
    _multiply(outer, covariance, inner)
    for d in range(length):
        for e in range(d + 1):
            covariance[d, e] += (covariance[d, e] + inner[d, e] / np.float32(members)) * taper[d, e]
            covariance[e, d] = covariance[d, e]


@njit(cache=CACHE, error_model="numpy")
def _by_observed(matrix, covariance, mean, targets, chosen, counts, noise, estimates, variances):
    """``m + S_:o (S_oo + noise I)^-1 (y_o - m_o)`` for every patch, with `targets` y - m, `chosen` the observed entries."""
    members, length = targets.shape
    wanted = len(variances) > 0
    extra = 1 + (length if wanted else 0)
    by_count = np.argsort(counts, kind="mergesort")  # alike counts in a batch: little filling up
    held = np.empty(LANES, np.int64)
    for first in range(0, members, LANES):
        batch = min(LANES, members - first)
        order = (counts[by_count[first + batch - 1]] + TILE - 1) // TILE * TILE
        height = (order + (extra + TILE - 1) // TILE * TILE) | 1
        for lane in range(LANES):
            k = by_count[first + min(lane, batch - 1)]
            _load(matrix, lane, order, height, covariance, noise, chosen[k], counts[k], targets[k])
            held[lane] = k
        if wanted:
            _load_rows(matrix, order, height, covariance, chosen, counts, held)
        factorise(matrix, order, height, extra)
        if wanted:
            square(matrix, order, height, 1, length)
            for lane in range(batch):
                own = variances[held[lane]]
                for d in range(length):
                    own[d] = covariance[d, d] + matrix[(order * (height + 1) + d) * LANES + lane]
        substitute_back(matrix, order, height)
        for lane in range(batch):
            k = by_count[first + lane]
            result = estimates[k]
            result[:] = mean
            for j in range(counts[k]):
                weight = matrix[(order * height + j) * LANES + lane]
                row = covariance[chosen[k, j]]
                for d in range(length):
                    result[d] += weight * row[d]


@njit(cache=CACHE, error_model="numpy")
def _by_missing(matrix, covariance, mean, targets, chosen, counts, products, estimates, variances):
    """The same without noise by the precision ``P = S^-1``: ``m_x - P_xx^-1 P_xo (y_o - m_o)`` for the missing entries x.

    `targets` is y - m, 0 where missing, and `chosen` the missing entries. The cheaper way where less is missing than observed; a patch
    that misses nothing costs nothing. The covariance is replaced by its inverse.
    """
    members, length = targets.shape
    wanted = len(variances) > 0
    _invert(covariance)
    _multiply(targets, covariance, products)
    by_count = np.argsort(counts, kind="mergesort")
    whole = 0
    for k in range(members):
        for d in range(length):
            estimates[k, d] = mean[d] + targets[k, d]
            products[k, d] = -products[k, d]
        if wanted:
            variances[k, :] = np.float32(0.0)
        if counts[k] == 0:
            whole += 1
    for first in range(whole, members, LANES):
        batch = min(LANES, members - first)
        order = (counts[by_count[first + batch - 1]] + TILE - 1) // TILE * TILE
        extra = 1 + (order if wanted else 0)
        height = (order + (extra + TILE - 1) // TILE * TILE) | 1
        for lane in range(LANES):
            k = by_count[first + min(lane, batch - 1)]
            _load(matrix, lane, order, height, covariance, np.float32(0.0), chosen[k], counts[k], products[k])
        if wanted:
            _load_identity(matrix, order, height)
        factorise(matrix, order, height, extra)
        if wanted:
            square(matrix, order, height, 1, order)
            for lane in range(batch):
                k = by_count[first + lane]
                for j in range(counts[k]):
                    variances[k, chosen[k, j]] = -matrix[(order * (height + 1) + j) * LANES + lane]
        substitute_back(matrix, order, height)
        for lane in range(batch):
            k = by_count[first + lane]
            for j in range(counts[k]):
                d = chosen[k, j]
                estimates[k, d] = mean[d] + matrix[(order * height + j) * LANES + lane]


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def estimate(image, data, observed, groups, size, taper, rest, noise, uncertain, estimates, variances):
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
    uncertain : bool
        Whether S is increased, before that, by the mean posterior covariance of the members under it, entry by entry times `taper`: what
        their missing entries leave open, as an EM iteration has it.
    estimates : (G, K, D) float32 ndarray
        Written.
    variances : (G, K, D) or (0, 0, 0) float32 ndarray
        Written, or left alone if empty.
    """
    members = groups.shape[1]
    length = image.shape[0] * size * size
    wanted = len(variances) > 0
    for share in prange((len(groups) + SHARE - 1) // SHARE):
        patches = np.empty((members, length), np.float32)
        targets = np.empty((members, length), np.float32)
        flags = np.empty((members, length), np.bool_)
        chosen = np.zeros((members, length + TILE), np.int64)
        counts = np.zeros(members, np.int64)
        mean = np.empty(length, np.float32)
        covariance = np.empty((length, length), np.float32)
        tallest = (2 * length + 4 * TILE) | 1 if wanted or uncertain else (length + 3 * TILE) | 1
        matrix = np.zeros((length + TILE) * (tallest + (length + TILE if uncertain else 0)) * LANES, np.float32)
        workspace = np.empty((2, length, length) if uncertain else (0, 0, 0), np.float32)
        for g in range(share * SHARE, min(len(groups), (share + 1) * SHARE)):
            cost, other = 0, 3 * length**3
            for k in range(members):
                _take(image, groups[g, k], size, patches[k])
                _take(data, groups[g, k], size, targets[k])
                _take(observed, groups[g, k], size, flags[k])
                known = np.sum(flags[k])
                cost += known**3
                other += (length - known) ** 3
            few_missing = noise == 0 and not uncertain and other < cost
            _gaussian(patches, taper, rest, mean, covariance)
            for k in range(members):
                counts[k] = 0
                for d in range(length):
                    targets[k, d] = targets[k, d] - mean[d] if flags[k, d] else np.float32(0.0)
                    if flags[k, d] != few_missing:
                        chosen[k, counts[k]] = d
                        counts[k] += 1
            if uncertain:
                _add_uncertainty(matrix, covariance, taper, targets, chosen, counts, noise, workspace[0], workspace[1])
            spread = variances[g] if wanted else variances[:0].reshape(0, 0)
            if few_missing:
                _by_missing(matrix, covariance, mean, targets, chosen, counts, patches, estimates[g], spread)
            else:
                _by_observed(matrix, covariance, mean, targets, chosen, counts, noise, estimates[g], spread)


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def add_up(groups, estimates, variances, size, floor, total, weight, squares):
    """Add every patch estimate to the picture of sums, weighted by the inverse of its standard deviation.

    Parameters
    ----------
    groups : (G, K) int32 ndarray
    estimates : (G, K, D) float32 ndarray
    variances : (G, K, D) or (0, 0, 0) float32 ndarray
        Entry by entry; empty: all weights are 1.
    size : int
    floor : float32
        Variance added, so that no weight is without bounds.
    total, weight : (C, H, W) float64 ndarrays
        Added to: estimates times weights, and the weights.
    squares : (C, H, W) or (0, 0, 0) float64 ndarray
        Added to: squared estimates plus their variances, times weights; left alone if empty.
    """
    channels, height, width = total.shape
    equal, wanted = len(variances) == 0, len(squares) > 0
    lowest = np.min(groups) // width // STRIP
    highest = (np.max(groups) // width + size - 1) // STRIP
    for strip in prange(lowest, highest + 1):
        begin, end = strip * STRIP, min(height, (strip + 1) * STRIP)
        for g in range(len(groups)):
            for k in range(groups.shape[1]):
                top, left = groups[g, k] // width, groups[g, k] % width
                for r in range(max(0, begin - top), min(size, end - top)):
                    for c in range(channels):
                        line, share = total[c, top + r], weight[c, top + r]
                        start = (c * size + r) * size
                        for s in range(size):
                            own, variance = np.float32(1.0), np.float32(0.0)
                            if not equal:
                                variance = max(variances[g, k, start + s], np.float32(0.0))
                                own = np.float32(1.0) / np.sqrt(variance + floor)
                            value = estimates[g, k, start + s]
                            line[left + s] += own * value
                            share[left + s] += own
                            if wanted:
                                squares[c, top + r, left + s] += own * (value * value + variance)
