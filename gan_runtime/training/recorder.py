"""Writes a training's measurements to the journal and its sample images to files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog, pictures
from gan_runtime.base.errors import NonFiniteError
from gan_runtime.catalog.entries import Picture
from gan_runtime.engines.contract import Engine, ProfiledSteps, StepNumbers
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter, Sample
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training.watch import process_memory
from gan_runtime.training.workers import WorkerLog

WARM_STEPS = 10  # steps after the first step of an attempt before profiling starts
ArraysByName = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class SampleWriter:
    """Draws an engine's arrays as the sample images that a workload declares.

    `kinds`: the kinds of images, in the order of pages. `classes`: names of the labels. `inputs`: a
    digest of the generator's inputs; pages compare runs with equal digests image by image.
    """

    kinds: tuple[Picture, ...]
    classes: tuple[str, ...] = ()
    inputs: str = ""

    @classmethod
    def of(cls, spec: RunSpec, classes: tuple[str, ...] = (), inputs: str = "") -> SampleWriter:
        """A writer for the images that a run's workload declares."""
        return cls(catalog.WORKLOADS[spec.workload].pictures, classes, inputs)

    def drawable(self, arrays: ArraysByName) -> list[Picture]:
        """The kinds whose arrays are all present; which arrays exist can depend on options and
        data.

        Raises:
            ValueError: kinds are declared, but none can be drawn.
        """
        kinds = [kind for kind in self.kinds if all(name in arrays for name in kind.arrays)]
        if self.kinds and not kinds:
            needed = "; ".join(f"{kind.name}: {', '.join(kind.arrays)}" for kind in self.kinds)
            raise ValueError(
                f"`show` returns {', '.join(arrays) or 'nothing'}, but the images need ({needed}):"
                " return the arrays that the catalog entry names."
            )
        return kinds

    def write(self, arrays: ArraysByName, run: RunDir, epoch: int) -> None:
        """Writes one file per kind, such as samples/NAME-00001.png.

        Raises:
            ValueError: an array has a shape that its renderer does not accept.
        """
        for kind in self.drawable(arrays):
            image = pictures.render(
                kind.renderer, tuple(arrays[name] for name in kind.arrays), self.classes
            )
            pictures.save(image, run.sample_file(kind.name, epoch))

    def records(self, arrays: ArraysByName, run: RunDir, epoch: int, step: int) -> list[Sample]:
        """The journal records of these files."""
        return [
            Sample(
                epoch=epoch,
                step=step,
                sample_kind=kind.name,
                file=str(run.sample_file(kind.name, epoch).relative_to(run.path)),
                meta={"inputs": self.inputs, "renderer": kind.renderer},
            )
            for kind in self.drawable(arrays)
        ]


