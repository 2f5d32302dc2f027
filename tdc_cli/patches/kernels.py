"""Compiled loops over patches: find similar ones, estimate them as one Gaussian group, add the estimates up.

A picture is planar, (C, H, W) float32. A patch is the `size` x `size` square of every channel, a vector of ``D = C size^2`` entries in
the order (channel, row, column), and is named by its position ``top * W + left``. A group is a row of positions: a reference patch,
first, and those most like it.

A clip is a picture of its frames, one below the other, `frame` rows each; a picture is a clip of one frame. A patch may be several frames
deep: it then is the same square of `depth` frames in a row, named by the first, in the order (frame, channel, row, column).

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
_ssyevr = foreign("ssyevr", "cython_lapack", 21)
_UPPER_OF_ROWS, _NO = ord("L"), ord("N")  # Fortran sees the row-major upper triangle as a column-major lower one

# Rows of the picture that a thread adds estimates into at a time.
STRIP = 16
# Groups that share one thread's workspace.
SHARE = 16


@njit(cache=CACHE, error_model="numpy")
def _distances(image, means, top, left, size, contrast, row, first, line):
    """Add to `line` the distances from the patch at (top, left), one frame deep, to those of one row, from column `first` on."""
    count = len(line)
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


@njit(cache=CACHE, error_model="numpy")
def _search(image, means, position, centre, frame, depth, size, window, contrast, distances):
    """Distances from the patch at `position` to those around the one at `centre`, in its frame; infinite in what is left of `distances`.

    Returns where they begin, as rows of the picture and columns, and how many places a row takes in `distances`.
    """
    width = image.shape[2] - LANES
    top, left = position // width, position % width
    begin = centre // width // frame * frame
    row, column = centre // width - begin, centre % width
    first_row, last_row = max(0, row - window), min(frame - size, row + window)
    first, last = max(0, column - window), min(width - size, column + window)
    columns = (last - first + LANES) // LANES * LANES  # whole vectors; what lies beyond `last` is never chosen
    filled = (last_row - first_row + 1) * columns
    distances[:filled] = np.float32(0.0)
    distances[filled:] = np.float32(np.inf)
    for row in range(first_row, last_row + 1):
        line = distances[(row - first_row) * columns : (row - first_row + 1) * columns]
        for d in range(depth):
            _distances(image, means, top + d * frame, left, size, contrast, begin + row + d * frame, first, line)
        line[last - first + 1 :] = np.float32(np.inf)
    return begin + first_row, first, columns


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def match(image, positions, frame, depth, size, window, reach, drift, contrast, groups):
    """For every reference patch the patches most like it, by falling likeness.

    The distance of two patches is the sum of their squared differences, less `contrast` times the part that a change of the channels'
    means explains. Ties go to the patch that comes first. In other frames patches are looked for around the best one of the frame next
    to it, on the side of the reference, so that the search follows what moves.

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
    positions : (G,) int64 ndarray
        Reference patches.
    frame, depth : int
        Rows of a frame, and frames of a patch.
    size : int
        Side of a patch.
    window : int
        Largest shift, in rows and in columns, at which patches are looked for in the reference's own frame.
    reach : int
        Largest shift in frames.
    drift : int
        Largest shift from the best patch of the frame next to it; at most `window`.
    contrast : float
        From 0, plain squared differences, to 1, differences after the means are taken out.
    groups : (G, K) int32 ndarray
        Written; K is at most the number of patches in the smallest window, that of a corner of the first frame.
    """
    width = image.shape[2]
    count, last_frame = groups.shape[1], image.shape[1] // frame - depth
    means, wide = _patch_means(image, size), _widened(image)
    side = 2 * window + 1
    for g in prange(len(positions)):
        own = positions[g] // width // frame
        earliest, latest = max(0, own - reach), min(last_frame, own + reach)
        distances = np.empty((latest - earliest + 1, side * (side + LANES)), np.float32)
        begins = np.empty((latest - earliest + 1, 3), np.int64)
        best = positions[g]
        for turn in range(latest - earliest + 1):  # its own frame, those after it, those before it
            place = own - earliest + turn if own + turn <= latest else latest - earliest - turn
            if place == own - earliest - 1:
                best = positions[g]
            around = best + (place + earliest - best // width // frame) * frame * width
            line = distances[place]
            begins[place] = _search(wide, means, positions[g], around, frame, depth, size, window if turn == 0 else drift, contrast, line)
            row, column, columns = begins[place]
            if turn == 0:
                line[(best // width - row) * columns + best % width - column] = np.float32(-np.inf)
            else:
                index = np.argmin(line)
                best = (row + index // columns) * width + column + index % columns
        flat = distances.reshape(-1)
        nearest = flat[:count].copy()
        indices = np.arange(count)
        for root in range(count // 2 - 1, -1, -1):
            _sink(nearest, indices, root, count)
        for i in range(count, len(flat)):
            if flat[i] < nearest[0]:
                nearest[0], indices[0] = flat[i], i
                _sink(nearest, indices, 0, count)
        for last_place in range(count - 1, -1, -1):
            row, column, columns = begins[indices[0] // distances.shape[1]]
            index = indices[0] % distances.shape[1]
            groups[g, last_place] = (row + index // columns) * width + column + index % columns
            nearest[0], indices[0] = nearest[last_place], indices[last_place]
            _sink(nearest, indices, 0, last_place)


@njit(cache=CACHE, error_model="numpy")
def _take(image, position, frame, depth, size, patch):
    """Copy the patch at `position` out of a picture."""
    top, left = position // image.shape[2], position % image.shape[2]
    d = 0
    for begin in range(top, top + depth * frame, frame):
        for c in range(image.shape[0]):
            for r in range(size):
                line = image[c, begin + r]
                for s in range(size):
                    patch[d] = line[left + s]
                    d += 1


@njit(cache=CACHE, error_model="numpy")
def _gaussian(patches, taper, ridge, mean, covariance):
    """Mean of the patches, and their tapered covariance with `ridge` on its diagonal; the patches are left without their mean."""
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
        covariance[d, d] += ridge


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
def _by_missing(matrix, covariance, mean, targets, chosen, counts, noise, products, smoother, estimates, variances):
    """The same by the precision ``P = (S + noise I)^-1``: what is missing becomes ``m_x - P_xx^-1 P_xo (y_o - m_o)``, then everything
    ``y - noise P (y - m)``.

    `targets` is y - m, 0 where missing, and `chosen` the missing entries. The cheaper way where less is missing than observed: all
    patches share one inverse, and one that misses nothing needs no more. The covariance is replaced by P; `products` (K, D) is workspace,
    and so is `smoother` (D, D), used under noise only, for ``I - noise P``.
    """
    members, length = targets.shape
    wanted = len(variances) > 0
    for d in range(length):
        covariance[d, d] += noise
    _invert(covariance)
    _multiply(targets, covariance, products)
    for k in range(members):
        for d in range(length):
            products[k, d] = -products[k, d]
    if wanted:
        for k in range(members):
            for d in range(length):
                variances[k, d] = noise - noise * noise * covariance[d, d]
        if noise > 0:
            for d in range(length):
                for e in range(length):
                    smoother[d, e] = -noise * covariance[d, e]
                smoother[d, d] += np.float32(1.0)
    by_count = np.argsort(counts, kind="mergesort")
    held = np.empty(LANES, np.int64)
    for first in range(np.sum(counts == 0), members, LANES):
        batch = min(LANES, members - first)
        order = (counts[by_count[first + batch - 1]] + TILE - 1) // TILE * TILE
        extra = 1 + ((length if noise > 0 else order) if wanted else 0)
        height = (order + (extra + TILE - 1) // TILE * TILE) | 1
        for lane in range(LANES):
            k = by_count[first + min(lane, batch - 1)]
            _load(matrix, lane, order, height, covariance, np.float32(0.0), chosen[k], counts[k], products[k])
            held[lane] = k
        if wanted and noise > 0:
            _load_rows(matrix, order, height, smoother, chosen, counts, held)
        elif wanted:
            _load_identity(matrix, order, height)
        factorise(matrix, order, height, extra)
        if wanted:
            square(matrix, order, height, 1, extra - 1)
            for lane in range(batch):
                k = by_count[first + lane]
                for j in range(length if noise > 0 else counts[k]):
                    variances[k, j if noise > 0 else chosen[k, j]] -= matrix[(order * (height + 1) + j) * LANES + lane]
        substitute_back(matrix, order, height)
        for lane in range(batch):
            k = by_count[first + lane]
            for j in range(counts[k]):
                targets[k, chosen[k, j]] = matrix[(order * height + j) * LANES + lane]
    if noise > 0:
        _multiply(targets, covariance, products)
    for k in range(members):
        for d in range(length):
            estimates[k, d] = mean[d] + targets[k, d]
            if noise > 0:
                estimates[k, d] -= noise * products[k, d]


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def estimate(image, data, observed, groups, frame, depth, size, taper, ridge, noise, uncertain, estimates, variances):
    """Posterior mean and variance of every patch of every group, given its own observed entries only.

    The patches of a group, as `image` has them now, give the mean ``m`` and the covariance ``S``, their sample covariance,
    entry by entry times `taper`, plus ``ridge I``: a low-rank part and an isotropic ridge. A patch with observed entries ``o`` becomes

        m + S_:o (S_oo + noise I)^-1 (y_o - m_o),    with variances    diag(S - S_:o (S_oo + noise I)^-1 S_o:).

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
        Current estimate.
    data : (C, H, W) float32 ndarray
        Observed values; not read where not observed.
    observed : (C, H, W) bool ndarray
    groups : (G, K) int32 ndarray
    frame, depth : int
        Rows of a frame, and frames of a patch.
    size : int
    taper : (D, D) float32 ndarray
        Symmetric, with ones on the diagonal.
    ridge, noise : float32
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
    length = depth * image.shape[0] * size * size
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
        workspace = np.empty((2, length, length), np.float32)
        for g in range(share * SHARE, min(len(groups), (share + 1) * SHARE)):
            cost, other = 0, 3 * length**3
            for k in range(members):
                _take(image, groups[g, k], frame, depth, size, patches[k])
                _take(data, groups[g, k], frame, depth, size, targets[k])
                _take(observed, groups[g, k], frame, depth, size, flags[k])
                known = np.sum(flags[k])
                cost += known**3
                other += (length - known) ** 3
            few_missing = not uncertain and other < cost
            _gaussian(patches, taper, ridge, mean, covariance)
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
                _by_missing(matrix, covariance, mean, targets, chosen, counts, noise, patches, workspace[0], estimates[g], spread)
            else:
                _by_observed(matrix, covariance, mean, targets, chosen, counts, noise, estimates[g], spread)


