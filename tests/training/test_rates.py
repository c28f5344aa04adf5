"""Learning rates over the steps of a run: the Launch page draws the rates that the trainer uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.engines.task import RatePlan, batch_factor, rate_curves, rate_plan
from gan_runtime.spec import RunSpec

COSINE = {"learning_rate_schedule": "cosine_restarts", "restart_epochs": 2}


def rates(steps: list[int], **options: Any) -> list[float]:
    """The generator's rates in a run with 10 steps per epoch."""
    plan = rate_plan(
        RunSpec.parse({"learning_rate_generator": 0.4, **options}), "generator", steps_per_epoch=10
    )
    return [float(value) for value in plan.rate(np.array(steps, float), np) * np.ones(len(steps))]


def test_a_constant_rate_is_the_option() -> None:
    assert rates([0, 7, 1000]) == [0.4, 0.4, 0.4]


@pytest.mark.parametrize(
    ("warmup_steps", "cycle_steps", "constant"),
    [(0, 0, True), (3, 0, False), (0, 3, False), (3, 3, False)],
)
def test_plan_knows_whether_its_rate_is_constant(
    warmup_steps: int, cycle_steps: int, constant: bool
) -> None:
    assert RatePlan(0.4, warmup_steps, cycle_steps).is_constant is constant


def test_warmup_grows_linearly_and_then_stays() -> None:
    assert rates([0, 4, 9, 10, 50], warmup_epochs=1) == pytest.approx([0.04, 0.2, 0.4, 0.4, 0.4])


def test_cosine_falls_to_nearly_zero_and_restarts() -> None:
    # Cycles of 20 steps: the full rate, half of it after a quarter turn, zero just before the
    # restart.
    assert rates([0, 10, 20, 30], **COSINE) == pytest.approx([0.4, 0.2, 0.4, 0.2])
    assert rates([19], **COSINE)[0] == pytest.approx(0.4 * 0.5 * (1 + np.cos(np.pi * 0.95)))


def test_cycles_start_after_the_warmup() -> None:
    assert rates([9, 10, 20, 30], warmup_epochs=1, **COSINE) == pytest.approx([0.4, 0.4, 0.2, 0.4])


@pytest.mark.parametrize(("scaling", "factor"), [("none", 1.0), ("linear", 4.0), ("sqrt", 2.0)])
def test_rates_scale_with_the_batch(scaling: str, factor: float) -> None:
    spec = RunSpec.parse(
        {"batch_size_global": 256, "reference_batch": 64, "learning_rate_scaling": scaling}
    )
    assert batch_factor(spec) == factor
    assert rate_plan(spec, "discriminator", 10).base == pytest.approx(1e-4 * factor)


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(
    "options", [{}, {"warmup_epochs": 2}, COSINE, {"warmup_epochs": 1, **COSINE}]
)
def test_the_trainer_and_the_launch_page_compute_the_same_rates(options: dict[str, Any]) -> None:
    from keras import ops

    from gan_runtime.engines.optimizers import StepRate

    plan = rate_plan(RunSpec.parse(options), "generator", steps_per_epoch=28)
    steps = np.arange(0, 200, 7)
    rates = plan.rate(steps.astype(float), np) * np.ones(len(steps))
    schedule = StepRate(plan, 1, lambda: ops.convert_to_tensor(1.0, "float32"))
    trained = [
        float(ops.convert_to_numpy(schedule(ops.convert_to_tensor(step, "int64"))))
        for step in steps
    ]
    assert trained == pytest.approx(list(rates), rel=1e-4, abs=1e-9)


@pytest.mark.usefixtures("cores")
def test_discriminator_with_several_updates_keeps_the_generators_pace() -> None:
    from keras import ops

    from gan_runtime.engines.optimizers import StepRate

    schedule = StepRate(
        RatePlan(1.0, warmup_steps=10, cycle_steps=0),
        2,
        lambda: ops.convert_to_tensor(0.5, "float32"),
    )
    assert [
        float(schedule(ops.convert_to_tensor(update, "int64"))) for update in (0, 1, 2, 19)
    ] == pytest.approx([0.05, 0.05, 0.1, 0.5])


def test_rate_chart_covers_the_run_and_both_sides_of_a_restart() -> None:
    spec = RunSpec.parse(
        {"learning_rate_generator": 0.4, "learning_rate_discriminator": 0.2, "epochs": 4, **COSINE}
    )
    curves = rate_curves(spec, steps_per_epoch=100, points=5)
    assert list(curves["epoch"]) == [0.0, 1.0, 1.99, 2.0, 2.99, 3.99]
    assert list(curves["generator"]) == pytest.approx([0.4, 0.2, 0.0, 0.4, 0.2, 0.0], abs=0.005)
    assert list(curves["discriminator"] * 2) == pytest.approx(list(curves["generator"]))


def test_run_that_ends_within_its_warmup_is_drawn_to_its_end() -> None:
    curves = rate_curves(
        RunSpec.parse({"epochs": 1, "warmup_epochs": 2}), steps_per_epoch=10, points=2
    )
    assert (list(curves["epoch"]), list(curves["generator"])) == (
        [0.0, 0.9],
        pytest.approx([0.05e-4, 0.5e-4]),
    )
