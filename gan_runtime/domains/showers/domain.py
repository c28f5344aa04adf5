"""The declarations of showers in a calorimeter, and published figures for comparison, none of which
was measured with this program or on its data.
"""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.catalog.domain import Domain
from gan_runtime.catalog.entries import (
    CompiledEpoch,
    CompiledMachine,
    Preset,
    PublishedScaling,
    Renderer,
)
from gan_runtime.catalog.evaluation import PublishedScore
from gan_runtime.catalog.preparation import HDF5_SUFFIXES, Preparation
from gan_runtime.domains.showers import entry
from gan_runtime.domains.showers.preparation_options import (
    AuthorsOptions,
    CaloChallengeOptions,
    ShowerOptions,
    TinyShowerOptions,
    angles_in_order,
    energies_in_order,
    promised,
)

CHALLENGE = (
    "CaloChallenge, data set 2: 45 × 16 × 9 cells, electrons of 1 GeV to 1 TeV, 100,000 showers"
    " (arXiv:2410.21611)"
)


@dataclass(frozen=True)
class Submission:
    """One model of the CaloChallenge on data set 2, from the organizers' result files.

    `fpd`, `kpd`: times 10³, `fpd_error` likewise; `cpu_single_ms`, `cpu_batch_ms`, `gpu_batch_ms`:
    a shower at batch 1 and 100; None where unpublished.
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


PUBLISHED_SCORES = tuple(
    PublishedScore(score, value, error, submission.name, CHALLENGE)
    for submission in SUBMISSIONS
    for score, value, error in (
        ("challenge_fpd", submission.fpd, submission.fpd_error),
        ("challenge_kpd", submission.kpd, None),
    )
)


@dataclass(frozen=True)
class Convergence:
    """Unweighted losses of the authors' generator on held-out showers, by global batch."""

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

PREPARATIONS = {
    "showers": Preparation(
        "Simulated showers",
        "Electrons in 25 layers of tungsten and silicon, simulated on this machine without files or"
        " network.",
        ShowerOptions,
        maker="gan_runtime.domains.showers.simulation",
        name="showers",
        rules=(energies_in_order, angles_in_order),
        promises=promised,
    ),
    "showers_tiny": Preparation(
        "Simulated showers, small",
        "4,000 showers of 17 × 17 × 25 cells, for two cores. A run that needs them starts the"
        " simulation.",
        TinyShowerOptions,
        maker="gan_runtime.domains.showers.simulation",
        name="showers_tiny",
        rules=(energies_in_order, angles_in_order),
        promises=promised,
    ),
    "showers_hdf5": Preparation(
        "Showers of the 3DGAN's authors",
        "HDF5 files: 51 × 51 × 25 cells, energy and measured angle.",
        AuthorsOptions,
        maker="gan_runtime.domains.showers.file_formats",
        source="an HDF5 file, or a folder of them",
        suffixes=HDF5_SUFFIXES,
        name="showers_hdf5",
    ),
    "calochallenge": Preparation(
        "Showers of the CaloChallenge",
        "HDF5 files of data set 2 or 3: 16 × 9 × 45 or 50 × 18 × 45 voxels, and energy.",
        CaloChallengeOptions,
        maker="gan_runtime.domains.showers.file_formats",
        source="an HDF5 file, or a folder of them",
        suffixes=HDF5_SUFFIXES,
        name="calochallenge",
    ),
}
PRESETS = {
    "showers": Preset(
        title="Showers: CERN's 3DGAN, small enough for two cores",
        summary=(
            "Networks with 4 channels on simulated showers of 17 × 17 × 25 cells. Small batches and"
            " falling rates give showers within minutes (docs/3dgan.md)."
        ),
        values={
            "workload": "shower_3dgan",
            "dataset": "showers_tiny",
            "size": "tiny",
            "replicas": 1,
            "latent_size": 16,
            # with 254 random numbers noise hides the mean shower for a thousand steps
            "angle_gain": 6.0,  # measured angles of the tiny grid differ by 0.17 rad, so now by 1
            "norm_momentum": 0.9,  # otherwise the statistics lag a hundred updates behind G
            "batch_size_global": (
                8
            ),  # nearly as many showers per second as with 64, and eight times the updates
            "epochs": 6,
            "learning_rate_schedule": (
                "cosine_restarts"
            ),  # one cycle, so that the last weights do not oscillate
            "restart_epochs": 6,
            "steps_per_loop": 25,
            "profile_steps": 5,
            "weight_snapshots": "yes",  # for the evaluation, epoch by epoch
        },
    ),
}
SCALING = PublishedScaling(
    who="CERN",
    title="CERN, 3DGAN: seconds per epoch",
    source=(
        "CERN 3DGAN on Google Cloud (Cardoso), seconds per epoch of 124 987 events, best input"
        " pipeline"
    ),
    speeds=entry.SPEEDS,
)
COMPILED_EPOCH = CompiledEpoch(
    what=(
        "CERN's 3DGAN at full size: 51 × 51 × 25 cells, four updates a step with RMSprop. Batch 128"
        " a core on 8 cores, 122 steps an epoch of 124,987 showers. Estimated in mixed bfloat16;"
        " the authors' code sets no precision, so it trained in float32."
    ),
    published=entry.PUBLISHED,
    batch_per_core=128,
    cores=8,
    plain="3DGAN in plain Keras on JAX",
    project="3DGAN of this project",
    machines=(
        CompiledMachine("v2:2x2", "TPU v2-8", "TPU v2 cores"),
        CompiledMachine("v3:2x2", "TPU v3-8", "TPU v3 cores"),
    ),
)
DOMAIN = Domain(
    name="showers",
    title="Showers in a calorimeter",
    workloads={"shower_3dgan": entry.ENTRY},
    preparations=PREPARATIONS,
    renderers={
        "shower_projections": Renderer(
            ("showers",), "gan_runtime.domains.showers.pictures:shower_projections"
        ),
        "shower_slices": Renderer(
            ("showers",), "gan_runtime.domains.showers.pictures:shower_slices"
        ),
    },
    presets=PRESETS,
    evaluations=("gan_runtime.domains.showers.evaluation:PHYSICS",),
    jobs=("gan_runtime.domains.showers.evaluation",),
    first_rows="gan_runtime.domains.showers.pictures:first_rows",
    examples=("showers",),
    compiled_epoch=COMPILED_EPOCH,
    scaling=SCALING,
)
