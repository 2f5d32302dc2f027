"""What several test modules share: small pictures, and the command line run in this process."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent


def smooth(height, width, channels=3):
    """(height, width[, channels]) uint8 picture without sharp edges and without the values 0 and 255."""
    rows, columns = np.mgrid[:height, :width]
    planes = [128 + 60 * np.sin(rows / 5 + c) + 40 * np.cos(columns / 4 - c) for c in range(channels or 1)]
    picture = np.stack(planes, axis=2).round().astype(np.uint8)
    return picture if channels else picture[..., 0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Empty working folder with an RGB picture `a.png` of 24x20 and its mask `m.png`, a square of 4x4 pixels."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(smooth(20, 24)).save("a.png")
    mask = np.zeros((20, 24), dtype=np.uint8)
    mask[5:9, 10:14] = 255
    Image.fromarray(mask).save("m.png")
    return tmp_path


@pytest.fixture
def tdc(folder):
    """Run `tdc` in this process: ``tdc("complete-image", ...)`` returns click's result."""
    from click.testing import CliRunner

    from tdc_cli.commands.main import main

    return lambda *args, **more: CliRunner().invoke(main, [str(a) for a in args], **more)


@pytest.fixture
def complete(tdc):
    """Complete `a.png` into `b.png` by biharmonic inpainting, with further options; returns click's result."""
    return lambda *args, **more: tdc("complete-image", "a.png", "-o", "b.png", "--method", "biharmonic", *args, **more)


def pixels(path):
    """Values of a picture file as stored."""
    return np.asarray(Image.open(path))


def report_of(result):
    """The JSON report on standard output."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def one_thread():
    """One thread for kernels and BLAS: at the size of the tests starting a second one costs more than the work."""
    from tdc_cli.kernels import kernel_threads

    with kernel_threads(1):
        yield
