"""Pictures for humans: what was missing, what came out, and how sure it is.

Figures are made without pyplot, so that nothing is kept between calls and no display is needed.
"""

import io

import numpy as np

from .display import COLOUR_SCALE, limits, over_channels, over_checkerboard, to_bytes, top


def _heat(axes, values, title, end):
    """Draw (H, W) `values` on the colour scale from 0 to `end`; returns what a colour bar is made from."""
    axes.set_title(title)
    axes.set_axis_off()
    return axes.imshow(values, cmap=COLOUR_SCALE, vmin=0, vmax=end, interpolation="nearest")


def _colour_bar(figure, shown, axes, label, beyond):
    """Colour bar beside `axes`, with an arrow where values lie beyond its end."""
    figure.colorbar(shown, ax=axes, fraction=0.046, pad=0.03, label=label, extend="max" if beyond else "neither")


def _png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _figure(width, height):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_uncertainty(sd, units):
    """PNG of the standard deviation with a colour bar.

    Parameters
    ----------
    sd : (H, W) or (H, W, C) ndarray
        Not negative; averaged over channels.
    units : str
        Such as "of 255", for the label of the colour bar.

    Returns
    -------
    bytes
    """
    height, width = sd.shape[:2]
    figure = _figure(6.4, min(12.0, max(3.0, 5.2 * height / width)))
    axes = figure.add_subplot()
    values = over_channels(sd)
    end, beyond = top(values)
    _colour_bar(figure, _heat(axes, values, "uncertainty", end), axes, f"standard deviation ({units})", beyond)
    return _png(figure)


def draw_panel(incomplete, completed, sd, truth, full_range, units, inks=False, alpha=None, premultiplied=False):
    """PNG with the pictures incomplete and completed, beside or below them where known uncertainty, and truth and error.

    Uncertainty and error have the same units and one colour scale: where the standard deviation is right, the errors look like it.

    Parameters
    ----------
    incomplete, completed : (H, W) or (H, W, C) ndarray
        In the units of the file.
    sd, truth : ndarray of the same shape, or None
    full_range : int or None
        255 for 8 bits; None scales floats from their smallest to their largest value.
    units : str
        For the label of the colour bar.
    inks : bool
        See `display.to_bytes`.
    alpha : (H, W) ndarray of float, or None
    premultiplied : bool
        See `display.over_checkerboard`.

    Returns
    -------
    bytes
    """
    pictures = [("incomplete", incomplete), ("completed", completed)] + ([("truth", truth)] if truth is not None else [])
    heats = []
    if sd is not None:
        heats.append(("uncertainty", over_channels(sd)))
    if truth is not None:
        heats.append(("error", over_channels(np.abs(np.asarray(completed, dtype=float) - truth))))
    height, width = completed.shape[:2]
    rows, columns = (1, len(pictures) + len(heats)) if truth is None else (2, len(pictures))
    figure = _figure(4.0 * columns, rows * min(10.0, max(2.0, 3.6 * height / width)))
    # Half a picture is a column: a row of fewer pictures stands in the middle.
    grid = figure.add_gridspec(rows, 2 * columns)
    low, high = limits(full_range, *(picture for _, picture in pictures))
    for i, (title, picture) in enumerate(pictures):
        axes = figure.add_subplot(grid[0, 2 * i : 2 * i + 2])
        seen = over_checkerboard(to_bytes(picture, low, high, inks), alpha, premultiplied)
        axes.imshow(seen, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set_title(title)
        axes.set_axis_off()
    if heats:
        end, beyond = top(*(values for _, values in heats))
        first = 2 * len(pictures) if rows == 1 else columns - len(heats)
        places = [figure.add_subplot(grid[rows - 1, first + 2 * i : first + 2 * i + 2]) for i in range(len(heats))]
        shown = [_heat(axes, values, title, end) for axes, (title, values) in zip(places, heats)]
        names = {"uncertainty": "standard deviation", "error": "absolute error"}
        # A line each: low pictures leave no room for both in one.
        label = ",\n".join(names[title] for title, _ in heats)
        _colour_bar(figure, shown[-1], places, f"{label} ({units})", beyond)
    return _png(figure)
