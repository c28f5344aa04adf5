"""Kernels of the training step for the JAX engine: the arithmetic of Keras layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from gan_runtime.engines.convolutions import among_zeros, band, enlarged_convolution
from gan_runtime.workloads.step_context import Padding

Sizes = tuple[int, ...]


class JaxKernels:
    """XLA's own operations. `axis`: mesh axis over which batch norm is synchronized; None for the
    replica's share only.
    """

    def __init__(self, axis: str | None) -> None:
        self._axis = axis

    def convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: Padding
    ) -> jax.Array:
        return convolution(*among_zeros(values, kernel, strides, padding))

    def transposed_convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
    ) -> jax.Array:
        return _transposed(values, kernel, strides, padding)

    def elementwise(
        self, function: Callable[..., jax.Array], values: jax.Array, *of_channels: jax.Array
    ) -> jax.Array:
        return function(values, *of_channels)

    def enlarged_convolution(
        self, values: jax.Array, kernel: jax.Array, factors: Sizes
    ) -> jax.Array:
        return enlarged_convolution(values, kernel, factors)

    def batch_norm(
        self, values: jax.Array, gamma: Any, beta: Any, epsilon: float
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Moments are float32; means of equal shares average to the mean of the whole batch."""
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
        return (
            outputs.astype(values.dtype),
            jax.lax.stop_gradient(mean),
            jax.lax.stop_gradient(variance),
        )


class JaxCpuKernels(JaxKernels):
    """Convolutions whose filter gradients are written out: a convolution of the transposed values.

    Inside a loop XLA leaves a filter gradient as JAX derives it to a plain loop over pixels
    (measured, jaxlib 0.10.2, batch 16, 64 to 128 channels with stride 2: 330 ms, written out 8 ms).
    Volumes of few channels: `volume_convolution` below.
    """

    def convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: Padding
    ) -> jax.Array:
        values, kernel, strides, padding = among_zeros(values, kernel, strides, padding)
        if is_small_volume(kernel, strides):
            return volume_convolution(values, kernel, padding)
        return _written_out(values, kernel, strides, padding)

    def transposed_convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
    ) -> jax.Array:
        return _transposed_written_out(values, kernel, strides, padding)


def layout(axes: int) -> tuple[str, str, str]:
    """The layouts of values, kernel and outcome for this number of axes between batch and channels:
    ("NHWC", "HWIO", "NHWC") for images.
    """
    names = "DHW"[-axes:]
    return f"N{names}C", f"{names}IO", f"N{names}C"


def convolution(values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str) -> jax.Array:
    """XLA's own convolution."""
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
    """Gradient of the (*taps, channels in, channels out) kernel of a convolution, by the equation
    of `filter_gradient` in tf/cpu_convolutions.py.
    """
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


# A convolution y = v * k is linear in v and in k. With c for a gradient at y, its two gradients,
# by_values(c, k) and by_kernel(v, c), are linear as well, and the gradients of all three are the
# other two. So derivatives of any order, such as those of a gradient penalty, are written out.

Both = tuple[jax.Array, jax.Array]
Function = Callable[..., jax.Array]


def linked(convolution: Function, by_kernel: Function) -> tuple[Function, Function, Function]:
    """The convolution, its gradient by values and its gradient by kernel, each with the other two
    as its gradients.

    `convolution(values, kernel, strides, padding)`, `by_kernel(values, upstream, taps, strides,
    padding)`; the gradient by values takes (upstream, kernel, shape of the values, strides,
    padding).
    """

    def by_values(
        upstream: jax.Array, kernel: jax.Array, shape: Sizes, strides: Sizes, padding: str
    ) -> jax.Array:
        values = jax.ShapeDtypeStruct(shape, upstream.dtype)
        (gradient,) = jax.linear_transpose(
            lambda values: convolution(values, kernel, strides, padding), values
        )(upstream)
        return gradient

    forward = jax.custom_vjp(convolution, nondiff_argnums=(2, 3))
    to_values = jax.custom_vjp(by_values, nondiff_argnums=(2, 3, 4))
    to_kernel = jax.custom_vjp(by_kernel, nondiff_argnums=(2, 3, 4))

    def of_forward(strides: Sizes, padding: str, residuals: Both, upstream: jax.Array) -> Both:
        values, kernel = residuals
        return (
            to_values(upstream, kernel, values.shape, strides, padding),
            to_kernel(values, upstream, kernel.shape[:-2], strides, padding),
        )

    def of_values(
        _shape: Sizes, strides: Sizes, padding: str, residuals: Both, direction: jax.Array
    ) -> Both:
        upstream, kernel = residuals
        return (
            forward(direction, kernel, strides, padding),
            to_kernel(direction, upstream, kernel.shape[:-2], strides, padding),
        )

    def of_kernel(
        _taps: Sizes, strides: Sizes, padding: str, residuals: Both, direction: jax.Array
    ) -> Both:
        values, upstream = residuals
        return (
            to_values(upstream, direction, values.shape, strides, padding),
            forward(values, direction, strides, padding),
        )

    for function, backward in (
        (forward, of_forward),
        (to_values, of_values),
        (to_kernel, of_kernel),
    ):
        function.defvjp(partial(_kept, function), backward)
    return forward, to_values, to_kernel


