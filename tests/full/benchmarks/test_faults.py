"""Scenarios of `make faults`: one each of some kinds, with a fixed seed."""

from __future__ import annotations

import pytest

from benchmarks.faults.scenario import play

# One scenario of each: 49 s in total on two idle cores, by the medians of the 200 in
# benchmarks/results/faults.jsonl, and 3 s for the undisturbed run. Faults that other tests try
# individually are left to `make faults`.
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
