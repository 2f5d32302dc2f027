"""Masks: what a picture, transparency, a colour or an array says is missing.

Mask pictures say white = missing, everywhere else True = observed; `from_image` is the one place that knows so.
"""

import re
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, MaskError, MaskSizeError
from ..listed import percent
from ..names import WHITE

# A mask pixel nearer to black than this, of 255, is black but for compression.
FAINT = 16
# A tolerance up to this, of 255, is proposed where a colour is not there: more would take other things for holes. In a
# JPEG, which smears colours over two pixels, holes grown by as many then hold nearly all that had the colour.
NEAR, SMEARED = 48, 2
# A pixel of a JPEG that differs from a colour by no more, of 255, may have had it: thin strokes keep it nowhere.
ALIKE = 64
# Of these, holes that were meant hold this share.
ALL_BUT = 0.95


@dataclass(frozen=True)
class Mask:
    """What a mask picture says.

    Attributes
    ----------
    observed : (H, W) ndarray of bool
        True = observed.
    grey_levels : int
        Pixels of the mask that were neither black nor white.
    notes, warnings : tuple of str
        What the user should know about how the mask was understood.
    by_value : int
        Entries that the mask leaves alone and whose own values say that they are missing.
    kept : ndarray of bool or None
        Entries that stay as they are, neither observed nor to be filled.
    """

    observed: np.ndarray
    grey_levels: int = 0
    notes: tuple = ()
    warnings: tuple = ()
    by_value: int = 0
    kept: np.ndarray | None = None

    def over(self, shape):
        """`observed` for colours of a shape, a view: the same in every channel where the mask has none."""
        return over(self.observed, shape)


def over(marked, shape):
    """`marked`, of pixels or of entries, for colours of a shape, a view: the same in every channel where it has none.
    """
    return np.broadcast_to(marked.reshape(marked.shape + (1,) * (len(shape) - marked.ndim)), shape)


def in_any_channel(missing):
    """(H, W) ndarray of bool: where any channel of (H, W) or (H, W, C) `missing` is."""
    return missing.reshape(*missing.shape[:2], -1).any(axis=2)


def from_image(levels, alpha, size, *, name, picture, threshold=WHITE, invert=False, dilate=0):
    """Read a mask picture: white = missing.

    The range of the levels is recognised from their largest value: 1 (masks of 0 and 1), 255, or 65535 (16 bits). A
    mask whose colour is the same everywhere but whose alpha is not holds the hole in alpha; there, transparent =
    missing. In any other mask with alpha, a pixel is missing where it is white and opaque.

    Parameters
    ----------
    levels : (H, W) ndarray
        Grey levels of the mask; bool, integer or float, not negative.
    alpha : (H, W) ndarray, or None
        0 = transparent, 255 = opaque; any numbers between.
    size : (int, int)
        Height and width of the picture that the mask belongs to.
    name, picture : str
        Names of the two files, for messages.
    threshold : float
        Missing where the level, brought to 0..255, is at least this.
    invert : bool
        Black (or, where alpha decides, opaque) = missing instead.
    dilate : int
        Grow the holes by so many pixels in every direction, diagonals included.

    Returns
    -------
    Mask

    Raises
    ------
    MaskError
        Sizes differ, everything is missing, or no pixel of a mask that is not black reaches the threshold.
    """
    if levels.shape != tuple(size):
        raise wrong_size(f"mask {name}", levels.shape, f"picture {picture}", size)
    notes, warnings = [], []
    levels = _to_255(levels, name)
    if alpha is not None and levels.min() == levels.max() and alpha.min() < alpha.max():
        levels, opaque = 255.0 - alpha, None
        notes.append(
            f"mask {name} has one colour only: its alpha was used, transparent = missing (`invert_mask`: opaque)"
        )
    else:
        opaque = None if alpha is None else alpha >= WHITE
    grey = int(np.count_nonzero((levels > 0) & (levels < 255)))
    missing = levels >= threshold
    if opaque is not None:
        missing &= opaque
    if not missing.any() and levels.max() > 0 and not invert:
        where = ", or transparent" if opaque is not None else ""
        raise nothing_marked(f"mask {name} marks nothing", levels.max(), f"{threshold:g}{where}")
    faint = (levels <= 255 - FAINT if invert else levels >= FAINT) & (True if opaque is None else opaque)
    if invert:
        missing = ~missing
    soft = int(np.count_nonzero(faint & ~missing))
    missing = grown(missing, dilate)
    share = missing.mean()
    if share == 1:
        hint = (
            "white = missing, so it must leave some pixels black; try it without `invert_mask`"
            if invert
            else ("white = missing, so leave some pixels black, or try `invert_mask`")
        )
        raise MaskError(
            f"mask {name} marks every pixel of {picture} as missing: nothing is left to complete from; {hint}"
        )
    if not share:
        notes.append(f"mask {name} marks nothing as missing: the output equals the input")
    elif share > 0.5:
        warnings.append(much_marked(name, share, "pixels", "white = missing", invert))
    between = int(np.count_nonzero((levels >= FAINT) & (levels <= 255 - FAINT)))
    if between > 0.05 * levels.size:
        warnings.append(
            f"mask {name} has {between} pixels that are neither black nor white; those of at least {threshold:g} are "
            "missing"
        )
    if soft and not dilate:
        notes.append(
            f"mask {name} has soft edges: {soft} grey pixels count as known; if a rim of the damage stays, give "
            "`mask_dilate=2`"
        )
    return Mask(~missing, grey, tuple(notes), tuple(warnings))


