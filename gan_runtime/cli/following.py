"""Following a run or a job that another process executes, its display, and what Ctrl-C does.

A run is followed through its journals, a job through its folder. A run is shown as a bar in a
terminal, as lines in a pipe or log, and as JSON lines for programs.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from math import nan
from types import FrameType
from typing import Any, Protocol

import typer
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as ProgressBar

from gan_runtime.base import formats
from gan_runtime.base.errors import JobError
from gan_runtime.catalog import declarations
from gan_runtime.cli import commands, output
from gan_runtime.data import contract
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import STAGES
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.queries import RunProgress, RunRow
from gan_runtime.store.store import Store

POLL_SECONDS, POLL_JOB_SECONDS = 0.25, 0.2
CANCELLED = 1  # exit code


@dataclass(frozen=True)
class Snapshot:
    """The state of a run at one moment."""

    row: RunRow
    progress: RunProgress

    @property
    def epochs_done(self) -> int:
        """Completed epochs; 0 before the first step."""
        return (
            self.progress.step // self.progress.steps_per_epoch
            if self.progress.steps_per_epoch
            else 0
        )

    def as_dict(self) -> dict[str, Any]:
        """A line of `train --json`; rate and time left are None before the first step."""
        row, progress = self.row, self.progress
        return {
            "run_id": row.run_id,
            "name": row.name,
            "status": row.status,
            "note": row.note,
            "attempt": row.attempt,
            "epochs_done": self.epochs_done,
            "epochs": row.epochs,
            "step": progress.step,
            "last_step": progress.last_step,
            "images_per_s": progress.images_per_s,
            "seconds_left": progress.seconds_left,
            "metrics": progress.newest,
        }


class Follower:
    """Reads one run's journals into a database in memory."""

    def __init__(self, home: Home, run: RunDir) -> None:
        self._home, self._run = home, run
        self._store = Store()
        self._ingestor = Ingestor(home, self._store)

    def now(self) -> Snapshot:
        """The current state of the run.

        Raises:
            UnknownRunError: the run was deleted.
        """
        self._home.run_dir(self._run.run_id)
        self._ingestor.catch_up_run(self._run)
        return Snapshot(
            queries.run(self._store, self._run.run_id),
            queries.progress(self._store, self._run.run_id),
        )

    def since(self, before: Snapshot | None) -> list[Snapshot]:
        """The states that the run reached after `before` (None: in its newest attempt), in order;
        the last one is the current state.

        A state that lasted less than one poll has the progress of the poll before. Raises as `now`.
        """
        newest = self.now()
        reached = (
            (before.row.attempt, STAGES[before.row.status]) if before else (newest.row.attempt, -1)
        )
        progress = (before or newest).progress
        *past, _ = queries.states(self._store, self._run.run_id)
        passed = [state for state in past if (state.attempt, STAGES[state.status]) > reached]
        rows = [replace(newest.row, **asdict(state)) for state in passed]
        return [*(Snapshot(row, progress) for row in rows), newest]


def snapshot_of(home: Home, run: RunDir) -> Snapshot:
    """The current state of a run. Raises as `Follower.now`."""
    return Follower(home, run).now()


def follow(home: Home, run: RunDir) -> Iterator[Snapshot]:
    """Each state of the run's newest attempt, then the run at each poll until it has ended.

    Raises as `Follower.now`.
    """
    follower = Follower(home, run)
    snapshots = follower.since(None)
    yield from snapshots
    while snapshots[-1].row.is_live:
        time.sleep(POLL_SECONDS)
        snapshots = follower.since(snapshots[-1])
        yield from snapshots


