"""A run whose data set is still being prepared: it waits, starts when the job is done, and
fails when the job does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import JobError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import job_queue
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import StateTimer
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS
from gan_runtime.store import queries
from tests.support.asking import ask
from tests.support.fake_trainers import FakeTrainers

Wait = Callable[..., Any]
SPEC = RunSpec.parse({"workload": "mlp_gan", "dataset": "mnist", "batch_size_global": 64})


@pytest.fixture
def started(
    counting: Home, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Runtime, FakeTrainers]]:
    """The owner of a home on a machine without MNIST, with trainers in memory."""
    trainers = FakeTrainers()
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    runtime = Runtime.open(counting, starter=trainers.starter(StateTimer(time.monotonic)))
    yield runtime, trainers
    runtime.close()


def note(runtime: Runtime, run: RunDir) -> tuple[str, str]:
    row = queries.run(runtime.store, run.run_id)
    return row.status, row.note


def prepare(home: Home) -> str:
    (home.path / "counts").touch()
    return ask(home).prepare_data("mnist").job_id


def test_a_run_waiting_for_its_data_blocks_no_other_run(
    started: tuple[Runtime, FakeTrainers], wait_until: Wait
) -> None:
    runtime, trainers = started
    job_id = prepare(runtime.home)
    waits = runtime.commands.submit(SPEC)
    assert latest_status(waits).waits_for == job_id
    goes = runtime.commands.submit(RunSpec.parse({"workload": "mlp_gan"}))
    wait_until(lambda: goes.run_id in trainers.run_ids(), "a run with data of its own starts")
    sentence = "waiting for data set mnist (30%)"
    wait_until(
        lambda: note(runtime, waits) == ("queued", sentence), "the run says how far its data is"
    )
    assert waits.run_id not in trainers.run_ids()
    with pytest.raises(JobError, match=f"data set mnist is being prepared already by job {job_id}"):
        prepare(runtime.home)
    trainers.of(goes).finishes()
    (runtime.home.path / "go on").touch()
    wait_until(lambda: waits.run_id in trainers.run_ids(), "the run starts")


def test_a_run_fails_with_the_reason_when_its_data_is_cancelled(
    started: tuple[Runtime, FakeTrainers], wait_until: Wait
) -> None:
    runtime, trainers = started
    job_id = prepare(runtime.home)
    run = runtime.commands.submit(SPEC)
    ask(runtime.home).cancel_job(job_id)
    wait_until(lambda: note(runtime, run)[0] == "failed", "the run fails")
    assert (
        note(runtime, run)[1]
        == "data set mnist was not prepared (cancelled): cancelled on request; nothing was stored."
    )
    assert trainers.started == []


def test_runs_share_one_download_and_a_resume_requests_another(
    started: tuple[Runtime, FakeTrainers], wait_until: Wait
) -> None:
    runtime, _ = started
    first, second = runtime.commands.submit(SPEC), runtime.commands.submit(SPEC)
    (job,) = job_queue.snapshots(runtime.home)
    assert (job.request.options, job.request.asker) == (
        {"preparation": "mnist", "name": "mnist", "source": None, "options": {}},
        "a run that needs it",
    )
    for run in (first, second):
        wait_until(lambda run=run: note(runtime, run)[0] == "failed", "the run fails")
    runtime.commands.resume(first.run_id)
    assert [look.job.job_id for look in job_queue.snapshots(runtime.home)] == [
        "prepare-data-0002",
        "prepare-data-0001",
    ]
    assert latest_status(first).waits_for == "prepare-data-0002"
    assert job_queue.job_dir(runtime.home, "prepare-data-0001").end() is not None


def test_a_run_on_simulated_data_queues_its_preparation(
    started: tuple[Runtime, FakeTrainers],
) -> None:
    runtime, _ = started
    run = runtime.commands.submit(RunSpec.parse(PRESETS["showers"].values), "showers")
    (job,) = job_queue.snapshots(runtime.home)
    assert job.request.options == {
        "preparation": "showers_tiny",
        "name": "showers_tiny",
        "source": None,
        "options": {},
    }
    assert latest_status(run).waits_for == job.job.job_id
