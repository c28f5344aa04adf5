"""The input pipeline: a new order of the rows every epoch, sharded per replica, incomplete batches
dropped.

The order depends on (seed, epoch) alone, so a resumed run goes on with exactly the rows it would
have seen, on any number of replicas: replica r of R takes rows r·B/R to (r+1)·B/R of each global
batch. Rows of a set that is resident are gathered on the device's side; those of one that is
streamed are read on the host while the device works.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from gan_runtime.base.fields import Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.task import StepPlan
from gan_runtime.engines.tf.step import Rows
from gan_runtime.spec import RunSpec


def distributed_batches(
    strategy: tf.distribute.Strategy, spec: RunSpec, plan: StepPlan, data: DataSet, first_step: int
) -> tf.distribute.DistributedIterator:
    """Endless iterator of stored rows, (batches of a step · batch_size_per_replica, *shape) by
    field per replica, from step `first_step` (0-based); with Keras' loop in pairs with the number
    of their step.
    """

    def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        return rows_of_pipeline(
            spec, plan, data, first_step, context.num_input_pipelines, context.input_pipeline_id
        )

    return iter(strategy.distribute_datasets_from_function(pipeline))


def rows_of_pipeline(
    spec: RunSpec, plan: StepPlan, data: DataSet, first_step: int, pipelines: int, pipeline_id: int
) -> tf.data.Dataset:
    """What one of `pipelines` input pipelines reads: see `distributed_batches`."""
    steps = plan.steps_per_epoch
    per_replica = spec.batch_size_per_replica * plan.batches
    first_epoch, done = divmod(first_step, steps)
    order = _epoch_order(spec.seed, plan.rows)

    def epoch_rows(epoch: tf.Tensor) -> tf.data.Dataset:
        taken = order(epoch)[: steps * plan.rows_per_step]
        # (step, batch of the step, pipeline, replica, row): which rows form a batch does not depend
        # on the replicas.
        rows = tf.reshape(taken, [steps, plan.batches, pipelines, -1, spec.batch_size_per_replica])
        begin = tf.where(epoch == first_epoch, done, 0)
        own = tf.transpose(rows[begin:, :, pipeline_id], [0, 2, 1, 3])
        return tf.data.Dataset.from_tensor_slices(tf.reshape(own, [-1, per_replica]))

    # Nothing in them depends on a tensor's value: AutoGraph would rewrite their code in vain.
    rows_of, read = map(
        tf.autograph.experimental.do_not_convert, (epoch_rows, _reader(data, per_replica))
    )
    batches = tf.data.Dataset.counter(start=first_epoch).flat_map(rows_of).map(read)
    if spec.loop == "keras":
        batches = _numbered(batches, first_step, spec.replicas)
    batches = batches.prefetch(2 * spec.replicas)
    options = tf.data.Options()
    options.threading.private_threadpool_size = (
        1  # gathering stored rows is light; leave the cores to the model
    )
    # Said aloud that it never ends: else several workers ask each other before every batch whether
    # all have one.
    return batches.with_options(options).apply(
        tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY)
    )


def _numbered(batches: tf.data.Dataset, first_step: int, replicas: int) -> tf.data.Dataset:
    """Each batch with the number of its step, int32: one after another goes to each replica,
    and together they are one step.
    """
    numbers = tf.data.Dataset.counter(start=first_step * replicas).map(
        lambda place: tf.cast(place // replicas, tf.int32)
    )
    return tf.data.Dataset.zip(batches, numbers)


def _reader(data: DataSet, count: int) -> Callable[[tf.Tensor], Rows]:
    """From the numbers of `count` rows to the rows themselves."""
    resident = data.resident
    if resident is None:
        return _streamed(data, count)
    arrays = {name: tf.constant(resident[name]) for name in data.fields}

    def gather(numbers: tf.Tensor) -> Rows:
        return _shaped(
            {name: tf.gather(array, numbers) for name, array in arrays.items()}, data.fields, count
        )

    return gather


def _streamed(data: DataSet, count: int) -> Callable[[tf.Tensor], Rows]:
    names = list(data.fields)

    def read(numbers: np.ndarray) -> list[np.ndarray]:
        rows = data.read(numbers)
        return [np.asarray(rows[name]) for name in names]

    def stream(numbers: tf.Tensor) -> Rows:
        types = [tf.as_dtype(data.fields[name].dtype) for name in names]
        arrays = tf.numpy_function(read, [tf.cast(numbers, tf.int64)], types)
        return _shaped(dict(zip(names, arrays, strict=True)), data.fields, count)

    return stream


def _shaped(rows: Rows, fields: Fields, count: int) -> Rows:
    return {
        name: tf.ensure_shape(array, [count, *fields[name].shape]) for name, array in rows.items()
    }


def _epoch_order(seed: int, count: int) -> Callable[[tf.Tensor], tf.Tensor]:
    def order(epoch: tf.Tensor) -> tf.Tensor:
        return tf.random.experimental.stateless_shuffle(
            tf.range(count), seed=tf.stack([tf.cast(seed, tf.int64), epoch])
        )

    return order
