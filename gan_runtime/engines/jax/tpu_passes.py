"""Passes over volumes between their convolutions on a TPU, on the shape in which they lie there: (B, x, y, z · C).

On (B, x, y, z, C) the compiler would lay few channels out anew before and after each pass. It also takes two sums, over a volume
and then over the cells of a column, for one sum over five axes, which it does badly: a barrier between them keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

COLUMNS = (0, 1, 2)  # axes of batch, x and y


def flat(values: jax.Array) -> jax.Array:
    """(B, x, y, z, C) → (B, x, y, z · C), as convolutions read and write volumes here."""
    return values.reshape(*values.shape[:3], -1)


def elementwise(function: Callable[..., jax.Array], values: jax.Array, *of_channels: Any) -> jax.Array:
    """`function(values, *of_channels)` of a volume; each of `of_channels`: (C,)."""
    spread = [_spread(jnp.asarray(one), values.shape[-2]) for one in of_channels]
    return function(flat(values), *spread).reshape(values.shape)


def normed(
    values: jax.Array, gamma: Any, beta: Any, epsilon: float, axis: str | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """See `step_context.Kernels.batch_norm`; `axis` as in `JaxKernels`. Moments in float32.

    With s = gamma / √(variance + epsilon) it is x · s + (beta - mean · s): one product and one sum a number.
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
