"""The store heals: a results.duckdb that cannot be used is set aside and made anew from the journals, at the start or while a dashboard is open."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gan_runtime.errors import (
    HomeError,
    StoreDamagedError,
    StoreError,
    StoreNewerError,
    TargetError,
    UnknownRunError,
)
from gan_runtime.home import REPOSITORY, Home
from gan_runtime.patience import Patience
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import aside, healing, owner
from gan_runtime.runtime.rebuild import rebuild
from gan_runtime.runtime.runtime import Runtime
from gan_runtime.runtime.starters.local import LocalStarter
from gan_runtime.store import memory, opening, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.opening import SCHEMA_VERSION
from gan_runtime.store.store import Store
from tests.support import damaged_stores, toy_trainer
from tests.support.trainers import end_trainers, processes_of

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
VIEWS = ("runs", "scalars", "epochs", "events")
CALLS, STEPS = 60, 1_000
LONG_TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2_000, "precision": "float32"}


@pytest.fixture
def trained(home: Home, new_run: NewRun) -> RunDir:
    """A run whose numbers fill blocks of the database."""
    run, numbers = new_run("quick-0001"), random.Random(0)
    records: list[journal.Record] = [journal.AttemptStart(resume_step=0)]
    for call in range(CALLS):
        values = [numbers.random() for _ in range(STEPS)]
        first = 1 + call * STEPS
        records.append(
            journal.Scalars(epoch=1, first_step=first, wall_s=values, values={"loss_generator": values})
        )
    journal.append(run.trainer_journal(), 1, *records, StatusChange(status="finished", reason="done"))
    new_run("quick-0002", seconds=1.0)
    second = home.run_dir("quick-0002")
    journal.append(
        second.supervisor_journal, 1, StatusChange(status="stopped", reason="taken from the queue")
    )
    rebuild(home)
    return run


@pytest.fixture
def opened(home: Home) -> Iterator[Callable[[], Runtime]]:
    """Opens the home as a dashboard does."""
    runtimes: list[Runtime] = []

    def begin() -> Runtime:
        runtimes.append(Runtime.open(home))
        return runtimes[-1]

    yield begin
    for runtime in runtimes:
        runtime.close()


def contents(store: Store) -> dict[str, set[str]]:
    """Rows of the views that journals fill."""
    return {view: {repr(row) for row in store.rows(f"SELECT * FROM {view}")} for view in VIEWS}


def is_read(runtime: Runtime) -> bool:
    """Whether all that was set aside is made anew."""
    return bool(runtime.healed) and all(healed.runs is not None for healed in runtime.healed)


# ---- found when the home is opened ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", damaged_stores.WAYS)
@pytest.mark.usefixtures("trained")
def test_a_database_that_cannot_be_used_is_set_aside_and_made_anew(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gan_runtime")
    spoil, found = damaged_stores.WAYS[way]
    spoil(home.database)
    before = None if home.database.is_dir() else home.database.read_bytes()
    runtime = opened()
    if way == "middle":
        queries.runs(runtime.store)
        runtime.store.rows("SELECT sum(value) FROM scalars")
    wait_until(lambda: is_read(runtime), "all journals are read again")
    (healed,) = runtime.healed
    assert contents(runtime.store) == contents(memory.from_journals(home))
    assert runtime.store.rows("SELECT count(*) FROM scalars") == [(CALLS * STEPS,)]
    assert (found in healed.found, healed.runs) == (True, 2), healed.found
    kind = "foreign" if way == "foreign" else "damaged"
    assert healed.old.name.startswith(f"results.duckdb.{kind}-20")
    if way != "middle":  # whose headers DuckDB has written anew before anybody read that far
        assert healed.old.is_dir() if before is None else healed.old.read_bytes() == before
    assert f"It was set aside as {healed.old.name}. A new one holds 2 runs" in healed.sentence
    assert healed.sentence.endswith(f"rm{' -r' if before is None else ''} {healed.old}")
    assert runtime.trouble == ""
    told = [record.getMessage() for record in caplog.records]
    assert any(f"it was set aside as {healed.old.name}" in line for line in told)
    assert "2 runs were read again from their journals" in told


@pytest.mark.usefixtures("trained")
def test_what_was_made_anew_is_a_database_like_any_other(home: Home, opened: Callable[[], Runtime]) -> None:
    damaged_stores.text(home.database)
    opened().close()
    again = opened()
    assert again.healed == []
    assert again.store.rows("SELECT count(*) FROM scalars") == [(CALLS * STEPS,)]


@pytest.mark.usefixtures("trained")
def test_an_owner_killed_while_it_reads_all_journals_again_is_followed_by_one_that_goes_on(
    home: Home, opened: Callable[[], Runtime]
) -> None:
    damaged_stores.text(home.database)
    script = (
        "import os, sys; from pathlib import Path; from gan_runtime.home import Home; from gan_runtime.store.ingest import Ingestor\n"
        "from gan_runtime.runtime.runtime import Runtime\n"
        "Ingestor._write = lambda *_: os._exit(9)\n"
        "Runtime.open(Home(Path(sys.argv[1])))\n"
        "import time; time.sleep(60)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(home.path)], cwd=REPOSITORY, check=False)
    assert killed.returncode == 9
    assert len(list(home.path.glob("results.duckdb.damaged-*"))) == 1
    assert contents(opened().store) == contents(memory.from_journals(home))
    assert len(list(home.path.glob("results.duckdb.damaged-*"))) == 1


@pytest.mark.usefixtures("trained")
def test_three_old_files_are_kept_and_none_of_another_program_is_removed(
    home: Home, opened: Callable[[], Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.strftime", lambda *_: "20260101-120000")  # all within one second
    damaged_stores.foreign(home.database)
    opened().close()
    for number in range(5):
        home.database.write_text(f"number {number}")
        opened().close()
    kept = sorted(home.path.glob("results.duckdb.damaged-*"))
    assert [path.read_text() for path in kept] == ["number 2", "number 3", "number 4"]
    (foreign,) = home.path.glob("results.duckdb.foreign-*")
    with duckdb.connect(str(foreign), read_only=True) as other:
        assert other.execute("SELECT answer FROM mine").fetchall() == [(42,)]


@pytest.mark.usefixtures("trained")
def test_what_cannot_be_set_aside_is_one_sentence_and_nothing_is_changed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged_stores.text(home.database)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)  # tests may run as root, whom no permission stops
        with pytest.raises(HomeError) as refused:
            Runtime.open(home)
    assert "cannot be used, nor be set aside as results.duckdb.damaged-" in str(refused.value)
    assert str(refused.value).endswith("the journals of all runs are whole.")
    assert home.database.read_bytes() == b"not a database" * 1_000
    home.database.unlink()
    home.database.symlink_to(home.path / "elsewhere" / "missing")
    with pytest.raises((TargetError, StoreError)):
        Runtime.open(home)
    assert home.database.is_symlink()
    home.database.unlink()
    Runtime.open(home).close()  # its lock is free


@pytest.mark.usefixtures("trained")
def test_a_file_of_a_newer_version_is_left_alone_until_somebody_says_so(home: Home) -> None:
    with duckdb.connect(str(home.database)) as newer:
        newer.execute("UPDATE ingest.version SET schema_version = ?", [SCHEMA_VERSION + 3])
        newer.execute("CREATE TABLE ingest.of_tomorrow (a INTEGER)")
    with pytest.raises(
        StoreNewerError, match=rf"a newer version of this program \(schema version {SCHEMA_VERSION + 3}, this"
    ):
        Runtime.open(home)
    assert [path.name for path in home.path.glob("results.duckdb*")] == ["results.duckdb"]
    rebuilt = rebuild(home)
    assert rebuilt.damaged is not None
    assert rebuilt.damaged.name.startswith("results.duckdb.newer-")
    assert rebuilt.rows["runs"] == 2


# ---- found while a dashboard is open ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("trained")
def test_whoever_asks_while_the_file_is_damaged_is_answered_from_the_new_one(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait
) -> None:
    runtime = opened()
    damaged_stores.middle(home.database)
    answers: list[Any] = []
    askers = [
        threading.Thread(
            target=lambda: answers.append(runtime.store.rows("SELECT sum(value) FROM scalars")[0][0])
        )
        for _ in range(4)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    wait_until(lambda: is_read(runtime), "all journals are read again")
    assert len(answers) == 4  # none was refused; the first of them may come before the rows are there
    assert contents(runtime.store) == contents(memory.from_journals(home))
    assert len(runtime.healed) == 1
    assert "is damaged (Corrupt database file" in runtime.healed[0].found
    assert runtime.trouble == ""


@pytest.mark.usefixtures("trained")
def test_a_run_that_trains_meanwhile_is_neither_lost_nor_ended(
    home: Home, opened: Callable[[], Runtime], new_run: NewRun, wait_until: Wait
) -> None:
    from gan_runtime import processes

    live = new_run("quick-0003", seconds=2.0)
    with subprocess.Popen(["sleep", "60"]) as process:
        live.write_process({**processes.identity(process.pid), "attempt": 1})
        journal.append(live.trainer_journal(), 1, StatusChange(status="running", reason="training"))
        runtime = opened()
        damaged_stores.middle(home.database)
        runtime.store.rows("SELECT sum(value) FROM scalars")
        wait_until(lambda: is_read(runtime), "all journals are read again")
        runtime.refresh()
        assert runtime._upkeep._supervisor._leaving == {}  # type: ignore[attr-defined]
        assert queries.run(runtime.store, "quick-0003").status == "running"
        assert process.poll() is None
        process.kill()


GIVEN_UP = duckdb.FatalException(
    "FATAL Error: database has been invalidated because of a previous fatal error"
)


@pytest.mark.usefixtures("trained")
def test_a_database_that_was_only_given_up_is_opened_again_and_kept_however_often_that_is(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "MOST_IN_AN_HOUR", 3)
    runtime = opened()
    for _ in range(3):
        runtime.store.damage = GIVEN_UP
        wait_until(lambda: runtime.store.damage is None, "the database is opened anew")
        assert runtime.store.rows("SELECT count(*) FROM runs") == [(2,)]
    runtime.store.damage = GIVEN_UP
    wait_until(lambda: runtime.trouble, "it is told that it happens again and again")
    assert runtime.trouble.startswith(f"{home.database} had to be opened anew 3 times within an hour (FATAL")
    monkeypatch.setattr(healing, "PAUSE_SECONDS", 0.0)  # it is over
    wait_until(lambda: runtime.store.damage is None, "the database is opened anew")
    wait_until(lambda: not runtime.trouble, "all is well")
    assert runtime.healed == []
    assert list(home.path.glob("results.duckdb.damaged-*")) == []
    assert contents(runtime.store) == contents(memory.from_journals(home))


@pytest.mark.usefixtures("trained")
def test_a_database_that_was_given_up_and_cannot_be_read_to_its_end_goes_aside(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait
) -> None:
    runtime = opened()
    damaged_stores.middle(home.database)
    runtime.store.damage = GIVEN_UP
    wait_until(lambda: is_read(runtime), "all journals are read again")
    [healed] = runtime.healed
    assert "Corrupt database file" in healed.found
    assert contents(runtime.store) == contents(memory.from_journals(home))


@pytest.mark.usefixtures("trained")
def test_a_file_that_opens_is_read_to_its_end_before_it_is_taken_for_a_whole_one(home: Home) -> None:
    opening.read_through(home.database)
    damaged_stores.middle(home.database)
    opening.connected(home.database).close()
    with pytest.raises(StoreDamagedError, match="Corrupt database file"):
        opening.read_through(home.database)


@pytest.mark.usefixtures("trained")
def test_an_error_in_one_statement_is_no_damage_while_the_database_answers(
    opened: Callable[[], Runtime],
) -> None:
    runtime = opened()

    def ask(_: duckdb.DuckDBPyConnection) -> None:
        raise duckdb.InternalException("INTERNAL Error: Attempted to access index 1 within vector of size 1")

    with pytest.raises(duckdb.InternalException):
        runtime.store._asked(ask)
    assert runtime.store.damage is None
    assert runtime.store.rows("SELECT count(*) FROM runs") == [(2,)]


def test_runs_are_looked_after_also_while_the_database_cannot_be_mended(
    home: Home, new_run: NewRun, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is lost, one is stopped, one is taken from the queue, and one that is submitted meanwhile trains to its end."""

    def is_now(run: RunDir, status: str) -> None:
        wait_until(lambda: latest_status(run).status == status, f"{run.run_id} is {status}")

    monkeypatch.setattr("gan_runtime.store.store.RENEWAL_SECONDS", 0.5)
    lost, stopped = new_run("quick-0001", **LONG_TOY), new_run("quick-0002", seconds=1.0, **LONG_TOY)
    runtime = Runtime.open(home, starter=LocalStarter(Patience(time.monotonic), toy_trainer.MODULE))
    try:
        is_now(lost, "running")
        with monkeypatch.context() as patch:
            patch.setattr(healing, "MOST_IN_AN_HOUR", 0)
            runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
            wait_until(lambda: "was damaged 0 times within an hour" in runtime.trouble, "it is told of")
            processes_of(lost)[0].kill()
            is_now(lost, "lost")
            is_now(stopped, "running")
            unwanted = new_run("quick-0003", seconds=2.0, **LONG_TOY)
            unwanted.request_stop("a person")
            is_now(unwanted, "stopped")
            submitted = new_run("quick-0004", seconds=3.0, **{**LONG_TOY, "epochs": 2})
            stopped.request_stop("a person")
            is_now(stopped, "stopped")
            is_now(submitted, "finished")
            assert "was damaged 0 times" in runtime.trouble
        wait_until(lambda: is_read(runtime), "all journals are read again")
        told = {row.run_id: row.status for row in queries.runs(runtime.store)}
        assert told == {
            "quick-0001": "lost",
            "quick-0002": "stopped",
            "quick-0003": "stopped",
            "quick-0004": "finished",
        }
    finally:
        runtime.close()
        end_trainers(home)


