"""Programs: batches and updates of a step follow from its phases; inconsistent programs are
refused.
"""

from __future__ import annotations

import re

import pytest

from gan_runtime.workloads.contract import Forward, Phase, Program, Update

CRITIC, PAINTER = Update("critic", "distance"), Update("painter", "distance")


def forward(*_: object) -> Forward:
    raise AssertionError("no phase is run here")


def phase(name: str, *updates: Update, batch: int = 0) -> Phase:
    return Phase(name, forward, updates, batch)


def test_a_step_of_five_critic_phases_and_one_painter_takes_five_batches() -> None:
    critics = [phase(f"judge_{number}", CRITIC, batch=number) for number in range(5)]
    program = Program((*critics, phase("paint", PAINTER)))
    assert (program.batches, program.networks) == (5, ("critic", "painter"))
    assert [program.updates_of(name) for name in ("critic", "painter", "stranger")] == [5, 1, 0]
    assert [phase.name for phase in program.phases_of("painter")] == ["paint"]


@pytest.mark.parametrize(
    ("phases", "sentence"),
    [
        ((), "a program without phases trains nothing: add a phase."),
        (
            (phase("judge", CRITIC), phase("judge", CRITIC)),
            "several phases have the name judge: use unique names.",
        ),
        (
            (phase("judge", CRITIC), phase("paint", PAINTER, batch=2)),
            "no phase uses batch 1, but one uses batch 2: number them 0, 1, 2, … without gaps.",
        ),
        (
            (phase("judge", CRITIC, batch=1),),
            "no phase uses batch 0, but one uses batch 1: number them 0, 1, 2, … without gaps.",
        ),
        (
            (phase("both", CRITIC, PAINTER, CRITIC),),
            "phase both updates a network twice: split it into two phases.",
        ),
    ],
)
def test_an_inconsistent_program_is_refused(phases: tuple[Phase, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Program(phases)


def test_an_update_can_follow_another_loss_when_losses_are_scaled() -> None:
    opposed = Update("painter", "distance", loss_when_scaled="own")
    assert (opposed.followed(loss_scaling=False), opposed.followed(loss_scaling=True)) == (
        "distance",
        "own",
    )
    assert PAINTER.followed(loss_scaling=True) == "distance"
