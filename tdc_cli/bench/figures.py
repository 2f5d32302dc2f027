"""The look of all figures: sizes and letters for a printed page, colours and marks that are told apart without colour,
too.
"""

import contextlib
import math

from ..view import plot

# Palette of Okabe and Ito (2008), chosen so that people who see fewer colours tell them apart; the yellow is too light
# for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
HATCHES = ("", "//", "..", "xx", "\\\\", "++")
WHISKERS = {"elinewidth": 0.6, "capsize": 1.5}
# Inches: the column and the page of a two-column journal.
COLUMN, PAGE = 3.5, 7.16
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.alpha": 0.5,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.5,
    "mathtext.fontset": "stix",
}
DPI = 300

png = plot.png


@contextlib.contextmanager
def canvas(rows=1, columns=1, *, width=PAGE, height=2.4, **more):
    """Figure to draw on, in the common look, which `png` then turns into bytes within the same block.

    Parameters
    ----------
    rows, columns : int
        Of axes.
    width, height : float
        Inches.
    **more
        Of matplotlib's ``Figure.subplots``.

    Yields
    ------
    figure : matplotlib.figure.Figure
    axes : (rows, columns) ndarray of matplotlib.axes.Axes
    """
    with plot.new_figure(width, height, DPI, STYLE) as figure:
        yield figure, figure.subplots(rows, columns, squeeze=False, **more)


def line_style(i):
    """Keywords of line number `i`: a colour, a mark and a dash of its own."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
    }


def bar_style(i):
    """Keywords of the bars of series number `i`."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "hatch": HATCHES[i % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0.4,
    }


def grouped_bars(axes, groups, series, errors=None):
    """Bars side by side.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    groups : sequence of str
        Labels along the axis.
    series : dict of str to sequence of float or None
        A bar for every group; None leaves it out.
    errors : dict of str to sequence of float or None, or None
        Half lengths of error bars.
    """
    width = 0.8 / max(len(series), 1)
    for i, (name, values) in enumerate(series.items()):
        places = [j - 0.4 + width * (i + 0.5) for j, value in enumerate(values) if value is not None]
        heights = [value for value in values if value is not None]
        spread = [error or 0.0 for error, value in zip(errors[name], values) if value is not None] if errors else []
        axes.bar(
            places, heights, width, label=name, yerr=spread if any(spread) else None, error_kw=WHISKERS, **bar_style(i)
        )
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(axis="x", visible=False)


def label(axes, across, up):
    """Label the axes at the edges of a grid only."""
    for one in axes[-1]:
        one.set_xlabel(across)
    for one in axes[:, 0]:
        one.set_ylabel(up)


def logarithmic(axis, *, plain=True):
    """Make an axis logarithmic, if something is drawn: matplotlib refuses to on an empty one.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
    plain : bool
        Numbers such as 0.2 in place of powers.
    """
    from matplotlib.ticker import LogLocator

    if not math.isfinite(axis.get_minpos()):
        return
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    if plain:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
