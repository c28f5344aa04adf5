"""Faults of the environment: wrong clocks, reused pids, several owners."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.fault import FINISHED, LOST, Expectation, reset_machine, running_run
from benchmarks.faults.stage import BrokenGuaranteeError, Stage
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.support.inject import Injection

_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
_ATTEMPTS = 30
_SHIFTS_S = (-86_400.0, -3_600.0, -61.0, 61.0, 3_600.0, 86_400.0)


def shift_clock(stage: Stage) -> Expectation:
    """The clock is a minute, an hour or a day slow or fast, before or after a reset: all later
    records have wrong times.
    """
    shift_s, before = stage.random.choice(_SHIFTS_S), stage.random.random() < 0.5
    stage.actions.append(f"{'before' if before else 'after'} the reset {shift_s:+.0f} s")
    environment = Injection("everybody", clock_s=shift_s).environment
    run = reset_machine(stage, environment if before else None)
    if not before:
        stage.environment = environment
    return Expectation(run, (LOST, FINISHED))


def reuse_pid(stage: Stage) -> Expectation:
    """After a reset another process has the pid of the trainer.

    It must neither be mistaken for the trainer nor be signaled.
    """
    run = reset_machine(stage)
    identity = run.process()
    decoy = _decoy(identity.pid) if identity else None
    if identity and decoy is None:
        decoy = subprocess.Popen(["sleep", "600"])
        run.write_process(identity.model_copy(update={"pid": decoy.pid}))
    if decoy is not None:
        stage.actions.append(
            f"pid {decoy.pid} {'reused' if identity and decoy.pid == identity.pid else 'recorded'}"
        )

    def check_decoy(_: Home) -> list[str]:
        if decoy is None:
            return []
        is_alive = decoy.poll() is None
        decoy.kill()
        decoy.wait()
        return [] if is_alive else ["an unrelated process with the pid of the trainer was ended"]

    return Expectation(run, (LOST, FINISHED), [check_decoy])


def _decoy(pid: int) -> subprocess.Popen[bytes] | None:
    """A process with this pid; None where the kernel does not allow it."""
    with contextlib.suppress(OSError):
        for _ in range(_ATTEMPTS):
            _LAST_PID.write_text(str(pid - 1))
            decoy = subprocess.Popen(["sleep", "600"])
            if decoy.pid == pid:
                return decoy
            decoy.kill()
            decoy.wait()
    return None


def race_owners(stage: Stage) -> Expectation:
    """Three processes open the home at the same moment: one becomes its owner, and the others
    report that owner.
    """
    run = stage.submit()
    owners = [stage.start_owner() for _ in range(3)]
    lines = [
        owner.stdout.readline().decode().strip() for owner in owners if owner.stdout is not None
    ]
    winners = [owner for owner, line in zip(owners, lines, strict=True) if line == "open"]
    if len(winners) != 1:
        raise BrokenGuaranteeError(f"{len(winners)} of 3 processes own the home: {lines}")
    stage.adopt(winners[0])
    for owner, line in zip(owners, lines, strict=True):
        if owner is not winners[0] and (owner.wait(20) != 1 or "is in use by process" not in line):
            raise BrokenGuaranteeError(f"a process that is not the owner says: {line}")
    return Expectation(run, (FINISHED,), [_check_one_attempt(run)])


def take_over(stage: Stage) -> Expectation:
    """After a kill of the owner, two processes open the home while the trainer continues."""
    run = running_run(stage)
    stage.kill_owner()
    owners = [stage.start_owner() for _ in range(2)]
    lines = [
        owner.stdout.readline().decode().strip() for owner in owners if owner.stdout is not None
    ]
    if lines.count("open") != 1:
        raise BrokenGuaranteeError(f"{lines.count('open')} of 2 processes own the home: {lines}")
    stage.adopt(owners[lines.index("open")])
    return Expectation(run, (FINISHED,), [_check_one_attempt(run)])


def _check_one_attempt(run: RunDir) -> Callable[[Home], list[str]]:
    def check_attempts(_: Home) -> list[str]:
        starts = run.trainer_journal().read_bytes().count(b'"kind":"attempt"')
        return [] if starts == 1 else [f"the run began {starts} times"]

    return check_attempts
