"""The input pipeline: a new order of the images every epoch, sharded per replica, incomplete batches dropped.

The order depends on (seed, epoch) alone, so a resumed run goes on with exactly the images it would have seen, on any
number of replicas: replica r of R takes rows r·B/R to (r+1)·B/R of each global batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from gan_runtime.spec import RunSpec


def distributed_batches(
    strategy: tf.distribute.Strategy, spec: RunSpec, images: np.ndarray, first_step: int
) -> tf.distribute.DistributedIterator:
    """Endless iterator of uint8 (batch_size_per_replica, height, width, channels) per replica, from step `first_step` (0-based)."""

    def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        return _pipeline(spec, images, first_step, context.num_input_pipelines, context.input_pipeline_id)

    return iter(strategy.distribute_datasets_from_function(pipeline))


def _pipeline(
    spec: RunSpec, images: np.ndarray, first_step: int, pipelines: int, pipeline_id: int
) -> tf.data.Dataset:
    steps = spec.steps_per_epoch(len(images))
    per_replica = spec.batch_size_per_replica * spec.batches_per_step
    first_epoch, done = divmod(first_step, steps)
    order = _epoch_order(spec.seed, len(images))
    pixels = tf.constant(images)

    def epoch_rows(epoch: tf.Tensor) -> tf.data.Dataset:
        taken = order(epoch)[: steps * spec.images_per_step]
        # (step, batch of the step, pipeline, replica, image): which images form a batch does not depend on the replicas.
        rows = tf.reshape(taken, [steps, spec.batches_per_step, pipelines, -1, spec.batch_size_per_replica])[
            :, :, pipeline_id
        ]
        begin = tf.where(epoch == first_epoch, done, 0)
        return tf.data.Dataset.from_tensor_slices(
            tf.reshape(tf.transpose(rows[begin:], [0, 2, 1, 3]), [-1, per_replica])
        )

    def gather(rows: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.gather(pixels, rows), [per_replica, *images.shape[1:]])

    epochs = tf.data.Dataset.counter(start=first_epoch)
    batches = epochs.flat_map(epoch_rows).map(gather).prefetch(2 * spec.replicas)
    options = tf.data.Options()
    options.threading.private_threadpool_size = (
        1  # gathering uint8 rows is light; leave the cores to the model
    )
    # Said aloud that it never ends: else several workers ask each other before every batch whether all have one.
    return batches.with_options(options).apply(
        tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY)
    )


def _epoch_order(seed: int, count: int) -> Callable[[tf.Tensor], tf.Tensor]:
    def order(epoch: tf.Tensor) -> tf.Tensor:
        return tf.random.experimental.stateless_shuffle(
            tf.range(count), seed=tf.stack([tf.cast(seed, tf.int64), epoch])
        )

    return order
