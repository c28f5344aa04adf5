"""The journal: append-only JSON lines, one record a line, the truth from which results.duckdb is made.

A trainer appends to its own journal and fsyncs at each flush. Whoever reads takes whole lines only: a line that a crash
tore stays invisible until it is ended, and is then skipped and counted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gan_runtime.errors import HomeError

Status = Literal["queued", "starting", "compiling", "running", "finished", "stopped", "failed", "lost"]
Level = Literal["info", "warning", "error"]
ACTIVE: tuple[Status, ...] = ("starting", "compiling", "running")
ENDED: tuple[Status, ...] = ("finished", "stopped", "failed", "lost")


def now() -> datetime:
    """The present in UTC."""
    return datetime.now(UTC)


class _Record(BaseModel):
    # NaN must survive the way to the store: a loss that became NaN is a fact worth keeping.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    attempt: int = 1
    at: datetime = Field(default_factory=now)


class StudyPlace(BaseModel):
    """A run's place in its study: which variant (in words, and as a number from 0), which repeat (from 1).

    `question`: a key of studies/questions.py. All runs of a study say the same of it, so that it lives as long as one of them.
    """

    model_config = ConfigDict(frozen=True)
    study_id: str
    question: str
    title: str
    variant: str
    variant_index: int
    repeat: int


class Created(_Record):
    """A run was submitted. `accelerator` is the resolved one, `color` its index in the run palette, `preset` may be empty."""

    kind: Literal["created"] = "created"
    spec: dict[str, Any]
    accelerator: str
    color: int
    preset: str = ""
    study: StudyPlace | None = None


class StatusChange(_Record):
    """The run passed into another state, with the reason in words. `queue_rank` orders waiting runs."""

    kind: Literal["status"] = "status"
    status: Status
    reason: str
    queue_rank: float | None = None


class Renamed(_Record):
    """A person gave the run another name."""

    kind: Literal["renamed"] = "renamed"
    name: str


class HostFacts(_Record):
    """The machine and software of an attempt."""

    kind: Literal["host"] = "host"
    facts: dict[str, Any]


class AttemptStart(_Record):
    """An attempt goes on after `resume_step`; what earlier attempts measured beyond it is void."""

    kind: Literal["attempt"] = "attempt"
    resume_step: int


class Plan(_Record):
    """What the attempt will do: images in the set, steps in an epoch, epochs."""

    kind: Literal["plan"] = "plan"
    images: int
    steps_per_epoch: int
    epochs: int


class Scalars(_Record):
    """Per-step numbers of one host call. Step numbers start at 1; `wall_s`: training seconds at the end of each step."""

    kind: Literal["scalars"] = "scalars"
    epoch: int
    first_step: int
    wall_s: list[float]
    values: dict[str, list[float]]


class WorkerTimes(_Record):
    """How one of several workers spent a host call, in seconds per step: own work, and time inside collectives.

    The first call of an attempt, which holds the compiling, is left out.
    """

    kind: Literal["worker_times"] = "worker_times"
    rank: int
    epoch: int
    first_step: int
    steps: int
    step_s: float
    compute_s: float
    wait_s: float


class EpochDone(_Record):
    """One pass over the data. `seconds`: its training calls alone, without probes and checkpoints."""

    kind: Literal["epoch"] = "epoch"
    epoch: int
    step: int
    seconds: float
    images: int
    images_per_s: float


class EpochScores(_Record):
    """Numbers that are measured once an epoch (docs/metrics.md); they are stored beside the per-step ones."""

    kind: Literal["epoch_scores"] = "epoch_scores"
    epoch: int
    step: int
    wall_s: float
    values: dict[str, float]


class Histogram(_Record):
    """Counts over equal bins; `bin_left` holds the left edges and `bin_right` the right edge of the last bin."""

    kind: Literal["histogram"] = "histogram"
    epoch: int
    step: int
    name: str
    bin_left: list[float]
    bin_right: float
    count: list[int]


class Sample(_Record):
    """A grid of generated images; `file` is relative to the run's folder."""

    kind: Literal["sample"] = "sample"
    epoch: int
    step: int
    sample_kind: str
    file: str
    meta: dict[str, Any]


class TimeShare(BaseModel):
    """What one kind of work took of the profiled steps. `share`: 0 to 1; `network`: "" where none is known."""

    model_config = ConfigDict(frozen=True)
    network: str
    category: str
    seconds: float
    share: float


class Profile(_Record):
    """Where the time of `steps` steps went that ran under the profiler, up to and with `step`; the shares add up to 1."""

    kind: Literal["profile"] = "profile"
    step: int
    steps: int
    seconds: float
    shares: list[TimeShare]


class Memory(_Record):
    """Resident bytes of the trainer's process, and bytes on its fullest device (None where unknown): now, and at most so far."""

    kind: Literal["memory"] = "memory"
    epoch: int
    step: int
    process_bytes: int
    process_peak_bytes: int
    device_bytes: int | None
    device_peak_bytes: int | None


class Phase(_Record):
    """Seconds that one part of the attempt took: build, trace, first_call, compile, steady_step, …"""

    kind: Literal["phase"] = "phase"
    phase: str
    seconds: float


class Event(_Record):
    """Something worth telling a person."""

    kind: Literal["event"] = "event"
    level: Level
    topic: str
    message: str


Record = (
    Created
    | StatusChange
    | Renamed
    | HostFacts
    | AttemptStart
    | Plan
    | Scalars
    | WorkerTimes
    | EpochDone
    | EpochScores
    | Histogram
    | Sample
    | Profile
    | Memory
    | Phase
    | Event
)
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
