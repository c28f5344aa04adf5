"""Memory, disk space and time of a run: measured, and estimated before it starts.

Memory of a trainer = framework + weights and optimizer, per worker and per replica + activations
per row. The constants were fitted to the measured trainers of docs/metrics.md, within 3%.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from gan_runtime.base.fields import Fields
from gan_runtime.data import loading
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec

BASE_BYTES = 715e6  # a trainer that has loaded TensorFlow and started its threads
BYTES_PER_WEIGHT = 60  # of a worker; weight, gradient and two Adam slots are 16 of them
BYTES_PER_COPY = 17.5  # of a replica; gradient and slots are 12 of them
CHECKPOINT_BYTES_PER_WEIGHT = 16  # weight, two optimizer slots, moving average
BYTES_PER_ACTIVATION = {"float32": 9.4, "mixed_bfloat16": 2.6, "mixed_float16": 2.6}
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class ProcessMemory:
    """Resident bytes now, and at most since the process started."""

    bytes: int
    peak_bytes: int


def process_memory() -> ProcessMemory:
    """Memory of this process, without its children."""
    now = int(psutil.Process().memory_info().rss)
    return ProcessMemory(now, max(now, _peak_bytes()))


def _peak_bytes() -> int:
    """VmHWM if there is one: getrusage includes the parent process before exec."""
    if STATUS.exists():
        lines = STATUS.read_text(encoding="utf-8").splitlines()
        peaks = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        if peaks:
            return int(peaks[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def estimated_memory_bytes(spec: RunSpec, home: Home | None = None) -> float:
    """Main memory of all processes of a run on the CPU; a rough guide for GPU and TPU."""
    size = spec.entry.size(spec.of_workload, loading.check(spec, home))
    workers = spec.workers * (BASE_BYTES + size.parameters * BYTES_PER_WEIGHT)
    copies = spec.replicas_in_all * size.parameters * BYTES_PER_COPY
    activations = (
        spec.batch_size_global * size.activations_per_row * BYTES_PER_ACTIVATION[spec.precision]
    )
    return workers + copies + activations


def estimated_seconds(spec: RunSpec, images: int, images_per_s: float) -> float:
    """Seconds of pure training at a given rate."""
    return spec.epochs * spec.steps_per_epoch(images) * spec.images_per_step / images_per_s


def checkpoints_bytes(spec: RunSpec, fields: Fields) -> int:
    """Disk space of all checkpoints of a run: the newest ones, the best one, and the one being
    written.
    """
    count = min(spec.keep_checkpoints, spec.epochs) + 2
    parameters = spec.entry.size(spec.of_workload, fields).parameters
    return count * parameters * CHECKPOINT_BYTES_PER_WEIGHT
