"""Kernels of the training step for a TPU: the mathematics of `JaxKernels`, laid out for its matrix units.

A TPU multiplies blocks of 128 numbers, and pads what is narrower. By the compiler's estimate (`make bench ONLY=cycles`):
* an output of one channel fills one of 128 columns. A block of 4 × 4 output pixels depends on 4 × 4 input pixels, so all 16
  are computed as channels of one small convolution with stride 2;
* the gradients of a convolution and of its transpose are those of the same convolution, written without turning anything over.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gan_runtime.engines.jax.kernels import LAYOUT, JaxKernels, convolution

BLOCK_KERNEL, BLOCK_STRIDE = 5, 2  # for which the blocks of one channel are written out
BLOCK = 4  # output pixels of a block, each way
Residuals = tuple[Any, ...]


class TpuKernels(JaxKernels):
    """See `step_context.Kernels`."""

    def convolution(self, images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
        """See `step_context.Kernels`."""
        return _convolution(images, kernel, stride)

    def transposed_convolution(self, images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
        """See `step_context.Kernels`."""
        return _transposed(images, kernel, stride)


# ---- convolutions -------------------------------------------------------------------------------------------------


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _convolution(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return convolution(images, kernel, stride)


def _convolution_forward(images: jax.Array, kernel: jax.Array, stride: int) -> tuple[jax.Array, Residuals]:
    return convolution(images, kernel, stride), (images, kernel)


def _convolution_backward(stride: int, kept: Residuals, upstream: jax.Array) -> tuple[jax.Array, jax.Array]:
    images, kernel = kept
    return by_images(upstream, kernel, stride, images.shape[1]), by_kernel(
        images, upstream, kernel.shape, stride
    )


_convolution.defvjp(_convolution_forward, _convolution_backward)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _transposed(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return by_images(images, kernel, stride, stride * images.shape[1])


def _transposed_forward(images: jax.Array, kernel: jax.Array, stride: int) -> tuple[jax.Array, Residuals]:
    return by_images(images, kernel, stride, stride * images.shape[1]), (images, kernel)


def _transposed_backward(stride: int, kept: Residuals, upstream: jax.Array) -> tuple[jax.Array, jax.Array]:
    images, kernel = kept
    return convolution(upstream, kernel, stride), by_kernel(upstream, images, kernel.shape, stride)


_transposed.defvjp(_transposed_forward, _transposed_backward)


def by_kernel(images: jax.Array, upstream: jax.Array, shape: tuple[int, ...], stride: int) -> jax.Array:
    """Gradient of a convolution's kernel, of that `shape`."""
    of_kernel = jax.linear_transpose(
        lambda kernel: convolution(images, kernel, stride), jax.ShapeDtypeStruct(shape, images.dtype)
    )
    return of_kernel(upstream)[0]


def by_images(upstream: jax.Array, kernel: jax.Array, stride: int, size: int) -> jax.Array:
    """Gradient of a convolution's square images of `size` pixels; also the transposed convolution."""
    wanted = (kernel.shape[0], kernel.shape[2], stride, size % BLOCK) == (BLOCK_KERNEL, 1, BLOCK_STRIDE, 0)
    if wanted:
        return _one_channel(upstream, kernel)
    shape = jax.ShapeDtypeStruct((upstream.shape[0], size, size, kernel.shape[2]), upstream.dtype)
    return jax.linear_transpose(lambda images: convolution(images, kernel, stride), shape)(upstream)[0]


def _one_channel(upstream: jax.Array, kernel: jax.Array) -> jax.Array:
    """(B, n, n, C) and a kernel (5, 5, 1, C) → (B, 2n, 2n, 1), block by block."""
    batch, size, _, channels = upstream.shape
    taps = jnp.asarray(_taps_of_block(), upstream.dtype)
    # A sum with one term: exact in every format.
    block = jnp.einsum("yxi,yxacrs->acirs", kernel[:, :, 0, :], taps).reshape(
        BLOCK, BLOCK, channels, BLOCK**2
    )
    half = BLOCK // BLOCK_STRIDE
    found = jax.lax.conv_general_dilated(
        upstream, block, (half, half), ((1, 1), (1, 1)), dimension_numbers=LAYOUT
    )
    blocks = found.reshape(batch, size // half, size // half, BLOCK, BLOCK)
    return blocks.transpose(0, 1, 3, 2, 4).reshape(batch, BLOCK_STRIDE * size, BLOCK_STRIDE * size, 1)


def _taps_of_block() -> NDArray[np.float32]:
    """1 where tap (y, x) of the kernel leads from pixel (a, c) of the window to pixel (r, s) of the block: [y, x, a, c, r, s].

    A window begins one pixel before its block. Output pixel o takes row o - 2v + 1 of the kernel from input pixel v.
    """
    along = np.zeros((BLOCK_KERNEL, BLOCK, BLOCK), np.float32)
    for window in range(BLOCK):
        for pixel in range(BLOCK):
            tap = pixel - BLOCK_STRIDE * (window - 1) + 1
            if 0 <= tap < BLOCK_KERNEL:
                along[tap, window, pixel] = 1.0
    return np.einsum("yar,xcs->yxacrs", along, along)
