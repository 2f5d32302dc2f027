"""Pictures for humans: what was missing, what came out, and how sure it is.

Figures are made without pyplot, so that nothing is kept between calls and no display is needed.
"""

import io
import math

import numpy as np


def _display(picture, full_range):
    """`picture` as floats in 0..1 of shape (H, W) or (H, W, 3); channels that are not RGB are averaged."""
    picture = np.asarray(picture, dtype=float)
    if picture.ndim == 3 and picture.shape[2] != 3:
        picture = picture.mean(axis=2)
    if full_range:
        return np.clip(picture / full_range, 0, 1)
    finite = picture[np.isfinite(picture)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    return np.nan_to_num((picture - low) / ((high - low) or 1.0), nan=0.0)


def _flat(values):
    """(H, W) mean over channels."""
    return values if values.ndim == 2 else values.mean(axis=2)


def _heat(figure, axes, values, title, label):
    """Draw (H, W) `values` with a colour bar that says its units."""
    top = float(values.max())
    shown = axes.imshow(values, cmap="viridis", vmin=0, vmax=top or 1.0, interpolation="nearest")
    figure.colorbar(shown, ax=axes, fraction=0.046, pad=0.03, label=label)
    axes.set_title(title)
    axes.set_axis_off()


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
    _heat(figure, figure.add_subplot(), _flat(sd), "uncertainty", f"standard deviation ({units})")
    return _png(figure)


def draw_panel(incomplete, completed, sd, truth, full_range, units):
    """PNG with the pictures side by side: incomplete, completed, and where known uncertainty, truth and error.

    Parameters
    ----------
    incomplete, completed : (H, W) or (H, W, C) ndarray
        In the units of the file.
    sd, truth : ndarray of the same shape, or None
    full_range : int or None
        255 for 8 bits; None scales floats from their smallest to their largest value.
    units : str
        For the labels of the colour bars.

    Returns
    -------
    bytes
    """
    pictures = [("incomplete", incomplete), ("completed", completed)] + ([("truth", truth)] if truth is not None else [])
    heats = []
    if sd is not None:
        heats.append(("uncertainty", _flat(sd), f"standard deviation ({units})"))
    if truth is not None:
        error = np.abs(np.asarray(completed, dtype=float) - truth)
        heats.append(("error", _flat(error), f"absolute error ({units})"))
    shown = len(pictures) + len(heats)
    columns = 2 if shown == 4 else min(3, shown)
    rows = math.ceil(shown / columns)
    height, width = completed.shape[:2]
    figure = _figure(4.0 * columns, rows * min(10.0, max(2.0, 3.6 * height / width)))
    places = [figure.add_subplot(rows, columns, i + 1) for i in range(shown)]
    for axes, (title, picture) in zip(places, pictures):
        axes.imshow(_display(picture, full_range), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(title)
        axes.set_axis_off()
    for axes, (title, values, label) in zip(places[len(pictures) :], heats):
        _heat(figure, axes, values, title, label)
    return _png(figure)
