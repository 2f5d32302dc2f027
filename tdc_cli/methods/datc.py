"""The paper's model: Bayesian CP with automatic rank for the low-rank part, a mixture of Gaussians for the rest.

References
----------
L. Zhang, W. Wei, Q. Shi, C. Shen, A. van den Hengel, Y. Zhang: Accurate tensor completion via adaptive low-rank
representation, IEEE Transactions on Neural Networks and Learning Systems, 2020, DOI 10.1109/TNNLS.2019.2952427.
docs/model.md has the errata.
"""

import contextlib
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..errors import ConfigError, NumericalError
from ..kernels import kernel_threads
from ..model import diagnostics, fit, separable
from ..model.coherence import Coherence
from ..model.posterior import Scale
from ..model.problem import Problem
from ..model.rank import paper_count
from ..model.sampler import SWEEPS
from ..model.state import Priors, unit_weights
from ..tensor import Observed
from . import Completion, silent
from .parameters import Parameters, noise_level, parameter

# By the number of entries: a small tensor starts at the paper's rank of 20 and can afford long chains. Pictures start
# above the paper's 100, which gains 0.5 dB at 60 % missing, clips of twenty frames higher still, and both are sampled
# for as long as a user waits.
SMALL, LARGE = 100_000, 1_000_000
SMALL_DEFAULTS = {"rank": 20, "burn_in": 200, "samples": 300}
MIDDLE_DEFAULTS = {"rank": 130, "burn_in": 50, "samples": 40}
LARGE_DEFAULTS = {"rank": 200, "burn_in": 30, "samples": 20}
LARGEST = 1e9  # of a hyperparameter
# Noise levels, relative to the data's spread, between which the arithmetic holds.
NOISE_RANGE = (1e-7, 1e7)
# Pilot runs that choose the residual: this share of the observed entries is held out, and at most so many.
HELD_OUT_SHARE, MOST_HELD_OUT = 0.1, 20_000
# A pilot takes as many sweeps of burn-in as the run itself, fewer where that is more than this many multiply-adds, but
# at least 20; large tensors start from fewer components, which settles the question as well.
PILOT_WORK, LEAST_PILOT, PILOT_SAMPLES, PILOT_RANK = 2e10, 20, 10, 40
# Squared error that the mixture must leave, relative to the residual that predicts best, to be preferred for what it
# gains at observed entries: the reckoning is rough, and where the low-rank part is right there is nothing to gain.
LEAST_GAIN = 0.9
# Multiply-adds of a sweep below which a second thread costs more than it gives.
PARALLEL_WORK = 1e8
# Noise of a clean tensor under the mixture, relative to the data's spread: a floor that keeps the chain moving.
CLEAN_NOISE = 0.015


