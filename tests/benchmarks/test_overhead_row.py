"""Turns of a run that end an epoch: the row charges probes, grid and checkpoint to them."""

from __future__ import annotations

from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows.overhead import turns_of
from benchmarks.turns import Turn
from gan_runtime.training.loop import call_lengths

EPOCH = 30
STEP_S, END_S = 1.0, 100.0


class LoopSide:
    """A run of the training loop in host calls of ten steps, paused before the first call and
    between calls.
    """

    name = "run"

    def __init__(self) -> None:
        self._calls = call_lengths(EPOCH, 10, first_alone=True)

    def turn(self, steps: int) -> Turn:
        """Runs calls until the requested steps are done; an epoch end belongs to the call that ends
        it.
        """
        done, seconds = 0, 0.0
        while done < steps:
            call = self._calls.pop(0)
            done, seconds = done + call, seconds + call * STEP_S
            if not self._calls:
                seconds += END_S
                self._calls = call_lengths(EPOCH, 10, first_alone=False)
        return Turn(done, seconds)


class BareSide:
    """Only steps, without epoch ends."""

    name = "engine"

    def turn(self, steps: int) -> Turn:
        """Runs exactly the requested steps."""
        return Turn(steps, steps * STEP_S)


def test_the_end_of_an_epoch_is_charged_to_its_turn() -> None:
    effort = Effort(rounds=3, steps=10, batch=1, images=EPOCH)
    full, bare, ends = turns_of(Report("overhead"), LoopSide(), BareSide(), effort, EPOCH)
    assert [turn.seconds > END_S for turn in full] == ends
    assert sum(ends) == 3
    assert [turn.steps for turn in bare] == [turn.steps for turn in full]
