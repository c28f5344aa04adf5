"""Kernels of the training step for the TensorFlow engine: the arithmetic of Keras layers, faster on
a CPU.

On a CPU with AVX-512 bfloat16 (`python -m benchmarks.kernel_times` measures each):

* convolutions that oneDNN is slow at are written otherwise (cpu_convolutions.py);
* Keras' batch norm is several passes over memory, FusedBatchNorm is one;
* float32 has no matrix units: multiplications are what its convolutions cost, and spectra save most
  of them (spectra.py).

Elsewhere (GPU, TPU, XLA) the compiler's and the vendor's own convolutions are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from gan_runtime.engines.convolutions import among_zeros, enlarged_convolution, transposed_sizes
from gan_runtime.engines.tf.cpu_convolutions import (
    IMAGE_AXES,
    VOLUME_AXES,
    FewPixelConvolution,
    Sizes,
    Zeros,
    backward_scope_name,
    convolution,
    few_pixel_convolution,
    filter_gradient,
    goes_to_one_channel,
    input_gradient,
    input_gradient_by_phases,
    to_one_channel,
    volume_convolution,
    zeros_around,
)
from gan_runtime.engines.tf.spectra import SpectralConvolution, SpectrumAxis
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.step_context import Padding

# In bfloat16 oneDNN's batch norm takes this many channels at a time, and is ten times slower with a
# remainder. CPU time of both ways, 32 volumes of 9,728 cells, bfloat16 and float32: 4 channels 45
# and 4 ms; 8 channels 33 and 5; 16 channels 2 and 4.
NARROW_LANES = 16
SPECTRAL_SAVING = 2.0  # least ratio of multiplications, of the plain convolution to its spectra


class PlainKernels:
    """TensorFlow's own convolutions; batch norm is fused, or synchronized over the replicas."""

    def __init__(self, synchronised: bool = False) -> None:
        self._synchronised = synchronised

    def convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: Padding
    ) -> tf.Tensor:
        return convolution(*among_zeros(values, kernel, strides, padding))

    def transposed_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> tf.Tensor:
        sizes = transposed_sizes(values, kernel, strides, padding)
        return input_gradient(values, kernel, strides, padding, sizes)

    def elementwise(
        self, function: Callable[..., tf.Tensor], values: tf.Tensor, *of_channels: tf.Tensor
    ) -> tf.Tensor:
        return function(values, *of_channels)

    def enlarged_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, factors: Sizes
    ) -> tf.Tensor:
        return enlarged_convolution(values, kernel, factors)

    def batch_norm(
        self, values: tf.Tensor, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        norm = synchronised_batch_norm if self._synchronised else fused_batch_norm
        return norm(values, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta), epsilon)


