"""Estimated epoch times are read from stored results and paired with measurements of the same
machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.studies import references


def record(side: str, topology: str, epoch_s: float) -> dict[str, Any]:
    return {
        "row": "cycles",
        "kind": "epoch",
        "side": side,
        "topology": topology,
        "epoch_s": epoch_s,
    }


def test_only_the_authors_program_has_an_estimation_error(tmp_path: Path) -> None:
    results = tmp_path / "latest.jsonl"
    records = [
        {"row": "cycles", "kind": "facts"},
        record("keras", "v2:2x2", 1164.79),
        record("ours", "v3:2x2", 100.0),
    ]
    results.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    plain, ours = references.stored_estimates(results)
    assert (plain.program, plain.machine) == ("3DGAN in plain Keras on JAX", "TPU v2-8")
    assert plain.measured is not None
    assert plain.measured.seconds == 1058.9
    assert plain.error == pytest.approx(0.1)
    assert (ours.program, ours.machine, ours.measured, ours.error) == (
        "3DGAN of this project",
        "TPU v3-8",
        None,
        None,
    )


def test_missing_results_give_no_estimates(tmp_path: Path) -> None:
    assert references.stored_estimates(tmp_path / "latest.jsonl") == ()


def test_machine_lists_known_estimates_of_both_programs() -> None:
    epochs = references.epoch_estimates(
        [record("ours", "v2:2x2", 200.0), record("keras", "v3:2x2", 416.3)]
    )
    old, new = references.by_machine(epochs)
    assert (old.machine, old.measured_s, old.plain_s, old.own_s) == (
        "TPU v2-8",
        1058.9,
        None,
        200.0,
    )
    assert (old.error, old.times_as_fast) == (None, None)
    assert (new.machine, new.error, new.own_s) == ("TPU v3-8", 0.0, None)
    both = [record("keras", "v3:2x2", 416.0), record("ours", "v3:2x2", 104.0)]
    (machine,) = references.by_machine(references.epoch_estimates(both))
    assert machine.times_as_fast == 4.0
    assert references.by_machine(()) == ()
