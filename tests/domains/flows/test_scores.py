"""Scores of frames with known results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gan_runtime.domains.flows import lattice as flow_frames
from gan_runtime.domains.flows import scores
from gan_runtime.domains.flows.evaluation import USUAL_STEPS
from gan_runtime.domains.flows.fields import DIAMETER
from gan_runtime.domains.flows.lattice import INFLOW

FREE = np.zeros((40, 96), bool)


def film(ux: np.ndarray, uy: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """Frames (K, height, width, 3) of ux / U, uy / U and ω D / U."""
    return flow_frames.values(ux * INFLOW, uy * INFLOW, turning * INFLOW / DIAMETER)


@pytest.mark.parametrize("period", [12.3, 23.7, 25.0, 31.4])
@pytest.mark.parametrize("periods", [3, 5, 10])
@pytest.mark.parametrize("phase", [0.0, 0.9, 2.5])
def test_shedding_period_of_three_periods_is_exact_to_half_a_percent(
    period: float, periods: int, phase: float
) -> None:
    """The signal has a harmonic, as a vortex street does, and a mean other than 0."""
    turns = 2 * np.pi * np.arange(round(period * periods)) / period + phase
    signal = 0.3 + 0.7 * np.sin(turns) + 0.15 * np.sin(2 * turns + 1.0)
    assert scores.shedding_period(signal) == pytest.approx(period, rel=0.005)


def test_faint_or_aperiodic_signal_has_no_period() -> None:
    assert math.isnan(scores.shedding_period(np.zeros(100)))
    assert math.isnan(scores.shedding_period(0.005 * np.sin(np.arange(200) / 4)))
    assert math.isnan(scores.shedding_period(np.array([0.0, 1.0, np.nan, 1.0, 0.0])))
    assert math.isnan(scores.shedding_period(np.linspace(0.0, 1.0, 100))), (
        "a signal that never comes back"
    )


@pytest.mark.parametrize("period", [20.0, 24.7, 25.0, 28.3, 33.0])
def test_usual_steps_suffice_for_the_period_of_every_street(
    period: float,
) -> None:
    """Periods of the default data sets are about 25 frames. Half as many steps gave no period for
    these and slower ones.
    """
    signal = 0.5 * np.sin(2 * np.pi * np.arange(1 + USUAL_STEPS) / period + 0.4)
    assert scores.shedding_period(signal) == pytest.approx(period, rel=0.005)


def test_strouhal_number_is_per_passage_of_the_diameter() -> None:
    """A period of 25 frames of 24 steps: f D / U = 10 / (600 · 0.1)."""
    signal = np.sin(2 * np.pi * np.arange(250) / 25.0)
    assert scores.strouhal(1.0 / scores.shedding_period(signal), 24) == pytest.approx(
        1 / 6, rel=1e-3
    )


@pytest.mark.parametrize(("height", "width", "column"), [(80, 192, 68), (40, 96, 34)])
def test_probe_is_on_the_centerline_three_diameters_downstream(
    height: int, width: int, column: int
) -> None:
    uy = np.zeros((2, height, width))
    uy[1, height // 2 - 1 : height // 2 + 1, column] = 0.4, 0.6
    assert scores.probe_velocity(film(np.ones_like(uy), uy, np.zeros_like(uy))) == pytest.approx(
        [0.0, 0.5], abs=1e-6
    )


def test_enstrophy_is_half_the_squared_vorticity_in_the_fluid() -> None:
    turning = np.full((2, 40, 96), [[[2.0]], [[4.0]]])
    obstacle = FREE.copy()
    obstacle[:20] = True
    turning[:, :20] = 5.0
    still = np.zeros_like(turning)
    assert scores.enstrophy(film(still, still, turning), obstacle) == pytest.approx(
        [2.0, 8.0], rel=1e-5
    )


def test_divergence_counts_sources_in_the_fluid_only() -> None:
    """ux = 0.01 x and uy = 0.02 y per pixel of 1/5 diameter give 0.03 · 5. Rotation and shear add
    nothing.
    """
    down, right = np.mgrid[0:40, 0:96].astype(float)
    growing = film(0.01 * right[None], -0.02 * down[None], 0 * right[None])
    assert scores.divergence(growing, FREE) == pytest.approx([0.15], rel=1e-4)
    turning = film(0.02 * down[None], 0.01 * right[None] - 0.5, 0 * right[None])
    assert scores.divergence(turning, FREE) == pytest.approx([0.0], abs=1e-5)
    walled, jump = FREE.copy(), growing.copy()
    walled[10:20, 10:20], jump[:, 10:20, 10:20, 0] = True, 1.0
    assert scores.divergence(jump, walled) == pytest.approx([0.15], rel=1e-4)
