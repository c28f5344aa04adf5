"""What the training loop needs of an engine. The loop knows no workload, the workload no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import CheckpointError

Arrays = dict[str, NDArray[np.generic]]  # of a state, by their names in a checkpoint
RATE_FACTOR = "rate_factor"  # name of the factor by which alarms have lowered the learning rates
AVERAGE = "average"  # owner of a moving average's arrays in a checkpoint


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
class WorkerStatus:
    """What a worker learns of all workers in a call.

    `stop_agreed`: one of them had a stop request when the call began, and all know of it.
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


# What the time of a step goes to (step_profile.py).
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

    `network`, `phase` (of the program): "" where not known.
    """

    network: str
    category: Category
    seconds: float
    share: float
    phase: str = ""


@dataclass(frozen=True)
class ProfiledSteps:
    """The numbers of steps under the profiler, and where their time went: shares that sum to 1."""

    numbers: StepNumbers
    shares: tuple[ProfileShare, ...]

    @property
    def worker_status(self) -> WorkerStatus | None:
        """As in `StepNumbers`."""
        return self.numbers.worker_status


@dataclass(frozen=True)
class StepKernels:
    """What a step is made of (docs/metrics.md).

    The last three are None where no option asks for them or XLA compiles nothing.
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

    def worker_extremes(self, number: int) -> tuple[int, int]:
        """Lowest and highest `number` of all workers, which must call this at the same time."""
        ...

    def updates(self) -> dict[str, int]:
        """Updates per step of each network that a step changes."""
        ...

    def trace(self) -> None:
        """Builds the graph of the training call without running it."""
        ...

    def kernels(self) -> StepKernels:
        """Counts what `trace` has built; the option `count_kernels` compiles it once more."""
        ...

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """Trains `steps` steps; returns when their numbers are on the host.

        `stop_requested`: a stop request of this worker, which all workers learn of.
        """
        ...

    def profile(self, steps: int, stop_requested: bool = False) -> ProfiledSteps:
        """As `run`, under the framework's profiler: slower, so not fit for timing."""
        ...

    def device_memory(self) -> DeviceMemory | None:
        """None where the framework does not know (CPU)."""
        ...

    def mark(self) -> None:
        """Remembers the weights: the next `probe` reports how far they have moved."""
        ...

    def probe(self) -> ProbeResult:
        """Histograms and scores on a fixed batch; changes nothing."""
        ...

    def sample(self) -> dict[str, NDArray[Any]]:
        """The workload's output for its fixed inputs, equal in all its runs: arrays (64, …)."""
        ...

    def generate(self, inputs: dict[str, NDArray[Any]], seed: int = 0) -> dict[str, NDArray[Any]]:
        """The workload's output for any number of inputs: named arrays (rows, …).

        `inputs`: by the names of `Workload.fixed_inputs`. `seed`: of the noise of `Workload.show`.
        """
        ...

    def slow_down(self, factor: float) -> None:
        """Multiplies all learning rates by `factor` from now on; part of the state."""
        ...

    def state(self) -> Arrays:
        """Every weight, optimizer slot and counter by name, as on one device."""
        ...

    def load(self, arrays: Arrays) -> None:
        """Continues from a state of any number of devices, also in the middle of a training.

        Raises:
            CheckpointError: names or shapes differ; nothing is changed then.
        """
        ...

    def describe(self) -> dict[str, object]:
        """Strategy, devices and versions, for the record."""
        ...


def check_fit(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises CheckpointError when names or shapes differ from `shapes`, those of the run."""
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
