"""Products, Cholesky factors and inverses of one matrix of order 30 to 250, in blocks that stay in registers.

At such orders a BLAS spends half of its time on copying its arguments into an order of its own. Here rows are padded
to whole vectors, so that nothing is copied and no block is cut. Positions in a matrix are those of its entries one row
after the other.
"""

import itertools

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ..kernels import INNER, OUTER
from .kernels_lanes import FUSED, INDEX, LANES, Flat, counted, splat

# Rows of the block that stays in registers; it is one or two vectors of `LANES` wide.
ROWS = 8
# Numba compiles a function once more for every number that is written out in a call.
NONE, ONE = np.int64(0), np.int64(1)


def _products(vectors, subtracted):
    """The intrinsic ``T[target + r across + c] = sum_k A[left + r side + k step] B[right + k across + c]`` over a block
    of `ROWS` rows and ``vectors * LANES`` columns, or with `subtracted` what was there less this sum.
    """
    kind = ir.VectorType(ir.FloatType(), LANES)

    @intrinsic
    def products(typing_context, t, target, across, a, left, side, step, b, right, count):
        signature = types.void(t, types.intp, types.intp, a, *[types.intp] * 3, b, types.intp, types.intp)

        def generate(context, builder, signature, arguments):
            flat = {n: Flat(context, builder, signature.args[n], arguments[n]) for n in (0, 3, 7)}
            target, across, left, side, step, right, count = (arguments[n] for n in (1, 2, 4, 5, 6, 8, 9))
            add = builder.fsub if subtracted else builder.fadd

            def at(begin, number, apart):
                return builder.add(begin, builder.mul(apart, INDEX(number)))

            cells = [at(at(target, r, across), c, INDEX(LANES)) for r in range(ROWS) for c in range(vectors)]
            nothing = ir.Constant(kind, [0.0] * LANES)
            start = [flat[0].load(cell, kind) if subtracted else nothing for cell in cells]

            def body(turn, values):
                left, right, *sums = values
                along = [flat[7].load(at(right, c, INDEX(LANES)), kind) for c in range(vectors)]
                down = [splat(builder, flat[3].load(at(left, r, side), ir.FloatType()), LANES) for r in range(ROWS)]
                new = [
                    add(s, builder.fmul(x, y, flags=FUSED), flags=FUSED)
                    for s, (x, y) in zip(sums, itertools.product(down, along), strict=True)
                ]
                return [builder.add(left, step), builder.add(right, across), *new]

            for cell, value in zip(cells, counted(builder, count, [left, right, *start], body)[2:], strict=True):
                flat[0].store(value, cell)
            return context.get_dummy_value()

        return signature, generate

    return products


_sum_2, _sum_1 = _products(2, False), _products(1, False)
_subtract_2, _subtract_1 = _products(2, True), _products(1, True)


@intrinsic
def _solve_rows(typing_context, matrix, target, across, factor, inverses):
    """``M = L^-1 M`` for the `ROWS` rows from `target` on, `across` apart, one vector wide; ``U = L^T`` begins at
    `factor`, with the inverses of its diagonal in a flat array of their own.
    """
    kind = ir.VectorType(ir.FloatType(), LANES)
    signature = types.void(matrix, types.intp, types.intp, factor, inverses)

    def generate(context, builder, signature, arguments):
        rows, own, diagonal = (Flat(context, builder, signature.args[n], arguments[n]) for n in (0, 3, 4))
        target, across = arguments[1:3]
        cells = [builder.add(target, builder.mul(across, INDEX(r))) for r in range(ROWS)]
        values = [rows.load(cell, kind) for cell in cells]
        for r in range(ROWS):
            for k in range(r):
                element = splat(builder, own.load(INDEX(k * ROWS + r), ir.FloatType()), LANES)
                product = builder.fmul(element, values[k], flags=FUSED)
                values[r] = builder.fsub(values[r], product, flags=FUSED)
            values[r] = builder.fmul(values[r], splat(builder, diagonal.load(INDEX(r), ir.FloatType()), LANES))
            rows.store(values[r], cells[r])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _transpose(typing_context, matrix, target, source, across):
    """``M[target + c across + r] = M[source + r across + c]`` over a block of `LANES` x `LANES`, in registers."""
    kind = ir.VectorType(ir.FloatType(), LANES)
    signature = types.void(matrix, *[types.intp] * 3)

    def generate(context, builder, signature, arguments):
        flat = Flat(context, builder, signature.args[0], arguments[0])
        target, source, across = arguments[1:]
        rows = [flat.load(builder.add(source, builder.mul(across, INDEX(r))), kind) for r in range(LANES)]
        half = LANES // 2
        # Rows r and r + 8 become the rows 2 r and 2 r + 1, element by element in turn; four times over, that is it.
        turns = [n // 2 + n % 2 * LANES for n in range(2 * LANES)]
        orders = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), part) for part in (turns[:LANES], turns[LANES:])]
        for _ in range(LANES.bit_length() - 1):
            rows = [builder.shuffle_vector(rows[r], rows[r + half], order) for r in range(half) for order in orders]
        for r, row in enumerate(rows):
            flat.store(row, builder.add(target, builder.mul(across, INDEX(r))))
        return context.get_dummy_value()

    return signature, generate


