"""Compiled search for the patches most like a reference patch; `kernels` says how pictures, clips and patches are laid
out.

Nearly all the work is sums of squared differences. Numba's vectoriser does not touch that loop, since it cannot prove
that the arrays do not overlap; so it is written in LLVM's own language, with the sums of several vectors of
neighbouring places in registers.
"""

import itertools

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ..kernels import INNER, OUTER, run_shares
from .kernels_lanes import FUSED, INDEX, Flat, counted

# Places whose distances from a patch are added up in one vector.
PLACES = 8
# Side of the tiles of a picture in pixels: what has changed in some of them is brought up to date there alone.
TILE = 64


def _add_distances(vectors):
    """The intrinsic ``out[where + i] = sum_n sign_n (image[place + offsets[n] + i] - patch[n])^2`` for ``PLACES *
    vectors`` places i, the sums kept in registers; the sign is 1 for the first `plus` of n and -1 for the next `minus`.
    """
    kind = ir.VectorType(ir.FloatType(), PLACES)
    nothing, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), PLACES), [0] * PLACES)

    @intrinsic
    def distances(typing_context, image, place, offsets, patch, plus, minus, out, where):
        signature = types.void(image, types.intp, offsets, patch, types.intp, types.intp, out, types.intp)

        def generate(context, builder, signature, arguments):
            flat = {n: Flat(context, builder, signature.args[n], arguments[n]) for n in (0, 2, 3, 6)}
            place, plus, minus, where = (arguments[n] for n in (1, 4, 5, 7))

            def sums(begin, count, sums, add):
                def body(turn, values):
                    number = builder.add(begin, turn)
                    here = builder.add(place, flat[2].load(number, INDEX))
                    own = flat[3].load(number, ir.FloatType())
                    own = builder.shuffle_vector(
                        builder.insert_element(nothing, own, ir.IntType(32)(0)), nothing, first
                    )
                    apart = [
                        builder.fsub(flat[0].load(builder.add(here, INDEX(PLACES * v)), kind), own)
                        for v in range(vectors)
                    ]
                    return [
                        add(s, builder.fmul(a, a, flags=FUSED), flags=FUSED) for s, a in zip(values, apart, strict=True)
                    ]

                return counted(builder, count, sums, body)

            start = [ir.Constant(kind, [0.0] * PLACES)] * vectors
            done = sums(plus, minus, sums(INDEX(0), plus, start, builder.fadd), builder.fsub)
            for v, value in enumerate(done):
                flat[6].store(value, builder.add(where, INDEX(PLACES * v)))
            return context.get_dummy_value()

        return signature, generate

    return distances


_distances_5, _distances_3, _distances_1 = _add_distances(5), _add_distances(3), _add_distances(1)


@njit(**OUTER)
def distances(image, place, offsets, patch, plus, minus, out, where, count):
    """Distances of a patch from those at `count` neighbouring places, a multiple of `PLACES`.

    Parameters
    ----------
    image : flat float32 ndarray
    place : int
        Index of the first place.
    offsets : (N,) int64 ndarray
        Where the entries of a patch are, counted from its place.
    patch : (N,) float32 ndarray
        Entries of the patch.
    plus, minus : int
        Squared differences of the first `plus` entries are added, those of the next `minus` subtracted.
    out : flat float32 ndarray
        Written, from index `where` on.
    where, count : int
    """
    done = 0
    while done < count:
        if count - done >= 5 * PLACES:
            _distances_5(image, place + done, offsets, patch, plus, minus, out, where + done)
            done += 5 * PLACES
        elif count - done >= 3 * PLACES:
            _distances_3(image, place + done, offsets, patch, plus, minus, out, where + done)
            done += 3 * PLACES
        else:
            _distances_1(image, place + done, offsets, patch, plus, minus, out, where + done)
            done += PLACES


@njit(**INNER)
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


@njit(inline="always", **INNER)
def _search(flat, width, offsets, means, patch, centre, frame, size, window, line):
    """Distances of `patch` from those around the one at `centre`, in its frame; infinite in what is left of `line`.

    Returns where they begin, as rows of the picture and columns, and how many places a row takes in `line`.
    """
    begin = centre // width // frame * frame
    row, column = centre // width - begin, centre % width
    first_row, last_row = max(0, row - window), min(frame - size, row + window)
    first, last = max(0, column - window), min(width - size, column + window)
    columns = (last - first + PLACES) // PLACES * PLACES  # whole vectors; what lies beyond `last` is never chosen
    for row in range(first_row, last_row + 1):
        where = (row - first_row) * columns
        distances(
            flat,
            (begin + row) * (width + PLACES) + first,
            offsets,
            patch,
            len(offsets) - means,
            means,
            line,
            where,
            columns,
        )
        for i in range(where + last - first + 1, where + columns):
            line[i] = np.float32(np.inf)
    for i in range((last_row - first_row + 1) * columns, len(line)):
        line[i] = np.float32(np.inf)
    return begin + first_row, first, columns


