"""Batch norm of a training step: fused, of one replica, and over all replicas, with its way
back written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

IMAGE_AXES = 2


def backward_scope_name() -> str:
    """The name under which TensorFlow itself would file the gradient of what is built here,
    for profiles to find it.
    """
    return f"gradient_tape/{tf.get_current_name_scope()}/"


def fused_batch_norm(
    values: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Batch norm over this replica's values; mean and biased variance in float32.

    What is no image is taken for a flat one.
    """
    rows, *sizes, channels = values.shape
    is_image = len(sizes) == IMAGE_AXES
    images = values if is_image else tf.reshape(values, [rows, math.prod(sizes), 1, channels])
    outputs, mean, unbiased = tf.compat.v1.nn.fused_batch_norm(
        images, gamma, beta, epsilon=epsilon, is_training=True
    )
    count = images.shape[0] * images.shape[1] * images.shape[2]
    return (
        tf.reshape(outputs, values.shape),
        tf.stop_gradient(mean),
        tf.stop_gradient(unbiased * (count - 1) / count),
    )


def synchronised_batch_norm(
    values: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Batch norm over the values of all replicas, exchanged in one all-reduce a layer; the
    mean of equal shares is exact.
    """
    wide = tf.cast(values, tf.float32)
    axes = list(range(len(values.shape) - 1))
    own = tf.stack([tf.reduce_mean(wide, axes), tf.reduce_mean(tf.square(wide), axes)])
    mean, mean_square = tf.unstack(_mean_over_replicas(own))
    variance = tf.maximum(mean_square - tf.square(mean), 0.0)
    outputs = tf.nn.batch_normalization(wide, mean, variance, beta, gamma, epsilon)
    return tf.cast(outputs, values.dtype), tf.stop_gradient(mean), tf.stop_gradient(variance)


@tf.custom_gradient
def _mean_over_replicas(own: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """The way back is the same exchange; it is written out so that profiles find it under its
    layer's name.
    """
    backward_scope = backward_scope_name()

    def exchanged(values: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("all_reduce_batch_norm"):
            return tf.distribute.get_replica_context().all_reduce("mean", values)

    def backward(upstream: tf.Tensor) -> tf.Tensor:
        with tf.name_scope(backward_scope):
            return exchanged(upstream)

    return exchanged(own), backward
