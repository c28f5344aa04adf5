"""The evaluations that the owner of a home requests by itself, of runs that train."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gan_runtime.base.errors import GanRuntimeError, JobError, SpecError
from gan_runtime.catalog.evaluation import Evaluation, WhileTraining
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.evaluation import jobs
from gan_runtime.evaluation.while_training import may_start
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

CADENCE = "while_training"  # option of evaluations that measure runs in training
ACTOR = "training"
SWITCH = "GAN_RUNTIME_QUALITY"  # variable; "off": this process requests none
RETRY_SECONDS = 30.0  # after a refusal that may end, such as another measurement of the run
log = logging.getLogger("gan_runtime")
Key = tuple[str, int, str]  # run, attempt, evaluation


def is_while_training(job: JobSnapshot) -> bool:
    """Whether the owner of the home requested this job for a run that trains."""
    return bool(job.request.options.get(CADENCE))


def is_measured_while_training(home: Home, run: RunDir) -> bool:
    """Whether a job that measures a run's newest attempt waits or runs, or will be requested if
    this process owns the home.
    """
    return any(wanted.is_expected for wanted in _wanted(home, run))


class RequestsWhileTraining:
    """Requests one job for each training attempt with a checkpoint, and each evaluation that
    measures it: once the start of the job fits into its share of the processor time, or when the
    attempt has ended. Not thread-safe.
    """

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._known: set[tuple[str, int]] = set()  # all attempts seen so far
        # What is not requested yet, and the time before which it is not.
        self._pending: dict[Key, tuple[_Wanted, float]] = {}

    def expect(self, training: Iterable[tuple[RunDir, int]]) -> None:
        """Registers runs in training with their attempts, to be requested by a later tick. A new
        owner also registers those that trained when the last one left.
        """
        for run, attempt in training:
            if (run.run_id, attempt) not in self._known:
                for wanted in _wanted(self._home, run):
                    self._pending[run.run_id, attempt, wanted.declared.name] = wanted, -math.inf
            self._known.add((run.run_id, attempt))

    def tick(self, training: Iterable[tuple[RunDir, int]]) -> None:
        """Requests the jobs that are due. `training`: the running runs with their attempts."""
        training = list(training)
        self.expect(training)
        running = {(run.run_id, attempt) for run, attempt in training}
        for key, (wanted, not_before_s) in list(self._pending.items()):
            is_over = key[:2] not in running
            if not wanted.run.has_checkpoint:
                if is_over:
                    del self._pending[key]
            elif self._clock() >= not_before_s and (is_over or may_start(wanted.run)):
                del self._pending[key]
                if not wanted.request(is_over):
                    self._pending[key] = wanted, self._clock() + RETRY_SECONDS


@dataclass(frozen=True)
class _Wanted:
    """An evaluation that measures a run each `every` epochs while it trains."""

    home: Home
    run: RunDir
    declared: Evaluation
    cadence: WhileTraining
    every: int

    @cached_property
    def never(self) -> str:
        """As `jobs.why_never`."""
        return jobs.why_never(self.home, self.run, self.declared)

    @property
    def is_expected(self) -> bool:
        """Whether its job waits or runs, or will be requested."""
        job = self.of_attempt
        if job is not None:
            return job.is_live
        if self.never:
            return False
        with contextlib.suppress(Exception):  # a package's check can raise anything
            self.declared.check(self.home, self.run, jobs.parsed(self.declared, self.options))
            return True
        return False

    @property
    def of_attempt(self) -> JobSnapshot | None:
        """The job that an owner requested since the newest attempt of the run began."""
        options: dict[str, Any] = {"run_id": self.run.run_id, CADENCE: self.every}
        newest = job_queue.newest(self.home, self.declared.name, **options)
        process = self.run.process()
        if newest is None or process is None:
            return None
        return newest if newest.request.at.timestamp() >= process.began else None

    @property
    def options(self) -> dict[str, Any]:
        """The options of a request. Raises DatasetError."""
        return {**self.cadence.options(self.home, self.run), CADENCE: self.every}

    def request(self, is_over: bool) -> bool:
        """Returns False to try again later: a user is measuring this run, or it still trains and
        its refusal may end, as when a user downloads a network that the evaluation needs.
        """
        if self.of_attempt is not None:  # by an earlier owner
            return True
        name, run_id = self.declared.name, self.run.run_id
        try:
            jobs.request(self.home, run_id, name, self.options, ACTOR)
        except JobError:
            return False
        except GanRuntimeError as error:
            if not is_over and not self.never:
                return False
            log.info("run %s is not measured by %s: %s", run_id, name, error)
        except Exception:  # a package can raise anything
            log.exception("run %s is not measured by %s", run_id, name)
        return True


def _wanted(home: Home, run: RunDir) -> list[_Wanted]:
    """The evaluations that measure a run while it trains. None for a shorter run, unreadable
    options, a run on a cluster, whose networks this host may be too small for, or if disabled in
    this process.
    """
    if os.environ.get(SWITCH) == "off" or run.is_on_cluster:
        return []
    try:
        spec = run.spec()
    except SpecError:
        return []
    wanted = (
        _Wanted(home, run, declared, cadence, spec.flat().get(cadence.every, 0))
        for declared in evaluations().values()
        if (cadence := declared.while_training)
    )
    return [each for each in wanted if 0 < each.every <= spec.epochs]
