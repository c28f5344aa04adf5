"""The newest state of a run follows from the journals alone, whatever their writers' clocks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Renamed, Status, StatusChange
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store import ingest, queries
from tests.support.asking import ask_of

NewRun = Callable[..., RunDir]
At = Callable[[float], datetime]

# Written by an earlier version, byte for byte; its trainer's clock was an hour ahead.
OLD_SUPERVISOR = (
    '{"attempt":1,"at":"2026-01-01T12:00:00Z","kind":"created","spec":{"name":"","workload":"mlp_gan","dataset":"digits","replicas":2,"precision":"float32","batch_size_global":64,"epochs":3,"seed":1},"accelerator":"cpu","color":2,"preset":"quick"}\n{"attempt":1,"at":"2026-01-01T12:00:00Z","kind":"status","status":"queued","reason":"waiting'
    " for the"
    ' accelerator","queue_rank":1.0}\n{"attempt":1,"at":"2026-01-01T12:00:01Z","kind":"status","status":"starting","reason":"starting'  # noqa: E501
    " a trainer on"
    ' cpu","queue_rank":null}\n{"attempt":1,"at":"2026-01-01T12:05:00Z","kind":"status","status":"lost","reason":"the'  # noqa: E501
    ' trainer process is gone","queue_rank":null}\n'
)
OLD_TRAINER = (
    '{"attempt":1,"at":"2026-01-01T13:00:03Z","kind":"status","status":"compiling","reason":"building","queue_rank":null}\n'
    '{"attempt":1,"at":"2026-01-01T13:00:09Z","kind":"status","status":"running","reason":"training","queue_rank":null}\n'
)


def write(run: RunDir, name: str, attempt: int, status: Status, at: datetime) -> None:
    change = StatusChange(
        at=at, status=status, reason=f"{name} says {status}", queue_rank=at.timestamp()
    )
    journal.append(run.path / f"journal-{name}.jsonl", attempt, change)


@pytest.mark.parametrize(
    ("states", "newest"),
    [
        ([("0", 1, "running", 60), ("0", 1, "finished", 0)], "0 says finished"),
        ([("supervisor", 1, "starting", 60), ("0", 1, "compiling", 0)], "0 says compiling"),
        ([("0", 1, "running", 60), ("supervisor", 1, "lost", 0)], "supervisor says lost"),
        ([("0", 1, "failed", 60), ("supervisor", 2, "queued", 0)], "supervisor says queued"),
        ([("supervisor", 1, "lost", 60), ("0", 1, "finished", 0)], "0 says finished"),
        ([("0", 1, "failed", 60), ("1", 1, "failed", 0)], "0 says failed"),
        ([("2", 1, "failed", 60), ("1", 1, "failed", 0)], "1 says failed"),
        ([("0", 1, "failed", 60), ("launcher", 1, "lost", 0)], "launcher says lost"),
        (
            [("supervisor", 1, "starting", 0), ("supervisor", 1, "queued", 60)],
            "supervisor says starting",
        ),
    ],
)
def test_the_newest_state_is_the_last_stage_of_the_last_attempt(
    home: Home, new_run: NewRun, at: At, states: list[tuple[str, int, Status, float]], newest: str
) -> None:
    run = new_run("quick-0001", seconds=30)
    for name, attempt, status, seconds in states:
        write(run, name, attempt, status, at(seconds))
    run_row = queries.run(ingest.store_of(home), run.run_id)
    assert (run_row.note, latest_status(run).reason) == (newest, newest)


def test_last_queue_place_and_last_name_count(home: Home, new_run: NewRun, at: At) -> None:
    run = new_run("quick-0001", seconds=30)
    for seconds, name in ((20, "second"), (10, "third")):  # the clock goes backwards
        write(run, "supervisor", 1, "queued", at(seconds))
        journal.append(run.supervisor_journal, 1, Renamed(at=at(seconds), name=name))
    store = ingest.store_of(home)
    assert store.rows("SELECT name, queue_rank FROM runs") == [("third", at(10).timestamp())]


def test_old_journal_opens_with_the_correct_state(home: Home) -> None:
    run = RunDir(home.runs / "quick-0001")
    run.path.mkdir()
    run.supervisor_journal.write_text(OLD_SUPERVISOR, encoding="utf-8")
    run.trainer_journal().write_text(OLD_TRAINER, encoding="utf-8")
    run_row = queries.run(ingest.store_of(home), run.run_id)
    assert (run_row.status, run_row.replicas, run_row.workers, run_row.color) == ("lost", 2, 1, 2)
    assert latest_status(run).status == "lost"
    ask_of(run).resume(run.run_id)
    assert queries.run(ingest.store_of(home), run.run_id).attempt == 2
