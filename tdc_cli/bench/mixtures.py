"""Mixtures of Gaussians side by side: their densities, and which component of one is which of the other."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def density(values, weights, means, variances):
    """Density of a mixture.

    Parameters
    ----------
    values : (n,) ndarray
    weights, means, variances : (D,) array_like
        Variances above 0.

    Returns
    -------
    (n,) ndarray
    """
    variances = np.asarray(variances, dtype=float)
    exponents = -0.5 * (np.asarray(values)[:, None] - np.asarray(means)) ** 2 / variances
    return np.exp(exponents) @ (np.asarray(weights) / np.sqrt(2.0 * np.pi * variances))


def distances(one, other, noise_variance):
    """Distance of every component of one mixture from every one of another.

    One minus the overlap of the laws, as seen through the noise, plus the difference of the weights.

    Parameters
    ----------
    one, other : tuple of weights, means, variances
        Of D and D' components.
    noise_variance : float
        Above 0 where a variance is 0.

    Returns
    -------
    (D, D') ndarray
    """
    (weights, means, variances), (others, centres, spreads) = (
        tuple(np.asarray(part, dtype=float) for part in m) for m in (one, other)
    )
    variances, spreads = variances[:, None] + noise_variance, spreads + noise_variance
    both = variances + spreads
    overlap = np.sqrt(2.0 * np.sqrt(variances * spreads) / both) * np.exp(
        -0.25 * (means[:, None] - centres) ** 2 / both
    )
    return 1.0 - overlap + np.abs(weights[:, None] - others)


def match(one, other, noise_variance):
    """Pairs of the components that are most alike, then what is left of either.

    Parameters
    ----------
    one, other, noise_variance
        As for `distances`.

    Returns
    -------
    list of (int or None, int or None)
        By falling weight in `one`; None where the other has more components.
    """
    rows, columns = linear_sum_assignment(distances(one, other, noise_variance))
    pairs = dict(zip(rows.tolist(), columns.tolist()))
    order = np.argsort(-np.asarray(one[0]), kind="stable").tolist()
    left = [j for j in range(len(other[0])) if j not in pairs.values()]
    return [(i, pairs.get(i)) for i in order] + [(None, j) for j in left]
