"""Convolutions of volumes with few channels on a CPU: products of matrices. Stride 1; (B, x, y, z, C) and (…, C, O) → (B, …, O).

XLA's convolutions with three axes are slow there, and their gradients are plain loops over cells. Its products of matrices are
fast. So depth is folded into channels, z · C to z' · O, by kernels with their taps along a diagonal, and each tap (i, j) of the
two other axes is one product:

    y[b, x, y'] = sum over i, j of v[b, x + i, y' + j] · K[i, j],    (B · x · y', z · C) by (z · C, z' · O)

D's second convolution on 17 × 17 × 25 cells, 5 × 6 × 6 taps of 4 to 4 channels, is 30 products by (27 · 4, 22 · 4): 4.5 times the
multiplications, most of them by zero, in a fraction of the time (docs/decisions/0036-volumes.md). Both ways back, which JAX
derives, are products too.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp

from gan_runtime.engines.bands import band

AXES = 3
MOST_CHANNELS = 16  # those of CERN's 3DGAN; with more nothing was tried


def is_covered(kernel: jax.Array, strides: tuple[int, ...]) -> bool:
    """Whether a convolution is one of those that are computed here."""
    return len(strides) == AXES and max(strides) == 1 and max(kernel.shape[-2:]) <= MOST_CHANNELS


def volume_convolution(values: jax.Array, kernel: jax.Array, padding: str) -> jax.Array:
    """`padding`: "same" or "valid". Taps are summed in float32 and rounded once: these products are no faster in bfloat16."""
    *taps, _, channels_out = kernel.shape
    around = jax.lax.padtype_to_pads(values.shape[1:-1], taps, (1,) * AXES, padding.upper())
    wide = jnp.pad(values.astype(jnp.float32), ((0, 0), *around, (0, 0)))
    first, second, third = (size - of_axis + 1 for size, of_axis in zip(wide.shape[1:-1], taps, strict=True))
    flat = wide.reshape(*wide.shape[:AXES], -1)  # (B, x, y, z · C)
    folded = _folded(kernel.astype(jnp.float32), third)
    products = (
        flat[:, x : x + first, y : y + second] @ folded[x, y]
        for x, y in itertools.product(range(taps[0]), range(taps[1]))
    )
    outcome = sum(products, start=jnp.float32(0.0))  # (B, x, y', z' · O)
    return outcome.reshape(-1, first, second, third, channels_out).astype(values.dtype)


def _folded(kernel: jax.Array, outcomes: int) -> jax.Array:
    """(taps x, taps y, taps z, C, O) → (taps x, taps y, z · C, z' · O). Sums with one term: exact."""
    *lateral, taps, channels_in, channels_out = kernel.shape
    diagonals = jnp.einsum("xytio,tzn->xyzino", kernel, band(taps, outcomes))
    return diagonals.reshape(*lateral, (outcomes + taps - 1) * channels_in, outcomes * channels_out)
