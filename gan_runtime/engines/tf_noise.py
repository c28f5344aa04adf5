"""The noise of one step on one replica, from TensorFlow's stateless generators.

Latents are drawn for the whole global batch from (seed, step) and each replica takes its rows, so the same images are
made whatever the number of replicas. Dropout masks are keyed by the replica as well.
"""

from __future__ import annotations

import tensorflow as tf

LEVELS = 256  # an 8-bit number decides over each unit: a quarter of the random words that floats would take


class StepNoise:
    """See `workloads.contract.Noise`. Every call opens a new stream, in the order of the trace."""

    def __init__(self, seed: int, step: tf.Tensor, replica: tf.Tensor, replicas: int) -> None:
        self._seed, self._step, self._replica, self._replicas = seed, step, replica, replicas
        self._streams = 0

    def normal(self, rows: int, columns: int) -> tf.Tensor:
        """float32 (rows, columns)."""
        everyone = tf.random.stateless_normal([rows * self._replicas, columns], self._step_key())
        return tf.ensure_shape(tf.slice(everyone, [self._replica * rows, 0], [rows, columns]), [rows, columns])

    def dropout(self, values: tf.Tensor, rate: float) -> tf.Tensor:
        """Same shape and dtype as `values`; the kept share is rounded to a 256th and scaled exactly."""
        kept_levels = round((1.0 - rate) * LEVELS)
        key = tf.random.experimental.stateless_fold_in(self._step_key(), self._replica)
        keep = _random_bytes(values.shape, key) < tf.constant(kept_levels, tf.uint8)
        return tf.where(keep, values * tf.cast(LEVELS / kept_levels, values.dtype), tf.zeros([], values.dtype))

    def _step_key(self) -> tf.Tensor:
        self._streams += 1
        return tf.random.experimental.stateless_fold_in(tf.constant([self._seed, self._streams], tf.int32), self._step)


def _random_bytes(shape: tf.TensorShape, key: tf.Tensor) -> tf.Tensor:
    count = shape.num_elements()
    words = tf.random.stateless_uniform([-(-count // 4)], key, minval=None, maxval=None, dtype=tf.uint32)
    return tf.reshape(tf.reshape(tf.bitcast(words, tf.uint8), [-1])[:count], shape)
