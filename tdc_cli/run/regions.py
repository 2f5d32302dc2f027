"""What is completed at a time: a box of frames, rows and columns, and a margin that the method sees around it."""

from dataclasses import dataclass
from itertools import pairwise


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


def divide(changed, begin, end, most, margin, size):
    """Regions of whole frames that hold all frames that are to be estimated.

    Frames farther than `margin` from all of them are left out, unless all frames together are no more than `most`: then they are one
    region.

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


def _runs(numbers, gap):
    """First and last of every run of rising `numbers` in which none is more than `gap` behind the one before it."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number - last > gap:
            yield first, last
            first = number
        last = number
    yield first, last
