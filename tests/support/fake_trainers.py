"""Trainers in memory: a host as the supervisor sees it, without processes.

A test controls what each of them does.

trainers = FakeTrainers()
owner = Owner(home, trainers.starter)
owner.after(0.0)
trainers.of(run).trains(to_step=5)
trainers.of(run).dies()
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gan_runtime.device_locks import Claim, host_devices
from gan_runtime.device_locks.locks import Holder
from gan_runtime.records import journal
from gan_runtime.records.journal import Record, Scalars, Status, StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Cause, StateTimer
from gan_runtime.supervision.starters import Attempt
from gan_runtime.training import checkpoints

STEPS_PER_EPOCH = 5
KILLED = "killed by signal 9"


class FakeTrainer:
    """One attempt of a run. On a stop request it saves and ends, unless it is frozen."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.is_alive, self.is_frozen, self.cause = True, False, ""
        self.step = checkpoints.newest_step(attempt.run.checkpoints) or 0
        self._is_running = False

    def writes(self, *records: Record) -> None:
        """Writes records to its journal."""
        journal.append(self.attempt.run.trainer_journal(), self.attempt.number, *records)

    def begins(self) -> None:
        """Starts compiling; makes no step yet."""
        self.writes(
            journal.AttemptStart(resume_step=self.step),
            StatusChange(status="compiling", reason="building the networks"),
        )

    def trains(self, to_step: int) -> None:
        """Trains up to this step; each loss is the number of its step.

        Saves at the end of each epoch.
        """
        if not self._is_running:
            self.begins()
            self.writes(StatusChange(status="running", reason="training"))
            self._is_running = True
        for step in range(self.step + 1, to_step + 1):
            epoch = (step - 1) // STEPS_PER_EPOCH + 1
            losses = {"loss_generator": [float(step)]}
            self.writes(Scalars(epoch=epoch, first_step=step, wall_s=[float(step)], values=losses))
            self.step = step
            if step % STEPS_PER_EPOCH == 0:
                self.saves()

    def saves(self) -> None:
        """Saves a checkpoint of the current step."""
        checkpoints.save(
            self.attempt.run.checkpoints,
            {"step": np.asarray(self.step)},
            self.step,
            0.0,
            retained=2,
        )

    def freezes(self) -> None:
        """Stays alive but ignores requests."""
        self.is_frozen = True

    def dies(self, cause: str = KILLED) -> None:
        """Exits without writing to its journal."""
        self.is_alive, self.cause = False, cause

    def says(self, status: Status, reason: str = "a test") -> None:
        """Writes its final status; its processes remain."""
        self.writes(StatusChange(status=status, reason=reason))

    def finishes(self) -> None:
        """Ends as after its last epoch."""
        self.says("finished", "all epochs done")
        self.dies("")

    def stops(self) -> None:
        """Saves and ends, as on a stop request."""
        self.saves()
        self.says("stopped", "stopped on request")
        self.dies("")


class FakeTrainers:
    """All trainers ever started on a host, in the order of their starts.

    The owners of the host can change.
    """

    def __init__(self) -> None:
        self.started: list[FakeTrainer] = []
        self.elsewhere: Holder | None = None  # a run of another home uses the device

    def starter(self, timer: StateTimer) -> FakeStarter:
        """The starter of one owner."""
        return FakeStarter(self, timer)

    def of(self, run: RunDir) -> FakeTrainer:
        """The newest trainer of a run."""
        return [trainer for trainer in self.started if trainer.attempt.run == run][-1]

    def find(self, attempt: Attempt) -> FakeTrainer | None:
        """The trainer of this attempt; None if it never began."""
        trainers = [trainer for trainer in self.started if trainer.attempt == attempt]
        return trainers[0] if trainers else None

    def living(self) -> list[FakeTrainer]:
        """The trainers that have a process."""
        return [trainer for trainer in self.started if trainer.is_alive]

    def run_ids(self) -> list[str]:
        """The run IDs of all starts."""
        return [trainer.attempt.run.run_id for trainer in self.started]


class FakeStarter:
    """Implements `supervision.starters.Starter`."""

    def __init__(self, trainers: FakeTrainers, timer: StateTimer) -> None:
        self._trainers, self._timer = trainers, timer

    def claim(self, attempt: Attempt) -> Claim:
        """See Starter. A device has one trainer."""
        holders = [
            Holder(
                home=str(trainer.attempt.run.path.parent.parent), run_id=trainer.attempt.run.run_id
            )
            for trainer in self._trainers.living()
            if trainer.attempt.accelerator == attempt.accelerator
        ]
        if self._trainers.elsewhere is not None:
            holders.append(self._trainers.elsewhere)
        if holders:
            return Claim(blockers=[(host_devices.CPU, holder) for holder in holders])
        return Claim(devices=[host_devices.CPU])

    def start(self, attempt: Attempt, _claim: Claim) -> None:
        """See Starter."""
        self._trainers.started.append(FakeTrainer(attempt))

    def is_alone(self, _attempt: Attempt) -> bool:
        """See Starter."""
        return True

    def alive(self, attempt: Attempt) -> bool:
        """See Starter."""
        trainer = self._trainers.find(attempt)
        return trainer is not None and trainer.is_alive

    def never_began(self, attempt: Attempt) -> bool:
        """See Starter."""
        return self._trainers.find(attempt) is None

    def ending(self, _attempt: Attempt) -> tuple[Status, Cause] | None:
        """See Starter."""
        return None

    def renewed(self) -> list[Attempt]:
        """See Starter."""
        return []

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """See Starter."""
        if self._timer.seconds("stop", attempt.run.run_id, attempt.number) > grace_seconds:
            self.end(attempt)
            return True
        trainer = self._trainers.find(attempt)
        if trainer is not None and trainer.is_alive and not trainer.is_frozen:
            trainer.stops()
        return False

    def end(self, attempt: Attempt) -> None:
        """See Starter."""
        trainer = self._trainers.find(attempt)
        if trainer is not None and trainer.is_alive:
            trainer.dies()

    def clean_up(self, attempt: Attempt) -> str:
        """See Starter."""
        trainer = self._trainers.find(attempt)
        return trainer.cause if trainer is not None else ""

    def present(self, runs: Path) -> list[Attempt]:
        """See Starter."""
        return [
            trainer.attempt
            for trainer in self._trainers.living()
            if trainer.attempt.run.path.parent == runs
        ]

    def busy_accelerators(self, _live: Iterable[str]) -> set[str]:
        """See Starter."""
        return {trainer.attempt.accelerator for trainer in self._trainers.living()}