def wrong_size(what, size, other, wanted):
    """The MaskSizeError of `what`, of a size (H, W), which is not that of `other`."""
    sizes = [f"{width}x{height}" for height, width in (size, wanted)]
    turned = tuple(size) == tuple(wanted)[::-1]
    hint = "; a picture that its EXIF orientation turns counts as it is shown, upright" if turned else ""
    return MaskSizeError(f"{what} is {sizes[0]} pixels but {other} is {sizes[1]}; they must have the same size{hint}")


def nothing_marked(what, top, threshold):
    """The MaskError of a mask whose largest level is `top` of 255, below a threshold in words."""
    return MaskError(
        f"{what}: its brightest pixel is {top:g} of 255, below the threshold {threshold}; white = missing; give a "
        "lower `mask_threshold` or repaint the mask"
    )


def much_marked(name, share, of, meaning, invert):
    """A warning for a mask that may be meant the other way round: it marks more than half of its pixels or entries."""
    other = "leave out `invert_mask`" if invert else "use `invert_mask`"
    text = f"mask {name} marks {percent(share)} of the {of} as missing; {meaning}: if it is meant the other way round"
    return f"{text}, {other}"


def from_levels(levels, alpha, *, threshold=WHITE, invert=False, dilate=0):
    """Read the mask of one frame of a clip; what is found out of all of them together is the caller's.

    Parameters
    ----------
    levels : (H, W) ndarray
        From 0 to 255.
    alpha : (H, W) ndarray, or None
        0 = transparent, 255 = opaque; what is transparent is not missing.
    threshold, invert, dilate
        See `from_image`.

    Returns
    -------
    Mask
        Everything may be missing.
    """
    missing = levels >= threshold
    if alpha is not None:
        missing &= alpha >= WHITE
    return Mask(~grown(~missing if invert else missing, dilate), int(np.count_nonzero((levels > 0) & (levels < 255))))


def _to_255(levels, name):
    """`levels` scaled so that white is 255, by their largest value; those of 8 bits are not made larger by it."""
    if levels.dtype.kind == "b" or levels.dtype == np.uint8:
        return levels.view(np.uint8) * np.uint8(255) if levels.max() <= 1 else levels
    levels = np.asarray(levels, dtype=float)
    return levels * unit_of(largest_level(levels, name), name)


def largest_level(levels, name):
    """The largest of the levels of a mask, a float; MaskError where any is negative or not finite."""
    if not np.isfinite(levels).all() or levels.min() < 0:
        raise MaskError(f"mask {name} has levels that are negative or not finite; paint it black and white")
    return float(levels.max())


def unit_of(top, name):
    """Factor that brings mask levels, `top` the largest of them, to 0..255; MaskError where it is too large."""
    if top <= 1:
        return 255
    if top <= 255:
        return 1
    if top <= 65535:
        return 1 / 257
    raise MaskError(
        f"mask {name} has levels up to {top:g}; only 0..1, 0..255 and 0..65535 are understood: save it as 8-bit grey"
    )


def grown(missing, pixels):
    """(H, W) `missing` grown by so many pixels in every direction, diagonals included."""
    if not pixels or not missing.any():
        return missing
    from scipy.ndimage import binary_dilation

    return binary_dilation(missing, structure=np.ones((3, 3), dtype=bool), iterations=pixels)


def from_alpha(alpha, opaque, *, picture, dilate=0):
    """Read the holes of a picture from its own transparency: what is wholly transparent is missing.

    Parameters
    ----------
    alpha : (H, W) ndarray
        0 = transparent.
    opaque : float
        Alpha of what is not transparent at all.
    picture : str
        Name of the file, for messages.
    dilate : int
        Grow the holes by so many pixels in every direction, diagonals included.

    Returns
    -------
    Mask
        Its grey levels are the pixels that are partly transparent.

    Raises
    ------
    MaskError
        Everything is transparent.
    """
    missing = grown(alpha == 0, dilate)
    if missing.all():
        raise MaskError(f"{picture}: every pixel is transparent: nothing is left to complete from")
    partly = (alpha > 0) & (alpha < opaque)
    soft, left = int(np.count_nonzero(partly)), int(np.count_nonzero(partly & ~missing))
    notes = []
    if not missing.any():
        notes.append(f"{picture}: no pixel is wholly transparent: the output equals the input")
    elif left:
        notes.append(
            f"{picture}: {left} pixels are partly transparent and count as known; if a rim of the damage stays, give "
            f"`mask_dilate={dilate + 2}`"
        )
    return Mask(~missing, soft, tuple(notes))


