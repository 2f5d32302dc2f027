"""Compiled loops over patches: estimate groups of similar ones as one Gaussian, add the estimates up.

A picture is planar, (C, H, W) float32. A patch is the `size` x `size` square of every channel, a vector of ``D = C
size^2`` entries in the order (channel, row, column), and is named by its position ``top * W + left``. A group is a row
of positions: a reference patch, first, and those most like it.

A clip is a picture of its frames, one below the other, `frame` rows each; a picture is a clip of one frame. A patch may
be several frames deep: it then is the same square of `depth` frames in a row, named by the first, in the order (frame,
channel, row, column).

Every function is deterministic: groups do not depend on each other, and every entry's sums run over the groups in their
order, whatever the number of threads. Each public kernel has a plain NumPy twin of the same name in tests/reference.py.
"""

import numpy as np
from numba import njit

from ..kernels import INNER, OUTER, at, foreign, run_shares
from .kernels_dense import NONE, ROWS, gram, invert, mirror, multiply
from .kernels_lanes import LANES, NO, TILE, YES, factorise, gather, invert_lanes, square, substitute_back

_ssyev = foreign("ssyev", "cython_lapack", 9)
_VECTORS, _UPPER = np.uint8(ord("V")), np.uint8(ord("U"))

# Rows of the picture that a thread adds estimates into at a time are a multiple of it.
STRIP = 16
# Groups that share one thread's workspace are a multiple of it.
SHARE = 16
# Pivots of a covariance are at least its ridge; where rounding has left less than this share of it, rounding is all.
HALF = np.float32(0.5)
# Noise, relative to the sum of a covariance's diagonal, with which what is left open is worked out: with none, rounding
# could leave less than nothing open, and estimates went astray (airplane, 80 % of the pixels missing).
ROUNDING = np.float32(5e-5)


@njit(**INNER)
def _take(image, position, frame, depth, size, patch):
    """Copy the patch at `position` out of a picture."""
    # Unsigned indices: others are looked at for being negative, which takes longer than the copy.
    top, left, columns = position // image.shape[2], np.uint64(position % image.shape[2]), np.uint64(size)
    d = np.uint64(0)
    for begin in range(top, top + depth * frame, frame):
        for c in range(image.shape[0]):
            for r in range(size):
                line = image[c, begin + r]
                for s in range(columns):
                    patch[d + s] = line[left + s]
                d += columns


@njit(**INNER)
def _centre(patches, mean):
    """Write the mean of the patches, and take it from them."""
    count, length = patches.shape
    for d in range(length):
        mean[d] = np.float32(0.0)
    for k in range(count):
        for d in range(length):
            mean[d] += patches[k, d]
    for d in range(length):
        mean[d] /= np.float32(count)
    for k in range(count):
        for d in range(length):
            patches[k, d] -= mean[d]


@njit(**INNER)
def _covariance(patches, taper, ridge, covariance):
    """Covariance of patches without their mean, times `taper`, with `ridge` on its diagonal."""
    gram(patches, covariance)
    share = np.float32(1.0) / np.float32(len(patches))
    for d in range(len(covariance)):
        begin = d // LANES * LANES  # whole vectors
        row, factors = covariance[d, begin:], taper[d, begin:]
        for e in range(len(row)):
            row[e] *= share * factors[e]
        covariance[d, d] += ridge
    mirror(covariance)


@njit(**INNER)
def _ascending(counts, begins, order):
    """Write into `order` the numbers of `counts` by rising count, equal ones as they come.

    Counts are below the length of `begins` by 2 and more, which is workspace.
    """
    for n in range(len(begins)):
        begins[n] = 0
    for k in range(len(counts)):
        begins[counts[k] + 1] += 1
    for n in range(1, len(begins)):
        begins[n] += begins[n - 1]
    for k in range(len(counts)):
        order[begins[counts[k]]] = k
        begins[counts[k]] += 1


