"""The job that generates images of a run: a grid, strip or plane of seeds, drawn like the run's
sample images.

Loading a framework and building the networks takes seconds, so the process stays for the next
request. It holds the networks of MOST_NETWORKS checkpoints at most, uses the CPU alone, and takes
no device lock, so it never delays a training.
"""

from __future__ import annotations

import gc
import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.base.errors import DatasetError, FieldError, GanRuntimeError, SpecError, quoted
from gan_runtime.base.fields import SOURCE, class_names
from gan_runtime.catalog.entries import Condition, Picture
from gan_runtime.data import decoding, loading, uploads
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.job import ON_THE_CPU, Job
from gan_runtime.jobs.process import Task
from gan_runtime.pictures import sheet
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.inference import TrainedNetworks
from gan_runtime.training.latents import PLANE_SEEDS, LatentPoints, Layout
from gan_runtime.training.recorder import SampleWriter

GENERATE = "generate"
MOST_IMAGES = 256
MOST_SEED = 2**32 - 1
MOST_NETWORKS = 2  # in memory, such as the newest and the best checkpoint of a run
MOST_FRAMES = 16
MOST_REACH_DEG = 180.0
LEAST_TRUNCATION, MOST_TRUNCATION = 0.05, 5.0
STAYS_S = 300.0
SHEET_PIXELS = 960  # of a line of a strip, the widest image that a page shows
NICENESS = 5  # a training on the same cores gets three quarters of their time
PICTURE_FILE = "generated.png"
USUAL_FRAMES: dict[Layout, int] = {"grid": 8, "strip": 8, "plane": 9}
FILM_FILE = "generated.gif"  # the film of a strip or a plane
ARRAYS_FILE = "generated.npz"  # the arrays that the workload shows, by name

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ImageRequest:
    """The options of the job.

    `count`: number of images in a grid without `seeds`. `label`: the name of one class, or "" for
    one row per class. `seeds`: the seeds of a class's images; empty for `seed`, seed + 1, …
    `epoch`: the epoch of the stored weights to use instead of the newest checkpoint. `layout`,
    `frames`, `reach_deg`, `truncation`: as in `LatentPoints`. `values`: conditions of the workload
    by field, in the field's unit; other conditions come from held-out rows. `upload`: the file id
    of an image that the networks change, instead of held-out images.
    """

    run_id: str
    count: int = 64
    seed: int = 0
    label: str = ""
    checkpoint: Which = "newest"
    epoch: int | None = None
    seeds: list[int] = field(default_factory=list)
    layout: Layout = "grid"
    frames: int = 8
    reach_deg: float = 90.0
    truncation: float = 0.0
    values: dict[str, float] = field(default_factory=dict)
    upload: str = ""

    @property
    def points(self) -> LatentPoints:
        """The latent points of one class."""
        following = ((self.seed + place) % (MOST_SEED + 1) for place in range(self.count))
        seeds = tuple(self.seeds or following)
        return LatentPoints(seeds, self.layout, self.frames, self.reach_deg, self.truncation)


def check(home: Home, request: ImageRequest) -> None:
    """Checks whether a run, in any state, can generate these images.

    Raises:
        UnknownRunError: there is no such run.
        SpecError: a number is out of range, the networks have no latents or no such condition, or
            the run's options cannot be read.
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
    classes = classes_of(home, run.run_id)
    if request.label:
        inference.number_of(request.label, classes)
    _check_latents(request, classes, run.spec().entry.has_latents)
    if request.upload and not changes_images(home, run.run_id):
        raise _refused("upload", "this run's networks change no images: leave out the upload.")
    conditions = {condition.field: condition for condition in conditions_of(home, run.run_id)}
    for name, value in request.values.items():
        if name not in conditions:
            raise _refused(
                name,
                f"{quoted(name)} is not a number that this run's networks read:"
                f" use {' and '.join(conditions) or 'none'}.",
            )
        _check_range(name, value, conditions[name].low, conditions[name].high)


def _check_latents(request: ImageRequest, classes: tuple[str, ...], has_latents: bool) -> None:
    """Raises SpecError, as `check`."""
    if request.truncation:
        _check_range("truncation", request.truncation, LEAST_TRUNCATION, MOST_TRUNCATION)
    if request.layout == "grid" and not request.seeds:
        return
    if request.layout != "grid" and not has_latents:
        raise _refused("layout", "this run's networks have no latents: use the layout grid.")
    _check_range("frames", request.frames, 2, MOST_FRAMES)
    _check_range("reach_deg", request.reach_deg, 1, MOST_REACH_DEG)
    if request.layout == "strip":
        _check_range("the number of seeds", len(request.seeds), 2, MOST_IMAGES)
    elif request.layout == "plane":
        _check_range("the number of seeds", len(request.seeds), PLANE_SEEDS, PLANE_SEEDS)
        if classes and not request.label:
            raise _refused("label", f"a plane shows one class: use one of {', '.join(classes)}.")
    images = request.points.count * inference.shown_classes(classes, request.label)
    _check_range("the number of images", images, 1, MOST_IMAGES)


def seeds_of(text: str) -> list[int]:
    """The seeds of a text such as "3, 17, 40-47", in their order.

    Raises:
        SpecError: the text has no seed, more than MOST_IMAGES, or one above MOST_SEED.
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


