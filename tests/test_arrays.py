"""The door for Python: what it takes and refuses, and that it gives the bits of the command line."""

import doctest
import subprocess
import sys

import numpy as np
import pytest
from conftest import pixels, smooth

import tdc_cli
from tdc_cli import arrays
from tdc_cli.errors import ConfigError, InputError, NumericalError, TdcError

SHORT = {"burn_in": 4, "samples": 3, "chains": 1, "rank": 4, "residual": "mixture"}
SHORT_OPTIONS = ["--burn-in", "4", "--samples", "3", "--chains", "1", "--rank", "4", "--residual", "mixture"]


@pytest.fixture
def holed():
    """(9, 8, 3) floats with a quarter of them NaN."""
    values = smooth(9, 8) / 50
    return np.where(np.random.default_rng(2).random(values.shape) < 0.25, np.nan, values)


def options(parameters):
    return [word for key, value in parameters.items() for word in ("--param", f"{key}={value}")]


@pytest.mark.parametrize("method, parameters, more", [
    ("datc", SHORT | {"ordered_modes": (0, 1), "residual": "auto"}, [*SHORT_OPTIONS[:-1], "auto"]),
    ("datc-sc", SHORT | {"ordered_modes": (0, 1), "noise_std": 0.1}, [*SHORT_OPTIONS, "--noise-std", "0.1"]),
    ("field", {}, []),
    ("tmac", {}, []),
])  # fmt: skip
def test_a_float_array_gives_the_bits_of_the_command(tdc, holed, method, parameters, more):
    np.save("a.npy", holed)
    result = tdc("complete-image", "a.npy", "-o", "b.npy", "--method", method, "--seed", "5", "-q", *more)
    assert result.exit_code == 0, result.stderr
    done = tdc_cli.complete(holed, method=method, rng=5, **parameters)
    assert np.array_equal(done.mean, np.load("b.npy"))


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 3, 4)])
def test_a_tensor_gives_the_bits_of_the_command(tdc, shape):
    rng = np.random.default_rng(3)
    tensor = np.where(rng.random(shape) < 0.3, np.nan, rng.standard_normal(shape))
    np.save("t.npy", tensor)
    result = tdc(
        "complete-tensor", "t.npy", "-o", "u.npy", "--seed", "4", "--uncertainty", "sd.npy", "-q", *SHORT_OPTIONS
    )
    assert result.exit_code == 0, result.stderr
    done = tdc_cli.complete(tensor, rng=4, **SHORT)
    assert np.array_equal(done.mean, np.load("u.npy")) and np.array_equal(done.interval_sd, np.load("sd.npy"))


@pytest.mark.parametrize("method, parameters, more", [
    ("datc", SHORT | {"ordered_modes": (0, 1), "resolution": 1 / 255}, SHORT_OPTIONS),
    ("patches", {"passes": 1, "calibrate": False}, options({"passes": 1, "calibrate": False})),
])  # fmt: skip
def test_an_eight_bit_picture_gives_the_bits_of_the_command(tdc, method, parameters, more):
    result = tdc("complete-image", "a.png", "-o", "b.png", "--mask", "m.png", "--method", method, "-q", *more)
    assert result.exit_code == 0, result.stderr
    picture, mask = pixels("a.png"), pixels("m.png")
    observed = np.repeat((mask < 128)[..., None], 3, axis=2)
    done = tdc_cli.complete(picture / 255, observed, method=method, **parameters)
    assert np.array_equal(np.clip(np.rint(done.mean * 255), 0, 255), pixels("b.png"))


def test_standard_deviations_are_those_of_the_command(tdc, holed):
    np.save("a.npy", holed)
    assert (
        tdc("complete-image", "a.npy", "-o", "b.npy", "--method", "field", "--uncertainty", "sd.npy", "-q").exit_code
        == 0
    )
    done = tdc_cli.complete(holed, method="field")
    assert np.array_equal(done.sd, np.load("sd.npy")) and np.array_equal(done.uncertainty, np.load("sd.npy"))


