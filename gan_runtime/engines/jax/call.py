"""Many training steps as one compiled call over the devices of a mesh.

Needs shapes only, so it works for devices that are not there:

    call = training_call(task_of(spec, workload, fields, rows=60_000), mesh)
    compiled = jax.jit(call.function, donate_argnums=call.donated).lower(*call.arguments).compile()

`mesh`: one axis, `arrays.AXIS`, of spec.replicas devices, also those of a compile-only topology.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding

from gan_runtime.engines.jax import rows as jax_rows
from gan_runtime.engines.jax.devices import AXIS
from gan_runtime.engines.jax.model import JaxModel, State
from gan_runtime.engines.jax.rows import EVERYWHERE, SHARED, Rows
from gan_runtime.engines.jax.step import JaxReplicaStep, Numbers
from gan_runtime.engines.task import EngineTask
from gan_runtime.spec import RunSpec


@dataclass(frozen=True)
class TrainingCall:
    """`function(state, resident, taken, first_step, steps)` → (state, float32 (most_steps,
    metrics)).

    `resident`, `taken`: the rows that the steps see, see `rows.py`.
    `first_step`: int32, steps done before. `steps`: int32, how many to make; later numbers are 0.
    `arguments`: shapes and shardings of these. `donated`: which of them the call may overwrite.
    `metrics`: of the columns.
    """

    function: Callable[..., tuple[State, jax.Array]]
    arguments: tuple[Any, ...]
    metrics: tuple[str, ...]
    model: JaxModel
    step: JaxReplicaStep
    donated: tuple[int, ...] = (0,)


def training_call(task: EngineTask, mesh: Mesh, streamed: bool = False) -> TrainingCall:
    """The call of a run, whose rows are resident or `streamed`. Makes the networks, on the host."""
    model = JaxModel(task)
    step = JaxReplicaStep(task, model, mesh.size, mesh.devices.flat[0].platform)
    arguments = _arguments(model, mesh, streamed)
    longest = most_steps(task.spec)

    def one_step(
        state: State, resident: Rows, taken: Any, index: jax.Array | int, number: jax.Array
    ) -> tuple[State, Numbers]:
        return step(state, jax_rows.of_step(task.fields, resident, taken, index), number)

    def on_replica(
        state: State, resident: Rows, taken: Any, first_step: jax.Array, steps: jax.Array
    ) -> tuple[State, jax.Array]:
        def body(index: jax.Array, carried: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            state, table = carried
            state, numbers = one_step(state, resident, taken, index, first_step + index)
            return state, table.at[index].set(jnp.stack([numbers[metric] for metric in metrics]))

        table = jnp.zeros((longest, len(metrics)), jnp.float32)
        state, table = jax.lax.fori_loop(0, steps, body, (state, table))
        # Each replica's batch norm has seen its own rows. Its statistics are moving means, so that
        # averaging them now gives what averaging in every step would. A counter or a key has no
        # mean.
        floats = [
            name for name in model.statistics if jnp.issubdtype(state[name].dtype, jnp.floating)
        ]
        means, table = jax.lax.pmean(({name: state[name] for name in floats}, table), AXIS)
        return state | means, table

    def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
        specs = (EVERYWHERE, EVERYWHERE, SHARED, EVERYWHERE, EVERYWHERE)
        return jax.shard_map(
            function, mesh=mesh, in_specs=specs, out_specs=EVERYWHERE, check_vma=False
        )

    first = mapped(
        lambda state, resident, taken, number, _: one_step(state, resident, taken, 0, number)
    )
    metrics = tuple(sorted(jax.eval_shape(first, *arguments)[1]))
    return TrainingCall(mapped(on_replica), arguments, metrics, model, step)


def most_steps(spec: RunSpec) -> int:
    """The longest call that the training loop makes."""
    return max(spec.steps_per_loop, spec.profile_steps)


def _arguments(model: JaxModel, mesh: Mesh, streamed: bool) -> tuple[Any, ...]:
    def shaped(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, EVERYWHERE))

    task = model.task
    state = {name: shaped(array.shape, array.dtype) for name, array in model.initial().items()}
    taken = (most_steps(task.spec), task.plan.batches, task.plan.batch_size_global)
    rows = jax_rows.shapes(task.fields, mesh, taken, None if streamed else task.plan.rows)
    counter = shaped((), jnp.int32)
    return state, *rows, counter, counter
