"""Volumes with few channels, arranged for the matrix units of a TPU; the same mathematics.

A TPU multiplies blocks of 128 × 128 numbers. A convolution of 8 channels fills 8 of 128 rows and
columns. So

* depth is folded into channels: `n` outcomes along the third axis read n + taps - 1 cells of it,
  and all of these are channels of a convolution with two axes, (n + taps - 1) · C to n · O;
* of the second axis `m` outcomes at a time are computed as further channels, by a stride of m and
  m + taps - 1 taps;
* values of a single channel are few, so the m + taps - 1 cells of the second axis become channels
  too.

Its kernel is block-banded: tap t is wherever a cell is t behind an outcome, zeros elsewhere. That
is more arithmetic than the convolution has, on units that are full. A 5 × 6 × 6 kernel of 16 to 8
channels with m = 6, n = 3 becomes 5 × 11 taps of 8 · 16 = 128 to 6 · 3 · 8 = 144 channels: 2.4
times the products, in a fifth of the time (docs/decisions/11-kernels.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from gan_runtime.engines.convolutions import band
from gan_runtime.engines.jax.kernels import Sizes, layout
from gan_runtime.workloads.step_context import Padding

AXES = 3
UNIT = 128  # rows and columns of a matrix unit
FEW_CHANNELS = 32  # with 64 the compiler fills its units; between 16 and 64 not measured
MOST_COLUMNS = 16  # outcomes of the second axis in a block
Around = tuple[tuple[int, int], ...]  # zeros before and after, along each axis


@dataclass(frozen=True)
class Block:
    """The outcomes that are computed together, as channels."""

    second: int
    depth: int


@dataclass(frozen=True)
class Slab:
    """Outcomes [`begin`, `end`) of the third axis, and the cells [`first`, `last`) that they read;
    `before`: zeros ahead of these.
    """

    begin: int
    end: int
    first: int
    last: int
    before: int


@dataclass(frozen=True)
class ConvolutionShape:
    """The shape of a convolution with stride 1; each tuple has one entry per axis."""

    sizes: Sizes
    taps: Sizes
    around: Around
    channels_in: int
    channels_out: int

    @property
    def outcome(self) -> Sizes:
        """The sizes of the outcome."""
        along = zip(self.sizes, self.around, self.taps, strict=True)
        return tuple(size + sum(zeros) - taps + 1 for size, zeros, taps in along)

    @property
    def mirrored(self) -> Around:
        """Zeros around the outcome, for the gradient by the values."""
        along = zip(self.taps, self.around, strict=True)
        return tuple((taps - 1 - before, taps - 1 - behind) for taps, (before, behind) in along)

    @property
    def is_gathered(self) -> bool:
        """Whether cells of the second axis become channels: with one channel that costs little
        memory.
        """
        return self.channels_in == 1

    def slabs(self, depth: int) -> Iterator[Slab]:
        """The outcomes along the third axis, `depth` at a time, without the zeros around and the
        kernel's rows for them.
        """
        cells, (before, _), taps = self.sizes[2], self.around[2], self.taps[2]
        for begin in range(0, self.outcome[2], depth):
            end = min(begin + depth, self.outcome[2])
            first = max(begin - before, 0)
            last = min(end - before + taps - 1, cells)
            yield Slab(begin, end, first, last, max(before - begin, 0))

    def products(self, block: Block) -> int:
        """Products of the units for one position of the first axis; both sides of each are padded
        to whole units.
        """
        window = block.second + self.taps[1] - 1
        taps, channels = (1, window) if self.is_gathered else (window, self.channels_in)
        products = sum(
            _filled((slab.last - slab.first) * channels)
            * max(UNIT, block.second * (slab.end - slab.begin) * self.channels_out)
            for slab in self.slabs(block.depth)
        )
        return -(-self.outcome[1] // block.second) * taps * products


def _filled(channels: int) -> int:
    return -(-channels // UNIT) * UNIT


@cache
def best_block(shape: ConvolutionShape) -> Block:
    """The block with the fewest products."""
    depths = {-(-shape.outcome[2] // slabs) for slabs in range(1, shape.outcome[2] + 1)}
    blocks = [
        Block(second, depth)
        for second in range(1, min(MOST_COLUMNS, shape.outcome[1]) + 1)
        for depth in depths
    ]
    return min(blocks, key=lambda block: (shape.products(block), -block.depth, block.second))


def is_few(kernel: Any, strides: Sizes) -> bool:
    """Whether `volume_convolution` computes it."""
    return len(strides) == AXES and max(strides) == 1 and max(kernel.shape[-2:]) <= FEW_CHANNELS


def volume_convolution(values: jax.Array, kernel: jax.Array, padding: Padding) -> jax.Array:
    """(B, x, y, z, C) and (…, C, O) → (B, …, O), stride 1."""
    around = padding
    if isinstance(padding, str):
        sizes, taps = values.shape[1:-1], kernel.shape[:-2]
        around = jax.lax.padtype_to_pads(sizes, taps, (1,) * AXES, padding.upper())
    return _convolution(values, kernel, tuple(around))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _convolution(values: jax.Array, kernel: jax.Array, around: Around) -> jax.Array:
    return folded(values, kernel, around, best_block(_shape(values, kernel, around)))


def _forward(
    values: jax.Array, kernel: jax.Array, around: Around
) -> tuple[jax.Array, tuple[Any, Any]]:
    return _convolution(values, kernel, around), (values, kernel)


def _backward(
    around: Around, residuals: tuple[Any, Any], upstream: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Both gradients are convolutions of this kind too, each with a separate best block."""
    values, kernel = residuals
    shape = _shape(values, kernel, around)
    by_values = _convolution(upstream, kernel[::-1, ::-1, ::-1].swapaxes(-1, -2), shape.mirrored)
    by_kernel = jax.linear_transpose(
        lambda kernel: folded(values, kernel, around, best_block(shape)),
        jax.ShapeDtypeStruct(kernel.shape, values.dtype),
    )
    return by_values, by_kernel(upstream)[0]


