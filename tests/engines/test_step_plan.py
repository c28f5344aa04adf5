"""Rows, steps and updates of a program, and programs that match neither the catalog nor the
networks.
"""

from __future__ import annotations

import pytest

from gan_runtime.engines.task import check_batches, check_networks, step_plan
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Forward, Phase, Program, Update


def forward(*_: object) -> Forward:
    raise AssertionError("no phase is run here")


JUDGE, PAINT = Update("discriminator", "loss"), Update("generator", "loss")
THREE_TO_ONE = Program(
    (
        *(Phase(f"judge_{k}", forward, (JUDGE,), k) for k in range(3)),
        Phase("paint", forward, (PAINT,)),
    )
)


def test_step_takes_the_rows_of_all_its_batches() -> None:
    plan = step_plan(RunSpec.parse({"batch_size_global": 64}), THREE_TO_ONE, rows=1_797)
    assert (plan.batches, plan.rows_per_step, plan.steps_per_epoch) == (3, 192, 9)
    assert plan.updates == {"discriminator": 3, "generator": 1}


def test_catalog_with_another_batch_count_is_refused() -> None:
    check_batches(RunSpec.parse({"updates": "in_turn", "discriminator_steps": 3}), THREE_TO_ONE)
    with pytest.raises(
        ValueError, match="takes 3 training batches, but its catalog entry declares 1"
    ):
        check_batches(RunSpec.parse({}), THREE_TO_ONE)


def test_program_that_updates_a_missing_network_is_refused() -> None:
    check_networks(THREE_TO_ONE, ("generator", "discriminator"))
    with pytest.raises(
        ValueError, match="changes discriminator, but the workload's networks are generator"
    ):
        check_networks(THREE_TO_ONE, ("generator",))
