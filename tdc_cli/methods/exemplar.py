"""Large holes filled with what looks right, copied from elsewhere; `tdc_cli.exemplar` has the algorithm.

What is deep inside a hole cannot be known. An estimate of it is a smear, since that is what its mean is; this method
gives one picture that may have been there. Its standard deviations are the spread among equally good sources, not a
distance to the truth.
"""

from dataclasses import asdict, dataclass

import numpy as np

from ..errors import ConfigError, InputError
from ..exemplar.fill import fill
from ..exemplar.regions import LEAST, divide
from ..kernels import kernel_threads
from ..tensor import check_observed
from . import Completion, silent
from .exemplar_clip import as_given, by_frame, fill_clip, within
from .parameters import Parameters, frame_mode


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the filling."""

    frames: int | None = frame_mode()


def margin(config):
    """See the package. A clip of large frames is filled hole by hole, from what lies beside it; a picture as a whole,
    which finds what is far away.
    """
    return None if config.frames is None else LEAST


def undivided(lost):
    """See the package: what is invented is of one piece."""
    return lost


def complete(values, observed, config=Config(), *, rng, monitor=silent, source=None, wanted=None, used=None):
    """Fill every pixel that lacks an entry; entries of it that are observed are kept.

    Parameters
    ----------
    values, observed, config, rng, monitor, wanted
        See `tdc_cli.methods` and, for the modes of `values`, `patches.complete`.
    source : (H, W) ndarray of bool, or None
        True = may be copied. None: all known pixels.
    used : tuple of slice, or None
        Rows and columns that are used of a region of a clip: only holes within them are filled.

    Raises
    ------
    InputError
        No pixel that may be copied is observed in all of its channels, or observed entries are not finite.
    ConfigError
        `source` has another size.
    """
    check_observed(values, observed)
    check_source(source, values)
    if config.frames is not None:
        return _complete_clip(values, observed, config, rng, monitor, source, wanted, used)
    flat = (*values.shape[:2], -1)
    known = observed.reshape(flat)
    holes = ~known if wanted is None else wanted.reshape(flat)
    mean, sd = np.where(observed, values, 0.0).copy(order="C"), np.zeros(values.shape)
    fill_picture(mean.reshape(flat), sd.reshape(flat), known, holes, source, rng, _in_hundredths(monitor))
    return Completion(mean=mean, sd=sd, invented=holes.any(axis=2), parameters=asdict(config))


def check_source(source, values):
    """Refuse pixels to copy from, (H, W) or None, that are not of the size of the values; ConfigError."""
    if source is not None and source.shape != values.shape[:2]:
        sizes = (" x ".join(map(str, shape)) for shape in (source.shape, values.shape[:2]))
        raise ConfigError(f"source has {next(sizes)} pixels, the values {next(sizes)}")


def _complete_clip(values, observed, config, rng, monitor, source, wanted, used):
    known = by_frame(observed, config.frames)
    holes = within((~known if wanted is None else by_frame(wanted, config.frames)).any(axis=3), used)
    given = by_frame(np.where(observed, values, 0.0), config.frames)
    done = fill_clip(given, holes, ~known.all(axis=3) & ~holes, source, rng, _in_hundredths(monitor))
    mean, sd = np.where(known, given, done.values), np.where(known, 0.0, done.spread)
    mean, sd = (as_given(stacked, values.shape, config.frames) for stacked in (mean, sd))
    return Completion(mean=mean, sd=sd, invented=np.moveaxis(done.invented, 0, -1), parameters=asdict(config))


def _in_hundredths(monitor):
    """What tells a monitor the share of the work that is done, in hundredths."""
    return lambda share: monitor(round(100 * share), 100, "filling")


def fill_picture(mean, sd, observed, wanted, source, rng, tell, predicted=None):
    """Fill one picture in place.

    Parameters
    ----------
    mean, sd : (H, W, C) ndarray of float64
        Known entries and their standard deviations; what is filled is written into both.
    observed, wanted : (H, W, C) ndarray of bool
        What is known, and what is to be filled; of a pixel that has some of both the known entries stay.
    source : (H, W) ndarray of bool, or None
        May be copied; None: all known pixels.
    rng : numpy.random.Generator
    tell : callable
        Called as ``tell(share)`` with the share of the work that is done.
    predicted : (H, W) ndarray of bool, or None
        Observed pixels that are estimates: compared with, and not copied.

    Raises
    ------
    InputError
        Nothing is left to copy.
    """
    hole, unknown = wanted.any(axis=2), ~observed.all(axis=2)
    if not hole.any():
        return
    copyable = ~unknown if source is None else ~unknown & source
    if predicted is not None:
        copyable &= ~predicted
    if not copyable.any():
        what = "of `source` " if source is not None else ""
        raise InputError(
            f"exemplar copies whole pixels, and no pixel {what}is observed in all channels; try method patches"
        )
    regions = divide(hole, None if source is None else copyable)
    with kernel_threads():
        for k, region in enumerate(regions):
            box = region.box
            blank = unknown[box] & ~region.hole
            done = fill(mean[box], region.hole, blank, copyable[box], rng=rng, bounded=source is not None,
                        tell=lambda share, k=k: tell((k + share) / len(regions)))  # fmt: skip
            rows, columns = np.divmod(done.pixels, region.hole.shape[1])
            open_ = ~observed[box][rows, columns]
            for whole, made in ((mean, done.values), (sd, done.spread)):
                whole[box][rows, columns] = np.where(open_, made, whole[box][rows, columns])
    tell(1.0)
