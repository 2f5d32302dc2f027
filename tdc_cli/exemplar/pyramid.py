"""Coarser and coarser versions of a picture with a hole."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import convolve1d, distance_transform_edt, maximum_filter, minimum_filter

# A coarser pixel is the mean of 4 x 4 finer ones by these weights in each direction.
WEIGHTS = np.array([1, 3, 3, 1], np.float32) / 8
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
                   np.flatnonzero(corners(maximum_filter(hole, size), size)), np.flatnonzero(hole),
                   distance_transform_edt(hole))  # fmt: skip


def nearest(layers, known):
    """`layers`, (H, W, F), with every pixel that is not `known` as the nearest one that is."""
    rows, columns = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return layers[rows, columns]


def corners(plane, size):
    """Value of (H, W) `plane` in the middle of every patch, at its top left corner; 0 where a patch would leave the
    picture.
    """
    half, (height, width) = size // 2, plane.shape
    found = np.zeros_like(plane)
    found[: height - size + 1, : width - size + 1] = plane[half : height - half, half : width - half]
    return found


def _allowed(copyable, size):
    """Patches that may be sources: all of their pixels may be copied or, where there are too few of those, the pixels
    in the middle.
    """
    for inner in range(size, 0, -2):
        found = corners(minimum_filter(copyable, inner, mode="constant"), size)
        if np.count_nonzero(found) >= LEAST_SOURCES:
            break
    return found.ravel()


def halved(planes, known):
    """Weighted means of what is known of (H, W, F) `planes` at half the resolution, (ceil H/2, ceil W/2, F), and the
    sums of weights.
    """
    end = [(0, n % 2) for n in known.shape]
    weight = np.pad(known, end, "edge").astype(np.float32)[..., None]
    total = np.pad(planes, [*end, (0, 0)], "edge") * weight
    for axis in (0, 1):
        every = (slice(None),) * axis + (slice(None, None, 2),)
        # Entry i becomes the mean of entries i - 1 to i + 2.
        weight, total = (convolve1d(each, WEIGHTS, axis, mode="nearest")[every] for each in (weight, total))
    return total / np.maximum(weight, 1e-6), weight[..., 0]


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

    Returns
    -------
    list of Level
    """
    levels = [Level.of(layers, hole, blank, copyable, size)]
    while len(levels) < count:
        layers, weight = halved(layers, ~(hole | blank))
        shares, _ = halved(np.dstack([hole, blank, copyable]).astype(np.float32), np.ones_like(hole))
        lost = weight < 0.5
        hole, blank, copyable = (
            lost & (shares[..., 0] >= shares[..., 1]),
            lost & (shares[..., 0] < shares[..., 1]),
            shares[..., 2] >= 0.5,
        )
        levels.append(Level.of(layers, hole, blank, copyable, size))
    return levels