def _check_range(name: str, number: float, least: float, most: float) -> None:
    if not least <= number <= most:
        raise _refused(
            name,
            f"{name} is {number:.12g}, but allowed is {least:.12g} to {most:.12g}: use a number in"
            " this range.",
        )


def engine_of(home: Home, options: Mapping[str, Any]) -> str:
    """The engine that a request needs, since no process can load two; "" for a deleted run."""
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
    """The checkpoints of a run with their steps; empty for a deleted run."""
    return checkpoints.steps(RunDir(home.runs / run_id).checkpoints)


def newest_images(home: Home, run_id: str) -> JobSnapshot | None:
    """The newest uncancelled job that generates images of a run; None without one."""
    return job_queue.newest(home, GENERATE, also_cancelled=False, run_id=run_id)


def classes_of(home: Home, run_id: str) -> tuple[str, ...]:
    """The classes that a run's networks can generate; empty for networks without labels.

    Raises:
        UnknownRunError, SpecError, DatasetError: there is no such run, its options cannot be read,
        or its data set is missing.
    """
    spec = home.run_dir(run_id).spec()
    return class_names(loading.fields_read(spec, home))


def conditions_of(home: Home, run_id: str) -> list[Condition]:
    """The conditions that a run's generator reads. Raises as `classes_of`."""
    spec = home.run_dir(run_id).spec()
    read = loading.fields_read(spec, home)
    return [condition for condition in spec.entry.conditions if condition.field in read]


def changes_images(home: Home, run_id: str) -> bool:
    """Whether a run's generator changes 8-bit images. Raises as `classes_of`."""
    spec = home.run_dir(run_id).spec()
    source = loading.fields_read(spec, home).get(SOURCE)
    return source is not None and source.dtype == "uint8" and source.shape[-1] in sheet.CHANNELS


# ---- the work ------------------------------------------------------------------------------------


def generate(task: Task) -> dict[str, Any]:
    """The work of a job: writes one PNG of all images, drawn like the run's sample images, and
    their arrays.

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
    arrays = _generated(task.home, networks, request)
    task.progress(2, 3, "drawing")
    _draw(networks, arrays, request, task.results)
    np.savez(task.results / ARRAYS_FILE, allow_pickle=False, **arrays)
    task.progress(3, 3, "done")
    checkpoint = networks.checkpoint
    return {
        "count": _rows(arrays),
        "step": checkpoint.step,
        "checkpoint_file": checkpoint.path.name,
        "warnings": list(checkpoint.warnings),
    }


def _uploaded(home: Home, file_id: str) -> Image.Image:
    """The uploaded image. Raises DatasetError if the file has expired or is no image."""
    path = uploads.place(home, file_id)
    try:
        with path.open("rb") as file, decoding.as_not_usable():
            return decoding.decode(file).image.convert("RGB")
    except FileNotFoundError:
        raise DatasetError("the uploaded image has expired: upload it again.") from None
    except decoding.NotUsableError as error:
        raise DatasetError(
            f"the uploaded image cannot be used: {error}. Upload a PNG, JPEG or WebP."
        ) from None


def _generated(
    home: Home, networks: TrainedNetworks, request: ImageRequest
) -> dict[str, NDArray[Any]]:
    if request.upload:
        return networks.changed_image(_uploaded(home, request.upload), request.seed)
    factors = {each.field: each.factor for each in networks.spec.entry.conditions}
    values = {name: value * factors[name] for name, value in request.values.items()}
    count = request.count if request.layout == "grid" and not request.seeds else None
    return networks.generated_at(request.points, request.label, values, count)


@cache
def _yield_to_trainings() -> None:
    """Lowers the priority, once per process, since the system adds up the niceness."""
    os.nice(NICENESS)


# Most recently used last.
_IN_MEMORY: OrderedDict[object, tuple[object, TrainedNetworks]] = OrderedDict()


def _networks_of(home: Home, request: ImageRequest) -> TrainedNetworks:
    """The networks of a run with the weights of a checkpoint, from memory if the files are
    unchanged.
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
            gc.collect()  # networks have reference cycles
        networks = inference.of_run(run, home, request.checkpoint)
        loaded: object = (request.checkpoint, None, weights)
    else:
        loaded, networks = _IN_MEMORY.pop(networks_key)
    if loaded != weights_key:
        networks = networks.with_weights(run, request.checkpoint, request.epoch)
    _IN_MEMORY[networks_key] = (weights_key, networks)
    return networks


