"""What is missing in each frame of a clip.

Each kind of holes has a method ``reader(start)``, which gives a function of a frame's number and its `Media`: called with rising numbers
from `start` on, it gives the frame's `missing.Mask`, or None where these holes leave the frame alone. So a clip of any length is gone
through with the masks beside it, as often as needed.
"""

from dataclasses import dataclass

import numpy as np

from ... import holes as missing
from ...errors import ConfigError, MaskError
from ...media.files import digest
from ...media.masks import Masks, read_mask, read_masks
from ...media.video.formats import FOLDER
from .. import holes
from ..seeds import HOLES, stream


@dataclass(frozen=True)
class Still:
    """One mask for many frames."""

    mask: missing.Mask
    numbers: frozenset

    def reader(self, start):
        """See the module."""
        return lambda number, media: self.mask if number in self.numbers else None


@dataclass(frozen=True)
class Moving:
    """A mask for each of many frames.

    Attributes
    ----------
    masks : Masks
    numbers : tuple of int
        Frames that they are for.
    unit : float
        Factor that brings their levels to 0..255.
    threshold, invert, dilate
        See `missing.from_image`.
    """

    masks: Masks
    numbers: tuple
    unit: float
    threshold: float
    invert: bool
    dilate: int

    def reader(self, start):
        """See the module."""
        left = [number for number in self.numbers if number >= start]
        levels = self.masks.frames(len(self.numbers) - len(left))

        def read(number, media):
            if not left or number != left[0]:
                return None
            left.pop(0)
            grey, alpha = next(levels)
            return missing.from_levels(
                np.asarray(grey, dtype=float) * self.unit, alpha, threshold=self.threshold, invert=self.invert, dilate=self.dilate
            )

        return read


@dataclass(frozen=True)
class Coloured:
    """Where a frame has the colour that stands for holes.

    Attributes
    ----------
    color : (int, int, int)
    tolerance, dilate : float, int
        See `missing.from_color`.
    """

    color: tuple
    tolerance: float
    dilate: int

    def reader(self, start):
        """See the module."""
        return lambda number, media: missing.Mask(
            ~missing.grown(missing.color_distance(media.colour, self.color) <= self.tolerance, self.dilate)
        )


@dataclass(frozen=True)
class Transparent:
    """Where a frame is wholly transparent, grown by `dilate` pixels."""

    dilate: int

    def reader(self, start):
        """See the module."""

        def read(number, media):
            alpha = media.values[..., -1]
            partly = np.count_nonzero((alpha > 0) & (alpha < (media.full_range or 1)))
            return missing.Mask(~missing.grown(alpha == 0, self.dilate), int(partly))

        return read


@dataclass(frozen=True)
class Simulated:
    """Holes that depend on seed, pattern, ratio, shape and the frame's number only.

    Attributes
    ----------
    shape : tuple
        Of a frame's colours.
    ratio, pattern, seed
    """

    shape: tuple
    ratio: float
    pattern: str
    seed: int

    def reader(self, start):
        """See the module."""

        def streams(number):
            return stream(self.seed, HOLES, number)

        return lambda number, media: missing.Mask(missing.simulate_frame(self.shape, self.ratio, self.pattern, number, streams))


@dataclass(frozen=True)
class Lost:
    """Frames that are lost altogether."""

    shape: tuple
    numbers: frozenset

    def reader(self, start):
        """See the module."""
        nothing = missing.Mask(np.zeros(self.shape, dtype=bool))
        return lambda number, media: nothing if number in self.numbers else None


@dataclass(frozen=True)
class Nothing:
    """No holes but where a frame has NaN."""

    def reader(self, start):
        """See the module."""
        return lambda number, media: None


