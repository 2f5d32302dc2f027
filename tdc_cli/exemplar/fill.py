"""Fill a hole so that every patch over it looks like one elsewhere.

The objective is that of Wexler, Shechtman and Irani: the sum of the distances of all patches that touch the hole to the
most similar patches outside of it. It is lowered by turns: sources are looked for by PatchMatch, then every pixel
becomes the weighted mean of what the sources of the patches over it propose; first at a coarse scale, where the hole is
a few pixels deep and is filled from its rim inwards, then at finer ones, each beginning with the sources of the one
before. At the end every pixel is copied from one place, so that nothing is smeared by a mean, and `blend` balances what
does not meet.

References
----------
Y. Wexler, E. Shechtman, M. Irani: Space-time completion of video, IEEE Trans. PAMI, 2007.
C. Barnes, E. Shechtman, A. Finkelstein, D. B. Goldman: PatchMatch: a randomized correspondence algorithm for structural
image editing, ACM SIGGRAPH, 2009. A. Newson, A. Almansa, M. Fradet, Y. Gousseau, P. Perez: Video inpainting of complex
scenes, SIAM J. Imaging Sci., 2014. A. Newson, A. Almansa, Y. Gousseau, P. Perez: Non-local patch-based image
inpainting, Image Processing On Line, 2017.
"""

import math
from dataclasses import dataclass

import numpy as np

from . import blend, kernels, planes
from .layers import TEXTURES, layers
from .pyramid import build

# Side of a patch.
SIZE = 7
# The hole is at most this deep at the coarsest scale, which is at least so many patches wide.
COARSEST_DEPTH, COARSEST_PATCHES = 4, 3
# A scale is left out where there are fewer sources than this share of the patches to be filled: a narrow margin around
# a hole is lost there.
FEWEST_SOURCES = 0.5
# Stripes and margins narrower than a patch of a scale are gone there, which what its sources leave of the variance of
# the known part of the patches around the hole tells. Scales are passed over as long as the next leaves at most GAINED
# of what one leaves; where the coarsest leaves all, or DOUBTFUL times what the last of them does, the hole is filled
# from that one, too. Of the two the finer is taken if its sources leave at most BETTER of what the others leave, of the
# variance of all patches and of those at the rim of the hole.
GAINED, DOUBTFUL, BETTER = 0.8, 2.5, 0.8
# From a finer scale a hole is many patches deep, and what is told badly must not go far: of its rim this share is
# filled at a time, the best told first. Variances near that of rounding tell nothing.
AT_ONCE, ROUNDED = 0.5, 1.0
# Distances of the neighbours whose sources a patch tries.
JUMPS = np.array([1, 2, 4, 8])
# Sweeps of PatchMatch between two votes, and where nothing is known of the sources before.
SWEEPS, PEEL_SWEEPS = 2, 8
# Votes at the coarsest and at the finest scale, in geometric steps between; a mean change below SETTLED, in units of
# the layers, ends them.
COARSE_ROUNDS, FINE_ROUNDS, SETTLED = 24, 4, 0.2
# At the finest scale a source may cost more than another by this share of how much more the colours within it vary, at
# every coarser one by half as much: a mean, which every estimate is, is nearest to what is smooth. At coarse scales it
# is what goes on through the hole that matters.
CONTRAST = 0.3
# Colours less their mean over a square of this side are grain.
GRAIN = 3
# What lies within this share of the depth of the hole around it shows which colours belong there; a source costs so
# many times the squared difference of its colours from those more.
BESIDE, FOREIGN = 0.5, 2.0
# Votes fall by this factor with every pixel that the middle of a patch lies deeper in the hole.
CONFIDENCE = 1.3
# Sweeps of the searches for other sources that measure the spread, each among one half of all, drawn in squares of this
# side.
OTHER_SWEEPS, SQUARE = 3, 16
# The sources most like what is filled in are the smoothest: on flat ground with noise, where all are as good, the truth
# is this many times as far from one as they are from each other.
SMOOTHEST = 1.2


