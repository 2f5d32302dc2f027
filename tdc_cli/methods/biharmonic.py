"""Biharmonic inpainting by scikit-image: the one-line fill that every method for pictures must beat.

References
----------
S. B. Damelin, N. S. Hoang: On surface completion and image inpainting by biharmonic functions, Int. J. Math. Math. Sci., 2018.
"""

from dataclasses import asdict, dataclass

import numpy as np

from ..errors import InputError
from . import Completion, silent


@dataclass(frozen=True)
class Config:
    """Biharmonic inpainting has no parameters."""


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Fill every channel by itself: modes 0 and 1 are the picture, any further modes are channels.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Entries where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    config : Config
    rng : numpy.random.Generator
        Not used: the method is deterministic.
    monitor : callable
        Called as ``monitor(done, total, label)`` after every channel.

    Returns
    -------
    Completion

    Raises
    ------
    InputError
        A channel without any observed entry.
    """
    from skimage.restoration import inpaint_biharmonic

    flat = np.where(observed, values, 0.0).reshape(*values.shape[:2], -1)
    known = observed.reshape(flat.shape)
    if not known.any(axis=(0, 1)).all():
        raise InputError("biharmonic needs at least one observed entry in every channel; try --method datc")
    filled = np.empty_like(flat)
    for c in range(flat.shape[2]):
        filled[..., c] = inpaint_biharmonic(flat[..., c], ~known[..., c])
        monitor(c + 1, flat.shape[2], "channel")
    return Completion(mean=filled.reshape(values.shape), parameters=asdict(config))
