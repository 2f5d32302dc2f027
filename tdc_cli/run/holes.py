"""What is missing in each frame: by a mask, transparency, a colour, NaN, or simulated.

Each kind of holes has a method ``reader(start)``, which gives a function of a frame's number and its `Media`: called
with rising numbers from `start` on, it gives the frame's `holes.Mask`, or None where these holes leave the frame alone.
So an input of any length is gone through with its masks beside it, as often as needed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from .. import holes
from ..errors import ConfigError, InputError, MaskError
from ..media import stored, tensor
from ..media.files import digest
from ..media.masks import Masks, read_mask, read_masks
from ..media.video.clip_formats import FOLDER
from ..names import CLIP, TENSOR, WHITE
from .streams import HOLES, stream


class Holes(Protocol):
    """What is missing.

    Attributes
    ----------
    looks : bool
        Whether it depends on what is in the frames.
    """

    looks: bool

    def reader(self, start: int) -> Callable:
        """See the module."""


@dataclass(frozen=True)
class Same:
    """One mask for all of the frames `numbers`."""

    looks = False
    mask: holes.Mask
    numbers: frozenset = frozenset({0})

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
        See `holes.from_image`.
    """

    looks = False
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
            return holes.from_levels(
                np.asarray(grey, dtype=float) * self.unit,
                alpha,
                threshold=self.threshold,
                invert=self.invert,
                dilate=self.dilate,
            )

        return read


@dataclass(frozen=True)
class Coloured:
    """Where a frame has the colour that stands for holes.

    Attributes
    ----------
    color : (int, int, int)
    tolerance, dilate : float, int
        See `holes.from_color`.
    """

    looks = True
    color: tuple
    tolerance: float
    dilate: int

    def reader(self, start):
        """See the module."""
        return lambda number, media: holes.Mask(
            ~holes.grown(holes.color_distance(media.colour, self.color) <= self.tolerance, self.dilate)
        )


@dataclass(frozen=True)
class Transparent:
    """Where a frame is wholly transparent, grown by `dilate` pixels."""

    looks = True
    dilate: int

    def reader(self, start):
        """See the module."""

        def read(number, media):
            alpha = media.values[..., -1]
            partly = np.count_nonzero((alpha > 0) & (alpha < (media.full_range or 1)))
            return holes.Mask(~holes.grown(alpha == 0, self.dilate), int(partly))

        return read


@dataclass(frozen=True)
class Simulated:
    """Holes that depend on seed, pattern, ratio, shape of a frame's colours and the frame's number only."""

    looks = False
    shape: tuple
    ratio: float
    pattern: str
    seed: int

    def reader(self, start):
        """See the module."""

        def streams(number):
            return stream(self.seed, HOLES, number)

        return lambda number, media: holes.Mask(
            holes.simulate_frame(self.shape, self.ratio, self.pattern, number, streams)
        )


@dataclass(frozen=True)
class Lost:
    """Frames that are lost altogether."""

    looks = False
    shape: tuple
    numbers: frozenset

    def reader(self, start):
        """See the module."""
        nothing = holes.Mask(np.zeros(self.shape, dtype=bool))
        return lambda number, media: nothing if number in self.numbers else None


@dataclass(frozen=True)
class Nothing:
    """No holes but where there is NaN."""

    looks = False

    def reader(self, start):
        """See the module."""
        return lambda number, media: None


@dataclass(frozen=True)
class Valued:
    """Other holes, and what values themselves say is missing: NaN, and numbers that stand for it.

    Attributes
    ----------
    others : Holes
    numbers : tuple of float
    shape : tuple
        Of a frame's colours.
    frames : range
        Frames that are worked on.
    path : str
        Of the input, for messages.
    in_time : bool
        Whether there are frames that follow each other.
    kept : {"", "unmarked", "all"}
        Which of the entries that their values say are missing stay as they are: none, those that the other holes leave
        alone, all.
    """

    looks = True
    others: Holes
    numbers: tuple
    shape: tuple
    frames: range
    path: str
    in_time: bool
    kept: str = ""

    def reader(self, start):
        """See the module."""
        other = self.others.reader(start)

        def read(number, media):
            mask = other(number, media)
            if number not in self.frames:
                return mask
            path = self.path if not self.in_time else f"{self.path}, frame {number}"
            absent = find_absent(media.colour, path, self.numbers)
            if mask is not None and mask.kept is not None:
                absent &= ~holes.over(mask.kept, self.shape)
            if not absent.any():
                return mask
            mask = mask or holes.Mask(np.ones(self.shape, dtype=bool))
            observed = mask.over(self.shape)
            if self.kept:
                kept = absent & observed if self.kept == "unmarked" else absent
                return replace(mask, observed=observed & ~kept, kept=kept, by_value=int(np.count_nonzero(kept)))
            return replace(mask, observed=observed & ~absent, by_value=int(np.count_nonzero(absent & observed)))

        return read