@pytest.mark.usefixtures("trained")
def test_a_disk_that_damages_every_new_file_is_told_of_instead_of_filling_up(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "MOST_IN_AN_HOUR", 2)
    monkeypatch.setattr("gan_runtime.store.store.RENEWAL_SECONDS", 0.5)
    runtime = opened()
    for _ in range(2):
        runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
        wait_until(lambda: runtime.store.damage is None, "the database is opened anew")
    runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
    wait_until(lambda: runtime.trouble, "it is told of")
    assert f"{home.database} was damaged 2 times within an hour" in runtime.trouble
    assert "look after its disk" in runtime.trouble
    assert len(list(home.path.glob("results.duckdb.damaged-*"))) == 2
    assert len(runtime.healed) == 2
    assert aside.KEPT == 3


@pytest.mark.usefixtures("trained")
def test_a_damaged_file_that_is_gone_by_the_time_it_is_to_be_set_aside_is_made_anew_all_the_same(
    home: Home, opened: Callable[[], Runtime], wait_until: Wait
) -> None:
    runtime = opened()
    home.database.unlink()  # by a person, or by a try before that could not open a new one
    runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
    wait_until(lambda: runtime.store.damage is None, "the database is opened anew", seconds=20.0)
    runtime.refresh()
    assert runtime.trouble == ""
    assert contents(runtime.store) == contents(memory.from_journals(home))
    assert runtime.healed == []  # nothing was there to be set aside


