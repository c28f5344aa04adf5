"""Unconditional GANs of two networks, a generator and a discriminator of pictures: their step, and what is looked at.

A step trains both together from ONE forward pass, or in turn. Latents z: float32 (B, latent size), standard normal.
Generator z → pictures (B, height, width, channels) in [-1, 1]; discriminator pictures → logits (B, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.fields import IMAGES, Fields
from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import (
    Arrays,
    Batch,
    Forward,
    Judged,
    Networks,
    Noise,
    Phase,
    Program,
    Tensor,
    Update,
)
from gan_runtime.workloads.losses import (
    bce_fake,
    bce_fake_for_both,
    bce_real,
    generator_over_discriminator,
    minimax_generator,
    probability_real,
    r1_penalty,
)

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
LOSS_GENERATOR, LOSS_DISCRIMINATOR = "loss_generator", "loss_discriminator"
LATENTS = "latents"
UNDECIDED = 0.5  # D's score between "fake" and "real"

FOLLOW_G = Update(GENERATOR, LOSS_GENERATOR)
FOLLOW_D = Update(DISCRIMINATOR, LOSS_DISCRIMINATOR)
# Follows D's loss, whose gradient has become that of the generator's loss on its way back. Not in float16: where D is sure,
# its gradient vanishes in half precision, and nothing can be made of it.
OPPOSE_D = Update(GENERATOR, LOSS_DISCRIMINATOR, loss_when_scaled=LOSS_GENERATOR)


@dataclass(frozen=True)
class UnconditionalPair:
    """See `contract.Workload`.

    `each_image_alone`: D's logit depends on that picture only (no batch norm in D). Then both losses can share one backward
    pass through D: their gradients differ by a factor for each picture.
    """

    latent_size: int
    make_networks: Callable[[], dict[str, Any]]
    each_image_alone: bool = False

    def networks(self, options: PairOptions, fields: Fields) -> dict[str, Any]:  # noqa: ARG002
        """{"generator": …, "discriminator": …}, new and untrained."""
        return self.make_networks()

    def program(self, options: PairOptions, fields: Fields) -> Program:  # noqa: ARG002
        """One phase that updates both networks, or k for the discriminator and one for the generator."""
        if options.updates == "together":
            return Program((self._both(options),))
        steps = range(options.discriminator_steps)
        return Program((*(self._discriminator(options, batch) for batch in steps), self._generator(options)))

    def inputs(self, options: PairOptions, fields: Fields, rows: Batch, noise: Noise) -> Batch:  # noqa: ARG002
        """{"latents": float32 (B, latent size)}."""
        return {LATENTS: noise.normal(rows[IMAGES].shape[0], self.latent_size)}

    def fixed_inputs(
        self,
        options: PairOptions,  # noqa: ARG002
        fields: Fields,  # noqa: ARG002
        rows: Arrays,  # noqa: ARG002
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """{"latents": float32 (count, latent size)}: the same place in the grids of two runs shows the same latent."""
        return {LATENTS: random.standard_normal((count, self.latent_size)).astype(np.float32)}

    def show(
        self,
        options: PairOptions,  # noqa: ARG002
        networks: Networks,
        inputs: Batch,
        training: bool = False,
    ) -> Mapping[str, Tensor]:
        """{"images": float32 (B, height, width, channels) in [-1, 1]}."""
        return {IMAGES: ops.cast(networks[GENERATOR](inputs[LATENTS], training=training), "float32")}

    def judge(self, options: PairOptions, networks: Networks, rows: Batch, inputs: Batch) -> Judged:
        """D's scores, the share that it judges rightly, and how far pictures differ from each other.

        The spread of generated pictures is taken in training mode: stored batch-norm statistics lag behind at first and
        flatten every picture.
        """
        fake = self.show(options, networks, inputs)[IMAGES]
        varied = self.show(options, networks, inputs, training=True)[IMAGES]
        scores = {
            "real": probability_real(networks[DISCRIMINATOR](rows[IMAGES], training=False)),
            "fake": probability_real(networks[DISCRIMINATOR](fake, training=False)),
        }
        right = {"real": scores["real"] > UNDECIDED, "fake": scores["fake"] < UNDECIDED}
        return Judged(
            scores,
            {f"d_accuracy_{kind}": ops.mean(ops.cast(hits, "float32")) for kind, hits in right.items()}
            | {f"probe_score_{kind}": ops.mean(score) for kind, score in scores.items()}
            | {"spread_real": spread(rows[IMAGES]), "spread_fake": spread(varied)},
        )

    # ---- the phases -----------------------------------------------------------------------------------------------

    def _both(self, options: PairOptions) -> Phase:
        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            generated = self._generated(networks, batch, noise)
            context, fake_loss = step_context.current(), bce_fake
            if self.each_image_alone and not context.loss_scaling:
                fake_loss = bce_fake_for_both
                logits = context.weighted_gradient(
                    lambda images: networks[DISCRIMINATOR](images, training=True),
                    generated,
                    lambda logits: generator_over_discriminator(logits, options.generator_loss),
                )
            else:
                logits = networks[DISCRIMINATOR](generated, training=True)
            critic = _critic(networks, batch[IMAGES], logits, options, fake_loss)
            return Forward(
                {LOSS_GENERATOR: _generator_loss(logits, options), **critic.losses}, critic.scalars
            )

        return Phase("both", forward, (OPPOSE_D if self.each_image_alone else FOLLOW_G, FOLLOW_D))

    def _discriminator(self, options: PairOptions, batch_number: int) -> Phase:
        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            generated = ops.stop_gradient(self._generated(networks, batch, noise))
            return _critic(
                networks, batch[IMAGES], networks[DISCRIMINATOR](generated, training=True), options
            )

        return Phase(f"discriminator_{batch_number + 1}", forward, (FOLLOW_D,), batch_number)

    def _generator(self, options: PairOptions) -> Phase:
        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            logits = networks[DISCRIMINATOR](self._generated(networks, batch, noise), training=True)
            return Forward({LOSS_GENERATOR: _generator_loss(logits, options)})

        return Phase("generator", forward, (FOLLOW_G,))

    def _generated(self, networks: Networks, batch: Batch, noise: Noise) -> Tensor:
        return networks[GENERATOR](noise.normal(batch[IMAGES].shape[0], self.latent_size), training=True)


def spread(images: Tensor) -> Tensor:
    """Mean over the pixels of their variance over the pictures of all replicas: float32 scalar. (B, …), float.

    Var x = E[x²] - E[x]², with both means taken over all replicas first.
    """
    mean_over_replicas = step_context.current().mean_over_replicas
    mean = mean_over_replicas(ops.mean(images, axis=0))  # (height, width, channels)
    mean_square = mean_over_replicas(ops.mean(ops.square(images), axis=0))
    return ops.mean(mean_square - ops.square(mean))


def _critic(
    networks: Networks,
    images: Tensor,
    fake: Tensor,
    options: PairOptions,
    fake_loss: Callable[[Tensor], Tensor] = bce_fake,
) -> Forward:
    """D's loss and mean scores, from its logits of the generated pictures and a pass over the real ones."""
    discriminator = networks[DISCRIMINATOR]
    real = discriminator(images, training=True)
    loss = bce_real(real, 1.0 - options.label_smoothing) + fake_loss(fake)
    scalars = {"d_real": ops.mean(probability_real(real)), "d_fake": ops.mean(probability_real(fake))}
    if options.r1_weight > 0.0:
        # Without dropout: the penalty is about the slope of D itself, not of one random thinning of it.
        slope = step_context.current().input_gradient(
            lambda inputs: discriminator(inputs, training=False), images
        )
        scalars["r1_penalty"] = r1_penalty(slope)
        loss = loss + options.r1_weight * scalars["r1_penalty"]
    return Forward({LOSS_DISCRIMINATOR: loss}, scalars)


def _generator_loss(logits_fake: Tensor, options: PairOptions) -> Tensor:
    if options.generator_loss == "non_saturating":
        return bce_real(logits_fake)
    return minimax_generator(logits_fake)
