"""The work of the evaluation that computes loss surfaces: a run's weight snapshots → a surface for each network."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.blocked_imports import keep_scikit_learn_out
from gan_runtime.base.errors import SurfaceError
from gan_runtime.data import loading
from gan_runtime.engines.task import read_by_workload, workload_of
from gan_runtime.engines.tf import flags as tf_flags
from gan_runtime.evaluation import descent_plane
from gan_runtime.evaluation.surface_options import NAME
from gan_runtime.evaluation.work import Evaluated, Subject
from gan_runtime.records.answer import Answer, Curve, Series
from gan_runtime.training import snapshots
from gan_runtime.training.snapshots import Weights

if TYPE_CHECKING:
    from gan_runtime.evaluation.loss_landscape import Landscape

MARGIN = 0.3  # of the path's extent, on each side of it

Advance = Callable[[], None]


def compute(subject: Subject) -> Evaluated:
    """A surface of each network that was trained; the result names them.

    Raises:
        DatasetError: the run's data set is gone.
        SurfaceError: its weights have not moved in two directions.
    """
    tf_flags.keep_jax_out()
    keep_scikit_learn_out()
    run, size = subject.run, subject.options.size
    states, spec = snapshots.load(run.snapshots), run.spec()
    data = read_by_workload(spec, loading.load(spec.dataset, subject.home))
    from gan_runtime.evaluation.loss_landscape import Landscape  # loads Keras

    landscape = Landscape(spec, workload_of(spec), data)
    total, done = len(landscape.trained) * (size * size + len(states)), itertools.count(1)

    def advance() -> None:
        subject.progress(next(done), total, "losses")

    try:
        surfaces = [surface(landscape, network, states, size, advance) for network in landscape.trained]
    except ValueError as error:
        raise SurfaceError(f"{error}.") from error
    return Evaluated(surfaces, {"networks": list(landscape.trained)})


def surface(
    landscape: Landscape, network: str, states: dict[int, Weights], size: int, advance: Advance
) -> Answer:
    """The loss of one network on the plane of its own path, all other networks as they were at the end."""
    epochs, arrays = list(states), list(states.values())
    seen = descent_plane.through(arrays, landscape.filter_axes(network))
    landscape.place(arrays[-1])

    def loss_at(x: float, y: float) -> float:
        landscape.place(seen.at(x, y))
        advance()
        return landscape.loss(network)

    xs, ys = _grid(seen.path, size)
    losses = [loss_at(x, y) for y, x in itertools.product(ys, xs)]
    along = [loss_at(x, y) for x, y in seen.path]
    landscape.place(arrays[-1])
    grid = Curve(
        name="loss",
        x=list(xs) * size,
        y=[y for y in ys for _ in xs],
        series=[Series(name="loss", values=losses)],
        facts={"columns": size},
    )
    path = Curve(
        name="path",
        x=list(seen.path[:, 0]),
        y=list(seen.path[:, 1]),
        series=[
            Series(name="loss", values=along),
            Series(name="epoch", values=[float(epoch) for epoch in epochs]),
        ],
    )
    share_x, share_y = seen.shares
    return Answer(
        evaluation=NAME,
        key=network,
        epoch=max(epochs),
        step=0,
        checkpoint="snapshots",
        facts={"network": network, "images": landscape.rows, "share_x": share_x, "share_y": share_y},
        scores=[],
        curves=[grid, path],
    )


def _grid(path: NDArray[np.float64], size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Even places along both axes, around the whole path; no side is shorter than a third of the other."""
    low, high = path.min(axis=0), path.max(axis=0)
    half = (high - low) * (0.5 + MARGIN)
    half = np.maximum(half, half.max() / 3)
    middle = (low + high) / 2
    xs, ys = (np.linspace(middle[axis] - half[axis], middle[axis] + half[axis], size) for axis in (0, 1))
    return xs, ys
