"""The tiles of a picture in the TensorFlow engine: one graph over the replicas of a strategy, which loops over the tiles of each.

Without XLA, tracing gives the graph; TensorFlow prepares its kernels within the first call, and does not tell how long that takes. So each
program is called twice when it is made, and what the first call took beyond the second counts as compiling.
"""

from __future__ import annotations

import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.engines.tf.devices import simulated
from gan_runtime.engines.tiles import Shape, Translator
from gan_runtime.tiling.stopwatch import Stopwatch
from gan_runtime.tiling.ways import COMPILE, EXECUTE, TRACE, TRANSFER_IN, TRANSFER_OUT


class TileProgram:
    """See `engines.tiles.TileProgram`. Cores are simulated ones of this host; as many as the widest program needs are made by the first
    one, so that must come first."""

    def __init__(self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch) -> None:
        self._translator, self._cores, self._watch = translator, cores, stopwatch
        self._strategy = simulated(cores)
        keras.config.set_dtype_policy(translator.precision)
        with self._strategy.scope():
            self._network = translator.network()
            for variable in self._network.variables:
                variable.assign(translator.arrays[variable.path])
        # Nothing in it depends on a tensor's value: AutoGraph would rewrite its code in vain.
        self._call = tf.function(self._everywhere, autograph=False)
        share, *sides = tiles
        sent = self._sent(np.zeros((cores * share, *sides), np.float32))
        with stopwatch.of(TRACE):
            self._call.get_concrete_function(sent)
        first, second = self._seconds(sent), self._seconds(sent)
        stopwatch.add(COMPILE, max(0.0, first - second))

    def __call__(self, tiles: NDArray[np.float32]) -> NDArray[np.float32]:
        """(cores · share, …) → (cores · share, …)."""
        with self._watch.of(TRANSFER_IN):
            sent = self._sent(tiles)
        with self._watch.of(EXECUTE):
            shares = self._call(sent)  # on processors it returns when it is done
        with self._watch.of(TRANSFER_OUT):
            return np.concatenate([share.numpy() for share in shares])

    def _sent(self, tiles: NDArray[np.float32]) -> Any:
        """Each core's share, on that core."""
        shares = np.split(tiles, self._cores)
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(shares[context.replica_id_in_sync_group])
        )

    def _everywhere(self, sent: Any) -> tuple[tf.Tensor, ...]:
        outcome = self._strategy.run(self._on_core, args=(sent,))
        return tuple(self._strategy.experimental_local_results(outcome))

    def _on_core(self, tiles: tf.Tensor) -> tf.Tensor:
        """The tiles of one core, one after the other: a batch of another size could take other kernels."""

        def painted(tile: tf.Tensor) -> tf.Tensor:
            return self._translator(self._network, tile[tf.newaxis])[0]

        shape = self._network.compute_output_shape((1, *tiles.shape[1:]))
        signature = tf.TensorSpec(shape[1:], tf.float32)
        return tf.map_fn(painted, tiles, fn_output_signature=signature, parallel_iterations=1)

    def _seconds(self, sent: Any) -> float:
        begin = time.perf_counter()
        self._call(sent)
        return time.perf_counter() - begin
