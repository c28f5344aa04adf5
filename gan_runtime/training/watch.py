"""Watches that change or end a training: alarms and NaNs, low disk space, and a stop request before
the first step. Also memory, disk space and time of a run: measured, or estimated before it starts.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil

from gan_runtime.base import disk
from gan_runtime.base.errors import AlarmError, NonFiniteError
from gan_runtime.base.fields import Fields
from gan_runtime.data import loading
from gan_runtime.engines.contract import Arrays, Engine
from gan_runtime.records import journal, processes
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.journal import JournalWriter, StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.training import alarms, checkpoints
from gan_runtime.training.alarms import Alarm

MOST_ROLL_BACKS = 3  # per attempt
SLOWER = 0.5  # factor applied to the learning rates by a roll-back
DISK_SECONDS = 2.0  # between two checks of the disk
DISK_TOPIC = "disk"
STOP_SECONDS = 0.25  # between two checks for a stop request


class TrainingWatch:
    """Logs alarms of one attempt, rolls back after them, and saves finite states.

    `resumed`: step of the checkpoint that the attempt resumes from. `rank`: the worker's rank; all
    workers decide alike, and rank 0 saves.
    """

    def __init__(
        self,
        spec: RunSpec,
        engine: Engine,
        run: RunDir,
        writer: JournalWriter,
        rank: int = 0,
        resumed: int | None = None,
    ) -> None:
        self._spec, self._engine, self._run = spec, engine, run
        self._writer, self._rank = writer, rank
        self._present: set[str] = set()  # topics of the previous epoch, which are not logged again
        self._before: dict[str, float] = {}  # scores of the previous epoch
        self._roll_backs = self._since_save = 0
        self._newest = resumed  # step of the last saved or loaded checkpoint

    def epoch(self, scores: dict[str, float], epoch: int) -> Alarm | None:
        """The first alarm that an epoch's scores raise; new ones are logged.

        Raises:
            NonFiniteError: a score is NaN or infinite.
        """
        alarms.check_scores(scores, epoch)
        raised = alarms.raised(self._spec, scores, epoch, self._before)
        self._before = scores
        for alarm in raised:
            if alarm.topic not in self._present:
                self._note(alarm)
        self._present = {alarm.topic for alarm in raised}
        return raised[0] if raised else None

    def state(self, step: int, epoch: int) -> Arrays:
        """The engine's state. All workers must call this, since it averages local state.

        Raises:
            NonFiniteError: it has a NaN or infinite number.
        """
        return alarms.check_state(self._engine.state(), step, epoch)

    def not_finite(self, error: NonFiniteError) -> Alarm:
        """Turns a NaN into an alarm if the run rolls back; otherwise raises it with the
        next steps.
        """
        if self._spec.alarm_action != "roll_back":
            raise NonFiniteError(f"{error} {self._next_attempt()}".rstrip())
        alarm = Alarm("alarm_not_finite", str(error))
        self._note(alarm)
        return alarm

    def _next_attempt(self) -> str:
        if self._rank != 0:
            return ""  # the first worker gives the advice
        older = (
            None
            if self._newest is None
            else checkpoints.record_failure(self._run.checkpoints, self._newest)
        )
        from_older = (
            f"It failed twice from step {self._newest}: next time it resumes from step {older}. "
        )
        command = with_lower_rates(
            self._run, self._spec, SLOWER, resumable=self._newest is not None
        )
        return f"{'' if older is None else from_older}{command}"

    def roll_back(self, alarm: Alarm) -> tuple[int, float]:
        """Loads the newest checkpoint and halves the rates; returns its step and training seconds.

        Another failure before the next checkpoint loads an older one, if any: a finite state can
        still lead to NaN every time.

        Raises:
            AlarmError: training still fails after MOST_ROLL_BACKS.
        """
        folder = self._run.checkpoints
        older = (
            checkpoints.load_newest(folder, below=self._newest)
            if self._since_save and self._newest is not None
            else None
        )
        checkpoint = older or checkpoints.load_newest(folder)
        if self._roll_backs == MOST_ROLL_BACKS or checkpoint is None:
            raise AlarmError(
                f"training still fails after {self._roll_backs} roll-backs with halved learning"
                f" rates: {alarm.message} Change the options and start a new run."
            )
        if older is not None and self._newest is not None and self._rank == 0:
            checkpoints.delete_from(folder, self._newest)
        self._roll_backs += 1
        self._since_save += 1
        self._present, self._before, self._newest = set(), {}, checkpoint.step
        self._engine.load(checkpoint.arrays)
        self._engine.slow_down(SLOWER**self._since_save)
        message = (
            f"Rolled back to step {checkpoint.step}; learning rates ×"
            f" {SLOWER**self._since_save:g} from there on."
        )
        self._writer.write(journal.Event(level="warning", topic="roll_back", message=message))
        return checkpoint.step, checkpoint.wall_s

    def save(
        self,
        state: Arrays,
        step: int,
        wall_s: float,
        scores: dict[str, float],
        epoch: int | None = None,
    ) -> None:
        """Saves a finite state. `scores`: the scores of the ended epoch, empty within an epoch;
        `epoch`: its number, 0 before training, None within an epoch.
        """
        shortfall = alarms.shortfall(self._spec, scores)
        if self._rank == 0:
            checkpoints.save(
                self._run.checkpoints, state, step, wall_s, self._spec.keep_checkpoints, shortfall
            )
            if epoch is not None and self._spec.weight_snapshots == "yes":
                averages = self._spec.samples_from == "ema"
                checkpoints.save_snapshot(self._run.snapshots, state, epoch, averages)
        self._since_save, self._newest = 0, step

    def _note(self, alarm: Alarm) -> None:
        self._writer.write(journal.Event(level="warning", topic=alarm.topic, message=alarm.message))


def with_lower_rates(run: RunDir, spec: RunSpec, factor: float, resumable: bool) -> str:
    """A sentence with the command that continues with all rates times `factor`.

    `resumable`: whether there is a checkpoint.
    """
    home = Home(run.path.resolve().parent.parent)
    rates = "".join(f" --set {name}={spec.value(name) * factor:g}" for name in spec.entry.rates)
    if resumable:
        return f"Resume with lower rates: {command_line()} resume {run.run_id}{rates}{home.flag}"
    return (
        f"It has no checkpoint yet; start again with lower rates: {command_line()} train --spec"
        f" {shlex.quote(str(run.spec_path))}{rates}{home.flag}"
    )


# ---- disk space ----------------------------------------------------------------------------------


class DiskWatch:
    """Stops a training while a last checkpoint still fits. `checkpoint_bytes`: size of a
    checkpoint, 0 if unknown.
    """

    def __init__(
        self,
        folder: Path,
        writer: JournalWriter,
        checkpoint_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shortage: dict[str, str | int] = {}  # details of Reason.LOW_DISK; never reset
        self._folder, self._writer, self._clock = folder, writer, clock
        self._checkpoint_bytes = checkpoint_bytes
        self._checked_at, self._warned = float("-inf"), False

    def set_checkpoint_bytes(self, checkpoint_bytes: int) -> None:
        self._checkpoint_bytes = checkpoint_bytes

    def is_short(self, at_once: bool = False) -> bool:
        """Whether the disk has room for little more than a last checkpoint and its copy as the best
        one.

        The disk is checked every DISK_SECONDS, or `at_once`.
        """
        if self.shortage or (self._clock() - self._checked_at < DISK_SECONDS and not at_once):
            return bool(self.shortage)
        self._checked_at = self._clock()
        with contextlib.suppress(OSError):  # the next write reports an unreachable disk
            self._check(disk.free_bytes(self._folder))
        return bool(self.shortage)

    def _check(self, free: int) -> None:
        stop_below = disk.LEAST_BYTES + 2 * self._checkpoint_bytes
        if free < stop_below:
            free_mb, least_mb = round(free / 1e6), round(stop_below / 1e6)
            self.shortage = {"folder": str(self._folder), "free_mb": free_mb, "least_mb": least_mb}
        if not self._warned and (self.shortage or free < disk.low_bytes(self._folder)):
            self._warned = True
            message = (
                f"The disk has {free / 1e6:,.0f} MB left; below {stop_below / 1e6:,.0f} MB this run"
                " saves and stops. Free space: empty the trash, or delete runs."
            )
            self._writer.write(journal.Event(level="warning", topic=DISK_TOPIC, message=message))


def size_of(arrays: Arrays) -> int:
    """Bytes of all arrays of a state."""
    return sum(array.nbytes for array in arrays.values())


# ---- memory, disk space and time -----------------------------------------------------------------

# Memory of a trainer = framework + weights and optimizer, per worker and per replica + activations
# per row. The constants were fitted to the measured trainers of docs/metrics.md, within 3%.
BASE_BYTES = 715e6  # a trainer that has loaded TensorFlow and started its threads
BYTES_PER_WEIGHT = 60  # per worker; weight, gradient and two Adam slots take 16
BYTES_PER_COPY = 17.5  # per replica; gradient and two slots take 12
CHECKPOINT_BYTES_PER_WEIGHT = 16  # weight, two optimizer slots, moving average
BYTES_PER_ACTIVATION = {"float32": 9.4, "mixed_bfloat16": 2.6, "mixed_float16": 2.6}
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class ProcessMemory:
    """Resident bytes: current, and peak since the process started."""

    bytes: int
    peak_bytes: int


def process_memory() -> ProcessMemory:
    """Memory of this process, without its children."""
    now = int(psutil.Process().memory_info().rss)
    return ProcessMemory(now, max(now, _peak_bytes()))


def _peak_bytes() -> int:
    """Peak resident bytes from VmHWM where available: getrusage includes the parent process before
    exec.
    """
    if STATUS.exists():
        lines = STATUS.read_text(encoding="utf-8").splitlines()
        peaks = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        if peaks:
            return int(peaks[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def estimated_memory_bytes(spec: RunSpec, home: Home | None = None) -> float:
    """Main memory of all processes of a run, in bytes: fitted for the CPU, a rough guide for GPU
    and TPU.
    """
    size = spec.entry.size(spec.of_workload, loading.check(spec, home))
    workers = spec.workers * (BASE_BYTES + size.parameters * BYTES_PER_WEIGHT)
    copies = spec.replicas_in_all * size.parameters * BYTES_PER_COPY
    activations = (
        spec.batch_size_global * size.activations_per_row * BYTES_PER_ACTIVATION[spec.precision]
    )
    return workers + copies + activations


def estimated_seconds(spec: RunSpec, images: int, images_per_s: float) -> float:
    """Seconds of pure training at a given rate."""
    return spec.epochs * spec.steps_per_epoch(images) * spec.images_per_step / images_per_s


def checkpoints_bytes(spec: RunSpec, fields: Fields) -> int:
    """Disk space in bytes of all checkpoints of a run: the retained ones, the best one, and one
    being written.
    """
    count = min(spec.keep_checkpoints, spec.epochs) + 2
    parameters = spec.entry.size(spec.of_workload, fields).parameters
    return count * parameters * CHECKPOINT_BYTES_PER_WEIGHT


# ---- stop before the first step ------------------------------------------------------------------


def end_process(code: int) -> NoReturn:
    """Exits at once: a framework takes seconds to shut down, and its compiler cannot be
    interrupted.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    scratch = Path(tempfile.gettempdir())
    if processes.SCRATCH_PREFIX in scratch.name:
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(code)


class StartupWatch:
    """Ends a trainer on a stop request before `first_step`, when there is nothing to save.

    Runs in a thread, since a compiler can block the main thread for minutes. `end`: ends the
    process with an exit code.
    """

    def __init__(
        self,
        writer: JournalWriter,
        stop_requested: Callable[[], bool],
        end: Callable[[int], object] = end_process,
    ) -> None:
        self._writer, self._stop_requested, self._end = writer, stop_requested, end
        self._is_over, self._deciding = threading.Event(), threading.Lock()

    def __enter__(self) -> StartupWatch:
        threading.Thread(target=self._watch, name="startup watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.first_step()

    def first_step(self) -> None:
        """Ends the watch: from now on a stop request saves a checkpoint. Does not return if the
        process is ending.
        """
        with self._deciding:
            self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(STOP_SECONDS):
            with self._deciding:
                if not self._is_over.is_set() and self._stop_requested():
                    last = StatusChange.of("stopped", cause(Reason.STOP_BEFORE_FIRST_STEP))
                    self._writer.write(last)
                    print(last.reason, flush=True)
                    self._end(0)
                    return
