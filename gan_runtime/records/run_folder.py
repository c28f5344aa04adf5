"""The folder of one run: its files, and the state, marks, data set and answers in its journals.

spec.json                  the options, written once
journal-supervisor.jsonl   decisions about the run: queued, starting, lost, renamed, …
journal-<rank>.jsonl       measurements of the trainer; ranks above 0: times and failures
journal-launcher.jsonl     which of several workers ended, and how
journal-evaluations.jsonl  answers of evaluations, whose files are in folders next to it
target.json                the job that trains it elsewhere
process.json               pid and start time of the trainer, or of the launcher and all workers
STOP                       a stop request; contains the actor
FETCH                      a request for the checkpoints of a run that trains on another host
samples/ checkpoints/ snapshots/ log.txt
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gan_runtime.base.errors import HomeError, JournalError, RunStateError
from gan_runtime.records import journal, run_files
from gan_runtime.records.answer import Answer
from gan_runtime.records.earlier_records import Earlier, answer_of
from gan_runtime.records.identity import ProcessIdentity, Started
from gan_runtime.records.journal import Marked, Standing, StatusChange
from gan_runtime.records.kinds import HostFacts
from gan_runtime.records.record import Attempt, Rank
from gan_runtime.records.run_files import FILMS_FOLDER
from gan_runtime.spec import RunSpec

_TAIL_BYTES = 64_000
TARGET_FILE = "target.json"
Stamp = tuple[int, int, int]  # inode, bytes, modification time in nanoseconds


class WorkerProcess(ProcessIdentity):
    """One of several workers on this host."""

    rank: Rank


class TrainerProcess(ProcessIdentity):
    """The trainer of an attempt, or the launcher of its `workers`. On a cluster: the first worker,
    and the name of its machine. `attempt_began`: when it began this attempt, by the clock; a
    process that waited for a run has `started` before.
    """

    attempt: Attempt
    workers: tuple[WorkerProcess, ...] = ()
    cluster_host: str | None = None
    attempt_began: Started = 0.0

    @property
    def began(self) -> float:
        """`attempt_began`, or `started` in a record of an earlier version."""
        return self.attempt_began or self.started


@dataclass(frozen=True)
class TaskFolder:
    """The folder of a run or a background job; its name is the id."""

    path: Path

    @property
    def process_file(self) -> Path:
        """Pid and start time of the process; for a run, of the newest attempt."""
        return self.path / "process.json"

    @property
    def stop_file(self) -> Path:
        """The stop request, if any; contains the actor."""
        return self.path / "STOP"

    @property
    def log(self) -> Path:
        """The output of the process."""
        return self.path / "log.txt"

    def request_stop(self, asker: str) -> None:
        """Requests a stop. A second request changes nothing."""
        if not self.stop_file.exists():
            self.stop_file.write_text(asker, encoding="utf-8")

    def log_tail(self, lines: int = 200) -> str:
        """The last lines of the log; "" without a readable log."""
        return _tail(self.log, lines)


@dataclass(frozen=True)
class RunDir(TaskFolder):
    """Paths and small files of one run; the folder's name is the run's id."""

    @property
    def run_id(self) -> str:
        """The id, such as quick-0007."""
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
        """How the workers on this host ended."""
        return self.path / "journal-launcher.jsonl"

    def worker_lock(self, rank: int = 0) -> Path:
        """Locked by worker `rank` while it runs, so that each journal has one writer."""
        return self.path / (f".worker-{rank}.lock" if rank else ".worker.lock")

    @property
    def start_lock(self) -> Path:
        """Locked from before the newest start until the last process of that attempt ends."""
        return self.path / ".start.lock"

    @property
    def target_file(self) -> Path:
        """The job of the newest attempts on a target."""
        return self.path / TARGET_FILE

    @property
    def samples(self) -> Path:
        """Sample images, one PNG per epoch and kind."""
        return self.path / "samples"

    def sample_file(self, kind: str, epoch: int) -> Path:
        """The grid of one kind after an epoch; the oldest runs have epoch-00001.png."""
        return self.samples / f"{kind}-{epoch:05d}.png"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints of the training state."""
        return self.path / "checkpoints"

    @property
    def has_checkpoint(self) -> bool:
        """Whether a resume can continue from a checkpoint."""
        return any(self.checkpoints.glob("*.safetensors"))

    @property
    def snapshots(self) -> Path:
        """Weights without optimizers, one file per epoch, if the options request them."""
        return self.path / "snapshots"

    @property
    def evaluations_journal(self) -> Path:
        """The journal with the answers of evaluations."""
        return self.path / run_files.EVALUATIONS

    def earlier_journal(self, kind: str) -> Path:
        """The journal in which version 0.2.0 stored the answers of one kind of evaluation."""
        return self.path / f"journal-{kind}.jsonl"

    @property
    def films(self) -> Path:
        """The frames of rollouts, one file per rollout and way of tiling."""
        return self.path / FILMS_FOLDER

    def trainer_journal(self, rank: int = 0) -> Path:
        """The journal with the measurements of worker `rank`."""
        return self.path / f"journal-{rank}.jsonl"

    def worker_log(self, rank: int = 0) -> Path:
        """The output of worker `rank` of a cluster; workers of one host write to `log`."""
        return self.path / f"log-{rank}.txt" if rank else self.log

    def log_tail(self, lines: int = 200, rank: int = 0) -> str:
        """The last lines of the log of worker `rank`; "" without a readable log."""
        return _tail(self.worker_log(rank), lines)

    @property
    def stop_asker(self) -> str:
        """The actor of the stop request; "" without one."""
        with contextlib.suppress(OSError):
            return run_files.content(self.stop_file).decode(errors="replace").strip()
        return ""

    @property
    def fetch_file(self) -> Path:
        """The request for the checkpoints that its trainer has on another host, until they come."""
        return self.path / "FETCH"

    def journals(self) -> list[Path]:
        """Every journal, the supervisor's first."""
        return self.in_order(self.journal_stats())

    def in_order(self, names: Iterable[str]) -> list[Path]:
        """Journals with these names, the supervisor's first, since it contains the submission."""
        supervisor = self.supervisor_journal.name
        return [
            self.path / name for name in sorted(names, key=lambda name: (name != supervisor, name))
        ]

    def journal_stats(self) -> dict[str, Stamp]:
        """The stamp of each journal, which changes with the file; empty for a missing folder.

        Raises JournalError when a journal is not a regular file.
        """
        stamps: dict[str, Stamp] = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                if journal.is_journal(entry.name):
                    stamps[entry.name] = _stamp(entry)
        return stamps

    def trainer_stats(self) -> dict[str, Stamp]:
        """As `journal_stats`, without the owner's journal, which gets lines such as a stall."""
        stamps = self.journal_stats()
        stamps.pop(self.supervisor_journal.name, None)
        return stamps

    def announce(self) -> None:
        """Makes the owner of the home read this run at once instead of within a minute."""
        for folder in (self.path, self.path.parent):
            with contextlib.suppress(OSError):  # a read-only home has no owner
                os.utime(folder)

    def spec(self) -> RunSpec:
        """The options of the run."""
        return RunSpec.read(self.spec_path)

    def write_process(self, trainer: TrainerProcess) -> None:
        """Writes process.json atomically."""
        write_json(self.process_file, trainer.model_dump(exclude_defaults=True))

    def process(self) -> TrainerProcess | None:
        """The entry in process.json; None for other content, such as after a power loss."""
        try:
            content = run_files.content(self.process_file)
            return TrainerProcess.model_validate_json(content, strict=True)
        except (OSError, ValidationError):
            return None

    @property
    def is_on_cluster(self) -> bool:
        """Whether a cluster started the newest attempt, so that its process is not of this host."""
        trainer = self.process()
        return trainer is not None and trainer.cluster_host is not None

    def is_trainer_alive(self, trainer: TrainerProcess) -> bool | None:
        """Whether the processes of an entry run; None if unknown, as on a cluster."""
        if trainer.cluster_host is not None:
            return None
        return trainer.is_alive(self.start_lock, self.worker_lock())


