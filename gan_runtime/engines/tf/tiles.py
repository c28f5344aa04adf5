"""The tiles of an image in the TensorFlow engine: one graph over the cores, each with a loop over
its rounds.

XLA compiles it with the weights as constants, so values of the weights alone are computed once;
transposed convolutions are products as well (`TfProductKernels`). One by one, the operations on a
tile of a small network would mostly wait for TensorFlow: 2.0 ms instead of 1.2 for one of 64 pixels
(one core of an Intel Xeon with AMX, float32). The number of rounds is an argument, as with JAX
(engines/jax/tiles.py).

Tracing gives the graph; XLA compiles it within the first call, and TensorFlow does not report for
how long. So the constructor calls each program twice, and the difference counts as compilation.
"""

from __future__ import annotations

import math
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from gan_runtime.engines.convolutions import from_one_pixel, one_pixel_convolution
from gan_runtime.engines.tf.cpu_convolutions import Sizes
from gan_runtime.engines.tf.kernels import PlainKernels
from gan_runtime.engines.tf.strategy import simulated_cores
from gan_runtime.engines.tiles import (
    COMPILE,
    EXECUTE,
    TRACE,
    TRANSFER_IN,
    TRANSFER_OUT,
    Rounds,
    Shape,
    Stopwatch,
    Translator,
)
from gan_runtime.workloads.step_context import Padding, kernel_scope

# ----------------------------------------------------------------------
# Transposed convolutions as products of matrices, for XLA on a CPU; engines/jax/tiles.py has the
# equation.


class TfProductKernels(PlainKernels):
    """Kernels for inference."""

    def convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: Padding
    ) -> tf.Tensor:
        return one_pixel_convolution(values, kernel, strides, padding, super().convolution)

    def transposed_convolution(
        self, values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str
    ) -> tf.Tensor:
        return transposed(values, kernel, strides, padding)


def transposed(values: tf.Tensor, kernel: tf.Tensor, strides: Sizes, padding: str) -> tf.Tensor:
    """(B, …, channels in) → (B, …, channels out). `kernel`: (…, channels out, channels in)."""
    rows, *sizes, channels = values.shape
    if set(sizes) == {1}:
        return from_one_pixel(values, kernel, strides, padding)
    *taps, outer, inner = kernel.shape
    last = len(kernel.shape) - 1
    by_input = tf.reshape(tf.transpose(kernel, [last, *range(last)]), [inner, -1])
    products = tf.reshape(
        tf.matmul(tf.reshape(values, [-1, channels]), by_input), [rows, *sizes, *taps, outer]
    )
    for axis, stride in enumerate(strides, start=1):
        products = _added(products, axis, len(sizes) + 1, stride, padding)
    return products


