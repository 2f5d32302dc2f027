"""What the suites on synthetic tensors share: the paper's problems as cells of a grid, drawn again in the process of
each.
"""

import numpy as np

from .. import metrics
from ..tensor import norm
from . import synth
from .cells import Cell
from .completing import complete
from .tables import Column

# The paper's: tensors of 30x30x30 of these ranks, noise of this variance.
RANKS = (5, 10)
NOISE_STD = float(np.sqrt(0.001))
# Method -> parameters in place of its defaults, where its authors' program is run with others on such data.
SETTINGS = {"tmac": {"tolerance": 1e-12}}
# Method -> seconds of a problem on one thread of the machine that docs/results.md names.
SECONDS = {"datc": 6, "datc-ne": 2, "datc-nx": 2}
OTHERS_SECONDS = 0.5
START_SECONDS = 1.5  # of a process


def cells(method, kind, choice, seed, variants=({},), ranks=RANKS):
    """Cells of a method on the problems of a kind, all ranks and ratios.

    Parameters
    ----------
    method, kind : str
    choice : cells.Choice
    seed : int
    variants : sequence of dict
        Parameters of the method, a cell for each.
    ranks : sequence of int
    """
    for rank in ranks:
        for ratio in choice.ratios:
            for given in variants:
                yield Cell(
                    method,
                    f"{kind}, rank {rank}",
                    ratio,
                    seed,
                    {"kind": kind, "rank": rank},
                    SETTINGS.get(method, {}) | given,
                )


def seconds(cell):
    """Rough seconds of a cell."""
    return START_SECONDS + SECONDS.get(cell.method, OTHERS_SECONDS)


def draw(cell):
    """The problem of a cell."""
    return synth.draw(
        rank=cell.problem["rank"],
        kind=cell.problem["kind"],
        missing_ratio=cell.ratio,
        noise_std=NOISE_STD,
        seed=cell.seed,
    )


def completed(cell, problem, **more):
    """`completing.Completed` of a problem, the noise given to methods that know of it, and its metrics.

    Returns
    -------
    done : completing.Completed
    found : dict of str to float or None
        ``rre`` and ``rre_missing`` against L, the second over the norm of all of L; ``floor``, what is left to an
        oracle (`synth.SyntheticProblem.oracle_floor`), and ``rre_over_floor``; ``rank``, where the method says one.
    """
    done = complete(cell, problem.incomplete, problem.observed, noise_std=problem.noise_std, **more)
    latent, missing, floor = problem.latent, ~problem.observed, problem.oracle_floor
    error = done.completion.mean - latent
    rre = metrics.rre(latent, done.completion.mean)
    return done, {
        "rre": rre,
        "rre_missing": norm(error[missing]) / norm(latent),
        "floor": floor,
        "rre_over_floor": rre / floor if floor else None,
        "rank": done.completion.rank["value"] if done.completion.rank else None,
    }


def columns(records, **where):
    """A `tables.Column` for each missing ratio that occurs among the records of a kind or a rank."""
    ratios = sorted({each["ratio"] for each in Column("", where).of(records)})
    return [Column(f"{ratio:.0%} missing", where | {"ratio": ratio}) for ratio in ratios]