@dataclass(frozen=True)
class Config(Parameters):
    """Parameters of the model; the hyperparameters are the paper's and refer to data of unit variance."""

    rank: int | None = parameter(
        None,
        "Number of CP components at the start; None: 20 up to 100,000 entries, 130 up to a million, 200 above.",
        ge=1,
        le=2000,
    )
    components: int = parameter(
        6, "Mixture components at the start; fewer as burn-in finds them not needed.", ge=1, le=50
    )
    residual: str = parameter(
        "auto",
        "Non-low-rank part; `auto` decides by predicting held-out observed entries. `separable`, for tensors of which "
        "whole fibers are missing, explains everything by how alike the slices of every mode are, and leaves nothing "
        "to the low-rank part.",
        choices=("auto", "mixture", "none", "separable"),
    )
    low_rank: bool = parameter(True, "False leaves out the low-rank part.")
    spatial: bool = parameter(False, "Coherence along the `ordered_modes`.")
    ordered_modes: tuple = parameter((), "Modes with an order in space or time, from 0; of a picture rows and columns.")
    burn_in: int | None = parameter(
        None,
        "Sweeps to forget the start, in every chain; None: 200 up to 100,000 entries, 50 up to a million, 30 above.",
        ge=1,
        le=1_000_000,
    )
    samples: int | None = parameter(
        None,
        "Sweeps that count, in every chain; None: 300 up to 100,000 entries, 40 up to a million, 20 above.",
        ge=1,
        le=1_000_000,
    )
    chains: int = parameter(2, "Independent chains, each from a start of its own.", ge=1, le=1000)
    sampler: str = parameter(
        "collapsed",
        "`literal` is Algorithm 1 of the paper; `collapsed` draws from the same posterior in fewer sweeps.",
        choices=tuple(SWEEPS),
    )
    noise_std: float | str = noise_level("0: the data are clean; `auto`: learnt.")
    tau0: float | None = parameter(
        None, "Noise precision in data units, in place of `noise_std`; None: as that says.", gt=0.0, units="1 / data^2"
    )
    resolution: float | None = parameter(
        None, "Quantisation step of the data: no noise below it is believed in.", gt=0.0, units="data"
    )
    mu0: float = parameter(
        0.0, "Mean of the Normal-Gamma prior of factors and of mixture components (eq6, eq13).", gt=-LARGEST, lt=LARGEST
    )
    beta0: float = parameter(1e-6, "Weight of the mean of that prior, as a number of observations.", gt=0, lt=LARGEST)
    a0: float = parameter(1e-6, "Shape of the Gamma part of that prior.", gt=0, lt=LARGEST)
    b0: float = parameter(1e-6, "Rate of the Gamma part of that prior.", gt=0, lt=LARGEST)
    alpha0: float = parameter(1e-6, "Dirichlet prior of the mixture weights (eq6).", gt=0, lt=LARGEST)
    kappa_rate: float = parameter(
        1e-12, "Rate of the Gamma prior that makes the reweighted Laplace prior proper.", gt=0, lt=LARGEST
    )
    eta0: float = parameter(1e3, "Strength of the coherence (eq50).", gt=0, lt=LARGEST)

    def __post_init__(self):
        super().__post_init__()
        if self.tau0 is not None and self.noise_std != 0:
            raise ConfigError(
                "the noise level is given twice, by tau0 and by noise_std; leave one out", fields=("tau0", "noise_std")
            )


def complete(values, observed, config=Config(), *, rng, monitor=silent, watch=None):
    """Posterior mean and standard deviation of every entry.

    Parameters
    ----------
    values, observed, config, rng, monitor
        See `tdc_cli.methods`.
    watch : callable or None
        Called as ``watch(chain, estimate, kept)`` after every sweep of the chains, not of the pilots: what that sweep's
        state expects of every entry, (n_1, ..., n_K), and whether it counts or belongs to the burn-in.

    Raises
    ------
    ConfigError
        A parameter that does not fit the tensor.
    NumericalError
        The sampler broke down.
    """
    data = Observed.of(values, observed)
    config = with_defaults(data, config)
    with _sampling(data, config):
        fibers = separable.fiber_mode(observed)
        config, pilots = choose_residual(data, config, fibers, rng, monitor)
        scale = Scale.of(data.values)
        if config.residual == "separable":
            found = fit_separable(data, scale, config, fibers, monitor, "iteration")
            return separable_summary(found, scale, config, pilots)
        plan = fit.Schedule(config.burn_in, config.samples, config.chains, config.sampler)
        watched = watch and (lambda chain, value, kept: watch(chain, scale.centre + scale.spread * value, kept))
        result = sample(data, scale, config, rng, plan, monitor, "sweep", watched)
    return summary(result, scale, config, pilots)


def mean(values, observed, config, *, rng):
    """Posterior mean of every entry alone, of a `config` that leaves nothing open; components are not searched for."""
    data = Observed.of(values, observed)
    scale = Scale.of(data.values)
    plan = fit.Schedule(config.burn_in, config.samples, config.chains, config.sampler, search=False)
    with _sampling(data, config):
        result = sample(data, scale, config, rng, plan, silent, "sweep")
    return scale.centre + scale.spread * result.moments.mean


@contextlib.contextmanager
def _sampling(data, config):
    """Threads as the work asks for; what breaks the sampler down is told as an error of ours."""
    with kernel_threads(None if work(data, config) > PARALLEL_WORK else 1):
        try:
            yield
        except np.linalg.LinAlgError as error:
            raise NumericalError(
                f"the sampler broke down ({error}); check the hyperparameters and the noise level"
            ) from error


