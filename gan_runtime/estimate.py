"""What a run will need, estimated before it starts. Estimates, named as such wherever they are shown.

Memory of a trainer = a loaded framework + weights of each replica with all that goes with them + activations of each
image. The three constants were fitted to the measured trainers of docs/metrics.md, which they meet within 6 %.
"""

from __future__ import annotations

from gan_runtime import catalog
from gan_runtime.spec import RunSpec

BASE_BYTES = 820e6  # a trainer that has loaded TensorFlow and made its threads
BYTES_PER_WEIGHT = 38  # weight, gradient and two Adam slots are 16; the rest are reduced gradients and re-laid kernels
BYTES_PER_ACTIVATION = 4  # also in mixed precision: what is saved there goes into casts


def memory_bytes(spec: RunSpec) -> float:
    """Bytes of main memory of all processes of a run on the CPU. For GPU and TPU a rough guide only: not measured there."""
    entry = catalog.WORKLOADS[spec.workload]
    weights = spec.replicas_in_all * entry.parameters * BYTES_PER_WEIGHT
    return spec.workers * BASE_BYTES + weights + spec.batch_size_global * entry.activations_per_image * BYTES_PER_ACTIVATION


def training_seconds(spec: RunSpec, images: int, images_per_s: float) -> float:
    """Seconds of pure training at a given rate."""
    return spec.epochs * spec.steps_per_epoch(images) * spec.batch_size_global / images_per_s
