"""Pix2Pix: image to image, such as the next frame of a flow; in a rollout, a film.

Images: values (B, height, width, channels), float32 in [-1, 1]. A step reads a tile of each.
Generator G: source → image; discriminator D: [source, image] → logits of patches.
Source: Isola et al. 2017, arXiv:1611.07004, equations 1 to 4; phillipi/pix2pix, train.lua.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.base.fields import GENERATED, SOURCE, TARGET, Fields
from gan_runtime.domains.flows.fields import LATER
from gan_runtime.domains.flows.networks import cut, discriminator, flipped, generator
from gan_runtime.domains.flows.options import Pix2pixOptions
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
from gan_runtime.workloads.losses import bce_fake, bce_real, mean_absolute_error, probability_real
from gan_runtime.workloads.pair import UNDECIDED, spread

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
FOLLOW_G, FOLLOW_D = (
    Update(GENERATOR, "loss_generator"),
    Update(DISCRIMINATOR, "loss_discriminator"),
)


class Pix2pix:
    """Implements `contract.Workload` and `contract.Translates`."""

    def networks(self, options: Pix2pixOptions, fields: Fields) -> dict[str, Any]:
        """Generator and discriminator."""
        return {
            GENERATOR: generator(options, fields),
            DISCRIMINATOR: discriminator(options, fields),
        }

    def program(self, options: Pix2pixOptions, fields: Fields) -> Program:
        """Updates both networks from one forward pass, as in TensorFlow's tutorial; or D, then G
        against the updated D (decision 22).
        """
        if options.updates == "together":
            return Program(
                (Phase("both", partial(both_phase, options, fields), (FOLLOW_G, FOLLOW_D)),)
            )
        return Program(
            (
                Phase("discriminator", partial(discriminator_phase, options, fields), (FOLLOW_D,)),
                Phase("generator", partial(generator_phase, options, fields), (FOLLOW_G,)),
            )
        )

    def inputs(self, options: Pix2pixOptions, fields: Fields, rows: Batch, noise: Noise) -> Batch:  # noqa: ARG002
        """A tile of each source, and the same tile of its target: (B, tile, tile, channels)."""
        draws = noise.uniform(rows[SOURCE].shape[0], 2)
        return {name: cut(rows[name], draws, options.tile) for name in (SOURCE, TARGET)}

    def fixed_inputs(
        self,
        options: Pix2pixOptions,
        fields: Fields,  # noqa: ARG002
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Tiles of held-out rows, repeated if there are fewer."""
        draws = random.random_sample((count, 2)).astype(np.float32)
        places = np.arange(count) % len(rows[SOURCE])
        return {
            name: np.asarray(cut(rows[name][places], draws, options.tile))
            for name in (SOURCE, TARGET)
        }

    def show(
        self,
        options: Pix2pixOptions,
        networks: Networks,
        inputs: Batch,
        noise: Noise,  # noqa: ARG002
    ) -> Mapping[str, Tensor]:
        """{"source": …, "generated": …, "target": …}."""
        return {**inputs, GENERATED: _generated(options, networks, inputs[SOURCE], training=False)}

    def judge(
        self,
        options: Pix2pixOptions,
        networks: Networks,
        rows: Batch,  # noqa: ARG002
        inputs: Batch,
    ) -> Judged:
        """D's scores, each the mean over the patches of a tile; its accuracy; and the differences
        of outputs to their targets.
        """
        source, target = inputs[SOURCE], inputs[TARGET]
        generated = _generated(options, networks, source, training=False)
        beliefs = {
            kind: _beliefs(networks[DISCRIMINATOR]([source, images], training=False))
            for kind, images in (("real", target), ("fake", generated))
        }
        right = {"real": beliefs["real"] > UNDECIDED, "fake": beliefs["fake"] < UNDECIDED}
        return Judged(
            {kind: ops.mean(belief, axis=1) for kind, belief in beliefs.items()},
            {
                f"d_accuracy_{kind}": ops.mean(ops.cast(hits, "float32"))
                for kind, hits in right.items()
            }
            | {f"probe_score_{kind}": ops.mean(belief) for kind, belief in beliefs.items()}
            | {"spread_real": spread(target), "spread_fake": spread(generated)}
            | {"tile_error": mean_absolute_error(generated, target), **_unchanged(source, target)},
        )

    def tile(self, options: Pix2pixOptions, fields: Fields) -> int:  # noqa: ARG002
        """Pixels along a side of the inputs of `translate`, which can be multiples."""
        return options.tile

    def translate(self, options: Pix2pixOptions, networks: Networks, source: Tensor) -> Tensor:
        """G's images of sources, float32, with its stored statistics and without dropout, so that
        rows are independent.
        """
        return _generated(options, networks, source, training=False)


# ---- a step --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RolloutFrames:
    """`start`: G's first input; `targets`: of all frames; `condition`: the source of the last
    target, which D reads next to it.
    """

    start: Tensor
    targets: tuple[Tensor, ...]
    condition: Tensor


