"""Coarser and coarser versions of a picture with a hole."""

from dataclasses import dataclass

import numpy as np

from . import planes

# Where there are fewer patches to copy that are wholly known, the middle is enough.
LEAST_SOURCES = 16


@dataclass(frozen=True)
class Level:
    """One scale of a picture.

    Attributes
    ----------
    layers : (H, W, F) float32 ndarray
        What patches are compared by; in the hole the current estimate.
    hole : (H, W) bool ndarray
        Pixels to be filled.
    blank : (H, W) bool ndarray
        Pixels of which nothing is known, and which are not to be filled.
    allowed : (H * W,) bool ndarray
        Patches, by their top left corners, that may be sources.
    size : int
        Side of a patch, odd.
    targets : (T,) int64 ndarray
        Patches with a pixel in the hole.
    pixels : (P,) int64 ndarray
        Pixels of the hole.
    depth : (H, W) float64 ndarray
        Distance to the nearest pixel outside of the hole; 0 there.
    """

    layers: np.ndarray
    hole: np.ndarray
    blank: np.ndarray
    allowed: np.ndarray
    size: int
    targets: np.ndarray
    pixels: np.ndarray
    depth: np.ndarray

    @classmethod
    def of(cls, layers, hole, blank, copyable, size):
        known = ~(hole | blank)
        return cls(nearest(layers, known), hole, blank, _allowed(copyable & known, size), size,
                   np.flatnonzero(np.pad(planes.counts(hole, size), (0, size - 1))), np.flatnonzero(hole),
                   planes.nearest(~hole)[0])  # fmt: skip


def nearest(layers, known):
    """`layers`, (H, W, F), with every pixel that is not `known` as the nearest one that is."""
    return layers.reshape(known.size, -1)[planes.nearest(known)[1]]


def _allowed(copyable, size):
    """Patches that may be sources: all of their pixels may be copied or, where there are too few of those, the pixels
    in the middle.
    """
    for inner in range(size, 0, -2):
        beside = (size - inner) // 2
        middles = copyable[beside : len(copyable) - beside, beside : copyable.shape[1] - beside]
        found = planes.counts(middles, inner) == inner**2
        if np.count_nonzero(found) >= LEAST_SOURCES:
            break
    return np.pad(found, (0, size - 1)).ravel()


def halved(layers, known):
    """Weighted means of what is known of (H, W, F) `layers` at half the resolution, (ceil H/2, ceil W/2, F), and the
    sums of weights.
    """
    known = known.astype(np.float32)
    weight = _halved(_halved(known, 0), 1)
    # One layer after the other, since it is done in double precision.
    total = np.dstack([_halved(_halved(layer * known, 0), 1) for layer in np.moveaxis(layers, 2, 0)])
    return total / np.maximum(weight, 1e-6)[..., None], weight


def _halved(each, axis):
    """Entries 2 i - 1 to 2 i + 2 along an axis averaged with weights 1, 3, 3, 1, those at the ends standing for what
    lies beyond.
    """
    lines = np.moveaxis(each.astype(float), axis, 0)
    count = (len(lines) + 1) // 2
    lines = np.pad(lines, [(1, 1 + len(lines) % 2), *[(0, 0)] * (lines.ndim - 1)], "edge")
    first, second, third, fourth = (lines[k::2][:count] for k in range(4))
    return np.moveaxis((first + fourth + 3 * (second + third)) / 8, 0, axis).astype(np.float32)


def build(layers, hole, blank, copyable, size, count):
    """A picture at `count` scales, each half as fine as the one before.

    Parameters
    ----------
    layers : (H, W, F) float32 ndarray
        Not used where `hole` or `blank`.
    hole, blank, copyable : (H, W) bool ndarray
        To be filled; neither known nor to be filled; where may be copied from, if known.
    size : int
        Side of a patch, odd.
    count : int
        Fewer where a coarser scale would show nothing that is known.

    Returns
    -------
    list of Level
    """
    levels = [Level.of(layers, hole, blank, copyable, size)]
    while len(levels) < count:
        layers, weight = halved(layers, ~(hole | blank))
        shares, _ = halved(np.dstack([hole, blank, copyable]).astype(np.float32), np.ones_like(hole))
        lost = weight < 0.5
        if lost.all():
            break
        hole, blank, copyable = (
            lost & (shares[..., 0] >= shares[..., 1]),
            lost & (shares[..., 0] < shares[..., 1]),
            shares[..., 2] >= 0.5,
        )
        levels.append(Level.of(layers, hole, blank, copyable, size))
    return levels
