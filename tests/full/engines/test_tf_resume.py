"""A stopped and resumed run matches an uninterrupted one, with all options that affect the state
combined.
"""

from __future__ import annotations

from typing import Any

import pytest

from gan_runtime.workloads import mlp_gan
from gan_runtime.workloads.contract import Workload
from tests.support.engines.claims import assert_goes_on_where_the_state_stood
from tests.support.engines.small_engines import (
    MakeEngine,
)
from tests.support.engines.tiny_gan import TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")
EVERYTHING: dict[str, Any] = {
    "ema_decay": 0.9,
    "samples_from": "ema",
    "learning_rate_schedule": "cosine_restarts",
    "restart_epochs": 1,
    "updates": "in_turn",
    "discriminator_steps": 2,
    "r1_weight": 1.0,
    "clip_norm": 1.0,
}


@pytest.mark.parametrize(
    ("workload", "replicas", "options", "tolerance"),
    [
        (TINY_GAN, 1, EVERYTHING | {"precision": "mixed_bfloat16"}, 0.0),
        (mlp_gan.WORKLOAD, 2, EVERYTHING | {"all_reduce_type": "bfloat16", "r1_weight": 0.0}, 1e-5),
    ],
    ids=["tiny, all layers", "two replicas"],
)
def test_new_engine_resumes_from_a_state(
    make: MakeEngine, workload: Workload, replicas: int, options: dict[str, Any], tolerance: float
) -> None:
    first, second = (make(replicas, workload, **options) for _ in range(2))
    assert_goes_on_where_the_state_stood(first, second, tolerance)
