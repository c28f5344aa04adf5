"""From stored rows to the values that networks see, on the device: bytes travel, not floats."""

from __future__ import annotations

import tensorflow as tf

from gan_runtime.base.fields import Field, Fields

Rows = dict[str, tf.Tensor]  # (rows, *shape) by field


def values_of(rows: Rows, fields: Fields) -> Rows:
    """Stored rows → values, by field."""
    return {name: value_of(rows[name], field) for name, field in fields.items()}


def value_of(stored: tf.Tensor, field: Field) -> tf.Tensor:
    """value = stored · scale + shift, float32; a field that is kept as stored stays as it is."""
    if field.is_as_stored:
        return stored
    return tf.cast(stored, tf.float32) * field.scale + field.shift
