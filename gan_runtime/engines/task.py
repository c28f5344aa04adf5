"""What a run trains, derived once from its options, its workload and the fields of its data."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gan_runtime.base.fields import Fields
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.data.contract import DataSet, FieldSelection
from gan_runtime.engines.contract import AVERAGE
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Program, Workload


@dataclass(frozen=True)
class StepPlan:
    """Rows and updates of a step, from the program alone.

    `batches`: of training rows in a step, of `batch_size_global` rows each.
    `rows`: of the training set. `updates`: per step, of each network that a step changes.
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
        """Steps of one pass over the set; an incomplete last one is dropped."""
        return self.rows // self.rows_per_step


def step_plan(spec: RunSpec, program: Program, rows: int) -> StepPlan:
    """The plan of a run on a set of `rows` training rows."""
    updates = {network: program.updates_of(network) for network in program.networks}
    return StepPlan(program.batches, spec.batch_size_global, rows, updates)


def check_batches(spec: RunSpec, program: Program) -> None:
    """Raises ValueError when the workload's entry declares another number of batches than its
    program takes: learning rates and estimates would be wrong.
    """
    batches = spec.entry.batches(spec.of_workload)
    if batches != program.batches:
        raise ValueError(
            f"a step of {spec.workload} takes {program.batches} training batches, but its catalog"
            f" entry declares {batches}: return {program.batches} from `batches` of that entry."
        )


def average_owners(entry: WorkloadEntry) -> dict[str, str]:
    """Network that is averaged → owner of its average's arrays: "average" for the first network,
    "average_NETWORK" for others.
    """
    first, *further = entry.averages
    return {first: AVERAGE, **{name: f"{AVERAGE}_{name}" for name in further}}


@dataclass(frozen=True)
class EngineTask:
    """`options`: of the workload. `fields`: of a batch. `plan`: rows and updates of a step."""

    spec: RunSpec
    workload: Workload
    entry: WorkloadEntry
    options: Any
    fields: Fields
    program: Program
    plan: StepPlan

    @property
    def averages(self) -> dict[str, str]:
        """As `average_owners`; empty in a run without moving averages."""
        return average_owners(self.entry) if self.spec.ema_decay else {}

    @property
    def steps(self) -> int:
        """Of the whole training."""
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
    """The data set with those fields only that the run's workload reads.

    Raises:
        DatasetError: they do not fit the workload; the message gives the reason.
    """
    return FieldSelection(data, spec.entry.reads(spec.of_workload, data.fields))


# ---- networks that an engine refuses -------------------------------------------------------------


def check_networks(program: Program, networks: Iterable[str]) -> None:
    """Raises ValueError when the program changes a network that the workload does not have."""
    if unknown := [name for name in program.networks if name not in set(networks)]:
        raise ValueError(
            f"the program changes {', '.join(unknown)}, but the workload's networks are"
            f" {', '.join(networks)}."
        )


def refuse_seed_generators(networks: Mapping[str, Any]) -> None:
    """Keras' seeded generators give every replica the same numbers (decision 3), and JAX does not
    carry their state along.

    Raises:
        ValueError: for a layer such as keras.layers.Dropout; the message names the generators and
            the replacement.
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
    """Around a forward pass: no layer may assign a weight that gradients move, because TensorFlow
    would use the new value and JAX the old one.

    Raises:
        ValueError: from the layer that tries, such as keras.layers.SpectralNormalization.
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
