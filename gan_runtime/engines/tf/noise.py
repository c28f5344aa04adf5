"""The noise of one step on one replica, from TensorFlow's stateless generators.

Normal and uniform numbers are drawn for the whole global batch from (seed, step) and each replica
takes its rows, so the same pictures are made whatever the number of replicas. Dropout masks are
keyed by the replica as well.

Measured in TensorFlow 2.21: compiled by XLA, stateless_normal and negative seeds give other numbers
than the plain kernels; random words of non-negative seeds are the same. So everything here is made
from such words.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

NON_NEGATIVE = 2**31 - 1  # mask of a seed's bits without the sign
STREAMS_PER_PHASE = 1000  # more than any phase opens
REQUEST_PLACE = 1000  # in place of a phase's: more than a program has
# an 8-bit number decides over each unit: a quarter of the random words that floats would take
LEVELS = 256


class TfStepNoise:
    """See `workloads.contract.Noise`. Every call opens a new stream, in the order of the trace.

    `shares`: the parts into which the global batch is divided, replicas times accumulation steps;
    `share`: the part at hand.
    `place`: of the phase in the program, each with streams of its own.
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
        """This share's rows of what is drawn for the whole global batch."""
        everyone = draw(rows * self._shares * math.prod(shape), self._step_key())
        everyone = tf.reshape(everyone, [rows * self._shares, *shape])
        own = tf.slice(everyone, [self._share * rows, *[0] * len(shape)], [rows, *shape])
        return tf.ensure_shape(own, [rows, *shape])

    def dropout(self, values: tf.Tensor, rate: float) -> tf.Tensor:
        """Same shape and dtype as `values`; the kept share is rounded to a 256th and scaled
        exactly.
        """
        kept_levels = round((1.0 - rate) * LEVELS)
        if kept_levels == LEVELS:  # which no byte can hold: it would wrap to 0 and drop everything
            return values
        key = _fold_in(self._step_key(), self._share)
        keep = _random_bytes(values.shape, key) < tf.constant(kept_levels, tf.uint8)
        return tf.where(
            keep, values * tf.cast(LEVELS / kept_levels, values.dtype), tf.zeros([], values.dtype)
        )

    def _step_key(self) -> tf.Tensor:
        self._streams += 1
        return _fold_in(tf.constant([self._seed, self._streams], tf.int32), self._step)


class TfRequestNoise(TfStepNoise):
    """Of rows on request: each row has numbers of its own key, so the same ones in chunks of any
    size on any number of replicas.

    `seed`: of the request, int32 from 0, not of the run; `first`: place of the chunk's first row in
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
        drawn = tf.map_fn(
            lambda number: draw(count, _fold_in(key, number)),
            numbers,
            fn_output_signature=tf.TensorSpec([count], tf.float32),
        )
        return tf.reshape(drawn, [rows, *shape])


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
    """float32 (count,): whole numbers from 0 to 2^24 - 1, all of which float32 holds exactly."""
    return tf.cast(tf.bitwise.right_shift(_random_words(count, key), 8), tf.float32)


def _uniforms(count: int, key: tf.Tensor) -> tf.Tensor:
    """float32 (count,), from 0 to below 1 in steps of 2^-24."""
    return _levels(count, key) / 2.0**24


def _normals(count: int, key: tf.Tensor) -> tf.Tensor:
    """float32 (count,), standard normal, up to ±5.9: two from two uniform numbers each (Box
    and Muller 1958).
    """
    pairs = -(-count // 2)
    # In (0, 1): the middle of each of 2^24 steps, so that no logarithm is infinite.
    uniform = (tf.reshape(_levels(2 * pairs, key), [2, pairs]) + 0.5) / 2.0**24
    # z = √(-2 ln u) · (cos 2πv, sin 2πv)
    radius, angle = tf.sqrt(-2.0 * tf.math.log(uniform[0])), 2.0 * math.pi * uniform[1]
    return tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], axis=0)[:count]
