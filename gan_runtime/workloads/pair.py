"""The step of unconditional GANs: generator and discriminator together from ONE forward pass, or in turn."""

from __future__ import annotations

from collections.abc import Callable

from keras import ops

from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Batch, Forward, Networks, Noise, Objective, Phase, Tensor, Update
from gan_runtime.workloads.losses import (
    bce_fake,
    bce_fake_for_both,
    bce_real,
    generator_over_discriminator,
    minimax_generator,
    probability_real,
    r1_penalty,
)

GENERATOR = Update("generator", "loss_generator")
DISCRIMINATOR = Update("discriminator", "loss_discriminator")
OPPONENT = Update(
    "generator", "loss_discriminator"
)  # whose gradient has become that of the generator's loss on its way back


def pair_phases(latent_size: int, objective: Objective, each_image_alone: bool = False) -> tuple[Phase, ...]:
    """The phases of a step: one that updates both networks, or k for the discriminator and one for the generator.

    `each_image_alone`: D's logit depends on that image only (no batch norm in D). Then both losses can share one backward
    pass through D: their gradients differ by a factor for each image.
    """
    if objective.updates == "together":
        one_way_back = each_image_alone and not objective.loss_scaling
        return (
            _opposed_phase(latent_size, objective) if one_way_back else _joint_phase(latent_size, objective),
        )
    steps = range(objective.discriminator_steps)
    return (
        *(_discriminator_phase(latent_size, objective, batch) for batch in steps),
        _generator_phase(latent_size, objective),
    )


def _joint_phase(latent_size: int, objective: Objective) -> Phase:
    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        fake = networks["discriminator"](_generated(networks, batch, noise, latent_size), training=True)
        critic = _critic(networks, batch["images"], fake, objective)
        return Forward({"loss_generator": _generator_loss(fake, objective), **critic.losses}, critic.scalars)

    return Phase(forward, (GENERATOR, DISCRIMINATOR))


def _opposed_phase(latent_size: int, objective: Objective) -> Phase:
    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        fake = step_context.current().weighted_gradient(
            lambda images: networks["discriminator"](images, training=True),
            _generated(networks, batch, noise, latent_size),
            lambda logits: generator_over_discriminator(logits, objective.generator_loss),
        )
        critic = _critic(networks, batch["images"], fake, objective, bce_fake_for_both)
        return Forward({"loss_generator": _generator_loss(fake, objective), **critic.losses}, critic.scalars)

    return Phase(forward, (OPPONENT, DISCRIMINATOR))


def _discriminator_phase(latent_size: int, objective: Objective, real_batch: int) -> Phase:
    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        fake_images = ops.stop_gradient(_generated(networks, batch, noise, latent_size))
        return _critic(
            networks, batch["images"], networks["discriminator"](fake_images, training=True), objective
        )

    return Phase(forward, (DISCRIMINATOR,), real_batch)


def _generator_phase(latent_size: int, objective: Objective) -> Phase:
    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        fake = networks["discriminator"](_generated(networks, batch, noise, latent_size), training=True)
        return Forward({"loss_generator": _generator_loss(fake, objective)})

    return Phase(forward, (GENERATOR,))


def _critic(
    networks: Networks,
    images: Tensor,
    fake: Tensor,
    objective: Objective,
    fake_loss: Callable[[Tensor], Tensor] = bce_fake,
) -> Forward:
    """D's loss and mean scores, from its logits of the generated images and a pass over the real ones."""
    discriminator = networks["discriminator"]
    real = discriminator(images, training=True)
    loss = bce_real(real, objective.real_target) + fake_loss(fake)
    scalars = {"d_real": ops.mean(probability_real(real)), "d_fake": ops.mean(probability_real(fake))}
    if objective.r1_weight > 0.0:
        # Without dropout: the penalty is about the slope of D itself, not of one random thinning of it.
        slope = step_context.current().input_gradient(
            lambda inputs: discriminator(inputs, training=False), images
        )
        scalars["r1_penalty"] = r1_penalty(slope)
        loss = loss + objective.r1_weight * scalars["r1_penalty"]
    return Forward({"loss_discriminator": loss}, scalars)


def _generated(networks: Networks, batch: Batch, noise: Noise, latent_size: int) -> Tensor:
    return networks["generator"](noise.normal(batch["images"].shape[0], latent_size), training=True)


def _generator_loss(logits_fake: Tensor, objective: Objective) -> Tensor:
    return (
        bce_real(logits_fake)
        if objective.generator_loss == "non_saturating"
        else minimax_generator(logits_fake)
    )


def pair_scores(networks: Networks, batch: Batch, latents: Tensor) -> dict[str, Tensor]:
    """D's probability of "real" for real and for generated images: two float32 (B,), 0 to 1; inference mode."""
    fake_images = networks["generator"](latents, training=False)
    return {
        "real": probability_real(networks["discriminator"](batch["images"], training=False)),
        "fake": probability_real(networks["discriminator"](fake_images, training=False)),
    }


def pair_preview(networks: Networks, latents: Tensor, training: bool = False) -> Tensor:
    """See `contract.Workload.preview`."""
    return ops.cast(networks["generator"](latents, training=training), "float32")
