"""Errors of predicted frames, compared with manually computed values."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.domains.flows import scores


def waves(*lengths: float, amplitude: float = 0.5, height: int = 12, width: int = 48) -> np.ndarray:
    """Sines along the width, (frames, height, width, 1), one frame per wavelength in pixels."""
    x = np.arange(width)
    rows = [
        np.tile(amplitude * np.sin(2.0 * np.pi * x / length), (height, 1)) for length in lengths
    ]
    return np.stack(rows)[..., np.newaxis]


def test_errors_average_pixels_and_channels_per_frame() -> None:
    truth = np.zeros((2, 2, 2, 1), np.float32)
    predicted = truth.copy()
    predicted[0, 0, 0, 0], predicted[1] = 1.0, -0.2
    assert scores.mae(predicted, truth) == pytest.approx([0.25, 0.2])
    assert scores.rmse(predicted, truth) == pytest.approx([0.5, 0.2])
    assert scores.psnr(predicted, truth) == pytest.approx([12.0412, 20.0], abs=1e-4)
    assert scores.psnr(truth, truth).tolist() == [np.inf, np.inf]


def test_half_precision_frames_are_measured_in_double_precision() -> None:
    truth = np.zeros((1, 4, 4, 1), np.float16)
    assert scores.rmse(truth + np.float16(1e-4), truth) == pytest.approx([1e-4], rel=1e-3)


def test_ssim_is_one_for_equal_frames_and_drops_with_a_lower_mean() -> None:
    """For uniform frames a and b it is (2 a b + c) / (a² + b² + c) with c = (0.01 · 2)²:
    0.3004 / 0.3404 for 0.5 and 0.3.
    """
    frames = waves(4.0, 6.0)
    assert scores.ssim(frames, frames) == pytest.approx([1.0, 1.0])
    even = np.full((1, 12, 16, 2), 0.5)
    assert scores.ssim(even, even * 0.6) == pytest.approx([0.3004 / 0.3404], abs=1e-6)
    assert (scores.ssim(0.5 * frames, frames) < 0.9).all()
    assert np.isnan(scores.ssim(frames[:, :8], frames[:, :8])).all(), "smaller than the window"


def test_the_spectrum_error_detects_ten_times_too_little_power() -> None:
    truth = waves(8.0, 12.0)
    assert scores.spectrum_error(truth, truth) == pytest.approx([0.0, 0.0])
    assert scores.spectrum_error(truth / np.sqrt(10.0), truth) == pytest.approx([1.0, 1.0])
    assert scores.spectrum_error(np.roll(truth, 3, axis=2), truth) == pytest.approx(
        [0.0, 0.0], abs=1e-9
    ), "where the waves are has no part in it"
    flat = np.full_like(truth, 0.3)
    assert np.isnan(scores.spectrum_error(truth, flat)).all()


def test_a_wave_has_its_power_in_one_bin() -> None:
    power = scores.power(waves(8.0))
    assert power.shape == (1, 24)
    assert int(power[0].argmax()) == 48 / 8 - 1
    assert power[0].sum() == pytest.approx(12 * (0.5 * 48 / 2) ** 2)


@pytest.mark.parametrize(
    ("error", "still", "expected"),
    [
        ([0.1, 0.2, 0.3], [0.2, 0.2, 0.2], 2),
        ([0.1, 0.1, 0.1], [0.2, 0.2, 0.2], 3),
        ([0.3, 0.1, 0.1], [0.2, 0.2, 0.2], 0),
        ([0.1, np.nan, np.nan], [0.2, 0.2, 0.2], 1),
        ([0.1, 0.1, np.inf], [0.2, 0.2, 0.2], 2),
    ],
)
def test_the_horizon_ends_where_persistence_is_better(
    error: list[float], still: list[float], expected: int
) -> None:
    assert scores.horizon(np.array(error), np.array(still)) == expected
