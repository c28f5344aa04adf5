"""From journals to tables: reads what is new in each journal and commits rows and offset together.

Killed at any moment, it goes on without losing or doubling a row. A rebuild is the same with all offsets at zero.
"""

from __future__ import annotations

import json
import re
from typing import Any

from gan_runtime import journal
from gan_runtime.home import Home
from gan_runtime.journal import Record
from gan_runtime.rundir import RunDir
from gan_runtime.store.store import Store, Writer

# Rows beyond the step from which a later attempt goes on: that attempt measures them again.
_STEPPED = ("scalars", "arrivals", "epochs", "histograms", "samples")
_ALL = ("offsets", "created", "statuses", "names", "hosts", "plans", "phases", "events", *_STEPPED)

# Dated by what is left of the line, else by the run's submission: a rebuild then gives the same row.
_TORN = """
INSERT INTO ingest.events
SELECT ?, 1, coalesce(try_cast(? AS TIMESTAMPTZ), min(created_at)), 'warning', 'journal', ? FROM ingest.created WHERE run_id = ?
"""


class Ingestor:
    """Feeds one store from the journals of one home. Called by one thread at a time."""

    def __init__(self, home: Home, store: Store) -> None:
        self._home, self._store = home, store
        self._offsets: dict[tuple[str, str], int] = {
            (run_id, name): next_byte
            for run_id, name, next_byte in store.rows("SELECT run_id, journal, next_byte FROM ingest.offsets")
        }

    def catch_up(self) -> int:
        """Takes in everything that the journals hold by now; returns the number of records."""
        return sum(self.catch_up_run(run) for run in self._home.run_dirs())

    def catch_up_run(self, run: RunDir) -> int:
        """As `catch_up`, for one run."""
        count = 0
        for path in run.journals():
            key = (run.run_id, path.name)
            while path.stat().st_size > self._offsets.get(key, 0):
                chunk = journal.read(path, self._offsets.get(key, 0))
                if chunk.end == self._offsets.get(key, 0):
                    break  # only the beginning of a line so far
                self._commit(run, path.name, chunk)
                self._offsets[key] = chunk.end
                count += len(chunk.records)
        return count

    def forget(self, run_id: str) -> None:
        """Removes every row of a run whose folder is gone."""
        with self._store.transaction() as writer:
            for table in _ALL:
                writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ?", [run_id])
        self._offsets = {key: offset for key, offset in self._offsets.items() if key[0] != run_id}

    def forget_missing(self) -> int:
        """Removes the rows of runs whose folder is gone; returns the number of such runs."""
        present = {run.run_id for run in self._home.run_dirs()}
        missing = {run_id for run_id, _ in self._offsets} - present
        for run_id in missing:
            self.forget(run_id)
        return len(missing)

    def _commit(self, run: RunDir, name: str, chunk: journal.Chunk) -> None:
        with self._store.transaction() as writer:
            # An attempt that starts again voids later rows, so what came before it must be in the tables by then.
            for batch in _split_at_attempts(chunk.records):
                _write(writer, run, batch)
            for line in chunk.torn:
                writer.execute(
                    _TORN, [run.run_id, _written_at(line), f"A line of {name} cannot be read and was skipped.", run.run_id]
                )
            writer.execute("DELETE FROM ingest.offsets WHERE run_id = ? AND journal = ?", [run.run_id, name])
            writer.append("offsets", [(run.run_id, name, chunk.end)])


def _written_at(line: bytes) -> str | None:
    stamp = re.search(rb'"at":"([0-9T:.Z-]+)"', line)
    return stamp[1].decode() if stamp else None


def _split_at_attempts(records: list[Record]) -> list[list[Record]]:
    batches: list[list[Record]] = [[]]
    for record in records:
        if isinstance(record, journal.AttemptStart):
            batches.append([])
        batches[-1].append(record)
    return batches


def _write(writer: Writer, run: RunDir, records: list[Record]) -> None:
    tables: dict[str, list[tuple[Any, ...]]] = {}
    for record in records:
        if isinstance(record, journal.AttemptStart):
            for table in _STEPPED:
                writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ? AND step > ?", [run.run_id, record.resume_step])
        for table, row in _rows(run, record):
            tables.setdefault(table, []).append(row)
    for table, rows in tables.items():
        writer.append(table, rows)


def _rows(run: RunDir, record: Record) -> list[tuple[str, tuple[Any, ...]]]:
    """(table, row) pairs of one record, the columns in the order of schema.sql."""
    run_id, attempt = run.run_id, record.attempt
    match record:
        case journal.Created():
            return [("created", (run_id, record.at, json.dumps(record.spec), record.accelerator, record.color, record.preset))]
        case journal.StatusChange():
            return [("statuses", (run_id, attempt, record.at, record.status, record.reason, record.queue_rank))]
        case journal.Renamed():
            return [("names", (run_id, record.at, record.name))]
        case journal.HostFacts():
            return [("hosts", (run_id, attempt, json.dumps(record.facts)))]
        case journal.AttemptStart():
            return []
        case journal.Plan():
            return [("plans", (run_id, attempt, record.images, record.steps_per_epoch, record.epochs))]
        case journal.Scalars():
            return _scalar_rows(run_id, record)
        case journal.EpochDone():
            return [("epochs", (run_id, attempt, record.epoch, record.step, record.seconds, record.images, record.images_per_s))]
        case journal.EpochScores():
            return [
                ("scalars", (run_id, attempt, record.step, record.epoch, metric, value, record.wall_s))
                for metric, value in record.values.items()
            ]
        case journal.Histogram():
            return [
                (
                    "histograms",
                    (run_id, attempt, record.step, record.epoch, record.name, record.bin_left, record.bin_right, record.count),
                )
            ]
        case journal.Sample():
            return [
                (
                    "samples",
                    (run_id, attempt, record.step, record.epoch, record.sample_kind, _png(run, record), json.dumps(record.meta)),
                )
            ]
        case journal.Phase():
            return [("phases", (run_id, attempt, record.phase, record.seconds))]
        case journal.Event():
            return [("events", (run_id, attempt, record.at, record.level, record.topic, record.message))]


def _scalar_rows(run_id: str, record: journal.Scalars) -> list[tuple[str, tuple[Any, ...]]]:
    rows: list[tuple[str, tuple[Any, ...]]] = [
        ("scalars", (run_id, record.attempt, record.first_step + index, record.epoch, metric, value, record.wall_s[index]))
        for metric, values in record.values.items()
        for index, value in enumerate(values)
    ]
    last_step = record.first_step + len(record.wall_s) - 1
    return [*rows, ("arrivals", (run_id, record.attempt, last_step, record.at))]


def _png(run: RunDir, record: journal.Sample) -> bytes | None:
    path = run.path / record.file
    return path.read_bytes() if path.is_file() else None
