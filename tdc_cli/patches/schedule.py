"""What the passes over patch groups do: the settings of a stage, the constants found by trial, the schedules of a
picture.

A stage is some passes with the same settings; a schedule is a tuple of stages, one after the other.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from . import calibrate

# Channels that are worked on together.
MOST_CHANNELS = 32


@dataclass(frozen=True)
class Settings:
    """How the passes of a stage go.

    Attributes
    ----------
    size : int
        Side of a patch, in pixels.
    members : int
        Patches in a group.
    window : int
        Largest shift at which patches are looked for, in pixels.
    reach : int
        The same in frames.
    drift : int
        In other frames, largest shift from the best patch of the frame next to it, in pixels.
    depth : int
        Frames of a patch.
    stride : int
        Distance of reference patches, in pixels.
    passes : int
    contrast : float
        How far a difference of channel means is forgiven in matching, 0 to 1.
    taper : float
        Length in pixels over which covariances are trusted: they are multiplied by ``exp(-distance^2 / (2 taper^2))``.
    first_ridge, last_ridge : float
        The ridge of the first and last pass: variance added to every covariance's diagonal, relative to that of the
        observed entries.
    step : float
        Over-relaxation: how much of the change of a pass is made, 1 = as it is.
    momentum : float
        Share of the last change that is made again.
    uncertain : bool
        Whether a group's covariance includes what the missing entries of its members leave open, and estimates are
        weighted by their standard deviations in every pass, not the last only. Pays where patches have few observed
        entries.
    shrinks : bool
        Whether groups are completed by shrinking their singular values (`kernels.shrink`), with what is not observed as
        it is estimated: a first estimate under noise, that needs none of the covariances. `taper`, `first_ridge` and
        `last_ridge` then have no part.
    apart : bool
        Whether a group's colours are completed by themselves, along their principal axes: for a ninth of the work.
        Where the channels of a pixel are observed together only.
    share : float
        Weight of the stage's result beside the picture that it began with.
    weighted : bool
        Whether the last pass weights estimates by their standard deviations, too. Where a denser grid follows, nothing
        is gained by it.
    estimated : int or None
        Patches of a group, the nearest to the reference first, that are estimated by the mean and covariance of all;
        None: all of them.
    settled : float
        A group is left alone, but for the first and the last pass, where the pass before changed no entry to be
        estimated by more than this, in standard deviations of what is observed; 0: none is.
    """

    size: int = 6
    members: int = 48
    window: int = 18
    reach: int = 0
    drift: int = 6
    depth: int = 1
    stride: int = 3
    passes: int = 24
    contrast: float = 0.5
    taper: float = 10.0
    first_ridge: float = 2e-2
    last_ridge: float = 3e-4
    step: float = 1.5
    momentum: float = 0.5
    uncertain: bool = False
    shrinks: bool = False
    apart: bool = False
    share: float = 1.0
    weighted: bool = True
    estimated: int | None = None
    settled: float = 0.0


@dataclass(frozen=True)
class Tuned:
    """Constants of pictures that were found by trial; each names its row in docs/design.md, "Patch groups"."""

    # -- sizes ("48 patches of 6 x 6", "Strokes and blocks want larger patches", "Stages")
    # Entries of a patch that are worth their cost; wider patches may have twice as many.
    most_entries: int = 150
    # Holes of strokes this deep, in pixels to the nearest observed one (the 90th percentile), are filled better by
    # larger patches.
    deep: int = 2
    deep_size: int = 10
    deep_members: int = 96
    # The nearest patches of a group alone are estimated, by what all of them say ("The nearest of a group"): usually,
    # and in the last passes, where most is missing or where holes are strokes.
    members: int = 64
    estimated: int = 16
    more_estimated: int = 32
    # Passes over patches wider by this factor, where entries are sparse.
    wide_passes: int = 1
    wider: float = 5 / 4
    wide_members: int = 48
    # Passes over finer patches at the end, where what is missing is scattered, and the weight of their result beside
    # what they began with, usually and where most is missing.
    fine_passes: int = 1
    finer: float = 2 / 3
    fine_members: int = 32
    fine_share: float = 0.8
    sparse_fine_share: float = 0.5

    # -- passes ("Over-relaxation 1.5 and momentum .5", "Longer steps", "What is left open")
    # Passes in all: usually, where more than `sparse` is missing, with longer steps, and where holes are strokes, which
    # change little after the first few.
    passes: int = 15
    sparse_passes: int = 12
    sparse_step: float = 2.3
    stroke_passes: int = 12
    # First ridge of strokes, and the change below which their groups are left alone ("What has settled").
    stroke_ridge: float = 1e-2
    settled: float = 0.03
    # Of these, those that go with everything observed ("Held-out entries are given back"), on grids denser than that of
    # the others, this share of a patch apart, the last ones denser still ("Coarse grids").
    back_passes: int = 3
    last_passes: int = 1
    dense: float = 2 / 3
    densest: float = 1 / 2
    # Share of scattered missing entries above which what they leave open is reckoned with; then groups are smaller.
    sparse: float = 0.75
    sparse_members: int = 48

    # -- validation ("Held-out entries"): share of the observed entries that is held out, of samples with deep holes,
    # where nothing else is estimated, and the most of them where they are scattered.
    held_out: float = 0.05
    held_out_deep: float = 0.1
    most_held_out: int = 2000
    # A picture of more than `windows` squares of side `square` is validated on so many of them, and the global model
    # has no part in it.
    windows: int = 4
    square: int = 256

    # -- the global model ("The global model is blended in where the picture repeats itself")
    # The least weights in the first and the second trial at which it is worth the cost of what follows: a run in
    # earnest takes longer than all passes over strokes, and at .17 gave nothing (baboon beneath text). The weight from
    # which on similar patches are looked for up to `far` away.
    least_weights: tuple = (0.15, 0.25)
    # Of fewer independent errors than this, as beneath one deep hole, of which one like it can be held out, a weight
    # below the second number comes by chance: the global model wove its pattern into the hole.
    few: int = 8
    by_chance: float = 0.5
    much: float = 0.3
    far: int = 30
    # Most entries, and the longest side, of a picture that it has a part in: the time of its coherence grows with the
    # square of the side.
    most_global: int = 4_000_000
    longest_global: int = 4000
    # Where less than this share is missing, what is known nearby tells more than a model of the whole, whose time does
    # not shrink with the holes: a grey picture of 256 x 256 with scratches over 5 % took 23 s with it, and got no
    # weight. Of deep holes, about which nothing nearby tells, a smaller share will do: facade beneath blocks.
    least_missing_global: float = 0.1
    least_missing_deep: float = 0.05


TUNED = Tuned()


@dataclass(frozen=True)
class Schedule:
    """Stages of a run.

    Attributes
    ----------
    draft : tuple of Settings
        Gone while some observed entries are held out; their errors, and the variances of the last pass, give the
        standard deviations.
    finish : tuple of Settings
        Gone from there on with everything that is observed.
    strokes : bool
        Whether the holes are strokes.
    deep : bool
        Whether these are deep. There what the last passes better is not taken out of the standard deviations: they
        change what is alike in a whole hole, and with it its error, not every entry by itself.
    """

    draft: tuple
    finish: tuple
    strokes: bool = False
    deep: bool = False

    @property
    def passes(self):
        """Passes of all stages."""
        return sum(s.passes for s in (*self.draft, *self.finish))

    def changed(self, **settings):
        """The same with other settings in every stage."""
        draft, finish = (tuple(replace(s, **settings) for s in stages) for stages in (self.draft, self.finish))
        return replace(self, draft=draft, finish=finish)


def schedule_for(observed, config, wanted=None):
    """Schedule of the passes for a picture and its holes, `config` first.

    Deep strokes have larger patches, and sparse entries go on to wider ones. Scattered entries end with finer ones,
    averaged with what was there before. Where entries are sparse, the ridge is small from the beginning, and what is
    left open is reckoned with.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    config : Config
    wanted : (H, W, C) ndarray of bool, or None
        What is to be filled; None: all that is not observed.

    Returns
    -------
    Schedule
    """
    absent = ~observed if wanted is None else wanted
    strokes = calibrate.are_strokes(absent)
    deep = strokes and config.noise_std == 0 and calibrate.depth(absent) > TUNED.deep
    sparse = not strokes and absent.mean() > TUNED.sparse
    smallest, channels = min(absent.shape[:2]), min(absent.shape[2], MOST_CHANNELS)
    most, widest = (min(smallest, max(2, math.isqrt(n * TUNED.most_entries // channels))) for n in (1, 2))
    size = min(config.size or TUNED.deep_size, widest) if deep else min(config.size or Settings.size, most)
    members = TUNED.deep_members if deep else TUNED.sparse_members if sparse else TUNED.members
    passes = config.passes or (TUNED.stroke_passes if strokes else TUNED.sparse_passes if sparse else TUNED.passes)
    fine = 0 if strokes else min(TUNED.fine_passes, passes // 4)
    wide = min(TUNED.wide_passes, passes // 4) if sparse else 0
    last, back = min(TUNED.last_passes, passes // 4), min(TUNED.back_passes, passes // 4)
    main = Settings(
        size=size,
        members=config.members or members,
        stride=min(size, config.stride or size),
        passes=passes - fine - wide - back - last,
        first_ridge=TUNED.stroke_ridge if strokes else Settings.last_ridge if sparse else Settings.first_ridge,
        step=TUNED.sparse_step if sparse else Settings.step,
        estimated=TUNED.more_estimated if strokes or sparse else TUNED.estimated,
        settled=TUNED.settled if strokes else 0.0,
    )
    late = replace(main, first_ridge=main.last_ridge)
    wider = replace(_scaled(late, TUNED.wider, widest), passes=wide, members=config.members or TUNED.wide_members)
    finer = replace(
        _scaled(late, TUNED.finer, most), passes=fine, members=config.members or TUNED.fine_members,
        estimated=TUNED.more_estimated, step=1.0, momentum=0.0,
        share=TUNED.sparse_fine_share if sparse else TUNED.fine_share,
    )  # fmt: skip
    again = _denser(replace(late, weighted=False), back, TUNED.dense, config)
    end = _denser(replace(late, estimated=TUNED.more_estimated), last, TUNED.densest, config)
    wide_end = _denser(wider, last, TUNED.dense, config) if wide else end
    schedule = Schedule(
        _without_empty(replace(main, weighted=not back), wider),
        _without_empty(again, wide_end, _denser(finer, fine, TUNED.dense, config)),
        strokes,
        deep,
    )
    return schedule.changed(uncertain=True) if sparse else schedule


def _denser(settings, passes, share, config):
    """Passes with the same settings over a denser grid, a `share` of a patch apart."""
    stride = config.stride or max(1, round(share * settings.size))
    return replace(settings, passes=passes, stride=min(settings.size, stride))


def _without_empty(*stages):
    """The stages that have passes."""
    return tuple(s for s in stages if s.passes)


def _scaled(settings, factor, most):
    """The same with patches of another size, up to `most`."""
    size = min(most, max(2, round(factor * settings.size)))
    return replace(settings, size=size, stride=max(1, min(size, round(factor * settings.stride))))


def in_one_piece(shape):
    """Whether a picture of `shape` (H, W, ...) is validated, and the global model tried, on all of it."""
    return shape[0] * shape[1] <= TUNED.windows * TUNED.square**2


def validation_windows(observed, rng, wanted=None):
    """Parts of a picture on which the held-out round is run: all of it, or of a large one a few squares, the likelier
    the more they miss.

    Parameters
    ----------
    observed : (H, W, C) ndarray of bool
    rng : numpy.random.Generator
    wanted : (H, W, C) ndarray of bool, or None
        What is to be filled; None: all that is not observed.

    Returns
    -------
    list of (slice, slice)
    """
    if in_one_piece(observed.shape):
        return [(slice(None), slice(None))]
    # The last squares lie within the picture too: a narrow strip could be smaller than a patch.
    rows, columns = (
        np.linspace(0, max(0, n - TUNED.square), math.ceil(n / TUNED.square)).astype(int) for n in observed.shape[:2]
    )
    squares = [(slice(r, r + TUNED.square), slice(c, c + TUNED.square)) for r in rows for c in columns]
    squares = [s for s in squares if observed[s].any()]
    absent = ~observed if wanted is None else wanted
    misses = np.array([np.sum(absent[s]) for s in squares], dtype=float)
    if not misses.any():
        misses += 1
    count = min(TUNED.windows, np.count_nonzero(misses))
    return [squares[k] for k in sorted(rng.choice(len(squares), count, replace=False, p=misses / misses.sum()))]
