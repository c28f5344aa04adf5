"""The home of each earlier version opens: the database is rebuilt with the same rows, and the run
works like any other.

earlier_homes.py explains where the homes come from. Schema version 3 is that of 0.2.0.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gan_runtime import bundles
from gan_runtime.bundles import export
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.spec import RunSpec
from gan_runtime.store import ingest, queries
from gan_runtime.store.database_file import SCHEMA_VERSION
from gan_runtime.store.store import Store
from tests.support import earlier_homes
from tests.support.asking import ask_of
from tests.support.earlier_homes import VERSIONS
from tests.support.trainers import end_trainers, toys

ASKER = operator("a test")
RELEASED = 3
# Tables of earlier versions that are now views of the evaluation tables; these runs have no
# evaluations.
VIEWS_BY_NOW = {
    *("surfaces", "physics", "physics_curves", "physics_showers"),
    *("flow", "flow_scores", "flow_steps", "flow_stages"),
}
OF_THE_LAYOUT = (
    "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'ingest' AND"
    " table_name IN (SELECT table_name FROM duckdb_tables()) AND table_name <> 'version' ORDER"
    " BY ALL"
)


def contents(store: Store) -> dict[str, set[str]]:
    """Rows of all public views."""
    return {
        view: {repr(row) for row in store.rows(f"SELECT * FROM {view}")}
        for view in ("samples", *export.VIEWS)
    }


def tables(
    ask: Callable[[str], list[tuple[Any, ...]]], columns: list[tuple[Any, ...]]
) -> dict[str, list[str]]:
    """Rows of tables, limited to these columns."""
    names: dict[str, list[str]] = {}
    for table, column in columns:
        names.setdefault(table, []).append(column)
    return {
        table: sorted(map(repr, ask(f"SELECT {', '.join(column_names)} FROM ingest.{table}")))
        for table, column_names in names.items()
    }


OF_THE_VIEWS = (
    "SELECT table_name, list((column_name, data_type) ORDER BY column_index) FROM duckdb_columns()"
    " WHERE schema_name = 'main' AND table_name IN (SELECT view_name FROM duckdb_views()) GROUP"
    " BY ALL"
)


@pytest.fixture
def all_earlier(home: Home) -> Home:
    """One home with a run of each version."""
    for version in VERSIONS:
        earlier_homes.unpacked(version, home, with_database=False)
    return home


def test_released_version_has_a_stored_home() -> None:
    assert RELEASED in VERSIONS, f"{earlier_homes.__file__} says how to store one"


@pytest.mark.parametrize("version", VERSIONS)
def test_database_of_an_earlier_version_is_rebuilt_with_all_its_rows(
    home: Home, version: int, wait_until: Callable[..., Any]
) -> None:
    earlier_homes.unpacked(version, home)
    runtime = Runtime.open(home)
    try:
        wait_until(lambda: runtime.recovered[0].runs is not None, "all journals are read again")
        (healed,) = runtime.recovered
        assert (healed.problem, healed.runs) == (
            f"has schema version {version}, this program writes {SCHEMA_VERSION}",
            1,
        )
        assert healed.old.name.startswith("results.duckdb.older-")
        assert contents(runtime.store) == contents(ingest.store_of(home))
        assert runtime.store.rows("SELECT count(*) FROM scalars")[0][0] > 100
        with duckdb.connect(str(healed.old), read_only=True) as old:
            old.execute("SET TimeZone = 'UTC'")

            def ask(sql: str) -> list[tuple[Any, ...]]:
                return old.execute(sql).fetchall()

            columns = [
                (table, column) for table, column in ask(OF_THE_LAYOUT) if table not in VIEWS_BY_NOW
            ]
            assert set(columns) <= set(runtime.store.rows(OF_THE_LAYOUT))
            assert tables(runtime.store.rows, columns) == tables(ask, columns)
    finally:
        runtime.close()
    again = Runtime.open(home)
    assert again.recovered == []
    again.close()


def test_released_view_columns_come_first_in_the_same_order(
    home: Home,
) -> None:
    """Users' SQL may rely on `SELECT *`, so new columns come last."""
    earlier_homes.unpacked(RELEASED, home)
    with duckdb.connect(str(home.database), read_only=True) as old:
        released: dict[str, list[Any]] = dict(old.execute(OF_THE_VIEWS).fetchall())
    by_now: dict[str, list[Any]] = dict(Store().rows(OF_THE_VIEWS))  # type: ignore[arg-type]
    assert len(released) > 15
    begin = {view: by_now.get(view, [])[: len(columns)] for view, columns in released.items()}
    assert begin == released


