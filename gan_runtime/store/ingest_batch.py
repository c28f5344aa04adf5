"""What was read of one run's journals and waits to be committed: rows, offsets, and which stored rows became void."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime

from gan_runtime.base.errors import PictureError
from gan_runtime.records import journal
from gan_runtime.records import sample_files as pictures
from gan_runtime.records.columns import YEARS
from gan_runtime.records.earlier_kinds import answer_of
from gan_runtime.records.journal import Record
from gan_runtime.records.run_folder import RunDir, Stamp
from gan_runtime.store import rows
from gan_runtime.store.rows import Row
from gan_runtime.store.store import Store, Writer

# Tables whose rows are void beyond the step from which a later attempt goes on, with the column that holds the step.
STEPPED = {
    "scalars": 2,
    "arrivals": 2,
    "epochs": 3,
    "histograms": 2,
    "samples": 2,
    "profiles": 2,
    "memory": 2,
}
# All that hold rows of runs.
TABLES = (
    *(
        "offsets",
        "created",
        "statuses",
        "changes",
        "names",
        "marks",
        "hosts",
        "plans",
        "last_scalars",
        "phases",
        "kernels",
        "events",
        "worker_times",
        "evaluations",
        "evaluation_scores",
        "evaluation_curves",
        "evaluation_arrays",
    ),
    *STEPPED,
)
_METRIC = 4  # column of scalars
MAX_TOLD = 20  # lines of a piece of a journal that are told one by one when they cannot be read
_LAST_SCALARS = """
    INSERT INTO ingest.last_scalars SELECT * FROM ingest.scalars WHERE run_id = ?
    QUALIFY step = max(step) OVER (PARTITION BY metric)
