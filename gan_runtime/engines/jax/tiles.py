"""The tiles of a picture in the JAX engine: one program over the devices of a mesh (SPMD), which loops over the tiles of each.

    weights (everywhere), tiles (cores · share, height, width, channels), share → tiles of the same places

The number of rounds is an argument. A loop of one round would be dissolved by XLA and fused with what stands around it, and a core with
one tile would then round otherwise than one with two.
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

from gan_runtime.engines.jax.arrays import AXIS, placed
from gan_runtime.engines.jax.rows import EVERYWHERE
from gan_runtime.engines.tiles import Shape, Translator
from gan_runtime.tiling.stopwatch import Stopwatch
from gan_runtime.tiling.ways import COMPILE, EXECUTE, TRACE, TRANSFER_IN, TRANSFER_OUT

SHARED = PartitionSpec(AXIS)


class TileCall:
    """The program as a function of shapes, so that it can be compiled for devices that are not there. `arguments`: their shapes."""

    def __init__(self, translator: Translator, mesh: Mesh, tiles: Shape) -> None:
        self._translator = translator
        keras.config.set_dtype_policy(translator.precision)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            self._network = translator.shared
        share, *sides = tiles
        specs = (EVERYWHERE, SHARED, EVERYWHERE)
        self.function = jax.shard_map(
            self._on_core, mesh=mesh, in_specs=specs, out_specs=SHARED, check_vma=False
        )
        self.arguments = (
            {
                variable.path: _shaped(variable.shape, variable.dtype, mesh, EVERYWHERE)
                for variable in self._network.variables
            },
            _shaped((mesh.size * share, *sides), "float32", mesh, SHARED),
            _shaped((), "int32", mesh, EVERYWHERE),
        )

    def _on_core(self, weights: dict[str, jax.Array], tiles: jax.Array, count: jax.Array) -> jax.Array:
        """The tiles of one core, one after the other."""
        values = [(variable, weights[variable.path]) for variable in self._network.variables]

        def painted(tile: jax.Array) -> jax.Array:
            with keras.StatelessScope(values):
                return self._translator(self._network, tile)  # type: ignore[no-any-return]

        def one(place: jax.Array, canvas: jax.Array) -> jax.Array:
            tile = jax.lax.dynamic_slice_in_dim(tiles, place, 1)
            return jax.lax.dynamic_update_slice_in_dim(canvas, painted(tile), place, 0)

        outcome = jax.eval_shape(painted, tiles[:1])
        canvas = jnp.zeros((len(tiles), *outcome.shape[1:]), outcome.dtype)
        return jax.lax.fori_loop(0, count, one, canvas)


class TileProgram:
    """See `engines.tiles.TileProgram`. Cores are the first devices of JAX's default platform."""

    def __init__(self, translator: Translator, cores: int, tiles: Shape, stopwatch: Stopwatch) -> None:
        self._watch, self._share = stopwatch, np.int32(tiles[0])
        mesh = Mesh(np.array(jax.devices()[:cores]), (AXIS,))
        self._shared = NamedSharding(mesh, SHARED)
        call = TileCall(translator, mesh, tiles)
        weights = {
            path: np.asarray(translator.arrays[path]).astype(shape.dtype)
            for path, shape in call.arguments[0].items()
        }
        self._weights = placed(weights, NamedSharding(mesh, EVERYWHERE))
        with stopwatch.of(TRACE):
            lowered = jax.jit(call.function).lower(*call.arguments)
        with stopwatch.of(COMPILE):
            self._compiled: Any = lowered.compile()

    def __call__(self, tiles: NDArray[np.float32]) -> NDArray[np.float32]:
        """(cores · share, …) → (cores · share, …)."""
        with self._watch.of(TRANSFER_IN):
            sent = jax.block_until_ready(placed(tiles, self._shared))
        with self._watch.of(EXECUTE):
            outcome = jax.block_until_ready(self._compiled(self._weights, sent, self._share))
        with self._watch.of(TRANSFER_OUT):
            return np.asarray(outcome)


def _shaped(shape: Shape, dtype: str, mesh: Mesh, spread: PartitionSpec) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spread))
