"""Optimizers compared with their formulas, and the requirements on Keras' private hooks: one sum,
then clipping, in the requested type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.tf.optimizers import make_optimizer
from gan_runtime.engines.tf.strategy import make_strategy
from gan_runtime.spec import RunSpec
from tests.support.engines.claims import assert_clipped_steps_are_those_of_one_replica
from tests.support.engines.small_engines import MakeEngine, keep_alive, trained

pytestmark = pytest.mark.usefixtures("cores")
START = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
GRADIENTS = np.random.default_rng(7).standard_normal((6, 3, 4)).astype(np.float32)  # of six updates
RATE = 0.01
Updates = Callable[..., np.ndarray]
GENERATOR, DISCRIMINATOR = (
    "generator/generator/hidden/kernel",
    "discriminator/discriminator/hidden/kernel",
)


class OneWeight:
    """A weight of shape (3, 4) and its optimizer on several replicas, each with its share of the
    gradient.
    """

    def __init__(self, replicas: int, **options: Any) -> None:
        spec = RunSpec.parse(
            {"replicas": replicas, "batch_size_global": 8, "precision": "float32", **options}
        )
        self.strategy = keep_alive(make_strategy(spec, "cpu"))
        self.replicas = replicas
        with self.strategy.scope():
            self.weight = keras.Variable(START)
            self.optimizer = make_optimizer(spec, "generator", RATE)  # type: ignore[arg-type]
            self.optimizer.build([self.weight])
        self.call = tf.function(lambda shares: self.strategy.run(self.update, args=(shares,)))

    def update(self, shares: tf.Tensor) -> None:
        """Updates one replica. `shares` (replicas, 3, 4) sum to the gradient of the whole batch."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        self.optimizer.apply([shares[replica]], [self.weight])

    def shares(self, gradient: np.ndarray) -> tf.Tensor:
        """Unequal shares: replica r of R gets (r + 1) / (1 + … + R) of the gradient."""
        parts = np.arange(1, self.replicas + 1, dtype=np.float32)
        return tf.constant((parts / parts.sum())[:, None, None] * gradient)

    def values(self) -> list[np.ndarray]:
        """The weight on every replica."""
        return [
            value.numpy() for value in self.strategy.experimental_local_results(self.weight.value)
        ]


@pytest.fixture
def updates(new_group: Callable[[], None]) -> Updates:
    """`updates(2, optimizer="sgd")`: the weight after each of the six updates, (6, 3, 4), equal on
    every replica.
    """

    def call(replicas: int = 1, gradients: np.ndarray = GRADIENTS, **options: Any) -> np.ndarray:
        new_group()
        weight, values = OneWeight(replicas, **options), []
        for gradient in gradients:
            weight.call(weight.shares(gradient))
            first, *other_copies = weight.values()
            assert all(np.array_equal(first, other) for other in other_copies)
            values.append(first)
        return np.stack(values)

    return call


def by_keras(optimizer: keras.optimizers.Optimizer) -> np.ndarray:
    """The weights from Keras' own optimizer with the same gradients."""
    weight, values = keras.Variable(START), []
    optimizer.build([weight])
    for gradient in GRADIENTS:
        optimizer.apply([tf.constant(gradient)], [weight])
        values.append(np.array(weight))
    return np.stack(values)


# ---- formulas ------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(("beta_1", "beta_2"), [(0.9, 0.999), (0.5, 0.999), (0.0, 0.9)])
def test_fused_adam_matches_keras(
    updates: Updates, replicas: int, beta_1: float, beta_2: float
) -> None:
    expected = by_keras(keras.optimizers.Adam(RATE, beta_1=beta_1, beta_2=beta_2))
    assert np.abs(expected[0] - START).max() == pytest.approx(RATE, rel=1e-3)
    assert np.abs(updates(replicas, adam_beta_1=beta_1, adam_beta_2=beta_2) - expected).max() < 1e-6


@pytest.mark.parametrize("replicas", [1, 2])
def test_rmsprop_matches_keras(updates: Updates, replicas: int) -> None:
    expected = by_keras(keras.optimizers.RMSprop(RATE, rho=0.9))
    assert np.abs(updates(replicas, optimizer="rmsprop") - expected).max() < 1e-6


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_rmsprop_epsilon_is_inside_or_outside_the_root_as_set(
    updates: Updates, replicas: int, place: str
) -> None:
    """For gradients of about 1e-5, far below the root of 1e-7, first updates with epsilon inside
    are 70 times smaller than outside.
    """
    gradients, velocity, weight, expected = 1e-5 * GRADIENTS, np.zeros_like(START), START, []
    for gradient in gradients:
        velocity = 0.9 * velocity + 0.1 * gradient**2
        divisor = np.sqrt(velocity + 1e-7) if place == "inside" else np.sqrt(velocity) + 1e-7
        weight = weight - RATE * gradient / divisor
        expected.append(weight)
    values = updates(replicas, gradients, optimizer="rmsprop", rmsprop_epsilon=place)
    assert np.abs(values - np.stack(expected)).max() < 1e-6
    moved = np.abs(values[0] - START)
    assert moved.max() == pytest.approx({"inside": 4.2e-4, "outside": 3.1e-2}[place], rel=0.02)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_adds_each_gradient_to_the_momentum(
    updates: Updates, replicas: int, momentum: float
) -> None:
    weight, velocity, expected = START, np.zeros_like(START), []
    for gradient in GRADIENTS:
        velocity = momentum * velocity - RATE * gradient
        weight = weight + velocity
        expected.append(weight)
    assert (
        np.abs(updates(replicas, optimizer="sgd", momentum=momentum) - np.stack(expected)).max()
        < 1e-6
    )


