"""Groups of similar patches, each completed by a low-rank Gaussian: the method for photographs; `tdc_cli.patches` has
the algorithm.

One run of passes in two parts: the draft, with some observed entries held out, chooses the start and measures how large
errors are; the finish goes on from there with everything. The start is the coloured field, blended with the paper's
global model where that predicts held-out entries better.
"""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np

from .. import field
from ..errors import ConfigError
from ..patches import borders, calibrate
from ..patches.refine import scale_of
from ..patches.schedule import TUNED, Schedule, Settings, in_one_piece, schedule_for, validation_windows
from . import Completion, Part, datc, patches_clip, silent
from .blocks import Progress, blocks, refine_blocks
from .parameters import Parameters, frame_mode, noise_level, parameter

# The global model: how it is tried, first a few sweeps and where these promise something some more, and how often and
# how it is run in earnest, where entries are scattered and where holes are strokes. The longer a chain learns what
# surrounds a hole, the worse it says what is in it, and each errs in its own way.
TRIALS = {"rank": 60, "burn_in": 4, "samples": 3}, {"rank": 60, "burn_in": 10, "samples": 8}
EARNEST = 3, {"rank": 100, "burn_in": 15, "samples": 10}
EARNEST_STROKES = 4, {"rank": 100, "burn_in": 4, "samples": 6}
# Observed entries that a trial sees at most.
MOST_TRIED = 60_000
# Rounds that learn the field's covariance, of which the passes need a first estimate only, where there is no noise.
ROUNDS = 2
# Side in pixels up to which it is learnt from the border lines too.
BORDERED = 64


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the passes; None: decided by the picture and its holes."""

    size: int | None = parameter(
        None,
        "Side of a patch; None: 6, or 10 for deep strokes, smaller with many channels. In clips 6, under noise the "
        "last pass 4.",
        ge=2,
        le=16,
    )
    members: int | None = parameter(
        None,
        "Patches in a group, of which the nearest are estimated, 16, or 32 for strokes and where more than three "
        "quarters are missing; None: 64, or 96 for deep strokes, and 48 where more than three quarters are missing. In "
        "clips 64, or 120 where the holes are strokes, and 60 where the frames beside show most of what these miss.",
        ge=2,
        le=512,
    )
    window: int | None = parameter(
        None,
        "Largest shift at which similar patches are looked for; None: 18, or 30 where the picture repeats itself. In "
        "clips 10, about where the patch has moved to.",
        ge=1,
        le=200,
    )
    stride: int | None = parameter(
        None,
        "Distance of reference patches; None: the size, and two thirds to half of it in the last passes.",
        ge=1,
        le=16,
    )
    passes: int | None = parameter(
        None,
        "How often all groups are completed; None: 15, or 12 where the holes are strokes or most is missing. In "
        "clips 6, or 7 beneath strokes, 5 where the frames beside show these, and 2 under noise after one that shrinks "
        "singular values.",
        ge=1,
        le=1000,
    )
    start: str = parameter(
        "auto",
        "First estimate; `auto` blends both by what they predict, and blends the global model into the result as well. "
        "Clips begin with the frames before and after, and the field.",
        choices=("auto", "field", "global"),
    )
    calibrate: bool = parameter(
        True, "False: no standard deviations, and entries are held out only to choose the start."
    )
    noise_std: float | str = noise_level("0: observed entries are exact; `auto`: learnt by the field.")
    frames: int | None = frame_mode()

    def __post_init__(self):
        super().__post_init__()
        if self.stride is not None and self.size is not None and self.stride > self.size:
            raise ConfigError(
                f"stride {self.stride} is larger than the patch size {self.size}: pixels in between would be left out",
                fields=("stride", "size"),
            )


@dataclass(frozen=True)
class Shared:
    """What is decided once for all regions of a picture, from samples of it.

    Attributes
    ----------
    prior : field.Prior
    units : tuple of (float, float)
        Centre and spread of every block of channels.
    schedule : Schedule
    scale : calibrate.Scale or None
    factor : float
        Of the standard deviations, for what the last passes bettered.
    verdict : dict or None
        See `Completion.held_out`.
    grids : int
        Seed of the origins of the grids, which all regions have in common.
    warnings : tuple of str
    """

    prior: field.Prior
    units: tuple
    schedule: Schedule
    scale: calibrate.Scale | None
    factor: float
    verdict: dict | None
    grids: int
    warnings: tuple


def margin(config):
    """See the package; patches that touch what is used, and those like them.

    The global model needs the whole.
    """
    if config.start == "global":
        return None
    usual = Settings.window if config.frames is None else patches_clip.WINDOW
    return (config.window or usual) + 2 * (config.size or TUNED.deep_size)


def share(samples, config, *, rng, monitor=silent, left_out=None):
    """`Shared` of all regions: both parts of the run on the samples, with what is held out there.

    `left_out` is as of `complete`.
    """
    config = replace(config, start="field")
    samples = [tuple(a.reshape(*a.shape[:2], -1) for a in sample) for sample in samples]
    values, observed, wanted = (np.concatenate(arrays, axis=1) for arrays in zip(*samples))
    schedule = schedule_for(observed, config, wanted)
    prior = field.fit(
        [(v, o) for v, o, _ in samples], None if config.noise_std == "auto" else float(config.noise_std) ** 2
    )
    units = tuple(
        scale_of(values[..., b][observed[..., b]])
        if observed[..., b].any()
        else (float(prior.offset[b].mean()), prior.scale)
        for b in blocks(values)
    )
    first = Shared(prior, units, schedule, None, 1.0, None, int(rng.integers(2**32)), ())
    if not config.calibrate:
        return first
    noise = _noise(config, prior)
    of_sample = sum(stage.passes for stage in schedule.draft) if schedule.strokes else schedule.passes
    progress = Progress(monitor, len(blocks(values)), len(samples) * of_sample)
    drafts, count = _of_samples(
        samples, schedule, prior, config, rng, progress, schedule.deep, Part((0, 0), first), left_out
    )
    errors, spreads = _held_out(drafts)
    scale = calibrate.fit_scale(errors, spreads, noise, count)
    factor = 1.0
    if scale is not None and not schedule.strokes:
        changes = []
        for (v, o, w), draft in zip(samples, drafts):
            worth = _worth(o, w, left_out)
            finished, _ = _finished(v, o, worth, draft, noise, rng, progress, Part((0, 0), first))
            changes.append((finished - draft.result())[worth])
        factor = calibrate.factor_of_last_passes(np.concatenate(changes), errors, noise)
    return replace(first, scale=scale, factor=factor, verdict=_verdict(errors, spreads, noise, rng),
                   warnings=calibrate.uncalibrated(scale, errors))  # fmt: skip


def complete(values, observed, config=Config(), *, rng, monitor=silent, wanted=None, part=None, left_out=None):
    """Posterior mean of every entry, and standard deviations calibrated on held-out observed entries.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Modes 0 and 1 are the picture, all further modes together its channels, but for the one that counts the frames
        of a clip. Entries where `observed` is False are never read.
    observed, config, rng, monitor, wanted, part
        See `tdc_cli.methods`.
    left_out : callable or None
        ``left_out(missing)`` says which of the pixels of a picture that are missing and wanted, (H, W) bool, are not
        worth an estimate; these stay as the field has them, and their standard deviations mean nothing. None: none of
        them; of clips none in any case.
    """
    if config.frames is not None and values.shape[config.frames] > 1:
        return patches_clip.complete(values, observed, config, rng=rng, monitor=monitor, wanted=wanted)
    flat = (*values.shape[:2], -1)
    wanted = ~observed if wanted is None else wanted
    values, observed, wanted, shape = values.reshape(flat), observed.reshape(flat), wanted.reshape(flat), values.shape
    if part is None:
        done = _completed(values, observed, wanted, config, rng, monitor, left_out)
    else:
        done = _completed_part(values, observed, wanted, config, part, monitor, left_out)
    arrays = {name: getattr(done, name) for name in ("mean", "sd", "predictive_sd")}
    return replace(done, **{name: None if a is None else a.reshape(shape) for name, a in arrays.items()})


def _completed(values, observed, wanted, config, rng, monitor, left_out):
    """`complete` of (H, W, C) values of order 1."""
    schedule = schedule_for(observed, config, wanted)
    windows = validation_windows(observed, rng, wanted) if config.calibrate or config.start == "auto" else []
    worth = _worth(observed, wanted, left_out)
    whole, deep = in_one_piece(values.shape), schedule.deep and left_out is None
    if config.start == "auto" and not _tries_global(config, values.shape, worth.mean(), deep):
        config = replace(config, start="field")
        windows = windows if config.calibrate else []
    squares = 0 if whole else len(windows)
    of_draft = sum(stage.passes for stage in schedule.draft)
    progress = Progress(monitor, len(blocks(values)), squares * of_draft + schedule.passes)
    prior = _prior(values, observed, config)
    if config.noise_std == "auto":
        config = replace(config, noise_std=math.sqrt(prior.noise_variance))
    noise = _noise(config, prior)
    given, tones = values, borders.tones(values, observed, noise)
    values = given - tones

    samples = [(values[w], observed[w], wanted[w]) for w in windows]
    drafts, count = _of_samples(
        samples, schedule, prior, config, rng, progress, schedule.deep and not whole, left_out=left_out
    )
    errors, spreads = _held_out(drafts)
    if whole and drafts:
        (draft,) = drafts
    else:
        nothing = np.zeros_like(observed)
        draft = _draft(values, observed, wanted, nothing, schedule, prior, config, rng, progress, left_out=left_out)
    scale = calibrate.fit_scale(errors, spreads, noise, count)

    estimate, weight = _finished(values, observed, worth, draft, noise, rng, progress)
    parameters = _used(config, draft, weight)
    mean = np.where(observed, given, estimate + tones) if noise == 0 else estimate + tones
    done = Completion(mean=mean, noise_std=math.sqrt(noise) if noise else None, parameters=parameters)
    if not config.calibrate:
        return done
    changes, factor = (estimate - draft.result())[worth], 1.0
    if scale is not None and not schedule.strokes:
        factor = calibrate.factor_of_last_passes(changes, errors, noise)
    elif scale is not None and not schedule.deep and noise == 0:
        factor = calibrate.factor_of_most_changes(changes, scale(np.sqrt(draft.variance[worth])))
    sd = _deviations(draft.variance, values, observed, noise, scale, factor)
    return replace(
        done,
        sd=sd,
        predictive_sd=np.sqrt(sd**2 + noise) if noise else sd,
        held_out=_verdict(errors, spreads, noise, rng),
        warnings=calibrate.uncalibrated(scale, errors),
    )


def _tries_global(config, shape, missing, deep):
    """Whether the global model is tried on a picture of `shape` (H, W, ...): where it is asked for, and by itself where
    that much is `missing` and the picture is validated in one piece; `deep`: of deep holes less will do.
    """
    least = TUNED.least_missing_deep if deep else TUNED.least_missing_global
    fit = in_one_piece(shape) and max(shape[:2]) <= TUNED.longest_global and missing >= least
    return config.start == "global" or (config.start == "auto" and bool(fit))


def _completed_part(values, observed, wanted, config, part, monitor, left_out):
    """`complete` of a region, by what is shared: the grids of the passes are those of the whole picture."""
    shared, config = part.shared, replace(config, start="field")
    noise, schedule = _noise(config, shared.prior), shared.schedule
    rng = np.random.default_rng(shared.grids)
    progress = Progress(monitor, len(blocks(values)), schedule.passes)
    nothing = np.zeros_like(observed)
    draft = _draft(values, observed, wanted, nothing, schedule, shared.prior, config, rng, progress, part, left_out)
    worth = _worth(observed, wanted, left_out)
    estimate, weight = _finished(values, observed, worth, draft, noise, rng, progress, part)
    parameters = _used(config, draft, weight)
    done = Completion(mean=estimate, noise_std=math.sqrt(noise) if noise else None, parameters=parameters)
    if not config.calibrate:
        return done
    sd = _deviations(draft.variance, values, observed, noise, shared.scale, shared.factor)
    return replace(
        done,
        sd=sd,
        predictive_sd=np.sqrt(sd**2 + noise) if noise else sd,
        held_out=shared.verdict,
        warnings=shared.warnings,
    )


def _prior(values, observed, config):
    """The field's prior, learnt without the border lines, which may be of another tone, where enough is left."""
    inner = np.s_[1:-1, 1:-1] if min(values.shape[:2]) > BORDERED else np.s_[:, :]
    part = (values[inner], observed[inner]) if observed[inner].any(axis=(0, 1)).all() else (values, observed)
    if config.noise_std == "auto":
        return field.fit([part], None)
    noise = float(config.noise_std) ** 2
    return field.fit([part], noise, steps=field.STEPS if noise else ROUNDS)


