"""The job that generates images of a run: a grid of seeds, drawn as those of the run's epochs.

Loading a framework and building the networks takes seconds, so the process stays for the next
request. It holds the networks of MOST_NETWORKS checkpoints at most, uses the CPU alone, and takes
no device lock: a training never waits for it.
"""

from __future__ import annotations

import gc
import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.base.errors import FieldError, GanRuntimeError, SpecError, quoted
from gan_runtime.base.fields import class_names
from gan_runtime.data import loading
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.job import ON_THE_CPU, Job, Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.inference import TrainedNetworks
from gan_runtime.training.recorder import SampleWriter

GENERATE = "generate"
MOST_IMAGES = 256
MOST_SEED = 2**32 - 1
MOST_NETWORKS = 2  # in memory: the newest and the best of a run, or of two runs
STAYS_S = 300.0
NICENESS = 5  # a training on the same cores gets three quarters of them
PICTURE_FILE = "generated.png"
ARRAYS_FILE = "generated.npz"  # the arrays that the workload shows, by name


@dataclass(frozen=True)
class ImageRequest:
    """The options of the job.

    `count`: of images. `label`: the name of one class; empty for all of them, in rows of equally
    many images. `seeds`: of the images of a class in turn; empty for `seed`, seed + 1, …
    `epoch`: of stored weights that replace those of the newest checkpoint.
    """

    run_id: str
    count: int = 64
    seed: int = 0
    label: str = ""
    checkpoint: Which = "newest"
    epoch: int | None = None
    seeds: list[int] = field(default_factory=list)


def check(home: Home, request: ImageRequest) -> None:
    """Checks whether a run can generate these images, in whatever state it is.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: a number is out of range, or the run's options cannot be read.
        CheckpointError: the run has no such checkpoint, or no weights of that epoch.
        DatasetError: the networks have no such class, or the run's data set is missing or has
            changed.
    """
    _check_range("count", request.count, 1, MOST_IMAGES)
    for seed in (request.seed, *request.seeds):
        _check_range("seed", seed, 0, MOST_SEED)
    run = home.run_dir(request.run_id)
    inference.check_state(run, request.checkpoint, "generate from", request.epoch)
    inference.check_data(run, home)
    if request.label:
        inference.number_of(request.label, classes_of(home, run.run_id))


def seeds_of(text: str) -> list[int]:
    """The seeds of a text such as "3, 17, 40-47", in their order.

    Raises:
        SpecError: it names none, more than MOST_IMAGES, or one above MOST_SEED.
    """
    seeds: list[int] = []
    for part in filter(None, re.split(r"[\s,;]+", re.sub(r"\s*[-–]\s*", "-", text.strip()))):
        ends = part.split("-")
        if not all(map(str.isdecimal, ends)) or len(ends) > 2:
            raise _refused("seeds", f"seeds has {quoted(part)}: use numbers such as 3, 17, 40-47.")
        first, last = int(ends[0]), int(ends[-1])
        _check_range("seed", last, first, MOST_SEED)
        _check_range("the number of seeds", len(seeds) + last - first + 1, 1, MOST_IMAGES)
        seeds += range(first, last + 1)
    if not seeds:
        raise _refused("seeds", "seeds is empty: use numbers such as 3, 17, 40-47.")
    return seeds


def _refused(name: str, sentence: str) -> SpecError:
    return SpecError([FieldError(name, sentence)])


def _check_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise _refused(
            name,
            f"{name} is {number}, but allowed is {least} to {most}: use a number in this range.",
        )


def engine_of(home: Home, options: Mapping[str, Any]) -> str:
    """The engine that a request needs: no process can load two. Empty for a run that is deleted."""
    try:
        return home.run_dir(str(options["run_id"])).spec().engine
    except GanRuntimeError:
        return ""


JOBS = (
    Job(
        GENERATE,
        "Generate images",
        "gan_runtime.jobs.image_job:generate",
        options=ImageRequest,
        check=check,
        environment=ON_THE_CPU,
        stays_s=STAYS_S,
        loads=engine_of,
    ),
)


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


# ---- the work ------------------------------------------------------------------------------------


def generate(task: Task) -> dict[str, Any]:
    """The work: one PNG of all images, drawn as those of the run's epochs, and their arrays.

    Raises:
        CheckpointError, DatasetError, SpecError: as `inference.of_run` and
        `TrainedNetworks.generated_from`.
        UnknownRunError: the run is deleted.
    """
    _yield_to_trainings()
    request = ImageRequest(**task.options)
    task.progress(0, 3, "building the networks")
    networks = _networks_of(task.home, request)
    task.progress(1, 3, "generating")
    seeds = request.seeds or [
        (request.seed + place) % (MOST_SEED + 1) for place in range(request.count)
    ]
    arrays = networks.generated_from(request.count, seeds, request.label)
    task.progress(2, 3, "drawing")
    pictures.save(_sheet(networks, arrays, request), task.results / PICTURE_FILE)
    np.savez(task.results / ARRAYS_FILE, allow_pickle=False, **arrays)
    task.progress(3, 3, "done")
    checkpoint = networks.checkpoint
    return {
        "step": checkpoint.step,
        "checkpoint_file": checkpoint.path.name,
        "warnings": list(checkpoint.warnings),
    }


@cache
def _yield_to_trainings() -> None:
    """Once in a process: the system adds to the niceness."""
    os.nice(NICENESS)


_IN_MEMORY: OrderedDict[object, tuple[object, TrainedNetworks]] = OrderedDict()  # last use last


def _networks_of(home: Home, request: ImageRequest) -> TrainedNetworks:
    """The networks of a run with the weights of a checkpoint; what is in memory and has not changed
    is not read again.
    """
    run = home.run_dir(request.run_id)
    inference.check_data(run, home)
    networks_key = (run.path, run.spec_path.stat().st_mtime_ns)
    weights = sorted(
        (path, path.stat().st_mtime_ns) for path in run.checkpoints.glob("*.safetensors")
    )
    weights_key = (request.checkpoint, request.epoch, weights)
    if networks_key not in _IN_MEMORY:
        while len(_IN_MEMORY) >= MOST_NETWORKS:
            _IN_MEMORY.popitem(last=False)
            gc.collect()  # networks refer to each other in circles
        networks = inference.of_run(run, home, request.checkpoint)
        loaded: object = (request.checkpoint, None, weights)
    else:
        loaded, networks = _IN_MEMORY.pop(networks_key)
    if loaded != weights_key:
        networks = networks.with_weights(run, request.checkpoint, request.epoch)
    _IN_MEMORY[networks_key] = (weights_key, networks)
    return networks


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
