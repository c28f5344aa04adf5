"""What may be asked of trained networks: more images. Part of `commands`."""

from __future__ import annotations

from dataclasses import asdict

from gan_runtime.base.errors import CheckpointError, FieldError, SpecError, quoted
from gan_runtime.base.fields import class_names
from gan_runtime.data import loading
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.picture_work import Wanted
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, trained
from gan_runtime.training.checkpoints import Which

GENERATE = "generate"
MOST_IMAGES = 256
MOST_SEED = 2**32 - 1


@for_operators
def generate(home: Home, wanted: Wanted, *, asker: Asker) -> JobDir:
    """Asks for a job that generates images from a checkpoint of a run, whatever state the run is in.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: the count or the seed is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint.
        DatasetError: the networks know no such class, or the run's data set is gone, or another by now.
        HomeError: the home cannot be written.
    """
    _in_range("count", wanted.count, 1, MOST_IMAGES)
    _in_range("seed", wanted.seed, 0, MOST_SEED)
    run = home.run_dir(wanted.run_id)
    there = checkpoints_of(home, run.run_id)
    if wanted.checkpoint not in there:
        raise CheckpointError(_no_checkpoint(wanted, there))
    trained.check_data(run, home)
    classes = classes_of(home, run.run_id)
    if wanted.label:
        trained.number_of(wanted.label, classes)
    return job_queue.ask(home, GENERATE, asdict(wanted), asker.name)


def checkpoints_of(home: Home, run_id: str) -> dict[Which, int]:
    """The checkpoints that a run can be asked with, and after how many steps each was saved; none of a run that is gone."""
    return checkpoints.steps(RunDir(home.runs / run_id).checkpoints)


def classes_of(home: Home, run_id: str) -> tuple[str, ...]:
    """The classes that a run's networks can be asked for; empty for those that read no labels.

    Raises:
        UnknownRunError, SpecError, DatasetError: there is no such run, its options cannot be read, or its data set is gone.
    """
    spec = home.run_dir(run_id).spec()
    return class_names(spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home)))


def newest_images(home: Home, run_id: str) -> JobLook | None:
    """The newest job that generates, or has generated, images of a run; those that were cancelled do not count."""
    looks = job_queue.looks(home, GENERATE)
    of_run = (look for look in looks if look.asked.options.get("run_id") == run_id)
    return next((look for look in of_run if look.state != "cancelled"), None)


def _in_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        allowed = f"{name} is {number}, but allowed is {least} to {most}: use a number in this range."
        raise SpecError([FieldError(name, allowed)])


def _no_checkpoint(wanted: Wanted, there: dict[Which, int]) -> str:
    if there:
        return f"checkpoint is {quoted(wanted.checkpoint)}, but run {wanted.run_id} has {' and '.join(there)}: use one of them."
    return (
        f"run {wanted.run_id} has no checkpoint to generate from: a run saves one after each epoch, and keeps it where it was "
        "trained; bundles hold none. Pick another run."
    )
