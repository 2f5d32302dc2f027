"""What is completed at a time: a box of frames, rows and columns, and a margin that the method sees around it.

A picture is cut into tiles of rows and columns, a clip into runs of frames, and these into tiles where they would take
too much memory.
"""

import itertools
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..methods import DEEP

# Side of the blocks of pixels by which it is known where something is missing.
BLOCK = 8
# Strokes that are wider are deeper than `patches.schedule.TUNED.deep`.
THIN = 5
# Parts of a large picture from which is decided what is decided once: their side in pixels, and how many there are.
SAMPLE, SAMPLES = 256, 4
# The least share of observed entries that a sample should have.
LEAST_OBSERVED = 0.02


@dataclass(frozen=True)
class Region:
    """Frames, rows and columns that are completed together; a tensor has its own modes in their place.

    Attributes
    ----------
    used : tuple of (int, int)
        Of every axis the first place whose estimates are used, and the one behind the last.
    seen : tuple of (int, int)
        The same for what the method sees: these, and a margin on each side of them.
    """

    used: tuple
    seen: tuple

    @property
    def first(self):
        """The first frame that is used."""
        return self.used[0][0]

    @property
    def end(self):
        """The frame behind the last that is used."""
        return self.used[0][1]

    @property
    def start(self):
        """The first frame that the method sees."""
        return self.seen[0][0]

    @property
    def stop(self):
        """The frame behind the last that the method sees."""
        return self.seen[0][1]

    @property
    def name(self):
        """Text that no other region of the same input has."""
        return "_".join(f"{first:08d}-{end:08d}" for first, end in self.used)

    @property
    def place(self):
        """Where the random numbers of the region begin: its first frame, row and column."""
        return tuple(first for first, _ in self.used)

    @property
    def plane(self):
        """Slices of a frame for what is used of its rows and columns."""
        return tuple(slice(*axis) for axis in self.used[1:])

    @property
    def window(self):
        """The same for what is seen."""
        return tuple(slice(*axis) for axis in self.seen[1:])

    @property
    def inside(self):
        """Slices of what is seen for the rows and columns that are used."""
        return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(self.used[1:], self.seen[1:]))

    @property
    def pixels(self):
        """Pixels that are used, of all frames."""
        return int(np.prod([end - first for first, end in self.used], dtype=np.int64))


