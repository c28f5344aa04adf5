"""What jobs about showers are asked for. Loads no framework, so that pages can ask."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from gan_runtime.base.errors import DatasetError, FieldError, GanRuntimeError, SpecError
from gan_runtime.commands.commands import Commands
from gan_runtime.domains.showers.evaluation import (
    MAKES_NO_SHOWERS,
    Measured,
    read_fields,
)
from gan_runtime.domains.showers.fields import ANGLE, ENERGY, SHOWERS
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.job import ON_THE_CPU, Job
from gan_runtime.jobs.picture_job import checkpoints_of
from gan_runtime.records.answer import ArrayFile, Curve
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import trained
from gan_runtime.training.checkpoints import Which

MOST_CELLS = 10_000_000  # of a grid, so that no page makes room for more than it has
RESULT_FILE = "showers.json"  # among the results of a job that makes showers of one energy


@dataclass(frozen=True)
class SingleEnergyOptions:
    """The options of the job that makes showers of one energy and angle.

    `angle_deg`: as it is measured on showers, the label that networks know, 90 is straight in; None
    where the data set knows no angle. `showers`: how many on each side.
    """

    run_id: str
    energy_gev: float
    angle_deg: float | None = 90.0
    checkpoint: Which = "newest"
    showers: int = 100
    seed: int = 0


class SingleEnergyResult(BaseModel):
    """What a job made of one energy (GeV) and angle (measured, rad; None without angles).

    `simulated`: the showers next to the generated ones are made for it, else they are the held-out
    ones that come nearest.
    `step`: of the checkpoint; `response`: visible over incident energy by side, and `measured`:
    their angles, rad.
    `curves`, `pictures`: as in an answer.
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
            raise ValueError(f"pictures must lie in a grid of at most {MOST_CELLS:,} cells")
        return self


# ---- physics requests ----------------------------------------------------------------------------
# What may be asked of a run that makes showers: measure them beside real ones.

MAKE = "make_showers"
ENERGIES, ANGLES = (
    (1.0, 1_000.0),
    (
        45.0,
        135.0,
    ),
)  # GeV and degrees of showers that a person may choose
FEWEST_CHOSEN, MOST_CHOSEN = 2, 1_000


def make_showers(commands: Commands, wanted: SingleEnergyOptions) -> JobDir:
    """Asks for a job that generates showers of one energy and angle.

    Raises as `job_queue.request`.
    """
    return commands.request_job(MAKE, wanted)


def check(home: Home, wanted: SingleEnergyOptions) -> None:
    """Whether a run can be asked for showers of one energy and angle.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: energy, angle or number of showers is out of range, or the run's options cannot
            be read.
        CheckpointError: the run has no such checkpoint.
        DatasetError: the run makes no showers, or its data set is gone, or another by now.
    """
    _in_range("energy_gev", wanted.energy_gev, *ENERGIES)
    _in_range("showers", wanted.showers, FEWEST_CHOSEN, MOST_CHOSEN)
    if wanted.angle_deg is not None:
        _in_range("angle_deg", wanted.angle_deg, *ANGLES)
    run = _of_showers(home, wanted.run_id)
    trained.check_state(run, wanted.checkpoint, "generate from")
    trained.check_data(run, home)


JOBS = (
    Job(
        MAKE,
        "Generate showers of one energy",
        "gan_runtime.domains.showers.measurement:make",
        options=SingleEnergyOptions,
        check=check,
        same=("run_id",),
        busy="showers of run {run_id} are being generated",
        environment=ON_THE_CPU,
    ),
)


def newest_made(home: Home, run_id: str) -> JobLook | None:
    """The newest job that makes or has made showers of one energy with a run; those that were
    cancelled do not count.
    """
    return job_queue.newest(home, MAKE, also_cancelled=False, run_id=run_id)


def made_before(home: Home, wanted: SingleEnergyOptions) -> JobLook | None:
    """A finished job that was asked for the same of the same checkpoint, whose result is
    there; None without.
    """
    step = checkpoints_of(home, wanted.run_id).get(wanted.checkpoint)
    return next(
        (
            look
            for look in job_queue.looks(home, MAKE)
            if look.asked.options == asdict(wanted)
            and look.end is not None
            and look.end.result.get("step") == step
            and (look.job.results / RESULT_FILE).exists()
        ),
        None,
    )


def knows_angles(home: Home, run: RunDir) -> bool:
    """Whether a run's networks are asked with an angle."""
    try:
        return ANGLE in read_fields(home, run)
    except GanRuntimeError:
        return False


def _of_showers(home: Home, run_id: str) -> RunDir:
    """Raises UnknownRunError without the run, and DatasetError when it makes none."""
    run = home.run_dir(run_id)
    if not makes_showers(home, run):
        raise DatasetError(MAKES_NO_SHOWERS)
    return run


def makes_showers(home: Home, run: RunDir) -> bool:
    """Whether a run's workload reads showers and the energies that they come from, whatever
    its name is.
    """
    try:
        read = read_fields(home, run)
    except GanRuntimeError:
        return False
    return SHOWERS in read and ENERGY in read


def measurable(home: Home, run_id: str) -> tuple[Measured, ...]:
    """What of a run can be measured here; nothing for one that has left no checkpoint, such
    as an imported one.
    """
    return trained.states_of(RunDir(home.runs / run_id))


def _in_range(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:  # NaN neither
        allowed = (
            f"{name} is {number:,g}, but allowed is {least:,g} to {most:,g}: use a number in this"
            " range."
        )
        raise SpecError([FieldError(name, allowed)])
