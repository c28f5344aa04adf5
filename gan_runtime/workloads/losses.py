"""GAN losses on logits, each a plain mean over the replica's batch; the engine scales for replicas.

Keras' loss objects rescale themselves under tf.distribute and are therefore not used here.
Source: paper, equations 3 to 5; Goodfellow et al. 2014 for the non-saturating generator loss.
"""

from __future__ import annotations

from keras import ops

from gan_runtime.workloads.contract import Tensor


def bce_real(logits: Tensor) -> Tensor:
    """Binary cross-entropy against "real": mean of -log sigmoid(logits), nats, 0 to infinity. Logits (B, 1), any float."""
    return ops.mean(ops.softplus(-ops.cast(logits, "float32")))


def bce_fake(logits: Tensor) -> Tensor:
    """Binary cross-entropy against "fake": mean of -log(1 - sigmoid(logits)), nats, 0 to infinity."""
    return ops.mean(ops.softplus(ops.cast(logits, "float32")))


def probability_real(logits: Tensor) -> Tensor:
    """D's belief per image that it is real: float32 (B,), 0 to 1. Logits (B, 1)."""
    return ops.sigmoid(ops.cast(ops.reshape(logits, (-1,)), "float32"))
