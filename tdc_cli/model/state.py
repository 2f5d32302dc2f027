"""The unknowns of the model, their priors, and how both look at the start."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Priors:
    """Hyperparameters (eq6, eq9, eq13, eq50), in units of the standardised data.

    The defaults are the paper's where the paper has one. Gamma laws are (shape, rate).

    Attributes
    ----------
    factor_mean, factor_strength, factor_shape, factor_rate : float
        ``mu0, beta0, a0, b0`` of the Normal-Gamma prior of ``(mu^(k), tau^(k))`` (eq13).
    residual_mean, residual_strength, residual_shape, residual_rate : float
        ``mu0, beta0, a0, b0`` of the Normal-Gamma prior of ``(mu_d, tau_d)`` (eq6).
    concentration : float or (D,) ndarray
        ``alpha0`` of the Dirichlet prior of the mixture weights (eq6).
    kappa_shape, kappa_rate : float
        Gamma prior of ``kappa_r``. The printed prior is flat, which makes the posterior improper (see docs/model.md); a
        small rate makes it proper, keeps the heavy tail and gives the spike at 0 the width ``sqrt(kappa_rate)``.
    noise_shape, noise_rate : float
        Gamma prior of the noise precision, where that is learnt.
    coherence : float
        ``eta0`` of eq50; used by modes that are declared to be ordered.
    """

    factor_mean: float = 0.0
    factor_strength: float = 1e-6
    factor_shape: float = 1e-6
    factor_rate: float = 1e-6
    residual_mean: float = 0.0
    residual_strength: float = 1e-6
    residual_shape: float = 1e-6
    residual_rate: float = 1e-6
    concentration: float = 1e-6
    kappa_shape: float = 1.0
    kappa_rate: float = 1e-12
    noise_shape: float = 1e-6
    noise_rate: float = 1e-6
    coherence: float = 1e3


@dataclass(frozen=True)
class State:
    """One draw of every unknown (eq15, with the ones that the printed list forgets).

    Attributes
    ----------
    weights : (R,) ndarray
        ``lambda``, the CP weights.
    weight_variances : (R,) ndarray
        ``gamma``.
    weight_rates : (R,) ndarray
        ``kappa``.
    factors : tuple of (n_k, R) ndarray
        ``U^(k)``.
    factor_means, factor_precisions : (K,) ndarray
        ``mu^(k)``, ``tau^(k)``.
    labels : (n,) int64 ndarray
        ``z``: the mixture component of every observed entry.
    residuals : (n,) ndarray
        ``e`` at every observed entry.
    component_means, component_precisions, component_weights : (D,) ndarray
        ``mu_d``, ``tau_d`` (infinite: the component is a constant), ``pi_d``.
    noise_precision : float
        ``tau0``.
    """

    weights: np.ndarray
    weight_variances: np.ndarray
    weight_rates: np.ndarray
    factors: tuple
    factor_means: np.ndarray
    factor_precisions: np.ndarray
    labels: np.ndarray
    residuals: np.ndarray
    component_means: np.ndarray
    component_precisions: np.ndarray
    component_weights: np.ndarray
    noise_precision: float

    @property
    def rank(self):
        """Number of CP components that are carried along, weak ones included."""
        return len(self.weights)

    def keep_components(self, chosen):
        """State with only the CP components in `chosen` (indices or a mask)."""
        return replace(self, weights=self.weights[chosen], weight_variances=self.weight_variances[chosen],
                       weight_rates=self.weight_rates[chosen],
                       factors=tuple(np.ascontiguousarray(u[:, chosen]) for u in self.factors))


def unit_weights(state):
    """Absolute CP weights once every factor column has unit root mean square: the scale that the likelihood can see,
    (R,).
    """
    sizes = np.abs(state.weights)
    for u in state.factors:
        sizes = sizes * np.sqrt(np.mean(u**2, axis=0))
    return sizes
