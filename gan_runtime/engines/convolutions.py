"""Convolutions that both engines compute as matrix products: of enlarged values, to a single pixel,
and from a single pixel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.workloads.step_context import Padding


def band(taps: int, outcomes: int) -> NDArray[np.float32]:
    """1 where a tap leads from an outcome to a cell of a convolution without stride: (taps,
    outcomes + taps - 1, outcomes).

    Of 2 taps and 2 outcomes, which read 3 cells: tap 0 gives [[1, 0], [0, 1], [0, 0]], tap 1 [[0,
    0], [1, 0], [0, 1]].
    """
    tap, cell, outcome = np.ogrid[:taps, : outcomes + taps - 1, :outcomes]
    return (cell - outcome == tap).astype(np.float32)


# ----------------------------------------------------------------------
# A convolution of values that are enlarged by repeating each cell, computed from the small values.
#
# Along one axis, with every cell v repeated f times and a kernel w of k taps ("valid", stride 1),
# outcome o = f·q + p is
#
#     y[f·q + p] = sum over t of w[t] · v[(f·q + p + t) // f] = sum over c of W[p, c] · v[q + c],
#     W[p, c] = sum of w[t] over those t with (p + t) // f = c.
#
# So the f phases p are computed side by side from the same small cells, as many as the k taps
# touch: (f + k - 2) // f + 1. Along several axes the same holds for each. CERN's 3DGAN enlarges 9 ×
# 9 × 8 cells six times and convolves with 6 × 6 × 8 taps: 2 × 2 × 3 = 12 multiplications a number
# and channel instead of 288, and the same function.

Sizes = tuple[int, ...]
AXES = "xyz"  # between batch and channels
TAPS, CELLS, PHASES = "tuv", "abc", "pqr"  # along each of them


@dataclass(frozen=True)
class Axis:
    """`cells` of the small values, each repeated `factor` times, under a kernel of `taps`."""

    cells: int
    factor: int
    taps: int

    @property
    def outcome(self) -> int:
        """The output size of a "valid" convolution of the enlarged values."""
        return self.cells * self.factor - self.taps + 1

    @property
    def windows(self) -> int:
        """The number of groups of `factor` outcomes; the last group can have surplus outcomes."""
        return -(-self.outcome // self.factor)

    @property
    def touched(self) -> int:
        """The number of cells that the phases of a window read together: 2 for 6 taps and a factor
        of 6, 3 for 8 taps.
        """
        return (self.factor + self.taps - 2) // self.factor + 1

    @property
    def beyond(self) -> int:
        """Cells of the last window beyond the values; only surplus outcomes read them."""
        return self.windows + self.touched - 1 - self.cells

    def summed(self) -> NDArray[np.float32]:
        """1 where a tap falls on a cell in a phase: (taps, touched, factor)."""
        tap, cell, phase = np.ogrid[: self.taps, : self.touched, : self.factor]
        return ((phase + tap) // self.factor == cell).astype(np.float32)


def among_zeros(
    values: Any, kernel: Any, strides: Sizes, padding: Padding
) -> tuple[Any, Any, Sizes, str]:
    """The arguments of a convolution with its padding as a word: zeros stated as numbers are added
    to the values, and the rest is "valid".
    """
    if isinstance(padding, str):
        return values, kernel, strides, padding
    return ops.pad(values, [(0, 0), *padding, (0, 0)]), kernel, strides, "valid"


def enlarged_convolution(
    values: Any, kernel: Any, factors: Sizes, settled: Callable[[Any], Any] = lambda matrix: matrix
) -> Any:
    """`step_context.LayerKernels.enlarged_convolution` as one product of matrices: the cells that a
    window touches by the kernels of all phases.

    (2, 9, 9, 8, 8) and (6, 6, 8, 8, 8) by 6 × 6 × 6 → (2, 49, 49, 41, 8), from (2, 9, 9, 7, 96) and
    (96, 1728). `settled`: a barrier that makes a compiler finish these kernels, and their gradient,
    first.
    """
    axes = tuple(
        Axis(*along) for along in zip(values.shape[1:-1], factors, kernel.shape[:-2], strict=True)
    )
    phases = ops.tensordot(_touched(values, axes), settled(_summed(kernel, axes)), axes=1)
    outcome = _interleaved(phases, axes, kernel.shape[-1])
    return outcome[:, *(slice(axis.outcome) for axis in axes)]


def _touched(values: Any, axes: tuple[Axis, ...]) -> Any:
    """(B, *cells, I) → (B, *windows, touched cells of all axes · I): the input of each window."""
    around = [(0, 0), *((0, axis.beyond) for axis in axes), (0, 0)]
    padded = ops.pad(values, around) if any(map(any, around)) else values
    places = itertools.product(*(range(axis.touched) for axis in axes))
    return ops.concatenate(
        [
            padded[:, *(slice(at, at + axis.windows) for at, axis in zip(place, axes, strict=True))]
            for place in places
        ],
        axis=-1,
    )


def _summed(kernel: Any, axes: tuple[Axis, ...]) -> Any:
    """(*taps, I, O) → (touched cells of all axes · I, phases of all axes · O); summed in
    float32, as many as 288 taps to a number.
    """
    taps, cells, phases = (letters[: len(axes)] for letters in (TAPS, CELLS, PHASES))
    each = ",".join("".join(along) for along in zip(taps, cells, phases, strict=True))
    wide = ops.einsum(
        f"{taps}io,{each}->{cells}i{phases}o",
        ops.cast(kernel, "float32"),
        *(ops.convert_to_tensor(axis.summed()) for axis in axes),
    )
    rows = math.prod(axis.touched for axis in axes) * kernel.shape[-2]
    return ops.cast(ops.reshape(wide, (rows, -1)), kernel.dtype)


def _interleaved(phases: Any, axes: tuple[Axis, ...], filters: int) -> Any:
    """(B, *windows, phases of all axes · O) → (B, *(windows · factor), O)."""
    count = len(axes)
    apart = (-1, *(axis.windows for axis in axes), *(axis.factor for axis in axes), filters)
    pairs = [place for axis in range(1, count + 1) for place in (axis, axis + count)]
    side_by_side = ops.transpose(ops.reshape(phases, apart), (0, *pairs, 2 * count + 1))
    return ops.reshape(side_by_side, (-1, *(axis.windows * axis.factor for axis in axes), filters))


# ----------------------------------------------------------------------
# Convolutions onto one pixel, and transposed ones from one, as products of matrices.
#
# Along each axis only those taps are multiplied that meet a pixel: of 4 × 4 taps from 2 × 2 pixels
# to one, and back, the four in the middle. A compiler multiplies all, and XLA does so in a plain
# loop on a CPU. Innermost layers of a U-Net, three tiles, 128 channels, one core of an AMD EPYC:
# 191 µs onto one pixel and 34 µs from it, as products 17 µs each.


def one_pixel_convolution(
    values: Any, kernel: Any, strides: Sizes, padding: Padding, otherwise: Callable[..., Any]
) -> Any:
    """`step_context.LayerKernels.convolution`; `otherwise(values, kernel, strides, padding)` where
    the outcome has more than one pixel.
    """
    values, kernel, strides, zeros = among_zeros(values, kernel, strides, padding)
    along = zip(values.shape[1:-1], kernel.shape[:-2], strides, strict=True)
    if all(_outcome(*axis, zeros) == 1 for axis in along):
        return onto_one_pixel(values, kernel, zeros)
    return otherwise(values, kernel, strides, zeros)


def onto_one_pixel(values: Any, kernel: Any, padding: str) -> Any:
    """(B, …, channels in) and (*taps, channels in, channels out) → (B, 1, …, 1, channels out),
    whatever the strides.

    (3, 2, 2, 128) and (4, 4, 128, 128) → (3, 1, 1, 128), from (3, 512) and (512, 128).
    """
    *taps, _, outer = kernel.shape
    rows, *sizes, _ = values.shape
    pixels, used = [slice(None)], []
    for size, tapped in zip(sizes, taps, strict=True):
        # Taps on zeros before the first pixel.
        before = max(tapped - size, 0) // 2 if padding == "same" else 0
        pixels.append(slice(0, min(size, tapped - before)))
        used.append(slice(before, min(tapped, before + size)))
    met = ops.reshape(values[tuple(pixels)], (rows, -1))
    product = ops.matmul(met, ops.reshape(kernel[tuple(used)], (-1, outer)))
    return ops.reshape(product, (rows, *[1] * len(taps), outer))


def from_one_pixel(values: Any, kernel: Any, strides: Sizes, padding: str) -> Any:
    """(B, 1, …, 1, channels in) and (*taps, channels out, channels in) → (B, …, channels out).

    (3, 1, 1, 128) and (4, 4, 128, 128) → (3, 2, 2, 128), from (3, 128) and (128, 512).
    """
    *taps, outer, inner = kernel.shape
    rows, axes = values.shape[0], len(taps)
    used, beyond = [], [(0, 0)]
    for tapped, stride in zip(taps, strides, strict=True):
        excess = max(tapped - stride, 0)
        begin, length = (excess // 2, stride) if padding == "same" else (0, stride + excess)
        used.append(slice(begin, min(tapped, begin + length)))
        beyond.append((0, length - (used[-1].stop - begin)))  # pixels that no tap meets
    met = kernel[tuple(used)]
    sizes = met.shape[:axes]
    by_input = ops.reshape(ops.moveaxis(met, -1, 0), (inner, -1))
    product = ops.matmul(ops.reshape(values, (rows, inner)), by_input)
    image = ops.reshape(product, (rows, *sizes, outer))
    return ops.pad(image, [*beyond, (0, 0)]) if any(map(any, beyond)) else image


def _outcome(size: int, taps: int, stride: int, padding: str) -> int:
    return -(-(size if padding == "same" else size - taps + 1) // stride)


def transposed_sizes(values: Any, kernel: Any, strides: Sizes, padding: str) -> Sizes:
    """Sizes of a transposed convolution's outcome: along each axis the largest one whose
    convolution has that of `values`.
    """
    return tuple(
        size * stride + (max(taps - stride, 0) if padding == "valid" else 0)
        for size, taps, stride in zip(values.shape[1:-1], kernel.shape[:-2], strides, strict=True)
    )
