"""What a run will need, estimated before it starts.

Estimates, named as such wherever they are shown.

Memory of a trainer = a loaded framework + weights with all that goes with them, once and for each
replica + activations of each image. The constants were fitted to the measured trainers of
docs/metrics.md, which they meet within 3 %.
"""

from __future__ import annotations

from gan_runtime.base.fields import Fields
from gan_runtime.data import loading
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec

BASE_BYTES = 715e6  # a trainer that has loaded TensorFlow and made its threads
BYTES_PER_WEIGHT = 60  # of a worker: the weight, its gradient and two Adam slots are 16 of them
# of each replica: its own gradient and slots are 12; that of the weights themselves is shared
BYTES_PER_COPY = 17.5
CHECKPOINT_BYTES_PER_WEIGHT = (
    16  # the weight, two slots of its optimizer, and a moving average where there is one
)
BYTES_PER_ACTIVATION = {"float32": 9.4, "mixed_bfloat16": 2.6, "mixed_float16": 2.6}


def memory_bytes(spec: RunSpec, home: Home | None = None) -> float:
    """Bytes of main memory of all processes of a run on the CPU.

    For GPU and TPU a rough guide only: not measured there.
    """
    size = spec.entry.size(spec.of_workload, loading.check(spec, home))
    once = BASE_BYTES + size.parameters * BYTES_PER_WEIGHT
    copies = spec.replicas_in_all * size.parameters * BYTES_PER_COPY
    activations = (
        spec.batch_size_global * size.activations_per_row * BYTES_PER_ACTIVATION[spec.precision]
    )
    return spec.workers * once + copies + activations


def training_seconds(spec: RunSpec, images: int, images_per_s: float) -> float:
    """Seconds of pure training at a given rate."""
    return spec.epochs * spec.steps_per_epoch(images) * spec.images_per_step / images_per_s


def checkpoints_bytes(spec: RunSpec, fields: Fields) -> int:
    """Bytes on the disk of all checkpoints that a run keeps: the newest ones, the best one,
    and the one that is being written.
    """
    kept = min(spec.keep_checkpoints, spec.epochs) + 2
    return kept * spec.entry.size(spec.of_workload, fields).parameters * CHECKPOINT_BYTES_PER_WEIGHT
