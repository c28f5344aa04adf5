"""results.duckdb: which process may open it, errors of a damaged file, and user queries."""

from __future__ import annotations

import os
import resource
import signal
import string
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from gan_runtime.base.errors import (
    HomeError,
    QueryError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.store import database_file, user_sql
from gan_runtime.store.database_file import SCHEMA_VERSION
from gan_runtime.store.store import Store
from gan_runtime.store.user_sql import Limits

HOLD = (
    "import sys; from pathlib import Path; from gan_runtime.store.store import Store; s ="
    " Store(Path(sys.argv[1])); print('held', flush=True); input()"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.duckdb"


def test_rows_survive_closing(path: Path) -> None:
    store = Store(path)
    with store.transaction() as writer:
        writer.append("phases", [("quick-0001", 1, "build", 1.5)])
    store.close()
    again = Store(path)
    assert again.rows("SELECT * FROM phases") == [("quick-0001", 1, "build", 1.5)]
    again.close()


def test_unchanged_file_opens_without_rebuilding_its_views(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(path).close()
    calls: list[object] = []
    monkeypatch.setattr(database_file, "make", calls.append)
    again = Store(path)
    assert again.rows("SELECT count(*) FROM runs") == [(0,)]
    assert again.rows("SELECT current_setting('TimeZone')") == [("UTC",)]
    again.close()
    assert not calls


@pytest.mark.parametrize(
    "statement", ["DROP VIEW scalars", "CREATE OR REPLACE VIEW scalars AS SELECT 1 AS step"]
)
def test_manually_changed_view_is_rebuilt(path: Path, statement: str) -> None:
    Store(path).close()
    with duckdb.connect(str(path)) as by_hand:
        by_hand.execute(statement)
    again = Store(path)
    assert again.frame("SELECT * FROM scalars").columns.tolist()[:3] == [
        "run_id",
        "attempt",
        "step",
    ]
    again.close()


def test_a_version_with_other_views_rebuilds_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(path).close()
    statements = database_file.statements()
    monkeypatch.setattr(
        database_file,
        "statements",
        lambda _: [*statements, "CREATE OR REPLACE VIEW one AS SELECT 1 AS number"],
    )
    again = Store(path)
    assert again.rows("SELECT number FROM one") == [(1,)]
    again.close()


def test_store_open_in_another_process_names_that_process(path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreLockedError) as refused:
            Store(path)
        holder.communicate("\n")
    assert str(refused.value).startswith(f"{path} is open in process {holder.pid} (")
    assert str(refused.value).endswith(
        "): end that process, or choose another folder with --home DIR."
    )
    Store(path).close()


def test_file_that_is_not_a_database_is_refused_and_unchanged(path: Path) -> None:
    content = b"not a database" * 1_000
    path.write_bytes(content)
    with pytest.raises(
        StoreDamagedError,
        match=r"results\.duckdb is not a usable DuckDB database \(.+\): .*rebuild",
    ):
        Store(path)
    assert path.read_bytes() == content


def test_truncated_database_is_refused(path: Path) -> None:
    store = Store(path)
    with store.transaction() as writer:
        writer.append(
            "phases", [("quick-0001", 1, "probe", float(number)) for number in range(50_000)]
        )
    store.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with pytest.raises(StoreError):
        Store(path)


def test_other_schema_version_error_suggests_a_rebuild(path: Path) -> None:
    store = Store(path)
    with store.transaction() as writer:
        writer.execute("UPDATE ingest.version SET schema_version = 1")
        writer.execute("DROP VIEW runs")
        writer.execute("ALTER TABLE ingest.created DROP COLUMN study")  # as it was in version 1
    store.close()
    with pytest.raises(
        StoreError,
        match=(
            rf"has schema version 1, this program writes {SCHEMA_VERSION}: .*python -m gan_runtime"
            r" rebuild`"
        ),
    ):
        Store(path)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        (
            "UPDATE ingest.version SET schema_version = NULL",
            "it has no schema version",
        ),
        ("DELETE FROM ingest.version", "it has no schema version"),
        ("DROP TABLE ingest.version", "it has no schema version"),
        ("DROP TABLE ingest.offsets", "the table ingest.offsets is missing or has other columns"),
        (
            "ALTER TABLE ingest.phases DROP COLUMN seconds",
            "the table ingest.phases is missing or has other columns",
        ),
        (
            "ALTER TABLE ingest.phases ALTER seconds TYPE VARCHAR",
            "the table ingest.phases is missing or has other columns",
        ),
    ],
)
def test_manually_changed_tables_error_suggests_a_rebuild(
    path: Path, statement: str, what: str
) -> None:
    Store(path).close()
    with duckdb.connect(str(path)) as by_hand:
        if "ingest.phases" in statement:
            by_hand.execute("DROP VIEW phases")
        by_hand.execute(statement)
    with pytest.raises(StoreDamagedError) as refused:
        Store(path)
    assert f"{path} was changed by another program ({what}): run `" in str(refused.value)
    assert "rebuild`, which renames it and builds a new one from the journals." in str(
        refused.value
    )


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises((StoreError, HomeError), match=r"none/results\.duckdb cannot be"):
        Store(tmp_path / "none" / "results.duckdb")


def test_a_failed_transaction_leaves_nothing() -> None:
    store = Store()

    def fail_in_the_middle() -> None:
        with store.transaction() as writer:
            writer.append("phases", [("quick-0001", 1, "build", 1.5)])
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail_in_the_middle()
    assert store.rows("SELECT * FROM phases") == []


def test_threads_read_whole_transactions_while_another_writes() -> None:
    store, counts, done = Store(), [], threading.Event()

    def watch() -> None:
        while not done.is_set():
            counts.append(store.rows("SELECT count(*) FROM phases")[0][0])

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    for _ in range(20):
        with store.transaction() as writer:
            writer.append("phases", [("quick-0001", 1, "build", 1.0)] * 5)
            writer.append("phases", [("quick-0001", 1, "build", 2.0)] * 5)
    done.set()
    for watcher in watchers:
        watcher.join()
    assert store.rows("SELECT count(*) FROM phases") == [(200,)]
    assert {count % 10 for count in counts} <= {0}


def test_times_are_in_utc() -> None:
    store = Store()
    noon = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
    with store.transaction() as writer:
        writer.append("arrivals", [("quick-0001", 1, 1, noon)])
    assert store.rows("SELECT written_at FROM ingest.arrivals") == [(noon,)]
    assert (
        str(store.frame("SELECT written_at FROM ingest.arrivals")["written_at"].iloc[0])
        == "2026-07-01 12:00:00+00:00"
    )


# ---- user queries --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored() -> Store:
    """A store with one row, which user queries cannot change."""
    store = Store()
    with store.transaction() as writer:
        writer.append("phases", [("quick-0001", 1, "build", 1.5)])
    return store


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT run_id, seconds FROM phases",
        "FROM phases SELECT run_id, seconds;",
        "SHOW TABLES",
        "VALUES (1)",
    ],
)
def test_a_user_may_read(stored: Store, sql: str) -> None:
    assert stored.user_answer(sql).rows


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM ingest.phases",
        "INSERT INTO ingest.version VALUES (9)",
        "UPDATE ingest.version SET schema_version = 10",
        "DROP VIEW runs",
        "CREATE TABLE mine (a INTEGER)",
        "EXPLAIN ANALYZE DELETE FROM ingest.phases",
        "SELECT 1; DELETE FROM ingest.phases",
        "WITH one AS (SELECT 9) INSERT INTO ingest.version FROM one",
        "COPY (SELECT 1) TO 'FILE'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'FILE'",
        "ATTACH 'FILE' AS other",
        "SET memory_limit = '1MB'",
        "WITH gone AS (DELETE FROM ingest.phases RETURNING 1) SELECT * FROM gone",
        "WITH new AS (INSERT INTO ingest.version VALUES (9) RETURNING 1) FROM new",
        "",
    ],
)
def test_a_user_cannot_write(stored: Store, tmp_path: Path, sql: str) -> None:
    with pytest.raises(
        QueryError,
        match='sql accepts one statement that reads: use a SELECT, such as "SELECT name',
    ):
        stored.user_answer(sql.replace("FILE", str(tmp_path / "file")))
    assert stored.rows(
        "SELECT count(*) FROM ingest.phases UNION ALL SELECT schema_version FROM ingest.version"
    ) == [
        (1,),
        (SCHEMA_VERSION,),
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT nonsense FROM runs", "SELECT * FROM none"])
def test_sql_that_fails_is_explained(stored: Store, sql: str) -> None:
    with pytest.raises(
        QueryError,
        match=r"^the statement failed: (?s:.+) The views are listed in docs/schema\.md\.$",
    ):
        stored.user_answer(sql)


@pytest.mark.parametrize(
    "read", ["FROM read_text('FILE')", "FROM read_csv('FILE')", "FROM 'FILE'", "FROM glob('FILE')"]
)
def test_user_cannot_read_host_files(stored: Store, tmp_path: Path, read: str) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        QueryError, match=r"the statement failed: (Permission|Catalog|Binder) Error"
    ):
        stored.user_answer(f"SELECT * {read.replace('FILE', str(tmp_path / 'secret.csv'))}")


