"""Figures by matplotlib, with settings of this program whatever files and variables around it say, and as the bytes of
a PNG.

They are made without pyplot, so that nothing is kept between calls and no display is needed.
"""

import contextlib
import importlib.util
import io
import os
import sys
from pathlib import Path


def load():
    """matplotlib, imported without a `matplotlibrc` of the current folder or the user, and without MPLBACKEND.

    It reads them while it is imported, the one in the current folder before all others, and fails where something is
    wrong with them.
    """
    if "matplotlib" not in sys.modules:
        own = Path(importlib.util.find_spec("matplotlib").origin).parent / "mpl-data"
        before = {name: os.environ.get(name) for name in ("MATPLOTLIBRC", "MPLBACKEND")}
        os.environ.update(MATPLOTLIBRC=str(own / "matplotlibrc"), MPLBACKEND="agg")
        try:
            with contextlib.chdir(own) if os.path.exists("matplotlibrc") else contextlib.nullcontext():
                import matplotlib
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
    import matplotlib

    return matplotlib


@contextlib.contextmanager
def new_figure(width, height, dpi, style=None):
    """Figure to draw on, in matplotlib's own defaults but for `style`; `png` turns it into bytes within the same block.

    Parameters
    ----------
    width, height : float
        Inches.
    dpi : int
        Pixels an inch.
    style : dict or None
        Of matplotlib's ``rcParams``.

    Yields
    ------
    matplotlib.figure.Figure
    """
    matplotlib = load()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
    with matplotlib.rc_context(defaults | (style or {})):
        drawn = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn


def png(figure):
    """The figure as the bytes of a PNG that are the same for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
