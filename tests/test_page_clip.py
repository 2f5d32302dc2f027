"""The page of a clip: what its player holds, and that it goes from frame to frame in a browser."""

import base64
import io
import json
import re

import numpy as np
import pytest
from conftest import report_of, smooth
from PIL import Image
from test_page import Parsed, decoded, film, frames_report, pictures_of, report
from test_shots import shot

from tdc_cli.view import page, shots
from tdc_cli.view.page import charts, reel


def player(text):
    """Frames and images that the player of a page has."""
    return json.loads(re.search(r'<template id="reel">(.*?)</template>', text, re.S)[1])


def shown_by(text):
    """Name to picture, for every frame of the player."""
    held = player(text)
    return [
        {name: np.asarray(decoded(held["images"][key])) for name, key in frame["pictures"].items()}
        for frame in held["frames"]
    ]


# -- what is in it
# ------------------------------------------------------------------------------------------------------------


def test_the_player_has_every_frame_as_it_was_written():
    frames = shown_by(page.clip(frames_report(), film()))
    names = {"incomplete", "completed", "truth", "mask", "uncertainty", "error"}
    assert len(frames) == 6 and all(set(frame) == names for frame in frames)
    for t, frame in enumerate(frames):
        missing = frame["mask"][..., 3] > 0
        assert missing.any() == (t % 2 == 0)
        assert np.array_equal(
            frame["completed"].astype(int) - frame["truth"], 9 * np.repeat(missing[..., None], 3, axis=2)
        )
        assert (frame["incomplete"][missing] == 0).all()
        assert np.array_equal(frame["incomplete"][~missing], frame["truth"][~missing])


def test_pictures_that_are_alike_are_there_once():
    held = player(page.clip(frames_report(), film()))
    odd = held["frames"][1]["pictures"]
    assert odd["incomplete"] == odd["completed"] == odd["truth"]
    assert odd["uncertainty"] == odd["error"]
    # Three pictures, a mask and two sizes for each even frame, one picture for each odd one, and one of nothing of each
    # kind.
    assert len(held["images"]) == 3 * 6 + 3 + 2


def test_the_page_begins_with_a_frame_that_has_holes():
    made = page.Reel(5)
    for t in range(5):
        made.add(shot(t, missing=t >= 3))
    text = page.clip(report(), page.Film(made, [shot(3)], [0, 0, 0, 0.1, 0.1], (30, 44), full_range=255))
    parsed = Parsed(text)
    assert next(attrs for attrs in parsed.all("input") if attrs["id"] == "frame")["value"] == "3"
    assert np.array_equal(np.asarray(pictures_of(parsed)["incomplete"]), shown_by(text)[3]["incomplete"])
    assert "2 of 5 frames with missing entries" in parsed.text and "5 frames of 44" in parsed.text


def test_uncertainty_and_error_of_all_frames_have_one_scale():
    made = film()
    text = page.clip(frames_report(), made)
    assert (made.reel.end, made.reel.beyond) == (9, False)
    assert page.clip(frames_report(), made) == text
    for t, frame in enumerate(shown_by(text)):
        missing = frame["mask"][..., 3] > 0
        assert (frame["error"][missing] == 255).all() and (frame["error"][~missing] == 0).all()
        assert (frame["uncertainty"][missing] == round(255 * 5 / 9)).all() and (
            frame["uncertainty"][~missing] == 0
        ).all(), t
    scales = [attrs["alt"] for attrs in Parsed(text).all("img") if attrs["alt"].startswith("Colour scale")]
    assert scales == ["Colour scale from 0 to 9 of\N{NO-BREAK SPACE}255"] * 2


def test_a_clip_without_holes_was_cleaned():
    values = np.full((12, 16, 3), 100, dtype=np.uint8)
    cleaned = shots.take(0, None, values, values + 1, np.ones(values.shape, dtype=bool), (0, 255))
    made = page.Reel(1)
    made.add(cleaned)
    text = Parsed(page.clip(report(metrics=None), page.Film(made, [cleaned], [0.0], (12, 16), full_range=255))).text
    assert "1 frame without missing entries, cleaned by datc in 8.1" in text
    assert "20 of" not in text and "A frame of the clip." in text


