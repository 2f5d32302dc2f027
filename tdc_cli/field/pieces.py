"""Pictures of any size: windows with a margin, and a coarser grid far from everything observed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.ndimage

from ..library_threads import limited
from .factored import window as window_of

# Pixels up to which a picture is solved in one piece; above, cores of CORE x CORE pixels with a margin, and a coarser
# grid for pixels farther than REACH from everything observed.
WHOLE, CORE, MARGIN, REACH, COARSER = 400 * 400, 256, 32, 24, 4
# Longest side of what is solved in one piece: memory grows with its square.
LONGEST_SIDE = 2000
# Energy of the error, relative to that of zero, at which conjugate gradients stop: for a result, and for a sample.
TOLERANCE, SAMPLE_TOLERANCE = 5e-4, 2e-2
# Windows that the covariance is learnt from, and the least share of observed entries that one must have.
LEARNT_FROM, LEAST_SHARE = 4, 0.02
# How much a quarter of a window may differ from all of it in the shares of observed and missing entries, relative to
# either, to stand for it.
ALIKE = 0.1
# Pixels along a side of which learning can spare none.
SHORT = 64


def _solved_whole(shape):
    """Whether a picture of `shape` (H, W) is solved in one piece."""
    return shape[0] * shape[1] <= WHOLE and max(shape) <= LONGEST_SIDE


def _cores(length, other):
    """(window start, window stop, core start, core stop) along an axis of `length` pixels, beside one of `other`."""
    if _solved_whole((length, other)) or length <= CORE + 2 * MARGIN:
        return [(0, length, 0, length)]
    size = CORE + 2 * MARGIN
    starts = range(0, length, CORE)
    windows = [min(max(start - MARGIN, 0), length - size) for start in starts]
    return [(w, w + size, start, min(start + CORE, length)) for w, start in zip(windows, starts)]


def windows(shape):
    """Slices of every window and of its core, ``(rows, columns, core rows, core columns)``, for a picture of `shape`
    (H, W).
    """
    return [
        (slice(r[0], r[1]), slice(c[0], c[1]), slice(r[2], r[3]), slice(c[2], c[3]))
        for r in _cores(*shape)
        for c in _cores(*shape[::-1])
    ]


def _quick(window):
    """`window`, a slice, without the few pixels at its end that would make its transform slow, if it is long."""
    length = window.stop - window.start
    while length > SHORT and scipy.fft.next_fast_len(length, real=True) > length:
        length -= 1
    return slice(window.start, window.start + length)


def _typical(observed):
    """Slices of a quarter of a window, `observed` (C, H, W), that has observed about as much as all of it; None where
    none has, or the window is short.
    """
    height, width = (n // 2 for n in observed.shape[1:])
    if min(height, width) < SHORT:
        return None
    share = observed.mean()
    for row in (height // 2, 0, height):
        for column in (width // 2, 0, width):
            part = np.s_[:, row : row + height, column : column + width]
            if abs(observed[part].mean() - share) < ALIKE * min(share, 1 - share):
                return part
    return None


def _inside(window):
    """Slices of the core within its window."""
    rows, columns, core_rows, core_columns = window
    return (
        slice(core_rows.start - rows.start, core_rows.stop - rows.start),
        slice(core_columns.start - columns.start, core_columns.stop - columns.start),
    )


class Group:
    """Some channels of a picture, in units of the data's spread, read window by window.

    Parameters
    ----------
    values : (H, W, C) ndarray
    observed, wanted : (H, W, C) ndarray of bool
        What is observed, and the entries whose posterior is asked for.
    offset : (C,) ndarray
    scale : float
    exponent : float
    factors : Factors
    cell : int
        Side of what is a pixel here, in pixels of the picture.
    start : (H, W, C) ndarray or None
        What the iteration for the mean begins with; None: averages over neighbourhoods.
    """

    def __init__(self, values, observed, wanted, offset, scale, exponent, factors, cell=1, start=None):
        self.values, self.observed, self.wanted, self.offset, self.scale = values, observed, wanted, offset, scale
        self.exponent, self.factors, self.cell, self.start = exponent, factors, cell, start
        self.shape = values.shape[:2]

    def cut(self, rows, columns):
        """Deviations from the offset (0 where not observed) and observed entries of a window, both (C, H, W)."""
        observed = np.ascontiguousarray(np.moveaxis(self.observed[rows, columns], 2, 0))
        values = np.moveaxis(self.values[rows, columns], 2, 0)
        with np.errstate(invalid="ignore", over="ignore"):
            values = (
                np.where(observed, values, 0.0) - np.where(observed, self.offset[:, None, None], 0.0)
            ) / self.scale
        return values, observed

    def window(self, values, observed, noise):
        """`Window` of a piece, both (C, H, W); `noise` is a variance, or None."""
        return window_of(values, observed, self.exponent, self.cell, noise, self.factors)

    def first_guess(self, window, slices):
        """Deviations from the offset that the iteration for the mean of `window` begins with, (C, H, W)."""
        if self.start is None:
            return window.first_guess()
        start = np.moveaxis(self.start[slices[:2]], 2, 0)
        return ((start - self.offset[:, None, None]) / self.scale).astype(window.values.dtype)

    def learning_windows(self, noise):
        """Windows to learn from, up to `LEARNT_FROM`, spread evenly over those with observed entries, and a part of
        each that samples are drawn of: their spread depends on what is missing, not on what the picture shows.
        """
        able = [w for w in windows(self.shape) if np.mean(self.observed[w[0], w[1]]) > LEAST_SHARE] or windows(
            self.shape
        )
        chosen = np.linspace(0, len(able) - 1, min(len(able), LEARNT_FROM)).round().astype(int)
        found = []
        for k in chosen:
            values, observed = self.cut(*map(_quick, able[k][:2]))
            window, part = self.window(values, observed, noise), _typical(observed)
            found.append((window, window if part is None else self.window(values[part], observed[part], noise)))
        return found

    def deep(self):
        """Pixels farther than `REACH` from everything observed, (H, W), or None: they are left to a coarser grid."""
        if _solved_whole(self.shape):
            return None
        any_observed = self.observed.any(axis=2).view(np.uint8)
        near = scipy.ndimage.maximum_filter(any_observed, size=2 * REACH + 1, mode="constant")
        return None if near.all() else near == 0

    def coarser(self, noisy):
        """The same picture on a grid of blocks of `COARSER` x `COARSER` pixels, of which the observed entries are
        averaged.

        All of it is asked for that is not observed exactly.
        """
        height, width = (-(-n // COARSER) for n in self.shape)
        sums = np.zeros((height, width, len(self.offset)))
        counts = np.zeros_like(sums)
        for i in range(COARSER):
            for j in range(COARSER):
                observed = self.observed[i::COARSER, j::COARSER]
                part = np.s_[: observed.shape[0], : observed.shape[1]]
                sums[part] += np.where(observed, self.values[i::COARSER, j::COARSER], 0.0)
                counts[part] += observed
        seen = counts > 0
        return Group(
            sums / np.maximum(counts, 1),
            seen,
            ~seen | noisy,
            self.offset,
            self.scale,
            self.exponent,
            self.factors,
            self.cell * COARSER,
        )


@dataclass
class Posterior:
    """Of a group: `mean` (H, W, C), `variance` (H, W, C) or None, `deviations` (samples less the mean, (n, H, W, C)) or
    None.
    """

    mean: np.ndarray
    variance: np.ndarray | None
    deviations: np.ndarray | None


def posterior(group, covariance, noise, out, *, rng, count, keep, run, tick=lambda done, total: None):
    """Posterior of a group: its mean, and from `count` samples its variance and, to `keep`, the samples themselves.

    `out` is a Posterior of arrays to be filled where something is to be estimated: the mean in units of the data, the
    rest in units of their spread.
    """
    deep, coarse = group.deep(), None
    if deep is not None:
        smaller = group.coarser(noise > 0)
        shape = (*smaller.shape, len(group.offset))
        coarse = Posterior(
            np.zeros(shape),
            np.zeros(shape, np.float32) if count else None,
            np.zeros((count, *shape), np.float32) if count else None,
        )
        # The same field on the coarser grid: the spectral density stays as it is.
        scaled = covariance * float(COARSER) ** (2 * group.exponent - 2)
        posterior(smaller, scaled, noise / COARSER**2, coarse, rng=rng, count=count, keep=True, run=run)
    wanted = [w for w in windows(group.shape) if group.wanted[w[2], w[3]].any()]
    tasks = list(zip(wanted, rng.spawn(len(wanted)) if count else [None] * len(wanted)))
    inner = run if len(tasks) == 1 else _in_turn

    def work(task):
        slices, own = task
        values, observed = group.cut(*slices[:2])
        guided = None if deep is None else deep[slices[:2]]
        exact = observed
        if guided is not None and guided.any():
            filled = _enlarged(coarse.mean, slices, guided) - group.offset[:, None]
            values[:, guided] = filled / group.scale
            exact = observed | guided
        window = group.window(values, exact, noise)
        window.set_parameters(covariance, noise)
        mean = window.mean(group.first_guess(window, slices), TOLERANCE)
        known = window.values if not noise else 0
        core = (slice(None), *_inside(slices))
        target = (*slices[2:], slice(None))
        todo = np.moveaxis(~observed[core] if not noise else np.ones_like(observed[core]), 0, 2)
        estimate = np.moveaxis((mean + known)[core], 0, 2) * group.scale + group.offset
        np.copyto(out.mean[target], estimate, where=todo)
        if not count:
            return
        # Channels that are alike are samples of each other.
        drawn = count if keep else -(-count // window.alike)
        normals = [window.draw_normals(own) for _ in range(drawn)]

        def one(k):
            given = None
            if exact is not observed:
                given = np.zeros_like(window.values)
                given[:, guided] = _enlarged(coarse.deviations[k], slices, guided)
            deviation, conditional = window.deviation(normals[k], None, SAMPLE_TOLERANCE, given)
            return deviation, conditional**2

        squares = 0
        for k, (deviation, square) in enumerate(inner(one, range(drawn))):
            squares = squares + square
            if keep:
                np.copyto(out.deviations[k][target], np.moveaxis(deviation[core], 0, 2), where=todo)
        if out.variance is not None:
            variance = window.variance(squares / drawn)
            if exact is not observed:
                variance[:, guided] = _enlarged(coarse.variance, slices, guided)
            np.copyto(out.variance[target], np.moveaxis(variance[core], 0, 2), where=todo, casting="same_kind")

    (run if len(tasks) > 1 else _in_turn)(work, tasks, tick)


def _enlarged(coarse, window, chosen):
    """`coarse` (h, w, C), on the grid of blocks, at the `chosen` pixels of a window, (C, n); interpolated linearly."""
    rows, columns = np.nonzero(chosen)
    places = [(i + s.start + 0.5) / COARSER - 0.5 for i, s in ((rows, window[0]), (columns, window[1]))]
    return np.stack(
        [scipy.ndimage.map_coordinates(coarse[..., c], places, order=1, mode="nearest") for c in range(coarse.shape[2])]
    )


def _in_turn(work, tasks, tick=lambda done, total: None):
    """Results of `work` for every task."""
    results = []
    for task in tasks:
        results.append(work(task))
        tick(len(results), len(tasks))
    return results


def runner(stack):
    """`_in_turn` by as many threads as SciPy's transforms may use; the results do not depend on their number, nor on
    that of BLAS, which has one within.
    """
    stack.enter_context(limited(1, "blas"))
    threads = scipy.fft.get_workers()
    if threads == 1:
        return _in_turn
    pool = stack.enter_context(ThreadPoolExecutor(threads))

    def run(work, tasks, tick=lambda done, total: None):
        results = []
        for result in pool.map(work, tasks):
            results.append(result)
            tick(len(results), len(tasks))
        return results

    return run
