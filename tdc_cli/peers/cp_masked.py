"""tensorly's CP decomposition with a mask: alternating least squares on the data, its missing entries filled in from the last iteration.

Minimises the squared error over the observed entries for a number of components that must be given; there is nothing that keeps
components from fitting noise, so that too many of them do worse than too few. Stops where the relative error changes by less than
`tolerance`, at the latest after `iterations`.

References
----------
G. Tomasi, R. Bro: PARAFAC and missing values, Chemometrics and Intelligent Laboratory Systems 75(2), 2005.
J. Kossaifi, Y. Panagakis, A. Anandkumar, M. Pantic: TensorLy: tensor learning in Python, Journal of Machine Learning Research 20, 2019.
"""

import warnings
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..errors import ConfigError, NumericalError
from ..methods import Completion, silent
from ..model.posterior import Scale
from ..tensor import check_observed

MOST_RANK, MOST_ITERATIONS = 1000, 1_000_000


@dataclass(frozen=True)
class Config:
    """Parameters of tensorly's decomposition.

    Attributes
    ----------
    rank : int
        Number of components; no more are taken than any tensor of the shape needs, the number of entries over the longest mode.
    iterations : int
        At most so many.
    tolerance : float
        Change of the relative error below which to stop.
    """

    rank: int = 10
    iterations: int = 100
    tolerance: float = 1e-8

    def __post_init__(self):
        if not 1 <= self.rank <= MOST_RANK:
            raise ConfigError(f"rank is {self.rank}; it must be from 1 to {MOST_RANK}")
        if not 1 <= self.iterations <= MOST_ITERATIONS:
            raise ConfigError(f"iterations is {self.iterations}; it must be from 1 to {MOST_ITERATIONS}")
        if not 0 <= self.tolerance < 1:
            raise ConfigError(f"tolerance is {self.tolerance:g}; it must be at least 0 and below 1")


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Least squares on the observed entries.

    Parameters
    ----------
    values : (n_1, ..., n_K) ndarray of float
        Any scale and offset, order 2 to 6; entries where `observed` is False are never read.
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.
    config : Config
    rng : numpy.random.Generator
        Draws what singular vectors leave open of the start.
    monitor : callable
        Called as ``monitor(done, total, label)`` after every iteration.

    Returns
    -------
    Completion

    Raises
    ------
    InputError
        Nothing is observed, or observed entries are not finite.
    NumericalError
        The decomposition broke down.
    """
    from tensorly import cp_to_tensor
    from tensorly.decomposition import parafac

    check_observed(values, observed)
    config = replace(config, rank=min(config.rank, values.size // max(values.shape)))
    scale = Scale.of(values[observed])
    # Filled with the mean at first, as standardised zeros.
    data = np.where(observed, (np.where(observed, values, 0.0) - scale.centre) / scale.spread, 0.0)
    if not data.any():  # all alike: there is nothing to decompose, which the least squares would call singular
        monitor(1, 1, "iteration")
        return Completion(mean=np.full(values.shape, scale.centre), rank=_rank(0), parameters=asdict(config))
    done = 0

    def count(factors, error):
        nonlocal done
        done += 1
        monitor(min(done, config.iterations), config.iterations, "iteration")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a mode is shorter than the rank, as colours always are
            fitted = parafac(data, config.rank, n_iter_max=config.iterations, tol=config.tolerance, mask=observed, callback=count,
                             random_state=np.random.RandomState(rng.integers(2**32)))
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"the decomposition broke down ({error}); try a lower rank") from error
    monitor(config.iterations, config.iterations, "iteration")
    return Completion(
        mean=scale.centre + scale.spread * cp_to_tensor(fitted),
        rank=_rank(config.rank),
        parameters=asdict(config),
    )


def _rank(value):
    """Rank as the report wants it."""
    return {"value": value, "posterior": {str(value): 1.0}, "paper_count": None}
