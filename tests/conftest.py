"""What several test modules share: small pictures, and the command line run in this process."""

import json
import shlex
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def smooth(height, width, channels=3):
    """(height, width[, channels]) uint8 picture without sharp edges and without the values 0 and 255."""
    rows, columns = np.mgrid[:height, :width]
    planes = [128 + 60 * np.sin(rows / 5 + c) + 40 * np.cos(columns / 4 - c) for c in range(channels or 1)]
    picture = np.stack(planes, axis=2).round().astype(np.uint8)
    return picture if channels else picture[..., 0]


def pytest_configure():
    """Interrupts reach the tests and their children also in the background of a shell, which has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def put_between(page, begin, end, lines):
    """Write `lines` between two marks of a page in place of what stands there."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    text = "\n".join(lines)
    page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")


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
    """Run `tdc` in this process: ``tdc("complete-image a.png", ...)`` returns click's result.

    The first argument is read as a shell reads it, and may be the whole command; the others are one word each.
    """
    from click.testing import CliRunner

    from tdc_cli.cli.main import main

    return lambda begin, *words, **more: CliRunner().invoke(main, [*shlex.split(begin), *map(str, words)], **more)


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


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with its driver (Debian: chromium and chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a text as a file, in a window of a given size, and fail if the console has anything to say in the end."""
    from selenium.webdriver.common.by import By

    def at(text, width=1200, height=900, **media):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get((tmp_path / "page.html").as_uri())
        return lambda name: browser.find_element(By.ID, name)

    yield at
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.get_log("browser") == []
