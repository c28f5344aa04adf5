"""The journal: append-only JSON lines, one record a line, the truth from which results.duckdb is
made.

A trainer appends to its own journal and fsyncs at each flush. Whoever reads takes whole lines only:
a line that a crash tore stays invisible until it is ended, and is then skipped and counted.
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
from gan_runtime.records.earlier_kinds import Surface
from gan_runtime.records.kinds import (
    RECORDS,
    AttemptStart,
    Changed,
    Condition,
    Created,
    Event,
    HostFacts,
    Level,
    Marked,
    Plan,
    Renamed,
    StatusChange,
    StudyPlace,
)
from gan_runtime.records.measured import (
    EpochDone,
    EpochScores,
    Histogram,
    Kernels,
    Memory,
    Phase,
    Profile,
    Sample,
    Scalars,
    TimeShare,
    WorkerTimes,
)
from gan_runtime.records.record import Record, now
from gan_runtime.records.states import (
    ACTIVE,
    ENDED,
    Standing,
    Status,
    answer_place,
    is_journal,
    rank,
    source,
    standing,
)

__all__ = [
    "ACTIVE",
    "ENDED",
    "Answer",
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
    "Kernels",
    "Level",
    "Marked",
    "Memory",
    "Phase",
    "Plan",
    "Profile",
    "Reader",
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
    "standing",
    "statuses",
]

Reader = TypeAdapter[Record]


def reader_of(kinds: tuple[type[Record], ...]) -> Reader:
    """It reads lines that hold records of these kinds."""
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
        """Appends the records and waits until the disk has them.

        What an earlier write left half done is ended first.

        Raises:
            HomeError: the disk is full or broken; perhaps only a part was written.
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
        """A disk that is nearly full takes the beginning only and says so by its number of
        bytes, not by an error.
        """
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
    """The journal of a worker other than the first: its times and its failure; everything
    else the first one writes.
    """

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
    """A line that is no record.

    `place`: its first byte; `reason`: what is wrong with a whole one, empty for a torn one.
    """

    line: bytes
    place: int
    reason: str = ""


@dataclass(frozen=True)
class Chunk:
    """Records read from a journal, the first byte of each one's line, the offset to go on
    from, and the lines that are none.
    """

    records: list[Record]
    places: list[int]
    end: int
    skipped: tuple[Skipped, ...]


def chunks(
    path: Path, offset: int = 0, max_bytes: int = run_files.PIECE_BYTES, reader: Reader = READER
) -> Iterator[Chunk]:
    """The whole records after byte `offset`, piece by piece.

    A last line without its newline is left for the next time.

    Raises:
        JournalError: a line is longer than any record, or too many lines are none, such as in a
            file of something else.
    """
    bad = run_files.BadLines(path)
    for piece in run_files.pieces(path, offset, max_bytes):
        records: list[Record] = []
        places: list[int] = []
        skipped: list[Skipped] = []
        for line in io.BytesIO(piece):
            read_line = _record(line, reader)
            if isinstance(read_line, Skipped):
                bad.count()
                if line.strip():
                    skipped.append(replace(read_line, place=offset))
            else:
                records.append(read_line)
                places.append(offset)
            offset += len(line)
        yield Chunk(records, places, offset, tuple(skipped))


def read(path: Path, offset: int = 0, max_bytes: int = run_files.PIECE_BYTES) -> Chunk:
    """The first of `chunks`; one without records where there is nothing new."""
    return next(chunks(path, offset, max_bytes), Chunk([], [], offset, ()))


def read_all(path: Path) -> list[Record]:
    """Every whole record of a journal; empty when it does not exist. Raises as `chunks`."""
    if not path.exists():
        return []
    return [record for chunk in chunks(path) for record in chunk.records]


def first(path: Path) -> Record | Skipped | None:
    """The record of the first line, or what is wrong with it; None as long as it is not whole.

    Raises as `chunks`.
    """
    piece = next(run_files.pieces(path, size=1), b"")
    return _record(piece) if piece else None


def naming(path: Path, word: bytes) -> Iterator[tuple[int, Record]]:
    """The records whose lines hold `word`, each with the place of its line.

    Other lines, which may be many, are not looked at. Raises as `chunks`.
    """
    place, bad = 0, run_files.BadLines(path)
    for piece in run_files.pieces(path):
        for line in io.BytesIO(piece) if word in piece else ():
            if word in line:
                record = _record(line)
                if isinstance(record, Skipped):
                    bad.count()
                else:
                    yield place, record
            place += len(line)
        place += 0 if word in piece else len(piece)


def statuses(path: Path) -> list[tuple[int, StatusChange]]:
    """The changes of state in a journal, each with the place of its line.

    Other lines are not looked at. Raises as `chunks`.
    """
    named = naming(path, b'"status"')
    return [(place, record) for place, record in named if isinstance(record, StatusChange)]


def _record(line: bytes, reader: Reader = READER) -> Record | Skipped:
    if not line.strip():  # there is nothing to say of it
        return Skipped(line, 0)
    try:
        return reader.validate_json(line)
    except ValidationError as error:
        return Skipped(line, 0, _reason(error))


def _reason(error: ValidationError) -> str:
    """The first thing that is wrong with a line, without what the line says; empty for one
    that was torn.
    """
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if wrong["type"] == "json_invalid":
        return ""
    if wrong["type"].startswith("union_tag"):
        return "it is of no kind that this version knows"
    where = ".".join(str(part) for part in wrong["loc"][1:] if str(part).isprintable())[:80]
    return f"{where}: {wrong['msg'].removeprefix('Value error, ')}"[:300].removeprefix(": ")


def _ends_torn(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
