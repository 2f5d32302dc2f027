"""Troubles with numbers that users of such programs have met, through the command line."""

import json
import re

import numpy as np
import pytest
from conftest import report_of

METHODS = ["biharmonic", "field", "patches", "datc"]
# Parameters with which a method takes a second or two here.
QUICK = {
    "datc": ["--burn-in", "60", "--samples", "40", "--chains", "1", "--residual", "none", "--rank", "4"],
    "patches": ["--param", "passes=4", "--param", "calibrate=false"],
}

UNITS = ((1e6, 0.0), (1e-6, 0.0), (1.0, 1e5))  # factors and offsets


def rank_one(height=30, width=30):
    """(height, width, 3) picture that is the product of three smooth vectors, in 0..1."""
    rows, columns = np.linspace(0, 1, height), np.linspace(0, 1, width)
    return np.einsum("i,j,k->ijk", 0.5 + 0.5 * np.sin(3 * rows), 0.6 + 0.4 * np.cos(4 * columns), [1.0, 0.8, 0.6])


@pytest.fixture
def completed(tdc):
    """``completed(values, method, ratio)``: the array that the program makes of `values`, its report, and its summary.
    """

    def run(values, method, ratio=0.9):
        np.save("x.npy", values)
        words = [
            "complete-image",
            "x.npy",
            "-o",
            "y.npy",
            "--method",
            method,
            "--overwrite",
            "--missing-ratio",
            str(ratio),
            "--missing-pattern",
            "pixels",
            "--report",
            "r.json",
            *QUICK.get(method, []),
        ]
        result = tdc(*words)
        assert result.exit_code == 0 and "Warning" not in result.stderr, result.stderr
        with open("r.json", encoding="utf-8") as file:
            return np.load("y.npy"), json.load(file), result.stdout

    return run


@pytest.mark.parametrize("method", ["biharmonic", "field", "patches"])
def test_case_26_results_follow_scale_and_offset(completed, method):
    truth = rank_one()
    plain, _, _ = completed(truth, method)
    spread = np.std(truth)
    assert np.isfinite(plain).all() and np.sqrt(np.mean((plain - truth) ** 2)) < 0.5 * spread
    for scale, offset in UNITS:
        other, report, _ = completed(truth * scale + offset, method)
        assert np.abs((other - offset) / scale - plain).max() < 1e-3 * spread, (scale, offset)
        assert report["metrics"]["all"]["psnr"] is not None


def test_case_26_the_rank_is_found_and_told_in_any_units(completed):
    """Chains whose sums are rounded otherwise soon go other ways in the same posterior: errors are compared, not
    values.
    """
    truth = rank_one()
    for scale, offset in ((1.0, 0.0), *UNITS):
        filled, report, text = completed(truth * scale + offset, "datc", 0.5)
        assert np.sqrt(np.mean(((filled - offset) / scale - truth) ** 2)) < 0.1 * np.std(truth), (scale, offset)
        assert report["rank"]["value"] >= 1 and re.search(r"\brank \d", text)
    filled, report, _ = completed(truth, "datc", 0.9)
    assert np.isfinite(filled).all() and report["rank"]["value"] >= 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [0.0, 0.3, -1e6])
def test_case_26_a_constant_picture_stays_constant(completed, method, level):
    filled, report, _ = completed(np.full((16, 17, 3), level), method)
    assert np.allclose(filled, level, rtol=1e-4, atol=1e-6)
    assert report["uncertainty"] is None or report["uncertainty"]["mean_sd"] is not None
    assert any("null: the reference is constant" in text for text in report["warnings"])


def test_case_27_one_chain_and_a_constant_trace_are_null_with_one_note(tdc):
    np.save("x.npy", np.full((12, 13), 0.5))
    words = [
        "complete-image",
        "x.npy",
        "-o",
        "y.npy",
        "--method",
        "datc",
        "--missing-ratio",
        "0.5",
        "--residual",
        "none",
        "--burn-in",
        "5",
        "--samples",
        "3",
        "--chains",
        "1",
        "--json",
    ]
    result = tdc(*words)
    report = report_of(result)
    diagnostics = report["diagnostics"]
    assert diagnostics["chains"] == 1
    assert all(value is None for value in diagnostics["r_hat"].values()) and diagnostics["r_hat"]
    assert all(value is None for value in diagnostics["ess"].values()) and diagnostics["ess"]
    notes = [line for line in result.stderr.splitlines() if "R-hat" in line]
    assert len(notes) == 1 and notes[0].startswith("tdc: warning: no R-hat or ESS for ")
    assert len([text for text in report["warnings"] if "R-hat" in text]) == 1
