"""The one door to the methods: values go in near 1, and all that is said of them comes back in the units of the data.

The unit is a power of two, so that a method that knows no scale gives the same bits in any. Values of ordinary size are
left as they are.
"""

import contextlib
import math
import numbers
from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from .. import library_threads
from ..errors import ConfigError, NumericalError
from ..tensor import check_observed
from . import silent
from .parameters import UNITS, declaration

# Sizes that are ordinary.
ORDINARY = 1e-3, 1e3
# Observed entries that differ by less than this share of their size are centred: to a method that knows no offset they
# would be one constant, and what it makes of the differences rounding.
LEAST_SPAN = 1e-3
# Noise beyond this many times the largest size leaves nothing to complete from.
LOUDEST = 1e6
# Estimates this many spans of the observed entries outside of their range are warned of.
FAR = 10
# Estimates of a slice of which nothing is observed are about 0 where their mean size is below this share of that of the
# observed entries.
ABOUT_ZERO = 0.05
# Methods that fill such a slice with the level of the others.
LEVEL = ("datc", "field")
# Up to this many entries a second thread of the linear algebra costs more than it gives: calls are many and short, and
# on a busy machine each waits for the slowest thread.
ONE_THREAD = 1_000_000
# What a `Completion` has in units of the data without their centre.
SIZES = ("sd", "predictive_sd", "interval_sd", "latent_interval_sd", "noise_std", "low_rank")


@dataclass(frozen=True)
class Unit:
    """Origin and unit that values are measured from and in.

    Attributes
    ----------
    centre : float
    exponent : int
        The unit is 2 to the power of this.
    size : float
        Largest distance of an observed entry from the centre, in units of the data; of a constant its size.
    """

    centre: float
    exponent: int
    size: float

    @classmethod
    def of(cls, low, high):
        """That of entries whose range this is."""
        size, span = max(abs(low), abs(high)), high - low
        centre = 0.0
        if span < LEAST_SPAN * size:
            centre = low / 2 + high / 2
            size = max(high - centre, centre - low) or size
        ordinary = size == 0 or ORDINARY[0] <= size <= ORDINARY[1]
        return cls(centre, 0 if ordinary else math.frexp(size)[1], size)

    def standardised(self, values):
        """Values of the data in this unit, from this centre."""
        return np.ldexp(values - self.centre, -self.exponent)

    def value(self, standard):
        """Inverse of `standardised`."""
        return np.ldexp(standard, self.exponent) + self.centre

    def scaled(self, sizes, power=1):
        """Sizes in units of the data to this power, given in this unit; infinite where they leave the range of floats.
        """
        with np.errstate(over="ignore"):
            return np.ldexp(sizes, power * self.exponent)


def share(method, config, samples, *, span, rng, monitor=silent):
    """What the method decides once for all regions of a picture, in its own units; None where it decides nothing.

    Parameters
    ----------
    method : Method
    config : Parameters
        Of this method.
    samples : list of (ndarray of float64, ndarray of bool, ndarray of bool)
        Values, observed entries and those to be filled of parts of the picture.
    span : (float, float)
        Smallest and largest of all observed entries of the picture.
    rng : numpy.random.Generator
    monitor : callable
    """
    if not hasattr(method.load(), "share"):
        return None
    unit = Unit.of(*span)
    samples = [
        (np.where(observed, unit.standardised(values), np.nan), observed, wanted)
        for values, observed, wanted in samples
    ]
    return method.load().share(samples, in_unit(config, unit), rng=rng, monitor=monitor)


