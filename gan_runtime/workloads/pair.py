"""GANs with a generator G and a discriminator D of images: their step, samples and scores.

A step updates both from ONE forward pass, or in turn. Latents z: float32 (B, latent size), standard
normal; labels y, if the data set has them: int32 (B,). G: z (, y) → images (B, height, width,
channels) in [-1, 1]; D: images (, y) → logits (B, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.base.fields import CLASS_IMAGES, IMAGES, LABELS, Fields
from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.workloads import augmentation, step_context
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
from gan_runtime.workloads.losses import LOSSES, PairLoss, r1_penalty

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
LOSS_GENERATOR, LOSS_DISCRIMINATOR = "loss_generator", "loss_discriminator"
LATENTS = "latents"
COLUMNS, MOST_CLASSES = 8, 20  # of the sample grid with all classes
UNDECIDED = 0.5  # D's score between "fake" and "real"

FOLLOW_G = Update(GENERATOR, LOSS_GENERATOR)
FOLLOW_D = Update(DISCRIMINATOR, LOSS_DISCRIMINATOR)
# Follows D's loss, whose gradient the backward pass turns into the gradient of G's loss. Not in
# float16, where D's gradient underflows once D is sure.
OPPOSE_D = Update(GENERATOR, LOSS_DISCRIMINATOR, loss_when_scaled=LOSS_GENERATOR)


class Pair:
    """Base class of a generator and a discriminator (contract.Workload).

    If a batch has labels, both networks take [values, labels], and the images that a step
    generates have the labels of its training images.
    """

    def networks(self, options: Any, fields: Fields) -> dict[str, Any]:
        """{"generator": …, "discriminator": …}, new and untrained."""
        raise NotImplementedError

    def latent_size_of(self, options: Any) -> int:
        """Numbers per latent vector."""
        raise NotImplementedError

    def judges_each_alone(self, options: Any) -> bool:
        """Whether each of D's logits depends only on its image (no batch norm in D).

        Both losses then share one backward pass through D, since their gradients differ by one
        factor per image.
        """
        raise NotImplementedError

    def loss_of(self, options: PairOptions) -> PairLoss:
        """The loss of both networks."""
        return LOSSES[options.loss]

    def program(self, options: PairOptions, fields: Fields) -> Program:  # noqa: ARG002
        """One phase for both networks, or k phases for the discriminator and one for
        the generator.
        """
        if options.updates == "together":
            return Program((self._both(options),))
        steps = range(options.discriminator_steps)
        return Program(
            (*(self._discriminator(options, batch) for batch in steps), self._generator(options))
        )

    def inputs(self, options: PairOptions, fields: Fields, rows: Batch, noise: Noise) -> Batch:  # noqa: ARG002
        """{"latents": float32 (B, latent size)}, plus the labels of the rows."""
        return self._latents(options, rows, noise)

    def fixed_inputs(
        self,
        options: PairOptions,
        fields: Fields,
        rows: Arrays,  # noqa: ARG002
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """{"latents": float32 (count, latent size)}, the same in all runs.

        With labels: COLUMNS rows for each of the first MOST_CLASSES classes, with one latent per
        column.
        """
        size = self.latent_size_of(options)
        if LABELS not in fields:
            return {LATENTS: random.standard_normal((count, size)).astype(np.float32)}
        classes = min(len(fields[LABELS].classes), MOST_CLASSES)
        latents = random.standard_normal((COLUMNS, size)).astype(np.float32)
        labels = np.repeat(np.arange(classes, dtype=np.int32), COLUMNS)  # 0 0 0 … 1 1 1 …
        return {LATENTS: np.tile(latents, (classes, 1)), LABELS: labels}

    def show(
        self,
        options: PairOptions,  # noqa: ARG002
        networks: Networks,
        inputs: Batch,
        noise: Noise,  # noqa: ARG002
    ) -> Mapping[str, Tensor]:
        """{"images": float32 (B, height, width, channels) in [-1, 1]}; with labels
        {"class_images": …, "labels": …}.
        """
        images = _images(networks, inputs)
        return (
            {CLASS_IMAGES: images, LABELS: inputs[LABELS]} if LABELS in inputs else {IMAGES: images}
        )

    def judge(self, options: PairOptions, networks: Networks, rows: Batch, inputs: Batch) -> Judged:
        """Measures D's scores and accuracy, where the loss makes its outputs probabilities, and the
        spread of training and generated images.

        The spread of generated images is measured in training mode, since stored batch-norm
        statistics lag at first and flatten every image.
        """
        fake, varied = _images(networks, inputs), _images(networks, inputs, training=True)
        spreads = {"spread_real": spread(rows[IMAGES]), "spread_fake": spread(varied)}
        discriminator, scores_of = networks[DISCRIMINATOR], self.loss_of(options).scores
        if scores_of is None:
            return Judged({}, spreads)
        logits = [
            discriminator(_with_labels(images, rows), training=False)
            for images in (rows[IMAGES], fake)
        ]
        scores = dict(zip(("real", "fake"), scores_of(*logits), strict=True))
        correct = {"real": scores["real"] > UNDECIDED, "fake": scores["fake"] < UNDECIDED}
        return Judged(
            scores,
            {
                f"d_accuracy_{kind}": ops.mean(ops.cast(hits, "float32"))
                for kind, hits in correct.items()
            }
            | {f"probe_score_{kind}": ops.mean(score) for kind, score in scores.items()}
            | spreads,
        )

    # ---- the phases ------------------------------------------------------------------------------

    def _both(self, options: PairOptions) -> Phase:
        """Updates both networks from one forward pass, and with one backward pass where loss and D
        allow it.
        """
        loss = self.loss_of(options)
        one_pass = loss.one_pass if self.judges_each_alone(options) else None

        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            batch, generated = _augmented(
                options, batch, self._generated(options, networks, batch, noise), noise
            )
            context, of_discriminator = step_context.current(), loss.discriminator
            if one_pass and not context.loss_scaling:
                of_discriminator = one_pass.discriminator
                fake = context.weighted_gradient(
                    lambda images: _logits(networks, images, batch),
                    generated,
                    lambda logits: one_pass.ratio(logits, options),
                )
            else:
                fake = _logits(networks, generated, batch)
            real = _logits(networks, batch[IMAGES], batch)
            critic = _critic(
                networks, batch, generated, options, of_discriminator(real, fake, options)
            )
            losses = {LOSS_GENERATOR: loss.generator(real, fake, options), **critic.losses}
            return Forward(losses, {**_mean_scores(loss, real, fake), **critic.scalars})

        return Phase("both", forward, (OPPOSE_D if one_pass else FOLLOW_G, FOLLOW_D))

    def _discriminator(self, options: PairOptions, batch_number: int) -> Phase:
        loss = self.loss_of(options)

        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            generated = ops.stop_gradient(self._generated(options, networks, batch, noise))
            batch, generated = _augmented(options, batch, generated, noise)
            fake, real = (_logits(networks, images, batch) for images in (generated, batch[IMAGES]))
            critic = _critic(
                networks, batch, generated, options, loss.discriminator(real, fake, options)
            )
            return Forward(critic.losses, {**_mean_scores(loss, real, fake), **critic.scalars})

        return Phase(f"discriminator_{batch_number + 1}", forward, (FOLLOW_D,), batch_number)

    def _generator(self, options: PairOptions) -> Phase:
        loss = self.loss_of(options)

        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            batch, generated = _augmented(
                options, batch, self._generated(options, networks, batch, noise), noise
            )
            fake = _logits(networks, generated, batch)
            real = _logits(networks, batch[IMAGES], batch) if loss.reads_real else fake
            return Forward({LOSS_GENERATOR: loss.generator(real, fake, options)})

        return Phase("generator", forward, (FOLLOW_G,))

    def _generated(
        self, options: PairOptions, networks: Networks, batch: Batch, noise: Noise
    ) -> Tensor:
        inputs = self._latents(options, batch, noise)
        return networks[GENERATOR](_with_labels(inputs[LATENTS], inputs), training=True)

    def _latents(self, options: PairOptions, rows: Batch, noise: Noise) -> Batch:
        inputs = {LATENTS: noise.normal(rows[IMAGES].shape[0], self.latent_size_of(options))}
        return {**inputs, LABELS: rows[LABELS]} if LABELS in rows else inputs


@dataclass(frozen=True)
class UnconditionalPair(Pair):
    """A pair of unconditional networks of a fixed size."""

    latent_size: int
    make_networks: Callable[[], dict[str, Any]]
    each_image_alone: bool = False
    losses: Mapping[str, PairLoss] = field(default_factory=lambda: LOSSES)

    def networks(self, options: PairOptions, fields: Fields) -> dict[str, Any]:  # noqa: ARG002
        """{"generator": …, "discriminator": …}, new and untrained."""
        return self.make_networks()

    def loss_of(self, options: PairOptions) -> PairLoss:
        """The loss in the workload's table."""
        return self.losses[options.loss]

    def latent_size_of(self, options: PairOptions) -> int:  # noqa: ARG002
        """Fixed by the workload."""
        return self.latent_size

    def judges_each_alone(self, options: PairOptions) -> bool:  # noqa: ARG002
        """Fixed by the workload."""
        return self.each_image_alone


