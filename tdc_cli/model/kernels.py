"""Compiled loops over observed entries.

Every function here is deterministic: random numbers are drawn by the caller and passed in, and sums are split into
segments that depend on the data only, so that the result has the same bits for any number of threads. Each public
kernel has a plain NumPy twin of the same name in tests/reference.py.

Layout shared by all kernels: `stack` is the (sum n_k, R) array of all factor matrices one below the other, `first` the
(K,) row at which each mode begins, `coordinates` the (K, n) positions of the observed entries, so that entry `j` meets
row ``first[k] + coordinates[k, j]`` of `stack` in mode `k`. Gram matrices are symmetric and only their upper triangle
is written.
"""

import numpy as np
from numba import njit

from ..kernels import OUTER, at, foreign, run_shares

# Entries gathered before each rank-B update: B x R doubles stay in a core's second-level cache up to rank 200 or so.
BLOCK = 256
# Entries that a thread works on at a time are a multiple of it; what is less is not worth another thread.
CHUNK = 4096
# As many multiplications in rows that are drawn, or segments, are not either.
WORK = 1_000_000


_dsyrk = foreign("dsyrk", "cython_blas", 10)
_dpotrf = foreign("dpotrf", "cython_lapack", 5)
_dtrsv = foreign("dtrsv", "cython_blas", 8)

# The Fortran routines see the row-major upper triangle as a column-major lower one.
_LOWER, _NO, _TRANSPOSED = np.uint8(ord("L")), np.uint8(ord("N")), np.uint8(ord("T"))


@njit(inline="always")
def _gather(line, stack, first, coordinates, mode, entry):
    """Fill `line` with the product of the entry's factor rows over the modes other than `mode` (-1: over all)."""
    started = False
    for k in range(len(first)):
        if k == mode:
            continue
        row = stack[first[k] + coordinates[k, entry]]
        if started:
            for r in range(len(line)):
                line[r] *= row[r]
        else:
            for r in range(len(line)):
                line[r] = row[r]
            started = True


@njit(**OUTER)
def _segment_products(
    begin, end, stack, first, coordinates, entries, begins, ends, mode, precisions, targets, grams, products, buffer
):
    rank = stack.shape[1]
    three = len(first) == 3 and mode >= 0
    for s in range(begin, end):
        kept = 0.0  # of the sums so far
        gram = grams[s]
        product = products[s]
        for r in range(rank):
            product[r] = 0.0
        filled = 0
        for position in range(begins[s], ends[s]):
            entry = entries[position]
            root = np.sqrt(precisions[entry])
            target = targets[entry] * root
            line = buffer[filled]
            if three:  # the usual case in one pass over the rank, which is what keeps the gathering cheap
                a = 1 if mode == 0 else 0
                b = 1 if mode == 2 else 2
                row_a = stack[first[a] + coordinates[a, entry]]
                row_b = stack[first[b] + coordinates[b, entry]]
                for r in range(rank):
                    line[r] = row_a[r] * row_b[r] * root
                    product[r] += target * line[r]
            else:
                _gather(line, stack, first, coordinates, mode, entry)
                for r in range(rank):
                    line[r] *= root
                    product[r] += target * line[r]
            filled += 1
            if filled == len(buffer) or position == ends[s] - 1:
                order = at(np.int32(rank))
                _dsyrk(at(_LOWER), at(_NO), order, at(np.int32(filled)), at(1.0), at(buffer), order, at(kept), at(gram),
                       order)  # fmt: skip
                kept, filled = 1.0, 0
        if begins[s] == ends[s]:
            for a in range(rank):
                for b in range(rank):
                    gram[a, b] = 0.0


