"""Kernels of the training step for the JAX engine: the mathematics of the Keras layers; XLA does the rest."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

LAYOUT = ("NHWC", "HWIO", "NHWC")


class JaxKernels:
    """See `step_context.Kernels`. `axis`: name of the mesh axis over which batch norm is synchronised; None for its own share."""

    def __init__(self, axis: str | None) -> None:
        self._axis = axis

    def convolution(self, images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
        """See `step_context.Kernels`."""
        return convolution(images, kernel, stride)

    def transposed_convolution(self, images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
        """See `step_context.Kernels`."""
        return _transposed(images, kernel, stride)

    def batch_norm(
        self, values: jax.Array, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """See `step_context.Kernels`. Moments in float32; those of equal shares add up to those of the whole batch."""
        wide = values.astype(jnp.float32)
        axes = tuple(range(values.ndim - 1))
        moments = jnp.stack([wide.mean(axes), jnp.square(wide).mean(axes)])
        if self._axis is not None:
            with jax.named_scope("all_reduce_batch_norm"):
                moments = jax.lax.pmean(moments, self._axis)
        mean, mean_square = moments
        variance = jnp.maximum(mean_square - jnp.square(mean), 0.0)
        scale = jnp.asarray(gamma) * jax.lax.rsqrt(variance + epsilon)
        outputs = (wide - mean) * scale + jnp.asarray(beta)
        return outputs.astype(values.dtype), jax.lax.stop_gradient(mean), jax.lax.stop_gradient(variance)


class CpuKernels(JaxKernels):
    """Convolutions whose filter gradients are written out: a convolution of the transposed images.

    Inside a loop XLA leaves a filter gradient as JAX derives it to a plain loop over pixels (measured, jaxlib 0.10.2, batch
    16, 64 to 128 channels with stride 2: 330 ms, written out 8 ms).
    """

    def convolution(self, images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
        """See `step_context.Kernels`."""
        return _written_out(images, kernel, stride)

    def transposed_convolution(self, images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
        """See `step_context.Kernels`."""
        return _transposed_written_out(images, kernel, stride)


def convolution(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """Padding "same"; what the others here are made of."""
    return jax.lax.conv_general_dilated(images, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def _transposed(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    strides = (stride, stride)
    return jax.lax.conv_transpose(
        images, kernel, strides, "SAME", dimension_numbers=LAYOUT, transpose_kernel=True
    )


def filter_gradient(images: jax.Array, upstream: jax.Array, size: int, stride: int) -> jax.Array:
    """Gradient of the (size, size, channels in, channels out) kernel of a "same" convolution; see `tf_kernels.filter_gradient`."""
    total = max((-(-images.shape[1] // stride) - 1) * stride + size - images.shape[1], 0)
    padding = [(total // 2, total - total // 2)] * 2
    exchanged, filters = images.transpose(3, 1, 2, 0), upstream.transpose(1, 2, 0, 3)
    found = jax.lax.conv_general_dilated(
        exchanged, filters, (1, 1), padding, rhs_dilation=(stride, stride), dimension_numbers=LAYOUT
    )
    return found[:, :size, :size].transpose(1, 2, 0, 3)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _written_out(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return convolution(images, kernel, stride)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _transposed_written_out(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return _transposed(images, kernel, stride)


def _backward(
    stride: int, kept: tuple[jax.Array, jax.Array], upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    images, kernel = kept
    (by_images,) = jax.vjp(lambda images: convolution(images, kernel, stride), images)[1](upstream)
    return by_images, filter_gradient(images, upstream, kernel.shape[0], stride)


def _transposed_backward(
    stride: int, kept: tuple[jax.Array, jax.Array], upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Input and output change their places."""
    images, kernel = kept
    return convolution(upstream, kernel, stride), filter_gradient(upstream, images, kernel.shape[0], stride)


_written_out.defvjp(
    lambda images, kernel, stride: (convolution(images, kernel, stride), (images, kernel)), _backward
)
_transposed_written_out.defvjp(
    lambda images, kernel, stride: (_transposed(images, kernel, stride), (images, kernel)),
    _transposed_backward,
)
