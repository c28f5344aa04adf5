"""What the training loop needs of an engine. The loop knows no workload, the workload no engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class WorkerSeconds:
    """Where the time of a worker's call went.

    Seconds are per step; compute and wait add up to the whole step.

    `compute_s`, `wait_s`: this worker's own part of the call, and its time inside collectives.
    `all_compute_s`: own parts of all workers by rank in the call before; 0 where not known yet.
    """

    compute_s: float
    wait_s: float
    all_compute_s: tuple[float, ...]


@dataclass(frozen=True)
class WorkerNews:
    """What one of several workers learned in a call.

    `stop_agreed`: one of the workers had the wish to stop when the call began, and all have heard
    it.
    `seconds`: None with JAX, which does not tell when an exchange inside its compiled program
    begins.
    """

    stop_agreed: bool
    seconds: WorkerSeconds | None = None


@dataclass(frozen=True)
class StepNumbers:
    """Per-step numbers of one host call: metric → float32 (steps,).

    `seconds`: wall time of the call.

    `news` is None for a run of one worker.
    """

    values: dict[str, NDArray[np.float32]]
    seconds: float
    news: WorkerNews | None = None


@dataclass(frozen=True)
class BinCounts:
    """A histogram whose counts were made on the device: `edges` (bins + 1,), `counts` (bins,)."""

    name: str
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class ProbeResult:
    """What an epoch's look at the networks gave: histograms, and single numbers by metric
    (docs/metrics.md).
    """

    histograms: list[BinCounts]
    scores: dict[str, float]


# What the time of a step goes to; see `engines.step_profile`.
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
    """Seconds of profiled steps, and their share (0 to 1), that one kind of work took.

    `network` and `phase` (of the program) are "" where none is known.
    """

    network: str
    category: Category
    seconds: float
    share: float
    phase: str = ""


@dataclass(frozen=True)
class ProfiledSteps:
    """The numbers of steps that ran under the profiler, and where their time went (shares
    that add up to 1).
    """

    numbers: StepNumbers
    shares: tuple[ProfileShare, ...]

    @property
    def news(self) -> WorkerNews | None:
        """What the other workers told meanwhile."""
        return self.numbers.news


@dataclass(frozen=True)
class StepKernels:
    """What a step is made of (docs/metrics.md).

    The last three are None where they were not asked for or XLA compiles nothing.
    """

    operations: int
    kernels_before: int | None
    kernels_after: int | None
    fusions: int | None


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes that the framework holds on the fullest device, now and at most so far."""

    bytes: int
    peak_bytes: int


class Engine(Protocol):
    """One run's networks and optimizers on its devices.

    Built once, used by one thread at a time.
    """

    def told_by_all(self, number: int) -> tuple[int, int]:
        """The lowest and the highest of the numbers that all workers tell each other; each
        must ask at the same time.
        """
        ...

    def updates(self) -> dict[str, int]:
        """How often one step changes each network that it changes at all."""
        ...

    def trace(self) -> None:
        """Builds the graph of the training call without running it."""
        ...

    def kernels(self) -> StepKernels:
        """Counts what `trace` has built; with the option `count_kernels` it compiles once
        more for that.
        """
        ...

    def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
        """Trains `steps` steps; returns when their numbers are on the host.

        Several workers tell each other `stop_wish`.
        """
        ...

    def profile(self, steps: int, stop_wish: bool = False) -> ProfiledSteps:
        """As `run`, under the framework's profiler: slower, so not fit for timing."""
        ...

    def device_memory(self) -> DeviceMemory | None:
        """None where the framework does not know (CPU)."""
        ...

    def mark(self) -> None:
        """Remembers the weights, so that the next `probe` can tell how far they have moved
        since.
        """
        ...

    def probe(self) -> ProbeResult:
        """Histograms and scores on a fixed batch; changes nothing."""
        ...

    def sample(self) -> dict[str, NDArray[Any]]:
        """What the workload shows for its fixed inputs, the same in all runs of it: named
        arrays (64, …).
        """
        ...

    def generate(self, inputs: dict[str, NDArray[Any]], seed: int = 0) -> dict[str, NDArray[Any]]:
        """What the workload shows for any number of inputs, by the names of
        `Workload.fixed_inputs`: named arrays (rows, …).

        `seed`: of the noise of `Workload.show`.
        """
        ...

    def slow_down(self, factor: float) -> None:
        """Multiplies the learning rates of all networks by `factor` from now on; the state
        keeps it.
        """
        ...

    def state(self) -> Arrays:
        """Every weight, optimizer slot and counter by name, as on one device."""
        ...

    def load(self, arrays: Arrays) -> None:
        """Takes up a state written on any number of devices, also in the middle of a training.

        Raises:
            CheckpointError: names or shapes differ; nothing is changed then.
        """
        ...

    def describe(self) -> dict[str, object]:
        """Strategy, devices and versions, for the record."""
        ...
