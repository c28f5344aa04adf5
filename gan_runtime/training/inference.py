"""The networks of a checkpoint, for generating and measuring in a background job, and the latents
of a request: of given seeds, between two seeds, or on a plane.

The networks run on the CPU as one replica, whatever the run trained on, so no job takes an
accelerator from a training; `environment` in jobs/job.py hides GPUs. Building the networks loads a
framework.

Latents z: float32 (rows, size), standard normal, so nearly all have a length close to √size. Points
between two latents lie on an arc: points on the straight line are shorter than any latent that the
generator was trained on. Sources: Shoemake 1985, doi:10.1145/325165.325242, section 3.3 (slerp);
White 2016, arXiv:1609.04468, section 2.1 (slerp of latents); Brock et al. 2019, arXiv:1809.11096,
section 3.1 (truncation).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gan_runtime import catalog
from gan_runtime.base.errors import CheckpointError, DatasetError, quoted
from gan_runtime.base.fields import LABELS, SOURCE, TARGET, class_names
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
from gan_runtime.workloads.contract import Workload

Layout = Literal["grid", "strip", "plane"]
Latents = NDArray[np.float64]
PLANE_SEEDS = 3  # of a plane: its center and two directions
_PARALLEL = 1e-6  # sine of the angle below which two latents span no plane


@dataclass(frozen=True)
class LatentPoints:
    """The latent points of a request, the same for each class.

    `seeds`: each seed determines a latent. `frames`: points of a strip from one seed to the next,
    including both ends, or points along each side of a plane. `reach_deg`: angle from the center of
    a plane to its edges. `truncation`: limit on the absolute value of each number of a latent; 0
    means no limit.
    """

    seeds: tuple[int, ...]
    layout: Layout = "grid"
    frames: int = 8
    reach_deg: float = 90.0
    truncation: float = 0.0

    @property
    def count(self) -> int:
        """The number of points."""
        if self.layout == "strip":
            return (len(self.seeds) - 1) * self.frames
        return self.frames**2 if self.layout == "plane" else len(self.seeds)

    def placed(self, ends: Latents) -> Latents:
        """(seeds, size), the latents of the seeds → (count, size)."""
        if self.truncation:
            ends = truncated(ends, self.truncation)
        if self.layout == "strip":
            return strip(ends, self.frames)
        return plane(ends, self.frames, self.reach_deg) if self.layout == "plane" else ends


class LatentNoise(HostNoise):
    """Like `HostNoise`, for rows whose latents are points of a request. `places`: the index of each
    row's point.
    """

    def __init__(self, points: LatentPoints, places: NDArray[np.integer]) -> None:
        super().__init__(points.seeds[0])
        self._points, self._places = points, places

    def normal(self, rows: int, *shape: int) -> NDArray[np.float32]:
        """float32 (rows, *shape). The latent of a seed is the first row of its `HostNoise`."""
        self._streams += 1
        streams = [HostNoise(seed, self._streams - 1) for seed in self._points.seeds]
        ends = np.stack([stream.normal(1, *shape).ravel() for stream in streams])
        placed = self._points.placed(ends.astype(np.float64))
        return placed[self._places].reshape(rows, *shape).astype(np.float32)


def slerp(start: Latents, end: Latents, shares: Latents) -> Latents:
    """Points (shares, size) on the arc between two latents (size,), for shares of 0 to 1 of its
    angle Ω:

        z(t) = sin((1 - t) Ω) / sin Ω · start + sin(t Ω) / sin Ω · end    (Shoemake 1985)

    Parallel latents have no arc: z(t) = (1 - t) start + t end.
    """
    cosine = start @ end / max(np.linalg.norm(start) * np.linalg.norm(end), np.finfo(float).tiny)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    if np.sin(angle) < _PARALLEL:
        return np.outer(1.0 - shares, start) + np.outer(shares, end)
    of_start, of_end = np.sin((1.0 - shares) * angle), np.sin(shares * angle)
    return (np.outer(of_start, start) + np.outer(of_end, end)) / np.sin(angle)


def strip(ends: Latents, frames: int) -> Latents:
    """(seeds, size) → ((seeds - 1) · frames, size): the arcs from each seed to the next."""
    shares = np.linspace(0.0, 1.0, frames)
    return np.concatenate([slerp(start, end, shares) for start, end in pairwise(ends)])


def plane(ends: Latents, side: int, reach_deg: float) -> Latents:
    """A center and two directions (3, size) → (side², size), row by row.

    With the unit vector e₀ of the center, and the unit vectors e₁ and e₂ of the directions,
    orthogonalized in turn (Gram and Schmidt), the point at the angles (α, β) is

        z(α, β) = |z₀| (cos θ · e₀ + sin θ / θ · (α e₁ + β e₂)),    θ = √(α² + β²),

    the exponential map of the sphere. α goes from -reach to reach from left to right, β from top to
    bottom. At 90° the middle of an edge is the part of a direction's latent orthogonal to the
    center; in many dimensions that is nearly all of it.
    """
    center, first, second = _at_right_angles(ends)
    angles = np.radians(np.linspace(-reach_deg, reach_deg, side))
    beta, alpha = (axis.ravel() for axis in np.meshgrid(angles, angles, indexing="ij"))
    theta = np.hypot(alpha, beta)
    steps = np.outer(alpha, first) + np.outer(beta, second)
    # NumPy's sinc(x) is sin(πx) / πx, and 1 at 0.
    unit = np.outer(np.cos(theta), center) + np.sinc(theta / np.pi)[:, None] * steps
    return np.linalg.norm(ends[0]) * unit


def _at_right_angles(vectors: Latents) -> Latents:
    """Orthonormal vectors (n, size); 0 for a vector that depends on the previous ones."""
    units = np.zeros_like(vectors)
    for place, vector in enumerate(vectors):
        rest = vector - units[:place].T @ (units[:place] @ vector)
        length = np.linalg.norm(rest)
        if length > _PARALLEL * np.linalg.norm(vector):
            units[place] = rest / length
    return units


def truncated(latents: Latents, most: float) -> Latents:
    """Latents of the same shape, truncated to ±`most`: less variety, fewer implausible images.

    Brock et al. redraw the numbers beyond the limit. Here each number z is mapped to the same
    quantile of the truncated normal distribution, so a seed's image changes smoothly with t =
    `most`:

        z' = Φ⁻¹(Φ(-t) + Φ(z) (Φ(t) - Φ(-t)))
    """
    from scipy.special import ndtr, ndtri  # pages load this file without SciPy

    low, high = ndtr(-most), ndtr(most)
    return np.asarray(ndtri(low + ndtr(latents) * (high - low)))


ONE_REPLICA = {"replicas": 1, "workers": 1, "sync_every_steps": 1, "xla": "off"}
CPU = "cpu"
State = Literal["newest", "best", "every"]
MOST_NAMED = 20  # classes in a sentence
CHUNK = 2_000  # rows that are generated at a time, to limit memory


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
