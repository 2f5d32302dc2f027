"""Border lines of a picture that are of another tone than the lines beside them, as scanners and digitised video leave
them: half dark, or of one colour.

Groups of similar patches cannot learn such a line, because few patches hold it. So it is brought to the tone of the
picture before it is completed, and back afterwards.
"""

import math

import numpy as np

from .. import field

# Lines beside a border that tell what it would be without a tone of its own.
STRIP = 8
# Fewest observed entries of a line, in a channel, that are looked at.
FEWEST = 16
# Rounds that learn the covariance of such a strip: a first estimate tells as well whether a line is of its tone.
ROUNDS = 1
# Least gain in the logarithm of the squared errors, the mean of all channels, for which a line has a tone of its own.
LEAST_GAIN = math.log(3)


def tones(values, observed, noise_variance):
    """What the border lines of a picture have beyond the tone of the lines beside them.

    What the field continues from the lines beside a border line, ``u``, is compared with its observed entries ``y``,
    channel by channel. It has a tone of its own where ``a + b u``, b from 0 to 1, by least squares, leaves less than
    a third of the squared error of ``u`` where each half of the line is told by the other, and of the next line does
    not: else all lines differ so.

    Parameters
    ----------
    values : (H, W, C) float64 ndarray
        Never read where `observed` is False.
    observed : (H, W, C) ndarray of bool
    noise_variance : float
        Of the observed entries.

    Returns
    -------
    (H, W, C) float64 ndarray
        ``a + b u - u`` in border lines with a tone of their own, 0 elsewhere.
    """
    found = np.zeros(values.shape)
    # Rows and columns from each of the four sides.
    for turn in (lambda a: a, lambda a: a[::-1], lambda a: a.swapaxes(0, 1), lambda a: a.swapaxes(0, 1)[::-1]):
        y, seen, tone = (turn(a) for a in (values - found, observed, found))
        gain, own = _tone(y[:STRIP], seen[:STRIP], noise_variance)
        if gain > LEAST_GAIN > _tone(y[1 : STRIP + 1], seen[1 : STRIP + 1], noise_variance)[0]:
            tone[0] += own
    return found


def _tone(values, observed, noise_variance):
    """What the first of some rows would have, (W, C), and the gain by that; 0 where too little is known."""
    first = np.zeros_like(observed)
    first[:1] = True
    kept = observed & ~first
    told = [c for c in range(values.shape[2]) if observed[:1, :, c].sum() >= FEWEST and kept[..., c].any()]
    if not told:
        return 0.0, 0.0
    continued = field.solve(values, kept, noise_variance, steps=ROUNDS, wanted=first).mean[0]
    tone, counts, gains = np.zeros(continued.shape), [], []
    for c in told:
        seen = observed[0, :, c]
        y, u = values[0, seen, c], continued[seen, c]
        shift, slope = _fitted(y, u)
        tone[:, c] = shift + (slope - 1) * continued[:, c]
        counts.append(len(y))
        gains.append(_gain(y, u))
    return np.average(gains, weights=counts), tone


def _fitted(y, u):
    """Shift and slope of ``y = a + b u`` by least squares; a line that varies against the picture, or more, is none of
    its own tone, and what few entries say of it would be carried far.
    """
    varied = u - u.mean()
    slope = np.clip(varied @ y / max(varied @ varied, np.finfo(float).tiny), 0, 1)
    return y.mean() - slope * u.mean(), slope


def _gain(y, u):
    """How much less the logarithm of the squared error is where each half of a line is told by the other."""
    halves, left = (slice(None, len(y) // 2), slice(len(y) // 2, None)), 0.0
    for told, other in (halves, halves[::-1]):
        shift, slope = _fitted(y[other], u[other])
        left += np.sum((y[told] - shift - slope * u[told]) ** 2)
    least = np.finfo(float).eps * np.sum(y**2) + np.finfo(float).tiny
    return np.log(max(np.sum((y - u) ** 2), least)) - np.log(max(left, least))
