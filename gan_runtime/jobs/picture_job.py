"""The job that generates: a checkpoint is asked for images, which become a picture and a file
of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.base.errors import FieldError, SpecError
from gan_runtime.base.fields import class_names
from gan_runtime.data import loading
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobLook
from gan_runtime.jobs.job import ON_THE_CPU, Job
from gan_runtime.jobs.task import Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, trained
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.recorder import SampleWriter
from gan_runtime.training.trained import Trained

GENERATE = "generate"
MOST_IMAGES = 256
MOST_SEED = 2**32 - 1
PICTURE_FILE = "generated.png"
ARRAYS_FILE = "generated.npz"  # what the workload shows, by name


@dataclass(frozen=True)
class Wanted:
    """The options of the job.

    `label`: the name of one class; empty for all of them. `checkpoint`: which of the run's.
    """

    run_id: str
    count: int = 64
    seed: int = 0
    label: str = ""
    checkpoint: Which = "newest"


def check(home: Home, wanted: Wanted) -> None:
    """Whether a run can be asked so, whatever state it is in.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: the count or the seed is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint.
        DatasetError: the networks know no such class, or the run's data set is gone, or another by
            now.
    """
    _in_range("count", wanted.count, 1, MOST_IMAGES)
    _in_range("seed", wanted.seed, 0, MOST_SEED)
    run = home.run_dir(wanted.run_id)
    trained.check_state(run, wanted.checkpoint, "generate from")
    trained.check_data(run, home)
    if wanted.label:
        trained.number_of(wanted.label, classes_of(home, run.run_id))


JOBS = (
    Job(
        GENERATE,
        "Generate images",
        "gan_runtime.jobs.picture_job:generate",
        options=Wanted,
        check=check,
        environment=ON_THE_CPU,
    ),
)


def checkpoints_of(home: Home, run_id: str) -> dict[Which, int]:
    """The checkpoints that a run can be asked with, and after how many steps each was saved;
    none of a run that is gone.
    """
    return checkpoints.steps(RunDir(home.runs / run_id).checkpoints)


def newest_images(home: Home, run_id: str) -> JobLook | None:
    """The newest job that generates, or has generated, images of a run; those that were
    cancelled do not count.
    """
    return job_queue.newest(home, GENERATE, also_cancelled=False, run_id=run_id)


def classes_of(home: Home, run_id: str) -> tuple[str, ...]:
    """The classes that a run's networks can be asked for; empty for those that read no labels.

    Raises:
        UnknownRunError, SpecError, DatasetError: there is no such run, its options cannot be read,
        or its data set is gone.
    """
    spec = home.run_dir(run_id).spec()
    return class_names(spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home)))


def _in_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        allowed = (
            f"{name} is {number}, but allowed is {least} to {most}: use a number in this range."
        )
        raise SpecError([FieldError(name, allowed)])


def generate(task: Task) -> dict[str, Any]:
    """Options: those of `Wanted`.

    The picture holds all of the images, drawn as those of the run's epochs are.

    Raises:
        CheckpointError, DatasetError, SpecError: see `trained.of_run` and `Trained.generated`.
        UnknownRunError: the run is gone.
    """
    wanted = Wanted(**task.options)
    task.progress(0, 3, "building the networks")
    networks = trained.of_run(task.home.run_dir(wanted.run_id), task.home, wanted.checkpoint)
    task.progress(1, 3, "generating")
    shown = networks.generated(wanted.count, wanted.seed, wanted.label)
    task.progress(2, 3, "drawing")
    pictures.save(_drawn(networks, shown, wanted), task.results / PICTURE_FILE)
    np.savez_compressed(task.results / ARRAYS_FILE, allow_pickle=False, **shown)
    task.progress(3, 3, "done")
    checkpoint = networks.checkpoint
    return {
        "step": checkpoint.step,
        "checkpoint_file": checkpoint.path.name,
        "warnings": list(checkpoint.warnings),
    }


def _drawn(networks: Trained, shown: Mapping[str, NDArray[Any]], wanted: Wanted) -> Image.Image:
    """The first of the kinds of pictures that the workload makes of these arrays."""
    kind = SampleWriter.of(networks.spec).drawable(shown)[0]
    takes = pictures.RENDERERS[kind.renderer].takes
    arrays, classes = [shown[name] for name in kind.arrays], networks.classes
    if wanted.label:  # the only class there is to speak of
        classes = (wanted.label,)
        arrays = [
            np.zeros_like(array) if name == pictures.LABELS else array
            for name, array in zip(takes, arrays, strict=True)
        ]
    return pictures.render(kind.renderer, tuple(arrays), classes, pictures.whole(wanted.count))