def solve(method, config, values, observed, *, rng, monitor=silent, span=None, wanted=None, shares=False, **further):
    """Complete a tensor.

    Parameters
    ----------
    method : Method
    config : Parameters
        Of this method.
    values : (n_1, ..., n_K) ndarray of float64
        Any scale and offset; the method sees NaN where `observed` is False.
    observed : (n_1, ..., n_K) ndarray of bool
        True = observed.
    rng : numpy.random.Generator
    monitor : callable
        See `silent`.
    span : (float, float) or None
        Smallest and largest observed entry of the picture of which this is a region; None: of these.
    wanted : (n_1, ..., n_K) ndarray of bool, or None
        Missing entries whose estimates matter; None: all. Methods that can do so spend no work on others, and of what
        they say there nothing is looked at here.
    shares : bool
        Whether entries are shares of a range, 0 to 1.
    **further
        Keywords that this method takes beyond those of all methods; of what is said outside of `used` nothing is looked
        at either.

    Returns
    -------
    Completion
        In the units of `values`, all parameters of the config among its `parameters`.

    Raises
    ------
    InputError
        Nothing is observed, or observed entries are not finite.
    ConfigError
        A parameter that does not fit the tensor.
    NumericalError
        The method broke down, or gave values that are not finite.
    """
    check_observed(values, observed)
    check_modes(config, values.ndim)
    low, high = span or (
        float(np.min(values, where=observed, initial=np.inf)),
        float(np.max(values, where=observed, initial=-np.inf)),
    )
    unit = Unit.of(low, high)
    plain = unit.centre == 0 and unit.exponent == 0
    values = np.where(observed, values, np.nan)
    if wanted is not None and method.takes("wanted"):
        further["wanted"] = wanted
    config, given = in_unit(config, unit), config
    watch = further.get("watch")
    if watch is not None and not plain:
        further["watch"] = lambda chain, estimate, kept: watch(chain, unit.value(estimate), kept)
    with library_threads.limited(1, "blas") if values.size <= ONE_THREAD else contextlib.nullcontext():
        values = values if plain else unit.standardised(values)
        done = method.load().complete(values, observed, config, rng=rng, monitor=monitor, **further)
    asked = ~observed if wanted is None else wanted
    used = further.get("used")
    if used is not None:
        outside = np.ones(values.shape, bool)
        outside[used] = False
        asked = asked & ~outside
    looked_at = ... if wanted is None and used is None else observed | asked  # all of it is not copied
    told = done.mean[looked_at]
    bad = np.count_nonzero(~np.isfinite(told))
    if bad:
        raise NumericalError(f"method {method.name} gave {bad} values that are not finite; try another method")
    if not plain:
        done = in_data(done, config, unit)
    done = _as_wide_as_known(done, values, observed, 0.5 if shares else unit.size or 1.0, unit)
    if low == high:  # whose estimates a method that samples would scatter around it
        done = replace(done, mean=np.full(values.shape, low))
    parameters = asdict(given) | done.parameters
    done = replace(done, parameters={k: list(v) if isinstance(v, tuple) else v for k, v in parameters.items()})
    told = done.mean[looked_at]
    span, beyond = high - low, max(float(told.max()) - high, low - float(told.min()))
    if 0 < FAR * span < beyond:
        text = (
            f"estimates lie outside of the range of the observed entries by up to {beyond / span:.3g} times that range"
        )
        done = replace(done, warnings=(*done.warnings, f"{text}; try another method"))
    more = (*_too_deep(done, config, observed, asked), *_slices_of_zero(method, done.mean, observed, asked))
    return replace(done, warnings=(*done.warnings, *more))


def _as_wide_as_known(done, values, observed, widest, unit):
    """`done` with standard deviations of missing entries no smaller than that of all that is known, or `widest` if that
    is one value, where less than half is known and too little to calibrate them: how entries vary was learnt from so
    few that it may be anything. `values` are in `unit`.
    """
    if done.held_out is None or 2 * np.count_nonzero(observed) >= observed.size:
        return done
    from ..patches.calibrate import FEWEST  # which methods that hold out have loaded

    if done.held_out["count"] >= FEWEST:
        return done
    pixels = np.count_nonzero(observed.reshape(*observed.shape[:2], -1).any(axis=2))
    spread = unit.scaled(values[observed].std()) if pixels > 1 else 0.0
    least = spread or widest
    told = {name: getattr(done, name) for name in ("sd", "predictive_sd")}
    return replace(done, **{name: sizes if sizes is None else np.where(observed, sizes, np.maximum(sizes, least))
                            for name, sizes in told.items()})  # fmt: skip


def _too_deep(done, config, observed, asked):
    """Iterator over a warning where what is predicted of a picture lies deeper inside holes than what is held out of
    one does: where 20 columns were known of 600, 90 % intervals held 10 % of the truth.
    """
    if done.held_out is None or getattr(config, "frames", None) is not None:
        return
    from scipy.ndimage import minimum_filter  # which, as the next, methods that hold out have loaded

    from ..patches.calibrate import PIECE

    lost, predicted = (a.reshape(*a.shape[:2], -1).any(axis=2) for a in (observed, asked))
    lost = ~lost
    if done.invented is not None:
        predicted &= ~done.invented
    if (predicted & minimum_filter(lost, 2 * PIECE + 1, mode="constant", cval=True)).any():
        yield (
            f"some of what is missing lies more than {PIECE} pixels from all that is known: its standard deviations "
            "are a guess, and may be far too small"
        )


