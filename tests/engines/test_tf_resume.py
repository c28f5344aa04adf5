"""A stopped and resumed run matches an uninterrupted one, with every option that affects the stored
state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.workloads import mlp_gan
from gan_runtime.workloads.contract import Workload
from tests.support.engines.claims import assert_goes_on_where_the_state_stood
from tests.support.engines.parity import HINGE, R3GAN
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_equal,
    copies_by_name,
)
from tests.support.engines.tiny_gan import SPECTRAL_GAN, TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")
# tests/full/engines/test_tf_resume.py covers bfloat16 and options that take long to trace.
LEAVING_TRACES: dict[str, Any] = {
    "ema_decay": 0.9,
    "samples_from": "ema",
    "learning_rate_schedule": "cosine_restarts",
    "restart_epochs": 1,
    "clip_norm": 1.0,
}


@pytest.mark.parametrize(
    ("workload", "replicas", "options", "tolerance"),
    [
        (TINY_GAN, 1, LEAVING_TRACES, 0.0),
        (mlp_gan.WORKLOAD, 2, {"ema_decay": 0.9, "all_reduce_type": "bfloat16"}, 1e-5),
    ],
    ids=["tiny, all layers", "two replicas"],
)
def test_new_engine_resumes_from_a_state(
    make: MakeEngine, workload: Workload, replicas: int, options: dict[str, Any], tolerance: float
) -> None:
    first, second = (make(replicas, workload, **options) for _ in range(2))
    assert_goes_on_where_the_state_stood(first, second, tolerance)


@pytest.mark.parametrize(
    ("workload", "options"), [(TINY_GAN, {**R3GAN, "updates": "together"}), (SPECTRAL_GAN, HINGE)]
)
def test_other_losses_resume_exactly(
    make: MakeEngine, workload: Workload, options: dict[str, Any]
) -> None:
    first, second = (make(1, workload, **options) for _ in range(2))
    assert_goes_on_where_the_state_stood(first, second, 0.0)


def test_state_of_eight_replicas_round_trips_through_one(
    make: MakeEngine,
) -> None:
    options = {"ema_decay": 0.9, "precision": "mixed_float16", "momentum": 0.9, "optimizer": "sgd"}
    eight, single, back = (make(replicas, **options) for replicas in (8, 1, 8))
    eight.slow_down(0.5)
    state = eight.state()
    marked = {
        name: (array + 1).astype(array.dtype) for name, array in state.items()
    }  # no value matches a new engine
    assert marked["rate_factor"] == 1.5
    assert {name.split("/")[0] for name in marked} == {
        "average",
        "discriminator",
        "generator",
        "optimizer_discriminator",
        "optimizer_generator",
        "rate_factor",
        "step",
    }
    assert sum(name.endswith("dynamic_scale") for name in marked) == 2
    single.load(marked)
    assert_equal(single.state(), marked)
    back.load(single.state())
    assert_equal(back.state(), marked)
    for name, values in copies_by_name(back).items():
        assert len(values) == 8, name
        assert all(np.array_equal(value, marked[name]) for value in values), name
