"""Following a run or a job that another process does, whoever supervises it, and what Ctrl-C means
meanwhile.

A run is followed from its own journals, a job from its folder.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from types import FrameType
from typing import Any

import typer
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as ProgressBar

from gan_runtime.base.errors import JobError
from gan_runtime.cli import output
from gan_runtime.cli.arguments import commands
from gan_runtime.data import contract
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import STAGES
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.queries import Progress, RunRow
from gan_runtime.store.store import Store

POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment."""

    row: RunRow
    progress: Progress

    @property
    def epochs_done(self) -> int:
        """Whole passes over the data; 0 before the first step."""
        return (
            self.progress.step // self.progress.steps_per_epoch
            if self.progress.steps_per_epoch
            else 0
        )

    def as_dict(self) -> dict[str, Any]:
        """What `train --json` prints: state, place and rate (None before the first numbers),
        and the newest metrics.
        """
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
    """Reads one run's journals into a store in memory, as often as it is asked."""

    def __init__(self, home: Home, run: RunDir) -> None:
        self._home, self._run = home, run
        self._store = Store()
        self._ingestor = Ingestor(home, self._store)

    def now(self) -> Snapshot:
        """The run as it is.

        Raises:
            UnknownRunError: someone deleted the run meanwhile.
        """
        self._home.run_dir(self._run.run_id)
        self._ingestor.catch_up_run(self._run)
        return Snapshot(
            queries.run(self._store, self._run.run_id),
            queries.progress(self._store, self._run.run_id),
        )

    def since(self, before: Snapshot | None) -> list[Snapshot]:
        """Each state that the run came to after `before`, in order; the last as it is now.

        None: each of its newest attempt.

        A state that came and went between two looks is told with the place and the numbers of the
        look before. Raises as `now`.
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


def look(home: Home, run: RunDir) -> Snapshot:
    """The run as it is now. Raises as `Follower.now`."""
    return Follower(home, run).now()


def follow(home: Home, run: RunDir) -> Iterator[Snapshot]:
    """Each state of the run's newest attempt, then the run as it is now, again and again, the last
    time when it has ended.

    Raises as `Follower.now`.
    """
    follower = Follower(home, run)
    snapshots = follower.since(None)
    yield from snapshots
    while snapshots[-1].row.is_live:
        time.sleep(POLL_SECONDS)
        snapshots = follower.since(snapshots[-1])
        yield from snapshots


CANCELLED = 1  # exit code
POLL_JOB_SECONDS = 0.2


@contextlib.contextmanager
def one_line() -> Iterator[contract.Progress]:
    """A line that shows how far it is, where someone looks on.

    SIGTERM ends it as Ctrl-C does: by an exception.
    """
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


def followed(home: Home, job: JobDir, tell: contract.Progress) -> JobLook:
    """Tells how far a job is until it has ended, and returns how.

    Ctrl-C and SIGTERM cancel it; a second Ctrl-C leaves it alone.

    Raises:
        JobError: its folder is gone.
    """
    is_asked = False
    with StopWish() as wish:
        while (look := job.look()) is not None and look.is_live:
            tell(look.progress.done, look.progress.total, look.progress.sentence)
            if wish.is_made and not is_asked:
                with contextlib.suppress(JobError):  # it has ended meanwhile
                    commands(home).cancel_job(job.job_id)
                is_asked = True
            time.sleep(POLL_JOB_SECONDS)
    if look is None:
        raise JobError(f"the folder of job {job.job_id} is gone: ask for it again.")
    return look


def to_its_end(home: Home, job: JobDir) -> dict[str, Any]:
    """Shows a job until it has ended, and returns what it found; Ctrl-C cancels it.

    Raises:
        JobError: it has failed or was lost; the message is its reason.
        typer.Exit: it was cancelled.
    """
    with one_line() as progress:
        look = followed(home, job, progress)
    if look.state == "cancelled" or look.end is None:
        raise _cancelled()
    if look.state != "finished":
        raise JobError(look.end.reason)
    return look.end.result


def _cancelled() -> typer.Exit:
    output.note("cancelled: nothing of it was kept.")
    return typer.Exit(CANCELLED)


class StopWish:
    """Turns Ctrl-C and SIGTERM into a wish that the follower reads.

    A second Ctrl-C ends this program at once.
    """

    def __init__(self) -> None:
        self.is_made = False

    def _make(self, _number: int, _frame: FrameType | None) -> None:
        self.is_made = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __enter__(self) -> StopWish:
        # Python hears signals in its main thread only: in another one nobody can make the wish.
        is_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        self._before = {number: signal.signal(number, self._make) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def clock(seconds: float) -> str:
    """Hours only when there are any: 0:07, 12:30, 3:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
