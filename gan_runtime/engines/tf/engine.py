"""The TensorFlow engine: the networks of a run and the step that trains them, on tf.distribute,
repeated by one of two loops.
"""

from __future__ import annotations

import os
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
from gan_runtime.engines.optimizers import StepRate
from gan_runtime.engines.task import check_networks, rate_plan, refuse_seed_generators, task_of
from gan_runtime.engines.tf.inference import TfProbes, TfSampler
from gan_runtime.engines.tf.inputs import distributed_batches
from gan_runtime.engines.tf.loops import CustomLoop, KerasLoop, Loop, WholeStep
from gan_runtime.engines.tf.optimizers import make_optimizer
from gan_runtime.engines.tf.process import keep_freed_memory
from gan_runtime.engines.tf.profile import run_profiled, step_kernels
from gan_runtime.engines.tf.state import Average, NetworkState
from gan_runtime.engines.tf.step import TfReplicaStep
from gan_runtime.engines.tf.strategy import WaitClock, Workers, fullest_memory, make_strategy
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload


class TfEngine:
    """An `engines.contract.Engine`. `accelerator`: resolved (cpu, gpu or tpu).

    `networks`, `optimizers`: by network; `step`: on one replica of `strategy`; `loop`: repeats it.
    """

    def __init__(self, spec: RunSpec, workload: Workload, data: DataSet, accelerator: str) -> None:
        """`data`: with only those fields that the workload reads."""
        self.spec, self._data, self._is_on_cpu = spec, data, accelerator == "cpu"
        self.task = task_of(spec, workload, data.fields, data.rows)
        self.strategy = make_strategy(spec, accelerator)
        self._replicas = self.strategy.num_replicas_in_sync
        self._workers = Workers(spec, self.strategy)
        self._clock = WaitClock(is_on=not self._workers.is_one)
        self._steps_done = 0
        self._is_traced = self._warms_up = False  # until the first and the second call
        # Completed steps when the replicas were last made equal.
        self._settled_at: int | None = None
        self._iterator: Any = None
        # Freeing an iterator makes TensorFlow wait for its threads, up to minutes (measured).
        self._past_iterators: list[Any] = []
        keras.utils.set_random_seed(spec.seed)
        keras.config.set_dtype_policy(spec.precision)
        with self.strategy.scope():
            self.networks = self.task.networks()
            check_networks(self.task.program, self.networks)
            refuse_seed_generators(self.networks)
            self._averages = self._copies()
            # Replicas read the factor in every step; only the host writes it.
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
        networks = self._sampled_networks()
        self._sampler = TfSampler(self.task, self.strategy, networks, self.step, data)
        self.loop = self._make_loop()

    # ---- the contract ----------------------------------------------------------------------------

    def worker_extremes(self, number: int) -> tuple[int, int]:
        return self._workers.extremes(number)

    def trace(self) -> None:
        self.traced_call()
        self._is_traced = True

    def updates(self) -> dict[str, int]:
        return dict(self.task.plan.updates)

    def kernels(self) -> StepKernels:
        is_counted = self.spec.count_kernels == "yes"
        return step_kernels(self.traced_call(), self.step.compiled_texts() if is_counted else ())

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        self._warm_up()
        numbers = self.loop.run(self._batches(), self._steps_done, steps, stop_requested)
        self._steps_done += steps
        self._warms_up, self._is_traced = self._is_traced, False
        return numbers

    def profile(self, steps: int, stop_requested: bool = False) -> ProfiledSteps:
        self._warm_up()  # outside the profile
        phases = tuple(phase.name for phase in self.task.program.phases)
        return run_profiled(lambda: self.run(steps, stop_requested), tuple(self.networks), phases)

    def device_memory(self) -> DeviceMemory | None:
        return fullest_memory(self.strategy.extended.worker_devices)

    def mark(self) -> None:
        self._state.mark()

    def probe(self) -> ProbeResult:
        """Probes the first rows of the set; `update_ratio_…` is reported only after `mark`."""
        moved = self._state.moved_since_mark()
        self._settle()
        result = self._probes.probe(self._steps_done)
        return ProbeResult(result.histograms, {**result.scores, **moved})

    def sample(self) -> dict[str, NDArray[Any]]:
        self._settle()
        return self._sampler.sample(self._steps_done)

    def generate(self, inputs: dict[str, NDArray[Any]], seed: int = 0) -> dict[str, NDArray[Any]]:
        self._settle()
        return self._sampler.generate(inputs, self._steps_done, seed)

    def slow_down(self, factor: float) -> None:
        self._rate_factor.assign(self._rate_factor * factor)

    def state(self) -> Arrays:
        self._settle()
        return {**self._state.arrays(), "step": np.asarray(self._steps_done, np.int64)}

    def load(self, arrays: Arrays) -> None:
        self._state.assign({name: array for name, array in arrays.items() if name != "step"})
        self._steps_done, self._settled_at = int(arrays["step"]), None
        self._past_iterators.append(self._iterator)
        self._iterator = None

    def describe(self) -> dict[str, object]:
        return {
            "strategy": type(self.strategy).__name__,
            "devices": list(self.strategy.extended.worker_devices),
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "parameters": {name: network.count_params() for name, network in self.networks.items()},
        }

    def variables(self) -> dict[str, Any]:
        """Every variable by its name in a checkpoint; the values of replicas may differ."""
        return self._state.variables()

    def traced_call(self) -> Any:
        """The graph of the training call; traced once."""
        return self.loop.traced(self._batches(), self._steps_done)

    # ---- parts -----------------------------------------------------------------------------------

    def _warm_up(self) -> None:
        """Builds the graphs of the probe and of the samples and runs them once, so that the first
        epoch ends as quickly as any other. After the first call, whose numbers are shown meanwhile.
        """
        if not self._warms_up:
            return
        self._warms_up = False
        self._probes.warm_up()
        self._sampler.sample(0)

    def _make_loop(self) -> Loop:
        step = WholeStep(self.step, self._state, self.spec.ema_decay)
        if self.spec.loop == "keras":
            with self.strategy.scope():
                return KerasLoop(step)
        return CustomLoop(self.spec, self.strategy, step, self._state, self._workers, self._clock)

    def _settle(self) -> None:
        """Makes the replicas equal, once for the probe, the samples and the state at the end of an
        epoch.
        """
        if self._settled_at != self._steps_done:
            self._state.settle()
            self._settled_at = self._steps_done

    def _batches(self) -> Any:
        if self._iterator is None:
            self._iterator = distributed_batches(
                self.strategy, self.spec, self.task.plan, self._data, self._steps_done
            )
            if self._is_on_cpu:
                # Repeated, since creating the iterator makes TensorFlow return freed blocks above
                # 128 kB.
                keep_freed_memory()
        return self._iterator

    def _optimizer(self, network: str) -> keras.optimizers.Optimizer:
        plan = rate_plan(self.spec, network, self.task.plan.steps_per_epoch)
        updates = self.task.plan.updates[network]
        rate = StepRate(plan, updates, lambda: tf.convert_to_tensor(self._rate_factor))
        optimizer = make_optimizer(self.spec, network, rate, self._clock)
        # Built here, because the traced call cannot create variables.
        optimizer.build(self.networks[network].trainable_variables)
        return optimizer

    def _copies(self) -> dict[str, Average]:
        """The initial averages by network: copies of the networks that they follow."""
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

    def _sampled_networks(self) -> dict[str, Any]:
        """The networks of the sample grids."""
        if self.spec.samples_from != "ema":
            return self.networks
        return {
            **self.networks,
            **{name: average.network for name, average in self._averages.items()},
        }


ENGINE = TfEngine