@dataclass(frozen=True)
class Filled:
    """What a hole is filled with.

    Attributes
    ----------
    pixels : (P,) int64 ndarray
        Pixels of the hole, ``row * W + column``, ascending.
    origins : (P,) int64 ndarray
        Known pixels that they are copied from.
    values, spread : (P, C) float64 ndarray
        What they are filled with, and how far, within a patch and as a root mean square, what other sources would put
        there is from that.
    """

    pixels: np.ndarray
    origins: np.ndarray
    values: np.ndarray
    spread: np.ndarray


def fill(values, hole, blank, copyable, *, rng, tell, bounded=False):
    """Fill the hole of a picture.

    Parameters
    ----------
    values : (H, W, C) float64 ndarray
        Not read where `hole` or `blank`.
    hole, blank, copyable : (H, W) bool ndarray
        To be filled; neither known nor to be filled; where may be copied from, as far as it is known.
    rng : numpy.random.Generator
    tell : callable
        Called as ``tell(share)`` with the share of the work that is done.
    bounded : bool
        Whether what is filled keeps near the colours that may be copied, see `blend.bounded`.

    Returns
    -------
    Filled
    """
    known = ~(hole | blank)
    levels, finer = _scales(values, hole, blank, copyable, rng.spawn(1)[0])
    part = 0.9 if finer is None else 0.45
    level, sources, votes, costs = _solve(levels, 1, rng, lambda share: tell(part * share))
    if finer is not None:
        other = _solve(finer(), AT_ONCE, rng.spawn(1)[0], lambda share: tell(part * (1 + share)))
        if (_left_by(other[0], other[-1]) <= BETTER * _left_by(level, costs)).all():
            level, sources, votes, _ = other
    origins = _origins(level, sources, votes)
    # Scattered pixels may be out of reach of every patch that is known in its middle alone.
    if (origins < 0).any():
        origins = np.where(origins >= 0, origins, planes.nearest(known)[1].ravel()[level.pixels])
    copies = blend.copy(values, hole, blank, level.pixels, origins)
    seen = values[known]
    made = np.clip(copies, seen.min(axis=0), seen.max(axis=0))
    if bounded:
        made = blend.bounded(made, origins, values, hole, known, copyable)
    spread = _spread(level, values, origins, rng)
    tell(1.0)
    return Filled(level.pixels, origins, made, spread)