class TfCpuKernels(PlainKernels):
    """Convolutions of images whose gradients, and whose single-channel cases, are rewritten for
    oneDNN.

    In float32 a convolution whose spectra take `spectral_saving` times fewer multiplications is
    computed from them (spectra.py). Volumes have rewritten gradients in bfloat16; series use
    TensorFlow's, because oneDNN was not measured there.
    """

    def __init__(
        self, synchronised: bool = False, spectral_saving: float = SPECTRAL_SAVING
    ) -> None:
        super().__init__(synchronised)
        self._spectral_saving = spectral_saving

    def convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: Padding
    ) -> tf.Tensor:
        if len(strides) == IMAGE_AXES and goes_to_one_channel(values, kernel, strides):
            zeros = _zeros(values, kernel, padding)
            return to_one_channel(values, tf.convert_to_tensor(kernel), zeros)
        values, kernel, strides, padding = among_zeros(values, kernel, strides, padding)
        if len(strides) == VOLUME_AXES and max(strides) == 1 and values.dtype == tf.bfloat16:
            surrounded, kernel = _surrounded(values, kernel, padding), tf.convert_to_tensor(kernel)
            return volume_convolution(surrounded, kernel, backward_scope_name())
        if len(strides) != IMAGE_AXES:
            return super().convolution(values, kernel, strides, padding)
        if product := _product(values, values.shape[1:-1], kernel, strides, padding):
            return product.convolution(values, tf.convert_to_tensor(kernel))
        if spectral := self._spectral(values, values.shape[1:-1], kernel, strides, padding):
            return spectral.convolution(values, tf.convert_to_tensor(kernel))
        backward_scope = backward_scope_name()

        @tf.custom_gradient
        def forward(images: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            def backward(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                with tf.name_scope(backward_scope):
                    by_images = input_gradient_by_phases(
                        upstream, kernel, strides, padding, images.shape[1:-1]
                    )
                    return by_images, filter_gradient(images, upstream, kernel, strides, padding)

            return convolution(images, kernel, strides, padding), backward

        return forward(values, tf.convert_to_tensor(kernel))  # custom_gradient takes no variable

    def transposed_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> tf.Tensor:
        if len(strides) != IMAGE_AXES:
            return super().transposed_convolution(values, kernel, strides, padding)
        sizes = transposed_sizes(values, kernel, strides, padding)
        if product := _product(values, sizes, kernel, strides, padding):
            return product.transposed(values, tf.convert_to_tensor(kernel))
        if spectral := self._spectral(values, sizes, kernel, strides, padding):
            return spectral.transposed(values, tf.convert_to_tensor(kernel))
        backward_scope = backward_scope_name()

        @tf.custom_gradient
        def forward(images: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            def backward(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                with tf.name_scope(backward_scope):
                    return convolution(upstream, kernel, strides, padding), filter_gradient(
                        upstream, images, kernel, strides, padding
                    )

            return input_gradient_by_phases(images, kernel, strides, padding, sizes), backward

        return forward(values, tf.convert_to_tensor(kernel))  # custom_gradient takes no variable

    def batch_norm(
        self, values: tf.Tensor, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        if values.dtype == tf.float32 or values.shape[-1] % NARROW_LANES == 0:
            return super().batch_norm(values, gamma, beta, epsilon)
        outputs, *moments = super().batch_norm(tf.cast(values, tf.float32), gamma, beta, epsilon)
        return (tf.cast(outputs, values.dtype), *moments)

    def _spectral(
        self, values: tf.Tensor, sizes: Sizes, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> SpectralConvolution | None:
        """The convolution of images of these sizes by spectra, if that is faster.

        `values`: the input of the convolution or of its transpose.
        """
        if values.dtype != tf.float32 or not values.shape.is_fully_defined():
            return None
        batch, (height, width, *channels) = values.shape[0], kernel.shape
        rows, columns = (
            _axis(*of_axis, padding)
            for of_axis in zip(sizes, (height, width), strides, strict=True)
        )
        spectral = SpectralConvolution(rows, columns)
        direct = batch * rows.outcome * columns.outcome * math.prod(kernel.shape)
        pays = direct >= self._spectral_saving * spectral.multiplications(batch, *channels)
        return spectral if pays else None


def layer_kernels(spec: RunSpec, replicas: int, accelerator: str) -> PlainKernels:
    """The kernels of a run's layers: the rewritten ones on a CPU, unless XLA compiles the step."""
    synchronised = spec.batch_norm == "synchronised" and replicas > 1
    if accelerator == "cpu" and spec.xla == "off":
        return TfCpuKernels(synchronised)
    return PlainKernels(synchronised)


def _product(
    values: tf.Tensor, sizes: Sizes, kernel: tf.Tensor, strides: Sizes, padding: str
) -> FewPixelConvolution | None:
    """The convolution of images of these sizes as a product of matrices, if they have few enough
    pixels.
    """
    if not values.shape.is_fully_defined():
        return None
    axes = zip(sizes, kernel.shape[:2], strides, strict=True)
    return few_pixel_convolution(*(_axis(*of_axis, padding) for of_axis in axes))


def _zeros(values: tf.Tensor, kernel: tf.Tensor, padding: Padding) -> Zeros:
    """Before and after the values along each axis, for a convolution without a stride."""
    if not isinstance(padding, str):
        return padding
    sizes = zip(values.shape[1:-1], kernel.shape[:-2], strict=True)
    return tuple(
        (before, after)
        for before, after in (zeros_around(size, size, taps, 1, padding) for size, taps in sizes)
    )


def _axis(size: int, taps: int, stride: int, padding: str) -> SpectrumAxis:
    outcome = -(-size // stride) if padding == "same" else (size - taps) // stride + 1
    return SpectrumAxis(
        size, outcome, taps, stride, zeros_around(size, outcome, taps, stride, padding)[0]
    )


def _surrounded(values: tf.Tensor, kernel: tf.Tensor, padding: str) -> tf.Tensor:
    """The values with the zeros that a convolution without a stride adds; the convolution itself is
    then "valid".
    """
    if padding == "valid":
        return values
    return tf.pad(values, [[0, 0], *_zeros(values, kernel, padding), [0, 0]])


# ---- batch norm ----------------------------------------------------------------------------------


def fused_batch_norm(
    values: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Batch norm over this replica's values; mean and biased variance in float32. Other shapes are
    reshaped to flat images.
    """
    rows, *sizes, channels = values.shape
    is_image = len(sizes) == IMAGE_AXES
    images = values if is_image else tf.reshape(values, [rows, math.prod(sizes), 1, channels])
    outputs, mean, unbiased = tf.compat.v1.nn.fused_batch_norm(
        images, gamma, beta, epsilon=epsilon, is_training=True
    )
    count = images.shape[0] * images.shape[1] * images.shape[2]
    return (
        tf.reshape(outputs, values.shape),
        tf.stop_gradient(mean),
        tf.stop_gradient(unbiased * (count - 1) / count),
    )


def synchronised_batch_norm(
    values: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Batch norm over the values of all replicas, with one all-reduce per layer; the mean of equal
    shares is exact.
    """
    wide = tf.cast(values, tf.float32)
    axes = list(range(len(values.shape) - 1))
    means = tf.stack([tf.reduce_mean(wide, axes), tf.reduce_mean(tf.square(wide), axes)])
    mean, mean_square = tf.unstack(_mean_over_replicas(means))
    variance = tf.maximum(mean_square - tf.square(mean), 0.0)
    outputs = tf.nn.batch_normalization(wide, mean, variance, beta, gamma, epsilon)
    return tf.cast(outputs, values.dtype), tf.stop_gradient(mean), tf.stop_gradient(variance)


@tf.custom_gradient
def _mean_over_replicas(value: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """The mean over the replicas. Its gradient is the same exchange, written out so that profiles
    list it under its layer.
    """
    backward_scope = backward_scope_name()

    def exchanged(values: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("all_reduce_batch_norm"):
            return tf.distribute.get_replica_context().all_reduce("mean", values)

    def backward(upstream: tf.Tensor) -> tf.Tensor:
        with tf.name_scope(backward_scope):
            return exchanged(upstream)

    return exchanged(value), backward
