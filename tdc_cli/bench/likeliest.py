"""The most likely mixture of Gaussians of a sample: what a method that saw the residual itself would find."""

import numpy as np

from . import synth
from .mixtures import density

# Variance below which a component may not go: entries that are exactly 0 would make the likelihood infinite.
FLOOR = 1e-6
LEAST_HELD = 10  # entries of a component; fewer are a singularity of the likelihood
FIRST_STEPS, LAST_STEPS, FINISHED = 200, 5000, 2
RANDOM_STARTS = 6


def likeliest(problem, fitted):
    """Weights, means and variances of the most likely mixture of the drawn residual that is found from several starts.

    The starts: the fitted mixture, the population's parts where there are as many, and groups of residuals by distance
    from the median. A solution with a component of fewer than `LEAST_HELD` entries is left out.

    Parameters
    ----------
    problem : synth.SyntheticProblem
        All entries of its residual are used.
    fitted : tuple of weights, means, variances
        It also says how many components there are.

    Returns
    -------
    tuple of three (D,) ndarrays
    """
    values, counts = np.unique(problem.residual, return_counts=True)
    counts = counts.astype(float)
    number = len(fitted[0])
    starts = [(fitted[0], fitted[1], np.maximum(fitted[2], FLOOR))]
    parts = synth.KINDS[problem.kind]
    if len(parts) == number:
        starts.append(tuple(np.array([max(getattr(part, name), least) for part in parts])
                            for name, least in (("share", 0.0), ("mean", -np.inf), ("variance", FLOOR))))  # fmt: skip
    rng = np.random.default_rng(0)
    near = np.argsort(np.abs(values - np.median(values)), kind="stable")
    for _ in range(RANDOM_STARTS if number > 1 else 1):
        if len(values) < 2 * LEAST_HELD + number:  # a residual of hardly any values needs no search
            break
        groups = np.split(
            values[near],
            np.sort(rng.choice(np.arange(LEAST_HELD, len(values) - LEAST_HELD), number - 1, replace=False)),
        )
        weights = np.array([len(g) for g in groups]) / len(values)
        starts.append((weights, np.array([g.mean() for g in groups]), np.maximum([g.var() for g in groups], FLOOR)))
    fits = [_maximise(values, counts, *start, steps=FIRST_STEPS) for start in starts]
    sound = [fit for fit in fits if fit[0].min() * counts.sum() >= LEAST_HELD] or fits
    sound.sort(key=lambda fit: -fit[3])
    finished = [_maximise(values, counts, *fit[:3], steps=LAST_STEPS) for fit in sound[:FINISHED]]
    return max(finished, key=lambda fit: fit[3])[:3]


def _maximise(values, counts, weights, means, variances, *, steps, tolerance=1e-10):
    """Expectation-maximisation; weights, means, variances, and the log likelihood before the last step."""
    before = -np.inf
    for _ in range(steps):
        with np.errstate(divide="ignore"):
            scores = (np.log(weights) - 0.5 * np.log(2 * np.pi * variances))[:, None]
        scores = scores - 0.5 * (values - means[:, None]) ** 2 / variances[:, None]
        top = scores.max(axis=0)
        shares = np.exp(scores - top)
        sums = shares.sum(axis=0)
        total = float(counts @ (top + np.log(sums)))
        shares *= counts / sums
        sizes = np.maximum(shares.sum(axis=1), 1e-300)
        weights, means = sizes / counts.sum(), shares @ values / sizes
        variances = np.maximum(np.array([s @ (values - m) ** 2 for s, m in zip(shares, means)]) / sizes, FLOOR)
        if total - before < tolerance * abs(total):
            break
        before = total
    return weights, means, variances, total


def density_difference(one, other, extra):
    """Integral of the absolute difference of two mixtures' densities.

    Parameters
    ----------
    one, other : tuple of weights, means, variances
    extra : float
        Added to all variances.

    Returns
    -------
    float
        From 0 to 2.
    """
    one, other = ((weights, means, variances + extra) for weights, means, variances in (one, other))
    low = min((means - 8 * np.sqrt(variances)).min() for _, means, variances in (one, other))
    high = max((means + 8 * np.sqrt(variances)).max() for _, means, variances in (one, other))
    # fine about every component, coarse elsewhere
    fine = [
        m + np.sqrt(v) * np.linspace(-8, 8, 2001)
        for _, means, variances in (one, other)
        for m, v in zip(means, variances)
    ]
    grid = np.unique(np.concatenate([np.linspace(low, high, 2001), *fine]))
    return float(np.trapezoid(np.abs(density(grid, *one) - density(grid, *other)), grid))
