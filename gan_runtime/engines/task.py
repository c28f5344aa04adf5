"""The training task of a run, derived from its options, workload and data fields, and the learning
rate of every step: scaled by the batch, with warm-up and a cosine with restarts.

Loads no framework: the trainer computes rates with keras.ops (optimizers.py), the Launch page with
numpy.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gan_runtime.base.fields import Fields
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.data.contract import DataSet, FieldSelection
from gan_runtime.engines.contract import AVERAGE
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Program, Workload


@dataclass(frozen=True)
class StepPlan:
    """The rows and updates of a step, which the program determines.

    `batches`: batches of training rows per step, of `batch_size_global` rows each. `rows`: rows of
    the training set. `updates`: updates per step of each trained network.
    """

    batches: int
    batch_size_global: int
    rows: int
    updates: dict[str, int]

    @property
    def rows_per_step(self) -> int:
        """Training rows that one step takes from the set."""
        return self.batches * self.batch_size_global

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one pass over the set; an incomplete last step is dropped."""
        return self.rows // self.rows_per_step


def step_plan(spec: RunSpec, program: Program, rows: int) -> StepPlan:
    """The plan of a run on a set of `rows` training rows."""
    updates = {network: program.updates_of(network) for network in program.networks}
    return StepPlan(program.batches, spec.batch_size_global, rows, updates)


def check_batches(spec: RunSpec, program: Program) -> None:
    """Raises ValueError if the workload's entry declares another number of batches than its program
    takes, since learning rates and estimates would be wrong.
    """
    batches = spec.entry.batches(spec.of_workload)
    if batches != program.batches:
        raise ValueError(
            f"a step of {spec.workload} takes {program.batches} training batches, but its catalog"
            f" entry declares {batches}: return {program.batches} from `batches` of that entry."
        )


def average_owners(entry: WorkloadEntry) -> dict[str, str]:
    """Averaged network → owner of its average's arrays: "average" for the first network,
    "average_NETWORK" for others.
    """
    first, *further = entry.averages
    return {first: AVERAGE, **{name: f"{AVERAGE}_{name}" for name in further}}


@dataclass(frozen=True)
class EngineTask:
    """The task of an engine. `options`: of the workload. `fields`: of a batch. `plan`: rows and
    updates of a step.
    """

    spec: RunSpec
    workload: Workload
    entry: WorkloadEntry
    options: Any
    fields: Fields
    program: Program
    plan: StepPlan

    @property
    def averages(self) -> dict[str, str]:
        """As `average_owners`; empty for a run without moving averages."""
        return average_owners(self.entry) if self.spec.ema_decay else {}

    @property
    def steps(self) -> int:
        """The steps of the whole training."""
        return self.spec.epochs * self.plan.steps_per_epoch

    @property
    def is_loss_scaled(self) -> bool:
        """Whether gradients are scaled up, as float16 needs."""
        return self.spec.precision == "mixed_float16"

    def networks(self) -> dict[str, Any]:
        """New, untrained keras models by name."""
        return self.workload.networks(self.options, self.fields)


def task_of(spec: RunSpec, workload: Workload, fields: Fields, rows: int) -> EngineTask:
    """The task of a run on a set of `rows` training rows."""
    program = workload.program(spec.of_workload, fields)
    plan = step_plan(spec, program, rows)
    return EngineTask(spec, workload, spec.entry, spec.of_workload, fields, program, plan)


def workload_of(spec: RunSpec) -> Workload:
    """The workload that a run names; loads Keras."""
    workload: Workload = importlib.import_module(spec.entry.module).WORKLOAD
    return workload


def data_for_workload(spec: RunSpec, data: DataSet) -> DataSet:
    """The data set with only the fields that the run's workload reads.

    Raises:
        DatasetError: the fields do not fit the workload; the message gives the reason.
    """
    return FieldSelection(data, spec.entry.reads(spec.of_workload, data.fields))


# ---- learning rates ------------------------------------------------------------------------------
#
# rate(step) = option × batch factor × warm-up(step) × cosine(step)
# Sources: Loshchilov and Hutter 2017 (SGDR, equation 5 with T_mult = 1 and a lowest rate of 0);
# Goyal et al. 2017 (warm-up).


