"""Transposed convolutions as products of matrices, for what XLA compiles on a CPU: see engines/jax/transposed_products.py, which says why and how."""

from __future__ import annotations

import math

import tensorflow as tf

from gan_runtime.engines import one_pixel
from gan_runtime.engines.tf.kernels import PlainKernels, Sizes
from gan_runtime.workloads.step_context import Padding


class ProductKernels(PlainKernels):
    """See `step_context.Kernels`. Made for networks that are only asked."""

    def convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: Padding
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        return one_pixel.convolution(values, kernel, strides, padding, super().convolution)

    def transposed_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        return transposed(values, kernel, strides, padding)


def transposed(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str) -> tf.Tensor:
    """(B, …, channels in) → (B, …, channels out). `kernel`: (…, channels out, channels in)."""
    rows, *sizes, channels = values.shape
    if set(sizes) == {1}:
        return one_pixel.from_one(values, kernel, strides, padding)
    *taps, outer, inner = kernel.shape
    last = len(kernel.shape) - 1
    by_input = tf.reshape(tf.transpose(kernel, [last, *range(last)]), [inner, -1])
    left = tf.reshape(tf.matmul(tf.reshape(values, [-1, channels]), by_input), [rows, *sizes, *taps, outer])
    for axis, stride in enumerate(strides, start=1):
        left = _added(left, axis, len(sizes) + 1, stride, padding)
    return left


def _added(left: tf.Tensor, axis: int, taps_axis: int, stride: int, padding: str) -> tf.Tensor:
    """`left`: pixels along `axis`, and what each of them leaves by tap along `taps_axis`; gives that by pixel, so one axis less."""
    shape = list(left.shape)
    pixels, taps = shape[axis], shape[taps_axis]
    reach = -(-taps // stride)  # pixels on which the taps of one lie
    filled = [(0, 0)] * len(shape)
    filled[taps_axis] = (0, reach * stride - taps)
    others = [place for place in range(len(shape)) if place != taps_axis]
    by_phase = tf.transpose(tf.pad(left, filled), [*others[: axis + 1], taps_axis, *others[axis + 1 :]])
    around = [(0, 0)] * (len(shape) - 1)
    parts = []
    for place in range(reach):
        own = _part(by_phase, axis + 1, place * stride, stride)
        parts.append(tf.pad(own, [*around[:axis], (place, reach - 1 - place), *around[axis:]]))
    added = tf.add_n(parts)
    before, after = added.shape[:axis], added.shape[axis + 2 :]
    flat = tf.reshape(added, [*before, math.prod(added.shape[axis : axis + 2]), *after])
    excess = max(taps - stride, 0)
    begin, length = (excess // 2, pixels * stride) if padding == "same" else (0, pixels * stride + excess)
    return _part(flat, axis, begin, length)


def _part(values: tf.Tensor, axis: int, begin: int, length: int) -> tf.Tensor:
    at, size = [0] * len(values.shape), [-1] * len(values.shape)
    at[axis], size[axis] = begin, length
    return tf.slice(values, at, size)
