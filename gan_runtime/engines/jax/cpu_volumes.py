"""Convolutions of volumes with few channels on a CPU: products of matrices. Stride 1; (B, x, y, z, C) and (…, C, O) → (B, …, O).

XLA's convolutions with three axes are slow there, and their gradients are plain loops over cells. Its products of matrices are
fast. So depth is folded into channels, z · C to z' · O, by kernels with their taps along a diagonal; what the taps of the second
axis read is laid side by side, and each tap i of the first one is one product:

    y[b, x, y'] = sum over i of (v[b, x + i, y' + 0], v[b, x + i, y' + 1], …) · K[i],    (B · x · y', taps y · z · C) by (…, z' · O)

D's second convolution on 17 × 17 × 25 cells, 5 × 6 × 6 taps of 4 to 4 channels, is 5 products by (6 · 27 · 4, 22 · 4): 4.5 times the
multiplications, most of them by zero, in a fraction of the time (docs/decisions/0036-volumes.md). Both ways back, which JAX
derives, are products too. A product for each tap of both axes is as fast, and takes twice as long to compile.
"""

from __future__ import annotations

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
    beside = jnp.concatenate([flat[:, :, y : y + second] for y in range(taps[1])], axis=-1)
    outcome = sum(beside[:, x : x + first] @ folded[x] for x in range(taps[0]))  # (B, x, y', z' · O)
    return outcome.reshape(-1, first, second, third, channels_out).astype(values.dtype)


def _folded(kernel: jax.Array, outcomes: int) -> jax.Array:
    """(taps x, taps y, taps z, C, O) → (taps x, taps y · z · C, z' · O). Sums with one term: exact."""
    diagonals = jnp.einsum("xytio,tzn->xyzino", kernel, band(kernel.shape[2], outcomes))
    return diagonals.reshape(kernel.shape[0], -1, outcomes * kernel.shape[-1])
