"""Pages: what they hold, that they need nothing else, and that they work in a browser."""

import base64
import hashlib
import io
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from conftest import pixels, report_of, smooth
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from test_report import EXAMPLE

from tdc_cli.methods import datc
from tdc_cli.model.posterior import Scale
from tdc_cli.run.report import Report
from tdc_cli.view import display, page, shots
from tdc_cli.view.page import charts, pictures

EVIL = '"><img src=x onerror=alert(1)>&amp;</script>.png'
TRACES = {
    "rank": [[3, 4, 4], [4, 4, 5]],
    "noise_std": [[0.1, 0.2, 0.1]] * 2,
    "log_likelihood": [[-5.0, -4.0, -4.5]] * 2,
    "probe_1": [[0.5, 0.4, 0.6]] * 2,
}


class Parsed(HTMLParser):
    """Tags with their attributes, the contents of styles and scripts, and the text of everything else."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.contents, self.texts, self.open = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = tag

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        (self.contents if self.open in ("style", "script") else self.texts).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def shown(height=40, width=60, *, sd=True, truth=True, **more):
    """Pictures with a tenth of the entries missing."""
    rng = np.random.default_rng(0)
    original = smooth(height, width)
    observed = rng.random(original.shape) > 0.1
    completed = np.where(observed, original, original + rng.integers(-9, 10, original.shape)).astype(np.uint8)
    return page.Pictures(
        np.where(observed, original, 0).astype(np.uint8),
        completed,
        observed,
        sd=np.where(observed, 0.0, 5.0) if sd else None,
        truth=original if truth else None,
        full_range=255,
        **more,
    )


def report(**more):
    return Report(**EXAMPLE | more)


def entry(name="a.png", psnr=30.0, **more):
    metrics = EXAMPLE["metrics"] | {"all": {"rre": 0.05, "psnr": psnr, "ssim": 0.9, "mae": 4.0}}
    return page.Entry(
        name, "done", f"{name}.html", report(metrics=metrics).to_dict(), page.thumbnail(smooth(30, 50), 255), **more
    )


def film(count=6, height=12, width=16, *, sd=True, truth=True, **more):
    """Film of a moving picture, its even frames with a tenth of the pixels missing."""
    rng = np.random.default_rng(0)
    reel, chosen, shares = page.Reel(count), shots.Evenly(3), []
    for t in range(count):
        original = np.roll(smooth(height, width), t, axis=1)
        observed = np.repeat(rng.random((height, width, 1)) > (0.1 if t % 2 == 0 else 0), 3, axis=2)
        completed = np.where(observed, original, original + 9).astype(np.uint8)
        known = {"sd": np.where(observed, 0.0, 5.0) if sd else None, "truth": original if truth else None}
        shot = shots.take(
            t, t / 25, np.where(observed, original, 0).astype(np.uint8), completed, observed, (0, 255), **known
        )
        reel.add(shot)
        chosen.add(shot)
        shares.append(shot.share)
    return page.Film(reel, chosen.chosen, shares, (height, width), full_range=255, **more)


def frames_report(count=6, **more):
    """Report with figures for each frame; odd frames are exact."""
    rows = [
        {"frame": t, "psnr": None if t % 2 else 30.0 + t, "ssim": 0.9, "missing_psnr": None if t % 2 else 20.0 + t}
        for t in range(count)
    ]
    return report(metrics=EXAMPLE["metrics"] | {"frames": rows}, **more)


def pages():
    """A page of a run, an index and a page of a clip, all with names that try to break out of the text."""
    evil = {
        "outputs": {"image": EVIL},
        "command": ["complete-image", EVIL],
        "warnings": [EVIL],
        "method": {"name": EVIL, "parameters": {EVIL: EVIL}},
    }
    failed = page.Entry(EVIL, "failed", error=EVIL)
    run, index = page.run(report(**evil), shown(), TRACES), page.index([entry(EVIL), failed], title=EVIL)
    return run, index, page.clip(frames_report(**evil), film())


def decoded(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def pictures_of(parsed):
    """Name to picture of the gallery."""
    return {attrs["data-name"]: decoded(attrs["src"]) for attrs in parsed.all("img") if "data-name" in attrs}


# -- every page
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", pages(), ids=["run", "index", "clip"])
def test_names_cannot_break_out_of_the_text(text):
    parsed = Parsed(text)
    assert EVIL in "".join(parsed.texts)
    assert not [attrs for _, attrs in parsed.tags if any(name.startswith("on") for name in attrs)]
    assert all(attrs.get("src", "data:").startswith("data:") for attrs in parsed.all("img"))


@pytest.mark.parametrize("text", pages(), ids=["run", "index", "clip"])
def test_pages_need_nothing_else(text):
    parsed = Parsed(text)
    for tag, attrs in parsed.tags:
        for name in ("src", "srcset", "data", "action", "poster", "background"):
            assert attrs.get(name, "data:").startswith("data:"), (tag, name)
        if "href" in attrs:
            assert tag == "a" and not re.match(r"\w+:|//", attrs["href"])
    for code in parsed.contents:
        assert not re.search(r"https?:|@import|url\((?![$])|fetch\(|XMLHttp|import\(", code)


@pytest.mark.parametrize("text", pages(), ids=["run", "index", "clip"])
def test_the_policy_allows_exactly_the_contents(text):
    parsed = Parsed(text)
    metas = parsed.all("meta")
    assert [m.get("charset") or m.get("http-equiv") for m in metas[:2]] == ["utf-8", "Content-Security-Policy"]
    policy = dict(part.strip().split(" ", 1) for part in metas[1]["content"].split(";"))
    assert (
        policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
        and policy["img-src"] == "data:"
    )
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in parsed.contents
    ]
    assert len(hashes) == len(parsed.all("style")) + len(parsed.all("script"))
    assert policy["style-src"].split() + policy["script-src"].split() == hashes
    assert not [attrs for _, attrs in parsed.tags if "style" in attrs]


def test_the_same_arguments_give_the_same_text():
    assert pages() == pages()


@pytest.mark.parametrize("text", pages(), ids=["run", "index", "clip"])
def test_controls_have_names_and_ids_are_unique(text):
    ids = [attrs["id"] for _, attrs in Parsed(text).tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all("alt" in attrs for attrs in Parsed(text).all("img"))


# -- the page of a run
# --------------------------------------------------------------------------------------------------------


def test_pictures_are_those_of_the_run():
    given = shown(truth=True)
    found = pictures_of(Parsed(page.run(report(), given)))
    assert list(found) == ["incomplete", "completed", "truth", "mask", "uncertainty", "error"]
    for name in ("incomplete", "completed", "truth"):
        assert np.array_equal(np.asarray(found[name]), getattr(given, name))
    opacity = np.asarray(found["mask"])[..., 1]
    assert np.array_equal(opacity, np.rint(255 * (~given.observed).mean(axis=2)))
    error = np.abs(given.completed.astype(float) - given.truth).mean(axis=2)
    end, _ = display.top(display.over_channels(given.sd), error)
    levels = np.asarray(found["error"])
    assert np.abs(levels / 255 * end - np.minimum(error, end)).max() <= 0.5 * end / 255 + 1e-6
    assert np.array_equal(np.asarray(found["error"].convert("RGB")), display.colours()[levels])


@pytest.mark.parametrize(
    ("sd", "truth", "names"), [(True, False, ["uncertainty"]), (False, True, ["error"]), (False, False, [])]
)
def test_only_what_is_known_is_shown(sd, truth, names):
    parsed = Parsed(
        page.run(
            report(metrics=None, rank=None, mixture=None, diagnostics=None, uncertainty=None), shown(sd=sd, truth=truth)
        )
    )
    heats = [name for name in pictures_of(parsed) if name in ("uncertainty", "error")]
    assert heats == names
    assert ("on the same scale" in parsed.text) is False
    assert ("Measures" in parsed.text, "R-hat" in parsed.text) == (False, False)


def test_what_a_mask_replaces_is_shown_unless_it_is_the_truth():
    original = smooth(40, 60)
    assert "given" not in pictures_of(Parsed(page.run(report(), shown(given=original))))
    assert "given" in pictures_of(Parsed(page.run(report(), shown(given=original, truth=False))))


@pytest.mark.parametrize("more", [{}, {"truth": False}, {"sd": False}])
def test_uncertainty_and_error_stand_side_by_side(more):
    made = shown(given=np.zeros((40, 60, 3), dtype=np.uint8), **more)
    parsed = Parsed(page.run(report(), made))
    names = list(pictures_of(parsed))
    assert ("Standard deviation, on the same scale as the error." in parsed.text) is (more == {})
    assert ("Standard deviation." in parsed.text) is (made.truth is None) and parsed.text.count(
        "on the same scale"
    ) == (more == {})
    if more == {}:
        first, second = names.index("uncertainty"), names.index("error")
        assert len(names) == 7 and all(
            first // columns == second // columns and second == first + 1 for columns in (2, 3)
        )


def test_figures_parameters_and_warnings_are_told():
    text = Parsed(page.run(report(warnings=["mind the gap"]), shown(), TRACES)).text
    told = "30.10 dB|27.90|0.9100|90.0%|mind the gap|residual|tdc complete-image a.png|8.10 s|3.11.7|117,965"
    for part in told.split("|"):
        assert part in text


@pytest.mark.parametrize(("invented", "told"), [
    (None, "Predicted pixels calibrated on"), (117_000, "965 of 117,965 missing pixels were predicted, calibrated on"),
    (117_965, None),
])  # fmt: skip
def test_what_was_calibrated_is_told_beside_what_was_invented(invented, told):
    text = Parsed(page.run(report(invented=invented, missing=EXAMPLE["missing"] | {"pixels": 117_965}), shown())).text
    assert told in text if told else "calibrated on" not in text


def test_large_pictures_are_scaled_down_and_say_so():
    rng = np.random.default_rng(0)
    original = rng.integers(0, 256, (1500, 2000, 3), dtype=np.uint8)  # noise: the worst case for a PNG
    observed = np.ones(original.shape, dtype=bool)
    observed[:150] = False
    text = page.run(report(), page.Pictures(original, original, observed, full_range=255))
    found = pictures_of(Parsed(text))
    assert {picture.size for picture in found.values()} == {(1000, 750)}
    told = "scaled down to 1000 x 750 pixels, one for each square of 2 x 2 of the 2000 x 1500"
    assert told.replace(" x ", " \N{MULTIPLICATION SIGN} ") in Parsed(text).text
    # The two photographs and the mask, in base64, and a little for the rest.
    assert len(text) < 1000 * 750 * (3 + 3 + 1) * 4 / 3 + 2**20


@given(st.integers(1, 40_000), st.integers(1, 40_000))
def test_the_reduction_is_the_smallest_that_keeps_to_the_bounds(height, width):
    def fits(factor):
        sides = -(-height // factor), -(-width // factor)
        return sides[0] * sides[1] <= pictures.MOST_PIXELS and max(sides) <= pictures.LONGEST_SIDE

    factor = display.reduction(height, width, pictures.MOST_PIXELS, pictures.LONGEST_SIDE)
    assert fits(factor) and (factor == 1 or not fits(factor - 1))


def test_reduced_pictures_are_means():
    values = np.arange(35, dtype=np.float32).reshape(5, 7)
    small = pictures.reduced(values, 2)
    assert small.shape == (3, 4)
    assert small[0, 0] == values[:2, :2].mean() and small[2, 3] == values[4, 6]


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (3, 2)])
def test_tiny_and_thin_pictures(size):
    found = pictures_of(Parsed(page.run(report(), shown(*size))))
    assert found["completed"].size == size[::-1]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 5e307])
def test_floats_with_holes_of_nan(scale):
    values = np.linspace(-scale, scale, 48).reshape(6, 8)
    observed = values < 0.9 * scale
    given = page.Pictures(
        np.where(observed, values, np.nan), values, observed, sd=np.where(observed, 0, 0.1 * scale), truth=values
    )
    text = page.run(report(), given)
    found = pictures_of(Parsed(text))
    assert np.asarray(found["completed"])[0, 0] == 0 and np.asarray(found["completed"])[-1, -1] == 255
    assert np.array_equal(np.asarray(found["incomplete"])[observed], np.asarray(found["completed"])[observed])
    assert "in data units" in Parsed(text).text and "nan" not in Parsed(text).text


def test_a_colour_profile_is_kept():
    profile = b"a profile that nobody reads"
    found = pictures_of(Parsed(page.run(report(), shown(icc_profile=profile))))
    assert found["completed"].info["icc_profile"] == profile and "icc_profile" not in found["error"].info


def test_inks_are_shown_as_colours():
    values = np.zeros((2, 3, 4), dtype=np.uint8)
    values[0, 0] = (255, 0, 0, 0)  # cyan
    values[0, 1] = (0, 0, 0, 255)  # black
    observed = np.ones(values.shape, dtype=bool)
    found = pictures_of(Parsed(page.run(report(), page.Pictures(values, values, observed, full_range=255, inks=True))))
    seen = np.asarray(found["completed"])
    assert [tuple(seen[0, i]) for i in range(3)] == [(0, 255, 255), (0, 0, 0), (255, 255, 255)]


@pytest.mark.parametrize("shape", [(64, 96), (64, 96, 3)])
def test_what_is_transparent_shows_a_checkerboard(shape):
    picture, clear = np.full(shape, 100, dtype=np.uint8), np.zeros((64, 96))
    board = display.over_checkerboard(picture, clear)
    assert set(np.unique(board)) == set(display.CHECKERBOARD) and board.shape == shape
    assert (
        (board[:3, :3] == board[0, 0]).all()
        and (board[0, 0] != board[0, 3]).all()
        and (board[0, 0] == board[3, 3]).all()
    )
    assert np.array_equal(display.over_checkerboard(picture, clear + 1), picture)
    half = display.over_checkerboard(picture, clear + 0.5)
    assert np.array_equal(half, np.rint(0.5 * picture + 0.5 * board).astype(np.uint8))
    assert np.array_equal(display.over_checkerboard(picture // 2, clear + 0.5, premultiplied=True), half)


# -- colours and charts
# -------------------------------------------------------------------------------------------------------


def test_sizes_share_a_scale_that_few_values_exceed():
    quiet, wild = np.full((10, 10), 2.0), np.zeros((10, 10))
    wild[0, :5] = [1, 2, 3, 4, 500]
    end, beyond = display.top(quiet, wild)
    assert 4 < end < 500 and beyond
    assert display.top(quiet) == (2.0, False)
    assert display.top(np.zeros((3, 3))) == (1.0, False)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9))
def test_ticks_are_few_and_inside(low, width):
    marks = charts.ticks(low, low + width)
    assert 2 <= len(marks) <= 6
    assert all(low - 1e-6 * width <= mark <= low + width * (1 + 1e-6) for mark in marks)
    assert marks == sorted(set(marks))


def test_traces_are_thinned_and_stay_inside():
    rng = np.random.default_rng(0)
    chart = charts.trace("x", rng.standard_normal((20, 10_000)).tolist())
    assert len(chart.lines) == charts.MOST_CHAINS
    for line in chart.lines:
        points = [tuple(map(float, point.split(","))) for point in line.split()]
        assert charts.MOST_POINTS / 2 <= len(points) <= charts.MOST_POINTS
        assert all(chart.left <= x <= chart.right and charts.TOP <= y <= chart.bottom for x, y in points)


@pytest.mark.parametrize("chains", [[[1.0]], [[2.0, 2.0]], [[0.0] * 3] * 2])
def test_constant_traces_are_drawn(chains):
    assert len(charts.trace("x", chains).lines) == len(chains)


@pytest.mark.parametrize("chains", [[], [[]], [[1.0, float("nan")]]])
def test_traces_without_values_are_not_drawn(chains):
    assert charts.trace("x", chains) is None


def test_a_posterior_shows_the_likeliest():
    chart = charts.posterior("rank", {"3": 0.25, "5": 0.75})
    assert [text for *_, text in chart.bars] == ["3: 25.0%", "5: 75.0%"]
    heights = [height for *_, height, _ in chart.bars]
    assert heights[1] == pytest.approx(3 * heights[0])
    many = charts.posterior("rank", {str(n): 1 / 500 + (n == 400) for n in range(1, 500)})
    assert len(many.bars) <= charts.MOST_BARS and any(text.startswith("400:") for *_, text in many.bars)


def test_traces_of_the_sampler_are_in_data_units():
    rng = np.random.default_rng(0)
    values = 1000 + 50 * np.add.outer(rng.standard_normal(8), rng.standard_normal(9))
    observed = rng.random(values.shape) > 0.2
    config = datc.Config(burn_in=4, samples=6, rank=2, residual="none")
    done = datc.complete(values, observed, config, rng=rng)
    assert {key: np.shape(trace) for key, trace in done.traces.items()}["noise_std"] == (2, 6)
    assert np.sqrt(np.mean(np.square(done.traces["noise_std"]))) == pytest.approx(done.noise_std)
    scale = Scale.of(values[observed])
    probe = np.array(done.traces["probe_1"])
    assert np.abs(probe - scale.centre).max() < 10 * scale.spread


# -- the index
# ----------------------------------------------------------------------------------------------------------------


def test_the_index_leaves_out_columns_that_nothing_fills():
    plain = page.Entry("a.png", "done", report=report(metrics=None, rank=None, uncertainty=None).to_dict())
    text = Parsed(page.index([plain])).text
    assert "PSNR" not in text and "Rank" not in text and "Time, s" in text


def test_the_index_tells_counts_means_and_errors():
    text = Parsed(
        page.index([entry("a.png", 20.0), entry("b.png", 30.0), page.Entry("c.png", "failed", error="damaged")])
    ).text
    assert "2 done, 1 failed." in text and "25.00" in text and "damaged" in text


def test_warnings_are_counted_and_not_averaged():
    head, _, rest = page.index([entry("a.png", 20.0), entry("b.png", 30.0)]).partition("<tbody>")
    body, _, foot = rest.partition("<tfoot>")

    def figures(text):
        return re.findall(r'<t[hd] [^>]*class="number"[^>]*>(.*?)</t', text)

    columns = figures(head)
    first, means = dict(zip(columns, figures(body))), dict(zip(columns, figures(foot)))
    assert len(figures(foot)) == len(columns)
    assert first["Warnings"] == "0" and (means["Warnings"], means["PSNR, dB"]) == ("", "25.00")


def test_links_of_the_index_are_encoded():
    parsed = Parsed(page.index([page.Entry("x", "done", page="a b/#1?.png.html")]))
    assert [attrs["href"] for attrs in parsed.all("a")] == ["a%20b/%231%3F.png.html"]


def test_an_index_of_nothing():
    assert "No pictures." in Parsed(page.index([])).text


def divider(text):
    """Where the divider begins, in percent of the width."""
    return float(next(attrs["value"] for attrs in Parsed(text).all("input") if attrs.get("id") == "slider"))


@pytest.mark.parametrize("begin, end, percent", [(40, 50, 75), (0, 60, 50), (0, 6, 5), (0, 0, 50)])
def test_the_divider_begins_in_the_middle_of_what_is_missing(begin, end, percent):
    known = shown(width=60)
    observed = np.ones_like(known.observed)
    observed[:, begin:end] = False
    assert divider(page.run(report(), replace(known, observed=observed))) == percent


def test_so_does_that_of_a_clip():
    frame = smooth(12, 40)
    observed = np.ones(frame.shape, bool)
    observed[3:6, 30:34] = False
    reel, chosen = page.Reel(2), shots.Evenly(3)
    for t in range(2):
        shot = shots.take(t, None, np.where(observed, frame, 0), frame, observed, (0, 255))
        reel.add(shot)
        chosen.add(shot)
    film = page.Film(reel, chosen.chosen, [0.1, 0.1], (12, 40), full_range=255)
    assert divider(page.clip(frames_report(2), film)) == 80


# -- the command
# --------------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_page(complete, folder):
    told = report_of(complete("--mask", "m.png", "--reference", "a.png", "--html", "page.html", "--json"))
    assert told["outputs"] == {"image": "b.png", "html": "page.html"}
    found = pictures_of(Parsed((folder / "page.html").read_text(encoding="utf-8")))
    assert np.array_equal(np.asarray(found["completed"]), pixels("b.png"))
    assert (np.asarray(found["incomplete"])[pixels("m.png") > 0] == 0).all()


def test_warnings_name_options_as_the_command_line_does(complete, folder):
    soft = pixels("m.png").copy()
    soft[4, 10:14] = 60
    Image.fromarray(soft).save("soft.png")
    told = report_of(complete("--mask", "soft.png", "--html", "page.html", "--json"))
    assert "--mask-dilate 2" in told["warnings"][0]
    text = Parsed((folder / "page.html").read_text(encoding="utf-8")).text
    assert "if a rim of the damage stays, give --mask-dilate 2" in text and "`" not in text


def test_a_soft_rim_that_stays_is_seen_on_the_page_and_in_the_panel(tdc, folder):
    """A hole that is filled and made opaque, around it a rim of alpha that stays half transparent in the file."""
    alpha = np.full((20, 24), 255, dtype=np.uint8)
    alpha[4:14, 6:18] = 128
    alpha[7:11, 9:15] = 0
    Image.fromarray(np.dstack([smooth(20, 24), alpha])).save("soft.png")
    command = ["complete-image", "soft.png", "-o", "b.png", "--mask", "alpha", "--method", "biharmonic"]
    done = tdc(*command, "--html", "p.html", "--panel", "p.png")
    assert done.exit_code == 0, done.stderr
    written = pixels("b.png").astype(float)
    parsed = Parsed((folder / "p.html").read_text(encoding="utf-8"))
    found = {name: np.asarray(picture).astype(float) for name, picture in pictures_of(parsed).items()}
    board = np.where(np.add.outer(np.arange(20) // 2, np.arange(24) // 2) % 2, 238, 204)[..., None]
    opacity = written[..., 3:] / 255
    assert opacity[8, 10] == 1 and opacity[5, 7] == 128 / 255
    assert np.abs(found["completed"] - (opacity * written[..., :3] + (1 - opacity) * board)).max() <= 0.5
    assert (
        np.array_equal(found["incomplete"][alpha != 0], found["completed"][alpha != 0])
        and (found["incomplete"][alpha == 0] == 0).all()
    )
    assert np.array_equal(found["given"][alpha == 0], np.broadcast_to(board, (20, 24, 3))[alpha == 0])
    assert "transparent shows a checkerboard" in parsed.text and "Page p.html" in parsed.text
    # The panel differs from one of the same colours without alpha in about as much as the rim takes up.
    Image.fromarray(pixels("b.png")[..., :3]).save("opaque.png")
    Image.fromarray(np.where(alpha == 0, 255, 0).astype(np.uint8)).save("hole.png")
    opaque = ["complete-image", "opaque.png", "-o", "c.png", "--mask", "hole.png", "--method", "biharmonic"]
    assert tdc(*opaque, "--html", "q.html", "--panel", "q.png").exit_code == 0
    assert "checkerboard" not in (folder / "q.html").read_text(encoding="utf-8")
    changed = (pixels("p.png") != pixels("q.png")).any(axis=2)
    rim = (alpha == 128).mean()
    assert 0.5 * rim < changed.mean() < rim


def test_pages_are_never_replaced_and_have_one_name(complete, folder):
    (folder / "page.html").write_text("mine")
    done = complete("--mask", "m.png", "--html", "page.html")
    assert (done.exit_code, done.stderr) == (2, "tdc: page.html: exists already; give --overwrite to replace it\n")
    assert (folder / "page.html").read_text() == "mine"
    done = complete("--mask", "m.png", "--html", "page.txt")
    assert (done.exit_code, done.stderr) == (2, "tdc: page.txt: a page is written to .html\n")
    assert not (folder / "b.png").exists()


@pytest.fixture
def folders(folder):
    """Folder `in` with two pictures, one of them in a folder with an awkward name, and a broken one."""
    (folder / "in" / "a & b").mkdir(parents=True)
    shutil.copy("a.png", "in/a.png")
    shutil.copy("a.png", "in/a & b/50% #1.png")
    (folder / "in" / "broken.png").write_text("no picture")
    return folder


def in_folders(tdc, *more):
    return tdc(
        "complete-image",
        "in",
        "-o",
        "out",
        "--recursive",
        "--missing-ratio",
        "0.2",
        "--method",
        "biharmonic",
        "--html",
        "h",
        *more,
    )


def test_a_folder_gets_a_page_for_each_picture_and_an_index(tdc, folders):
    assert in_folders(tdc).exit_code == 3
    assert {str(path.relative_to("h")) for path in Path("h").rglob("*.html")} == {
        "index.html", "a.png.html", "a & b/50% #1.png.html"
    }  # fmt: skip
    parsed = Parsed((folders / "h" / "index.html").read_text(encoding="utf-8"))
    links = [unquote(attrs["href"]) for attrs in parsed.all("a")]
    assert links == ["a.png.html", "a & b/50% #1.png.html"] and all((folders / "h" / link).is_file() for link in links)
    assert "2 done, 1 failed." in parsed.text and "not a picture" in parsed.text
    assert len(parsed.all("img")) == 2 and decoded(parsed.all("img")[0]["src"]).size == (24, 20)


def test_an_index_is_not_replaced_and_knows_what_was_done_before(tdc, folders):
    assert in_folders(tdc).exit_code == 3
    assert in_folders(tdc).exit_code == 2
    assert in_folders(tdc, "--skip-existing").exit_code == 3
    parsed = Parsed((folders / "h" / "index.html").read_text(encoding="utf-8"))
    assert "2 skipped, 1 failed." in parsed.text and len(parsed.all("a")) == len(parsed.all("img")) == 2


# -- in a browser
# -------------------------------------------------------------------------------------------------------------

def run_page():
    return page.run(report(), shown(), TRACES)


def variable(browser, name):
    return browser.execute_script("return document.documentElement.style.getPropertyValue(arguments[0])", name)


def test_the_slider_moves_by_keyboard(browser, opened):
    from selenium.webdriver.common.keys import Keys

    find = opened(run_page())
    assert find("compare").is_displayed()
    find("slider").send_keys(Keys.ARROW_RIGHT * 4)
    assert variable(browser, "--split") == "52%"
    stage, divider = find("stage").rect, find("divider").rect
    assert divider["x"] + divider["width"] / 2 == pytest.approx(stage["x"] + 0.52 * stage["width"], abs=1)
    find("slider").send_keys(Keys.HOME)
    assert variable(browser, "--split") == "0%"


def stage_box(browser, find):
    """Left, top, width and height of the stage in the window, scrolled to."""
    browser.execute_script("arguments[0].scrollIntoView()", find("compare"))
    box = browser.execute_script("return arguments[0].getBoundingClientRect().toJSON()", find("stage"))
    return box["left"], box["top"], box["width"], box["height"]


def touch(browser, *fingers):
    """Move fingers along their points ((x, y), (x, y), ...), all at once, and lift them."""
    for i, points in enumerate(zip(*fingers)):
        where = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(points)]
        browser.execute_cdp_cmd(
            "Input.dispatchTouchEvent", {"type": "touchMove" if i else "touchStart", "touchPoints": where}
        )
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_divider_is_dragged_by_mouse(browser, opened):
    from selenium.webdriver.common.actions.action_builder import ActionBuilder

    find = opened(run_page())
    left, top, width, _ = stage_box(browser, find)
    actions = ActionBuilder(browser, duration=20)
    actions.pointer_action.move_to_location(int(left + width / 2), int(top + 100)).pointer_down()
    actions.pointer_action.move_to_location(int(left + 0.6 * width), int(top + 100))
    actions.pointer_action.move_to_location(int(left + 0.8 * width), int(top + 100)).pointer_up()
    actions.perform()
    assert float(variable(browser, "--split").rstrip("%")) == pytest.approx(80, abs=1)
    assert variable(browser, "--zoom") == "1"


def test_the_divider_is_dragged_by_touch(browser, opened):
    left, top, width, _ = stage_box(browser, opened(run_page(), width=360))
    touch(browser, [(left + share * width, top + 40) for share in (0.5, 0.55, 0.6, 0.7, 0.8)])
    assert float(variable(browser, "--split").rstrip("%")) == pytest.approx(80, abs=2)
    assert variable(browser, "--zoom") == "1"


def test_two_fingers_zoom(browser, opened):
    left, top, width, height = stage_box(browser, opened(run_page(), width=360))
    shares = (0.1, 0.15, 0.2)
    touch(browser, *([(left + (0.5 + sign * share) * width, top + height / 2) for share in shares] for sign in (-1, 1)))
    assert float(variable(browser, "--zoom")) == pytest.approx(2, rel=0.1)
    assert browser.execute_script("return window.visualViewport.scale") == 1


def test_a_click_zooms_all_pictures_where_it_points(browser, opened):
    opened(run_page())
    script = """
      const view = document.querySelectorAll('.gallery .view')[1], box = view.getBoundingClientRect();
      const at = {pointerId: 1, clientX: box.left + box.width / 4, clientY: box.top + box.height / 2};
      for (const type of ['pointerdown', 'pointerup']) view.dispatchEvent(new PointerEvent(type, at));
      return [...document.querySelectorAll('.gallery .view')].map((view) => {
        const outer = view.getBoundingClientRect(), inner = view.querySelector('img').getBoundingClientRect();
        return [inner.width / outer.width, (outer.left + outer.width / 4 - inner.left) / inner.width];
      });
    """
    # Events made by a script have no pointer that could be captured.
    browser.execute_script("Element.prototype.setPointerCapture = () => {}")
    seen = browser.execute_script(script)
    assert len(seen) == 6
    for zoom, share in seen:
        assert zoom == pytest.approx(3, abs=0.02) and share == pytest.approx(0.25, abs=0.01)
    assert browser.execute_script("return document.querySelectorAll('.gallery .pixelated').length") == 6
    assert all(zoom == pytest.approx(1, abs=0.02) for zoom, _ in browser.execute_script(script))


def test_keys_and_buttons_zoom(browser, opened):
    from selenium.webdriver.common.keys import Keys

    find = opened(run_page())
    assert not find("out").is_enabled() and not find("actual").is_enabled()
    find("stage").send_keys("+")
    assert variable(browser, "--zoom") == "1.5"
    before = variable(browser, "--x")
    find("stage").send_keys(Keys.ARROW_RIGHT)
    assert float(variable(browser, "--x").rstrip("%")) < float(before.rstrip("%"))
    find("in").click()
    assert variable(browser, "--zoom") == "2.25"
    find("fit").click()
    assert variable(browser, "--zoom") == "1" and find("magnification").text.endswith("%")


def test_the_wheel_scrolls_the_page_until_it_is_zoomed(browser, opened):
    opened(run_page())
    wheel = """
      const event = new WheelEvent('wheel', {deltaY: -200, ctrlKey: arguments[0], cancelable: true});
      document.getElementById('stage').dispatchEvent(event);
      return event.defaultPrevented;
    """
    assert browser.execute_script(wheel, False) is False and variable(browser, "--zoom") == "1"
    assert browser.execute_script(wheel, True) is True and float(variable(browser, "--zoom")) > 1.4
    assert browser.execute_script(wheel, False) is True and float(variable(browser, "--zoom")) > 2


def test_any_two_pictures_are_compared_and_what_is_missing_is_marked(browser, opened):
    from selenium.webdriver.support.select import Select

    find = opened(run_page())
    Select(find("right")).select_by_visible_text("Error")
    same = "return document.querySelector('[data-name=error]').src === document.getElementById('right-picture').src"
    assert browser.execute_script(same)
    assert not find("marks").is_displayed()
    find("overlay").click()
    assert find("marks").is_displayed()
    assert "data:image/png" in browser.execute_script("return getComputedStyle(arguments[0]).maskImage", find("marks"))


def test_the_theme_follows_the_system_until_it_is_chosen(browser, opened):
    def brightness():
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    find = opened(run_page(), prefers_color_scheme="dark")
    browser.execute_script("localStorage.clear()")
    assert brightness() < 60
    find("theme").click()
    assert find("theme").text == "Theme: light" and brightness() > 200
    find("theme").click()
    assert find("theme").text == "Theme: dark" and brightness() < 60
    browser.execute_script("localStorage.clear()")
    opened(run_page(), prefers_color_scheme="light")
    assert brightness() > 200


@pytest.mark.parametrize("text", pages(), ids=["run", "index", "clip"])
@pytest.mark.parametrize("width", [320, 360, 1200])
def test_nothing_scrolls_sideways(browser, opened, text, width):
    opened(text, width, 700)
    assert (
        browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth && window.innerWidth")
        == width
    )


def test_without_scripts_pictures_and_tables_are_there(browser, opened):
    from selenium.webdriver.common.by import By

    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    find = opened(run_page())
    assert not find("compare").is_displayed() and not find("theme").is_displayed()
    images = browser.find_elements(By.CSS_SELECTOR, ".gallery .view img")
    assert len(images) == 6 and all(image.is_displayed() and image.size["width"] > 100 for image in images)
    assert all(table.is_displayed() for table in browser.find_elements(By.TAG_NAME, "table"))


def test_the_index_is_sorted_by_its_heads(browser, opened):
    from selenium.webdriver.common.by import By

    opened(
        page.index(
            [
                entry("p10.png", 9.5),
                entry("p2.png", 30.0),
                page.Entry("p1.png", "failed", error="no"),
                entry("p3.png", 20.0),
            ]
        )
    )

    def names():
        return [cell.text.split("\n")[0] for cell in browser.find_elements(By.CSS_SELECTOR, "tbody th")]

    def click(title):
        head = next(head for head in browser.find_elements(By.CSS_SELECTOR, "thead th") if head.text.startswith(title))
        head.find_element(By.TAG_NAME, "button").click()
        return head.get_attribute("aria-sort")

    assert names() == ["p10.png", "p2.png", "p1.png", "p3.png"]
    assert click("PSNR, dB") == "ascending" and names() == ["p10.png", "p3.png", "p2.png", "p1.png"]
    assert click("PSNR, dB") == "descending" and names() == ["p2.png", "p3.png", "p10.png", "p1.png"]
    assert click("File") == "ascending" and names() == ["p1.png", "p2.png", "p3.png", "p10.png"]
    assert len(browser.find_elements(By.CSS_SELECTOR, "[aria-sort]")) == 1
