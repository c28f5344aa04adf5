"""Kernels of the training step for the TensorFlow engine: the mathematics of the Keras layers,
faster.

On a CPU with AVX-512 bfloat16 (`python -m benchmarks.kernel_times` measures each):
* TensorFlow's filter gradient is much slower in bfloat16 than its forward convolution. A filter
  gradient is itself a forward
  convolution with batch and channels exchanged, so it is computed as one.
* A transposed convolution to one channel, and the input gradient of a convolution from one channel,
  are slow. Split by the
  parity of the output pixel they are ordinary 3 × 3 convolutions to 4 channels.
* Keras' batch norm is several passes over memory, FusedBatchNorm is one.
* float32 has no matrix units there: multiplications are what its convolutions cost, and spectra
  save most of them (spectra.py). Elsewhere (GPU, TPU, XLA) the compiler's and vendor's own
  convolutions are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from gan_runtime.engines.taps import among_zeros, enlarged_convolution
from gan_runtime.engines.tf.batch_norms import (
    IMAGE_AXES,
    backward_scope_name,
    fused_batch_norm,
    synchronised_batch_norm,
)
from gan_runtime.engines.tf.products import (
    FewPixels,
    few_pixels,
    goes_to_one_channel,
    to_one_channel,
    volume_convolution,
)
from gan_runtime.engines.tf.spectra import SpectralConvolution, SpectrumAxis
from gan_runtime.workloads.step_context import Padding

Sizes = tuple[int, ...]
VOLUME_AXES = 3
PHASES = ((2, 2), "same")  # strides and padding for which the parity split is written out
PHASE_KERNELS = ((4, 4), (5, 5))
PHASE_CHANNELS = 4  # with more output channels the plain kernel is as fast
EXCHANGED_CHANNELS = 16  # with fewer channels the plain filter gradient is faster
# Of the upstream gradient, which is the kernel of the exchanged convolution: with 16 × 16 pixels
# the plain filter gradient is two to three times as fast (batch 64, 2 cores with AMX, float32 and
# bfloat16), with 8 × 8 it is not.
EXCHANGED_PIXELS = 64
# In half the bits oneDNN's batch norm takes so many channels at a time, and is ten times slower
# with a rest of them: 4 channels of 9,728 cells, 32 volumes, CPU time of both ways 45 ms, as
# float32 4; 8 channels 33 and 5; 16 channels 2 and 4.
NARROW_LANES = 16
SPECTRAL_SAVING = 2.0  # so many times fewer multiplications than of the convolution written out


class PlainKernels:
    """TensorFlow's convolutions as they are; batch norm fused, or synchronised over the
    replicas.
    """

    def __init__(self, synchronised: bool = False) -> None:
        self._synchronised = synchronised

    def convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: Padding
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        return _convolution(*among_zeros(values, kernel, strides, padding))

    def transposed_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        sizes = _transposed_sizes(values, kernel, strides, padding)
        return _input_gradient(values, kernel, strides, padding, sizes)

    def elementwise(
        self, function: Callable[..., tf.Tensor], values: tf.Tensor, *of_channels: tf.Tensor
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        return function(values, *of_channels)

    def enlarged_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, factors: Sizes
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        return enlarged_convolution(values, kernel, factors)

    def batch_norm(
        self, values: tf.Tensor, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """See `step_context.Kernels`."""
        norm = synchronised_batch_norm if self._synchronised else fused_batch_norm
        return norm(values, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta), epsilon)


class TfCpuKernels(PlainKernels):
    """Convolutions of images whose gradients, and whose single-channel cases, are re-laid for
    oneDNN.

    In float32 a convolution whose spectra take `spectral_saving` times fewer multiplications is
    made of them (spectra.py). Volumes have ways back of their own in bfloat16 (volumes.py); series
    take TensorFlow's: oneDNN was not measured there.
    """

    def __init__(
        self, synchronised: bool = False, spectral_saving: float = SPECTRAL_SAVING
    ) -> None:
        super().__init__(synchronised)
        self._spectral_saving = spectral_saving

    def convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: Padding
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
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
                    by_images = _input_gradient_by_phases(
                        upstream, kernel, strides, padding, images.shape[1:-1]
                    )
                    return by_images, filter_gradient(images, upstream, kernel, strides, padding)

            return _convolution(images, kernel, strides, padding), backward

        return forward(values, tf.convert_to_tensor(kernel))  # a variable has no place in it

    def transposed_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> tf.Tensor:
        """See `step_context.Kernels`."""
        if len(strides) != IMAGE_AXES:
            return super().transposed_convolution(values, kernel, strides, padding)
        sizes = _transposed_sizes(values, kernel, strides, padding)
        if product := _product(values, sizes, kernel, strides, padding):
            return product.transposed(values, tf.convert_to_tensor(kernel))
        if spectral := self._spectral(values, sizes, kernel, strides, padding):
            return spectral.transposed(values, tf.convert_to_tensor(kernel))
        backward_scope = backward_scope_name()

        @tf.custom_gradient
        def forward(images: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            def backward(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                with tf.name_scope(backward_scope):
                    return _convolution(upstream, kernel, strides, padding), filter_gradient(
                        upstream, images, kernel, strides, padding
                    )

            return _input_gradient_by_phases(images, kernel, strides, padding, sizes), backward

        return forward(values, tf.convert_to_tensor(kernel))  # a variable has no place in it

    def batch_norm(
        self, values: tf.Tensor, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """See `step_context.Kernels`."""
        if values.dtype == tf.float32 or values.shape[-1] % NARROW_LANES == 0:
            return super().batch_norm(values, gamma, beta, epsilon)
        outputs, *moments = super().batch_norm(tf.cast(values, tf.float32), gamma, beta, epsilon)
        return (tf.cast(outputs, values.dtype), *moments)

    def _spectral(
        self, values: tf.Tensor, sizes: Sizes, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> SpectralConvolution | None:
        """The convolution of images of these sizes by spectra, if that pays.

        `values`: what it, or its transpose, takes.
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


