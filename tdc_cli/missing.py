"""Which entries are missing: simulated patterns, mask pictures, transparency, and a colour that stands for holes.

Everywhere in this package a bool array says what is *observed*: True = observed. Mask pictures say the opposite, white =
missing; `from_image` is the one place that knows so.
"""

import re
from dataclasses import dataclass

import numpy as np

from . import listed
from .errors import ConfigError, MaskError

_IDLE_DRAWS = 200  # shapes in a row that hide nothing new, after which single pixels complete the count
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789"


def simulate(shape, ratio, pattern, rng):
    """Draw which entries of a picture are missing.

    Parameters
    ----------
    shape : tuple of int
        ``(H, W)`` or ``(H, W, C)``; C channels.
    ratio : float
        Share that is missing, in [0, 1).
    pattern : str
        One of `PATTERNS`. ``entries`` counts entries, each channel by itself; ``rows`` and ``columns`` count whole rows and
        columns; the others count pixels, all channels of a pixel going together. The count is exactly ``round(ratio * N)``.
    rng : numpy.random.Generator
        The holes depend on its state and on the other arguments only.

    Returns
    -------
    ndarray of bool, of `shape`
        True = observed.

    Raises
    ------
    ConfigError
        Unknown pattern, or a ratio outside [0, 1).
    MaskError
        The ratio rounds up to everything.
    """
    if pattern not in PATTERNS:
        raise ConfigError(f"no missing pattern '{pattern}'; there are: {', '.join(PATTERNS)}")
    if not 0 <= ratio < 1:
        raise ConfigError(f"missing ratio {ratio:g} is not in [0, 1): give the share of missing entries, 0.9 for 90 percent")
    missing = PATTERNS[pattern](shape, ratio, rng)
    if missing.all():
        raise MaskError(f"missing ratio {ratio:g} leaves nothing of the shape {shape}; give a smaller ratio")
    return ~missing


def simulate_frame(shape, ratio, pattern, number, streams):
    """Draw which entries of one frame of a clip are missing, as `simulate` does it for a picture.

    ``blocks`` move on from frame to frame; the other patterns are drawn anew for each. Whole frames are drawn by `lost_frames`.

    Parameters
    ----------
    shape, ratio, pattern
        See `simulate`.
    number : int
        Of the frame, from 0.
    streams : callable
        ``streams(n)`` gives a new generator of the random numbers of frame ``n``: the same ones for the same ``n``.

    Returns
    -------
    ndarray of bool, of `shape`
        True = observed.
    """
    if pattern != "blocks":
        return simulate(shape, ratio, pattern, streams(number))
    return ~_moving_blocks(number)(shape, ratio, streams(0))


def lost_frames(count, ratio, rng):
    """Draw which frames of a clip are lost altogether.

    Parameters
    ----------
    count : int
        Frames of the clip.
    ratio : float
        Share that is lost, in [0, 1): exactly ``round(ratio * count)`` frames.
    rng : numpy.random.Generator

    Returns
    -------
    (count,) ndarray of bool
        True = lost.

    Raises
    ------
    MaskError
        The ratio rounds up to everything.
    """
    lost = _some(count, ratio, rng)
    if lost.all():
        raise MaskError(f"missing ratio {ratio:g} leaves no frame of {count}; give a smaller ratio")
    return lost


def _some(n, ratio, rng):
    """(n,) bool, exactly ``round(ratio * n)`` of them True, each subset equally likely."""
    missing = np.zeros(n, dtype=bool)
    missing[rng.choice(n, round(ratio * n), replace=False, shuffle=False)] = True
    return missing


def _all_channels(missing, shape):
    """`missing` of shape (H, W), (H, 1) or (1, W) repeated to `shape`."""
    return np.broadcast_to(missing.reshape(missing.shape + (1,) * (len(shape) - 2)), shape).copy()


def _entries(shape, ratio, rng):
    return _some(int(np.prod(shape)), ratio, rng).reshape(shape)


def _pixels(shape, ratio, rng):
    return _all_channels(_some(shape[0] * shape[1], ratio, rng).reshape(shape[:2]), shape)


def _rows(shape, ratio, rng):
    return _all_channels(_some(shape[0], ratio, rng)[:, None], shape)


def _columns(shape, ratio, rng):
    return _all_channels(_some(shape[1], ratio, rng)[None, :], shape)