@pytest.mark.parametrize(("sd", "truth"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_strip_has_what_is_known(sd, truth):
    made = film(sd=sd, truth=truth)
    parsed = Parsed(page.clip(report(metrics=None), made))
    told = [attrs["alt"] for attrs in parsed.all("img") if ", frame " in attrs.get("alt", "")]
    rows = ["Incomplete", "Completed"] + ["Truth"] * truth + ["Uncertainty"] * sd + ["Error"] * truth
    assert told == [f"{row}, frame {t}, {t / 25:.2f} s" for row in rows for t in (0, 2, 4)]
    assert ("colour scale" in parsed.text) is (sd or truth)
    named = [name for name in pictures_of(parsed) if name in ("uncertainty", "error")]
    assert named == ["uncertainty"] * sd + ["error"] * truth
    assert ("Measures" in parsed.text) is False


def test_figures_of_every_frame_are_told():
    held = player(page.clip(frames_report(), film()))
    assert held["frames"][2]["caption"].endswith("missing, PSNR 32.00 dB, SSIM 0.9000")
    assert held["frames"][1]["caption"] == "nothing missing, SSIM 0.9000"
    assert held["frames"][2]["time"] == 0.08


# -- what a page has room for
# -------------------------------------------------------------------------------------------------


@pytest.fixture
def small_room(monkeypatch):
    """Room for eight frames of two pictures of 30 x 44 pixels."""
    monkeypatch.setattr(reel, "ROOM", 8 * 2 * 30 * 44)
    monkeypatch.setattr(reel, "ROOM_WITHOUT_LOSS", 4 * 2 * 30 * 44)
    monkeypatch.setattr(reel, "LEAD", 3)


def run_through(count, with_holes):
    made = page.Reel(count)
    for t in range(count):
        made.add(shot(t, missing=t in with_holes, sd=False, truth=False))
    made.finish()
    return made


@pytest.mark.parametrize(
    ("count", "with_holes", "numbers"),
    [
        (8, {6}, range(8)),
        (20, {0, 9}, range(8)),
        (20, {2}, range(8)),
        (20, {10, 13}, range(7, 15)),
        (20, {19}, range(16, 20)),
        (20, set(), range(16, 20)),
    ],
)
def test_of_a_long_clip_the_frames_around_the_first_hole_are_shown(small_room, count, with_holes, numbers):
    made = run_through(count, with_holes)
    assert [frame.number for frame in made.frames] == list(numbers)
    used = {key for frame in made.frames for key in frame.pictures.values()}
    assert used == set(made.images)


def test_a_page_says_what_it_leaves_out(small_room):
    made = run_through(20, {10})
    text = Parsed(page.clip(report(), page.Film(made, [shot(10)], [0.0] * 20, (30, 44), full_range=255))).text
    assert "The player has the frames 7 to 14 of 20: a page has no room for more." in text
    assert "compressed, as a careful photograph would be" in text
    text = Parsed(
        page.clip(report(), page.Film(run_through(4, {1}), [shot(1)], [0.0] * 4, (30, 44), full_range=255))
    ).text
    assert "no room" not in text and "compressed" not in text


def test_noise_the_worst_case_keeps_to_a_bound(monkeypatch):
    monkeypatch.setattr(reel, "ROOM", 2 * 4 * 640 * 360)
    monkeypatch.setattr(reel, "ROOM_WITHOUT_LOSS", 0)
    rng = np.random.default_rng(0)
    made = page.Reel(100)
    for t in range(6):
        noise = rng.integers(0, 256, (360, 640, 3), dtype=np.uint8)
        observed = rng.random(noise.shape) > 0.5
        made.add(shots.take(t, None, np.where(observed, noise, 0), noise, observed, (0, 255)))
    made.finish()
    assert [frame.number for frame in made.frames] == [0, 1, 2, 3] and not made.lossless
    assert len(made.images) == 3 * 4
    # So the whole room is less than 50 MB.
    assert sum(map(len, made.images.values())) < 1.25 * reel.ROOM


def test_large_frames_are_scaled_down_and_say_so():
    made = page.Reel(1)
    one = shot(shape=(720, 1280, 3))
    made.add(one)
    text = Parsed(page.clip(report(), page.Film(made, [one.small()], [one.share], (720, 1280), full_range=255))).text
    assert "scaled down to 640 x 360" in text.replace("\N{MULTIPLICATION SIGN}", "x")


def test_compressed_pictures_are_webp_of_the_right_size(small_room):
    uri = next(iter(run_through(20, {0}).images.values()))
    assert uri.startswith("data:image/webp;base64,")
    assert Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).size == (44, 30)


# -- the command
# --------------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_page_of_all_frames(tdc, folder):
    clip = np.stack([np.roll(smooth(12, 16), t, axis=1) for t in range(5)])
    np.save("clip.npy", clip)
    command = ["complete-video", "clip.npy", "-o", "out.npy", "--method", "nearest", "--html", "p.html", "--json"]
    told = report_of(tdc(*command, "--missing-ratio", 0.2, "--missing-pattern", "pixels"))
    text = (folder / "p.html").read_text(encoding="utf-8")
    frames, done = shown_by(text), np.load("out.npy")
    assert len(frames) == 5
    for frame, truth, completed, row in zip(frames, clip, done, told["metrics"]["frames"]):
        assert np.array_equal(frame["truth"], truth) and np.array_equal(frame["completed"], completed)
        assert np.array_equal(frame["error"] > 0, (completed != truth).any(axis=2))
        assert f"PSNR {row['psnr']:.2f} dB, SSIM {row['ssim']:.4f}" in player(text)["frames"][row["frame"]]["caption"]
    parsed = Parsed(text)
    assert "out.npy" in parsed.text and "5 of 5 frames with missing entries (19.8% of all)" in parsed.text
    assert [attrs["aria-label"].split(" of 5")[0] for attrs in parsed.all("svg")] == [
        "Missing entries", "PSNR, dB", "SSIM", "PSNR of missing entries, dB"
    ]  # fmt: skip


def test_the_page_of_a_clip_of_many_small_frames_is_short(tdc, folder, monkeypatch):
    monkeypatch.setattr(reel, "MOST_FRAMES", 20)
    np.save("clip.npy", np.random.default_rng(0).integers(1, 255, (60, 5, 6), dtype=np.uint8))
    command = [
        "complete-video",
        "clip.npy",
        "-o",
        "out.npy",
        "--method",
        "nearest",
        "--missing-ratio",
        "0.2",
        "--html",
        "p.html",
        "-q",
    ]
    assert tdc(*command).exit_code == 0
    text = (folder / "p.html").read_text(encoding="utf-8")
    assert [frame["number"] for frame in player(text)["frames"]] == list(range(20))
    assert "The player has the frames 0 to 19 of 60: a page has no room for more." in Parsed(text).text


# -- charts over frames
# -------------------------------------------------------------------------------------------------------


def points(chart):
    return [tuple(map(float, point.split(","))) for point in chart.lines[0].split()]


def test_a_chart_goes_through_the_frames_that_are_known():
    chart = charts.over_frames("PSNR", [30.0, None, 20.0, float("inf")], 7)
    assert len(chart.dots) == len(points(chart)) == 2 and chart.frames == (7, 10)
    (left, high), (right, low) = points(chart)
    assert left == chart.left and high < low
    assert right == pytest.approx(chart.left + 2 / 3 * (chart.right - chart.left), abs=0.1)
    assert chart.text == "PSNR of 2 frames; mean 25, smallest 20 in frame 9"
    assert charts.over_frames("PSNR", [None, float("nan")]) is None


def test_shares_are_drawn_from_zero():
    chart = charts.over_frames("Missing", [0.2, 0.4], share=True)
    assert chart.up[0][1] == "0 %" and "largest 40.0% in frame 1" in chart.text


def test_of_a_long_clip_the_worst_frames_are_drawn():
    values = [40.0] * 2000
    values[1234] = 12.0
    chart = charts.over_frames("PSNR", values)
    assert len(points(chart)) <= charts.MOST_POINTS and chart.dots == ()
    assert max(y for _, y in points(chart)) > chart.bottom - 10
    shares = [0.5 if t % 20 == 0 else 0.0 for t in range(2000)]
    assert len({y for _, y in points(charts.over_frames("Missing", shares, share=True))}) == 2


def test_a_clip_of_one_frame_has_charts():
    assert points(charts.over_frames("PSNR", [30.0]))[0][0] == charts.LEFT


# -- in a browser
# -------------------------------------------------------------------------------------------------------------


def clip_page():
    return page.clip(frames_report(), film())


def wait_for(browser, text):
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, 20).until(lambda _: text in browser.find_element("id", "now").text)


