import numpy as np
import pytest

from tdc_cli import metrics
from tdc_cli.run import threads
from tdc_cli.run.streams import stream

TRUTH = stream(0, 9).integers(1, 255, (16, 12, 3)).astype(np.uint8)


def test_relative_error_by_hand():
    assert metrics.rre(np.array([3.0, 4.0]), np.array([3.0, 9.0])) == pytest.approx(1.0)
    assert metrics.rre(np.zeros(3), np.ones(3)) is None


def test_unsigned_integers_do_not_wrap():
    assert metrics.psnr(np.uint8([0]), np.uint8([255]), 255) == pytest.approx(0)
    assert metrics.rre(np.uint8([10]), np.uint8([20])) == pytest.approx(1)


def test_relative_error_is_the_same_whatever_the_number_of_threads():
    truth, estimate = stream(0, 9).standard_normal((2, 300_000))
    found = set()
    for count in (1, 2):
        with threads.limited(count):
            found.add(metrics.rre(truth, estimate))
    assert len(found) == 1


def test_psnr_pools_the_squared_error():
    estimate = TRUTH.astype(float)
    estimate[0, 0, 0] += 16
    assert metrics.psnr(TRUTH, estimate, 255) == pytest.approx(10 * np.log10(255**2 / (256 / TRUTH.size)))
    assert metrics.psnr(TRUTH, TRUTH, 255) is None


def test_ssim_is_one_for_equal_pictures_and_none_for_small_ones():
    assert metrics.ssim(TRUTH, TRUTH, 255) == pytest.approx(1)
    assert metrics.ssim(TRUTH[..., 0], TRUTH[..., 0], 255) == pytest.approx(1)
    assert metrics.ssim(TRUTH[:6], TRUTH[:6], 255) is None


@pytest.mark.parametrize("shape", [(137, 300), (270, 134, 3)])
def test_ssim_of_a_picture_of_several_tiles_is_that_of_scikit_image(shape):
    """Some of them are the same in both pictures."""
    from skimage.metrics import structural_similarity

    truth = stream(0, 7).integers(0, 256, shape, dtype=np.uint8)
    estimate = truth.copy()
    estimate[120:136, 100:131] = 90
    axis = {"channel_axis": 2} if len(shape) == 3 else {}
    wanted = structural_similarity(truth.astype(float), estimate.astype(float), data_range=255, **axis)
    assert metrics.ssim(truth, estimate, 255) == pytest.approx(wanted, rel=1e-13)


def test_coverage_of_a_normal_law():
    draws = stream(0, 8).standard_normal(20_000)
    assert metrics.coverage(draws, np.zeros_like(draws), np.ones_like(draws)) == pytest.approx(0.9, abs=0.01)
    assert metrics.coverage(np.empty(0), np.empty(0), np.empty(0)) is None


def test_missing_entries_are_measured_apart():
    observed = np.ones(TRUTH.shape, dtype=bool)
    observed[:4] = False
    estimate = TRUTH.astype(float)
    estimate[:4] += 2
    measured, reasons = metrics.compare(TRUTH, estimate, observed, 255)
    assert measured["missing"]["psnr"] == pytest.approx(20 * np.log10(255 / 2))
    assert measured["all"]["psnr"] == pytest.approx(20 * np.log10(255 / 2) + 10 * np.log10(4))
    assert measured["missing"]["ssim"] is None
    assert measured["incomplete"]["rre"] == pytest.approx(metrics.rre(TRUTH, np.where(observed, TRUTH, 0)))
    assert reasons == []


def test_what_has_no_value_has_a_reason():
    everything = np.ones((5, 5), dtype=bool)
    measured, reasons = metrics.compare(np.ones((5, 5)), np.ones((5, 5)), everything, 0.0)
    assert measured["all"] == {"rre": 0.0, "psnr": None, "ssim": None, "mae": 0.0}
    assert any("7x7" in r for r in reasons) and any("range is zero" in r for r in reasons)
    measured, reasons = metrics.compare(TRUTH, TRUTH, np.ones(TRUTH.shape, dtype=bool), 255)
    assert measured["all"]["psnr"] is None and any("identical" in r for r in reasons)


@pytest.mark.parametrize("size", [1.0, 1e200])
def test_a_clip_is_measured_as_its_frames_together(size):
    """Values whose squares no number holds are measured as others are."""
    frames = np.stack([np.roll(TRUTH, k, axis=0) for k in range(3)]) / 255
    estimates = np.clip(frames + stream(0, 7).normal(0, 0.1, frames.shape), 0, 1)
    observed = stream(0, 6).random(frames.shape) < 0.7
    clip = metrics.ClipMeasures(2 * size, size)
    for number, of_frame in enumerate(zip(frames * size, estimates * size, observed)):
        clip.add(number, *of_frame)
    measured = clip.result()[0]
    for key, made, of in (
        ("all", estimates, np.ones_like(observed)),
        ("missing", estimates, ~observed),
        ("incomplete", np.where(observed, estimates, 0), np.ones_like(observed)),
    ):
        error = (frames - made)[of]
        assert measured[key]["psnr"] == pytest.approx(10 * np.log10(4 / (error**2).mean())), key
        assert measured[key]["rre"] == pytest.approx(np.sqrt((error**2).sum() / (frames[of] ** 2).sum())), key
        assert measured[key]["mae"] == pytest.approx(size * np.abs(error).mean()), key
    one = metrics.compare(frames[0] * size, estimates[0] * size, observed[0], 2 * size)[0]["all"]
    assert one["mae"] == pytest.approx(size * np.abs(frames[0] - estimates[0]).mean())
    assert one["psnr"] == pytest.approx(measured["frames"][0]["psnr"])
