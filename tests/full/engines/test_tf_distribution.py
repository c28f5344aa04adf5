"""Several replicas: DCGAN's batch norm over all of them, and local steps with both exchange
methods.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.tf.engine import TfEngine
from gan_runtime.workloads import dcgan_mnist
from gan_runtime.workloads.layers import ReplicaDropout
from tests.support.engines.claims import assert_replicas_become_their_mean_every_third_step
from tests.support.engines.small_engines import MakeEngine, assert_close, copies_by_name, trained

pytestmark = pytest.mark.usefixtures("cores")


def networks_without_dropout() -> dict[str, Any]:
    """Returns DCGAN's networks without dropout, so that one and several replicas agree."""
    networks = dcgan_mnist.networks()
    for layer in networks["discriminator"].layers:
        if isinstance(layer, ReplicaDropout):
            layer.rate = 0.0
    return networks


WITHOUT_DROPOUT = replace(dcgan_mnist.WORKLOAD, make_networks=networks_without_dropout)


def operations(engine: TfEngine) -> list[Any]:
    """Returns the nodes of a step's graph."""
    graph = engine.traced_call().graph.as_graph_def()
    return [node for function in graph.library.function for node in function.node_def]


def exchanges(engine: TfEngine, scope: str) -> list[str]:
    """Returns the sums over the replicas in a step in this scope, one per tensor."""
    return [node.name for node in operations(engine) if node.op == "AddN" and scope in node.name]


def test_synchronized_batch_norm_makes_two_replicas_match_one(make: MakeEngine) -> None:
    options = {
        "optimizer": "sgd",
        "learning_rate_generator": 1.0,
        "learning_rate_discriminator": 1.0,
    }
    single, two = (
        make(1, WITHOUT_DROPOUT, **options),
        make(2, WITHOUT_DROPOUT, batch_norm="synchronised", **options),
    )
    alone = make(2, WITHOUT_DROPOUT, **options)
    start = single.state()
    assert_close(trained(two, 1), trained(single, 1), 1e-4)
    assert len(exchanges(two, "all_reduce_batch_norm")) == 3 + 3, "three layers there and back"
    assert all("/generator" in name for name in exchanges(two, "all_reduce_batch_norm"))
    for name, network in two.networks.items():
        assert len(exchanges(two, f"all_reduce_{name}")) == len(network.trainable_variables)
    copied = copies_by_name(two)
    assert sum("moving_" in name for name in copied) == 6
    assert [
        name for name, (first, second) in copied.items() if not np.array_equal(first, second)
    ] == []
    # Relative to the length of each weight's own step, which is its gradient: a gradient that
    # misses the exchange has a larger error.
    moved, expected = (
        {name: engine.state()[name] - start[name] for name in floats(start)}
        for engine in (two, single)
    )
    assert [
        name
        for name in expected
        if norm(moved[name] - expected[name]) > 1e-3 * norm(expected[name])
    ] == []
    trained(alone, 1)
    gammas = [name for name in expected if name.endswith("gamma")]
    apart = [
        norm(alone.state()[name] - start[name] - expected[name]) / norm(expected[name])
        for name in gammas
    ]
    assert len(apart) == 3
    assert min(apart) > 0.1


def floats(state: Arrays) -> list[str]:
    """Returns names of weights and statistics that a step changes."""
    return [name for name in state if name.startswith(("generator/", "discriminator/"))]


def norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values.astype(np.float64)))


@pytest.mark.usefixtures("exchange")
def test_replicas_train_locally_and_average_every_third_step(make: MakeEngine) -> None:
    rates = {"learning_rate_generator": 0.01, "learning_rate_discriminator": 0.01}
    options = {"optimizer": "adam", "ema_decay": 0.5, **rates}
    assert_replicas_become_their_mean_every_third_step(make, options)
