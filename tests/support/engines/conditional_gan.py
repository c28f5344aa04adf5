"""A small conditional WGAN-GP on 8 × 8 images: what a third-party workload may require of an
engine.

Labels and an energy with the images, networks with three inputs, an embedding, two batches of real
rows per step, a gradient within a gradient (Gulrajani et al. 2017), uniform noise, two identical
phases, unbounded critic scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from numpy.typing import NDArray

from gan_runtime.base.fields import IMAGES, LABELS, Fields
from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import (
    Arrays,
    Batch,
    Forward,
    Judged,
    Networks,
    Noise,
    Options,
    Phase,
    Program,
    Tensor,
    Update,
)
from tests.support.engines.showers import ENERGY

LATENT_SIZE, PENALTY_WEIGHT = 6, 10.0


class ConditionalGan:
    """Implements `contract.Workload`."""

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:  # noqa: ARG002
        """Generator [latents, label, energy] → images; discriminator [images, label, energy] →
        unbounded (B, 1).
        """
        shape = fields[IMAGES].shape
        generator = _network(
            keras.Input((LATENT_SIZE,)), [("hidden", 16), ("pixels", 64)], "generator"
        )
        outputs = layers.Reshape(shape, name="reshape")(ops.tanh(generator.output))
        return {
            "generator": keras.Model(generator.input, outputs, name="generator"),
            "discriminator": _network(
                keras.Input(shape), [("hidden", 16), ("logit", 1)], "discriminator"
            ),
        }

    def program(self, options: Options, fields: Fields) -> Program:  # noqa: ARG002
        """Two critic updates on separate batches, then two generator updates with equal forward
        passes.
        """
        return Program(
            (
                *(_critic_phase(number) for number in (0, 1)),
                *(_generator_phase(number) for number in (0, 1)),
            )
        )

    def inputs(self, options: Options, fields: Fields, rows: Batch, noise: Noise) -> Batch:  # noqa: ARG002
        """Fresh latents, and the conditions of real rows."""
        return _inputs(rows, noise)

    def fixed_inputs(
        self,
        options: Options,  # noqa: ARG002
        fields: Fields,  # noqa: ARG002
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Labels in turn, energies of held-out rows."""
        return {
            "latents": random.standard_normal((count, LATENT_SIZE)).astype(np.float32),
            LABELS: np.arange(count, dtype=np.int32) % 3,
            ENERGY: np.resize(rows[ENERGY], count),
        }

    def show(
        self,
        options: Options,  # noqa: ARG002
        networks: Networks,
        inputs: Batch,
        noise: Noise,
    ) -> Mapping[str, Tensor]:
        """Images with separate noise on each, and the requested labels."""
        images = _generated(networks, inputs, training=False)
        return {IMAGES: images + 0.1 * noise.normal(*images.shape), LABELS: inputs[LABELS]}

    def judge(self, options: Options, networks: Networks, rows: Batch, inputs: Batch) -> Judged:  # noqa: ARG002
        """The critic's scores, and the variance of one over all replicas."""
        real = _judged(networks, rows[IMAGES], rows)[:, 0]
        fake = _judged(networks, _generated(networks, inputs, training=False), inputs)[:, 0]
        mean = step_context.current().mean_over_replicas
        variance = mean(ops.mean(real**2)) - mean(ops.mean(real)) ** 2
        return Judged(
            {"margin": real - fake},
            {
                "gap": ops.mean(real) - ops.mean(fake),
                "variance": variance,
                "energy": ops.mean(rows[ENERGY]),
            },
        )


def _critic_phase(number: int) -> Phase:
    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        inputs = _inputs(batch, noise)
        real, fake = batch[IMAGES], ops.stop_gradient(_generated(networks, inputs, training=True))
        share = noise.uniform(real.shape[0], 1, 1, 1)
        slope = step_context.current().input_gradient(
            lambda images: _judged(networks, images, batch), share * real + (1.0 - share) * fake
        )
        norm = ops.sqrt(ops.sum(ops.square(slope), axis=(1, 2, 3)) + 1e-12)
        penalty = ops.mean(ops.square(norm - 1.0))
        gap = ops.mean(_judged(networks, real, batch)) - ops.mean(_judged(networks, fake, batch))
        noise_means = {
            f"drawn_{number}": ops.mean(inputs["latents"]),
            f"share_{number}": ops.mean(share),
        }
        return Forward(
            {"loss_critic": PENALTY_WEIGHT * penalty - gap}, {"penalty": penalty, **noise_means}
        )

    return Phase(
        f"critic_{number}", forward, (Update("discriminator", "loss_critic"),), batch=number
    )


def _generator_phase(number: int) -> Phase:
    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        inputs = _inputs(batch, noise)
        fake = _generated(networks, inputs, training=True)
        noise_means = {f"drawn_{2 + number}": ops.mean(inputs["latents"])}
        return Forward({"loss_generator": -ops.mean(_judged(networks, fake, inputs))}, noise_means)

    return Phase(f"generator_{number}", forward, (Update("generator", "loss_generator"),))


def _network(first: Any, sizes: list[tuple[str, int]], name: str) -> keras.Model:
    """Dense layers on a first input, a label and an energy."""
    label, energy = keras.Input((), dtype="int32"), keras.Input(())
    class_values = layers.Embedding(3, 4, name="classes")(label)
    values = layers.Concatenate(name="together")(
        [layers.Flatten(name="flatten")(first), class_values, ops.expand_dims(energy, -1)]
    )
    for place, (layer, size) in enumerate(sizes):
        values = ops.tanh(values) if place else values
        # No gradient would reach the bias of a logit: the critic's loss contains only differences.
        values = layers.Dense(size, use_bias=layer != "logit", dtype="float32", name=layer)(values)
    return keras.Model([first, label, energy], values, name=name)


def _inputs(rows: Batch, noise: Noise) -> dict[str, Tensor]:
    latents = noise.normal(rows[LABELS].shape[0], LATENT_SIZE)
    return {"latents": latents, LABELS: rows[LABELS], ENERGY: rows[ENERGY]}


def _generated(networks: Networks, inputs: Batch, training: bool) -> Tensor:
    conditions = [inputs["latents"], inputs[LABELS], inputs[ENERGY]]
    return networks["generator"](conditions, training=training)


def _judged(networks: Networks, images: Tensor, conditions: Batch) -> Tensor:
    return networks["discriminator"](
        [images, conditions[LABELS], conditions[ENERGY]], training=True
    )


class ShortConditionalGan(ConditionalGan):
    """One critic update, on the second batch of a step, and one generator update: traced in half
    the time.
    """

    def program(self, options: Options, fields: Fields) -> Program:
        """Two phases on separate batches."""
        _, critic, generator, _ = super().program(options, fields).phases
        return Program((critic, generator))


CONDITIONAL_GAN, SHORT_CONDITIONAL_GAN = ConditionalGan(), ShortConditionalGan()
