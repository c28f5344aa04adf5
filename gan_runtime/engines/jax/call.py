"""Many training steps as one compiled call over the devices of a mesh: needs shapes only, so also devices that are not there.

    call = training_call(spec, workload, mesh, images_shape=(60_000, 28, 28, 1))
    compiled = jax.jit(call.function, donate_argnums=call.donated).lower(*call.arguments).compile()

`mesh`: one axis, `jax_step.AXIS`, of spec.replicas devices, also those of a compile-only topology.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gan_runtime.engines.jax.model import Model, State
from gan_runtime.engines.jax.step import AXIS, Numbers, ReplicaStep
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload

LANES = 128  # bytes that stand side by side in a TPU's memory
EVERYWHERE = PartitionSpec()
SHARED = PartitionSpec(None, None, AXIS)


@dataclass(frozen=True)
class TrainingCall:
    """`function(state, pixels, rows, first_step, steps)` → (state, float32 (most_steps, metrics)).

    `pixels`: uint8 (images, width of a row), the whole set on every device, see `flat_pixels`.
    `rows`: int32 (most_steps, batches of real images per step, batch_size_global), which images each step sees.
    `first_step`: int32, steps done before. `steps`: int32, how many to make, up to most_steps; later rows of the numbers are 0.
    `arguments`: shapes and shardings of these; `donated`: which of them the call may overwrite. `metrics`: of the columns.
    """

    function: Callable[..., tuple[State, jax.Array]]
    arguments: tuple[Any, ...]
    metrics: tuple[str, ...]
    model: Model
    step: ReplicaStep
    donated: tuple[int, ...] = (0,)


def training_call(
    spec: RunSpec, workload: Workload, mesh: Mesh, images_shape: tuple[int, int, int, int]
) -> TrainingCall:
    """The call of a run on images uint8 (images, height, width, channels). Makes the networks, on the host."""
    model = Model(spec, workload, images_shape[0])
    step = ReplicaStep(spec, workload, model, mesh.size, mesh.devices.flat[0].platform)
    arguments = _arguments(spec, model, mesh, images_shape)

    def one_step(
        state: State, pixels: jax.Array, rows: jax.Array, number: jax.Array
    ) -> tuple[State, Numbers]:
        flat = jnp.take(pixels, rows.reshape(-1), axis=0, mode="clip")[:, : math.prod(images_shape[1:])]
        return step(state, flat.reshape(*rows.shape, *images_shape[1:]), number)

    def on_replica(
        state: State, pixels: jax.Array, rows: jax.Array, first_step: jax.Array, steps: jax.Array
    ) -> tuple[State, jax.Array]:
        def body(index: jax.Array, carried: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            state, table = carried
            state, found = one_step(state, pixels, rows[index], first_step + index)
            return state, table.at[index].set(jnp.stack([found[metric] for metric in metrics]))

        table = jnp.zeros((rows.shape[0], len(metrics)), jnp.float32)
        state, table = jax.lax.fori_loop(0, steps, body, (state, table))
        # Each replica's batch norm has seen its own images. Its statistics are moving means, so that averaging them now
        # gives what averaging in every step would.
        means, table = jax.lax.pmean(({name: state[name] for name in model.statistics}, table), AXIS)
        return state | means, table

    def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
        specs = (EVERYWHERE, EVERYWHERE, SHARED, EVERYWHERE, EVERYWHERE)
        return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=EVERYWHERE, check_vma=False)

    first = mapped(lambda state, pixels, rows, number, _: one_step(state, pixels, rows[0], number))
    metrics = tuple(sorted(jax.eval_shape(first, *arguments)[1]))
    return TrainingCall(mapped(on_replica), arguments, metrics, model, step)


def most_steps(spec: RunSpec) -> int:
    """The longest call that the training loop makes."""
    return max(spec.steps_per_loop, spec.profile_steps)


def flat_pixels(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, height, width, channels) → one row an image, filled up with zeros to whole lanes.

    A TPU would pad a last axis of one channel to 128, and turn over the whole set in each call if rows were not whole lanes.
    """
    rows = images.reshape(len(images), -1)
    return np.pad(rows, ((0, 0), (0, _row_width(images.shape) - rows.shape[1])))


def _row_width(images_shape: tuple[int, ...]) -> int:
    return -(-math.prod(images_shape[1:]) // LANES) * LANES


def _arguments(
    spec: RunSpec, model: Model, mesh: Mesh, images_shape: tuple[int, int, int, int]
) -> tuple[Any, ...]:
    def shaped(
        shape: tuple[int, ...], dtype: Any, spread: PartitionSpec = EVERYWHERE
    ) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spread))

    state = {name: shaped(array.shape, array.dtype) for name, array in model.initial().items()}
    pixels = shaped((images_shape[0], _row_width(images_shape)), jnp.uint8)
    rows = shaped((most_steps(spec), spec.batches_per_step, spec.batch_size_global), jnp.int32, SHARED)
    return state, pixels, rows, shaped((), jnp.int32), shaped((), jnp.int32)
