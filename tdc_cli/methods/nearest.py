"""The nearest observed pixel of the same channel: the plainest fill there is."""

from dataclasses import asdict, dataclass

from scipy.ndimage import distance_transform_edt

from . import Completion, silent
from .channels import fill_channels
from .parameters import Parameters


@dataclass(frozen=True)
class Config(Parameters):
    """The nearest pixel has no parameters."""


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
        A channel without any observed entry, or observed entries that are not finite.
    """
    return Completion(mean=fill_channels(values, observed, fill, "nearest", monitor), parameters=asdict(config))


def fill(channel, known):
    """Channel with the value of the nearest known pixel in every hole.

    Parameters
    ----------
    channel : (H, W) ndarray of float
    known : (H, W) ndarray of bool

    Returns
    -------
    (H, W) ndarray of float
    """
    rows, columns = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return channel[rows, columns]
