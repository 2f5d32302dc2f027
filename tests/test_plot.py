"""Figures come out the same whatever settings of matplotlib surround them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

WORDS = [
    "complete-image",
    "a.png",
    "-o",
    "b.png",
    "--mask",
    "m.png",
    "--method",
    "linear",
    "--panel",
    "p.png",
    "--overwrite",
    "-q",
]
ODD = b"figure.dpi: 3\nbackend: nosuch\nfont.size: 40\n"


def panel(**environment):
    paths = {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "tdc_cli", *WORDS],
        env=os.environ | paths | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    return Path("p.png").read_bytes()


@pytest.mark.parametrize("backend", ["nosuch", "module://matplotlib_inline.backend_inline", "qtagg"])
@pytest.mark.parametrize("rc", [ODD, b"\xff\xfe no text"], ids=["odd", "unreadable"])
def test_the_surroundings_change_no_figure(folder, backend, rc):
    expected = panel()
    for place in (Path("matplotlibrc"), Path("home/matplotlibrc")):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(rc)
    assert panel(MPLBACKEND=backend, MPLCONFIGDIR=str(Path("home").absolute())) == expected


def test_settings_made_in_python_change_no_figure_and_stay(folder):
    import matplotlib
    import numpy as np

    from tdc_cli.view import panel as drawn

    expected = drawn.draw_uncertainty(np.eye(4), "of 255")
    with matplotlib.rc_context({"font.size": 40}):
        assert drawn.draw_uncertainty(np.eye(4), "of 255") == expected
        assert matplotlib.rcParams["font.size"] == 40
