"""Kernels of the training step for the JAX engine: the mathematics of the Keras layers; XLA does the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from gan_runtime.engines.enlarged import among_zeros, enlarged_convolution
from gan_runtime.engines.jax import cpu_volumes
from gan_runtime.workloads.step_context import Padding

Sizes = tuple[int, ...]


class JaxKernels:
    """See `step_context.Kernels`. `axis`: name of the mesh axis over which batch norm is synchronised; None for its own share."""

    def __init__(self, axis: str | None) -> None:
        self._axis = axis

    def convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: Padding
    ) -> jax.Array:
        """See `step_context.Kernels`."""
        return convolution(*among_zeros(values, kernel, strides, padding))

    def transposed_convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
    ) -> jax.Array:
        """See `step_context.Kernels`."""
        return _transposed(values, kernel, strides, padding)

    def elementwise(
        self, function: Callable[..., jax.Array], values: jax.Array, *of_channels: jax.Array
    ) -> jax.Array:
        """See `step_context.Kernels`."""
        return function(values, *of_channels)

    def enlarged_convolution(self, values: jax.Array, kernel: jax.Array, factors: Sizes) -> jax.Array:
        """See `step_context.Kernels`."""
        return enlarged_convolution(values, kernel, factors)

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
    """Convolutions whose filter gradients are written out: a convolution of the transposed values.

    Inside a loop XLA leaves a filter gradient as JAX derives it to a plain loop over pixels (measured, jaxlib 0.10.2, batch
    16, 64 to 128 channels with stride 2: 330 ms, written out 8 ms). Volumes of few channels: cpu_volumes.py.
    """

    def convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: Padding
    ) -> jax.Array:
        """See `step_context.Kernels`."""
        values, kernel, strides, padding = among_zeros(values, kernel, strides, padding)
        if cpu_volumes.is_covered(kernel, strides):
            return cpu_volumes.volume_convolution(values, kernel, padding)
        return _written_out(values, kernel, strides, padding)

    def transposed_convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
    ) -> jax.Array:
        """See `step_context.Kernels`."""
        return _transposed_written_out(values, kernel, strides, padding)


def layout(axes: int) -> tuple[str, str, str]:
    """Of values, kernel and outcome with so many axes between batch and channels: ("NHWC", "HWIO", "NHWC") for images."""
    names = "DHW"[-axes:]
    return f"N{names}C", f"{names}IO", f"N{names}C"


def convolution(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    """What the others here are made of."""
    return jax.lax.conv_general_dilated(
        values, kernel, strides, padding.upper(), dimension_numbers=layout(len(strides))
    )


def _transposed(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    return jax.lax.conv_transpose(
        values,
        kernel,
        strides,
        padding.upper(),
        dimension_numbers=layout(len(strides)),
        transpose_kernel=True,
    )


def filter_gradient(
    values: jax.Array, upstream: jax.Array, taps: Sizes, strides: Sizes, padding: str
) -> jax.Array:
    """Gradient of the (*taps, channels in, channels out) kernel of a convolution; see `engines/tf/kernels.filter_gradient`."""
    axes, last = range(1, len(taps) + 1), len(taps) + 1
    around = jax.lax.padtype_to_pads(values.shape[1:-1], taps, strides, padding.upper())
    gradient = jax.lax.conv_general_dilated(
        values.transpose(last, *axes, 0),
        upstream.transpose(*axes, 0, last),
        (1,) * len(taps),
        around,
        rhs_dilation=strides,
        dimension_numbers=layout(len(taps)),
    )
    return gradient[:, *(slice(size) for size in taps)].transpose(*axes, 0, last)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _written_out(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    return convolution(values, kernel, strides, padding)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _transposed_written_out(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    return _transposed(values, kernel, strides, padding)


def _backward(
    strides: Sizes, padding: str, kept: tuple[jax.Array, jax.Array], upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    values, kernel = kept
    (by_values,) = jax.vjp(lambda values: convolution(values, kernel, strides, padding), values)[1](upstream)
    return by_values, filter_gradient(values, upstream, kernel.shape[:-2], strides, padding)


def _transposed_backward(
    strides: Sizes, padding: str, kept: tuple[jax.Array, jax.Array], upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Values and outcome change their places."""
    values, kernel = kept
    by_values = convolution(upstream, kernel, strides, padding)
    return by_values, filter_gradient(upstream, values, kernel.shape[:-2], strides, padding)


_written_out.defvjp(
    lambda values, kernel, strides, padding: (
        convolution(values, kernel, strides, padding),
        (values, kernel),
    ),
    _backward,
)
_transposed_written_out.defvjp(
    lambda values, kernel, strides, padding: (
        _transposed(values, kernel, strides, padding),
        (values, kernel),
    ),
    _transposed_backward,
)
