"""Scores of predicted frames on waves that run with the stream, of which the answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gan_runtime.data.films import Film
from gan_runtime.jobs.flow_scoring import Times, scored
from gan_runtime.tiling.division import Division
from tests.stored_films import HEIGHT, PERIOD, SOLVER_STEPS, WIDTH, frame, obstacle

RIGHT = 10.0 / (0.1 * SOLVER_STEPS * PERIOD)  # f D / U


def street(steps: int) -> np.ndarray:
    """float32 (1 + steps, 32, 48, 3)."""
    return np.stack([frame(step, 120.0) for step in range(1 + steps)]).astype(np.float32)


def scores(predicted: np.ndarray, period: float = math.nan) -> dict[str, tuple[float, float]]:
    """Single numbers of a prediction beside the street."""
    steps = len(predicted) - 1
    tiles, film = Division((HEIGHT, WIDTH), (16, 16)), Film(0, 0, steps, 120.0, SOLVER_STEPS)
    mask = obstacle().astype(np.float32)
    found = scored(street(steps), predicted, mask, tiles, film, Times(0.01, 0.02), period)
    return {one.name: (one.value, one.reference) for one in found.scores}


def test_the_whole_film_says_how_fast_the_true_flow_beats_where_the_steps_are_too_few_to_tell() -> None:
    found = scores(street(14), period=PERIOD)
    assert found["period"] == pytest.approx((math.nan, PERIOD), nan_ok=True)
    assert found["strouhal"] == pytest.approx((math.nan, RIGHT), nan_ok=True)
    assert math.isnan(found["strouhal_error"][0])


def test_a_film_of_which_no_period_is_known_is_told_by_the_steps() -> None:
    found = scores(street(60))
    assert found["period"] == pytest.approx((PERIOD, PERIOD), rel=0.005)
    assert found["strouhal"] == pytest.approx((RIGHT, RIGHT), rel=0.005)


def test_a_model_that_runs_away_has_no_mean_and_a_horizon_where_it_did() -> None:
    predicted = street(14)
    predicted[4:] = np.nan
    found = scores(predicted, period=PERIOD)
    assert found["horizon"][0] == 3
    for name in ("rmse", "mae", "ssim", "psnr", "spectrum", "enstrophy_ratio", "rmse_period", "ssim_period"):
        assert math.isnan(found[name][0]), name
        assert not math.isnan(found[name][1]), f"{name} of standing still"


def test_equal_frames_are_left_out_of_the_mean_of_psnr_alone() -> None:
    predicted = street(4)
    predicted[3:] += 0.2
    found = scores(predicted)
    assert found["psnr"][0] == pytest.approx(20.0), "20 log10 of 2 / 0.2, of the two frames that are off"
    assert found["rmse"][0] == pytest.approx(0.1)
