"""A batch of one run's journals that waits to be committed: rows, offsets, and void stored rows.

Also the reasons why a run cannot be stored, as text.
"""

from __future__ import annotations

import contextlib
import os
import re
from datetime import UTC, datetime

from gan_runtime.base.errors import GanRuntimeError, PictureError
from gan_runtime.records import image_files, journal
from gan_runtime.records.earlier_records import Earlier, answer_of
from gan_runtime.records.record import YEARS, Author, Origin, Record, Row
from gan_runtime.records.run_folder import RunDir, Stamp
from gan_runtime.store import scalar_blocks
from gan_runtime.store.record_tables import RecordTable, RecordTables
from gan_runtime.store.store import Store, Writer, may_be_of_one_run


def unreadable(run: RunDir, stamps: dict[str, Stamp]) -> str | None:
    """Why the run cannot be stored; "" when it can, None without a whole line."""
    supervisor = run.supervisor_journal
    if not stamps:
        return None
    if supervisor.name not in stamps:
        return f"{supervisor.name} is missing"
    match journal.first(supervisor):
        case None:
            return None
        case journal.Created():
            return ""
        case journal.SkippedLine(reason=reason):
            return (
                f"the first line of {supervisor.name} must be the submission, but cannot be read"
                + (f" ({reason.rstrip('.')})" if reason else "")
            )
        case _:
            return f"the first line of {supervisor.name} must be the submission"


def printable(name: str) -> str:
    """A folder's name as text, with invalid UTF-8 and control characters as \\xff."""
    text = os.fsencode(name).decode("utf-8", errors="backslashreplace")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def reason_of(error: Exception) -> str:
    """An unexpected error with one run, as the end of a sentence."""
    if isinstance(error, GanRuntimeError):
        return str(error).rstrip(".")
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror or type(error).__name__})"
    first = (str(error).splitlines() or [""])[0][:200]
    if may_be_of_one_run(error):
        return (
            f"it cannot be stored ({type(error).__name__}: {first}), and the next try is within a"
            " minute: free some memory, or delete the run"
        )
    return f"it cannot be stored ({type(error).__name__}: {first})"


MAX_EVENTS = 20  # most events about invalid lines of one batch
_LAST_SCALARS = """
    INSERT INTO ingest.last_scalars SELECT * FROM ingest.scalars WHERE run_id = ?
    QUALIFY step = max(step) OVER (PARTITION BY metric)
"""
OTHER_TABLES = ("offsets", "last_scalars", "scalar_blocks")  # further tables with rows of runs
_STEP, _METRIC = 2, 4  # columns of scalars


class NewestSteps:
    """The newest step of each series of a run, so that a repeated line is stored once."""

    def __init__(self, newest: dict[tuple[str, str], int]) -> None:
        self._newest = newest

    @classmethod
    def stored(cls, store: Store, run_id: str) -> NewestSteps:
        """The newest steps of a run in the tables."""
        shorter = {"scalars": "last_scalars"}
        selects = (
            f"SELECT '{table.name}', {series.name or chr(39) * 2}, max(step) FROM"
            f" ingest.{shorter.get(table.name, table.name)} WHERE run_id = $run GROUP BY ALL"
            for table in store.tables.in_steps
            if (series := table.series) and not series.is_of_worker
        )
        rows = store.rows(" UNION ALL ".join(selects), {"run": run_id})
        return cls({(table, name): step for table, name, step in rows if step is not None})

    def advance(self, table: str, name: str, step: int) -> int | None:
        """Records a step; returns the previous step, -1 before the first, None for a
        repeated step.
        """
        series = (table, name)
        before = self._newest.get(series, -1)
        if step <= before:
            return None
        self._newest[series] = step
        return before

    def newest(self, table: str) -> int:
        """The newest step of all series of a table; 0 without one."""
        return max((step for (name, _), step in self._newest.items() if name == table), default=0)

    def go_back(self, step: int) -> None:
        """Resets to a step, since later steps are measured again."""
        self._newest = {series: min(newest, step) for series, newest in self._newest.items()}