"""
_ONLY_FIRST_WORKER = "only the first worker measures this"


class NewestSteps:
    """The newest step of each series of a run, so that a line which stands in its journal twice is taken in once."""

    def __init__(self, newest: dict[tuple[str, str], int]) -> None:
        self._newest = newest

    @classmethod
    def stored(cls, store: Store, run_id: str) -> NewestSteps:
        """As the tables have them."""
        names = {"scalars": "metric", "histograms": "name", "samples": "kind"}
        shorter = {"scalars": "last_scalars"}
        selects = (
            f"SELECT '{table}', {names.get(table, chr(39) * 2)}, max(step) FROM ingest.{shorter.get(table, table)} "
            "WHERE run_id = $run GROUP BY ALL"
            for table in STEPPED
        )
        found = store.rows(" UNION ALL ".join(selects), {"run": run_id})
        return cls({(table, name): step for table, name, step in found if step is not None})

    def newest(self, table: str, name: str = "") -> int:
        """-1 before the first."""
        return self._newest.get((table, name), -1)

    def advance(self, table: str, name: str, step: int) -> bool:
        """Notes a step; False when the series has come as far already."""
        if step <= self.newest(table, name):
            return False
        self._newest[(table, name)] = step
        return True

    def go_back(self, step: int) -> None:
        """What lies beyond the step is measured again."""
        self._newest = {series: min(newest, step) for series, newest in self._newest.items()}


class Intake:
    """Of one run. `is_new`: the tables hold nothing of it yet; `created_at`: of its submission, if that is stored."""

    def __init__(
        self, run: RunDir, newest_steps: NewestSteps, is_new: bool, created_at: datetime | None
    ) -> None:
        self.run, self.newest_steps, self.is_new, self.created_at = run, newest_steps, is_new, created_at
        self.rows: dict[str, list[Row]] = {}
        self.offsets: dict[str, int] = {}
        self.count = 0  # records
        self.stamps: dict[str, Stamp] | None = None  # once all journals were read to their ends
        self.newest: tuple[journal.Standing, journal.Status] | None = None
        self._kept_steps: dict[int, int] = {}  # rank → the step beyond which its stored rows are void
        self._told = 0

    @property
    def size(self) -> int:
        """Rows."""
        return sum(map(len, self.rows.values()))

    def take(self, name: str, chunk: journal.Chunk) -> None:
        """Adds what was read from the journal `name`."""
        for record, place in zip(chunk.records, chunk.places, strict=True):
            reason = self._take(name, record, place)
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
        """Removes what became void, and notes the offsets; the rows themselves are added by `write_rows`."""
        run_id = self.run.run_id
        for rank, step in self._kept_steps.items():
            for table in STEPPED if rank == 0 else ():
                writer.execute(f"DELETE FROM ingest.{table} WHERE run_id = ? AND step > ?", [run_id, step])
            writer.execute(
                "DELETE FROM ingest.worker_times WHERE run_id = ? AND rank = ? AND step > ?",
                [run_id, rank, step],
            )
        self._write_last_scalars(writer)
        if not self.is_new:
            writer.execute(
                "DELETE FROM ingest.offsets WHERE run_id = ? AND list_contains(?, journal)",
                [run_id, list(self.offsets)],
            )

    def _write_last_scalars(self, writer: Writer) -> None:
        """Removes those that have newer ones now, which are added with the rows; after a void the earlier ones are the last again."""
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

    def _take(self, name: str, record: Record, place: int) -> str:
        """Adds the rows of one record; returns why it was left out, or nothing."""
        run_id, worker = self.run.run_id, journal.rank(name)
        match record:
            case journal.Created():
                if name != self.run.supervisor_journal.name or place > 0:
                    return "a run is submitted once, in the first line of its supervisor's journal"
                self.created_at = record.at
            case journal.AttemptStart():
                if worker is None:
                    return "only a worker's journal tells of an attempt"
                self._void(worker, record.resume_step)
                return ""
            case journal.StatusChange():
                standing = journal.standing(record, name, place)
                self.newest = max(self.newest or (standing, record.status), (standing, record.status))
                self._add("statuses", rows.status(run_id, record, standing))
                return ""
            case journal.Renamed():
                self._add("names", rows.name(run_id, record, place))
                return ""
            case journal.Marked():
                if name != self.run.supervisor_journal.name:
                    return "only the supervisor's journal tells what a person thinks of a run"
                self._add("marks", rows.marks(run_id, record, place))
                return ""
            case journal.Answer():
                self._take_answer(name, record, place)
                return ""
            case journal.Surface() | journal.Physics() | journal.Flow():
                self._take_answer(name, answer_of(record), place)
                return ""
            case journal.Scalars() | journal.EpochScores() | journal.Sample():
                return _ONLY_FIRST_WORKER if worker != 0 else self._take_measured(record)
            case journal.EpochDone() | journal.Histogram() | journal.Profile() | journal.Memory():
                if worker != 0:
                    return _ONLY_FIRST_WORKER
                table, series = _series(record)
                if not self.newest_steps.advance(table, series, record.step):
                    return f"step {record.step} is stored already"
        for table, row in rows.rows(run_id, record):
            self._add(table, row)
        return ""

    def _take_answer(self, name: str, answer: journal.Answer, place: int) -> None:
        found = rows.answer(self.run.run_id, answer, journal.answer_place(name, place))
        for table, lines in found.items():
            self.rows.setdefault(table, []).extend(lines)

    def _take_measured(self, record: journal.Scalars | journal.EpochScores | journal.Sample) -> str:
        run_id, added = self.run.run_id, 0
        match record:
            case journal.Scalars():
                last = record.first_step + len(record.wall_s) - 1
                for metric in record.values:
                    first = max(0, self.newest_steps.newest("scalars", metric) - record.first_step + 1)
                    if self.newest_steps.advance("scalars", metric, last):
                        self.rows.setdefault("scalars", []).extend(rows.steps(run_id, record, metric, first))
                        added += 1
                if self.newest_steps.advance("arrivals", "", last):
                    self._add("arrivals", rows.arrival(run_id, record))
            case journal.EpochScores():
                last = record.step
                for metric in record.values:
                    if self.newest_steps.advance("scalars", metric, last):
                        self._add("scalars", rows.score(run_id, record, metric))
                        added += 1
            case journal.Sample():
                last = record.step
                if self.newest_steps.advance("samples", record.sample_kind, last):
                    self._add("samples", rows.sample(run_id, record, self._png(record)))
                    added += 1
        is_repeat = added == 0 and not (
            isinstance(record, journal.Scalars | journal.EpochScores) and not record.values
        )
        return f"step {last} is stored already" if is_repeat else ""

    def _png(self, grid: journal.Sample) -> bytes | None:
        try:
            return pictures.read(self.run, grid.file)
        except PictureError as error:
            self._tell(grid.at, f"The picture of epoch {grid.epoch} was left out: {error}.")
            return None

    def _void(self, rank: int, resume_step: int) -> None:
        """What the worker has measured beyond the step is measured again. Journals are read one after the other, so
        one worker's new attempt must not touch rows of another, which may be older or newer than it."""
        if not self.is_new:
            self._kept_steps[rank] = min(resume_step, self._kept_steps.get(rank, resume_step))
        if rank == 0:
            self.newest_steps.go_back(resume_step)
            for table, column in STEPPED.items():
                if table in self.rows:
                    self.rows[table] = [row for row in self.rows[table] if row[column] <= resume_step]
        times = self.rows.get("worker_times", [])
        self.rows["worker_times"] = [row for row in times if row[2] != rank or row[3] <= resume_step]

    def _add(self, table: str, row: Row) -> None:
        self.rows.setdefault(table, []).append(row)

    def _tell(self, at: datetime | None, message: str) -> None:
        """As an event of the run. A file of something else has too many bad lines to tell of each."""
        self._told += 1
        if self._told <= MAX_TOLD:
            self._add("events", (self.run.run_id, 1, at, "warning", "journal", message))


def write_rows(writer: Writer, intakes: list[Intake]) -> None:
    """Adds the rows of several runs, one table after the other."""
    tables = dict.fromkeys(table for intake in intakes for table, found in intake.rows.items() if found)
    for table in tables:
        writer.append(table, [row for intake in intakes for row in intake.rows.get(table, ())])
    writer.append(
        "offsets", [(intake.run.run_id, *item) for intake in intakes for item in intake.offsets.items()]
    )


def _series(
    record: journal.EpochDone | journal.Histogram | journal.Profile | journal.Memory,
) -> tuple[str, str]:
    """Table, and the name under which steps come in it in order."""
    match record:
        case journal.EpochDone():
            return ("epochs", "")
        case journal.Histogram():
            return ("histograms", record.name)
        case journal.Profile():
            return ("profiles", "")
        case journal.Memory():
            return ("memory", "")


def _written_at(line: bytes) -> datetime | None:
    """What a torn line says of its time: a rebuild then gives the same row."""
    stamp = re.search(rb'"at":"([0-9T:.Z-]+)"', line)
    with contextlib.suppress(ValueError):
        found = datetime.fromisoformat(stamp[1].decode()) if stamp else None
        if found and YEARS[0] <= found.year < YEARS[1]:
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
