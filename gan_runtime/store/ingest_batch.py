"""What was read of one run's journals and waits to be committed: rows, offsets, and which stored
rows became void.

And in words: why nothing of a run can be stored.
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
from gan_runtime.store.record_tables import RecordTable, RecordTables
from gan_runtime.store.store import Store, Writer, may_be_of_one_run


def unreadable(run: RunDir, stamps: dict[str, Stamp]) -> str | None:
    """Why nothing of the run can be stored; empty when it can. None: it has no whole line yet."""
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
        case journal.Skipped(reason=reason):
            return (
                f"the first line of {supervisor.name} must say what was submitted, but cannot be"
                " read" + (f" ({reason.rstrip('.')})" if reason else "")
            )
        case _:
            return (
                f"the first line of {supervisor.name} must say what was submitted, but says"
                " something else"
            )


def printable(name: str) -> str:
    """A folder's name as text for lists and terminals: bytes that are no UTF-8, and control
    characters, as \\xff.
    """
    text = os.fsencode(name).decode("utf-8", errors="backslashreplace")
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def reason_of(error: Exception) -> str:
    """An unforeseen error with one run, as the end of a sentence."""
    if isinstance(error, GanRuntimeError):
        return str(error).rstrip(".")
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror or type(error).__name__})"
    first = (str(error).splitlines() or [""])[0][:200]
    if may_be_of_one_run(error):
        return (
            f"it cannot be stored ({type(error).__name__}: {first}): it is tried again each minute,"
            " so end what needs memory, or delete it"
        )
    return f"it cannot be stored ({type(error).__name__}: {first})"


MAX_TOLD = 20  # lines of a piece of a journal that are told one by one when they cannot be read
_LAST_SCALARS = """
    INSERT INTO ingest.last_scalars SELECT * FROM ingest.scalars WHERE run_id = ?
    QUALIFY step = max(step) OVER (PARTITION BY metric)
