"""What is measured: workloads, batch sizes and precisions, and the rows that a side trains on."""

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
LEAST_ROWS = 512


@dataclass(frozen=True)
class Case:
    """One workload at one batch size and precision."""

    workload: str
    batch: int
    precision: str

    @property
    def steps_per_call(self) -> int:
        """Between two looks of the host."""
        return STEPS_PER_CALL[self.workload]

    @property
    def spec(self) -> RunSpec:
        """The run of the JAX engine. Raises SpecError."""
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


# 3DGAN on the grid and with the channels of its authors; Pix2Pix with the small networks and
# tiles of 64 pixels, the defaults.
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
    rows = max(batch, LEAST_ROWS)
    if workload == "dcgan_mnist":
        images = np.random.default_rng(1).integers(0, 256, (60_000, 28, 28, 1), np.uint8)
        return _in_memory(picture_fields(images), {"images": images})
    if workload == "shower_3dgan":
        return _random(shower_fields((*AUTHORS_GRID, 1)), rows)
    return _random(flow_fields(HEIGHT, WIDTH), rows)


def _random(fields: Fields, rows: int) -> ArraySet:
    """Numbers from 0 to 1. The same 64 rows repeat: no timing depends on them."""
    random = np.random.default_rng(1)
    arrays = {}
    for name, field in fields.items():
        first = random.random((64, *field.shape), np.float32).astype(field.dtype)
        arrays[name] = np.resize(first, (rows, *field.shape))
    return _in_memory(fields, arrays)


def _in_memory(fields: Fields, arrays: dict[str, Array]) -> ArraySet:
    return ArraySet("random", fields, arrays, "random numbers")


class EpochOfShowers:
    """As `contract.DataSet`: CERN's number of showers, streamed from memory. A few rows repeat."""

    def __init__(self) -> None:
        self._few = random_rows("shower_3dgan", LEAST_ROWS)
        self.name, self.origin, self.note = self._few.name, self._few.origin, self._few.note
        self.fields, self.rows, self.held_out = self._few.fields, EPOCH_SHOWERS, 0
        self.resident = None

    def read(self, indices: Indices) -> dict[str, Array]:
        """The rows with these numbers."""
        return self._few.read(indices % self._few.rows)

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """Rows to train on: none are held out."""
        return self._few.read_held_out(count, first)
