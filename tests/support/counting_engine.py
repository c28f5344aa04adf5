"""An engine that counts its steps and learns nothing, its training loop, and its journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from gan_runtime.engines.contract import (
    Arrays,
    BinCounts,
    DeviceMemory,
    ProbeResult,
    ProfiledSteps,
    ProfileShare,
    StepKernels,
    StepNumbers,
)
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import loop

IMAGES = 40
HEALTHY = {
    "probe_score_real": 0.6,
    "probe_score_fake": 0.4,
    "spread_real": 0.2,
    "spread_fake": 0.19,
}
COLLAPSED = HEALTHY | {"spread_fake": 0.002}
SPEC = RunSpec.parse(
    {
        "workload": "mlp_gan",
        "batch_size_global": 8,
        "epochs": 3,
        "steps_per_loop": 2,
        "precision": "float32",
    }
)


Kind = TypeVar("Kind", bound=journal.Record)


class CountingEngine:
    """Implements `engines.contract.Engine`; its loss is the step number, NaN at `nan_at`."""

    def __init__(self, nan_at: int = 0, scores: tuple[dict[str, float], ...] = ()) -> None:
        self.step, self.nan_at, self.calls, self.marks, self.slowed = (
            0,
            nan_at,
            list[int](),
            list[int](),
            1.0,
        )
        self.scores = list(scores)  # of the next epochs; healthy scores afterwards
        self.wishes: list[bool] = []
        self.profiled: list[tuple[int, int]] = []  # first step, steps

    def worker_extremes(self, number: int) -> tuple[int, int]:
        """Acts as a single worker, or as one whose peers report the same number."""
        return number, number

    def trace(self) -> None:
        """Nothing to build."""

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """Numbers of the next steps; a single worker sends its stop request to no other worker."""
        self.calls.append(steps)
        self.wishes.append(stop_requested)
        numbers = np.arange(self.step + 1, self.step + steps + 1, dtype=np.float32)
        self.step += steps
        numbers[numbers == self.nan_at] = np.nan
        return StepNumbers({"loss_generator": numbers}, seconds=0.5 * steps)

    def profile(self, steps: int, stop_requested: bool = False) -> ProfiledSteps:
        """As slow as a profiler."""
        self.profiled.append((self.step + 1, steps))
        numbers = self.run(steps, stop_requested)
        return ProfiledSteps(
            replace(numbers, seconds=100.0), (ProfileShare("generator", "forward", 99.0, 1.0),)
        )

    def kernels(self) -> StepKernels:
        """Fixed counts."""
        return StepKernels(900, 120, 40, 30)

    def device_memory(self) -> DeviceMemory:
        """Grows by one byte per step."""
        return DeviceMemory(self.step, 1000)

    def mark(self) -> None:
        """Records the current step."""
        self.marks.append(self.step)

    def probe(self) -> ProbeResult:
        """One histogram and the scores of the next epoch."""
        return ProbeResult(
            [BinCounts("score/real", np.array([0.0, 0.5, 1.0]), np.array([3, 1]))],
            self.scores.pop(0) if self.scores else HEALTHY,
        )

    def slow_down(self, factor: float) -> None:
        """Records the factor."""
        self.slowed *= factor

    def sample(self) -> dict[str, np.ndarray]:
        """Black images."""
        return {"images": -np.ones((64, 28, 28, 1), np.float32)}

    def updates(self) -> dict[str, int]:
        """One update per network."""
        return {"generator": 1, "discriminator": 1}

    def state(self) -> Arrays:
        """Only the step."""
        return {"step": np.asarray(self.step, np.int64)}

    def load(self, arrays: Arrays) -> None:
        """Restores the step."""
        self.step = int(arrays["step"])

    def describe(self) -> dict[str, object]:
        """An empty description."""
        return {}


def train(
    run: RunDir,
    engine: object,
    stop: Callable[[], bool] = lambda: False,
    attempt: int = 1,
    **options: object,
) -> loop.Outcome:
    spec = RunSpec.parse({**SPEC.model_dump(), **options})
    with JournalWriter(run.trainer_journal(), attempt) as writer:
        return loop.train(spec, IMAGES, engine, run, writer, stop)  # type: ignore[arg-type]


def events(run: RunDir) -> list[tuple[str, str]]:
    """Topic and message of each event."""
    return [
        (record.topic, record.message)
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.Event)
    ]


def steps_recorded(run: RunDir) -> list[int]:
    records = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.Scalars)
    ]
    return [
        record.first_step + offset for record in records for offset in range(len(record.wall_s))
    ]


def recorded(run: RunDir, kind: type[Kind]) -> list[Kind]:
    return [
        record for record in journal.read_all(run.trainer_journal()) if isinstance(record, kind)
    ]
