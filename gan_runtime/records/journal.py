"""The journal: append-only JSON lines, one record a line, the truth from which results.duckdb is made.

A trainer appends to its own journal and fsyncs at each flush. Whoever reads takes whole lines only: a line that a crash
tore stays invisible until it is ended, and is then skipped and counted.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from gan_runtime.errors import HomeError, JournalError
from gan_runtime.records.entry import now
from gan_runtime.records.flow import Flow, FlowScore, FlowSeries, FlowStage
from gan_runtime.records.kinds import (
    Changed,
    Condition,
    Created,
    Event,
    Level,
    Marked,
    Record,
    Renamed,
    StatusChange,
    StudyPlace,
)
from gan_runtime.records.measured import (
    AttemptStart,
    EpochDone,
    EpochScores,
    Histogram,
    HostFacts,
    Kernels,
    Memory,
    Phase,
    Plan,
    Profile,
    Sample,
    Scalars,
    Surface,
    TimeShare,
    WorkerTimes,
)
from gan_runtime.records.physics import Physics, PhysicsCurve, PhysicsScore, PhysicsShower
from gan_runtime.records.states import ACTIVE, ENDED, STAGES, Status

__all__ = [
    "ACTIVE",
    "ENDED",
    "AttemptStart",
    "Changed",
    "Chunk",
    "Condition",
    "Created",
    "EpochDone",
    "EpochScores",
    "Event",
    "Flow",
    "FlowScore",
    "FlowSeries",
    "FlowStage",
    "Histogram",
    "HostFacts",
    "JournalWriter",
    "Kernels",
    "Level",
    "Marked",
    "Memory",
    "Phase",
    "Physics",
    "PhysicsCurve",
    "PhysicsScore",
    "PhysicsShower",
    "Plan",
    "Profile",
    "Record",
    "Renamed",
    "Sample",
    "Scalars",
    "SideJournalWriter",
    "Skipped",
    "Standing",
    "Status",
    "StatusChange",
    "StudyPlace",
    "Surface",
    "TimeShare",
    "WorkerTimes",
    "append",
    "first",
    "is_journal",
    "now",
    "rank",
    "read",
    "read_all",
    "source",
    "standing",
    "statuses",
]

MAX_LINE = 64_000_000  # bytes; the longest record, a call of 10,000 steps with 20 metrics, has 5 MB
_READER: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


class JournalWriter:
    """Appends records to one journal. Not shared between threads; `attempt` is stamped on every record."""

    def __init__(self, path: Path, attempt: int = 1) -> None:
        self.attempt = attempt
        self._path, self._file = path, path.open("ab", buffering=0)
        self._torn = _ends_torn(path)

    def write(self, *records: Record) -> None:
        """Appends the records and waits until the disk has them. What an earlier write left half done is ended first.

        Raises:
            HomeError: the disk is full or broken; perhaps only a part was written.
        """
        lines = [record.model_copy(update={"attempt": self.attempt}).model_dump_json() for record in records]
        text = ("\n" if self._torn else "") + "\n".join(lines) + "\n"
        self._torn = True  # until everything is written
        try:
            self._write_all(text.encode())
            os.fsync(self._file.fileno())
        except OSError as error:
            raise HomeError.not_written(self._path, error) from None
        self._torn = False

    def _write_all(self, data: bytes) -> None:
        """A disk that is nearly full takes the beginning only and says so by its number of bytes, not by an error."""
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        """Ends the writing."""
        self._file.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SideJournalWriter(JournalWriter):
    """The journal of a worker other than the first: its times and its failure; everything else the first one writes."""

    def write(self, *records: Record) -> None:
        """Appends those of the records that are this worker's own."""
        own = [record for record in records if _is_of_one_worker(record)]
        if own:
            super().write(*own)


def _is_of_one_worker(record: Record) -> bool:
    if isinstance(record, StatusChange):
        return record.status == "failed"
    return isinstance(record, AttemptStart | WorkerTimes)


def append(path: Path, attempt: int, *records: Record) -> None:
    """Opens, appends and closes: for journals that are written now and then."""
    with JournalWriter(path, attempt) as writer:
        writer.write(*records)


@dataclass(frozen=True)
class Skipped:
    """A line that is no record. `place`: its first byte; `reason`: what is wrong with a whole one, empty for a torn one."""

    line: bytes
    place: int
    reason: str = ""


