"""Mask pictures as grey levels; `tdc_cli.holes` says what they mean."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MaskError
from . import read_any
from .files import check_file, digest

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
    try:
        check_file(path)
        mask = read_any(path)
    except InputError as error:
        raise MaskError(f"mask {error}") from error
    return _grey(mask, path)


def _grey(mask, path):
    """Grey levels and alpha of a mask's `Media`; see `read_mask`."""
    if mask.dtype.kind not in "buif":
        from .tensor.variable import kind_of

        raise MaskError(f"mask {path}: values of {kind_of(mask.dtype)}; give numbers, the largest = missing, 0 = known")
    shape = mask.values.shape
    if mask.mode == "array" and (0 in shape or len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,))):
        raise MaskError(
            f"mask {path}: array of shape {shape}; a mask has shape (height, width), those of a clip (frames, height, "
            "width)"
        )
    alpha = mask.values[..., -1] * (255 / (mask.full_range or 1)) if mask.has_alpha else None
    colour = mask.colour
    if mask.mode == "CMYK":  # of inks
        top = mask.full_range or 1.0
        colour = (top - colour[..., :3].astype(float)) * (top - colour[..., 3:]) / top
    if colour.ndim == 2:
        return colour, alpha
    if colour.shape[2] == 1:
        return colour[..., 0], alpha
    return colour @ np.array(_BRIGHTNESS), alpha


@dataclass(frozen=True)
class Masks:
    """Masks of several frames, read as they are asked for.

    Attributes
    ----------
    path, sha256 : str
    count : int
    size : (int, int)
        Height and width.
    clip : video.Clip or None
        None: the rows of a ``.npy`` file.
    """

    path: str
    sha256: str
    count: int
    size: tuple
    clip: Any = None

    def frames(self, start=0):
        """Iterate over levels and alpha of each mask; see `read_mask`."""
        if self.clip is None:
            from .video.npy_frames import Rows

            for media in Rows(self.path, self.sha256).frames(start, self.count):
                yield media.values, None
        else:
            for media in self.clip.frames(start):
                yield _grey(media, media.path)


def read_masks(path):
    """Open what has a mask for each of several frames: a clip, a folder, an animation, several pages, or a ``.npy``
    file (T, H, W).

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Masks or None
        None where it is one picture, or nothing that can be read, which `read_mask` tells.

    Raises
    ------
    MaskError
        A clip that cannot be read.
    """
    try:
        check_file(path, folder=True)
    except InputError as error:
        raise MaskError(f"mask {error}") from error
    if Path(path).suffix.lower() == ".npy":
        return _rows(path)
    from .video import read_clip  # not before: a single mask needs nothing of what reads clips

    if not _several(path):
        return None
    try:
        clip = read_clip(path)
    except InputError as error:
        raise MaskError(f"mask {error}") from error
    return Masks(str(path), clip.sha256, clip.count, tuple(clip.shape[:2]), clip)


def _rows(path):
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if values.ndim != 3 or not values.size or values.dtype.kind not in "buif":
        return None
    return Masks(str(path), digest(path), len(values), values.shape[1:])


def _several(path):
    """Whether a path leads to something with several frames."""
    from PIL import Image

    from .video.clip_formats import EXTENSIONS

    form = EXTENSIONS.get(Path(path).suffix.lower())
    if Path(path).is_dir() or (form and form.demuxer):
        return True
    try:
        with Image.open(path) as picture:
            return getattr(picture, "n_frames", 1) > 1
    except (OSError, ValueError, SyntaxError):
        return False
