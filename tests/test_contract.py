"""What every registered method promises, whatever it is: see `tdc_cli.methods`."""

import functools
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from conftest import smooth

from tdc_cli import methods
from tdc_cli.methods.solve import solve
from tdc_cli.tensor import cp_to_tensor

# Enough sweeps to exercise everything; what a short chain says of the posterior is not looked at here.
SHORT = {"burn_in": 15, "samples": 10, "chains": 1, "residual": "mixture"}
# Methods that model a low-rank tensor; the others may make anything of one.
LOW_RANK = ("datc", "datc-sc", "datc-ne", "falrtc", "halrtc", "rptc-scad", "tmac", "tsvd", "fbcp", "fbcp-image", "brtf")


@pytest.fixture(params=list(methods.REGISTRY))
def method(request):
    method = methods.get(request.param)
    if method.needs is not None:
        pytest.importorskip(method.needs, reason="the extra bench is not installed")
    return method


def configure(method, **wanted):
    """Config of `method` with those of the `wanted` parameters that it has."""
    known = {f.name for f in fields(method.load().Config)}
    return method.configure({key: value for key, value in wanted.items() if key in known})


def picture(channels=3):
    """Values in 0..1 of 14x12 pixels, and which are observed: two thirds."""
    values = smooth(14, 12, channels) / 255
    observed = np.random.default_rng(1).random(values.shape) > 1 / 3
    return values, observed


def run(method, values, observed, seed=0, **wanted):
    config = configure(method, **SHORT | {"ordered_modes": (0, 1)} | wanted)
    return solve(method, config, values, observed, rng=np.random.default_rng(seed))


@functools.cache
def completed(name):
    """What a method makes of `picture`."""
    return run(methods.get(name), *picture())


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("mean", "sd", "predictive_sd", "interval_sd", "latent_interval_sd")
        if getattr(one, name) is not None
    )


def test_the_config_is_a_frozen_dataclass_with_defaults(method):
    config = method.load().Config
    assert is_dataclass(config) and config.__dataclass_params__.frozen
    method.configure({})
    assert set(method.preset) <= set(method.defaults())


@pytest.mark.parametrize("channels", [3, None])
def test_shape_type_and_range(method, channels):
    values, observed = picture(channels)
    if not method.orders[0] <= values.ndim <= method.orders[1]:
        pytest.skip(f"{method.name} takes other orders; the command line says so")
    before = values.copy(), observed.copy()
    done = run(method, values, observed)
    assert done.mean.shape == values.shape and done.mean.dtype == np.float64
    assert np.isfinite(done.mean).all()
    assert np.array_equal(values, before[0]) and np.array_equal(observed, before[1])  # the input is not touched
    sds = [sd for sd in (done.sd, done.predictive_sd, done.interval_sd, done.latent_interval_sd) if sd is not None]
    assert bool(sds) == method.uncertainty
    for sd in sds:
        assert sd.shape == values.shape and np.isfinite(sd).all() and (sd >= 0).all()


def test_read_only_input_is_enough(method):
    values, observed = picture()
    values.setflags(write=False)
    observed.setflags(write=False)
    run(method, values, observed)


def test_the_same_seed_gives_the_same_bits(method):
    values, observed = picture()
    assert same(run(method, values, observed, seed=3), run(method, values, observed, seed=3))


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e30, 0.5])
def test_what_is_under_the_mask_changes_nothing(method, garbage):
    values, observed = picture()
    assert same(completed(method.name), run(method, np.where(observed, values, garbage), observed))


def test_a_fully_observed_picture_returns_itself_once_restored(method):
    values, _ = picture()
    observed = np.ones(values.shape, dtype=bool)
    done = run(method, values, observed)
    assert np.isfinite(done.mean).all()
    assert np.array_equal(np.where(observed, values, done.mean), values)


def test_progress_is_told_and_ends_at_its_end(method):
    values, observed = picture()
    told = []
    config = configure(method, **SHORT, ordered_modes=(0, 1))

    def monitor(done, total, label):
        told.append((done, total, label))

    solve(method, config, values, observed, rng=np.random.default_rng(0), monitor=monitor)
    assert told and all(0 <= done <= total and label for done, total, label in told)
    assert told[-1][0] == told[-1][1]


def test_the_report_parts_are_ready_for_json(method):
    from tdc_cli.run.report import plain as _plain

    done = completed(method.name)
    assert isinstance(_plain(done.parameters, "parameters", []), dict)
    if done.rank is not None:
        assert set(done.rank) == {"value", "posterior", "paper_count"}
    if done.mixture is not None:
        assert set(done.mixture) == {"weights", "means", "precisions"}
    if done.diagnostics is not None:
        assert {"r_hat", "ess", "chains", "burn_in", "draws"} <= set(done.diagnostics)


@pytest.mark.parametrize("name", LOW_RANK)
def test_an_easy_low_rank_tensor_is_recovered(name):
    rng = np.random.default_rng(5)
    # Smooth factors, so that methods that want neighbours alike have no excuse either.
    grids = [np.linspace(0, 1, n) for n in (24, 22, 4)]
    factors = [np.stack([np.cos(np.pi * g), np.sin(np.pi * g) + 0.5], axis=1) for g in grids]
    truth = cp_to_tensor(np.array([1.0, 0.5]), factors)
    observed = rng.random(truth.shape) > 0.4
    method = methods.get(name)
    done = run(method, np.where(observed, truth, np.nan), observed, burn_in=100, samples=50)
    error = np.linalg.norm((done.mean - truth)[~observed]) / np.linalg.norm(truth[~observed])
    assert error < 0.05
