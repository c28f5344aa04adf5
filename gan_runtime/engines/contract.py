"""What the training loop needs of an engine. The loop knows no workload, the workload no engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class StepNumbers:
    """Per-step numbers of one host call: metric → float32 (steps,). `seconds`: wall time of the call."""

    values: dict[str, NDArray[np.float32]]
    seconds: float


@dataclass(frozen=True)
class BinCounts:
    """A histogram whose counts were made on the device: `edges` (bins + 1,), `counts` (bins,)."""

    name: str
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


class Engine(Protocol):
    """One run's networks and optimizers on its devices. Built once, used by one thread at a time."""

    def trace(self) -> None:
        """Builds the graph of the training call without running it."""
        ...

    def run(self, steps: int) -> StepNumbers:
        """Trains `steps` steps; returns when their numbers are on the host."""
        ...

    def probe(self) -> list[BinCounts]:
        """Score, weight and gradient histograms on a fixed batch; changes nothing."""
        ...

    def sample(self) -> NDArray[np.float32]:
        """Images of the fixed latents: (N, height, width, channels) in [-1, 1]."""
        ...

    def state(self) -> Arrays:
        """Every weight, optimizer slot and counter by name, as on one device."""
        ...

    def load(self, arrays: Arrays) -> None:
        """Takes up a state written on any number of devices. Raises CheckpointError when names or shapes differ."""
        ...

    def describe(self) -> dict[str, object]:
        """Strategy, devices and versions, for the record."""
        ...
