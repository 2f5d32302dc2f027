"""Frames of a clip to look at: which are kept, how small they are, and how they are drawn next to each other."""

import io

import numpy as np
import pytest
from conftest import smooth
from PIL import Image

from tdc_cli.view import panel, shots, side_by_side

HEIGHT, WIDTH = 30, 44


def shot(number=0, missing=True, *, shape=(HEIGHT, WIDTH, 3), sd=True, truth=True, time=0.5):
    """A shot with a hole of 10 x 10 pixels, or none, that is filled 8 too bright."""
    original = smooth(*shape[:2], shape[2] if len(shape) == 3 else 0)
    observed = np.ones(shape, dtype=bool)
    observed[5:15, 5:15] = not missing
    completed = np.where(observed, original, original + 8).astype(np.uint8)
    incomplete = np.where(observed, original, 0).astype(np.uint8)
    known = {"sd": np.where(observed, 0.0, 4.0) if sd else None, "truth": original if truth else None}
    return shots.take(number, time, incomplete, completed, observed, (0, 255), **known)


def drawn(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


# -- shots
# --------------------------------------------------------------------------------------------------------------------


def test_a_shot_holds_what_is_drawn():
    made = shot()
    assert (
        np.array_equal(made.pictures["truth"], smooth(HEIGHT, WIDTH)) and made.pictures["incomplete"].dtype == np.uint8
    )
    assert set(np.unique(made.sizes["error"])) == {0, 8} and set(np.unique(made.sizes["uncertainty"])) == {0, 4}
    assert made.share == pytest.approx(100 / (HEIGHT * WIDTH)) and made.missing.sum() == 100
    assert (
        set(shot(sd=False, truth=False).pictures) == {"incomplete", "completed"}
        and shot(sd=False, truth=False).sizes == {}
    )


def test_a_shot_does_not_keep_the_clip_in_memory():
    clip = np.zeros((5, HEIGHT, WIDTH, 3), dtype=np.uint8)
    observed = np.ones(clip.shape, dtype=bool)
    made = shots.take(2, None, clip[2], clip[2], observed[2], (0, 255), sd=clip[2].astype(float), truth=clip[2])
    for kept in (*made.pictures.values(), *made.sizes.values(), made.missing):
        assert not np.shares_memory(kept, clip) and not np.shares_memory(kept, observed)


def test_floats_and_channels_apart_become_pictures():
    values = np.linspace(-1, 3, 24).reshape(4, 6)
    observed = values < 2
    made = shots.take(0, None, np.where(observed, values, np.nan), values, observed, (-1, 3))
    assert made.pictures["completed"][0, 0] == 0 and made.pictures["completed"][-1, -1] == 255
    assert (made.pictures["incomplete"][~observed] == 0).all()
    apart = np.ones((4, 6, 3), dtype=bool)
    apart[0, 0, 1] = False
    made = shots.take(0, None, np.zeros((4, 6, 3)), np.zeros((4, 6, 3)), apart, (0, 1))
    assert made.missing[0, 0] == pytest.approx(1 / 3) and made.share == pytest.approx(1 / 72)


def test_small_shots_are_means():
    made = shot(shape=(720, 1280, 3))
    small = made.small()
    assert small.missing.shape == (360, 640) and small.pictures["truth"].shape == (360, 640, 3)
    assert small.sizes["error"][4, 4] == pytest.approx(made.sizes["error"][8:10, 8:10].mean())
    assert small.share == made.share
    assert shot().small().missing.shape == (HEIGHT, WIDTH)


@pytest.mark.parametrize("count", [1, 4, 5, 11, 20, 21, 200])
def test_shots_are_kept_evenly(count):
    kept = shots.Evenly(5)
    for t in range(count):
        kept.add(shot(t, shape=(16, 16)))
    numbers = [made.number for made in kept.chosen]
    assert len(numbers) == min(count, 5) and numbers == sorted(set(numbers)) and numbers[0] == 0
    if count > 5:
        steps = np.diff(numbers)
        # What comes last may not be kept: every eighth frame may be all that is left of many.
        assert steps.max() <= 2 * steps.min() and numbers[-1] >= 0.8 * (count - 1)


def test_frames_without_holes_are_not_kept_unless_they_have_changed():
    kept = shots.Evenly(5)
    for t in range(10):
        kept.add(shot(t, missing=t in (3, 6)))
    assert [made.number for made in kept.chosen] == [3, 6]
    values = smooth(16, 16)
    kept.add(shots.take(10, None, values, values + 1, np.ones(values.shape, dtype=bool), (0, 255)))
    assert [made.number for made in kept.chosen] == [3, 6, 10]


def test_where_nothing_has_changed_the_first_frame_is_kept():
    kept = shots.Evenly(5)
    for t in range(4, 10):
        kept.add(shot(t, missing=False))
    assert [made.number for made in kept.chosen] == [4]


# -- side by side
# -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width"), [(30, 44), (31, 45), (1, 1), (500, 700)])
@pytest.mark.parametrize("names", [("incomplete", "completed"), ("incomplete", "completed", "truth")])
def test_frames_lie_next_to_each_other(height, width, names):
    layout = side_by_side.Layout(height, width, names)
    made = layout.draw(shot(shape=(height, width, 3)))
    assert made.shape == layout.shape and made.dtype == np.uint8
    assert made.shape[0] % 2 == made.shape[1] % 2 == 0
    top = layout.shape[0] - height - (layout.shape[0] - height) % 2
    for i, name in enumerate(names):
        left = i * (width + side_by_side.GAP)
        assert np.array_equal(
            made[top : top + height, left : left + width], shot(shape=(height, width, 3)).pictures[name]
        )


def test_captions_stand_above_their_frames_and_keep_to_them():
    layout = side_by_side.Layout(40, 80, ("incomplete", "completed", "truth"))
    made = layout.draw(shot(shape=(40, 80, 3)))
    heads = made[: layout.shape[0] - 40, :, 0] > 128
    for i in range(3):
        assert heads[:, i * 84 : i * 84 + 80].any()
        assert not heads[:, i * 84 + 80 : i * 84 + 84].any()
    # Narrow frames cut them.
    narrow = side_by_side.Layout(40, 20).draw(shot(shape=(40, 20, 3)))
    assert not (narrow[:20, 20:24, 0] > 128).any()


def test_grey_frames_and_frames_after_each_other():
    layout = side_by_side.Layout(HEIGHT, WIDTH)
    first, second = layout.draw(shot(shape=(HEIGHT, WIDTH))), layout.draw(shot(missing=False, shape=(HEIGHT, WIDTH)))
    assert (first[..., 0] == first[..., 2]).all()
    assert (first != second).any() and np.array_equal(first, layout.draw(shot(shape=(HEIGHT, WIDTH))))


# -- the filmstrip
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sd", "truth", "rows"), [(True, True, 5), (True, False, 3), (False, True, 4), (False, False, 2)]
)
def test_a_filmstrip_has_a_row_for_all_that_is_known(sd, truth, rows):
    strip = [shot(t, sd=sd, truth=truth, time=t / 25) for t in range(3)]
    seen = drawn(panel.draw_filmstrip(strip, "of 255"))
    # Rows of frames are parted by white: count where a column through the middle of the first frame changes between the
    # two.
    white = (seen[:, 100] == 255).all(axis=1)
    starts = np.flatnonzero(white[:-1] & ~white[1:])
    lengths = [np.flatnonzero(white[start + 1 :])[:1] for start in starts]
    assert sum(1 for length in lengths if length.size and length[0] > 60) == rows


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("shape", [(HEIGHT, WIDTH), (8, 90, 3), (90, 8, 3)])
def test_filmstrips_of_any_shape(count, shape):
    seen = drawn(panel.draw_filmstrip([shot(t, shape=shape, time=None) for t in range(count)], "in data units"))
    assert seen.shape[1] > 200 * count


def test_filmstrips_of_one_thing_are_the_same():
    assert panel.draw_filmstrip([shot()], "of 255") == panel.draw_filmstrip([shot()], "of 255")
