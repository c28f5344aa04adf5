"""How many rows a step takes and how often it changes each network: from the program alone, for both engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Program


@dataclass(frozen=True)
class StepPlan:
    """`batches`: of real rows in a step, of `batch_size_global` rows each. `rows`: of the training set.

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
    """Raises ValueError when the workload's entry counts other batches than its program: rates and estimates would be wrong."""
    told = spec.entry.batches(spec.of_workload)
    if told != program.batches:
        raise ValueError(
            f"a step of {spec.workload} takes {program.batches} batches of real rows, but its entry in the catalog says {told}: "
            "let `batches` there give the same number."
        )


def check_networks(program: Program, networks: Iterable[str]) -> None:
    """Raises ValueError when the program changes a network that the workload does not have."""
    if unknown := [name for name in program.networks if name not in set(networks)]:
        raise ValueError(
            f"the program changes {', '.join(unknown)}, but the workload's networks are {', '.join(networks)}."
        )