# ---- drawing -------------------------------------------------------------------------------------


def _draw(networks: TrainedNetworks, arrays: Arrays, request: ImageRequest, results: Path) -> None:
    """Writes the sheet, and for a strip or a plane a film through its points in order."""
    if request.upload:  # input and output next to each other, without a target
        images = [sheet.image(sheet.pixels(array)[0]).convert("RGB") for array in arrays.values()]
        limits = replace(pictures.whole(1), columns=len(images))
        pair = sheet.tiled(np.stack([np.asarray(image) for image in images]), limits)
        pictures.save(sheet.image(pair), results / PICTURE_FILE)
        return
    kind = SampleWriter.of(networks.spec).drawable(arrays)[0]
    drawn = ImageSet(kind, {name: arrays[name] for name in kind.arrays}, networks.classes)
    if request.label:
        drawn = drawn.of_one_class(request.label)
    if request.layout == "grid":
        pictures.save(drawn.sheet(pictures.whole(_rows(arrays))), results / PICTURE_FILE)
        return
    alone, columns = (replace(pictures.whole(1), columns=count) for count in (1, request.frames))
    classes = inference.shown_classes(drawn.classes)
    if classes > 1:  # a row per class, and a film of all classes
        pictures.save(drawn.sheet(columns), results / PICTURE_FILE)
    points = request.points.count
    frames = [drawn.rows(np.arange(classes) * points + place) for place in range(points)]
    images = [frame.sheet(alone) for frame in frames]
    if classes == 1:
        levels = np.stack([np.asarray(image.convert("RGB")) for image in images])
        if request.layout == "strip":
            columns = replace(columns, columns=_that_fit(request.frames, images[0].width))
        pictures.save(sheet.image(sheet.tiled(levels, columns)), results / PICTURE_FILE)
    pictures.save_film(images, results / FILM_FILE, request.frames * (request.layout == "plane"))


def _rows(arrays: Arrays) -> int:
    """The number of images."""
    return len(next(iter(arrays.values())))


def _that_fit(count: int, width: int) -> int:
    """The images per line: `count`, halved until a line fits into SHEET_PIXELS."""
    while count % 2 == 0 and count * width > SHEET_PIXELS:
        count //= 2
    return count


@dataclass(frozen=True)
class ImageSet:
    """Arrays (rows, …) of one kind of image, by name."""

    kind: Picture
    arrays: Arrays
    classes: tuple[str, ...]

    def of_one_class(self, label: str) -> ImageSet:
        """The same images, all labeled with one class."""
        zeros = {name: np.zeros_like(self.arrays[name]) for name in self._labels}
        return replace(self, arrays={**self.arrays, **zeros}, classes=(label,))

    def rows(self, places: NDArray[np.integer]) -> ImageSet:
        """The images of these rows."""
        return replace(self, arrays={name: array[places] for name, array in self.arrays.items()})

    def sheet(self, limits: pictures.SheetLimits) -> Image.Image:
        """The sheet, drawn like an epoch's sample images; a single image has no class name."""
        arrays = tuple(self.arrays.values())
        if len(arrays[0]) == 1 and self._labels:
            return sheet.image(sheet.pixels(arrays[0])[0])
        return pictures.render(self.kind.renderer, arrays, self.classes, limits)

    @property
    def _labels(self) -> list[str]:
        takes = pictures.RENDERERS[self.kind.renderer].takes
        return [
            name
            for name, content in zip(self.arrays, takes, strict=True)
            if content == pictures.LABELS
        ]
