"""Convolutions rewritten where oneDNN is slow on a CPU, with the same arithmetic.

Images are (B, height, width, C), volumes (B, x, y, z, C); kernels (…, C in, C out).

* TensorFlow's filter gradient is much slower in bfloat16 than its forward convolution. It is itself
  a convolution with batch and channels exchanged, and is computed as one.
* A transposed convolution to one channel, and the input gradient of a convolution from one channel,
  are slow. Split by the parity of the output pixel they are ordinary 3 × 3 convolutions to 4
  channels.
* With a few pixels on the smaller side, as in the innermost layers of a U-Net, weights are most of
  what is read. oneDNN copies them into another layout for each pass, and multiplies all taps, also
  those that fall on zeros everywhere: of 4 × 4 taps from 2 × 2 pixels to one all but four. Here the
  pixels of a window are contiguous and multiply the kernel in its stored layout:
  y = windows(x) · K,  dx = windows*(dy · Kᵀ),  dK = windows(x)ᵀ · dy,
  where windows* adds each tap's share to the pixel that it was read from.
* To one channel, such as a logit for each patch, oneDNN computes sixteen. Here all taps are
  computed at each pixel, x · K, and added up where they meet:
  y[v, u] = sum over r, c of (x · K)[v + r, u + c; r, c].
* Of volumes with few channels neither gradient uses a CPU's bfloat16 matrix units, as the forward
  convolution does (docs/decisions/11-kernels.md has the times). The gradient by the values is a
  convolution of the upstream gradient, among zeros, by the mirrored kernel. That by the kernel,
  with depth as channels (z · C to z · O), is the filter gradient of a convolution of images; its
  diagonals t = z - z' are the taps. For 25 cells and 6 taps that is 25 / 6 times the products that
  are needed, and still less time.

All parts consist of operations that can be differentiated again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.engines.convolutions import band
from gan_runtime.engines.tf.spectra import SpectrumAxis

Sizes = tuple[int, ...]
Zeros = tuple[tuple[int, int], ...]
IMAGE_AXES, VOLUME_AXES = 2, 3
PHASES = ((2, 2), "same")  # strides and padding for which the parity split is written out
PHASE_KERNELS = ((4, 4), (5, 5))
PHASE_CHANNELS = 4  # with more output channels the plain kernel is as fast
EXCHANGED_CHANNELS = 16  # with fewer channels the plain filter gradient is faster
# Of the upstream gradient, which is the kernel of the exchanged convolution: with 16 × 16 pixels
# the plain filter gradient is two to three times as fast (batch 64, 2 cores with AMX, float32 and
# bfloat16), with 8 × 8 it is not.
EXCHANGED_PIXELS = 64
FEW_PIXELS = 4  # of the smaller side; with 16 the convolutions are as fast (batch 16)
MOST_PIXELS = 64  # of the larger side, which are written out in a matrix for each window's tap
LEAST_CHANNELS = 16  # below that a convolution to one channel reads too little to gain from it
# Products of channels in and out up to which the kernel's gradient takes depth as channels: at 36
# both ways are as fast.
FEW_CHANNELS = 16


def backward_scope_name() -> str:
    """The name that TensorFlow itself would give the gradient of operations built here, so that
    profiles find it.
    """
    return f"gradient_tape/{tf.get_current_name_scope()}/"


def convolution(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str) -> tf.Tensor:
    """TensorFlow's own convolution with one to three axes."""
    if len(strides) == IMAGE_AXES:
        return tf.nn.conv2d(values, kernel, strides, padding.upper())
    if len(strides) == VOLUME_AXES:  # tf.nn.convolution leaves out what its gradient asks for
        return tf.nn.conv3d(values, kernel, [1, *strides, 1], padding.upper())
    return tf.nn.convolution(values, kernel, strides, padding.upper())


def filter_gradient(
    images: tf.Tensor, upstream: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
) -> tf.Tensor:
    """Gradient of a convolution's kernel: (height, width, channels in, channels out).

    dK[y, x, i, o] = sum over b, v, u of images[b, v·s + y - p, u·s + x - p, i] · upstream[b, v, u,
    o] is a convolution of the images with `upstream` as its kernel, dilated by the stride s, where
    the batch takes the place of the channels.
    """
    height, width, channels_in, channels_out = kernel.shape
    # In float32 without a stride both ways are as fast, and the plain one needs no transposing.
    plain_is_as_fast = images.dtype == tf.float32 and max(strides) == 1
    many_pixels = math.prod(upstream.shape[1:-1]) > EXCHANGED_PIXELS
    if plain_is_as_fast or many_pixels or min(channels_in, channels_out) < EXCHANGED_CHANNELS:
        return tf.raw_ops.Conv2DBackpropFilter(
            input=images,
            filter_sizes=kernel.shape,
            out_backprop=upstream,
            strides=[1, *strides, 1],
            padding=padding.upper(),
        )
    around = [
        zeros_around(*sizes, padding)
        for sizes in zip(
            images.shape[1:-1], upstream.shape[1:-1], (height, width), strides, strict=True
        )
    ]
    exchanged = tf.transpose(images, [3, 1, 2, 0])
    filters = tf.transpose(upstream, [1, 2, 0, 3])
    gradient = tf.nn.conv2d(exchanged, filters, 1, [[0, 0], *around, [0, 0]], dilations=strides)
    return tf.transpose(gradient[:, :height, :width], [1, 2, 0, 3])


