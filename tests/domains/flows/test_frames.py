"""Frames of a flow: fixed scales, conversion in both directions, and orientation."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.domains.flows import lattice
from gan_runtime.domains.flows.fields import (
    DIAMETER,
    FLOW_CHANNELS,
    OBSTACLE,
    ODD_CHANNELS,
    UX,
    UY,
    VORTICITY,
)
from gan_runtime.domains.flows.lattice import INFLOW, Lattice, circle, square


def test_values_round_trip_with_fixed_scales() -> None:
    random = np.random.default_rng(0)
    ux = INFLOW * random.uniform(-1.0, 2.0, (2, 5, 7))
    uy = INFLOW * random.uniform(-1.0, 1.0, (2, 5, 7))
    turning = INFLOW / DIAMETER * random.uniform(-5.0, 5.0, (2, 5, 7))
    values = lattice.values(ux, uy, turning)
    assert (values.shape, values.dtype) == ((2, 5, 7, 3), np.float32)
    assert abs(values).max() <= 1.0
    physical = lattice.physical(values)
    assert physical[..., UX] == pytest.approx(ux / INFLOW, abs=1e-5)
    assert physical[..., UY] == pytest.approx(uy / INFLOW, abs=1e-5)
    assert physical[..., VORTICITY] == pytest.approx(turning * DIAMETER / INFLOW, abs=1e-5)


def test_channels_match_their_names_and_the_obstacle_is_last() -> None:
    assert [FLOW_CHANNELS[place] for place in (UX, UY, VORTICITY)] == ["ux", "uy", "vorticity"]
    moving, obstacle = np.zeros((2, 2, 3), np.float32), np.eye(2, dtype=bool)
    np.testing.assert_array_equal(lattice.source(moving, obstacle)[..., OBSTACLE], obstacle)


@pytest.mark.parametrize(
    ("ux", "uy", "turning", "value"),
    [
        (0.0, 0.0, 0.0, (-1 / 3, 0.0, 0.0)),  # at rest
        (0.1, 0.0, 0.0, (1 / 3, 0.0, 0.0)),  # the inflow
        (0.2, -0.1, 0.05, (1.0, -1.0, 1.0)),  # the ends of the scale
        (0.5, 0.3, -9.0, (1.0, 1.0, -1.0)),  # beyond the ends
    ],
)
def test_known_values_are_scaled_and_clipped(
    ux: float, uy: float, turning: float, value: tuple[float, ...]
) -> None:
    fields = (np.full((1, 1), number) for number in (ux, uy, turning))
    assert lattice.values(*fields)[0, 0] == pytest.approx(value, abs=1e-6)


def test_float16_velocity_error_is_below_a_thousandth_of_the_inflow() -> None:
    values = np.linspace(-1.0, 1.0, 999, dtype=np.float32).reshape(1, 1, 333, 3)
    off = abs(lattice.physical(values.astype(np.float16)) - lattice.physical(values))
    assert off[..., :2].max() < 1e-3
    assert off[..., 2].max() < 2.5e-3


def test_counterclockwise_rotation_has_positive_vorticity() -> None:
    """A rigid rotation u = Ω (-y, x) has the vorticity 2 Ω. y points up, and the first row is the
    top.
    """
    down, right = np.mgrid[0:6, 0:8].astype(float)
    ux, uy = 0.3 * down, 0.3 * right
    assert lattice.vorticity(ux, uy) == pytest.approx(np.full((6, 8), 0.6))


def test_odd_channels_change_sign_when_flipped_vertically() -> None:
    """With these signs, a flipped flow is the flow past the flipped obstacle."""
    lower, upper = (Lattice(100.0, square(shift=shift), kick=0.0) for shift in (4.0, -4.0))
    for flow in (lower, upper):
        flow.advance(300)
    turned = lattice.of(lower)[::-1].copy()
    turned[..., ODD_CHANNELS] *= -1.0
    assert abs(turned[..., 1]).max() > 0.1
    assert turned == pytest.approx(lattice.of(upper), abs=1e-4)


def test_nothing_moves_in_the_obstacle() -> None:
    flow = Lattice(100.0, circle(), kick=0.5)
    flow.advance(50)
    physical = lattice.physical(lattice.of(flow))[flow.obstacle]
    assert abs(physical).max() < 1e-6
    with_it = lattice.source(lattice.of(flow)[None], flow.obstacle)
    assert with_it.shape == (1, 80, 192, 4)
    assert np.array_equal(with_it[0, ..., 3] == 1.0, flow.obstacle)


def test_halving_averages_four_pixels() -> None:
    fine = np.arange(24.0).reshape(1, 4, 6, 1)
    assert lattice.halved(fine)[0, ..., 0].tolist() == [[3.5, 5.5, 7.5], [15.5, 17.5, 19.5]]
    assert lattice.diameter_pixels(96) == 5.0
