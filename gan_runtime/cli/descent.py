"""`surface`: starts the job that computes a run's loss surfaces, and waits for its end."""

from __future__ import annotations

import contextlib
import subprocess

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from gan_runtime.cli import output
from gan_runtime.errors import RunStateError, SurfaceError
from gan_runtime.records.rundir import RunDir
from gan_runtime.surface import runner
from gan_runtime.surface.progress import SurfaceProgress

POLL_SECONDS = 0.5


def compute(run: RunDir, size: int) -> None:
    """Computes, with its progress on stderr; Ctrl-C ends the job.

    Raises:
        RunStateError: see `runner.start`, or a job computes them already.
        SurfaceError: the job ended without a surface; the message says why.
    """
    job = runner.start(run, size)
    if job is None:
        raise RunStateError(
            f"the loss surfaces of run {run.run_id} are being computed already: wait for that."
        )
    columns = (
        SpinnerColumn(),
        TextColumn("loss surface, {task.completed} of {task.total} losses"),
        TimeRemainingColumn(),
    )
    try:
        with Progress(*columns, console=output.notes(), transient=True) as bar:
            task = bar.add_task("losses", total=None)
            while job.poll() is None:
                known = SurfaceProgress.read(run)
                if known is not None and known.total:
                    bar.update(task, total=known.total, completed=known.done)
                _wait(job)
    except KeyboardInterrupt:
        runner.stop(run)
        raise
    end = SurfaceProgress.read(run)
    if end is None or end.reason:
        raise SurfaceError(f"no loss surface of {run.run_id}: {end.reason if end else 'its folder is gone.'}")


def _wait(job: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(POLL_SECONDS)