class Recorder:
    """Records one attempt. `step`: completed steps; `wall_s`: training seconds over all attempts.

    `rank`: the rank of the worker; only rank 0 writes images.
    """

    def __init__(
        self,
        writer: JournalWriter,
        spec: RunSpec,
        steps_per_epoch: int,
        step: int,
        wall_s: float,
        rank: int = 0,
        samples: SampleWriter | None = None,
    ) -> None:
        self._writer, self._spec, self._rank = writer, spec, rank
        self._steps_per_epoch = steps_per_epoch
        self._workers = WorkerLog(writer, rank)
        self._samples = samples or SampleWriter.of(spec)
        self.step, self.wall_s = step, wall_s
        self._first_call_s: float | None = None
        self._compile_written = False
        # Seconds per step, and steps, of each call after the first.
        self._calls: list[tuple[float, int]] = []
        self.steps_made = 0  # steps of this attempt, including those rolled back
        self._epoch_begin = (step, wall_s)
        self._untimed_steps = 0  # in this epoch
        self._profiled_step: int | None = None
        # Epoch, step and arrays of sample images that are still to be written.
        self._pending: tuple[int, int, ArraysByName] | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the next step, from 1."""
        return self.step // self._steps_per_epoch + 1

    @property
    def has_profile(self) -> bool:
        """Whether this attempt has profiled steps."""
        return self._profiled_step is not None

    def call(self, measured: StepNumbers | ProfiledSteps) -> None:
        """Writes the numbers of one host call. Profiled steps are slower, so no timing includes
        them.

        Raises:
            NonFiniteError: a number is NaN or infinite; all numbers are written first.
        """
        if isinstance(measured, ProfiledSteps):
            steps = self._numbers(measured.numbers, seconds=0.0)
            self._profile(measured, steps)
            return
        epoch, first_step = self.epoch, self.step + 1
        steps = self._numbers(measured, measured.seconds)
        if self._first_call_s is None:
            self._first_call_s = measured.seconds
            self._writer.write(journal.PhaseSeconds(phase="first_call", seconds=measured.seconds))
            return
        self._calls.append((measured.seconds / steps, steps))
        if measured.worker_status is not None and measured.worker_status.seconds is not None:
            self._workers.call(epoch, first_step, steps, measured.worker_status.seconds)

    def _numbers(self, numbers: StepNumbers, seconds: float) -> int:
        """Writes the numbers of a call and advances step and time; returns the number of steps."""
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
        """Complete epochs."""
        return self.step // self._steps_per_epoch

    def epoch_done(self, engine: Engine) -> dict[str, float]:
        """Writes the epoch's time, memory, histograms and scores; returns the scores.

        `write_images` later writes the images, without the engine.
        """
        self._epoch_time()
        self._writer.write(_memory(engine, self.epochs_done, self.step))
        return self._probe(engine)

    def write_images(self, run: RunDir) -> None:
        """Writes the pending sample images, if any."""
        if self._pending is None:
            return
        (epoch, step, arrays), self._pending = self._pending, None
        if self._rank == 0:
            self._samples.write(arrays, run, epoch)
        self._writer.write(*self._samples.records(arrays, run, epoch, step))

    def go_back(self, step: int, wall_s: float) -> None:
        """Voids the measurements after `step`, once training has rolled back to it."""
        self.step, self.wall_s = step, wall_s
        self._epoch_begin, self._untimed_steps = (step, wall_s), 0
        if self._profiled_step is not None and self._profiled_step > step:
            self._profiled_step = None
        self._writer.write(journal.AttemptStart(resume_step=step))

    def _epoch_time(self) -> None:
        """Writes the time of the epoch, without untimed steps and steps of an earlier attempt."""
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
        probe = engine.probe()
        histograms = [
            journal.Histogram(
                epoch=epoch,
                step=self.step,
                name=histogram.name,
                bin_left=histogram.edges[:-1].tolist(),
                bin_right=float(histogram.edges[-1]),
                count=histogram.counts.tolist(),
            )
            for histogram in probe.histograms
        ]
        every = self._spec.pictures_every
        if epoch % every == 0 or epoch in (1, self._spec.epochs):
            self._pending = epoch, self.step, engine.sample()
        scores = journal.EpochScores(
            epoch=epoch, step=self.step, wall_s=self.wall_s, values=probe.scores
        )
        self._writer.write(
            scores,
            *histograms,
            journal.PhaseSeconds(phase="probe", seconds=time.perf_counter() - begin),
        )
        return probe.scores

    def summary(self) -> None:
        """Writes the attempt's step times, and its compile time if it ended in its first epoch."""
        self._compile_time()
        if self._calls:
            phases = [
                journal.PhaseSeconds(phase=name, seconds=s) for name, s in self._steady().items()
            ]
            self._writer.write(*phases)
        if self._spec.profile_steps and not self.has_profile:
            self._writer.write(
                journal.Event(level="warning", topic="profile", message=self._why_no_profile())
            )

    def _steady(self) -> dict[str, float]:
        """Seconds per step after the first call: median, quantiles and maximum."""
        seconds = self._step_seconds()
        low, middle, high = np.quantile(seconds, [0.05, 0.5, 0.95]).tolist()
        return {
            "steady_step": middle,
            "step_p05": low,
            "step_p95": high,
            "step_max": float(seconds.max()),
        }

    def _step_seconds(self) -> NDArray[np.float64]:
        """Seconds of each step, one value per step, so that short calls have less weight."""
        seconds, steps = zip(*self._calls, strict=True)
        return np.repeat(np.asarray(seconds), steps)

    def _why_no_profile(self) -> str:
        return (
            f"No steps were profiled: {self._spec.profile_steps} steps must fit into an epoch of"
            f" {self._steps_per_epoch}, after {WARM_STEPS + 1} steps and before the last. The"
            f" attempt made {self.steps_made}. Use fewer profile_steps, a smaller batch, or more"
            " epochs."
        )

    def _compile_time(self) -> None:
        """Writes once how much longer the first call took than a steady step: compiling and
        warm-up.
        """
        if self._first_call_s is not None and self._calls and not self._compile_written:
            seconds = max(0.0, self._first_call_s - float(np.median(self._step_seconds())))
            self._writer.write(journal.PhaseSeconds(phase="compile", seconds=seconds))
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


def _memory(engine: Engine, epoch: int, step: int) -> journal.MemoryUse:
    process, device = process_memory(), engine.device_memory()
    return journal.MemoryUse(
        epoch=epoch,
        step=step,
        process_bytes=process.bytes,
        process_peak_bytes=process.peak_bytes,
        device_bytes=device.bytes if device else None,
        device_peak_bytes=device.peak_bytes if device else None,
    )
