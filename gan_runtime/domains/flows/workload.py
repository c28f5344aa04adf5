"""Pix2Pix: an image out of an image, such as the next frame of a flow; fed back into itself, a
film.

Images: values (B, height, width, channels), float32 in [-1, 1]. A step sees a tile of each.
Generator G: source → image; discriminator D: [source, image] → logits of patches.
Source: Isola et al. 2017, arXiv:1611.07004, equations 1 to 4; phillipi/pix2pix, train.lua. See
docs/pix2pix.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.domains.flows import unet
from gan_runtime.domains.flows.entry import Pix2pixOptions
from gan_runtime.domains.flows.fields import LATER
from gan_runtime.domains.flows.score_metrics import GENERATED
from gan_runtime.domains.flows.unet import discriminator, generator
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
    """See `contract.Workload`."""

    def networks(self, options: Pix2pixOptions, fields: Fields) -> dict[str, Any]:
        """See `unet` and `patch_gan`."""
        return {
            GENERATOR: generator(options, fields),
            DISCRIMINATOR: discriminator(options, fields),
        }

    def program(self, options: Pix2pixOptions, fields: Fields) -> Program:
        """Both networks from one forward pass, as in TensorFlow's tutorial; or D, then G
        against the new D (decision 22).
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
        """A tile of each source, and the same of its target, which the outcome is held
        against: (B, tile, tile, channels).
        """
        draws = noise.uniform(rows[SOURCE].shape[0], 2)
        return {name: unet.cut(rows[name], draws, options.tile) for name in (SOURCE, TARGET)}

    def fixed_inputs(
        self,
        options: Pix2pixOptions,
        fields: Fields,  # noqa: ARG002
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Tiles of held-out rows, which come again where there are fewer."""
        draws = random.random_sample((count, 2)).astype(np.float32)
        again = np.arange(count) % len(rows[SOURCE])
        return {
            name: np.asarray(unet.cut(rows[name][again], draws, options.tile))
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
        """D's scores, each the mean over the patches of a tile; how often it is right; and
        how far outputs are from their targets.
        """
        source, target = inputs[SOURCE], inputs[TARGET]
        made = _generated(options, networks, source, training=False)
        beliefs = {
            kind: _beliefs(networks[DISCRIMINATOR]([source, images], training=False))
            for kind, images in (("real", target), ("fake", made))
        }
        right = {"real": beliefs["real"] > UNDECIDED, "fake": beliefs["fake"] < UNDECIDED}
        return Judged(
            {kind: ops.mean(belief, axis=1) for kind, belief in beliefs.items()},
            {
                f"d_accuracy_{kind}": ops.mean(ops.cast(hits, "float32"))
                for kind, hits in right.items()
            }
            | {f"probe_score_{kind}": ops.mean(belief) for kind, belief in beliefs.items()}
            | {"spread_real": spread(target), "spread_fake": spread(made)}
            | {"tile_error": mean_absolute_error(made, target), **_unchanged(source, target)},
        )

    def tile(self, options: Pix2pixOptions, fields: Fields) -> int:  # noqa: ARG002
        """Pixels along a side of what `translate` takes, or a multiple of it."""
        return options.tile

    def translate(self, options: Pix2pixOptions, networks: Networks, source: Tensor) -> Tensor:
        """What G makes of sources, float32, by its stored statistics and without dropout:
        each row by itself.
        """
        return _generated(options, networks, source, training=False)


# ---- a step --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RolloutFrames:
    """What G starts from, and of the last frame that it makes: what D sees beside it, and the
    true one. `targets`: of all frames.
    """

    start: Tensor
    targets: tuple[Tensor, ...]
    beside: Tensor


def both_phase(
    options: Pix2pixOptions, fields: Fields, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """Both losses, of the same images."""
    frames = drawn_frames(options, fields, batch, noise)
    made = films(options, networks, frames)
    fake = networks[DISCRIMINATOR]([frames.beside, made[-1]], training=True)
    of_d, of_g = (
        _of_discriminator(options, networks, frames, fake),
        _of_generator(options, frames, made, fake),
    )
    return Forward({**of_d.losses, **of_g.losses}, {**of_d.scalars, **of_g.scalars})


def discriminator_phase(
    options: Pix2pixOptions, fields: Fields, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """D's loss, of images that G is not told about."""
    frames = drawn_frames(options, fields, batch, noise)
    made = ops.stop_gradient(films(options, networks, frames)[-1])
    fake = networks[DISCRIMINATOR]([frames.beside, made], training=True)
    return _of_discriminator(options, networks, frames, fake)


def generator_phase(
    options: Pix2pixOptions, fields: Fields, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """G's loss against the new D, of images made anew: other tiles, another dropout."""
    frames = drawn_frames(options, fields, batch, noise)
    made = films(options, networks, frames)
    fake = networks[DISCRIMINATOR]([frames.beside, made[-1]], training=True)
    return _of_generator(options, frames, made, fake)


def drawn_frames(
    options: Pix2pixOptions, fields: Fields, batch: Batch, noise: Noise
) -> RolloutFrames:
    """Tiles at places drawn for each row, the same in all of its frames; turned over and made noisy
    as the options say.

    D sees the last frame beside what truly came before it, for true and generated frames alike.
    """
    draws = noise.uniform(batch[SOURCE].shape[0], 3)  # (B, 3): top, left, whether it is turned over

    def tile_of(frames: Tensor, name: str) -> Tensor:
        own = unet.cut(frames, draws[:, :2], options.tile)
        return unet.turned(own, draws[:, 2], options.flip, fields[name].odd_channels)

    source = tile_of(batch[SOURCE], SOURCE)
    targets = [tile_of(batch[TARGET], TARGET)]
    targets += [tile_of(batch[LATER][:, place], LATER) for place in range(options.unrolled - 1)]
    beside = following(source, targets[-2]) if options.unrolled > 1 else source
    return RolloutFrames(_noisy(options, source, targets[0], noise), tuple(targets), beside)


def films(options: Pix2pixOptions, networks: Networks, frames: RolloutFrames) -> list[Tensor]:
    """As many images as there are targets, each made of the one before."""
    source, made = frames.start, []
    for _ in frames.targets:
        made.append(_generated(options, networks, source, training=True))
        source = following(source, made[-1])
    return made


def following(source: Tensor, image: Tensor) -> Tensor:
    """The next source: the image, and the channels that a source has beyond it, such as the
    obstacle, as they are.
    """
    own = image.shape[-1]
    return ops.concatenate([image, source[..., own:]], axis=-1) if source.shape[-1] > own else image


def _noisy(options: Pix2pixOptions, source: Tensor, target: Tensor, noise: Noise) -> Tensor:
    """s + σ n on the channels that are fed back; an obstacle stands where it is."""
    if options.input_noise == 0.0:
        return source
    fed_back = min(source.shape[-1], target.shape[-1])
    rows, *sizes = source.shape[:-1]
    errors = options.input_noise * noise.normal(rows, *sizes, fed_back)
    return following(source, source[..., :fed_back] + errors)


def _generated(
    options: Pix2pixOptions, networks: Networks, source: Tensor, training: bool
) -> Tensor:
    """G(s), or s + G(s) over the channels of the target.

    In training the sum may leave -1 to 1: cut, it would have no gradient there.
    """
    made = ops.cast(networks[GENERATOR](source, training=training), "float32")
    if options.output == "image":
        return made
    changed = source[..., : made.shape[-1]] + made
    return changed if training else ops.clip(changed, -1.0, 1.0)


def _of_discriminator(
    options: Pix2pixOptions, networks: Networks, frames: RolloutFrames, fake: Tensor
) -> Forward:
    """L_D = ½ (BCE(D(s, t), real) + BCE(D(s, G(s)), generated)), means over rows and patches:
    at tile 256 of (B, 30, 30, 1) logits.
    """
    real = networks[DISCRIMINATOR]([frames.beside, frames.targets[-1]], training=True)
    loss = options.weight_discriminator * (bce_real(real) + bce_fake(fake))
    scores = {
        "d_real": ops.mean(probability_real(real)),
        "d_fake": ops.mean(probability_real(fake)),
    }
    return Forward({FOLLOW_D.loss: loss}, scores)


def _of_generator(
    options: Pix2pixOptions, frames: RolloutFrames, made: list[Tensor], fake: Tensor
) -> Forward:
    """L_G = BCE(D(s, G(s)), real) + λ mean |t - G(s)| (equation 4, non-saturating); the
    difference is the mean over all frames.
    """
    surely = bce_real(fake)
    pairs = zip(made, frames.targets, strict=True)
    difference = sum(mean_absolute_error(*pair) for pair in pairs) / len(made)
    scalars = {"bce_generator": surely, "l1_difference": difference}
    return Forward({FOLLOW_G.loss: surely + options.weight_l1 * difference}, scalars)


def _beliefs(logits: Tensor) -> Tensor:
    """(B, rows, columns, 1) → of each patch, (B, patches)."""
    return ops.reshape(probability_real(logits), (logits.shape[0], -1))


def _unchanged(source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """What the source itself would be worth as output; nothing where it has fewer channels."""
    own = target.shape[-1]
    if source.shape[-1] < own:
        return {}
    return {"unchanged_error": mean_absolute_error(source[..., :own], target)}


WORKLOAD = Pix2pix()
