"""The folder of one job, and the job's state as derived from its files.

job.json         the request, and its actor; written once
process.json     pid and start time of its process
progress.jsonl   a line for each report of progress
log.txt          the output of its process
STOP             a request to end, and its actor; any process may write it
end.json         how it ended; written once, by the job, or by the owner if the job was lost
work/            half-made files; deleted at the end
results/         files of the result; deleted unless the job has finished
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import psutil
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gan_runtime.jobs import job
from gan_runtime.records import run_files
from gan_runtime.records.home import is_run_name
from gan_runtime.records.identity import SILENCE_SECONDS, ProcessIdentity
from gan_runtime.records.record import Count, Document, Label, Name, Text, UtcTime, now
from gan_runtime.records.run_folder import TaskFolder, write_whole

State = Literal["waiting", "running", "finished", "failed", "cancelled", "lost"]
LIVE: tuple[State, ...] = ("waiting", "running")
_TAIL_BYTES = 4_096
START_SECONDS = 60.0  # for a process of another container to lock its folder
_Record = TypeVar("_Record", bound=BaseModel)


class _StoredRecord(BaseModel):
    model_config = ConfigDict(frozen=True)


EndState = Literal["finished", "failed", "cancelled", "lost"]


class End(BaseModel):
    """The end of a job. `reason`: a sentence. `result`: the document that the work returned, empty
    unless finished.
    """

    model_config = ConfigDict(frozen=True)
    state: EndState
    reason: Text
    result: dict[str, Any] = {}
    at: UtcTime = Field(default_factory=now)


class JobRequest(_StoredRecord):
    """A request for a job. `kind`: the name of the job. `asker`: "dashboard", "command line" or
    "Python".
    """

    kind: Name
    options: Document
    asker: Label
    at: UtcTime = Field(default_factory=now)

    @field_validator("options")
    @classmethod
    def _of_a_run(cls, options: dict[str, Any]) -> dict[str, Any]:
        if "run_id" in options and not (
            isinstance(options["run_id"], str) and is_run_name(options["run_id"])
        ):
            raise ValueError("run_id must be the id of a run")
        return options


class JobProgress(_StoredRecord):
    """The progress of a job: `done` of `total` in the job's units. `total`: 0 while unknown.
    `sentence`: the current step.
    """

    done: Count = 0
    total: Count = 0
    sentence: Text = ""
    at: UtcTime = Field(default_factory=now)

    @property
    def share(self) -> float:
        """The completed share, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


@dataclass(frozen=True)
class JobSnapshot:
    """The state of a job at one moment."""

    job: JobDir
    request: JobRequest
    state: State
    progress: JobProgress
    end: End | None

    @property
    def is_live(self) -> bool:
        """Whether the job waits or runs."""
        return self.state in LIVE


