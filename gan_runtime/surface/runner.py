"""Starts, watches and ends the job that computes a run's loss surfaces. A process of its own: it outlives the dashboard."""

from __future__ import annotations

import os
import subprocess
import sys

from gan_runtime import processes
from gan_runtime.errors import RunStateError
from gan_runtime.records.journal import ENDED
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import commands
from gan_runtime.surface import snapshots
from gan_runtime.surface.progress import SurfaceProgress

SIZE = 21  # points along each side of the grid


def start(run: RunDir, size: int = SIZE) -> subprocess.Popen[bytes] | None:
    """Starts the job; None when it runs already. What it prints goes to the run's log.

    Raises:
        RunStateError: the run still waits or trains, or has kept too few weight snapshots.
    """
    status = commands.latest_status(run).status
    if status not in ENDED:
        raise RunStateError(
            f"run {run.run_id} is {status}: its loss surface can be computed once it has ended."
        )
    kept = len(snapshots.epochs(run.snapshots))
    if kept < snapshots.FEWEST:
        raise RunStateError(
            f"run {run.run_id} has kept {kept} weight snapshots, but a loss surface needs {snapshots.FEWEST}: "
            "train it with weight_snapshots=yes for two epochs or more."
        )
    known = SurfaceProgress.read(run)
    if known is not None and not known.ended:
        return None
    command = [sys.executable, "-m", "gan_runtime.surface.job", str(run.path), str(size)]
    with run.log.open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=processes.environment(os.environ),
            start_new_session=True,
        )
    SurfaceProgress.of(child.pid).write(run)  # so that a page that asks at once finds it
    return child


def stop(run: RunDir) -> None:
    """Ends the job, if one runs; nothing of it is kept."""
    known = SurfaceProgress.read(run)
    if known is None or known.ended:
        return
    process = processes.alive(known.pid, known.started, known.born)
    if process is not None:
        process.kill()
        process.wait(timeout=10)
    known.end(run, "stopped on request.")