def _with_labels(values: Tensor, rows: Batch) -> Tensor:
    return [values, rows[LABELS]] if LABELS in rows else values


def _images(networks: Networks, inputs: Batch, training: bool = False) -> Tensor:
    return ops.cast(
        networks[GENERATOR](_with_labels(inputs[LATENTS], inputs), training=training), "float32"
    )


def _augmented(
    options: PairOptions, batch: Batch, generated: Tensor, noise: Noise
) -> tuple[Batch, Tensor]:
    """A batch and generated images (B, …) as D sees them: the real and the generated image at an
    index get the same random change.
    """
    if options.augmentation == "none":
        return batch, generated
    change = augmentation.drawn(options.augmentation, noise, tuple(batch[IMAGES].shape))
    return {**batch, IMAGES: change(batch[IMAGES])}, change(generated)


def _logits(networks: Networks, images: Tensor, batch: Batch) -> Tensor:
    return networks[DISCRIMINATOR](_with_labels(images, batch), training=True)


def spread(images: Tensor) -> Tensor:
    """Mean over the pixels of their variance over the images (B, …) of all replicas: float32
    scalar.

    Var x = E[x²] - E[x]², with both means over all replicas.
    """
    mean_over_replicas = step_context.current().mean_over_replicas
    mean = mean_over_replicas(ops.mean(images, axis=0))  # (height, width, channels)
    mean_square = mean_over_replicas(ops.mean(ops.square(images), axis=0))
    return ops.mean(mean_square - ops.square(mean))


