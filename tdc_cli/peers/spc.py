"""SPC: a sum of rank-one terms with smooth vectors, whose number grows until the observed entries are met.

With unit vectors u_r^(n) and weights g_r, Z = sum_r g_r u_r^(1) o ... o u_r^(K) minimises

    1/2 ||P(T - Z)||^2 + sum_r g_r^2 / 2 sum_n rho_n penalty(u_r^(n))

where P keeps the observed entries of T, and the penalty along the ordered modes is ||D u||^2 (`quadratic`, QV) or ||D
u||_1 (`variation`, TV), D the differences of neighbours. Other modes have none. A sweep takes the `refitted` terms of
least weight, one after the other; for each of them, with E the residual of all others, whose missing entries count as
met by the current Z, and mode by mode,

    y     <- E contracted with the other vectors
    u^(n) <- (a I + rho_n D'D)^-1 y (QV), the minimiser over vector and weight together, a = 1 + sum of rho_k
    penalty(u^(k)), k not n;
             prox of g rho_n / 2 ||D u||_1 at y (TV), the minimiser at this weight; both brought to length 1
    g     <- y'u / (1 + sum_n rho_n penalty(u^(n)))

so that every step lowers the objective, or leaves it. After a sweep a term of smoothed random vectors joins if the
squared residual r moved by less than `patience` of its distance from its aim, or by less than `tolerance` for an
observed entry. The aim, which ends the run, is 10^(-snr / 10) of the squared norm of the observed entries.

In the authors' program the same vectors are looked for along the gradient on the unit sphere, in steps of fixed sizes,
from the same start (D'D + I)^-1 y; with TV that ends before the minimum.

References
----------
T. Yokota, Q. Zhao, A. Cichocki: Smooth PARAFAC decomposition for tensor completion, IEEE Transactions on Signal
Processing 64(20), 2016. L. Condat: A direct algorithm for 1-D total variation denoising, IEEE Signal Processing Letters
20(11), 2013.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
import scipy.fft

from ..methods import Completion, silent
from ..methods.parameters import Parameters, parameter
from .lowrank import in_data, in_units

# The authors' tolerance holds for values up to 255.
GREY_LEVELS = 255.0


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of SPC."""

    penalty: str = parameter(
        "quadratic",
        "Of neighbours that differ: the square of the difference, or its size.",
        choices=("quadratic", "variation"),
    )
    strength: float = parameter(0.5, "rho of the ordered modes.", ge=0, lt=1e9)
    ordered_modes: tuple = parameter((), "Modes with a spatial or temporal order.")
    snr: float = parameter(
        25.0, "Ratio of the observed entries to what is left of them at the end, in dB.", gt=0, le=120
    )
    refitted: int = parameter(10, "Terms that a sweep works on.", ge=1, le=10_000)
    patience: float = parameter(0.01, "Relative progress of a sweep below which a term joins.", gt=0, lt=1)
    tolerance: float = parameter(
        1e-5, "Progress for an observed entry below which a term joins, for values up to 255.", gt=0, lt=1
    )
    iterations: int = parameter(1000, "At most so many sweeps.", ge=1, le=1_000_000)


def complete(values, observed, config=Config(), *, rng, monitor=silent):
    """Complete by a growing number of smooth rank-one terms, which is the rank; each starts from random vectors."""
    data, unit = in_units(values, observed)
    smoothers = [
        (Quadratic if config.penalty == "quadratic" else Variation)(config.strength)
        if k in config.ordered_modes
        else Free()
        for k in range(data.ndim)
    ]
    fit = Fit(data, observed, smoothers)
    aim = 10.0 ** (-config.snr / 10.0) * fit.squares
    least = config.tolerance * np.count_nonzero(observed) / GREY_LEVELS**2
    objectives = [fit.objective()]
    warnings = (f"spc had not met the observed entries after {config.iterations} sweeps; a lower snr asks for less",)
    if fit.squares:
        fit.add(rng)
    for sweep in range(1, config.iterations + 1):
        before = fit.squares
        for term in np.argsort(np.abs(fit.weights), kind="stable")[: config.refitted]:
            fit.refit(term)
        objectives.append(fit.objective())
        monitor(sweep, config.iterations, "sweep")
        if fit.squares <= aim:
            monitor(sweep, sweep, "sweep")
            warnings = ()
            break
        moved = abs(before - fit.squares)
        if moved < config.patience * abs(fit.squares - aim) or moved < least:
            fit.add(rng)
    rank = len(fit.weights)
    return Completion(
        mean=in_data(fit.estimate(), values, observed, unit),
        rank={"value": rank, "posterior": None, "paper_count": None},
        traces={"objective": [objectives]},
        warnings=warnings,
    )


