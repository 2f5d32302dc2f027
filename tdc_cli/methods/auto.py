"""Holes that can be predicted by `patches`, the inside of deep ones by `exemplar`: decided pixel by pixel, by what the
posterior knows.

Where no hole is deep (`tdc_cli.exemplar.deep`) the result is that of `patches`, bit for bit. In a deep hole its
estimate is kept where it explains at least a share of the variance within patches; where it explains less, it is more
of a smear than of a picture, and the pixel is filled with what looks right, what was predicted beside it being known.
"""

from dataclasses import asdict, dataclass, replace

import numpy as np
from scipy.ndimage import binary_opening

from ..exemplar.deep import core, deep
from ..exemplar.planes import PATCH, around, extent, patch_variance
from ..tensor import check_observed
from . import Completion, Part, exemplar, patches, patches_clip, silent
from .exemplar_clip import as_given, by_frame, fill_clip, within
from .parameters import parameter

# Pixels beside the holes that the estimate looks at.
MARGIN = 64
# What a frame within the reach of groups shows of a deep hole of a clip is taken from it as it is where the frames,
# moved, differ by at most this share of the variance around; else groups do better.
AGREEING = 0.1


@dataclass(frozen=True)
class Config(patches.Config):
    """Parameters of the passes, as of `patches`, and where inventing begins."""

    line: float = parameter(
        0.25,
        "In deep holes, share of the variance within patches that an estimate may leave open, its own variance being "
        "the rest; what leaves more is invented.",
        ge=0,
        le=1,
    )


# Deep holes have regions of their own, since what is invented is of one piece; all else is divided as with `patches`.
margin = patches.margin
undivided = deep


def share(samples, config, *, rng, monitor=silent):
    """What `patches.share` decides for the regions of a picture, the inside of deep holes left out."""
    return patches.share(samples, config, rng=rng, monitor=monitor, left_out=core)


def complete(values, observed, config=Config(), *, rng, monitor=silent, source=None, wanted=None, part=None, used=None):
    """As `patches.complete`, and as `exemplar.complete` where holes are too deep for that.

    Parameters
    ----------
    values, observed, config, rng, monitor, part
        See `tdc_cli.methods` and, for the modes of `values`, `patches.complete`.
    source : (H, W) ndarray of bool, or None
        True = may be copied. None: all known pixels.
    wanted : (H, W, ...) ndarray of bool, or None
        Missing entries to fill; None: all of them. How deep a hole is, is a matter of these alone.
    used : tuple of slice, or None
        Rows and columns that are used of a region: only deep holes within them are filled.

    Returns
    -------
    Completion
        Its standard deviations are those of `patches` where it was predicted, and those of `exemplar` where it was
        invented.

    Raises
    ------
    ConfigError
        `source` has another size.
    """
    check_observed(values, observed)
    exemplar.check_source(source, values)
    if config.frames is not None:
        return _complete_clip(values, observed, config, rng, monitor, source, wanted, used)
    flat = (*values.shape[:2], -1)
    known = observed.reshape(flat)
    asked = ~known if wanted is None else wanted.reshape(flat)
    whole = known.all(axis=2) if source is None else known.all(axis=2) & source
    lost = ~known.any(axis=2) & asked.any(axis=2)
    everywhere = deep(lost) if whole.any() else np.zeros(values.shape[:2], bool)
    holes = within(everywhere, used)
    left_out = core if everywhere.any() else None
    if not holes.any():
        return patches.complete(values, observed, config, rng=rng, monitor=monitor, wanted=wanted, part=part,
                                left_out=left_out)  # fmt: skip
    missing = asked.any(axis=2)
    box = _box(within(missing, used)) if config.noise_std == 0 else tuple(slice(0, n) for n in values.shape[:2])
    if part is not None:
        part = Part(tuple(start + side.start for start, side in zip(part.origin, box, strict=True)), part.shared)
    done = patches.complete(
        values[box], observed[box], config, rng=rng, monitor=lambda k, total, label: monitor(k, total + 1, label),
        wanted=None if wanted is None else wanted[box], part=part, left_out=left_out,
    )  # fmt: skip
    mean = np.where(observed, values, 0.0).copy(order="C")
    mean[box] = done.mean
    sd, invented = np.zeros(values.shape), holes
    if done.sd is not None:
        sd[box] = done.sd
        invented, there = holes.copy(), known[box]
        sure = _sure(
            done.mean.reshape(there.shape), done.sd.reshape(there.shape), there.any(axis=2), lost[box], config.line
        )
        invented[box] &= ~sure
    made = np.broadcast_to(invented[..., None], known.shape)
    estimated = asked & within(np.ones(values.shape[:2], bool), used)[..., None]
    exemplar.fill_picture(mean.reshape(flat), sd.reshape(flat), (known | estimated) & ~made, made, source, rng,
                          lambda share: monitor(99, 100, "filling"), predicted=holes & ~invented)  # fmt: skip
    monitor(100, 100, "filling")
    if done.sd is None:
        return replace(done, mean=mean, invented=invented)
    # What was held out tells of what is predicted.
    held_out = done.held_out if done.noise_std or (asked & ~made).any() else None
    predictive = np.hypot(sd, done.noise_std) if done.noise_std else sd
    return replace(done, mean=mean, sd=sd, predictive_sd=predictive, held_out=held_out, invented=invented)


