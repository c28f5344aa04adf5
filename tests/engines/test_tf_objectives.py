"""Training objectives: whole steps compared with plain formulas, R1 on every kernel, and the moving
average.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.data.contract import picture_set
from gan_runtime.engines.tf.engine import TfEngine
from gan_runtime.engines.tf.inputs import TfStepNoise, distributed_batches
from gan_runtime.engines.tf.kernels import PlainKernels, TfCpuKernels
from gan_runtime.engines.tf.step import input_gradient
from gan_runtime.workloads import dcgan_mnist, mlp_gan
from gan_runtime.workloads.contract import Forward
from gan_runtime.workloads.losses import r1_penalty
from gan_runtime.workloads.pair import UnconditionalPair
from gan_runtime.workloads.step_context import LayerKernels, TrainingProgress, step_scope
from tests.support.engines.small_engines import (
    BATCH,
    MakeEngine,
    assert_close,
    keep_alive,
    random_images,
    trained,
)
from tests.support.engines.step_contexts import alone
from tests.support.engines.tiny_gan import TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")
SGD = {"optimizer": "sgd", "learning_rate_generator": 0.3, "learning_rate_discriminator": 0.2}
IMAGES = picture_set("random", random_images(40), "test")  # the default images of an engine
Loss = Callable[[dict[str, Any], tf.Tensor, tf.Tensor], tf.Tensor]  # networks, real images, latents


# ---- plain steps ---------------------------------------------------------------------------------


class PlainStep:
    """The networks of an engine before its first step, its images and latents, and plain SGD."""

    def __init__(self, engine: TfEngine) -> None:
        self.networks = mlp_gan.networks()
        state = engine.state()
        for name, network in self.networks.items():
            for variable in network.variables:
                variable.assign(state[f"{name}/{variable.path}"])
        rows = next(
            keep_alive(
                distributed_batches(engine.strategy, engine.spec, engine.task.plan, IMAGES, 0)
            )
        )
        self.real = tf.cast(rows["images"], tf.float32) / 127.5 - 1.0

    def follow(self, *steps: tuple[str, Loss, int, int]) -> dict[str, float]:
        """Computes the gradients of all `steps` (network, loss, batch of real images, phase), then
        applies them. Returns the losses.
        """
        by_network = {}
        for name, loss_of, batch, phase in steps:
            latents = TfStepNoise(1, tf.constant(0), tf.constant(0), 1, phase).normal(BATCH, 32)
            with tf.GradientTape() as tape:
                loss = loss_of(
                    self.networks, self.real[batch * BATCH : (batch + 1) * BATCH], latents
                )
            by_network[name] = loss, tape.gradient(loss, self.networks[name].trainable_variables)
        for name, (_, gradients) in by_network.items():
            for variable, gradient in zip(
                self.networks[name].trainable_variables, gradients, strict=True
            ):
                variable.assign_sub(SGD[f"learning_rate_{name}"] * gradient)
        return {name: float(loss) for name, (loss, _) in by_network.items()}

    def weights(self) -> dict[str, np.ndarray]:
        """The weights, by their names in the engine's state."""
        return {
            f"{name}/{variable.path}": np.array(variable)
            for name, network in self.networks.items()
            for variable in network.variables
        }


