"""Coarser and coarser versions of a picture with a hole."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import convolve1d, distance_transform_edt, maximum_filter, minimum_filter

# A coarser pixel is the mean of 4 x 4 finer ones by these weights in each direction, 3 for the nearer two.
WEIGHTS = np.array([1.0, 3.0, 3.0, 1.0]) / 8
# Places to copy from below which it is enough that the middle of a source patch is known.
LEAST_SOURCES = 16


@dataclass(frozen=True)
class Level:
    """One scale of a picture.

    Attributes
    ----------
    layers : (H, W, F) float32 ndarray
        What patches are compared by; where `hole`, the current estimate.
    hole : (H, W) bool ndarray
        Pixels to be filled.
    blank : (H, W) bool ndarray
        Pixels that nothing is known of, nor shall be: they count in no comparison.
    allowed : (H * W,) bool ndarray
        Patches, by their top left corners, that may be sources.
    size : int
        Side of a patch.
    """

    layers: np.ndarray
    hole: np.ndarray
    blank: np.ndarray
    allowed: np.ndarray
    size: int

    @property
    def targets(self):
        """Patches with a pixel in the hole, (T,) int64."""
        return np.flatnonzero(_corners(maximum_filter(self.hole, self.size), self.size))

    @property
    def pixels(self):
        """Pixels of the hole, (P,) int64."""
        return np.flatnonzero(self.hole)


def _corners(plane, size):
    """Values of (H, W) `plane` at the middle of every patch, at its top left corner; False where the patch would leave the picture."""
    half, (height, width) = size // 2, plane.shape
    found = np.zeros_like(plane)
    found[: height - size + 1, : width - size + 1] = plane[half : height - half, half : width - half]
    return found


def _allowed(copyable, size):
    """Patches that may be sources: all of their pixels may be copied or, where there are too few of those, those in their middle."""
    for inner in range(size, 0, -2):
        found = _corners(minimum_filter(copyable, inner, mode="constant"), size)
        if found.sum() >= LEAST_SOURCES:
            break
    return found.ravel()


def _halve(plane, known):
    """Weighted means of the known entries of (H, W) `plane` at half the resolution, (ceil H/2, ceil W/2), and their weights."""
    for axis in (0, 1):
        if plane.shape[axis] % 2:
            pad = [(0, int(axis == 0)), (0, int(axis == 1))]
            plane, known = np.pad(plane, pad, "edge"), np.pad(known, pad, "edge")
    weight, total = known.astype(np.float32), np.where(known, plane, 0).astype(np.float32)
    for axis in (0, 1):
        # Output i of the convolution weighs entries i-1 .. i+2.
        weight = convolve1d(weight, WEIGHTS, axis, mode="nearest", origin=-1)
        total = convolve1d(total, WEIGHTS, axis, mode="nearest", origin=-1)
    weight, total = weight[::2, ::2], total[::2, ::2]
    return total / np.maximum(weight, 1e-6), weight


def nearest(layers, known):
    """`layers` with every pixel that is not `known` as the nearest one that is."""
    rows, columns = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return layers[rows, columns]


def build(layers, hole, blank, copyable, size, count):
    """A picture and `count - 1` coarser ones, the finest first.

    Parameters
    ----------
    layers : (H, W, F) float32 ndarray
        Not read where `hole` or `blank`.
    hole, blank, copyable : (H, W) bool ndarray
    size : int
        Side of a patch, odd.
    count : int

    Returns
    -------
    list of Level
    """
    levels = []
    for k in range(count):
        known = ~hole & ~blank
        levels.append(Level(nearest(layers, known), hole, blank, _allowed(copyable & known, size), size))
        if k + 1 < count:
            halved = [_halve(layers[..., f], known) for f in range(layers.shape[2])]
            weight = halved[0][1]
            open_, may = _halve(hole, np.ones_like(hole))[0], _halve(copyable & known, np.ones_like(hole))[0]
            layers = np.stack([plane for plane, _ in halved], axis=2)
            # A coarser pixel belongs to the hole if most of it does; what is hardly known otherwise is blank.
            hole = (weight < 0.5) & (open_ > 0.25)
            blank = (weight < 0.5) & ~hole
            copyable = may >= 0.5
    return levels
