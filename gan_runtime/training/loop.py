"""The training loop, readable from top to bottom, without knowledge of workload or framework.

While the device runs one call of `steps_per_loop` steps, the host writes the numbers of the
previous call; during the first call of an epoch it also writes the images and checkpoint of the
previous epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import Literal

from gan_runtime.base.errors import NonFiniteError
from gan_runtime.engines.contract import Engine, ProfiledSteps, StepNumbers
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Cause, Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.training.recorder import WARM_STEPS, Recorder, SampleWriter
from gan_runtime.training.starting_point import restore
from gan_runtime.training.watch import DiskWatch, TrainingWatch, size_of


@dataclass(frozen=True)
class Call:
    """Steps that the device runs before it returns numbers to the host."""

    steps: int
    profiled: bool = False


def plain_calls(lengths: list[int]) -> list[Call]:
    """Unprofiled calls of these lengths in steps."""
    return [Call(steps) for steps in lengths]


def with_profile(lengths: list[int], steps_done: int, profile_steps: int) -> list[Call] | None:
    """Inserts a profiled call once the attempt is warm; None if no call of the epoch is late
    enough.

    `steps_done`: steps of this attempt before these calls. The last call of an epoch is never
    profiled, so each epoch has timed steps. with_profile([1, 10, 6, 1], 0, 5) profiles 5 steps
    before the 6.
    """
    for index in range(len(lengths)):
        if steps_done + sum(lengths[:index]) > WARM_STEPS:
            return [
                *plain_calls(lengths[:index]),
                Call(profile_steps, profiled=True),
                *plain_calls(lengths[index:]),
            ]
    return None


@dataclass(frozen=True)
class Outcome:
    """How training ended: finished, or stopped after `step` steps."""

    status: Literal["finished", "stopped"]
    step: int
    cause: Cause

    @property
    def reason(self) -> str:
        """The cause as a sentence."""
        return self.cause.sentence


def train(
    spec: RunSpec,
    images: int,
    engine: Engine,
    run: RunDir,
    writer: JournalWriter,
    stop_requested: Callable[[], bool],
    rank: int = 0,
    samples: SampleWriter | None = None,
    first_step: Callable[[], None] = lambda: None,
) -> Outcome:
    """Trains until all epochs are done or a stop request; saves the last state in either case.

    Several workers run this loop with the same calls in the same order, since each call needs all
    of them; only rank 0 writes files. `samples`: by default a writer without labels and inputs.
    `first_step`: called when the first step has completed, before it is recorded.

    Raises:
        NonFiniteError: a number, score or weight became NaN or infinite; says what to do.
        AlarmError: training failed again after all roll-backs.
        CheckpointError: as `starting_point.restore`.
    """
    # ---- resume from the newest checkpoint, if an earlier attempt has saved one ------------------
    steps_per_epoch = spec.steps_per_epoch(images)
    last_step = spec.epochs * steps_per_epoch
    resumed = restore(engine, run, writer)
    disk = DiskWatch(run.path, writer, size_of(resumed.arrays) if resumed else 0)

    def must_end() -> bool:
        return stop_requested() or disk.is_short()

    step, wall_s = (resumed.step, resumed.wall_s) if resumed else (0, 0.0)
    watch = TrainingWatch(spec, engine, run, writer, rank, resumed.step if resumed else None)
    if step == 0 and (
        spec.alarm_action == "roll_back" or spec.weight_snapshots == "yes" or spec.start_from
    ):
        # For roll-backs and loss surfaces. It also makes a run independent of the run that it
        # started from.
        watch.save(watch.state(step, epoch=1), step, wall_s, {}, epoch=0)
    writer.write(
        journal.AttemptStart(resume_step=step),
        journal.AttemptPlan(
            images=images,
            steps_per_epoch=steps_per_epoch,
            epochs=spec.epochs,
            images_per_step=spec.images_per_step,
            updates=engine.updates(),
        ),
    )
    if step >= last_step:
        return Outcome("finished", step, cause(Reason.EPOCHS_DONE_BEFORE, epochs=spec.epochs))

    # ---- trace: timed apart from compiling (the first call) and training -------------------------
    begin = time.perf_counter()
    engine.trace()
    writer.write(journal.PhaseSeconds(phase="trace", seconds=time.perf_counter() - begin))
    writer.write(journal.KernelCounts(**asdict(engine.kernels())))
    record = Recorder(writer, spec, steps_per_epoch, step, wall_s, rank, samples)
    compiled = False

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="device") as device:
        calls: list[Call] = []

        def next_call() -> Future[StepNumbers | ProfiledSteps]:
            call = calls.pop(0)
            return device.submit(_run, engine, call, not calls, must_end())

        def next_epoch() -> Future[StepNumbers | ProfiledSteps]:
            calls[:] = _calls(spec, steps_per_epoch - record.step % steps_per_epoch, record)
            return next_call()

        pending = next_epoch()
        while record.step < last_step:
            # ---- one epoch: start the next call on the device, then record the one before it -----
            try:
                while True:
                    numbers = pending.result()
                    if not compiled:
                        first_step()
                        writer.write(
                            journal.StatusChange.of(
                                "running", cause(Reason.TRAINING, steps=last_step)
                            )
                        )
                        compiled = True
                    more = bool(calls) and not _must_stop(numbers, must_end)
                    if more:
                        pending = next_call()
                    record.call(numbers)
                    if not more:
                        break
                # ---- end of the epoch, or a stop within it ---------------------------------------
                scores = {} if calls else record.epoch_done(engine)
                alarm = watch.epoch(scores, record.epochs_done) if scores else None
                state = watch.state(record.step, record.epochs_done if scores else record.epoch)
            except NonFiniteError as error:
                wait([pending])
                record.write_images(run)
                alarm = watch.not_finite(error)

            # ---- act on an alarm or a stop; else the device continues while files are written ----
            if alarm and spec.alarm_action == "roll_back":
                record.write_images(run)
                record.go_back(*watch.roll_back(alarm))
                pending = next_epoch()
                continue
            disk.set_checkpoint_bytes(size_of(state))
            ending = alarm if spec.alarm_action == "stop" else None
            stops = record.step < last_step and _must_stop(numbers, must_end)
            if record.step < last_step and not ending and not stops:
                pending = next_epoch()
            record.write_images(run)
            watch.save(
                state, record.step, record.wall_s, scores, record.epochs_done if scores else None
            )
            if ending:
                record.summary()
                return Outcome("stopped", record.step, cause(Reason.ALARM, message=ending.message))
            if stops:
                record.summary()
                why = _why_stopped(disk, stop_requested, {"step": record.step, "steps": last_step})
                return Outcome("stopped", record.step, why)

    record.summary()
    is_one = spec.epochs == 1
    done = cause(Reason.EPOCH_DONE) if is_one else cause(Reason.EPOCHS_DONE, epochs=spec.epochs)
    return Outcome("finished", record.step, done)


def _must_stop(numbers: StepNumbers | ProfiledSteps, stop_requested: Callable[[], bool]) -> bool:
    """A single worker stops at once. Several stop only if their last call agreed to stop: if one
    stopped alone, the next all-reduce of the others would wait forever.
    """
    return stop_requested() if numbers.worker_status is None else numbers.worker_status.stop_agreed


def _why_stopped(
    disk: DiskWatch, stop_requested: Callable[[], bool], steps: dict[str, int]
) -> Cause:
    """The cause, which another worker can have: it checked its disk at another time."""
    is_requested = stop_requested()
    if disk.is_short(at_once=not is_requested):
        return cause(Reason.LOW_DISK, **disk.shortage, **steps)
    return cause(Reason.STOP_ON_REQUEST if is_requested else Reason.STOP_WITH_OTHER_WORKER, **steps)


def _calls(spec: RunSpec, steps: int, record: Recorder) -> list[Call]:
    """The host calls for the rest of an epoch, with a profiled call if one is due and fits."""
    first_alone = record.steps_made == 0
    if spec.profile_steps and not record.has_profile and steps > spec.profile_steps:
        lengths = call_lengths(steps - spec.profile_steps, spec.steps_per_loop, first_alone)
        calls = with_profile(lengths, record.steps_made, spec.profile_steps)
        if calls is not None:
            return calls
    return plain_calls(call_lengths(steps, spec.steps_per_loop, first_alone))


def call_lengths(steps: int, steps_per_loop: int, first_alone: bool) -> list[int]:
    """Splits `steps`, the rest of an epoch, into host calls.

    The last step is a separate call, so that its update can be measured. With `first_alone` the
    first step is too, so that compiling is timed separately. call_lengths(28, 10, True) is [1, 10,
    10, 6, 1].
    """
    first = [1] if first_alone and steps > 1 else []
    full, rest = divmod(steps - len(first) - 1, steps_per_loop)
    return first + [steps_per_loop] * full + ([rest] if rest else []) + [1]


def _run(
    engine: Engine, call: Call, ends_epoch: bool, stop_requested: bool
) -> StepNumbers | ProfiledSteps:
    """Runs one call on the device's thread. The last call of an epoch first marks the current
    weights.
    """
    if ends_epoch:
        engine.mark()
    return (
        engine.profile(call.steps, stop_requested)
        if call.profiled
        else engine.run(call.steps, stop_requested)
    )