@njit(**OUTER)
def _groups(
    first, last, flat, width, frames, offsets, means, positions, frame, size, window, reach, drift, groups, candidates,
    distances, begins, patch, nearest, indices
):  # fmt: skip
    """`match` for the groups `first` to ``last - 1``.

    `flat` is what `searchable` gives, `width` without its further columns, `frames` where patches may begin, and the
    last `means` of `offsets` are those of means. `distances` are the `candidates` as a flat array.
    """
    count, room = groups.shape[1], candidates.shape[1]
    for g in range(first, last):
        position, group = positions[g], groups[g]
        own = position // width // frame
        earliest, latest = max(0, own - reach), min(frames - 1, own + reach)
        for n in range(len(offsets)):
            patch[n] = flat[position + position // width * PLACES + offsets[n]]
        best = position
        for turn in range(latest - earliest + 1):  # its own frame, those after it, those before it
            place = own - earliest + turn if own + turn <= latest else latest - earliest - turn
            if place == own - earliest - 1:
                best = position
            around = best + (place + earliest - best // width // frame) * frame * width
            line = candidates[place]
            row, column, columns = _search(
                flat, width, offsets, means, patch, around, frame, size, window if turn == 0 else drift, line
            )
            begins[place, 0], begins[place, 1], begins[place, 2] = row, column, columns
            if turn == 0:
                line[(best // width - row) * columns + best % width - column] = np.float32(-np.inf)
            else:
                index = 0
                for i in range(1, room):
                    if line[i] < line[index]:
                        index = i
                best = (row + index // columns) * width + column + index % columns
        for i in range(count):
            nearest[i], indices[i] = distances[i], i
        for root in range(count // 2 - 1, -1, -1):
            _sink(nearest, indices, root, count)
        for i in range(count, (latest - earliest + 1) * room):
            if distances[i] < nearest[0]:
                nearest[0], indices[0] = distances[i], i
                _sink(nearest, indices, np.int64(0), count)
        for last_place in range(count - 1, -1, -1):
            place, index = indices[0] // room, indices[0] % room
            columns = begins[place, 2]
            group[last_place] = (begins[place, 0] + index // columns) * width + begins[place, 1] + index % columns
            nearest[0], indices[0] = nearest[last_place], indices[last_place]
            _sink(nearest, indices, np.int64(0), last_place)


def match(searched, positions, frame, depth, size, window, reach, drift, groups):
    """For every reference patch the patches most like it, by falling likeness.

    The distance of two patches is the sum of their squared differences, less a part of what a change of the channels'
    means explains, see `searchable`. Ties go to the patch that comes first. In other frames patches are looked for
    around the best one of the frame next to it, on the side of the reference, so that the search follows what moves.

    Parameters
    ----------
    searched : (2 C, H, W + PLACES) float32 ndarray
        Of `searchable`, with the same `size`.
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
    groups : (G, K) int32 ndarray
        Written; K is at most the number of patches in the smallest window, that of a corner of the first frame.
    """
    channels, height, width = len(searched) // 2, searched.shape[1], searched.shape[2] - PLACES
    frames = height // frame - depth + 1
    offsets = _offsets(searched, frame, depth, size)
    side, means = 2 * window + 1, depth * channels

    def room():
        candidates = np.empty((min(2 * reach + 1, frames), side * (side + -side % PLACES)), np.float32)
        return (
            candidates,
            candidates.reshape(-1),
            np.empty((len(candidates), 3), np.int64),
            np.empty(len(offsets), np.float32),
            np.empty(groups.shape[1], np.float32),
            np.empty(groups.shape[1], np.int64),
        )

    run_shares(_groups, len(positions), 1, searched.reshape(-1), width, frames, offsets, means, positions, frame, size,
               window, reach, drift, groups, room=room)  # fmt: skip


def searchable(image, size, contrast):
    """A picture (C, H, W) float32 as `match` searches it, for patches of one size: (2 C, H, W + PLACES) float32.

    The further channels are the mean of the patch that begins at each pixel, times ``size sqrt(contrast)``: their
    squared differences are `contrast` times the part of the patches' that a change of the channels' means explains,
    from 0, nothing is forgiven, to 1. The further columns are zeros, so that vectors may be read over the edge.
    """
    channels, height, width = image.shape
    searched = np.zeros((2 * channels, height, width + PLACES), np.float32)
    renew(searched, image, size, contrast, tiles(np.ones((height, width), bool), size))
    return searched


def tiles(changing, size):
    """The tiles of a picture in which patches may begin that hold a `changing` pixel, (H, W) bool; a list of (slice,
    slice).
    """
    height, width = changing.shape
    corners = itertools.product(range(0, height, TILE), range(0, width, TILE))
    return [(slice(r, min(r + TILE, height)), slice(c, min(c + TILE, width))) for r, c in corners
            if changing[r : r + TILE + size - 1, c : c + TILE + size - 1].any()]  # fmt: skip


def renew(searched, image, size, contrast, places):
    """Bring what `searchable` gave up to date with its picture at some `places`, of `tiles`."""
    channels, (height, width) = len(image), image.shape[1:]
    factor = np.float32(np.sqrt(contrast) / size)
    for rows, columns in places:
        searched[:channels, rows, columns] = image[:, rows, columns]
        down, across = (min(s.stop, n - size + 1) - s.start for s, n in ((rows, height), (columns, width)))
        if down < 1 or across < 1:
            continue
        seen = image[:, rows.start : rows.start + down + size - 1, columns.start : columns.start + across + size - 1]
        lines, sums = (
            np.zeros((channels, down, seen.shape[2]), np.float32),
            np.zeros((channels, down, across), np.float32),
        )
        for r in range(size):
            lines += seen[:, r : r + down]
        for c in range(size):
            sums += lines[:, :, c : c + across]
        np.multiply(sums, factor, out=searched[channels:, rows, columns][:, :down, :across])


def _offsets(searched, frame, depth, size):
    """Where the entries of a patch are in what `searchable` gave, as a flat array, counted from its place, and after
    them its means; (N,) int64.
    """
    channels, (height, width) = len(searched) // 2, searched.shape[1:]
    steps = (frame * width, height * width, width, 1)
    entries = np.tensordot(steps, np.indices((depth, channels, size, size)), 1)
    return np.concatenate([entries.ravel(), entries[:, :, 0, 0].ravel() + channels * height * width])
