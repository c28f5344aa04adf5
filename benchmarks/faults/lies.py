"""Deceptive clocks, pids and owners."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.harm import FINISHED, LOST, Harm, reset_machine, running_run
from benchmarks.faults.stage import Stage, UntrueError
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.support.inject import Injection

_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
_TRIES = 30
_SHIFTS_S = (-86_400.0, -3_600.0, -61.0, 61.0, 3_600.0, 86_400.0)


def shift_clock(stage: Stage) -> Harm:
    """The clock is an hour or a day off, back or ahead, before the harm or after it: all later
    records have the wrong date.
    """
    shift_s, before = stage.random.choice(_SHIFTS_S), stage.random.random() < 0.5
    stage.actions.append(f"{'before' if before else 'after'} the harm {shift_s:+.0f} s")
    environment = Injection("everybody", clock_s=shift_s).environment
    run = reset_machine(stage, environment if before else None)
    if not before:
        stage.environment = environment
    return Harm(run, (LOST, FINISHED))


def reuse_pid(stage: Stage) -> Harm:
    """After a reset another process has the pid of the trainer.

    It must neither be mistaken for the trainer nor be signaled.
    """
    run = reset_machine(stage)
    identity = run.process()
    decoy = _decoy(identity["pid"]) if identity else None
    if identity and decoy is None:
        decoy = subprocess.Popen(["sleep", "600"])
        run.process_file.write_text(json.dumps(identity | {"pid": decoy.pid}), encoding="utf-8")
    if decoy is not None:
        stage.actions.append(
            f"pid {decoy.pid}"
            f" {'written down' if decoy.pid != (identity or {}).get('pid') else 'given'} to another"
        )

    def unharmed(_: Home) -> list[str]:
        if decoy is None:
            return []
        lives = decoy.poll() is None
        decoy.kill()
        decoy.wait()
        return [] if lives else ["a process was ended that only had the pid of the trainer"]

    return Harm(run, (LOST, FINISHED), [unharmed])


def _decoy(pid: int) -> subprocess.Popen[bytes] | None:
    """A process with that pid, where the kernel can create it."""
    with contextlib.suppress(OSError):
        for _ in range(_TRIES):
            _LAST_PID.write_text(str(pid - 1))
            decoy = subprocess.Popen(["sleep", "600"])
            if decoy.pid == pid:
                return decoy
            decoy.kill()
            decoy.wait()
    return None


def race_owners(stage: Stage) -> Harm:
    """Three processes open the home at the same moment: one becomes its owner, and the others name
    the owner.
    """
    run = stage.submit()
    owners = [stage.start_owner() for _ in range(3)]
    lines = [
        owner.stdout.readline().decode().strip() for owner in owners if owner.stdout is not None
    ]
    winners = [owner for owner, line in zip(owners, lines, strict=True) if line == "open"]
    if len(winners) != 1:
        raise UntrueError(f"{len(winners)} of 3 processes own the home: {lines}")
    stage.adopt(winners[0])
    for owner, line in zip(owners, lines, strict=True):
        if owner is not winners[0] and (owner.wait(20) != 1 or "is in use by process" not in line):
            raise UntrueError(f"a process that is not the owner says: {line}")
    return Harm(run, (FINISHED,), [_one_attempt(run)])


def take_over(stage: Stage) -> Harm:
    """The owner is killed, and two others open the home while the trainer continues."""
    run = running_run(stage)
    stage.kill_owner()
    owners = [stage.start_owner() for _ in range(2)]
    lines = [
        owner.stdout.readline().decode().strip() for owner in owners if owner.stdout is not None
    ]
    if lines.count("open") != 1:
        raise UntrueError(f"{lines.count('open')} of 2 processes own the home: {lines}")
    stage.adopt(owners[lines.index("open")])
    return Harm(run, (FINISHED,), [_one_attempt(run)])


def _one_attempt(run: RunDir) -> Callable[[Home], list[str]]:
    def check(_: Home) -> list[str]:
        starts = run.trainer_journal().read_bytes().count(b'"kind":"attempt"')
        return [] if starts == 1 else [f"the run began {starts} times"]

    return check
