"""Faults of runs on a host that ssh reaches: the connection breaks off anywhere, for any time, and
owners and trainers are killed meanwhile. The host is this machine; only `ssh` is replaced.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.fault import FINISHED, LOST, Expectation, running_run, started_once
from benchmarks.faults.stage import Stage, kill
from gan_runtime.records import processes
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SshTarget
from tests.support.cluster import broken_ssh

NAME = "box"
DOWN_SECONDS = (4.0, 4.0, 4.0, 120.0)  # at most, at random
REPORT_SECONDS = 60.0  # the host is asked less often after each failure
STARTS = "starts"  # a file of the run there, with a line for each start


def cut_connection(stage: Stage) -> Expectation:
    """Every third answer breaks off, inside a line or before the first byte."""
    run = _running_run(stage)
    return Expectation(
        run, (FINISHED,), [_arrived(stage, run), started_once(stage.far_folder(run) / STARTS)]
    )


def lose_host(stage: Stage) -> Expectation:
    """The host cannot be reached for some seconds, or two minutes, while the run trains on."""
    run = _running_run(stage, broken_share=0.0)
    down = _commands(stage) / broken_ssh.DOWN
    down.touch()
    time.sleep(stage.random.random() * stage.random.choice(DOWN_SECONDS))
    if stage.is_active(run) and stage.random.random() < 0.5:
        stage.actions.append("owner killed meanwhile")
        stage.kill_owner()
    down.unlink()
    return Expectation(run, (FINISHED,), [_arrived(stage, run)])


def kill_submitting_owner(stage: Stage) -> Expectation:
    """SIGKILL of the owner around the submission: the next one starts no second trainer."""
    run = _submitted(stage, 0.3)
    stage.open()
    stage.wait(lambda: (run.path / "target.json").exists(), "the intent is written")
    time.sleep(stage.random.random() * 3.0)
    stage.kill_owner()
    stage.open()
    return Expectation(
        run, (FINISHED,), [_arrived(stage, run), started_once(stage.far_folder(run) / STARTS)]
    )


def kill_far_trainer(stage: Stage) -> Expectation:
    """SIGKILL of the trainer there."""
    run = _running_run(stage)
    kill(stage.trainers(run))
    return Expectation(run, (LOST, FINISHED), [_arrived(stage, run)])


def _running_run(stage: Stage, broken_share: float = 0.3) -> RunDir:
    return running_run(stage, run=_submitted(stage, broken_share))


def _submitted(stage: Stage, broken_share: float) -> RunDir:
    """A run for the host, whose trainer is the toy."""
    far = stage.home.path.parent / "far"
    stage.far, stage.report_seconds = far, REPORT_SECONDS
    commands = _commands(stage)
    broken_ssh.write(commands, stage.random.randrange(10**6), broken_share)
    trainer = processes.command(stage.module)
    words = shlex.join([sys.executable, *trainer[1:]])
    settings = SshTarget(
        kind="ssh",
        host=NAME,
        project=str(REPOSITORY),
        python=sys.executable,
        home=str(far),
        # The script is job-1.sh in the folder of the run.
        prelude=(
            f'echo started >>"$(dirname "$0")/{STARTS}"',
            f'exec {words} "$(dirname "$0")" "$(basename "$0" .sh | tr -dc 0-9)" cpu',
        ),
        poll_seconds=1.0,
    )
    configuration.add(stage.home, NAME, settings)
    stage.environment["PATH"] = f"{commands}:{os.environ['PATH']}"
    stage.options |= {"target": NAME}
    return stage.submit()


def _commands(stage: Stage) -> Path:
    return stage.home.path.parent / "commands"


def _arrived(stage: Stage, run: RunDir) -> Callable[[Home], list[str]]:
    """Whether everything that the trainer wrote is here, byte for byte."""

    def check(_: Home) -> list[str]:
        far = stage.far_folder(run)
        files = [
            path.relative_to(far)
            for pattern in ("journal-0.jsonl", "log.txt", "samples/*.png", "checkpoints/*.saf*")
            for path in far.glob(pattern)
        ]
        return [
            f"{name} differs from the one there"
            for name in files
            if not (run.path / name).exists()
            or (run.path / name).read_bytes() != (far / name).read_bytes()
        ]

    return check
