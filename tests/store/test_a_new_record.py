"""A record kind is declared once: its class alone defines the journal line, table, rows, view,
export and what bundles omit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import duckdb
import pytest
from pydantic import BaseModel, Field

from gan_runtime.bundles.export import export
from gan_runtime.bundles.packing import Privacy, records_of
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.kinds import RECORDS
from gan_runtime.records.measured import PhaseSeconds
from gan_runtime.records.record import (
    MAX_NAME,
    Author,
    Bytes,
    Column,
    Count,
    Document,
    Name,
    Private,
    Rank,
    Record,
    RowSeries,
    RowTable,
    Sharing,
    Step,
    Text,
)
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.record_tables import RecordTables, sql_type
from gan_runtime.store.store import Store

NewRun = Callable[..., RunDir]


class Heat(BaseModel):
    """Temperature of one device, in degrees."""

    device: Name
    celsius: float


class Temperatures(Record):
    """Device temperatures in a step; this is the whole declaration."""

    author = Author.FIRST_WORKER
    tables = (
        RowTable(
            "temperatures",
            (
                "attempt",
                "step",
                "device",
                "celsius",
                "number",
                Column("hottest", lambda record, _: record.hottest, "DOUBLE"),
            ),
            each="devices",
            series=RowSeries(),
            is_public=True,
            is_exported=True,
        ),
        RowTable("coolings", ("attempt", Column("told", "message"), "facts", "place")),
    )

    kind: Literal["temperatures"] = "temperatures"
    step: Step
    devices: list[Heat]
    message: Text = ""
    facts: Annotated[Document, Sharing.PROSE, Private("serial")] = Field(default_factory=dict)
    owner: Annotated[str | None, Sharing.HOME] = None

    @property
    def hottest(self) -> float:
        """Maximum over all devices."""
        return max(device.celsius for device in self.devices)


KINDS = (*RECORDS, Temperatures)


def heat(step: int, *celsius: float) -> Temperatures:
    devices = [Heat(device=f"cpu:{number}", celsius=value) for number, value in enumerate(celsius)]
    return Temperatures(
        step=step,
        devices=devices,
        message="the fan of lab-7 is loud",
        facts={"serial": "X1", "fan": "lab-7", "folder": "/home/ada/run"},
        owner="Ada",
    )


@pytest.fixture
def store() -> Store:
    return Store(tables=RecordTables(KINDS))


def test_new_record_kind_gets_tables_with_columns_from_its_fields(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, heat(4, 50.0, 60.0), heat(8, 70.0))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    assert store.rows("SELECT * FROM temperatures ORDER BY step, number") == [
        ("quick-0001", 1, 4, "cpu:0", 50.0, 0, 60.0),
        ("quick-0001", 1, 4, "cpu:1", 60.0, 1, 60.0),
        ("quick-0001", 1, 8, "cpu:0", 70.0, 0, 70.0),
    ]
    assert store.rows("SELECT column_name, column_type FROM (DESCRIBE ingest.coolings)") == [
        ("run_id", "VARCHAR"),
        ("attempt", "INTEGER"),
        ("told", "VARCHAR"),
        ("facts", "JSON"),
        ("place", "BIGINT"),
    ]
    assert store.rows("SELECT facts->>'fan', place > 0 FROM ingest.coolings LIMIT 1 OFFSET 1") == [
        ("lab-7", True)
    ]
    ingestor.forget("quick-0001")
    assert store.rows("SELECT * FROM temperatures") == []


def test_resume_voids_later_rows_and_a_repeated_line_counts_once(
    home: Home, store: Store, new_run: NewRun
) -> None:
    path = new_run("quick-0001").trainer_journal()
    journal.append(path, 1, heat(4, 50.0), heat(4, 51.0), heat(8, 70.0))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    journal.append(path, 2, journal.AttemptStart(resume_step=4), heat(8, 40.0))
    ingestor.catch_up()
    assert store.rows("SELECT attempt, step, celsius FROM temperatures ORDER BY step") == [
        (1, 4, 50.0),
        (2, 8, 40.0),
    ]
    [(message,)] = store.rows("SELECT message FROM events WHERE kind = 'journal'")
    assert message == "A line of journal-0.jsonl was skipped: step 4 is stored already."


def test_record_in_another_writers_journal_is_skipped(
    home: Home, store: Store, new_run: NewRun
) -> None:
    journal.append(new_run("quick-0001").supervisor_journal, 1, heat(4, 50.0))
    Ingestor(home, store).catch_up()
    assert store.rows("SELECT * FROM temperatures") == []
    [(message,)] = store.rows("SELECT message FROM events WHERE kind = 'journal'")
    assert message.endswith("was skipped: only the first worker's journal contains this.")


def test_public_view_of_a_new_record_is_exported(
    home: Home, store: Store, new_run: NewRun, tmp_path: Path
) -> None:
    journal.append(new_run("quick-0001").trainer_journal(), 1, heat(4, 50.0))
    Ingestor(home, store).catch_up()
    files = export(store, ["quick-0001"], tmp_path, "parquet")
    assert tmp_path / "temperatures.parquet" in files
    rows = duckdb.sql(f"SELECT step, celsius FROM '{tmp_path}/temperatures.parquet'").fetchall()
    assert rows == [(4, 50.0)]


def test_bundle_omits_fields_marked_private(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.trainer_journal(), 1, journal.HostFacts(facts={"hostname": "lab-7"}), heat(4, 50.0)
    )
    lines = [
        record for record in records_of(run.trainer_journal(), KINDS) if isinstance(record, dict)
    ]
    public = Privacy(run, lines, KINDS).record(lines[1])
    assert public["message"] == "the fan of host is loud"
    assert public["facts"] == {"fan": "host", "folder": "run"}
    assert public["owner"] is None
    assert "lab-7" not in json.dumps(public)
    assert public["devices"] == [{"device": "cpu:0", "celsius": 50.0}]


def test_bundle_redacts_text_of_undeclared_records(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.trainer_journal(), 1, journal.HostFacts(facts={"hostname": "lab-7"}), heat(4, 50.0)
    )
    lines = [record for record in records_of(run.trainer_journal()) if isinstance(record, dict)]
    assert "lab-7" not in json.dumps(Privacy(run, lines).record(lines[1]))


@pytest.mark.parametrize(
    ("hint", "sql"),
    [
        (Rank, "INTEGER"),
        (Bytes | None, "BIGINT"),
        (list[Count], "BIGINT[]"),
        (dict[Name, float], "MAP(VARCHAR, DOUBLE)"),
        (Document, "JSON"),
        (bool, "BOOLEAN"),
        (Literal["cpu", "gpu"], "VARCHAR"),
        (list[Heat], 'STRUCT("device" VARCHAR, "celsius" DOUBLE)[]'),
    ],
)
def test_column_type_follows_field_type(hint: object, sql: str) -> None:
    assert sql_type(hint) == sql


def test_kinds_sharing_a_table_must_agree_on_its_columns() -> None:
    class Stage(PhaseSeconds):
        tables = (RowTable("phases", ("attempt", "seconds")),)

    with pytest.raises(ValueError, match="two kinds of records declare other columns of phases"):
        RecordTables((PhaseSeconds, Stage))


def test_line_that_exceeds_a_field_limit_is_skipped(
    home: Home, store: Store, new_run: NewRun
) -> None:
    path = new_run("quick-0001").trainer_journal()
    whole = heat(4, 50.0).model_dump_json()
    journal.append(path, 1, heat(1, 40.0))
    with path.open("a") as file:
        file.write(whole.replace("cpu:0", "c" * (MAX_NAME + 1)) + "\n")
    Ingestor(home, store).catch_up()
    assert store.rows("SELECT step FROM temperatures") == [(1,)]
    [(message,)] = store.rows("SELECT message FROM events WHERE kind = 'journal'")
    assert "devices.0.device" in message
