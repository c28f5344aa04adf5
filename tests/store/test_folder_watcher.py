"""The scan that an owner makes four times a second: ended runs cost nothing, and their changes are
not missed for long.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import PhaseSeconds, StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.folder_watcher import (
    RECENT_SECONDS,
    ROUND_SECONDS,
    SETTLING_SECONDS,
    TRAINING_SECONDS,
)
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support.asking import ask_of

NewRun = Callable[..., RunDir]


class Clock:
    """A clock that only the test advances."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def ended(new_run: NewRun) -> list[RunDir]:
    """Twelve stopped runs."""
    runs = [new_run(f"quick-{number:04d}", seconds=number) for number in range(1, 13)]
    for run in runs:
        journal.append(
            run.supervisor_journal, 1, StatusChange(status="stopped", reason="taken from the queue")
        )
    return runs


@pytest.fixture
def ingestor(home: Home, store: Store, ended: list[RunDir], clock: Clock) -> Ingestor:  # noqa: ARG001 (the runs must exist first)
    """The ingestor of an owner that has ingested everything and has been idle for a while."""
    ingest = Ingestor(home, store, clock)
    ingest.catch_up()
    clock.now += SETTLING_SECONDS + RECENT_SECONDS
    ingest.catch_up_news()
    clock.now += SETTLING_SECONDS
    ingest.catch_up_news()
    return ingest


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, ingestor: Ingestor) -> list[str]:  # noqa: ARG001 (counts once it is idle)
    """Ids of the runs whose folders were read."""
    run_ids: list[str] = []
    stats = RunDir.journal_stats

    def counted(run: RunDir) -> dict[str, journal.Standing]:
        run_ids.append(run.run_id)
        return stats(run)  # type: ignore[return-value]

    monkeypatch.setattr(RunDir, "journal_stats", counted)
    return run_ids


def test_ended_runs_are_read_once_per_round_not_at_each_scan(
    ingestor: Ingestor, looks: list[str], clock: Clock, ended: list[RunDir]
) -> None:
    for _ in range(int(4 * ROUND_SECONDS)):
        clock.now += 0.25
        ingestor.catch_up_news()
    assert len(ended) <= len(looks) <= len(ended) + 1
    assert set(looks) == {run.run_id for run in ended}


def test_live_run_is_read_at_each_scan_and_for_a_while_after_it_ends(
    ingestor: Ingestor, looks: list[str], clock: Clock, new_run: NewRun
) -> None:
    run = new_run("quick-0099")
    assert ingestor.catch_up_news() == 2
    clock.now += 10 * ROUND_SECONDS
    journal.append(
        run.trainer_journal(), 1, StatusChange(status="failed", reason="worker 0 said so first")
    )
    assert ingestor.catch_up_news() == 1
    clock.now += RECENT_SECONDS / 2
    journal.append(
        run.launcher_journal, 1, StatusChange(status="failed", reason="worker 1 was killed")
    )
    assert ingestor.catch_up_news() == 1
    clock.now += 2 * RECENT_SECONDS
    ingestor.catch_up_news()
    looks.clear()
    ingestor.catch_up_news()
    assert looks == []


def test_training_run_is_committed_at_most_twice_a_second_but_a_request_at_once(
    ingestor: Ingestor, store: Store, clock: Clock, new_run: NewRun
) -> None:
    run = new_run("quick-0099")
    journal.append(run.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    assert ingestor.catch_up_news() == 3
    journal.append(run.trainer_journal(), 1, PhaseSeconds(phase="build", seconds=1.0))
    clock.now += TRAINING_SECONDS / 2
    assert ingestor.catch_up_news() == 0
    assert ingestor.catch_up_news(at_once=True) == 1
    journal.append(run.trainer_journal(), 1, PhaseSeconds(phase="trace", seconds=1.0))
    assert ingestor.catch_up_news() == 0
    clock.now += TRAINING_SECONDS
    assert ingestor.catch_up_news() == 1
    ask_of(run).rename(run.run_id, "mine")
    assert ingestor.catch_up_news() == 1
    assert queries.run(store, run.run_id).name == "mine"


def test_requests_for_an_ended_run_are_seen_immediately(
    ingestor: Ingestor, store: Store, ended: list[RunDir]
) -> None:
    ask_of(ended[4]).rename(ended[4].run_id, "fifth")
    assert ingestor.catch_up_news() == 1
    ask_of(ended[5]).resume(ended[5].run_id)
    assert ingestor.catch_up_news() == 1
    assert queries.run(store, ended[4].run_id).name == "fifth"
    assert queries.run(store, ended[5].run_id).status == "queued"


def test_added_or_removed_folder_is_seen_immediately(
    ingestor: Ingestor, store: Store, ended: list[RunDir], home: Home
) -> None:
    shutil.copytree(ended[0].path, home.path / "copy")
    shutil.rmtree(ended[0].path)
    assert ingestor.catch_up_news() == 1
    (home.path / "copy").rename(home.runs / "quick-0100")
    assert ingestor.catch_up_news() == 3
    assert ended[0].run_id not in [row.run_id for row in queries.runs(store)]
    assert queries.run(store, "quick-0100").status == "stopped"


def test_manual_change_is_seen_within_a_round(
    ingestor: Ingestor, store: Store, clock: Clock, ended: list[RunDir]
) -> None:
    """Added lines or a restored journal do not change the modification time of a folder."""
    added, replaced = ended[2], ended[3]
    journal.append(added.supervisor_journal, 1, journal.Renamed(name="third"))
    lines = replaced.supervisor_journal.read_bytes().splitlines(keepends=True)
    replaced.supervisor_journal.write_bytes(lines[0].replace(b"12:00:04", b"12:30:00") + lines[1])
    news = ingestor.catch_up_news()
    for _ in range(int(ROUND_SECONDS) + 1):
        clock.now += 1.0
        news += ingestor.catch_up_news()
    assert news == 1 + 1 + 2  # the name; deleting the old rows; two new lines
    assert (queries.run(store, added.run_id).name, queries.run(store, replaced.run_id).status) == (
        "third",
        "queued",
    )


def test_two_changes_within_one_file_system_tick_are_both_seen(
    ingestor: Ingestor, clock: Clock, home: Home, ended: list[RunDir]
) -> None:
    ask_of(ended[0]).rename(ended[0].run_id, "first")
    before = home.runs.stat().st_mtime_ns
    assert ingestor.catch_up_news() == 1
    ask_of(ended[1]).rename(ended[1].run_id, "second")
    os.utime(home.runs, ns=(before, before))
    clock.now += 0.25
    assert ingestor.catch_up_news() == 1


def test_change_that_could_not_be_stored_is_read_again(
    ingestor: Ingestor,
    store: Store,
    ended: list[RunDir],
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
) -> None:
    """The change is announced once, so a scan that fails, such as on a full disk, is repeated."""
    journal.append(ended[0].trainer_journal(), 1, PhaseSeconds(phase="build", seconds=1.0))
    ended[0].announce()

    def refuse(_: Store) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Store, "transaction", refuse)
        with pytest.raises(MemoryError):
            ingestor.catch_up_news()
    clock.now += SETTLING_SECONDS + 1
    assert ingestor.catch_up_news() == 1
    assert store.rows("SELECT seconds FROM phases") == [(1.0,)]