def _slices_of_zero(method, mean, observed, wanted):
    """Iterator over warnings of slices with nothing observed, one for every mode in which the estimates of some are
    about 0.
    """
    for mode, count in enumerate(mean.shape):
        others = tuple(k for k in range(mean.ndim) if k != mode)
        unseen = np.flatnonzero(~observed.any(axis=others))
        slices = ((np.take(mean, k, mode), np.take(wanted, k, mode)) for k in unseen)
        sizes = [np.mean(np.abs(values), where=asked) for values, asked in slices if asked.any()]
        size = np.mean(np.abs(mean), where=observed) if sizes else 0.0
        blank = sum(each < ABOUT_ZERO * size for each in sizes)
        if blank:
            better = " or ".join(name for name in LEVEL if name != method.name)
            yield (
                f"method {method.name} fills {blank} of {count} slices of mode {mode}, of which nothing is known, with "
                f"about 0, and entries that are known have a size of {size:.3g}; method {better} does better"
            )


def check_modes(config, order):
    """Refuse `ordered_modes` and `frames` that a tensor of this order does not have; ConfigError."""
    frames = getattr(config, "frames", None)
    if frames is not None and frames >= order:
        text = f"frames is {frames}, but the modes of the values are 0 to {order - 1}"
        raise ConfigError(text, fields=("frames",))
    for mode in getattr(config, "ordered_modes", ()):
        if not 0 <= mode < order:
            text = f"ordered mode {mode} does not exist: the tensor has modes 0 to {order - 1}"
            raise ConfigError(text, fields=("ordered_modes",))


def in_unit(config, unit):
    """`config` with the parameters that are in units of the data in `unit`.

    Raises
    ------
    ConfigError
        One of them is out of proportion to the data.
    """
    changed = {}
    for each in fields(config):
        given, power = getattr(config, each.name), UNITS[declaration(each).units]
        if not power or not isinstance(given, numbers.Real):
            continue
        made = float(unit.scaled(given, -power)) if unit.exponent else given
        if (each.name == "noise_std" and given > LOUDEST * (unit.size or 1.0)) or (given and not 0 < made < math.inf):
            what = f"a noise level of {given:g}" if each.name == "noise_std" else f"{each.name} of {given:g}"
            text = f"{what} is out of proportion to the data, whose largest size is {unit.size:g}"
            raise ConfigError(text, fields=(each.name,))
        changed[each.name] = made
    return replace(config, **changed) if unit.exponent else config


def in_data(done, config, unit):
    """The Completion `done`, given in `unit`, in units of the data."""
    powers = {each.name: UNITS[declaration(each).units] for each in fields(config)}
    parameters, traces = dict(done.parameters), dict(done.traces)
    for name, value in parameters.items():
        if powers.get(name) and isinstance(value, numbers.Real):
            parameters[name] = float(unit.scaled(value, powers[name]))
    if "held_out_rmse" in parameters:
        errors = parameters["held_out_rmse"].items()
        parameters["held_out_rmse"] = {name: float(unit.scaled(error)) for name, error in errors}
    for name, chains in traces.items():
        if name == "noise_std":
            traces[name] = unit.scaled(chains).tolist()
        elif name.startswith("probe_"):
            traces[name] = unit.value(np.array(chains)).tolist()
    mixture = done.mixture
    if mixture is not None:
        precisions = unit.scaled(mixture["precisions"], -2).tolist()
        mixture = mixture | {"means": unit.value(mixture["means"]).tolist(), "precisions": precisions}
    sizes = {name: getattr(done, name) for name in SIZES if getattr(done, name) is not None}
    sizes = {name: unit.scaled(size) for name, size in sizes.items()}
    if "noise_std" in sizes:
        sizes["noise_std"] = float(sizes["noise_std"])
    weights = done.weights if done.weights is None else unit.scaled(done.weights).tolist()
    return replace(done, mean=unit.value(done.mean), mixture=mixture, weights=weights, parameters=parameters,
                   traces=traces, **sizes)  # fmt: skip
