"""What is here of a run that trains in a home on another host."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gan_runtime.records.run_folder import RunDir
from gan_runtime.supervision.target_starter import TargetStarter


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_over(targets: TargetStarter, run: RunDir) -> bool:
    """Whether the job of the run has ended and all that it has written is here."""
    job = targets.job_of(run)
    assert job is not None
    return job.submission.is_over
