"""GAN losses on logits, each a plain mean over the replica's batch; the engine scales for replicas.

Keras' loss objects rescale themselves under tf.distribute and are therefore not used here.
Source: paper, equations 3 to 5; Goodfellow et al. 2014 for the non-saturating generator loss.
"""

from __future__ import annotations

from keras import ops

from gan_runtime.workloads.contract import Tensor


def bce_real(logits: Tensor, target: float = 1.0) -> Tensor:
    """Binary cross-entropy against "real": mean of -t log s - (1 - t) log(1 - s) with s = sigmoid(logits), nats, 0 to infinity.

    `target` t below 1 is one-sided label smoothing (Salimans et al. 2016, section 3.4). Logits (B, 1), any float.
    """
    wide = ops.cast(logits, "float32")
    return ops.mean(ops.softplus(-wide) + (1.0 - target) * wide)


def bce_fake(logits: Tensor) -> Tensor:
    """Binary cross-entropy against "fake": mean of -log(1 - sigmoid(logits)), nats, 0 to infinity."""
    return ops.mean(ops.softplus(ops.cast(logits, "float32")))


def minimax_generator(logits: Tensor) -> Tensor:
    """The paper's generator loss, equation 5: mean of log(1 - sigmoid(logits)), nats, minus infinity to 0.

    It saturates: while D is sure that an image is fake, the gradient is nearly zero.
    """
    return -bce_fake(logits)


def r1_penalty(gradients: Tensor) -> Tensor:
    """Half the mean squared norm of D's gradient at real images, (B, …) → float32 scalar (Mescheder et al. 2018, eq. 9)."""
    wide = ops.cast(gradients, "float32")
    return 0.5 * ops.mean(ops.sum(ops.square(wide), axis=tuple(range(1, len(wide.shape)))))


def probability_real(logits: Tensor) -> Tensor:
    """D's belief per image that it is real: float32 (B,), 0 to 1. Logits (B, 1)."""
    return ops.sigmoid(ops.cast(ops.reshape(logits, (-1,)), "float32"))
