"""The noise of `same_noise` in the TensorFlow engine."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from gan_runtime.engines.tf import inference as tf_inference
from gan_runtime.engines.tf import step as tf_step
from tests.support.engines import same_noise


def hand_to_engines(patch: pytest.MonkeyPatch) -> None:
    """Makes engines that are created from now on use this noise."""
    for module in (tf_step, tf_inference):
        patch.setattr(module, "TfStepNoise", SameNoise)
    patch.setattr(tf_inference, "TfRequestNoise", SameRequestNoise)


class SameNoise:
    """Draws and masks from the tables of `same_noise`."""

    def __init__(
        self,
        seed: int,
        step: tf.Tensor,
        share: tf.Tensor,
        shares: int,  # noqa: ARG002
        place: int = 0,
    ) -> None:
        self._seed, self._step, self._share, self._stream = seed, step, share, 100 * place

    def normal(self, rows: int, *shape: int) -> tf.Tensor:
        return self._own_rows(same_noise.normal, rows, shape)

    def uniform(self, rows: int, *shape: int) -> tf.Tensor:
        return self._own_rows(same_noise.uniform, rows, shape)

    def _own_rows(self, table_of: Any, rows: int, shape: tuple[int, ...]) -> tf.Tensor:
        self._stream += 1
        table = tf.gather(tf.constant(table_of(self._seed, self._stream, shape)), self._step)
        return tf.slice(table, [self._share * rows, *[0] * len(shape)], [rows, *shape])

    def dropout(self, values: tf.Tensor, rate: float) -> tf.Tensor:
        self._stream += 1
        if (
            rate == 0.0
        ):  # a table of ones for each unit of a large network would take longer than its step
            return values
        table = tf.constant(same_noise.mask(self._seed, self._stream, tuple(values.shape), rate))
        mask = tf.gather_nd(table, [self._step, self._share])
        return values * tf.cast(tf.cast(mask, tf.float32) / (1.0 - rate), values.dtype)


class SameRequestNoise(SameNoise):
    """The same noise for requested rows, in one chunk."""

    def __init__(self, seed: tf.Tensor, share: tf.Tensor, first: tf.Tensor) -> None:  # noqa: ARG002
        super().__init__(0, seed, share, 1)
