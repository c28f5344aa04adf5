"""What a run trains, worked out once from its options, its workload and the fields of its
data, for both engines.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gan_runtime.base.fields import Fields
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.data.contract import ChosenFields, DataSet
from gan_runtime.engines.state_names import average_owners
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Program, Workload

# ----------------------------------------------------------------------
# How many rows a step takes and how often it changes each network: from the program alone, for both
# engines.


@dataclass(frozen=True)
class StepPlan:
    """`batches`: of real rows in a step, of `batch_size_global` rows each.

    `rows`: of the training set.

    `updates`: how often a step changes each network that it changes at all.
    """

    batches: int
    batch_size_global: int
    rows: int
    updates: dict[str, int]

    @property
    def rows_per_step(self) -> int:
        """Real rows that one step takes from the set."""
        return self.batches * self.batch_size_global

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one pass over the set; the last incomplete one is dropped."""
        return self.rows // self.rows_per_step


def step_plan(spec: RunSpec, program: Program, rows: int) -> StepPlan:
    """The plan of a run on a set of `rows` training rows."""
    updates = {network: program.updates_of(network) for network in program.networks}
    return StepPlan(program.batches, spec.batch_size_global, rows, updates)


def check_batches(spec: RunSpec, program: Program) -> None:
    """Raises ValueError when the workload's entry counts other batches than its program:
    rates and estimates would be wrong.
    """
    told = spec.entry.batches(spec.of_workload)
    if told != program.batches:
        raise ValueError(
            f"a step of {spec.workload} takes {program.batches} batches of real rows, but its entry"
            f" in the catalog says {told}: let `batches` there give the same number."
        )


def check_networks(program: Program, networks: Iterable[str]) -> None:
    """Raises ValueError when the program changes a network that the workload does not have."""
    if unknown := [name for name in program.networks if name not in set(networks)]:
        raise ValueError(
            f"the program changes {', '.join(unknown)}, but the workload's networks are"
            f" {', '.join(networks)}."
        )


@dataclass(frozen=True)
class EngineTask:
    """`options`: of the workload alone.

    `fields`: of a batch. `plan`: rows and updates of a step.
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
        """See `average_owners`; empty in a run that keeps none."""
        return average_owners(self.entry) if self.spec.ema_decay else {}

    @property
    def steps(self) -> int:
        """Of the whole training."""
        return self.spec.epochs * self.plan.steps_per_epoch

    @property
    def is_loss_scaled(self) -> bool:
        """Whether each loss has a factor of its own on the way back: half precision needs it."""
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


def read_by_workload(spec: RunSpec, data: DataSet) -> DataSet:
    """The data set with those fields only that the run's workload reads.

    Raises:
        DatasetError: they do not fit the workload; the message gives the reason.
    """
    return ChosenFields(data, spec.entry.reads(spec.of_workload, data.fields))