def zeros_around(size: int, size_out: int, kernel: int, stride: int, padding: str) -> list[int]:
    """Zeros before and after the values along one axis of a convolution with this padding."""
    total = max((size_out - 1) * stride + kernel - size, 0) if padding == "same" else 0
    return [total // 2, total - total // 2]


def input_gradient(
    upstream: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str, sizes: Sizes
) -> tf.Tensor:
    """Gradient of a convolution by its values of these `sizes`; also the transposed convolution."""
    transposed = tf.nn.conv2d_transpose if len(strides) == IMAGE_AXES else tf.nn.conv_transpose
    shape = [upstream.shape[0], *sizes, kernel.shape[-2]]
    return transposed(upstream, kernel, shape, strides, padding.upper())


def input_gradient_by_phases(
    upstream: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str, sizes: Sizes
) -> tf.Tensor:
    """The same as `input_gradient`.

    Output pixel 2q + r takes kernel row r + 1 - 2d of input pixel q + d, d in -1, 0, 1.
    """
    taps = tuple(kernel.shape[:2])
    is_written_out = (tuple(strides), padding) == PHASES and taps in PHASE_KERNELS
    if not is_written_out or any(size % 2 for size in sizes) or kernel.shape[2] > PHASE_CHANNELS:
        return input_gradient(upstream, kernel, strides, padding, sizes)
    # Of phase 0, then of phase 1. Rows beyond the kernel's last one are the zeros added below.
    rows = (3, 1, 5, 4, 2, 0)
    padded = tf.pad(kernel, [*([0, 6 - size] for size in taps), [0, 0], [0, 0]])
    by_phase = tf.gather(tf.gather(padded, rows, axis=0), rows, axis=1)
    phases = tf.reshape(by_phase, [2, 3, 2, 3, kernel.shape[2], kernel.shape[3]])
    small = tf.reshape(
        tf.transpose(phases, [1, 3, 5, 0, 2, 4]), [3, 3, kernel.shape[3], 4 * kernel.shape[2]]
    )
    return tf.nn.depth_to_space(tf.nn.conv2d(upstream, small, 1, "SAME"), 2)


# ---- products of matrices ------------------------------------------------------------------------


@dataclass(frozen=True)
class FewPixelConvolution:
    """A convolution of images with few pixels."""

    rows: SpectrumAxis
    columns: SpectrumAxis

    def convolution(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """(B, height, width, C) and (taps, taps, C, O) → (B, height out, width out, O)."""
        batch, *_, channels = values.shape
        pixels = tf.reshape(values, [batch, self.rows.size * self.columns.size, channels])
        windows = tf.reshape(self._gathered(pixels), [batch * self._windows, -1])
        outcome = tf.matmul(windows, self._matrix(kernel))
        return tf.reshape(
            outcome, [batch, self.rows.outcome, self.columns.outcome, kernel.shape[3]]
        )

    def transposed(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """The gradient of `convolution` by its values: (B, height out, width out, O) → (B, height,
        width, C).
        """
        batch, channels = values.shape[0], kernel.shape[2]
        flat = tf.reshape(values, [batch * self._windows, kernel.shape[3]])
        shares = tf.matmul(flat, self._matrix(kernel), transpose_b=True)
        pixels = self._scattered(tf.reshape(shares, [batch, -1, channels]))
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

    def _gathered(self, pixels: tf.Tensor) -> tf.Tensor:
        """(B, pixels, C) → (B, windows · used taps, C)."""
        beyond = len(self._read)  # index of a zero
        places = np.where(self._read.any(axis=0), self._read.argmax(axis=0), beyond)
        scope = tf.get_current_name_scope()

        @tf.custom_gradient
        def gathered(pixels: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], Any]]:
            padded = tf.pad(pixels, [[0, 0], [0, 1], [0, 0]]) if beyond in places else pixels
            return tf.gather(padded, tf.constant(places, tf.int32), axis=1), _named(
                self._scattered, scope
            )

        return gathered(pixels)

    def _scattered(self, shares: tf.Tensor) -> tf.Tensor:
        """(B, windows · used taps, C) → (B, pixels, C): each share at its pixel."""
        scope = tf.get_current_name_scope()

        @tf.custom_gradient
        def scattered(shares: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], Any]]:
            return tf.matmul(tf.constant(self._read, shares.dtype), shares), _named(
                self._gathered, scope
            )

        return scattered(shares)


