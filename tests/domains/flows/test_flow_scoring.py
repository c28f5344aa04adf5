"""Scores of predicted frames on waves that travel with the stream, with known results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.scores import FrameTimes, RolloutScores, scored
from gan_runtime.engines.tile_grid import TileGrid
from tests.support.stored_films import HEIGHT, PERIOD, SOLVER_STEPS, WIDTH, frame, obstacle

RIGHT = 10.0 / (0.1 * SOLVER_STEPS * PERIOD)  # f D / U


def street(steps: int) -> np.ndarray:
    """True frames, float32 (1 + steps, 32, 48, 3)."""
    return np.stack([frame(step, 120.0) for step in range(1 + steps)]).astype(np.float32)


def measured(
    predicted: np.ndarray, period: float, replay: np.ndarray | None = None, film: Film | None = None
) -> RolloutScores:
    """Scores of a prediction of the street."""
    steps = len(predicted) - 1
    measured_film = film or Film(0, 0, steps, 120.0, SOLVER_STEPS)
    tiles, mask = TileGrid((HEIGHT, WIDTH), (16, 16)), obstacle().astype(np.float32)
    return scored(
        street(steps), predicted, mask, tiles, measured_film, FrameTimes(0.01, 0.02), period, replay
    )


def scores(
    predicted: np.ndarray, period: float = math.nan, film: Film | None = None
) -> dict[str, tuple[float, float]]:
    """Scalar scores by name, each with its reference."""
    return {
        score.name: (score.value, score.baselines.get("reference", math.nan))
        for score in measured(predicted, period, film=film).scores
    }


def test_a_short_rollout_takes_the_true_period_from_the_whole_film() -> None:
    values = scores(street(14), period=PERIOD)
    assert values["period"] == pytest.approx((math.nan, PERIOD), nan_ok=True)
    assert values["strouhal"] == pytest.approx((math.nan, RIGHT), nan_ok=True)
    assert math.isnan(values["strouhal_error"][0])


def test_an_unknown_period_is_measured_from_the_rollout_steps() -> None:
    values = scores(street(60))
    assert values["period"] == pytest.approx((PERIOD, PERIOD), rel=0.005)
    assert values["strouhal"] == pytest.approx((RIGHT, RIGHT), rel=0.005)


def test_a_diverging_model_has_no_means_but_a_horizon() -> None:
    predicted = street(14)
    predicted[4:] = np.nan
    values = scores(predicted, period=PERIOD)
    assert values["horizon"][0] == 3
    for name in (
        "rmse",
        "mae",
        "ssim",
        "psnr",
        "spectrum",
        "enstrophy_ratio",
        "rmse_period",
        "ssim_period",
    ):
        assert math.isnan(values[name][0]), name
        assert not math.isnan(values[name][1]), f"{name} of standing still"


def test_equal_frames_are_excluded_only_from_the_psnr_mean() -> None:
    predicted = street(4)
    predicted[3:] += 0.2
    values = scores(predicted)
    assert values["psnr"][0] == pytest.approx(20.0), (
        "20 log10 of 2 / 0.2, of the two frames that are off"
    )
    assert values["rmse"][0] == pytest.approx(0.1)


def test_each_error_has_a_replay_baseline_for_the_replay_length() -> None:
    """The prediction drifts by 0.01 per step. The replay is off by 0.045 throughout and ends after
    30 steps.
    """
    steps = 40
    truth = street(steps)
    predicted = truth + 0.01 * np.arange(steps + 1, dtype=np.float32)[:, None, None, None]
    by_name = {
        score.name: score for score in measured(predicted, PERIOD, truth[1:31] + 0.045).scores
    }
    assert by_name["horizon_replay"].value == 4
    assert by_name["rmse_period"].value == pytest.approx(0.01 * (PERIOD + 1) / 2, rel=1e-3)
    assert by_name["rmse_period"].baselines.get("replay", math.nan) == pytest.approx(
        0.045, rel=1e-3
    )
    assert math.isnan(by_name["rmse"].baselines.get("replay", math.nan)), "not all steps have one"
    assert not math.isnan(by_name["rmse"].value)
    (rmse,) = (
        score
        for score in measured(predicted, PERIOD, truth[1:31] + 0.045).by_step
        if score.name == "rmse"
    )
    assert rmse.replay[:30] == pytest.approx([0.045] * 30, rel=1e-3)
    assert np.isnan(rmse.replay[30:]).all()


def test_a_full_length_replay_has_its_own_frequency() -> None:
    """The replay plays the street twice as fast."""
    steps = 60
    by_name = {
        score.name: score
        for score in measured(street(steps), PERIOD, street(2 * steps)[2::2]).scores
    }
    assert by_name["period"].baselines.get("replay", math.nan) == pytest.approx(
        PERIOD / 2, rel=0.02
    )
    assert by_name["strouhal_error"].baselines.get("replay", math.nan) == pytest.approx(
        1.0, rel=0.05
    )
    assert by_name["strouhal_error"].value < 0.01
    assert (
        by_name["ssim"].baselines.get("replay", math.nan)
        < by_name["ssim"].value
        == pytest.approx(1.0)
    )


def test_the_strouhal_number_uses_the_obstacle_width_of_the_flow() -> None:
    film = Film(0, 0, 60, 120.0, SOLVER_STEPS, width=14.0)
    assert scores(street(60), film=film)["strouhal"] == pytest.approx(
        (1.4 * RIGHT, 1.4 * RIGHT), rel=0.005
    )
