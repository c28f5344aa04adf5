"""The core's background jobs: prepare a data set, survey its images first, and generate images with
a trained run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.base.errors import FieldError, SpecError
from gan_runtime.base.fields import class_names
from gan_runtime.data import loading, preparations, uploads
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobRequest, JobSnapshot
from gan_runtime.jobs.job import ON_THE_CPU, Job, Task, as_document
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.inference import TrainedNetworks
from gan_runtime.training.recorder import SampleWriter

PREPARE, SURVEY, GENERATE = "prepare_data", "survey_data", "generate"
GRID_FILE = "grid.npy"  # uint8 (up to 64, pixels, pixels, channels), a result of a survey
PREVIEW = "preview"  # the name of a data set that is only surveyed
OF_A_RUN = "a run that needs it"  # the actor of a download
MOST_IMAGES = 256
MOST_SEED = 2**32 - 1
PICTURE_FILE = "generated.png"
ARRAYS_FILE = "generated.npz"  # the arrays that the workload shows, by name


@dataclass(frozen=True)
class ImageRequest:
    """The options of the job that generates images.

    `label`: the name of one class; empty for all of them.
    """

    run_id: str
    count: int = 64
    seed: int = 0
    label: str = ""
    checkpoint: Which = "newest"


def check_preparation(_: Home, request: PreparationRequest) -> None:
    """Checks all that needs no reading of the source. Raises DatasetError, SpecError."""
    request.check()


def check_images(home: Home, request: ImageRequest) -> None:
    """Checks whether a run can generate these images, in whatever state it is.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: the count or the seed is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint.
        DatasetError: the networks have no such class, or the run's data set is missing or has
            changed.
    """
    _check_range("count", request.count, 1, MOST_IMAGES)
    _check_range("seed", request.seed, 0, MOST_SEED)
    run = home.run_dir(request.run_id)
    inference.check_state(run, request.checkpoint, "generate from")
    inference.check_data(run, home)
    if request.label:
        inference.number_of(request.label, classes_of(home, run.run_id))


def _check_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        sentence = (
            f"{name} is {number}, but allowed is {least} to {most}: use a number in this range."
        )
        raise SpecError([FieldError(name, sentence)])


JOBS = (
    Job(
        PREPARE,
        "Prepare a data set",
        "gan_runtime.jobs.core_jobs:prepare",
        options=PreparationRequest,
        check=check_preparation,
        same=("name",),
        busy="data set {name} is being prepared",
        result="data set",
    ),
    Job(
        SURVEY,
        "Survey images",
        "gan_runtime.jobs.core_jobs:survey",
        options=PreparationRequest,
        check=check_preparation,
    ),
    Job(
        GENERATE,
        "Generate images",
        "gan_runtime.jobs.core_jobs:generate",
        options=ImageRequest,
        check=check_images,
        environment=ON_THE_CPU,
    ),
)


# ---- data sets -----------------------------------------------------------------------------------


def request_preparation(home: Home, request: PreparationRequest, actor: str) -> JobDir:
    """A job that prepares a data set. Downloaded sets have the name of their preparation.

    Raises:
        DatasetError, SpecError: the request is wrong.
        JobError: that data set is being prepared already.
        HomeError: the home cannot be written.
    """
    name = request.set_name if request.preparation in PREPARATIONS else request.name
    named = PreparationRequest(request.preparation, name, request.source, request.options)
    return job_queue.request(home, PREPARE, named, actor)


def preview_of(preparation: str, source: Path, options: Mapping[str, Any]) -> PreparationRequest:
    """The request to survey images with these options."""
    return PreparationRequest(preparation, PREVIEW, source, dict(options))


def newest_survey(home: Home, request: PreparationRequest) -> JobSnapshot | None:
    """The newest job that surveys these images with these options; None before the first."""
    return job_queue.newest(home, SURVEY, **as_document(request))


def preparing_job(home: Home, name: str) -> JobSnapshot | None:
    """The job that prepares this data set now."""
    return next((job for job in job_queue.snapshots(home, PREPARE, name=name) if job.is_live), None)


def job_for(home: Home, dataset: str) -> str:
    """The id of the job that a run on this data set has to wait for; empty when the data is ready.

    Requests a job for a set that Keras downloads or that is simulated.

    Raises:
        DatasetError: there is no such set, or it is damaged.
    """
    live = preparing_job(home, dataset)
    if live is not None:
        return live.job.job_id
    if loading.availability(dataset, home).ready:
        return ""
    return request_preparation(home, PreparationRequest(dataset), OF_A_RUN).job_id


def name_of(request: JobRequest) -> str:
    """The data set that a job prepares."""
    return str(request.options.get("name", ""))


def prepare(task: Task) -> dict[str, Any]:
    """The work: prepares one data set, then deletes the files that were uploaded for it.

    Raises DatasetError, SpecError, HomeError.
    """
    request = _preparation(task.options)
    preparations.prepare(task.home, request, task.progress, task.work, task.past_cancelling)
    if request.source is not None:
        uploads.remove_source(task.home, request.source)
    name = request.set_name
    return {
        "name": name,
        "rows": loading.availability(name, task.home).images,
        "fields": list(loading.fields_of(name, task.home)),
    }


def survey(task: Task) -> dict[str, Any]:
    """The work: what a preparation would make of its images. Raises as `prepare`."""
    result = preparations.survey(_preparation(task.options), task.progress)
    np.save(task.results / GRID_FILE, result.grid)
    return {
        **result.summary.model_dump(mode="json"),
        "rows": result.rows,
        "fields": list(result.fields),
        "grid_labels": list(result.grid_labels),
        "bytes_on_disk": result.bytes_on_disk,
    }


def _preparation(options: dict[str, Any]) -> PreparationRequest:
    source = Path(options["source"]) if options["source"] else None
    return PreparationRequest(options["preparation"], options["name"], source, options["options"])


# ---- images of a run -----------------------------------------------------------------------------


def checkpoints_of(home: Home, run_id: str) -> dict[Which, int]:
    """The checkpoints of a run, and the step of each; empty for a run that is deleted."""
    return checkpoints.steps(RunDir(home.runs / run_id).checkpoints)


def newest_images(home: Home, run_id: str) -> JobSnapshot | None:
    """The newest job that generates images of a run and is not cancelled."""
    return job_queue.newest(home, GENERATE, also_cancelled=False, run_id=run_id)


def classes_of(home: Home, run_id: str) -> tuple[str, ...]:
    """The classes that a run's networks can generate; empty for those that read no labels.

    Raises:
        UnknownRunError, SpecError, DatasetError: there is no such run, its options cannot be read,
        or its data set is missing.
    """
    spec = home.run_dir(run_id).spec()
    return class_names(spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home)))


def generate(task: Task) -> dict[str, Any]:
    """The work: one PNG of all images, drawn as those of the run's epochs, and their arrays.

    Raises:
        CheckpointError, DatasetError, SpecError: as `inference.of_run` and
        `TrainedNetworks.generated`.
        UnknownRunError: the run is deleted.
    """
    request = ImageRequest(**task.options)
    task.progress(0, 3, "building the networks")
    networks = inference.of_run(task.home.run_dir(request.run_id), task.home, request.checkpoint)
    task.progress(1, 3, "generating")
    arrays = networks.generated(request.count, request.seed, request.label)
    task.progress(2, 3, "drawing")
    pictures.save(_sheet(networks, arrays, request), task.results / PICTURE_FILE)
    np.savez_compressed(task.results / ARRAYS_FILE, allow_pickle=False, **arrays)
    task.progress(3, 3, "done")
    checkpoint = networks.checkpoint
    return {
        "step": checkpoint.step,
        "checkpoint_file": checkpoint.path.name,
        "warnings": list(checkpoint.warnings),
    }


def _sheet(
    networks: TrainedNetworks, generated: Mapping[str, NDArray[Any]], request: ImageRequest
) -> Image.Image:
    """The first kind of picture that the workload draws of these arrays."""
    kind = SampleWriter.of(networks.spec).drawable(generated)[0]
    takes = pictures.RENDERERS[kind.renderer].takes
    arrays, classes = [generated[name] for name in kind.arrays], networks.classes
    if request.label:  # the picture has a single class
        classes = (request.label,)
        arrays = [
            np.zeros_like(array) if name == pictures.LABELS else array
            for name, array in zip(takes, arrays, strict=True)
        ]
    return pictures.render(kind.renderer, tuple(arrays), classes, pictures.whole(request.count))
