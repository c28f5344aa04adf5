"""What a run will need, estimated before it starts. Estimates, named as such wherever they are shown.

Memory of a trainer = a loaded framework + per replica (weights, gradients, two Adam slots: 16 bytes a weight)
+ per image what the backward pass keeps. docs/metrics.md has the measured figures that BASE and COPIES come from.
"""

from __future__ import annotations

from gan_runtime import catalog
from gan_runtime.spec import RunSpec

BASE_BYTES = 750e6  # a trainer that has loaded TensorFlow and made its threads
BYTES_PER_WEIGHT = 16
COPIES = 6.0  # activations, their gradients, dropout masks and the allocator's slack


def memory_bytes(spec: RunSpec) -> float:
    """Bytes of main memory (CPU) or of framework and devices together (GPU, TPU) for the whole run."""
    entry = catalog.WORKLOADS[spec.workload]
    weights = spec.replicas * entry.parameters * BYTES_PER_WEIGHT
    bytes_per_number = 4 if spec.precision == "float32" else 2
    images = spec.batch_size_global * entry.activations_per_image * bytes_per_number * COPIES
    return BASE_BYTES + weights + images


def training_seconds(spec: RunSpec, images: int, images_per_s: float) -> float:
    """Seconds of pure training at a given rate."""
    return spec.epochs * spec.steps_per_epoch(images) * spec.batch_size_global / images_per_s
