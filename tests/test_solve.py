"""The door to the methods: units, centre, what is refused and what is warned of; see `tdc_cli.methods.solve`."""

import dataclasses
import types

import numpy as np
import pytest
import threadpoolctl
from conftest import smooth

from tdc_cli import methods
from tdc_cli.errors import ConfigError, InputError, NumericalError
from tdc_cli.methods import Completion
from tdc_cli.methods.parameters import Parameters, noise_level, parameter
from tdc_cli.methods.solve import ONE_THREAD, solve

# Methods without a scale of their own, in which only the unit of the values has a part.
QUICK = {
    "patches": {"passes": 2, "start": "field"},
    "field": {"samples": 2},
    "datc": {"burn_in": 12, "samples": 8, "chains": 1, "rank": 3, "ordered_modes": (0, 1)},
    "halrtc": {},
    "falrtc": {"iterations": 30},
    "tmac": {},
    "stdc": {},
    "spc-qv": {"iterations": 60, "ordered_modes": (0, 1)},
    "fbcp-image": {"iterations": 10, "rank": 6},
}


def picture():
    values = smooth(14, 12, 3) / 255
    return values, np.random.default_rng(1).random(values.shape) > 1 / 3


def run(name, values, observed, **parameters):
    method = methods.get(name)
    return solve(method, method.configure(QUICK[name] | parameters), values, observed, rng=np.random.default_rng(0))


@dataclasses.dataclass(frozen=True)
class Config(Parameters):
    """Of a method that tells what it was given."""

    noise_std: float | str = noise_level("0: none.")
    tau0: float | None = parameter(None, "Precision.", gt=0.0, units="1 / data^2")
    step: float | None = parameter(None, "Step.", gt=0.0, units="data")
    modes: tuple[int, ...] = parameter((), "Modes.", ge=0)


class Told:
    """A method that keeps its arguments, and answers with `answer`, a function of the values, the gaps filled with 0.
    """

    name = "told"

    def __init__(self, answer=lambda filled, config: Completion(mean=filled)):
        self.answer = answer

    def load(self):
        return types.SimpleNamespace(Config=Config, complete=self.complete)

    def complete(self, values, observed, config, *, rng, monitor, **further):
        self.values, self.config, self.further = values, config, further
        self.threads = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        return self.answer(np.where(observed, values, 0.0), config)


def ask(told, values, observed=None, config=None, **further):
    observed = np.ones(values.shape, dtype=bool) if observed is None else observed
    return solve(told, config or Config(), values, observed, rng=np.random.default_rng(0), **further)


@pytest.mark.parametrize("name", QUICK)
def test_a_power_of_two_as_unit_changes_no_bit(name):
    """Whatever the size: also where squares would be infinite or nothing."""
    values, observed = picture()
    plain = run(name, values, observed)
    for exponent in (600, -600):
        scaled = run(name, np.ldexp(values, exponent), observed)
        assert np.array_equal(np.ldexp(scaled.mean, -exponent), plain.mean)
        for sd in ("sd", "predictive_sd", "interval_sd", "latent_interval_sd", "low_rank"):
            if getattr(plain, sd) is not None:
                assert np.array_equal(np.ldexp(getattr(scaled, sd), -exponent), getattr(plain, sd))
        assert scaled.noise_std is None or np.ldexp(scaled.noise_std, -exponent) == plain.noise_std


@pytest.mark.parametrize("name", QUICK)
def test_small_differences_of_large_values_are_completed(name):
    values, observed = picture()
    done = run(name, 1e9 + values, observed)
    assert np.sqrt(np.mean((done.mean - 1e9 - values)[~observed] ** 2)) < np.std(values)
    assert not any("estimates lie" in text for text in done.warnings)
    constant = run(name, np.full(values.shape, 7.25), observed)
    assert np.all(constant.mean == 7.25)


def test_values_of_ordinary_size_reach_the_method_as_they_are():
    values, observed = picture()
    for given in (values, 900 * values, np.zeros(values.shape)):
        told = Told()
        done = ask(told, given, observed)
        assert np.array_equal(told.values, np.where(observed, given, np.nan), equal_nan=True)
        assert np.array_equal(done.mean, np.where(observed, given, 0.0))