@njit(**INNER)
def _turn(held, lists, sizes, longest, turned, lengths):
    """Write the lists of entries of the patch that each lane holds, up to the `longest`, as vectors of all lanes, and
    their lengths as one.
    """
    for lane in range(LANES):
        k = held[lane]
        own = lists[k]
        lengths[lane] = sizes[k]
        for j in range(longest):
            turned[j * LANES + lane] = own[j]


@njit(**INNER)
def _load(matrix, order, height, square, ridge, chosen, counts, held, sides):
    """Write the system ``(square + ridge I)_cc a = sides_c`` of the chosen entries of the patch that each lane holds,
    the identity below up to `order`. `chosen` and `counts` are as `_turn` writes them.
    """
    width = square.shape[1]
    for j in range(order):
        diagonal = j * height + j
        gather(matrix, diagonal, 1, square, width, chosen, j, counts, chosen, j, order - j, counts)
        for lane in range(LANES):
            matrix[diagonal * LANES + lane] += ridge if j < counts[lane] else np.float32(1.0)
    gather(matrix, order, height, sides, width, held, 0, counts, chosen, 0, order, counts)


@njit(**INNER)
def _load_identity(matrix, order, height):
    """Write the columns of the identity as further right sides below the first, in every lane."""
    for j in range(order):
        base = (j * height + order + 1) * LANES
        matrix[base : base + order * LANES] = np.float32(0.0)
        matrix[base + j * LANES : base + (j + 1) * LANES] = np.float32(1.0)


@njit(**INNER)
def _load_rows(matrix, order, height, rows, chosen, counts, wanted, sizes, count):
    """Write ``rows_cw`` for the `wanted` entries w as further right sides below the first, `count` of them, for the
    patch that each lane holds; 0 where it wants fewer. All lists are as `_turn` writes them.
    """
    for j in range(order):
        gather(matrix, j * height + order + 1, 1, rows, rows.shape[1], chosen, j, counts, wanted, 0, count, sizes)


@njit(**INNER)
def _hold(by_count, first, held):
    """Write the numbers of the `LANES` patches from `first` on into `held`, the last one in what is left over; returns
    how many there are.
    """
    batch = min(LANES, len(by_count) - first)
    for lane in range(LANES):
        held[lane] = by_count[first + min(lane, batch - 1)]
    return batch