@dataclass(frozen=True)
class Kept:
    """Other holes, and what stays as it is, neither observed nor to be filled, whatever the others say of it.

    Attributes
    ----------
    others : Holes
    marked : ndarray of bool
        Pixels, or entries of a tensor.
    shape : tuple
        Of a frame's colours.
    frames : range
        Frames that are worked on.
    """

    others: Holes
    marked: np.ndarray
    shape: tuple
    frames: range

    @property
    def looks(self):
        """See `Holes`."""
        return self.others.looks

    def reader(self, start):
        """See the module."""
        other = self.others.reader(start)

        def read(number, media):
            mask = other(number, media)
            if number not in self.frames:
                return mask
            mask = mask or holes.Mask(np.ones(self.shape, dtype=bool))
            return replace(
                mask, observed=mask.over(self.shape) & ~holes.over(self.marked, self.shape), kept=self.marked
            )

        return read


@dataclass(frozen=True)
class Decision:
    """What says which entries are missing.

    Attributes
    ----------
    holes : Holes
    source : str
        One of `names.SAID_BY`.
    pattern, mask : str or None
        As in the report.
    sha256 : str or None
        Of the mask.
    moving : bool
        Whether each frame has a mask of its own.
    notes, warnings : tuple of str
    """

    holes: Holes
    source: str = "simulated"
    pattern: str | None = None
    mask: str | None = None
    sha256: str | None = None
    moving: bool = False
    notes: tuple = ()
    warnings: tuple = ()


def find_absent(values, path, numbers=()):
    """Where `values` are NaN or one of the numbers that stand for what is missing, a bool array; InputError where any
    is infinite.
    """
    if isinstance(values, stored.Stored):
        absent = np.empty(values.shape, dtype=bool)
        for rows in stored.row_slices(values.shape):
            absent[rows] = find_absent(values[rows], path, numbers)
        return absent
    floats = values.dtype.kind == "f"
    if floats and np.isinf(values).any():
        raise InputError(
            f"{path}: {np.isinf(values).sum()} values are infinite; NaN marks missing entries, infinity is refused"
        )
    absent = np.isnan(values) if floats else np.zeros(values.shape, dtype=bool)
    for number in numbers:
        # Of single precision the value nearest to the number is meant, of integers the number itself.
        absent |= values == (values.dtype.type(number) if floats else number)
    return absent


def decide(request, source, numbers, begin, end):
    """Decide what is missing; in clips as far as it can be said without looking at the frames.

    Parameters
    ----------
    request : Request
    source : Source
    numbers : tuple of int
        Frames that the mask is for.
    begin, end : int
        Frames that are worked on.

    Returns
    -------
    Decision

    Raises
    ------
    ConfigError, MaskError
    """
    found = _decide(request, source, numbers, begin, end)
    shape, frames = source.colour_shape, range(begin, end)
    if request.keep is not None and not request.keeps_nodata:
        found = replace(found, holes=Kept(found.holes, _marked_as_kept(request, source), shape, frames))
    numbers_for_missing = request.missing_value + source.nodata
    if source.dtype.kind != "f" and not numbers_for_missing:
        if request.keeps_nodata:
            declared = "and neither `missing_value` nor the file itself names values that stand for what is missing"
            raise ConfigError(
                f"{source.path}: `keep=nodata` has nothing to keep: whole numbers hold no NaN, {declared}"
            )
        return found
    # What is simulated says nothing of the entries that it happens to hit.
    kept = "" if not request.keeps_nodata else "all" if request.missing_ratio is not None else "unmarked"
    return replace(
        found, holes=Valued(found.holes, numbers_for_missing, shape, frames, source.path, request.kind == CLIP, kept)
    )