def test_parameters_in_units_of_the_data_are_scaled_along_and_told_as_given():
    values, config = (
        2.0**40 * np.arange(1.0, 7.0).reshape(2, 3),
        Config(noise_std=2.0**38, tau0=2.0**-70, step=2.0**30, modes=(0,)),
    )
    told = Told(
        lambda filled, config: Completion(
            mean=filled, noise_std=config.noise_std, parameters=dataclasses.asdict(config)
        )
    )
    done = ask(told, values, config=config)
    assert 0.5 <= np.max(told.values) < 1
    unit = np.max(values) / np.max(told.values)
    assert (told.config.noise_std, told.config.tau0, told.config.step) == (
        2.0**38 / unit,
        2.0**-70 * unit**2,
        2.0**30 / unit,
    )
    assert done.noise_std == 2.0**38
    assert done.parameters == {"noise_std": 2.0**38, "tau0": 2.0**-70, "step": 2.0**30, "modes": [0]}
    assert ask(Told(), values, config=Config(noise_std="auto")).parameters["noise_std"] == "auto"


def test_all_that_is_told_comes_back_in_units_of_the_data():
    def answer(filled, config):
        return Completion(mean=filled, sd=filled, noise_std=0.25, low_rank=filled, weights=[0.5],
                          traces={"rank": [[3]], "noise_std": [[0.5]], "probe_1": [[0.25]]},
                          mixture={"weights": [1.0], "means": [0.25], "precisions": [4.0]},
                          parameters={"held_out_rmse": {"none": 0.5}, "rank": 3})  # fmt: skip

    values, told = 1e9 + 2.0**-30 * 1e9 * np.arange(6.0).reshape(2, 3), Told(answer)
    watched = []
    done = ask(told, values, watch=lambda chain, estimate, kept: watched.append(estimate))
    told.further["watch"](0, told.values, True)
    unit = (values[1, 2] - values[0, 0]) / (told.values[1, 2] - told.values[0, 0])
    centre = values[0, 0] - unit * told.values[0, 0]
    assert (
        unit == 2.0 ** round(np.log2(unit)) and np.array_equal(done.mean, values) and np.array_equal(watched[0], values)
    )
    assert np.array_equal(done.sd, unit * told.values) and np.array_equal(done.low_rank, done.sd)
    assert done.noise_std == 0.25 * unit and done.weights == [0.5 * unit]
    assert done.traces == {"rank": [[3]], "noise_std": [[0.5 * unit]], "probe_1": [[centre + 0.25 * unit]]}
    assert done.mixture == {"weights": [1.0], "means": [centre + 0.25 * unit], "precisions": [4.0 / unit**2]}
    assert done.parameters["held_out_rmse"] == {"none": 0.5 * unit} and done.parameters["rank"] == 3


@pytest.mark.parametrize(
    "field, value, size", [("noise_std", 1e9, 1.0), ("noise_std", 1e-300, 1e100), ("tau0", 1e300, 1e100)]
)
def test_a_parameter_out_of_proportion_is_refused_by_name(field, value, size):
    with pytest.raises(ConfigError, match="is out of proportion to the data, whose largest size is 2") as refused:
        ask(Told(), size * np.array([[1.0, 2.0]]), config=Config(**{field: value}))
    assert refused.value.fields == (field,)


def test_what_cannot_be_used_is_refused():
    values = np.ones((2, 3))
    with pytest.raises(InputError, match="no entry is observed"):
        ask(Told(), values, np.zeros((2, 3), dtype=bool))
    with pytest.raises(InputError, match="1 observed entries are NaN or infinite"):
        ask(Told(), np.array([[1.0, np.inf]]))
    with pytest.raises(InputError, match=r"values have shape \(2, 3\) but observed has shape \(3, 2\)"):
        ask(Told(), values, np.ones((3, 2), dtype=bool))
    with pytest.raises(NumericalError, match="method told gave 2 values that are not finite; try another method"):
        ask(Told(lambda filled, config: Completion(mean=np.array([[np.nan, np.inf, 1.0]]))), values[:1])


def test_estimates_far_from_all_that_is_observed_are_warned_of():
    values, observed = np.array([[5.0, 6.0, 5.5, 5.5]]), np.array([[True, True, True, False]])
    for far, words in (
        (15.0, ()),
        (17.0, ("by up to 11 times that range",)),
        (-7.0, ("by up to 12 times that range",)),
    ):
        done = ask(
            Told(lambda filled, config, far=far: Completion(mean=np.where(observed, filled, far))), values, observed
        )
        assert len(done.warnings) == len(words) and all(word in text for word, text in zip(words, done.warnings))


def test_linear_algebra_of_small_tensors_has_one_thread():
    with threadpoolctl.threadpool_limits(2, "blas"):
        small, large = Told(), Told()
        ask(small, np.ones((2, 3)))
        ask(large, np.ones((ONE_THREAD // 1000 + 1, 1000)))
        after = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    assert set(small.threads) == {1} and large.threads == after