def segment_products(stack, first, coordinates, entries, begins, ends, mode, precisions, targets, grams, products):
    """Weighted Gram matrix and right side of every segment of observed entries: the sums of eq24, all ranks at once.

    For segment `s`, with ``c`` the product of the other modes' rows, ``grams[s] = sum w c c^T`` and ``products[s] = sum
    w t c``.

    Parameters
    ----------
    stack : (sum n_k, R) float64 ndarray
    first : (K,) int64 ndarray
    coordinates : (K, n) int32 ndarray
    entries : (m,) int32 ndarray
        Observed entries in the order in which the segments list them.
    begins, ends : (S,) int64 ndarray
        Segment `s` is ``entries[begins[s]:ends[s]]``.
    mode : int
        The mode that is left out of the product; -1 leaves out none.
    precisions, targets : (n,) float64 ndarray
        Weight ``w`` and target ``t`` of every observed entry.
    grams : (S, R, R) float64 ndarray
        Written, upper triangles only.
    products : (S, R) float64 ndarray
        Written.
    """
    share = max(1, WORK * len(begins) // max(1, len(entries) * stack.shape[1] ** 2))
    run_shares(_segment_products, len(begins), share,
               stack, first, coordinates, entries, begins, ends, mode, precisions, targets, grams, products,
               room=lambda: (np.empty((BLOCK, stack.shape[1])),))  # fmt: skip


@njit(**OUTER)
def contract_rows(grams, products, rows, factor, gram, product):
    """Gram matrix and right side of the CP weights from those of one mode's rows.

    With ``u`` the factor row of the segment: ``gram = sum_s (u u^T) * G_s``, ``product = sum_s u * q_s`` (eq16, all
    ranks at once), which saves a pass over the entries.

    Parameters
    ----------
    grams : (S, R, R) float64 ndarray
        Upper triangles.
    products : (S, R) float64 ndarray
    rows : (S,) int64 ndarray
        Row of `factor` that segment `s` belongs to.
    factor : (n_k, R) float64 ndarray
    gram : (R, R) float64 ndarray
        Written, both triangles.
    product : (R,) float64 ndarray
        Written.
    """
    rank = len(product)
    gram[:] = 0.0
    product[:] = 0.0
    for s in range(len(rows)):
        row = factor[rows[s]]
        for a in range(rank):
            product[a] += row[a] * products[s, a]
            for b in range(a, rank):
                gram[a, b] += row[a] * row[b] * grams[s, a, b]
    for a in range(rank):
        for b in range(a):
            gram[a, b] = gram[b, a]


@njit(**OUTER)
def _draw_rows(begin, end, grams, products, bounds, weights, diagonals, shifts, noise, rows, info):
    rank = len(weights)
    for i in range(begin, end):
        gram = grams[bounds[i]]
        right = rows[i]
        for r in range(rank):
            right[r] = products[bounds[i], r]
        for s in range(bounds[i] + 1, bounds[i + 1]):
            for a in range(rank):
                right[a] += products[s, a]
                for b in range(a, rank):
                    gram[a, b] += grams[s, a, b]
        for a in range(rank):
            for b in range(a, rank):
                gram[a, b] *= weights[a] * weights[b]
            gram[a, a] += diagonals[i]
            right[a] = right[a] * weights[a] + shifts[i, a]
        order, step = at(np.int32(rank)), at(np.int32(1))
        _dpotrf(at(_LOWER), order, at(gram), order, at(info))
        if info[0] != 0:
            for r in range(rank):
                right[r] = np.nan
            continue
        _dtrsv(at(_LOWER), at(_NO), at(_NO), order, at(gram), order, at(right), step)
        for r in range(rank):
            right[r] += noise[i, r]
        _dtrsv(at(_LOWER), at(_TRANSPOSED), at(_NO), order, at(gram), order, at(right), step)


def draw_rows(grams, products, bounds, weights, diagonals, shifts, noise, rows):
    """Draw factor rows from their Gaussian conditionals (eq23, a whole row at a time).

    Row `i` has precision ``diag(w) G_i diag(w) + diagonals[i] I`` and right side ``w * q_i + shifts[i]``, where ``G_i``
    and ``q_i`` are the sums over the segments ``bounds[i]:bounds[i + 1]`` and ``w`` are the CP weights. With ``P = L
    L^T``, the row is ``L^-T (L^-1 b + noise[i])``: its mean where the noise is 0.

    Parameters
    ----------
    grams : (S, R, R) float64 ndarray
        Upper triangles; overwritten.
    products : (S, R) float64 ndarray
        Overwritten.
    bounds : (m + 1,) int64 ndarray
    weights : (R,) float64 ndarray
    diagonals : (m,) float64 ndarray
    shifts : (m, R) float64 ndarray
    noise : (m, R) float64 ndarray
        Standard normal numbers.
    rows : (m, R) float64 ndarray
        Written; NaN in every place if the precision was not positive definite.
    """
    run_shares(
        _draw_rows,
        len(rows),
        max(1, WORK // rows.shape[1] ** 3),
        grams,
        products,
        bounds,
        weights,
        diagonals,
        shifts,
        noise,
        rows,
        room=lambda: (np.empty(1, np.int32),),
    )


@njit(**OUTER)
def _cp_at(begin, end, stack, first, coordinates, weights, out, line):
    rank = len(weights)
    for entry in range(begin, end):
        _gather(line, stack, first, coordinates, -1, entry)
        total = 0.0
        for r in range(rank):
            total += weights[r] * line[r]
        out[entry] = total


def cp_at(stack, first, coordinates, weights, out):
    """Value of the CP tensor (eq7) at every observed entry.

    Parameters
    ----------
    stack : (sum n_k, R) float64 ndarray
    first : (K,) int64 ndarray
    coordinates : (K, n) int32 ndarray
    weights : (R,) float64 ndarray
    out : (n,) float64 ndarray
        Written.
    """
    run_shares(_cp_at, len(out), CHUNK, stack, first, coordinates, weights, out,
               room=lambda: (np.empty(len(weights)),))  # fmt: skip


@njit(**OUTER)
def _draw_labels(begin, end, residuals, log_weights, means, variances, uniforms, labels, constants, scores):
    count = len(means)
    for d in range(count):
        constants[d] = log_weights[d] - 0.5 * np.log(variances[d])
    for entry in range(begin, end):
        best = -np.inf
        for d in range(count):
            scores[d] = constants[d] - 0.5 * (residuals[entry] - means[d]) ** 2 / variances[d]
            best = max(best, scores[d])
        total = 0.0
        for d in range(count):
            total += np.exp(scores[d] - best)
            scores[d] = total
        threshold = uniforms[entry] * total
        label = 0
        while label < count - 1 and scores[label] <= threshold:
            label += 1
        labels[entry] = label


def draw_labels(residuals, log_weights, means, variances, uniforms, labels):
    """Draw the mixture component of every entry (eq42, eq43) from its residual.

    The probabilities are proportional to ``exp(log_weights[d]) N(residual; means[d], variances[d])``; a uniform number
    picks one by the inverse of their running sum.

    Parameters
    ----------
    residuals : (n,) float64 ndarray
    log_weights, means, variances : (D,) float64 ndarray
        ``log_weights`` may hold -inf.
    uniforms : (n,) float64 ndarray
        In [0, 1).
    labels : (n,) int64 ndarray
        Written.
    """
    run_shares(_draw_labels, len(labels), CHUNK, residuals, log_weights, means, variances, uniforms, labels,
               room=lambda: np.empty((2, len(means))))  # fmt: skip


@njit(**OUTER)
def _expected_labels(
    begin, end, residuals, log_weights, means, variances, log_densities, precisions, shifts, constants, scores
):
    count = len(means)
    for d in range(count):
        constants[d] = log_weights[d] - 0.5 * np.log(2.0 * np.pi * variances[d])
    for entry in range(begin, end):
        best = -np.inf
        for d in range(count):
            scores[d] = constants[d] - 0.5 * (residuals[entry] - means[d]) ** 2 / variances[d]
            best = max(best, scores[d])
        total, precision, shift = 0.0, 0.0, 0.0
        for d in range(count):
            share = np.exp(scores[d] - best)
            total += share
            precision += share / variances[d]
            shift += share / variances[d] * means[d]
        log_densities[entry] = best + np.log(total)
        precisions[entry] = precision / total
        shifts[entry] = shift / precision


def expected_labels(residuals, log_weights, means, variances, log_densities, precisions, shifts):
    """Log density of every residual under the mixture, and the component means and precisions averaged over its labels.

    With ``p_d`` the probabilities of eq43, ``precisions = sum p_d / variances[d]`` and ``shifts`` is the mean of
    ``means`` weighted by ``p_d / variances[d]``: what a least-squares step of an EM iteration needs.

    Parameters
    ----------
    residuals : (n,) float64 ndarray
    log_weights, means, variances : (D,) float64 ndarray
        ``log_weights`` may hold -inf.
    log_densities, precisions, shifts : (n,) float64 ndarray
        Written.
    """
    run_shares(_expected_labels, len(residuals), CHUNK,
               residuals, log_weights, means, variances, log_densities, precisions, shifts,
               room=lambda: np.empty((2, len(means))))  # fmt: skip


@njit(**OUTER)
def draw_weights_one_by_one(stack, first, coordinates, precision, variances, noise, residuals, weights):
    """Draw the CP weights one scalar at a time (eq15-1, eq16), keeping the residuals up to date.

    Parameters
    ----------
    stack : (sum n_k, R) float64 ndarray
    first : (K,) int64 ndarray
    coordinates : (K, n) int32 ndarray
    precision : float
        Noise precision.
    variances : (R,) float64 ndarray
        Prior variance of every weight.
    noise : (R,) float64 ndarray
        Standard normal numbers.
    residuals : (n,) float64 ndarray
        ``y - e - x``; updated in place.
    weights : (R,) float64 ndarray
        Updated in place.
    """
    n = len(residuals)
    products = np.empty(n)
    for r in range(len(weights)):
        squares, cross = 0.0, 0.0
        for entry in range(n):
            b = 1.0
            for k in range(len(first)):
                b *= stack[first[k] + coordinates[k, entry], r]
            products[entry] = b
            squares += b * b
            cross += b * (residuals[entry] + weights[r] * b)
        posterior = 1.0 / variances[r] + precision * squares
        drawn = precision * cross / posterior + noise[r] / np.sqrt(posterior)
        for entry in range(n):
            residuals[entry] += (weights[r] - drawn) * products[entry]
        weights[r] = drawn


@njit(**OUTER)
def _draw_rows_one_by_one(
    begin,
    end,
    stack,
    first,
    coordinates,
    entries,
    starts,
    mode,
    rows,
    precision,
    weights,
    diagonals,
    shifts,
    noise,
    residuals,
):
    for i in range(begin, end):
        start, stop = starts[rows[i]], starts[rows[i] + 1]
        products = np.empty(stop - start)
        row = stack[first[mode] + rows[i]]
        for r in range(len(weights)):
            squares, cross = 0.0, 0.0
            for position in range(start, stop):
                entry = entries[position]
                c = weights[r]
                for k in range(len(first)):
                    if k != mode:
                        c *= stack[first[k] + coordinates[k, entry], r]
                products[position - start] = c
                squares += c * c
                cross += c * (residuals[entry] + row[r] * c)
            posterior = precision * squares + diagonals[i]
            drawn = (precision * cross + shifts[i, r]) / posterior + noise[i, r] / np.sqrt(posterior)
            for position in range(start, stop):
                residuals[entries[position]] += (row[r] - drawn) * products[position - start]
            row[r] = drawn


def draw_rows_one_by_one(
    stack, first, coordinates, entries, starts, mode, rows, precision, weights, diagonals, shifts, noise, residuals
):
    """Draw some rows of one factor matrix one scalar at a time (eq23, eq24; with coherence eq51).

    The rows are treated as independent of one another: rows that are each other's neighbours must come in different
    calls.

    Parameters
    ----------
    stack : (sum n_k, R) float64 ndarray
        The drawn rows are updated in place.
    first : (K,) int64 ndarray
    coordinates : (K, n) int32 ndarray
    entries : (n,) int32 ndarray
    starts : (n_mode + 1,) int64 ndarray
        Row `i` of the mode meets ``entries[starts[i]:starts[i + 1]]``.
    mode : int
    rows : (m,) int64 ndarray
        Which rows to draw.
    precision : float
        Noise precision.
    weights : (R,) float64 ndarray
    diagonals : (m,) float64 ndarray
        Prior precision of the row's scalars.
    shifts : (m, R) float64 ndarray
        Prior precision times prior mean.
    noise : (m, R) float64 ndarray
        Standard normal numbers.
    residuals : (n,) float64 ndarray
        ``y - e - x``; updated in place.
    """
    share = max(1, WORK * len(rows) // max(1, len(entries) * len(weights)))
    run_shares(
        _draw_rows_one_by_one,
        len(rows),
        share,
        stack,
        first,
        coordinates,
        entries,
        starts,
        mode,
        rows,
        precision,
        weights,
        diagonals,
        shifts,
        noise,
        residuals,
    )
