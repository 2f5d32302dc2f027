"""Biharmonic inpainting by scikit-image: the one-line fill that every method for pictures must beat.

References
----------
S. B. Damelin, N. S. Hoang: On surface completion and image inpainting by biharmonic functions, Int. J. Math. Math. Sci., 2018.
"""

from dataclasses import dataclass

from . import Completion, silent
from .channels import fill_channels
from .parameters import Parameters


@dataclass(frozen=True)
class Config(Parameters):
    """Biharmonic inpainting has no parameters."""


def margin(config):
    """See the package; the equation couples pixels within two steps, and what lies behind known ones has no say."""
    return 32


def complete(values, observed, config=Config(), *, rng=None, monitor=silent):
    """Fill every channel by itself."""
    from skimage.restoration import inpaint_biharmonic

    filled = fill_channels(values, observed, lambda channel, known: inpaint_biharmonic(channel, ~known), "biharmonic", monitor)
    return Completion(mean=filled)