def both_phase(
    options: Pix2pixOptions, fields: Fields, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """Both losses, on the same images."""
    frames = drawn_frames(options, fields, batch, noise)
    images = rolled_out(options, networks, frames)
    fake = networks[DISCRIMINATOR]([frames.condition, images[-1]], training=True)
    of_d = _of_discriminator(options, networks, frames, fake)
    of_g = _of_generator(options, frames, images, fake)
    return Forward({**of_d.losses, **of_g.losses}, {**of_d.scalars, **of_g.scalars})


def discriminator_phase(
    options: Pix2pixOptions, fields: Fields, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """D's loss, without a gradient to G."""
    frames = drawn_frames(options, fields, batch, noise)
    image = ops.stop_gradient(rolled_out(options, networks, frames)[-1])
    fake = networks[DISCRIMINATOR]([frames.condition, image], training=True)
    return _of_discriminator(options, networks, frames, fake)


def generator_phase(
    options: Pix2pixOptions, fields: Fields, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """G's loss against the updated D, on newly generated images with other tiles and another
    dropout mask.
    """
    frames = drawn_frames(options, fields, batch, noise)
    images = rolled_out(options, networks, frames)
    fake = networks[DISCRIMINATOR]([frames.condition, images[-1]], training=True)
    return _of_generator(options, frames, images, fake)


def drawn_frames(
    options: Pix2pixOptions, fields: Fields, batch: Batch, noise: Noise
) -> RolloutFrames:
    """Random tiles, equal in all frames of a row, flipped and with noise as the options select. D
    reads the last frame together with the true frame before it, for true and generated frames
    alike.
    """
    draws = noise.uniform(batch[SOURCE].shape[0], 3)  # (B, 3): top, left, flip

    def tile_of(frames: Tensor, name: str) -> Tensor:
        tiles = cut(frames, draws[:, :2], options.tile)
        return flipped(tiles, draws[:, 2], options.flip, fields[name].odd_channels)

    source = tile_of(batch[SOURCE], SOURCE)
    targets = [tile_of(batch[TARGET], TARGET)]
    targets += [tile_of(batch[LATER][:, place], LATER) for place in range(options.unrolled - 1)]
    condition = following(source, targets[-2]) if options.unrolled > 1 else source
    return RolloutFrames(_noisy(options, source, targets[0], noise), tuple(targets), condition)


def rolled_out(options: Pix2pixOptions, networks: Networks, frames: RolloutFrames) -> list[Tensor]:
    """One image per target, each predicted from the previous one."""
    source, images = frames.start, []
    for _ in frames.targets:
        images.append(_generated(options, networks, source, training=True))
        source = following(source, images[-1])
    return images


def following(source: Tensor, image: Tensor) -> Tensor:
    """The next source: the image, and the further channels of the source, such as the obstacle."""
    channels = image.shape[-1]
    if source.shape[-1] == channels:
        return image
    return ops.concatenate([image, source[..., channels:]], axis=-1)


def _noisy(options: Pix2pixOptions, source: Tensor, target: Tensor, noise: Noise) -> Tensor:
    """s + σ n on the channels that outputs replace, so not on an obstacle."""
    if options.input_noise == 0.0:
        return source
    channels = min(source.shape[-1], target.shape[-1])
    rows, *sizes = source.shape[:-1]
    errors = options.input_noise * noise.normal(rows, *sizes, channels)
    return following(source, source[..., :channels] + errors)


def _generated(
    options: Pix2pixOptions, networks: Networks, source: Tensor, training: bool
) -> Tensor:
    """G(s), or s + G(s) over the channels of the target.

    In training the sum is not clipped to [-1, 1], where it would have no gradient.
    """
    output = ops.cast(networks[GENERATOR](source, training=training), "float32")
    if options.output == "image":
        return output
    image = source[..., : output.shape[-1]] + output
    return image if training else ops.clip(image, -1.0, 1.0)


def _of_discriminator(
    options: Pix2pixOptions, networks: Networks, frames: RolloutFrames, fake: Tensor
) -> Forward:
    """L_D = ½ (BCE(D(s, t), real) + BCE(D(s, G(s)), generated)), means over rows and patches:
    at tile 256 of (B, 30, 30, 1) logits.
    """
    real = networks[DISCRIMINATOR]([frames.condition, frames.targets[-1]], training=True)
    loss = options.weight_discriminator * (bce_real(real) + bce_fake(fake))
    scores = {
        "d_real": ops.mean(probability_real(real)),
        "d_fake": ops.mean(probability_real(fake)),
    }
    return Forward({FOLLOW_D.loss: loss}, scores)


def _of_generator(
    options: Pix2pixOptions, frames: RolloutFrames, images: list[Tensor], fake: Tensor
) -> Forward:
    """L_G = BCE(D(s, G(s)), real) + λ mean |t - G(s)| (equation 4, non-saturating); the
    difference is the mean over all frames.
    """
    cross_entropy = bce_real(fake)
    pairs = zip(images, frames.targets, strict=True)
    difference = sum(mean_absolute_error(*pair) for pair in pairs) / len(images)
    scalars = {"bce_generator": cross_entropy, "l1_difference": difference}
    return Forward({FOLLOW_G.loss: cross_entropy + options.weight_l1 * difference}, scalars)


def _beliefs(logits: Tensor) -> Tensor:
    """D's probability for each patch: (B, rows, columns, 1) → (B, patches)."""
    return ops.reshape(probability_real(logits), (logits.shape[0], -1))


def _unchanged(source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """The error of the source as output; nothing where it has fewer channels."""
    channels = target.shape[-1]
    if source.shape[-1] < channels:
        return {}
    return {"unchanged_error": mean_absolute_error(source[..., :channels], target)}


WORKLOAD = Pix2pix()
