"""The folder of one run: what lies where, and the small files through which processes talk.

spec.json                  the options, written once
journal-supervisor.jsonl   what was decided about the run (queued, starting, lost, renamed, …)
journal-<rank>.jsonl       what its trainer measured; rank 0 everything, other workers their own
times and failures
journal-launcher.jsonl     which of several workers ended, and how
process.json               pid and start time of the trainer, or of the launcher and all its
workers, written by themselves
STOP                       a request to stop, and whose it is; anyone may write it
journal-evaluations.jsonl  the answers of evaluations of its checkpoints, measured by jobs; their
files lie in folders next to it;
                           earlier versions had a journal for each kind (records/earlier_answers.py)
samples/ checkpoints/ snapshots/ log.txt
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from gan_runtime.base.errors import HomeError, JournalError
from gan_runtime.records import journal, run_files, states
from gan_runtime.records.earlier_kinds import FILMS_FOLDER
from gan_runtime.records.record import Attempt, Rank
from gan_runtime.spec import RunSpec

Pid = Annotated[
    int, Field(ge=1, le=2**31 - 1)
]  # 0 and negative numbers would name groups of processes
_TAIL_BYTES = 64_000
Stamp = tuple[int, int, int]  # inode, bytes, time of the last change in nanoseconds


@dataclass(frozen=True)
class TaskFolder:
    """`path`: of the folder, whose name is the task's id."""

    path: Path

    @property
    def process_file(self) -> Path:
        """Identity of its process: pid and start time; of a run that of the newest attempt."""
        return self.path / "process.json"

    @property
    def stop_file(self) -> Path:
        """Exists from the moment someone asks the task to end, and says who."""
        return self.path / "STOP"

    @property
    def log(self) -> Path:
        """Everything that its process has printed."""
        return self.path / "log.txt"

    def request_stop(self, asker: str) -> None:
        """Asks the task to end, and says who asks; asking twice changes nothing."""
        if not self.stop_file.exists():
            self.stop_file.write_text(asker, encoding="utf-8")

    def log_tail(self, lines: int = 200) -> str:
        """The last lines of the log; empty before anything is printed, and where it cannot be
        read.
        """
        try:
            text = run_files.tail(self.log, _TAIL_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


@dataclass(frozen=True)
class RunDir(TaskFolder):
    """Paths and small files of one run; the folder's name is the run's id."""

    @property
    def run_id(self) -> str:
        """Such as quick-0007."""
        return self.path.name

    @property
    def spec_path(self) -> Path:
        """The options of the run as JSON."""
        return self.path / "spec.json"

    @property
    def supervisor_journal(self) -> Path:
        """Decisions about the run."""
        return self.path / "journal-supervisor.jsonl"

    @property
    def launcher_journal(self) -> Path:
        """How several workers on this host ended."""
        return self.path / "journal-launcher.jsonl"

    def worker_lock(self, rank: int = 0) -> Path:
        """Held by worker `rank` as long as it lives: one writer per journal."""
        return self.path / (f".worker-{rank}.lock" if rank else ".worker.lock")

    @property
    def start_lock(self) -> Path:
        """Held from before the newest start until its last process is gone
        (records/processes.py).
        """
        return self.path / ".start.lock"

    @property
    def samples(self) -> Path:
        """Pictures, one PNG an epoch for each kind."""
        return self.path / "samples"

    def sample_file(self, kind: str, epoch: int) -> Path:
        """The picture of one kind after an epoch.

        Runs from before there were kinds have epoch-00001.png.
        """
        return self.samples / f"{kind}-{epoch:05d}.png"

    @property
    def checkpoints(self) -> Path:
        """Training state, newest last."""
        return self.path / "checkpoints"

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is anything to go on from."""
        return any(self.checkpoints.glob("*.safetensors"))

    @property
    def snapshots(self) -> Path:
        """Weights alone, one file an epoch, where they were asked for."""
        return self.path / "snapshots"

    @property
    def evaluations_journal(self) -> Path:
        """Answers of evaluations of its checkpoints."""
        return self.path / states.EVALUATIONS

    def earlier_journal(self, kind: str) -> Path:
        """Where earlier versions wrote the answers of a kind of evaluation
        (earlier_kinds.JOURNALS).
        """
        return self.path / f"journal-{kind}.jsonl"

    @property
    def films(self) -> Path:
        """The frames of rollouts, one file a rollout and way (records/film_files.py)."""
        return self.path / FILMS_FOLDER

    def trainer_journal(self, rank: int = 0) -> Path:
        """What worker `rank` measured."""
        return self.path / f"journal-{rank}.jsonl"

    def journals(self) -> list[Path]:
        """Every journal, the supervisor's first."""
        return self.in_order(self.journal_stats())

    def in_order(self, names: Iterable[str]) -> list[Path]:
        """Some journals, the supervisor's first: it says how the run was submitted."""
        supervisor = self.supervisor_journal.name
        return [
            self.path / name for name in sorted(names, key=lambda name: (name != supervisor, name))
        ]

    def journal_stats(self) -> dict[str, Stamp]:
        """What tells by name whether a journal has changed since an earlier look.

        A folder that is gone has none.

        Raises:
            JournalError: what has the name of a journal is a folder, a pipe or the like.
        """
        stamps: dict[str, Stamp] = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                if journal.is_journal(entry.name):
                    stamps[entry.name] = _stamp(entry)
        return stamps

    def announce(self) -> None:
        """Lets the owner of the home look at this run at once; at ended runs it looks about
        once a minute by itself.
        """
        for folder in (self.path, self.path.parent):
            with contextlib.suppress(OSError):  # a home that may only be read has no owner
                os.utime(folder)

    def spec(self) -> RunSpec:
        """The options of the run."""
        return RunSpec.read(self.spec_path)

    def write_process(self, identity: dict[str, Any]) -> None:
        """Written whole or not at all: a reader never sees half a file."""
        write_json(self.process_file, identity)

    def process(self) -> dict[str, Any] | None:
        """pid, start time and attempt of the trainer; None before it has introduced itself, and
        when the file says nothing that could be a process: torn by a power loss, or written by
        hand.

        Several workers: the launcher's, and under `workers` rank, pid and start time of each. On a
        cluster: those of rank 0, with `cluster_host`, the machine that it runs on.
        """
        try:
            return _introduction(run_files.content(self.process_file))
        except OSError:
            return None


def write_json(path: Path, value: dict[str, Any]) -> None:
    """See `write_whole`."""
    write_whole(path, json.dumps(value, indent=2) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Writes aside and renames, so that the file is old or new, never torn.

    Raises HomeError when the disk is full.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # else a power loss may leave the new name with an empty file
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise HomeError.not_written(path, error) from None
    aside.replace(path)


def _stamp(entry: os.DirEntry[str]) -> Stamp:
    status = entry.stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would never end
        raise JournalError(f"{entry.name} is no plain file")
    return (status.st_ino, status.st_size, status.st_mtime_ns)


# Seconds since 1970, within what a date can hold: no NaN and no 1e300.
Started = Annotated[float, Field(ge=0, le=1e10)]


class _Process(BaseModel):
    pid: Pid
    started: Started
    born: str = ""  # see processes.identity; missing in files from before it


class _Worker(_Process):
    rank: Rank


class _Introduction(_Process):
    attempt: Attempt
    workers: list[_Worker] = []
    cluster_host: str | None = None


def _introduction(content: bytes) -> dict[str, Any] | None:
    """The keys that RunDir.process describes; None when the file holds anything else."""
    try:
        return _Introduction.model_validate_json(content, strict=True).model_dump(
            exclude_unset=True
        )
    except ValidationError:
        return None
