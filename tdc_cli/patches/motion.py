"""A frame of a clip as the frames beside it say it is, following what moves.

For every pixel the motion is looked for, in whole pixels a frame, under which the surroundings of the pixel agree best:
those of the frame itself with those of the frames beside it, where they are observed, and those of the frames beside it
with each other, so that a frame of which nothing is observed can be told as well. Motion is taken for constant from the
frame before to the one after. There are no fractions of pixels: interpolated frames are smoother, agree better for that
alone, and give smoother predictions.

References
----------
B.-D. Choi, J.-W. Han, C.-S. Kim, S.-J. Ko: Motion-compensated frame interpolation using bilateral motion estimation and
adaptive overlapped block motion compensation, IEEE Trans. Circuits Syst. Video Technol., 2007.
"""

import numpy as np
from scipy.ndimage import uniform_filter

from .kernels_motion import find_motion

# Sides of the surroundings that are compared where the frame is seen, and where it is not; largest motion that is
# looked for, in pixels a frame.
SIDE, WIDE, FASTEST = 9, 21, 7
# Weight of a pixel of which nothing is observed, beside one that is; squared difference, relative to the variance of
# the frames, that a motion of one pixel must save, and that any prediction is taken to have at least.
UNSEEN, STILL, LEAST = 0.02, 1e-3, 1e-5


def reach(gap):
    """How many pixels away a prediction looks, if the frames beside it are up to `gap` frames later or earlier."""
    return WIDE // 2 + FASTEST * gap


def predict(frame, seen, sides):
    """Prediction of a frame.

    Parameters
    ----------
    frame : (H, W, C) float32 ndarray
        The frame, estimated where it is not observed.
    seen : (H, W) float32 ndarray
        Share of every pixel's channels that are observed.
    sides : sequence of (int, (H, W, C) ndarray, (H, W) ndarray)
        One or two: how many frames later the frame beside it is, below 0 if it comes before; and the same two of that
        frame.

    Returns
    -------
    (H, W, C) float32 ndarray
        Mean of the frames beside it, moved to where the frame is, the ones that agree with its observed surroundings
        better counting more.
    (H, W) float32 ndarray
        Mean squared error of the observed surroundings, over the channels.
    """
    unit = frame.var() or 1.0
    moved = _moved(sides, _motion(frame, seen, sides, unit))
    errors = [_error(frame, other, seen * weight, SIDE) for other, weight in moved]
    shares = np.array([np.maximum(weight, UNSEEN) / (error + LEAST * unit) / abs(side[0])
                       for side, (_, weight), error in zip(sides, moved, errors)])  # fmt: skip
    shares /= shares.sum(axis=0)
    prediction = sum(share[..., None] * other for share, (other, _) in zip(shares, moved))
    return prediction, _error(frame, prediction, seen, SIDE)


def _motion(frame, seen, sides, unit):
    """Pixels a frame that every pixel moves, (2, H, W); `unit` is the variance of the frame."""
    border = FASTEST * max(abs(gap) for gap, *_ in sides)

    def bordered(plane):
        return np.pad(plane, border, mode="edge")

    gaps, frames, weights = zip(*sides)
    planes = [[bordered(channel) for channel in np.moveaxis(f, 2, 0)] for f in (frame, *frames)]
    steps = [(dy, dx) for dy in range(-FASTEST, FASTEST + 1) for dx in range(-FASTEST, FASTEST + 1)]
    steps = np.array(sorted(steps, key=lambda s: s[0] ** 2 + s[1] ** 2))
    best, motion = np.full(seen.shape, np.inf, np.float32), np.zeros((2, *seen.shape), int)
    find_motion(
        np.array(planes[0], np.float32),
        bordered(seen),
        np.array(planes[1:], np.float32),
        np.array([bordered(weight) for weight in weights], np.float32),
        np.array(gaps),
        np.clip(_around(seen, SIDE), 0, 1),
        steps,
        np.float32(STILL * unit) * np.sum(steps**2, axis=1, dtype=np.float32),
        np.float32(UNSEEN**2),
        np.array([SIDE, WIDE]),
        best,
        motion,
    )
    return motion


def _moved(sides, motion):
    """Frames beside and what is seen of them, at every pixel moved by its own motion (2, H, W)."""
    shape = motion.shape[1:]
    moved = []
    for gap, frame, weight in sides:
        rows, columns = (np.clip(at + gap * by, 0, n - 1) for at, by, n in zip(np.indices(shape), motion, shape))
        moved.append((frame[rows, columns], weight[rows, columns]))
    return moved


def _error(one, other, weight, side):
    """Weighted mean over the surroundings of the squared differences of two frames."""
    weight, apart = np.maximum(weight, UNSEEN**2), one - other
    squared = np.einsum("ijk,ijk->ij", apart, apart) / np.float32(apart.shape[2])
    return np.maximum(_around(weight * squared, side), 0) / _around(weight, side)


def _around(plane, side):
    return uniform_filter(plane, side, mode="nearest")
