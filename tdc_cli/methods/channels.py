"""Methods that fill a picture channel by channel: what they share."""

import numpy as np

from ..errors import InputError


def fill_channels(values, observed, fill, name, monitor, wanted=None):
    """Fill every channel by itself: modes 0 and 1 are the picture, any further modes are channels.

    Channels with the same holes are handed over together: what depends on the holes alone is done once.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Entries where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    fill : callable
        ``fill(channels, known, wanted)`` gives completed channels, (H, W, C) like the first argument, which is 0 where
        `known`, (H, W), is False; `wanted`, (H, W), is what is to be filled.
    name : str
        Of the method, for errors.
    monitor : callable
        Called as ``monitor(done, total, label)`` with the channels that are done.
    wanted : (H, W, ...) ndarray of bool, or None
        Missing entries to fill; None: all of them. The others may be anything.

    Returns
    -------
    (H, W, ...) ndarray of float64

    Raises
    ------
    InputError
        A channel with something to fill and without any observed entry.
    """
    flat = np.where(observed, values, 0.0).reshape(*values.shape[:2], -1)
    known = observed.reshape(flat.shape)
    todo = ~known if wanted is None else wanted.reshape(flat.shape)
    if (todo.any(axis=(0, 1)) & ~known.any(axis=(0, 1))).any():
        raise InputError(f"{name} needs at least one observed entry in every channel; try `method=datc`")
    done = 0
    for same in _same_holes(known, todo):
        first = same[0]
        if todo[..., first].any():
            flat[..., same] = fill(flat[..., same], known[..., first], todo[..., first])
        done += len(same)
        monitor(done, flat.shape[2], "channel")
    return flat.reshape(values.shape)


def _same_holes(known, todo):
    """Channels in lists, of each of which the same is known and to be filled."""
    found = {}
    for c in range(known.shape[2]):
        found.setdefault(np.packbits([known[..., c], todo[..., c]]).tobytes(), []).append(c)
    return found.values()
