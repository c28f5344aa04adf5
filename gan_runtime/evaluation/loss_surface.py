"""The evaluation of loss surfaces, one for each network, from the weight snapshots of a run.

A surface lies in the plane in which a network's weights moved most, and shows the path of the
training. Each filter is measured in units of its norm at the end: scaling a filter up and the next
layer down changes neither the function nor the surface (filter normalization, Li et al. 2018,
section 4). In these units a principal component analysis of the differences between each snapshot
and the last one gives the two directions (section 7.2). Biases and batch norm's parameters stay at
their last values (section 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import RunStateError, SurfaceError
from gan_runtime.base.fields import Fields
from gan_runtime.base.framework_settings import block_scikit_learn
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.facts import Facts, FactTypes
from gan_runtime.data import loading
from gan_runtime.evaluation.catalog import EvaluationReport, EvaluationResult, Subject
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records.answer import Answer, Curve, CurveSeries
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Weights

if TYPE_CHECKING:
    from gan_runtime.evaluation.loss_landscape import Landscape

NAME = "loss_surface"
MARGIN = 0.3  # around the path, as a share of its extent
Kernels = Mapping[str, NDArray[np.float32]]  # by name


class SurfaceFacts(Facts):
    """`images`: of which the loss is the mean; `share_x`, `share_y`: of all movement."""

    network: str = ""
    images: int = 0
    share_x: float = 0.0
    share_y: float = 0.0


class MapFacts(Facts):
    """`columns`: numbers in a row of a map."""

    columns: int = 0


class SurfaceOptions(OptionRecord):
    """The resolution of the surface."""

    size: int = option(
        21,
        label="Grid",
        unit="points",
        ge=5,
        le=41,
        help="Points along each side of the grid on which the losses are computed.",
        source="Li et al. 2018, arXiv:1712.09913, section 7",
        error="use 21, or fewer for a faster and coarser surface.",
    )


def applies(_entry: WorkloadEntry, _options: Options, _fields: Fields) -> str:
    """Applies to every workload."""
    return ""


def lacking(_home: Home, run: RunDir) -> str:
    """The reason why a run can have no loss surface now: it trains, or stores too few weights."""
    status = latest_status(run).status
    if status not in ENDED:
        return f"run {run.run_id} is {status}: compute its loss surface once it has ended."
    count = len(checkpoints.snapshot_epochs(run.snapshots))
    if count < checkpoints.FEWEST_SNAPSHOTS:
        return (
            f"run {run.run_id} stores {count} weight snapshots, but a loss surface needs"
            f" {checkpoints.FEWEST_SNAPSHOTS}: train it with weight_snapshots=yes for two epochs or"
            " more."
        )
    return ""


def check(home: Home, run: RunDir, _options: SurfaceOptions) -> None:
    """Raises RunStateError with the reason of `lacking`."""
    if reason := lacking(home, run):
        raise RunStateError(reason)


def report(_home: Home, run: RunDir, _result: Mapping[str, Any]) -> EvaluationReport:
    """A report that says where the surfaces are shown."""
    sentence = (
        f"the loss surfaces of {run.run_id} are computed: see Fig. 11 in the paper report of the"
        " dashboard."
    )
    return EvaluationReport({"run_id": run.run_id, "journal": run.evaluations_journal}, [sentence])


LOSS_SURFACE = Evaluation(
    name=NAME,
    title="Loss surface",
    summary=(
        "The losses of each network on the plane of its descent, from the weights stored after"
        " each epoch."
    ),
    verb="Compute loss surfaces",
    options=SurfaceOptions,
    applies=applies,
    lacking=lacking,
    check=check,
    needs_checkpoint=False,
    scores=(),
    facts=FactTypes(answer=SurfaceFacts, curve=MapFacts),
    work="gan_runtime.evaluation.loss_surface:compute",
    report="gan_runtime.evaluation.loss_surface:report",
    earlier_jobs=("compute_surface",),
    busy="the loss surfaces of run {run_id} are being computed",
    environment=ON_THE_CPU,
)


# ---- the plane of a descent ----------------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
    """The plane of a descent. `path`: (snapshots, 2), in units of the mean change of a filter as a
    share of its norm; the last point is (0, 0).

    `centre`: the kernels of the last snapshot. `steps`: the change of the kernels for one unit
    along each axis. `shares`: the share of all squared movement along each axis, 0 to 1.
    """

    centre: Kernels
    steps: tuple[Kernels, Kernels]
    path: NDArray[np.float64]
    shares: tuple[float, float]

    def at(self, x: float, y: float) -> Kernels:
        """The kernels at a point of the plane, by name."""
        first, second = self.steps
        return {
            name: kernel + np.float32(x) * first[name] + np.float32(y) * second[name]
            for name, kernel in self.centre.items()
        }


def plane_through(snapshots: Sequence[Kernels], filter_axes: Mapping[str, int]) -> Plane:
    """The plane of at least three snapshots.

    `filter_axes`: name of each kernel → its axis of output channels.

    Raises:
        ValueError: fewer than three snapshots, or the weights have not moved in two directions.
    """
    if len(snapshots) < 3:
        raise ValueError(f"a plane needs three snapshots, there are {len(snapshots)}")
    last = snapshots[-1]
    norms = {name: _filter_norms(last[name], axis) for name, axis in filter_axes.items()}
    filters = sum(int(np.count_nonzero(norm)) for norm in norms.values())
    ways = np.stack(
        [
            _flat({name: _over(arrays[name] - last[name], norms[name]) for name in norms})
            for arrays in snapshots[:-1]
        ]
    )
    # The directions come from the small matrix of inner products, since there are far fewer
    # snapshots than weights.
    values, vectors = np.linalg.eigh((ways @ ways.T).astype(np.float64))
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[1] > 1e-9 * values[0]:
        raise ValueError("the weights have not moved in two directions")
    unit = np.sqrt(filters)
    directions = [(vectors[:, axis] @ ways) / np.sqrt(values[axis]) for axis in (0, 1)]
    steps = tuple(_unflat(direction * unit, norms, last) for direction in directions)
    path = np.vstack([vectors[:, :2] * np.sqrt(values[:2]), np.zeros(2)]) / unit
    total = float(values.clip(min=0).sum())
    return Plane(
        {name: last[name] for name in norms},
        (steps[0], steps[1]),
        path,
        (values[0] / total, values[1] / total),
    )


def _filter_norms(kernel: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    axes = tuple(side for side in range(kernel.ndim) if side != axis % kernel.ndim)
    return np.sqrt(np.sum(np.square(kernel, dtype=np.float32), axis=axes, keepdims=True))


def _over(values: NDArray[np.float32], norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divides each filter by its norm; 0 where the norm is 0."""
    return np.divide(values, norms, out=np.zeros(values.shape, np.float32), where=norms > 0)


