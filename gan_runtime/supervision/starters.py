"""The start and end of trainers, as processes of this host."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from gan_runtime import device_locks
from gan_runtime.base import cluster
from gan_runtime.base.errors import DeviceLockError, JournalError, SpecError
from gan_runtime.device_locks import Claim, host_devices
from gan_runtime.device_locks.locks import Holder
from gan_runtime.hardware import hosts
from gan_runtime.records import journal, processes, run_files
from gan_runtime.records.identity import SILENCE_SECONDS, boot, is_locked
from gan_runtime.records.journal import Status
from gan_runtime.records.run_folder import RunDir, Stamp, TrainerProcess
from gan_runtime.records.states import Cause, StateTimer
from gan_runtime.spec.run_options import HERE
from gan_runtime.supervision.standby import FIRST_NUMBER, Standby, is_for


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run on an accelerator: cpu, gpu or tpu. `target`: where; "here" is this
    host.
    """

    run: RunDir
    number: int
    accelerator: str
    target: str = HERE


class Starter(Protocol):
    """The protocol for starting and ending trainers. All state except child processes
    is in files.
    """

    def claim(self, attempt: Attempt) -> Claim:
        """Takes the device locks and the start lock of an attempt; the trainer inherits both.

        Called before the journal says "starting". Raises DeviceLockError if this host has no locks.
        """

    def start(self, attempt: Attempt, claim: Claim) -> None:
        """Starts a trainer on the claimed devices; it can outlive its starter. Raises OSError."""

    def is_alone(self, attempt: Attempt) -> bool:
        """Whether the attempt excludes other runs of its home from its accelerator."""

    def alive(self, attempt: Attempt) -> bool:
        """Whether the trainer runs or can still start."""

    def never_began(self, attempt: Attempt) -> bool:
        """Whether no trainer was or will be spawned, because the owner was killed before the start.

        False if uncertain.
        """

    def ending(self, attempt: Attempt) -> tuple[Status, Cause] | None:
        """How an attempt ended by another system's account: its state and why, or "queued" if that
        system starts it again. None if there is no such account.
        """

    def renewed(self) -> list[Attempt]:
        """Ended attempts that another system starts again by itself."""

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """Requests a stop, and kills the trainer after `grace_seconds`; returns whether it killed
        it.

        Called at each tick.
        """

    def end(self, attempt: Attempt) -> None:
        """Kills the trainer at once."""

    def clean_up(self, attempt: Attempt) -> str:
        """Kills remaining processes of an exited trainer; returns how it ended, such as "killed by
        signal 9", or "".
        """

    def present(self, runs: Path) -> list[Attempt]:
        """The attempts of runs in this folder that have processes, from any starter."""

    def busy_accelerators(self, live: Iterable[str]) -> set[str]:
        """Accelerators of trainers that still run; `live`: ids of waiting and training runs."""


# Limit for a new trainer to write process.json. Docs guarantee that its state shows within 15 s.
HANDSHAKE_SECONDS = 10.0


@dataclass(frozen=True)
class _Child:
    """A trainer that this process has started."""

    process: subprocess.Popen[bytes]
    accelerator: str


@dataclass(frozen=True)
class _Silence:
    """The journals of a run's trainers when this owner first saw them, and their age then."""

    stats: Mapping[str, Stamp]
    seconds: float