def _complete_clip(values, observed, config, rng, monitor, source, wanted, used):
    """`complete` of a clip: what frames nearby show is left to the groups, unless whole frames agree; the rest of deep
    holes is filled.
    """
    known = by_frame(observed, config.frames)
    complete_ = known.all(axis=3) if source is None else known.all(axis=3) & source
    # A frame without a pixel to copy is left to the groups.
    able, lost = complete_.any(axis=(1, 2)), ~known.any(axis=3)
    if wanted is not None:
        lost &= by_frame(wanted, config.frames).any(axis=3)
    holes = within(np.stack([deep(frame) & able_ for frame, able_ in zip(lost, able, strict=True)]), used)
    if not holes.any():
        return patches.complete(values, observed, config, rng=rng, monitor=monitor, wanted=wanted)

    def leave(share, gap):
        return (gap > 0) & (gap <= patches_clip.REACH) & (share > AGREEING)

    given, unknown = by_frame(np.where(observed, values, 0.0), config.frames), ~known.all(axis=3) & ~holes
    filled = fill_clip(
        given[able], holes[able], unknown[able], source, rng, lambda share: monitor(round(10 * share), 100, "filling"),
        leave,
    )  # fmt: skip

    def in_all(found):
        """For every frame what was found for those that are able; 0 for the others."""
        everywhere = np.zeros((len(able), *found.shape[1:]), found.dtype)
        everywhere[able] = found
        return everywhere

    where, made, sd = (as_given(in_all(stacked), values.shape, config.frames) for stacked in (
        np.broadcast_to(filled.filled[..., None], filled.values.shape), filled.values, filled.spread))  # fmt: skip
    invented = np.moveaxis(in_all(filled.invented), 0, -1)
    left = ~(observed | where) if wanted is None else wanted & ~where
    if not left.any() and config.noise_std == 0:
        monitor(100, 100, "filling")
        sd = sd if config.calibrate else None
        return Completion(mean=made, sd=sd, predictive_sd=sd, invented=invented, parameters=asdict(config))
    done = patches.complete(
        np.where(where, made, values), observed | where, config, rng=rng, monitor=monitor, wanted=left
    )
    mean = np.where(where, made, done.mean)
    if done.sd is None:
        return replace(done, mean=mean, invented=invented)
    sd = np.where(where, sd, done.sd)
    predictive = np.hypot(sd, done.noise_std) if done.noise_std else sd
    return replace(done, mean=mean, sd=sd, predictive_sd=predictive, invented=invented)


def _box(lost):
    """Rows and columns about everything that is lost, (H, W), and `MARGIN` more."""
    return tuple(slice(max(0, s.start - MARGIN), s.stop + MARGIN) for s in extent(lost))


def _sure(mean, sd, known, lost, line):
    """Pixels, (H, W), whose estimates leave open at most the share `line` of their variance, channels together; none in
    the cores of what is `lost`.

    What the estimates explain is their own variance within patches: where they are a smear it is next to nothing,
    whatever edges there are nearby.
    """
    estimated = ~(known | core(lost))
    explained = patch_variance(mean, estimated, PATCH)
    left = around((sd**2).sum(axis=2), estimated, PATCH)
    sure = (left <= line * (left + explained)) & estimated
    # Without specks that are predicted, which nothing known is next to.
    return binary_opening(sure | known, np.ones((3, 3))) & ~known


def warm_up(shape, config, missing):
    """Compile the kernels of the groups; those of deep holes, which few inputs have, compile where one is met."""
    patches.warm_up(shape, config, missing)