class Fit:
    """The terms, and what they leave of the observed entries.

    Attributes
    ----------
    residual : (n_1, ..., n_K) ndarray
        T - Z where observed, 0 elsewhere.
    terms : list of list of (n_k,) ndarray
        Unit vectors of every term.
    weights : list of float
    """

    def __init__(self, data, observed, smoothers):
        self.observed, self.smoothers = observed, smoothers
        self.residual = data.copy()
        self.terms, self.weights = [], []

    @property
    def squares(self):
        """Squared norm of the residual."""
        flat = self.residual.reshape(-1)
        return float(flat @ flat)

    def penalties(self, vectors):
        """rho_n penalty(u^(n)) of every mode."""
        return [smoother.penalty(u) for smoother, u in zip(self.smoothers, vectors)]

    def objective(self):
        """What every step lowers."""
        return 0.5 * self.squares + sum(0.5 * g**2 * sum(self.penalties(u)) for g, u in zip(self.weights, self.terms))

    def add(self, rng):
        """A further term of smoothed random vectors, with the weight that suits them."""
        vectors = [
            unit_vector(smoother.smooth(rng.standard_normal(n)))
            for smoother, n in zip(self.smoothers, self.residual.shape)
        ]
        weight = contract(self.residual, vectors, 0) @ vectors[0] / (1.0 + sum(self.penalties(vectors)))
        self.terms.append(vectors)
        self.weights.append(weight)
        self.subtract([(weight, vectors)])

    def refit(self, term):
        """Vectors and weight of one term anew, the others as they are."""
        old, old_weight = self.terms[term], self.weights[term]
        vectors, weight, costs = list(old), old_weight, self.penalties(old)
        for n, smoother in enumerate(self.smoothers):
            alike = np.prod([old[k] @ vectors[k] for k in range(len(old)) if k != n])
            target = contract(self.residual, vectors, n) + old_weight * alike * old[n]
            rest = 1.0 + sum(costs) - costs[n]
            found = smoother.minimiser(target, rest, weight)
            length = np.linalg.norm(found)
            if not length > 0:
                continue
            vectors[n] = found / length
            costs[n] = smoother.penalty(vectors[n])
            weight = target @ vectors[n] / (rest + costs[n])
        self.terms[term], self.weights[term] = vectors, weight
        self.subtract([(weight, vectors), (-old_weight, old)])

    def subtract(self, changes):
        """Take (weight, vectors) terms from the residual."""
        left = np.stack([weight * vectors[0] for weight, vectors in changes], axis=1)
        right = np.stack([reduce(np.multiply.outer, vectors[1:]).reshape(-1) for _, vectors in changes])
        change = (left @ right).reshape(self.residual.shape)
        change *= self.observed
        self.residual -= change

    def estimate(self):
        """Z."""
        total = np.zeros(self.residual.shape)
        for weight, vectors in zip(self.weights, self.terms):
            total += reduce(np.multiply.outer, [weight * vectors[0], *vectors[1:]])
        return total


def contract(tensor, vectors, mode):
    """(n_mode,) vector: `tensor` multiplied by the vectors of all other modes."""
    for vector in reversed(vectors[mode + 1 :]):
        tensor = tensor.reshape(-1, len(vector)) @ vector
    for vector in vectors[:mode]:
        tensor = vector @ tensor.reshape(len(vector), -1)
    return tensor.reshape(-1)


