"""Faults of runs on a Slurm cluster with two hosts on this machine: a host, the controller, the
job or the owner goes, or a second dashboard comes. Needs root and Slurm.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from benchmarks.faults.fault import FINISHED, LOST, Expectation, running_run, started_once
from benchmarks.faults.stage import BrokenGuaranteeError, Stage
from gan_runtime.records import processes
from gan_runtime.records.home import REPOSITORY
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget
from tests.support.cluster.rig import HOSTS, Rig
from tests.support.toy_engine import PACE_VARIABLE

NAME, NUMBER = "cluster", 9
DOWN_SECONDS = (8.0, 8.0, 60.0)  # at most, at random
CUT_SECONDS = 30.0
SUBMISSION_SECONDS = 1
REPORT_SECONDS = 60.0
OTHER_SECONDS = 2  # of the job that takes the hosts
PACE = "0.3"  # seconds per call: a fault comes while the run trains
SLOW_PACE = "1.5"  # the run lasts longer than Slurm takes to notice
STARTS = "starts"  # a file of the scenario with a line for each start of a trainer
_ON_HOSTS = ("RUNNING", "COMPLETING", "CONFIGURING")


def lose_node(stage: Stage) -> Expectation:
    """The host of the job loses its power; Slurm starts the job again on the other one.

    The host returns after the scenario: a controller of Slurm 22.05 has crashed when one returned
    while it started the job again.
    """
    run = running_run(stage, run=_submitted(stage))
    host = _rig().run("squeue", "-h", "-t", "running", "-o", "%N").strip()
    if host in HOSTS:
        _rig().end_host(host)
        stage.at_end.insert(0, lambda: _rig().start_host(host))
        _start_again(stage, run)
    return Expectation(run, (FINISHED, LOST))


def cut_node(stage: Stage) -> Expectation:
    """The host of the job is cut off for up to CUT_SECONDS, with its trainer alive. Slurm starts
    the job again after ten seconds, on the other host or when that one is back.
    """
    run = running_run(stage, run=_submitted(stage, SLOW_PACE))
    host = _rig().run("squeue", "-h", "-t", "running", "-o", "%N").strip()
    if host in HOSTS:
        _rig().cut(host)
        try:
            if stage.random.random() < 0.5:
                stage.actions.append("started again meanwhile")
                _start_again(stage, run)
            else:
                time.sleep(CUT_SECONDS * stage.random.random())
        finally:
            _rig().connect(host)
        _start_again(stage, run)
    return Expectation(run, (FINISHED,))


def stop_controller(stage: Stage) -> Expectation:
    """No query is answered for some seconds, or for a minute; the job runs on."""
    run = running_run(stage, run=_submitted(stage))
    _rig().stop_controller()
    time.sleep(stage.random.random() * stage.random.choice(DOWN_SECONDS))
    if stage.random.random() < 0.5:
        stage.actions.append("owner killed meanwhile")
        stage.kill_owner()
    _rig().start_controller()
    return Expectation(run, (FINISHED,))


def preempt_job(stage: Stage) -> Expectation:
    """A job of higher priority takes both hosts; the run saves and continues afterwards."""
    run = running_run(stage, run=_submitted(stage))
    _rig().sbatch(
        f"sleep {OTHER_SECONDS}", "--partition=high", "--nodes=2", "--exclusive", "--job-name=other"
    )
    _start_again(stage, run)
    stage.wait(
        lambda: latest_status(run).attempt > 1 or stage.state(run) == FINISHED,
        "it continues as the next attempt",
    )
    return Expectation(run, (FINISHED,))


def kill_owner_at_submission(stage: Stage) -> Expectation:
    """SIGKILL of the owner around `sbatch`, whose exit comes a second after its job: the next one
    submits no second job.
    """
    commands = stage.scratch.parent / "commands"
    commands.mkdir()
    sbatch = commands / "sbatch"
    sbatch.write_text(f'#!/bin/sh\n{shutil.which("sbatch")} "$@" && sleep {SUBMISSION_SECONDS}\n')
    sbatch.chmod(0o755)
    stage.environment["PATH"] = f"{commands}:{os.environ['PATH']}"
    run = _submitted(stage)
    stage.open()
    stage.wait(lambda: run.target_file.exists(), "the intent is written")
    time.sleep(1.5 * SUBMISSION_SECONDS * stage.random.random())
    stage.kill_owner()
    return Expectation(run, (FINISHED,), [started_once(_starts(stage))])


def open_elsewhere(stage: Stage) -> Expectation:
    """A second dashboard on a host of the cluster is refused, and declares nothing lost."""
    run = running_run(stage, run=_submitted(stage))
    words = processes.command("tests.support.owner", str(stage.home.path), "2", stage.module)
    second = _rig().on_host(HOSTS[1], *words, environment=stage.environment_of({}))
    said = subprocess.run(second, capture_output=True, text=True, timeout=60, check=False).stdout
    if said.strip() == "open":
        raise BrokenGuaranteeError("two owners have opened the home")
    return Expectation(run, (FINISHED,), [started_once(_starts(stage))])


@cache
def _rig() -> Rig:
    started = Rig(NUMBER)
    atexit.register(started.down)
    started.up()
    # Also for the owner in this process that checks the home afterwards.
    os.environ["SLURM_CONF"] = str(started.configuration)
    return started


def _submitted(stage: Stage, pace: str = PACE) -> RunDir:
    """A run for the cluster, whose trainer is the toy."""
    _idle()
    python = stage.scratch.parent / "python"
    module = " ".join(processes.command(stage.module)[1:])
    python.write_text(
        f'#!/bin/sh\necho started >>"{_starts(stage)}"\nshift 3\n'
        f'exec "{sys.executable}" {module} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    settings = SlurmTarget(python=str(python), project=str(REPOSITORY), poll_seconds=1.0)
    configuration.add(stage.home, NAME, settings)
    stage.environment |= {"SLURM_CONF": str(_rig().configuration), PACE_VARIABLE: pace}
    stage.options |= {"target": NAME}
    stage.report_seconds = REPORT_SECONDS
    stage.at_end.append(_idle)
    return stage.submit()


def _idle() -> None:
    """Waits until the cluster has no job and two idle hosts."""
    rig = _rig()
    subprocess.run(["scancel", "--user=root"], env=rig.environment, check=False)
    rig.wait(lambda: not rig.run("squeue", "-h").strip(), "no job is left", 120.0)
    rig.wait(
        lambda: rig.run("sinfo", "-h", "-t", "idle", "-p", "main", "-o", "%D").strip() == "2",
        "both hosts are idle",
        120.0,
    )


def _start_again(stage: Stage, run: RunDir) -> None:
    """Waits until the job is in the queue again or has ended, lets it start at once, and waits for
    its end: Slurm also starts the job of a run again that has finished, which has nothing to do.
    """
    rig = _rig()

    def state() -> tuple[str, str]:
        shown = rig.run("squeue", "-h", "--states=all", "-o", "%i %T %j %r").splitlines()
        jobs = [line.split() for line in shown if f"gan-{run.run_id}-" in line]
        return (jobs[-1][0], jobs[-1][1]) if jobs else ("", "COMPLETED")

    stage.wait(lambda: state()[1] not in _ON_HOSTS, "it is requeued")
    job, name = state()
    if name == "PENDING":
        stage.actions.append("requeued")
        rig.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        stage.wait(lambda: state()[1] not in ("PENDING", *_ON_HOSTS), "its job has ended")


def _starts(stage: Stage) -> Path:
    return stage.scratch.parent / STARTS
