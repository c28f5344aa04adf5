"""The journal: an append-only file with one JSON record per line, from which results.duckdb is
built.

A trainer appends to its own journal and fsyncs every write. Readers read only whole lines: a line
torn by a crash is invisible until a newline ends it, and is then skipped and counted.
"""

from __future__ import annotations

import functools
import io
import operator
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from gan_runtime.base.errors import HomeError
from gan_runtime.records import run_files
from gan_runtime.records.answer import Answer
from gan_runtime.records.earlier_records import Surface
from gan_runtime.records.kinds import (
    RECORDS,
    AttemptPlan,
    AttemptStart,
    Changed,
    Condition,
    Created,
    Event,
    HostFacts,
    Level,
    Marked,
    Renamed,
    StatusChange,
    StudyPlace,
)
from gan_runtime.records.measured import (
    EpochDone,
    EpochScores,
    Histogram,
    KernelCounts,
    MemoryUse,
    PhaseSeconds,
    Profile,
    Sample,
    Scalars,
    TimeShare,
    WorkerTimes,
)
from gan_runtime.records.record import Record, now
from gan_runtime.records.run_files import answer_place, is_journal, rank, source
from gan_runtime.records.states import ACTIVE, ENDED, Standing, Status

__all__ = [
    "ACTIVE",
    "ENDED",
    "Answer",
    "AttemptPlan",
    "AttemptStart",
    "Changed",
    "Chunk",
    "Condition",
    "Created",
    "EpochDone",
    "EpochScores",
    "Event",
    "Histogram",
    "HostFacts",
    "JournalWriter",
    "KernelCounts",
    "Level",
    "Marked",
    "MemoryUse",
    "PhaseSeconds",
    "Profile",
    "Reader",
    "Record",
    "Renamed",
    "Sample",
    "Scalars",
    "SideJournalWriter",
    "SkippedLine",
    "Standing",
    "Status",
    "StatusChange",
    "StudyPlace",
    "Surface",
    "TimeShare",
    "WorkerTimes",
    "answer_place",
    "append",
    "chunks",
    "first",
    "is_journal",
    "naming",
    "now",
    "rank",
    "read",
    "read_all",
    "reader_of",
    "source",
    "statuses",
]

Reader = TypeAdapter[Record]


def reader_of(kinds: tuple[type[Record], ...]) -> Reader:
    """A parser of lines with records of these kinds."""
    any_of: Any = functools.reduce(operator.or_, kinds)
    return TypeAdapter(Annotated[any_of, Field(discriminator="kind")])


READER = reader_of(RECORDS)


class JournalWriter:
    """Appends records to one journal, one write at a time; `attempt` is stamped on every record."""

    def __init__(self, path: Path, attempt: int = 1) -> None:
        self.attempt = attempt
        self._path, self._file = path, path.open("ab", buffering=0)
        self._torn = _ends_torn(path)
        self._writing = threading.Lock()

    def write(self, *records: Record) -> None:
        """Appends the records and waits until they are on the disk.

        If an earlier write was cut off, a newline ends it first.

        Raises HomeError if the disk is full or broken; a part can be written.
        """
        texts = [
            record.model_copy(update={"attempt": self.attempt}).model_dump_json()
            for record in records
        ]
        with self._writing:
            text = ("\n" if self._torn else "") + "\n".join(texts) + "\n"
            self._torn = True  # until everything is written
            try:
                self._write_all(text.encode())
                os.fsync(self._file.fileno())
            except OSError as error:
                raise HomeError.not_written(self._path, error) from None
            self._torn = False

    def _write_all(self, data: bytes) -> None:
        """Writes all bytes. On a nearly full disk one write can store only the first part."""
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SideJournalWriter(JournalWriter):
    """The journal of a worker with a rank above 0: only its times and its failure."""

    def write(self, *records: Record) -> None:
        """Appends those records that describe this worker; drops the others."""
        worker_records = [record for record in records if _is_of_one_worker(record)]
        if worker_records:
            super().write(*worker_records)


