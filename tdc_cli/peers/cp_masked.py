"""tensorly's CP decomposition with a mask: alternating least squares on the data, its missing entries filled in from
the last iteration.

Minimises the squared error over the observed entries for a number of components that must be given; there is nothing
that keeps components from fitting noise, so that too many of them do worse than too few. Stops where the relative error
changes by less than `tolerance`, at the latest after `iterations`.

References
----------
G. Tomasi, R. Bro: PARAFAC and missing values, Chemometrics and Intelligent Laboratory Systems 75(2), 2005.
J. Kossaifi, Y. Panagakis, A. Anandkumar, M. Pantic: TensorLy: tensor learning in Python, Journal of Machine Learning
Research 20, 2019.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from ..errors import NumericalError
from ..methods import Completion, silent
from ..methods.parameters import Parameters, most_iterations, parameter
from ..model.posterior import Scale


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of tensorly's decomposition."""

    rank: int = parameter(
        10,
        "Number of components; no more are taken than any tensor of the shape needs, the number of entries over the "
        "longest mode.",
        ge=1,
        le=1000,
    )
    iterations: int = most_iterations(100)
    tolerance: float = parameter(1e-8, "Change of the relative error below which to stop.", ge=0, lt=1)


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Least squares on the observed entries; NumericalError where the decomposition breaks down."""
    from tensorly import cp_to_tensor
    from tensorly.decomposition import parafac

    rank = min(config.rank, values.size // max(values.shape))
    scale = Scale.of(values[observed])
    # Filled with the mean at first, as standardised zeros.
    data = np.where(observed, (np.where(observed, values, 0.0) - scale.centre) / scale.spread, 0.0)
    if not data.any():  # all alike: there is nothing to decompose, which the least squares would call singular
        monitor(1, 1, "iteration")
        return Completion(mean=np.full(values.shape, scale.centre), rank=_rank(0), parameters={"rank": rank})
    done = 0

    def count(factors, error):
        nonlocal done
        done += 1
        monitor(min(done, config.iterations), config.iterations, "iteration")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a mode is shorter than the rank, as colours always are
            fitted = parafac(
                data,
                rank,
                n_iter_max=config.iterations,
                tol=config.tolerance,
                mask=observed,
                callback=count,
                random_state=np.random.RandomState(rng.integers(2**32)),
            )
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"the decomposition broke down ({error}); try a lower rank") from error
    monitor(config.iterations, config.iterations, "iteration")
    return Completion(
        mean=scale.centre + scale.spread * cp_to_tensor(fitted),
        rank=_rank(rank),
        parameters={"rank": rank},
    )


def _rank(value):
    """Rank as the report wants it."""
    return {"value": value, "posterior": {str(value): 1.0}, "paper_count": None}