class LocalStarter:
    """Trainers as processes of this host, each in a separate session.

    Runs on a cluster are supervised through their journals.
    """

    def __init__(
        self,
        timer: StateTimer,
        module: str = processes.TRAINER,
        standby: Standby | None = None,
    ) -> None:
        """`module`: the module that a trainer runs. `standby`: a trainer that can take a run."""
        self._timer, self._module, self._standby = timer, module, standby
        self._children: dict[str, _Child] = {}
        self._with_own_gpus: set[tuple[str, int]] = set()
        self._seen_silent: dict[str, _Silence] = {}  # by run

    def claim(self, attempt: Attempt) -> Claim:
        """Takes the device locks and the start lock."""
        run = attempt.run
        try:
            spec = run.spec()
        except SpecError:  # the trainer reports it
            spec = None
        devices, count = host_devices.of_run(attempt.accelerator, spec)
        holder = Holder(
            home=str(run.path.parent.parent.resolve()),
            run_id=run.run_id,
            name=spec.name if spec else "",
            attempt=attempt.number,
            since=journal.now(),
        )
        claim = device_locks.claim(devices, count, holder)
        claim.unknown = "" if devices else host_devices.why_unknown(attempt.accelerator)
        if claim.is_taken:
            with contextlib.ExitStack() as undo:
                undo.push(claim)
                number = processes.take_start_lock(run, attempt.number, boot())
                undo.pop_all()
            claim.extra_files = {} if number is None else {processes.HANDED_VARIABLE: number}
        return claim

    def is_alone(self, attempt: Attempt) -> bool:
        """A run that has locked single GPUs leaves the others free, and one on a cluster all."""
        if attempt.run.run_id not in self._children and attempt.run.is_on_cluster:
            return False
        key = (attempt.run.run_id, attempt.number)
        if (
            attempt.accelerator == "gpu"
            and key not in self._with_own_gpus
            and _has_own_gpus(attempt)
        ):
            self._with_own_gpus.add(key)
        return key not in self._with_own_gpus

    def start(self, attempt: Attempt, claim: Claim) -> None:
        """Starts the trainer process in a new session."""
        run = attempt.run
        environment = processes.environment(cluster.without_cluster(dict(os.environ)))
        environment.pop(processes.HANDED_VARIABLE, None)
        if attempt.accelerator == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        elif gpus := [device.visible for device in claim.devices if device.visible]:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
            self._with_own_gpus.add((run.run_id, attempt.number))
        line = processes.command(
            self._module, str(run.path), str(attempt.number), attempt.accelerator
        )
        with os.fdopen(run_files.appending(run.log), "ab") as log:
            process = self._from_standby(attempt, claim, line, environment, log.fileno())
            if process is None:
                inherited = claim.hand_over(environment)
                # In a new session, closing the terminal or the dashboard does not signal the
                # trainer.
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                    pass_fds=inherited,
                )
        claim.started(process.pid)
        self._children[run.run_id] = _Child(process, attempt.accelerator)

    def _from_standby(
        self, attempt: Attempt, claim: Claim, line: list[str], base: dict[str, str], log: int
    ) -> subprocess.Popen[bytes] | None:
        """The waiting trainer, which now trains this attempt; None if there is no fitting one."""
        if self._standby is None or attempt.accelerator != "cpu":
            return None
        with contextlib.suppress(SpecError):  # the trainer reports it
            if is_for(attempt.run.spec()):
                environment = dict(base)
                files = claim.hand_over(environment, FIRST_NUMBER)
                return self._standby.hand_over(line, environment, files, log)
        return None

    def alive(self, attempt: Attempt) -> bool:
        """Whether the trainer runs or can still start."""
        run = attempt.run
        child = self._children.get(run.run_id)
        if child is not None:
            return child.process.poll() is None
        identity = _identity(attempt)
        if identity is None:
            if self.never_began(attempt):
                return False
            waited = self._timer.seconds("handshake", run.run_id, attempt.number)
            # Also a trainer of another container, which is not in the process table.
            is_spawned = is_locked(run.start_lock) or bool(_in_process_table(attempt))
            return waited < HANDSHAKE_SECONDS or is_spawned
        is_alive = run.is_trainer_alive(identity)
        if is_alive is None:
            with contextlib.suppress(JournalError):  # the ingestor quarantines the run
                return self._silent_seconds(run) < SILENCE_SECONDS
            return True
        return is_alive

    def _silent_seconds(self, run: RunDir) -> float:
        """How long the journals of a run's trainers have had no new line: since this owner first
        saw their last one, and before that by the clock of the file system.
        """
        stats = run.trainer_stats()
        if run.run_id not in self._seen_silent:
            self._seen_silent[run.run_id] = _Silence(stats, _age_seconds(run, stats))
        seen = self._seen_silent[run.run_id]
        before = seen.seconds if seen.stats == stats else 0.0
        return before + self._timer.seconds("silence", run.run_id, stats)

    def never_began(self, attempt: Attempt) -> bool:
        """A start on a cluster has no lock, so the answer is uncertain."""
        if attempt.run.run_id in self._children:
            return False
        is_free = processes.is_start_without_trace(attempt.run, attempt.number, boot())
        return is_free and not _in_process_table(attempt)

    def ending(self, attempt: Attempt) -> tuple[Status, Cause] | None:  # noqa: ARG002
        """None: only processes and journals know."""
        return None

    def renewed(self) -> list[Attempt]:
        """None: the supervisor starts all attempts."""
        return []

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """Requests a stop, and kills after `grace_seconds`; returns whether it killed."""
        if self._timer.seconds("stop", attempt.run.run_id, attempt.number) > grace_seconds:
            self.end(attempt)
            return True
        process = _trainer(attempt)
        if process is not None:  # without process.json, the trainer reads STOP once it runs
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        return False

    def end(self, attempt: Attempt) -> None:
        """Kills the trainer at once."""
        process = _trainer(attempt)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        processes.kill(_in_process_table(attempt))

    def clean_up(self, attempt: Attempt) -> str:
        """Kills remaining processes; returns how the trainer ended, or ""."""
        child = self._children.pop(attempt.run.run_id, None)
        # Workers of an exited launcher still hold the accelerator. If it was killed early, only the
        # process table lists them.
        processes.kill([*_workers(attempt), *_in_process_table(attempt)])
        code = child.process.returncode if child else None
        if not code:
            return ""
        return f"killed by signal {-code}" if code < 0 else _log_end(code, attempt.run)

    def present(self, runs: Path) -> list[Attempt]:
        """The attempts of these runs that have processes."""
        arguments = processes.started_as(self._module, 3)
        return [
            Attempt(RunDir(Path(folder)), int(number), accelerator)
            for folder, number, accelerator in sorted(arguments)
            if Path(folder).parent == runs and number.isdecimal()
        ]

    def busy_accelerators(self, live: Iterable[str]) -> set[str]:
        """Also forgets children that have ended, and cleans up after those that were killed when
        they had written their final event.
        """
        ids = set(live)
        for run_id, child in list(self._children.items()):
            if run_id not in ids and child.process.poll() is not None:
                del self._children[run_id]
                if child.process.returncode:
                    processes.remove_abandoned_scratch_folders()
        # GPU locks show which GPUs are free.
        return {
            child.accelerator for child in self._children.values() if child.process.poll() is None
        } - {"gpu"}


