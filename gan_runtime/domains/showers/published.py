"""Numbers that others have published, for comparison.

None of them was measured with this program or on its data.
"""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.catalog.entries import (
    CompiledEpoch,
    CompiledMachine,
    PublishedScaling,
    PublishedSpeeds,
    Speed,
)
from gan_runtime.catalog.evaluation import PublishedScore

CHALLENGE = (
    "CaloChallenge, data set 2: 45 × 16 × 9 cells, electrons of 1 GeV to 1 TeV, 100,000 showers"
    " (arXiv:2410.21611)"
)


@dataclass(frozen=True)
class Submission:
    """One model of the CaloChallenge on data set 2, from the organisers' result files.

    `fpd`, `kpd`: times 10³, `fpd_error` likewise; `cpu_single_ms`, `cpu_batch_ms`, `gpu_batch_ms`:
    a shower at batch 1 and 100; None where nothing is told.
    """

    name: str
    kind: str
    parameters: int | None
    fpd: float
    fpd_error: float
    kpd: float
    cpu_single_ms: float | None = None
    cpu_batch_ms: float | None = None
    gpu_batch_ms: float | None = None


SUBMISSIONS = (
    Submission("Geant4 against itself", "simulation", None, 10.8, 0.8, -0.03),
    Submission(
        "CaloDREAM",
        "flow matching, the most exact",
        28_400_000,
        24.6,
        1.0,
        0.02,
        16_942.0,
        5_052.0,
        74.0,
    ),
    Submission("DeepTree", "GAN, the most exact GAN", 530_000, 292.6, 2.9, 0.68, 68.0, 38.0, 5.8),
    Submission("MDMA", "GAN", 66_000, 865.0, 5.0, 4.96, 14.0, 20.0, 1.2),
    Submission(
        "CaloVAE+INN", "the fastest on a processor", 48_400_000, 5_443.0, 27.0, 45.6, 64.0, 4.6, 1.2
    ),
)


SCORES = tuple(
    PublishedScore(score, value, error, submission.name, CHALLENGE)
    for submission in SUBMISSIONS
    for score, value, error in (
        ("challenge_fpd", submission.fpd, submission.fpd_error),
        ("challenge_kpd", submission.kpd, None),
    )
)


@dataclass(frozen=True)
class Convergence:
    """Losses of the authors' generator on held-out showers, unweighted: what a larger global
    batch costs.
    """

    run: str
    batch_size_global: int
    epoch: int
    energy_percent: float
    angle_rad: float
    deposit_percent: float


CONVERGENCE = (
    Convergence("32 V100, batch 32 each", 1_024, 20, 7.8, 0.041, 11.6),
    Convergence("32 V100, batch 32 each", 1_024, 60, 6.1, 0.022, 8.3),
    Convergence("128 V100, batch 96 each", 12_288, 20, 25.3, 0.201, 15.5),
    Convergence("128 V100, batch 96 each", 12_288, 60, 116.0, 0.120, 26.1),
    Convergence("128 V100, batch 96 each", 12_288, 120, 6.7, 0.072, 11.0),
)

# What the authors of 3DGAN measured on GPUs and TPUs: seconds of an epoch with the best of their
# input pipelines.
SPEEDS = (
    *(
        Speed("V100 GPUs", devices, 96, seconds)
        for devices, seconds in (
            (2, 1779.3),
            (4, 899.0),
            (8, 453.1),
            (16, 227.6),
            (32, 115.0),
            (64, 59.4),
            (128, 34.9),
        )
    ),
    *(Speed("TPU v2 cores", cores, 128, seconds) for cores, seconds in ((8, 1058.9), (32, 261.3))),
    *(Speed("TPU v3 cores", cores, 128, seconds) for cores, seconds in ((8, 416.3), (32, 103.2))),
)
PUBLISHED = PublishedSpeeds(
    source=(
        "R. Cardoso, 3DGAN on Google Cloud, tfjobs_runs_reduced.csv"
        " (github.com/recardoso/ISC_HPC_3DGAN)"
    ),
    setting=(
        "Their networks have full size, on 51 × 51 × 25 cells, and each device its own batch, so"
        " that the global batch grows with the devices."
    ),
    images=124_987,
    speeds=SPEEDS,
)
SCALING = PublishedScaling(
    who="CERN",
    title="CERN, 3DGAN: seconds per epoch",
    source=(
        "CERN 3DGAN on Google Cloud (Cardoso), seconds per epoch of 124 987 events, best input"
        " pipeline"
    ),
    speeds=SPEEDS,
)
COMPILED_EPOCH = CompiledEpoch(
    what=(
        "CERN's 3DGAN at full size: 51 × 51 × 25 cells, four updates a step with RMSprop, mixed"
        " bfloat16, batch 128 a core on 8 cores, 122 steps an epoch of 124,987 showers."
    ),
    published=PUBLISHED,
    batch_per_core=128,
    cores=8,
    plain="3DGAN in plain Keras on JAX",
    own="3DGAN of this project",
    machines=(
        CompiledMachine("v2:2x2", "TPU v2-8", "TPU v2 cores"),
        CompiledMachine("v3:2x2", "TPU v3-8", "TPU v3 cores"),
    ),
)
