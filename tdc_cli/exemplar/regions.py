"""Holes that lie apart, each with the surroundings that it may be filled from."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import find_objects, label, maximum_filter

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
    labels, _ = label(maximum_filter(hole, APART + 1), np.ones((3, 3)))
    return labels, find_objects(labels)


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
    away = [] if source is None else find_objects(source.astype(np.int8))
    regions = []
    for k, found in enumerate(boxes, start=1):
        margin = room(*labels[found].shape)
        grown = [
            slice(max(0, s.start - margin), min(n, s.stop + margin)) for s, n in zip(found, hole.shape, strict=True)
        ]
        for other in away:
            grown = [slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(grown, other, strict=True)]
        box = tuple(grown)
        regions.append(Region(box, hole[box] & (labels[box] == k)))
    return regions