def test_user_cannot_read_program_variables(stored: Store) -> None:
    frame = pd.DataFrame({"secret": [1]})
    with pytest.raises(QueryError, match="Table with name frame does not exist"):
        stored.user_answer("SELECT * FROM frame")
    assert len(frame) == 1


def test_repeated_user_queries_work_and_times_stay_in_utc() -> None:
    store = Store()
    for _ in range(2):
        (row,) = store.user_answer(
            "SELECT current_setting('TimeZone'), '2026-07-01 12:00:00+00'::TIMESTAMPTZ"
        ).rows
        assert (row[0], row[1].isoformat()) == ("UTC", "2026-07-01T12:00:00+00:00")
    assert store.rows("SELECT count(*) FROM runs") == [(0,)]


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("UPDATE EXTENSIONS", "sql accepts one statement that reads"),
        (
            "SELECT repeat('A', 100_000_000) FROM range(100)",
            "needs more than 0 GB of memory: select fewer",
        ),
        (
            "SELECT list(i) FROM range(100_000_000) t(i)",
            "needs more than 0 GB of memory: select fewer",
        ),
        (f"SELECT {', '.join('1' * 1_001)}", "has 1,001 columns, but at most 1,000 are allowed"),
    ],
)
def test_statement_with_too_much_memory_or_too_many_columns_is_refused(
    stored: Store, monkeypatch: pytest.MonkeyPatch, sql: str, sentence: str
) -> None:
    monkeypatch.setattr(user_sql, "MAX_MEMORY", 400_000_000)
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(QueryError, match=sentence):
        stored.user_answer(sql)
    assert stored.user_answer("SELECT 1").rows == [(1,)]
    assert resource.getrlimit(resource.RLIMIT_AS) == before


