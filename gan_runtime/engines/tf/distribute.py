"""The tensorflow engine: the networks of a run and the step that trains them, on
tf.distribute, repeated by one of two loops.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import (
    Arrays,
    DeviceMemory,
    ProbeResult,
    ProfiledSteps,
    StepKernels,
    StepNumbers,
)
from gan_runtime.engines.layer_traps import refuse_seed_generators
from gan_runtime.engines.optimizers import StepRate
from gan_runtime.engines.rates import rate_plan
from gan_runtime.engines.task import check_networks, task_of
from gan_runtime.engines.tf.devices import fullest, make_strategy
from gan_runtime.engines.tf.input import distributed_batches
from gan_runtime.engines.tf.loops import KerasLoop, Loop, OwnLoop, WholeStep
from gan_runtime.engines.tf.optimizers import make_optimizer
from gan_runtime.engines.tf.probes import TfProbes
from gan_runtime.engines.tf.process import keep_freed_memory
from gan_runtime.engines.tf.profile import profiled, step_kernels
from gan_runtime.engines.tf.sampler import TfSampler
from gan_runtime.engines.tf.state import Average, NetworkState
from gan_runtime.engines.tf.step import TfReplicaStep
from gan_runtime.engines.tf.workers import WaitClock, Workers
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload


class TfEngine:
    """See `engines.contract.Engine`. `accelerator` is the resolved one: cpu, gpu or tpu.

    `task`: what is trained; `networks` and `optimizers` by network; `step`: on one of the replicas
    of `strategy`; `loop`: repeats it.
    """

    def __init__(self, spec: RunSpec, workload: Workload, data: DataSet, accelerator: str) -> None:
        """`data`: with those fields only that the workload reads."""
        self.spec, self._data, self._is_on_cpu = spec, data, accelerator == "cpu"
        self.task = task_of(spec, workload, data.fields, data.rows)
        self.strategy = make_strategy(spec, accelerator)
        self._replicas = self.strategy.num_replicas_in_sync
        self._workers = Workers(spec, self.strategy)
        self._clock = WaitClock(is_on=not self._workers.is_one)
        self._steps_done = 0
        self._settled_at: int | None = (
            None  # the steps done when the replicas were last made one model
        )
        self._iterator: Any = None
        self._past_iterators: list[
            Any
        ] = []  # freeing one makes TensorFlow wait for its threads, up to minutes (measured)
        keras.utils.set_random_seed(spec.seed)
        keras.config.set_dtype_policy(spec.precision)
        with self.strategy.scope():
            self.networks = self.task.networks()
            check_networks(self.task.program, self.networks)
            refuse_seed_generators(self.networks)
            self._averages = self._copied()
            # Read in every step on every replica, written by the host only.
            self._rate_factor = keras.Variable(
                1.0, trainable=False, name="rate_factor", aggregation="only_first_replica"
            )
            self.optimizers = {
                name: self._optimizer(name)
                for name in self.networks
                if name in self.task.plan.updates
            }
        self.step = TfReplicaStep(
            self.task, self.networks, self.optimizers, self._replicas, accelerator, self._clock
        )
        local = spec.sync_every_steps > 1
        self._state = NetworkState(
            self.strategy,
            self.networks,
            self.optimizers,
            tuple(self._averages.values()),
            self._rate_factor,
            local,
        )
        self._probes = TfProbes(self.task, self.strategy, self.networks, self.step, data)
        self._sampler = TfSampler(self.task, self.strategy, self._shown(), self.step, data)
        self.loop = self._chosen_loop()

    # ---- the contract ----------------------------------------------------------------------------

    def told_by_all(self, number: int) -> tuple[int, int]:
        """Lowest and highest of the numbers that the workers tell."""
        return self._workers.extremes(number)

    def trace(self) -> None:
        """Builds the graphs of the training call, without running it, and of what an epoch's end
        asks for. That runs once meanwhile, so that the first epoch ends as quickly as any other.
        """
        self._probes.trace()
        self._sampler.trace()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="warm-up") as other:
            warm = other.submit(self._warm_up)  # TensorFlow works while Python traces
            self.traced_call()
        warm.result()

    def updates(self) -> dict[str, int]:
        """How often one step changes each network that it changes at all."""
        return dict(self.task.plan.updates)

    def kernels(self) -> StepKernels:
        """Operations of the traced call; XLA's kernels only where the options ask for them,
        since it compiles once more.
        """
        asked = self.spec.count_kernels == "yes"
        return step_kernels(self.traced_call(), self.step.compiled_texts() if asked else ())

    def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
        """Trains `steps` steps; metric → float32 (steps,), the mean over the replicas."""
        numbers = self.loop.run(self._batches(), self._steps_done, steps, stop_wish)
        self._steps_done += steps
        return numbers

    def profile(self, steps: int, stop_wish: bool = False) -> ProfiledSteps:
        """Trains `steps` steps under TensorFlow's profiler."""
        phases = tuple(phase.name for phase in self.task.program.phases)
        return profiled(lambda: self.run(steps, stop_wish), tuple(self.networks), phases)

    def device_memory(self) -> DeviceMemory | None:
        """Of the fullest GPU or TPU core; None on CPUs, whose allocator tells nothing of use."""
        return fullest(self.strategy.extended.worker_devices)

    def mark(self) -> None:
        """Remembers the weights, so that the next `probe` can tell how far they have moved
        since.
        """
        self._state.mark()

    def probe(self) -> ProbeResult:
        """Histograms and scores on the first rows of the set; `update_ratio_…` only after
        `mark`.
        """
        moved = self._state.moved_since_mark()
        self._settle()
        seen = self._probes.probe(self._steps_done)
        return ProbeResult(seen.histograms, {**seen.scores, **moved})

    def sample(self) -> dict[str, NDArray[Any]]:
        """What the workload shows for its fixed inputs: named arrays (64, …)."""
        self._settle()
        return self._sampler.sample(self._steps_done)

    def generate(self, inputs: dict[str, NDArray[Any]], seed: int = 0) -> dict[str, NDArray[Any]]:
        """What the workload shows for any number of inputs: named arrays (rows, …)."""
        self._settle()
        return self._sampler.generate(inputs, self._steps_done, seed)

    def slow_down(self, factor: float) -> None:
        """Multiplies the learning rates of all networks by `factor` from now on; the state
        keeps it.
        """
        self._rate_factor.assign(self._rate_factor * factor)

    def state(self) -> Arrays:
        """Named arrays of every network and optimizer, and the number of steps done."""
        self._settle()
        return {**self._state.arrays(), "step": np.asarray(self._steps_done, np.int64)}

    def load(self, arrays: Arrays) -> None:
        """Takes up a state, also in the middle of a training: the rows go on where that state
        stood.
        """
        self._state.assign({name: array for name, array in arrays.items() if name != "step"})
        self._steps_done, self._settled_at = int(arrays["step"]), None
        self._past_iterators.append(self._iterator)
        self._iterator = None

    def describe(self) -> dict[str, object]:
        """Strategy, devices and versions."""
        return {
            "strategy": type(self.strategy).__name__,
            "devices": list(self.strategy.extended.worker_devices),
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "parameters": {name: network.count_params() for name, network in self.networks.items()},
        }

    def variables(self) -> dict[str, Any]:
        """Everything that lives on the devices, by its name in a checkpoint; replicas may
        hold other values.
        """
        return self._state.variables()

    def traced_call(self) -> Any:
        """The graph of the training call; traced once."""
        return self.loop.traced(self._batches(), self._steps_done)

    # ---- parts -----------------------------------------------------------------------------------

    def _warm_up(self) -> None:
        self._probes.warm_up()
        self._sampler.sample(0)

    def _chosen_loop(self) -> Loop:
        step = WholeStep(self.step, self._state, self.spec.ema_decay)
        if self.spec.loop == "keras":
            with self.strategy.scope():
                return KerasLoop(step)
        return OwnLoop(self.spec, self.strategy, step, self._state, self._workers, self._clock)

    def _settle(self) -> None:
        """Once for everything that an epoch's end wants of the one model: probe, samples, state."""
        if self._settled_at != self._steps_done:
            self._state.settle()
            self._settled_at = self._steps_done

    def _batches(self) -> Any:
        if self._iterator is None:
            self._iterator = distributed_batches(
                self.strategy, self.spec, self.task.plan, self._data, self._steps_done
            )
            if self._is_on_cpu:
                # once more: such an iterator makes TensorFlow give freed memory back from 128 kB on
                keep_freed_memory()
        return self._iterator

    def _optimizer(self, network: str) -> keras.optimizers.Optimizer:
        plan = rate_plan(self.spec, network, self.task.plan.steps_per_epoch)
        updates = self.task.plan.updates[network]
        rate = StepRate(plan, updates, lambda: tf.convert_to_tensor(self._rate_factor))
        optimizer = make_optimizer(self.spec, network, rate, self._clock)
        optimizer.build(
            self.networks[network].trainable_variables
        )  # variables cannot be made inside the traced call
        return optimizer

    def _copied(self) -> dict[str, Average]:
        """By network, the averages as training begins: copies of the networks that they follow."""
        copies = self.task.networks() if self.task.averages else {}
        averages = {
            name: Average(owner, self.networks[name], copies[name])
            for name, owner in self.task.averages.items()
        }
        for average in averages.values():
            for variable, original in zip(
                average.network.variables, average.live.variables, strict=True
            ):
                variable.assign(original)
        return averages

    def _shown(self) -> dict[str, Any]:
        """The networks that make the sample grids."""
        if self.spec.samples_from != "ema":
            return self.networks
        return {
            **self.networks,
            **{name: average.network for name, average in self._averages.items()},
        }


ENGINE = TfEngine
