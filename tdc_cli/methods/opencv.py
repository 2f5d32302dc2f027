"""OpenCV's two inpainting methods: Telea's fast marching (`telea`) and Bertalmio's Navier-Stokes equation
(`navier-stokes`).

Each channel is filled by itself, as single-precision levels from 0 to 255; for holes that all channels share this is
what OpenCV makes of a colour picture, but for rounding. Telea's method adds a gradient of about one level whatever the
scale, so that the scale matters.

References
----------
A. Telea: An image inpainting technique based on the fast marching method, Journal of Graphics Tools 9(1), 2004.
M. Bertalmio, A. L. Bertozzi, G. Sapiro: Navier-Stokes, fluid dynamics, and image and video inpainting, CVPR 2001.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..tensor import largest_size
from . import Completion, silent
from .channels import fill_channels
from .parameters import Parameters, parameter

LEVELS = 255.0


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of OpenCV's inpainting."""

    algorithm: str = parameter("telea", "Which of the two.", choices=("telea", "navier-stokes"))
    radius: float = parameter(5.0, "Pixels around each missing pixel that count.", ge=1, le=100)


def margin(config):
    """See the package; the neighbourhood of a missing pixel, and that of those that were filled before it."""
    return 32 + 2 * math.ceil(config.radius)


def complete(values, observed, config=Config(), *, rng=None, monitor=silent, wanted=None):
    """Fill every channel by itself; the range of all observed entries becomes 0 to 255."""
    import cv2

    flag = cv2.INPAINT_TELEA if config.algorithm == "telea" else cv2.INPAINT_NS

    def fill(channels, known, wanted):
        # Of a picture with a single row or column OpenCV reads beyond the end; such a one is given three times.
        margins = [(1, 1) if n == 1 else (0, 0) for n in known.shape]
        inside = tuple(slice(before, before + n) for (before, _), n in zip(margins, known.shape))
        holes = np.pad((~known).astype(np.uint8), margins, mode="edge")
        padded = np.pad(channels.astype(np.float32), [*margins, (0, 0)], mode="edge")
        return np.stack(
            [cv2.inpaint(channel, holes, config.radius, flag)[inside] for channel in np.moveaxis(padded, 2, 0)], axis=2
        )

    top = largest_size(values, observed)
    relative = np.where(observed, values, 0.0) / top
    low = float(np.min(relative, where=observed, initial=np.inf))
    span = float(np.max(relative, where=observed, initial=-np.inf)) - low
    filled = fill_channels(
        (relative - low) * (LEVELS / span if span else 0.0), observed, fill, config.algorithm, monitor, wanted
    )
    return Completion(mean=top * (low + filled * (span / LEVELS)))
