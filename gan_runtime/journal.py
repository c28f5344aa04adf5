"""The journal: append-only JSON lines, one record a line, the truth from which results.duckdb is made.

A trainer appends to its own journal and fsyncs at each flush. Whoever reads takes whole lines only: a line that a crash
tore stays invisible until it is ended, and is then skipped and counted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from gan_runtime.errors import HomeError
from gan_runtime.records import (
    ACTIVE,
    ENDED,
    AttemptStart,
    Changed,
    Created,
    EpochDone,
    EpochScores,
    Event,
    Histogram,
    HostFacts,
    Kernels,
    Level,
    Memory,
    Phase,
    Plan,
    Profile,
    Record,
    Renamed,
    Sample,
    Scalars,
    Status,
    StatusChange,
    StudyPlace,
    Surface,
    TimeShare,
    WorkerTimes,
    now,
)

__all__ = [
    "ACTIVE",
    "ENDED",
    "AttemptStart",
    "Changed",
    "Chunk",
    "Created",
    "EpochDone",
    "EpochScores",
    "Event",
    "Histogram",
    "HostFacts",
    "JournalWriter",
    "Kernels",
    "Level",
    "Memory",
    "Phase",
    "Plan",
    "Profile",
    "Record",
    "Renamed",
    "Sample",
    "Scalars",
    "SideJournalWriter",
    "Status",
    "StatusChange",
    "StudyPlace",
    "Surface",
    "TimeShare",
    "WorkerTimes",
    "append",
    "now",
    "parse",
    "read",
    "read_all",
]

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
class Chunk:
    """Records read from a journal; `end` is the offset to go on from, `torn` holds the lines that are no record."""

    records: list[Record]
    end: int
    torn: tuple[bytes, ...]


def read(path: Path, offset: int = 0, max_bytes: int = 4_000_000) -> Chunk:
    """The whole records after byte `offset`. A last line without its newline is left for the next time."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(max_bytes) + file.readline()  # a line longer than that would stop the reader for ever
    end = data.rfind(b"\n") + 1
    lines = [line for line in data[:end].splitlines(keepends=True) if line.strip()]
    parsed = [(line, parse([line])) for line in lines]
    records = [record for _, found in parsed for record in found]
    return Chunk(records, offset + end, tuple(line for line, found in parsed if not found))


def read_all(path: Path) -> list[Record]:
    """Every whole record of a journal; empty when it does not exist."""
    if not path.exists():
        return []
    return read(path, max_bytes=-1).records


def parse(lines: Iterable[bytes]) -> list[Record]:
    """The records in some lines; lines that are none are left out."""
    records: list[Record] = []
    for line in lines:
        with contextlib.suppress(ValidationError):
            records.append(_READER.validate_json(line))
    return records


def _ends_torn(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
