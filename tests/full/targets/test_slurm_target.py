"""Runs on a Slurm target: submitted from the home's queue, shown as the cluster says, and stopped,
resumed and requeued like runs of this host.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget
from tests.full.targets.slurm_runs import LONG, TOY, reaches, row
from tests.support.cluster.rig import PYTHON, Rig

Wait = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose path needs quotes."""
    return Home(tmp_path / "my home").prepare()


def test_a_run_trains_on_two_hosts_and_stops_and_resumes_there(
    on_rig: Runtime, wait_until: Wait
) -> None:
    run = on_rig.commands.submit(RunSpec.parse({**LONG, "workers": 2}))
    assert row(on_rig, run).status == "queued"
    reaches(on_rig, run, "running", wait_until)
    assert {run.worker_log(rank).exists() for rank in (0, 1)} == {True}
    wait_until(lambda: run.has_checkpoint, "it saves")
    on_rig.commands.stop(run.run_id)
    reaches(on_rig, run, "stopped", wait_until)
    assert "saved, can be resumed" in row(on_rig, run).note
    on_rig.commands.resume(run.run_id)
    reaches(on_rig, run, "running", wait_until, attempt=2)
    assert (run.path / "job-2.sh").exists()


def test_a_waiting_job_says_why_and_leaves_the_queue_with_its_run(
    rig: Rig, on_rig: Runtime, wait_until: Wait
) -> None:
    rig.run("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=test")
    try:
        own = {**LONG, "job_options": "--time=00:07:00 --nice=5"}
        run = on_rig.commands.submit(RunSpec.parse(own))
        wait_until(lambda: "on rig " in row(on_rig, run).note, "the cluster's reason is shown")
        assert row(on_rig, run).status == "queued"
        assert rig.run("squeue", "-h", "-o", "%j").startswith(f"gan-{run.run_id}-1-")
        limit = rig.run("squeue", "-h", "-o", "%l").strip()
        assert limit == "7:00", "the run's own limit replaces the target's"
        on_rig.commands.stop(run.run_id)
        reaches(on_rig, run, "stopped", wait_until)
        rig.wait(lambda: not rig.run("squeue", "-h").strip(), "the job is cancelled")
    finally:
        rig.run("scontrol", "update", "NodeName=n1,n2", "State=RESUME")


def continues_once(
    rig: Rig, on_rig: Runtime, wait_until: Wait, interrupt: Callable[[int], object]
) -> None:
    """A run whose job `interrupt` takes from its hosts continues with each epoch once."""
    run = on_rig.commands.submit(RunSpec.parse(LONG))
    reaches(on_rig, run, "running", wait_until)
    wait_until(lambda: run.has_checkpoint, "it saves")
    job = int(rig.run("squeue", "-h", "-o", "%i").strip())
    interrupt(job)
    reaches(on_rig, run, "queued", wait_until, attempt=2)
    rig.start_now(job)
    reaches(on_rig, run, "running", wait_until, attempt=2)
    epochs = on_rig.store.rows("SELECT epoch FROM epochs WHERE run_id = ?", [run.run_id])
    assert len(epochs) == len(set(epochs))


def test_a_requeued_job_continues_as_the_next_attempt(
    rig: Rig, on_rig: Runtime, wait_until: Wait
) -> None:
    continues_once(rig, on_rig, wait_until, lambda job: rig.run("scontrol", "requeue", str(job)))


def test_a_preempted_run_saves_and_continues_as_the_next_attempt(
    rig: Rig, on_rig: Runtime, wait_until: Wait
) -> None:
    preempting = ("--partition=high", "--nodes=2", "--exclusive")
    continues_once(rig, on_rig, wait_until, lambda _: rig.sbatch("sleep 1", *preempting))


def test_a_run_saves_before_its_time_limit(rig: Rig, on_rig: Runtime, wait_until: Wait) -> None:
    run = on_rig.commands.submit(RunSpec.parse(LONG))
    reaches(on_rig, run, "running", wait_until)
    job = rig.run("squeue", "-h", "-o", "%i").strip()
    rig.run("scancel", "--batch", "--signal=USR2", job)  # as Slurm does two minutes before
    reaches(on_rig, run, "stopped", wait_until)
    assert "shortly before the time limit of its job after step" in row(on_rig, run).note
    rig.wait(lambda: rig.state(int(job)) == "COMPLETED", "the script ends with its trainer")


def test_a_refused_submission_fails_with_slurms_sentence(
    home: Home, on_rig: Runtime, wait_until: Wait
) -> None:
    configuration.add(
        home, "absent", SlurmTarget(python=str(PYTHON), partition="absent", poll_seconds=1.0)
    )
    run = on_rig.commands.submit(RunSpec.parse({**TOY, "target": "absent"}))
    reaches(on_rig, run, "failed", wait_until)
    assert "absent refused the job" in row(on_rig, run).note
    assert "invalid partition" in row(on_rig, run).note.lower()


def test_a_job_cancelled_outside_is_stopped_with_its_checkpoint(
    rig: Rig, on_rig: Runtime, wait_until: Wait
) -> None:
    run = on_rig.commands.submit(RunSpec.parse(LONG))
    reaches(on_rig, run, "running", wait_until)
    rig.run("scancel", "--user=root")
    reaches(on_rig, run, "stopped", wait_until)
    assert "saved" in row(on_rig, run).note
    assert run.has_checkpoint


def test_a_silent_controller_changes_no_state(rig: Rig, on_rig: Runtime, wait_until: Wait) -> None:
    run = on_rig.commands.submit(RunSpec.parse(LONG))
    reaches(on_rig, run, "running", wait_until)
    rig.stop_controller()
    try:
        targets = on_rig.targets
        assert targets is not None
        wait_until(lambda: targets.trouble("rig"), "the silence is noticed", 120.0)
        assert row(on_rig, run).status == "running"
    finally:
        rig.start_controller()
    wait_until(lambda: not targets.trouble("rig"), "it answers again", 120.0)
    assert row(on_rig, run).status == "running"


def test_an_owner_killed_after_sbatch_finds_the_job_by_its_name(
    rig: Rig, home: Home, on_rig: Runtime, wait_until: Wait
) -> None:
    run = on_rig.commands.submit(RunSpec.parse(LONG))
    reaches(on_rig, run, "running", wait_until)
    on_rig.close()
    file = run.path / "target.json"
    job = rig.run("squeue", "-h", "-o", "%i").strip()
    file.write_text(file.read_text(encoding="utf-8").replace(f'"{job}"', '""'), encoding="utf-8")
    second = Runtime.open(home)
    try:
        wait_until(lambda: f'"{job}"' in file.read_text(encoding="utf-8"), "the job is found")
        assert rig.run("squeue", "-h", "-o", "%i").split() == [job]
        assert row(second, run).status == "running"
    finally:
        second.close()