def _kept(
    function: Function, first: jax.Array, second: jax.Array, *static: Any
) -> tuple[jax.Array, Both]:
    return function(first, second, *static), (first, second)


_written_out, _, _by_kernel = linked(convolution, filter_gradient)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _transposed_written_out(
    values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
) -> jax.Array:
    return _transposed(values, kernel, strides, padding)


def _transposed_backward(
    strides: Sizes, padding: str, residuals: Both, upstream: jax.Array
) -> Both:
    """As of a convolution, with values and outcome exchanged."""
    values, kernel = residuals
    return (
        _written_out(upstream, kernel, strides, padding),
        _by_kernel(upstream, values, kernel.shape[:-2], strides, padding),
    )


_transposed_written_out.defvjp(partial(_kept, _transposed_written_out), _transposed_backward)


# ----------------------------------------------------------------------
# Convolutions of volumes with few channels on a CPU: products of matrices. Stride 1; (B, x, y, z,
# C) and (…, C, O) → (B, …, O).
#
# XLA's convolutions with three axes are slow there, and their gradients are plain loops over cells.
# Its products of matrices are fast. So depth is folded into channels, z · C to z' · O, by kernels
# with their taps along a diagonal; the cells that the taps of the second axis read are adjacent;
# and each tap i of the first one is one product:
#
# y[b, x, y'] = sum over i of (v[b, x + i, y' + 0], v[b, x + i, y' + 1], …) · K[i],    (B · x · y',
# taps y · z · C) by (…, z' · O)
#
# D's second convolution on 17 × 17 × 25 cells, 5 × 6 × 6 taps of 4 to 4 channels, is 5 products by
# (6 · 27 · 4, 22 · 4): 4.5 times the multiplications, most of them by zero, in a fraction of the
# time (docs/decisions/11-kernels.md). Both ways back, which JAX derives, are products too. A
# product for each tap of both axes is as fast, and takes twice as long to compile.

AXES = 3
MOST_CHANNELS = 16  # the number in CERN's 3DGAN; more were not measured


def is_small_volume(kernel: jax.Array, strides: tuple[int, ...]) -> bool:
    """Whether `volume_convolution` computes it."""
    return len(strides) == AXES and max(strides) == 1 and max(kernel.shape[-2:]) <= MOST_CHANNELS


def volume_convolution(values: jax.Array, kernel: jax.Array, padding: str) -> jax.Array:
    """`padding`: "same" or "valid". Taps are summed in float32 and rounded once: these
    products are no faster in bfloat16.
    """
    *taps, _, channels_out = kernel.shape
    around = jax.lax.padtype_to_pads(values.shape[1:-1], taps, (1,) * AXES, padding.upper())
    wide = jnp.pad(values.astype(jnp.float32), ((0, 0), *around, (0, 0)))
    first, second, third = (
        size - of_axis + 1 for size, of_axis in zip(wide.shape[1:-1], taps, strict=True)
    )
    flat = wide.reshape(*wide.shape[:AXES], -1)  # (B, x, y, z · C)
    folded = _folded(kernel.astype(jnp.float32), third)
    windows = jnp.concatenate([flat[:, :, y : y + second] for y in range(taps[1])], axis=-1)
    # (B, x, y', z' · O)
    outcome = sum(windows[:, x : x + first] @ folded[x] for x in range(taps[0]))
    return outcome.reshape(-1, first, second, third, channels_out).astype(values.dtype)


def _folded(kernel: jax.Array, outcomes: int) -> jax.Array:
    """(taps x, taps y, taps z, C, O) → (taps x, taps y · z · C, z' · O).

    Each sum has one term, so it is exact.
    """
    diagonals = jnp.einsum("xytio,tzn->xyzino", kernel, band(kernel.shape[2], outcomes))
    return diagonals.reshape(kernel.shape[0], -1, outcomes * kernel.shape[-1])
