"""Covariance of the channels and level of the noise, learnt together with the field; see `tdc_cli.field`."""

import functools

import numpy as np

from .window import dot

# Correlation of channels that the iteration starts from.
START_CORRELATION = 0.87
# Share of the mean channel variance that is added to each, so that a picture with equal channels keeps S invertible.
RIDGE = 1e-4
# Energy of the error, relative to that of zero, at which conjugate gradients stop while learning.
LEARNING_TOLERANCE = 2e-3
# Longest extrapolation of the accelerated iteration, in EM steps; change of the log covariance at which it has settled.
LONGEST, SETTLED = 8.0, 0.01
# Smallest noise variance that is believed in and first guess where it is to be learnt, relative to the variance of the
# data.
LEAST_NOISE, FIRST_NOISE = 1e-8, 1e-2


class Learner:
    """Channel covariance, and noise variance where that is not given, from some windows of a group of channels.

    Parameters
    ----------
    windows : list of (Window, Window)
        Each with the part of it that samples are drawn of.
    covariance : (C, C) ndarray
        To start from.
    noise : float or None
        None: learnt.
    rng : numpy.random.Generator
    """

    def __init__(self, windows, covariance, noise, rng):
        self.windows, self.sampled = zip(*windows)
        self.given_noise = noise
        self.rng = rng
        self.means = [w.first_guess() for w in self.windows]
        self.deviations = [None] * len(windows)
        self.parameters = self._pack(covariance, FIRST_NOISE if noise is None else noise)

    @functools.cached_property
    def normals(self):
        """Random numbers of the samples, the same in all rounds."""
        return [_whitened(*w.draw_normals(self.rng)) for w in self.sampled]

    def _pack(self, covariance, noise):
        values, vectors = np.linalg.eigh(covariance)
        logarithm = (vectors * np.log(values)) @ vectors.T
        return np.append(logarithm.ravel(), np.log(noise) if self.given_noise is None else 0.0)

    def unpacked(self):
        """Covariance (C, C) and noise variance."""
        size = len(self.windows[0].values)
        values, vectors = np.linalg.eigh(self.parameters[:-1].reshape(size, size))
        noise = float(np.exp(self.parameters[-1])) if self.given_noise is None else self.given_noise
        values = np.exp(values)
        # An extrapolation may leave what every iteration keeps to; of equal channels S would be singular.
        return (vectors * np.maximum(values, RIDGE * values.mean())) @ vectors.T, noise

    def settle(self):
        """Covariance where every pixel is observed in all channels or in none, and without noise.

        There the posterior mean m does not depend on S, and the most likely S is ``m^T Q m / n``, n the number of
        observed pixels.
        """
        seen = sum(np.count_nonzero(w.observed[0]) for w in self.windows)
        if not seen:  # a group of channels without any data has nothing to learn from
            return
        covariance, _ = self.unpacked()
        for k, window in enumerate(self.windows):
            window.set_parameters(covariance, 0.0)
            self._improve_mean(k)
            window.system = None  # all factors at once would be most of the memory
        fitted = sum(w.spread(w.values + m) for w, m in zip(self.windows, self.means))
        self.parameters = self._pack(_ridged(fitted / seen), None)

    def round(self, run):
        """Two EM iterations and an extrapolation; returns how far the parameters moved."""
        first = self.parameters
        second = self.parameters = self._iterate(run)
        third = self.parameters = self._iterate(run)
        change, bend = second - first, third - 2 * second + first
        length = np.linalg.norm(change) / max(np.linalg.norm(bend), 1e-12)
        length = min(max(length, 1.0), LONGEST)
        self.parameters = first + 2 * length * change + length**2 * bend
        return np.linalg.norm(self.parameters - first)

    def _iterate(self, run):
        seen = sum(np.count_nonzero(w.observed) for w in self.windows)
        if not seen:  # a group of channels without any data has nothing to learn from
            return self.parameters
        covariance, noise = self.unpacked()
        for window in {*self.windows, *self.sampled}:
            window.set_parameters(covariance, noise)

        def work(task):
            k, sampled = task
            if sampled:
                found = self.sampled[k].deviation(self.normals[k], self.deviations[k], LEARNING_TOLERANCE)
                self.deviations[k] = found[0]
            else:
                self._improve_mean(k)

        run(work, [(k, sampled) for k in range(len(self.windows)) for sampled in (False, True)])
        pixels = sum(w.pattern.size for w in self.windows)
        means = list(zip(self.windows, self.means))
        # A part stands for as many parts as its window has.
        drawn = [
            (w.pattern.size / s.pattern.size, s, e) for w, s, e in zip(self.windows, self.sampled, self.deviations)
        ]
        fitted = sum(w.spread(m if noise else w.values + m) for w, m in means)
        uncertain = sum(times * s.spread(e) for times, s, e in drawn)
        if not noise:
            # The scale of S has a closed form: y^T K^-1 y / n. The sample, drawn with the old one, is brought to it.
            uncertain *= np.sum(fitted * np.linalg.inv(covariance)) / seen
        covariance = _ridged((fitted + uncertain) / pixels)
        if self.given_noise is None:
            misfit = sum(dot((w.values - m) * w.observed, w.values - m) for w, m in means)
            misfit += sum(times * dot(e * s.observed, e) for times, s, e in drawn)
            noise = max(misfit / seen, LEAST_NOISE)
        return self._pack(covariance, noise)

    def _improve_mean(self, k):
        self.means[k] = self.windows[k].mean(self.means[k], LEARNING_TOLERANCE)


