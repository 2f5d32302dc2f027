"""Completed pictures side by side, with a part of each enlarged."""

import numpy as np

from . import figures as drawing

ACROSS = 5  # pictures in a row
ZOOM = 4  # the enlarged square has this share of the shorter side


def busiest(picture):
    """Corner and side of the square of a quarter of the shorter side that varies most, where details show.

    Parameters
    ----------
    picture : (H, W) or (H, W, C) ndarray

    Returns
    -------
    top, left, side : int
    """
    side = max(1, min(picture.shape[:2]) // ZOOM)
    corners = [(top, left) for top in range(0, picture.shape[0] - side + 1, max(1, side // 2))
               for left in range(0, picture.shape[1] - side + 1, max(1, side // 2))]  # fmt: skip
    spread = [picture[top : top + side, left : left + side].var(axis=(0, 1)).sum() for top, left in corners]
    return *corners[int(np.argmax(spread))], side


def draw(pictures, zoom=None):
    """PNG with a picture for each method, row by row.

    Parameters
    ----------
    pictures : dict of str to (H, W) or (H, W, C) ndarray of uint8
        By the title of each.
    zoom : tuple or None
        What `busiest` gives: a square that is framed, and enlarged below the picture.
    """
    rows = -(-len(pictures) // ACROSS)
    height, width = next(iter(pictures.values())).shape[:2]
    each = drawing.PAGE / ACROSS
    tall = each * height / width + (each if zoom else 0) + 0.25
    with drawing.canvas(rows * (2 if zoom else 1), ACROSS, height=rows * tall) as (figure, axes):
        for one in axes.flat:
            one.set_axis_off()
        for i, (title, picture) in enumerate(pictures.items()):
            row, column = divmod(i, ACROSS)
            whole = axes[row * (2 if zoom else 1), column]
            _show(whole, picture)
            whole.set_title(title)
            if zoom:
                top, left, side = zoom
                x, y = np.array([0, side, side, 0, 0]) + left - 0.5, np.array([0, 0, side, side, 0]) + top - 0.5
                whole.plot(x, y, color=drawing.COLOURS[1], linewidth=0.8)
                _show(axes[2 * row + 1, column], picture[top : top + side, left : left + side])
        return drawing.png(figure)


def _show(axes, picture):
    axes.imshow(
        picture[..., 0] if picture.ndim == 3 and picture.shape[2] == 1 else picture,
        cmap="gray",
        vmin=0,
        vmax=255,
        interpolation="nearest",
    )


def load(record, name):
    """An array that a record keeps, or None."""
    if not record["arrays"]:
        return None
    with np.load(record["arrays"]) as held:
        return held[name]
