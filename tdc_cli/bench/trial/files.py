"""What a trial writes: the problem, the report, figures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ... import interrupts
from ...errors import OutputError
from ...media.files import make_folder, together, write_bytes, write_text
from ...media.journal import sweep
from ...model.state import unit_weights
from ...run import outputs
from .. import mixtures, synth
from . import figures
from .source import encode
from .trial import watchable

FIGURES = ("densities", "weights", "convergence")
# Densities are drawn at so many values, between the ends of the drawn residual.
POINTS = 2001
# Noise that densities are seen through where a part is constant and the problem has none, relative to the spread of the
# residual.
LEAST_BLUR = 0.01


@dataclass(frozen=True)
class Files:
    """Names of what is read and written.

    Attributes
    ----------
    problem : Path or None
        Read.
    output, report : Path or None
        The problem, and the report.
    plot : Path or None
        Folder of the figures.
    overwrite : bool
    consulted : mapping of str to path
        As of a `run.request.Request`.
    """

    problem: Path | None
    output: Path | None
    report: Path | None
    plot: Path | None
    overwrite: bool
    consulted: Mapping

    @property
    def sources(self):
        """As of a `run.request.Request`."""
        return {"problem": self.problem}

    @property
    def outputs(self):
        """As of a `run.request.Request`: every file that may be written."""
        named = {"problem": self.output, "report": self.report}
        if self.plot is not None:
            named |= {name: self.plot / f"{name}.png" for name in FIGURES}
        return {name: path for name, path in named.items() if path is not None}

    def check(self):
        """Refuse what could not be written, and names that say something else.

        Raises
        ------
        OutputError
        """
        if self.plot is not None and self.plot.exists() and not self.plot.is_dir():
            raise OutputError(f"{self.plot}: is a file; give a folder for the figures")
        outputs.check_paths(self, replace=self.overwrite, make_folders=self.plot is not None)
        if self.output is not None and self.output.suffix.lower() != ".npz":
            raise OutputError(f"{self.output}: a problem is written to .npz")
        for path in (
            self.output,
            self.report,
            self.plot,
        ):  # the folder of the figures is made, none above it and none of other files
            if path is not None and not path.absolute().parent.is_dir():
                raise OutputError(f"{path}: folder {path.parent} does not exist; create it first")

    def named(self, plans):
        """Name to path, as text, of what is written for the methods of `run.prepare`: convergence only of those that
        can be watched.
        """
        watched = any(watchable(method) for method, _ in plans)
        return {name: str(path) for name, path in self.outputs.items() if name != "convergence" or watched}


def write(chosen, source, trials):
    """Write everything; all of it appears, or nothing.

    Parameters
    ----------
    chosen : Files
    source : Source
    trials : sequence of Trial

    Raises
    ------
    OutputError
    """
    if chosen.plot is not None:
        make_folder(chosen.plot)
    for path in chosen.outputs.values():
        sweep(path.parent)
    with interrupts.held(), together(), interrupts.heard():
        if chosen.output is not None:
            write_bytes(chosen.output, encode(source.problem), replace=chosen.overwrite)
        if chosen.plot is not None:
            for name, content in _figures(source.problem, trials):
                write_bytes(chosen.outputs[name], content, replace=chosen.overwrite)
        if chosen.report is not None:
            write_text(chosen.report, to_json([trial.report for trial in trials]), replace=chosen.overwrite)


def to_json(reports):
    """JSON text of one report, or of the list of several, with a final newline."""
    if len(reports) == 1:
        return reports[0].to_json()
    return json.dumps([report.to_dict() for report in reports], indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def unseen(trials):
    """Names of the methods that no figure shows, since they tell neither the residual's mixture nor CP weights and
    cannot be watched.
    """
    return [
        t.report.method["name"]
        for t in trials
        if t.completion.mixture is None and t.completion.weights is None and t.curve is None
    ]


def _figures(problem, trials):
    """(name, PNG) of every figure that there is something for."""
    found = {trial.report.method["name"]: trial for trial in trials}
    yield "densities", figures.densities(*_densities(problem, found))
    true = np.sort(unit_weights(problem))[::-1]
    yield (
        "weights",
        figures.weights(
            true, {name: t.completion.weights for name, t in found.items() if t.completion.weights is not None}
        ),
    )
    curves = {name: list(zip(t.curve.draws, t.curve.means)) for name, t in found.items() if t.curve is not None}
    if curves:
        yield "convergence", figures.convergence(curves, problem.oracle_floor)


def _densities(problem, found):
    """Arguments of `figures.densities`: all as they are, or as seen through the noise where a part is a constant, which
    has no density.
    """
    parts = synth.KINDS[problem.kind]
    constant = any(part.variance == 0 for part in parts)
    spread = float(np.ptp(problem.residual)) or 1.0
    blur = (problem.noise_std or LEAST_BLUR * spread) if constant else 0.0
    margin = max(5.0 * blur, 0.05 * spread)
    values = np.linspace(problem.residual.min() - margin, problem.residual.max() + margin, POINTS)
    true = sum(part.share * part.density(values, blur) for part in parts)
    fitted = {}
    for name, trial in found.items():
        mixture = trial.completion.mixture
        if mixture is not None:
            variances = 1.0 / np.array(mixture["precisions"]) + blur**2
            fitted[name] = mixtures.density(values, mixture["weights"], mixture["means"], variances)
    return values, true, fitted, blur