def parse_box(text):
    """Left, top, width and height of a box such as ``-120,-40,100,30`` or ``5%,5%,20%,10%``: (number, in percent) each.

    Raises
    ------
    ConfigError
        Another way to write a box, or one without extent.
    """
    numbers = re.fullmatch(",".join([r"\s*([-+]?\d+(?:\.\d+)?)(%?)\s*"] * 4), text, re.ASCII)
    if not numbers:
        raise ConfigError(f"`mask_box` {text!r} is not of the form X,Y,W,H, such as 10,10,120,40 or -20%,-10%,20%,10%")
    found = [(float(number), bool(percent)) for number, percent in zip(*[iter(numbers.groups())] * 2)]
    if found[2][0] <= 0 or found[3][0] <= 0:
        raise ConfigError(f"`mask_box` {text!r} has no extent; width and height, the last two numbers, must be above 0")
    return found


def from_boxes(boxes, size, *, picture, dilate=0):
    """Read the holes of a picture from boxes.

    Parameters
    ----------
    boxes : sequence of str
        See `parse_box`: left, top, width, height in pixels, or in percent of the picture's sides; left and top below 0
        are counted from the right and the bottom.
    size : (int, int)
        Height and width of the picture.
    picture : str
        Name of the file, for messages.
    dilate : int
        Grow the holes by so many pixels in every direction, diagonals included.

    Returns
    -------
    Mask

    Raises
    ------
    ConfigError
        Not a box.
    MaskError
        A box outside of the picture, or nothing is left.
    """
    height, width = size
    missing, notes = np.zeros(size, dtype=bool), []
    for box in boxes:
        sides = (width, height, width, height)
        left, top, wide, high = (
            round(n * side / 100) if percent else round(n) for (n, percent), side in zip(parse_box(box), sides)
        )
        wide, high = max(wide, 1), max(high, 1)
        left, top = (place + side if place < 0 else place for place, side in ((left, width), (top, height)))
        inside = missing[max(0, top) : max(0, top + high), max(0, left) : max(0, left + wide)]
        if not inside.size:
            where = f"outside of its {width}x{height} pixels; X and Y are counted from the left and the top"
            raise MaskError(f"{picture}: `mask_box` {box} lies {where}")
        if inside.size < wide * high:
            rows, columns = (
                f"{max(0, start)} to {min(start + side, end) - 1}"
                for start, side, end in ((top, high, height), (left, wide, width))
            )
            notes.append(
                f"{picture}: `mask_box` {box} reaches beyond its {width}x{height} pixels: "
                f"rows {rows} and columns {columns} are missing"
            )
        inside[...] = True
    missing = grown(missing, dilate)
    if missing.all():
        raise MaskError(f"{picture}: the boxes cover every pixel: nothing is left to complete from")
    return Mask(~missing, notes=tuple(notes))


def parse_color(text):
    """Red, green and blue, 0 to 255, of a colour such as ``#ff00ff`` or ``#f0f``.

    Raises
    ------
    ConfigError
        Another way to write a colour.
    """
    digits = re.fullmatch(r"#?([0-9a-fA-F]{6}|[0-9a-fA-F]{3})", text)
    if not digits:
        raise ConfigError(
            f"`mask_color` {text!r} is not of the form '#ff00ff': red, green, blue, two hexadecimal digits each"
        )
    pairs = digits[1] if len(digits[1]) == 6 else "".join(2 * digit for digit in digits[1])
    return tuple(int(pairs[i : i + 2], 16) for i in (0, 2, 4))