@pytest.mark.usefixtures("exchange")
def test_float16_gradient_is_unscaled_once_before_clipping(updates: Updates) -> None:
    options = {"optimizer": "sgd", "precision": "mixed_float16", "clip_norm": 0.5}
    expected = updates(2, optimizer="sgd", clip_norm=0.5)
    assert np.abs(updates(2, 2.0**15 * GRADIENTS, **options) - expected).max() < 1e-6


def test_each_network_uses_its_own_learning_rate(make: MakeEngine) -> None:
    """Twice the rate of D moves D twice as far in the first step, and G equally far."""
    moved = {}
    for rate in (0.01, 0.02):
        engine = make(
            1, optimizer="sgd", learning_rate_generator=0.03, learning_rate_discriminator=rate
        )
        before, numbers, after = engine.state(), trained(engine, 1), engine.state()
        assert numbers["learning_rate_generator"] == pytest.approx([0.03])
        assert numbers["learning_rate_discriminator"] == pytest.approx([rate])
        moved[rate] = {name: after[name] - before[name] for name in (GENERATOR, DISCRIMINATOR)}
    assert np.array_equal(moved[0.02][GENERATOR], moved[0.01][GENERATOR])
    assert np.abs(moved[0.02][DISCRIMINATOR] - 2.0 * moved[0.01][DISCRIMINATOR]).max() < 1e-7
    assert np.abs(moved[0.01][DISCRIMINATOR]).max() > 1e-5


# ---- clipping after the sum ----------------------------------------------------------------------


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_clipped_update_norm_is_limited_on_any_replica_count(
    updates: Updates, replicas: int
) -> None:
    """Keras' own clipping, before the sum, gave a measured norm of 2 on two replicas for a
    limit of 1.
    """
    values = updates(replicas, 100.0 * GRADIENTS, optimizer="sgd", clip_norm=1.0)
    lengths = [np.linalg.norm(step) for step in np.diff(values, axis=0)]
    assert lengths == pytest.approx([RATE] * 5, rel=1e-3)


def test_gradient_below_the_clip_norm_is_unchanged(updates: Updates) -> None:
    assert np.array_equal(updates(2, optimizer="sgd", clip_norm=100.0), updates(2, optimizer="sgd"))


def test_clipped_steps_on_two_replicas_match_one(make: MakeEngine) -> None:
    assert_clipped_steps_are_those_of_one_replica(make, (2,))


# ---- exchanged values ----------------------------------------------------------------------------


@pytest.mark.usefixtures("exchange")
def test_bfloat16_all_reduce_error_is_within_rounding(updates: Updates) -> None:
    """Each share is rounded to 8 bits, a relative error of 2^-9, and the sum again, in six updates
    of at most 0.01 · 2.5.
    """
    exact, rough = (
        updates(2, optimizer="sgd", all_reduce_type=kind) for kind in ("float32", "bfloat16")
    )
    assert 0.0 < np.abs(rough - exact).max() < 6 * RATE * 2.5 * 2**-8


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_gradients_are_exchanged_in_the_requested_type(
    new_group: Callable[[], None], kind: str
) -> None:
    new_group()
    weight = OneWeight(2, all_reduce_type=kind)
    graph = weight.call.get_concrete_function(weight.shares(GRADIENTS[0])).graph
    sums = [
        operation
        for operation in graph.get_operations()
        if operation.type in ("AddN", "CollectiveReduceV2")
    ]
    sent = [
        term.dtype
        for operation in sums
        for term in operation.inputs
        if term.shape.num_elements() == 12
    ]
    assert sent == [tf.dtypes.as_dtype(kind)] * 2


def test_one_replica_exchanges_and_rounds_nothing(updates: Updates) -> None:
    assert np.array_equal(updates(1, all_reduce_type="bfloat16"), updates(1))


def test_training_with_a_bfloat16_all_reduce_stays_close(make: MakeEngine) -> None:
    """The losses of seven steps at Adam's full rate agree to a thousandth."""
    exact, rough = (trained(make(2, all_reduce_type=kind), 7) for kind in ("float32", "bfloat16"))
    apart = {metric: np.abs(exact[metric] - rough[metric]).max() for metric in exact}
    assert 0.0 < apart["loss_discriminator"] < 1e-3
    assert max(apart.values()) < 1e-3


def test_replicas_in_shared_memory_update_once_unless_local(
    new_group: Callable[[], None],
) -> None:
    updates = {}
    for steps in (1, 3):
        new_group()
        weight = OneWeight(4, sync_every_steps=steps)
        graph = weight.call.get_concrete_function(weight.shares(GRADIENTS[0])).graph
        updates[steps] = sum(
            operation.type == "ResourceApplyAdam" for operation in graph.get_operations()
        )
    assert updates == {1: 1, 3: 4}
