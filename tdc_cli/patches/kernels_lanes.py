"""Small symmetric systems solved sixteen at a time, one in each lane of the processor's vectors.

LAPACK spends its time on overhead at orders of 10 to 60, and numba's vectoriser needs proof that arrays do not overlap
before it uses vectors. So the inner loops are written in LLVM's own language: each works on vectors of `LANES`
floats, and lane ``l`` of every vector belongs to system ``l``. Nothing is added across lanes, so that a system has the
same solution in any lane and any company.

Layout: `matrix` is a flat float32 array of vectors; vector ``column * height + row`` holds that element of the sixteen
matrices. An odd `height` keeps columns from falling on the same lines of the cache.
"""

import itertools

import numpy as np
from llvmlite import ir
from llvmlite.binding import llvm_version_info
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ..kernels import OUTER

LANES = 16
# Rows and columns of the block that stays in registers: 16 sums need 8 loads.
TILE = 4
# Numba compiles a function once more for every truth value that is written out in a call.
YES, NO = np.bool_(True), np.bool_(False)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_NOTHING = ir.Constant(_VECTOR, [0.0] * LANES)
INDEX = ir.IntType(64)
# From LLVM 17 on pointers are opaque, so that each load and step says what lies there; before, the pointer itself did.
_OPAQUE = llvm_version_info >= (17,)
# Multiply and add may be one instruction; nothing else is reordered.
FUSED = ("contract",)


class Flat:
    """Loads and stores in an array that an intrinsic was given, of one element or of several in a row; elements are
    counted one row after the other.
    """

    def __init__(self, context, builder, kind, array):
        self.builder = builder
        self.size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        self.start = builder.ptrtoint(context.make_array(kind)(context, builder, array).data, INDEX)

    def _at(self, index, kind):
        """Address of an element, by its number: casts between opaque pointers leave the type on record as it was."""
        address = self.builder.add(self.start, self.builder.mul(index, INDEX(self.size)))
        return self.builder.inttoptr(address, ir.PointerType() if _OPAQUE else kind.as_pointer())

    def load(self, index, kind):
        return self.builder.load(self._at(index, kind), align=self.size, **({"typ": kind} if _OPAQUE else {}))

    def store(self, value, index):
        self.builder.store(value, self._at(index, value.type), align=self.size)


class _Vectors(Flat):
    """The same of a flat float32 array, whole vectors of `LANES` only."""

    def load(self, index):
        return super().load(self.builder.mul(index, INDEX(LANES)), _VECTOR)

    def store(self, value, index):
        super().store(value, self.builder.mul(index, INDEX(LANES)))

    def cell(self, begin, height, row, column):
        """Index of an element of a block that begins at `begin`, columns `height` apart."""
        builder = self.builder
        return builder.add(begin, builder.add(builder.mul(height, INDEX(column)), INDEX(row)))

    def less(self, total, one, other):
        """``total - one other``."""
        return self.builder.fsub(total, self.builder.fmul(one, other, flags=FUSED), flags=FUSED)


