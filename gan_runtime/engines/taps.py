"""Which cells the taps of a kernel meet: bands for products of matrices, and kernels for
enlarged values. Both engines' own.
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
# A convolution of values that were enlarged by repeating each cell, computed where they are still
# small. Both engines' own.
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
        """How many numbers a "valid" convolution of the enlarged values gives."""
        return self.cells * self.factor - self.taps + 1

    @property
    def windows(self) -> int:
        """Groups of `factor` outcomes; of the last one some may be too many."""
        return -(-self.outcome // self.factor)

    @property
    def touched(self) -> int:
        """Cells that all phases of a window touch together: 2 for 6 taps and a factor of 6, 3
        for 8 taps.
        """
        return (self.factor + self.taps - 2) // self.factor + 1

    @property
    def beyond(self) -> int:
        """Cells of the last window that are not there; only outcomes that are cut off read them."""
        return self.windows + self.touched - 1 - self.cells

    def summed(self) -> NDArray[np.float32]:
        """1 where a tap falls on a cell in a phase: (taps, touched, factor)."""
        tap, cell, phase = np.ogrid[: self.taps, : self.touched, : self.factor]
        return ((phase + tap) // self.factor == cell).astype(np.float32)


def among_zeros(
    values: Any, kernel: Any, strides: Sizes, padding: Padding
) -> tuple[Any, Any, Sizes, str]:
    """What a convolution is asked with: zeros given as numbers are put around the values, and
    the rest is "valid".
    """
    if isinstance(padding, str):
        return values, kernel, strides, padding
    return ops.pad(values, [(0, 0), *padding, (0, 0)]), kernel, strides, "valid"


def enlarged_convolution(
    values: Any, kernel: Any, factors: Sizes, settled: Callable[[Any], Any] = lambda matrix: matrix
) -> Any:
    """See `step_context.Kernels`.

    One product of matrices: the cells that a window touches by the kernels of all phases.

    `settled`: what a compiler needs so that it computes these kernels, and their gradient, before
    it goes on with them. (2, 9, 9, 8, 8) and (6, 6, 8, 8, 8) by 6 × 6 × 6 → (2, 49, 49, 41, 8),
    from (2, 9, 9, 7, 96) and (96, 1728).
    """
    axes = tuple(
        Axis(*along) for along in zip(values.shape[1:-1], factors, kernel.shape[:-2], strict=True)
    )
    phases = ops.tensordot(_touched(values, axes), settled(_summed(kernel, axes)), axes=1)
    outcome = _interleaved(phases, axes, kernel.shape[-1])
    return outcome[:, *(slice(axis.outcome) for axis in axes)]


def _touched(values: Any, axes: tuple[Axis, ...]) -> Any:
    """(B, *cells, I) → (B, *windows, touched cells of all axes · I): what each window is
    computed from.
    """
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
