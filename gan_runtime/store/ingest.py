"""From journals to tables: reads what is new in each journal and commits rows and offset together.

Killed at any moment, it goes on without losing or doubling a row. A rebuild is the same with all offsets at zero.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from gan_runtime import journal
from gan_runtime.home import Home
from gan_runtime.journal import Record
from gan_runtime.rundir import RunDir
from gan_runtime.store.store import Store, Writer

# Rows beyond the step from which a later attempt goes on: that attempt measures them again.
_STEPPED = ("scalars", "arrivals", "epochs", "histograms", "samples", "profiles", "memory")
_ALL = (
    "offsets",
    "created",
    "statuses",
    "changes",
    "names",
    "hosts",
    "plans",
    "phases",
    "kernels",
    "events",
    "worker_times",
    "surfaces",
    *_STEPPED,
)

# Dated by what is left of the line, else by the run's submission: a rebuild then gives the same row.
_TORN = """
INSERT INTO ingest.events
SELECT ?, 1, coalesce(try_cast(? AS TIMESTAMPTZ), min(created_at)), 'warning', 'journal', ? FROM ingest.created WHERE run_id = ?
"""


class Ingestor:
    """Feeds one store from the journals of one home. Called by one thread at a time."""

    def __init__(self, home: Home, store: Store) -> None:
        self._home, self._store = home, store
        self._offsets: dict[str, dict[str, int]] = {}  # run id → journal → first byte not yet in the tables
        for run_id, name, next_byte in store.rows("SELECT run_id, journal, next_byte FROM ingest.offsets"):
            self._offsets.setdefault(run_id, {})[name] = next_byte
        self._compared: dict[str, tuple[int, ...]] = {}  # run id → the supervisor's journal when its beginning was last compared

    def catch_up(self) -> int:
        """Takes in everything that the journals hold by now, and removes the rows of runs whose folder is gone.

        Returns the number of records and removed runs; 0 means that there is no news.
        """
        runs = self._home.run_dirs()
        missing = self._offsets.keys() - {run.run_id for run in runs}
        for run_id in missing:
            self.forget(run_id)
        return len(missing) + sum(self.catch_up_run(run) for run in runs)

    def catch_up_run(self, run: RunDir) -> int:
        """As `catch_up`, for one run that has a folder. What vanishes meanwhile is left to the next look."""
        news = 0
        with contextlib.suppress(FileNotFoundError):
            journals = run.journals()
            if self._is_replaced(run, journals):
                self.forget(run.run_id)
                news += 1
            for path in journals:
                news += self._catch_up_journal(run, path)
        return news

    def forget(self, run_id: str) -> None:
        """Removes every row of a run."""
        with self._store.transaction() as writer:
            for table in _ALL:
                writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ?", [run_id])
        self._offsets.pop(run_id, None)
        self._compared.pop(run_id, None)

    def _is_replaced(self, run: RunDir, journals: list[Path]) -> bool:
        """Whether the rows come from other journals than those: the folder was made anew, or put back from a copy."""
        offsets = self._offsets.get(run.run_id, {})
        stats = {path.name: path.stat() for path in journals}
        if any(name not in stats or stats[name].st_size < offset for name, offset in offsets.items()):
            return True
        supervisor = stats.get(run.supervisor_journal.name)
        if supervisor is None or run.supervisor_journal.name not in offsets:
            return False
        now = (supervisor.st_ino, supervisor.st_size, supervisor.st_mtime_ns)
        if self._compared.get(run.run_id) == now:
            return False
        self._compared[run.run_id] = now
        return not self._begins_as_stored(run)

    def _begins_as_stored(self, run: RunDir) -> bool:
        stored = self._store.rows("SELECT created_at FROM ingest.created WHERE run_id = ?", [run.run_id])
        with run.supervisor_journal.open("rb") as file:
            first = journal.parse([file.readline()])
        return [(record.at,) for record in first if isinstance(record, journal.Created)] == stored

    def _catch_up_journal(self, run: RunDir, path: Path) -> int:
        offset, count = self._offsets.get(run.run_id, {}).get(path.name, 0), 0
        while path.stat().st_size > offset:
            chunk = journal.read(path, offset)
            if chunk.end == offset:
                break  # only the beginning of a line so far
            self._commit(run, path.name, chunk)
            self._offsets.setdefault(run.run_id, {})[path.name] = offset = chunk.end
            count += len(chunk.records)
        return count

    def _commit(self, run: RunDir, name: str, chunk: journal.Chunk) -> None:
        with self._store.transaction() as writer:
            # An attempt that starts again voids later rows, so what came before it must be in the tables by then.
            for batch in _split_at_attempts(chunk.records):
                _write(writer, run, name, batch)
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


def _write(writer: Writer, run: RunDir, name: str, records: list[Record]) -> None:
    tables: dict[str, list[tuple[Any, ...]]] = {}
    for record in records:
        if isinstance(record, journal.AttemptStart):
            _void(writer, run, name, record.resume_step)
        for table, row in _rows(run, record):
            tables.setdefault(table, []).append(row)
    for table, rows in tables.items():
        writer.append(table, rows)


def _void(writer: Writer, run: RunDir, name: str, resume_step: int) -> None:
    """Removes what the writer of the journal `name` had measured beyond the step. Journals are read one after the other, so
    one worker's new attempt must not touch rows of another, which may be older or newer than it."""
    rank = int(name.removeprefix("journal-").removesuffix(".jsonl"))
    if rank == 0:
        for table in _STEPPED:
            writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ? AND step > ?", [run.run_id, resume_step])
    writer.execute("DELETE FROM ingest.worker_times WHERE run_id = ? AND rank = ? AND step > ?", [run.run_id, rank, resume_step])


def _rows(run: RunDir, record: Record) -> list[tuple[str, tuple[Any, ...]]]:
    """(table, row) pairs of one record, the columns in the order of schema.sql."""
    run_id, attempt = run.run_id, record.attempt
    match record:
        case journal.Created():
            study = record.study.model_dump_json() if record.study else None
            return [
                ("created", (run_id, record.at, json.dumps(record.spec), record.accelerator, record.color, record.preset, study))
            ]
        case journal.StatusChange():
            return [("statuses", (run_id, attempt, record.at, record.status, record.reason, record.queue_rank))]
        case journal.Changed():
            return [("changes", (run_id, attempt, json.dumps(record.spec)))]
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
        case journal.WorkerTimes():
            last = record.first_step + record.steps - 1
            times = (record.steps, record.step_s, record.compute_s, record.wait_s)
            return [("worker_times", (run_id, attempt, record.rank, last, record.epoch, *times))]
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
        case journal.Profile():
            return [
                ("profiles", (run_id, attempt, record.step, record.steps, item.network, item.category, item.seconds, item.share))
                for item in record.shares
            ]
        case journal.Memory():
            process, device = (record.process_bytes, record.process_peak_bytes), (record.device_bytes, record.device_peak_bytes)
            return [("memory", (run_id, attempt, record.step, record.epoch, *process, *device))]
        case journal.Phase():
            return [("phases", (run_id, attempt, record.phase, record.seconds))]
        case journal.Kernels():
            counts = (record.operations, record.kernels_before, record.kernels_after, record.fusions)
            return [("kernels", (run_id, attempt, *counts))]
        case journal.Surface():
            path = (record.path_epoch, record.path_x, record.path_y, record.path_loss)
            grid = (record.x, record.y, record.loss)
            return [
                ("surfaces", (run_id, record.at, record.network, *grid, *path, record.share_x, record.share_y, record.images))
            ]
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
