"""Process entry: a run's weight snapshots → its loss surfaces, one for each network, in a journal of their own.

    python -m gan_runtime.surface.job RUN_DIR [SIZE]

Always on the CPU, beside whatever trains. How far it is stands in surface.json.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from gan_runtime.data import loading
from gan_runtime.engines.task import read_by_workload, workload_of
from gan_runtime.engines.tf import flags as tf_flags
from gan_runtime.errors import GanRuntimeError
from gan_runtime.home import Home
from gan_runtime.kept_out import keep_scikit_learn_out
from gan_runtime.records import journal
from gan_runtime.records.journal import Surface
from gan_runtime.records.rundir import RunDir
from gan_runtime.surface import plane, snapshots
from gan_runtime.surface.progress import SurfaceProgress
from gan_runtime.surface.runner import SIZE
from gan_runtime.surface.snapshots import Weights

if TYPE_CHECKING:
    from gan_runtime.surface.landscape import Landscape

MARGIN = 0.3  # of the path's extent, on each side of it
SECONDS_BETWEEN = 0.5  # two notes of progress

Advance = Callable[[], None]


def main(run: RunDir, size: int = SIZE) -> int:
    """Computes and writes; returns the exit code (0 done, 1 failed; the reason stands in surface.json)."""
    try:
        with FileLock(run.surface_lock).acquire(blocking=False):
            return _compute(run, size)
    except Timeout:
        print(f"another process computes the loss surface of {run.run_id} already; this one ends.")
        return 1


def _compute(run: RunDir, size: int) -> int:
    progress = SurfaceProgress.of(os.getpid())
    progress.write(run)
    tf_flags.keep_jax_out()
    keep_scikit_learn_out()
    try:
        states = snapshots.load(run.snapshots)
        spec = run.spec()
        data = read_by_workload(spec, loading.load(spec.dataset, Home(run.path.parent.parent)))
        from gan_runtime.surface.landscape import Landscape

        landscape = Landscape(spec, workload_of(spec), data)
        progress.total = len(landscape.trained) * (size * size + len(states))
        last_note = 0.0

        def advance() -> None:
            nonlocal last_note
            progress.done += 1
            if time.monotonic() - last_note > SECONDS_BETWEEN:
                progress.write(run)
                last_note = time.monotonic()

        surfaces = [surface(landscape, network, states, size, advance) for network in landscape.trained]
        journal.append(run.surface_journal, 1, *surfaces)
        run.announce()
        progress.end(run)
        return 0
    except (GanRuntimeError, ValueError) as error:
        progress.end(run, str(error))
    except Exception as error:  # a person must read why on the page
        traceback.print_exc()
        progress.end(run, f"{type(error).__name__}: {error} (the log has the details)")
    return 1


def surface(
    landscape: Landscape, network: str, states: dict[int, Weights], size: int, advance: Advance
) -> Surface:
    """The loss of one network on the plane of its own path, all other networks as they were at the end."""
    epochs, arrays = list(states), list(states.values())
    seen = plane.through(arrays, landscape.filter_axes(network))
    landscape.place(arrays[-1])

    def loss_at(x: float, y: float) -> float:
        landscape.place(seen.at(x, y))
        advance()
        return landscape.loss(network)

    xs, ys = _grid(seen.path, size)
    losses = [loss_at(x, y) for y, x in itertools.product(ys, xs)]
    along = [loss_at(x, y) for x, y in seen.path]
    landscape.place(arrays[-1])
    return Surface(
        network=network,
        x=list(xs),
        y=list(ys),
        loss=losses,
        path_epoch=epochs,
        path_x=list(seen.path[:, 0]),
        path_y=list(seen.path[:, 1]),
        path_loss=along,
        share_x=seen.shares[0],
        share_y=seen.shares[1],
        images=landscape.rows,
    )


def _grid(path: NDArray[np.float64], size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Even places along both axes, around the whole path; no side is shorter than a third of the other."""
    low, high = path.min(axis=0), path.max(axis=0)
    half = (high - low) * (0.5 + MARGIN)
    half = np.maximum(half, half.max() / 3)
    middle = (low + high) / 2
    xs, ys = (np.linspace(middle[axis] - half[axis], middle[axis] + half[axis], size) for axis in (0, 1))
    return xs, ys


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    code = main(RunDir(Path(sys.argv[1])), *map(int, sys.argv[2:3]))
    sys.stdout.flush()
    sys.exit(code)
