"""The JAX engine: one program over all devices (SPMD), many training steps in one compiled call.

The call needs shapes only, so it also compiles for devices that this host does not have:

    call = training_call(task_of(spec, workload, fields, rows=60_000), mesh)
    compiled = jax.jit(call.function, donate_argnums=call.donated).lower(*call.arguments).compile()

`mesh`: one axis, `devices.AXIS`, of spec.replicas devices.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gan_runtime.base.metrics import UPDATE_RATIO, of_network
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import (
    RATE_FACTOR,
    Arrays,
    DeviceMemory,
    ProbeResult,
    ProfiledSteps,
    StepKernels,
    StepNumbers,
    WorkerStatus,
    check_fit,
)
from gan_runtime.engines.inputs import RowOrder
from gan_runtime.engines.jax import devices as jax_devices
from gan_runtime.engines.jax import inputs as jax_inputs
from gan_runtime.engines.jax.devices import (
    AXIS,
    fullest_memory,
    make_mesh,
    on_first_device,
    put_on_devices,
)
from gan_runtime.engines.jax.inference import JaxProbes, JaxSampler
from gan_runtime.engines.jax.inputs import REPLICATED, SHARDED, Rows, feed
from gan_runtime.engines.jax.model import JaxModel, State
from gan_runtime.engines.jax.step import JaxReplicaStep, Numbers
from gan_runtime.engines.step_profile import hlo_counts
from gan_runtime.engines.task import EngineTask, task_of
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload


@dataclass(frozen=True)
class TrainingCall:
    """`function(state, resident, call_rows, first_step, steps)` → (state, float32 (most_steps,
    metrics)).

    `resident`, `call_rows`: the rows of the steps (inputs.py). `first_step`: int32, completed
    steps. `steps`: int32, steps of this call; numbers of later steps are 0. `arguments`: shapes and
    shardings. `donated`: arguments that the call can overwrite. `metrics`: names of the columns.
    """

    function: Callable[..., tuple[State, jax.Array]]
    arguments: tuple[Any, ...]
    metrics: tuple[str, ...]
    model: JaxModel
    step: JaxReplicaStep
    donated: tuple[int, ...] = (0,)


def training_call(task: EngineTask, mesh: Mesh, streamed: bool = False) -> TrainingCall:
    """The training call of a run with resident or `streamed` rows. Builds the networks
    on the host.
    """
    model = JaxModel(task)
    step = JaxReplicaStep(task, model, mesh.size, mesh.devices.flat[0].platform)
    arguments = _arguments(model, mesh, streamed)
    longest = most_steps(task.spec)

    def one_step(
        state: State, resident: Rows, call_rows: Any, index: jax.Array | int, number: jax.Array
    ) -> tuple[State, Numbers]:
        return step(state, jax_inputs.step_rows(task.fields, resident, call_rows, index), number)

    def on_replica(
        state: State, resident: Rows, call_rows: Any, first_step: jax.Array, steps: jax.Array
    ) -> tuple[State, jax.Array]:
        def body(index: jax.Array, carried: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            state, table = carried
            state, numbers = one_step(state, resident, call_rows, index, first_step + index)
            return state, table.at[index].set(jnp.stack([numbers[metric] for metric in metrics]))

        table = jnp.zeros((longest, len(metrics)), jnp.float32)
        state, table = jax.lax.fori_loop(0, steps, body, (state, table))
        # Each replica's batch norm follows its own rows. Statistics are moving means, so averaging
        # them once now equals averaging in every step. Counters and keys are not averaged.
        floats = [
            name for name in model.statistics if jnp.issubdtype(state[name].dtype, jnp.floating)
        ]
        means, table = jax.lax.pmean(({name: state[name] for name in floats}, table), AXIS)
        return state | means, table

    def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
        specs = (REPLICATED, REPLICATED, SHARDED, REPLICATED, REPLICATED)
        return jax.shard_map(
            function, mesh=mesh, in_specs=specs, out_specs=REPLICATED, check_vma=False
        )

    first = mapped(
        lambda state, resident, call_rows, number, _: one_step(
            state, resident, call_rows, 0, number
        )
    )
    metrics = tuple(sorted(jax.eval_shape(first, *arguments)[1]))
    return TrainingCall(mapped(on_replica), arguments, metrics, model, step)


def most_steps(spec: RunSpec) -> int:
    """The longest call that the training loop makes."""
    return max(spec.steps_per_loop, spec.profile_steps)


def _arguments(model: JaxModel, mesh: Mesh, streamed: bool) -> tuple[Any, ...]:
    def shaped(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, REPLICATED))

    task = model.task
    state = {name: shaped(array.shape, array.dtype) for name, array in model.initial().items()}
    sizes = (most_steps(task.spec), task.plan.batches, task.plan.batch_size_global)
    rows = jax_inputs.row_shapes(task.fields, mesh, sizes, None if streamed else task.plan.rows)
    counter = shaped((), jnp.int32)
    return state, *rows, counter, counter


class Poll:
    """The lowest and the highest number of all processes; all processes must call it together."""

    def __init__(self, mesh: Mesh) -> None:
        self._sharding = NamedSharding(mesh, PartitionSpec(AXIS))
        self._size = mesh.size
        self._extremes = jax.jit(
            lambda numbers: (numbers.min(), numbers.max()),
            out_shardings=NamedSharding(mesh, PartitionSpec()),
        )

    def __call__(self, number: int) -> tuple[int, int]:
        """`number`: below 2^31."""
        # Each process fills the shards of its local devices.
        numbers = np.full(self._size, number, np.int32)
        lowest, highest = self._extremes(
            jax.make_array_from_callback(numbers.shape, self._sharding, lambda part: numbers[part])
        )
        return int(lowest), int(highest)


class JaxEngine:
    """An `engines.contract.Engine`. `accelerator`: resolved (cpu, gpu or tpu).

    `model`: networks, optimizers and the names of their arrays; `mesh`: the devices.
    """

    def __init__(self, spec: RunSpec, workload: Workload, data: DataSet, accelerator: str) -> None:
        self.spec = spec
        jax_devices.join(spec, accelerator)
        self.task = task_of(spec, workload, data.fields, data.rows)
        self.mesh = make_mesh(spec, accelerator)
        self._call = training_call(self.task, self.mesh, streamed=data.resident is None)
        self.model = self._call.model
        self._steps_done = 0
        self._state = self._placed(self.model.initial())
        order = RowOrder(spec.seed, self.task.plan)
        self._feed = feed(data, order, self.mesh, most_steps(spec))
        parts = self.task, self.mesh, self.model, self._call.step, data
        self._probes, self._sampler = JaxProbes(*parts), JaxSampler(*parts)
        self._poll = Poll(self.mesh) if spec.workers > 1 else None
        self._marked: State = {}
        self.lowered: Any = None
        self._compiled: Any = None

    def worker_extremes(self, number: int) -> tuple[int, int]:
        return self._poll(number) if self._poll else (number, number)

    def updates(self) -> dict[str, int]:
        return self.task.plan.updates

    def trace(self) -> None:
        """Traces the training call. The first `run` compiles it while the rows are read."""
        self._feed.prepare(self._steps_done)
        self.lowered = jax.jit(self._call.function, donate_argnums=self._call.donated).lower(
            *self._call.arguments
        )

    def kernels(self) -> StepKernels:
        operations = len(re.findall(r"= \"?stablehlo\.(?!constant)", self.lowered.as_text()))
        if self.spec.count_kernels == "no":
            return StepKernels(operations, None, None, None)
        before = hlo_counts(self.lowered.as_text(dialect="hlo"))
        after = hlo_counts(self.lowered.compile().as_text())
        return StepKernels(operations, before.kernels, after.kernels, after.fusions)

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """Trains `steps` steps; the numbers are means over the replicas of all workers."""
        begin = time.perf_counter()
        status = WorkerStatus(stop_agreed=self._poll(stop_requested)[1] > 0) if self._poll else None
        if self._compiled is None:
            self._compiled = self.lowered.compile()
        call_rows = self._feed.call_rows(self._steps_done, steps)
        first, count = np.int32(self._steps_done), np.int32(steps)
        self._state, table = self._compiled(
            self._state, self._feed.resident, call_rows, first, count
        )
        self._steps_done += steps
        self._feed.prepare(self._steps_done)
        numbers = np.asarray(table)[:steps]
        values = {metric: numbers[:, column] for column, metric in enumerate(self._call.metrics)}
        return StepNumbers(values, time.perf_counter() - begin, status)

    def profile(self, steps: int, stop_requested: bool = False) -> ProfiledSteps:
        """Unsupported with JAX; the option rules refuse it (spec/rules.py)."""
        raise NotImplementedError

    def device_memory(self) -> DeviceMemory | None:
        return fullest_memory(self.mesh.local_devices)

    def mark(self) -> None:
        # A copy, since the next call overwrites the originals.
        self._marked = {name: array.copy() for name, array in self._weights().items()}

    def probe(self) -> ProbeResult:
        """Probes the first rows of the set; sizes of updates are reported only after `mark`."""
        result = self._probes.probe(self._state, self._steps_done)
        return ProbeResult(result.histograms, {**result.scores, **self._moved_since_mark()})

    def sample(self) -> Arrays:
        return self._sampler.sample(self._with_statistics(self._state), self._steps_done)

    def generate(self, inputs: Arrays, seed: int = 0) -> Arrays:
        settled = self._with_statistics(self._state)
        return self._sampler.generate(settled, inputs, self._steps_done, seed)

    def slow_down(self, factor: float) -> None:
        slower: Arrays = {RATE_FACTOR: np.asarray(self._state[RATE_FACTOR]) * np.float32(factor)}
        self._state = self._state | self._placed(slower)

    def state(self) -> Arrays:
        arrays = {
            name: np.asarray(array) for name, array in self._with_statistics(self._state).items()
        }
        return {**arrays, "step": np.asarray(self._steps_done, np.int64)}

    def load(self, arrays: Arrays) -> None:
        stored = {name: array for name, array in arrays.items() if name != "step"}
        check_fit(stored, {name: array.shape for name, array in self._state.items()})
        self._state = self._placed(
            {name: stored[name].astype(array.dtype) for name, array in self._state.items()}
        )
        self._steps_done = int(arrays["step"])

    def describe(self) -> dict[str, object]:
        return {
            "strategy": f"SPMD over {self.mesh.size} device(s)",
            "devices": [f"{device.device_kind} {device.id}" for device in self.mesh.devices.flat],
            "jax": jax.__version__,
            "keras": keras.__version__,
            "parameters": {
                name: network.count_params() for name, network in self.model.networks.items()
            },
        }

    # ---- parts -----------------------------------------------------------------------------------

    def _placed(self, arrays: Arrays) -> State:
        """The arrays, replicated on every device."""
        state: State = put_on_devices(arrays, NamedSharding(self.mesh, REPLICATED))
        return state

    def _with_statistics(self, state: State) -> State:
        """A state whose averaged network has the batch-norm statistics of the network
        in training.
        """
        averages = self.model.in_average(self.model.statistics)
        return state | {average: state[name] for name, average in averages.items()}

    def _weights(self) -> State:
        """All trained weights, from the first device."""
        names = [name for names in self.model.trainable.values() for name in names]
        return on_first_device({name: self._state[name] for name in names})

    def _moved_since_mark(self) -> dict[str, float]:
        """For each network, the norm of the change of its weights since `mark`, divided by their
        norm at `mark`. Clears the mark.
        """
        before, self._marked = self._marked, {}
        if not before:
            return {}
        now = self._weights()
        return {
            of_network(UPDATE_RATIO, network): float(
                _norm([now[name] - before[name] for name in names])
                / _norm([before[name] for name in names])
            )
            for network, names in self.model.trainable.items()
        }


def _norm(arrays: list[jax.Array]) -> np.ndarray:
    return np.sqrt(sum(np.square(np.asarray(array, np.float64)).sum() for array in arrays))


ENGINE = JaxEngine
