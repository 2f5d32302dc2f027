"""Figures of what was found of a synthetic problem beside the truth, in the look of all figures of experiments."""

import numpy as np

from ..figures import COLOURS, COLUMN, DASHES, MARKERS, PAGE, canvas, png

TRUE = "black"
HEIGHT = 2.6  # inches


def densities(values, true, found, blur):
    """PNG of densities of the residual, once as they are and once on a logarithmic scale, which shows the tails.

    Parameters
    ----------
    values : (n,) ndarray
    true : (n,) ndarray
    found : dict of str to (n,) ndarray
        By name of the method.
    blur : float
        Standard deviation of the noise that all are seen through, 0 for none.

    Returns
    -------
    bytes
    """
    with canvas(1, 2, width=PAGE, height=HEIGHT) as (figure, (axes,)):
        for one, scale in zip(axes, ("linear", "log")):
            one.plot(values, true, color=TRUE, linewidth=2.2, alpha=0.35, label="true")
            for name, line, colour, dash in _styled(found):
                one.plot(values, line, color=colour, linestyle=dash, label=name)
            one.set(
                xlabel="residual" if not blur else f"residual, with noise of sd {blur:.3g}",
                ylabel="density",
                yscale=scale,
            )
        axes[0].set_ylim(bottom=0)
        axes[1].set_ylim(true.max() * 1e-5, true.max() * 3)
        axes[0].legend()
        return png(figure)


def convergence(curves, floor):
    """PNG of the relative error after every sweep: thin lines for single draws of each chain, thick ones for their mean
    so far.

    Parameters
    ----------
    curves : dict of str to list of (draws, means)
        By name of the method, for every chain: error of each sweep's draw; error of the mean of the draws that count,
        NaN in burn-in.
    floor : float
        Error of the oracle; drawn where above 0.

    Returns
    -------
    bytes
    """
    with canvas(width=COLUMN, height=HEIGHT) as (figure, ((axes,),)):
        for name, chains, colour, dash in _styled(curves):
            for i, (draws, means) in enumerate(chains):
                sweeps = np.arange(1, len(draws) + 1)
                axes.plot(
                    sweeps, draws, color=colour, linewidth=0.5, alpha=0.6, label=f"{name}, draws" if i == 0 else None
                )
                axes.plot(
                    sweeps,
                    means,
                    color=colour,
                    linestyle=dash,
                    linewidth=1.6,
                    label=f"{name}, mean of draws" if i == 0 else None,
                )
        if floor > 0:
            axes.axhline(floor, color=TRUE, linestyle=":", linewidth=1.0, label="oracle floor")
        axes.set(xlabel="sweep", ylabel="RRE", yscale="log")
        axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.legend()
        return png(figure)


def weights(true, found):
    """PNG of the sorted CP weights.

    Parameters
    ----------
    true : sequence of float
        Largest first.
    found : dict of str to sequence of float
        By name of the method.

    Returns
    -------
    bytes
    """
    with canvas(width=COLUMN, height=HEIGHT) as (figure, ((axes,),)):
        axes.plot(np.arange(1, len(true) + 1), true, "o", color=TRUE, markersize=6, fillstyle="none", label="true")
        for i, (name, sizes, colour, _) in enumerate(_styled(found)):
            axes.plot(
                np.arange(1, len(sizes) + 1), sizes, MARKERS[i % len(MARKERS)], color=colour, markersize=3, label=name
            )
        axes.set(xlabel="component", ylabel="absolute weight", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend()
        return png(figure)


def _styled(named):
    """(name, content, colour, dash) of every entry of a dict; colours and dashes come again after the last."""
    return [
        (name, content, COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)])
        for i, (name, content) in enumerate(named.items())
    ]
