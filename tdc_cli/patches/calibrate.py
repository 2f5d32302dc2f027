"""Standard deviations that hold what they say: held-out observed entries, and the scale that their errors ask for."""

from dataclasses import dataclass

import numpy as np

# A 90 % interval of a Gaussian is the estimate +- NINETY standard deviations.
NINETY = 1.645
# Held-out entries in a bin of the scale, and the most bins.
BIN, MOST_BINS = 100, 12
# Fewer held-out entries than this say nothing about a 90 % interval.
FEWEST = 20
# Side of the pieces of a moved mask that are held out, in pixels.
PIECE = 32


def hold_out(observed, share, rng):
    """Observed entries to hide, in the shape of what is missing.

    Where holes are strokes or blocks, pieces of the mask moved at random; where most is missing, or single pixels, scattered pixels
    if all channels are missing together and scattered entries if not.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    share : float
        Share of the observed entries to hide, about.
    rng : numpy.random.Generator

    Returns
    -------
    (H, W, C) ndarray of bool
        True = held out; never all that is observed in a channel.
    """
    absent = ~observed
    count = round(share * observed.sum())
    together = (absent.all(axis=2) == absent.any(axis=2)).all()
    held = _moved_pieces(absent, count, rng) if are_strokes(absent) else _scattered(observed, count, together, rng)
    return held & (observed & ~held).any(axis=(0, 1))


def are_strokes(absent):
    """Whether what is missing hangs together, as strokes and blocks do: a missing entry's neighbours are missing far more often than
    by chance."""
    if not absent.any() or min(absent.shape[:2]) < 2:
        return False
    beside = max(np.mean(absent[1:][absent[:-1]]), np.mean(absent[:, 1:][absent[:, :-1]]))
    return bool(beside > 0.5 * (1 + absent.mean()))


def _scattered(observed, count, together, rng):
    held = np.zeros_like(observed)
    if together:
        pixels = np.flatnonzero(observed.any(axis=2))
        held.reshape(-1, observed.shape[2])[rng.choice(pixels, min(len(pixels), count // observed.shape[2]), replace=False)] = True
    else:
        entries = np.flatnonzero(observed)
        held.reshape(-1)[rng.choice(entries, min(len(entries), count), replace=False)] = True
    return held & observed


def _moved_pieces(absent, count, rng):
    """Squares of the mask moved cyclically, one after the other in random order, until `count` observed entries are covered."""
    height, width, _ = absent.shape
    moved = np.roll(absent, (rng.integers(PIECE, max(height, PIECE + 1)), rng.integers(PIECE, max(width, PIECE + 1))), axis=(0, 1))
    moved &= ~absent
    corners = [(r, c) for r in range(0, height, PIECE) for c in range(0, width, PIECE)]
    held = np.zeros_like(absent)
    left = count
    for place in rng.permutation(len(corners)):
        r, c = corners[place]
        piece = moved[r : r + PIECE, c : c + PIECE]
        if left <= 0:
            break
        held[r : r + PIECE, c : c + PIECE] = piece
        left -= piece.sum()
    return held


@dataclass(frozen=True)
class Scale:
    """Factor from a relative spread to a standard deviation, a function of the spread itself.

    Attributes
    ----------
    spreads : (B,) ndarray
        Spreads, ascending.
    factors : (B,) ndarray
        Factor at each; in between by interpolation in the logarithm, constant beyond the ends.
    """

    spreads: np.ndarray
    factors: np.ndarray

    def __call__(self, spread):
        """Standard deviations for spreads of any shape."""
        floored = np.maximum(spread, self.spreads[0])
        return floored * np.exp(np.interp(np.log(floored), np.log(self.spreads), np.log(self.factors)))


def fit_scale(errors, spreads, noise_variance=0.0):
    """Scale under which 90 % of the errors lie within +- 1.645 standard deviations, in every bin of alike spreads.

    Parameters
    ----------
    errors : (n,) ndarray
        Estimate minus observation of held-out entries.
    spreads : (n,) ndarray
        Relative standard deviations of the same entries, not negative.
    noise_variance : float
        Of the observations; taken out of the errors.

    Returns
    -------
    Scale or None
        None: too few entries, or no spread at all.
    """
    if len(errors) < FEWEST or not np.any(spreads > 0):
        return None
    order = np.argsort(spreads, kind="stable")
    bins = np.array_split(order, min(MOST_BINS, max(1, len(errors) // BIN)))
    tiny = 1e-3 * np.sqrt(np.mean(spreads**2))
    centres = np.array([max(np.median(spreads[b]), tiny) for b in bins])
    widths = np.array([np.quantile(np.abs(errors[b]) / np.maximum(spreads[b], tiny), 0.9) for b in bins]) / NINETY * centres
    deviations = np.sqrt(np.maximum(widths**2 - noise_variance, (0.1 * widths) ** 2))
    factors = np.maximum(deviations / centres, 1e-6)
    distinct = np.r_[True, np.diff(centres) > 0]
    return Scale(centres[distinct], factors[distinct])


def coverage_by_halves(errors, spreads, noise_variance, rng):
    """Share of held-out entries inside their 90 % interval, each half judged by the scale fitted to the other; None if too few."""
    halves = np.array_split(rng.permutation(len(errors)), 2)
    inside = []
    for one, other in (halves, halves[::-1]):
        scale = fit_scale(errors[one], spreads[one], noise_variance)
        if scale is None:
            return None
        sd = np.sqrt(scale(spreads[other]) ** 2 + noise_variance)
        inside.append(np.abs(errors[other]) <= NINETY * sd)
    return float(np.mean(np.concatenate(inside)))