def test_runs_of_all_earlier_versions_are_read_side_by_side(all_earlier: Home) -> None:
    store = ingest.store_of(all_earlier)
    rows = queries.runs(store)
    assert {row.name for row in rows} == {f"of-schema-{version}" for version in VERSIONS}
    assert len(rows) == len(VERSIONS)
    assert {(row.status, row.workload, row.attempt) for row in rows} == {("finished", "mlp_gan", 1)}
    assert store.rows("SELECT count(*) FROM events WHERE kind = 'journal'") == [
        (0,)
    ]  # no line was skipped
    assert queries.set_aside(store) == {}
    counts = store.rows(
        "SELECT count(*) FROM scalars WHERE metric = 'loss_generator' GROUP BY run_id"
    )
    assert counts == [(14,)] * len(VERSIONS)
    pictures = "SELECT count(*) FROM samples WHERE png IS NOT NULL"
    assert store.rows(pictures) == [(2 * len(VERSIONS),)]
    for row in rows:
        spec = RunSpec.read(all_earlier.run_dir(row.run_id).spec_path)
        assert (spec.workload, spec.epochs, spec.batch_size_global) == ("mlp_gan", 2, 256)


def test_runs_of_all_earlier_versions_can_be_exported_and_bundled(
    all_earlier: Home, tmp_path: Path
) -> None:
    store = ingest.store_of(all_earlier)
    runs = [row.run_id for row in queries.runs(store)]
    files = export.export(store, runs, tmp_path / "out", "parquet")
    assert sum(path.suffix == ".png" for path in files) == 2 * len(VERSIONS)
    bundle = tmp_path / "all.zip"
    bundles.pack([all_earlier.run_dir(run) for run in runs], bundle)
    other = Home(tmp_path / "other").prepare()
    bundles.unpack(bundle, other)
    brought = ingest.store_of(other)
    for view in ("scalars", "epochs", "histograms"):
        rows = f"SELECT * FROM {view} ORDER BY ALL"
        assert brought.rows(rows) == store.rows(rows), view


@pytest.mark.parametrize("version", VERSIONS)
def test_lost_run_of_an_earlier_version_resumes_and_finishes(
    home: Home, version: int, wait_until: Callable[..., Any]
) -> None:
    run = earlier_homes.unpacked(version, home, with_database=False)
    lines = run.trainer_journal().read_text(encoding="utf-8").splitlines(keepends=True)
    begun = next(place for place, line in enumerate(lines) if '"kind":"scalars"' in line)
    run.trainer_journal().write_text("".join(lines[:begun]), encoding="utf-8")
    shutil.rmtree(run.samples)
    spec = run.spec_path.read_text(encoding="utf-8")
    smaller = spec.replace(
        '"batch_size_global": 256', '"batch_size_global": 8'
    )  # the toy has 40 images
    assert smaller != spec
    run.spec_path.write_text(smaller, encoding="utf-8")
    journal.append(
        run.supervisor_journal, 1, StatusChange(status="lost", reason="the trainer is gone")
    )
    runtime = Runtime.open(home, starter=toys())
    try:
        assert queries.run(runtime.store, run.run_id).status == "lost"
        ask_of(run, actor=ASKER).resume(run.run_id)
        wait_until(
            lambda: queries.run(runtime.store, run.run_id).status == "finished", "it has ended"
        )
        assert queries.run(runtime.store, run.run_id).attempt == 2
        assert runtime.store.rows("SELECT max(epoch) FROM epochs") == [(2,)]
    finally:
        runtime.close()
        end_trainers(home)