def _is_of_one_worker(record: Record) -> bool:
    if isinstance(record, StatusChange):
        return record.status == "failed"
    return isinstance(record, AttemptStart | WorkerTimes)


def append(path: Path, attempt: int, *records: Record) -> None:
    """Opens, appends and closes."""
    with JournalWriter(path, attempt) as writer:
        writer.write(*records)


@dataclass(frozen=True)
class SkippedLine:
    """A line that is no valid record. `place`: offset of its first byte; `reason`: empty for a torn
    line.
    """

    line: bytes
    place: int
    reason: str = ""


@dataclass(frozen=True)
class Chunk:
    """Records of a journal with the offset of each line, the offset to continue from, and the
    invalid lines.
    """

    records: list[Record]
    places: list[int]
    end: int
    skipped: tuple[SkippedLine, ...]


def chunks(
    path: Path, offset: int = 0, max_bytes: int = run_files.PIECE_BYTES, reader: Reader = READER
) -> Iterator[Chunk]:
    """The whole records after byte `offset`, piece by piece, without an unfinished last line.

    Raises JournalError when a line is too long or too many lines are no records.
    """
    bad = run_files.BadLines(path)
    for piece in run_files.pieces(path, offset, max_bytes):
        records: list[Record] = []
        places: list[int] = []
        skipped: list[SkippedLine] = []
        for line in io.BytesIO(piece):
            read_line = _record(line, reader)
            if isinstance(read_line, SkippedLine):
                bad.count()
                if line.strip():
                    skipped.append(replace(read_line, place=offset))
            else:
                records.append(read_line)
                places.append(offset)
            offset += len(line)
        yield Chunk(records, places, offset, tuple(skipped))


def read(path: Path, offset: int = 0, max_bytes: int = run_files.PIECE_BYTES) -> Chunk:
    """The first of `chunks`, or an empty chunk if nothing is new."""
    return next(chunks(path, offset, max_bytes), Chunk([], [], offset, ()))


def read_all(path: Path) -> list[Record]:
    """All whole records; empty without a file. Raises as `chunks`."""
    if not path.exists():
        return []
    return [record for chunk in chunks(path) for record in chunk.records]


def first(path: Path) -> Record | SkippedLine | None:
    """The first line; None while it is unfinished. Raises as `chunks`."""
    piece = next(run_files.pieces(path, size=1), b"")
    return _record(piece) if piece else None


def naming(path: Path, word: bytes) -> Iterator[tuple[int, Record]]:
    """The records whose lines contain `word`, with their offsets; other lines are not parsed.

    Raises as `chunks`.
    """
    place, bad = 0, run_files.BadLines(path)
    for piece in run_files.pieces(path):
        for line in io.BytesIO(piece) if word in piece else ():
            if word in line:
                record = _record(line)
                if isinstance(record, SkippedLine):
                    bad.count()
                else:
                    yield place, record
            place += len(line)
        place += 0 if word in piece else len(piece)


def statuses(path: Path) -> list[tuple[int, StatusChange]]:
    """The changes of state in a journal, with their offsets. Raises as `chunks`."""
    named = naming(path, b'"status"')
    return [(place, record) for place, record in named if isinstance(record, StatusChange)]


def _record(line: bytes, reader: Reader = READER) -> Record | SkippedLine:
    if not line.strip():
        return SkippedLine(line, 0)
    try:
        return reader.validate_json(line)
    except ValidationError as error:
        return SkippedLine(line, 0, _reason(error))


def _reason(error: ValidationError) -> str:
    """The first error of a line, without its content; empty for a torn line."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if wrong["type"] == "json_invalid":
        return ""
    if wrong["type"].startswith("union_tag"):
        return "this version does not know its kind"
    where = ".".join(str(part) for part in wrong["loc"][1:] if str(part).isprintable())[:80]
    return f"{where}: {wrong['msg'].removeprefix('Value error, ')}"[:300].removeprefix(": ")


def _ends_torn(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
