"""Fill a hole so that every patch over it looks like one elsewhere.

The objective is that of Wexler, Shechtman and Irani: the sum of the distances of all patches that touch the hole to the most similar
patches outside of it. It is lowered by turns: sources are looked for by PatchMatch, then every pixel becomes the weighted mean of what the
sources of the patches over it propose; first at a coarse scale, where the hole is a few pixels deep and is filled from its rim inwards, then
at finer ones, each beginning with the sources of the one before. Texture, as mean absolute gradients, is compared beside colours, so that
flat sources do not win because they are close to everything. At the end every pixel is copied from one place, and light and seams are
balanced (`blend`).

References
----------
Y. Wexler, E. Shechtman, M. Irani: Space-time completion of video, IEEE Trans. PAMI, 2007.
C. Barnes, E. Shechtman, A. Finkelstein, D. B. Goldman: PatchMatch: a randomized correspondence algorithm for structural image editing, ACM
SIGGRAPH, 2009.
A. Newson, A. Almansa, M. Fradet, Y. Gousseau, P. Perez: Video inpainting of complex scenes, SIAM J. Imaging Sci., 2014.
A. Newson, A. Almansa, Y. Gousseau, P. Perez: Non-local patch-based image inpainting, Image Processing On Line, 2017.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt

from . import kernels
from .pyramid import build

# The hole is at most this deep, in pixels, at the coarsest scale.
COARSEST_DEPTH = 4
JUMPS = np.array([1, 2, 4, 8])
# Rounds of search and vote at the coarsest and at the finest scale; those between in geometric steps.
COARSE_ROUNDS, FINE_ROUNDS = 24, 4
# Votes fall with the depth of the patch in the hole: what lies near the rim is surer.
CONFIDENCE = 1.3


@dataclass
class Settings:
    size: int = 7
    texture: float = 50.0
    closeness: float = 0.0
    sweeps: int = 2
    coarse: int = COARSE_ROUNDS
    fine: int = FINE_ROUNDS
    confidence: float = CONFIDENCE
    coarsest: float = COARSEST_DEPTH


def _quantised(layers):
    return np.clip(np.rint(layers), -1023, 1023).astype(np.int16)


def _sweep(level, layers, weights, targets, sources, rng, settings, jumps, tries, offsets):
    new, costs = sources.copy(), np.empty(len(targets), np.float32)
    draws = rng.random((len(targets), tries, 2), dtype=np.float32) * 2 - 1
    closeness = settings.closeness / max(level.hole.shape) ** 2
    kernels.search(layers, weights, level.allowed, level.size, targets, sources, jumps, draws, offsets, closeness, new, costs)
    return new, costs


def _votes(level, targets, costs, settings, sharpness=1.0):
    """Weight of every target patch in a vote, (H * W,)."""
    half = level.size // 2
    votes = np.zeros(level.hole.size, np.float32)
    scale = max(float(np.percentile(costs, 75)), 1e-3)
    depth = distance_transform_edt(level.hole).ravel()[targets + half * level.hole.shape[1] + half]
    votes[targets] = np.exp(-sharpness * costs / (2 * scale)) * settings.confidence**-depth + 1e-12
    return votes


def _tries(level):
    return int(np.ceil(np.log2(max(level.hole.shape))))


def _peel(level, rng, settings, offsets):
    """Sources for all targets of the coarsest level, filling it from the rim inwards."""
    height, width = level.hole.shape
    depth = distance_transform_edt(level.hole)
    half = level.size // 2
    sources = np.full(level.hole.size, -1, np.int32)
    filled = ~level.hole & ~level.blank
    for ring in range(1, int(np.ceil(depth.max())) + 1):
        rows, columns = np.nonzero((depth > ring - 1) & (depth <= ring))
        corners = np.clip(rows - half, 0, height - level.size) * width + np.clip(columns - half, 0, width - level.size)
        targets = np.unique(corners)
        weights = filled.astype(np.int16)
        layers = _quantised(level.layers)
        for _ in range(8):
            sources, costs = _sweep(level, layers, weights, targets, sources, rng, settings, JUMPS, 6 * _tries(level), offsets)
        votes = _votes(level, targets, costs, settings)
        only = np.full_like(sources, -1)
        only[targets] = sources[targets]
        pixels = rows * width + columns
        made = np.empty((len(pixels), level.layers.shape[2]), np.float32)
        kernels.vote(level.layers, level.hole, level.size, pixels, only, votes, made)
        level.layers[rows, columns] = np.where(np.isnan(made), level.layers[rows, columns], made)
        filled[rows, columns] = True
    return sources


def _finer(coarse, level, sources):
    """Sources of the targets of a level from those of the one half as fine."""
    _, wide = coarse.hole.shape
    height, width = level.hole.shape
    targets = level.targets
    rows, columns = targets // width, targets % width
    high = coarse.hole.shape[0]
    above = np.minimum(rows // 2, high - level.size) * wide + np.minimum(columns // 2, wide - level.size)
    found = sources[above]
    y = np.minimum(2 * (found // wide) + rows % 2, height - level.size)
    x = np.minimum(2 * (found % wide) + columns % 2, width - level.size)
    place = np.where(found >= 0, y * width + x, -1)
    place[(place >= 0) & ~level.allowed[place]] = -1
    new = np.full(level.hole.size, -1, np.int32)
    new[targets] = place
    return new


def _estimate(level, sources, votes):
    pixels = level.pixels
    made = np.empty((len(pixels), level.layers.shape[2]), np.float32)
    kernels.vote(level.layers, level.hole, level.size, pixels, sources, votes, made)
    flat = level.layers.reshape(-1, made.shape[1])
    old = flat[pixels]
    new = np.where(np.isnan(made), old, made)
    flat[pixels] = new
    return float(np.abs(new - old).mean())


def solve(layers, hole, blank, copyable, settings, rng, offsets=None):
    """Where every pixel of the hole is best copied from.

    Returns
    -------
    origins : (P,) int64 ndarray
    """
    depth = distance_transform_edt(np.pad(hole, 1)).max()
    size = settings.size
    count = 1
    while depth / 2 ** (count - 1) > settings.coarsest and min(hole.shape) / 2**count >= 3 * size:
        count += 1
    levels = build(layers, hole, blank, copyable, size, count)
    none = np.zeros((0, 2), np.int64)
    sources = None
    for k in reversed(range(count)):
        level = levels[k]
        targets = level.targets
        weights = (~level.blank).astype(np.int16)
        if sources is None:
            sources = _peel(level, rng, settings, none)
        else:
            sources = _finer(levels[k + 1], level, sources)
            costs = None
        rounds = round(settings.fine * (settings.coarse / settings.fine) ** (k / max(count - 1, 1)))
        for r in range(rounds):
            q = _quantised(level.layers)
            if r == 0 and k < count - 1:
                # The first estimate of a finer scale is made of the coarser one's sources as they are.
                votes = np.zeros(level.hole.size, np.float32)
                votes[targets] = 1.0
                _estimate(level, sources, votes)
                q = _quantised(level.layers)
            for _ in range(settings.sweeps):
                sources, costs = _sweep(level, q, weights, targets, sources, rng, settings, JUMPS, _tries(level), none)
            votes = _votes(level, targets, costs, settings)
            change = _estimate(level, sources, votes)
            if change < 0.2:
                break
    origins = np.empty(len(level.pixels), np.int64)
    kernels.choose(level.hole, size, level.pixels, sources, votes, origins)
    return level, sources, costs, origins


def features(colours, hole, blank, settings, levels=3):
    """Colours scaled to 0..510 and texture, (H, W, C + 2)."""
    from scipy.ndimage import uniform_filter
    known = ~hole & ~blank
    low, high = colours[known].min(), colours[known].max()
    scaled = ((colours - low) * (510 / max(high - low, 1e-12))).astype(np.float32)
    scaled[~known] = 0
    grey = scaled.mean(axis=2)
    made = [scaled]
    for axis in (0, 1):
        d = np.abs(np.diff(grey, axis=axis))
        ok = known.take(range(1, known.shape[axis]), axis) & known.take(range(known.shape[axis] - 1), axis)
        pad = [(0, int(axis == 0)), (0, int(axis == 1))]
        d, ok = np.pad(np.where(ok, d, 0), pad), np.pad(ok, pad).astype(np.float32)
        width = 2**levels + 1
        t = uniform_filter(d, width) / np.maximum(uniform_filter(ok, width), 1e-3)
        made.append((np.sqrt(settings.texture) * t)[..., None].astype(np.float32))
    return np.concatenate(made, axis=2)
