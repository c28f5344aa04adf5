"""Asking for an evaluation of a run: what applies to it and why not, the request, and the newest
one.

Every refusal that evaluations share is said here: the run is gone, it does not apply, there is no
such checkpoint, the data set is another by now, the same is under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from gan_runtime.base import options
from gan_runtime.base.errors import (
    CheckpointError,
    DatasetError,
    FieldError,
    GanRuntimeError,
    SpecError,
    quoted,
)
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.data import loading
from gan_runtime.evaluation.catalog import evaluation, evaluations
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.job import Job
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import trained


class EvaluationRequest(BaseModel):
    """An evaluation of a run by its name, with the values of all of its options next to these
    two.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    evaluation: str
    run_id: str

    @property
    def chosen(self) -> Any:
        """The record of its options."""
        return parsed(evaluation(self.evaluation), self.model_extra or {})


def evaluations_of(home: Home, run: RunDir) -> list[tuple[Evaluation, str]]:
    """Every evaluation with the reason why this run cannot be evaluated so now, "" where it can.

    Those that the run's workload or data can never have are left out, unless nothing else is known
    of the run.
    """
    return [
        (each, _reason(home, run, each))
        for each in evaluations().values()
        if not why_never(home, run, each)
    ]


def why_never(home: Home, run: RunDir, asked: Evaluation) -> str:
    """Why an evaluation does not apply to a run's workload with its options and data; ""
    where it does.
    """
    try:
        spec = run.spec()
        fields = spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home))
    except GanRuntimeError as error:
        return str(error)
    return asked.applies(spec.entry, spec.of_workload, fields)


def request(home: Home, run_id: str, name: str, given: Mapping[str, Any], actor: str) -> JobDir:
    """Asks for a job that evaluates a run.

    `given`: values of options by name, as text or numbers; others are the usual ones.

    Raises:
        UnknownRunError: there is no such run.
        JobError: there is no such evaluation, or it is under way.
        SpecError: an option is wrong, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or no weights of that epoch.
        DatasetError: it does not apply to the run, or the run's data set is gone, or another by
            now.
        HomeError: the home cannot be written. Others as the evaluation's own `check`.
    """
    asked = evaluation(name)
    run = home.run_dir(run_id)
    chosen = parsed(asked, {**_usual(home, run, asked), **given})
    document = EvaluationRequest(
        evaluation=asked.name, run_id=run_id, **chosen.model_dump(mode="json")
    )
    return job_queue.request(home, asked.name, document, actor)


def newest_request(home: Home, run_id: str, name: str) -> JobLook | None:
    """The newest job that evaluates or has evaluated a run so; None before the first."""
    return job_queue.newest(home, evaluation(name).name, run_id=run_id)


def parsed(asked: Evaluation, values: Mapping[str, Any]) -> Any:
    """The record of options from plain values; numbers may be text.

    Raises SpecError, one message for each wrong option.
    """
    known = options.of(asked.options)
    right = {name: value for name, value in values.items() if name in known}
    record, wrong = options.tried(asked.options.model_validate, right, known)
    unknown = [name for name in values if name not in known]
    wrong += [FieldError(name, _not_an_option(name, asked)) for name in unknown]
    if wrong:
        raise SpecError(wrong)
    return record


def _not_an_option(name: str, asked: Evaluation) -> str:
    names = ", ".join(options.of(asked.options)) or "none"
    return f"{quoted(name)} is not an option of evaluation {asked.name}: its options are {names}."


def _usual(home: Home, run: RunDir, asked: Evaluation) -> Mapping[str, Any]:
    """Left out where the run cannot have it at all: then the check says why."""
    return {} if why_never(home, run, asked) else asked.usual(home, run)


def _reason(home: Home, run: RunDir, asked: Evaluation) -> str:
    try:
        if asked.needs_checkpoint:
            trained.check_state(run, "newest", "evaluate")
            trained.check_data(run, home)
    except (CheckpointError, DatasetError) as error:
        return str(error)
    return asked.lacking(home, run)


def check(home: Home, asked: EvaluationRequest) -> None:
    """The refusals that all evaluations share, then those of this one."""
    declared, chosen = evaluation(asked.evaluation), asked.chosen
    run = home.run_dir(asked.run_id)
    if reason := why_never(home, run, declared):
        raise DatasetError(reason)
    if declared.needs_checkpoint:
        state, epoch = getattr(chosen, "checkpoint", "newest"), getattr(chosen, "epoch", None)
        checkpoint = options.of(declared.options).get("checkpoint")
        every = checkpoint is not None and "every" in checkpoint.choices
        trained.check_state(run, state, "evaluate", epoch, every=every)
        trained.check_data(run, home)
    declared.check(home, run, chosen)


def job_of(declared: Evaluation) -> Job:
    """The job of an evaluation."""
    return Job(
        declared.name,
        declared.title,
        "gan_runtime.evaluation.work:evaluate",
        options=EvaluationRequest,
        check=check,
        same=("run_id",),
        busy=declared.busy or f"{declared.title} of run {{run_id}} is being computed",
        result="journal",
        environment=declared.environment,
        earlier=declared.earlier_jobs,
    )


JOBS = tuple(map(job_of, evaluations().values()))