def _added(products: tf.Tensor, axis: int, taps_axis: int, stride: int, padding: str) -> tf.Tensor:
    """Shares by pixel along `axis` and by tap along `taps_axis` → their sums by pixel: one axis
    less.
    """
    shape = list(products.shape)
    pixels, taps = shape[axis], shape[taps_axis]
    reach = -(-taps // stride)  # pixels that the taps of one pixel reach
    filled = [(0, 0)] * len(shape)
    filled[taps_axis] = (0, reach * stride - taps)
    axes = [place for place in range(len(shape)) if place != taps_axis]
    by_phase = tf.transpose(
        tf.pad(products, filled), [*axes[: axis + 1], taps_axis, *axes[axis + 1 :]]
    )
    around = [(0, 0)] * (len(shape) - 1)
    parts = []
    for place in range(reach):
        phase = _part(by_phase, axis + 1, place * stride, stride)
        parts.append(tf.pad(phase, [*around[:axis], (place, reach - 1 - place), *around[axis:]]))
    added = tf.add_n(parts)
    before, after = added.shape[:axis], added.shape[axis + 2 :]
    flat = tf.reshape(added, [*before, math.prod(added.shape[axis : axis + 2]), *after])
    excess = max(taps - stride, 0)
    begin, length = (
        (excess // 2, pixels * stride) if padding == "same" else (0, pixels * stride + excess)
    )
    return _part(flat, axis, begin, length)


def _part(values: tf.Tensor, axis: int, begin: int, length: int) -> tf.Tensor:
    at, size = [0] * len(values.shape), [-1] * len(values.shape)
    at[axis], size[axis] = begin, length
    return tf.slice(values, at, size)


class TfTileProgram:
    """An `engines.tiles.TileProgram`.

    Cores are simulated ones of this host. The first program fixes their number, so the widest one
    must come first.
    """

    def __init__(
        self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch
    ) -> None:
        self._cores, self._watch = cores, stopwatch
        self._devices = simulated_cores(cores).extended.worker_devices
        self._most, self._round, *sides = tiles
        with stopwatch.of(TRACE):
            self._translation = traced_translation(translator, (self._round, *sides))
            # Without AutoGraph, which would rewrite the code to no effect.
            self._on_core = tf.function(self._loop, autograph=False, jit_compile=True)
            nothing = np.zeros((cores * self._most * self._round, *sides), np.float32)
            inputs = self._send(nothing, np.full(cores, self._most, np.int32))
            self._call = tf.function(self._everywhere, autograph=False).get_concrete_function(
                *inputs
            )
        first, second = self._seconds(inputs), self._seconds(inputs)
        stopwatch.add(COMPILE, max(0.0, first - second))

    def __call__(self, tiles: NDArray[np.float32], rounds: Rounds) -> NDArray[np.float32]:
        """(cores · share, …) → (cores · share, …)."""
        with self._watch.of(TRANSFER_IN):
            inputs = self._send(tiles, rounds)
        with self._watch.of(EXECUTE):
            shares = self._call(*inputs)  # on a CPU the call returns when it is done
        with self._watch.of(TRANSFER_OUT):
            return np.concatenate([share.numpy() for share in shares])

    def _send(self, tiles: NDArray[np.float32], rounds: Rounds) -> list[tf.Tensor]:
        """Puts each core's share on that core: first the tiles of all cores, then the rounds of all
        cores.
        """
        inputs = []
        for array in (tiles, rounds):
            for device, share in zip(self._devices, np.split(array, self._cores), strict=True):
                with tf.device(device):
                    inputs.append(tf.constant(share))
        return inputs

    def _everywhere(self, *inputs: tf.Tensor) -> list[tf.Tensor]:
        """The graph of all cores. With `Strategy.run`, which packs and unpacks each replica's
        values, a frame takes a tenth longer.
        """
        tiles, rounds = inputs[: self._cores], inputs[self._cores :]
        outcome = []
        for device, core_tiles, count in zip(self._devices, tiles, rounds, strict=True):
            with tf.device(device):
                outcome.append(self._on_core(core_tiles, count))
        return outcome

    def _loop(self, tiles: tf.Tensor, rounds: tf.Tensor) -> tf.Tensor:
        """The tiles of one core, one round after the other."""
        (outcome,) = self._translation.outputs
        by_round = tf.reshape(tiles, [self._most, self._round, *tiles.shape[1:]])
        canvas = tf.TensorArray(tf.float32, size=self._most, element_shape=outcome.shape)

        def translate_round(
            number: tf.Tensor, canvas: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.TensorArray]:
            (translated,) = self._translation(tf.gather(by_round, number))
            return number + 1, canvas.write(number, translated)

        begin = (tf.constant(0), canvas)
        _, canvas = tf.while_loop(
            lambda number, _: number < rounds[0], translate_round, begin, parallel_iterations=1
        )
        return tf.reshape(canvas.stack(), [tiles.shape[0], *outcome.shape[1:]])

    def _seconds(self, inputs: list[tf.Tensor]) -> float:
        begin = time.perf_counter()
        self._call(*inputs)
        return time.perf_counter() - begin


def traced_translation(translator: Translator, shape: Shape) -> Any:
    """(tiles of a round, height, width, channels in) → [(…, channels out)], with
    constant weights.
    """
    keras.config.set_dtype_policy(translator.precision)
    with tf.device("CPU:0"):
        network = translator.shared
        for variable in network.variables:
            variable.assign(translator.arrays[variable.path])

    def translated(source: tf.Tensor) -> tf.Tensor:
        with kernel_scope(TfProductKernels()):
            return translator(network, source)

    traced = tf.function(translated, autograph=False).get_concrete_function(
        tf.TensorSpec(shape, tf.float32)
    )
    return convert_variables_to_constants_v2(traced, lower_control_flow=False)


TILE_PROGRAM = TfTileProgram
