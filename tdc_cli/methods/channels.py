"""Methods that fill a picture channel by channel: what they share."""

import numpy as np

from ..errors import InputError


def fill_channels(values, observed, fill, name, monitor, wanted=None):
    """Fill every channel by itself: modes 0 and 1 are the picture, any further modes are channels.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Entries where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    fill : callable
        ``fill(channel, known, wanted)`` gives the completed channel, all (H, W): the channel with 0 where `known` is
        False, and what is to be filled.
    name : str
        Of the method, for errors.
    monitor : callable
        Called as ``monitor(done, total, label)`` after every channel.
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
    filled = np.empty_like(flat)
    for c in range(flat.shape[2]):
        filled[..., c] = fill(flat[..., c], known[..., c], todo[..., c]) if todo[..., c].any() else flat[..., c]
        monitor(c + 1, flat.shape[2], "channel")
    return filled.reshape(values.shape)