@dataclass(frozen=True)
class JobDir(TaskFolder):
    """Paths and small files of one job; the folder's name is the job's id."""

    @property
    def job_id(self) -> str:
        """The id, such as prepare-data-0007."""
        return self.path.name

    @property
    def start_lock(self) -> Path:
        """Locked while the process is started, so that only one is."""
        return self.path / ".start.lock"

    @property
    def lock(self) -> Path:
        """Locked by the job's process as long as it runs."""
        return self.path / ".worker.lock"

    @property
    def work(self) -> Path:
        """The folder of unfinished files."""
        return self.path / "work"

    @property
    def results(self) -> Path:
        """The folder of the result's files."""
        return self.path / "results"

    def clear(self, finished: bool) -> None:
        """Deletes the unfinished files of an ended job, and its results unless it has finished."""
        for folder in (self.work,) if finished else (self.work, self.results):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def progress_file(self) -> Path:
        """The progress reports, as JSON lines."""
        return self.path / "progress.jsonl"

    def request(self) -> JobRequest | None:
        """None for a folder that is no job."""
        return _read(self.path / "job.json", JobRequest)

    def write_request(self, request: JobRequest) -> None:
        """Writes the request, once, before any other process can see the folder."""
        write_whole(self.path / "job.json", request.model_dump_json(indent=2) + "\n")

    def write_process(self, pid: int) -> None:
        """Records the process. Both the starting process and the job's process call it."""
        write_whole(self.process_file, ProcessIdentity.of(pid).model_dump_json() + "\n")

    def started_at(self) -> datetime | None:
        """The start time of the process by the host's clock; None before the start."""
        identity = self._identity()
        return None if identity is None else datetime.fromtimestamp(identity.started, UTC)

    @property
    def is_started(self) -> bool:
        """Whether the job has ever had a process."""
        return self._identity() is not None

    def process(self) -> psutil.Process | None:
        """The running process; None before its start, after its exit, and in another container."""
        identity = self._identity()
        return None if identity is None else identity.process()

    def is_running(self) -> bool:
        """Whether the process runs, here, in another container, or on another host."""
        identity = self._identity()
        if identity is None:
            return False
        if not identity.is_here and time.time() - identity.started < START_SECONDS:
            return True  # it locks its folder later, and must not find it locked by a check
        is_alive = identity.is_alive(self.lock)
        return self._is_fresh() if is_alive is None else is_alive

    def _is_fresh(self) -> bool:
        """Whether a process of another host has written lately, by the clocks of both."""
        changes = [0.0]
        for path in (self.process_file, self.progress_file, self.log):
            with contextlib.suppress(OSError):
                changes.append(path.stat().st_mtime)
        return time.time() - max(changes) < SILENCE_SECONDS

    def take(self) -> bool:
        """Makes this process the job's process; False if another process has already
        begun the job.
        """
        with contextlib.suppress(Timeout), FileLock(self.start_lock).acquire(blocking=False):
            if not self.is_started:
                self.write_process(os.getpid())
                return True
        return False

    def waiting(self, kinds: tuple[str, ...], read: set[str]) -> list[tuple[JobDir, JobRequest]]:
        """The jobs of these kinds in the same home that wait for a process, oldest first.

        `read`: ids of folders that need not be read again; this call adds to them.
        """
        waiting = []
        for name in sorted({path.name for path in self.path.parent.iterdir()} - read, key=_number):
            job = JobDir(self.path.parent / name)
            request = job.request() if is_run_name(name) else None
            is_over = job.is_started or job.stop_file.exists() or job.end() is not None
            if request is not None and request.kind in kinds and not is_over:
                waiting.append((job, request))
            else:
                read.add(name)
        return waiting

    def end(self) -> End | None:
        """How the job ended; None before its end."""
        return _read(self.path / "end.json", End)

    def write_end(self, end: End) -> None:
        """Writes the end, which is the last file of a job."""
        write_whole(self.path / "end.json", end.model_dump_json(indent=2) + "\n")

    def add_progress(self, done: int, total: int, sentence: str) -> None:
        """Appends a progress report in a single write."""
        progress = JobProgress(done=done, total=total, sentence=sentence)
        with self.progress_file.open("ab", buffering=0) as file:
            file.write(progress.model_dump_json().encode() + b"\n")

    def progress(self) -> JobProgress:
        """The newest progress report that is a whole line."""
        try:
            lines = run_files.tail(self.progress_file, _TAIL_BYTES).splitlines(keepends=True)
            return JobProgress.model_validate_json(
                next(line for line in reversed(lines) if line.endswith(b"\n"))
            )
        except (OSError, StopIteration, ValidationError):
            return JobProgress()

    def snapshot(self) -> JobSnapshot | None:
        """The current state of the job; None for a folder that is no job."""
        request = self.request()
        if request is None:
            return None
        # The process is checked before the end is read, so that an end written in between is never
        # missed.
        started, lives = self.is_started, self.is_running()
        end = self.end() or self._unwritten_end(request.kind, started, lives)
        state: State = end.state if end is not None else "running" if started else "waiting"
        return JobSnapshot(self, request, state, self.progress(), end)

    def _unwritten_end(self, kind: str, started: bool, lives: bool) -> End | None:
        """The end that the owner writes at its next tick."""
        if lives or not (started or self.stop_file.exists()):
            return None
        if self.stop_file.exists():
            return End(state="cancelled", reason=job.cancelled(kind))
        return End(state="lost", reason=job.lost(kind))

    def _identity(self) -> ProcessIdentity | None:
        return _read(self.process_file, ProcessIdentity)


def _number(name: str) -> str:
    return name.rpartition("-")[2]


def _read(path: Path, kind: type[_Record]) -> _Record | None:
    """A record from a file; None if the file is missing, torn by a power loss, invalid, or not a
    regular file.
    """
    try:
        return kind.model_validate_json(run_files.content(path))
    except (OSError, ValidationError):
        return None
