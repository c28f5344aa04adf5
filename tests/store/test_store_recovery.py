"""A results.duckdb that is damaged while a dashboard is open is renamed and rebuilt from the
journals.

test_damage.py covers damage found when the home is opened.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from gan_runtime.base.errors import UnknownRunError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import StateTimer
from gan_runtime.store import ingest, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.supervision import store_recovery, supervisor
from tests.support import damaged_stores
from tests.support.fake_trainers import FakeTrainers
from tests.support.whole_stores import contents, is_read

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]


@pytest.fixture
def with_fakes(home: Home) -> Iterator[tuple[Runtime, FakeTrainers]]:
    """The owner of the home and its in-memory trainers."""
    trainers = FakeTrainers()
    runtime = Runtime.open(home, starter=trainers.starter(StateTimer(time.monotonic)))
    yield runtime, trainers
    runtime.close()


@pytest.mark.usefixtures("trained")
def test_query_during_file_damage_is_answered_from_the_new_file(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait
) -> None:
    runtime = opened()
    damaged_stores.middle(home.database)
    answers: list[Any] = []
    askers = [
        threading.Thread(
            target=lambda: answers.append(
                runtime.store.rows("SELECT sum(value) FROM scalars")[0][0]
            )
        )
        for _ in range(4)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    wait_until(lambda: runtime.refresh() or is_read(runtime), "all journals are read again")
    assert len(answers) == 4  # none was refused; the first may come before the rows are stored
    assert contents(runtime.store) == contents(ingest.store_of(home))
    assert len(runtime.recovered) == 1
    assert "is damaged (Corrupt database file" in runtime.recovered[0].problem
    assert runtime.trouble == ""


@pytest.mark.usefixtures("trained")
def test_run_that_trains_during_recovery_is_not_lost_or_ended(
    home: Home,
    with_fakes: tuple[Runtime, FakeTrainers],
    new_run: NewRun,
    wait_until: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        supervisor, "LEAVING_SECONDS", 0.0
    )  # a process considered leftover is killed at the next tick
    runtime, trainers = with_fakes
    live = new_run("quick-0003", seconds=2.0)
    runtime.refresh()
    trainers.of(live).trains(2)
    damaged_stores.middle(home.database)
    runtime.store.rows("SELECT sum(value) FROM scalars")
    wait_until(lambda: runtime.refresh() or is_read(runtime), "all journals are read again")
    for _ in range(3):
        runtime.refresh()
    assert trainers.of(live).is_alive
    assert queries.run(runtime.store, "quick-0003").status == "running"


GIVEN_UP = duckdb.FatalException(
    "FATAL Error: database has been invalidated because of a previous fatal error"
)


@pytest.mark.usefixtures("trained")
def test_invalidated_but_intact_database_is_reopened_unchanged(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_recovery, "MOST_IN_AN_HOUR", 3)
    runtime = opened()
    for _ in range(3):
        runtime.store.damage = GIVEN_UP
        wait_until(
            lambda: runtime.refresh() or runtime.store.damage is None, "the database is opened anew"
        )
        assert runtime.store.rows("SELECT count(*) FROM runs") == [(2,)]
    runtime.store.damage = GIVEN_UP
    wait_until(
        lambda: runtime.refresh() or runtime.trouble, "it is told that it happens again and again"
    )
    assert runtime.trouble.startswith(f"{home.database} was reopened 3 times within an hour (FATAL")
    monkeypatch.setattr(store_recovery, "PAUSE_SECONDS", 0.0)  # the pause is over
    wait_until(
        lambda: runtime.refresh() or runtime.store.damage is None, "the database is opened anew"
    )
    wait_until(lambda: runtime.refresh() or not runtime.trouble, "all is well")
    assert runtime.recovered == []
    assert list(home.path.glob("results.duckdb.damaged-*")) == []
    assert contents(runtime.store) == contents(ingest.store_of(home))


@pytest.mark.usefixtures("trained")
def test_invalidated_database_that_is_damaged_is_renamed(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait
) -> None:
    runtime = opened()
    damaged_stores.middle(home.database)
    runtime.store.damage = GIVEN_UP
    wait_until(lambda: runtime.refresh() or is_read(runtime), "all journals are read again")
    [healed] = runtime.recovered
    assert "Corrupt database file" in healed.problem
    assert contents(runtime.store) == contents(ingest.store_of(home))


@pytest.mark.usefixtures("trained")
def test_statement_error_is_not_damage_while_the_database_answers(
    opened: Callable[[], Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = opened()

    def refuse(*_: object) -> None:
        raise duckdb.InternalException(
            "INTERNAL Error: Attempted to access index 1 within vector of size 1"
        )

    with monkeypatch.context() as patch:
        patch.setattr("gan_runtime.store.store.SqlAnswer", refuse)  # while the statement runs
        with pytest.raises(duckdb.InternalException):
            runtime.store.rows("SELECT 1")
    assert runtime.store.damage is None
    assert runtime.store.rows("SELECT count(*) FROM runs") == [(2,)]


def test_runs_are_supervised_while_the_database_cannot_be_repaired(
    with_fakes: tuple[Runtime, FakeTrainers],
    new_run: NewRun,
    wait_until: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One is lost, one is stopped, one is removed from the queue, and one submitted meanwhile
    finishes.
    """
    runtime, trainers = with_fakes

    def is_now(run: RunDir, status: str) -> None:
        wait_until(
            lambda: runtime.refresh() or latest_status(run).status == status,
            f"{run.run_id} is {status}",
        )

    monkeypatch.setattr("gan_runtime.store.store.RENEWAL_SECONDS", 0.5)
    lost, stopped = new_run("quick-0001"), new_run("quick-0002", seconds=1.0)
    is_now(lost, "starting")
    trainers.of(lost).trains(2)
    with monkeypatch.context() as patch:
        patch.setattr(store_recovery, "MOST_IN_AN_HOUR", 0)
        runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
        runtime.refresh()
        assert "was damaged 0 times within an hour" in runtime.trouble
        trainers.of(lost).dies()
        is_now(lost, "lost")
        is_now(stopped, "starting")
        trainers.of(stopped).trains(2)
        unwanted = new_run("quick-0003", seconds=2.0)
        unwanted.request_stop("a person")
        is_now(unwanted, "stopped")
        submitted = new_run("quick-0004", seconds=3.0)
        stopped.request_stop("a person")
        is_now(stopped, "stopped")
        is_now(submitted, "starting")
        trainers.of(submitted).trains(3)
        trainers.of(submitted).finishes()
        runtime.refresh()
        assert "was damaged 0 times" in runtime.trouble
    wait_until(lambda: runtime.refresh() or is_read(runtime), "all journals are read again")
    states = {row.run_id: row.status for row in queries.runs(runtime.store)}
    assert states == {
        "quick-0001": "lost",
        "quick-0002": "stopped",
        "quick-0003": "stopped",
        "quick-0004": "finished",
    }