def _named(
    function: Callable[[tf.Tensor], tf.Tensor], scope: str
) -> Callable[[tf.Tensor], tf.Tensor]:
    """`function` under the name that TensorFlow itself gives the gradient of `scope`, so that
    profiles find it.
    """

    def backward(upstream: tf.Tensor) -> tf.Tensor:
        with tf.name_scope(f"gradient_tape/{scope}/"):
            return function(upstream)

    return backward


def few_pixel_convolution(rows: SpectrumAxis, columns: SpectrumAxis) -> FewPixelConvolution | None:
    """The convolution along these axes; None if the images have too many pixels."""
    fewest, most = sorted((rows.size * columns.size, rows.outcome * columns.outcome))
    return (
        FewPixelConvolution(rows, columns) if fewest <= FEW_PIXELS and most <= MOST_PIXELS else None
    )


def _pixels(axis: SpectrumAxis) -> NDArray[np.int64]:
    """(outcome, taps): the pixel that a tap reads; outside of the image for a zero."""
    return np.arange(axis.outcome)[:, None] * axis.stride + np.arange(axis.taps) - axis.before


def _used(axis: SpectrumAxis) -> slice:
    """The taps that ever read a pixel: 1 and 2 of four from 2 pixels to one."""
    pixels = _pixels(axis)
    places = np.flatnonzero(np.any((pixels >= 0) & (pixels < axis.size), axis=0))
    return slice(int(places[0]), int(places[-1]) + 1)


def _read(axis: SpectrumAxis) -> NDArray[np.bool_]:
    """(size, outcome, used taps): whether a tap reads the pixel."""
    return np.arange(axis.size)[:, None, None] == _pixels(axis)[:, _used(axis)]


def goes_to_one_channel(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes) -> bool:
    """Whether `to_one_channel` computes it faster."""
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
    """values[…, begin:end, …]. The gradient of that slice takes ten times as long as tf.slice's,
    which pads.
    """
    if (begin, end) == (0, values.shape[axis]):
        return values
    size = [end - begin if place == axis else length for place, length in enumerate(values.shape)]
    return tf.slice(values, [begin if place == axis else 0 for place in range(len(size))], size)


# ---- volumes in bfloat16, stride 1 ---------------------------------------------------------------


def volume_convolution(values: tf.Tensor, kernel: tf.Tensor, backward_scope: str) -> tf.Tensor:
    """Padding "valid". `backward_scope`: name of the gradients in profiles."""

    @tf.custom_gradient
    def forward(values: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        def backward(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.name_scope(backward_scope):
                return (
                    volume_input_gradient(upstream, kernel),
                    volume_filter_gradient(values, upstream, kernel.shape),
                )

        return convolution(values, kernel, (1,) * VOLUME_AXES, "valid"), backward

    return forward(values, kernel)


def volume_input_gradient(upstream: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """dV[v] = sum over t of U[v - t] · K[t]: (B, x, y, z, C)."""
    zeros = [[0, 0], *([taps - 1, taps - 1] for taps in kernel.shape[:VOLUME_AXES]), [0, 0]]
    mirrored = tf.transpose(kernel[::-1, ::-1, ::-1], [0, 1, 2, 4, 3])
    return convolution(tf.pad(upstream, zeros), mirrored, (1,) * VOLUME_AXES, "valid")


def volume_filter_gradient(values: tf.Tensor, upstream: tf.Tensor, shape: Sizes) -> tf.Tensor:
    """dK[t] = sum over u of V[u + t] · U[u], of that `shape`."""
    taps_x, taps_y, taps_z, channels_in, channels_out = shape
    if channels_in * channels_out > FEW_CHANNELS:
        return tf.raw_ops.Conv3DBackpropFilterV2(
            input=values,
            filter_sizes=shape,
            out_backprop=upstream,
            strides=[1] * (VOLUME_AXES + 2),
            padding="VALID",
        )
    cells, outcomes = values.shape[VOLUME_AXES], upstream.shape[VOLUME_AXES]
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
    *sizes, depth, channels = values.shape
    return tf.reshape(values, [*sizes, depth * channels])