@dataclass(frozen=True)
class RatePlan:
    """The learning rate as a function of the completed steps.

    `cycle_steps` 0: no cosine; `warmup_steps` 0: no warm-up.
    """

    base: float
    warmup_steps: int
    cycle_steps: int

    def rate(self, step: Any, ops: Any) -> Any:
        """The rate after `step` steps, a float, array or tensor; `ops`: numpy or keras.ops.

        A constant plan returns a single number.
        """
        rate = self.base
        if self.warmup_steps:
            rate = rate * ops.minimum((step + 1.0) / self.warmup_steps, 1.0)
        if self.cycle_steps:
            within = ops.mod(ops.maximum(step - self.warmup_steps, 0.0), float(self.cycle_steps))
            rate = rate * 0.5 * (1.0 + ops.cos(math.pi * within / self.cycle_steps))
        return rate

    @property
    def is_constant(self) -> bool:
        """Whether the plan has neither warm-up nor cosine."""
        return not self.warmup_steps and not self.cycle_steps


def batch_factor(spec: RunSpec) -> float:
    """The factor on a learning rate, which options state for the reference batch."""
    ratio = spec.batch_size_global / spec.reference_batch
    return {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[spec.learning_rate_scaling]


def rate_plan(spec: RunSpec, network: str, steps_per_epoch: int) -> RatePlan:
    """The plan of one network of the run."""
    cycle = (
        spec.restart_epochs * steps_per_epoch
        if spec.learning_rate_schedule == "cosine_restarts"
        else 0
    )
    return RatePlan(
        spec.learning_rate(network) * batch_factor(spec),
        spec.warmup_epochs * steps_per_epoch,
        cycle,
    )


def rate_curves(spec: RunSpec, steps_per_epoch: int, points: int = 400) -> dict[str, np.ndarray]:
    """The rates over a whole run, for a chart: columns `epoch` (from 0) and one for each network.

    Rows are about `points` steps and both sides of every restart, so that its edge is vertical.
    """
    plans = {
        network.name: rate_plan(spec, network.name, steps_per_epoch)
        for network in spec.entry.networks
    }
    last = spec.epochs * steps_per_epoch - 1
    plan = next(iter(plans.values()))  # warm-up and cycle are equal for all networks
    restarts = (
        np.arange(plan.warmup_steps, last, plan.cycle_steps)[:points]
        if plan.cycle_steps
        else np.array([plan.warmup_steps])
    )
    steps = np.concatenate([np.linspace(0, last, points), restarts, restarts - 1])
    steps = np.unique(np.clip(np.round(steps), 0, last))
    rates = {network: plan.rate(steps, np) * np.ones(len(steps)) for network, plan in plans.items()}
    return {"epoch": steps / steps_per_epoch, **rates}


# ---- networks that an engine refuses -------------------------------------------------------------


def check_networks(program: Program, networks: Iterable[str]) -> None:
    """Raises ValueError if the program changes a network that the workload lacks."""
    if unknown := [name for name in program.networks if name not in set(networks)]:
        raise ValueError(
            f"the program changes {', '.join(unknown)}, but the workload's networks are"
            f" {', '.join(networks)}."
        )


def refuse_seed_generators(networks: Mapping[str, Any]) -> None:
    """Refuses layers with Keras' seeded generators, which give every replica the same numbers
    (decision 3) and whose state JAX does not keep.

    Raises:
        ValueError: a layer has one, such as keras.layers.Dropout; the message names the generators
            and the replacement.
    """
    for name, network in networks.items():
        weights = {id(weight) for weight in network.weights}
        seeds = [variable.path for variable in network.variables if id(variable) not in weights]
        if seeds:
            raise ValueError(
                f"the {name} draws random numbers from Keras' own generators ({', '.join(seeds)}),"
                " which are the same on every replica: use ReplicaDropout of"
                " gan_runtime/workloads/layers.py, or the phase's noise."
            )


@contextmanager
def forbid_weight_assignment(networks: Mapping[str, Any]) -> Iterator[None]:
    """A context for forward passes in which no layer can assign a trained weight, because
    TensorFlow would use the new value and JAX the old one.

    Raises:
        ValueError: a layer assigns one, such as keras.layers.SpectralNormalization.
    """
    weights = [weight for network in networks.values() for weight in network.trainable_variables]
    for weight in weights:
        vars(weight)["assign"] = _refusal(weight.path)
    try:
        yield
    finally:
        for weight in weights:
            vars(weight).pop("assign", None)


def _refusal(path: str) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError(
            f"a layer assigns its trained weight {path} in a forward pass, where engines differ:"
            " compute with a changed copy, as SpectralNorm of"
            " gan_runtime/workloads/layers.py does instead of"
            " keras.layers.SpectralNormalization."
        )

    return refuse