def may_be_copied(request, source):
    """What a user's picture marks, in white, as what may be copied: (H, W) bool; None without one.

    Raises
    ------
    MaskError
        See `holes.from_image`.
    """
    return None if request.source is None else _white(request, "source", source, "may be copied")


def _white(request, role, source, meaning):
    """What the picture that the option `role` names marks of `source`, as `marked`; MaskError where it has another
    size.
    """
    path = getattr(request, role)
    found = marked(path, role, meaning)
    if found.shape != tuple(source.shape[:2]):
        raise holes.wrong_size(f"{role} {path}", found.shape, f"{request.kind} {source.path}", source.shape[:2])
    return found


def marked(path, role="source", meaning="may be copied"):
    """What the picture at `path` marks in white, whatever picture it is for: (H, W) bool.

    Parameters
    ----------
    path : path-like
    role, meaning : str
        What the picture is called, and what white means, in messages.

    Raises
    ------
    MaskError
        No picture, or one that marks nothing.
    """
    try:
        levels, _ = read_mask(path)
        unit = holes.unit_of(float(levels.max()), str(path))
    except MaskError as error:  # the words are those of masks
        raise MaskError(f"{role} {str(error).removeprefix('mask ')}") from error
    found = np.asarray(levels, dtype=float) * unit >= WHITE
    if not found.any():
        raise MaskError(f"{role} {path} marks nothing; white = {meaning}")
    return found


def _marked_as_kept(request, source):
    """What a user's file says stays as it is: (H, W) bool, or of the shape of a tensor."""
    if request.kind != TENSOR:
        found = _white(request, "keep", source, "stays as it is")
    else:
        try:
            given = tensor.read_mask(request.keep)
            found = ~holes.from_array(given, source.shape, name=str(request.keep), tensor=source.path).observed
        except MaskError as error:
            raise MaskError(str(error).replace("mask ", "keep ", 1)) from error
        if not found.any():
            raise MaskError(f"keep {request.keep} marks nothing; any number but 0 = stays as it is")
    if found.all():
        raise MaskError(f"keep {request.keep} marks all of {source.path}: nothing is left to fill")
    return found


def with_values(request, source, decision, count):
    """The decision and its warnings once it is known how many further entries are missing by their value.

    Raises
    ------
    MaskError
        No entry has a value that was said to stand for what is missing, and nothing else says what is.
    """
    numbers = " or ".join(f"{number:g}" for number in dict.fromkeys(request.missing_value + source.nodata))
    alone = decision.source == "simulated" and decision.pattern is None
    what = f"NaN or {numbers}" if numbers else "NaN"
    if request.keeps_nodata:
        said = (
            f"{count} further entries are {what} and stay as they are"
            if count
            else f"no entry that is otherwise known is {what}"
        )
        return replace(decision, notes=(*decision.notes, f"{source.path}: {said}"))
    if count and alone:
        return replace(decision, source="value" if numbers else "nan")
    if count:
        way = "" if request.keep else "; `keep=nodata` leaves them as they are"
        said = f"{source.path}: {count} further entries are {what} and count as missing{way}"
        return replace(decision, warnings=(*decision.warnings, said))
    if request.missing_value and not alone:
        return replace(
            decision, notes=(*decision.notes, f"{source.path}: no entry that is otherwise known is {numbers}")
        )
    if numbers:
        raise MaskError(f"{source.path}: no entry is {numbers}; give another `missing_value`")
    return decision


def _decide(request, source, numbers, begin, end):
    if request.mask_color is not None:
        return _by_colour(request, source)
    if request.mask_box:
        boxes = holes.from_boxes(request.mask_box, source.shape[:2], picture=source.path, dilate=request.mask_dilate)
        return Decision(Same(boxes, frozenset(numbers)), "box", notes=boxes.notes)
    if request.missing_ratio is not None:
        return Decision(_simulated(request, source, begin, end), pattern=request.pattern)
    if request.mask is None:
        return Decision(Nothing())
    if request.kind == TENSOR:
        mask = holes.from_array(
            tensor.read_mask(request.mask),
            source.shape,
            name=str(request.mask),
            tensor=source.path,
            invert=request.invert_mask,
        )
        return _of_mask(request, Same(mask), mask)
    if request.by_transparency:
        return _by_transparency(request, source)
    if request.by_infrared:
        mask = holes.from_infrared(source.media.metadata["infrared"], picture=source.path, dilate=request.mask_dilate)
        return Decision(Same(mask), "infrared", notes=mask.notes, warnings=mask.warnings)
    masks = read_masks(request.mask) if request.kind == CLIP else None
    if masks is None or (masks.count == 1 and masks.clip is not None and masks.clip.format != FOLDER):
        mask = holes.from_image(
            *read_mask(request.mask), source.shape[:2], name=str(request.mask), picture=source.path,
            threshold=request.mask_threshold, invert=request.invert_mask, dilate=request.mask_dilate,
        )  # fmt: skip
        return _of_mask(request, Same(mask, frozenset(numbers)), mask)
    return Decision(
        _moving(request, source, masks, numbers), "mask", mask=str(request.mask), sha256=masks.sha256, moving=True
    )