def from_color(colour, color, *, picture, tolerance=0, dilate=0, lossy=False):
    """Read the holes of a picture from a colour that stands for them.

    Parameters
    ----------
    colour : (H, W) or (H, W, 3) ndarray of uint8 or uint16
        Grey levels, or red, green and blue.
    color : str
        See `parse_color`; of 16-bit pictures the same share of the full range.
    picture : str
        Name of the file, for messages.
    tolerance : float
        A pixel is missing where no channel differs by more than this, of 255.
    dilate : int
        Grow the holes by so many pixels in every direction, diagonals included.
    lossy : bool
        The file may have changed the colour a little.

    Returns
    -------
    Mask

    Raises
    ------
    ConfigError
        Not a colour, or not a grey one where the picture is grey.
    MaskError
        No pixel has the colour, or every pixel.
    """
    farthest = color_distance(colour, color_of_holes(color, colour.shape, picture))
    missing = farthest <= tolerance
    further = f"`mask_tolerance={NEAR}` with `mask_dilate={SMEARED}`, as JPEG changes colours"
    if not missing.any():
        nearest = int(np.ceil(farthest.min()))
        wider = f" or {further if lossy else f'`mask_tolerance={nearest}`'}" if nearest <= NEAR else ""
        raise MaskError(
            f"{picture}: no pixel has the colour {color}; the nearest differs by {nearest} of 255: "
            f"give another colour{wider}"
        )
    missing = grown(missing, dilate)
    if missing.all():
        raise MaskError(f"{picture}: every pixel has the colour {color}: nothing is left to complete from")
    warnings = ()
    if lossy and (tolerance < NEAR or dilate < SMEARED):
        found, left = np.count_nonzero(missing), np.count_nonzero((farthest <= ALIKE) & ~missing)
        if found < ALL_BUT * (found + left):
            warnings = (
                f"{picture}: {found} pixels are missing by the colour {color}, and {left} more are within {ALIKE} "
                f"of 255 of it; if those are missing too, give {further}",
            )
    return Mask(~missing, warnings=warnings)


def color_of_holes(text, shape, picture):
    """Red, green and blue of a colour, see `parse_color`, for pictures whose colours have this shape; ConfigError for
    one that is not grey where these are.
    """
    wanted = parse_color(text)
    if len(shape) == 2 and len(set(wanted)) > 1:
        raise ConfigError(f"{picture} is grey, and `mask_color` {text} is not; give a grey such as '#ffffff'")
    return wanted


def color_distance(colour, wanted):
    """Largest difference of the channels of each pixel from a colour, of 255.

    Parameters
    ----------
    colour : (H, W) or (H, W, 3) ndarray of uint8 or uint16
    wanted : (int, int, int)
        See `parse_color`.

    Returns
    -------
    (H, W) ndarray of float32
    """
    unit = np.iinfo(colour.dtype).max // 255
    planes = colour.reshape(*colour.shape[:2], -1)
    # A channel at a time: a large picture's differences would not fit beside it.
    farthest = np.zeros(colour.shape[:2], dtype=np.int32)
    for channel in range(planes.shape[2]):
        np.maximum(farthest, np.abs(planes[..., channel].astype(np.int32) - wanted[channel] * unit), out=farthest)
    return farthest.astype(np.float32) / np.float32(unit)


def from_array(marked, shape, *, name, tensor, invert=False):
    """Read an array that marks what is missing in a tensor.

    Parameters
    ----------
    marked : ndarray of bool
        True = marked. In each mode it has the size of the tensor, or 1: then it is the same all along that mode. Where
        it has fewer modes, those that lack count as 1, as in MATLAB, which drops them.
    shape : tuple of int
        Of the tensor.
    name, tensor : str
        Names of the two files, for messages.
    invert : bool
        What is not marked is missing instead.

    Returns
    -------
    Mask
        Observed entries of `shape`.

    Raises
    ------
    MaskError
        Shapes that do not fit, or everything is missing.
    """
    sizes = marked.shape + (1,) * (len(shape) - marked.ndim)
    if len(sizes) > len(shape) or any(size not in (1, n) for size, n in zip(sizes, shape)):
        raise MaskError(
            f"mask {name} has shape {_by(marked.shape)} but {tensor} has {_by(shape)}; a mask has the same size in "
            "every mode, or 1"
        )
    missing = np.broadcast_to((~marked if invert else marked).reshape(sizes), shape)
    share = missing.mean()
    other = "leave out `invert_mask`" if invert else "use `invert_mask`"
    what = "0 = missing" if invert else "any number but 0 = missing"
    if share == 1:
        raise MaskError(
            f"mask {name} marks all of {tensor} as missing: nothing is left to complete from; {what}: if meant the "
            f"other way round, {other}"
        )
    notes, warnings = (), ()
    if not share:
        notes = (f"mask {name} marks nothing as missing: the output equals the input",)
    elif share > 0.5:
        warnings = (much_marked(name, share, "entries", what, invert),)
    return Mask(~missing, notes=notes, warnings=warnings)


def empty_slices(observed, absent):
    """Mode to the number of its slices that have something to fill and nothing that is observed, a dict, for the modes
    that have such.

    Parameters
    ----------
    observed, absent : (n_1, ..., n_K) ndarray of bool
        What is observed, and what is to be filled.
    """
    counts = {}
    for mode in range(observed.ndim):
        others = tuple(k for k in range(observed.ndim) if k != mode)
        counts[mode] = int(np.count_nonzero(absent.any(axis=others) & ~observed.any(axis=others)))
    return {mode: count for mode, count in counts.items() if count}


def _by(shape):
    return "x".join(str(n) for n in shape)
