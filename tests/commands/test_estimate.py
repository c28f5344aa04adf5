"""The estimates of the Launch page, compared with measurements of real trainers."""

from __future__ import annotations

import pytest

from gan_runtime.spec import RunSpec
from gan_runtime.training import watch

# Peak resident memory of trainers in 10^6 bytes: AMD EPYC (Intel Xeon for float32), 2 cores,
# TensorFlow 2.21; the command is in docs/metrics.md.
MEASURED_MB = [
    ({"workload": "mlp_gan", "batch_size_global": 64}, 731),
    ({"batch_size_global": 32}, 918),
    ({"batch_size_global": 256}, 976),
    ({"batch_size_global": 512}, 1_084),
    ({"batch_size_global": 1_024}, 1_254),
    ({"batch_size_global": 512, "precision": "mixed_float16"}, 1_097),
    ({"batch_size_global": 64, "precision": "float32"}, 1_004),
    ({"batch_size_global": 256, "precision": "float32"}, 1_288),
    ({"batch_size_global": 512, "precision": "float32"}, 1_588),
    ({"batch_size_global": 1_024, "precision": "float32"}, 2_090),
    ({"batch_size_global": 64, "replicas": 2}, 1_003),
    ({"batch_size_global": 256, "replicas": 2}, 1_056),
    ({"batch_size_global": 256, "replicas": 8}, 1_304),
]


@pytest.mark.parametrize(("options", "measured_mb"), MEASURED_MB)
def test_the_memory_estimate_is_within_5_percent_of_measurements(
    options: dict[str, object], measured_mb: int
) -> None:
    assert watch.estimated_memory_bytes(RunSpec.parse(options)) / 1e6 == pytest.approx(
        measured_mb, rel=0.05
    )


def test_the_time_estimate_counts_full_batches_only() -> None:
    spec = RunSpec.parse({"batch_size_global": 64, "epochs": 3})
    # 1,797 images give 28 full batches of 64: 3 · 28 · 64 = 5,376 images.
    assert watch.estimated_seconds(spec, images=1_797, images_per_s=537.6) == pytest.approx(10.0)