def _whitened(prior, *data):
    """Normals of a sample, those of the prior with the covariance of channels that they are drawn from, the identity.

    An EM iteration adds what is missing to what is observed, so that a share f of missing entries multiplies the errors
    of a sample by 1 / (1 - f); so the variance of its spread is only 1 - f times as large.
    """
    covariance = np.einsum("ihw,jhw->ij", prior, prior, dtype=float) / prior[0].size
    if prior[0].size <= len(prior):  # too few pixels for a covariance that has an inverse
        return prior, *data
    whitening = np.linalg.inv(np.linalg.cholesky(covariance)).astype(prior.dtype)
    return np.einsum("ij,jhw->ihw", whitening, prior), *data


def _ridged(covariance):
    return covariance + (RIDGE * np.trace(covariance) / len(covariance) + 1e-10) * np.eye(len(covariance))


def moments(parts, unit):
    """Mean (C,) and variance (C,) of the observed entries over `unit`; channels without any get the average of the
    others.
    """
    channels = parts[0][0].shape[2]
    blocks = []
    for values, observed in parts:
        step = max(1, 1_000_000 // max(values[0].size, 1))
        blocks += [(values[i : i + step], observed[i : i + step]) for i in range(0, len(values), step)]
    count = sum(known.sum(axis=(0, 1)) for _, known in blocks)
    seen = count > 0
    if not seen.any():
        return np.zeros(channels), np.zeros(channels)
    total = sum((np.where(known, values, 0.0) / unit).sum(axis=(0, 1)) for values, known in blocks)
    mean = total / np.maximum(count, 1)
    mean[~seen] = mean[seen].mean()
    square = sum((np.where(known, values / unit - mean, 0.0) ** 2).sum(axis=(0, 1)) for values, known in blocks)
    variance = square / np.maximum(count, 1)
    variance[~seen] = variance[seen].mean()
    return mean, variance


def first_covariance(variance):
    """Covariance to start from: the variances of the channels, and the correlation that photographs have."""
    deviation = np.sqrt(np.maximum(variance, 1e-3 * variance.mean() + 1e-12))
    correlation = np.full((len(variance),) * 2, START_CORRELATION)
    np.fill_diagonal(correlation, 1.0)
    return correlation * np.outer(deviation, deviation)
