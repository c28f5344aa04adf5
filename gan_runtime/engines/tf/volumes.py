"""Ways back of a convolution of volumes in bfloat16 on a CPU. Stride 1; (B, x, y, z, C) and (…, C, O) → (B, …, O).

oneDNN's forward convolutions of volumes use a CPU's bfloat16 matrix units. Of those with few channels neither gradient does
(docs/decisions/0036-volumes.md has the times), so both are written as something that does:

* the gradient by the values is a convolution of the upstream gradient, with zeros around it, by the mirrored kernel;
* that by the kernel, with depth as channels (z · C to z · O), is the filter gradient of a convolution of images. Its diagonals
  t = z - z' are the taps: 25 / 6 times as many products as are needed for 25 cells and 6 taps, and still less time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from gan_runtime.engines.bands import band

Sizes = tuple[int, ...]
AXES = 3
# Products of channels in and out up to which the kernel's gradient takes depth as channels: at 36 both ways are as fast.
FEW_CHANNELS = 16


def volume_convolution(values: tf.Tensor, kernel: tf.Tensor, backward_scope: str) -> tf.Tensor:
    """Padding "valid". `backward_scope`: the name under which profiles find the ways back."""

    @tf.custom_gradient
    def forward(values: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        def backward(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.name_scope(backward_scope):
                return by_values(upstream, kernel), by_kernel(values, upstream, kernel.shape)

        return _convolution(values, kernel), backward

    return forward(values, kernel)


def _convolution(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    return tf.nn.conv3d(values, kernel, [1] * (AXES + 2), "VALID")


def by_values(upstream: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """dV[v] = sum over t of U[v - t] · K[t]: (B, x, y, z, C)."""
    zeros = [[0, 0], *([taps - 1, taps - 1] for taps in kernel.shape[:AXES]), [0, 0]]
    mirrored = tf.transpose(kernel[::-1, ::-1, ::-1], [0, 1, 2, 4, 3])
    return _convolution(tf.pad(upstream, zeros), mirrored)


def by_kernel(values: tf.Tensor, upstream: tf.Tensor, shape: Sizes) -> tf.Tensor:
    """dK[t] = sum over u of V[u + t] · U[u], of that `shape`."""
    taps_x, taps_y, taps_z, channels_in, channels_out = shape
    if channels_in * channels_out > FEW_CHANNELS:
        return tf.raw_ops.Conv3DBackpropFilterV2(
            input=values, filter_sizes=shape, out_backprop=upstream, strides=[1] * (AXES + 2), padding="VALID"
        )
    cells, outcomes = values.shape[AXES], upstream.shape[AXES]
    between = tf.raw_ops.Conv2DBackpropFilter(
        input=_flat(values),
        filter_sizes=[taps_x, taps_y, cells * channels_in, outcomes * channels_out],
        out_backprop=_flat(upstream),
        strides=[1, 1, 1, 1],
        padding="VALID",
    )
    pairs = tf.reshape(between, [taps_x, taps_y, cells, channels_in, outcomes, channels_out])
    diagonals = tf.einsum("xyziuo,tzu->xytio", tf.cast(pairs, tf.float32), band(taps_z, outcomes))
    return tf.cast(diagonals, values.dtype)


def _flat(values: tf.Tensor) -> tf.Tensor:
    """(B, x, y, z, C) → (B, x, y, z · C)."""
    return tf.reshape(values, [*values.shape[:AXES], values.shape[AXES] * values.shape[AXES + 1]])