def _flat(arrays: Kernels) -> NDArray[np.float32]:
    return np.concatenate([array.ravel() for array in arrays.values()])


def _unflat(flat: NDArray[np.floating], norms: Kernels, like: Kernels) -> Kernels:
    """Converts a flat vector back into kernels, in units of weights."""
    ends = np.cumsum([like[name].size for name in norms])[:-1]
    parts = np.split(flat.astype(np.float32), ends)
    return {
        name: part.reshape(like[name].shape) * norms[name]
        for name, part in zip(norms, parts, strict=True)
    }


# ---- the surface ---------------------------------------------------------------------------------


def compute(subject: Subject) -> EvaluationResult:
    """Computes a surface for each trained network; the result names the networks.

    Raises:
        DatasetError: the run's data set is missing.
        SurfaceError: a network's weights have not moved in two directions.
    """
    from gan_runtime.engines.task import data_for_workload, workload_of
    from gan_runtime.engines.tf import process as tf_process

    tf_process.keep_jax_out()
    block_scikit_learn()
    run, size = subject.run, subject.options.size
    states, spec = checkpoints.load_snapshots(run.snapshots), run.spec()
    data = data_for_workload(spec, loading.load(spec.dataset, subject.home))
    from gan_runtime.evaluation.loss_landscape import Landscape  # loads Keras, without JAX

    landscape = Landscape(spec, workload_of(spec), data)
    total, done = len(landscape.trained) * (size * size + len(states)), itertools.count(1)

    def advance() -> None:
        subject.progress(next(done), total, "losses")

    try:
        surfaces = [
            surface(landscape, network, states, size, advance) for network in landscape.trained
        ]
    except ValueError as error:
        raise SurfaceError(f"{error}.") from error
    return EvaluationResult(surfaces, {"networks": list(landscape.trained)})


def surface(
    landscape: Landscape,
    network: str,
    states: dict[int, Weights],
    size: int,
    advance: Callable[[], None],
) -> Answer:
    """The loss of one network on the plane of its path, with the other networks at their last
    weights.
    """
    epochs, arrays = list(states), list(states.values())
    plane = plane_through(arrays, landscape.filter_axes(network))
    landscape.place(arrays[-1])

    def loss_at(x: float, y: float) -> float:
        landscape.place(plane.at(x, y))
        advance()
        return landscape.loss(network)

    xs, ys = _grid(plane.path, size)
    losses = [loss_at(x, y) for y, x in itertools.product(ys, xs)]
    along = [loss_at(x, y) for x, y in plane.path]
    landscape.place(arrays[-1])
    grid = Curve(
        name="loss",
        x=list(xs) * size,
        y=[y for y in ys for _ in xs],
        series=[CurveSeries(name="loss", values=losses)],
        facts={"columns": size},
    )
    path = Curve(
        name="path",
        x=list(plane.path[:, 0]),
        y=list(plane.path[:, 1]),
        series=[
            CurveSeries(name="loss", values=along),
            CurveSeries(name="epoch", values=[float(epoch) for epoch in epochs]),
        ],
    )
    share_x, share_y = plane.shares
    return Answer(
        evaluation=NAME,
        key=network,
        epoch=max(epochs),
        step=0,
        checkpoint="snapshots",
        facts={
            "network": network,
            "images": landscape.rows,
            "share_x": share_x,
            "share_y": share_y,
        },
        scores=[],
        curves=[grid, path],
    )


def _grid(path: NDArray[np.float64], size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Evenly spaced points along both axes, around the whole path; each side is at least a third of
    the other.
    """
    low, high = path.min(axis=0), path.max(axis=0)
    half = (high - low) * (0.5 + MARGIN)
    half = np.maximum(half, half.max() / 3)
    middle = (low + high) / 2
    xs, ys = (
        np.linspace(middle[axis] - half[axis], middle[axis] + half[axis], size) for axis in (0, 1)
    )
    return xs, ys
