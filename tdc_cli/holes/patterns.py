"""Patterns of missing entries: drawn for pictures, frames of clips, and tensors."""

import numpy as np

from .. import listed
from ..errors import ConfigError, MaskError

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
        One of `PATTERNS`. ``entries`` counts entries, each channel by itself; ``rows`` and ``columns`` count whole rows
        and columns; the others count pixels, all channels of a pixel going together. The count is exactly ``round(ratio
        * N)``.
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
    _check_ratio(ratio, "entries")
    missing = PATTERNS[pattern](shape, ratio, rng)
    if missing.all():
        raise MaskError(f"missing ratio {ratio:g} leaves nothing of the shape {shape}; give a smaller ratio")
    return ~missing


def _check_ratio(ratio, what):
    if not 0 <= ratio < 1:
        raise ConfigError(
            f"missing ratio {ratio:g} is not in [0, 1): give the share of missing {what}, 0.9 for 90 percent"
        )


def simulate_frame(shape, ratio, pattern, number, streams):
    """Draw which entries of one frame of a clip are missing, as `simulate` does it for a picture.

    ``blocks`` move on from frame to frame; the other patterns are drawn anew for each. Whole frames are drawn by
    `lost_frames`.

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
        ``draw(size, rng)`` returns the rows and columns (two int arrays) of one shape; those outside the picture are
        ignored.
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

    With the `number` of a frame it moves from frame to frame, by a twentieth of the shorter side at most, and comes in
    again where it has gone out.
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
        raise ConfigError(
            f"no missing pattern '{pattern}' of tensors; there are: entries, and fibers:AXES such as fibers:0,1"
        ) from None
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
        ``entries``; or ``fibers:AXES``, such as ``fibers:0,1``, which hides together all entries that share their
        indices in the named modes, counted from 0. The count is exactly ``round(ratio * N)`` of the entries or of the
        fibers.
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
        raise ConfigError(
            f"missing pattern '{pattern}' names axis {max(axes)}; a tensor of order {order} has axes 0 to {order - 1}"
        )
    _check_ratio(ratio, "fibers")
    sizes = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    count = int(np.prod(sizes))
    missing = _some(count, ratio, rng)
    if missing.all():
        raise MaskError(
            f"missing ratio {ratio:g} leaves none of the {count} fibers of '{pattern}'; give a smaller ratio or other "
            "axes"
        )
    return ~np.broadcast_to(missing.reshape(sizes), shape)