@pytest.mark.parametrize("noise", ["0", "0.1"])
def test_uncertainty_of_a_tensor_is_that_of_the_command(tdc, noise):
    rng = np.random.default_rng(0)
    tensor = np.einsum("ir,jr,kr->ijk", *(rng.normal(size=(n, 2)) for n in (9, 8, 7))) + 0.1 * rng.normal(
        size=(9, 8, 7)
    )
    tensor[rng.random(tensor.shape) < 0.3] = np.nan
    np.save("a.npy", tensor)
    words = ("--residual", "none", "--noise-std", noise, "--uncertainty", "sd.npy", "-q")
    assert tdc("complete-tensor", "a.npy", "-o", "b.npy", *words).exit_code == 0
    done = tdc_cli.complete(tensor, residual="none", noise_std=float(noise))
    assert np.array_equal(done.uncertainty, np.load("sd.npy")) and not np.array_equal(done.uncertainty, done.sd)
    assert (done.uncertainty[~np.isnan(tensor)] == 0).all() == (noise == "0")


def test_a_method_without_uncertainty_has_none(holed):
    assert tdc_cli.complete(holed, method="nearest").uncertainty is None


def test_observed_entries_come_back_and_are_certain(holed):
    before = holed.copy()
    done = tdc_cli.complete(holed, **SHORT)
    known = ~np.isnan(holed)
    assert np.array_equal(done.mean[known], holed[known])
    for name in ("sd", "predictive_sd", "interval_sd"):
        sd = getattr(done, name)
        assert (sd[known] == 0).all() and (sd[~known] > 0).all()
    assert np.array_equal(holed, before, equal_nan=True) and not np.shares_memory(done.mean, holed)


def test_noisy_entries_are_estimated_too(holed):
    done = tdc_cli.complete(holed, noise_std=0.2, **SHORT)
    known = ~np.isnan(holed)
    assert not np.array_equal(done.mean[known], holed[known]) and (done.sd[known] > 0).all()


def test_nan_and_observed_say_the_same(holed):
    values = np.where(np.isnan(holed), 1e6, holed)
    one, other = tdc_cli.complete(holed, **SHORT), tdc_cli.complete(values, ~np.isnan(holed), **SHORT)
    assert np.array_equal(one.mean, other.mean)
    third = tdc_cli.complete(holed, np.ones(holed.shape, dtype=bool), **SHORT)
    assert np.array_equal(one.mean, third.mean)
    assert f"{np.isnan(holed).sum()} further entries are NaN and count as missing" in third.warnings


def test_seeds_and_generators(holed):
    one, same, other = (tdc_cli.complete(holed, rng=seed, **SHORT).mean for seed in (0, np.int64(0), 1))
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    drawn = [tdc_cli.complete(holed, rng=np.random.default_rng(7), **SHORT).mean for _ in range(2)]
    assert np.array_equal(*drawn)
    generator = np.random.default_rng(7)
    tdc_cli.complete(holed, rng=generator, **SHORT)
    assert not np.array_equal(
        tdc_cli.complete(holed, rng=generator, **SHORT).mean, drawn[0]
    )  # it is drawn from, not copied


def test_a_whole_array_returns_itself():
    values = smooth(6, 5)
    done = tdc_cli.complete(values, np.ones(values.shape, dtype=bool), method="patches")
    assert np.array_equal(done.mean, values) and done.mean.dtype == float and (done.interval_sd == 0).all()
    assert done.warnings == ("observed is True everywhere: nothing is missing",)


def test_progress_is_told(holed):
    told = []
    tdc_cli.complete(holed, method="biharmonic", monitor=lambda done, total, label: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1]


