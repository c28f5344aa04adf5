"""What may be asked of the loss surfaces of a run: compute them, and how far that is. Part of `commands`."""

from __future__ import annotations

from gan_runtime.base.errors import RunStateError
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status
from gan_runtime.training import snapshots

COMPUTE = "compute_surface"
SIZE = 21  # points along each side of the grid


@for_operators
def compute_surfaces(home: Home, run_id: str, size: int = SIZE, *, asker: Asker) -> JobDir:
    """Asks for a job that computes the loss surfaces of an ended run, beside whatever trains.

    Raises:
        UnknownRunError: no such run.
        RunStateError: the run still waits or trains, has kept too few weight snapshots, or is being computed already.
        HomeError: the home cannot be written.
    """
    run = home.run_dir(run_id)
    status = latest_status(run).status
    if status not in ENDED:
        raise RunStateError(f"run {run_id} is {status}: its loss surface can be computed once it has ended.")
    kept = len(snapshots.epochs(run.snapshots))
    if kept < snapshots.FEWEST:
        raise RunStateError(
            f"run {run_id} has kept {kept} weight snapshots, but a loss surface needs {snapshots.FEWEST}: "
            "train it with weight_snapshots=yes for two epochs or more."
        )
    known = newest_surface_job(home, run_id)
    if known is not None and known.is_live:
        raise RunStateError(f"the loss surfaces of run {run_id} are being computed already: wait for that.")
    return job_queue.ask(home, COMPUTE, {"run_id": run_id, "size": size}, asker.name)


def can_compute(run: RunDir) -> bool:
    """Whether the run's folder holds enough weight snapshots; those of an imported run stayed where it was trained."""
    return len(snapshots.epochs(run.snapshots)) >= snapshots.FEWEST


def newest_surface_job(home: Home, run_id: str) -> JobLook | None:
    """The newest job that computes or has computed the surfaces of a run; None before the first."""
    looks = job_queue.looks(home, COMPUTE)
    return next((look for look in looks if look.asked.options.get("run_id") == run_id), None)