def same_as_held(browser, name, frame):
    """Whether the gallery shows of `name` what the player holds for frame number `frame`."""
    script = """
      const held = JSON.parse(document.getElementById('reel').content.textContent);
      const wanted = held.images[held.frames[arguments[1]].pictures[arguments[0]]];
      return document.querySelector(`[data-name=${arguments[0]}]`).src === wanted;
    """
    return browser.execute_script(script, name, frame)


def test_buttons_and_keys_step_by_one_frame(browser, opened):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    find = opened(clip_page())
    wait_for(browser, "Frame 0, 0.00 s: ")
    assert not find("back").is_enabled()
    find("on").click()
    wait_for(browser, "Frame 1, 0.04 s: nothing missing, SSIM 0.9000")
    ActionChains(browser).send_keys(".").perform()
    wait_for(browser, "Frame 2")
    ActionChains(browser).send_keys(",").perform()
    wait_for(browser, "Frame 1")
    find("frame").send_keys(Keys.END)
    wait_for(browser, "Frame 5")
    assert not find("on").is_enabled() and find("frame").get_attribute("aria-valuetext") == find("now").text


def test_all_pictures_follow_the_frame(browser, opened):
    from selenium.webdriver.support.wait import WebDriverWait

    find = opened(clip_page())
    find("overlay").click()
    for frame in (2, 1):
        move = "const s = document.getElementById('frame'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
        browser.execute_script(move, frame)
        WebDriverWait(browser, 20).until(lambda _, frame=frame: same_as_held(browser, "completed", frame))
        assert all(same_as_held(browser, name, frame) for name in ("incomplete", "truth", "mask"))
        for side, name in (("left", "incomplete"), ("right", "completed")):
            same = (
                f"return document.getElementById('{side}-picture').src === "
                f"document.querySelector('[data-name={name}]').src"
            )
            assert browser.execute_script(same)
        marks = browser.execute_script("return document.getElementById('marks').style.maskImage")
        assert browser.execute_script("return document.querySelector('[data-name=mask]').src") in marks
        share = browser.execute_script("""
          const chart = document.querySelector('svg[data-first]'), line = chart.querySelector('.now');
          return (line.getAttribute('x1') - chart.dataset.left) / (chart.dataset.right - chart.dataset.left);
        """)
        assert share == pytest.approx(frame / 5)