_convolution.defvjp(_forward, _backward)


def _shape(values: jax.Array, kernel: jax.Array, around: Around) -> ConvolutionShape:
    *taps, channels_in, channels_out = kernel.shape
    return ConvolutionShape(
        tuple(values.shape[1:-1]), tuple(taps), around, channels_in, channels_out
    )


def folded(values: jax.Array, kernel: jax.Array, around: Around, block: Block) -> jax.Array:
    """The convolution, block by block."""
    shape = _shape(values, kernel, around)
    first, second, third = shape.outcome
    strides = -(-second // block.second)
    zeros, stride = (around[1][0], around[1][1] + strides * block.second - second), block.second
    banded = _banded(kernel, block)  # (taps x, window y, window z, C, m, n, O)
    if shape.is_gathered:
        values, banded = _windows(values, zeros, banded.shape[1], stride), banded.swapaxes(1, 3)
        zeros, stride = (0, 0), 1
    channels_in, cells, slabs = values.shape[-1], flat(values), []
    for slab in shape.slabs(block.depth):
        rows = banded[
            :,
            :,
            slab.before : slab.before + slab.last - slab.first,
            ...,
            : slab.end - slab.begin,
            :,
        ]
        outcome = jax.lax.conv_general_dilated(
            cells[..., slab.first * channels_in : slab.last * channels_in],
            rows.reshape(*rows.shape[:2], rows.shape[2] * channels_in, -1),
            (1, stride),
            (around[0], zeros),
            dimension_numbers=layout(2),
        )  # (B, x, strides, m · n · O)
        slabs.append(
            outcome.reshape(-1, first, strides * block.second, outcome.shape[-1] // block.second)
        )
    whole = jnp.concatenate(slabs, axis=3) if len(slabs) > 1 else slabs[0]
    return whole[:, :, :second].reshape(-1, first, second, third, shape.channels_out)


def is_volume(values: jax.Array) -> bool:
    """Whether these are (B, x, y, z, C)."""
    return values.ndim == AXES + 2


def _windows(values: jax.Array, zeros: tuple[int, int], width: int, stride: int) -> jax.Array:
    """(B, x, y, z, 1) → (B, x, strides, z, width): the cells of each block of the second axis, as
    channels.
    """
    padded = jnp.pad(values[..., 0], ((0, 0), (0, 0), zeros, (0, 0)))
    last = padded.shape[2] - width + 1
    return jnp.stack(
        [padded[:, :, begin : begin + last : stride] for begin in range(width)], axis=-1
    )


def _banded(kernel: jax.Array, block: Block) -> jax.Array:
    """(taps x, taps y, taps z, C, O) → (taps x, m + taps y - 1, n + taps z - 1, C, m, n, O).

    Sums with one term: exact.
    """
    along_second, along_depth = (
        jnp.asarray(band(taps, outcomes), kernel.dtype)
        for taps, outcomes in zip(kernel.shape[1:3], (block.second, block.depth), strict=True)
    )
    return jnp.einsum("xyzio,yam,zbn->xabimno", kernel, along_second, along_depth)


# ----------------------------------------------------------------------
# Passes over volumes between their convolutions, on the shape that the convolutions use: (B, x, y,
# z · C).
#
# On (B, x, y, z, C) the compiler would copy few channels into another layout before and after each
# pass. It also merges two sums, over a volume and then over the cells of a column, into one sum
# over five axes, which it does badly: a barrier between them prevents that.

COLUMNS = (0, 1, 2)  # axes of batch, x and y


def flat(values: jax.Array) -> jax.Array:
    """(B, x, y, z, C) → (B, x, y, z · C), the layout of convolutions here."""
    return values.reshape(*values.shape[:3], -1)


def volume_elementwise(
    function: Callable[..., jax.Array], values: jax.Array, *of_channels: Any
) -> jax.Array:
    """`function(values, *of_channels)` of a volume; each of `of_channels`: (C,)."""
    spread = [
        _spread(jnp.asarray(channel_values), values.shape[-2]) for channel_values in of_channels
    ]
    return function(flat(values), *spread).reshape(values.shape)


def volume_batch_norm(
    values: jax.Array, gamma: Any, beta: Any, epsilon: float, axis: str | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`step_context.LayerKernels.batch_norm` of a volume; `axis` as in `JaxKernels`.

    Moments in float32.

    With s = gamma / √(variance + epsilon) it is x · s + (beta - mean · s): one product and one sum
    a number.
    """
    wide, cells = flat(values).astype(jnp.float32), values.shape[-2]
    columns = jax.lax.optimization_barrier((wide.mean(COLUMNS), jnp.square(wide).mean(COLUMNS)))
    moments = jnp.stack([column.reshape(cells, -1).mean(0) for column in columns])
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
    """(C,) → (z · C,), repeated for each of `cells` cells of a column."""
    return jnp.tile(of_channels, cells)


def _spread_forward(of_channels: jax.Array, cells: int) -> tuple[jax.Array, None]:
    return jnp.tile(of_channels, cells), None


def _spread_backward(cells: int, _: None, upstream: jax.Array) -> tuple[jax.Array]:
    columns = jax.lax.optimization_barrier(upstream).astype(jnp.float32)
    return (columns.reshape(cells, -1).sum(0).astype(upstream.dtype),)


_spread.defvjp(_spread_forward, _spread_backward)