class IngestBatch:
    """Records of one run. `is_new`: whether the tables have no rows of the run. `created_at`: time
    of its submission, if stored.
    """

    def __init__(
        self,
        run: RunDir,
        tables: RecordTables,
        newest_steps: NewestSteps,
        is_new: bool,
        created_at: datetime | None,
    ) -> None:
        self._tables = tables
        self.run, self.newest_steps, self.is_new, self.created_at = (
            run,
            newest_steps,
            is_new,
            created_at,
        )
        self.rows: dict[str, list[Row]] = {}
        self.offsets: dict[str, int] = {}
        self.count = 0  # records
        self.stamps: dict[str, Stamp] | None = None  # set once all journals are read to the end
        self.newest: tuple[journal.Standing, journal.Status] | None = None
        self._void_after: dict[int, int] = {}  # rank → step beyond which stored rows are void
        # table → (number of rows before a new attempt, rank) → step beyond which they are void
        self._voids: dict[str, dict[tuple[int, int], int]] = {}
        self._images: dict[str, int] = {}  # file → step of the first record that names it
        self._events = 0

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(map(len, self.rows.values()))

    def take(self, name: str, chunk: journal.Chunk) -> None:
        """Adds records read from the journal `name`."""
        authors = self._authors(name)
        for record, place in zip(chunk.records, chunk.places, strict=True):
            reason = self._take(name, authors, record, place)
            if reason:
                self._warn(record.at, f"A line of {name} was skipped: {reason}.")
        for line in chunk.skipped:
            reason = (
                f"was skipped: {line.reason.rstrip('.')}."
                if line.reason
                else "cannot be read and was skipped."
            )
            self._warn(_written_at(line.line) or self.created_at, f"A line of {name} {reason}")
        self.offsets[name] = chunk.end
        self.count += len(chunk.records)

    def write(self, writer: Writer) -> None:
        """Removes void rows and old offsets; `write_rows` adds the new ones."""
        self.drop_void_rows()
        run_id = self.run.run_id
        for rank, step in self._void_after.items():
            for table in self._void_by(rank):
                of_worker = f" AND rank = {rank:d}" if table.rank_place else ""
                writer.execute(
                    f"DELETE FROM ingest.{table.name} WHERE run_id = ? AND step > ?{of_worker}",
                    [run_id, step],
                )
        self._write_last_scalars(writer)
        if not self.is_new:
            writer.execute(
                "DELETE FROM ingest.offsets WHERE run_id = ? AND list_contains(?, journal)",
                [run_id, list(self.offsets)],
            )

    def _write_last_scalars(self, writer: Writer) -> None:
        """Removes replaced last values; after a void, earlier values are the last again."""
        run_id = self.run.run_id
        if 0 in self._void_after:
            writer.execute("DELETE FROM ingest.last_scalars WHERE run_id = ?", [run_id])
            writer.execute(_LAST_SCALARS, [run_id])
        newest = {row[_METRIC]: row for row in self.rows.get("scalars", ())}
        if newest and not self.is_new:
            writer.execute(
                "DELETE FROM ingest.last_scalars WHERE run_id = ? AND list_contains(?, metric)",
                [run_id, list(newest)],
            )
        self.rows["last_scalars"] = list(newest.values())

    def write_blocks(self, writer: Writer) -> None:
        """Updates the blocks of a long run, once its scalars are written."""
        void_after, last_step = self._void_after.get(0), self.newest_steps.newest("scalars")
        if last_step < scalar_blocks.LONG and void_after is None:
            return
        changed = [row[_STEP] for row in self.rows.get("scalars", ())]
        if void_after is not None:
            changed.append(void_after + 1)
        if changed:
            scalar_blocks.update(writer, self.run.run_id, min(changed), last_step)

    def _take(self, name: str, authors: tuple[Author, ...], record: Record, place: int) -> str:
        """Adds the rows of one record; returns the reason why it was skipped, or ""."""
        if record.author not in authors and (
            place > 0 or record.author is not Author.SUBMISSION or Author.SUPERVISOR not in authors
        ):
            return record.author.value
        match record:
            case journal.Created():
                self.created_at = record.at
            case journal.AttemptStart():
                self._void(journal.rank(name) or 0, record.resume_step)
            case journal.StatusChange():
                standing = record.standing(name, place)
                self.newest = max(
                    self.newest or (standing, record.status), (standing, record.status)
                )
            case _ if isinstance(record, Earlier):
                record = answer_of(record)
        origin = Origin(self.run.run_id, name, place, self._png)
        tables = self._tables.of[type(record)]
        last, added, repeats = 0, 0, 0
        for table in tables:
            if table.series is None or table.series.is_of_worker:
                self._add(table.name, table.rows(record, origin))
                continue
            for series, last, rows_after in table.parts(record, origin):
                newest = self.newest_steps.advance(table.name, series, last)
                if newest is not None:
                    self._add(table.name, rows_after(newest))
                    added += 1
                else:
                    repeats += table is tables[0]
        return f"step {last} is stored already" if repeats and not added else ""

    def _authors(self, name: str) -> tuple[Author, ...]:
        """The authors of a journal, except of the submission in its first line."""
        worker = journal.rank(name)
        authors = {
            Author.ANYONE: True,
            Author.SUPERVISOR: name == self.run.supervisor_journal.name,
            Author.WORKER: worker is not None,
            Author.FIRST_WORKER: worker == 0,
        }
        return tuple(author for author, is_allowed in authors.items() if is_allowed)

    def _png(self, grid: journal.Sample) -> bytes | None:
        """The image of a record. Each is stored once: a small file with many records that name a
        large one would fill the disk.
        """
        try:
            if grid.file in self._images:
                raise PictureError("an earlier record names the same file")
            self._images[grid.file] = grid.step
            return image_files.read_grid(self.run, grid.file)
        except PictureError as error:
            self._warn(grid.at, f"The image of epoch {grid.epoch} was skipped: {error}.")
            return None

    def _void(self, rank: int, resume_step: int) -> None:
        """Removes a worker's rows beyond the step. Journals are read one after another, so a
        worker's new attempt must not change other workers' rows.
        """
        if not self.is_new:
            self._void_after[rank] = min(resume_step, self._void_after.get(rank, resume_step))
        if rank == 0:
            self.newest_steps.go_back(resume_step)
            while self._images and next(reversed(self._images.values())) > resume_step:
                self._images.popitem()
        for table in self._void_by(rank):
            voids = self._voids.setdefault(table.name, {})
            place = (len(self.rows.get(table.name, ())), rank)
            voids[place] = min(resume_step, voids.get(place, resume_step))

    def drop_void_rows(self) -> None:
        """Drops the rows that a later attempt made void, in one pass from the newest, as a journal
        can have many attempts.
        """
        for name, voids in self._voids.items():
            table = self._tables.by_name[name]
            of_worker, step = table.rank_place, table.step_place or 0
            rows, least, kept = self.rows.get(name, []), dict[int, int](), list[Row]()
            while rows:
                while voids and next(reversed(voids))[0] >= len(rows):
                    (_, rank), void_after = voids.popitem()
                    least[rank] = min(void_after, least.get(rank, void_after))
                row = rows.pop()
                last = least.get(row[of_worker] if of_worker else 0)
                if last is None or row[step] <= last:
                    kept.append(row)
            self.rows[name] = kept[::-1]
        self._voids.clear()

    def _void_by(self, rank: int) -> list[RecordTable]:
        """The tables of rows that a new attempt of a worker makes void."""
        return [table for table in self._tables.in_steps if rank == 0 or table.rank_place]

    def _add(self, table: str, rows: list[Row]) -> None:
        self.rows.setdefault(table, []).extend(rows)

    def _warn(self, at: datetime | None, message: str) -> None:
        """Adds an event of the run, up to MAX_EVENTS."""
        self._events += 1
        if self._events <= MAX_EVENTS:
            self._add("events", [(self.run.run_id, 1, at, "warning", "journal", message)])


def write_rows(writer: Writer, batches: list[IngestBatch]) -> None:
    """Adds the rows of several runs, table by table."""
    tables = dict.fromkeys(table for batch in batches for table, rows in batch.rows.items() if rows)
    for table in tables:
        writer.append(table, [row for batch in batches for row in batch.rows.get(table, ())])
    writer.append(
        "offsets",
        [(batch.run.run_id, *offset) for batch in batches for offset in batch.offsets.items()],
    )


def _written_at(line: bytes) -> datetime | None:
    """The time in a torn line, so that a rebuild gives the same row."""
    stamp = re.search(rb'"at":"([0-9T:.Z-]+)"', line)
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(stamp[1].decode()) if stamp else None
        if moment and YEARS[0] <= moment.year < YEARS[1]:
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
