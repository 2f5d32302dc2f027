"""Mask pictures as grey levels; `tdc_cli.missing` says what they mean."""

import numpy as np

from ..errors import InputError, MaskError
from . import read_any
from .files import absence

_BRIGHTNESS = (0.299, 0.587, 0.114)  # weights of ITU-R 601, as Pillow and most programs have them


def read_mask(path):
    """Read a mask picture of any mode and depth.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    levels : (H, W) ndarray
        Grey levels as stored (palettes and colours turned into grey): bool, integer or float.
    alpha : (H, W) ndarray, or None
        0 = transparent, 255 = opaque, whatever the depth.

    Raises
    ------
    MaskError
        No such file, or not a readable picture.
    """
    nothing = absence(path)
    if nothing:
        raise MaskError(f"mask {path}: {nothing}")
    try:
        mask = read_any(path)
    except InputError as error:
        raise MaskError(f"mask {error}") from error
    alpha = mask.values[..., -1] * (255 / (mask.full_range or 1)) if mask.has_alpha else None
    colour = mask.colour
    if mask.mode == "CMYK":  # of inks
        top = mask.full_range or 1.0
        colour = (top - colour[..., :3].astype(float)) * (top - colour[..., 3:]) / top
    if colour.ndim == 2:
        return colour, alpha
    if colour.shape[2] == 1:
        return colour[..., 0], alpha
    if colour.shape[2] != 3:
        raise MaskError(f"mask {path}: {colour.shape[2]} channels; save it as a grey picture")
    return colour @ np.array(_BRIGHTNESS), alpha