RUNAWAY = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"


def test_statement_ends_at_its_time_limit(stored: Store) -> None:
    with pytest.raises(
        QueryError,
        match=r"^the statement has no answer after 0\.2 s: select less, or raise --seconds\.$",
    ):
        stored.user_answer(RUNAWAY, Limits(seconds=0.2))


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Handles Ctrl-C as at a terminal: a process that a shell starts in the background ignores it,
    and so would the test.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_statement() -> None:
    store = Store()
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        store.user_answer(RUNAWAY, Limits(seconds=60))


def test_rows_beyond_the_limit_are_omitted_and_reported(stored: Store) -> None:
    assert not stored.user_answer("FROM range(3)", Limits(rows=3)).cut
    answer = stored.user_answer("FROM range(10_000_000_000)", Limits(rows=3))
    assert (answer.rows, answer.cut) == ([(0,), (1,), (2,)], True)


def test_columns_with_equal_names_are_all_in_the_answer(stored: Store) -> None:
    answer = stored.user_answer("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a")
    assert answer.records() == [{"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}]


# ---- export --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_export_contains_only_the_selected_runs(tmp_path: Path, ending: str) -> None:
    store = Store()
    with store.transaction() as writer:
        writer.append(
            "scalars",
            [
                (run, 1, 1, 1, "loss_generator", value, 0.5)
                for run, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))
            ],
        )
    target = tmp_path / f"it's{ending}"
    store.copy_view("scalars", ["a", "c"], target)
    quoted = str(target).replace("'", "''")
    assert store.rows(f"SELECT run_id, value FROM '{quoted}' ORDER BY run_id") == [
        ("a", 0.1),
        ("c", 0.3),
    ]


def test_text_in_a_csv_file_is_never_a_formula(tmp_path: Path) -> None:
    store = Store()
    texts = ["=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "＝1", "plain = 1", ""]
    with store.transaction() as writer:
        writer.append("phases", [("a", 1, text, -1.5) for text in texts])
    for ending in ("csv", "parquet"):
        store.copy_view("phases", ["a"], tmp_path / f"phases.{ending}")
    table = pd.read_csv(tmp_path / "phases.csv", keep_default_na=False)
    assert list(table["phase"]) == [
        "'=HYPERLINK(1)",
        "'+1",
        "'-1",
        "'@x",
        "'\tx",
        "'＝1",
        "plain = 1",
        "",
    ]
    assert set(table["seconds"]) == {-1.5}
    assert list(pd.read_parquet(tmp_path / "phases.parquet")["phase"]) == texts


def test_images_are_not_exported_as_csv(tmp_path: Path) -> None:
    with pytest.raises(
        QueryError, match="samples contain images, which CSV cannot hold: export them as Parquet"
    ):
        Store().copy_view("samples", ["a"], tmp_path / "samples.csv")


def test_answer_returns_only_after_its_cursor_is_closed() -> None:
    """Otherwise the process may end while a thread is inside DuckDB, which aborts it."""

    class SlowToClose:
        def __init__(self) -> None:
            self._cursor, self.closed = duckdb.connect().cursor(), False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._cursor, name)

        def close(self) -> None:
            time.sleep(0.1)  # longer than returning takes
            self._cursor.close()
            self.closed = True

    cursor = SlowToClose()
    answer = user_sql.answer(cursor, "SELECT 7 AS number", user_sql.Limits())  # type: ignore[arg-type]
    assert (answer.rows, cursor.closed) == ([(7,)], True)


