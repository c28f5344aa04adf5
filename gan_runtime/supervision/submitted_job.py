"""The job of a run on a target, as target.json in the run's folder has it: what is submitted, why
it waits, and what its end means for the run.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.slurm import TIME_LIMIT
from gan_runtime.data import loading
from gan_runtime.records import run_files
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Status
from gan_runtime.records.record import Name
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.records.states import Cause, Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.supervision.target_watch import ABSENT
from gan_runtime.targets import slurm
from gan_runtime.targets.configuration import HostName, Line
from gan_runtime.targets.target import Seen, TargetJob

_LOG_BYTES = 20_000  # of the end


class SubmittedJob(BaseModel):
    """The job of a run's newest attempts. `attempt`: the first that it trains; Slurm starts it
    again for the next ones. `job`: its id, once known. `refusal`: why the target did not take it.
    `is_cancelled`: it has been or must be cancelled. `is_over`: the job has ended, on `nodes`.
    `place`: kind, host and home of its target at the submission; None in files of earlier versions.
    `log_bytes`: of the log before it.
    """

    model_config = ConfigDict(frozen=True)
    target: Name
    token: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,200}$")]
    attempt: int
    job: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{0,63}$")] = ""
    refusal: str = ""
    is_cancelled: bool = False
    is_over: bool = False
    nodes: str = ""
    place: tuple[str, HostName, Line] | None = None
    log_bytes: int = 0


@dataclass(frozen=True)
class KnownJob:
    """A submission, and the newest state of its job; None before the first answer and once it is
    over.
    """

    submission: SubmittedJob
    seen: Seen | None


def job_of(run: RunDir, submission: SubmittedJob) -> TargetJob:
    """The job of an attempt. Raises SpecError."""
    return new_job(run.spec(), run.path.resolve(), submission.token, submission.attempt)


def new_job(spec: RunSpec, folder: Path, token: str, attempt: int) -> TargetJob:
    """The job of an attempt of a run with this folder, which need not exist."""
    content = ""
    with contextlib.suppress(DatasetError):  # the trainer reports it
        content = loading.content_of(spec.dataset, Home(folder.parent.parent))
    return TargetJob(
        token,
        folder,
        attempt,
        spec.accelerator,
        spec.workers,
        spec.replicas if spec.accelerator == "gpu" else 0,
        spec.dataset,
        content,
        tuple(spec.job_options.split()),
    )


def wait_of(submission: SubmittedJob, seen: Seen) -> Cause:
    """Why a waiting job waits."""
    return cause(
        Reason.WAITS_ON_TARGET,
        target=submission.target,
        job=seen.job,
        why=seen.reason,
    )


def ending_of(seen: Seen, submission: SubmittedJob, run: RunDir) -> tuple[Status, Cause] | None:
    """The state of a run whose trainer wrote none before its job ended; None: as on this host."""
    details = {"target": submission.target, "job": seen.job or submission.job}
    if run.stop_asker not in ("", TIME_LIMIT):
        return None
    if seen is ABSENT:
        return "lost", cause(Reason.JOB_ABSENT, **details)
    if seen.state == "CANCELLED":
        return "stopped", cause(Reason.JOB_CANCELLED, **details)
    if seen.state == "TIMEOUT":
        return "lost", cause(Reason.TIME_LIMIT, **details)
    is_short = seen.state == "FAILED" and slurm.lacked_memory(_end_of_log(run, submission))
    if seen.state == "OUT_OF_MEMORY" or is_short:
        return "failed", cause(Reason.JOB_OUT_OF_MEMORY, **details)
    if seen.state in ("FAILED", "DEADLINE"):
        return "failed", cause(Reason.JOB_FAILED, **details, state=seen.state)
    return "lost", cause(Reason.JOB_ENDED, **details, state=seen.state)


def _end_of_log(run: RunDir, submission: SubmittedJob) -> str:
    """What the job has printed last; the log continues from job to job."""
    with contextlib.suppress(OSError), run.log.open("rb") as log:
        begin = max(submission.log_bytes, run.log.stat().st_size - _LOG_BYTES)
        log.seek(begin)
        return log.read().decode(errors="replace")
    return ""


def stored(run: RunDir) -> SubmittedJob | None:
    """The newest job of a run; None without a readable one."""
    with contextlib.suppress(OSError, ValidationError):
        return SubmittedJob.model_validate_json(run_files.content(run.target_file))
    return None


def store(run: RunDir, submission: SubmittedJob) -> None:
    """Writes target.json. Raises HomeError."""
    write_json(run.target_file, submission.model_dump())
