"""A line on the terminal that shows how far something is; and a background job, shown so until its end."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import typer
from rich.progress import BarColumn, Progress, TextColumn

from gan_runtime.base.errors import JobError
from gan_runtime.cli import output
from gan_runtime.cli.arguments import commands
from gan_runtime.cli.stop_wish import StopWish
from gan_runtime.data import contract
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.records.home import Home

CANCELLED = 1  # exit code
POLL_SECONDS = 0.2


@contextlib.contextmanager
def one_line() -> Iterator[contract.Progress]:
    """A line that shows how far it is, where someone looks on.

    SIGTERM ends it as Ctrl-C does: by an exception.
    """
    console = output.notes()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as line:
            task = line.add_task("")

            def progress(done: int, total: int, sentence: str) -> None:
                line.update(task, completed=done, total=total or None, description=sentence)

            yield progress
    except KeyboardInterrupt:
        raise _cancelled() from None
    finally:
        signal.signal(signal.SIGTERM, before)


def followed(home: Home, job: JobDir, tell: contract.Progress) -> JobLook:
    """Tells how far a job is until it has ended, and returns how. Ctrl-C and SIGTERM cancel it; a second Ctrl-C leaves it alone.

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
            time.sleep(POLL_SECONDS)
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