@njit(cache=CACHE, error_model="numpy")
def _eigenpairs_above(matrix, bound, values, vectors, supports, work, integers):
    """Eigenvalues above `bound` of a symmetric matrix, which is overwritten, and their vectors as rows; returns how many."""
    count = len(matrix)
    letters = np.array([ord("V"), ord("V"), _UPPER_OF_ROWS], np.uint8)
    sizes = np.array([count, len(work), len(integers), 0, 0, 0, 0], np.int32)
    scalars = np.array([bound, np.inf, 0.0], np.float32)
    _ssyevr(letters.ctypes, letters[1:].ctypes, letters[2:].ctypes, sizes.ctypes, matrix.ctypes, sizes.ctypes, scalars.ctypes,
            scalars[1:].ctypes, sizes[4:].ctypes, sizes[4:].ctypes, scalars[2:].ctypes, sizes[5:].ctypes, values.ctypes, vectors.ctypes,
            sizes.ctypes, supports.ctypes, work.ctypes, sizes[1:].ctypes, integers.ctypes, sizes[2:].ctypes, sizes[6:].ctypes)  # fmt: skip
    return sizes[5]


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def shrink(image, groups, frame, depth, size, noise, estimates, variances):
    """Every group with the singular values of its patches, less their mean, shrunk as white noise of a known variance asks.

    A singular value y of the K x D matrix, over the root of ``noise max(K, D)``, becomes ``sqrt((y^2 - b - 1)^2 - 4 b) / y`` with
    ``b = min(K, D) / max(K, D)``, and 0 where it is not above ``1 + sqrt(b)``: the best there is for large matrices (M. Gavish, D. Donoho:
    Optimal shrinkage of singular values, IEEE Trans. Inf. Theory, 2017).

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
        With noise.
    groups : (G, K) int32 ndarray
    frame, depth : int
        Rows of a frame, and frames of a patch.
    size : int
    noise : float32
        Variance, above 0.
    estimates : (G, K, D) float32 ndarray
        Written.
    variances : (G, K, D) float32 ndarray
        Written: of every entry of a group the noise that is left, ``noise (1/K + f (1/K + 1/D))`` with f the sum of the factors.
    """
    members = groups.shape[1]
    length = depth * image.shape[0] * size * size
    longer, ratio = max(members, length), min(members, length) / max(members, length)
    for share in prange((len(groups) + SHARE - 1) // SHARE):
        patches = np.empty((members, length), np.float32)
        mean = np.empty(length, np.float32)
        gram, vectors = np.empty((members, members), np.float32), np.empty((members, members), np.float32)
        values, along = np.empty(members, np.float32), np.empty(length, np.float32)
        supports, integers = np.empty(2 * members, np.int32), np.empty(10 * members, np.int32)
        work = np.empty(26 * members, np.float32)
        for g in range(share * SHARE, min(len(groups), (share + 1) * SHARE)):
            mean[:] = np.float32(0.0)
            for k in range(members):
                _take(image, groups[g, k], frame, depth, size, patches[k])
                mean += patches[k]
            mean /= np.float32(members)
            for k in range(members):
                patches[k] -= mean
                estimates[g, k] = mean
            letters = np.array([_UPPER_OF_ROWS, ord("T")], np.uint8)
            sizes = np.array([members, length], np.int32)
            scalars = np.array([1.0 / (noise * longer), 0.0], np.float32)
            _ssyrk(letters.ctypes, letters[1:].ctypes, sizes.ctypes, sizes[1:].ctypes, scalars.ctypes, patches.ctypes, sizes[1:].ctypes,
                   scalars[1:].ctypes, gram.ctypes, sizes.ctypes)  # fmt: skip
            found = _eigenpairs_above(gram, (1.0 + np.sqrt(ratio)) ** 2, values, vectors, supports, work, integers)
            freedom = 0.0
            for r in range(found):
                factor = np.sqrt(max((values[r] - ratio - 1.0) ** 2 - 4.0 * ratio, 0.0)) / values[r]
                freedom += factor
                along[:] = np.float32(0.0)
                for k in range(members):
                    weight = vectors[r, k]
                    for d in range(length):
                        along[d] += weight * patches[k, d]
                for k in range(members):
                    weight = np.float32(factor) * vectors[r, k]
                    result = estimates[g, k]
                    for d in range(length):
                        result[d] += weight * along[d]
            variances[g] = np.float32(noise * (1.0 / members + freedom * (1.0 / members + 1.0 / length)))


@njit(parallel=True, cache=CACHE, nogil=True, error_model="numpy")
def add_up(groups, estimates, variances, frame, depth, size, floor, total, weight, squares):
    """Add every patch estimate to the picture of sums, weighted by the inverse of its standard deviation.

    Parameters
    ----------
    groups : (G, K) int32 ndarray
    estimates : (G, K, D) float32 ndarray
    variances : (G, K, D) or (0, 0, 0) float32 ndarray
        Entry by entry; empty: all weights are 1.
    frame, depth : int
        Rows of a frame, and frames of a patch.
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
    highest = (np.max(groups) // width + (depth - 1) * frame + size - 1) // STRIP
    for strip in prange(lowest, highest + 1):
        begin, end = strip * STRIP, min(height, (strip + 1) * STRIP)
        for g in range(len(groups)):
            for k in range(groups.shape[1]):
                left = groups[g, k] % width
                for deep in range(depth):
                    top = groups[g, k] // width + deep * frame
                    for r in range(max(0, begin - top), min(size, end - top)):
                        for c in range(channels):
                            line, share = total[c, top + r], weight[c, top + r]
                            start = ((deep * channels + c) * size + r) * size
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
