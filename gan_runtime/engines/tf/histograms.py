"""Histograms whose counts are made on the device: only bins + 2 numbers travel to the host."""

from __future__ import annotations

import tensorflow as tf


def fixed(values: tf.Tensor, low: float, high: float, bins: int) -> tf.Tensor:
    """int32 (bins,): how many `values` fall into each of `bins` equal bins of [low, high]; outliers go to the end bins."""
    share = (tf.reshape(tf.cast(values, tf.float32), [-1]) - low) / (high - low)
    index = tf.clip_by_value(tf.cast(share * bins, tf.int32), 0, bins - 1)
    # 2 ms for 1.6 million values, where a sum by segments takes 33 (processor time, beside 5 ms for the bins).
    return tf.raw_ops.DenseBincount(input=index, size=bins, weights=tf.zeros([0], tf.int32))


def ranged(tensors: list[tf.Tensor], bins: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts int32 (bins,) and [lowest, highest] float32 (2,) over all values of `tensors`."""
    flat = tf.concat([tf.reshape(tf.cast(tensor, tf.float32), [-1]) for tensor in tensors], axis=0)
    low, high = tf.reduce_min(flat), tf.reduce_max(flat)
    # All values equal, such as new biases: one bin takes them all. A bin's width must be more than a rounding of the values.
    high = tf.maximum(high, low + tf.maximum(1e-12, 1e-5 * tf.abs(low)))
    return fixed(flat, low, high, bins), tf.stack([low, high])
