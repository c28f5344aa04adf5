"""3DGAN on both engines: one step, with the authors' networks and with two replicas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.domains.showers import workload
from tests.support.engines import tf_same_noise
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close_in_share,
    assert_equal,
    assert_moves_alike,
)
from tests.support.engines.small_showers import simulated_showers, small_showers
from tests.support.engines.three_ways import PAIR, rates, taken_up

pytestmark = pytest.mark.usefixtures("cores")
# A bias before batch norm moves by a difference of large sums: its error exceeds that of other
# weights, but not that of a missing share of a batch.
BIASES = 0.1
# Untrained, and with batch norm over one shower, the authors' generator deposits a hundred times
# too much.
DIMMED = 0.01


def options_of(rate: float, **more: Any) -> dict[str, Any]:
    """Plain SGD, so that weights move by the gradient itself; losses of a hundred and more need
    small rates.
    """
    return {"seed": 3, "optimizer": "sgd", **rates(rate, *PAIR), "dropout": 0.0, **more}


def test_engines_agree_on_a_step_of_the_authors_networks(
    make: MakeEngine, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    """Uses a batch of one shower.

    At this rate an update is lost in rounding, so that each phase is compared at the same weights.

    TensorFlow's batch norm sums 100,000 numbers of a channel sequentially, which gives a variance
    an error of 2 to 4 in 10,000 (against float64; JAX: 1 in a million), and the generator has five
    of them in sequence.
    """
    tf_same_noise.hand_to_engines(monkeypatch)
    data = simulated_showers(2)
    options = options_of(1e-12, size="full", batch_size_global=1)
    engine = make(1, workload.WORKLOAD, data=data, **options)
    begin = engine.state()
    begin["generator/conv_7/kernel"] *= DIMMED
    engine.load(begin)
    numbers, _ = jax("stepped", data, options, begin)
    of_tensorflow = engine.run(1).values
    assert all(np.isfinite(values).all() for values in of_tensorflow.values())
    assert 1.0 < of_tensorflow["deposit_error"][0] < 100.0
    assert_close_in_share(numbers, of_tensorflow, 1e-3)


def test_engines_agree_on_one_and_two_replicas_and_resume_exactly(
    make: MakeEngine, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess, tmp_path: Path
) -> None:
    """TensorFlow on one replica, JAX on two, with batch norm over both, and the average of G; one
    shower of the batch is empty.

    On both engines, a new engine loads a checkpoint and computes the following steps bit for bit.
    """
    tf_same_noise.hand_to_engines(monkeypatch)
    data, options = small_showers(8), options_of(1e-6, latent_size=8, ema_decay=0.9)
    engine, fresh = (make(1, workload.WORKLOAD, data=data, **options) for _ in range(2))
    begin = engine.state()
    shared = {**options, "replicas": 2, "batch_norm": "synchronised"}
    of_jax = jax("taken_up", data, shared, begin, str(tmp_path / "jax"))
    of_tensorflow = taken_up(engine, fresh, tmp_path / "tensorflow")
    assert all(np.isfinite(values).all() for values in of_tensorflow.first.numbers.values())
    assert_close_in_share(of_jax.first.numbers, of_tensorflow.first.numbers, 1e-5)
    assert_moves_alike(begin, of_jax.first.state, of_tensorflow.first.state, BIASES)
    for result in (of_tensorflow, of_jax):
        assert_equal(result.resumed.numbers, result.straight.numbers)
        assert_equal(result.resumed.state, result.straight.state)
        averaged = [name for name in result.first.state if name.startswith("average")]
        assert any(
            not np.array_equal(result.resumed.state[name], result.first.state[name])
            for name in averaged
        )


def test_engines_accumulate_batch_parts_like_replicas(
    make: MakeEngine, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    """Batch norm covers each part, as on each replica, so both compute the same first step. Over
    the whole batch, D's losses would differ by a tenth or more, which a bound of 1 in 10,000
    detects.
    """
    tf_same_noise.hand_to_engines(monkeypatch)
    data, options = small_showers(8), options_of(1e-6, latent_size=8)
    parts = {**options, "accumulation_steps": 2}
    engine = make(1, workload.WORKLOAD, data=data, **parts)
    begin = engine.state()
    of_parts, state = jax("stepped", data, parts, begin)
    of_replicas, _ = jax("stepped", data, {**options, "replicas": 2}, begin)
    of_tensorflow = engine.run(1).values
    assert_close_in_share(of_parts, of_tensorflow, 1e-4)
    assert_close_in_share(of_replicas, of_tensorflow, 1e-4)
    assert_moves_alike(begin, state, engine.state(), BIASES)
