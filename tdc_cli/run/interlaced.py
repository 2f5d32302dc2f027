"""Frames of interlaced clips as twice as many fields of half the rows, in the order in which they were taken, and back.
"""

from dataclasses import replace

import numpy as np

from ..media.video.fields import TOP
from .solve import SPREADS


def apart(frames, first):
    """Fields of frames.

    Parameters
    ----------
    frames : (H, W, ..., T) ndarray
        H is even.
    first : str
        Which field of each frame comes first, `TOP` or `BOTTOM`.

    Returns
    -------
    (H / 2, W, ..., 2 T) ndarray
    """
    pair = [frames[0::2], frames[1::2]]
    pair = np.stack(pair if first == TOP else pair[::-1], axis=-1)
    return pair.reshape(*pair.shape[:-2], -1)


def woven(fields, first):
    """Inverse of `apart`."""
    pair = fields.reshape(*fields.shape[:-1], -1, 2)
    frames = np.empty((2 * pair.shape[0], *pair.shape[1:-1]), fields.dtype)
    even = 0 if first == TOP else 1
    frames[0::2], frames[1::2] = pair[..., even], pair[..., 1 - even]
    return frames


def in_frames(completion, first):
    """A completion of fields, as one of frames."""
    arrays = {name: getattr(completion, name) for name in ("mean", "invented", *SPREADS)}
    return replace(completion, **{name: woven(array, first) for name, array in arrays.items() if array is not None})
