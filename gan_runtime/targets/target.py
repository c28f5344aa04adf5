"""A target: what it offers, the jobs that train runs there, and the states of these jobs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

Stage = Literal["waiting", "running", "ended"]


@dataclass(frozen=True)
class TargetJob:
    """A job to submit: one attempt of a run. `token`: its name, which identifies it before the
    target has given it an id. `folder`: of the run. `workers`: processes of the run. `gpus`: of
    each worker. `content`: digest of the prepared set `dataset`; "" for a set of the catalog.
    `options`: of sbatch, for this job.
    """

    token: str
    folder: Path
    attempt: int
    accelerator: str
    workers: int
    gpus: int
    dataset: str = ""
    content: str = ""
    options: tuple[str, ...] = ()


def token_of(run_id: str, attempt: int) -> str:
    """A new name for the job of an attempt."""
    return f"gan-{run_id}-{attempt}-{secrets.token_hex(3)}"


def run_id_of(token: str) -> str:
    """The run of a job's name."""
    return token.removeprefix("gan-").rsplit("-", 2)[0]


@dataclass(frozen=True)
class Seen:
    """The state of a job in one answer of its target.

    `state`: in Slurm's words, such as PENDING, whichever target it is. `reason`: why a job waits,
    for people. `starts_at`: the target's estimate for a waiting job. `ends_at`: the limit of a
    running one. `restarts`: how often the target has started the job again by itself.
    `is_complete`: no line of an ended job can still arrive.
    """

    stage: Stage
    state: str
    reason: str = ""
    job: str = ""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    nodes: str = ""
    restarts: int = 0
    is_complete: bool = False


@dataclass(frozen=True)
class Submitted:
    """The answer to a submission: the job's id, or the target's refusal."""

    job: str = ""
    refusal: str = ""


@dataclass(frozen=True)
class Offer:
    """What a target has, as lines of text, or why it cannot be used."""

    lines: tuple[str, ...] = ()
    refusal: str = ""


COMPLETING = "COMPLETING"  # state of a job that has ended but for some of its files


class NoAnswerError(Exception):
    """A target did not answer, or not as expected. It says nothing about the jobs."""


class RunTarget(Protocol):
    """All methods but `script` make remote calls with time limits, and can be repeated."""

    def offer(self) -> Offer:
        """What the target has now, or why no run can train there."""

    def set_up(self) -> Offer:
        """Installs the project there, in minutes; a refusal says why it did not work."""

    def script(self, job: TargetJob) -> str:
        """What a submission starts, as a script that also works by hand. Makes no call."""

    def submit(self, job: TargetJob) -> Submitted:
        """Submits a job, unless one of its name is there already. Raises NoAnswerError."""

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        """The states of all these jobs that the target knows, from one query. Where the home is not
        shared, all that their runs wrote before is in the home here. Raises NoAnswerError: nothing
        is known then, not even that a job has ended.
        """

    def cancel(self, token: str) -> None:
        """Ends the job of this name at once, if there is one. A later `observe` shows whether it
        did. Raises NoAnswerError.
        """