@njit(**INNER)
def _rows_of_sums(t, d, first, last, across, a, left, side, step, b, begin, count):
    """Columns `first` to `last` of the rows ``d`` to ``d + ROWS`` of a product of which `count` terms are summed, the
    first of the right factor in its row `begin`.
    """
    for e in range(first, last - LANES, 2 * LANES):
        _sum_2(t, d * across + e, across, a, left, side, step, b, begin * across + e, count)
    if (last - first) % (2 * LANES):
        e = last - LANES
        _sum_1(t, d * across + e, across, a, left, side, step, b, begin * across + e, count)


@njit(**INNER)
def mirror(matrix):
    """Copy what is above the diagonal of a square matrix to below it."""
    width = len(matrix)
    for first in range(0, width, LANES):
        for d in range(first, first + LANES):
            for e in range(d + 1, first + LANES):
                matrix[e, d] = matrix[d, e]
        for begin in range(first + LANES, width, LANES):
            _transpose(matrix, begin * width + first, first * width + begin, width)


@njit(**OUTER)
def gram(patches, products):
    """Upper triangle of ``patches^T patches``.

    Parameters
    ----------
    patches : (K, N) float32 ndarray
        Padded to whole vectors, as all matrices here.
    products : (N, N) float32 ndarray
        Written, what is below the diagonal in part.
    """
    count, width = patches.shape
    for d in range(0, width, ROWS):
        _rows_of_sums(products, d, d // LANES * LANES, width, width, patches, d, ONE, width, patches, NONE, count)


@njit(**OUTER)
def multiply(left, right, products):
    """``products = left @ right``.

    Parameters
    ----------
    left : (M, N) float32 ndarray
        M is a multiple of `ROWS`.
    right : (N, N) float32 ndarray
    products : (M, N) float32 ndarray
        Written.
    """
    rows, width = left.shape
    for k in range(0, rows, ROWS):
        _rows_of_sums(products, k, NONE, width, width, left, k * width, width, ONE, right, NONE, width)


@njit(**INNER)
def _eliminate(matrix, width, j, e, last, other, begin):
    """Take from the columns `e` to ``last - 1`` of `other`, in rows ``j`` to ``j + ROWS``, what the rows `begin` to ``j
    - 1`` of the factor in `matrix` say.
    """
    target, left, right = j * width + e, begin * width + j, begin * width + e
    if last - e > LANES:
        _subtract_2(other, target, width, matrix, left, 1, width, other, right, j - begin)
    else:
        _subtract_1(other, target, width, matrix, left, 1, width, other, right, j - begin)


@njit(**OUTER)
def invert(matrix, root):
    """Replace a positive definite matrix, of which the upper triangle is read, by its inverse.

    Cholesky's ``U^T U``, with the identity as further columns, which become ``W = U^-T``; then ``W^T W``.

    Parameters
    ----------
    matrix : (N, N) float32 ndarray
    root : (N, N) float32 ndarray
        Workspace.
    """
    width = len(matrix)
    factor, inverses = np.empty(ROWS * ROWS, np.float32), np.empty(ROWS, np.float32)
    root[:] = np.float32(0.0)
    for j in range(0, width, ROWS):
        first = j // LANES * LANES
        for e in range(first, width, 2 * LANES):
            _eliminate(matrix, width, j, e, width, matrix, NONE)
        for e in range(0, first + LANES, 2 * LANES):
            _eliminate(matrix, width, j, e, first + LANES, root, e)
        for r in range(ROWS):
            root[j + r, j + r] = np.float32(1.0)
            for c in range(r, ROWS):
                factor[r * ROWS + c] = matrix[j + r, j + c]
        for r in range(ROWS):
            inverses[r] = np.float32(1.0) / np.sqrt(factor[r * ROWS + r])
            for c in range(r, ROWS):
                factor[r * ROWS + c] *= inverses[r]
            for k in range(r + 1, ROWS):
                for c in range(k, ROWS):
                    factor[k * ROWS + c] -= factor[r * ROWS + k] * factor[r * ROWS + c]
        for e in range(first, width, LANES):
            _solve_rows(matrix, j * width + e, width, factor, inverses)
        for e in range(0, first + LANES, LANES):
            _solve_rows(root, j * width + e, width, factor, inverses)
    for d in range(0, width, ROWS):
        for e in range(d // LANES * LANES, width, 2 * LANES):
            last = min(width, e + 2 * LANES)
            _rows_of_sums(matrix, d, e, last, width, root, e * width + d, ONE, width, root, e, width - e)
    mirror(matrix)
