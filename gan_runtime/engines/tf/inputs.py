"""What a step reads on the devices: rows of a data set, their values, and noise.

Rows have a new order in every epoch, are sharded per replica, and incomplete batches are dropped.
The order depends on (seed, epoch) alone, so a resumed run continues with exactly the rows it would
have seen, on any number of replicas: replica r of R takes rows r·B/R to (r+1)·B/R of each global
batch. Rows of a resident set are gathered on the device's side; those of a streamed set are read
on the host while the device computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from gan_runtime.base.fields import Field, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.task import StepPlan
from gan_runtime.spec import RunSpec

Rows = dict[str, tf.Tensor]  # (rows, *shape) by field


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
    """The rows of one of `pipelines` input pipelines, as in `distributed_batches`."""
    steps = plan.steps_per_epoch
    per_replica = spec.batch_size_per_replica * plan.batches
    first_epoch, done = divmod(first_step, steps)
    order = _epoch_order(spec.seed, plan.rows)

    def epoch_rows(epoch: tf.Tensor) -> tf.data.Dataset:
        numbers = order(epoch)[: steps * plan.rows_per_step]
        # (step, batch of the step, pipeline, replica, row): the rows of a batch do not depend on
        # the replicas.
        rows = tf.reshape(
            numbers, [steps, plan.batches, pipelines, -1, spec.batch_size_per_replica]
        )
        begin = tf.where(epoch == first_epoch, done, 0)
        pipeline_rows = tf.transpose(rows[begin:, :, pipeline_id], [0, 2, 1, 3])
        return tf.data.Dataset.from_tensor_slices(tf.reshape(pipeline_rows, [-1, per_replica]))

    # Without AutoGraph, which would rewrite the code to no effect.
    rows_of, read = map(
        tf.autograph.experimental.do_not_convert, (epoch_rows, _reader(data, per_replica))
    )
    batches = tf.data.Dataset.counter(start=first_epoch).flat_map(rows_of).map(read)
    if spec.loop == "keras":
        batches = _numbered(batches, first_step, spec.replicas)
    batches = batches.prefetch(2 * spec.replicas)
    options = tf.data.Options()
    # Gathering rows needs little time, so the cores stay free for the model.
    options.threading.private_threadpool_size = 1
    # Without a stated cardinality, workers check before every batch whether all have one.
    return batches.with_options(options).apply(
        tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY)
    )


def _numbered(batches: tf.data.Dataset, first_step: int, replicas: int) -> tf.data.Dataset:
    """Each batch with the number of its step, int32. Successive batches go to successive replicas
    and form one step.
    """
    numbers = tf.data.Dataset.counter(start=first_step * replicas).map(
        lambda place: tf.cast(place // replicas, tf.int32)
    )
    return tf.data.Dataset.zip(batches, numbers)


def _reader(data: DataSet, count: int) -> Callable[[tf.Tensor], Rows]:
    """A function from the numbers of `count` rows to the rows."""
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


# ----------------------------------------------------------------------
# From stored rows to values, on the device: the transfer is of bytes, not of floats.


def values_of(rows: Rows, fields: Fields) -> Rows:
    """Stored rows → values, by field."""
    return {name: value_of(rows[name], field) for name, field in fields.items()}


def value_of(stored: tf.Tensor, field: Field) -> tf.Tensor:
    """value = stored · scale + shift, float32; a field used as stored stays unchanged."""
    if field.is_as_stored:
        return stored
    return tf.cast(stored, tf.float32) * field.scale + field.shift


# ----------------------------------------------------------------------
# Noise of one step on one replica, from TensorFlow's stateless generators.
#
# Normal and uniform numbers are drawn for the whole global batch from (seed, step) and each replica
# takes its rows, so the number of replicas changes no image. Dropout masks are keyed by the replica
# as well.
#
# Measured in TensorFlow 2.21: compiled by XLA, stateless_normal and negative seeds give other
# numbers than the plain kernels; random words of non-negative seeds are the same. So everything
# here is made from such words.

NON_NEGATIVE = 2**31 - 1  # mask of a seed's bits without the sign
STREAMS_PER_PHASE = 1000  # more than any phase uses
REQUEST_PLACE = 1000  # replaces the index of a phase; larger than any
# An 8-bit number decides each unit, which takes a quarter of the random words of floats.
LEVELS = 256


class TfStepNoise:
    """A `workloads.contract.Noise`. Every call opens a new stream, in the order of the trace.

    `shares`: parts of the global batch, replicas times accumulation steps; `share`: index of this
    part.
    `place`: index of the phase in the program; each phase has its own streams.
    """

    def __init__(
        self, seed: int, step: tf.Tensor, share: tf.Tensor, shares: int, place: int = 0
    ) -> None:
        self._seed, self._step, self._share, self._shares = seed, step, share, shares
        self._streams = place * STREAMS_PER_PHASE

    def normal(self, rows: int, *shape: int) -> tf.Tensor:
        """float32 (rows, *shape)."""
        return self._own_rows(_normals, rows, shape)

    def uniform(self, rows: int, *shape: int) -> tf.Tensor:
        """float32 (rows, *shape), from 0 to below 1."""
        return self._own_rows(_uniforms, rows, shape)

    def _own_rows(
        self, draw: Callable[[int, tf.Tensor], tf.Tensor], rows: int, shape: tuple[int, ...]
    ) -> tf.Tensor:
        """This share's rows of the numbers of the whole global batch."""
        everyone = draw(rows * self._shares * math.prod(shape), self._step_key())
        everyone = tf.reshape(everyone, [rows * self._shares, *shape])
        noise = tf.slice(everyone, [self._share * rows, *[0] * len(shape)], [rows, *shape])
        return tf.ensure_shape(noise, [rows, *shape])

    def dropout(self, values: tf.Tensor, rate: float) -> tf.Tensor:
        """Same shape and dtype as `values`; the retained share is rounded to a 256th and scaled
        exactly.
        """
        retained_levels = round((1.0 - rate) * LEVELS)
        if retained_levels == LEVELS:  # no byte holds it: it would wrap to 0 and drop everything
            return values
        key = _fold_in(self._step_key(), self._share)
        keep = _random_bytes(values.shape, key) < tf.constant(retained_levels, tf.uint8)
        return tf.where(
            keep,
            values * tf.cast(LEVELS / retained_levels, values.dtype),
            tf.zeros([], values.dtype),
        )

    def _step_key(self) -> tf.Tensor:
        self._streams += 1
        return _fold_in(tf.constant([self._seed, self._streams], tf.int32), self._step)


