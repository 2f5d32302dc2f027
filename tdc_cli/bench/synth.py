"""The paper's synthetic problems: a low-rank tensor plus one of five kinds of residual, observed in part and with
noise.

Shares are counted, not drawn: of 27000 entries exactly 2700 belong to a part of 10 %, and exactly the stated share is
missing.
"""

import zipfile
import zlib
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ..errors import ConfigError, InputError
from ..tensor import cp_to_tensor, norm

# Numbers that keep a slip of the keyboard from asking for more than any machine has.
MOST_ENTRIES, MOST_RANK = 200_000_000, 10_000
MOST_NOISE = 1e100  # its square must stay finite
SEEDS = 2**64  # a larger one would be no number in a file, but a Python object
LARGEST_WEIGHT = 2.0  # CP weights are uniform in [-2, 2]
# One stream of random numbers each: the same seed gives the same low-rank part, noise and holes whatever the residual,
# and the entries missing at a smaller ratio are missing at a larger one too.
STREAMS = {"low_rank": 0, "residual": 1, "noise": 2, "missing": 3}


@dataclass(frozen=True)
class Part:
    """Law of a share of the residual's entries.

    Attributes
    ----------
    share : float
    law : {"constant", "uniform", "normal"}
    first, second : float
        Value and nothing; lower and upper end; mean and variance.
    """

    share: float
    law: str
    first: float = 0.0
    second: float = 0.0

    @property
    def mean(self):
        """Population mean."""
        return (self.first + self.second) / 2.0 if self.law == "uniform" else self.first

    @property
    def variance(self):
        """Population variance."""
        return {"constant": 0.0, "uniform": (self.second - self.first) ** 2 / 12.0, "normal": self.second}[self.law]

    def density(self, values, blur):
        """Density at `values` once Gaussian noise of standard deviation `blur` is added; only a constant needs some."""
        if self.law == "uniform":
            if blur == 0:
                return np.where((values >= self.first) & (values <= self.second), 1.0 / (self.second - self.first), 0.0)
            return (ndtr((values - self.first) / blur) - ndtr((values - self.second) / blur)) / (
                self.second - self.first
            )
        sd = np.hypot(np.sqrt(self.variance), blur)
        return np.exp(-0.5 * ((values - self.mean) / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd)

    def draw(self, count, rng):
        """Independent values, (count,)."""
        if self.law == "constant":
            return np.full(count, self.first)
        if self.law == "uniform":
            return rng.uniform(self.first, self.second, count)
        return rng.normal(self.first, np.sqrt(self.second), count)


# The Gaussian kind has the mean of the paper's table of fitted mixtures (0.1, estimated .101 and .100), not of its text
# (0).
KINDS = {
    "zero": (Part(1.0, "constant"),),
    "gaussian": (Part(1.0, "normal", 0.1, 0.01),),
    "sparse": (Part(0.1, "uniform", -2.0, 2.0), Part(0.9, "constant")),
    "mixture": (Part(0.1, "uniform", -2.0, 2.0), Part(0.3, "normal", 0.0, 0.1), Part(0.6, "normal", 0.0, 0.005)),
    "mixture-shifted": (
        Part(0.1, "uniform", -1.0, 4.0),
        Part(0.2, "normal", 0.1, 0.1),
        Part(0.7, "normal", -0.1, 1.0 / 300.0),
    ),
}


@dataclass(frozen=True)
class SyntheticProblem:
    """A problem with its truth.

    Attributes
    ----------
    shape : tuple of int
    rank : int
    kind : str
        Key of `KINDS`.
    missing_ratio, noise_std : float
    seed : int
    weights : (R,) ndarray
    factors : tuple of (n_k, R) ndarray
    low_rank, residual, noisy : (n_1, ..., n_K) ndarray
        X, E, and Y = X + E + noise, all entries of it.
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.
    """

    shape: tuple
    rank: int
    kind: str
    missing_ratio: float
    noise_std: float
    seed: int
    weights: np.ndarray
    factors: tuple
    low_rank: np.ndarray
    residual: np.ndarray
    noisy: np.ndarray
    observed: np.ndarray

    @property
    def latent(self):
        """The tensor to be completed, ``L = X + E``."""
        return self.low_rank + self.residual

    @property
    def incomplete(self):
        """Y with NaN in place of what is missing: all that a method may see."""
        return np.where(self.observed, self.noisy, np.nan)

    @property
    def residual_mean(self):
        """Population mean of the residual, ``sum pi mu``."""
        return float(sum(part.share * part.mean for part in KINDS[self.kind]))

    @property
    def oracle_floor(self):
        """RRE against L of an oracle that knows X, and E at observed entries, and puts the population mean of E
        elsewhere.
        """
        left = self.residual[~self.observed] - self.residual_mean
        return norm(left) / norm(self.latent)


def draw(shape=(30, 30, 30), rank=5, kind="zero", *, missing_ratio=0.7, noise_std=np.sqrt(0.001), seed=0):
    """Draw a problem; the defaults are the paper's.

    Parameters
    ----------
    shape : sequence of int
        Two modes or more.
    rank : int
    kind : str
        Key of `KINDS`.
    missing_ratio : float
        In [0, 1); ``round(missing_ratio * N)`` entries are missing.
    noise_std : float
    seed : int

    Returns
    -------
    SyntheticProblem

    Raises
    ------
    ConfigError
        A parameter out of its range.
    """
    shape = tuple(int(n) for n in shape)
    _check(shape, rank, kind, missing_ratio, noise_std, seed)
    streams = {name: np.random.default_rng([seed, number]) for name, number in STREAMS.items()}
    factors = tuple(streams["low_rank"].standard_normal((n, rank)) for n in shape)
    weights = streams["low_rank"].uniform(-LARGEST_WEIGHT, LARGEST_WEIGHT, rank)
    low_rank = cp_to_tensor(weights, factors)
    residual = draw_residual(shape, kind, streams["residual"])
    noisy = low_rank + residual + noise_std * streams["noise"].standard_normal(shape)
    order = streams["missing"].permutation(low_rank.size)
    observed = np.ones(low_rank.size, dtype=bool)
    observed[order[: round(missing_ratio * low_rank.size)]] = False
    return SyntheticProblem(
        shape,
        int(rank),
        kind,
        float(missing_ratio),
        float(noise_std),
        int(seed),
        weights,
        factors,
        low_rank,
        residual,
        noisy,
        observed.reshape(shape),
    )


def draw_residual(shape, kind, rng):
    """Residual of a kind in a random arrangement, (n_1, ..., n_K); the last part takes what rounding of the shares
    leaves.
    """
    size = int(np.prod(shape))
    parts = KINDS[kind]
    counts = [round(part.share * size) for part in parts[:-1]]
    counts.append(size - sum(counts))
    values = np.concatenate([part.draw(count, rng) for part, count in zip(parts, counts)])
    return rng.permutation(values).reshape(shape)


def _check(shape, rank, kind, missing_ratio, noise_std, seed):
    """Refuse parameters that make no problem."""
    if len(shape) < 2 or min(shape) < 1:
        raise ConfigError(f"shape {shape} must have at least two modes, each of size 1 or more")
    if np.prod(shape, dtype=float) > MOST_ENTRIES:
        raise ConfigError(f"shape {shape} has more than {MOST_ENTRIES} entries; give a smaller one")
    if not 1 <= rank <= MOST_RANK:
        raise ConfigError(f"rank is {rank}; it must be at least 1 and at most {MOST_RANK}")
    if kind not in KINDS:
        raise ConfigError(f"no kind of residual '{kind}'; there are: {', '.join(KINDS)}")
    if not 0 <= missing_ratio < 1:
        raise ConfigError(f"missing_ratio is {missing_ratio:g}; it must be at least 0 and below 1")
    if round(missing_ratio * np.prod(shape, dtype=float)) >= np.prod(shape, dtype=float):
        raise ConfigError(f"missing_ratio {missing_ratio:g} leaves nothing of shape {shape} to complete from")
    if not 0 <= noise_std <= MOST_NOISE:
        raise ConfigError(f"noise_std is {noise_std:g}; it must be at least 0 and at most {MOST_NOISE:g}")
    if not 0 <= seed < SEEDS:
        raise ConfigError(f"seed is {seed}; it must be at least 0 and below 2**64")


def save(problem, file):
    """Write a problem as compressed .npz.

    Parameters
    ----------
    problem : SyntheticProblem
    file : path or binary file object
        ``.npz`` is appended to a path that does not end so.
    """
    factors = {f"factor_{k}": factor for k, factor in enumerate(problem.factors)}
    names = (
        "rank",
        "kind",
        "missing_ratio",
        "noise_std",
        "seed",
        "weights",
        "low_rank",
        "residual",
        "noisy",
        "observed",
    )
    np.savez_compressed(file, **{name: getattr(problem, name) for name in names}, **factors)


def load(file, name=None):
    """Read what `save` wrote.

    Parameters
    ----------
    file : path or binary file object
    name : str, optional
        What messages call it.

    Returns
    -------
    SyntheticProblem

    Raises
    ------
    InputError
        The file holds no synthetic problem.
    """
    name = name or str(file)
    try:
        held = _arrays(file)
        shape = held["low_rank"].shape
        numbers = {"rank": int, "missing_ratio": float, "noise_std": float, "seed": int}
        single = {key: _number(held, key, kind) for key, kind in numbers.items()}
        if held["kind"].shape or held["kind"].dtype.kind != "U":
            raise ConfigError("kind is no text")
        _check(shape, kind=str(held["kind"]), **single)
        tensors = {key: _floats(held, key, shape) for key in ("low_rank", "residual", "noisy")}
        if held["observed"].shape != shape or held["observed"].dtype != bool:
            raise ConfigError(f"observed is no array of true and false of the shape {shape}")
        rank = single["rank"]
        problem = SyntheticProblem(
            shape=shape,
            kind=str(held["kind"]),
            **single,
            **tensors,
            observed=held["observed"],
            weights=_floats(held, "weights", (rank,)),
            factors=tuple(_floats(held, f"factor_{k}", (n, rank)) for k, n in enumerate(shape)),
        )
        if not problem.observed.any():
            raise ConfigError("nothing is observed")
        if not problem.latent.any():
            raise ConfigError("its tensor is 0 everywhere")
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except KeyError as error:
        raise _no_problem(name, f"it has no {error.args[0]}") from error
    except ConfigError as error:
        raise _no_problem(name, error) from error
    return problem


def _no_problem(name, reason):
    return InputError(
        f"{name}: not a synthetic problem as saved by this program ({reason}); make one with 'tdc synth -o FILE.npz'"
    )


def _arrays(file):
    """Name to array of everything in an archive; ConfigError, in our words, for what is none."""
    try:
        # One way for paths and open files, and none into what NumPy takes a file for that is no archive.
        with zipfile.ZipFile(file) as archive:
            return {
                name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist() if name.endswith(".npy")
            }
    except (OSError, EOFError, ValueError, LookupError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ConfigError("it is no archive of arrays, or damaged or cut short") from error
    except MemoryError as error:
        raise ConfigError("it tells of an array larger than the memory") from error


def _array(archive, name):
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _number(held, key, kind):
    """A single number; ConfigError for anything else."""
    array = held[key]
    if array.shape or array.dtype.kind not in ("iu" if kind is int else "iuf"):
        raise ConfigError(f"{key} is no {'whole ' if kind is int else ''}number")
    return kind(array)


def _floats(held, key, shape):
    """Finite numbers of a shape in double precision; ConfigError for anything else."""
    array = held[key]
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ConfigError(f"{key} is no array of finite floats of the shape {shape}")
    return array.astype(np.float64)
