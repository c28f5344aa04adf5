"""Jobs of a Slurm target that end without a last line of their trainer, and jobs that a user starts
by hand.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.targets import configuration
from tests.full.targets.slurm_runs import LONG, TARGET, TOY, reaches, row
from tests.support.cluster.rig import Rig

Wait = Callable[..., Any]


def trainers(run: RunDir) -> list[psutil.Process]:
    """The trainer processes of a run on all hosts."""
    module = "gan_runtime.worker"
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if {module, str(run.path)} <= set(process.info["cmdline"] or ())
        and "srun" not in process.info["cmdline"][0]
    ]


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_an_aborted_trainer_of_two_workers_fails_its_run(
    engine: str, on_rig: Runtime, wait_until: Wait
) -> None:
    run = on_rig.commands.submit(RunSpec.parse({**LONG, "engine": engine, "workers": 2}))
    reaches(on_rig, run, "running", wait_until)
    for process in trainers(run):
        os.kill(process.pid, signal.SIGABRT)
    wait_until(lambda: not row(on_rig, run).is_live, "it has ended", 120.0)
    assert row(on_rig, run).status == "failed", row(on_rig, run).note
    assert "ended as FAILED" in row(on_rig, run).note


def test_a_job_without_enough_memory_says_so(on_rig: Runtime, home: Home, wait_until: Wait) -> None:
    settings = configuration.target(home, TARGET).model_copy(update={"memory": "200M"})
    configuration.add(home, TARGET, settings)
    run = on_rig.commands.submit(RunSpec.parse(TOY))
    wait_until(lambda: not row(on_rig, run).is_live, "it has ended", 120.0)
    assert row(on_rig, run).status == "failed"
    assert "memory" in row(on_rig, run).note


def test_the_script_of_a_refused_job_works_by_hand(
    rig: Rig, on_rig: Runtime, home: Home, wait_until: Wait
) -> None:
    settings = configuration.target(home, TARGET).model_copy(update={"partition": "absent"})
    configuration.add(home, TARGET, settings)
    run = on_rig.commands.submit(RunSpec.parse({**TOY, "epochs": 2}))
    reaches(on_rig, run, "failed", wait_until)
    rig.run("sbatch", "--partition=main", str(run.path / "job-1.sh"))
    reaches(on_rig, run, "finished", wait_until)
