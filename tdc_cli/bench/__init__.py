"""Experiments: a grid of runs, one record for each, and the tables and figures that they make.

A suite is a module with the names below; to add one, write the module in `suites` and add a line to `SUITES`.

- ``DEFAULTS``, a `cells.Choice`: methods, missing ratios and number of seeds. What is empty there the user cannot
choose.
- ``cells(choice)``: iterator of `cells.Cell`, seed by seed, so that an interrupted run already says something. Raises
ConfigError or
  InputError where the folder of data lacks what the suite needs.
- ``seconds(cell)``: what a cell takes on one thread, roughly, to plan by.
- ``run(cell, data)``: `cells.Outcome` of a cell, in a process of its own; `data` is the user's folder or None.
- ``tables(records)``, ``figures(records)``: lists of `page.Table` and `page.Figure` from records as `cells.record`
makes them, some of
  which may have failed or be missing; figures get the path of a record's arrays.
- ``check(records)``, where the suite has bounds: a line for each that does not hold.
"""

import importlib
from dataclasses import dataclass, replace

from .. import methods as registry
from ..errors import ConfigError, InputError
from ..listed import likely


@dataclass(frozen=True)
class Suite:
    """A line of the registry.

    Attributes
    ----------
    name, summary : str
    media : bool
        Whether it takes pictures, clips or faces of the user's.
    """

    name: str
    summary: str
    media: bool = False

    @property
    def module(self):
        """Name of the module."""
        return f"{__name__}.suites.{self.name}"

    def load(self):
        """Import and return the suite's module."""
        return importlib.import_module(self.module)


_SUITES = (
    Suite("smoke", "does the installation work? three methods, small data, under a minute; exit code 1 if not"),
    Suite("synthetic", "the paper's tables `performance` and `effectivenss`: RRE on synthetic tensors, 8 competitors"),
    Suite("rank", "the paper's figure `rank`: the rank that is inferred of synthetic tensors"),
    Suite("fit", "the paper's table `Fittness` and figure `mtpi`: the distribution of the residual that is found"),
    Suite("convergence", "the paper's figure `convergence`: the error after every sweep of the sampler"),
    Suite("speed", "time and peak memory of every method, and how they grow with size, missing ratio and rank"),
    Suite(
        "images",
        "the paper's table `avginpainting`: photographs with entries missing, all methods, visual comparisons",
        media=True,
    ),
    Suite("videos", "the paper's table `video`: clips with masks and noise, visual comparisons", media=True),
    Suite("faces", "the paper's table `face`: whole faces of a set missing", media=True),
    Suite(
        "spatial",
        "the paper's figure `SpatialC`: what coherence of neighbours gains in photographs and clips",
        media=True,
    ),
)

SUITES = {suite.name: suite for suite in _SUITES}


def get(name):
    """The suite called `name`.

    Raises
    ------
    ConfigError
        No such suite; the text names the ones there are.
    """
    if name not in SUITES:
        raise ConfigError(f"no suite '{name}'; {likely(name, SUITES)}")
    return SUITES[name]


def plan(suite, *, methods=None, ratios=None, seeds=None, data=None):
    """What of a suite is run, and its cells.

    Parameters
    ----------
    suite : Suite
    methods, ratios : tuple or None
        None: the suite's own.
    seeds : int or None
    data : Path or None
        Folder of the user's media, which only suites with `Suite.media` look at.

    Returns
    -------
    choice : cells.Choice
    cells : list of cells.Cell

    Raises
    ------
    ConfigError
        A method that there is not, or a choice that the suite does not leave.
    InputError
        The folder of data lacks what the suite needs.
    """
    module = suite.load()
    chosen = {
        name: value for name, value in (("methods", methods), ("ratios", ratios), ("seeds", seeds)) if value is not None
    }
    for name in chosen:
        if not getattr(module.DEFAULTS, name):
            raise ConfigError(f"suite {suite.name} has {name} of its own; leave out --{name}")
    choice = replace(module.DEFAULTS, data=data if suite.media else None, **chosen)
    for name in choice.methods:
        method = registry.get(name)
        if method.needs is not None:
            method.configure({})
    if choice.data is not None and not choice.data.is_dir():
        raise InputError(f"{data}: no such folder")
    return choice, list(module.cells(choice))