@njit(**INNER)
def _add_uncertainty(matrix, length, covariance, taper, targets, chosen, counts, noise, least, room, inner, outer):
    """Add the mean posterior covariance of the members, ``S - S A S`` with A the mean of ``(S_oo + noise I)^-1``,
    tapered; its diagonal is written into the first row of `outer`.

    `chosen` are the observed entries of each member; `inner` and `outer`, (D, D) and padded, are workspace. For `least`
    see `factorise`.
    """
    members = len(counts)
    begins, by_count, held, turned, _, lengths, _ = room
    inner[:] = np.float32(0.0)
    _ascending(counts, begins, by_count)
    for first in range(0, members, LANES):
        batch = _hold(by_count[:members], first, held)
        order = (counts[held[batch - 1]] + TILE - 1) // TILE * TILE
        height = (order + (order + 1 + TILE - 1) // TILE * TILE) | 1
        _turn(held, chosen, counts, order, turned, lengths)
        _load(matrix, order, height, covariance, noise, turned, lengths, held, targets)
        _load_identity(matrix, order, height)
        factorise(matrix, order, height, order + 1, least, YES)
        invert_lanes(matrix, order, height)
        for lane in range(batch):
            k = held[lane]
            for j in range(counts[k]):
                base = (order * height + j * order) * LANES + lane
                row = inner[chosen[k, j]]
                for i in range(j, counts[k]):
                    row[chosen[k, i]] += matrix[base + i * LANES]
    mirror(inner)
    multiply(covariance, inner, outer)
    multiply(outer, covariance, inner)
    share = np.float32(1.0) / np.float32(members)
    for d in range(length):
        outer[0, d] = covariance[d, d] + share * inner[d, d]
    for d in range(length):
        for e in range(length):
            covariance[d, e] += (covariance[d, e] + share * inner[d, e]) * taper[d, e]


@njit(inline="always", **INNER)
def _by_observed(
    matrix,
    covariance,
    mean,
    targets,
    chosen,
    counts,
    wanted,
    sizes,
    noise,
    least,
    room,
    products,
    estimates,
    spread,
    variances,
):
    """``m + S_:o (S_oo + noise I)^-1 (y_o - m_o)`` for every patch, with `targets` y - m, `chosen` the observed
    entries.

    Variances, written if `spread`, are those of the `wanted` entries, `sizes` of each patch; 0 elsewhere.
    `targets` are overwritten, and `products`, as large, is workspace. For `least` see `factorise`.
    """
    members, length = estimates.shape
    begins, by_count, held, turned, its, lengths, its_lengths = room
    _ascending(counts, begins, by_count)  # alike counts in a batch: little filling up
    for first in range(0, members, LANES):
        batch, widest = _hold(by_count, first, held), NONE
        order = (counts[held[batch - 1]] + TILE - 1) // TILE * TILE
        for k in held:
            widest = max(widest, sizes[k])
        extra = 1 + (widest if spread else 0)
        height = (order + (extra + TILE - 1) // TILE * TILE) | 1
        _turn(held, chosen, counts, order, turned, lengths)
        _load(matrix, order, height, covariance, noise, turned, lengths, held, targets)
        if extra > 1:
            _turn(held, wanted, sizes, widest, its, its_lengths)
            _load_rows(matrix, order, height, covariance, turned, lengths, its, its_lengths, widest)
        factorise(matrix, order, height, extra, least, NO)
        if spread:
            square(matrix, order, height, widest)
            for lane in range(batch):
                k = held[lane]
                for d in range(length):
                    variances[k, d] = np.float32(0.0)
                for i in range(sizes[k]):
                    d = wanted[k, i]
                    variances[k, d] = covariance[d, d] + matrix[(order * (height + 1) + i) * LANES + lane]
        substitute_back(matrix, order, height)
        for lane in range(batch):
            k = held[lane]
            for j in range(counts[k]):
                targets[k, chosen[k, j]] = matrix[(order * height + j) * LANES + lane]
    multiply(targets, covariance, products)
    for k in range(members):
        found, own = estimates[k], products[k]
        for d in range(length):
            found[d] = mean[d] + own[d]


@njit(inline="always", **INNER)
def _by_missing(
    matrix,
    precision,
    mean,
    targets,
    chosen,
    counts,
    wanted,
    sizes,
    noise,
    room,
    products,
    smoother,
    estimates,
    spread,
    variances,
):
    """The same by the precision ``P = (S + noise I)^-1``: what is missing becomes ``m_x - P_xx^-1 P_xo (y_o - m_o)``,
    then everything ``y - noise P (y - m)``.

    `targets` is y - m, 0 where missing, and overwritten; `chosen` are the missing entries. The cheaper way where less
    is missing than observed: all patches share one inverse, and one that misses nothing needs no more. `products`, as
    large as `targets`, is workspace, and so is `smoother`, padded (D, D), used under noise only, for ``I - noise P``;
    then `wanted` (K, D) lists all entries, and `sizes` holds D.
    """
    members, length = estimates.shape
    begins, by_count, held, turned, its, lengths, its_lengths = room
    multiply(targets, precision, products)
    if spread:
        for k in range(members):
            for d in range(length):
                variances[k, d] = noise - noise * noise * precision[d, d]
        if noise > 0:
            for d in range(length):
                for e in range(length):
                    smoother[d, e] = -noise * precision[d, e]
                smoother[d, d] += np.float32(1.0)
    _ascending(counts, begins, by_count)
    complete = 0
    while complete < members and counts[by_count[complete]] == 0:
        complete += 1
    for first in range(complete, members, LANES):
        batch = _hold(by_count, first, held)
        order = (counts[held[batch - 1]] + TILE - 1) // TILE * TILE
        extra = 1 + ((length if noise > 0 else order) if spread else 0)
        height = (order + (extra + TILE - 1) // TILE * TILE) | 1
        _turn(held, chosen, counts, order, turned, lengths)
        _load(matrix, order, height, precision, np.float32(0.0), turned, lengths, held, products)
        if spread and noise > 0:
            _turn(held, wanted, sizes, length, its, its_lengths)
            _load_rows(matrix, order, height, smoother, turned, lengths, its, its_lengths, length)
        elif spread:
            _load_identity(matrix, order, height)
        factorise(matrix, order, height, extra, np.float32(0.0), spread and noise == 0)
        if spread:
            square(matrix, order, height, extra - 1)
            for lane in range(batch):
                k = held[lane]
                for j in range(length if noise > 0 else counts[k]):
                    variances[k, j if noise > 0 else chosen[k, j]] -= matrix[(order * (height + 1) + j) * LANES + lane]
        substitute_back(matrix, order, height)
        for lane in range(batch):
            k = held[lane]
            for j in range(counts[k]):
                targets[k, chosen[k, j]] = -matrix[(order * height + j) * LANES + lane]
    if noise > 0:
        multiply(targets, precision, products)
    for k in range(members):
        for d in range(length):
            estimates[k, d] = mean[d] + targets[k, d]
            if noise > 0:
                estimates[k, d] -= noise * products[k, d]


@njit(**INNER)
def _gather(image, data, group, frame, depth, size, patches, targets, mean, estimated):
    """Copy the patches of a group, less their `mean`, and of its first ones what is observed into `targets`."""
    for k in range(len(patches)):
        _take(image, group[k], frame, depth, size, patches[k])
    _centre(patches, mean)
    for k in range(estimated):
        _take(data, group[k], frame, depth, size, targets[k])


@njit(**INNER)
def _divide(targets, mean, length, wants_missing, noise, chosen, counts, others, sizes):
    """List of every patch what is observed, or with `wants_missing` what is not, in `chosen`, and in `others` what is
    to be estimated; take the mean from what is observed, and set the rest to 0.
    """
    all_wanted = noise > 0  # without noise, what is observed is certain
    for k in range(len(counts)):
        count, size, values, own, its = 0, 0, targets[k], chosen[k], others[k]
        # No branch hangs on where holes are, since the processor would guess half of them wrong.
        for d in range(length):
            difference = values[d] - mean[d]
            known = difference == difference  # not NaN
            values[d] = difference if known else np.float32(0.0)
            own[count] = d
            count += known != wants_missing
            its[size] = d
            size += all_wanted | (not known)
        counts[k], sizes[k] = count, size


@njit(**INNER)
def _few_missing(targets, length, estimated):
    """Whether the precision of all patches and systems of what each misses cost less than systems of what is observed.
    """
    by_observed, by_missing = 0, 3 * length * length * length
    for k in range(estimated):
        count = 0
        for d in range(length):
            count += targets[k, d] == targets[k, d]
        by_observed += count * count * count
        by_missing += (length - count) * (length - count) * (length - count)
    return by_missing < by_observed


@njit(**OUTER)
def _estimate(first, last, image, data, groups, frame, depth, size, taper, ridge, noise, estimates, variances, room):
    """`estimate` for the groups `first` to ``last - 1``, in one workspace."""
    estimated, length = estimates.shape[1:]
    together = 0 < variances.shape[1] < estimated
    spread = len(variances) > 0 and not together
    matrix, patches, mean, covariance, inner, _, targets, products, chosen, others, counts, sizes, batches = room
    for g in range(first, last):
        _gather(image, data, groups[g], frame, depth, size, patches, targets, mean, estimated)
        few_missing = _few_missing(targets, length, estimated)
        _covariance(patches, taper, ridge + noise if few_missing else ridge, covariance)
        _divide(targets, mean, length, few_missing, noise, chosen, counts, others, sizes)
        if together:
            for d in range(length):
                variances[g, 0, d] = covariance[d, d] - (noise if few_missing else np.float32(0.0))
        its = variances[g] if spread else products  # which is not written to as variances then
        if few_missing:
            invert(covariance, inner)
            _by_missing(matrix, covariance, mean, targets, chosen, counts, others, sizes, noise, batches, products,
                        inner, estimates[g], spread, its)  # fmt: skip
        else:
            _by_observed(matrix, covariance, mean, targets, chosen, counts, others, sizes, noise, HALF * ridge, batches,
                         products, estimates[g], spread, its)  # fmt: skip


@njit(**INNER)
def _principal_axes(patches, depth, products, values, axes):
    """Write the eigenvectors of the covariance of the channels over all pixels of patches without their mean, one a
    row; `products` (size^2,) and `values` (4 C,) are workspace.
    """
    channels, square = len(axes), len(products)
    for c in range(channels):
        for e in range(c + 1):
            products[:] = np.float32(0.0)
            for k in range(len(patches)):
                for begin in range(0, depth * channels, channels):
                    one, other = patches[k, (begin + c) * square :], patches[k, (begin + e) * square :]
                    for i in range(square):
                        products[i] += one[i] * other[i]
            axes[c, e] = products.sum()
    order, rest = at(np.int32(channels)), values[channels:]
    # What is the lower triangle by rows is the upper one by columns.
    _ssyev(at(_VECTORS), at(_UPPER), order, at(axes), order, at(values), at(rest), at(np.int32(len(rest))),
           at(np.int32(0)))  # fmt: skip


@njit(**INNER)
def _along(patches, axis, depth, turned):
    """Write into `turned` (K, D / C) what patches of C channels have along one axis of their colours."""
    channels = len(axis)
    square = turned.shape[1] // depth
    for k in range(len(patches)):
        for f in range(depth):
            own = turned[k, f * square : (f + 1) * square]
            for i in range(square):
                own[i] = np.float32(0.0)
            for c in range(channels):
                share, begin = axis[c], (f * channels + c) * square
                line = patches[k, begin : begin + square]
                for i in range(square):
                    own[i] += share * line[i]


@njit(**INNER)
def _add_back(turned, axis, depth, patches):
    """Add to patches of C channels what they have along one axis; the opposite of `_along`."""
    channels = len(axis)
    square = turned.shape[1] // depth
    for k in range(len(patches)):
        for f in range(depth):
            own = turned[k, f * square : (f + 1) * square]
            for c in range(channels):
                share, begin = axis[c], (f * channels + c) * square
                line = patches[k, begin : begin + square]
                for i in range(square):
                    line[i] += share * own[i]


@njit(**OUTER)
def _estimate_apart(
    first, last, image, data, groups, frame, depth, size, taper, ridge, noise, estimates, variances, room, colours
):
    """`_estimate` along each principal axis of a group's colours by itself."""
    estimated, length = estimates.shape[1], estimates.shape[2] // len(image)
    spread = len(variances) > 0
    matrix, patches, nothing, covariance, inner, _, targets, products, chosen, others, counts, sizes, batches = room
    whole, mean, known, sums, values, axes, found, its = colours
    for g in range(first, last):
        _gather(image, data, groups[g], frame, depth, size, whole, known, mean, estimated)
        _principal_axes(whole, depth, sums, values, axes)
        for k in range(estimated):
            for d in range(len(mean)):
                known[k, d] -= mean[d]
                estimates[g, k, d] = mean[d]
        if spread:
            variances[g] = np.float32(0.0)
        few_missing = _few_missing(known, len(mean), estimated)  # so it is along every axis
        for axis in axes:
            _along(whole, axis, depth, patches[:, :length])
            _along(known, axis, depth, targets[:estimated, :length])
            _covariance(patches, taper, ridge + noise if few_missing else ridge, covariance)
            _divide(targets, nothing, length, few_missing, noise, chosen, counts, others, sizes)
            if few_missing:
                invert(covariance, inner)
                _by_missing(matrix, covariance, nothing, targets, chosen, counts, others, sizes, noise, batches,
                            products, inner, found, spread, its)  # fmt: skip
            else:
                _by_observed(matrix, covariance, nothing, targets, chosen, counts, others, sizes, noise, HALF * ridge,
                             batches, products, found, spread, its)  # fmt: skip
            _add_back(found, axis, depth, estimates[g])
            if spread:
                _add_back(its, axis**2, depth, variances[g])


@njit(**OUTER)
def _estimate_uncertain(
    first, last, image, data, groups, frame, depth, size, taper, ridge, noise, estimates, variances, room
):
    """`_estimate` with what missing entries leave open; by itself, because few runs need it and it compiles for long.
    """
    estimated, length = estimates.shape[1:]
    matrix, patches, mean, covariance, inner, outer, targets, products, chosen, others, counts, sizes, batches = room
    together = variances.shape[1] == 1
    spread = len(variances) > 0 and not together
    for g in range(first, last):
        _gather(image, data, groups[g], frame, depth, size, patches, targets, mean, estimated)
        _covariance(patches, taper, ridge, covariance)
        _divide(targets, mean, length, False, noise, chosen, counts, others, sizes)
        rounding = np.float32(0.0)
        for d in range(length):
            rounding += covariance[d, d]
        rounding *= ROUNDING
        # Those of one batch tell as well as all how much is left open.
        _add_uncertainty(matrix, length, covariance, taper, targets, chosen, counts[:LANES], noise + rounding,
                         HALF * ridge, batches, inner, outer)  # fmt: skip
        if together:
            for d in range(length):
                variances[g, 0, d] = outer[0, d]
        _by_observed(matrix, covariance, mean, targets, chosen, counts, others, sizes, noise, HALF * ridge, batches,
                     products, estimates[g], spread, variances[g] if spread else products)  # fmt: skip


def estimate(image, data, groups, frame, depth, size, taper, ridge, noise, uncertain, apart, estimates, variances):
    """Posterior mean and variance of every patch of every group, given its own observed entries only.

    The patches of a group, as `image` has them now, give the mean ``m`` and the covariance ``S``, their sample
    covariance, entry by entry times `taper`, plus ``ridge I``: a low-rank part and an isotropic ridge. A patch with
    observed entries ``o`` becomes

        m + S_:o (S_oo + noise I)^-1 (y_o - m_o),    with variances    diag(S - S_:o (S_oo + noise I)^-1 S_o:).

    Parameters
    ----------
    image : (C, H, W) float32 ndarray
        Current estimate.
    data : (C, H, W) float32 ndarray
        Observed values; NaN where not observed.
    groups : (G, K) int32 ndarray
        The first E of every group are estimated; all K give its mean and covariance.
    frame, depth : int
        Rows of a frame, and frames of a patch.
    size : int
    taper : (D, D) float32 ndarray
        Symmetric, with ones on the diagonal. If `apart`, of one channel.
    ridge, noise : float32
        Variances.
    uncertain : bool
        Whether S is increased, before that, by the mean posterior covariance of the nearest `LANES` members under it,
        entry by entry times `taper`: what their missing entries leave open, as an EM iteration has it.
    apart : bool
        Whether the colours of a group are turned to their principal axes, along each of which its patches are a group
        by themselves. All channels of a pixel are then observed, or none is; not together with `uncertain`.
    estimates : (G, E, D) float32 ndarray
        Written.
    variances : (G, E, D), (G, 1, D) or (0, 0, 0) float32 ndarray
        Written, or left alone if empty; 0 of observed entries without noise. One for each group is much cheaper, and
        good enough for weights: the diagonal of that mean posterior covariance if `uncertain`, else that of S; not
        together with `apart`.
    """
    estimated, length = estimates.shape[1], len(taper)
    spread = len(variances) > 0 and not 0 < variances.shape[1] < estimated
    extra = 2 * length if uncertain else length if spread else 1

    def room():
        own = _workspace(groups.shape[1], estimated, length, extra)
        return (own, _colours(image, estimates, groups.shape[1], size)) if apart else (own,)

    kernel = _estimate_apart if apart else _estimate_uncertain if uncertain else _estimate
    taper = np.pad(taper, (0, -length % LANES))
    run_shares(kernel, len(groups), SHARE, image, data, groups, frame, depth, size, taper, ridge, noise, estimates,
               variances, room=room)  # fmt: skip


def _workspace(members, estimated, length, extra):
    """Arrays for the groups of one thread: sixteen systems with as many right sides as `extra`; patches, mean,
    covariance and two matrices like it; of those that are estimated what they are to agree with, and products; for each
    a list of entries and one of others, and their lengths; what batches of them need.

    Matrices and the mean are padded for `kernels_dense`, with zeros. Numba would compile each allocation by itself.
    """
    width, rows = length + -length % LANES, estimated + -estimated % ROWS
    systems = np.empty(((length + TILE) * ((length + extra + 4 * TILE) | 1) + 1) * LANES, np.float32)
    systems = systems[-(systems.ctypes.data // 4) % LANES :]  # vectors begin on whole lines of the cache
    patches, mean = np.zeros((members, width), np.float32), np.zeros(width, np.float32)
    targets, products = np.zeros((2, rows, width), np.float32)
    lists, lengths = np.zeros((2, estimated, length + TILE), np.uint32), np.zeros((2, estimated), np.int64)
    turned, turned_lengths = np.empty((2, (length + TILE) * LANES), np.uint32), np.empty((2, LANES), np.uint32)
    batches = (np.empty(length + 2, np.int64), np.empty(estimated, np.int64), np.empty(LANES, np.uint32), *turned,
               *turned_lengths)  # fmt: skip
    matrices = np.zeros((3, width, width), np.float32)
    return systems, patches, mean, *matrices, targets, products, *lists, *lengths, batches


def _colours(image, estimates, members, size):
    """What `_estimate_apart` needs beside: patches in all colours, their mean, what those that are estimated are to
    agree with, and what colours and their axes are worked out in.
    """
    _, estimated, length = estimates.shape
    channels = len(image)
    return (
        np.empty((members, length), np.float32),
        np.empty(length, np.float32),
        np.empty((estimated, length), np.float32),
        np.empty(size * size, np.float32),
        np.empty(4 * channels, np.float32),
        np.empty((channels, channels), np.float32),
        *np.empty((2, estimated, length // channels), np.float32),
    )


@njit(**OUTER)
def _add_up(begin, end, groups, estimates, variances, frame, depth, size, floor, total, weight, squares):
    """`add_up` for the rows `begin` to ``end - 1``."""
    channels, _, width = total.shape
    equal, wanted, last = len(variances) == 0, len(squares) > 0, variances.shape[1] - 1
    for g in range(len(groups)):
        for k in range(estimates.shape[1]):
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
                                variance = max(variances[g, min(k, last), start + s], np.float32(0.0))
                                own = np.float32(1.0) / np.sqrt(variance + floor)
                            value = estimates[g, k, start + s]
                            line[left + s] += own * value
                            share[left + s] += own
                            if wanted:
                                squares[c, top + r, left + s] += own * (value * value + variance)


def add_up(groups, estimates, variances, frame, depth, size, floor, total, weight, squares):
    """Add every patch estimate to the picture of sums, weighted by the inverse of its standard deviation.

    Parameters
    ----------
    groups : (G, K) int32 ndarray
    estimates : (G, E, D) float32 ndarray
        Of the first E patches of every group.
    variances : (G, E, D), (G, 1, D) or (0, 0, 0) float32 ndarray
        Entry by entry, of each patch or of a group as a whole; empty: all weights are 1.
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
    run_shares(
        _add_up, total.shape[1], STRIP, groups, estimates, variances, frame, depth, size, floor, total, weight, squares
    )
