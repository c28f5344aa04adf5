"""States do not depend on the clocks of files and records, and a process.json damaged by a power
loss ends no other process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.identity import SILENCE_SECONDS, ProcessIdentity
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, latest_status, write_json
from gan_runtime.supervision.starters import HANDSHAKE_SECONDS
from tests.support.toy_owner import Owner

NewRun = Callable[..., RunDir]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_clock_set_back_an_hour_neither_hides_nor_repeats_an_end(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's clock is set back after the trainer wrote, so all that the owner writes seems
    older.
    """
    run = new_run("quick-0001", seconds=3_000)
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(at=NOON + timedelta(minutes=55), status="running", reason="training"),
    )
    write_json(run.process_file, {"pid": os.getpid(), "started": 1.0, "attempt": 1})
    owner = Owner(home)
    monkeypatch.setattr("gan_runtime.records.record.now", lambda: NOON)
    for _ in range(3):
        owner.tick()
    states = [(change.at, change.status) for _, change in journal.statuses(run.supervisor_journal)]
    assert states == [(NOON + timedelta(minutes=50), "queued"), (NOON, "lost")]
    assert (owner.status(run), latest_status(run).status) == ("lost", "lost")


def test_handshake_timeout_uses_the_owners_monotonic_clock(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    later = journal.now() + timedelta(hours=1)  # from a clock that is an hour ahead
    journal.append(
        run.supervisor_journal,
        1,
        StatusChange(at=later, status="starting", reason="starting a trainer"),
    )
    owner = Owner(home)
    owner.tick()
    owner.clock.now = HANDSHAKE_SECONDS - 1
    owner.tick()
    assert owner.status(run) == "starting"
    owner.clock.now = HANDSHAKE_SECONDS + 1
    owner.tick()
    assert owner.status(run) == "lost"


def test_cluster_run_is_lost_after_silence_on_the_owners_clock(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    write_json(run.process_file, {"pid": 1, "started": 1.0, "attempt": 1, "cluster_host": "node-1"})
    os.utime(run.trainer_journal(), (1.0, 1.0))  # the file server's clock is at 1970
    os.utime(run.supervisor_journal, (1.0, 1.0))
    monkeypatch.setattr("gan_runtime.records.run_files.now_in", lambda _: 1.0)
    owner = Owner(home)
    for owner.clock.now in (0.0, SILENCE_SECONDS - 1):
        owner.tick()
    assert owner.status(run) == "running"
    journal.append(run.trainer_journal(), 1, journal.PhaseSeconds(phase="probe", seconds=1.0))
    for owner.clock.now in (SILENCE_SECONDS + 1, 2 * SILENCE_SECONDS):
        owner.tick()
    assert owner.status(run) == "running"
    owner.clock.now = 2 * SILENCE_SECONDS + 2
    owner.tick()
    assert owner.status(run) == "lost"


# ---- invalid process.json ------------------------------------------------------------------------


INVALID_PROCESS_FILES = (
    [
        "",
        "{",
        '{"pid": 1',
        "[]",
        "[1, 2]",
        "null",
        "7",
        "{}",
        '{"pid": 1, "started": 1.0}',
        "\0" * 80,
    ]
    + [
        f'{{"pid": {pid}, "started": 1.0, "attempt": 1}}'
        for pid in ('"x"', "-1", "0", "1e400", str(2**40), "true", "null")
    ]
    + [
        f'{{"pid": 1, "started": 1.0, "attempt": 1, "workers": {workers}}}'
        for workers in ('"x"', "[1]", '[{"pid": -1}]', "{}")
    ]
)


def test_each_invalid_process_file_counts_as_missing(home: Home, new_run: NewRun) -> None:
    runs = [new_run(f"quick-{number:04d}") for number in range(1, len(INVALID_PROCESS_FILES) + 1)]
    for run, content in zip(runs, INVALID_PROCESS_FILES, strict=True):
        journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
        run.process_file.write_text(content, encoding="utf-8")
    assert [run.process() for run in runs] == [None] * len(runs)
    owner = Owner(home)
    owner.tick()
    owner.clock.now = HANDSHAKE_SECONDS + 1
    for run in runs:
        run.request_stop("a test")
    owner.tick()
    assert {run.run_id: owner.status(run) for run in runs} == {
        run.run_id: "stopped" for run in runs
    }


def test_process_is_identified_by_its_start_despite_clock_changes() -> None:
    identity = ProcessIdentity.of(os.getpid())
    set_back = identity.model_copy(update={"started": identity.started - 3_600.0})
    assert set_back.process() is not None
    assert identity.model_copy(update={"born": "another-boot:1"}).process() is None
    before_born_was_recorded = ProcessIdentity(pid=os.getpid(), started=identity.started)
    assert before_born_was_recorded.process() is not None
