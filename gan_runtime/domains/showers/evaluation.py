"""Requests about the showers of a run: the evaluation `physics`, and the job that generates showers
of one energy and angle. Options, conditions, declarations and results; loads no framework.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from gan_runtime.base.errors import (
    DatasetError,
    FieldError,
    GanRuntimeError,
    JobError,
    SpecError,
)
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.data import loading
from gan_runtime.domains.showers.domain import PUBLISHED_SCORES
from gan_runtime.domains.showers.entry import ANGLE, ANGLES_DEG, ENERGIES_GEV, ENERGY, SHOWERS
from gan_runtime.domains.showers.facts import FACTS
from gan_runtime.domains.showers.score_metrics import METRICS, SCORES, ShowerScore, value_words
from gan_runtime.evaluation.catalog import EvaluationReport, TextTable
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.image_job import checkpoints_of
from gan_runtime.jobs.job import ON_THE_CPU, Job
from gan_runtime.records.answer import Answer, ArrayFile, Curve, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Which

NAME = "physics"
Weights = Literal["newest", "best", "every"]
YesNo = Literal["no", "yes"]
MAKES_NO_SHOWERS = (
    f"This run generates no showers: its data set has no field {SHOWERS}. Pick a run that has."
)
SUBMISSION_FILE = "submission.hdf5"  # among the results of its job


class PhysicsOptions(OptionRecord):
    """The checkpoint, and the number of compared showers."""

    checkpoint: Weights = option(
        "best",
        label="Checkpoint",
        choices=get_args(Weights),
        help="Checkpoint of the run to measure; 'every': the stored weights of each epoch.",
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
    submission: YesNo = option(
        "no",
        label="Submission",
        choices=get_args(YesNo),
        help=(
            "Also write the generated showers of the last checkpoint as a submission to the"
            " CaloChallenge (HDF5)."
        ),
        error="use yes or no.",
    )


def applies(_entry: WorkloadEntry, _options: Options, fields: Fields) -> str:
    """Applies to workloads that read showers and their incident energies."""
    return "" if SHOWERS in fields and ENERGY in fields else MAKES_NO_SHOWERS


def usual(_home: Home, run: RunDir) -> dict[str, str]:
    """Default options of a run: the best checkpoint if it has one."""
    return {"checkpoint": "best" if "best" in checkpoints.steps(run.checkpoints) else "newest"}


def check(home: Home, run: RunDir, options: PhysicsOptions) -> None:
    """Raises DatasetError for a submission of showers on another grid than the CaloChallenge's."""
    if options.submission == "no":
        return
    from gan_runtime.domains.showers.file_formats import GEOMETRIES  # loads h5py

    grid = read_fields(home, run)[SHOWERS].shape[:3]
    allowed = [geometry.shape for geometry in GEOMETRIES]
    if grid not in allowed:
        shape_text, *allowed_shapes = (" × ".join(map(str, shape)) for shape in (grid, *allowed))
        raise DatasetError(
            f"showers of run {run.run_id} have {shape_text} cells, but a submission to the"
            f" CaloChallenge has {' or '.join(allowed_shapes)}: leave it out, or train on one of"
            " its data sets."
        )


def read_fields(home: Home, run: RunDir) -> Fields:
    """The fields that a run's workload reads.

    Raises SpecError, DatasetError where they are unknown.
    """
    spec = run.spec()
    return loading.fields_read(spec, home)


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
    facts=FACTS,
    page="dashboard.domains.showers.page:PAGE",
    work="gan_runtime.domains.showers.measurement:measure",
    report="gan_runtime.domains.showers.evaluation:report",
    files={"submission": SUBMISSION_FILE},
    earlier_jobs=("measure_physics",),
    busy="the showers of run {run_id} are being measured",
    environment=ON_THE_CPU,
)
COLUMNS = ("Score", "Generated", "Simulated, among themselves")


def report(_home: Home, run: RunDir, result: Mapping[str, Any]) -> EvaluationReport:
    """The report of the last measured checkpoint. Raises JobError if nothing was measured."""
    answers = answers_of(run, NAME)
    if not answers:
        raise JobError(f"the job stored no measurement of run {run.run_id}. Check its log.")
    last = answers[-1]
    by_name = {score.name: score for score in SCORES}
    rows = [
        _row(by_name[score.name], score, last) for score in last.scores if score.name in by_name
    ]
    sentence = (
        f"{run.run_id} after epoch {last.epoch} ({last.checkpoint}), {last.facts['showers']:,}"
        " showers:"
    )
    fields = {"name", "value", "error", "floor", "floor_error"}
    scores = [score.model_dump(include=fields) for score in last.scores]
    return EvaluationReport(
        {"run_id": run.run_id, **result, "scores": scores}, [sentence, TextTable(COLUMNS, rows)]
    )


