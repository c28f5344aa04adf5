"""Kernels of the training step for a TPU: the mathematics of `JaxKernels`, arranged for its matrix
units.

A TPU multiplies blocks of 128 numbers, and pads narrower ones. By the compiler's estimate (`make
bench ONLY=cycles`):

* an output of one channel fills one of 128 columns. A block of 4 × 4 output pixels depends on 4 × 4
  input pixels, so all 16 are computed as channels of one small convolution with stride 2;
* the gradients of a convolution and of its transpose are those of the same convolution, written
  without transposing anything;
* the way back of a 4 × 4 convolution with stride 2, and its transpose, are convolutions of blocks
  of pixels (at the end of this file);
* volumes of few channels are in tpu_volumes.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gan_runtime.engines.convolutions import among_zeros, enlarged_convolution, transposed_sizes
from gan_runtime.engines.jax.kernels import JaxKernels, Sizes, convolution, layout
from gan_runtime.engines.jax.tpu_volumes import (
    is_few,
    is_volume,
    volume_batch_norm,
    volume_convolution,
    volume_elementwise,
)
from gan_runtime.workloads.step_context import Padding

BLOCK_KERNEL, BLOCK_STRIDE = 5, 2  # of the convolutions from one channel written in blocks
# Strides, padding and kernel without its last axis, the channels of the smaller images.
ONE_CHANNEL = ((BLOCK_STRIDE, BLOCK_STRIDE), "same", (BLOCK_KERNEL, BLOCK_KERNEL, 1))
BLOCK = 4  # output pixels of a block, each way
Residuals = tuple[Any, ...]


class TpuKernels(JaxKernels):
    def convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: Padding
    ) -> jax.Array:
        if is_few(kernel, strides):
            return volume_convolution(values, kernel, padding)
        return _convolution(*among_zeros(values, kernel, strides, padding))

    def enlarged_convolution(
        self, values: jax.Array, kernel: jax.Array, factors: Sizes
    ) -> jax.Array:
        """With a barrier: the compiler would merge the product that is the kernels' gradient with
        the sums over taps that follow it, and fill its units badly.
        """
        return enlarged_convolution(values, kernel, factors, settled=jax.lax.optimization_barrier)

    def elementwise(
        self, function: Callable[..., jax.Array], values: jax.Array, *of_channels: jax.Array
    ) -> jax.Array:
        if not is_volume(values):
            return super().elementwise(function, values, *of_channels)
        return volume_elementwise(function, values, *of_channels)

    def batch_norm(
        self, values: jax.Array, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        if not is_volume(values):
            return super().batch_norm(values, gamma, beta, epsilon)
        return volume_batch_norm(values, gamma, beta, epsilon, self._axis)

    def transposed_convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
    ) -> jax.Array:
        return _transposed(values, kernel, strides, padding)


# ---- convolutions --------------------------------------------------------------------------------


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _convolution(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    return convolution(values, kernel, strides, padding)


def _convolution_forward(
    values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
) -> tuple[jax.Array, Residuals]:
    return convolution(values, kernel, strides, padding), (values, kernel)


def _convolution_backward(
    strides: Sizes, padding: str, residuals: Residuals, upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    values, kernel = residuals
    return (
        by_values(upstream, kernel, strides, padding, values.shape[1:-1]),
        by_kernel(values, upstream, kernel.shape, strides, padding),
    )


_convolution.defvjp(_convolution_forward, _convolution_backward)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _transposed(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    return by_values(
        values, kernel, strides, padding, transposed_sizes(values, kernel, strides, padding)
    )


def _transposed_forward(
    values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
) -> tuple[jax.Array, Residuals]:
    return _transposed(values, kernel, strides, padding), (values, kernel)


def _transposed_backward(
    strides: Sizes, padding: str, residuals: Residuals, upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    values, kernel = residuals
    return (
        convolution(upstream, kernel, strides, padding),
        by_kernel(upstream, values, kernel.shape, strides, padding),
    )


_transposed.defvjp(_transposed_forward, _transposed_backward)


def by_kernel(
    values: jax.Array, upstream: jax.Array, shape: Sizes, strides: Sizes, padding: str
) -> jax.Array:
    """Gradient of a convolution's kernel, of that `shape`."""
    of_kernel = jax.linear_transpose(
        lambda kernel: convolution(values, kernel, strides, padding),
        jax.ShapeDtypeStruct(shape, values.dtype),
    )
    return of_kernel(upstream)[0]


def by_values(
    upstream: jax.Array, kernel: jax.Array, strides: Sizes, padding: str, sizes: Sizes
) -> jax.Array:
    """Gradient of a convolution by its values of these `sizes`; also the transposed convolution."""
    is_one_channel = (strides, padding, kernel.shape[:-1]) == ONE_CHANNEL
    if is_one_channel and all(size % BLOCK == 0 for size in sizes):
        return _one_channel(upstream, kernel)
    if fits_blocks(upstream, kernel, strides, padding, sizes):
        return by_blocks(upstream, kernel)
    shape = jax.ShapeDtypeStruct((upstream.shape[0], *sizes, kernel.shape[-2]), upstream.dtype)
    return jax.linear_transpose(
        lambda values: convolution(values, kernel, strides, padding), shape
    )(upstream)[0]