def _tail(log: Path, lines: int) -> str:
    try:
        text = run_files.tail(log, _TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes JSON atomically. Raises HomeError if the disk is full."""
    write_whole(path, json.dumps(value, indent=2) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Writes a temporary file and renames it, so that readers see the old or the new file, never a
    part.

    Raises HomeError when the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # Otherwise a power loss can leave an empty file under the new name.
            os.fsync(file.fileno())
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HomeError.not_written(path, error) from None
    temporary.replace(path)


def _stamp(entry: os.DirEntry[str]) -> Stamp:
    status = entry.stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would never end
        raise JournalError(f"{entry.name} is not a regular file")
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def latest_status(run: RunDir) -> StatusChange:
    """The newest state of a run.

    Raises:
        RunStateError: its journals contain no state.
    """
    newest = max(_changes(run), key=lambda change: change[0], default=None)
    if newest is None:
        raise RunStateError(
            f"run {run.run_id} cannot be read, as its journals contain no state: delete the run."
        )
    return newest[1]


def _changes(run: RunDir) -> Iterator[tuple[Standing, StatusChange]]:
    """The changes of state. A damaged journal counts up to the damage, so that an unreadable run
    can be stopped.
    """
    for path in run.journals():
        with contextlib.suppress(JournalError):
            for place, record in journal.naming(path, b'"status"'):
                if isinstance(record, StatusChange):
                    yield record.standing(path.name, place), record


def steps_per_epoch(run: RunDir) -> int:
    """Steps per epoch by the newest plan in the journal; 1 without a plan."""
    path = run.trainer_journal()
    named = journal.naming(path, b'"plan"') if path.exists() else ()
    plans = [record for _, record in named if isinstance(record, journal.AttemptPlan)]
    return max(1, plans[-1].steps_per_epoch) if plans else 1


@dataclass(frozen=True)
class Marks:
    """Tags, note (`remark`) and flags of a run."""

    tags: tuple[str, ...] = ()
    remark: str = ""
    pinned: bool = False
    hidden: bool = False


def marks_of(run: RunDir) -> Marks:
    """The newest tags, note and flags of a run."""
    newest = Marks()
    for _, record in journal.naming(run.supervisor_journal, b'"marked"'):
        if isinstance(record, Marked):
            newest = Marks(
                tags=newest.tags if record.tags is None else tuple(record.tags),
                remark=newest.remark if record.remark is None else record.remark,
                pinned=newest.pinned if record.pinned is None else record.pinned,
                hidden=newest.hidden if record.hidden is None else record.hidden,
            )
    return newest


DATA_FACT = "data_content"  # key in the host's facts; missing for built-in data sets


def data_content(run: RunDir) -> str:
    """The content digest of the data set that the newest attempt read; "" without a digest."""
    digests = [str(record.facts.get(DATA_FACT, "")) for record in _facts(run.trainer_journal())]
    return digests[-1] if digests else ""


def data_refusal(run: RunDir, dataset: str, content_now: str) -> str:
    """The reason why a run cannot continue on its data set as prepared now; "" if it can.

    The name can belong to other data by now, and its numbers would belong to another training.
    `content_now`: current digest, "" if unknown.
    """
    if not content_now or not run.has_checkpoint:
        return ""
    before = data_content(run)
    if before in ("", content_now):
        return ""
    return (
        f"run {run.run_id} was trained on another content of data set {dataset} ({before[:16]}, now"
        f" {content_now[:16]}): prepare the earlier one again, or start a new run."
    )


def _facts(path: Path) -> Iterator[HostFacts]:
    """The host facts of each attempt in a journal."""
    if not path.exists():
        return
    for _, record in journal.naming(path, b'"host"'):
        if isinstance(record, HostFacts):
            yield record


def answers_of(run: RunDir, evaluation: str) -> list[Answer]:
    """Answers of one evaluation, the newest last. Raises as `journal.chunks`."""
    measured = [path for path in run.journals() if run_files.is_of_evaluations(path.name)]
    measured.sort(key=lambda path: path.name == run_files.EVALUATIONS)  # newer than the others
    records = [record for path in measured for record in journal.read_all(path)]
    answers = (answer_of(record) if isinstance(record, Earlier) else record for record in records)
    return [
        answer
        for answer in answers
        if isinstance(answer, Answer) and answer.evaluation == evaluation
    ]