def _scales(values, hole, blank, copyable, rng):
    """The scales to fill a hole from and, where it is doubtful whether the coarsest should be among them, a function
    that returns those without; else None.
    """
    size = min(SIZE, (min(hole.shape) - 1) // 2 * 2 + 1)
    depth = planes.nearest(~hole)[0].max()
    coarser = max(0, math.ceil(math.log2(depth / COARSEST_DEPTH)))
    room = max(0, math.floor(math.log2(min(hole.shape) / (COARSEST_PATCHES * size))))

    def built(count):
        # The textures are as wide as what the coarsest scale can show.
        return build(layers(values, ~(hole | blank), 2 ** (count - 1) + 1), hole, blank, copyable, size, count)

    levels = built(1 + min(coarser, room))
    while len(levels) > 1 and np.count_nonzero(levels[-1].allowed) < FEWEST_SOURCES * len(levels[-1].targets):
        levels.pop()
    count = len(levels)
    left = [_left_open(levels[-1], rng)]
    while len(left) < count:
        left.append(_left_open(levels[-1 - len(left)], rng))
        if left[-1] > GAINED * left[-2]:
            left.pop()
            break
    doubtful = len(left) > 1 and left[0] > min(1.0, DOUBTFUL * left[-1])
    return levels, (lambda: built(count + 1 - len(left))) if doubtful else None


def _left_open(level, rng):
    """Share that the best sources leave of the variance of the patches around the hole, as far as they are known."""
    known, nowhere = ~(level.hole | level.blank), np.full(level.hole.size, -1, np.int32)
    variance, depth = _of_patches(level, known, level.targets)
    around = depth == 0
    _, costs = _search(
        level, known.astype(np.int16), level.targets[around], nowhere, np.zeros(level.hole.size, np.float32), rng
    )
    return _share(costs, variance[around], np.isfinite(costs))


def _of_patches(level, known, corners):
    """Variance within the patches at `corners`, as far as they are `known`, in the units of costs, and the depth of
    their middles in the hole.
    """
    if not len(corners):
        return np.zeros(0), np.zeros(0)
    middles = np.stack(np.divmod(corners, level.hole.shape[1])) + level.size // 2
    # No farther from the middles than variances look.
    begin, end = np.maximum(middles.min(axis=1) - planes.PATCH // 2, 0), middles.max(axis=1) + planes.PATCH // 2 + 1
    box = tuple(map(slice, begin, end))
    variance = planes.patch_variance(level.layers[box], known[box], 1) / level.layers.shape[2]
    return variance[tuple(middles - begin[:, None])], level.depth[tuple(middles)]


def _solve(levels, share, rng, tell):
    """The finest scale, filled; sources of all its targets, (H * W,) int32; the weights of their votes, (H * W,)
    float32; and their costs, (T,) float32.
    """
    work = np.cumsum([len(level.targets) for level in reversed(levels)])
    for k, level in enumerate(reversed(levels)):
        if k == 0:
            foreign = _foreign(level)
            sources = _peel(level, -foreign, share, rng)
            rounds = COARSE_ROUNDS
        else:
            sources = _finer(levels[-k], level, sources)
            # The first estimate of a finer scale is copied: a mean would have lost already what this scale adds.
            origins = _origins(level, sources, _votes(level, level.targets, np.ones(len(level.targets))))
            flat = level.layers.reshape(-1, level.layers.shape[2])
            flat[level.pixels] = np.where(origins[:, None] >= 0, flat[origins], flat[level.pixels])
            rounds = round(FINE_ROUNDS * (COARSE_ROUNDS / FINE_ROUNDS) ** (1 - k / (len(levels) - 1)))
            # What is copied has been settled when the finest scale begins.
            foreign = _foreign(level) if level is not levels[0] else 0.0
        weights = (~level.blank).astype(np.int16)
        favour = _favour(level, CONTRAST / 2 ** (len(levels) - 1 - k)) - foreign
        for _ in range(rounds):
            compared = _rounded(level.layers)
            for _ in range(SWEEPS):
                sources, costs = _sweep(level, compared, weights, level.targets, sources, level.allowed, favour, rng)
            votes = _votes(level, level.targets, costs)
            if _vote(level, sources, votes, level.pixels) < SETTLED:
                break
        tell(work[k] / work[-1])
    return level, sources, votes, costs


def _left_by(level, costs):
    """Shares that sources of all targets leave of the variance within patches, (2,): of those at the rim, and of all.

    Shares, since a hole filled with what is smooth costs little wherever it does not meet what is around.
    """
    variance, depth = _of_patches(level, ~level.blank, level.targets)
    found, rim = np.isfinite(costs), depth <= level.size // 2
    return np.array([_share(costs, variance, which) for which in (found & rim, found)])


def _share(costs, variance, which):
    return costs[which].sum() / max(variance[which].sum(), np.finfo(np.float32).tiny)


def _peel(level, favour, share, rng):
    """Fill the hole from its rim inwards, comparing what is known or filled alone: ring by ring, or of the rim the
    `share` first that its sources tell best; returns sources.
    """
    (height, width), half = level.hole.shape, level.size // 2
    sources = np.full(level.hole.size, -1, np.int32)
    known, left = ~(level.hole | level.blank), level.hole.copy()
    while left.any():
        rim = left & planes.grown(known, 3) if share < 1 else np.zeros_like(left)
        if not rim.any():
            rim = left & (level.depth <= math.ceil(level.depth[left].min()))
        rows, columns = np.nonzero(rim)
        # Patches with their middle at the rim, or as near to it as the picture lets them.
        targets, which = np.unique(
            np.clip(rows - half, 0, height - level.size) * width + np.clip(columns - half, 0, width - level.size),
            return_inverse=True,
        )
        sources, costs = _search(level, known.astype(np.int16), targets, sources, favour, rng)
        if share < 1:
            open_ = costs / (_of_patches(level, known, targets)[0] + ROUNDED)
            told = open_ <= np.quantile(open_, share)
            targets, costs, rows, columns = targets[told], costs[told], rows[told[which]], columns[told[which]]
        _vote(level, sources, _votes(level, targets, costs), rows * width + columns)
        known[rows, columns], left[rows, columns] = True, False
    return sources


def _search(level, weights, targets, sources, favour, rng):
    """Sources of targets about which nothing is known before, and their costs."""
    compared = _rounded(level.layers)
    for _ in range(PEEL_SWEEPS):
        sources, costs = _sweep(level, compared, weights, targets, sources, level.allowed, favour, rng, tries=6)
    return sources, costs


def _rounded(compared):
    return np.clip(np.rint(compared), -kernels.LARGEST, kernels.LARGEST).astype(np.int16)


def _sweep(level, compared, weights, targets, sources, allowed, favour, rng, tries=1):
    """One sweep of PatchMatch; random places are tried `tries` times at every radius. Returns the sources and the
    targets' costs.
    """
    radii = math.ceil(math.log2(max(level.hole.shape) + 1))
    draws = rng.random((len(targets), tries * radii, 2), dtype=np.float32) * 2 - 1
    found, costs = sources.copy(), np.empty(len(targets), np.float32)
    kernels.search(compared, weights, allowed, favour, level.size, targets, sources, JUMPS, draws, radii, found, costs)
    return found, costs


def _favour(level, share):
    """What a source costs less, at its top left corner, in the units of costs, (H * W,) float32: a share of the
    variance of its colours, and that of its grain.

    Grain adds its variance to the distance from anything; without this the smoothest source would be the nearest.
    """
    height, width = level.hole.shape
    variance = np.zeros((height - level.size + 1, width - level.size + 1), np.float32)
    for layer in np.moveaxis(level.layers[..., :-TEXTURES], 2, 0):
        plane = layer.astype(float)
        first, second = (planes.means(power, level.size) for power in (plane, plane**2))
        variance += share * np.maximum(second - first**2, 0.0)
        grain = plane - planes.means(np.pad(plane, GRAIN // 2, "symmetric"), GRAIN)
        variance += planes.means(grain**2, level.size) / (1 - 1 / GRAIN**2)
    return _at_corners(variance / level.layers.shape[2], level)


def _foreign(level):
    """What a source costs more for colours that nothing beside the hole has, at its top left corner, (H * W,) float32:
    FOREIGN times the mean of the squared differences of its pixels from the nearest colour there.

    To a patch that overlaps the hole, a rock below the sky looks as good within it.
    """
    known = ~(level.hole | level.blank)
    reach = max(1.5, BESIDE * level.depth.max() + 0.5)
    beside = known & (planes.nearest(level.hole, reach)[0] <= reach)
    squares, colours = np.zeros(level.hole.shape, np.float32), level.layers[..., :-TEXTURES]
    if beside.any():
        squares[known] = kernels.nearest_colours(colours[known], colours[beside])
    return _at_corners(FOREIGN / level.layers.shape[2] * planes.means(squares, level.size), level)


def _at_corners(found, level):
    """What was found of every patch at its top left corner, (H * W,); 0 where a patch would leave the picture."""
    return np.pad(found, (0, level.size - 1)).ravel()


def _votes(level, targets, costs):
    """Weight of every target patch, (H * W,) float32.

    ``exp(-cost / 2 s)``, with s the 75th percentile of the costs (Wexler et al., 2007), falling with the depth in the
    hole.
    """
    half, width = level.size // 2, level.hole.shape[1]
    votes = np.zeros(level.hole.size, np.float32)
    found = np.isfinite(costs)
    targets, costs = targets[found], costs[found]
    if not found.any():
        return votes
    scale = max(float(np.percentile(costs, 75)), 1e-3)
    depth = level.depth.ravel()[targets + half * width + half]
    # Never quite 0: the only patch over a pixel decides, however bad.
    votes[targets] = np.exp(-costs / (2 * scale)) * CONFIDENCE**-depth + 1e-12
    return votes


def _vote(level, sources, votes, pixels):
    """Estimate `pixels` anew by what the patches over them propose; returns the mean change."""
    flat = level.layers.reshape(-1, level.layers.shape[2])
    made = np.empty((len(pixels), flat.shape[1]), np.float32)
    kernels.vote(level.layers, level.hole | level.blank, level.size, pixels, sources, votes, made)
    before = flat[pixels]
    flat[pixels] = np.where(np.isnan(made), before, made)
    return float(np.abs(flat[pixels] - before).mean())


def _origins(level, sources, votes):
    """Pixels that those of the hole are copied from, (P,) int64; -1 where no patch proposes any."""
    origins = np.empty(len(level.pixels), np.int64)
    kernels.choose(level.hole | level.blank, level.size, level.pixels, sources, votes, origins)
    return origins


def _finer(coarse, level, sources):
    """Sources of the targets of a level from those of the one half as fine."""
    (height, width), (high, wide), size = level.hole.shape, coarse.hole.shape, level.size
    # Patches correspond by their middles.
    half = size // 2
    rows, columns = level.targets // width + half, level.targets % width + half
    found = sources[np.clip(rows // 2 - half, 0, high - size) * wide + np.clip(columns // 2 - half, 0, wide - size)]
    # A source is as far from its target as at the coarser scale, twice as many pixels.
    y, x = 2 * (found // wide + half) + rows % 2 - half, 2 * (found % wide + half) + columns % 2 - half
    place = np.clip(y, 0, height - size) * width + np.clip(x, 0, width - size)
    made = np.full(level.hole.size, -1, np.int32)
    made[level.targets] = np.where((found >= 0) & level.allowed[place], place, -1)
    return made


def _spread(level, values, origins, rng):
    """How far what the best sources in each of two random halves would put there is from what is copied from `origins`,
    (P,), within a patch, (P, C); where a half has none, or both have the same, the standard deviation of all that is
    known.

    A half that finds the very pixel that is copied tells nothing of how far others are from it.
    """
    height, width = level.hole.shape
    compared, weights, favour = _rounded(level.layers), (~level.blank).astype(np.int16), _favour(level, CONTRAST)
    flat = values.reshape(-1, values.shape[2])
    squares, others = np.zeros(flat.shape), np.zeros(height * width)
    unknown = values[~(level.hole | level.blank)].var(axis=0)
    first = rng.random((height // SQUARE + 1, width // SQUARE + 1)) < 0.5
    for chosen in (first, ~first):
        half = level.allowed & np.kron(chosen, np.ones((SQUARE, SQUARE), bool))[:height, :width].ravel()
        sources = np.full(level.hole.size, -1, np.int32)
        for _ in range(OTHER_SWEEPS):
            sources, costs = _sweep(level, compared, weights, level.targets, sources, half, favour, rng)
        found = _origins(level, sources, _votes(level, level.targets, costs))
        squares[level.pixels] += np.where(found[:, None] >= 0, (flat[found] - flat[origins]) ** 2, unknown)
        others[level.pixels] += found != origins
    count, *sums = (
        planes.around(plane.reshape(height, width), level.hole, level.size).ravel()[level.pixels]
        for plane in (others, *squares.T)
    )
    # Differences of running sums end a little beside 0 where they should be 0.
    least = 0.5 / level.size**2
    mean = np.stack(sums, axis=-1) / np.maximum(count, least)[:, None]
    return SMOOTHEST * np.sqrt(np.where(count[:, None] > least, np.maximum(mean, 0.0), unknown))