def with_defaults(data, config):
    """Config with rank, burn-in and samples decided by the size of the tensor where they were left open."""
    size = np.prod(data.shape, dtype=float)
    defaults = SMALL_DEFAULTS if size <= SMALL else MIDDLE_DEFAULTS if size <= LARGE else LARGE_DEFAULTS
    return replace(config, **{name: getattr(config, name) or value for name, value in defaults.items()})


def start_rank(config):
    """Number of CP components at the start."""
    return config.rank if config.low_rank else 0


def work(data, config):
    """Multiply-adds of the Gram matrices in one sweep at the start."""
    return float(len(data.shape) * data.size) * max(start_rank(config), 1) ** 2


def sample(data, scale, config, rng, plan, monitor, label, watch=None):
    """Standardise, build the problem and run the chains."""
    standard = replace(data, values=(data.values - scale.centre) / scale.spread)
    none = config.residual == "none"
    noise_precision, learnt = noise(config, scale)
    priors = Priors(
        config.mu0,
        config.beta0,
        config.a0,
        config.b0,
        config.mu0,
        config.beta0,
        config.a0,
        config.b0,
        config.alpha0,
        kappa_rate=config.kappa_rate,
        coherence=config.eta0,
    )
    fraction = data.size / np.prod(data.shape, dtype=float)
    coherences = tuple(
        Coherence.of(n, fraction, config.eta0) if config.spatial and k in config.ordered_modes else None
        for k, n in enumerate(data.shape)
    )
    ceiling = 12.0 * (scale.spread / config.resolution) ** 2 if config.resolution else np.inf
    problem = Problem.of(
        standard, priors, constant_residual=none, learn_noise=learnt, noise_ceiling=ceiling, coherences=coherences
    )
    everywhere = np.zeros(np.prod(data.shape), dtype=bool)
    everywhere[data.flat] = True
    probes = diagnostics.probes(everywhere, rng)
    return fit.run(
        problem,
        plan,
        start_rank(config),
        config.components,
        noise_precision,
        probes,
        rng,
        monitor=monitor,
        label=label,
        watch=watch,
    )


def noise(config, scale):
    """``tau0`` at the start in standardised units, and whether it is learnt.

    With residual `none` it is always learnt: it is all that is left to describe the misfit. With the mixture it is what
    was given; for clean data a small constant, or the quantisation if that is coarser.
    """
    if config.residual == "none":
        return 10.0, True
    if config.noise_std == "auto":
        return 100.0, True
    given = config.tau0**-0.5 if config.tau0 is not None else config.noise_std
    if given > 0:
        relative = given / scale.spread
        if not NOISE_RANGE[0] <= relative <= NOISE_RANGE[1]:
            raise ConfigError(f"a noise level of {relative:g} times the spread of the data is out of proportion",
                              fields=("noise_std" if config.tau0 is None else "tau0",))  # fmt: skip
        return relative**-2, False
    step = (config.resolution or 0.0) / scale.spread / np.sqrt(12.0)
    return max(CLEAN_NOISE, step) ** -2, False


def fit_separable(data, scale, config, fibers, monitor, label):
    """The Gaussian tensor with separable covariance, standardised.

    Raises
    ------
    ConfigError
        It cannot be fitted to what is missing.
    """
    if fibers is None:
        raise ConfigError(
            "residual 'separable' is for tensors of three modes or more of which whole fibers are missing, for at most "
            f"{separable.MOST_FIBERS} fibers of length {separable.SHORTEST} or more; try residual 'auto'"
        )
    values, observed = np.zeros(data.shape), np.zeros(data.shape, dtype=bool)
    values.reshape(-1)[data.flat] = (data.values - scale.centre) / scale.spread
    observed.reshape(-1)[data.flat] = True
    done = 0

    def step():
        nonlocal done
        done += 1
        monitor(done, separable.MOST_ITERATIONS, label)

    least = ((config.resolution or 0.0) / scale.spread) ** 2 / 12.0
    found = separable.fit(values, observed, fibers, least_noise=least, step=step)
    monitor(done, done, label)
    return found


