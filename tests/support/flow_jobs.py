"""Iterating the model of quick-0001, as the job does it, in this process."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from gan_runtime.domains.flows import rollout
from gan_runtime.domains.flows.rollout_request import Wanted
from gan_runtime.jobs.folder import Asked, JobDir
from gan_runtime.jobs.task import Task
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Flow
from gan_runtime.records.run_folder import RunDir


def task_of(home: Home, **options: Any) -> Task:
    """The job's task, in this process."""
    before = len(list(home.jobs.iterdir())) if home.jobs.exists() else 0
    job = JobDir(home.jobs / f"iterate-{before + 1:04d}")
    job.results.mkdir(parents=True)
    wanted = json.loads(json.dumps(asdict(Wanted("quick-0001", **options))))
    job.write_asked(Asked(kind="iterate", options=wanted, asker="a test"))
    return Task(home, job, wanted)


def done(home: Home, run: RunDir, **options: Any) -> list[Flow]:
    """The job's work; the records that it has written."""
    rollout.iterate(task_of(home, **options))
    return [record for record in journal.read_all(run.flow_journal) if isinstance(record, Flow)]