def _noise(config, prior):
    """Variance of the noise: as it was given, or as it was learnt."""
    return prior.noise_variance if config.noise_std == "auto" else float(config.noise_std) ** 2


def _used(config, draft, weight):
    """Parameters in force."""
    used = {name: getattr(draft.schedule.draft[0], name) for name in ("size", "members", "window", "stride")}
    return asdict(config) | used | {"passes": draft.schedule.passes, "global_in_start": draft.start,
                                    "global_in_result": weight}  # fmt: skip


def _verdict(errors, spreads, noise, rng):
    return {"count": len(errors), "coverage90": calibrate.coverage_by_halves(errors, spreads, noise, rng)}


def _worth(observed, wanted, left_out):
    """Those of the entries `wanted`, (H, W, C), that `left_out`, if there is such a rule, does not leave out."""
    return wanted if left_out is None else wanted & ~left_out(~observed.any(axis=2) & wanted.any(axis=2))[..., None]


def _of_samples(samples, schedule, prior, config, rng, progress, alone, part=None, left_out=None):
    """Drafts of samples, a list of (values, observed, wanted), and how many errors of held-out entries are independent.

    If `alone`, what is held out is all that is estimated. In deep holes it keeps away from what is missing, which it
    does not need, and there is time for more and longer pieces, of which no result comes.
    """
    share = TUNED.held_out_deep if alone else TUNED.held_out
    held = [calibrate.hold_out(o, share, rng, TUNED.most_held_out, w, alone) for _, o, w in samples]
    drafts = [
        _draft(v, o, np.zeros_like(w) if alone else w, h, schedule, prior, config, rng, progress, part, left_out)
        for (v, o, w), h in zip(samples, held)
    ]
    return drafts, sum(map(calibrate.independent, held))


