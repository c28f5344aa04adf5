"""Keras' built-in loop and the custom one: from the same weights, rows and noise, both give
bit-identical results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gan_runtime.engines.contract import Arrays
from gan_runtime.records.home import Home
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.training import loop
from tests.support.engines.small_engines import MakeEngine, assert_equal, tf_engine, trained
from tests.support.engines.tiny_gan import TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")
# Options that affect the stored state.
OPTIONS: dict[str, Any] = {
    "ema_decay": 0.9,
    "learning_rate_schedule": "cosine_restarts",
    "restart_epochs": 1,
}


def longest_move(before: Arrays, after: Arrays) -> float:
    """The largest change of a weight."""
    return max(
        float(np.abs(after[name] - before[name]).max()) for name in before if "kernel" in name
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_both_loops_agree_and_load_each_others_checkpoints(make: MakeEngine, replicas: int) -> None:
    """Steps 3 to 7 with 5 steps per epoch: Keras' loop resumes from the state of the other one, and
    continues past the end of the epoch.
    """
    custom, keras = (make(replicas, TINY_GAN, loop=name, **OPTIONS) for name in ("custom", "keras"))
    trained(custom, 2)
    begun = custom.state()
    keras.load(begun)
    expected, result = trained(custom, 5), trained(keras, 2, 3)
    assert_equal(result, expected)
    assert_equal(keras.state(), custom.state())
    assert longest_move(begun, keras.state()) > 1e-3


def counted(engine: Any, calls: list[Any]) -> None:
    """Adds each call of Keras' train function to `calls`."""
    train_function = engine.loop.train_function
    engine.loop.train_function = lambda batches: calls.append(batches) or train_function(batches)


def test_keras_loop_calls_the_host_each_step_and_resumes(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    """Two epochs of five steps in the trainer's loop, stopped within the first one and resumed."""
    host_calls: list[Any] = []
    options = {"epochs": 2, "steps_per_loop": 2, "loop": "keras"}
    engine = tf_engine(1, **options)
    counted(engine, host_calls)
    run = new_run(
        "keras-0001", workload="mlp_gan", batch_size_global=8, precision="float32", **options
    )
    stops = iter(
        [False, False, False, True, True]
    )  # stop requests between the calls; none after these
    outcomes = []
    for attempt in (1, 2):
        with JournalWriter(run.trainer_journal(), attempt) as writer:
            outcomes.append(
                loop.train(run.spec(), 40, engine, run, writer, lambda: next(stops, False))
            )
    assert [outcome.status for outcome in outcomes] == ["stopped", "finished"]
    assert 0 < outcomes[0].step < 5 < outcomes[1].step == 10
    assert len(host_calls) == 10
    store = Store()
    Ingestor(home, store).catch_up()
    assert store.rows("SELECT DISTINCT spec->>'loop' FROM runs") == [("keras",)]
    steps = store.rows("SELECT step FROM scalars WHERE metric = 'loss_generator' ORDER BY step")
    assert [step for (step,) in steps] == list(range(1, 11))
    assert store.rows("SELECT epoch FROM epochs ORDER BY epoch") == [(1,), (2,)]
    assert store.rows("SELECT DISTINCT operations > 100 FROM kernels") == [(True,)]


def test_keras_loop_steps_are_profiled(make: MakeEngine) -> None:
    profiled = make(1, loop="keras").profile(2)
    assert profiled.numbers.values["loss_generator"].shape == (2,)
    for category in ("forward", "backward", "optimizer"):
        assert sum(share.share for share in profiled.shares if share.category == category) > 0.0
