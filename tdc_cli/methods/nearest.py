"""The nearest observed pixel of the same channel: the plainest fill there is."""

from dataclasses import dataclass

from scipy.ndimage import distance_transform_edt

from . import Completion, silent
from .channels import fill_channels
from .parameters import Parameters


@dataclass(frozen=True)
class Config(Parameters):
    """The nearest pixel has no parameters."""


def margin(config):
    """See the package; the nearest pixel is no farther than the hole is deep."""
    return 16


def complete(values, observed, config=Config(), *, rng=None, monitor=silent, wanted=None):
    """Fill every channel by itself."""
    return Completion(
        mean=fill_channels(
            values, observed, lambda channels, known, _: fill(channels, known), "nearest", monitor, wanted
        )
    )


def fill(channels, known):
    """Channels with the value of the nearest known pixel in every hole.

    Parameters
    ----------
    channels : (H, W, C) ndarray of float
    known : (H, W) ndarray of bool

    Returns
    -------
    (H, W, C) ndarray of float
    """
    rows, columns = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return channels[rows, columns]