def _of_mask(request, found, mask):
    sha256 = digest(request.mask) if request.kind == CLIP else None
    return Decision(found, "mask", mask=str(request.mask), sha256=sha256, notes=mask.notes, warnings=mask.warnings)


def _by_colour(request, source):
    shape = source.colour_shape
    if source.full_range is None or source.mode == "CMYK" or (len(shape) == 3 and shape[2] != 3):
        what = "frames" if request.kind == CLIP else "pictures"
        raise ConfigError(
            f"{source.path}: `mask_color` is for grey and RGB {what} with 8 or 16 bits, not for {source.kind}"
        )
    if request.kind != CLIP:
        colour = source.media.colour
        mask = holes.from_color(
            colour,
            request.mask_color,
            picture=source.path,
            tolerance=request.mask_tolerance,
            dilate=request.mask_dilate,
            lossy=source.media.format == "JPEG",
        )
        return Decision(Same(mask), "color", warnings=mask.warnings)
    color = holes.color_of_holes(request.mask_color, shape, source.path)
    return Decision(Coloured(color, request.mask_tolerance, request.mask_dilate), "color")


def _by_transparency(request, source):
    if not source.has_alpha:
        what = "clip" if request.kind == CLIP else "picture"
        raise ConfigError(
            f"{source.path}: `mask=alpha` needs a {what} with transparency, and this one is {source.kind}"
        )
    if request.kind == CLIP:
        return Decision(Transparent(request.mask_dilate), "alpha")
    alpha = source.media.values[..., -1]
    mask = holes.from_alpha(alpha, source.full_range or 1, picture=source.path, dilate=request.mask_dilate)
    return Decision(Same(mask), "alpha", notes=mask.notes, warnings=mask.warnings)


def _simulated(request, source, begin, end):
    shape, ratio, pattern, seed = source.colour_shape, request.missing_ratio, request.pattern, request.seed
    if request.kind == CLIP and pattern != "frames":
        return Simulated(shape, ratio, pattern, seed)
    rng = stream(seed, HOLES)
    if request.kind == CLIP:
        lost = holes.lost_frames(end - begin, ratio, rng)
        return Lost(shape, frozenset(begin + np.flatnonzero(lost)))
    simulate = holes.simulate_tensor if request.kind == TENSOR else holes.simulate
    return Same(holes.Mask(simulate(shape, ratio, pattern, rng)))


def _moving(request, clip, masks, numbers):
    if masks.count != len(numbers):
        if request.mask_frames is not None:
            raise MaskError(
                f"mask {request.mask} has {masks.count} frames but `mask_frames` names {len(numbers)} of the "
                f"{clip.count} of clip {clip.path}; give {len(numbers)} masks, or one picture for all of them"
            )
        raise MaskError(
            f"mask {request.mask} has {masks.count} frames but clip {clip.path} has {clip.count}; give one picture for "
            "all frames, one a frame, or say with `mask_frames` which frames they are for"
        )
    if masks.size != tuple(clip.shape[:2]):
        raise holes.wrong_size(f"mask {request.mask}", masks.size, f"clip {clip.path}", clip.shape[:2])
    top = max(holes.largest_level(levels, str(request.mask)) for levels, _ in masks.frames())
    unit = holes.unit_of(top, str(request.mask))
    if 0 < top * unit < request.mask_threshold and not request.invert_mask:
        what = f"mask {request.mask} marks nothing in any frame"
        raise holes.nothing_marked(what, top * unit, f"{request.mask_threshold:g}")
    return Moving(masks, numbers, unit, request.mask_threshold, request.invert_mask, request.mask_dilate)
