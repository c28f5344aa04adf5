"""Convolutions of small images as products of spectra: the convolution theorem, with fewer
multiplications.

A convolution of n pixels with k taps is a product for each frequency of a cyclic convolution that
is long enough for no wrap-around in the outcome. Per pixel of 7 × 7 and pair of channels a 5 × 5
kernel takes 25 multiplications, its spectra 121 / 49. The transforms are small constant matrices
for each channel, so all of it is three matrix products:

    outcome = to_outcome · ((of_kernel · kernel) × (of_values · values))        × : over the
    channels, product by product

Of a real image the frequencies f and -f are conjugates: one of them suffices, and its complex
product is three real ones (Gauss; Knuth, The Art of Computer Programming 2, 4.6.4). A stride of s
divides values and kernel into s × s phases, which act as channels. All gradients are such products
again, so TensorFlow's own are as fast.
Sources: Mathieu, Henaff and LeCun 2014, arXiv:1312.5851, for networks; Winograd 1980 and Lavin and
Gray 2016, arXiv:1509.09308, section 4, for the form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

Sizes = tuple[int, ...]
Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class SpectrumAxis:
    """A convolution along one axis: outcome[v] = sum over t of values[stride · v + t - before] ·
    kernel[t].

    `size`, `outcome`: pixels of values and outcome; `taps`: of the kernel; `before`: zeros before
    the values.
    """

    size: int
    outcome: int
    taps: int
    stride: int
    before: int

    @property
    def pixels(self) -> int:
        """The number of values in each phase."""
        return -(-self.size // self.stride)

    @property
    def reach(self) -> range:
        """Distances d, in pixels of a phase, between a value and its outcome: t - before = stride ·
        d + phase.
        """
        return range(-self.before // self.stride, (self.taps - 1 - self.before) // self.stride + 1)

    @property
    def period(self) -> int:
        """The period of the shortest cyclic convolution in which no outcome reads a wrapped-around
        value.
        """
        return max(
            self.pixels,
            self.outcome,
            self.pixels - self.reach.start,
            self.outcome + self.reach.stop - 1,
        )

    @property
    def kernel_padding(self) -> tuple[int, int]:
        """Zeros before and after the kernel, so that each phase has as many taps as the reach."""
        before = -self.stride * self.reach.start - self.before
        return before, self.stride * len(self.reach) - self.taps - before


@dataclass(frozen=True)
class Matrices:
    """`of_values` (products, pixels), `of_kernel` (products, taps), `to_outcome` (outcomes,
    products); float32.
    """

    of_values: Matrix
    of_kernel: Matrix
    to_outcome: Matrix


class SpectralConvolution:
    """A convolution of images, and its transpose, for fixed sizes: values (B, height, width,
    channels in) float32.
    """

    def __init__(self, rows: SpectrumAxis, columns: SpectrumAxis) -> None:
        self._axes = (rows, columns)

    def multiplications(self, batch: int, channels_in: int, channels_out: int) -> int:
        """The multiplications of one pass with its transforms. Builds no matrix, since those of
        large images would fill the memory.
        """
        rows, columns = self._axes
        alone = math.prod(2 - axis.period % 2 for axis in self._axes)  # frequencies 0 and π
        products = alone + (rows.period * columns.period - alone) // 2 * 3
        deep = rows.stride * columns.stride * channels_in  # channels of all phases
        spectra = (
            rows.pixels * columns.pixels * deep + rows.outcome * columns.outcome * channels_out
        )
        of_kernel = len(rows.reach) * len(columns.reach) * deep * channels_out
        return products * (batch * (deep * channels_out + spectra) + of_kernel)

    @property
    def _matrices(self) -> Matrices:
        return _matrices(*self._axes)

    def convolution(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """(B, height out, width out, channels out)."""
        spectra = _product(
            self._matrices.of_values, self._phases(values)
        )  # (products, B, phases · channels in)
        products = tf.matmul(spectra, self._of_kernel(kernel))  # (products, B, channels out)
        outcome = _product(self._matrices.to_outcome, products)
        height, width = (axis.outcome for axis in self._axes)
        return tf.reshape(
            tf.transpose(outcome, [1, 0, 2]), [values.shape[0], height, width, kernel.shape[-1]]
        )

    def transposed(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """The gradient of `convolution` by its values: (B, height out, width out, channels out) →
        (B, height, width, channels in).
        """
        rows, height, width, channels = values.shape
        pixels_first = tf.transpose(tf.reshape(values, [rows, height * width, channels]), [1, 0, 2])
        spectra = _product(self._matrices.to_outcome.T, pixels_first)
        products = tf.matmul(spectra, self._of_kernel(kernel), transpose_b=True)
        return self._joined(_product(self._matrices.of_values.T, products), kernel.shape[2])

    def _of_kernel(self, kernel: tf.Tensor) -> tf.Tensor:
        """(products, phases · channels in, channels out) of (height, width, channels in,
        channels out).
        """
        (rows, columns), channels = self._axes, kernel.shape[2:]
        padded = tf.pad(kernel, [rows.kernel_padding, columns.kernel_padding, [0, 0], [0, 0]])
        sizes = [len(rows.reach), rows.stride, len(columns.reach), columns.stride]
        phases = tf.transpose(tf.reshape(padded, [*sizes, *channels]), [0, 2, 1, 3, 4, 5])
        deep = rows.stride * columns.stride * channels[0]
        return _product(
            self._matrices.of_kernel, tf.reshape(phases, [sizes[0] * sizes[2], deep, channels[1]])
        )

    def _phases(self, values: tf.Tensor) -> tf.Tensor:
        """(pixels of a phase, B, phases · channels in) of values."""
        (rows, columns), (batch, *_, channels) = self._axes, values.shape
        over = [[0, axis.pixels * axis.stride - axis.size] for axis in self._axes]
        padded = tf.pad(values, [[0, 0], *over, [0, 0]]) if np.any(over) else values
        sizes = [rows.pixels, rows.stride, columns.pixels, columns.stride]
        apart = tf.transpose(tf.reshape(padded, [batch, *sizes, channels]), [1, 3, 0, 2, 4, 5])
        return tf.reshape(apart, [sizes[0] * sizes[2], batch, sizes[1] * sizes[3] * channels])

    def _joined(self, phases: tf.Tensor, channels: int) -> tf.Tensor:
        """The inverse of `_phases`."""
        (rows, columns), batch = self._axes, phases.shape[1]
        sizes = [rows.pixels, columns.pixels, batch, rows.stride, columns.stride, channels]
        whole = tf.transpose(tf.reshape(phases, sizes), [2, 0, 3, 1, 4, 5])
        size = [rows.pixels * rows.stride, columns.pixels * columns.stride]
        return tf.reshape(whole, [batch, *size, channels])[:, : rows.size, : columns.size]


def _product(matrix: Matrix, values: tf.Tensor) -> tf.Tensor:
    """(places, …) of (pixels, …): a constant (places, pixels) times the values."""
    first, *rest = values.shape
    flat = tf.reshape(values, [first, math.prod(rest)])
    return tf.reshape(tf.matmul(tf.constant(matrix), flat), [len(matrix), *rest])


@lru_cache(maxsize=64)
def _matrices(rows: SpectrumAxis, columns: SpectrumAxis) -> Matrices:
    """The matrices, computed in float64 from the definition, then rounded to float32.

    With X(f) = a + ib = sum of values[q] exp(-i q·f) and V(f) = c + ie = sum of kernel[d] exp(i
    d·f), the outcome's spectrum is X · V = (k1 - k3) + i (k1 + k2), where k1 = c (a + b), k2 = a (e
    - c), k3 = b (c + e).
    """
    alone, pairs = _frequencies(rows.period, columns.period)
    of_values = [
        _angles(frequencies, range(rows.pixels), range(columns.pixels))
        for frequencies in (alone, pairs)
    ]
    of_kernel = [_angles(frequencies, rows.reach, columns.reach) for frequencies in (alone, pairs)]
    outcomes = [
        _angles(frequencies, range(rows.outcome), range(columns.outcome))
        for frequencies in (alone, pairs)
    ]
    a, b = np.cos(of_values[1]), -np.sin(of_values[1])
    c, e = np.cos(of_kernel[1]), np.sin(of_kernel[1])
    cos, sin = 2.0 * np.cos(outcomes[1]), 2.0 * np.sin(outcomes[1])  # twice: for f and for -f
    share = 1.0 / (rows.period * columns.period)
    return Matrices(
        np.concatenate([np.cos(of_values[0]), a + b, a, b]).astype(np.float32),
        np.concatenate([np.cos(of_kernel[0]), c, e - c, c + e]).astype(np.float32),
        (share * np.concatenate([np.cos(outcomes[0]), cos - sin, -sin, -cos]).T).astype(np.float32),
    )


def _frequencies(height: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequencies in radians per pixel, (count, 2): the self-conjugate ones, and one of each
    conjugate pair.
    """
    alone, pairs = [], []
    for row in range(height):
        for column in range(width):
            mirrored = (-row % height, -column % width)
            radians = (2.0 * math.pi * row / height, 2.0 * math.pi * column / width)
            if (row, column) == mirrored:
                alone.append(radians)
            elif (row, column) < mirrored:
                pairs.append(radians)
    return np.reshape(alone, [-1, 2]), np.reshape(pairs, [-1, 2])


def _angles(frequencies: NDArray[np.float64], rows: range, columns: range) -> NDArray[np.float64]:
    """(frequencies, pixels): the angle of each frequency at each pixel, row by row."""
    at = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
    return frequencies @ at.T
