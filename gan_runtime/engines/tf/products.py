"""Convolutions of images as products of matrices, for two kinds of layers that oneDNN's
convolutions on a CPU are slow at. (B, height, width, C).

* With a few pixels on the smaller side, such as the innermost layers of a U-Net, weights are most
of what is read. oneDNN lays them out anew
  for each pass, and multiplies all taps, also those that fall on zeros everywhere: of 4 × 4 taps
  from 2 × 2 pixels to one all but four.
  Here the windows' pixels lie side by side and meet the kernel as it lies:  y = windows(x) · K,  dx
  = windows*(dy · Kᵀ),  dK = windows(x)ᵀ · dy,
  where windows* adds each tap's share to the pixel that it was read from.
* To one channel, such as a logit for each patch, oneDNN computes sixteen. Here all taps are
computed at each pixel, x · K, and added up where they meet:
  y[v, u] = sum over r, c of (x · K)[v + r, u + c; r, c].

All of it is made of operations that can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.engines.taps import band
from gan_runtime.engines.tf.spectra import SpectrumAxis

# ----------------------------------------------------------------------
# Ways back of a convolution of volumes in bfloat16 on a CPU. Stride 1; (B, x, y, z, C) and (…, C,
# O) → (B, …, O).
#
# oneDNN's forward convolutions of volumes use a CPU's bfloat16 matrix units. Of those with few
# channels neither gradient does (docs/decisions/0036-volumes.md has the times), so both are written
# as something that does:
#
# * the gradient by the values is a convolution of the upstream gradient, with zeros around it, by
# the mirrored kernel; * that by the kernel, with depth as channels (z · C to z · O), is the filter
# gradient of a convolution of images. Its diagonals t = z - z' are the taps: 25 / 6 times as many
# products as are needed for 25 cells and 6 taps, and still less time.

Sizes = tuple[int, ...]
Zeros = tuple[tuple[int, int], ...]
FEW_PIXELS = (
    4  # of the smaller side; with 16 the convolutions are as fast (batch 16, 64 to 256 channels)
)
MOST_PIXELS = 64  # of the larger side, which are written out in a matrix for each window's tap
LEAST_CHANNELS = 16  # below that a convolution to one channel reads too little for it


@dataclass(frozen=True)
class FewPixels:
    """The convolution of images with few pixels; `rows` and `columns` say which."""

    rows: SpectrumAxis
    columns: SpectrumAxis

    def convolution(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """(B, height, width, C) and (taps, taps, C, O) → (B, height out, width out, O)."""
        batch, *_, channels = values.shape
        pixels = tf.reshape(values, [batch, self.rows.size * self.columns.size, channels])
        windows = tf.reshape(self._taken(pixels), [batch * self._windows, -1])
        outcome = tf.matmul(windows, self._matrix(kernel))
        return tf.reshape(
            outcome, [batch, self.rows.outcome, self.columns.outcome, kernel.shape[3]]
        )

    def transposed(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """The gradient of `convolution` by its values: (B, height out, width out, O) → (B,
        height, width, C).
        """
        batch, channels = values.shape[0], kernel.shape[2]
        flat = tf.reshape(values, [batch * self._windows, kernel.shape[3]])
        shares = tf.matmul(flat, self._matrix(kernel), transpose_b=True)
        pixels = self._added(tf.reshape(shares, [batch, -1, channels]))
        return tf.reshape(pixels, [batch, self.rows.size, self.columns.size, channels])

    @property
    def _windows(self) -> int:
        return self.rows.outcome * self.columns.outcome

    def _matrix(self, kernel: tf.Tensor) -> tf.Tensor:
        """(used taps · C, O)."""
        of_rows = _cut(kernel, 0, _used(self.rows).start, _used(self.rows).stop)
        used = _cut(of_rows, 1, _used(self.columns).start, _used(self.columns).stop)
        return tf.reshape(used, [-1, kernel.shape[3]])

    @cached_property
    def _read(self) -> NDArray[np.float32]:
        """(pixels, windows · used taps): 1 where a window's tap reads the pixel."""
        both = np.einsum("hot,wpu->hwoptu", _read(self.rows), _read(self.columns))
        return both.reshape(self.rows.size * self.columns.size, -1).astype(np.float32)

    def _taken(self, pixels: tf.Tensor) -> tf.Tensor:
        """(B, pixels, C) → (B, windows · used taps, C)."""
        beyond = len(self._read)  # the place of a zero
        places = np.where(self._read.any(axis=0), self._read.argmax(axis=0), beyond)
        scope = tf.get_current_name_scope()

        @tf.custom_gradient
        def taken(pixels: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], Any]]:
            padded = tf.pad(pixels, [[0, 0], [0, 1], [0, 0]]) if beyond in places else pixels
            return tf.gather(padded, tf.constant(places, tf.int32), axis=1), _named(
                self._added, scope
            )

        return taken(pixels)

    def _added(self, shares: tf.Tensor) -> tf.Tensor:
        """(B, windows · used taps, C) → (B, pixels, C): each share at its pixel."""
        scope = tf.get_current_name_scope()

        @tf.custom_gradient
        def added(shares: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], Any]]:
            return tf.matmul(tf.constant(self._read, shares.dtype), shares), _named(
                self._taken, scope
            )

        return added(shares)


