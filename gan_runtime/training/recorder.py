"""Writes down what the engine measured: per-step numbers, epochs, probes, phases. Keeps the step count and the clock."""

from __future__ import annotations

import time
from itertools import accumulate
from statistics import median

import numpy as np

from gan_runtime import journal
from gan_runtime.engines.contract import Engine, StepNumbers
from gan_runtime.errors import NonFiniteError
from gan_runtime.journal import JournalWriter
from gan_runtime.rundir import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training.grids import write_grid
from gan_runtime.training.stragglers import WorkerLog


class Recorder:
    """The journal side of one attempt. `step`: steps done; `wall_s`: training seconds so far, over all attempts.

    `rank`: which of several workers this is; only the first writes sample grids.
    """

    def __init__(
        self, writer: JournalWriter, spec: RunSpec, steps_per_epoch: int, step: int, wall_s: float, rank: int = 0
    ) -> None:
        self._writer, self._spec, self._steps_per_epoch, self._rank = writer, spec, steps_per_epoch, rank
        self._workers = WorkerLog(writer, rank)
        self.step, self.wall_s = step, wall_s
        self._first_call_s: float | None = None
        self._compile_written = False
        self._step_seconds: list[float] = []
        self._epoch_begin = (step, wall_s)

    @property
    def epoch(self) -> int:
        """The epoch of the next step, from 1."""
        return self.step // self._steps_per_epoch + 1

    def call(self, numbers: StepNumbers) -> None:
        """Writes the numbers of one host call.

        Raises:
            NonFiniteError: one of them is NaN or infinite; the numbers are written down all the same.
        """
        steps = len(next(iter(numbers.values.values())))
        each = numbers.seconds / steps
        self._writer.write(
            journal.Scalars(
                epoch=self.epoch,
                first_step=self.step + 1,
                wall_s=list(accumulate([each] * steps, initial=self.wall_s))[1:],
                values={metric: [float(value) for value in values] for metric, values in numbers.values.items()},
            )
        )
        self._raise_if_not_finite(numbers)
        if self._first_call_s is None:
            self._first_call_s = numbers.seconds
            self._writer.write(journal.Phase(phase="first_call", seconds=numbers.seconds))
        else:
            self._step_seconds.append(each)
            if numbers.news is not None:
                self._workers.call(self.epoch, self.step + 1, steps, numbers.news)
        self.step += steps
        self.wall_s += numbers.seconds

    @property
    def epochs_done(self) -> int:
        """Whole epochs behind the step count."""
        return self.step // self._steps_per_epoch

    def epoch_done(self, engine: Engine, run: RunDir) -> dict[str, float]:
        """Writes the epoch's time, histograms, scores and sample grid; returns the scores."""
        self._epoch_time()
        return self._probe(engine, run)

    def go_back(self, step: int, wall_s: float) -> None:
        """What was measured beyond `step` is void: the training goes on from there."""
        self.step, self.wall_s, self._epoch_begin = step, wall_s, (step, wall_s)
        self._writer.write(journal.AttemptStart(resume_step=step))

    def _epoch_time(self) -> None:
        """The steps of an earlier attempt within the same epoch are not counted."""
        begin_step, begin_s = self._epoch_begin
        seconds = self.wall_s - begin_s
        images = (self.step - begin_step) * self._spec.images_per_step
        self._writer.write(
            journal.EpochDone(
                epoch=self.epochs_done, step=self.step, seconds=seconds, images=images, images_per_s=images / seconds
            )
        )
        self._epoch_begin = (self.step, self.wall_s)
        self._compile_time()
        self._workers.epoch_done(self.epochs_done)

    def _probe(self, engine: Engine, run: RunDir) -> dict[str, float]:
        begin = time.perf_counter()
        epoch = self.epochs_done
        found = engine.probe()
        histograms = [
            journal.Histogram(
                epoch=epoch,
                step=self.step,
                name=item.name,
                bin_left=item.edges[:-1].tolist(),
                bin_right=float(item.edges[-1]),
                count=item.counts.tolist(),
            )
            for item in found.histograms
        ]
        path = run.samples / f"epoch-{epoch:05d}.png"
        images = engine.sample()
        if self._rank == 0:
            write_grid(images, path)
        meta = {"seed": self._spec.seed, "columns": 8}
        file = str(path.relative_to(run.path))
        sample = journal.Sample(epoch=epoch, step=self.step, sample_kind="fixed_latents", file=file, meta=meta)
        scores = journal.EpochScores(epoch=epoch, step=self.step, wall_s=self.wall_s, values=found.scores)
        self._writer.write(scores, *histograms, sample, journal.Phase(phase="probe", seconds=time.perf_counter() - begin))
        return found.scores

    def summary(self) -> None:
        """Writes the typical step of the attempt, and the compiling if the attempt ended within its first epoch."""
        self._compile_time()
        if self._step_seconds:
            self._writer.write(journal.Phase(phase="steady_step", seconds=median(self._step_seconds)))

    def _compile_time(self) -> None:
        """Writes, once, what the first call took beyond a steady step: compiling and warming up."""
        if self._first_call_s is not None and self._step_seconds and not self._compile_written:
            seconds = max(0.0, self._first_call_s - median(self._step_seconds))
            self._writer.write(journal.Phase(phase="compile", seconds=seconds))
            self._compile_written = True

    def _raise_if_not_finite(self, numbers: StepNumbers) -> None:
        bad = {name: values for name, values in numbers.values.items() if not np.isfinite(values).all()}
        if not bad:
            return
        metric = min(bad, key=lambda name: int(np.argmin(np.isfinite(bad[name]))))
        offset = int(np.argmin(np.isfinite(bad[metric])))
        value = "NaN" if np.isnan(bad[metric][offset]) else "infinite"
        step = self.step + 1 + offset
        raise NonFiniteError(
            f"{metric} became {value} at step {step} (epoch {(step - 1) // self._steps_per_epoch + 1}): "
            "lower the learning rates, or train in float32; resume goes on from the last checkpoint."
        )
