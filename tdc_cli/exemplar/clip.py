"""Large holes of clips: what another frame shows, moved to where it belongs; what none shows is copied from elsewhere
in the same frame.

What surrounds a hole is taken to move as one affine map says (`register`). Every frame is registered with the same
one, as long as that shows half of it, so that maps between any two are known, and errors do not add up from frame to
frame. A pixel is looked for in the frames before and after, the nearest first, until one knows the place that it has
there. What is left is filled in the frame that has most of it, as in a picture (`fill`), from what moves as the
surroundings do, and the offset from every pixel to its source goes along the motion to the other frames, which copy
from themselves unless something else has come to lie there. So what is copied holds still where its source does, moves
where that moves, and has the light and the grain of its own frame.

References
----------
M. Granados, K. I. Kim, J. Tompkin, J. Kautz, C. Theobalt: Background inpainting for videos with dynamic objects and a
free-moving camera, ECCV, 2012. J.-B. Huang, S. B. Kang, N. Ahuja, J. Kopf: Temporally coherent completion of dynamic
video, ACM Trans. Graphics, 2016.
"""

from functools import cached_property

import numpy as np
from scipy.ndimage import binary_dilation, binary_erosion, distance_transform_edt, map_coordinates, spline_filter

from ..metrics import NORMAL_90
from . import blend
from .fill import fill
from .planes import PATCH, around, patch_variance
from .pyramid import nearest
from .register import IDENTITY, WHOLE, View, agreement, moved, points, register, whole

# Frames may differ, once moved, by this share of the variance within patches around the hole; else the one does not
# show the other. Patches that differ by more show something that moves otherwise.
ALIKE = 0.5
# Where more than this share of what is near a hole shows something else, no map tells how it moves.
MOVING = 0.75
# A frame is registered with the next that shows at least this share of it; what moves otherwise is looked for in so
# many frames, spread over the clip, and is not copied if it does in half of them.
OVERLAP, LOOKED = 0.5, 9
# What surrounds a hole moves as it does; what lies farther from it counts less, by a factor of e for so many pixels.
CLOSE = 8
# Frames that show less than this share of what is left to be looked for are passed over: each takes time.
WORTH = 0.05
# So many pixels around the hole of either frame, if at least FEWEST of them are known in both, tell too how far they
# differ: a codec has spread what hid the place.
AROUND, FEWEST = 2, 50
# Places between pixels are interpolated where everything is known this many pixels around.
SUPPORT = 2


