"""The conditional of every unknown, one function an equation, for observed entries.

``*_posterior`` functions are deterministic and return the parameters of a law; ``draw_*`` functions draw from it. The
labels in the docstrings are those of the paper, with the errata of docs/model.md.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize_scalar

# Below this shape a Gamma prior underflows when drawn from: an empty component keeps its parameters until burn-in drops
# it.
SMALLEST_DRAWN_SHAPE = 1e-2


def weights_posterior(gram, product, variances):
    """Mean and covariance root of all CP weights at once (eq16 in block form).

    Parameters
    ----------
    gram : (R, R) ndarray
        ``sum w b b^T`` over observed entries, ``b`` the product of all factor rows.
    product : (R,) ndarray
        ``sum w t b``.
    variances : (R,) ndarray
        ``gamma``.

    Returns
    -------
    mean : (R,) ndarray
    root : (R, R) ndarray
        ``root @ root.T`` is the covariance.
    """
    # Scaling by the prior's standard deviations keeps the matrix well conditioned when a component has shrunk to
    # nothing.
    scale = np.sqrt(variances)
    lower = cholesky(np.eye(len(scale)) + scale[:, None] * gram * scale, lower=True)
    root = scale[:, None] * solve_triangular(lower, np.eye(len(scale)), lower=True, trans=1)
    return root @ (root.T @ product), root


def draw_weight_variances(weights, rates, rng):
    """``gamma`` given ``lambda`` and ``kappa`` (eq18, eq19): density ~ g^(-1/2) exp(-(kappa g + lambda^2 / g) / 2).

    Drawn as a chi-square plus an inverse Gaussian, which needs no division by lambda (Seshadri 1993); the inverse
    Gaussian by Michael, Schucany and Haas (1976), its smaller root written without cancellation.

    Parameters
    ----------
    weights, rates : (R,) ndarray
    rng : numpy.random.Generator

    Returns
    -------
    (R,) ndarray
    """
    first, second = rng.standard_normal((2, len(weights))) ** 2
    uniform = rng.random(len(weights))
    size = np.abs(weights)
    root = np.sqrt(rates)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = size / root
        a = second / (2.0 * size * root)
        smaller = mean / (1.0 + a + np.sqrt(a) * np.sqrt(a + 2.0))
        # for |lambda| so small that `a` overflows, the root tends to lambda^2 / chi2 and the other one to chi2 / kappa
        smaller = np.where(np.isfinite(a), smaller, 0.0)
        larger = np.where(smaller > 0, mean**2 / smaller, second / rates)
        inverse_gaussian = np.where(uniform * (mean + smaller) <= mean, smaller, larger)
    return first / rates + np.where(size > 0, inverse_gaussian, 0.0)


def weight_rates_posterior(variances, priors):
    """Shape and rate of ``kappa`` given ``gamma`` (eq20, eq21, with the proper prior)."""
    return priors.kappa_shape + 1.0, priors.kappa_rate + variances / 2.0


def draw_weight_rates(variances, priors, rng):
    """``kappa`` given ``gamma`` (eq21), (R,)."""
    shape, rate = weight_rates_posterior(variances, priors)
    return rng.gamma(shape, 1.0 / rate)


def factor_mean_posterior(factor, precision, priors):
    """Mean and precision of ``mu^(k)`` (eq27-1). Unchanged by coherence, whose rows of ``D - W`` sum to zero."""
    strength = priors.factor_strength + factor.size
    return (factor.sum() + priors.factor_strength * priors.factor_mean) / strength, precision * strength


def draw_factor_mean(factor, precision, priors, rng):
    """``mu^(k)`` (eq27)."""
    mean, posterior = factor_mean_posterior(factor, precision, priors)
    return mean + rng.standard_normal() / np.sqrt(posterior)


def factor_precision_posterior(factor, mean, priors):
    """Shape and rate of ``tau^(k)`` (eq30-1)."""
    deviation = np.sum((factor - mean) ** 2) + priors.factor_strength * (mean - priors.factor_mean) ** 2
    return priors.factor_shape + (factor.size + 1) / 2.0, priors.factor_rate + deviation / 2.0


def log_coherent_precision(precision, factor, mean, priors, coherence):
    """Log density of ``tau^(k)`` with coherence (eq30 for the joint prior of eq50), up to a constant.

    The determinant of ``Q = tau I + eta0 (D - W)`` takes the place of ``tau^(n/2)``.
    """
    _, rate = factor_precision_posterior(factor, mean, priors)
    determinant = np.sum(np.log(precision + coherence.strength * coherence.eigenvalues))
    return (priors.factor_shape - 0.5) * np.log(precision) + factor.shape[1] * determinant / 2.0 - precision * rate


def draw_factor_precision(factor, mean, precision, priors, coherence, rng):
    """``tau^(k)``: a Gamma draw (eq30); with coherence one Metropolis step in ``log tau``."""
    if coherence is None:
        shape, rate = factor_precision_posterior(factor, mean, priors)
        return rng.gamma(shape, 1.0 / rate)
    step = 2.0 / np.sqrt(factor.size)  # about the posterior's own width, n R / 2 being the information on log tau
    proposal = precision * np.exp(step * rng.standard_normal())
    ratio = (log_coherent_precision(proposal, factor, mean, priors, coherence) + np.log(proposal)
             - log_coherent_precision(precision, factor, mean, priors, coherence) - np.log(precision))
    return proposal if np.log(rng.random()) < ratio else precision


def log_scale_density(shift, factor, mean, precision, rates, priors, coherence):
    """Log density of the scale that factor and weights share, along the orbit that leaves X unchanged, up to a
    constant.

    The orbit: factor and ``mu^(k)`` times ``exp(shift)``, weights divided by it, ``tau^(k)``, ``gamma`` and ``kappa``
    following. With the density of all of them goes the Jacobian of the orbit, relative to its Haar measure (Liu and
    Sabatti, Biometrika 2000).
    """
    rows, rank = factor.shape
    grown = precision * np.exp(-2.0 * shift)
    determinant = np.sum(np.log(grown + coherence.strength * coherence.eigenvalues))
    rough = coherence.strength * np.exp(2.0 * shift) * coherence.roughness(factor)
    prior_mean = precision * (mean - priors.factor_mean * np.exp(-shift)) ** 2 * priors.factor_strength
    return (rank * (rows * shift + determinant / 2.0) - (rough + prior_mean) / 2.0 - 2.0 * priors.factor_shape * shift
            - priors.factor_rate * grown + 2.0 * priors.kappa_shape * rank * shift
            - priors.kappa_rate * np.exp(2.0 * shift) * rates.sum())


def draw_scale(factor, mean, precision, rates, priors, coherence, rng):
    """Logarithm of the factor by which a coherent mode grows at the expense of the weights.

    Coherence has a scale of its own (``eta0`` has units), which row by row draws reach only in hundreds of sweeps. One
    independent Metropolis step from a Gaussian at the mode of the orbit's density.
    """
    def density(shift):
        return log_scale_density(shift, factor, mean, precision, rates, priors, coherence)

    best = minimize_scalar(lambda shift: -density(shift), bracket=(-0.5, 0.5), tol=1e-4).x
    step = 1e-2
    curvature = (2.0 * density(best) - density(best - step) - density(best + step)) / step**2
    if not (np.isfinite(best) and curvature > 0):
        return 0.0
    width = 1.2 / np.sqrt(curvature)
    proposal = best + width * rng.standard_normal()
    ratio = density(proposal) - density(0.0) + ((proposal - best) ** 2 - best**2) / (2.0 * width**2)
    return proposal if np.log(rng.random()) < ratio else 0.0


def row_prior(factor, rows, mean, precision, coherence):
    """Prior precision of the scalars of some factor rows, and precision times mean (eq12; with coherence eq50, eq51).

    Parameters
    ----------
    factor : (n_k, R) ndarray
        Current values: the neighbours' are used.
    rows : (m,) int64 ndarray
    mean, precision : float
    coherence : Coherence or None

    Returns
    -------
    diagonals : (m,) ndarray
    shifts : (m, R) ndarray
    """
    diagonals = np.full(len(rows), precision)
    shifts = np.full((len(rows), factor.shape[1]), precision * mean)
    if coherence is not None:
        diagonals += coherence.strength * coherence.degrees[rows]
        shifts += coherence.pull(factor, rows)
    return diagonals, shifts


def residual_posterior(deviations, noise_precision, means, precisions):
    """Mean and precision of ``e`` at observed entries (eq33-1).

    Parameters
    ----------
    deviations : (n,) ndarray
        ``y - x``.
    noise_precision : float
    means, precisions : (n,) ndarray
        Of the component that each entry belongs to; an infinite precision is a constant.

    Returns
    -------
    mean, precision : (n,) ndarray
    """
    total = noise_precision + precisions
    share = np.where(np.isinf(precisions), 0.0, noise_precision / total)
    return means + share * (deviations - means), total


def draw_residuals(deviations, noise_precision, means, precisions, rng):
    """``e`` at observed entries (eq33), (n,)."""
    mean, precision = residual_posterior(deviations, noise_precision, means, precisions)
    return mean + rng.standard_normal(len(mean)) / np.sqrt(precision)


def component_mean_posterior(count, total, precision, priors):
    """Mean and precision of ``mu_d`` (eq36-1) from the number and the sum of its residuals; vectorised over components.
    """
    strength = count + priors.residual_strength
    return (total + priors.residual_strength * priors.residual_mean) / strength, precision * strength


def draw_component_mean(count, total, precision, priors, rng):
    """``mu_d`` (eq36), (D,)."""
    mean, posterior = component_mean_posterior(count, total, precision, priors)
    return mean + rng.standard_normal(len(mean)) / np.sqrt(posterior)


def component_precision_posterior(count, deviation, mean, priors):
    """Shape and rate of ``tau_d`` (eq39-1, errata) from the number and the squared deviations of its residuals from
    ``mu_d``.
    """
    rate = priors.residual_rate + (deviation + priors.residual_strength * (mean - priors.residual_mean) ** 2) / 2.0
    return priors.residual_shape + (count + 1) / 2.0, rate


def draw_components(residuals, labels, means, precisions, priors, rng):
    """``mu_d`` then ``tau_d`` of every component (eq36, eq39).

    Returns
    -------
    means, precisions : (D,) ndarray
        An empty component is drawn from its prior, or left as it is where that prior cannot be drawn from
        (`SMALLEST_DRAWN_SHAPE`).
    """
    count = np.bincount(labels, minlength=len(means)).astype(float)
    total = np.bincount(labels, weights=residuals, minlength=len(means))
    drawn_means = draw_component_mean(count, total, precisions, priors, rng)
    deviation = np.bincount(labels, weights=(residuals - drawn_means[labels]) ** 2, minlength=len(means))
    shape, rate = component_precision_posterior(count, deviation, drawn_means, priors)
    drawn_precisions = rng.gamma(shape, 1.0 / rate)
    stuck = (count == 0) & (priors.residual_shape < SMALLEST_DRAWN_SHAPE)
    return np.where(stuck, means, drawn_means), np.where(stuck, precisions, drawn_precisions)


def mixture_weights_posterior(labels, count, priors):
    """Parameters of the Dirichlet law of ``pi`` (eq46), (D,)."""
    return np.bincount(labels, minlength=count) + np.broadcast_to(priors.concentration, count)


def draw_mixture_weights(labels, count, priors, rng):
    """``pi`` (eq45), (D,), through logarithms of Gamma draws: parameters of 1e-6 underflow otherwise."""
    parameters = mixture_weights_posterior(labels, count, priors)
    logs = np.log(rng.gamma(parameters + 1.0)) + np.log(rng.random(count)) / parameters
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def noise_precision_posterior(errors, priors):
    """Shape and rate of a learnt ``tau0`` given ``y - x - e``."""
    return priors.noise_shape + len(errors) / 2.0, priors.noise_rate + np.sum(errors**2) / 2.0


def constant_residual_posterior(deviations, noise_precision, priors):
    """Mean and precision of ``mu_1`` where E is one constant (residual `none`): eq36-1 with the noise in place of the
    component.
    """
    strength = len(deviations) + priors.residual_strength
    mean = (deviations.sum() + priors.residual_strength * priors.residual_mean) / strength
    return mean, noise_precision * strength


def constant_noise_posterior(deviations, mean, priors):
    """Shape and rate of ``tau0`` where E is the constant `mean`, whose prior is scaled by ``tau0`` too (eq39-1)."""
    spread = np.sum((deviations - mean) ** 2) + priors.residual_strength * (mean - priors.residual_mean) ** 2
    return priors.noise_shape + (len(deviations) + 1) / 2.0, priors.noise_rate + spread / 2.0
