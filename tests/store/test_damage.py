"""Opening a home renames an unusable results.duckdb and rebuilds it from the journals.

test_store_recovery.py covers damage while a dashboard is open.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gan_runtime.base.errors import (
    HomeError,
    StoreDamagedError,
    StoreError,
    StoreNewerError,
    TargetError,
)
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.store import database_file, ingest, queries
from gan_runtime.store.database_file import SCHEMA_VERSION
from gan_runtime.supervision import owner
from gan_runtime.supervision.store_recovery import StoreRecovery, rebuild
from tests.support import damaged_stores
from tests.support.whole_stores import CALLS, RUNS, STEPS, contents, is_read

Wait = Callable[..., Any]


@pytest.mark.parametrize("way", [way for way in damaged_stores.WAYS if way != "middle"])
@pytest.mark.usefixtures("trained")
def test_unopenable_database_is_renamed_unchanged_and_replaced(
    home: Home, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gan_runtime")
    spoil, problem = damaged_stores.WAYS[way]
    spoil(home.database)
    before = None if home.database.is_dir() else home.database.read_bytes()
    recovery = StoreRecovery(home)
    store = recovery.open()
    (healed,) = recovery.recovered
    assert (problem in healed.problem, healed.runs) == (True, None), healed.problem
    kind = "foreign" if way == "foreign" else "damaged"
    assert healed.old.name.startswith(f"results.duckdb.{kind}-20")
    assert healed.old.is_dir() if before is None else healed.old.read_bytes() == before
    assert (
        f"It was renamed to {healed.old.name}. The journals of all runs are being read"
        in healed.sentence
    )
    assert healed.sentence.endswith(f"rm{' -r' if before is None else ''} {healed.old}")
    messages = [record.getMessage() for record in caplog.records]
    assert any(f"renamed to {healed.old.name}" in line for line in messages)
    assert store.rows("SELECT count(*) FROM runs") == [(0,)]
    store.close()


@pytest.mark.parametrize("way", ["text", "middle"])  # one that does not open, and one that opens
@pytest.mark.usefixtures("trained")
def test_unusable_database_is_renamed_and_rebuilt(
    home: Home,
    opened: Callable[[], Runtime],
    wait_until: Wait,
    way: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "gan_runtime")
    spoil, problem = damaged_stores.WAYS[way]
    spoil(home.database)
    runtime = opened()
    if way == "middle":
        queries.runs(runtime.store)
        runtime.store.rows("SELECT sum(value) FROM scalars")
    wait_until(lambda: runtime.refresh() or is_read(runtime), "all journals are read again")
    (healed,) = runtime.recovered
    assert contents(runtime.store) == contents(ingest.store_of(home))
    assert runtime.store.rows("SELECT count(*) FROM scalars") == [(CALLS * STEPS,)]
    assert (problem in healed.problem, healed.runs) == (True, RUNS), healed.problem
    assert healed.old.name.startswith("results.duckdb.damaged-20")
    assert f"It was renamed to {healed.old.name}. The new database has 2 runs" in healed.sentence
    assert runtime.trouble == ""
    messages = [record.getMessage() for record in caplog.records]
    assert any(f"renamed to {healed.old.name}" in line for line in messages)
    assert "2 runs were read again from their journals" in messages


@pytest.mark.usefixtures("trained")
def test_rebuilt_database_reopens_normally(home: Home, opened: Callable[[], Runtime]) -> None:
    damaged_stores.text(home.database)
    opened().close()
    again = opened()
    assert again.recovered == []
    assert again.store.rows("SELECT count(*) FROM scalars") == [(CALLS * STEPS,)]


@pytest.mark.usefixtures("trained")
def test_next_owner_finishes_a_rebuild_after_its_owner_is_killed(
    home: Home, opened: Callable[[], Runtime]
) -> None:
    damaged_stores.text(home.database)
    script = (
        "import os, sys; from pathlib import Path; from gan_runtime.records.home import Home\nfrom"
        " gan_runtime.commands.runtime import Runtime; from gan_runtime.store.store import"
        " Store\nStore.transaction = lambda _:"
        " os._exit(9)\nRuntime.open(Home(Path(sys.argv[1])))\nimport time; time.sleep(60)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(home.path)], cwd=REPOSITORY, check=False
    )
    assert killed.returncode == 9
    assert len(list(home.path.glob("results.duckdb.damaged-*"))) == 1
    assert contents(opened().store) == contents(ingest.store_of(home))
    assert len(list(home.path.glob("results.duckdb.damaged-*"))) == 1


@pytest.mark.usefixtures("trained")
def test_three_damaged_files_are_kept_and_foreign_files_stay(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.strftime", lambda *_: "20260101-120000")  # all within one second
    damaged_stores.foreign(home.database)
    StoreRecovery(home).open().close()
    for number in range(5):
        home.database.write_text(f"number {number}")
        StoreRecovery(home).open().close()
    files = sorted(home.path.glob("results.duckdb.damaged-*"))
    assert [path.read_text() for path in files] == ["number 2", "number 3", "number 4"]
    (foreign,) = home.path.glob("results.duckdb.foreign-*")
    with duckdb.connect(str(foreign), read_only=True) as other:
        assert other.execute("SELECT answer FROM mine").fetchall() == [(42,)]


@pytest.mark.usefixtures("trained")
def test_database_that_cannot_be_renamed_raises_and_stays_unchanged(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged_stores.text(home.database)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)  # tests may run as root, which ignores permissions
        with pytest.raises(HomeError) as refused:
            Runtime.open(home)
    assert "cannot be used, nor renamed to results.duckdb.damaged-" in str(refused.value)
    assert str(refused.value).endswith("the journals of all runs are intact.")
    assert home.database.read_bytes() == b"not a database" * 1_000
    home.database.unlink()
    home.database.symlink_to(home.path / "elsewhere" / "missing")
    with pytest.raises((TargetError, StoreError)):
        Runtime.open(home)
    assert home.database.is_symlink()
    home.database.unlink()
    Runtime.open(home).close()  # its lock was released


@pytest.mark.usefixtures("trained")
def test_newer_database_is_untouched_until_an_explicit_rebuild(home: Home) -> None:
    with duckdb.connect(str(home.database)) as newer:
        newer.execute("UPDATE ingest.version SET schema_version = ?", [SCHEMA_VERSION + 3])
        newer.execute("CREATE TABLE ingest.of_tomorrow (a INTEGER)")
    with pytest.raises(
        StoreNewerError,
        match=rf"has schema version {SCHEMA_VERSION + 3} of a newer program; this",
    ):
        Runtime.open(home)
    assert [path.name for path in home.path.glob("results.duckdb*")] == ["results.duckdb"]
    rebuilt = rebuild(home)
    assert rebuilt.damaged is not None
    assert rebuilt.damaged.name.startswith("results.duckdb.newer-")
    assert rebuilt.rows["runs"] == 2


@pytest.mark.usefixtures("trained")
def test_read_through_finds_damage_in_a_file_that_opens(
    home: Home,
) -> None:
    database_file.read_through(home.database)
    damaged_stores.middle(home.database)
    database_file.connected(home.database).close()
    with pytest.raises(StoreDamagedError, match="Corrupt database file"):
        database_file.read_through(home.database)


@pytest.mark.usefixtures("trained")
def test_home_is_released_when_opening_runs_out_of_memory(
    home: Home, opened: Callable[[], Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data")

    with monkeypatch.context() as patch:
        patch.setattr("gan_runtime.store.ingest.Ingestor.recall", refuse)
        with pytest.raises(duckdb.OutOfMemoryException):
            opened()
    assert not owner.is_owned(home)
    assert opened().recovered == []
