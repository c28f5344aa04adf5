"""The tiles of a picture in the TensorFlow engine: one graph over the replicas of a strategy, which loops over the rounds of each.

XLA compiles it with the weights as constants, so what follows from them alone is computed once; transposed convolutions are products
(transposed_products.py). Operation by operation a tile of a small network would mostly wait for TensorFlow: 1.2 ms instead of 2.0 for one of 64 pixels
(one core of an Intel Xeon with AMX, float32). The number of rounds is an argument, as with JAX (engines/jax/tiles.py).

Tracing gives the graph; XLA compiles it within the first call, and TensorFlow does not tell how long that takes. So each program is called
twice when it is made, and what the first call took beyond the second counts as compiling.
"""

from __future__ import annotations

import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from gan_runtime.engines.tf.devices import simulated
from gan_runtime.engines.tf.transposed_products import ProductKernels
from gan_runtime.engines.tiles import Rounds, Shape, Translator
from gan_runtime.tiling.stopwatch import Stopwatch
from gan_runtime.tiling.ways import COMPILE, EXECUTE, TRACE, TRANSFER_IN, TRANSFER_OUT
from gan_runtime.workloads.step_context import kernel_scope


class TileProgram:
    """See `engines.tiles.TileProgram`. Cores are simulated ones of this host; as many as the widest program needs are made by the first
    one, so that must come first."""

    def __init__(self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch) -> None:
        self._cores, self._watch = cores, stopwatch
        self._strategy = simulated(cores)
        self._most, self._round, *sides = tiles
        with stopwatch.of(TRACE):
            self._painted = painter(translator, (self._round, *sides))
            # Nothing in it depends on a tensor's value: AutoGraph would rewrite its code in vain.
            self._on_core = tf.function(self._loop, autograph=False, jit_compile=True)
            self._call = tf.function(self._everywhere, autograph=False)
            nothing = np.zeros((cores * self._most * self._round, *sides), np.float32)
            sent = [self._sent(array) for array in (nothing, np.full(cores, self._most, np.int32))]
            self._call.get_concrete_function(*sent)
        first, second = self._seconds(sent), self._seconds(sent)
        stopwatch.add(COMPILE, max(0.0, first - second))

    def __call__(self, tiles: NDArray[np.float32], rounds: Rounds) -> NDArray[np.float32]:
        """(cores · share, …) → (cores · share, …)."""
        with self._watch.of(TRANSFER_IN):
            sent = [self._sent(array) for array in (tiles, rounds)]
        with self._watch.of(EXECUTE):
            shares = self._call(*sent)  # on processors it returns when it is done
        with self._watch.of(TRANSFER_OUT):
            return np.concatenate([share.numpy() for share in shares])

    def _sent(self, array: NDArray[Any]) -> Any:
        """Each core's share, on that core."""
        shares = np.split(array, self._cores)
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(shares[context.replica_id_in_sync_group])
        )

    def _everywhere(self, tiles: Any, rounds: Any) -> tuple[tf.Tensor, ...]:
        outcome = self._strategy.run(self._on_core, args=(tiles, rounds))
        return tuple(self._strategy.experimental_local_results(outcome))

    def _loop(self, tiles: tf.Tensor, rounds: tf.Tensor) -> tf.Tensor:
        """The tiles of one core, one round after the other."""
        (outcome,) = self._painted.outputs
        by_round = tf.reshape(tiles, [self._most, self._round, *tiles.shape[1:]])
        canvas = tf.TensorArray(tf.float32, size=self._most, element_shape=outcome.shape)

        def one(number: tf.Tensor, canvas: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            (painted,) = self._painted(tf.gather(by_round, number))
            return number + 1, canvas.write(number, painted)

        begin = (tf.constant(0), canvas)
        _, canvas = tf.while_loop(lambda number, _: number < rounds[0], one, begin, parallel_iterations=1)
        return tf.reshape(canvas.stack(), [tiles.shape[0], *outcome.shape[1:]])

    def _seconds(self, sent: list[Any]) -> float:
        begin = time.perf_counter()
        self._call(*sent)
        return time.perf_counter() - begin


def painter(translator: Translator, taken: Shape) -> Any:
    """(tiles of a round, height, width, channels in) → [(…, channels out)], with the weights as constants."""
    keras.config.set_dtype_policy(translator.precision)
    with tf.device("CPU:0"):
        network = translator.shared
        for variable in network.variables:
            variable.assign(translator.arrays[variable.path])

    def painted(source: tf.Tensor) -> tf.Tensor:
        with kernel_scope(ProductKernels()):
            return translator(network, source)

    traced = tf.function(painted, autograph=False).get_concrete_function(tf.TensorSpec(taken, tf.float32))
    return convert_variables_to_constants_v2(traced, lower_control_flow=False)
