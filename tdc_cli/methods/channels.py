"""Methods that fill a picture channel by channel: what they share."""

import numpy as np

from ..errors import InputError


def fill_channels(values, observed, fill, name, monitor):
    """Fill every channel by itself: modes 0 and 1 are the picture, any further modes are channels.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Entries where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    fill : callable
        ``fill(channel, known)`` gives the completed channel: both (H, W), with 0 where `known` is False.
    name : str
        Of the method, for errors.
    monitor : callable
        Called as ``monitor(done, total, label)`` after every channel.

    Returns
    -------
    (H, W, ...) ndarray of float64

    Raises
    ------
    InputError
        A channel without any observed entry.
    """
    flat = np.where(observed, values, 0.0).reshape(*values.shape[:2], -1)
    known = observed.reshape(flat.shape)
    if not known.any(axis=(0, 1)).all():
        raise InputError(f"{name} needs at least one observed entry in every channel; try `method=datc`")
    filled = np.empty_like(flat)
    for c in range(flat.shape[2]):
        filled[..., c] = flat[..., c] if known[..., c].all() else fill(flat[..., c], known[..., c])
        monitor(c + 1, flat.shape[2], "channel")
    return filled.reshape(values.shape)