@dataclass(frozen=True)
class _Draft:
    """What the first part of a run gave, while some observed entries were held out.

    Attributes
    ----------
    schedule : Schedule
        As it was gone, with the window that the start asked for.
    start : float
        Weight of the global model in the start, beside the field.
    whole : ndarray or None
        Estimate of every entry by the global model.
    estimate : ndarray
        By the passes.
    share : float
        Weight of the global model beside it.
    agreement : float
        If there is such a weight, at the held-out entries: mean product of what is lacking, truth less estimate, and of
        what the global model would add, global model less estimate.
    variance : ndarray or None
        Relative variances of the estimate.
    errors : ndarray
        At the held-out entries; as many relative standard deviations are in `spreads`.
    spreads : ndarray
    """

    schedule: Schedule
    start: float
    whole: np.ndarray | None
    estimate: np.ndarray
    share: float
    agreement: float
    variance: np.ndarray | None
    errors: np.ndarray
    spreads: np.ndarray

    def result(self):
        """The estimate, and the global model beside it."""
        return _beside(self.estimate, self.share, self.whole)


def _draft(values, observed, wanted, held, schedule, prior, config, rng, progress, part=None, left_out=None):
    """The first part of a run, from the field and the global model, with the entries `held` out."""
    kept = observed & ~held
    start = field.solve(values, kept, prior=prior, wanted=wanted | held).mean
    weight, whole = _global_part(values, kept, held, start, config, schedule, rng)
    start = _beside(start, weight, whole)
    if not (config.calibrate or weight):  # nothing more is asked of what is held out
        kept, held = observed, np.zeros_like(held)
    worth = _worth(kept, wanted | held, left_out)
    held = held & worth
    schedule = schedule.changed(window=config.window or (TUNED.far if weight > TUNED.much else Settings.window))
    estimate, variance = refine_blocks(
        values,
        kept,
        start,
        schedule.draft,
        _noise(config, prior),
        rng,
        progress,
        config.calibrate,
        wanted=worth,
        **_place(part),
    )
    share, agreement = 0.0, 0.0
    if config.start == "auto" and weight:
        share = _best_weight(values, estimate, whole, held, TUNED.least_weights[0])
    if share:
        agreement = float(np.mean(((values - estimate) * (whole - estimate))[held]))
    errors = (_beside(estimate, share, whole) - values)[held]
    spreads = np.sqrt(variance[held]) if config.calibrate else errors
    return _Draft(schedule, weight, whole, estimate, share, agreement, variance, errors, spreads)


