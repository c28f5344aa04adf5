"""The measured cases: workloads, batch sizes and precisions, and their random training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gan_runtime.base.fields import Fields
from gan_runtime.data.contract import Array, ArraySet, Indices, picture_fields
from gan_runtime.domains.flows.fields import HEIGHT, WIDTH, flow_fields
from gan_runtime.domains.showers.entry import AUTHORS_GRID, shower_fields
from gan_runtime.spec import RunSpec

PRECISIONS = ("float32", "mixed_bfloat16")
EPOCH_SHOWERS = 124_987  # of CERN's training set (docs/3dgan.md)
MIN_ROWS = 512


@dataclass(frozen=True)
class Case:
    """One workload at one batch size and precision."""

    workload: str
    batch: int
    precision: str

    @property
    def words(self) -> tuple[str, str, str]:
        """The case on a command line."""
        return self.workload, str(self.batch), self.precision

    @property
    def title(self) -> str:
        """The case in a printed result."""
        return f"{self.workload}, batch {self.batch}, {self.precision}"

    @property
    def steps_per_call(self) -> int:
        """Training steps per host call."""
        return STEPS_PER_CALL[self.workload]

    @property
    def spec(self) -> RunSpec:
        """The options of the JAX engine's run. Raises SpecError."""
        return RunSpec.parse(
            {
                **OPTIONS[self.workload],
                "workload": self.workload,
                "engine": "jax",
                "accelerator": "gpu",
                "precision": self.precision,
                "batch_size_global": self.batch,
                "steps_per_loop": self.steps_per_call,
                "count_kernels": "no",
            }
        )


# 3DGAN with its authors' grid and channels; Pix2Pix with its defaults, small networks and tiles of
# 64 pixels.
OPTIONS: dict[str, dict[str, Any]] = {
    "dcgan_mnist": {"dataset": "mnist"},
    "shower_3dgan": {"dataset": "random", "size": "full"},
    "pix2pix": {"dataset": "random"},
}
STEPS_PER_CALL = {"dcgan_mnist": 50, "shower_3dgan": 4, "pix2pix": 10}
BATCHES = {
    "dcgan_mnist": (64, 256, 1_024, 4_096),
    "shower_3dgan": (64, 256, 1_024, 4_096),
    "pix2pix": (64, 256, 1_024, 4_096),
}


def random_rows(workload: str, batch: int) -> ArraySet:
    """Random rows in the workload's fields, in memory."""
    rows = max(batch, MIN_ROWS)
    if workload == "dcgan_mnist":
        images = np.random.default_rng(1).integers(0, 256, (60_000, 28, 28, 1), np.uint8)
        return _in_memory(picture_fields(images), {"images": images})
    if workload == "shower_3dgan":
        return _random(shower_fields((*AUTHORS_GRID, 1)), rows)
    return _random(flow_fields(HEIGHT, WIDTH), rows)


def _random(fields: Fields, rows: int) -> ArraySet:
    """Rows of numbers in [0, 1). The same 64 repeat, since no timing depends on values."""
    random = np.random.default_rng(1)
    arrays = {}
    for name, field in fields.items():
        first = random.random((64, *field.shape), np.float32).astype(field.dtype)
        arrays[name] = np.resize(first, (rows, *field.shape))
    return _in_memory(fields, arrays)


def _in_memory(fields: Fields, arrays: dict[str, Array]) -> ArraySet:
    return ArraySet("random", fields, arrays, "random numbers")


class EpochOfShowers:
    """A `contract.DataSet` as large as CERN's, streamed from memory; MIN_ROWS rows repeat."""

    def __init__(self) -> None:
        self._rows = random_rows("shower_3dgan", MIN_ROWS)
        self.name, self.origin, self.note = self._rows.name, self._rows.origin, self._rows.note
        self.fields, self.rows, self.held_out = self._rows.fields, EPOCH_SHOWERS, 0
        self.resident = None

    def read(self, indices: Indices) -> dict[str, Array]:
        """The rows at these indices."""
        return self._rows.read(indices % self._rows.rows)

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """Training rows, since none are held out."""
        return self._rows.read_held_out(count, first)