class Clip:
    """Frames of a clip with a hole, which is filled step by step.

    Parameters
    ----------
    values : (T, H, W, C) float64 ndarray
    hole, blank : (T, H, W) bool ndarray
        To be filled; neither known nor to be filled. Every frame knows something.

    Attributes
    ----------
    values : ndarray
        Filled as far as `hole`, of the same shape as it was given, says.
    spread : (T, H, W, C) float64 ndarray
        Standard deviations of what has been filled.
    """

    def __init__(self, values, hole, blank):
        self.values, self.hole, self.blank = np.where((hole | blank)[..., None], 0.0, values), hole.copy(), blank.copy()
        self.spread = np.zeros(values.shape)
        # Frames move as what was known of them at the beginning does.
        self._known = ~(hole | blank)
        self._weights = np.exp(-distance_transform_edt(~hole.any(axis=0)) / CLOSE)

    @cached_property
    def _frames(self):
        return [_Frame(values, known, self._weights) for values, known in zip(self.values, self._known, strict=True)]

    def carry(self):
        """Fill what other frames show.

        Returns
        -------
        share : (T, H, W) float32 ndarray
            Of what was filled, how far the two frames differ around it, relative to the variance within patches; else
            infinite.
        gap : (T, H, W) int ndarray
            How many frames away it was seen; 0 where it was not.
        """
        share, gap = np.full(self.hole.shape, np.inf, np.float32), np.zeros(self.hole.shape, int)
        count, width = len(self.values), self.hole.shape[2]
        for t in range(count):
            for s in sorted(range(count), key=lambda s, t=t: (abs(s - t), s))[1:]:
                pixels = np.flatnonzero(self.hole[t])
                if not len(pixels):
                    break
                rows, columns = np.divmod(pixels, width)
                map_ = self._map(t, s)
                if np.count_nonzero(self._frames[s].shows(map_, rows, columns)) < max(1, WORTH * len(pixels)):
                    continue
                views = self._frames[t].view, self._frames[s].view
                # A map of these two alone is the surest; whole pixels are as sure as can be.
                map_, error = (map_, agreement(*views, map_)) if whole(map_) else register(*views, map_)
                relative = error / max(self._frames[t].variance, np.finfo(float).tiny)
                if relative > ALIKE:
                    continue
                compared = self._compared(t, s, map_)
                if compared is None:
                    continue
                light, sd = compared
                shown, made = self._frames[s].sampled(map_, rows, columns)
                here = pixels[shown]
                self._put(t, here, made[shown] + light, sd)
                share[t].flat[here], gap[t].flat[here] = relative, abs(s - t)
        return share, gap

    def invent(self, copyable, rng, tell, bounded=False):
        """Fill what is left.

        Parameters
        ----------
        copyable : (H, W) bool ndarray
            Where may be copied from, as far as it is known.
        rng : numpy.random.Generator
        tell : callable
            Called as ``tell(share)`` with the share of the work that is done.
        bounded : bool
            Whether what is filled keeps near the colours that may be copied, see `blend.bounded`.
        """
        total = max(int(self.hole.sum()), 1)
        while self.hole.any():
            r = int(np.argmax(self.hole.sum(axis=(1, 2))))
            fresh, shape = self.hole[r].copy(), self.hole[r].shape
            done = fill(
                self.values[r],
                fresh,
                self.blank[r],
                self._moving_along(r, copyable & ~fresh & ~self.blank[r]),
                rng=rng,
                tell=lambda share: None,
                bounded=bounded,
            )
            self._put(r, done.pixels, done.values, done.spread)
            offsets = np.zeros((*shape, 2), int)
            offsets[fresh] = np.stack(np.divmod(done.origins, shape[1]), axis=1) - np.stack(
                np.divmod(done.pixels, shape[1]), axis=1
            )
            for t in np.flatnonzero(self.hole.any(axis=(1, 2))):
                self._follow(int(t), r, fresh, offsets, copyable, bounded)
            tell(1 - self.hole.sum() / total)

    def _follow(self, t, r, fresh, offsets, copyable, bounded):
        """Fill in frame t what frame r had not known either, `fresh` (H, W), from where `offsets` (H, W, 2) say."""
        map_ = self._map(t, r)
        pixels = np.flatnonzero(self.hole[t])
        rows, columns = np.divmod(pixels, fresh.shape[1])
        places = moved(map_, rows, columns)
        there = np.rint(places).astype(int)
        within = _inside(there, fresh.shape)
        within[within] = fresh[tuple(there[:, within])]
        pixels, rows, columns, places, there = (
            pixels[within],
            rows[within],
            columns[within],
            places[:, within],
            there[:, within],
        )
        if not len(pixels):
            return
        offset = np.rint(np.linalg.inv(map_)[:2, :2] @ offsets[tuple(there)].T).astype(int)
        origins = np.stack([rows, columns]) + offset
        own = _inside(origins, fresh.shape)
        changed = self._changed(t, r)
        own[own] = (self._known[t] & copyable & ~changed)[tuple(origins[:, own])]
        seen = [
            map_coordinates(self.values[r, ..., c], places[:, ~own], order=1, mode="nearest")
            for c in range(self.values.shape[3])
        ]
        spread = self.spread[r][tuple(there)]
        self._put(t, pixels[~own], np.stack(seen, axis=-1), spread[~own])
        if own.any():
            hole = np.zeros(fresh.shape, bool)
            hole.flat[pixels[own]] = True
            # What moves otherwise and has come to lie at the rim has a light of its own.
            blank = self.blank[t] | (self.hole[t] & ~hole) | changed
            origins = origins[0, own] * fresh.shape[1] + origins[1, own]
            made = blend.copy(self.values[t], hole, blank, pixels[own], origins)
            known = self.values[t][self._known[t]]
            made = np.clip(made, known.min(axis=0), known.max(axis=0))
            if bounded:
                made = blend.bounded(made, origins, self.values[t], hole, self._known[t], copyable)
            self._put(t, pixels[own], made, spread[own])

    def _put(self, t, pixels, values, spread):
        for whole_, made in ((self.values, values), (self.spread, spread)):
            whole_[t].reshape(self.hole[t].size, -1)[pixels] = made
        self.hole[t].flat[pixels] = False

    @cached_property
    def maps(self):
        """Of every frame, the map from the first one to it."""
        maps, anchor = [IDENTITY], 0
        for t in range(1, len(self.values)):
            before, view = maps[-1] @ np.linalg.inv(maps[anchor]), self._frames[t].view
            if self._overlap(before) < OVERLAP:
                before, anchor = IDENTITY, t - 1
            found, _ = register(self._frames[t - 1].view, view)
            if anchor != t - 1:
                found, _ = register(self._frames[anchor].view, view, found @ before)
            maps.append(found @ maps[anchor])
        return maps

    def _overlap(self, map_):
        """Share of a frame that a map leaves within another."""
        return float(_inside(moved(map_, *points(np.ones(self.hole.shape[1:], bool))), self.hole.shape[1:]).mean())

    def _map(self, t, s):
        """The map from frame t to frame s."""
        return self.maps[s] @ np.linalg.inv(self.maps[t])

    def _apart(self, t, s, map_):
        """What frames t and s both know: its rows and columns in t, how t differs from s there, (n, C), and the median
        of that, the difference of light, which is taken out.
        """
        rows, columns = points(self._known[t], self.hole[t].size)
        shown, made = self._frames[s].sampled(map_, rows, columns)
        if not shown.any():
            return rows[shown], columns[shown], made[shown], np.zeros(made.shape[1])
        apart = self.values[t][rows[shown], columns[shown]] - made[shown]
        light = np.median(apart, axis=0)
        return rows[shown], columns[shown], apart - light, light

    def _changed(self, t, s):
        """Known pixels of frame t, (H, W), around which frame s shows something else, moved as the surroundings are.

        None where that is so nearly everywhere: water and leaves move without any map.
        """
        squares, both = np.zeros(self.hole.shape[1:]), np.zeros(self.hole.shape[1:], bool)
        rows, columns, apart, _ = self._apart(t, s, self._map(t, s))
        squares[rows, columns], both[rows, columns] = (apart**2).mean(axis=1), True
        # Also at the rim of the hole, where places between pixels cannot be told.
        changed = self._known[t] & (around(squares, both, PATCH) > ALIKE * self._frames[t].variance)
        return changed & (self._weights[changed].sum() < MOVING * self._weights[self._known[t]].sum())

    def _moving_along(self, r, copyable):
        """Those of the pixels of frame r that may be copied, (H, W), that move as the surroundings of the hole do, if
        they are enough to copy from.
        """
        others = np.unique(np.linspace(0, len(self.values) - 1, LOOKED).astype(int))
        changed = np.sum([self._changed(r, int(s)) for s in others if s != r], axis=0)
        found = copyable & (2 * changed < len(others))
        return found if np.count_nonzero(found) >= np.count_nonzero(self.hole[r]) else copyable

    def _compared(self, t, s, map_):
        """Difference of light of two frames and standard deviation of what remains, channel by channel, from what both
        know, everywhere or around the hole of either, whichever differs more; None if they know nothing.
        """
        rows, columns, apart, light = self._apart(t, s, map_)
        if not len(apart):
            return None
        apart, there = np.abs(apart), np.rint(moved(map_, rows, columns)).astype(int)
        near = (self._frames[t].around[rows, columns], self._frames[s].around[tuple(there)])
        sides = [apart, *(apart[side] for side in near if np.count_nonzero(side) >= FEWEST)]
        return light, np.max([_spread(side) for side in sides], axis=0)