def _shapes(draw):
    """A pattern that draws shapes at random places until the count of missing pixels is reached, the last one trimmed.

    Parameters
    ----------
    draw : callable
        ``draw(size, rng)`` returns the rows and columns (two int arrays) of one shape; those outside the picture are ignored.
    """

    def pattern(shape, ratio, rng):
        height, width = size = shape[:2]
        missing = np.zeros(size, dtype=bool)
        left = round(ratio * height * width)
        idle = 0
        while left and idle < _IDLE_DRAWS:
            rows, columns = draw(size, rng)
            inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
            rows, columns = rows[inside], columns[inside]
            new = ~missing[rows, columns]
            rows, columns = rows[new][:left], columns[new][:left]
            missing[rows, columns] = True
            left -= len(rows)
            idle = 0 if len(rows) else idle + 1
        if left:  # the shapes cannot reach the remaining places: a very high ratio on a small picture
            missing.reshape(-1)[rng.choice(np.flatnonzero(~missing), left, replace=False)] = True
        return _all_channels(missing, shape)

    return pattern


def _block(size, rng, number=None):
    """Rectangle with sides between a thirty-second and a sixth of the picture's shorter side.

    With the `number` of a frame it moves from frame to frame, by a twentieth of the shorter side at most, and comes in again where it has
    gone out.
    """
    short = min(size)
    height, width = rng.integers(max(1, short // 32), max(1, short // 6) + 1, size=2)
    top, left = rng.integers(1 - height, size[0]), rng.integers(1 - width, size[1])
    if number is not None:
        down, right = rng.integers(-max(1, short // 20), max(1, short // 20) + 1, size=2)
        top = (top + number * down + height - 1) % (size[0] + height - 1) + 1 - height
        left = (left + number * right + width - 1) % (size[1] + width - 1) + 1 - width
    rows, columns = np.mgrid[top : top + height, left : left + width]
    return rows.ravel(), columns.ravel()


def _moving_blocks(number):
    return _shapes(lambda size, rng: _block(size, rng, number))


def _word(size, rng):
    """A word of 3 to 9 letters and digits in Pillow's own font, an eighth of the shorter side high at most."""
    from PIL import Image, ImageDraw, ImageFont

    short = min(size)
    points = int(rng.integers(max(8, short // 20), max(10, short // 8) + 1))
    word = "".join(_LETTERS[i] for i in rng.integers(len(_LETTERS), size=rng.integers(3, 10)))
    font = ImageFont.load_default(points)
    left, top, right, bottom = (int(b) for b in font.getbbox(word))
    canvas = Image.new("L", (right - left + 1, bottom - top + 1))
    ImageDraw.Draw(canvas).text((-left, -top), word, fill=255, font=font)
    rows, columns = np.nonzero(np.asarray(canvas) >= 128)
    return rows + rng.integers(1 - canvas.height, size[0]), columns + rng.integers(1 - canvas.width, size[1])


def _scratch(size, rng):
    """A bent line of 2 to 5 pieces, one to a few pixels wide, that keeps its direction more or less."""
    from PIL import Image, ImageDraw

    short = min(size)
    angle = rng.uniform(0, 2 * np.pi)
    points = [rng.uniform(0, 1, 2) * (size[1], size[0])]
    for _ in range(rng.integers(2, 6)):
        angle += rng.normal(0, 0.4)
        points.append(points[-1] + rng.uniform(0.05, 0.25) * short * np.array([np.cos(angle), np.sin(angle)]))
    width = int(rng.integers(1, max(1, short // 85) + 2))
    corner = np.floor(np.min(points, axis=0)).astype(int) - width
    extent = np.ceil(np.max(points, axis=0)).astype(int) + width - corner + 1
    canvas = Image.new("1", (int(extent[0]), int(extent[1])))
    ImageDraw.Draw(canvas).line([tuple(p - corner) for p in points], fill=1, width=width)
    rows, columns = np.nonzero(np.asarray(canvas))
    return rows + corner[1], columns + corner[0]


PATTERNS = {
    "entries": _entries,
    "pixels": _pixels,
    "rows": _rows,
    "columns": _columns,
    "blocks": _shapes(_block),
    "text": _shapes(_word),
    "scratches": _shapes(_scratch),
}
# Those of a clip.
CLIP_PATTERNS = (*PATTERNS, "frames")
# A mask pixel nearer to black than this, of 255, is black but for compression.
FAINT = 16


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
    """

    observed: np.ndarray
    grey_levels: int = 0
    notes: tuple = ()
    warnings: tuple = ()

    def over(self, shape):
        """`observed` for colours of a shape, a view: the same in every channel where the mask has none."""
        return np.broadcast_to(self.observed.reshape(self.observed.shape + (1,) * (len(shape) - self.observed.ndim)), shape)


def in_any_channel(missing):
    """(H, W) ndarray of bool: where any channel of (H, W) or (H, W, C) `missing` is."""
    return missing.reshape(*missing.shape[:2], -1).any(axis=2)


def from_image(levels, alpha, size, *, name, picture, threshold=128, invert=False, dilate=0):
    """Read a mask picture: white = missing.

    The range of the levels is recognised from their largest value: 1 (masks of 0 and 1), 255, or 65535 (16 bits). A mask whose
    colour is the same everywhere but whose alpha is not holds the hole in alpha; there, transparent = missing. In any other
    mask with alpha, a pixel is missing where it is white and opaque.

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
        raise MaskError(
            f"mask {name} is {levels.shape[1]}x{levels.shape[0]} pixels but picture {picture} is {size[1]}x{size[0]}; "
            "they must have the same size"
        )
    notes, warnings = [], []
    levels = _to_255(np.asarray(levels, dtype=float), name)
    if alpha is not None and levels.min() == levels.max() and alpha.min() < alpha.max():
        levels, opaque = 255.0 - alpha, None
        notes.append(f"mask {name} has one colour only: its alpha was used, transparent = missing (--invert-mask: opaque)")
    else:
        opaque = None if alpha is None else alpha >= 128
    grey = int(np.count_nonzero((levels > 0) & (levels < 255)))
    missing = levels >= threshold
    if opaque is not None:
        missing &= opaque
    if not missing.any() and levels.max() > 0 and not invert:
        raise MaskError(
            f"mask {name} marks nothing: its brightest pixel is {levels.max():g} of 255, below the threshold {threshold:g}"
            + (", or transparent" if opaque is not None else "")
            + "; white = missing; give a lower --mask-threshold or repaint the mask"
        )
    faint = (levels <= 255 - FAINT if invert else levels >= FAINT) & (True if opaque is None else opaque)
    if invert:
        missing = ~missing
    soft = int(np.count_nonzero(faint & ~missing))
    missing = grown(missing, dilate)
    share = missing.mean()
    if share == 1:
        hint = (
            "white = missing, so it must leave some pixels black; try it without --invert-mask"
            if invert
            else ("white = missing, so leave some pixels black, or try --invert-mask")
        )
        raise MaskError(f"mask {name} marks every pixel of {picture} as missing: nothing is left to complete from; {hint}")
    if not share:
        notes.append(f"mask {name} marks nothing as missing: the output equals the input")
    elif share > 0.5:
        warnings.append(
            f"mask {name} marks {share:.1%} of the pixels as missing; white = missing: if it is meant the other way round, "
            + ("leave out --invert-mask" if invert else "use --invert-mask")
        )
    between = int(np.count_nonzero((levels >= FAINT) & (levels <= 255 - FAINT)))
    if between > 0.05 * levels.size:
        warnings.append(
            f"mask {name} has {between} pixels that are neither black nor white; those of at least {threshold:g} are missing"
        )
    if soft and not dilate:
        notes.append(
            f"mask {name} has soft edges: {soft} grey pixels count as known; if a rim of the damage stays, give --mask-dilate 2"
        )
    return Mask(~missing, grey, tuple(notes), tuple(warnings))


def from_levels(levels, alpha, *, threshold=128, invert=False, dilate=0):
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
        missing &= alpha >= 128
    return Mask(~grown(~missing if invert else missing, dilate), int(np.count_nonzero((levels > 0) & (levels < 255))))


def _to_255(levels, name):
    """`levels` scaled so that white is 255, by their largest value."""
    if not np.isfinite(levels).all() or levels.min() < 0:
        raise MaskError(f"mask {name} has levels that are negative or not finite; paint it black and white")
    return levels * unit_of(levels.max(), name)


def unit_of(top, name):
    """Factor that brings mask levels, `top` the largest of them, to 0..255; MaskError where it is too large."""
    if top <= 1:
        return 255
    if top <= 255:
        return 1
    if top <= 65535:
        return 1 / 257
    raise MaskError(f"mask {name} has levels up to {top:g}; only 0..1, 0..255 and 0..65535 are understood: save it as 8-bit grey")


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
            f"--mask-dilate {dilate + 2}"
        )
    return Mask(~missing, soft, tuple(notes))


def parse_color(text):
    """Red, green and blue, 0 to 255, of a colour such as ``#ff00ff`` or ``#f0f``.

    Raises
    ------
    ConfigError
        Another way to write a colour.
    """
    digits = re.fullmatch(r"#?([0-9a-fA-F]{6}|[0-9a-fA-F]{3})", text)
    if not digits:
        raise ConfigError(f"--mask-color {text!r} is not of the form '#ff00ff': red, green, blue, two hexadecimal digits each")
    pairs = digits[1] if len(digits[1]) == 6 else "".join(2 * digit for digit in digits[1])
    return tuple(int(pairs[i : i + 2], 16) for i in (0, 2, 4))


def from_color(colour, color, *, picture, tolerance=0, dilate=0):
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
    wanted = parse_color(color)
    if colour.ndim == 2 and len(set(wanted)) > 1:
        raise ConfigError(f"{picture} is grey, and --mask-color {color} is not; give a grey such as '#ffffff'")
    farthest = color_distance(colour, wanted)
    missing = farthest <= tolerance
    if not missing.any():
        nearest = int(np.ceil(farthest.min()))
        raise MaskError(
            f"{picture}: no pixel has the color {color}; the nearest differs by {nearest} of 255: "
            f"give another color or --mask-tolerance {nearest}"
        )
    missing = grown(missing, dilate)
    if missing.all():
        raise MaskError(f"{picture}: every pixel has the color {color}: nothing is left to complete from")
    return Mask(~missing)


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


def tensor_axes(pattern):
    """Modes that the pattern ``fibers:0,1`` of a tensor names, a tuple; None for ``entries``.

    Raises
    ------
    ConfigError
        Another pattern, or a mode named twice.
    """
    if pattern == "entries":
        return None
    kind, _, named = pattern.partition(":")
    try:
        if kind != "fibers":
            raise ValueError
        axes = tuple(map(int, listed.parts(named)))
    except ValueError:
        raise ConfigError(f"no missing pattern '{pattern}' of tensors; there are: entries, and fibers:AXES such as fibers:0,1") from None
    if min(axes) < 0:
        raise ConfigError(f"missing pattern '{pattern}' names an axis below 0; they are counted from 0")
    if len(set(axes)) < len(axes):
        raise ConfigError(f"missing pattern '{pattern}' names an axis twice")
    return axes


def simulate_tensor(shape, ratio, pattern, rng):
    """Draw which entries of a tensor are missing.

    Parameters
    ----------
    shape : tuple of int
        ``(n_1, ..., n_K)``.
    ratio : float
        Share that is missing, in [0, 1).
    pattern : str
        ``entries``; or ``fibers:AXES``, such as ``fibers:0,1``, which hides together all entries that share their indices in the named
        modes, counted from 0. The count is exactly ``round(ratio * N)`` of the entries or of the fibers.
    rng : numpy.random.Generator
        The holes depend on its state and on the other arguments only.

    Returns
    -------
    ndarray of bool, of `shape`
        True = observed.

    Raises
    ------
    ConfigError
        Unknown pattern, a mode that the tensor does not have, or a ratio outside [0, 1).
    MaskError
        The ratio rounds up to everything.
    """
    axes = tensor_axes(pattern)
    if axes is None:
        return simulate(shape, ratio, "entries", rng)
    order = len(shape)
    if max(axes) >= order:
        raise ConfigError(f"missing pattern '{pattern}' names axis {max(axes)}; a tensor of order {order} has axes 0 to {order - 1}")
    if not 0 <= ratio < 1:
        raise ConfigError(f"missing ratio {ratio:g} is not in [0, 1): give the share of missing fibers, 0.9 for 90 percent")
    sizes = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    count = int(np.prod(sizes))
    missing = _some(count, ratio, rng)
    if missing.all():
        raise MaskError(f"missing ratio {ratio:g} leaves none of the {count} fibers of '{pattern}'; give a smaller ratio or other axes")
    return ~np.broadcast_to(missing.reshape(sizes), shape)


def from_array(marked, shape, *, name, tensor, invert=False):
    """Read an array that marks what is missing in a tensor.

    Parameters
    ----------
    marked : ndarray of bool
        True = marked. In each mode it has the size of the tensor, or 1: then it is the same all along that mode. Where it has fewer
        modes, those that lack count as 1, as in MATLAB, which drops them.
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
            f"mask {name} has shape {_by(marked.shape)} but {tensor} has {_by(shape)}; a mask has the same size in every mode, or 1"
        )
    missing = np.broadcast_to((~marked if invert else marked).reshape(sizes), shape)
    share = missing.mean()
    other = "leave out --invert-mask" if invert else "use --invert-mask"
    what = "0 = missing" if invert else "any number but 0 = missing"
    if share == 1:
        raise MaskError(
            f"mask {name} marks all of {tensor} as missing: nothing is left to complete from; {what}: if meant the other way round, {other}"
        )
    notes, warnings = (), ()
    if not share:
        notes = (f"mask {name} marks nothing as missing: the output equals the input",)
    elif share > 0.5:
        warnings = (f"mask {name} marks {share:.1%} of the entries as missing; {what}: if it is meant the other way round, {other}",)
    return Mask(~missing, notes=notes, warnings=warnings)


def empty_slices(observed):
    """Mode to the number of its slices of which nothing is observed, a dict, for the modes that have such slices.

    Parameters
    ----------
    observed : (n_1, ..., n_K) ndarray of bool
    """
    counts = {k: int((~observed.any(axis=tuple(m for m in range(observed.ndim) if m != k))).sum()) for k in range(observed.ndim)}
    return {mode: count for mode, count in counts.items() if count}


def _by(shape):
    return "x".join(str(n) for n in shape)