def test_masked_arrays_are_taken_and_given(holed):
    plain = tdc_cli.complete(holed, method="field")
    hidden = np.isnan(holed)
    masked = np.ma.MaskedArray(np.where(hidden, np.inf, holed), hidden, fill_value=-1)  # what is hidden may be anything
    done = tdc_cli.complete(masked, method="field")
    for name in ("mean", "sd", "uncertainty"):
        made = getattr(done, name)
        assert (
            isinstance(made, np.ma.MaskedArray)
            and not made.mask.any()
            and np.array_equal(made.data, getattr(plain, name))
        )
    assert np.array_equal(masked.mask, hidden)
    shown = np.zeros(hidden.shape, bool)
    shown[:, :4] = True
    both = tdc_cli.complete(np.ma.MaskedArray(np.nan_to_num(holed), hidden), shown, method="linear")
    again = tdc_cli.complete(np.nan_to_num(holed), shown & ~hidden, method="linear")
    assert np.array_equal(both.mean, again.mean) and both.warnings == (
        f"{(hidden & shown).sum()} further entries are NaN or masked and count as missing",
    )


class Named:
    """What is used of a DataArray of xarray."""

    def __init__(self, values, dims, coords):
        self.values, self.dims, self.coords = values, dims, coords

    def copy(self, data):
        return Named(data, self.dims, self.coords)

    def transpose(self, *dims):
        return Named(self.values.transpose([self.dims.index(name) for name in dims]), dims, self.coords)


def test_arrays_with_names_for_their_modes_are_taken_and_given(holed):
    dims = ("latitude", "longitude", "time")
    given = Named(holed, dims, {"time": [1, 2, 3]})
    done = tdc_cli.complete(given, method="field")
    assert (done.mean.dims, done.mean.coords) == (dims, given.coords)
    assert np.array_equal(done.mean.values, tdc_cli.complete(holed, method="field").mean)
    turned = Named(~np.isnan(holed).transpose(2, 0, 1), ("time", "latitude", "longitude"), {})
    again = tdc_cli.complete(Named(np.nan_to_num(holed), dims, {}), turned, method="field")
    assert np.array_equal(again.mean.values, done.mean.values) and np.array_equal(
        again.uncertainty.values, done.uncertainty.values
    )
    with pytest.raises(
        InputError, match="observed has the dimensions time, latitude, x but array latitude, longitude, time; they must"
    ):
        tdc_cli.complete(given, Named(turned.values, ("time", "latitude", "x"), {}), method="field")


@pytest.mark.parametrize(
    "change, error, line",
    [
        ({"array": np.ones((3, 3), dtype=complex)}, InputError, "array holds complex128; it must hold real numbers"),
        ({"array": [["a", "b"]]}, InputError, "array holds <U1; it must hold real numbers"),
        ({"array": np.ma.masked_invalid(np.full((3, 3), np.nan))}, InputError, "no entry is observed"),
        (
            {"array": np.ma.MaskedArray(np.ones((3, 3)))},
            InputError,
            "nothing says what is missing: no entry of array is NaN or masked",
        ),
        ({"array": np.ones((3, 0))}, InputError, r"array of shape \(3, 0\) has no entries"),
        ({"array": np.ones(3)}, ConfigError, "method datc takes tensors of order 2 to 6, not 1"),
        ({"array": np.ones((3, 3))}, InputError, "nothing says what is missing: no entry of array is NaN"),
        ({"array": np.full((3, 3), np.nan)}, InputError, "no entry is observed"),
        ({"observed": np.zeros((9, 8, 3), dtype=bool)}, InputError, "no entry is observed: .*True = observed"),
        (
            {"observed": np.zeros((9, 8, 3), dtype=np.uint8)},
            InputError,
            "observed holds uint8; it must be bool, True = observed",
        ),
        (
            {"observed": np.ones((9, 8), dtype=bool)},
            InputError,
            r"observed has shape \(9, 8\) but array \(9, 8, 3\).*True = observed",
        ),
        ({"array": np.array([[np.inf, 1.0], [np.nan, 2.0]])}, InputError, "1 observed entries are infinite"),
        ({"method": "dact"}, ConfigError, "no method 'dact'"),
        ({"ranks": 3}, ConfigError, "method datc has no parameter 'ranks'"),
        ({"rng": -1}, ConfigError, "rng is -1; give a seed"),
        ({"rng": None}, ConfigError, "rng is None; give a seed"),
        ({"rng": True}, ConfigError, "rng is True; give a seed"),
        ({"array": [[1.0], [2.0, np.nan]]}, InputError, "array is no array: its rows differ in length"),
        (
            {"array": [[1e300, np.nan], [2.0, 1.0]]},
            InputError,
            r"array: values up to 1e\+300 are too large to compute with",
        ),
        (
            {"observed": np.ma.masked_less(np.ones((9, 8, 3), dtype=bool), 0)},
            InputError,
            "observed is a masked array; give a plain one",
        ),
        (
            {"method": "halrtc", "iterations": None},
            ConfigError,
            "parameter iterations=None is not understood; expected int",
        ),
        (
            {"method": "halrtc", "iterations": 1.5},
            ConfigError,
            "parameter iterations=1.5 is not understood; expected int",
        ),
        (
            {"method": "halrtc", "iterations": True},
            ConfigError,
            "parameter iterations=True is not understood; expected int",
        ),
        ({"ordered_modes": 0}, ConfigError, "parameter ordered_modes=0 is not understood; expected tuple"),
        ({"ordered_modes": (0.5,)}, ConfigError, r"parameter ordered_modes=\(0.5,\) is not understood; expected tuple"),
        ({"noise_std": [1]}, ConfigError, r"parameter noise_std=\[1\] is not understood; expected float \| str"),
        ({"residual": 3}, ConfigError, "parameter residual=3 is not understood; expected str"),
    ],
)
def test_what_cannot_be_used_is_refused(holed, change, error, line):
    with pytest.raises(error, match=line) as caught:
        tdc_cli.complete(**{"array": holed} | change)
    assert isinstance(caught.value, TdcError) and "\n" not in str(caught.value)


