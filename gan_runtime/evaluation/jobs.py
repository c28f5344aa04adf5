"""The jobs of evaluations: which evaluations apply to a run, requesting one, and the work.

All evaluations share these refusals: the run is deleted, the evaluation does not apply, the
checkpoint is missing, the data set has changed, or the same job is running.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
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
from gan_runtime.base.importing import loaded
from gan_runtime.base.packages import guarded
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.evaluations import evaluation, evaluations
from gan_runtime.data import loading
from gan_runtime.evaluation.catalog import EvaluationResult, Subject
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.jobs.job import Job
from gan_runtime.jobs.job import jobs as declared_jobs
from gan_runtime.jobs.process import Task
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
    job = declared_jobs().get(declared.name)
    if job is None or job.work != WORK:
        return f"{declared.name} is also the name of another job: rename the evaluation."
    fails = f"{declared.name} cannot tell whether it applies: see the log."
    applies = guarded(f"`applies` of {declared.name}", declared.applies, fails)
    return applies(spec.entry, spec.of_workload, fields)


def usual(home: Home, run: RunDir, declared: Evaluation) -> Mapping[str, Any]:
    """The usual options of an evaluation of a run."""
    return guarded(f"`usual` of {declared.name}", declared.usual, {})(home, run)


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
    usual_values = {} if why_never(home, run, declared) else usual(home, run, declared)
    record = parsed(declared, {**usual_values, **values})
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
    fails = f"{declared.name} cannot tell what it lacks: see the log."
    return guarded(f"`lacking` of {declared.name}", declared.lacking, fails)(home, run)


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
    try:
        declared.check(home, run, record)
    except GanRuntimeError:
        raise
    except Exception as error:  # a package's check can raise anything
        log.exception("`check` of %s", declared.name)
        raise JobError(f"{declared.name} cannot check this request: {error}.") from error


WORK = "gan_runtime.evaluation.jobs:evaluate"
Work = Callable[[Subject], EvaluationResult]


def evaluate(task: Task) -> dict[str, Any]:
    """The work of an evaluation's job: calls the evaluation's function and journals the answers.

    Raises UnknownRunError, and the errors of that function.
    """
    request = EvaluationRequest(**task.options)
    declared, run = evaluation(request.evaluation), task.home.run_dir(request.run_id)
    work: Work = loaded(declared.work) if isinstance(declared.work, str) else declared.work
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
        WORK,
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
