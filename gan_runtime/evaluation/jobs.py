"""The jobs of evaluations: which evaluations apply to a run, requesting one, and the work.

All evaluations share these refusals: the run is deleted, the evaluation does not apply, the
checkpoint is missing, the data set has changed, or the same job is running. The owner of a home
requests the quality jobs of runs in training.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from gan_runtime.base import options
from gan_runtime.base.errors import (
    CheckpointError,
    DatasetError,
    FieldError,
    GanRuntimeError,
    JobError,
    SpecError,
    quoted,
)
from gan_runtime.catalog.domain import QUALITY, Evaluation
from gan_runtime.data import loading
from gan_runtime.evaluation import while_training
from gan_runtime.evaluation.catalog import EvaluationResult, Subject, evaluation, evaluations
from gan_runtime.evaluation.mobilenet_file import has_mobilenet
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.jobs.job import Job, Task
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import inference

log = logging.getLogger("gan_runtime")


class EvaluationRequest(BaseModel):
    """A request to evaluate a run; all options of the evaluation are extra fields."""

    model_config = ConfigDict(frozen=True, extra="allow")
    evaluation: str
    run_id: str

    @property
    def options(self) -> Any:
        """The option record of the evaluation."""
        return parsed(evaluation(self.evaluation), self.model_extra or {})


def evaluations_of(home: Home, run: RunDir) -> list[tuple[Evaluation, str]]:
    """Every evaluation of a run, with the reason why it cannot start now, or "".

    Evaluations that never apply to the run's workload or data are left out.
    """
    return [
        (each, _obstacle(home, run, each))
        for each in evaluations().values()
        if not why_never(home, run, each)
    ]


def why_never(home: Home, run: RunDir, declared: Evaluation) -> str:
    """The reason why an evaluation never applies to a run's workload, options and data; "" if it
    applies.
    """
    try:
        spec = run.spec()
        fields = loading.fields_read(spec, home)
    except GanRuntimeError as error:
        return str(error)
    return declared.applies(spec.entry, spec.of_workload, fields)


def request(home: Home, run_id: str, name: str, values: Mapping[str, Any], actor: str) -> JobDir:
    """Requests a job that evaluates a run.

    `values`: options by name, as text or numbers; missing options get their usual values.

    Raises:
        UnknownRunError: there is no such run.
        JobError: there is no such evaluation, or it is already running.
        SpecError: an option is wrong, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or no weights of that epoch.
        DatasetError: it does not apply to the run, or the run's data set is missing or has
            changed.
        HomeError: the home cannot be written. The evaluation's `check` can raise others.
    """
    declared = evaluation(name)
    run = home.run_dir(run_id)
    # An evaluation that never applies has no usual values for this run; `check` then says why.
    usual = {} if why_never(home, run, declared) else declared.usual(home, run)
    record = parsed(declared, {**usual, **values})
    document = EvaluationRequest(
        evaluation=declared.name, run_id=run_id, **record.model_dump(mode="json")
    )
    return job_queue.request(home, declared.name, document, actor)


def newest_request(home: Home, run_id: str, name: str) -> JobSnapshot | None:
    """The newest job of this evaluation of a run; None before the first."""
    return job_queue.newest(home, evaluation(name).name, run_id=run_id)


def parsed(declared: Evaluation, values: Mapping[str, Any]) -> Any:
    """The record of options from plain values; numbers may be text.

    Raises SpecError, one message for each wrong option.
    """
    names = options.of(declared.options)
    valid = {name: value for name, value in values.items() if name in names}
    record, errors = options.build_valid(declared.options.model_validate, valid, names)
    allowed = ", ".join(names) or "none"
    errors += [
        FieldError(
            name,
            f"{quoted(name)} is not an option of evaluation {declared.name}: its options are"
            f" {allowed}.",
        )
        for name in values
        if name not in names
    ]
    if errors:
        raise SpecError(errors)
    return record


def _obstacle(home: Home, run: RunDir, declared: Evaluation) -> str:
    try:
        if declared.needs_checkpoint:
            inference.check_state(run, "newest", "evaluate")
            inference.check_data(run, home)
    except (CheckpointError, DatasetError) as error:
        return str(error)
    return declared.lacking(home, run)


def check(home: Home, request: EvaluationRequest) -> None:
    """Raises the refusals that all evaluations share, then those of this evaluation."""
    declared, record = evaluation(request.evaluation), request.options
    run = home.run_dir(request.run_id)
    if reason := why_never(home, run, declared):
        raise DatasetError(reason)
    if declared.needs_checkpoint:
        state, epoch = getattr(record, "checkpoint", "newest"), getattr(record, "epoch", None)
        checkpoint = options.of(declared.options).get("checkpoint")
        every = checkpoint is not None and "every" in checkpoint.choices
        inference.check_state(run, state, "evaluate", epoch, every=every)
        inference.check_data(run, home)
    declared.check(home, run, record)


Work = Callable[[Subject], EvaluationResult]


def evaluate(task: Task) -> dict[str, Any]:
    """The work of an evaluation's job: calls the evaluation's function and journals the answers.

    Raises UnknownRunError, and the errors of that function.
    """
    request = EvaluationRequest(**task.options)
    declared, run = evaluation(request.evaluation), task.home.run_dir(request.run_id)
    module, _, name = declared.work.partition(":")
    work: Work = getattr(importlib.import_module(module), name)
    key = task.results.parent.name

    def publish(answer: Answer) -> None:
        store(run, EvaluationResult([answer]))

    subject = Subject(task.home, run, request.options, key, task.results, task.progress, publish)
    result = work(subject)
    task.past_cancelling()
    if result.answers:
        store(run, result)
    return dict(result.result)


def store(run: RunDir, result: EvaluationResult) -> None:
    """Appends all answers to the run's journal, or none. The files that they name must exist.

    Raises:
        HomeError: the disk is full; the answers' files are deleted.
    """
    try:
        journal.append(run.evaluations_journal, 1, *result.answers)
    except BaseException:
        for path in result.files:
            path.unlink(missing_ok=True)
        raise
    run.announce()


def job_of(declared: Evaluation) -> Job:
    """The job declaration of an evaluation."""
    return Job(
        declared.name,
        declared.title,
        "gan_runtime.evaluation.jobs:evaluate",
        options=EvaluationRequest,
        check=check,
        same=("run_id",),
        busy=declared.busy or f"{declared.title} of run {{run_id}} is being computed",
        result="journal",
        environment=declared.environment,
        stored=declared.stored,
        earlier=declared.earlier_jobs,
    )


JOBS = tuple(map(job_of, evaluations().values()))


# ---- while training ------------------------------------------------------------------------------

CADENCE = "while_training"  # option of the quality evaluation
ACTOR = "training"
MEASURE_VARIABLE = "GAN_RUNTIME_QUALITY"  # "off": this process requests no quality jobs
RETRY_SECONDS = 30.0  # after a refusal that may end, such as another measurement of the run


def is_while_training(job: JobSnapshot) -> bool:
    """Whether the owner of the home requested this job for a run that trains."""
    return bool(job.request.options.get(CADENCE))


def expects_quality(home: Home, run: RunDir) -> bool:
    """Whether the quality job of a run's newest attempt waits or runs, or will be requested if
    this process owns the home.
    """
    every = _every(run)
    job = _job_of_attempt(home, run, every)
    if job is not None:
        return job.is_live
    declared = evaluation(QUALITY)
    if not every or why_never(home, run, declared):
        return False
    with contextlib.suppress(GanRuntimeError):
        declared.check(home, run, parsed(declared, _options(home, run, every)))
        return True
    return False


class QualityRequests:
    """Requests one quality job for each training attempt with a checkpoint: once the start of the
    job fits into its share of the processor time, or when the attempt has ended. Not thread-safe.
    """

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._known: set[tuple[str, int]] = set()  # all attempts seen so far
        # Attempts without a request: the run, and the time before which there is none.
        self._pending: dict[tuple[str, int], tuple[RunDir, float]] = {}

    def expect(self, training: Iterable[tuple[RunDir, int]]) -> None:
        """Registers runs in training with their attempts, to be requested by a later tick. A new
        owner also registers those that trained when the last one left.
        """
        for run, attempt in training:
            key = run.run_id, attempt
            if key not in self._known and _every(run):
                self._pending[key] = run, -math.inf
            self._known.add(key)

    def tick(self, training: Iterable[tuple[RunDir, int]]) -> None:
        """Requests the jobs that are due. `training`: the running runs with their attempts."""
        training = list(training)
        self.expect(training)
        running = {(run.run_id, attempt) for run, attempt in training}
        for key, (run, not_before_s) in list(self._pending.items()):
            is_over = key not in running
            if not run.has_checkpoint:
                if is_over:
                    del self._pending[key]
            elif self._clock() >= not_before_s and (is_over or while_training.may_start(run)):
                del self._pending[key]
                if not self._request(run, is_over):
                    self._pending[key] = run, self._clock() + RETRY_SECONDS

    def _request(self, run: RunDir, is_over: bool) -> bool:
        """Returns False to try again later: a user is measuring this run, or it still trains and
        its refusal may end, as when a user downloads the network that reads unlabeled images.
        """
        every = _every(run)
        if _job_of_attempt(self._home, run, every) is not None:  # by an earlier owner
            return True
        try:
            request(self._home, run.run_id, QUALITY, _options(self._home, run, every), ACTOR)
        except JobError:
            return False
        except GanRuntimeError as error:
            if not is_over and not why_never(self._home, run, evaluation(QUALITY)):
                return False
            log.info("the quality of run %s is not measured: %s", run.run_id, error)
        return True


def _job_of_attempt(home: Home, run: RunDir, every: int) -> JobSnapshot | None:
    """The job that an owner requested since the newest attempt of a run began."""
    options: dict[str, Any] = {"run_id": run.run_id, CADENCE: every}
    newest = job_queue.newest(home, QUALITY, **options)
    process = run.process()
    if newest is None or process is None:
        return None
    return newest if newest.request.at.timestamp() >= process.began else None


def _options(home: Home, run: RunDir, every: int) -> dict[str, Any]:
    """The options of a request. Without labels the features are those of ImageNet, if their weights
    are on this machine: no download starts that no user has requested. Raises DatasetError.
    """
    features = evaluation(QUALITY).usual(home, run)["features"]
    if features == "imagenet" and not has_mobilenet():
        features = "classifier"  # refused, as the data set has no labels
    return {"checkpoint": "newest", "features": features, CADENCE: every}


def _every(run: RunDir) -> int:
    """Epochs between two measurements; 0 without them: a shorter run, unreadable options, a run
    on a cluster, whose networks this host may be too small for, or disabled in this process.
    """
    if os.environ.get(MEASURE_VARIABLE) == "off" or run.is_on_cluster:
        return 0
    try:
        spec = run.spec()
    except SpecError:
        return 0
    return spec.quality_every if spec.quality_every <= spec.epochs else 0