@pytest.mark.usefixtures("trained")
def test_disk_that_damages_every_new_file_is_reported(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_recovery, "MOST_IN_AN_HOUR", 2)
    monkeypatch.setattr("gan_runtime.store.store.RENEWAL_SECONDS", 0.5)
    runtime = opened()
    for _ in range(2):
        runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
        wait_until(
            lambda: runtime.refresh() or runtime.store.damage is None, "the database is opened anew"
        )
    runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
    wait_until(lambda: runtime.refresh() or runtime.trouble, "it is told of")
    assert f"{home.database} was damaged 2 times within an hour" in runtime.trouble
    assert "check its disk" in runtime.trouble
    assert len(list(home.path.glob("results.duckdb.damaged-*"))) == 2
    assert len(runtime.recovered) == 2
    assert store_recovery.MAX_RETAINED == 3


@pytest.mark.usefixtures("trained")
def test_damaged_file_deleted_before_its_rename_is_rebuilt(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait
) -> None:
    runtime = opened()
    home.database.unlink()  # by a user, or by an earlier try that could not open a new one
    runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
    wait_until(
        lambda: runtime.refresh() or runtime.store.damage is None,
        "the database is opened anew",
        seconds=20.0,
    )
    runtime.refresh()
    assert runtime.trouble == ""
    assert contents(runtime.store) == contents(ingest.store_of(home))
    assert runtime.recovered == []  # there was no file to rename


@pytest.mark.usefixtures("trained")
def test_rebuild_is_shown_until_complete_even_without_a_rename(
    home: Home, opened: Callable[[], Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query during the rebuild waits, or its answer warns that rows may be missing."""
    runtime = opened()
    states: list[bool] = []
    catch_up = Ingestor.catch_up_news

    def slowly(self: Ingestor, at_once: bool = False) -> int:
        states.append(runtime.is_reading)
        return catch_up(self, at_once)

    assert not runtime.is_reading
    with monkeypatch.context() as patch:
        patch.setattr(Ingestor, "catch_up_news", slowly)
        home.database.unlink()
        runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
        runtime.refresh()
    assert True in states
    assert not runtime.is_reading
    assert contents(runtime.store) == contents(ingest.store_of(home))


@pytest.mark.usefixtures("trained")
def test_moved_open_home_is_reported_and_its_runs_stay(
    home: Home, opened: Callable[[], Runtime], caplog: pytest.LogCaptureFixture
) -> None:
    """The list of runs does not become empty, and work resumes when the home is moved back."""
    runtime = opened()
    runs = queries.runs(runtime.store)
    elsewhere = home.path.rename(home.path.with_name("elsewhere"))
    runtime.refresh()
    assert f"{home.path} was moved or deleted" in runtime.trouble
    assert "the owner could not act: " in caplog.text
    assert "Traceback" not in caplog.text
    assert queries.runs(runtime.store) == runs
    with pytest.raises(UnknownRunError, match="there is no such folder"):
        home.run_dir(runs[0].run_id)
    elsewhere.rename(home.path)
    runtime.refresh()
    assert runtime.trouble == ""