def critic_loss(smoothing: float = 0.0, gamma: float = 0.0) -> Loss:
    """-(1 - s) log D(x) - s log(1 - D(x)) - log(1 - D(G(z))) + gamma/2 |dD/dx|²."""

    def loss(networks: dict[str, Any], real: tf.Tensor, latents: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(real)
            logits = networks["discriminator"](real)
        slope = tape.gradient(logits, real)
        fake, log_sigmoid = (
            networks["discriminator"](networks["generator"](latents)),
            tf.math.log_sigmoid,
        )
        entropy = (
            -(1.0 - smoothing) * log_sigmoid(logits)
            - smoothing * log_sigmoid(-logits)
            - log_sigmoid(-fake)
        )
        return tf.reduce_mean(entropy) + gamma / 2.0 * tf.reduce_mean(
            tf.reduce_sum(slope**2, axis=[1, 2, 3])
        )

    return loss


def minimax_loss(networks: dict[str, Any], real: tf.Tensor, latents: tf.Tensor) -> tf.Tensor:  # noqa: ARG001
    """Equation 5 of the paper: log(1 - D(G(z)))."""
    return tf.reduce_mean(
        tf.math.log_sigmoid(-networks["discriminator"](networks["generator"](latents)))
    )


def non_saturating_loss(networks: dict[str, Any], real: tf.Tensor, latents: tf.Tensor) -> tf.Tensor:  # noqa: ARG001
    """-log D(G(z))."""
    return -tf.reduce_mean(
        tf.math.log_sigmoid(networks["discriminator"](networks["generator"](latents)))
    )


def test_in_turn_d_takes_k_steps_before_g_follows(
    make: MakeEngine,
) -> None:
    single, two = (
        make(replicas, updates="in_turn", discriminator_steps=2, **SGD) for replicas in (1, 2)
    )
    plain = PlainStep(single)
    assert not np.array_equal(plain.real[:BATCH], plain.real[BATCH:])
    numbers = trained(single, 1)
    plain.follow(("discriminator", critic_loss(), 0, 0))
    second = plain.follow(("discriminator", critic_loss(), 1, 1))
    last = plain.follow(("generator", non_saturating_loss, 0, 2))
    assert numbers["loss_discriminator"] == pytest.approx(
        [second["discriminator"]], abs=1e-6
    )  # of the last of the k steps
    assert numbers["loss_generator"] == pytest.approx([last["generator"]], abs=1e-6)
    state = single.state()
    assert_close({name: state[name] for name in plain.weights()}, plain.weights(), 1e-6)
    iterations = {
        name.split("/")[0]: int(value)
        for name, value in state.items()
        if name.endswith("iteration")
    }
    assert iterations == {"optimizer_generator": 1, "optimizer_discriminator": 2}
    trained(two, 1)
    single.run(3)
    two.run(3)
    assert_close(two.state(), single.state(), 1e-5)


def test_each_phase_has_its_own_latents() -> None:
    draws = [
        TfStepNoise(1, tf.constant(5), tf.constant(0), 1, phase).normal(BATCH, 32).numpy()
        for phase in range(3)
    ]
    assert not any(
        np.isin(draws[first], draws[other]).any() for first, other in ((0, 1), (0, 2), (1, 2))
    )


@pytest.mark.parametrize(
    ("certainty", "xla"),
    [(-120.0, "off"), (-120.0, "jit"), (-30.0, "off"), (0.0, "off"), (8.0, "off")],
)
@pytest.mark.parametrize(
    ("generator_loss", "formula"),
    [("non_saturating", non_saturating_loss), ("minimax", minimax_loss)],
)
def test_one_backward_pass_gives_each_network_its_own_gradients(
    make: MakeEngine, generator_loss: str, formula: Loss, certainty: float, xla: str
) -> None:
    """`certainty` is added to D's logits. At -120 the gradient of D's loss is too small for
    float32.
    """
    engine = make(1, generator_loss=generator_loss, xla=xla, **SGD)
    state = engine.state()
    [bias] = [name for name in state if name.startswith("discriminator/") and "logit/bias" in name]
    engine.load({**state, bias: state[bias] + np.float32(certainty)})
    plain = PlainStep(engine)
    before = plain.weights()
    trained(engine, 1)
    plain.follow(("discriminator", critic_loss(), 0, 0), ("generator", formula, 0, 0))
    assert_close({name: engine.state()[name] for name in plain.weights()}, plain.weights(), 1e-6)
    moved = max(
        np.abs(plain.weights()[name] - before[name]).max()
        for name in before
        if name.startswith("generator/")
    )
    assert moved > 1e-2 or (generator_loss == "minimax" and certainty < 0.0) or certainty > 0.0


def test_minimax_smoothing_and_r1_match_their_papers(make: MakeEngine) -> None:
    options = {"generator_loss": "minimax", "label_smoothing": 0.1, "r1_weight": 10.0, **SGD}
    single, two = make(1, **options), make(2, **options)
    plain = PlainStep(single)
    numbers = trained(single, 1)
    expected = plain.follow(
        ("discriminator", critic_loss(0.1, 10.0), 0, 0), ("generator", minimax_loss, 0, 0)
    )
    assert numbers["loss_discriminator"] == pytest.approx([expected["discriminator"]], abs=1e-5)
    assert numbers["loss_generator"] == pytest.approx([expected["generator"]], abs=1e-6)
    assert numbers["loss_generator"][0] < 0.0 < numbers["r1_penalty"][0]
    assert_close({name: single.state()[name] for name in plain.weights()}, plain.weights(), 1e-5)
    trained(two, 1)
    assert_close(two.state(), single.state(), 1e-5)


# ---- R1 ------------------------------------------------------------------------------------------


class Repeated:
    """Constants instead of noise, and no dropout."""

    def normal(self, rows: int, *shape: int) -> np.ndarray:
        return np.linspace(-1, 1, rows * math.prod(shape), dtype=np.float32).reshape(rows, *shape)

    def uniform(self, rows: int, *shape: int) -> np.ndarray:
        return np.full((rows, *shape), 0.5, np.float32)

    def dropout(self, values: Any, rate: float) -> Any:  # noqa: ARG002
        return values


def test_r1_penalty_matches_finite_differences_and_falls_as_set() -> None:
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(1)
    image = (2, 2, 1)
    generator = keras.Sequential([keras.Input((3,)), layers.Dense(4), layers.Reshape(image)])
    critic = keras.Sequential(
        [keras.Input(image), layers.Flatten(), layers.Dense(5, "tanh"), layers.Dense(1)]
    )
    images = tf.constant(np.random.default_rng(3).standard_normal((6, *image)), tf.float32)

    def forward(**options: float) -> Forward:
        (phase,) = UnconditionalPair(3, dict).program(PairOptions(**options), {}).phases
        with step_scope(replace(alone(Repeated()), progress=TrainingProgress(1, 3))):
            networks = {"generator": generator, "discriminator": critic}
            return phase.forward(networks, {"images": images}, Repeated())

    small, squares = 1e-2, np.zeros(6)
    for row, column in np.ndindex(2, 2):
        step = np.zeros((1, *image), np.float32)
        step[0, row, column] = small
        squares += (
            (np.array(critic(images + step)) - np.array(critic(images - step))).ravel()
            / (2 * small)
        ) ** 2
    plain = forward(r1_weight=0.0)
    assert "r1_penalty" not in plain.scalars
    # After a third of the training, a penalty that falls to the share s has (3 + s) / 4 left.
    for end, left in ((1.0, 1.0), (0.2, 0.8), (0.0, 0.75)):
        penalized = forward(r1_weight=10.0, penalty_end=end)
        penalty = float(penalized.scalars["r1_penalty"])
        assert penalty == pytest.approx(0.5 * squares.mean(), rel=1e-3)
        added = penalized.losses["loss_discriminator"] - plain.losses["loss_discriminator"]
        assert float(added) == pytest.approx(left * 10.0 * penalty, rel=1e-5)


@pytest.mark.parametrize("kernels", [TfCpuKernels(), PlainKernels()], ids=["cpu", "plain"])
def test_r1_gradient_matches_plain_tensorflow_on_all_kernels(
    kernels: LayerKernels,
) -> None:
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(1)
    critic = dcgan_mnist.networks()["discriminator"]
    weights = [variable.value for variable in critic.trainable_variables]
    images = tf.constant(np.random.default_rng(2).uniform(-1, 1, (6, 28, 28, 1)), tf.float32)

    def gradients() -> list[np.ndarray]:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                tape.watch(images)
                logits = critic(images, training=False)
            penalty = 0.5 * tf.reduce_mean(
                tf.reduce_sum(tape.gradient(logits, images) ** 2, axis=[1, 2, 3])
            )
        return [
            np.array(value)
            for value in outer.gradient(penalty, weights, unconnected_gradients="zero")
        ]

    @tf.function
    def gradients_of_the_engine() -> list[tf.Tensor]:
        with (
            step_scope(alone(Repeated(), kernels)),
            tf.GradientTape() as tape,
        ):
            penalty = r1_penalty(
                input_gradient(lambda inputs: critic(inputs, training=False), images)
            )
        return tape.gradient(penalty, weights, unconnected_gradients="zero")

    expected = gradients()
    for gradient, other in zip(gradients_of_the_engine(), expected, strict=True):
        assert np.abs(gradient - other).max() <= 1e-5 * max(1e-3, np.abs(other).max())
    assert max(np.abs(value).max() for value in expected) > 1e-4


# ---- moving average of the generator -------------------------------------------------------------


def generator_weights(engine: TfEngine, prefix: str) -> dict[str, np.ndarray]:
    return {
        name.partition("/")[2]: values
        for name, values in engine.state().items()
        if name.startswith(prefix)
    }


@pytest.mark.parametrize("replicas", [1, 2])
def test_average_follows_the_generator_step_by_step(make: MakeEngine, replicas: int) -> None:
    decay = 0.75
    engine = make(replicas, ema_decay=decay, learning_rate_generator=0.01)
    average = generator_weights(engine, "generator/")
    assert_close(generator_weights(engine, "average/"), average, 0.0)
    engine.trace()
    for _ in range(4):
        engine.run(1)
        live = generator_weights(engine, "generator/")
        average = {name: decay * average[name] + (1.0 - decay) * live[name] for name in average}
        assert_close(generator_weights(engine, "average/"), average, 1e-6)
    assert max(np.abs(average[name] - live[name]).max() for name in average) > 1e-3


def test_samples_use_averaged_weights_and_live_statistics(make: MakeEngine) -> None:
    options = {"ema_decay": 0.9, "learning_rate_generator": 0.01}
    average, live = make(2, TINY_GAN, samples_from="ema", **options), make(2, TINY_GAN, **options)
    trained(average, 2)
    state = average.state()
    statistics = [name for name in state if name.startswith("average/") and "moving" in name]
    assert len(statistics) == 2
    assert all(
        np.array_equal(state[name], state[name.replace("average/", "generator/", 1)])
        for name in statistics
    )
    live.load(state)
    assert np.abs(average.sample()["images"] - live.sample()["images"]).max() > 1e-3
    as_live = {
        name: (
            state[name.replace("generator/", "average/", 1)]
            if name.startswith("generator/")
            else state[name]
        )
        for name in state
    }
    live.load(as_live)
    assert np.abs(average.sample()["images"] - live.sample()["images"]).max() < 1e-6