def _beside(estimate, weight, whole):
    """An estimate, and the global model beside it with this weight."""
    return estimate + weight * (whole - estimate) if weight else estimate


def _global_part(values, kept, held, start, config, schedule, rng):
    """Weight of the global model in the start, and its estimate or None."""
    possible = held.sum() >= calibrate.FEWEST and held.size <= TUNED.most_global and min(held.shape[:2]) > 2
    few = calibrate.independent(held) < TUNED.few
    least_weights = [max(least, TUNED.by_chance) if few else least for least in TUNED.least_weights]
    weight = float(config.start == "global")
    if config.start == "auto" and possible:
        for trial, least in zip(TRIALS, least_weights, strict=True):
            weight = _best_weight(values, start, _global(values, _some(kept, rng), trial, rng), held, least)
            if not weight:
                break
    if not weight:
        return 0.0, None
    chains, parameters = EARNEST_STROKES if schedule.strokes else EARNEST
    # One after the other: a chain holds arrays as large as the picture.
    whole = sum(_global(values, kept, parameters, rng) for _ in range(chains)) / chains
    if config.start == "auto":
        weight = _best_weight(values, start, whole, held, least_weights[0])
    return weight, whole if weight else None


def _place(part):
    """What a region tells the passes."""
    return {} if part is None else {"units": part.shared.units, "origin": part.origin}


