"""The layers of 3DGAN as tables, and their plan for a grid of any size. No framework.

The tables are those of CERN's authors for 51 × 51 × 25 cells: kernels and zero padding
(recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py). Each axis of another grid follows its own rule:

* of at least LEAST cells: kernels and padding of the table. The generator's small grid has the
  length that they need: 54 − 3 = 51 for the two lateral axes, 48 − 23 = 25 for the depth, so 20 − 3
  = 17 and 68 − 23 = 45 on other grids;
* shorter: kernels no longer than the axis, and padding that preserves its length ("same");
* periodic (`Field.periodic`): like a shorter one, but with periodic padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

Sizes = tuple[int, ...]
Around = tuple[tuple[int, int], ...]  # cells before and after, along each axis

LEAST = 17  # the discriminator's four kernels leave two cells of it, as its pooling needs
POOL = 2
# Of the enlargement; the first that leaves LEAST_CELLS small cells is used.
FACTORS = (6, 5, 4, 3, 2)
LEAST_CELLS = 3


@dataclass(frozen=True)
class KernelRow:
    """A row of the authors' tables: `kernel`, and `zeros` on both sides of each axis; None for
    "same".
    """

    kernel: Sizes
    zeros: Sizes | None = (0, 0, 0)


GENERATOR = (
    KernelRow((6, 6, 8)),  # on the enlarged grid
    KernelRow((4, 4, 6), (2, 2, 1)),
    KernelRow((4, 4, 6), (2, 2, 1)),
    KernelRow((4, 4, 6), (2, 2, 1)),
    KernelRow((3, 3, 5), (1, 1, 0)),
    KernelRow((3, 3, 3), (1, 1, 0)),
    KernelRow((2, 2, 2)),
)
DISCRIMINATOR = (
    KernelRow((5, 6, 6), None),
    KernelRow((5, 6, 6), (0, 0, 1)),
    KernelRow((5, 6, 6), (0, 0, 1)),
    KernelRow((5, 6, 6)),
)


@dataclass(frozen=True)
class LayerChannels:
    """The channels of the layers. `cells`: of the generator's small grid; the others: of each
    convolution.
    """

    cells: int
    generator: Sizes
    discriminator: Sizes


CHANNELS = {
    "full": LayerChannels(8, (8, 6, 6, 6, 6, 6, 1), (16, 8, 8, 8)),
    "tiny": LayerChannels(4, (4, 4, 4, 4, 4, 4, 1), (4, 4, 4, 4)),
}


@dataclass(frozen=True)
class ConvolutionPlan:
    """One convolution: `around` is the padding before it, `cut` the cropping after it, `sizes` are
    those of its output.
    """

    kernel: Sizes
    filters: int
    around: Around
    cut: Around
    sizes: Sizes

    @property
    def cells(self) -> int:
        """The numbers in the output, over all channels."""
        return math.prod(self.sizes) * self.filters


@dataclass(frozen=True)
class LayerPlan:
    """Both networks on one grid. `cells`: of the small grid; `factors`: repeats along each axis."""

    cells: Sizes
    factors: Sizes
    cell_channels: int
    generator: tuple[ConvolutionPlan, ...]
    discriminator: tuple[ConvolutionPlan, ...]

    @property
    def pooled(self) -> Sizes:
        """Sizes after the discriminator's pooling."""
        return tuple(size // POOL for size in self.discriminator[-1].sizes)

    def parameters(self, latent_size: int) -> int:
        """All weights of both networks, with the statistics of batch norm."""
        dense = math.prod(self.cells) * self.cell_channels * (latent_size + 1)
        generator = _weights(self.cell_channels, self.generator) + _norms(self.generator[:-2])
        discriminator = _weights(1, self.discriminator) + _norms(self.discriminator[1:])
        heads = 2 * (math.prod(self.pooled) * self.discriminator[-1].filters + 1)
        return dense + generator + discriminator + heads

    def multiplications(self) -> tuple[int, int]:
        """Multiply-adds of the convolutions in one pass of a shower through both networks."""
        return (
            _work(self.cell_channels, self.generator),
            _work(1, self.discriminator),
        )


def plan(size: str, grid: Sizes, periodic: Sizes = ()) -> LayerPlan:
    """The networks of a size, "full" or "tiny", for showers of (x, y, z) cells."""
    channels = CHANNELS[size]
    axes = [_Axis(place, cells, place in periodic) for place, cells in enumerate(grid)]
    generator = zip(
        GENERATOR,
        channels.generator,
        zip(*(axis.generator() for axis in axes), strict=True),
        strict=True,
    )
    discriminator = zip(
        DISCRIMINATOR,
        channels.discriminator,
        zip(*(axis.discriminator() for axis in axes), strict=True),
        strict=True,
    )
    return LayerPlan(
        cells=tuple(axis.cells for axis in axes),
        factors=tuple(axis.factor for axis in axes),
        cell_channels=channels.cells,
        generator=tuple(_convolved(filters, along) for _, filters, along in generator),
        discriminator=tuple(_convolved(filters, along) for _, filters, along in discriminator),
    )


@dataclass(frozen=True)
class _AxisConvolution:
    """One convolution along one axis."""

    taps: int
    around: tuple[int, int]
    cut: tuple[int, int]
    size: int


@dataclass(frozen=True)
class _Axis:
    """One axis of a shower: its index, its cells, and whether it is periodic."""

    place: int
    length: int
    is_periodic: bool

    @property
    def is_tabulated(self) -> bool:
        return not self.is_periodic and self.length >= LEAST

    @property
    def enlarged(self) -> int:
        """Cells in front of the first convolution: 54 and 48 for 51 and 25."""
        if not self.is_tabulated:
            return self.length
        taps = sum(row.kernel[self.place] - 1 for row in GENERATOR)
        return self.length + taps - 2 * sum(row.zeros[self.place] for row in GENERATOR if row.zeros)

    @property
    def factor(self) -> int:
        """Repeats of each cell of the small grid: 6 for 54 and 48, 5 for 20, 4 for 68."""
        fitting = (
            f for f in FACTORS if self.enlarged % f == 0 and self.enlarged // f >= LEAST_CELLS
        )
        return next(fitting, 1 if self.is_periodic else FACTORS[-1])

    @property
    def cells(self) -> int:
        """The cells of the small grid: 9 and 8 for 51 and 25."""
        return -(-self.enlarged // self.factor)

    def taps(self, row: KernelRow) -> int:
        """The taps of a kernel along this axis."""
        taps = row.kernel[self.place]
        return taps if self.is_tabulated else min(taps, self.length)

    def generator(self) -> Iterator[_AxisConvolution]:
        """The convolutions of the generator; the first is on the enlarged grid."""
        first = self._on_the_enlarged_grid(self.taps(GENERATOR[0]))
        yield first
        yield from self._convolutions(first.size, GENERATOR[1:])

    def discriminator(self) -> Iterator[_AxisConvolution]:
        """The convolutions of the discriminator."""
        return self._convolutions(self.length, DISCRIMINATOR)

    def _on_the_enlarged_grid(self, taps: int) -> _AxisConvolution:
        """The padding is whole small cells, so more than needed: the rest is cropped."""
        before, after = (0, 0) if self.is_tabulated else _halves(taps - 1)
        around = -(-after // self.factor)
        whole = (self.cells + 2 * around) * self.factor - taps + 1
        size = self.enlarged + before + after - taps + 1
        begin = around * self.factor - before
        return _AxisConvolution(taps, (around, around), (begin, whole - begin - size), size)

    def _convolutions(self, size: int, rows: tuple[KernelRow, ...]) -> Iterator[_AxisConvolution]:
        for row in rows:
            taps = self.taps(row)
            keeps = row.zeros is None or not self.is_tabulated
            around = (
                _halves(taps - 1) if keeps or row.zeros is None else (row.zeros[self.place],) * 2
            )
            size = size + sum(around) - taps + 1
            yield _AxisConvolution(taps, around, (0, 0), size)


def _halves(total: int) -> tuple[int, int]:
    """Padding of a convolution with "same": (2, 3) of 5."""
    return total // 2, total - total // 2


def _convolved(filters: int, along: tuple[_AxisConvolution, ...]) -> ConvolutionPlan:
    return ConvolutionPlan(
        kernel=tuple(axis.taps for axis in along),
        filters=filters,
        around=tuple(axis.around for axis in along),
        cut=tuple(axis.cut for axis in along),
        sizes=tuple(axis.size for axis in along),
    )


def _weights(channels: int, layers: tuple[ConvolutionPlan, ...]) -> int:
    inputs = (channels, *(layer.filters for layer in layers))
    return sum(
        (math.prod(layer.kernel) * before + 1) * layer.filters
        for before, layer in zip(inputs, layers, strict=False)
    )


def _work(channels: int, layers: tuple[ConvolutionPlan, ...]) -> int:
    inputs = (channels, *(layer.filters for layer in layers))
    return sum(
        math.prod(layer.kernel) * before * layer.cells
        for before, layer in zip(inputs, layers, strict=False)
    )


def _norms(layers: tuple[ConvolutionPlan, ...]) -> int:
    """Scale, offset and two statistics of each channel."""
    return 4 * sum(layer.filters for layer in layers)
