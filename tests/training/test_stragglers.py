"""Detects slow workers from the times that workers exchange."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.engines.contract import WorkerSeconds
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.training.workers import WorkerLog, straggler


@pytest.mark.parametrize(
    ("compute_s", "slowest"),
    [
        ([0.10, 0.10], None),
        ([0.10, 0.14], None),
        ([0.10, 0.16], 1),
        ([0.50, 0.10, 0.11, 0.30], 0),
        ([0.30, 0.31, 0.30, 0.10], None),
        ([0.10], None),
        ([], None),
    ],
)
def test_the_slowest_worker_is_named_only_above_the_limit(
    compute_s: list[float], slowest: int | None
) -> None:
    assert straggler(compute_s) == slowest


def test_epoch_has_at_most_one_warning_and_the_compiling_call_is_ignored(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal-0.jsonl"
    with JournalWriter(path) as writer:
        log = WorkerLog(writer, rank=0)
        for compute_s in [(9.0, 0.0), (0.01, 0.02), (0.01, 0.02), (0.01, 0.03)]:
            log.call(1, 2, 5, WorkerSeconds(0.01, 0.02, compute_s))
        log.epoch_done(1)
        log.epoch_done(2)
    records = journal.read_all(path)
    assert sum(isinstance(record, journal.WorkerTimes) for record in records) == 4
    events = [record for record in records if isinstance(record, journal.Event)]
    assert [(event.level, event.topic, event.message) for event in events] == [
        (
            "warning",
            "straggler",
            (
                "Worker 1 is slow in epoch 1: it computes 20.0 ms per step, the others 10.0 ms, and"
                " they wait."
            ),
        )
    ]
