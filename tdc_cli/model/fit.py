"""From observed entries to posterior moments: start, burn-in with its removals, draws, several chains."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from .mixture import reduce_components
from .posterior import Moments
from .rank import (
    REFIT_SWEEPS,
    SAFETY,
    add_missed,
    energies,
    expected_law,
    noise_threshold,
    remove_unsupported,
    supported,
)
from .sampler import SWEEPS, expect_residuals, observation_law
from .state import State

# Shares of the burn-in after which components are removed and missed ones looked for.
REVISIONS = (0.5, 0.65, 0.8, 1.0)
# Multiply-adds of refitting once for every component up to which a revision tries them all.
REVISION_WORK = 3e10
# A component with less than this share of the energy that noise can reach has been shrunk to nothing.
NOTHING = 0.01
MOST_SPARES = 5


@dataclass(frozen=True)
class Schedule:
    """How long to sample.

    Attributes
    ----------
    burn_in, samples, chains : int
    sampler : str
        Key of `sampler.SWEEPS`.
    search : bool
        Whether the burn-in tries components one by one where it can afford it; if not, the prior alone settles the
        rank.
    """

    burn_in: int
    samples: int
    chains: int
    sampler: str = "collapsed"
    search: bool = True


@dataclass(frozen=True)
class Fit:
    """Result of all chains, standardised.

    Attributes
    ----------
    moments : Moments
    traces : dict of str to (chains, draws) ndarray
        ``rank``, ``noise_std``, ``log_likelihood``, ``probe_1`` and so on.
    states : list of State
        Last draw of every chain.
    restarted : int
        Chains that were started again from a better one after burn-in.
    """

    moments: Moments
    traces: dict
    states: list
    restarted: int


def start(problem, rank, components, noise_precision, rng):
    """First state: random factors with the data's spread, mixture precisions spread over the decades.

    The printed start (all ones) is symmetric in the components and leaves no way to tell them apart.
    """
    data = problem.data
    factors = tuple(rng.standard_normal((n, rank)) for n in data.shape)
    weights = np.full(rank, 1.0 / np.sqrt(max(rank, 1)))
    order = len(data.shape)
    if problem.constant_residual:
        precisions = np.array([np.inf])
    else:
        precisions = np.geomspace(1.0, 1e4, components)
    count = len(precisions)
    return State(
        weights,
        np.ones(rank),
        np.ones(rank),
        factors,
        np.zeros(order),
        np.ones(order),
        rng.integers(0, count, data.size),
        np.zeros(data.size),
        np.zeros(count),
        precisions,
        np.full(count, 1.0 / count),
        noise_precision,
    )


def searchable(problem, rank):
    """Whether refitting once for each of `rank` components is affordable."""
    return float(REFIT_SWEEPS * len(problem.data.shape) * problem.data.size) * rank**3 <= REVISION_WORK


def revise(problem, state, limit, rng, search=True):
    """Remove what the data do not support and look for what was missed; only for burn-in.

    On large tensors, where trying every component would take longer than the sampling, and without `search`, only those
    are removed that the prior has shrunk to nothing: on photographs the weak ones, each below the noise, matter
    together.
    """
    if state.rank and search and searchable(problem, state.rank):
        state, _ = remove_unsupported(problem, state)
        state = add_missed(problem, state, min(MOST_SPARES, limit - state.rank))
    elif state.rank:
        precisions, _ = observation_law(problem, state)
        state = state.keep_components(
            energies(problem, state, precisions) > NOTHING * noise_threshold(problem.data.shape)
        )
    if problem.constant_residual:
        return state
    return expect_residuals(problem, reduce_components(problem, state, rng))


def burn_in(problem, state, length, sweep, rng, *, search=True, step=lambda state: None):
    """State after the burn-in, with the rank and the number of mixture components settled; ``step(state)`` is called
    after every sweep.
    """
    limit = state.rank
    revisions = {max(1, round(share * length)) for share in REVISIONS}
    for done in range(1, length + 1):
        state = sweep(problem, state, rng)
        if done in revisions:
            state = revise(problem, state, limit, rng, search)
        step(state)
    return state


def run(problem, schedule, rank, components, noise_precision, probes, rng, *, monitor, label, watch=None):
    """Run all chains and accumulate their draws.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    rank, components : int
        At the start.
    noise_precision : float
        ``tau0`` at the start.
    probes : (P,) int ndarray
        Flat indices of entries whose traces are kept.
    rng : numpy.random.Generator
    monitor : callable
        ``monitor(done, total, label)``.
    label : str
    watch : callable or None
        Called as ``watch(chain, value, kept)`` after every sweep, with what that state expects of every entry, and
        whether the draw counts, which those of the burn-in do not. It costs a reconstruction a sweep.

    Returns
    -------
    Fit
    """
    sweep = SWEEPS[schedule.sampler]
    done = 0
    total = schedule.chains * (schedule.burn_in + schedule.samples)

    def step(chain, state, kept=False):
        nonlocal done
        done += 1
        monitor(done, total, label)
        if watch is not None:
            watch(chain, Moments(problem).add(state), kept)

    generators = rng.spawn(schedule.chains)
    states = [burn_in(problem, start(problem, rank, components, noise_precision, own), schedule.burn_in, sweep, own,
                      search=schedule.search, step=partial(step, chain))
              for chain, own in enumerate(generators)]
    # on a large tensor every chain ends in a mode of its own, and averaging over them is what several chains are for
    states, restarted = leave_poor_modes(problem, states) if searchable(problem, rank) else (states, 0)
    moments = Moments(problem)
    traces = {name: np.zeros((schedule.chains, schedule.samples))
              for name in ["rank", "noise_std", "log_likelihood", *(f"probe_{i + 1}" for i in range(len(probes)))]}
    for chain, own in enumerate(generators):
        for draw in range(schedule.samples):
            states[chain] = state = sweep(problem, states[chain], own)
            value = moments.add(state)
            precisions, _ = observation_law(problem, state)
            row = [supported(problem, state, precisions).sum() if state.rank else 0, state.noise_precision**-0.5,
                   -0.5 * expected_law(problem, state)[0], *value.reshape(-1)[probes]]
            for trace, number in zip(traces.values(), row):
                trace[chain, draw] = number
            step(chain, state, kept=True)
    return Fit(moments, traces, states, restarted)


def leave_poor_modes(problem, states):
    """Start every chain whose burn-in ended in a plainly poorer mode again from the best one.

    Burn-in is optimisation: a chain that has lost a component would need longer than anybody waits to find it. Poorer
    means that the deviance, less what the difference in rank explains, is worse by more than noise can account for.

    Returns
    -------
    states : list of State
    restarted : int
        Number of chains started again; the diagnostics of such chains compare less than those of independent ones.
    """
    threshold = SAFETY * noise_threshold(problem.data.shape)
    scores = [expected_law(problem, state)[0] + threshold * state.rank for state in states]
    best = int(np.argmin(scores))
    spread = np.sqrt(2.0 * problem.data.size)  # of a deviance from one draw to the next
    poor = [score - scores[best] > 2.0 * threshold + 4.0 * spread for score in scores]
    return [states[best] if bad else state for bad, state in zip(poor, states)], sum(poor)
