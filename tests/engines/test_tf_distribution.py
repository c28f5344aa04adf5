"""Cooperation of replicas: parts of a batch, batch norm over all of them, and local steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.tf.engine import TfEngine
from gan_runtime.engines.tf.inputs import TfStepNoise
from gan_runtime.workloads.layers import ReplicaDropout
from tests.support.engines import tiny_gan
from tests.support.engines.claims import assert_replicas_become_their_mean_every_third_step
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    copies_by_name,
    random_images,
    trained,
)
from tests.support.engines.three_ways import PAIR, rates

pytestmark = pytest.mark.usefixtures("cores")
GENERATOR = "generator/generator/hidden/kernel"


# ---- parts of a batch ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "parts", "options"), [(1, 4, {}), (2, 2, {"updates": "in_turn"})]
)
def test_batch_in_four_parts_matches_the_whole_batch(
    make: MakeEngine, replicas: int, parts: int, options: dict[str, Any]
) -> None:
    whole, parted = (
        make(replicas, **options),
        make(replicas, accumulation_steps=parts, **options),
    )
    assert_close(trained(parted, 1, 4), trained(whole, 1, 4), 1e-5)
    assert_close(parted.state(), whole.state(), 1e-5)


def test_batch_parts_share_latents_but_have_their_own_dropout() -> None:
    def noise(part: int, parts: int) -> TfStepNoise:
        return TfStepNoise(1, tf.constant(3), tf.constant(part), parts)

    latents = [noise(part, 4).normal(2, 5).numpy() for part in range(4)]
    assert np.array_equal(np.concatenate(latents), noise(0, 1).normal(8, 5).numpy())
    assert len(np.unique(np.concatenate(latents))) == 40
    masks = [noise(part, 4).dropout(tf.ones([64, 64]), 0.3).numpy() > 0 for part in range(4)]
    # Independent masks agree in 0.3² + 0.7² = 0.58 of the units.
    assert all(0.54 < (masks[0] == mask).mean() < 0.62 for mask in masks[1:])


# ---- batch norm over all replicas ----------------------------------------------------------------


def networks_without_dropout() -> dict[str, Any]:
    """Networks that compute the same on one replica and on several."""
    networks = tiny_gan.networks()
    for layer in networks["discriminator"].layers:
        if isinstance(layer, ReplicaDropout):
            layer.rate = 0.0
    return networks


WITHOUT_DROPOUT = replace(tiny_gan.TINY_GAN, make_networks=networks_without_dropout)
IMAGES = random_images(40, 8)


def operations(engine: TfEngine) -> list[Any]:
    """The nodes of a step's graph."""
    graph = engine.traced_call().graph.as_graph_def()
    return [node for function in graph.library.function for node in function.node_def]


def exchanges(engine: TfEngine, scope: str) -> list[str]:
    """The sums over the replicas of a step in this scope, one per tensor."""
    return [node.name for node in operations(engine) if node.op == "AddN" and scope in node.name]


@pytest.mark.usefixtures("as_on_gpus")
def test_collectives_pack_the_gradients_of_a_network(make: MakeEngine) -> None:
    engine = make(2)
    engine.trace()
    sent = [node.name for node in operations(engine) if node.op == "CollectiveReduceV2"]
    assert [
        sum(network in name for name in sent) for network in ("generator", "discriminator")
    ] == [2, 2], "of each replica"
    assert len(sent) == 4


RATES = {"optimizer": "sgd", "learning_rate_generator": 1.0, "learning_rate_discriminator": 1.0}


def test_synchronized_batch_norm_makes_two_replicas_match_one(make: MakeEngine) -> None:
    single = make(1, WITHOUT_DROPOUT, IMAGES, **RATES)
    two = make(2, WITHOUT_DROPOUT, IMAGES, batch_norm="synchronised", **RATES)
    start = single.state()
    assert_close(trained(two, 1), trained(single, 1), 1e-4)
    assert len(exchanges(two, "all_reduce_batch_norm")) == 1 + 1, "a layer there and back"
    assert all("/generator" in name for name in exchanges(two, "all_reduce_batch_norm"))
    for name, network in two.networks.items():
        assert len(exchanges(two, f"all_reduce_{name}")) == len(network.trainable_variables)
    copied = copies_by_name(two)
    assert sum("moving_" in name for name in copied) == 2
    assert [
        name for name, (first, second) in copied.items() if not np.array_equal(first, second)
    ] == []
    # Relative to the length of each weight's own step, which is its gradient: a gradient that
    # misses the exchange is off by more.
    moved, expected = moves(two, start), moves(single, start)
    assert [
        name
        for name in expected
        if norm(moved[name] - expected[name]) > 1e-3 * norm(expected[name])
    ] == []


def test_without_synchronization_batch_norm_gradients_are_per_replica(make: MakeEngine) -> None:
    single, alone = (make(replicas, WITHOUT_DROPOUT, IMAGES, **RATES) for replicas in (1, 2))
    start = single.state()
    trained(single, 1)
    trained(alone, 1)
    expected = moves(single, start)
    [gamma] = [name for name in expected if name.endswith("gamma")]
    assert norm(moves(alone, start)[gamma] - expected[gamma]) > 0.1 * norm(expected[gamma])


def moves(engine: TfEngine, start: Arrays) -> Arrays:
    """The change of weights and statistics since `start`."""
    state = engine.state()
    return {name: state[name] - start[name] for name in floats(start)}


def floats(state: Arrays) -> list[str]:
    """The names of weights and statistics that a step changes."""
    return [name for name in state if name.startswith(("generator/", "discriminator/"))]


def norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values.astype(np.float64)))


# ---- local steps ---------------------------------------------------------------------------------


def test_replicas_train_locally_and_average_every_third_step(make: MakeEngine) -> None:
    """Momentum and moving average are local too.

    tests/full/engines/test_tf_distribution.py covers Adam, and the exchange as on GPUs.
    """
    options = {"optimizer": "sgd", "momentum": 0.9, "ema_decay": 0.5, **rates(0.01, *PAIR)}
    assert_replicas_become_their_mean_every_third_step(make, options)


def test_first_local_step_averages_to_the_whole_batch_step(make: MakeEngine) -> None:
    """The mean of the first local SGD step is the step on the whole batch. From the second step on,
    it is another algorithm.
    """
    options = {
        "optimizer": "sgd",
        "learning_rate_generator": 0.5,
        "learning_rate_discriminator": 0.5,
    }
    together, local = make(2, **options), make(2, sync_every_steps=3, **options)
    trained(together, 1)
    trained(local, 1)
    first = copies_by_name(local)
    for name, (expected, _) in copies_by_name(together).items():
        assert np.abs((first[name][0] + first[name][1]) / 2 - expected).max() < 1e-6, name
    together.run(2)
    local.run(2)
    apart = np.abs(local.state()[GENERATOR] - together.state()[GENERATOR]).max()
    assert apart > 1e-5


def test_state_between_syncs_is_the_mean_of_the_replicas(
    make: MakeEngine,
) -> None:
    engine = make(2, sync_every_steps=3)
    trained(engine, 2)
    before = copies_by_name(engine)
    state = engine.state()
    for name, (first, second) in before.items():
        if np.issubdtype(first.dtype, np.floating):
            assert np.abs(state[name] - (first + second) / 2).max() < 1e-7, name
    for name, (first, second) in copies_by_name(engine).items():
        assert np.array_equal(first, second), name