def _row(score: ShowerScore, value: Score, answer: Answer) -> tuple[str, str, str]:
    sides = ((value.value, value.error), (value.floor, value.floor_error))
    showers, layers = answer.facts["showers"], answer.facts["grid"][2]
    generated, floor = (value_words(score, *side, showers, layers) for side in sides)
    return score.title, generated, floor


# ---- showers of one energy -----------------------------------------------------------------------

MAKE = "make_showers"
RESULT_FILE = "showers.json"  # among the results of its job
COUNTS = (2, 1_000)  # allowed range
MOST_CELLS = 10_000_000  # limit of a grid for the memory of a page


@dataclass(frozen=True)
class SingleEnergyOptions:
    """`angle_deg`: as measured on showers, the label that networks know, 90 for perpendicular
    incidence; None for a data set without angles. `showers`: how many on each side.
    """

    run_id: str
    energy_gev: float
    angle_deg: float | None = 90.0
    checkpoint: Which = "newest"
    showers: int = 100
    seed: int = 0


class SingleEnergyResult(BaseModel):
    """Generated and other showers of one energy (GeV) and angle (measured, rad; None without).

    `simulated`: whether the other showers were simulated for the job, or are the nearest held-out
    ones. `step`: of the checkpoint; `response`: visible over incident energy by side, and
    `measured`: their mean angles, rad. `curves`, `pictures`: as in an answer.
    """

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    energy_gev: float
    angle: float | None
    simulated: bool
    step: int
    showers: int
    grid: tuple[int, int, int]
    response: dict[str, float]
    measured: dict[str, float] | None
    curves: list[Curve]
    pictures: list[ArrayFile]

    @model_validator(mode="after")
    def _cells_of_the_grid(self) -> Self:
        if math.prod(self.grid) > MOST_CELLS or any(
            cell >= math.prod(self.grid) for picture in self.pictures for cell in picture.places
        ):
            raise ValueError(f"showers must be in a grid of at most {MOST_CELLS:,} cells")
        return self


def check_single_energy(home: Home, options: SingleEnergyOptions) -> None:
    """Refuses impossible requests.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: energy, angle or number of showers is out of range, or the run's options are
            unreadable.
        CheckpointError: the run has no such checkpoint.
        DatasetError: the run generates no showers, or its data set is deleted or was replaced.
    """
    _check_range("energy_gev", options.energy_gev, *ENERGIES_GEV)
    _check_range("showers", options.showers, *COUNTS)
    if options.angle_deg is not None:
        _check_range("angle_deg", options.angle_deg, *ANGLES_DEG)
    run = home.run_dir(options.run_id)
    if not makes_showers(home, run):
        raise DatasetError(MAKES_NO_SHOWERS)
    inference.check_state(run, options.checkpoint, "generate from")
    inference.check_data(run, home)


JOBS = (
    Job(
        MAKE,
        "Generate showers of one energy",
        "gan_runtime.domains.showers.measurement:make",
        options=SingleEnergyOptions,
        check=check_single_energy,
        same=("run_id",),
        busy="showers of run {run_id} are being generated",
        environment=ON_THE_CPU,
    ),
)


def newest_job(home: Home, run_id: str) -> JobSnapshot | None:
    """The newest uncancelled job for showers of one energy of a run."""
    return job_queue.newest(home, MAKE, also_cancelled=False, run_id=run_id)


def finished_job(home: Home, options: SingleEnergyOptions) -> JobSnapshot | None:
    """A finished job with the same options and checkpoint whose result exists; None without one."""
    step = checkpoints_of(home, options.run_id).get(options.checkpoint)
    return next(
        (
            job
            for job in job_queue.snapshots(home, MAKE)
            if job.request.options == asdict(options)
            and job.end is not None
            and job.end.result.get("step") == step
            and (job.job.results / RESULT_FILE).exists()
        ),
        None,
    )


def knows_angles(home: Home, run: RunDir) -> bool:
    """Whether a run's networks take an angle."""
    return ANGLE in _fields_or_none(home, run)


def makes_showers(home: Home, run: RunDir) -> bool:
    """Whether a run's workload reads showers and their incident energies."""
    return {SHOWERS, ENERGY} <= _fields_or_none(home, run).keys()


def _fields_or_none(home: Home, run: RunDir) -> Fields:
    try:
        return read_fields(home, run)
    except GanRuntimeError:
        return {}


def measurable(home: Home, run_id: str) -> tuple[Weights, ...]:
    """The weights of a run that are in this home; none of an imported run."""
    return inference.states_of(RunDir(home.runs / run_id))


def _check_range(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:  # NaN neither
        sentence = (
            f"{name} is {number:,g}, but allowed is {least:,g} to {most:,g}: use a number in this"
            " range."
        )
        raise SpecError([FieldError(name, sentence)])
