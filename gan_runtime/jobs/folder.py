"""The folder of one job: what lies where, and the state that follows from it.

job.json         what was asked, by whom; written once
process.json     pid and start time of its process
progress.jsonl   how far it is, a line each time
log.txt          what it printed
STOP             a request to end, and whose it is; anyone may write it
end.json         how it ended; written once, by the job or by the owner who found it dead
work/            what it makes; gone when it has ended
results/         what it found, in files; gone unless it has finished
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gan_runtime.jobs import job
from gan_runtime.records import processes, run_files
from gan_runtime.records.home import is_run_name
from gan_runtime.records.record import Count, Document, Label, Name, Text, UtcTime, now
from gan_runtime.records.run_folder import Pid, Started, TaskFolder, write_whole

EndState = Literal["finished", "failed", "cancelled", "lost"]
State = Literal["waiting", "running", "finished", "failed", "cancelled", "lost"]
LIVE: tuple[State, ...] = ("waiting", "running")
_TAIL_BYTES = 4_096
_Record = TypeVar("_Record", bound=BaseModel)


class _Note(BaseModel):
    model_config = ConfigDict(frozen=True)


class Asked(_Note):
    """`asker`: who asked, such as "dashboard" or "command line". `options`: those of the kind."""

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


class Progress(_Note):
    """`done` of `total` in the units of the job; `total` is 0 before it knows.

    `sentence`: what it does now.
    """

    done: Count = 0
    total: Count = 0
    sentence: Text = ""
    at: UtcTime = Field(default_factory=now)

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


class End(_Note):
    """`reason`: in words. `result`: what the kind gives, empty unless finished."""

    state: EndState
    reason: Text
    result: dict[str, Any] = {}
    at: UtcTime = Field(default_factory=now)


class _Identity(_Note):
    pid: Pid
    started: Started
    born: Name = ""


@dataclass(frozen=True)
class JobLook:
    """A job at one moment."""

    job: JobDir
    asked: Asked
    state: State
    progress: Progress
    end: End | None

    @property
    def is_live(self) -> bool:
        """Whether it waits or works."""
        return self.state in LIVE


@dataclass(frozen=True)
class JobDir(TaskFolder):
    """Paths and small files of one job; the folder's name is the job's id."""

    @property
    def job_id(self) -> str:
        """Such as prepare-data-0007."""
        return self.path.name

    @property
    def start_lock(self) -> Path:
        """Held for a moment by whoever starts the process, so that nobody starts a second one."""
        return self.path / ".start.lock"

    @property
    def lock(self) -> Path:
        """Held by the job's process as long as it works."""
        return self.path / ".worker.lock"

    @property
    def work(self) -> Path:
        """What is half-made."""
        return self.path / "work"

    @property
    def results(self) -> Path:
        """What it found, in files."""
        return self.path / "results"

    def clear(self, finished: bool) -> None:
        """Removes what must not be left of a job that has ended."""
        for folder in (self.work,) if finished else (self.work, self.results):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def progress_file(self) -> Path:
        """One line of JSON each time."""
        return self.path / "progress.jsonl"

    def asked(self) -> Asked | None:
        """What was asked; None for a folder that is no job."""
        return _read(self.path / "job.json", Asked)

    def write_asked(self, asked: Asked) -> None:
        """Once, before anybody can see the folder."""
        write_whole(self.path / "job.json", asked.model_dump_json(indent=2) + "\n")

    def introduce(self, pid: int) -> None:
        """Makes known which process does the work: by whoever started it, and by itself."""
        write_whole(self.process_file, json.dumps(processes.identity(pid)) + "\n")

    def started_at(self) -> datetime | None:
        """When its process began, by the clock of the host; None before that."""
        known = self._introduced()
        return None if known is None else datetime.fromtimestamp(known.started, UTC)

    @property
    def is_started(self) -> bool:
        """Whether it has ever had a process."""
        return self._introduced() is not None

    def process(self) -> psutil.Process | None:
        """The living process; None before it was started, and when it is gone."""
        known = self._introduced()
        return None if known is None else processes.alive(known.pid, known.started, known.born)

    def end(self) -> End | None:
        """How it ended; None before that."""
        return _read(self.path / "end.json", End)

    def write_end(self, end: End) -> None:
        """The last word."""
        write_whole(self.path / "end.json", end.model_dump_json(indent=2) + "\n")

    def add_progress(self, progress: Progress) -> None:
        """Appends a line, whole or not at all to a reader."""
        with self.progress_file.open("ab", buffering=0) as file:
            file.write(progress.model_dump_json().encode() + b"\n")

    def progress(self) -> Progress:
        """The newest whole line."""
        try:
            lines = run_files.tail(self.progress_file, _TAIL_BYTES).splitlines(keepends=True)
            return Progress.model_validate_json(
                next(line for line in reversed(lines) if line.endswith(b"\n"))
            )
        except (OSError, StopIteration, ValidationError):
            return Progress()

    def look(self) -> JobLook | None:
        """The job as it is now; None for a folder that is no job."""
        asked = self.asked()
        if asked is None:
            return None
        # Whether it lives is asked before its end is read: an end written meanwhile is then never
        # missed.
        started, lives = self.is_started, self.process() is not None
        end = self.end() or self._unwritten_end(asked.kind, started, lives)
        state: State = end.state if end is not None else "running" if started else "waiting"
        return JobLook(self, asked, state, self.progress(), end)

    def _unwritten_end(self, kind: str, started: bool, lives: bool) -> End | None:
        """What the owner will write down when it comes by."""
        if lives or not (started or self.stop_file.exists()):
            return None
        if self.stop_file.exists():
            return End(state="cancelled", reason=job.cancelled(kind))
        return End(state="lost", reason=job.lost(kind))

    def _introduced(self) -> _Identity | None:
        return _read(self.process_file, _Identity)


def _read(path: Path, kind: type[_Record]) -> _Record | None:
    """None where it is missing, torn by a power loss, written by hand, or no plain file."""
    try:
        return kind.model_validate_json(run_files.content(path))
    except (OSError, ValidationError):
        return None
