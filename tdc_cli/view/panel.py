"""Pictures for humans: what was missing, what came out, and how sure it is."""

import numpy as np

from .display import COLOUR_SCALE, limits, over_channels, over_checkerboard, to_bytes, top
from .plot import new_figure, png

DPI = 110

# Width and bounds of the height of a frame in a filmstrip, in inches, and the room for its heads.
FRAME_WIDTH = 2.4
FRAME_HEIGHTS = (1.0, 4.0)
HEAD = 0.3
# Order of the rows of a filmstrip, and what the colour bar says.
PICTURES = ("incomplete", "completed", "truth")
SIZES = {"uncertainty": "standard deviation", "error": "absolute error"}


def _heat(axes, values, title, end):
    """Draw (H, W) `values` on the colour scale from 0 to `end`; returns what a colour bar is made from."""
    axes.set_title(title)
    axes.set_axis_off()
    return axes.imshow(values, cmap=COLOUR_SCALE, vmin=0, vmax=end, interpolation="nearest")


def _colour_bar(figure, shown, axes, label, beyond):
    """Colour bar beside `axes`, with an arrow where values lie beyond its end."""
    figure.colorbar(shown, ax=axes, fraction=0.046, pad=0.03, label=label, extend="max" if beyond else "neither")


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
    with new_figure(6.4, min(12.0, max(3.0, 5.2 * height / width)), DPI) as figure:
        axes = figure.add_subplot()
        values = over_channels(sd)
        end, beyond = top(values)
        _colour_bar(figure, _heat(axes, values, "uncertainty", end), axes, f"standard deviation ({units})", beyond)
        return png(figure)


def draw_panel(incomplete, completed, sd, truth, full_range, units, inks=False, alpha=None, premultiplied=False):
    """PNG with the pictures incomplete and completed, beside or below them where known uncertainty, and truth and
    error.

    Uncertainty and error have the same units and one colour scale: where the standard deviation is right, the errors
    look like it.

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
    pictures = [("incomplete", incomplete), ("completed", completed)] + (
        [("truth", truth)] if truth is not None else []
    )
    heats = []
    if sd is not None:
        heats.append(("uncertainty", over_channels(sd)))
    if truth is not None:
        heats.append(("error", over_channels(np.abs(np.asarray(completed, dtype=float) - truth))))
    height, width = completed.shape[:2]
    rows, columns = (1, len(pictures) + len(heats)) if truth is None else (2, len(pictures))
    with new_figure(4.0 * columns, rows * min(10.0, max(2.0, 3.6 * height / width)), DPI) as figure:
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
            # A line each: low pictures leave no room for both in one.
            label = ",\n".join(SIZES[title] for title, _ in heats)
            _colour_bar(figure, shown[-1], places, f"{label} ({units})", beyond)
        return png(figure)


def draw_filmstrip(shots, units):
    """PNG with a column for each of a few frames of a clip: incomplete and completed, and where known truth,
    uncertainty and error.

    Uncertainty and error have one colour scale, for all frames.

    Parameters
    ----------
    shots : sequence of Shot
        At least one, all with the same pictures and sizes; see `shots.Evenly`.
    units : str
        For the label of the colour bar.

    Returns
    -------
    bytes
    """
    pictures = [name for name in PICTURES if name in shots[0].pictures]
    heats = [name for name in SIZES if name in shots[0].sizes]
    height, width = shots[0].missing.shape
    each = min(max(FRAME_WIDTH * height / width, FRAME_HEIGHTS[0]), FRAME_HEIGHTS[1])
    with new_figure(
        FRAME_WIDTH * len(shots) + (0.9 if heats else 0.3), each * (len(pictures) + len(heats)) + HEAD, DPI
    ) as figure:
        cells = figure.subplots(len(pictures) + len(heats), len(shots), squeeze=False)
        for shot, head in zip(shots, cells[0]):
            head.set_title(_when(shot), fontsize=10)
        for name, row in zip(pictures + heats, cells):
            row[0].set_ylabel(name, fontsize=10)
        for axes in cells.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for name, row in zip(pictures, cells):
            for shot, axes in zip(shots, row):
                axes.imshow(shot.pictures[name], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        if heats:
            end, beyond = top(*(shot.sizes[name] for shot in shots for name in heats))
            for name, row in zip(heats, cells[len(pictures) :]):
                for shot, axes in zip(shots, row):
                    shown = axes.imshow(shot.sizes[name], cmap=COLOUR_SCALE, vmin=0, vmax=end, interpolation="nearest")
            label = ", ".join(SIZES[name] for name in heats)
            # Beside all rows, so that their columns keep in line, but no higher than those that it is for.
            share = len(heats) / len(cells)
            place = {
                "ax": cells,
                "anchor": (0.0, 0.0),
                "shrink": share,
                "aspect": 15 * len(heats),
                "pad": 0.01,
                "fraction": 0.03,
            }
            figure.colorbar(shown, label=f"{label}\n({units})", extend="max" if beyond else "neither", **place)
        return png(figure)


def _when(shot):
    """Number and time of a frame for a reader."""
    return f"frame {shot.number}" + ("" if shot.time is None else f", {shot.time:.2f} s")