def choose_residual(data, config, fibers, rng, monitor):
    """Config with `auto` decided: whichever residual predicts held-out observed entries best, in a short run of each.

    Parameters
    ----------
    data : Observed
    config : Config
    fibers : int or None
        Mode along which whole fibers are missing.
    rng : numpy.random.Generator
    monitor : callable

    Returns
    -------
    Config
    pilots : dict
        ``{"held_out_rmse": {...}}``, the root mean squared error of each on the held-out entries, in data units; empty
        without pilots.
    """
    if config.residual != "auto":
        return config, {}
    if not config.low_rank or data.size < 20:
        return replace(config, residual="mixture"), {}
    held = held_out(data, fibers, rng)
    part, hidden = data.flat[~held], data.flat[held]
    values = np.zeros(data.shape)
    values.reshape(-1)[data.flat] = data.values
    mask = np.zeros(data.shape, dtype=bool)
    mask.reshape(-1)[part] = True
    part = Observed.of(values, mask)
    scale = Scale.of(part.values)
    errors = {}
    short = replace(config, rank=min(PILOT_RANK, start_rank(config)))
    burn_in = min(config.burn_in, max(LEAST_PILOT, int(PILOT_WORK / work(data, short))))
    small = work(data, config) <= PARALLEL_WORK
    for residual in ("none", "mixture") if fibers is None or config.spatial else ("none", "mixture", "separable"):
        label = f"pilot {residual}"
        if residual == "separable":
            mean = fit_separable(part, scale, config, fibers, monitor, label).mean
        else:
            # a single chain of a mixture may end in a poor mode, which must not decide; on large tensors time is too
            # short for two
            chains = 2 if small and residual == "mixture" else 1
            plan = fit.Schedule(burn_in, PILOT_SAMPLES, chains, config.sampler)
            mean = sample(part, scale, replace(short, residual=residual), rng, plan, monitor, label).moments.mean
        error = mean.reshape(-1)[hidden] - (data.values[held] - scale.centre) / scale.spread
        errors[residual] = float(scale.spread * np.sqrt(np.mean(error**2)))
    missing = 1.0 - data.size / np.prod(data.shape, dtype=float)
    return replace(config, residual=preferred_residual(errors, missing, config.noise_std)), {"held_out_rmse": errors}


def preferred_residual(errors, missing, noise_std):
    """The residual that predicts best, or the mixture where what it gains at observed entries outweighs what it loses
    in prediction.

    Under noise observed entries are estimated too. There the low-rank part alone errs as much as it does elsewhere, by
    a variance e, while the mixture takes what the low-rank part leaves over for signal of that variance, which leaves
    ``e n / (e + n)`` under noise of variance n.

    Parameters
    ----------
    errors : dict of str to float
        Root mean squared error of each residual on held-out entries.
    missing : float
        Share of entries that are missing.
    noise_std : float or "auto"
        In the same units; 0 or "auto": prediction alone counts.

    Returns
    -------
    str
    """
    best = min(errors, key=errors.get)
    if noise_std == "auto" or noise_std == 0:
        return best
    left = {
        name: max((error / noise_std) ** 2 - 1.0, 0.0) for name, error in errors.items()
    }  # in units of the noise's variance
    of_mixture = left["mixture"] * (missing + (1.0 - missing) / (left["mixture"] + 1.0))
    return "mixture" if of_mixture < LEAST_GAIN * left[best] else best


