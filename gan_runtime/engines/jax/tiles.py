"""The tiles of a picture in the JAX engine: one program over the devices of a mesh (SPMD), which loops over the rounds of each.

    weights (everywhere), tiles (cores · share, height, width, channels), rounds (cores,) → tiles of the same places

What follows from the weights alone is computed once (ahead.py); on a CPU transposed convolutions are products (transposed_products.py).
The number of rounds is an argument. A loop of one round would be dissolved by XLA and fused with what stands around it, and a core with
one round would then round otherwise than one with two.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gan_runtime.engines.jax.ahead import split
from gan_runtime.engines.jax.arrays import AXIS, placed
from gan_runtime.engines.jax.rows import EVERYWHERE
from gan_runtime.engines.jax.transposed_products import ProductKernels
from gan_runtime.engines.tiles import Rounds, Shape, Translator
from gan_runtime.engines.tiling.stopwatch import Stopwatch
from gan_runtime.engines.tiling.ways import COMPILE, EXECUTE, TRACE, TRANSFER_IN, TRANSFER_OUT
from gan_runtime.workloads.step_context import kernel_scope

SHARED = PartitionSpec(AXIS)


class TileCall:
    """The program as a function of shapes, so that it can be compiled for devices that are not there. `arguments`: their shapes."""

    def __init__(self, translator: Translator, mesh: Mesh, tiles: Shape) -> None:
        self._translator = translator
        keras.config.set_dtype_policy(translator.precision)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            self._network = translator.shared
        is_cpu = mesh.devices.flat[0].platform == "cpu"
        self._kernels = ProductKernels(None) if is_cpu else None
        self.weights = {
            variable.path: jax.ShapeDtypeStruct(variable.shape, variable.dtype)
            for variable in self._network.variables
        }
        most, self._round, *sides = tiles
        taken = jax.ShapeDtypeStruct((self._round, *sides), "float32")
        self.split = split(self._painted, self.weights, taken)
        specs = (EVERYWHERE, SHARED, SHARED)
        self.function = jax.shard_map(
            self._on_core, mesh=mesh, in_specs=specs, out_specs=SHARED, check_vma=False
        )
        self.arguments = (
            [_shaped(kept.shape, kept.dtype, mesh, EVERYWHERE) for kept in self.split.kept],
            _shaped((mesh.size * most * self._round, *sides), "float32", mesh, SHARED),
            _shaped((mesh.size,), "int32", mesh, SHARED),
        )

    def _painted(self, weights: dict[str, jax.Array], tiles: jax.Array) -> jax.Array:
        values = [(variable, weights[variable.path]) for variable in self._network.variables]
        with keras.StatelessScope(values), kernel_scope(self._kernels):
            return self._translator(self._network, tiles)  # type: ignore[no-any-return]

    def _on_core(self, kept: list[jax.Array], tiles: jax.Array, rounds: jax.Array) -> jax.Array:
        """The tiles of one core, one round after the other."""

        def painted(taken: jax.Array) -> jax.Array:
            return self.split.rest(*kept, taken)

        def one(number: jax.Array, canvas: jax.Array) -> jax.Array:
            place = number * self._round
            taken = jax.lax.dynamic_slice_in_dim(tiles, place, self._round)
            return jax.lax.dynamic_update_slice_in_dim(canvas, painted(taken), place, 0)

        outcome = jax.eval_shape(painted, tiles[: self._round])
        canvas = jnp.zeros((len(tiles), *outcome.shape[1:]), outcome.dtype)
        return jax.lax.fori_loop(0, rounds[0], one, canvas)


class TileProgram:
    """See `engines.tiles.TileProgram`. Cores are the first devices of JAX's default platform."""

    def __init__(self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch) -> None:
        self._watch = stopwatch
        mesh = Mesh(np.array(jax.devices()[:cores]), (AXIS,))
        self._shared = NamedSharding(mesh, SHARED)
        with stopwatch.of(TRACE):
            call = TileCall(translator, mesh, tiles)
            lowered = jax.jit(call.function).lower(*call.arguments)
        weights = {
            path: np.asarray(translator.arrays[path]).astype(shape.dtype)
            for path, shape in call.weights.items()
        }
        everywhere = NamedSharding(mesh, EVERYWHERE)
        self._kept = jax.jit(call.split.ahead, out_shardings=everywhere)(placed(weights, everywhere))
        with stopwatch.of(COMPILE):
            self._compiled: Any = lowered.compile()

    def __call__(self, tiles: NDArray[np.float32], rounds: Rounds) -> NDArray[np.float32]:
        """(cores · share, …) → (cores · share, …)."""
        with self._watch.of(TRANSFER_IN):
            sent = jax.block_until_ready([placed(array, self._shared) for array in (tiles, rounds)])
        with self._watch.of(EXECUTE):
            outcome = jax.block_until_ready(self._compiled(self._kept, *sent))
        with self._watch.of(TRANSFER_OUT):
            # Assembled by JAX the shares of six tiles take 0.25 ms instead of 0.07 to 0.09 (an AMD EPYC).
            shares = [np.asarray(outcome.addressable_data(core)) for core in range(len(rounds))]
            return shares[0] if len(shares) == 1 else np.concatenate(shares)


def _shaped(shape: Shape, dtype: str, mesh: Mesh, spread: PartitionSpec) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spread))