def test_the_player_plays_and_pauses(browser, opened):
    from selenium.webdriver.support.wait import WebDriverWait

    find = opened(clip_page())
    find("play").click()
    assert find("play").text == "Pause" and find("now").get_attribute("aria-live") == "off"
    seen = set()
    WebDriverWait(browser, 30, 0.02).until(lambda _: seen.add(find("now").text[:7]) or len(seen) >= 4)
    find("play").click()
    assert find("play").text == "Play" and find("now").get_attribute("aria-live") == "polite"
    stopped = find("now").text
    assert stopped == find("now").text


def test_a_click_on_a_chart_goes_to_its_frame(browser, opened):
    from selenium.webdriver.common.action_chains import ActionChains

    find = opened(clip_page())
    wait_for(browser, "Frame 0")
    chart = browser.find_elements("css selector", "svg[data-first]")[1]
    browser.execute_script("arguments[0].scrollIntoView()", chart)
    size = chart.size
    ends = charts.LEFT / charts.WIDE, 1 - charts.RIGHT / charts.WIDE
    share = ends[0] + 0.6 * (ends[1] - ends[0]) - 0.5
    ActionChains(browser).move_to_element_with_offset(chart, int(share * size["width"]), 0).click().perform()
    wait_for(browser, "Frame 3")
    assert find("play").text == "Play"


def test_without_scripts_the_strip_and_the_charts_are_there(browser, opened):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    find = opened(clip_page())
    assert not find("compare").is_displayed()
    images = browser.find_elements("css selector", ".strip img")
    assert len(images) == 15 and all(image.size["width"] > 60 for image in images)
    assert len(browser.find_elements("css selector", ".wide svg")) == 4
