"""Faults that kill or suspend processes, at a random time or at an exact moment."""

from __future__ import annotations

import signal
import time

from benchmarks.faults.fault import (
    FAILED,
    FINISHED,
    LOST,
    STOPPED,
    Expectation,
    reset_machine,
    running_run,
)
from benchmarks.faults.stage import Stage, kill
from tests.support.inject import At, Do, Injection


def kill_trainer(stage: Stage) -> Expectation:
    """SIGKILL of the trainer."""
    run = running_run(stage)
    kill(stage.trainers(run))
    return Expectation(run, (LOST, FINISHED))


def kill_worker(stage: Stage) -> Expectation:
    """SIGKILL of one of two workers; the other worker must end."""
    stage.options |= {"workers": 2}
    run = running_run(stage)
    workers = stage.trainers(run)[1:]
    if workers:
        kill([stage.random.choice(workers)])
    return Expectation(run, (LOST, FINISHED, FAILED))


def kill_launcher(stage: Stage) -> Expectation:
    """SIGKILL of the launcher of two workers; the workers must end."""
    stage.options |= {"workers": 2}
    run = running_run(stage)
    kill(stage.trainers(run)[:1])
    return Expectation(run, (LOST, FINISHED))


def kill_owner(stage: Stage) -> Expectation:
    """SIGKILL of the owner: the trainer continues, and the next owner takes over."""
    run = running_run(stage)
    stage.kill_owner()
    time.sleep(stage.random.random() * 0.2)
    return Expectation(run, (FINISHED,))


def kill_all(stage: Stage) -> Expectation:
    """SIGKILL of owner, launcher and workers at once, as when the machine is reset."""
    stage.options |= {"workers": stage.random.choice((1, 2))}
    return Expectation(reset_machine(stage), (LOST, FINISHED))


def kill_starting(stage: Stage) -> Expectation:
    """SIGKILL of owner and trainers in the first moment, before the identity of the trainer is
    recorded.
    """
    stage.options |= {"workers": stage.random.choice((1, 2))}
    run = stage.submit()
    stage.open()
    time.sleep(stage.random.random() * 0.5)
    stage.kill_owner()
    if stage.random.random() < 0.5:
        kill(stage.trainers(run)[:1])
    return Expectation(run, (LOST, FINISHED))


def kill_at_operation(stage: Stage) -> Expectation:
    """SIGKILL of the trainer when it opens, renames or removes a file: checkpoint, image or
    journal.
    """
    return _injected(stage, "kill", "file operation", LOST)


def kill_at_sync(stage: Stage) -> Expectation:
    """SIGKILL of the trainer right before a sync: its last write can be missing on disk."""
    return _injected(stage, "kill", "sync", LOST)


def kill_in_a_write(stage: Stage) -> Expectation:
    """The system ends the trainer in the middle of a write: a line or a file is torn."""
    return _injected(stage, "tear", "sync", LOST)


def fail_once(stage: Stage) -> Expectation:
    """Exactly one file operation of the trainer fails."""
    do: Do = stage.random.choice(("io_error", "no_space", "read_only"))
    return _injected(stage, do, "file operation", FAILED, LOST)


def fail_a_sync(stage: Stage) -> Expectation:
    """One sync of the trainer fails."""
    return _injected(stage, "io_error", "sync", FAILED, LOST)


def fail_a_write(stage: Stage) -> Expectation:
    """Exactly one write of the trainer fails after a part; the trainer reports it."""
    return _injected(stage, "cut_short", "sync", FAILED)


def _injected(stage: Stage, do: Do, at: At, *ends: str) -> Expectation:
    count = stage.syncs if at == "sync" else stage.operations
    injection = Injection("trainer", 1, do, at, stage.random.randint(1, count))
    stage.actions.append(injection.in_words)
    run = stage.submit()
    stage.open(injection.environment)
    return Expectation(run, (*ends, FINISHED))


def kill_owner_at_commit(stage: Stage) -> Expectation:
    """SIGKILL of the owner before it commits a transaction, or at one of its file operations."""
    at: At = stage.random.choice(("commit", "commit", "file operation"))
    injection = Injection("owner", 0, "kill", at, stage.random.randint(3, 12))
    stage.actions.append(injection.in_words)
    run = stage.submit()
    stage.open_or_end(injection.environment)
    stage.wait(
        lambda: not stage.has_owner() or stage.state(run) == FINISHED,
        "the owner is killed, or the run ends",
    )
    if stage.has_owner():  # the run finished first; the fault must not hit the owner's shutdown
        stage.kill_owner()
    # An owner that is killed between recording a start and spawning the trainer leaves a run that
    # the next owner requeues.
    return Expectation(run, (FINISHED,))


def fail_owner_once(stage: Stage) -> Expectation:
    """One file operation of the owner fails: it continues at its next tick, or the next owner
    does.
    """
    do: Do = stage.random.choice(("io_error", "no_space", "read_only"))
    injection = Injection("owner", 0, do, "file operation", stage.random.randint(1, 12))
    stage.actions.append(injection.in_words)
    run = stage.submit()
    stage.open_or_end(injection.environment)
    return Expectation(run, (FINISHED, LOST))


def freeze_and_stop(stage: Stage) -> Expectation:
    """SIGSTOP of one of two workers, then a stop: it is killed after the grace period."""
    stage.options |= {"workers": 2}
    stage.grace_seconds = 1.0
    run = running_run(stage)
    workers = stage.trainers(run)[1:]
    if workers:
        kill([stage.random.choice(workers)], signal.SIGSTOP)
    if stage.is_active(run):
        stage.stop(run)
    return Expectation(run, (STOPPED, FINISHED, LOST))


def freeze_and_thaw(stage: Stage) -> Expectation:
    """SIGSTOP of the trainer for longer than the grace period of a stop, then SIGCONT: the run
    continues.
    """
    stage.grace_seconds = 0.5
    run = running_run(stage)
    frozen = stage.trainers(run)
    kill(frozen, signal.SIGSTOP)
    time.sleep(2 * stage.grace_seconds)
    kill(frozen, signal.SIGCONT)
    return Expectation(run, (FINISHED,))


def stop_and_kill_owner(stage: Stage) -> Expectation:
    """A stop right before the owner is killed: the trainer still receives it, and saves."""
    stage.options |= {"workers": stage.random.choice((1, 2))}
    run = running_run(stage)
    stage.stop(run)
    stage.kill_owner()
    return Expectation(run, (STOPPED, FINISHED))
