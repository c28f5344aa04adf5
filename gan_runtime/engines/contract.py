"""The interface between the training loop and an engine. The loop does not depend on a workload,
nor a workload on an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import CheckpointError

Arrays = dict[str, NDArray[np.generic]]  # arrays of a state by their names in a checkpoint
RATE_FACTOR = "rate_factor"  # name of the factor by which alarms have lowered the learning rates
AVERAGE = "average"  # owner of a moving average's arrays in a checkpoint


@dataclass(frozen=True)
class WorkerSeconds:
    """The time of a worker's call, split into computing and waiting.

    Seconds are per step; compute and wait add up to the whole step.

    `compute_s`, `wait_s`: this worker's computing, and its time inside collectives.
    `all_compute_s`: computing times of all workers by rank in the previous call; 0 before the first
    measurement.
    """

    compute_s: float
    wait_s: float
    all_compute_s: tuple[float, ...]


@dataclass(frozen=True)
class WorkerStatus:
    """Information about all workers that each worker receives in a call.

    `stop_agreed`: a worker had a stop request when the call began, so all workers stop after it.
    `seconds`: None with JAX, which does not report when an exchange inside its program begins.
    """

    stop_agreed: bool
    seconds: WorkerSeconds | None = None


@dataclass(frozen=True)
class StepNumbers:
    """Per-step numbers of one host call: metric → float32 (steps,).

    `seconds`: wall time of the call. `worker_status`: None in a run of one worker.
    """

    values: dict[str, NDArray[np.float32]]
    seconds: float
    worker_status: WorkerStatus | None = None


@dataclass(frozen=True)
class BinCounts:
    """A histogram counted on the device: `edges` (bins + 1,), `counts` (bins,)."""

    name: str
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe after an epoch: histograms, and numbers by metric (docs/metrics.md)."""

    histograms: list[BinCounts]
    scores: dict[str, float]


# Categories of a step's time (step_profile.py).
Category = Literal[
    "forward",
    "backward",
    "optimizer",
    "gradient_all_reduce",
    "batch_norm_all_reduce",
    "input",
    "idle",
    "unattributed",
]


@dataclass(frozen=True)
class ProfileShare:
    """The seconds and the share (0 to 1) of profiled steps that one kind of work took.

    `network`, `phase` of the program: "" if unknown.
    """

    network: str
    category: Category
    seconds: float
    share: float
    phase: str = ""


@dataclass(frozen=True)
class ProfiledSteps:
    """The numbers of profiled steps, and the shares of their time, which sum to 1."""

    numbers: StepNumbers
    shares: tuple[ProfileShare, ...]

    @property
    def worker_status(self) -> WorkerStatus | None:
        """The worker status, as in `StepNumbers`."""
        return self.numbers.worker_status


@dataclass(frozen=True)
class StepKernels:
    """The operation counts of a step (docs/metrics.md).

    The last three are None if no option requests them or XLA compiles nothing.
    """

    operations: int
    kernels_before: int | None
    kernels_after: int | None
    fusions: int | None


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes that the framework has allocated on the fullest device: current and peak."""

    bytes: int
    peak_bytes: int


class Engine(Protocol):
    """The networks and optimizers of a run on its devices.

    Not thread-safe.
    """

    def worker_extremes(self, number: int) -> tuple[int, int]:
        """The lowest and the highest `number` of all workers; all workers must call
        this together.
        """
        ...

    def updates(self) -> dict[str, int]:
        """The updates per step of each trained network."""
        ...

    def trace(self) -> None:
        """Builds the graph of the training call without running it."""
        ...

    def kernels(self) -> StepKernels:
        """Counts the operations that `trace` has built. The option `count_kernels` compiles them
        once more.
        """
        ...

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """Trains `steps` steps; returns once their numbers are on the host.

        `stop_requested`: whether this worker has a stop request; the call sends it to all workers.
        """
        ...

    def profile(self, steps: int, stop_requested: bool = False) -> ProfiledSteps:
        """As `run`, under the framework's profiler, which slows the steps down."""
        ...

    def device_memory(self) -> DeviceMemory | None:
        """The memory of the fullest device; None if the framework does not count it (CPU)."""
        ...

    def mark(self) -> None:
        """Stores the current weights, so that the next `probe` reports how far they have moved."""
        ...

    def probe(self) -> ProbeResult:
        """Histograms and scores on a fixed batch. Changes nothing."""
        ...

    def sample(self) -> dict[str, NDArray[Any]]:
        """The workload's output for its fixed inputs, which are the same in all runs: arrays (64,
        …).
        """
        ...

    def generate(self, inputs: dict[str, NDArray[Any]], seed: int = 0) -> dict[str, NDArray[Any]]:
        """The workload's output for any number of inputs: named arrays (rows, …).

        `inputs`: by the names of `Workload.fixed_inputs`. `seed`: of the noise of `Workload.show`.
        """
        ...

    def slow_down(self, factor: float) -> None:
        """Multiplies all learning rates by `factor` from now on. The factor is part of
        the state.
        """
        ...

    def state(self) -> Arrays:
        """Every weight, optimizer slot and counter by name, in the layout of one device."""
        ...

    def load(self, arrays: Arrays) -> None:
        """Loads a state of any number of devices, even during a training.

        Raises:
            CheckpointError: names or shapes differ; nothing is changed.
        """
        ...

    def describe(self) -> dict[str, object]:
        """The strategy, devices and versions, for the record."""
        ...


def check_fit(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises CheckpointError if names or shapes of arrays differ from the run's `shapes`."""
    if set(arrays) != set(shapes):
        names = sorted(set(arrays) ^ set(shapes))[:3]
        raise CheckpointError(
            "the checkpoint does not fit this run's networks and optimizers (differs in"
            f" {', '.join(names)}): start a new run."
        )
    for name, shape in shapes.items():
        if tuple(arrays[name].shape) != shape:
            raise CheckpointError(
                f"the checkpoint's {name} has shape {arrays[name].shape}, the run's {shape}: start"
                " a new run."
            )
