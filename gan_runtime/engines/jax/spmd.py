"""The JAX engine: one program over all devices (SPMD), many steps inside one compiled call."""

from __future__ import annotations

import re
import time
from typing import Any

import jax
import keras
import numpy as np
from jax.sharding import NamedSharding

from gan_runtime.base.metrics import UPDATE_RATIO, of_network
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import (
    Arrays,
    DeviceMemory,
    ProbeResult,
    ProfiledSteps,
    StepKernels,
    StepNumbers,
    WorkerNews,
)
from gan_runtime.engines.hlo_counts import counted
from gan_runtime.engines.image_order import RowOrder
from gan_runtime.engines.jax import process as jax_process
from gan_runtime.engines.jax.call import most_steps, training_call
from gan_runtime.engines.jax.devices import Poll, fullest, make_mesh, on_first_device, placed
from gan_runtime.engines.jax.model import State
from gan_runtime.engines.jax.probes import JaxProbes
from gan_runtime.engines.jax.rows import EVERYWHERE, feed
from gan_runtime.engines.jax.sampler import JaxSampler
from gan_runtime.engines.state_names import RATE_FACTOR, check_fit
from gan_runtime.engines.task import task_of
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload


class JaxEngine:
    """See `engines.contract.Engine`. `accelerator` is the resolved one: cpu, gpu or tpu.

    `task`: what is trained; `model`: its networks, optimizers and the names of their arrays;
    `mesh`: the devices.
    """

    def __init__(self, spec: RunSpec, workload: Workload, data: DataSet, accelerator: str) -> None:
        self.spec = spec
        jax_process.join(spec, accelerator)
        self.task = task_of(spec, workload, data.fields, data.rows)
        self.mesh = make_mesh(spec, accelerator)
        self._call = training_call(self.task, self.mesh, streamed=data.resident is None)
        self.model = self._call.model
        self._steps_done = 0
        self._state = self._placed(self.model.initial())
        order = RowOrder(spec.seed, self.task.plan)
        self._feed = feed(data, order, self.mesh, most_steps(spec))
        looked_at = self.task, self.mesh, self.model, self._call.step, data
        self._probes, self._sampler = JaxProbes(*looked_at), JaxSampler(*looked_at)
        self._poll = Poll(self.mesh) if spec.workers > 1 else None
        self._marked: State = {}
        self.lowered: Any = None
        self._compiled: Any = None

    def told_by_all(self, number: int) -> tuple[int, int]:
        """Lowest and highest of the numbers that the workers tell."""
        return self._poll(number) if self._poll else (number, number)

    def updates(self) -> dict[str, int]:
        """How often one step changes each network that it changes at all."""
        return self.task.plan.updates

    def trace(self) -> None:
        """Traces the training call; the first `run` compiles it, while the rows of its steps
        are read.
        """
        self._feed.prepare(self._steps_done)
        self.lowered = jax.jit(self._call.function, donate_argnums=self._call.donated).lower(
            *self._call.arguments
        )

    def kernels(self) -> StepKernels:
        """Operations of the traced call; XLA's kernels where the options ask: it compiles
        once more.
        """
        operations = len(re.findall(r"= \"?stablehlo\.(?!constant)", self.lowered.as_text()))
        if self.spec.count_kernels == "no":
            return StepKernels(operations, None, None, None)
        before, after = (
            counted(self.lowered.as_text(dialect="hlo")),
            counted(self.lowered.compile().as_text()),
        )
        return StepKernels(operations, before.kernels, after.kernels, after.fusions)

    def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
        """Trains `steps` steps; metric → float32 (steps,), the mean over the replicas of all
        workers.
        """
        begin = time.perf_counter()
        news = WorkerNews(stop_agreed=self._poll(stop_wish)[1] > 0) if self._poll else None
        if self._compiled is None:
            self._compiled = self.lowered.compile()
        taken = self._feed.taken(self._steps_done, steps)
        first, count = np.int32(self._steps_done), np.int32(steps)
        self._state, table = self._compiled(self._state, self._feed.resident, taken, first, count)
        self._steps_done += steps
        self._feed.prepare(self._steps_done)
        numbers = np.asarray(table)[:steps]
        values = {metric: numbers[:, column] for column, metric in enumerate(self._call.metrics)}
        return StepNumbers(values, time.perf_counter() - begin, news)

    def profile(self, steps: int, stop_wish: bool = False) -> ProfiledSteps:
        """Refused at the door (spec/rules.py)."""
        raise NotImplementedError

    def device_memory(self) -> DeviceMemory | None:
        """Of the fullest GPU or TPU core; None on CPUs, where JAX does not count."""
        return fullest(self.mesh.local_devices)

    def mark(self) -> None:
        """Remembers the weights, so that the next `probe` can tell how far they have moved
        since.
        """
        self._marked = {
            name: array.copy() for name, array in self._weights().items()
        }  # the next call takes the originals

    def probe(self) -> ProbeResult:
        """What is judged of the first rows of the set, and histograms; sizes of updates after
        `mark`.
        """
        found = self._probes.probe(self._state, self._steps_done)
        return ProbeResult(found.histograms, {**found.scores, **self._moved_since_mark()})

    def sample(self) -> Arrays:
        """What the workload shows for its fixed inputs: named arrays (64, …)."""
        return self._sampler.sample(self._with_statistics(self._state), self._steps_done)

    def generate(self, inputs: Arrays, seed: int = 0) -> Arrays:
        """What the workload shows for any number of inputs: named arrays (rows, …)."""
        settled = self._with_statistics(self._state)
        return self._sampler.generate(settled, inputs, self._steps_done, seed)

    def slow_down(self, factor: float) -> None:
        """Multiplies the learning rates of all networks by `factor` from now on; the state
        keeps it.
        """
        slower: Arrays = {RATE_FACTOR: np.asarray(self._state[RATE_FACTOR]) * np.float32(factor)}
        self._state = self._state | self._placed(slower)

    def state(self) -> Arrays:
        """Named arrays of every network and optimizer, and the number of steps done."""
        arrays = {
            name: np.asarray(array) for name, array in self._with_statistics(self._state).items()
        }
        return {**arrays, "step": np.asarray(self._steps_done, np.int64)}

    def load(self, arrays: Arrays) -> None:
        """Takes up a state, also in the middle of a training: the rows go on where that state
        stood.
        """
        given = {name: array for name, array in arrays.items() if name != "step"}
        check_fit(given, {name: array.shape for name, array in self._state.items()})
        self._state = self._placed(
            {name: given[name].astype(own.dtype) for name, own in self._state.items()}
        )
        self._steps_done = int(arrays["step"])

    def describe(self) -> dict[str, object]:
        """Strategy, devices and versions."""
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
        """The same on every device."""
        state: State = placed(arrays, NamedSharding(self.mesh, EVERYWHERE))
        return state

    def _with_statistics(self, state: State) -> State:
        """The averaged network takes over the batch-norm statistics of the one in training."""
        kept = self.model.in_average(self.model.statistics)
        return state | {average: state[name] for name, average in kept.items()}

    def _weights(self) -> State:
        """Everything that gradients move, as the first device holds it."""
        names = [name for names in self.model.trainable.values() for name in names]
        return on_first_device({name: self._state[name] for name in names})

    def _moved_since_mark(self) -> dict[str, float]:
        """Norm of the change of a network's weights since `mark`, over their norm then.

        Forgets the mark.
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
