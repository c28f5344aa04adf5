"""The networks of a checkpoint, for generating and measuring in a background job.

The networks run on the CPU as one replica, whatever the run trained on, so no job takes an
accelerator from a training; `environment` in jobs/job.py hides GPUs. Building the networks loads a
framework.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gan_runtime import catalog
from gan_runtime.base.errors import CheckpointError, DatasetError, quoted
from gan_runtime.base.fields import (
    CLASS_IMAGES,
    GENERATED,
    IMAGES,
    LABELS,
    SOURCE,
    TARGET,
    class_names,
)
from gan_runtime.base.framework_settings import block_scikit_learn
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import Engine
from gan_runtime.engines.inputs import (
    MOST_CLASSES,
    HostNoise,
    drawn_inputs,
    held_out_rows,
    host_value,
    inputs_of,
)
from gan_runtime.engines.task import data_for_workload, workload_of
from gan_runtime.records import run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Checkpoint, Which
from gan_runtime.training.latents import LatentNoise, LatentPoints
from gan_runtime.workloads.contract import Workload

ONE_REPLICA = {"replicas": 1, "workers": 1, "sync_every_steps": 1, "xla": "off"}
CPU = "cpu"
State = Literal["newest", "best", "every"]
MOST_NAMED = 20  # classes in a sentence
CHUNK = 2_000  # rows that are generated at a time, to limit memory


@dataclass(frozen=True)
class EpochWeights:
    """Weights of a run after an epoch: epoch, step, training seconds until the checkpoint, their
    name in an answer, and the arrays.
    """

    epoch: int
    step: int
    wall_s: float
    name: str
    arrays: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class TrainedNetworks:
    """The networks of a run after `checkpoint`. `data`: the data set with the fields that the
    workload reads.
    """

    spec: RunSpec
    workload: Workload
    data: DataSet
    engine: Engine
    checkpoint: Checkpoint

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels that condition the networks; empty without labels."""
        return class_names(self.data.fields)

    def generated(self, count: int, seed: int, label: str = "") -> dict[str, NDArray[Any]]:
        """Generates `count` rows: named arrays (count, …), determined by seed and class.

        `label`: generate only this class. With `samples_from=ema` the moving average generates.

        Raises:
            DatasetError: the networks have no such class.
        """
        number = number_of(label, self.classes) if label else None
        options = self.spec.of_workload
        inputs = drawn_inputs(self.workload, options, self.data, count, seed, number)
        return self.engine.generate(inputs, seed)

    def representative(self, count: int, seed: int) -> Iterator[dict[str, NDArray[Any]]]:
        """Generates `count` rows, in chunks of at most CHUNK, whose classes are as frequent as in
        the training data: their labels are those of random training rows. Otherwise like
        `generated`, but in random order.
        """
        order = np.random.RandomState(seed).permutation(self.data.rows)
        for begin in range(0, count, CHUNK):
            places = order[np.arange(begin, min(begin + CHUNK, count)) % len(order)]
            rows = held_out_rows(self.data, len(places))
            if self.classes:
                rows[LABELS] = self.data.read(places)[LABELS].astype(np.int32)
            noise = HostNoise(seed, streams=begin)  # no chunk repeats the noise of another
            yield self._generated_with(rows, noise, seed)

    def generated_at(
        self,
        points: LatentPoints,
        label: str = "",
        values: Mapping[str, float] | None = None,
        count: int | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Generates rows with the latents of `points`, for each class in turn: named arrays (rows,
        …). With `samples_from=ema` the moving average generates.

        `label`: generate only this class. `values`: conditions of the networks by field, in the
        field's unit. Other conditions come from held-out rows; points outside a grid all use the
        first row. `count`: number of rows, by default all.

        Raises:
            DatasetError: the networks have no such class.
        """
        number = number_of(label, self.classes) if label else None
        classes = shown_classes(self.classes, label)
        count = points.count * classes if count is None else count
        rows, places = held_out_rows(self.data, count, number), np.arange(count)
        if self.classes:
            labels = rows[LABELS]
            places -= np.searchsorted(labels, labels)  # index within the rows of each class
        if points.layout != "grid":
            rows = {
                name: array if name == LABELS else np.repeat(array[:1], count, axis=0)
                for name, array in rows.items()
            }
        for name, value in (values or {}).items():
            rows[name] = np.full_like(rows[name], value)
        noise = LatentNoise(points, places % points.count)
        return self._generated_with(rows, noise, points.seeds[0])

    def changed_image(self, image: Image.Image, seed: int) -> dict[str, NDArray[Any]]:
        """The output of an image-to-image network for the center of an image, scaled to one tile:
        named arrays (1, tile, tile, channels), including the input.
        """
        fields, tile = self.data.fields, self.spec.entry.tile
        sides = fields[SOURCE].shape[:2] if tile is None else (tile(self.spec.of_workload),) * 2
        rows = {
            name: np.zeros((1, *sides, *field.shape[2:]), np.float32)
            for name, field in fields.items()
        }
        mode = "L" if fields[SOURCE].shape[-1] == 1 else "RGB"
        levels = np.asarray(ImageOps.fit(image, (sides[1], sides[0])).convert(mode))
        rows[SOURCE] = host_value(levels.reshape(rows[SOURCE].shape), fields[SOURCE])
        arrays = self.generated_for(rows, seed)
        return {name: array for name, array in arrays.items() if name != TARGET}

    def with_weights(self, run: RunDir, which: Which, epoch: int | None = None) -> TrainedNetworks:
        """Loads the weights of another checkpoint of the run, or of `epoch`, one of
        `stored_epochs`. This object must not be used afterwards.

        Raises:
            CheckpointError: as for `of_run`, or the file of the epoch is damaged.
        """
        checkpoint = checkpoints.load(run.checkpoints, which)
        if epoch is not None:
            arrays = {**checkpoint.arrays, **checkpoints.load_snapshot(run.snapshots, epoch)}
            step = epoch * self.spec.steps_per_epoch(self.data.rows)
            checkpoint = replace(checkpoint, arrays=arrays, step=step)
        self.engine.load(checkpoint.arrays)
        return replace(self, checkpoint=checkpoint)

    def generated_for(self, rows: dict[str, NDArray[Any]], seed: int) -> dict[str, NDArray[Any]]:
        """Like `generated`, conditioned on the fields of `rows`, such as energies or classes."""
        return self._generated_with(rows, HostNoise(seed), seed)

    def _generated_with(
        self, rows: dict[str, NDArray[Any]], noise: HostNoise, seed: int
    ) -> dict[str, NDArray[Any]]:
        inputs = inputs_of(self.workload, self.spec.of_workload, self.data.fields, rows, noise)
        return self.engine.generate(inputs, seed)


def images_of(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The images among the arrays of `Workload.show`, conditional or not, or made of a source:
    (N, height, width, channels).
    """
    return next(arrays[name] for name in (IMAGES, CLASS_IMAGES, GENERATED) if name in arrays)


def shown_classes(classes: tuple[str, ...], label: str = "") -> int:
    """The number of classes in a request: 1 for a given class or without labels, else at most
    MOST_CLASSES.
    """
    return 1 if label or not classes else min(len(classes), MOST_CLASSES)


def number_of(label: str, classes: tuple[str, ...]) -> int:
    """The index of a class. Raises DatasetError for an unknown class and lists the names."""
    if label in classes:
        return classes.index(label)
    names = f"{', '.join(classes[:MOST_NAMED])}{' …' if len(classes) > MOST_NAMED else ''}"
    advice = f"use {names}" if classes else "it was trained without labels, so leave out the class"
    raise DatasetError(f"class {quoted(label)} is unknown to this run: {advice}.")


def check_data(run: RunDir, home: Home) -> None:
    """Raises DatasetError if the run's data set is missing, or if its name now belongs to other
    data.
    """
    dataset = run.spec().dataset
    if refusal := run_folder.data_refusal(run, dataset, loading.content_of(dataset, home)):
        raise DatasetError(refusal)


def states_of(run: RunDir) -> tuple[State, ...]:
    """The states of a run in this home: newest and best checkpoint, and the weights of every epoch.

    Empty for a run without checkpoints, such as an imported or deleted run.
    """
    states: tuple[State, ...] = tuple(checkpoints.steps(run.checkpoints))
    return (*states, "every") if states and stored_epochs(run) else states


def stored_epochs(run: RunDir) -> list[int]:
    """The epochs whose stored weights can generate. For a run that generates from a moving average,
    the snapshot must have the average, which older versions did not store.
    """
    if not run.has_checkpoint:
        return []
    epochs = checkpoints.snapshot_epochs(run.snapshots)
    if run.spec().samples_from == "ema":
        return [epoch for epoch in epochs if checkpoints.has_averages(run.snapshots, epoch)]
    return epochs


def epoch_weights(
    run: RunDir, networks: TrainedNetworks, state: State, most: int
) -> Iterator[EpochWeights]:
    """The weights of a state, earliest first. For "every": those of at most `most` stored epochs,
    evenly spread, then of the checkpoint, if its epoch is not stored.
    """
    checkpoint = networks.checkpoint
    per_epoch = networks.spec.steps_per_epoch(networks.data.rows)
    epochs = stored_epochs(run) if state == "every" else []
    places = np.linspace(0, max(0, len(epochs) - 1), min(most, len(epochs))).astype(int)
    for epoch in [epochs[place] for place in np.unique(places)]:
        arrays = {**checkpoint.arrays, **checkpoints.load_snapshot(run.snapshots, epoch)}
        step, name = epoch * per_epoch, f"epoch {epoch}"
        yield EpochWeights(epoch, step, checkpoint.wall_s, name, arrays)
    newest = round(checkpoint.step / per_epoch)
    if newest not in epochs:
        name = "newest" if state == "every" else state
        yield EpochWeights(newest, checkpoint.step, checkpoint.wall_s, name, checkpoint.arrays)


def check_state(
    run: RunDir, state: str, purpose: str, epoch: int | None = None, every: bool = False
) -> None:
    """Raises CheckpointError if a run lacks a state in this home; the message lists its states.

    `purpose`: a verb for the message, such as "measure". `epoch`: the epoch of the stored weights
    to use instead of the newest checkpoint. `every`: whether `state` can be "every".
    """
    states = states_of(run) if every else tuple(checkpoints.steps(run.checkpoints))
    if not states:
        raise CheckpointError(
            f"run {run.run_id} has no checkpoint to {purpose}. Runs save one after each epoch;"
            " bundles contain none. Choose another run."
        )
    if state not in states:
        advice = (
            " Train with weight_snapshots=yes to measure every epoch." if state == "every" else ""
        )
        raise CheckpointError(
            f"checkpoint is {quoted(state)}, but run {run.run_id} has {' and '.join(states)}: use"
            f" one of them.{advice}"
        )
    if epoch is not None:
        _check_epoch(run, state, epoch, " and ".join(states))


def _check_epoch(run: RunDir, state: str, epoch: int, states: str) -> None:
    if state != "newest":
        raise CheckpointError(
            f"checkpoint is {quoted(state)} and epoch is {epoch}: leave out one of them."
        )
    epochs = stored_epochs(run)
    if not epochs:
        raise CheckpointError(
            f"epoch is {epoch}, but run {run.run_id} has only the {states} checkpoint: leave out"
            " epoch, or train with weight_snapshots=yes."
        )
    if epoch not in epochs:
        raise CheckpointError(
            f"epoch is {epoch}, but run {run.run_id} has the {states} checkpoint and"
            f" {checkpoints.epochs_in_words(epochs)}: use one of them."
        )


def of_run(run: RunDir, home: Home, which: Which = "newest") -> TrainedNetworks:
    """The networks of a run after one of its checkpoints.

    Raises:
        CheckpointError: it has no usable checkpoint, or one with other networks, as from another
            version.
        DatasetError: the run's data set is missing or replaced.
        SpecError: its options are invalid.
    """
    spec = run.spec().model_copy(update=ONE_REPLICA)
    check_data(run, home)
    checkpoint = checkpoints.load(run.checkpoints, which)
    block_scikit_learn()
    entry = catalog.engine(spec.engine)
    importlib.import_module(entry.flags).set_flags(spec, CPU)  # before anything loads the framework
    data = data_for_workload(spec, loading.load(spec.dataset, home))
    workload = workload_of(spec)
    engine: Engine = importlib.import_module(entry.module).ENGINE(spec, workload, data, CPU)
    engine.load(checkpoint.arrays)
    return TrainedNetworks(spec, workload, data, engine, checkpoint)