class TfRequestNoise(TfStepNoise):
    """Noise of rows on request: each row has numbers of its key, so chunks and replicas change
    nothing.

    `seed`: of the request, int32 from 0, not of the run; `first`: index of the chunk's first row in
    the request.
    """

    def __init__(self, seed: tf.Tensor, share: tf.Tensor, first: tf.Tensor) -> None:
        super().__init__(0, seed, share, shares=1, place=REQUEST_PLACE)
        self._first = first

    def _own_rows(
        self, draw: Callable[[int, tf.Tensor], tf.Tensor], rows: int, shape: tuple[int, ...]
    ) -> tf.Tensor:
        key, count = self._step_key(), math.prod(shape)
        numbers = self._first + self._share * rows + tf.range(rows)
        values = tf.map_fn(
            lambda number: draw(count, _fold_in(key, number)),
            numbers,
            fn_output_signature=tf.TensorSpec([count], tf.float32),
        )
        return tf.reshape(values, [rows, *shape])


def _fold_in(key: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_and(
        tf.random.experimental.stateless_fold_in(key, number), NON_NEGATIVE
    )


def _random_words(count: int, key: tf.Tensor) -> tf.Tensor:
    return tf.random.stateless_uniform([count], key, minval=None, maxval=None, dtype=tf.uint32)


def _random_bytes(shape: tf.TensorShape, key: tf.Tensor) -> tf.Tensor:
    count = shape.num_elements()
    words = _random_words(-(-count // 4), key)
    return tf.reshape(tf.reshape(tf.bitcast(words, tf.uint8), [-1])[:count], shape)


def _levels(count: int, key: tf.Tensor) -> tf.Tensor:
    """float32 (count,): whole numbers from 0 to 2^24 - 1, exact in float32."""
    return tf.cast(tf.bitwise.right_shift(_random_words(count, key), 8), tf.float32)


def _uniforms(count: int, key: tf.Tensor) -> tf.Tensor:
    """float32 (count,), from 0 to below 1 in steps of 2^-24."""
    return _levels(count, key) / 2.0**24


def _normals(count: int, key: tf.Tensor) -> tf.Tensor:
    """float32 (count,), standard normal, up to ±5.9: two from two uniform numbers each (Box and
    Muller 1958).
    """
    pairs = -(-count // 2)
    # In (0, 1): the middle of each of 2^24 steps, so that no logarithm is infinite.
    uniform = (tf.reshape(_levels(2 * pairs, key), [2, pairs]) + 0.5) / 2.0**24
    # z = √(-2 ln u) · (cos 2πv, sin 2πv)
    radius, angle = tf.sqrt(-2.0 * tf.math.log(uniform[0])), 2.0 * math.pi * uniform[1]
    return tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], axis=0)[:count]
