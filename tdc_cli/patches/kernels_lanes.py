"""Small symmetric systems solved sixteen at a time, one in each lane of the processor's vectors.

LAPACK spends its time on overhead at orders of 10 to 60, and numba's vectoriser needs proof that arrays do not overlap
before it uses vectors. So the four inner loops are written in LLVM's own language: each works on vectors of `LANES`
floats, and lane ``l`` of every vector belongs to system ``l``. Nothing is added across lanes, so that a system has the
same solution in any lane and any company.

Layout: `matrix` is a flat float32 array of vectors; vector ``column * height + row`` holds that element of the sixteen
matrices. An odd `height` keeps columns from falling on the same lines of the cache.
"""

from llvmlite import ir
from llvmlite.binding import llvm_version_info
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ..kernels import CACHE

LANES = 16
# Rows and columns of the block that stays in registers: 16 sums need 8 loads.
TILE = 4
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
INDEX = ir.IntType(64)
# From LLVM 17 on pointers are opaque, so that each load and step says what lies there; before, the pointer itself did.
_OPAQUE = llvm_version_info >= (17,)
# Multiply and add may be one instruction; nothing else is reordered.
FUSED = ("contract",)


class Flat:
    """Loads and stores in a flat array that an intrinsic was given, of one element or of several in a row."""

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


def _subtract_products(rows, columns):
    """The intrinsic ``M[target + r + c * across] -= sum_k M[left + k * stride + r] M[right + k * stride + c]`` over a
    block of `rows` by `columns` vectors, the sums kept in registers.
    """

    @intrinsic
    def subtract(typing_context, matrix, target, across, left, right, stride, count):
        signature = types.void(matrix, *[types.intp] * 6)

        def generate(context, builder, signature, arguments):
            vectors = _Vectors(context, builder, signature.args[0], arguments[0])
            target, across, left, right, stride, count = arguments[1:]
            cells = [builder.add(target, builder.add(builder.mul(across, INDEX(c)), INDEX(r)))
                     for c in range(columns) for r in range(rows)]  # fmt: skip

            def body(turn, values):
                left, right, *sums = values
                down = [vectors.load(builder.add(left, INDEX(r))) for r in range(rows)]
                along = [vectors.load(builder.add(right, INDEX(c))) for c in range(columns)]
                products = [builder.fmul(a, b, flags=FUSED) for b in along for a in down]
                new = [builder.fsub(s, p, flags=FUSED) for s, p in zip(sums, products, strict=True)]
                return [builder.add(left, stride), builder.add(right, stride), *new]

            done = counted(builder, count, [left, right, *[vectors.load(cell) for cell in cells]], body)
            for cell, value in zip(cells, done[2:], strict=True):
                vectors.store(value, cell)
            return context.get_dummy_value()

        return signature, generate

    return subtract


_subtract_tile = _subtract_products(TILE, TILE)
_subtract_strip = _subtract_products(TILE, 1)
_subtract_one = _subtract_products(1, 1)


@intrinsic
def _normalise(typing_context, matrix, diagonal, first, count, least):
    """``d = M[diagonal]^-1/2``, or 0 where ``M[diagonal]`` is not above `least`; ``M[diagonal] = d``; ``M[first : first
    + count] *= d``.
    """
    signature = types.void(matrix, *[types.intp] * 3, types.float32)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        diagonal, first, count, least = arguments[1:]
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f32")
        pivot = vectors.load(diagonal)
        inverse = builder.fdiv(ir.Constant(_VECTOR, [1.0] * LANES), builder.call(root, [pivot]))
        index = ir.VectorType(ir.IntType(32), LANES)
        limit = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), least, ir.IntType(32)(0))
        limit = builder.shuffle_vector(limit, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(index, [0] * LANES))
        nothing = ir.Constant(_VECTOR, [0.0] * LANES)
        inverse = builder.select(builder.fcmp_ordered(">", pivot, limit), inverse, nothing)
        vectors.store(inverse, diagonal)

        def body(turn, values):
            cell = builder.add(first, turn)
            vectors.store(builder.fmul(vectors.load(cell), inverse), cell)
            return []

        counted(builder, count, [], body)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _multiply_into(typing_context, matrix, target, source, factor):
    """``M[target] = M[source] M[factor]``."""
    signature = types.void(matrix, *[types.intp] * 3)

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0], arguments[0])
        target, source, factor = arguments[1:]
        vectors.store(builder.fmul(vectors.load(source), vectors.load(factor)), target)
        return context.get_dummy_value()

    return signature, generate


@njit(cache=CACHE, error_model="numpy")
def factorise(matrix, order, height, extra, least):
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
    """
    rows = order + extra
    for j in range(0, order, TILE):
        for i in range(j, rows, TILE):
            _subtract_tile(matrix, j * height + i, height, i, j, height, j)
        for c in range(j, j + TILE):
            for i in range(j, rows, TILE):
                _subtract_strip(matrix, c * height + i, 0, j * height + i, j * height + c, height, c - j)
            _normalise(matrix, c * height + c, c * height + c + 1, rows - 1 - c, least)


@njit(cache=CACHE, error_model="numpy")
def substitute_back(matrix, order, height):
    """Solutions of the sixteen systems after `factorise`, for the first right side.

    Parameters
    ----------
    matrix : flat float32 ndarray
        As `factorise` left it. Vector ``order * height + k`` is set to element ``k`` of the solutions.
    order, height : int
    """
    solution = order * height
    for k in range(order - 1, -1, -1):
        side = k * height + order
        _subtract_one(matrix, side, 0, k * height + k + 1, solution + k + 1, 1, order - 1 - k)
        _multiply_into(matrix, solution + k, side, k * height + k)


@njit(cache=CACHE, error_model="numpy")
def square(matrix, order, height, first, count):
    """Minus the sums of squares of right sides `first` to ``first + count - 1``, after `factorise`.

    Parameters
    ----------
    matrix : flat float32 ndarray
        As `factorise` left it. Vector ``order * (height + 1) + k`` is set to minus ``|L^-1 b|^2`` of right side ``first
        + k``.
    order, height, first, count : int
    """
    sums = order * (height + 1)
    matrix[sums * LANES : (sums + count) * LANES] = 0.0
    for k in range(count):
        row = order + first + k
        _subtract_one(matrix, sums + k, 0, row, row, height, order)


@njit(cache=CACHE, error_model="numpy")
def invert(matrix, order, height):
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