def held_out(data, fibers, rng):
    """Which observed entries the pilots do not see, (n,) bool: in the shape of what is missing, since that is what must
    be predicted.

    Parameters
    ----------
    data : Observed
    fibers : int or None
        Mode along which whole fibers are missing; None: single entries are held out.
    rng : numpy.random.Generator
    """
    if fibers is None:
        groups, each = np.arange(data.size), 1
    else:
        each = data.shape[fibers]
        index = [c for k, c in enumerate(data.coordinates) if k != fibers]
        groups = np.ravel_multi_index(index, [n for k, n in enumerate(data.shape) if k != fibers])
    names = np.unique(groups)
    count = min(MOST_HELD_OUT // each or 1, max(1, round(HELD_OUT_SHARE * len(names))))
    return np.isin(groups, rng.permutation(names)[:count])


def summary(result, scale, config, pilots):
    """Completion in data units from standardised chains."""
    moments, spread = result.moments, scale.spread
    # Where the data decide on a rank, all draws have it; and a noise level that was given stays.
    still = ("rank",) if noise(config, scale)[1] else ("rank", "noise_std")
    r_hat, ess, notes = diagnostics.summarise(result.traces, still)
    warnings = list(notes)
    name, worst = diagnostics.worst_r_hat(r_hat)
    if worst is not None and worst > diagnostics.LARGEST_R_HAT:
        warnings.append(
            f"the chains have not converged: R-hat of {name} is {worst:.2f} (above {diagnostics.LARGEST_R_HAT}); "
            "more `burn_in` and `samples` help where chains still move, more `chains` where each keeps to a mode of "
            "its own"
        )
    if result.restarted:
        warnings.append(
            f"{result.restarted} of {config.chains} chains ended burn-in in a poorer mode and went on from the best one"
        )
    noise_variance = moments.mean_noise_variance()
    variance = moments.variance()
    ranks = result.traces["rank"].ravel().astype(int)
    counts, times = np.unique(ranks, return_counts=True)
    mixture = mean_mixture(moments.mixtures[-config.samples :], scale) if config.residual == "mixture" else None
    return Completion(
        mean=scale.centre + spread * moments.mean,
        sd=spread * np.sqrt(variance),
        predictive_sd=spread * np.sqrt(variance + noise_variance),
        interval_sd=spread * moments.interval_sd(noise_variance),
        latent_interval_sd=spread * moments.interval_sd(),
        rank={
            "value": int(counts[np.argmax(times)]),
            "posterior": {str(c): float(t) for c, t in zip(counts, times / len(ranks))},
            "paper_count": paper_count(result.states[-1], spread),
        },
        mixture=mixture,
        noise_std=float(spread * np.sqrt(noise_variance)),
        diagnostics={
            "r_hat": r_hat,
            "ess": ess,
            "chains": config.chains,
            "burn_in": config.burn_in,
            "draws": config.samples,
        },
        parameters=asdict(config) | pilots,
        traces={key: in_data_units(key, trace, scale).tolist() for key, trace in result.traces.items()},
        low_rank=spread * moments.low_rank,
        weights=np.sort(spread * unit_weights(result.states[0]))[::-1].tolist(),
        warnings=tuple(warnings),
    )


def separable_summary(found, scale, config, pilots):
    """Completion in data units from a standardised Gaussian."""
    sd, predictive_sd = (
        scale.spread * np.sqrt(found.variance),
        scale.spread * np.sqrt(found.variance + found.noise_variance),
    )
    return Completion(
        mean=scale.centre + scale.spread * found.mean,
        sd=sd,
        predictive_sd=predictive_sd,
        interval_sd=predictive_sd,
        latent_interval_sd=sd,
        noise_std=float(scale.spread * np.sqrt(found.noise_variance)),
        parameters=asdict(config) | pilots,
    )


def in_data_units(name, trace, scale):
    """A trace of standardised chains in data units; rank and log likelihood have none."""
    if name == "noise_std":
        return scale.spread * trace
    return scale.centre + scale.spread * trace if name.startswith("probe_") else trace


def mean_mixture(draws, scale):
    """Mixture in data units, averaged over the draws of one chain, by falling weight.

    The number of components is settled in burn-in, and the data tell those that are left apart, so that a component
    keeps its place from draw to draw. Draws in which one had nothing to hold are left out.
    """
    most = max(len(weights) for _, weights, _, _ in draws)
    weights, means, precisions = (
        np.mean([draw[i] for draw in draws if len(draw[1]) == most], axis=0) for i in (1, 2, 3)
    )
    order = np.argsort(-weights)
    return {
        "weights": weights[order].tolist(),
        "means": (scale.centre + scale.spread * means[order]).tolist(),
        "precisions": (precisions / scale.spread / scale.spread)[order].tolist(),
    }


def warm_up(shape, config, missing):
    """Compile every kernel on a tiny tensor of as many modes, so that compilation is not counted as work."""
    shape = (3,) * len(shape)
    rng = np.random.default_rng(0)
    own = {"noise_std": 0.0, "tau0": None, "resolution": None}  # what is said of other data
    tiny = replace(config, residual="mixture", ordered_modes=(), burn_in=1, samples=1, chains=1, rank=2, **own)
    complete(rng.standard_normal(shape), np.ones(shape, dtype=bool), tiny, rng=rng)
