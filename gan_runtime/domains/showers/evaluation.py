"""The evaluation `physics`: its options, when a run has none, and how it is declared.

Loads no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gan_runtime.base.errors import DatasetError, JobError
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation, PublishedScore
from gan_runtime.data import loading
from gan_runtime.domains.showers.fields import ENERGY, SHOWERS
from gan_runtime.domains.showers.score_metrics import METRICS, SCORES, ShowerScore, value_words
from gan_runtime.evaluation.catalog import Grid, Report
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.training import checkpoints

NAME = "physics"
Measured = Literal["newest", "best", "every"]
WritesSubmission = Literal["no", "yes"]
MAKES_NO_SHOWERS = (
    f"This run makes no showers: its data set has no field {SHOWERS}. Pick a run that has."
)
SUBMISSION_FILE = "submission.hdf5"  # among the results of a job that was asked for it


class PhysicsOptions(OptionRecord):
    """What is measured, and how many showers are compared."""

    checkpoint: Measured = option(
        "best",
        label="Checkpoint",
        choices=get_args(Measured),
        help="Which of the run's; 'every': the weights after each epoch, where they were kept.",
        error="use newest, best or every.",
    )
    showers: int = option(
        1_000,
        label="Showers",
        ge=100,
        le=10_000,
        help="How many are compared.",
        error="use about 1000.",
    )
    seed: int = option(
        0,
        label="Seed",
        ge=0,
        le=2**32 - 1,
        help="The same seed gives the same showers.",
        error="use any whole number, such as 0.",
    )
    submission: WritesSubmission = option(
        "no",
        label="Submission",
        choices=get_args(WritesSubmission),
        help=(
            "Also write the generated showers of the last checkpoint as a submission to the"
            " CaloChallenge (HDF5)."
        ),
        error="use yes or no.",
    )


def applies(_entry: WorkloadEntry, _options: Options, fields: Fields) -> str:
    """To workloads that read showers and the energies that they come from."""
    if SHOWERS in fields and ENERGY in fields:
        return ""
    return MAKES_NO_SHOWERS


def usual(_home: Home, run: RunDir) -> dict[str, str]:
    """The best checkpoint, where there is one."""
    return {"checkpoint": "best" if "best" in checkpoints.steps(run.checkpoints) else "newest"}


def check(home: Home, run: RunDir, options: PhysicsOptions) -> None:
    """Raises DatasetError when the run's showers are on no grid of the CaloChallenge, for a
    submission.
    """
    if options.submission == "no":
        return
    from gan_runtime.domains.showers.calochallenge import GEOMETRIES  # loads h5py

    grid, known = (
        read_fields(home, run)[SHOWERS].shape[:3],
        [geometry.shape for geometry in GEOMETRIES],
    )
    if grid not in known:
        own, *others = (" × ".join(map(str, shape)) for shape in (grid, *known))
        raise DatasetError(
            f"showers of run {run.run_id} have {own} cells, but a submission to the CaloChallenge"
            f" has {' or '.join(others)}: leave it out, or train on one of its data sets."
        )


def read_fields(home: Home, run: RunDir) -> Fields:
    """The fields that a run's workload reads.

    Raises SpecError, DatasetError where they are not known.
    """
    spec = run.spec()
    return spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home))


# ---- published

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

PHYSICS = Evaluation(
    name=NAME,
    title="Generated showers against held-out ones",
    summary="Scores and distributions of generated showers against held-out ones of the data set.",
    verb="Measure showers",
    options=PhysicsOptions,
    applies=applies,
    usual=usual,
    check=check,
    scores=METRICS,
    published=PUBLISHED_SCORES,
    work="gan_runtime.domains.showers.measurement:measure",
    aliases=("physics",),
    report="gan_runtime.domains.showers.evaluation:report",
    files={"submission": SUBMISSION_FILE},
    earlier_jobs=("measure_physics",),
    busy="the showers of run {run_id} are being measured",
    environment=ON_THE_CPU,
)


# ---- report --------------------------------------------------------------------------------------

COLUMNS = ("Score", "Generated", "Real ones among themselves")


def report(_home: Home, run: RunDir, result: Mapping[str, Any]) -> Report:
    """Of the last checkpoint, where several were measured.

    Raises JobError when nothing was measured.
    """
    measured = answers_of(run, NAME)
    if not measured:
        raise JobError(
            f"the job has written no measurement of run {run.run_id}: look into its log."
        )
    last = measured[-1]
    known = {score.name: score for score in SCORES}
    rows = [_row(known[score.name], score, last) for score in last.scores if score.name in known]
    sentence = (
        f"{run.run_id} after epoch {last.epoch} ({last.checkpoint}), {last.facts['showers']:,}"
        " showers:"
    )
    fields = {"name", "value", "error", "floor", "floor_error"}
    scores = [score.model_dump(include=fields) for score in last.scores]
    return Report(
        {"run_id": run.run_id, **result, "scores": scores}, [sentence, Grid(COLUMNS, rows)]
    )


def _row(score: ShowerScore, value: Score, measured: Answer) -> tuple[str, str, str]:
    sides = ((value.value, value.error), (value.floor, value.floor_error))
    showers, layers = measured.facts["showers"], measured.facts["grid"][2]
    generated, real = (value_words(score, *side, showers, layers) for side in sides)
    return score.title, generated, real