class Coverage:
    """Where something is missing, and where something is known, by blocks of `BLOCK` x `BLOCK` pixels; of many frames
    all together.

    Parameters
    ----------
    shape : tuple of int
        Of a frame's colours: (H, W) or (H, W, ...).
    by_channel : bool
        Whether what is known of one channel tells nothing of another.

    Attributes
    ----------
    missing : (h, w) ndarray of int
        Entries to be filled.
    seen : (h, w) ndarray of int
        Observed entries.
    known : (h, w, c) ndarray of bool
        Whether any entry is observed; `c` is 1 unless channels stand by themselves.
    changes : (2,) ndarray of int
        Pairs of neighbours in a column and in a row, of a channel, of which one alone is to be filled: how ragged the
        holes are.
    """

    def __init__(self, shape, by_channel):
        self.size = tuple(shape[:2])
        blocks = tuple(-(-n // BLOCK) for n in self.size)
        self._by_channel = by_channel
        self._channels = int(np.prod(shape[2:], dtype=np.int64))
        self.missing, self.seen = np.zeros((2, *blocks), dtype=np.int64)
        self.known = np.zeros((*blocks, self._channels if by_channel else 1), dtype=bool)
        self.changes = np.zeros(2, dtype=np.int64)

    def add(self, observed, absent, row=0):
        """Take in rows of a frame from number `row` on, a multiple of `BLOCK`: what is observed, and what is to be
        filled, bool.
        """
        starts = [np.arange(0, n, BLOCK) for n in observed.shape[:2]]
        place = slice(row // BLOCK, row // BLOCK + len(starts[0]))
        counts, missing = (_sums(a, starts) for a in (observed, absent))
        self.missing[place] += missing
        self.seen[place] += counts
        self.changes += [
            np.count_nonzero(one != other)
            for one, other in ((absent[1:], absent[:-1]), (absent[:, 1:], absent[:, :-1]))
        ]
        if self._by_channel:
            any_row = np.logical_or.reduceat(observed.reshape(*observed.shape[:2], -1), starts[0], axis=0)
            self.known[place] |= np.logical_or.reduceat(any_row, starts[1], axis=1)
        else:
            self.known[place] |= counts[..., None] > 0

    def corners(self, missing):
        """How many known entries lie beside `missing` of the entries to be filled, about: those beside scattered ones
        have several such neighbours, those at the corners of a hole none.
        """
        return int(self.changes.sum()) * missing / max(1, int(self.missing.sum()))

    @property
    def compact(self):
        """Whether what is to be filled hangs together, as `patches.calibrate.are_strokes` has it."""
        missing, least = int(self.missing.sum()), int(self.changes.min())
        share = missing / max(1, missing + int(self.seen.sum()))
        return 1 - least / max(1, 2 * missing) > (1 + share) / 2

    @property
    def thin(self):
        """Whether it hangs together in strokes of `THIN` pixels at most on the average."""
        return self.compact and 2 * int(self.missing.sum()) <= THIN * int(self.changes.max())

    def add_whole(self):
        """Take in a frame of which everything is observed."""
        high, wide = (np.minimum(BLOCK, n - np.arange(0, n, BLOCK)) for n in self.size)
        self.seen += self._channels * np.outer(high, wide)
        self.known[:] = True

    def depths(self, undivided=()):
        """How far, in pixels and at most, what is to be filled of a block is from a known entry of its channel, (h, w).

        Channels known nowhere aside. 0 in the boxes that are `undivided`, a list of ``((row, end), (column, end))``: no
        other region estimates what is within them.
        """
        from scipy.ndimage import distance_transform_cdt  # of which most runs have no need

        deepest = np.zeros(self.missing.shape, dtype=np.int64)
        for c in range(self.known.shape[2]):
            unknown = ~self.known[..., c]
            if unknown.any() and not unknown.all():
                deepest = np.maximum(deepest, BLOCK * distance_transform_cdt(unknown, "chessboard"))
        for rows, columns in undivided:
            deepest[_blocks(*rows), _blocks(*columns)] = 0
        return deepest * (self.missing > 0)

    def box(self, everything=False):
        """Rows and columns of the blocks that hold all that is missing, ``((row, end), (column, end))``; or of all."""
        if everything:
            return tuple((0, n) for n in self.size)
        sides = [np.flatnonzero(self.missing.any(axis=axis)) for axis in (1, 0)]
        return tuple((BLOCK * int(side[0]), min(BLOCK * int(side[-1] + 1), n)) for side, n in zip(sides, self.size))

    def around(self, rows, columns, margin):
        """Rows and columns of a box about all that is to be filled in another, and `margin` pixels more of that."""
        place = _blocks(*rows), _blocks(*columns)
        sides = (np.flatnonzero(self.missing[place].any(axis=axis)) for axis in (1, 0))
        return tuple(
            (max(a, a + BLOCK * int(side[0]) - margin), min(b, a + BLOCK * int(side[-1] + 1) + margin))
            for side, (a, b) in zip(sides, (rows, columns))
        )

    def within(self, rows, columns):
        """Entries to be filled and observed ones in a box, (int, int), by the blocks that begin in it."""
        box = _blocks(*rows), _blocks(*columns)
        return int(self.missing[box].sum()), int(self.seen[box].sum())

    def near(self, rows, columns):
        """Entries of a box in blocks that miss something, or lie beside one that does."""
        lacking = np.pad(self.missing[_blocks(*rows), _blocks(*columns)] > 0, 1)
        beside = lacking[:-2] | lacking[1:-1] | lacking[2:]
        blocks = np.count_nonzero(beside[:, :-2] | beside[:, 1:-1] | beside[:, 2:])
        return min(BLOCK**2 * blocks, int(np.prod([b - a for a, b in (rows, columns)]))) * self._channels


def _sums(marked, starts):
    """Entries that are marked of every block, whose rows and columns begin at `starts`."""
    flat = marked.reshape(len(marked), -1)  # all channels of a block are neighbours
    rows = np.add.reduceat(flat, starts[0], axis=0, dtype=np.int32)
    return np.add.reduceat(rows, starts[1] * (flat.shape[1] // marked.shape[1]), axis=1)


def _blocks(start, stop):
    return slice(start // BLOCK, -(-stop // BLOCK))


def divide(changed, begin, end, most, margin, size):
    """Regions of whole frames that hold all frames that are to be estimated.

    Frames farther than `margin` from all of them are left out, unless all frames together are no more than `most`: then
    they are one region.

    Parameters
    ----------
    changed : sequence of int
        Frames that are to be estimated, rising.
    begin, end : int
        Frames that may be looked at.
    most : int
        Frames to be used of a region, at most.
    margin : int
        Frames seen on each side of them.
    size : (H, W)
        Of a frame.

    Returns
    -------
    tuple of Region
        Rising; nothing in common between what is used of them.
    """
    plane = tuple((0, n) for n in size)

    def region(first, last, start, stop):
        return Region(((first, last), *plane), ((start, stop), *plane))

    if not len(changed):
        return ()
    if end - begin <= most:
        return (region(begin, end, begin, end),)
    made = []
    for first, last in _runs([int(number) for number in changed], max(2 * margin, 1)):
        length = last + 1 - first
        count = -(-length // most)
        cuts = [first + i * length // count for i in range(count + 1)]
        made += [region(a, b, max(begin, a - margin), min(end, b + margin)) for a, b in pairwise(cuts)]
    return tuple(made)


def whole_boxes(pixels, margin, most=None, copied=None):
    """Rows and columns of the regions of pixels that are not to be divided from those around them.

    Parameters
    ----------
    pixels : (H, W) ndarray of bool, or None
        None: no regions.
    margin : int
        Pixels seen on each side, beside those that the size of what is not divided asks for.
    most : int or None
        Of the latter at most so many.
    copied : (H, W) ndarray of bool, or None
        Pixels that alone may be copied, all of which are seen; None: no others than those beside.

    Returns
    -------
    list of (used, seen)
        As of `tiles`; of whole blocks, and nothing in common between what is used of them.
    """
    if pixels is None or not pixels.any():
        return []
    from ..exemplar import regions as surroundings  # of which most runs have no need
    from ..exemplar.planes import extent

    _, found = surroundings.together(pixels)
    boxes = [tuple((BLOCK * (s.start // BLOCK), min(n, -(-s.stop // BLOCK) * BLOCK)) for s, n in zip(box, pixels.shape))
             for box in found]  # fmt: skip
    apart = []
    while boxes:
        box = boxes.pop()
        other = next((other for other in apart if _overlap(box, other)), None)
        if other is None:
            apart.append(box)
        else:
            apart.remove(other)
            boxes.append(_around_both(box, other))
    rooms = [surroundings.room(*(b - a for a, b in box)) for box in apart]
    seen = [_grown(box, margin + min(room, most or room), pixels.shape) for box, room in zip(apart, rooms)]
    if copied is not None and copied.any():
        away = tuple((s.start, s.stop) for s in extent(copied))
        seen = [_around_both(box, away) for box in seen]
    return list(zip(apart, seen))


def _around_both(box, other):
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(box, other))


def _overlap(box, other):
    return all(a < d and c < b for (a, b), (c, d) in zip(box, other))


def _without(box, others):
    """Boxes that hold all of a box but what is in `others`, and have nothing in common."""
    for other in others:
        if _overlap(box, other):
            rows, columns = box
            (top, bottom), (left, right) = ((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, other))
            above, below = ((rows[0], top), columns), ((bottom, rows[1]), columns)
            beside = [above, ((top, bottom), (columns[0], left)), ((top, bottom), (right, columns[1])), below]
            return [piece for part in beside if all(a < b for a, b in part) for piece in _without(part, others)]
    return [box]


def tiles(coverage, side, margin, *, everything=False, undivided=()):
    """Rows and columns of tiles that hold all that is to be estimated; tiles with nothing of that are left out.

    Parameters
    ----------
    coverage : Coverage
    side : int
        Pixels of a tile's side, at most.
    margin : int
        Pixels seen on each side, beside `DEEP` times the depth of the holes thereabouts.
    everything : bool
        Whether known entries are estimated too.
    undivided : list of (used, seen)
        Tiles that there are in any case; the others hold what these do not use.

    Returns
    -------
    list of (used, seen)
        Each ``((row, end), (column, end))``; in the order of rows, then columns.
    """
    boxes = [used for used, _ in undivided]
    depths, made = coverage.depths(boxes), list(undivided)
    for cut in itertools.product(*(_cuts(*axis, side) for axis in coverage.box(everything))):
        for used in _without(cut, boxes):
            if not everything and not coverage.within(*used)[0]:
                continue
            near = _grown(used, margin, coverage.size)
            deep = int(depths[_blocks(*near[0]), _blocks(*near[1])].max())
            made.append((used, _grown(used, margin + DEEP * deep, coverage.size)))
    return sorted(made)


def _cuts(start, end, side):
    """Parts of an axis of much the same length, `side` or a little more at most; they begin with a block, as `start`
    does.
    """
    count = -(-(end - start) // side)
    cuts = sorted({start + i * (end - start) // count // BLOCK * BLOCK for i in range(count)})
    return list(pairwise([*cuts, end]))


def _grown(box, margin, size):
    return tuple((max(0, a - margin), min(n, b + margin)) for (a, b), n in zip(box, size))


def tiled(regions, planes):
    """Every region of whole frames cut into the tiles `planes`, a list of (used, seen); in the order of the frames."""
    return tuple(Region((r.used[0], *used), (r.seen[0], *seen)) for r in regions for used, seen in planes)


def samples(coverage, channels, rng):
    """A few squares of a picture, the likelier the more is missing there, but with something to learn from.

    Parameters
    ----------
    coverage : Coverage
    channels : int
    rng : numpy.random.Generator

    Returns
    -------
    list of ((row, end), (column, end))
        In the order of rows, then columns.
    """
    corners = [range(0, max(1, n - SAMPLE + 1), BLOCK * (SAMPLE // BLOCK)) for n in coverage.size]
    squares = [
        tuple((start, min(start + SAMPLE, n)) for start, n in zip(place, coverage.size))
        for place in itertools.product(*corners)
    ]
    misses, seen = np.array([coverage.within(*square) for square in squares], dtype=float).T
    entries = channels * np.array([np.prod([b - a for a, b in square]) for square in squares])
    able = seen > LEAST_OBSERVED * entries
    able = able if able.any() else seen > 0
    able = able if able.any() else np.ones_like(able)
    weights = np.where(able, misses, 0.0)
    if not weights.any():
        weights = able.astype(float)
    count = min(SAMPLES, np.count_nonzero(weights))
    return [squares[k] for k in sorted(rng.choice(len(squares), count, replace=False, p=weights / weights.sum()))]


def _runs(numbers, gap):
    """First and last of every run of rising `numbers` in which none is more than `gap` behind the one before it."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number - last > gap:
            yield first, last
            first = number
        last = number
    yield first, last
