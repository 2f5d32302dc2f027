"""Holes that lie apart, each with the surroundings that it may be filled from."""

import math
from dataclasses import dataclass

import numpy as np

from .planes import extent, grown

# Holes no farther apart than this, in pixels, are filled together.
APART = 16
# Pixels beside a hole that may be copied: as many as its longer side, at least LEAST, and not so many that a region has
# more than MOST.
LEAST, MOST = 64, 4_000_000


@dataclass(frozen=True)
class Region:
    """A box of the picture.

    Attributes
    ----------
    box : (slice, slice)
        Rows and columns.
    hole : (h, w) bool ndarray
        Pixels of the box to be filled; further missing ones in it belong to other regions.
    """

    box: tuple
    hole: np.ndarray


def room(tall, wide):
    """Pixels beside a hole of so many rows and columns that may be copied."""
    # (tall + 2 m) (wide + 2 m) = MOST, solved for m.
    most = (math.sqrt((tall - wide) ** 2 + 4 * MOST) - tall - wide) / 4
    return max(LEAST, int(min(tall, wide) if most < 0 else min(max(tall, wide), most)))


def together(hole):
    """Groups of holes that lie near each other.

    Parameters
    ----------
    hole : (H, W) bool ndarray

    Returns
    -------
    labels : (H, W) int ndarray
        Of the pixels of a group and near it its number, from 1 on; 0 elsewhere.
    boxes : list of (slice, slice)
        Rows and columns of every group.
    """
    return _labelled(grown(hole, APART + 1))


def _labelled(mask):
    """Groups of pixels of a mask that touch, diagonally too, in the order of their first pixels; as `together`."""
    near = np.pad(mask, 1)
    # Runs of pixels in a row: where they begin, and the first place behind them, numbered through all rows.
    change = np.diff(near.ravel().view(np.int8))
    begins, ends = np.flatnonzero(change > 0) + 1, np.flatnonzero(change < 0) + 1
    width = near.shape[1]
    # Those of the next row that touch one, diagonally too.
    first, last = np.searchsorted(ends, begins + width), np.searchsorted(begins, ends + width, "right")
    counts = last - first
    above = np.repeat(np.arange(len(begins)), counts)
    below = np.arange(len(above)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    _, numbers = np.unique(_least_of_group(len(begins), above, below), return_inverse=True)
    labels = np.zeros(near.size, np.int32)
    labels[near.ravel()] = np.repeat(numbers + 1, ends - begins)
    groups = numbers.max(initial=-1) + 1
    (top, left), (bottom, right) = np.full((2, groups), near.size), np.zeros((2, groups), int)
    np.minimum.at(top, numbers, begins // width - 1)
    np.maximum.at(bottom, numbers, begins // width)
    np.minimum.at(left, numbers, begins % width - 1)
    np.maximum.at(right, numbers, ends % width - 1)
    boxes = [(slice(a, b), slice(c, d)) for a, b, c, d in np.stack([top, bottom, left, right], axis=1).tolist()]
    return labels.reshape(near.shape)[1:-1, 1:-1], boxes


def _least_of_group(count, one, other):
    """For each of a count of things the least with which pairs, one by one, bind it together, (count,) int64."""
    least = np.arange(count)
    while True:
        bound = least.copy()
        lower = np.minimum(least[one], least[other])
        for side in (one, other):
            np.minimum.at(bound, least[side], lower)
        bound = bound[bound]
        if np.array_equal(bound, least):
            return least
        least = bound


def divide(hole, source=None):
    """Regions of all holes of a picture, in the order of their first rows.

    Parameters
    ----------
    hole : (H, W) bool ndarray
    source : (H, W) bool ndarray or None
        Where may be copied from; a region then holds all of it.

    Returns
    -------
    list of Region
    """
    labels, boxes = together(hole)
    away = [] if source is None or not source.any() else [extent(source)]
    regions = []
    for k, found in enumerate(boxes, start=1):
        margin = room(*labels[found].shape)
        box = tuple(
            slice(max(0, s.start - margin), min(n, s.stop + margin)) for s, n in zip(found, hole.shape, strict=True)
        )
        for other in away:
            box = tuple(slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(box, other, strict=True))
        regions.append(Region(box, hole[box] & (labels[box] == k)))
    return regions