def _one_channel(upstream: jax.Array, kernel: jax.Array) -> jax.Array:
    """(B, n, m, C) and a kernel (5, 5, 1, C) → (B, 2n, 2m, 1), block by block."""
    batch, height, width, channels = upstream.shape
    taps = jnp.asarray(_taps_of_block(), upstream.dtype)
    # A sum with one term: exact in every format.
    block = jnp.einsum("yxi,yxacrs->acirs", kernel[:, :, 0, :], taps).reshape(
        BLOCK, BLOCK, channels, BLOCK**2
    )
    half = BLOCK // BLOCK_STRIDE
    windows = jax.lax.conv_general_dilated(
        upstream, block, (half, half), ((1, 1), (1, 1)), dimension_numbers=layout(2)
    )
    blocks = windows.reshape(batch, height // half, width // half, BLOCK, BLOCK)
    return blocks.transpose(0, 1, 3, 2, 4).reshape(
        batch, BLOCK_STRIDE * height, BLOCK_STRIDE * width, 1
    )


def _taps_of_block() -> NDArray[np.float32]:
    """1 where tap (y, x) of the kernel leads from pixel (a, c) of the window to pixel (r, s) of the
    block: [y, x, a, c, r, s].

    A window begins one pixel before its block. Output pixel o takes row o - 2v + 1 of the kernel
    from input pixel v.
    """
    along = np.zeros((BLOCK_KERNEL, BLOCK, BLOCK), np.float32)
    for window in range(BLOCK):
        for pixel in range(BLOCK):
            tap = pixel - BLOCK_STRIDE * (window - 1) + 1
            if 0 <= tap < BLOCK_KERNEL:
                along[tap, window, pixel] = 1.0
    return np.einsum("yar,xcs->yxacrs", along, along)


# ----------------------------------------------------------------------
# The gradient of a 4 × 4 convolution with stride 2 by its values, in blocks of 2 × 2 pixels; the
# same mathematics.
#
# It is the transposed convolution as well. As JAX derives it, it reads values that are three
# quarters zeros, and a TPU's compiler multiplies them all: of 1,024 to 256 channels, 16 × 16
# to 32 × 32 pixels, batch 8, 4.26 million cycles by its own estimate, in blocks 0.53. Among one
# ring of zeros the larger image is (h + 1) × (w + 1) blocks, and the convolution is one of 2 × 2
# blocks without a stride:
#
#     y[q] = Σ over a, p of x[2 (q + a) + p - 1] · k[2 a + p],    a, p in 0, 1
#
# So its gradient is a convolution of 2 × 2 as well: (B, h, w, C) → (B, h + 1, w + 1, 4 O), each
# block with its 2 × 2 pixels as channels; rearranged, without the ring, (B, 2h, 2w, O).

COVERED = ((2, 2), "same", (4, 4))  # strides, padding, kernel
# With 3 channels of the larger image, or 2 × 2 pixels of the smaller one, rearranging the pixels
# costs more than the zeros.
LEAST_CHANNELS, LEAST_PIXELS = 32, 64


def fits_blocks(
    upstream: jax.Array, kernel: jax.Array, strides: Sizes, padding: object, sizes: Sizes
) -> bool:
    """Whether `by_blocks` computes it. `sizes`: of the larger image."""
    pixels = upstream.shape[1:-1]
    return (
        (tuple(strides), padding, kernel.shape[:2]) == COVERED
        and tuple(sizes) == tuple(2 * size for size in pixels)
        and kernel.shape[2] >= LEAST_CHANNELS
        and math.prod(pixels) >= LEAST_PIXELS
    )


def by_blocks(upstream: jax.Array, kernel: jax.Array) -> jax.Array:
    """(B, h, w, C) and a kernel (4, 4, O, C) → (B, 2h, 2w, O)."""
    batch, height, width, channels = upstream.shape
    outcome = kernel.shape[2]
    # k[2a + p, 2b + q, o, c] → [1 - a, 1 - b, c, (p, q, o)]: the gradient mirrors the taps.
    taps = kernel.reshape(2, 2, 2, 2, outcome, channels)[::-1, :, ::-1]
    taps = taps.transpose(0, 2, 5, 1, 3, 4).reshape(2, 2, channels, 4 * outcome)
    ring = ((1, 1), (1, 1))
    blocks = jax.lax.conv_general_dilated(upstream, taps, (1, 1), ring, dimension_numbers=layout(2))
    pixels = blocks.reshape(batch, height + 1, width + 1, 2, 2, outcome).transpose(0, 1, 3, 2, 4, 5)
    return pixels.reshape(batch, 2 * height + 2, 2 * width + 2, outcome)[:, 1:-1, 1:-1]
