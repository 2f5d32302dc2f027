"""Holes of clips, region by region: what `exemplar` and `auto` share where a mode counts frames.

`tdc_cli.exemplar.clip` has the work.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..exemplar.regions import divide
from ..kernels import kernel_threads


@dataclass(frozen=True)
class FilledClip:
    """What came of the holes of a clip.

    Attributes
    ----------
    values, spread : (T, H, W, C) float64 ndarray
        With what was filled, and its standard deviations; 0 elsewhere.
    filled, invented : (T, H, W) bool ndarray
        Pixels that were filled, and those of them that no other frame shows.
    """

    values: np.ndarray
    spread: np.ndarray
    filled: np.ndarray
    invented: np.ndarray


def by_frame(array, mode):
    """An array whose `mode` counts frames, after rows and columns, as (T, H, W, C)."""
    return np.moveaxis(array, mode, 0).reshape(array.shape[mode], *array.shape[:2], -1)


def as_given(stacked, shape, mode):
    """Inverse of `by_frame`, for an array that had this shape."""
    others = [n for k, n in enumerate(shape) if k != mode]
    return np.ascontiguousarray(np.moveaxis(stacked.reshape(shape[mode], *others), 0, mode))


def within(pixels, used):
    """Those of the pixels, of (..., H, W), that are in the rows and columns that are used; None: all of them."""
    if used is None:
        return pixels
    found = np.zeros_like(pixels)
    found[(..., *used)] = pixels[(..., *used)]
    return found


def fill_clip(values, holes, blank, source, rng, tell, leave=lambda share, gap: np.zeros(share.shape, bool)):
    """Fill the holes of a clip.

    Parameters
    ----------
    values : (T, H, W, C) float64 ndarray
        Not read where `holes` or `blank`.
    holes, blank : (T, H, W) bool ndarray
        To be filled; neither known nor to be filled.
    source : (H, W) bool ndarray, or None
        What may be copied where no other frame shows what is missing; None: all that is known.
    rng : numpy.random.Generator
    tell : callable
        Called as ``tell(share)`` with the share of the work that is done.
    leave : callable
        ``leave(share, gap)``, see `Clip.carry`, says which pixels are better left as they were, (T, H, W) bool.

    Returns
    -------
    FilledClip

    Raises
    ------
    InputError
        A frame with nothing known around a hole, or nothing to copy.
    """
    from ..exemplar.clip import Clip  # with SciPy's filters, of which a picture has no need

    done, spread = np.where((holes | blank)[..., None], 0.0, values), np.zeros(values.shape)
    filled, invented = np.zeros(holes.shape, bool), np.zeros(holes.shape, bool)
    regions = divide(holes.any(axis=0), source)
    for k, region in enumerate(regions):
        place = (slice(None), *region.box)
        hole = holes[place] & region.hole
        unknown = (holes | blank)[place] & ~hole
        copyable = np.ones(region.hole.shape, bool) if source is None else source[region.box]
        lost = np.flatnonzero(~(~(hole | unknown) & copyable).any(axis=(1, 2)))
        if len(lost):
            what = "of `source` " if source is not None else ""
            raise InputError(
                f"exemplar copies whole pixels, and no pixel {what}is observed in all channels in frame {lost[0]}; "
                "try method patches"
            )
        clip = Clip(values[place], hole, unknown)
        with kernel_threads():
            left = leave(*clip.carry())
            clip.hole &= ~left
            clip.blank |= left
            fresh = clip.hole.copy()
            clip.invent(copyable, rng, lambda share, k=k: tell((k + share) / len(regions)), source is not None)
        made = hole & ~left
        done[place][made], spread[place][made] = clip.values[made], clip.spread[made]
        filled[place] |= made
        invented[place] |= fresh
    tell(1.0)
    return FilledClip(done, spread, filled, invented)
