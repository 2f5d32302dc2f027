"""Standard deviations that hold what they say: held-out observed entries, and the scale that their errors ask for."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_cdt, find_objects, label
from scipy.special import stdtrit

from ..metrics import NORMAL_90

# Held-out entries in a bin of the scale, and the most bins.
BIN, MOST_BINS = 100, 12
# The same of errors that are independent, where these are few.
INDEPENDENT_BIN = 8
# Fewer held-out entries than this say nothing about a 90 % interval.
FEWEST = 20
# Side of the pieces of a moved mask that are held out, in pixels; of long pieces in widths of the holes, if that is
# more. Less where a piece would be more than this share of what is observed.
PIECE, WIDTHS, LARGEST_SHARE = 32, 4, 1 / 8
# What is held out keeps this distance from what is missing, in pixels: together they would be a hole wider than any,
# and a line that goes on beneath it would be lost.
APART = 3
# How often a mask that covers too little is moved anew.
MOST_MOVES = 16
# The least share of the errors' variance that the last passes are taken to leave.
LEAST_LEFT = 0.5


def hold_out(observed, share, rng, most=math.inf, wanted=None, long=False):
    """Observed entries to hide, in the shape of what is missing.

    Where holes are strokes or blocks, pieces of the mask moved at random, the deepest hole as a whole among them; where
    most is missing, or single pixels, scattered pixels if all channels are missing together and scattered entries if
    not.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    share : float
        Share of the observed entries to hide, about.
    rng : numpy.random.Generator
    most : int
        Most entries to hide where they are scattered; pieces of strokes tell less, entry by entry.
    wanted : (H, W, C) ndarray of bool, or None
        What is missing and to be filled, whose shape counts; None: all that is missing.
    long : bool
        Whether pieces of strokes are several widths long. A stroke is less deep where it is cut; but the longer what is
        held out, the less the rest tells.

    Returns
    -------
    (H, W, C) ndarray of bool
        True = held out; never all that is observed in a channel.
    """
    absent = ~observed if wanted is None else wanted
    count = round(share * observed.sum())
    together = (absent.all(axis=2) == absent.any(axis=2)).all()
    held = (
        _moved_pieces(absent, observed, count, rng, long)
        if are_strokes(absent)
        else _scattered(observed, min(count, most), together, rng)
    )
    return held & (observed & ~held).any(axis=(0, 1))


def are_strokes(absent):
    """Whether what is missing hangs together, as strokes and blocks do: a missing entry's neighbours are missing far
    more often than by chance.
    """
    if not absent.any() or min(absent.shape[:2]) < 2:
        return False
    below = np.sum(absent[1:] & absent[:-1]) / max(1, np.sum(absent[:-1]))
    beside = np.sum(absent[:, 1:] & absent[:, :-1]) / max(1, np.sum(absent[:, :-1]))
    return bool(max(below, beside) > 0.5 * (1 + absent.mean()))


def _scattered(observed, count, together, rng):
    held = np.zeros_like(observed)
    if together:
        pixels = np.flatnonzero(observed.any(axis=2))
        held.reshape(-1, observed.shape[2])[
            rng.choice(pixels, min(len(pixels), count // observed.shape[2]), replace=False)
        ] = True
    else:
        entries = np.flatnonzero(observed)
        held.reshape(-1)[rng.choice(entries, min(len(entries), count), replace=False)] = True
    return held & observed


def _moved_pieces(absent, observed, count, rng, long):
    """Pieces of the mask moved cyclically, one after the other in random order, until `count` observed entries are
    covered.

    A mask that covers less than half of that is moved again. A hole deeper than such pieces comes first, as a whole.
    Squares of longer holes lose what is nearer than `APART` to what is missing, and holes deeper than that are chosen
    where they keep it.
    """
    channels = absent.shape[2]
    deep = depth(absent)
    largest = math.isqrt(int(LARGEST_SHARE * np.sum(observed) / channels))
    side = max(1, min(max(PIECE, round(WIDTHS * _width(deep))) if long else PIECE, largest))
    pieces, whole = _pieces(absent.any(axis=2), side)
    held = _moved_hole(absent, observed, rng)
    left, thin = count - held.sum(), deep <= APART
    # Thin strokes are told as well from one side.
    beside, above = _at_border(np.zeros_like(pieces) if thin else pieces)
    for number in range(MOST_MOVES):
        place, moved = _moved(pieces, absent, beside, above, rng)
        moved &= observed & ~held
        # In the end, where holes leave no room for such a distance, pieces are cut by them alone.
        if number < MOST_MOVES // 2:
            near = distance_transform_cdt(~(absent | held).all(axis=2), "chessboard") <= APART
            lost = near & (place > whole)
            if not thin:
                meeting = np.unique(place[near])
                lost |= np.isin(place, meeting[meeting <= whole])
            moved[lost] = False
        covers = np.bincount(place.ravel(), moved.sum(axis=2).ravel())
        order = rng.permutation(np.flatnonzero(covers))
        before = np.cumsum(covers[order]) - covers[order]
        held |= moved & np.isin(place, order[before < left])[..., None]
        left -= covers[order[before < left]].sum()
        if left <= count / 2:
            break
    return held


def _at_border(pieces):
    """Which pixels of (H, W) numbered `pieces`, 0 = none, belong to one at the left or right border, and to one at the
    upper or lower.
    """
    return (np.isin(pieces, np.setdiff1d(lines, 0)) for lines in (pieces[:, [0, -1]], pieces[[0, -1]]))


def _moved(pieces, absent, beside, above, rng):
    """Numbers of pieces, (H, W), and the mask, (H, W, C), moved at random.

    Pieces at a border, which are `beside` or `above` the others, are told from one side alone, and err more: these stay
    at a border, the same or the opposite one, along which they move, and those in a corner in some corner.
    """
    shift = [rng.integers(max(1, min(PIECE, n // 3)), n) for n in pieces.shape]
    place, moved = np.zeros_like(pieces), np.zeros_like(absent)
    for at_side, at_end in ((False, False), (False, True), (True, False), (True, True)):
        chosen = (beside == at_side) & (above == at_end)
        if not (chosen & (pieces > 0)).any():
            continue
        own, turn = [0 if at_end else shift[0], 0 if at_side else shift[1]], [slice(None), slice(None)]
        for axis, stays in enumerate((at_end, at_side)):
            if stays and rng.random() < 0.5:
                turn[axis] = slice(None, None, -1)
        number = np.roll(np.where(chosen, pieces, 0), own, axis=(0, 1))[tuple(turn)]
        holes = np.roll(absent & chosen[..., None], own, axis=(0, 1))[tuple(turn)]
        place, moved = np.where(number, number, place), np.where(number[..., None] > 0, holes, moved)
    return place, moved


def _pieces(absent, side):
    """Number of the piece that every pixel belongs to, (H, W), 0 where nothing is missing, and the last number of a
    whole hole: one that a square of `side` pixels holds is a piece, so that it is held out to its whole depth; of
    others every such square is.
    """
    holes, count = label(absent, np.ones((3, 3)))
    squares = 1 + np.arange(absent.shape[0])[:, None] // side * absent.shape[1] + np.arange(absent.shape[1]) // side
    small = [0] + [max(s.stop - s.start for s in place) <= side for place in find_objects(holes)]
    return np.where(np.array(small, bool)[holes], holes, np.where(absent, count + squares, 0)), count


def _moved_hole(absent, observed, rng):
    """The square about the deepest place of all holes, moved to where it covers most of what is observed; nothing where
    `PIECE` holds it.

    Errors grow with the distance from what is known, so that those of a deep hole show only in one of its size. No more
    than `LARGEST_SHARE` of what is observed is covered.
    """
    height, width, channels = absent.shape
    held = np.zeros_like(absent)
    if absent.all():
        return held
    depths = distance_transform_cdt(absent.all(axis=2), "chessboard")
    row, column = np.unravel_index(np.argmax(depths), depths.shape)
    if 2 * depths[row, column] <= PIECE:
        return held
    reach = min(depths[row, column], math.isqrt(int(LARGEST_SHARE * np.sum(observed) / channels)) // 2)
    piece = absent[max(row - reach, 0) : row + reach, max(column - reach, 0) : column + reach]
    most = 0
    # At a border it stays at it, or at the opposite one.
    at_border = [here < reach or here + reach > n for here, n in zip((row, column), (height, width))]
    for _ in range(MOST_MOVES):
        corner = [(n - length) * rng.integers(2) if stays else rng.integers(n - length + 1)
                  for n, length, stays in zip((height, width), piece.shape, at_border)]  # fmt: skip
        place = tuple(slice(start, start + length) for start, length in zip(corner, piece.shape))
        covered = piece & observed[place]
        if covered.sum() > most:
            most = covered.sum()
            held[:] = False
            held[place] = covered
    return held


@dataclass(frozen=True)
class Scale:
    """Factor from a relative spread to a standard deviation, a function of the spread itself.

    Attributes
    ----------
    spreads : (B,) ndarray
        Spreads, ascending.
    factors : (B,) ndarray
        Factor at each; in between by interpolation in the logarithm, constant beyond the upper end;
        spreads below the lowest count as the lowest.
    """

    spreads: np.ndarray
    factors: np.ndarray

    def __call__(self, spread):
        """Standard deviations for spreads of any shape."""
        floored = np.maximum(spread, self.spreads[0])
        return floored * np.exp(np.interp(np.log(floored), np.log(self.spreads), np.log(self.factors)))


def depth(absent):
    """How far inside the holes of (H, W, C) entries missing pixels lie: 90th percentile of the distance to the nearest
    pixel with an entry that is there, 0 without holes.
    """
    holes = absent.all(axis=2)
    return (
        np.percentile(distance_transform_cdt(holes, "chessboard")[holes], 90) if holes.any() and not holes.all() else 0
    )


def _width(deep):
    """Width in pixels of strokes of a `depth`."""
    return max(1, 2 * deep - 1)


def independent(held):
    """About how many errors of held-out entries (H, W, C) are independent: within a square as wide as a hole they are
    much the same.
    """
    return np.count_nonzero(held.any(axis=2)) / _width(depth(held)) ** 2


def fit_scale(errors, spreads, noise_variance=0.0, count=math.inf):
    """Scale under which 90 % of the errors lie within +- 1.645 standard deviations, in every bin of alike spreads.

    What a bin of few errors tells is wider, as Student's t is wider than the normal distribution.

    Parameters
    ----------
    errors : (n,) ndarray
        Estimate minus observation of held-out entries.
    spreads : (n,) ndarray
        Relative standard deviations of the same entries, not negative.
    noise_variance : float
        Of the observations; taken out of the errors.
    count : float
        How many of the errors are independent, see `independent`; infinity: enough.

    Returns
    -------
    Scale or None
        None: too few entries, or no spread at all.
    """
    if len(errors) < FEWEST or not np.any(spreads > 0):
        return None
    order = np.argsort(spreads, kind="stable")
    bins = np.array_split(order, int(max(1, min(MOST_BINS, len(errors) // BIN, count // INDEPENDENT_BIN))))
    tiny = 1e-3 * np.sqrt(np.mean(spreads**2))
    centres = np.array([max(np.median(spreads[b]), tiny) for b in bins])
    # The same floor as in `Scale`, so that the lowest bin holds its 90 % too.
    widths = np.array(
        [np.quantile(np.abs(errors[b]) / np.maximum(spreads[b], centres[0]), 0.9, method="weibull") for b in bins]
    )
    widths *= centres / NORMAL_90
    # Under noise, what is left after it is no smaller than what a bin of that many entries can tell from nothing.
    least = widths**2 / np.sqrt([len(b) for b in bins])
    deviations = np.sqrt(np.maximum(widths**2 - noise_variance, least))
    # With one or two degrees of freedom t has no variance.
    factors = np.maximum(deviations / centres, 1e-6) * (stdtrit(max(count / len(bins), 3), 0.95) / NORMAL_90)
    distinct = np.r_[True, np.diff(centres) > 0]
    return Scale(centres[distinct], factors[distinct])


def uncalibrated(scale, errors):
    """What to tell, a tuple of str, where so few `errors` of held-out entries gave no `Scale`."""
    few = f"only {len(errors)} observed entries could be held out: the standard deviations are not calibrated"
    return (few,) if scale is None else ()


def widest(values, observed):
    """Half the range of what is observed: nothing within a range has a larger standard deviation (Popoviciu's
    inequality), however little is known of it. Infinity if nothing is.
    """
    return np.ptp(values[observed]) / 2 if observed.any() else math.inf


def bound(deviations, values, observed):
    """Bring standard deviations (..., C), in place, to at most what is the `widest`.

    Those of channels of which nothing is observed become that of all that is: no entry tells how far a guess at them
    is off.
    """
    seen = values[observed]
    if seen.size:
        deviations[..., ~observed.any(axis=tuple(range(observed.ndim - 1)))] = seen.std()
        np.minimum(deviations, widest(values, observed), out=deviations)


def coverage_by_halves(errors, spreads, noise_variance, rng):
    """Share of held-out entries inside their 90 % interval, each half judged by the scale fitted to the other; None if
    too few.
    """
    halves = np.array_split(rng.permutation(len(errors)), 2)
    inside = []
    for one, other in (halves, halves[::-1]):
        scale = fit_scale(errors[one], spreads[one], noise_variance)
        if scale is None:
            return None
        sd = np.sqrt(scale(spreads[other]) ** 2 + noise_variance)
        inside.append(np.abs(errors[other]) <= NORMAL_90 * sd)
    return float(np.mean(np.concatenate(inside)))


def factor_of_last_passes(changes, errors, noise):
    """Factor of the standard deviations for what the last passes bettered.

    Where a change has nothing to do with the error that it leaves, the mean square of the errors falls by its own.

    Parameters
    ----------
    changes : (n,) ndarray
        Of missing entries, from the draft to the end.
    errors : (m,) ndarray
        Of held-out entries in the draft, noise included.
    noise : float
        Variance.
    """
    before = np.mean(errors**2) - noise
    return _left(np.mean(changes**2) / before if len(changes) and before > 0 else 0.0)


def factor_of_most_changes(changes, deviations):
    """`factor_of_last_passes` where few changes are large, as where a line beneath a stroke is found again: these say
    nothing of most errors, which 90 % intervals go by.

    Parameters
    ----------
    changes : (n,) ndarray
        Of missing entries, from the draft to the end.
    deviations : (n,) ndarray
        Standard deviations of the same entries in the draft, above 0.
    """
    return _left((np.quantile(np.abs(changes) / deviations, 0.9) / NORMAL_90) ** 2 if len(changes) else 0.0)


def _left(share):
    """Factor of standard deviations where this share of the variance is gone."""
    return math.sqrt(max(1 - share, LEAST_LEFT))