def _age_seconds(run: RunDir, stats: Mapping[str, Stamp]) -> float:
    """Seconds since the newest of these files was written; 0 if unknown."""
    with contextlib.suppress(OSError):
        if newest_ns := max((changed_ns for _, _, changed_ns in stats.values()), default=0):
            return max(0.0, run_files.now_in(run.path.parent) - newest_ns / 1e9)
    return 0.0


def _has_own_gpus(attempt: Attempt) -> bool:
    """Whether this attempt has locked single GPUs."""
    key = (str(attempt.run.path.parent.parent.resolve()), attempt.run.run_id, attempt.number)
    try:
        occupancies = device_locks.occupancies()
    except DeviceLockError:
        return False
    return any(
        lock.device.visible
        and lock.holder
        and (lock.holder.home, lock.holder.run_id, lock.holder.attempt) == key
        for lock in occupancies
    )


def _trainer(attempt: Attempt) -> psutil.Process | None:
    """The running trainer of this attempt, or the launcher of its workers, on this host."""
    identity = _identity(attempt)
    return None if identity is None or identity.cluster_host is not None else identity.process()


def _workers(attempt: Attempt) -> list[psutil.Process]:
    """The running workers of a launcher on this host."""
    identity = _identity(attempt)
    workers = [worker.process() for worker in identity.workers] if identity else []
    return [process for process in workers if process is not None]


def _in_process_table(attempt: Attempt) -> list[psutil.Process]:
    """All processes of this host that were started for this attempt."""
    identity = _identity(attempt)
    if identity is not None and identity.cluster_host is not None:
        return []
    return processes.started_for(str(attempt.run.path), str(attempt.number), attempt.accelerator)


def _log_end(code: int, run: RunDir) -> str:
    """Logs and returns how a trainer exited without a final event, such as on a full disk."""
    line = "".join(filter(str.isprintable, run.log_tail(1)))[:300].rstrip(". ")
    if advice := hosts.rename_advice(run.log_tail()):
        line = f"{line}; {advice}"
    return f"exit code {code}; its log ends: {line}" if line else f"exit code {code}"


def _identity(attempt: Attempt) -> TrainerProcess | None:
    """The process.json of this attempt; None before it is written."""
    identity = attempt.run.process()
    return identity if identity is not None and identity.attempt == attempt.number else None
