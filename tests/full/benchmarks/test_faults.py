"""Scenarios of `make faults`: one of some kinds each, with a fixed seed."""

from __future__ import annotations

import pytest

from benchmarks.faults.scenario import play

# One scenario of each: together 49 s of two idle cores, by the medians of the 200 in
# benchmarks/results/faults.jsonl, and 3 s for the undisturbed run. What other tests try one by one
# is left to `make faults`.
TRIED = (
    *(
        "kill_worker",
        "kill_launcher",
        "kill_all",
        "kill_at_operation",
        "kill_in_a_write",
        "cut_journal",
    ),
    *(
        "fill_disk",
        "freeze_and_thaw",
        "race_owners",
        "shift_clock",
        "kill_import",
        "damage_checkpoint",
    ),
)


@pytest.mark.parametrize("kind", TRIED)
def test_no_data_is_lost_after_a_fault(kind: str) -> None:
    result = play(7, kind)
    assert result.problems == (), result.line
    assert result.ends[-1] == "finished"
