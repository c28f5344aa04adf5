"""Rollouts of the model of quick-0001, computed like a job, in this process."""

from __future__ import annotations

from typing import Any

from gan_runtime.domains.flows.evaluation import RolloutOptions
from gan_runtime.evaluation.jobs import evaluate
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.jobs.process import Task
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, answers_of


def task_of(home: Home, **options: Any) -> Task:
    """The task of a rollout job, in this process."""
    before = len(list(home.jobs.iterdir())) if home.jobs.exists() else 0
    job = JobDir(home.jobs / f"iterate-{before + 1:04d}")
    job.results.mkdir(parents=True)
    values = RolloutOptions(**{"blend": "none", **options}).model_dump(mode="json")
    document = {"evaluation": "rollout", "run_id": "quick-0001", **values}
    job.write_request(JobRequest(kind="rollout", options=document, asker="a test"))
    return Task(home, job, document)


def done(home: Home, run: RunDir, **options: Any) -> list[Answer]:
    """Runs the job; returns the answers that it has written."""
    evaluate(task_of(home, **options))
    return answers_of(run, "rollout")
