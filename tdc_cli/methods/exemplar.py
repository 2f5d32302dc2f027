"""Large holes filled with what looks right, copied from elsewhere; `tdc_cli.exemplar` has the algorithm.

What is deep inside a hole cannot be known. An estimate of it is a smear, since that is what its mean is; this method gives one picture that
may have been there. Its standard deviations are the spread among equally good sources, not a distance to the truth.
"""

from dataclasses import asdict, dataclass

import numpy as np

from ..errors import ConfigError, InputError
from ..exemplar.fill import fill
from ..exemplar.regions import divide
from ..kernels import kernel_threads
from ..tensor import check_observed
from . import Completion, silent
from .parameters import Parameters, parameter


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the filling."""

    frames: int | None = parameter(
        None, "Mode that counts the frames of a clip, after the rows and the columns; None: the values are a picture.", ge=2
    )


def complete(values, observed, config=Config(), *, rng, monitor=silent, source=None, wanted=None):
    """Fill every pixel that lacks an entry; entries of it that are observed are kept.

    Parameters
    ----------
    values : (H, W, ...) ndarray of float
        Modes 0 and 1 are the picture, all further modes together its channels, but for the one that counts the frames of a clip, each of
        which is filled by itself. Entries where `observed` is False are never read.
    observed : (H, W, ...) ndarray of bool
        True = observed.
    config : Config
    rng : numpy.random.Generator
    monitor : callable
        Called as ``monitor(done, total, label)``.
    source : (H, W) ndarray of bool, or None
        True = may be copied. None: all known pixels.
    wanted : (H, W, ...) ndarray of bool, or None
        Missing entries to fill; None: all of them.

    Returns
    -------
    Completion

    Raises
    ------
    InputError
        No pixel that may be copied is observed in all of its channels, or observed entries are not finite.
    ConfigError
        `frames` is not a mode of the values, or `source` has another size.
    """
    check_observed(values, observed)
    if config.frames is not None and config.frames >= values.ndim:
        raise ConfigError(f"frames is {config.frames}, but the modes of the values are 0 to {values.ndim - 1}", fields=("frames",))
    if source is not None and source.shape != values.shape[:2]:
        raise ConfigError(f"source has {' x '.join(map(str, source.shape))} pixels, the values {' x '.join(map(str, values.shape[:2]))}")
    # Frames first, then rows and columns, then channels.
    last = (lambda a: a[..., None]) if config.frames is None else (lambda a: np.moveaxis(a, config.frames, -1))
    shape = last(values).shape
    stacks = [np.moveaxis(last(a), -1, 0).reshape(shape[-1], *shape[:2], -1) for a in (values, observed, ~observed if wanted is None else wanted)]
    mean, sd = np.where(stacks[1], stacks[0], 0.0), np.zeros(stacks[0].shape)
    for k in range(shape[-1]):
        where = f" in frame {k}" if shape[-1] > 1 else ""
        _fill_picture(mean[k], sd[k], stacks[1][k], stacks[2][k], source, rng, _told(monitor, k, shape[-1]), where)
    monitor(shape[-1], shape[-1], "filling")
    holes = stacks[2].any(axis=3)

    def as_given(stack):
        made = np.moveaxis(stack.reshape(shape[-1], *shape[:-1]), 0, -1)
        return made[..., 0] if config.frames is None else np.moveaxis(made, -1, config.frames)

    invented = holes[0] if config.frames is None else np.moveaxis(holes, 0, -1)
    return Completion(mean=as_given(mean), sd=as_given(sd), invented=invented, parameters=asdict(config))


def _told(monitor, done, total):
    """Monitor of one picture among `total`, told the share of its work."""
    return lambda share: monitor(done + share, total, "filling")


def _fill_picture(mean, sd, observed, wanted, source, rng, tell, where):
    """Fill one picture, (H, W, C), in place."""
    hole, unknown = wanted.any(axis=2), ~observed.all(axis=2)
    if not hole.any():
        return
    copyable = ~unknown if source is None else ~unknown & source
    if not copyable.any():
        what = "of `source` " if source is not None else ""
        raise InputError(f"exemplar copies whole pixels, and no pixel {what}is observed in all channels{where}; try method patches")
    regions = divide(hole, None if source is None else copyable)
    with kernel_threads():
        for k, region in enumerate(regions):
            box = region.box
            blank = unknown[box] & ~region.hole
            done = fill(mean[box], region.hole, blank, copyable[box], rng=rng, tell=lambda share, k=k: tell((k + share) / len(regions)))
            rows, columns = np.divmod(done.pixels, region.hole.shape[1])
            open_ = ~observed[box][rows, columns]
            for whole, made in ((mean, done.values), (sd, done.spread)):
                whole[box][rows, columns] = np.where(open_, made, whole[box][rows, columns])
    tell(1.0)
