"""The learning rate of every step: literal values of the plan, and the rates that the engine records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gan_runtime.spec import RunSpec
from gan_runtime.training.schedules import RatePlan, StepRate, batch_factor, rate_plan

pytestmark = pytest.mark.usefixtures("cores")
STEPS_PER_EPOCH = 4


def plan(network: str = "generator", **options: Any) -> RatePlan:
    """Of a run with rate 1 for G and 2 for D, and four steps an epoch."""
    rates = {"learning_rate_generator": 1.0, "learning_rate_discriminator": 0.5}
    return rate_plan(RunSpec.parse({**rates, **options}), network, STEPS_PER_EPOCH)


def rates(plan: RatePlan, steps: int) -> list[float]:
    return [float(plan.rate(step)) for step in range(steps)]


def test_a_constant_rate_stays_what_was_given() -> None:
    assert rates(plan(), 3) == [1.0, 1.0, 1.0]
    assert rates(plan("discriminator"), 3) == [0.5, 0.5, 0.5]


def test_a_cosine_falls_to_nearly_nothing_and_rises_at_once_when_its_cycle_begins() -> None:
    found = rates(plan(learning_rate_schedule="cosine_restarts", restart_epochs=2), 17)
    cycle = [1.0, 0.9619398, 0.8535534, 0.6913417, 0.5, 0.3086583, 0.1464466, 0.0380602]
    assert found == pytest.approx([*cycle, *cycle, 1.0], abs=1e-6)


def test_a_warm_up_ends_at_the_full_rate_with_the_last_step_of_its_epochs() -> None:
    assert rates(plan(warmup_epochs=1), 6) == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0, 1.0])


def test_the_first_cycle_begins_after_the_warm_up() -> None:
    found = rates(plan(warmup_epochs=1, learning_rate_schedule="cosine_restarts", restart_epochs=1), 9)
    assert found == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0, 0.8535534, 0.5, 0.1464466, 1.0], abs=1e-6)


@pytest.mark.parametrize(
    ("scaling", "batch", "reference", "factor"),
    [("none", 512, 64, 1.0), ("linear", 512, 64, 8.0), ("sqrt", 256, 64, 2.0), ("linear", 32, 64, 0.5), ("sqrt", 128, 128, 1.0)],
)
def test_rates_grow_with_the_batch_as_asked(scaling: str, batch: int, reference: int, factor: float) -> None:
    options = {"learning_rate_scaling": scaling, "batch_size_global": batch, "reference_batch": reference}
    assert batch_factor(RunSpec.parse(options)) == pytest.approx(factor)
    assert rates(plan(**options), 1) == pytest.approx([factor])
    assert rates(plan("discriminator", warmup_epochs=1, **options), 1) == pytest.approx([factor * 0.5 / 4])


def test_the_k_updates_of_d_in_a_step_have_one_rate() -> None:
    """Update number 6 of three a step is in step 2."""
    rate = StepRate(plan(warmup_epochs=1), updates_per_step=3, factor=lambda: 0.5)
    assert [float(rate(update)) for update in range(7)] == pytest.approx([0.125] * 3 + [0.25] * 3 + [0.375])


def test_late_steps_are_as_exact_as_early_ones() -> None:
    cosine = RatePlan(1.0, 0, 1_000)
    expected = 0.5 * (1.0 + math.cos(math.pi * 0.123))
    assert float(cosine.rate(np.int64(10_000_123))) == pytest.approx(expected, abs=1e-6)
