"""The frames that are completed at a time."""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Chunk:
    """Frames that are completed together.

    Attributes
    ----------
    first, end : int
        Frames whose estimates are used: from `first` to the one before `end`.
    start, stop : int
        Frames that the method sees: these, and some on each side of them.
    """

    first: int
    end: int
    start: int
    stop: int

    @property
    def inside(self):
        """Slice of the used frames among those that the method sees."""
        return slice(self.first - self.start, self.end - self.start)


def divide(changed, begin, end, most, context):
    """Chunks that hold all frames that are to be estimated.

    Frames farther than `context` from all of them are left out, unless all frames together are no more than `most`: then they are one
    chunk.

    Parameters
    ----------
    changed : sequence of int
        Frames that are to be estimated, rising.
    begin, end : int
        Frames that may be looked at.
    most : int
        Frames to be used of a chunk, at most.
    context : int
        Frames seen on each side of them.

    Returns
    -------
    tuple of Chunk
        Rising; nothing in common between what is used of them.
    """
    if not len(changed):
        return ()
    if end - begin <= most:
        return (Chunk(begin, end, begin, end),)
    made = []
    for first, last in _runs([int(number) for number in changed], max(2 * context, 1)):
        length = last + 1 - first
        count = -(-length // most)
        cuts = [first + i * length // count for i in range(count + 1)]
        made += [Chunk(a, b, max(begin, a - context), min(end, b + context)) for a, b in pairwise(cuts)]
    return tuple(made)


def _runs(numbers, gap):
    """First and last of every run of rising `numbers` in which none is more than `gap` behind the one before it."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number - last > gap:
            yield first, last
            first = number
        last = number
    yield first, last
