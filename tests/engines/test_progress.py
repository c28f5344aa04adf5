"""The step number and the progress of training in losses, layers and samples, on both engines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gan_runtime.workloads import step_context
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import MakeEngine, random_images, trained
from tests.support.engines.tiny_gan import SCHEDULED_GAN

IMAGES = random_images(40, 8)
STEPS = 10  # two epochs of five
CALLS = (1, 4)
OPTIONS: dict[str, Any] = {
    "epochs": 2,
    "replicas": 2,
    "updates": "in_turn",
    "accumulation_steps": 2,
}


def assert_told(numbers: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> None:
    """Checks the numbers after five of ten steps."""
    assert numbers["step_number"].tolist() == [0, 1, 2, 3, 4]
    assert numbers["share_done"] == pytest.approx(np.arange(5) / STEPS, rel=1e-6)
    assert outputs["share"] == pytest.approx(np.full(64, 0.5))


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("options", [{}, {"loop": "keras", "replicas": 1}])
def test_tensorflow_reports_step_and_progress_from_one_graph(
    make: MakeEngine, options: dict[str, Any]
) -> None:
    engine = make(workload=SCHEDULED_GAN, images=IMAGES, **{**OPTIONS, **options})
    assert_told(trained(engine, *CALLS), engine.sample())


@pytest.mark.usefixtures("cores")
def test_compiled_step_is_traced_once_for_all_steps(make: MakeEngine) -> None:
    engine = make(1, SCHEDULED_GAN, IMAGES, epochs=2, xla="jit")
    assert_told(trained(engine, *CALLS), engine.sample())
    (gradients,) = engine.step.gradient_functions
    assert gradients.experimental_get_tracing_count() == 1  # type: ignore[attr-defined]


def test_jax_reports_step_and_progress(jax: JaxProcess) -> None:
    numbers, outputs = jax("trained_and_shown", "scheduled", IMAGES, CALLS, {"epochs": 2})
    assert_told(numbers, outputs)


@pytest.mark.usefixtures("cores")
def test_fading_layer_trains_more_with_each_step(make: MakeEngine) -> None:
    options = {"optimizer": "sgd", "epochs": 2}
    engine = make(1, SCHEDULED_GAN, IMAGES, **options)
    name = "discriminator/fading/kernel"
    states = [engine.state()]
    for _ in range(3):
        engine.run(1)
        states.append(engine.state())
    moves = [float(np.linalg.norm(new[name] - old[name])) for old, new in pairwise(states)]
    assert moves[0] == 0.0, "left out in the first step"
    assert 0.0 < moves[1] < moves[2]


def test_progress_outside_a_step_is_complete() -> None:
    assert float(step_context.progress().share) == 1.0
    assert float(step_context.TrainingProgress(12, 10).share) == 1.0
    assert float(step_context.TrainingProgress(3, 12).share) == 0.25