@contextlib.contextmanager
def one_line() -> Iterator[contract.Progress]:
    """A progress line on a terminal. SIGTERM ends it as Ctrl-C does: by an exception."""
    console = output.notes()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    try:
        with ProgressBar(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as line:
            task = line.add_task("")

            def progress(done: int, total: int, sentence: str) -> None:
                line.update(task, completed=done, total=total or None, description=sentence)

            yield progress
    except KeyboardInterrupt:
        raise _cancelled() from None
    finally:
        signal.signal(signal.SIGTERM, before)


def followed(home: Home, job: JobDir, report: contract.Progress) -> JobSnapshot:
    """Reports the progress of a job until it has ended, and returns its last snapshot.

    Ctrl-C and SIGTERM cancel it; a second Ctrl-C leaves it running.

    Raises:
        JobError: its folder was deleted.
    """
    is_cancelled = False
    with StopSignal() as stop:
        while (snapshot := job.snapshot()) is not None and snapshot.is_live:
            progress = snapshot.progress
            report(progress.done, progress.total, progress.sentence)
            if stop.is_requested and not is_cancelled:
                with contextlib.suppress(JobError):  # the job has just ended
                    commands(home).cancel_job(job.job_id)
                is_cancelled = True
            time.sleep(POLL_JOB_SECONDS)
    if snapshot is None:
        raise JobError(f"the folder of job {job.job_id} was deleted: start the job again.")
    return snapshot


def to_its_end(home: Home, job: JobDir) -> dict[str, Any]:
    """Shows a job until it has ended, and returns its result; Ctrl-C cancels it.

    Raises:
        JobError: it has failed or was lost; the message is its reason.
        typer.Exit: it was cancelled.
    """
    with one_line() as progress:
        snapshot = followed(home, job, progress)
    if snapshot.state == "cancelled" or snapshot.end is None:
        raise _cancelled()
    if snapshot.state != "finished":
        raise JobError(snapshot.end.reason)
    return snapshot.end.result


def _cancelled() -> typer.Exit:
    output.note("cancelled: nothing was stored.")
    return typer.Exit(CANCELLED)


class StopSignal:
    """Ctrl-C and SIGTERM set `is_requested`, which the follower reads. A second Ctrl-C ends this
    program at once.
    """

    def __init__(self) -> None:
        self.is_requested = False

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.is_requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __enter__(self) -> StopSignal:
        # Python handles signals only in the main thread.
        is_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        self._handlers = {number: signal.signal(number, self._request) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


class RunDisplay(Protocol):
    """Shows the progress of a followed run."""

    def show(self, snapshot: Snapshot) -> None:
        """Called for every new snapshot."""


class Bar:
    """A progress bar on stderr."""

    def __init__(self, progress: ProgressBar) -> None:
        self._progress = progress
        self._task = progress.add_task("probing this host", total=None, text="")

    def show(self, snapshot: Snapshot) -> None:
        """Moves the bar; it pulses before the first step."""
        row, progress = snapshot.row, snapshot.progress
        self._progress.update(
            self._task,
            description=f"{row.run_id} {row.status}",
            completed=progress.step,
            total=progress.last_step if progress.step else None,
            text=numbers(snapshot),
        )


class Lines:
    """A line at each change of state and after each epoch, written by `write`."""

    def __init__(self, write: Callable[[Snapshot], None]) -> None:
        self._write = write
        self._last: tuple[int, str, int] | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Writes a line if the state or the epoch changed."""
        state = (snapshot.row.attempt, snapshot.row.status, snapshot.epochs_done)
        if state != self._last:
            self._write(snapshot)
            self._last = state


@contextlib.contextmanager
def display(as_json: bool) -> Iterator[RunDisplay]:
    """JSON lines on stdout, or a bar if stderr is a terminal, or plain lines on stderr."""
    if as_json:
        yield Lines(lambda snapshot: output.print_json(snapshot.as_dict(), indent=None))
    elif sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
        with ProgressBar(*columns, console=output.notes()) as progress:
            yield Bar(progress)
    else:
        yield Lines(lambda snapshot: output.notes().print(in_words(snapshot)))


def in_words(snapshot: Snapshot) -> str:
    """quick-0001 running: epoch 3/15, …; before the first step, why it waits."""
    return f"{snapshot.row.run_id} {snapshot.row.status}: {numbers(snapshot) or snapshot.row.note}"


def numbers(snapshot: Snapshot) -> str:
    """Epoch, losses, rate and time left; empty before the first step."""
    progress = snapshot.progress
    if not progress.step:
        return ""
    workload = declarations.of(snapshot.row.workload)
    losses = [
        f"{workload.loss_name(loss)} {progress.newest.get(loss.name, nan):.3f}"
        for loss in workload.losses
    ]
    parts = [f"epoch {progress.epoch}/{snapshot.row.epochs}", *losses]
    if progress.images_per_s is not None:
        parts.append(f"{formats.count(progress.images_per_s)} images/s")
    if progress.seconds_left is not None and snapshot.row.is_live:
        parts.append(f"{formats.duration(progress.seconds_left)} left")
    return ", ".join(parts)
