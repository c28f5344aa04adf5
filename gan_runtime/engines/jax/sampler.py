"""What the workload shows for given inputs: for the sample grids of an epoch, or for any
number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gan_runtime.data.contract import DataSet
from gan_runtime.engines.inputs import SAMPLES, chunks, fixed_inputs
from gan_runtime.engines.jax.devices import AXIS, placed
from gan_runtime.engines.jax.model import JaxModel, State
from gan_runtime.engines.jax.noise import JaxRequestNoise
from gan_runtime.engines.jax.rows import EVERYWHERE, Rows
from gan_runtime.engines.jax.step import JaxReplicaStep, Numbers
from gan_runtime.engines.task import EngineTask
from gan_runtime.workloads.step_context import step_scope

Arrays = dict[str, NDArray[Any]]


class JaxSampler:
    """Asks the networks in equal chunks of at least SAMPLES rows, so that one program serves
    all.
    """

    def __init__(
        self, task: EngineTask, mesh: Mesh, model: JaxModel, step: JaxReplicaStep, data: DataSet
    ) -> None:
        self._task, self._model, self._step = task, model, step
        self._rows = SAMPLES + -SAMPLES % mesh.size
        self._fixed = fixed_inputs(task.workload, task.options, data)
        by_replica = PartitionSpec(AXIS)
        self._shared = NamedSharding(mesh, by_replica)
        specs = (EVERYWHERE, by_replica, *[EVERYWHERE] * 3)
        self._call = jax.jit(
            jax.shard_map(
                self._on_replica, mesh=mesh, in_specs=specs, out_specs=EVERYWHERE, check_vma=False
            )
        )

    def sample(self, state: State, step: int) -> Arrays:
        """For the fixed inputs, after `step` steps: named arrays (64, …)."""
        return self.generate(state, self._fixed, step)

    def generate(
        self, state: State, inputs: Mapping[str, NDArray[Any]], step: int, seed: int = 0
    ) -> Arrays:
        """For any inputs (rows, …) of the names that the fixed ones have: named arrays (rows, …).

        `seed`: of what `show` draws.

        Raises:
            ValueError: other names.
        """
        if set(inputs) != set(self._fixed):
            raise ValueError(
                f"inputs are {', '.join(inputs)}, but needed are {', '.join(self._fixed)}."
            )
        typed = {name: inputs[name].astype(array.dtype) for name, array in self._fixed.items()}
        shown = [
            self._chunk(state, chunk, size, (place * self._rows, seed % 2**31, step))
            for place, (chunk, size) in enumerate(chunks(typed, self._rows))
        ]
        return {name: np.concatenate([part[name] for part in shown]) for name in shown[0]}

    def _chunk(self, state: State, inputs: Arrays, size: int, scalars: tuple[int, ...]) -> Arrays:
        shown = self._call(state, placed(inputs, self._shared), *map(np.int32, scalars))
        return {name: np.asarray(array)[:size] for name, array in shown.items()}

    def _on_replica(
        self, state: State, inputs: Rows, first: jax.Array, seed: jax.Array, step: jax.Array
    ) -> Numbers:
        task, networks = self._task, self._model.networks
        if task.spec.samples_from == "ema":
            networks = {**networks, **self._model.averages}
        noise = JaxRequestNoise(seed, jax.lax.axis_index(AXIS), first)
        with self._model.scope(state) as scope, step_scope(self._step.context(scope, noise, step)):
            shown = task.workload.show(task.options, networks, inputs, noise)
        return {name: jax.lax.all_gather(array, AXIS, tiled=True) for name, array in shown.items()}
