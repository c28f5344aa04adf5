"""The common step of unconditional GANs: generator and discriminator updated together from ONE forward pass."""

from __future__ import annotations

from keras import ops

from gan_runtime.workloads.contract import Batch, Forward, Networks, Noise, Phase, Tensor, Update
from gan_runtime.workloads.losses import bce_fake, bce_real, probability_real


def joint_phase(latent_size: int) -> Phase:
    """Non-saturating BCE for both networks; the step's scalars are the losses and D's mean scores."""

    def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
        latents = noise.normal(batch["images"].shape[0], latent_size)
        fake_images = networks["generator"](latents, training=True)
        real = networks["discriminator"](batch["images"], training=True)
        fake = networks["discriminator"](fake_images, training=True)
        return Forward(
            losses={"loss_generator": bce_real(fake), "loss_discriminator": bce_real(real) + bce_fake(fake)},
            scalars={"d_real": ops.mean(probability_real(real)), "d_fake": ops.mean(probability_real(fake))},
        )

    return Phase(forward, (Update("generator", "loss_generator"), Update("discriminator", "loss_discriminator")))


def pair_scores(networks: Networks, batch: Batch, latents: Tensor) -> dict[str, Tensor]:
    """D's probability of "real" for real and for generated images: two float32 (B,), 0 to 1; inference mode."""
    fake_images = networks["generator"](latents, training=False)
    return {
        "real": probability_real(networks["discriminator"](batch["images"], training=False)),
        "fake": probability_real(networks["discriminator"](fake_images, training=False)),
    }


def pair_preview(networks: Networks, latents: Tensor) -> Tensor:
    """Generated images, float32 (N, height, width, channels) in [-1, 1]; inference mode."""
    return ops.cast(networks["generator"](latents, training=False), "float32")