@pytest.mark.parametrize("hidden", [np.inf, np.finfo(float).max])
def test_what_a_missing_entry_holds_does_not_matter(holed, hidden):
    done = tdc_cli.complete(np.where(np.isnan(holed), hidden, holed), ~np.isnan(holed), method="nearest")
    assert np.array_equal(done.mean, tdc_cli.complete(holed, method="nearest").mean)


def test_what_is_known_exactly_has_no_uncertainty(holed):
    spread = tdc_cli.complete(holed, method="fbcp", iterations=5).uncertainty
    assert np.array_equal(spread > 0, np.isnan(holed))


def test_numbers_of_numpy_and_lists_are_parameters(holed):
    done = tdc_cli.complete(holed, method="stdc", iterations=np.int64(5), ordered_modes=[0, 1])
    again = tdc_cli.complete(holed, method="stdc", iterations=5, ordered_modes=(0, 1))
    assert np.array_equal(done.mean, again.mean)


def test_a_memory_mapped_array_is_read_and_left_alone(holed, tmp_path):
    np.save(tmp_path / "a.npy", holed)
    before = (tmp_path / "a.npy").read_bytes()
    done = tdc_cli.complete(np.load(tmp_path / "a.npy", mmap_mode="r+"), method="halrtc")
    assert (
        np.array_equal(done.mean, tdc_cli.complete(holed, method="halrtc").mean)
        and (tmp_path / "a.npy").read_bytes() == before
    )


def test_a_method_that_breaks_down_is_told(holed, monkeypatch):
    from tdc_cli.methods import Completion, biharmonic

    monkeypatch.setattr(biharmonic, "complete", lambda values, *_, **__: Completion(mean=np.full(values.shape, np.inf)))
    with pytest.raises(NumericalError, match="array: method biharmonic gave 216 values that are not finite"):
        tdc_cli.complete(holed, method="biharmonic")


def test_the_import_loads_nothing():
    code = (
        "import sys, tdc_cli; assert 'complete' in dir(tdc_cli); "
        "print([m for m in ('numpy', 'PIL', 'click') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'fill'"):
        _ = tdc_cli.fill


def test_the_example_of_the_docstring():
    assert doctest.testmod(arrays).attempted > 5
    assert doctest.testmod(arrays).failed == 0