def _named(
    function: Callable[[tf.Tensor], tf.Tensor], scope: str
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Filed where TensorFlow itself files the gradient of what is built in `scope`, for
    profiles to find it.
    """

    def backward(upstream: tf.Tensor) -> tf.Tensor:
        with tf.name_scope(f"gradient_tape/{scope}/"):
            return function(upstream)

    return backward


def few_pixels(rows: SpectrumAxis, columns: SpectrumAxis) -> FewPixels | None:
    """Of a convolution of images; None where they have too many pixels."""
    fewest, most = sorted((rows.size * columns.size, rows.outcome * columns.outcome))
    return FewPixels(rows, columns) if fewest <= FEW_PIXELS and most <= MOST_PIXELS else None


def _pixels(axis: SpectrumAxis) -> NDArray[np.int64]:
    """(outcome, taps): which pixel a tap reads; outside of the image where it falls on a zero."""
    return np.arange(axis.outcome)[:, None] * axis.stride + np.arange(axis.taps) - axis.before


def _used(axis: SpectrumAxis) -> slice:
    """The taps that ever read a pixel: 1 and 2 of four from 2 pixels to one."""
    pixels = _pixels(axis)
    places = np.flatnonzero(np.any((pixels >= 0) & (pixels < axis.size), axis=0))
    return slice(int(places[0]), int(places[-1]) + 1)


def _read(axis: SpectrumAxis) -> NDArray[np.bool_]:
    """(size, outcome, used taps): whether it reads the pixel."""
    return np.arange(axis.size)[:, None, None] == _pixels(axis)[:, _used(axis)]


def goes_to_one_channel(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes) -> bool:
    """Whether `to_one_channel` is meant for such a convolution."""
    channels, outcome = kernel.shape[2:]
    is_one = outcome == 1 and max(strides) == 1 and values.shape.is_fully_defined()
    return bool(is_one and channels >= LEAST_CHANNELS)


def to_one_channel(values: tf.Tensor, kernel: tf.Tensor, zeros: Zeros) -> tf.Tensor:
    """(B, height, width, C) and (taps, taps, C, 1), among zeros (before, after) along each
    axis → (B, height out, width out, 1).
    """
    batch, height, width, channels = values.shape
    rows, columns = kernel.shape[:2]
    of_taps = tf.reshape(tf.transpose(kernel, [1, 0, 2, 3]), [columns * rows, channels])
    flat = tf.matmul(
        of_taps, tf.reshape(values, [batch * height * width, channels]), transpose_b=True
    )
    shares = tf.reshape(flat, [columns, rows, batch, height, width])
    shares = tf.pad(shares, [[0, 0], [0, 0], [0, 0], *zeros])
    down, across = (size + sum(around) for size, around in zip((height, width), zeros, strict=True))
    out, over = down - rows + 1, across - columns + 1
    by_row = tf.add_n(
        [_cut(share, 3, at, at + over) for at, share in enumerate(tf.unstack(shares))]
    )
    outcome = tf.add_n(
        [_cut(share, 1, at, at + out) for at, share in enumerate(tf.unstack(by_row))]
    )
    return tf.expand_dims(outcome, -1)


def _cut(values: tf.Tensor, axis: int, begin: int, end: int) -> tf.Tensor:
    """values[…, begin:end, …].

    The gradient of such brackets takes ten times as long as that of tf.slice, which pads.
    """
    if (begin, end) == (0, values.shape[axis]):
        return values
    size = [end - begin if place == axis else length for place, length in enumerate(values.shape)]
    return tf.slice(values, [begin if place == axis else 0 for place in range(len(size))], size)


AXES = 3
# Products of channels in and out up to which the kernel's gradient takes depth as channels: at 36
# both ways are as fast.
FEW_CHANNELS = 16


def volume_convolution(values: tf.Tensor, kernel: tf.Tensor, backward_scope: str) -> tf.Tensor:
    """Padding "valid". `backward_scope`: the name under which profiles find the ways back."""

    @tf.custom_gradient
    def forward(values: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        def backward(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.name_scope(backward_scope):
                return by_values(upstream, kernel), by_kernel(values, upstream, kernel.shape)

        return _convolution(values, kernel), backward

    return forward(values, kernel)


def _convolution(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    return tf.nn.conv3d(values, kernel, [1] * (AXES + 2), "VALID")


def by_values(upstream: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """dV[v] = sum over t of U[v - t] · K[t]: (B, x, y, z, C)."""
    zeros = [[0, 0], *([taps - 1, taps - 1] for taps in kernel.shape[:AXES]), [0, 0]]
    mirrored = tf.transpose(kernel[::-1, ::-1, ::-1], [0, 1, 2, 4, 3])
    return _convolution(tf.pad(upstream, zeros), mirrored)


def by_kernel(values: tf.Tensor, upstream: tf.Tensor, shape: Sizes) -> tf.Tensor:
    """dK[t] = sum over u of V[u + t] · U[u], of that `shape`."""
    taps_x, taps_y, taps_z, channels_in, channels_out = shape
    if channels_in * channels_out > FEW_CHANNELS:
        return tf.raw_ops.Conv3DBackpropFilterV2(
            input=values,
            filter_sizes=shape,
            out_backprop=upstream,
            strides=[1] * (AXES + 2),
            padding="VALID",
        )
    cells, outcomes = values.shape[AXES], upstream.shape[AXES]
    between = tf.raw_ops.Conv2DBackpropFilter(
        input=_flat(values),
        filter_sizes=[taps_x, taps_y, cells * channels_in, outcomes * channels_out],
        out_backprop=_flat(upstream),
        strides=[1, 1, 1, 1],
        padding="VALID",
    )
    pairs = tf.reshape(between, [taps_x, taps_y, cells, channels_in, outcomes, channels_out])
    diagonals = tf.einsum("xyziuo,tzu->xytio", tf.cast(pairs, tf.float32), band(taps_z, outcomes))
    return tf.cast(diagonals, values.dtype)


def _flat(values: tf.Tensor) -> tf.Tensor:
    """(B, x, y, z, C) → (B, x, y, z · C)."""
    return tf.reshape(values, [*values.shape[:AXES], values.shape[AXES] * values.shape[AXES + 1]])
