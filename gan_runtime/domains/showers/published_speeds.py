"""What the authors of 3DGAN measured on GPUs and TPUs, seconds of an epoch with the best of their input pipelines."""

from __future__ import annotations

from gan_runtime.catalog.published import PublishedSpeeds, Speed

SPEEDS = (
    *(
        Speed("V100 GPUs", devices, 96, seconds)
        for devices, seconds in ((2, 1779.3), (4, 899.0), (8, 453.1), (16, 227.6), (32, 115.0), (64, 59.4), (128, 34.9))
    ),
    *(Speed("TPU v2 cores", cores, 128, seconds) for cores, seconds in ((8, 1058.9), (32, 261.3))),
    *(Speed("TPU v3 cores", cores, 128, seconds) for cores, seconds in ((8, 416.3), (32, 103.2))),
)  # fmt: skip
PUBLISHED = PublishedSpeeds(
    source="R. Cardoso, 3DGAN on Google Cloud, tfjobs_runs_reduced.csv (github.com/recardoso/ISC_HPC_3DGAN)",
    setting="Their networks have full size, on 51 × 51 × 25 cells, and each device its own batch, so that the global batch grows with the devices.",
    images=124_987,
    speeds=SPEEDS,
)
