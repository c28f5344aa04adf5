"""The learning rates and loss scales recorded at each step match the plan, before and after a
resume.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.engines.task import rate_plan
from tests.support.engines.small_engines import MakeEngine, Numbers, trained

pytestmark = pytest.mark.usefixtures("cores")
WARM_COSINE: dict[str, Any] = {
    "learning_rate_schedule": "cosine_restarts",
    "restart_epochs": 2,
    "warmup_epochs": 1,
    "learning_rate_scaling": "linear",
    "reference_batch": 4,
    "updates": "in_turn",
    "discriminator_steps": 2,
    "learning_rate_discriminator": 3e-4,
}


def test_recorded_rates_match_the_plan_after_alarms_and_a_resume(
    make: MakeEngine,
) -> None:
    """Two batches of 8 per step and 40 images: 2 steps per epoch, so cycles of 4 steps after 2 of
    warm-up.
    """
    first, second = make(2, **WARM_COSINE), make(1, **WARM_COSINE)
    rates: list[Numbers] = [trained(first, 1, 4)]
    first.slow_down(0.5)
    rates.append(first.run(2).values)
    second.load(first.state())
    rates.append(trained(second, 4))
    second.slow_down(0.5)
    rates.append(second.run(1).values)
    factors = np.repeat([1.0, 0.5, 0.25], [5, 6, 1])
    for network, initial in (("generator", 1e-4), ("discriminator", 3e-4)):
        plan = rate_plan(first.spec, network, steps_per_epoch=2)
        rate_curves = plan.rate(np.arange(12.0), np)
        assert rate_curves[[0, 1, 2, 4, 6]] == pytest.approx(
            2.0 * initial * np.array([0.5, 1.0, 1.0, 0.5, 1.0]), rel=1e-5
        )
        recorded = np.concatenate([numbers[f"learning_rate_{network}"] for numbers in rates])
        assert recorded == pytest.approx(rate_curves * factors, rel=1e-5)


def test_alarm_halves_the_weight_updates(make: MakeEngine) -> None:
    name, moved = "generator/generator/hidden/kernel", {}
    for factor in (1.0, 0.5):
        engine = make(1, optimizer="sgd", learning_rate_generator=0.1)
        engine.slow_down(factor)
        before = engine.state()[name]
        trained(engine, 1)
        moved[factor] = engine.state()[name] - before
    assert np.abs(moved[0.5] - 0.5 * moved[1.0]).max() < 1e-7
    assert np.abs(moved[1.0]).max() > 1e-5


def test_loss_scale_growth_is_recorded(make: MakeEngine) -> None:
    """After 2000 steps without overflow, which a loaded state simulates, the scale doubles. The
    step itself used the old one.
    """
    engine = make(2, precision="mixed_float16")
    state = engine.state()
    counters = [name for name in state if name.endswith("step_counter")]
    assert len(counters) == 2
    engine.load(state | {name: np.asarray(1_998, state[name].dtype) for name in counters})
    numbers = trained(engine, 4)
    for network in ("generator", "discriminator"):
        assert numbers[f"loss_scale_{network}"].tolist() == [32_768.0, 32_768.0, 65_536.0, 65_536.0]
