"""What may be asked of a run that makes showers: measure them beside real ones. Part of `commands`."""

from __future__ import annotations

from dataclasses import asdict

from gan_runtime.base.errors import CheckpointError, DatasetError, FieldError, GanRuntimeError, SpecError
from gan_runtime.base.fields import Fields
from gan_runtime.data import loading
from gan_runtime.domains.showers.fields import ANGLE, ENERGY, SHOWERS
from gan_runtime.domains.showers.requests import CHOSEN_FILE, Chosen, Measured, Wanted
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.picture_job import checkpoints_of
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import snapshots, trained

MEASURE, MAKE = "measure_physics", "make_showers"
FEWEST_SHOWERS, MOST_SHOWERS = 100, 10_000
ENERGIES, ANGLES = (1.0, 1_000.0), (45.0, 135.0)  # GeV and degrees of showers that a person may choose
FEWEST_CHOSEN, MOST_CHOSEN = 2, 1_000


@for_operators
def measure_physics(home: Home, wanted: Wanted, *, asker: Asker) -> JobDir:
    """Asks for a job that measures what a run's networks generate, beside held-out showers of its data set.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: the number of showers is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or it is being measured already.
        DatasetError: the run makes no showers, or its data set is gone, or another by now.
        HomeError: the home cannot be written.
    """
    _in_range("showers", wanted.showers, FEWEST_SHOWERS, MOST_SHOWERS)
    run = _of_showers(home, wanted.run_id)
    if wanted.submission:
        _check_grid(home, run)
    there = measurable(home, run.run_id)
    if wanted.checkpoint not in there:
        raise CheckpointError(_not_there(wanted.run_id, wanted.checkpoint, there))
    trained.check_data(run, home)
    known = newest_measurement(home, run.run_id)
    if known is not None and known.is_live:
        raise CheckpointError(f"the showers of run {run.run_id} are being measured already: wait for that.")
    return job_queue.ask(home, MEASURE, asdict(wanted), asker.name)


@for_operators
def make_showers(home: Home, wanted: Chosen, *, asker: Asker) -> JobDir:
    """Asks for a job that generates showers of one energy and angle with a run's networks, beside simulated ones of the same.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: energy, angle or number of showers is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or showers are being made with it already.
        DatasetError: the run makes no showers, or its data set is gone, or another by now.
        HomeError: the home cannot be written.
    """
    _in_range("energy_gev", wanted.energy_gev, *ENERGIES)
    _in_range("showers", wanted.showers, FEWEST_CHOSEN, MOST_CHOSEN)
    if wanted.angle_deg is not None:
        _in_range("angle_deg", wanted.angle_deg, *ANGLES)
    run = _of_showers(home, wanted.run_id)
    there = checkpoints_of(home, run.run_id)
    if wanted.checkpoint not in there:
        raise CheckpointError(_not_there(wanted.run_id, wanted.checkpoint, tuple(there)))
    trained.check_data(run, home)
    known = newest_made(home, run.run_id)
    if known is not None and known.is_live:
        raise CheckpointError(f"showers of run {run.run_id} are being generated already: wait for that.")
    return job_queue.ask(home, MAKE, asdict(wanted), asker.name)


def newest_made(home: Home, run_id: str) -> JobLook | None:
    """The newest job that makes or has made showers of one energy with a run; those that were cancelled do not count."""
    looks = (look for look in job_queue.looks(home, MAKE) if look.asked.options.get("run_id") == run_id)
    return next((look for look in looks if look.state != "cancelled"), None)


def made_before(home: Home, wanted: Chosen) -> JobLook | None:
    """A finished job that was asked for the same of the same checkpoint, whose result is there; None without."""
    step = checkpoints_of(home, wanted.run_id).get(wanted.checkpoint)
    return next(
        (
            look
            for look in job_queue.looks(home, MAKE)
            if look.asked.options == asdict(wanted)
            and look.end is not None
            and look.end.result.get("step") == step
            and (look.job.results / CHOSEN_FILE).exists()
        ),
        None,
    )


def knows_angles(home: Home, run: RunDir) -> bool:
    """Whether a run's networks are asked with an angle."""
    try:
        return ANGLE in _read(home, run)
    except GanRuntimeError:
        return False


def _of_showers(home: Home, run_id: str) -> RunDir:
    """Raises UnknownRunError without the run, and DatasetError when it makes none."""
    run = home.run_dir(run_id)
    if not makes_showers(home, run):
        raise DatasetError(
            f"run {run.run_id} makes no showers: its data set {run.spec().dataset} has no field {SHOWERS}. Pick a run that has."
        )
    return run


def makes_showers(home: Home, run: RunDir) -> bool:
    """Whether a run's workload reads showers and the energies that they come from, whatever its name is."""
    try:
        read = _read(home, run)
    except GanRuntimeError:
        return False
    return SHOWERS in read and ENERGY in read


def _read(home: Home, run: RunDir) -> Fields:
    spec = run.spec()
    return spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home))


def _check_grid(home: Home, run: RunDir) -> None:
    """Raises DatasetError when the run's showers are on no grid of the CaloChallenge."""
    from gan_runtime.domains.showers.calochallenge import GEOMETRIES  # loads h5py

    grid, known = _read(home, run)[SHOWERS].shape[:3], [geometry.shape for geometry in GEOMETRIES]
    if grid not in known:
        own, *others = (" × ".join(map(str, shape)) for shape in (grid, *known))
        raise DatasetError(
            f"showers of run {run.run_id} have {own} cells, but a submission to the CaloChallenge has {' or '.join(others)}: leave it out, "
            "or train on one of its data sets."
        )


def measurable(home: Home, run_id: str) -> tuple[Measured, ...]:
    """What of a run can be measured here; nothing for one that has left no checkpoint, such as an imported one. The weights after each
    epoch are not those of a moving average, where the showers come from one."""
    run = RunDir(home.runs / run_id)
    kept: tuple[Measured, ...] = tuple(checkpoints_of(home, run_id))
    if kept and snapshots.epochs(run.snapshots) and run.spec().samples_from != "ema":
        return (*kept, "every")
    return kept


def newest_measurement(home: Home, run_id: str) -> JobLook | None:
    """The newest job that measures or has measured a run's showers; None before the first."""
    looks = job_queue.looks(home, MEASURE)
    return next((look for look in looks if look.asked.options.get("run_id") == run_id), None)


def _in_range(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:  # NaN neither
        allowed = (
            f"{name} is {number:,g}, but allowed is {least:,g} to {most:,g}: use a number in this range."
        )
        raise SpecError([FieldError(name, allowed)])


def _not_there(run_id: str, checkpoint: Measured, there: tuple[Measured, ...]) -> str:
    if not there:
        return (
            f"run {run_id} has no checkpoint to measure: a run saves one after each epoch, and keeps it where it was "
            "trained; bundles hold none. Pick another run."
        )
    advice = " Train with weight_snapshots=yes to measure every epoch." if checkpoint == "every" else ""
    return (
        f"checkpoint is '{checkpoint}', but run {run_id} has {' and '.join(there)}: use one of them.{advice}"
    )