def _finished(values, observed, worth, draft, noise, rng, progress, part=None):
    """Estimate of every entry by the last part of the run, from what the first gave, and the weight of the global model
    in it; missing entries that are not `worth` an estimate stay as they are.
    """
    before, finish, weight = draft.estimate, draft.schedule.finish, 0.0
    estimate = before
    if finish:
        start = _given_back(before, values, observed, worth) if draft.schedule.strokes and noise == 0 else before
        estimate, _ = refine_blocks(
            values, observed, start, finish, noise, rng, progress, False, wanted=worth, **_place(part)
        )
    if draft.share:
        # Beneath strokes a change has much to do with the error, which is alike in a whole hole.
        weight = draft.share
        if not draft.schedule.strokes:
            weight = _weight_in_the_end(draft.agreement, (estimate - before)[worth], (draft.whole - before)[worth])
        # What is observed, if only with noise, the patches know better: the global model does not know how much noise
        # there is.
        estimate = np.where(observed, estimate, _beside(estimate, weight, draft.whole))
    return (np.where(observed, values, estimate) if noise == 0 else estimate), weight


def _given_back(estimate, values, observed, worth):
    """The estimate with what the field carries, into the entries that are `worth` one, of its errors at those that were
    held out: a hole beside one of these was deeper than it is, and the few passes that are left would not find again
    what was lost there.
    """
    errors = np.where(observed, values - estimate, 0.0)
    if not errors.any():
        return estimate
    channels = values.shape[2]
    prior = field.Prior(np.zeros(channels), 1.0, np.eye(channels), 0.0)
    return np.where(worth, estimate + field.solve(errors, observed, prior=prior, wanted=worth).mean, estimate)


