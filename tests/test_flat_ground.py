"""Holes in flat ground: what fills them tends to what surrounds them, not to the mean of the picture."""

import numpy as np
import pytest

from tdc_cli import field
from tdc_cli.field import pieces

LIGHT, DARK = (215.0, 208.0, 200.0), (70.0, 40.0, 30.0)
HOLES = {20: (slice(50, 70), slice(30, 50)), 60: (slice(30, 90), slice(20, 80))}


def ground(kind, shape=(120, 160)):
    """(H, W, 3) float64 levels: of one colour, with a dark half beside, or a soft gradient."""
    truth = np.full((*shape, 3), LIGHT)
    if kind == "dark half beside":
        truth[:, 95:] = DARK
    if kind == "gradient":
        truth += np.linspace(-40, 40, shape[1])[:, None] + np.linspace(-10, 10, shape[0])[:, None, None]
    return truth


def noisy(truth):
    return np.round(np.clip(truth + np.random.default_rng(0).normal(0, 1.5, truth.shape), 0, 255)) / 255


def holed(shape, side):
    """True = observed, all but a square hole."""
    observed = np.ones(shape, bool)
    observed[HOLES[side]] = False
    return observed


def error_in_the_middle(estimate, truth, side):
    """Largest error of a channel, in levels, averaged over the middle of the hole."""
    rows, columns = ((s.start + s.stop) // 2 for s in HOLES[side])
    middle = np.s_[rows - 3 : rows + 3, columns - 3 : columns + 3]
    return np.abs((estimate * 255 - truth)[middle].mean(axis=(0, 1))).max()


@pytest.mark.parametrize("side", HOLES)
@pytest.mark.parametrize("kind", ["one colour", "dark half beside", "gradient"])
def test_the_field_leaves_no_stain(kind, side):
    truth = ground(kind)
    observed = holed(truth.shape, side)
    values = noisy(truth)
    fitted, sd = field.solve_with_sd(
        np.where(observed, values, np.nan), observed, rng=np.random.default_rng(0), count=8
    )
    assert error_in_the_middle(fitted.mean, truth, side) < 1.5
    assert np.mean(np.abs(fitted.mean - values)[~observed] <= 1.645 * sd[~observed]) > 0.85


def test_nor_where_the_picture_is_solved_in_windows_and_grids(monkeypatch):
    for name, value in {"WHOLE": 48 * 48, "CORE": 32, "MARGIN": 16, "REACH": 12}.items():
        monkeypatch.setattr(pieces, name, value)
    truth = ground("dark half beside")
    observed = holed(truth.shape, 60)
    fitted = field.solve(np.where(observed, noisy(truth), np.nan), observed)
    assert error_in_the_middle(fitted.mean, truth, 60) < 1.5