GROUPS_OF_PICTURES = (
    "SELECT count(DISTINCT row_group_id) FROM pragma_storage_info('ingest.samples')"
)
PICTURES = "SELECT step, md5(png) FROM samples ORDER BY step"


def test_checkpoint_keeps_images_in_place_and_closing_merges_them(
    path: Path,
) -> None:
    store = Store(path)
    for step in range(40):  # 1 MB each: DuckDB writes a checkpoint every 16 MB
        with store.transaction() as writer:
            writer.append(
                "samples", [("quick-0001", 1, step, 1, "samples", os.urandom(1_000_000), None)]
            )
    stored = store.rows(PICTURES)
    assert len(stored) == 40
    assert store.rows(GROUPS_OF_PICTURES)[0][0] >= 3, "two checkpoints, and what came after"
    store.close()

    again = Store(path)
    assert again.rows(GROUPS_OF_PICTURES) == [(1,)]
    assert again.rows(PICTURES) == stored
    again.close()


BUFFERED_BYTES = "SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
NUMBERS = (
    "INSERT INTO ingest.scalars SELECT 'quick-0001', 1, i, 1, 'loss', random(), random() FROM"
    " range(4_000_000) numbers(i)"
)
HIGHEST = "SELECT max(value), max(wall_s) FROM scalars"


def test_buffer_memory_is_released_when_idle(path: Path) -> None:
    store = Store(path)
    assert not store.rest(seconds=0.0, idle=0), "nobody has asked for anything"
    with store.transaction() as writer:
        writer.execute(NUMBERS)
    before, limit = store.rows(HIGHEST), store.rows("SELECT current_setting('memory_limit')")
    assert not store.rest(seconds=60.0, idle=0, most=10**12), "a page has just asked"
    assert not store.rest(seconds=0.0, idle=10**12), "little is not worth reading it anew"
    ((bytes_before,),) = store.rows(BUFFERED_BYTES)
    assert bytes_before > 50e6
    with store.barrier.passed():
        assert not store.rest(seconds=0.0, idle=0), "a statement is under way"
    assert store.rest(seconds=0.0, idle=0)
    with store.barrier.by_owner():
        store.forget_answers()
        ((bytes_after,),) = store.rows(BUFFERED_BYTES)
    assert bytes_after <= 33e6
    assert not store.rest(seconds=0.0, idle=0), "only its owner has asked since"
    store.forget_answers()
    assert store.rows(HIGHEST) == before
    assert store.rows("SELECT current_setting('memory_limit')") == limit
    store.close()


def test_excess_buffer_memory_is_released_during_constant_queries(path: Path) -> None:
    store = Store(path)
    with store.transaction() as writer:
        writer.execute(NUMBERS)
    before = store.rows(HIGHEST)
    ((bytes_before,),) = store.rows(BUFFERED_BYTES)
    assert bytes_before > 50e6
    assert not store.rest(seconds=60.0, idle=0, most=10**12), "it is not too much"
    with store.barrier.passed():
        assert not store.rest(seconds=60.0, idle=0, most=50_000_000), "a statement is under way"
    assert store.rest(seconds=60.0, idle=0, most=50_000_000)
    store.forget_answers()
    ((bytes_after,),) = store.rows(BUFFERED_BYTES)
    assert bytes_after <= 33e6
    assert store.rest(seconds=0.0, idle=0), "and all of it once nobody asks"
    assert store.rows(HIGHEST) == before
    store.close()


def test_memory_that_cannot_be_released_is_not_requested_repeatedly(path: Path) -> None:
    store = Store(path)
    with store.transaction() as writer:
        writer.execute(NUMBERS)
    store.rows(HIGHEST)
    assert store.rest(seconds=60.0, most=1)
    assert not store.rest(seconds=60.0, most=1)
    store.close()


def test_in_memory_store_releases_nothing() -> None:
    store = Store()
    store.rows("SELECT 1")
    assert not store.rest(seconds=0.0, idle=0)


def test_home_is_created_at_its_path_or_refused(tmp_path: Path) -> None:
    """DuckDB interprets some characters of a path differently."""
    for sign in "?\\":
        with pytest.raises(HomeError, match="DuckDB does not accept"):
            Home.choose(tmp_path / f"a{sign}b")
    characters = set(string.punctuation + " é\u202e") - set("?\\/")
    home = Home.choose(tmp_path / "".join(sorted(characters))).prepare()
    Store(home.database).close()
    assert home.database.is_file()
    assert sorted(tmp_path.iterdir()) == [home.path]


def test_home_with_a_non_utf8_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="its path is not UTF-8"):
        Home.choose(tmp_path / "caf\udce9")
