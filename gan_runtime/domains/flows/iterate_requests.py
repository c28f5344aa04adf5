"""What may be asked of a run that makes pictures of pictures: feed its model with its own. Part of `commands`."""

from __future__ import annotations

from dataclasses import asdict

from gan_runtime.base.errors import CheckpointError, DatasetError, FieldError, GanRuntimeError, SpecError
from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.commands import checkpoint_requests
from gan_runtime.data import loading, prepared
from gan_runtime.domains.flows import films, rollout_request
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.rollout_request import MOST_CORES, Wanted
from gan_runtime.engines.tiling.ways import BLENDS, WAYS
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.picture_job import checkpoints_of
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.flow import MOST_STEPS
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import snapshots, trained
from gan_runtime.training.checkpoints import Which

ITERATE = "iterate"


@for_operators
def iterate(home: Home, wanted: Wanted, *, asker: Asker) -> JobDir:
    """Asks for a job that feeds a run's model with its own pictures, beside held-out ones of its data set.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: an option is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or no weights of that epoch, or it is being iterated already.
        DatasetError: the run makes no pictures of pictures, or none to feed back, has no such film, or its data set is gone, or another by now.
        HomeError: the home cannot be written.
    """
    _check_options(wanted)
    run = home.run_dir(wanted.run_id)
    if not translates(home, run.run_id):
        raise DatasetError(
            f"run {run.run_id} makes no pictures of pictures: its data set {run.spec().dataset} has no {SOURCE} and {TARGET}. Pick a run that has."
        )
    _check_overlap(run, wanted)
    _check_checkpoint(home, wanted)
    films.check_channels(loading.fields_of(run.spec().dataset, home))
    trained.check_data(run, home)
    films.chosen(trajectories(home, run), wanted.trajectory, wanted.start, wanted.steps)
    known = newest_iteration(home, run.run_id)
    if known is not None and known.is_live:
        raise CheckpointError(f"the model of run {run.run_id} is being iterated already: wait for that.")
    return job_queue.ask(home, ITERATE, asdict(wanted), asker.name)


def translates(home: Home, run_id: str) -> bool:
    """Whether a run's workload reads pictures in pairs, whatever its name is; not that of a run that is gone."""
    try:
        read = _read(home, home.run_dir(run_id))
    except GanRuntimeError:
        return False
    return SOURCE in read and TARGET in read


def iterable(home: Home, run_id: str) -> tuple[Which, ...]:
    """The checkpoints from which a run can be iterated here; none for one that has left none, such as an imported one."""
    return tuple(checkpoints_of(home, run_id))


def epochs(home: Home, run_id: str) -> list[int]:
    """The epochs whose weights a run can be iterated with here, in their order; none where what it shows is a moving average."""
    run = RunDir(home.runs / run_id)
    return checkpoint_requests.choosable(run) if iterable(home, run_id) else []


def tile_of(run: RunDir) -> int | None:
    """Side of the tiles that a run's network sees, in pixels; None where it sees whole pictures. Raises SpecError for options that cannot
    be read."""
    spec = run.spec()
    return None if spec.entry.tile is None else spec.entry.tile(spec.of_workload)


def trajectories(home: Home, run: RunDir) -> list[Film]:
    """The held-out films of a run's data set; empty where it is gone."""
    try:
        return films.films(prepared.opened(home, run.spec().dataset, resident_bytes=0))
    except GanRuntimeError:
        return []


def usual_steps(home: Home, run_id: str, trajectory: int, start: int) -> int:
    """Steps of an iteration of a run where nobody says how many: of a short film all that it has. UnknownRunError: the run is gone."""
    known = trajectories(home, home.run_dir(run_id))
    there = [film.steps - start for film in known if film.number == trajectory]
    return rollout_request.usual_steps(there[0]) if there else rollout_request.USUAL_STEPS


def usual_overlap(home: Home, run_id: str) -> int:
    """Pixels that tiles of a run share where nobody says how many. Raises UnknownRunError, and SpecError for options that cannot be read."""
    return rollout_request.usual_overlap(tile_of(home.run_dir(run_id)))


def newest_iteration(home: Home, run_id: str) -> JobLook | None:
    """The newest job that iterates or has iterated a run's model; None before the first."""
    looks = job_queue.looks(home, ITERATE)
    return next((look for look in looks if look.asked.options.get("run_id") == run_id), None)


def _read(home: Home, run: RunDir) -> Fields:
    spec = run.spec()
    return spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home))


def _check_options(wanted: Wanted) -> None:
    """Raises SpecError for each that is out of range."""
    ranges = {
        "steps": (wanted.steps, 1, MOST_STEPS),
        "cores": (wanted.cores, 1, MOST_CORES),
        "overlap": (wanted.overlap, 0, None),
        "trajectory": (wanted.trajectory, 0, None),
        "start": (wanted.start, 0, None),
    }
    wrong = [
        FieldError(name, f"{name} is {number}, but allowed is {least} to {most}: use a number in this range.")
        if most is not None
        else FieldError(name, f"{name} is {number}, but allowed is {least} or more: use such a number.")
        for name, (number, least, most) in ranges.items()
        if number < least or (most is not None and number > most)
    ]
    if wanted.blend not in BLENDS:
        wrong.append(FieldError("blend", f"blend is {wanted.blend!r}: use {' or '.join(BLENDS)}."))
    if not wanted.ways or set(wanted.ways) - set(WAYS) or len(set(wanted.ways)) < len(wanted.ways):
        told = ", ".join(map(str, wanted.ways)) or "none"
        wrong.append(FieldError("ways", f"ways are {told}: use one or more of {', '.join(WAYS)}, each once."))
    if wrong:
        raise SpecError(wrong)


def _check_overlap(run: RunDir, wanted: Wanted) -> None:
    """Raises SpecError where neighbors would share whole tiles."""
    tile = tile_of(run)
    if tile is not None and wanted.overlap >= tile:
        raise SpecError(
            [
                FieldError(
                    "overlap",
                    f"overlap is {wanted.overlap}, but allowed is 0 to {tile - 1}: the tiles of run {run.run_id} are {tile} pixels wide.",
                )
            ]
        )


def _check_checkpoint(home: Home, wanted: Wanted) -> None:
    there = iterable(home, wanted.run_id)
    if not there:
        raise CheckpointError(
            f"run {wanted.run_id} has no checkpoint to iterate: a run saves one after each epoch, and keeps it where it was trained; "
            "bundles hold none. Pick another run."
        )
    if wanted.checkpoint not in there:
        raise CheckpointError(
            f"checkpoint is '{wanted.checkpoint}', but run {wanted.run_id} has {' and '.join(there)}: use one of them."
        )
    if wanted.epoch is not None:
        _check_epoch(home, wanted, there)


def _check_epoch(home: Home, wanted: Wanted, there: tuple[Which, ...]) -> None:
    if wanted.checkpoint != "newest":
        raise CheckpointError(
            f"checkpoint is '{wanted.checkpoint}' and epoch is {wanted.epoch}: leave out one of them."
        )
    kept = epochs(home, wanted.run_id)
    if not kept:
        raise CheckpointError(
            f"epoch is {wanted.epoch}, but run {wanted.run_id} has kept no weights of its epochs here, only the {' and '.join(there)} "
            "checkpoint: leave epoch out, or train with weight_snapshots=yes and samples_from=live."
        )
    if wanted.epoch not in kept:
        raise CheckpointError(
            f"epoch is {wanted.epoch}, but run {wanted.run_id} has kept the weights of {snapshots.in_words(kept)}, beside the "
            f"{' and '.join(there)} checkpoint: use one of these."
        )
