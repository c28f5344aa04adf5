"""An engine of 64 numbers. Every step depends on all earlier ones, so a lost or repeated step
changes the state.
"""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.cluster import Members, WorkerRank
from gan_runtime.engines.contract import (
    Arrays,
    BinCounts,
    DeviceMemory,
    ProbeResult,
    ProfiledSteps,
    StepKernels,
    StepNumbers,
    WorkerSeconds,
    WorkerStatus,
)

PACE_VARIABLE = "GAN_FAULTS_PACE"  # seconds per host call
IMAGES = 40  # rows of the data set, which is never read
SIZE = 64
MEETING_SECONDS = 20.0  # for all workers to start


class Exchange:
    """The exchange between several workers, through the first of them."""

    def __init__(self, place: WorkerRank) -> None:
        self._others: list[Connection[Any, Any]] = []
        self._first: Connection[Any, Any] | None = None
        if place.workers == 1:
            return
        host, port = Members.in_tf_config().addresses[0].rsplit(":", 1)
        if place.rank == 0:
            with Listener((host, int(port))) as listener:
                self._others = [listener.accept() for _ in range(place.workers - 1)]
        else:
            self._first = _connected((host, int(port)))

    def all(self, number: int) -> list[int]:
        """The numbers of all workers; each of them must call this.

        Raises EOFError or OSError if one has exited.
        """
        if self._first is not None:
            self._first.send(number)
            answer: list[int] = self._first.recv()
            return answer
        numbers = [number, *(other.recv() for other in self._others)]
        for other in self._others:
            other.send(numbers)
        return numbers


def _connected(address: tuple[str, int]) -> Connection[Any, Any]:
    deadline = time.monotonic() + MEETING_SECONDS
    while True:
        try:
            return Client(address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class ToyEngine:
    """Implements `engines.contract.Engine`. Its state does not depend on the number of workers."""

    def __init__(self, place: WorkerRank) -> None:
        self._exchange, self._workers = Exchange(place), place.workers
        self._step, self._weights = 0, np.linspace(-1.0, 1.0, SIZE)
        self._pace_s = float(os.environ.get(PACE_VARIABLE, "0.01"))

    def worker_extremes(self, number: int) -> tuple[int, int]:
        """See Engine."""
        numbers = self._exchange.all(number)
        return min(numbers), max(numbers)

    def updates(self) -> dict[str, int]:
        """See Engine."""
        return {"generator": 1, "discriminator": 1}

    def trace(self) -> None:
        """Builds nothing."""

    def kernels(self) -> StepKernels:
        """No kernels."""
        return StepKernels(0, None, None, 0)

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """See Engine."""
        time.sleep(self._pace_s)
        agreed = any(self._exchange.all(int(stop_requested)))
        losses = [self._stepped() for _ in range(steps)]
        values = {
            "loss_generator": np.array(losses, np.float32),
            "loss_discriminator": np.array(losses, np.float32) * 2,
        }
        seconds = WorkerSeconds(self._pace_s, 0.0, (self._pace_s,) * self._workers)
        return StepNumbers(
            values, steps * 0.01, None if self._workers == 1 else WorkerStatus(agreed, seconds)
        )

    def _stepped(self) -> float:
        self._step += 1
        self._weights = (
            np.roll(self._weights, 1) * 0.999 + np.sin(self._step * self._weights) * 0.01
        )
        return float(np.abs(self._weights).mean())

    def profile(self, steps: int, stop_requested: bool = False) -> ProfiledSteps:
        """Without time shares."""
        return ProfiledSteps(self.run(steps, stop_requested), ())

    def device_memory(self) -> DeviceMemory | None:
        """Unknown."""
        return None

    def mark(self) -> None:
        """Stores nothing: the probe compares nothing with it."""

    def probe(self) -> ProbeResult:
        """One histogram, and the scores that select the best checkpoint."""
        counts, edges = np.histogram(self._weights, bins=8)
        scores = {
            "probe_score_real": 0.6,
            "probe_score_fake": 0.4,
            "spread_real": 0.2,
            "spread_fake": 0.19,
        }
        return ProbeResult(
            [BinCounts("score/real", edges, counts.astype(np.int64))],
            scores | {"probe_score_fake": 0.4 + 0.01 * float(np.sin(self._step))},
        )

    def sample(self) -> dict[str, NDArray[Any]]:
        """Gray images."""
        shade = float(np.tanh(self._weights.mean()))
        return {"images": np.full((64, 28, 28, 1), shade, np.float32)}

    def generate(self, inputs: dict[str, NDArray[Any]], seed: int = 0) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        """Like `sample`, with a row for each input."""
        rows = len(next(iter(inputs.values())))
        return {name: array[:1].repeat(rows, axis=0) for name, array in self.sample().items()}

    def slow_down(self, factor: float) -> None:
        """Does nothing: there are no learning rates."""

    def state(self) -> Arrays:
        """See Engine."""
        return {"step": np.asarray(self._step, np.int64), "weights": self._weights.copy()}

    def load(self, arrays: Arrays) -> None:
        """See Engine."""
        self._step, self._weights = int(arrays["step"]), np.array(arrays["weights"], np.float64)

    def describe(self) -> dict[str, object]:
        """See Engine."""
        return {"strategy": "toy", "device_kind": "none"}
