"""Pix2Pix on both engines: one step of TensorFlow on one replica and of JAX on two, with tiles
cropped, flipped and unrolled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.domains.flows import workload
from tests.support.engines import tf_same_noise
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    assert_equal,
    assert_moves_alike,
    trained,
)
from tests.support.engines.small_frames import small_flows
from tests.support.engines.three_ways import PAIR, rates

pytestmark = pytest.mark.usefixtures("cores")
# Plain SGD, so that weights move by the gradient itself. Replicas drop different values, so dropout
# is off.
OPTIONS: dict[str, Any] = {
    **{"seed": 3, "optimizer": "sgd", **rates(0.1, *PAIR), "ema_decay": 0.9},
    **{
        "tile": 16,
        "dropout": 0.0,
        "weight_l1": 1.0,
        "flip": "vertical",
        "input_noise": 0.05,
        "unrolled": 2,
    },
}


def test_engines_agree_on_a_step_and_two_replicas_match_one(
    make: MakeEngine, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    """The next step, repeated from the state before it, is bit-identical."""
    tf_same_noise.hand_to_engines(monkeypatch)
    data = small_flows(8, later=1)
    engine = make(1, workload.WORKLOAD, data=data, **OPTIONS)
    begin = engine.state()
    shared = {**OPTIONS, "replicas": 2, "batch_norm": "synchronised"}
    numbers, state = jax("stepped", data, shared, begin, "pix2pix")
    of_tensorflow = engine.run(1).values
    assert all(np.isfinite(values).all() for values in of_tensorflow.values())
    assert_close(numbers, of_tensorflow, 1e-5)
    after = engine.state()
    assert_moves_alike(begin, state, after, 1e-3)
    following, end = engine.run(1).values, engine.state()
    engine.load(after)
    assert_equal(engine.run(1).values, following)
    assert_equal(engine.state(), end)
    assert any(
        not np.array_equal(end[name], after[name]) for name in end if name.startswith("average")
    )


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_new_engine_resumes_a_run_exactly(engine: str, make: MakeEngine, jax: JaxProcess) -> None:
    """Covers Adam's moments, the average and dropout."""
    options = {"seed": 3, "tile": 16, "ema_decay": 0.9, "flip": "vertical", "input_noise": 0.05}
    data = small_flows(8)
    if engine == "jax":
        straight, taken_up = jax("resumed", "pix2pix", data, options, 1, 1)
    else:
        first, second = (make(1, workload.WORKLOAD, data=data, **options) for _ in range(2))
        trained(first, 1)
        begin = first.state()
        second.load(begin)
        first.run(1)
        trained(second, 1)
        straight, taken_up = first.state(), second.state()
        assert not np.array_equal(begin["generator/up_0/kernel"], straight["generator/up_0/kernel"])
    assert_equal(taken_up, straight)