def counted(builder, count, carried, body):
    """A loop of `count` rounds; `carried` start values go through ``body(round, values) -> values``; returns the last
    ones.
    """
    before = builder.block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    turn = builder.phi(INDEX)
    values = [builder.phi(value.type) for value in carried]
    builder.cbranch(builder.icmp_signed("<", turn, count), inside, after)
    builder.position_at_end(inside)
    new = body(turn, values)
    following = builder.add(turn, INDEX(1))
    last = builder.block
    builder.branch(head)
    for phi, first, later in zip([turn, *values], [INDEX(0), *carried], [following, *new], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    builder.position_at_end(after)
    return values


def _less_products(vectors, sums, left, right, stride, count):
    """`sums`, by columns, less ``sum_k M[left + k stride + r] M[right + k stride + c]``: a block of `TILE` x `TILE`
    vectors that stays in registers.
    """
    builder = vectors.builder

    def body(turn, values):
        left, right, *sums = values
        down, along = ([vectors.load(builder.add(side, INDEX(n))) for n in range(TILE)] for side in (left, right))
        new = [vectors.less(s, a, b) for s, (b, a) in zip(sums, itertools.product(along, down), strict=True)]
        return [builder.add(left, stride), builder.add(right, stride), *new]

    return counted(builder, count, [left, right, *sums], body)[2:]


@intrinsic
def _subtract_tile(typing_context, matrix, target, across, left, right, stride, count):
    """``M[target + r + c across] -= sum_k M[left + k stride + r] M[right + k stride + c]`` over a block of `TILE` x
    `TILE` vectors.
    """
    signature = types.void(matrix, *[types.intp] * 6)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        target, across, left, right, stride, count = arguments[1:]
        cells = [vectors.cell(target, across, r, c) for c in range(TILE) for r in range(TILE)]
        sums = _less_products(vectors, [vectors.load(cell) for cell in cells], left, right, stride, count)
        for cell, value in zip(cells, sums, strict=True):
            vectors.store(value, cell)
        return context.get_dummy_value()

    return signature, generate


def splat(builder, value, count):
    """A vector with the same number in all of `count` lanes."""
    nothing = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return builder.shuffle_vector(builder.insert_element(nothing, value, ir.IntType(32)(0)), nothing, first)


@intrinsic
def _factorise_tile(typing_context, matrix, target, height, least):
    """Cholesky factor of the `TILE` x `TILE` vectors from `target` on, columns `height` apart.

    Its diagonal is left as the inverse ``d = M^-1/2``, or 0 where ``M`` is not above `least`: then its column is 0.
    """
    signature = types.void(matrix, types.intp, types.intp, types.float32)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        target, height, least = arguments[1:]
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f32")
        limit = splat(builder, least, LANES)
        cells = {(r, c): vectors.cell(target, height, r, c) for c in range(TILE) for r in range(c, TILE)}
        values = {cell: vectors.load(where) for cell, where in cells.items()}
        for c in range(TILE):
            pivot = values[c, c]
            inverse = builder.fdiv(ir.Constant(_VECTOR, [1.0] * LANES), builder.call(root, [pivot]))
            values[c, c] = builder.select(builder.fcmp_ordered(">", pivot, limit), inverse, _NOTHING)
            for r in range(c + 1, TILE):
                values[r, c] = builder.fmul(values[r, c], values[c, c])
                for k in range(c + 1, r + 1):
                    values[r, k] = vectors.less(values[r, k], values[r, c], values[k, c])
        for cell, where in cells.items():
            vectors.store(values[cell], where)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _solve_tile(typing_context, matrix, target, factor, height, left, right, count):
    """``M[target] = (M[target] - sum_k M[left + k height] M[right + k height]^T) L^-T``, blocks of `TILE` x `TILE`
    vectors, with L at `factor` as `_factorise_tile` leaves it.
    """
    signature = types.void(matrix, *[types.intp] * 6)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        target, factor, height, left, right, count = arguments[1:]
        cells = [vectors.cell(target, height, r, c) for c in range(TILE) for r in range(TILE)]
        sums = _less_products(vectors, [vectors.load(cell) for cell in cells], left, right, height, count)
        columns = [sums[c * TILE : (c + 1) * TILE] for c in range(TILE)]
        for c in range(TILE):
            for k in range(c):
                own = vectors.load(vectors.cell(factor, height, c, k))
                columns[c] = [vectors.less(s, v, own) for s, v in zip(columns[c], columns[k], strict=True)]
            inverse = vectors.load(vectors.cell(factor, height, c, c))
            columns[c] = [builder.fmul(s, inverse) for s in columns[c]]
        for cell, value in zip(cells, itertools.chain(*columns), strict=True):
            vectors.store(value, cell)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _substitute_tile(typing_context, matrix, side, factor, height, solution, later):
    """``x = L^-T (M[side] - sum_i M[factor + TILE + i]^T x_i)`` for `TILE` unknowns, columns `height` apart, written
    from `solution` on; the `later` ones x_i lie behind them.
    """
    signature = types.void(matrix, *[types.intp] * 5)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        side, factor, height, solution, later = arguments[1:]

        def body(turn, values):
            place = builder.add(turn, INDEX(TILE))
            known = vectors.load(builder.add(solution, place))
            own = [vectors.load(vectors.cell(builder.add(factor, place), height, 0, c)) for c in range(TILE)]
            return [vectors.less(s, a, known) for s, a in zip(values, own, strict=True)]

        sums = counted(builder, later, [vectors.load(vectors.cell(side, height, 0, c)) for c in range(TILE)], body)
        for c in reversed(range(TILE)):
            for r in range(c + 1, TILE):
                sums[c] = vectors.less(sums[c], vectors.load(vectors.cell(factor, height, r, c)), sums[r])
            sums[c] = builder.fmul(sums[c], vectors.load(vectors.cell(factor, height, c, c)))
            vectors.store(sums[c], builder.add(solution, INDEX(c)))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _less_squares(typing_context, matrix, target, source, height, count):
    """``M[target + r] = -sum_k M[source + k height + r]^2`` for `TILE` vectors."""
    signature = types.void(matrix, *[types.intp] * 4)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        target, source, height, count = arguments[1:]

        def body(turn, values):
            source, *sums = values
            own = [vectors.load(builder.add(source, INDEX(r))) for r in range(TILE)]
            return [builder.add(source, height), *(vectors.less(s, a, a) for s, a in zip(sums, own, strict=True))]

        for r, value in enumerate(counted(builder, count, [source, *[_NOTHING] * TILE], body)[1:]):
            vectors.store(value, builder.add(target, INDEX(r)))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def gather(typing_context, matrix, target, step, source, stride, rows, row, limits, lists, first, count, sizes):
    """``M[target + t step] = source[rows[row] stride + lists[first + t]]`` for t below `count`, lane by lane; 0 where
    `row` is not below the lane's `limits`, or ``first + t`` not below its `sizes`.

    `rows`, `lists`, `limits` and `sizes` are flat arrays of vectors of `LANES` uint32.
    """
    integer = types.intp
    signature = types.void(
        matrix, integer, integer, source, integer, rows, integer, limits, lists, integer, integer, sizes
    )

    def generate(context, builder, signature, arguments):
        flat = {n: Flat(context, builder, signature.args[n], arguments[n]) for n in (3, 5, 7, 8, 11)}
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        target, step, stride, row, first, count = (arguments[n] for n in (1, 2, 4, 6, 9, 10))
        numbers, wide = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(INDEX, LANES)
        pointers = ir.VectorType(ir.PointerType() if _OPAQUE else ir.FloatType().as_pointer(), LANES)
        mask = ir.VectorType(ir.IntType(1), LANES)
        kind = ir.FunctionType(_VECTOR, [pointers, ir.IntType(32), mask, _VECTOR])
        name = f"llvm.masked.gather.v{LANES}f32.v{LANES}p0" + ("" if _OPAQUE else "f32")
        read = cgutils.get_or_insert_function(builder.module, kind, name)

        def lanes(array, index):
            return flat[array].load(builder.mul(index, INDEX(LANES)), numbers)

        def number(value):
            return splat(builder, builder.trunc(value, ir.IntType(32)), LANES)

        inside = builder.icmp_unsigned("<", number(row), lanes(7, INDEX(0)))
        sizes = builder.select(inside, lanes(11, INDEX(0)), ir.Constant(numbers, [0] * LANES))
        begin = builder.mul(lanes(5, row), number(stride))
        start = splat(builder, flat[3].start, LANES)

        def body(turn, values):
            place = builder.add(first, turn)
            offsets = builder.zext(builder.add(begin, lanes(8, place)), wide)
            offsets = builder.mul(offsets, ir.Constant(wide, [flat[3].size] * LANES))
            addresses = builder.inttoptr(builder.add(start, offsets), pointers)
            # All lanes are read, and those beyond their size replaced: where the processor cannot gather, a mask would
            # cost a branch for each lane.
            found = builder.call(
                read,
                [addresses, ir.IntType(32)(flat[3].size), ir.Constant(mask, [1] * LANES),
                 ir.Constant(_VECTOR, ir.Undefined)],
            )  # fmt: skip
            inside = builder.icmp_unsigned("<", number(place), sizes)
            found = builder.select(inside, found, _NOTHING)
            vectors.store(found, builder.add(target, builder.mul(turn, step)))
            return []

        counted(builder, count, [], body)
        return context.get_dummy_value()

    return signature, generate


@njit(**OUTER)
def factorise(matrix, order, height, extra, least, identity):
    """Cholesky factors of sixteen matrices, and their inverses applied to right sides that lie below them.

    Parameters
    ----------
    matrix : flat float32 ndarray
        Lower triangles in rows and columns 0 to ``order - 1``, and `extra` right sides as the rows below. Overwritten:
        the diagonal by the inverse of the factor's, the triangle by the factor ``L``, each right side ``b`` by ``L^-1
        b``. Elements above the diagonal are workspace.
    order : int
        A multiple of `TILE`.
    height : int
        Vectors from one column to the next, at least ``order`` plus `extra` rounded up to a multiple of `TILE`.
    extra : int
    least : float32
        No pivot is as small but for rounding: rows whose pivot is are left out of the system.
    identity : bool
        Whether the right sides after the first are the columns of the identity: ``L^-1`` is 0 above its diagonal.
    """
    for j in range(0, order, TILE):
        diagonal = j * height + j
        _subtract_tile(matrix, diagonal, height, j, j, height, j)
        _factorise_tile(matrix, diagonal, height, least)
        for i in range(j + TILE, order + extra, TILE):
            begin = max(0, i - order - 1) // TILE * TILE if identity else 0
            if begin > j:
                break
            _solve_tile(matrix, j * height + i, diagonal, height, begin * height + i, begin * height + j, j - begin)


@njit(**OUTER)
def substitute_back(matrix, order, height):
    """Solutions of the sixteen systems after `factorise`, for the first right side.

    Parameters
    ----------
    matrix : flat float32 ndarray
        As `factorise` left it. Vector ``order * height + k`` is set to element ``k`` of the solutions.
    order, height : int
    """
    solution = order * height
    for k in range(order - TILE, -1, -TILE):
        _substitute_tile(matrix, k * height + order, k * height + k, height, solution + k, order - TILE - k)


@njit(**OUTER)
def square(matrix, order, height, count):
    """Minus the sums of squares of the `count` right sides after the first, after `factorise`.

    Parameters
    ----------
    matrix : flat float32 ndarray
        As `factorise` left it. Vector ``order * (height + 1) + k`` is set to minus ``|L^-1 b|^2`` of right side ``1 +
        k``; up to a multiple of `TILE` more are written.
    order, height, count : int
    """
    for k in range(0, count, TILE):
        _less_squares(matrix, order * (height + 1) + k, order + 1 + k, height, order)


@njit(**OUTER)
def invert_lanes(matrix, order, height):
    """Minus the inverses of the sixteen matrices, after `factorise` with the columns of the identity as the last
    `order` right sides.

    Parameters
    ----------
    matrix : flat float32 ndarray
        As `factorise` left it with ``order + 1`` right sides. Vector ``order * height + column * order + row`` is set
        to that element of the negative inverses, for rows not above the columns; elements above may be set too.
    order, height : int
    """
    inverse = order * height
    matrix[inverse * LANES : (inverse + order * order) * LANES] = 0.0
    for row in range(0, order, TILE):
        # Columns of L^-1, which lie as rows below L; their products begin at the later one's diagonal.
        first = row * height + order + 1
        for column in range(0, row + 1, TILE):
            _subtract_tile(
                matrix, inverse + column * order + row, order, first + row, first + column, height, order - row
            )
