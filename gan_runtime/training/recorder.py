"""Writes down what the engine measured: per-step numbers, epochs, probes, phases.

Keeps the step count and the clock.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import NonFiniteError
from gan_runtime.engines.contract import Engine, ProfiledSteps, StepNumbers
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training.album import Album, Shown
from gan_runtime.training.memory import process_memory
from gan_runtime.training.stragglers import WorkerLog

WARM_STEPS = 10  # steady steps, after the first one, that an attempt makes before it is profiled


class Recorder:
    """The journal side of one attempt.

    `step`: steps done; `wall_s`: training seconds so far, over all attempts.

    `rank`: which of several workers this is; only the first writes pictures.
    """

    def __init__(
        self,
        writer: JournalWriter,
        spec: RunSpec,
        steps_per_epoch: int,
        step: int,
        wall_s: float,
        rank: int = 0,
        album: Album | None = None,
    ) -> None:
        self._writer, self._spec, self._steps_per_epoch, self._rank = (
            writer,
            spec,
            steps_per_epoch,
            rank,
        )
        self._workers = WorkerLog(writer, rank)
        self._album = album or Album.of(spec)
        self.step, self.wall_s = step, wall_s
        self._first_call_s: float | None = None
        self._compile_written = False
        self._calls: list[
            tuple[float, int]
        ] = []  # seconds per step, and steps, of each call after the first
        self.steps_made = 0  # by this attempt, with those of which it went back
        self._epoch_begin = (step, wall_s)
        self._untimed_steps = 0  # of this epoch
        self._profiled_step: int | None = None
        self._shown: tuple[int, int, Shown] | None = (
            None  # epoch, step and arrays of pictures that wait
        )

    @property
    def epoch(self) -> int:
        """The epoch of the next step, from 1."""
        return self.step // self._steps_per_epoch + 1

    @property
    def has_profile(self) -> bool:
        """Whether steps of this attempt were profiled."""
        return self._profiled_step is not None

    def call(self, measured: StepNumbers | ProfiledSteps) -> None:
        """Writes the numbers of one host call.

        The clock stands still for profiled steps: the profiler slows them down.

        Raises:
            NonFiniteError: one of them is NaN or infinite; the numbers are written down all the
                same.
        """
        if isinstance(measured, ProfiledSteps):
            steps = self._numbers(measured.numbers, seconds=0.0)
            self._profile(measured, steps)
            return
        epoch, first_step = self.epoch, self.step + 1
        steps = self._numbers(measured, measured.seconds)
        if self._first_call_s is None:
            self._first_call_s = measured.seconds
            self._writer.write(journal.Phase(phase="first_call", seconds=measured.seconds))
            return
        self._calls.append((measured.seconds / steps, steps))
        if measured.worker_status is not None and measured.worker_status.seconds is not None:
            self._workers.call(epoch, first_step, steps, measured.worker_status.seconds)

    def _numbers(self, numbers: StepNumbers, seconds: float) -> int:
        """Writes the numbers of some steps that count as `seconds` of training, and moves
        step and clock; returns how many.
        """
        steps = len(next(iter(numbers.values.values())))
        self._writer.write(
            journal.Scalars(
                epoch=self.epoch,
                first_step=self.step + 1,
                wall_s=list(accumulate([seconds / steps] * steps, initial=self.wall_s))[1:],
                values={
                    metric: [float(value) for value in values]
                    for metric, values in numbers.values.items()
                },
            )
        )
        self._raise_if_not_finite(numbers)
        self.step += steps
        self.steps_made += steps
        self.wall_s += seconds
        return steps

    def _profile(self, profiled: ProfiledSteps, steps: int) -> None:
        self._untimed_steps += steps
        self._profiled_step = self.step
        shares = [journal.TimeShare(**asdict(share)) for share in profiled.shares]
        seconds = sum(share.seconds for share in profiled.shares)
        self._writer.write(
            journal.Profile(step=self.step, steps=steps, seconds=seconds, shares=shares)
        )

    @property
    def epochs_done(self) -> int:
        """Whole epochs behind the step count."""
        return self.step // self._steps_per_epoch

    def epoch_done(self, engine: Engine) -> dict[str, float]:
        """Writes the epoch's time, memory, histograms and scores; returns the scores.

        Its pictures wait for `pictures`, which no longer needs the engine.
        """
        self._epoch_time()
        self._writer.write(_memory(engine, self.epochs_done, self.step))
        return self._probe(engine)

    def pictures(self, run: RunDir) -> None:
        """Writes the pictures that wait, if any do."""
        if self._shown is None:
            return
        (epoch, step, shown), self._shown = self._shown, None
        if self._rank == 0:
            self._album.write(shown, run, epoch)
        self._writer.write(*self._album.records(shown, run, epoch, step))

    def go_back(self, step: int, wall_s: float) -> None:
        """What was measured beyond `step` is void: the training goes on from there."""
        self.step, self.wall_s, self._epoch_begin, self._untimed_steps = (
            step,
            wall_s,
            (step, wall_s),
            0,
        )
        if self._profiled_step is not None and self._profiled_step > step:
            self._profiled_step = None
        self._writer.write(journal.AttemptStart(resume_step=step))

    def _epoch_time(self) -> None:
        """The steps of an earlier attempt within the same epoch are not counted, nor those
        without a time.
        """
        begin_step, begin_s = self._epoch_begin
        seconds = self.wall_s - begin_s
        images = (self.step - begin_step - self._untimed_steps) * self._spec.images_per_step
        self._writer.write(
            journal.EpochDone(
                epoch=self.epochs_done,
                step=self.step,
                seconds=seconds,
                images=images,
                images_per_s=images / seconds,
            )
        )
        self._epoch_begin, self._untimed_steps = (self.step, self.wall_s), 0
        self._compile_time()
        self._workers.epoch_done(self.epochs_done)

    def _probe(self, engine: Engine) -> dict[str, float]:
        begin = time.perf_counter()
        epoch = self.epochs_done
        looked = engine.probe()
        histograms = [
            journal.Histogram(
                epoch=epoch,
                step=self.step,
                name=histogram.name,
                bin_left=histogram.edges[:-1].tolist(),
                bin_right=float(histogram.edges[-1]),
                count=histogram.counts.tolist(),
            )
            for histogram in looked.histograms
        ]
        if self._has_pictures(epoch):
            self._shown = epoch, self.step, engine.sample()
        scores = journal.EpochScores(
            epoch=epoch, step=self.step, wall_s=self.wall_s, values=looked.scores
        )
        self._writer.write(
            scores, *histograms, journal.Phase(phase="probe", seconds=time.perf_counter() - begin)
        )
        return looked.scores

    def _has_pictures(self, epoch: int) -> bool:
        every = self._spec.pictures_every
        return epoch % every == 0 or epoch in (1, self._spec.epochs)

    def summary(self) -> None:
        """Writes how long the attempt's steps took, and the compiling if it ended within its
        first epoch.
        """
        self._compile_time()
        if self._calls:
            self._writer.write(
                *(
                    journal.Phase(phase=phase, seconds=seconds)
                    for phase, seconds in self._steady().items()
                )
            )
        if self._spec.profile_steps and not self.has_profile:
            self._writer.write(
                journal.Event(level="warning", topic="profile", message=self._why_no_profile())
            )

    def _steady(self) -> dict[str, float]:
        """Seconds per step over the calls after the first: the typical one, and how far they
        scatter.
        """
        seconds = self._step_seconds()
        low, middle, high = np.quantile(seconds, [0.05, 0.5, 0.95]).tolist()
        return {
            "steady_step": middle,
            "step_p05": low,
            "step_p95": high,
            "step_max": float(seconds.max()),
        }

    def _step_seconds(self) -> NDArray[np.float64]:
        """Each step with its share of its call: a short call, such as the last of an epoch,
        counts no more than its steps.
        """
        seconds, steps = zip(*self._calls, strict=True)
        return np.repeat(np.asarray(seconds), steps)

    def _why_no_profile(self) -> str:
        return (
            f"No steps were profiled: {self._spec.profile_steps} steps must fit into an epoch of"
            f" {self._steps_per_epoch}, before its last step and after the first {WARM_STEPS + 1}"
            f" steps of the attempt; it made {self.steps_made}. Use fewer profile_steps, a smaller"
            " batch, or more epochs."
        )

    def _compile_time(self) -> None:
        """Writes, once, what the first call took beyond a steady step: compiling and warming up."""
        if self._first_call_s is not None and self._calls and not self._compile_written:
            seconds = max(0.0, self._first_call_s - float(np.median(self._step_seconds())))
            self._writer.write(journal.Phase(phase="compile", seconds=seconds))
            self._compile_written = True

    def _raise_if_not_finite(self, numbers: StepNumbers) -> None:
        bad = {
            name: values for name, values in numbers.values.items() if not np.isfinite(values).all()
        }
        if not bad:
            return
        metric = min(bad, key=lambda name: int(np.argmin(np.isfinite(bad[name]))))
        offset = int(np.argmin(np.isfinite(bad[metric])))
        value = "NaN" if np.isnan(bad[metric][offset]) else "infinite"
        step = self.step + 1 + offset
        raise NonFiniteError(
            f"{metric} became {value} at step {step} (epoch"
            f" {(step - 1) // self._steps_per_epoch + 1})."
        )


def _memory(engine: Engine, epoch: int, step: int) -> journal.Memory:
    process, device = process_memory(), engine.device_memory()
    return journal.Memory(
        epoch=epoch,
        step=step,
        process_bytes=process.bytes,
        process_peak_bytes=process.peak_bytes,
        device_bytes=device.bytes if device else None,
        device_peak_bytes=device.peak_bytes if device else None,
    )