def _product(
    values: tf.Tensor, sizes: Sizes, kernel: tf.Tensor, strides: Sizes, padding: str
) -> FewPixels | None:
    """The convolution of images of these sizes as a product of matrices, if they have few
    enough pixels. `values`: as above.
    """
    if not values.shape.is_fully_defined():
        return None
    axes = zip(sizes, kernel.shape[:2], strides, strict=True)
    return few_pixels(*(_axis(*of_axis, padding) for of_axis in axes))


def _zeros(values: tf.Tensor, kernel: tf.Tensor, padding: Padding) -> tuple[tuple[int, int], ...]:
    """Before and after the values along each axis, for a convolution without a stride."""
    if not isinstance(padding, str):
        return padding
    sizes = zip(values.shape[1:-1], kernel.shape[:-2], strict=True)
    return tuple(
        (before, after)
        for before, after in (_padding(size, size, taps, 1, padding) for size, taps in sizes)
    )


def _axis(size: int, taps: int, stride: int, padding: str) -> SpectrumAxis:
    outcome = -(-size // stride) if padding == "same" else (size - taps) // stride + 1
    return SpectrumAxis(
        size, outcome, taps, stride, _padding(size, outcome, taps, stride, padding)[0]
    )


def _convolution(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str) -> tf.Tensor:
    if len(strides) == IMAGE_AXES:
        return tf.nn.conv2d(values, kernel, strides, padding.upper())
    if len(strides) == VOLUME_AXES:  # tf.nn.convolution leaves out what its gradient asks for
        return tf.nn.conv3d(values, kernel, [1, *strides, 1], padding.upper())
    return tf.nn.convolution(values, kernel, strides, padding.upper())


def _surrounded(values: tf.Tensor, kernel: tf.Tensor, padding: str) -> tf.Tensor:
    """With the zeros that a convolution without a stride adds; the rest of it is "valid"."""
    if padding == "valid":
        return values
    sizes = zip(values.shape[1:-1], kernel.shape[:-2], strict=True)
    return tf.pad(
        values, [[0, 0], *(_padding(size, size, taps, 1, padding) for size, taps in sizes), [0, 0]]
    )


def filter_gradient(
    images: tf.Tensor, upstream: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
) -> tf.Tensor:
    """Gradient of a convolution's kernel: (height, width, channels in, channels out).

    dK[y, x, i, o] = sum over b, v, u of images[b, v·s + y - p, u·s + x - p, i] · upstream[b, v, u,
    o] is a convolution of the images with `upstream` as its kernel, dilated by the stride s, where
    the batch takes the place of the channels.
    """
    height, width, channels_in, channels_out = kernel.shape
    # In float32 without a stride both ways run at the same rate, and the plain one needs no
    # transposing.
    plain_is_as_fast = images.dtype == tf.float32 and max(strides) == 1
    many_pixels = math.prod(upstream.shape[1:-1]) > EXCHANGED_PIXELS
    if plain_is_as_fast or many_pixels or min(channels_in, channels_out) < EXCHANGED_CHANNELS:
        return tf.raw_ops.Conv2DBackpropFilter(
            input=images,
            filter_sizes=kernel.shape,
            out_backprop=upstream,
            strides=[1, *strides, 1],
            padding=padding.upper(),
        )
    around = [
        _padding(*sizes, padding)
        for sizes in zip(
            images.shape[1:-1], upstream.shape[1:-1], (height, width), strides, strict=True
        )
    ]
    exchanged = tf.transpose(images, [3, 1, 2, 0])
    filters = tf.transpose(upstream, [1, 2, 0, 3])
    gradient = tf.nn.conv2d(exchanged, filters, 1, [[0, 0], *around, [0, 0]], dilations=strides)
    return tf.transpose(gradient[:, :height, :width], [1, 2, 0, 3])


def _padding(size: int, size_out: int, kernel: int, stride: int, padding: str) -> list[int]:
    """Zeros before and after the values along one axis, as a convolution with this padding
    adds them.
    """
    total = max((size_out - 1) * stride + kernel - size, 0) if padding == "same" else 0
    return [total // 2, total - total // 2]


def _transposed_sizes(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str) -> Sizes:
    """Of what a transposed convolution gives, along each axis: the largest size whose
    convolution gives that of `values`.
    """
    return tuple(
        size * stride + (max(taps - stride, 0) if padding == "valid" else 0)
        for size, taps, stride in zip(values.shape[1:-1], kernel.shape[:-2], strides, strict=True)
    )


def _input_gradient(
    upstream: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str, sizes: Sizes
) -> tf.Tensor:
    """Gradient of a convolution by its values, which are `sizes` large; also the transposed
    convolution.
    """
    transposed = tf.nn.conv2d_transpose if len(strides) == IMAGE_AXES else tf.nn.conv_transpose
    shape = [upstream.shape[0], *sizes, kernel.shape[-2]]
    return transposed(upstream, kernel, shape, strides, padding.upper())


def _input_gradient_by_phases(
    upstream: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str, sizes: Sizes
) -> tf.Tensor:
    """The same as `_input_gradient`.

    Output pixel 2q + r takes kernel row r + 1 - 2d of input pixel q + d, d in -1, 0, 1.
    """
    taps = tuple(kernel.shape[:2])
    is_written_out = (tuple(strides), padding) == PHASES and taps in PHASE_KERNELS
    if not is_written_out or any(size % 2 for size in sizes) or kernel.shape[2] > PHASE_CHANNELS:
        return _input_gradient(upstream, kernel, strides, padding, sizes)
    rows = [
        3,
        1,
        5,
        4,
        2,
        0,
    ]  # of phase 0, then of phase 1; rows from the kernel's last one on are the zeros added below
    padded = tf.pad(kernel, [*([0, 6 - size] for size in taps), [0, 0], [0, 0]])
    by_phase = tf.gather(tf.gather(padded, rows, axis=0), rows, axis=1)
    phases = tf.reshape(by_phase, [2, 3, 2, 3, kernel.shape[2], kernel.shape[3]])
    small = tf.reshape(
        tf.transpose(phases, [1, 3, 5, 0, 2, 4]), [3, 3, kernel.shape[3], 4 * kernel.shape[2]]
    )
    return tf.nn.depth_to_space(tf.nn.conv2d(upstream, small, 1, "SAME"), 2)