def _weight_in_the_end(agreement, changes, additions):
    """Weight of the global model beside what the last passes have bettered, least squares where a change has nothing to
    do with the error that it leaves.

    Parameters
    ----------
    agreement : float
        Mean product of what the draft lacked and what the global model would have added, at held-out entries.
    changes : (n,) ndarray
        Of missing entries, from the draft to the end.
    additions : (n,) ndarray
        What the global model would have added to the draft at the same entries.
    """
    apart = np.mean((additions - changes) ** 2)
    return float(np.clip((agreement - np.mean(changes * additions)) / max(apart, np.finfo(float).tiny), 0.0, 1.0))


def _deviations(variance, values, observed, noise, scale, factor):
    """Standard deviations of the entries that are estimated, under noise all of them, 0 elsewhere: by the scale that
    held-out ones asked for, if there is one, of missing entries times `factor`, and within what is possible.
    """
    sd, estimated = np.zeros(variance.shape), ~observed if noise == 0 else np.ones_like(observed)
    spread = np.sqrt(variance[estimated])
    sd[estimated] = spread if scale is None else scale(spread)
    sd[~observed] *= factor
    calibrate.bound(sd, values, observed)
    return sd


def _held_out(drafts):
    """Errors and spreads of all `drafts`."""
    return (np.concatenate([np.empty(0), *(getattr(d, name) for d in drafts)]) for name in ("errors", "spreads"))


def _global(values, observed, parameters, rng):
    """Estimate of every entry by the paper's model, with coherence and without a mixture, from a short run of one
    chain.
    """
    shape = values.shape if values.shape[2] > 1 else values.shape[:2]
    config = datc.Config(residual="none", spatial=True, ordered_modes=(0, 1), chains=1, **parameters)
    # The search for components takes longer than all sweeps of a trial, and changed no weight.
    mean = datc.mean(np.where(observed, values, 0.0).reshape(shape), observed.reshape(shape), config, rng=rng)
    return mean.reshape(values.shape)


def _some(observed, rng):
    """The observed entries that a trial of the global model sees, as many as tell whether it has a part."""
    share = MOST_TRIED / max(1, np.count_nonzero(observed))
    return observed & (rng.random(observed.shape, np.float32) < share) if share < 1 else observed


def _best_weight(values, one, other, held, least):
    """Weight of the second estimate beside the first, least squares on the held-out entries; 0 where it is below
    `least`.
    """
    apart = (other - one)[held]
    weight = apart @ (values - one)[held] / max(apart @ apart, np.finfo(float).tiny)
    return float(min(weight, 1.0)) if weight >= least else 0.0


def warm_up(shape, config, missing):
    """Compile what is needed on tiny pictures, so that compilation is not counted as work."""
    rng = np.random.default_rng(0)
    values = rng.random((12, 12, 2))
    for share in (0.3, 0.95, *([0.05] if missing > TUNED.sparse else [])):
        complete(values, rng.random(values.shape) < share, Config(passes=1), rng=rng)
    if config.frames is None and _tries_global(config, shape, missing, deep=True):
        tiny = values[..., : len(shape) - 1]  # of a grey picture one channel
        _global(tiny, rng.random(tiny.shape) < 0.5, TRIALS[0], rng)