"""
OTHER_TABLES = ("offsets", "last_scalars")  # they hold rows of runs too
_METRIC = 4  # column of scalars


class NewestSteps:
    """The newest step of each series of a run, so that a line which stands in its journal
    twice is taken in once.
    """

    def __init__(self, newest: dict[tuple[str, str], int]) -> None:
        self._newest = newest

    @classmethod
    def stored(cls, store: Store, run_id: str) -> NewestSteps:
        """As the tables have them."""
        shorter = {"scalars": "last_scalars"}
        selects = (
            f"SELECT '{table.name}', {series.name or chr(39) * 2}, max(step) FROM"
            f" ingest.{shorter.get(table.name, table.name)} WHERE run_id = $run GROUP BY ALL"
            for table in store.tables.in_steps
            if (series := table.series) and not series.is_of_worker
        )
        found = store.rows(" UNION ALL ".join(selects), {"run": run_id})
        return cls({(table, name): step for table, name, step in found if step is not None})

    def advance(self, table: str, name: str, step: int) -> int | None:
        """Notes a step; returns the one before, -1 before the first.

        None: the series has come as far already.
        """
        series = (table, name)
        before = self._newest.get(series, -1)
        if step <= before:
            return None
        self._newest[series] = step
        return before

    def go_back(self, step: int) -> None:
        """What lies beyond the step is measured again."""
        self._newest = {series: min(newest, step) for series, newest in self._newest.items()}


class Intake:
    """Of one run.

    `is_new`: the tables hold nothing of it yet; `created_at`: of its submission, if that is stored.
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
        self.stamps: dict[str, Stamp] | None = None  # once all journals were read to their ends
        self.newest: tuple[journal.Standing, journal.Status] | None = None
        self._kept_steps: dict[
            int, int
        ] = {}  # rank → the step beyond which its stored rows are void
        self._told = 0

    @property
    def size(self) -> int:
        """Rows."""
        return sum(map(len, self.rows.values()))

    def take(self, name: str, chunk: journal.Chunk) -> None:
        """Adds what was read from the journal `name`."""
        authors = self._authors(name)
        for record, place in zip(chunk.records, chunk.places, strict=True):
            reason = self._take(name, authors, record, place)
            if reason:
                self._tell(record.at, f"A line of {name} was skipped: {reason}.")
        for line in chunk.skipped:
            reason = (
                f"was skipped: {line.reason.rstrip('.')}."
                if line.reason
                else "cannot be read and was skipped."
            )
            self._tell(_written_at(line.line) or self.created_at, f"A line of {name} {reason}")
        self.offsets[name] = chunk.end
        self.count += len(chunk.records)

    def write(self, writer: Writer) -> None:
        """Removes what became void, and notes the offsets; the rows themselves are added by
        `write_rows`.
        """
        run_id = self.run.run_id
        for rank, step in self._kept_steps.items():
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
        """Removes those that have newer ones now, which are added with the rows; after a void
        the earlier ones are the last again.
        """
        run_id = self.run.run_id
        if 0 in self._kept_steps:
            writer.execute("DELETE FROM ingest.last_scalars WHERE run_id = ?", [run_id])
            writer.execute(_LAST_SCALARS, [run_id])
        newest = {row[_METRIC]: row for row in self.rows.get("scalars", ())}
        if newest and not self.is_new:
            writer.execute(
                "DELETE FROM ingest.last_scalars WHERE run_id = ? AND list_contains(?, metric)",
                [run_id, list(newest)],
            )
        self.rows["last_scalars"] = list(newest.values())

    def _take(self, name: str, authors: tuple[Author, ...], record: Record, place: int) -> str:
        """Adds the rows of one record; returns why it was left out, or nothing."""
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
                standing = journal.standing(record, name, place)
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
        """Whose records the journal of this name may hold, but for the submission in its
        first line.
        """
        worker = journal.rank(name)
        held = {
            Author.ANYONE: True,
            Author.SUPERVISOR: name == self.run.supervisor_journal.name,
            Author.WORKER: worker is not None,
            Author.FIRST_WORKER: worker == 0,
        }
        return tuple(author for author, is_held in held.items() if is_held)

    def _png(self, grid: journal.Sample) -> bytes | None:
        try:
            return image_files.read_grid(self.run, grid.file)
        except PictureError as error:
            self._tell(grid.at, f"The picture of epoch {grid.epoch} was left out: {error}.")
            return None

    def _void(self, rank: int, resume_step: int) -> None:
        """What the worker has measured beyond the step is measured again.

        Journals are read one after the other, so one worker's new attempt must not touch rows of
        another, which may be older or newer than it.
        """
        if not self.is_new:
            self._kept_steps[rank] = min(resume_step, self._kept_steps.get(rank, resume_step))
        if rank == 0:
            self.newest_steps.go_back(resume_step)
        for table in self._void_by(rank):
            of_worker, step = table.rank_place, table.step_place or 0
            self.rows[table.name] = [
                row
                for row in self.rows.get(table.name, ())
                if row[step] <= resume_step or (of_worker and row[of_worker] != rank)
            ]

    def _void_by(self, rank: int) -> list[RecordTable]:
        """The tables of rows that a new attempt of a worker makes void: those of a run follow
        its first one.
        """
        return [table for table in self._tables.in_steps if rank == 0 or table.rank_place]

    def _add(self, table: str, rows: list[Row]) -> None:
        self.rows.setdefault(table, []).extend(rows)

    def _tell(self, at: datetime | None, message: str) -> None:
        """As an event of the run.

        A file of something else has too many bad lines to tell of each.
        """
        self._told += 1
        if self._told <= MAX_TOLD:
            self._add("events", [(self.run.run_id, 1, at, "warning", "journal", message)])


def write_rows(writer: Writer, intakes: list[Intake]) -> None:
    """Adds the rows of several runs, one table after the other."""
    tables = dict.fromkeys(
        table for intake in intakes for table, found in intake.rows.items() if found
    )
    for table in tables:
        writer.append(table, [row for intake in intakes for row in intake.rows.get(table, ())])
    writer.append(
        "offsets",
        [(intake.run.run_id, *item) for intake in intakes for item in intake.offsets.items()],
    )


def _written_at(line: bytes) -> datetime | None:
    """What a torn line says of its time: a rebuild then gives the same row."""
    stamp = re.search(rb'"at":"([0-9T:.Z-]+)"', line)
    with contextlib.suppress(ValueError):
        found = datetime.fromisoformat(stamp[1].decode()) if stamp else None
        if found and YEARS[0] <= found.year < YEARS[1]:
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