def _spread(apart):
    """Standard deviation of differences (n, C) by which 90 % are told; where these are all 0, of all."""
    most = np.quantile(apart, 0.9, axis=0) / NORMAL_90
    return np.where(most > 0, most, np.sqrt(np.mean(apart**2, axis=0)))


class _Frame:
    """A frame as it was given: (H, W, C) values known at (H, W) pixels, which count for the motion by their weights."""

    def __init__(self, values, known, weights):
        self._values, self._known, self._weights = values, known, weights

    @cached_property
    def view(self):
        return View.of(self._values, self._known, self._weights)

    @cached_property
    def variance(self):
        """Mean variance within patches, of the mean of the channels."""
        found = patch_variance(self.view.greys[0][..., None], self._known)
        return float(found[self._known].mean())

    @cached_property
    def _spline(self):
        filled = nearest(self._values, self._known)
        return [spline_filter(filled[..., c], mode="mirror") for c in range(filled.shape[2])]

    @cached_property
    def _surrounded(self):
        return binary_erosion(self._known, iterations=SUPPORT, border_value=1)

    @cached_property
    def around(self):
        """Where the frame is not known, and AROUND pixels about it."""
        return binary_dilation(~self._known, iterations=AROUND)

    def shows(self, map_, rows, columns):
        """Whether the pixels nearest to where a map moves some are known, and what is needed to interpolate there."""
        near = np.rint(moved(map_, rows, columns)).astype(int)
        shown = _inside(near, self._known.shape)
        shown[shown] = (self._known if whole(map_) else self._surrounded)[tuple(near[:, shown])]
        return shown

    def sampled(self, map_, rows, columns):
        """Which of some pixels have places here that are known, (n,), and their values, (n, C); others mean nothing."""
        places = moved(map_, rows, columns)
        if whole(map_):
            near = np.clip(np.rint(places).astype(int), 0, np.array(self._known.shape)[:, None] - 1)
            return self.shows(map_, rows, columns), self._values[tuple(near)]
        shown = map_coordinates(self._surrounded.astype(np.float32), places, order=1, mode="constant") >= WHOLE
        made = [map_coordinates(plane, places, order=3, mode="mirror", prefilter=False) for plane in self._spline]
        seen = self._values[self._known]
        return shown, np.clip(np.stack(made, axis=-1), seen.min(axis=0), seen.max(axis=0))


def _inside(places, shape):
    """Whether places, (2, n), lie in a picture."""
    return ((places >= 0) & (places < np.array(shape)[:, None])).all(axis=0)
