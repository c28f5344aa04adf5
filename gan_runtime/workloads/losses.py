"""GAN losses on logits, each a plain mean over the replica's batch; the engine scales for replicas.

Keras' loss objects rescale themselves under tf.distribute and are therefore not used here.
Source: paper, equations 3 to 5; Goodfellow et al. 2014 for the non-saturating generator loss.
"""

from __future__ import annotations

from keras import ops

from gan_runtime.workloads.contract import Tensor

# of D's gradient where D is sure: G's can still be made from it, and no sum in float32 notices
REMAINDER = 1e-20


def bce_real(logits: Tensor, target: float = 1.0) -> Tensor:
    """Binary cross-entropy against "real": mean of -t log s - (1 - t) log(1 - s) with s =
    sigmoid(logits), nats, 0 to infinity.

    `target` t below 1 is one-sided label smoothing (Salimans et al. 2016, section 3.4). Logits (B,
    1), any float.
    """
    wide = ops.cast(logits, "float32")
    return ops.mean(ops.softplus(-wide) + (1.0 - target) * wide)


def bce_fake(logits: Tensor) -> Tensor:
    """Binary cross-entropy against "fake": mean of -log(1 - sigmoid(logits)), nats, 0 to
    infinity.
    """
    return ops.mean(ops.softplus(ops.cast(logits, "float32")))


def bce(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy against targets t of 0 to 1, as many as logits: mean of -t log s -
    (1 - t) log(1 - s), nats.
    """
    wide = ops.cast(logits, "float32")
    return ops.mean(ops.softplus(wide) - targets * wide)


def mean_percentage_error(values: Tensor, targets: Tensor, least: float = 1e-7) -> Tensor:
    """Mean of 100 |v - t| / |t|, per cent, 0 to infinity; a target below `least` counts as so
    much (1e-7 in Keras).
    """
    return 100.0 * ops.mean(ops.abs(values - targets) / ops.maximum(ops.abs(targets), least))


def mean_absolute_error(values: Tensor, targets: Tensor) -> Tensor:
    """Mean of |v - t|, in their unit."""
    return ops.mean(ops.abs(values - targets))


def minimax_generator(logits: Tensor) -> Tensor:
    """The paper's generator loss, equation 5: mean of log(1 - sigmoid(logits)), nats, minus
    infinity to 0.

    It saturates: while D is sure that an image is fake, the gradient is nearly zero.
    """
    return -bce_fake(logits)


def bce_fake_for_both(logits: Tensor) -> Tensor:
    """`bce_fake`, whose gradient by a logit is at least REMAINDER:
    `generator_over_discriminator` divides by it.
    """
    return bce_fake(logits) + REMAINDER * ops.mean(ops.cast(logits, "float32"))


def generator_over_discriminator(logits: Tensor, generator_loss: str) -> Tensor:
    """Per generated image, the gradient of G's loss by D's logit over that of `bce_fake_for_both`:
    float32 (B, 1), below 0.

    With minimax losses it is -1, the gradient reversal of Ganin and Lempitsky 2015, section 3.
    """
    belief = ops.sigmoid(ops.cast(logits, "float32"))
    wish = (
        ops.sigmoid(-ops.cast(logits, "float32")) if generator_loss == "non_saturating" else belief
    )
    return -wish / (belief + REMAINDER)


def r1_penalty(gradients: Tensor) -> Tensor:
    """R1 = ½ E[‖∇D(x)‖²] at real images (Mescheder et al. 2018, eq. 9, before its weight γ).

    `gradients`: ∇D(x) of each image, (B, …) such as (32, 28, 28, 1); squared and summed (B,); their
    mean a float32 scalar.
    """
    wide = ops.cast(gradients, "float32")
    return 0.5 * ops.mean(ops.sum(ops.square(wide), axis=tuple(range(1, len(wide.shape)))))


def probability_real(logits: Tensor) -> Tensor:
    """D's belief per image that it is real: float32 (B,), 0 to 1. Logits (B, 1)."""
    return ops.sigmoid(ops.cast(ops.reshape(logits, (-1,)), "float32"))