@pytest.mark.usefixtures("trained")
def test_a_database_says_that_it_is_rebuilt_until_it_is_whole_also_where_nothing_was_set_aside(
    home: Home, opened: Callable[[], Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that comes meanwhile waits, or whoever asks is told that rows may be missing."""
    runtime = opened()
    told: list[bool] = []
    catch_up = Ingestor.catch_up_news

    def slowly(self: Ingestor) -> int:
        told.append(runtime.is_reading)
        return catch_up(self)

    assert not runtime.is_reading
    with monkeypatch.context() as patch:
        patch.setattr(Ingestor, "catch_up_news", slowly)
        home.database.unlink()
        runtime.store.damage = duckdb.IOException("Corrupt database file: checksum")
        runtime.refresh()
    assert True in told
    assert not runtime.is_reading
    assert contents(runtime.store) == contents(memory.from_journals(home))


@pytest.mark.usefixtures("trained")
def test_a_home_that_is_moved_while_it_is_open_is_said_to_be_gone_and_its_runs_stay(
    home: Home, opened: Callable[[], Runtime], caplog: pytest.LogCaptureFixture
) -> None:
    """Not an empty list of runs; back in its place it goes on."""
    runtime = opened()
    runs = queries.runs(runtime.store)
    elsewhere = home.path.rename(home.path.with_name("elsewhere"))
    runtime.refresh()
    assert f"{home.path} is gone: it was moved or deleted" in runtime.trouble
    assert "the runtime could not act: " in caplog.text
    assert "Traceback" not in caplog.text
    assert queries.runs(runtime.store) == runs
    with pytest.raises(UnknownRunError, match="there is no such folder"):
        home.run_dir(runs[0].run_id)
    elsewhere.rename(home.path)
    runtime.refresh()
    assert runtime.trouble == ""


@pytest.mark.usefixtures("trained")
def test_a_home_that_could_not_be_taken_up_for_want_of_memory_is_free_again(
    home: Home, opened: Callable[[], Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data")

    with monkeypatch.context() as patch:
        patch.setattr("gan_runtime.store.ingest.Ingestor.recall", refuse)
        with pytest.raises(duckdb.OutOfMemoryException):
            opened()
    assert not owner.is_owned(home)
    assert opened().healed == []