def _mean_scores(loss: PairLoss, real: Tensor, fake: Tensor) -> dict[str, Tensor]:
    if loss.scores is None:
        return {}
    of_real, of_fake = loss.scores(real, fake)
    return {"d_real": ops.mean(of_real), "d_fake": ops.mean(of_fake)}


def _critic(
    networks: Networks, batch: Batch, generated: Tensor, options: PairOptions, loss: Tensor
) -> Forward:
    """D's loss plus the penalties that the options select, at the images that D sees. Scalars are
    the unweighted penalties.
    """
    penalties: dict[str, Tensor] = {}
    weighted = (
        ("r1", options.r1_weight, batch[IMAGES]),
        ("r2", options.r2_weight, ops.stop_gradient(generated)),
    )
    for name, weight, images in weighted:
        if weight == 0.0:
            continue
        # Without dropout, so that the penalty is on the slope of the whole D, not of a random part.
        slope = step_context.current().input_gradient(
            lambda images: networks[DISCRIMINATOR](_with_labels(images, batch), training=False),
            images,
        )
        penalties[f"{name}_penalty"] = penalty = r1_penalty(slope)
        if options.penalty_end != 1.0:
            penalties["penalty_factor"] = factor = penalty_factor(options)
            penalty = factor * penalty
        loss = loss + weight * penalty
    return Forward({LOSS_DISCRIMINATOR: loss}, penalties)


def penalty_factor(options: PairOptions) -> Tensor:
    """The factor on both penalties in this step, float32 scalar: falls along half a cosine from 1
    to `penalty_end`.
    """
    share = step_context.current().progress.share
    return options.penalty_end + (1.0 - options.penalty_end) * 0.5 * (
        1.0 + ops.cos(math.pi * share)
    )
