"""The rate plan as the device computes it, in float32; test_rates.py tests the plan itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gan_runtime.engines.optimizers import StepRate
from gan_runtime.engines.task import RatePlan

pytestmark = pytest.mark.usefixtures("cores")


def rates(
    plan: RatePlan, updates: int, updates_per_step: int = 1, factor: float = 1.0
) -> list[float]:
    schedule = StepRate(plan, updates_per_step, lambda: factor)
    return [float(schedule(np.int64(update))) for update in range(updates)]


def test_cosine_falls_to_nearly_zero_and_jumps_up_at_each_cycle_start() -> None:
    cycle = [1.0, 0.9619398, 0.8535534, 0.6913417, 0.5, 0.3086583, 0.1464466, 0.0380602]
    assert rates(RatePlan(1.0, 0, 8), 17) == pytest.approx([*cycle, *cycle, 1.0], abs=1e-6)


def test_first_cycle_starts_after_the_last_warmup_step() -> None:
    expected = [0.25, 0.5, 0.75, 1.0, 1.0, 0.8535534, 0.5, 0.1464466, 1.0]
    assert rates(RatePlan(1.0, 4, 4), 9) == pytest.approx(expected, abs=1e-6)


def test_discriminator_updates_of_a_step_share_a_rate_lowered_by_alarms() -> None:
    """With three updates per step, update 6 is in step 2."""
    values = rates(RatePlan(1.0, 4, 0), 7, updates_per_step=3, factor=0.5)
    assert values == pytest.approx([0.125] * 3 + [0.25] * 3 + [0.375])


def test_late_steps_are_as_exact_as_early_ones() -> None:
    schedule = StepRate(RatePlan(1.0, 0, 1_000), 1, lambda: 1.0)
    assert float(schedule(np.int64(10_000_123))) == pytest.approx(
        0.5 * (1.0 + math.cos(math.pi * 0.123)), abs=1e-6
    )
