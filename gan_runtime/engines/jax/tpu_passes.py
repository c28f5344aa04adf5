"""Passes over volumes between their convolutions on a TPU, on the shape in which they lie there:
(B, x, y, z · C).

On (B, x, y, z, C) the compiler would lay few channels out anew before and after each pass. It also
takes two sums, over a volume and then over the cells of a column, for one sum over five axes, which
it does badly: a barrier between them keeps them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from gan_runtime.engines.jax.kernels import Sizes, layout

COLUMNS = (0, 1, 2)  # axes of batch, x and y


def flat(values: jax.Array) -> jax.Array:
    """(B, x, y, z, C) → (B, x, y, z · C), as convolutions read and write volumes here."""
    return values.reshape(*values.shape[:3], -1)


def elementwise(
    function: Callable[..., jax.Array], values: jax.Array, *of_channels: Any
) -> jax.Array:
    """`function(values, *of_channels)` of a volume; each of `of_channels`: (C,)."""
    spread = [_spread(jnp.asarray(one), values.shape[-2]) for one in of_channels]
    return function(flat(values), *spread).reshape(values.shape)


def normed(
    values: jax.Array, gamma: Any, beta: Any, epsilon: float, axis: str | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """See `step_context.Kernels.batch_norm`; `axis` as in `JaxKernels`. Moments in float32.

    With s = gamma / √(variance + epsilon) it is x · s + (beta - mean · s): one product and one sum
    a number.
    """
    wide, cells = flat(values).astype(jnp.float32), values.shape[-2]
    columns = jax.lax.optimization_barrier((wide.mean(COLUMNS), jnp.square(wide).mean(COLUMNS)))
    moments = jnp.stack([one.reshape(cells, -1).mean(0) for one in columns])
    if axis is not None:
        with jax.named_scope("all_reduce_batch_norm"):
            moments = jax.lax.pmean(moments, axis)
    mean, mean_square = moments
    variance = jnp.maximum(mean_square - jnp.square(mean), 0.0)
    scale = jnp.asarray(gamma) * jax.lax.rsqrt(variance + epsilon)
    outputs = wide * _spread(scale, cells) + _spread(jnp.asarray(beta) - mean * scale, cells)
    outputs = outputs.astype(values.dtype).reshape(values.shape)
    return outputs, jax.lax.stop_gradient(mean), jax.lax.stop_gradient(variance)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _spread(of_channels: jax.Array, cells: int) -> jax.Array:
    """(C,) → (z · C,), the same for each of so many cells of a column."""
    return jnp.tile(of_channels, cells)


def _forward(of_channels: jax.Array, cells: int) -> tuple[jax.Array, None]:
    return jnp.tile(of_channels, cells), None


def _backward(cells: int, kept: None, upstream: jax.Array) -> tuple[jax.Array]:  # noqa: ARG001
    columns = jax.lax.optimization_barrier(upstream).astype(jnp.float32)
    return (columns.reshape(cells, -1).sum(0).astype(upstream.dtype),)


_spread.defvjp(_forward, _backward)


# ----------------------------------------------------------------------
# A convolution of 4 × 4 with stride 2 taken back to its values, in blocks of 2 × 2 pixels; the same
# mathematics.
#
# It is the transposed convolution as well. Written as JAX derives it, it reads values that are
# three quarters zeros, and a TPU's compiler multiplies them all: of 1,024 to 256 channels, 16 × 16
# to 32 × 32 pixels, batch 8, 4.26 million cycles by its own estimate, in blocks 0.53. Among one
# ring of zeros the larger image is (h + 1) × (w + 1) blocks, and the convolution is one of 2 × 2
# blocks without a stride:
#
#     y[q] = Σ over a, p of x[2 (q + a) + p - 1] · k[2 a + p],    a, p in 0, 1
#
# So its way back is a convolution of 2 × 2 as well: (B, h, w, C) → (B, h + 1, w + 1, 4 O), each
# block with its 2 × 2 pixels as channels; put in their places, without the ring, (B, 2h, 2w, O).

COVERED = ((2, 2), "same", (4, 4))  # strides, padding, kernel
LEAST_CHANNELS = (
    32  # of the larger image: with 3, putting pixels in their places costs more than the zeros
)
LEAST_PIXELS = 64  # of the smaller image: with 2 × 2, the same


def is_covered(
    upstream: jax.Array, kernel: jax.Array, strides: Sizes, padding: object, sizes: Sizes
) -> bool:
    """Whether `by_blocks` is made for it. `sizes`: of the larger image."""
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
    # k[2a + p, 2b + q, o, c] → [1 - a, 1 - b, c, (p, q, o)]: taps turn round on the way back.
    taps = kernel.reshape(2, 2, 2, 2, outcome, channels)[::-1, :, ::-1]
    taps = taps.transpose(0, 2, 5, 1, 3, 4).reshape(2, 2, channels, 4 * outcome)
    ring = ((1, 1), (1, 1))
    blocks = jax.lax.conv_general_dilated(upstream, taps, (1, 1), ring, dimension_numbers=layout(2))
    pixels = blocks.reshape(batch, height + 1, width + 1, 2, 2, outcome).transpose(0, 1, 3, 2, 4, 5)
    return pixels.reshape(batch, 2 * height + 2, 2 * width + 2, outcome)[:, 1:-1, 1:-1]