def decide(job, clip, numbers, begin, end):
    """Decide what is missing, as far as it can be said without looking at the frames.

    Parameters
    ----------
    job : ClipJob
    clip : media.video.Clip
    numbers : tuple of int
        Frames that the mask is for.
    begin, end : int
        Frames that are worked on.

    Returns
    -------
    holes : object
        With `reader`; see the module.
    described : dict
        As in the report, without what must be counted.
    sha256 : str or None
        Of the mask.
    notes, warnings : list of str

    Raises
    ------
    ConfigError, MaskError
    """
    described = {"source": "simulated", "pattern": None, "mask": None, "grey_levels": 0}
    shape = clip.colour_shape
    if job.mask_color is not None:
        if clip.full_range is None or (len(shape) == 3 and (shape[2] != 3 or clip.mode == "CMYK")):
            raise ConfigError(f"{clip.path}: --mask-color is for grey and RGB frames with 8 or 16 bits, not for {clip.kind}")
        color = missing.parse_color(job.mask_color)
        if len(shape) == 2 and len(set(color)) > 1:
            raise ConfigError(f"{clip.path} is grey, and --mask-color {job.mask_color} is not; give a grey such as '#ffffff'")
        return Coloured(color, job.mask_tolerance, job.mask_dilate), described | {"source": "color"}, None, [], []
    if job.missing_ratio is not None:
        described["pattern"] = job.missing_pattern
        if job.missing_pattern == "frames":
            lost = missing.lost_frames(end - begin, job.missing_ratio, stream(job.seed, HOLES))
            return Lost(shape, frozenset(begin + np.flatnonzero(lost))), described, None, [], []
        return Simulated(shape, job.missing_ratio, job.missing_pattern, job.seed), described, None, [], []
    if job.mask is None:
        return Nothing(), described, None, [], []
    if str(job.mask) == holes.ALPHA:
        if not clip.has_alpha:
            raise ConfigError(f"{clip.path}: --mask alpha needs a clip with transparency, and this one is {clip.kind}")
        return Transparent(job.mask_dilate), described | {"source": "alpha"}, None, [], []
    described |= {"source": "mask", "mask": str(job.mask)}
    masks = read_masks(job.mask)
    if masks is None or (masks.count == 1 and masks.clip is not None and masks.clip.format != FOLDER):
        return _still(job, clip, numbers, described)
    return _moving(job, clip, masks, numbers, described)


def _still(job, clip, numbers, described):
    mask = missing.from_image(
        *read_mask(job.mask), clip.shape[:2], name=str(job.mask), picture=clip.path,
        threshold=job.mask_threshold, invert=job.invert_mask, dilate=job.mask_dilate,
    )  # fmt: skip
    return Still(mask, frozenset(numbers)), described, digest(job.mask), list(mask.notes), list(mask.warnings)


def _moving(job, clip, masks, numbers, described):
    if masks.count != len(numbers):
        if job.mask_frames is not None:
            raise MaskError(
                f"mask {job.mask} has {masks.count} frames but --mask-frames names {len(numbers)} of the {clip.count} of clip {clip.path}; "
                f"give {len(numbers)} masks, or one picture for all of them"
            )
        raise MaskError(
            f"mask {job.mask} has {masks.count} frames but clip {clip.path} has {clip.count}; give one picture for all frames, "
            "one a frame, or say with --mask-frames which frames they are for"
        )
    if masks.size != tuple(clip.shape[:2]):
        raise MaskError(
            f"mask {job.mask} is {masks.size[1]}x{masks.size[0]} pixels but clip {clip.path} is {clip.shape[1]}x{clip.shape[0]}; "
            "they must have the same size"
        )
    low, top = 0.0, 0.0
    for levels, _ in masks.frames():
        if not np.isfinite(levels).all():
            low = -1.0
            break
        low, top = min(low, float(levels.min())), max(top, float(levels.max()))
    if low < 0:
        raise MaskError(f"mask {job.mask} has levels that are negative or not finite; paint it black and white")
    unit = missing.unit_of(top, str(job.mask))
    if 0 < top * unit < job.mask_threshold and not job.invert_mask:
        raise MaskError(
            f"mask {job.mask} marks nothing in any frame: its brightest pixel is {top * unit:g} of 255, below the threshold "
            f"{job.mask_threshold:g}; white = missing; give a lower --mask-threshold or repaint the mask"
        )
    made = Moving(masks, numbers, unit, job.mask_threshold, job.invert_mask, job.mask_dilate)
    return made, described, masks.sha256, [], []