def unit_vector(vector):
    """`vector` brought to length 1."""
    return vector / np.linalg.norm(vector)


class Free:
    """A mode without order: any vector is as good as another."""

    def penalty(self, vector):
        return 0.0

    def smooth(self, vector):
        return vector

    def minimiser(self, target, rest, weight):
        """Direction of the best vector, given y, 1 + the penalties of the other modes, and the weight."""
        return target


class Quadratic(Free):
    """rho ||D u||^2; D'D is diagonal in the basis of the cosine transform."""

    def __init__(self, strength):
        self.strength = strength

    def penalty(self, vector):
        step = np.diff(vector)
        return self.strength * (step @ step)

    def smooth(self, vector):
        return self.minimiser(vector, 1.0, None)

    def minimiser(self, target, rest, weight):
        n = len(target)
        spectrum = rest + self.strength * 4.0 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2
        return scipy.fft.idct(scipy.fft.dct(target, norm="ortho") / spectrum, norm="ortho")


class Variation(Free):
    """rho ||D u||_1."""

    def __init__(self, strength):
        self.strength = strength

    def penalty(self, vector):
        return self.strength * np.abs(np.diff(vector)).sum()

    def smooth(self, vector):
        return Quadratic(self.strength).smooth(vector)

    def minimiser(self, target, rest, weight):
        # Of unit vectors u, rho g^2 / 2 ||D u||_1 - g y'u is least along the proximal point, as both parts are
        # homogeneous in u. The sign of the weight can go to the vector.
        return flatten(target, 0.5 * self.strength * abs(weight))


def flatten(values, strength):
    """Total-variation denoising of a sequence: the x of least ``1/2 ||x - values||^2 + strength ||D x||_1``, exactly.

    By the taut string: x is the slope of the shortest path that stays within `strength` of the running sums and meets
    them at both ends. A stretch of constant slope is followed while some slope between `low` and `high` keeps within;
    `below` and `above` are how far the path of either slope is from the running sum, at most `strength` each. When no
    slope is left, the path has touched a bound: it is fixed up to the last touch and starts anew from there.

    Parameters
    ----------
    values : (n,) ndarray
    strength : float
        At least 0.

    Returns
    -------
    (n,) ndarray
    """
    y, n = values.tolist(), len(values)
    if n < 2 or strength == 0:
        return values.copy()
    flat = [0.0] * n
    first = k = last_low = last_high = 0
    low, high, below, above = y[0] - strength, y[0] + strength, strength, -strength
    while True:
        if k < n - 1:
            ahead = y[k + 1]
            if ahead + below < low - strength:  # the lowest slope is still too steep: a step down after the last touch
                flat[first : last_low + 1] = [low] * (last_low + 1 - first)
                first = k = last_low = last_high = last_low + 1
                low, high, below, above = y[k], y[k] + 2.0 * strength, strength, -strength
            elif ahead + above > high + strength:  # a step up
                flat[first : last_high + 1] = [high] * (last_high + 1 - first)
                first = k = last_low = last_high = last_high + 1
                low, high, below, above = y[k] - 2.0 * strength, y[k], strength, -strength
            else:
                k += 1
                below += ahead - low
                above += ahead - high
                if below >= strength:
                    low += (below - strength) / (k - first + 1)
                    below, last_low = strength, k
                if above <= -strength:
                    high += (above + strength) / (k - first + 1)
                    above, last_high = -strength, k
        elif below < 0.0:  # the end has to be met exactly
            flat[first : last_low + 1] = [low] * (last_low + 1 - first)
            first = k = last_low = last_low + 1
            low, below, above = y[k], strength, y[k] + strength - high
        elif above > 0.0:
            flat[first : last_high + 1] = [high] * (last_high + 1 - first)
            first = k = last_high = last_high + 1
            high, above, below = y[k], -strength, y[k] - strength - low
        else:
            flat[first:] = [low + below / (k - first + 1)] * (n - first)
            return np.array(flat)