@dataclass(frozen=True)
class Chunk:
    """Records read from a journal, the first byte of each one's line, the offset to go on from, and the lines that are none."""

    records: list[Record]
    places: list[int]
    end: int
    skipped: tuple[Skipped, ...]


def read(path: Path, offset: int = 0, max_bytes: int = 4_000_000) -> Chunk:
    """The whole records after byte `offset`. A last line without its newline is left for the next time.

    Raises:
        JournalError: a line is longer than any record, such as a file of something else.
    """
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(max_bytes) + file.readline(
            MAX_LINE
        )  # a line longer than `max_bytes` would stop the reader for ever
    end = data.rfind(b"\n") + 1
    if len(data) - end >= MAX_LINE:
        raise JournalError(f"{path.name} has a line of more than {MAX_LINE:,} bytes")
    records: list[Record] = []
    places: list[int] = []
    skipped: list[Skipped] = []
    place = offset
    for line in data[:end].splitlines(keepends=True):
        try:
            records.append(_READER.validate_json(line))
            places.append(place)
        except ValidationError as error:
            if line.strip():
                skipped.append(Skipped(line, place, _reason(error)))
        place += len(line)
    return Chunk(records, places, offset + end, tuple(skipped))


def read_all(path: Path) -> list[Record]:
    """Every whole record of a journal; empty when it does not exist."""
    if not path.exists():
        return []
    return read(path, max_bytes=-1).records


def first(path: Path) -> Record | Skipped | None:
    """The record of the first line, or what is wrong with it; None as long as it is not whole."""
    with path.open("rb") as file:
        line = file.readline(MAX_LINE)
    if not line.endswith(b"\n"):
        return Skipped(line, 0, "it is too long") if len(line) == MAX_LINE else None
    try:
        return _READER.validate_json(line)
    except ValidationError as error:
        return Skipped(line, 0, _reason(error))


def statuses(path: Path) -> list[tuple[int, StatusChange]]:
    """The changes of state in a journal, each with the place of its line. Other lines are not looked at."""
    changes: list[tuple[int, StatusChange]] = []
    place = 0
    with path.open("rb") as file:
        for line in file:
            if b'"status"' in line and line.endswith(b"\n"):
                with contextlib.suppress(ValidationError):
                    record = _READER.validate_json(line)
                    if isinstance(record, StatusChange):
                        changes.append((place, record))
            place += len(line)
    return changes


def _reason(error: ValidationError) -> str:
    """The first thing that is wrong with a line, without what the line says; empty for one that was torn."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if wrong["type"] == "json_invalid":
        return ""
    if wrong["type"].startswith("union_tag"):
        return "it is of no kind that this version knows"
    where = ".".join(str(part) for part in wrong["loc"][1:] if str(part).isprintable())[:80]
    return f"{where}: {wrong['msg'].removeprefix('Value error, ')}"[:300].removeprefix(": ")


# Whose word counts, where several wrote down the same stage of an attempt: the owner, who only sees that a process is gone,
# comes after every worker, those after the first one, and all after the launcher, which has heard them out.
_SUPERVISOR, _LAUNCHER = "journal-supervisor.jsonl", "journal-launcher.jsonl"
_FIRST_WORKER = 10_000_000
_NAME = re.compile(r"journal-(supervisor|launcher|surface|physics|flow|[0-9]{1,6})\.jsonl")


def is_journal(name: str) -> bool:
    """Whether a file of this name is a journal of a run."""
    return _NAME.fullmatch(name) is not None


def rank(name: str) -> int | None:
    """The worker whose journal this is; None for the other journals."""
    number = name.removeprefix("journal-").removesuffix(".jsonl")
    return int(number) if number.isdecimal() else None


def source(name: str) -> int:
    """The weight of what a journal says of the run's state; more counts more."""
    if name == _LAUNCHER:
        return _FIRST_WORKER + 1
    worker = rank(name)
    return 0 if worker is None else _FIRST_WORKER - worker


Standing = tuple[int, int, int, int]


def standing(change: StatusChange, journal_name: str, place: int) -> Standing:
    """The order of a run's states, in which no clock has a part: attempt, stage, whose word, place in the journal."""
    return (change.attempt, STAGES[change.status], source(journal_name), place)


def _ends_torn(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
