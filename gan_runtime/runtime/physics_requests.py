"""What may be asked of a run that makes showers: measure them beside real ones. Part of `commands`."""

from __future__ import annotations

from dataclasses import asdict

from gan_runtime import trained
from gan_runtime.data import loading
from gan_runtime.errors import CheckpointError, DatasetError, FieldError, GanRuntimeError, SpecError
from gan_runtime.fields import Fields
from gan_runtime.home import Home
from gan_runtime.jobs import desk
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.physics_wanted import Measured, Wanted
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime.picture_requests import checkpoints_of
from gan_runtime.shower_fields import ENERGY, SHOWERS
from gan_runtime.training import snapshots

MEASURE = "measure_physics"
FEWEST_SHOWERS, MOST_SHOWERS = 100, 10_000


def measure_physics(home: Home, wanted: Wanted, *, asker: str) -> JobDir:
    """Asks for a job that measures what a run's networks generate, beside held-out showers of its data set.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: the number of showers is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or it is being measured already.
        DatasetError: the run makes no showers, or its data set is gone, or another by now.
        HomeError: the home cannot be written.
    """
    if not FEWEST_SHOWERS <= wanted.showers <= MOST_SHOWERS:
        raise SpecError([FieldError("showers", _out_of_range(wanted.showers))])
    run = home.run_dir(wanted.run_id)
    if not makes_showers(home, run):
        raise DatasetError(
            f"run {run.run_id} makes no showers: its data set {run.spec().dataset} has no field {SHOWERS}. Pick a run that has."
        )
    if wanted.submission:
        _check_grid(home, run)
    there = measurable(home, run.run_id)
    if wanted.checkpoint not in there:
        raise CheckpointError(_not_there(wanted, there))
    trained.check_data(run, home)
    known = newest_measurement(home, run.run_id)
    if known is not None and known.is_live:
        raise CheckpointError(f"the showers of run {run.run_id} are being measured already: wait for that.")
    return desk.ask(home, MEASURE, asdict(wanted), asker)


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
    from gan_runtime.calorimeter.calochallenge import GEOMETRIES  # loads h5py

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
    looks = desk.looks(home, MEASURE)
    return next((look for look in looks if look.asked.options.get("run_id") == run_id), None)


def _out_of_range(showers: int) -> str:
    return f"showers is {showers}, but allowed is {FEWEST_SHOWERS} to {MOST_SHOWERS:,}: use a number in this range."


def _not_there(wanted: Wanted, there: tuple[Measured, ...]) -> str:
    if not there:
        return (
            f"run {wanted.run_id} has no checkpoint to measure: a run saves one after each epoch, and keeps it where it was "
            "trained; bundles hold none. Pick another run."
        )
    advice = (
        " Train with weight_snapshots=yes to measure every epoch." if wanted.checkpoint == "every" else ""
    )
    return f"checkpoint is '{wanted.checkpoint}', but run {wanted.run_id} has {' and '.join(there)}: use one of them.{advice}"
