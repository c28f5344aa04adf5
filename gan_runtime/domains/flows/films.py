"""The films of a data set of paired images: consecutive rows, in which the target of one is the
source of the next.

Rows of a flow are in the order of time, with one Reynolds number and evenly rising lattice steps.
Other pairs of images are films of a single step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.data.contract import DataSet, Progress
from gan_runtime.data.sharded import row_bytes
from gan_runtime.domains.flows.fields import (
    DIAMETER,
    LATTICE_STEP,
    OBSTACLE_SHIFT,
    OBSTACLE_WIDTH,
    REYNOLDS,
)
from gan_runtime.domains.flows.preparation_options import title
from gan_runtime.engines.inputs import host_value


@dataclass(frozen=True)
class Film:
    """`number`: among the held-out films, or among the training films, from 0.

    `first`: its first row among theirs; `steps`: its rows. `reynolds`, `solver_steps` between two
    frames: None for other pairs of images. `width`, `shift`: of the obstacle, in cells of the
    solver; the defaults for data sets without these fields.
    """

    number: int
    first: int
    steps: int
    reynolds: float | None = None
    solver_steps: int | None = None
    width: float = DIAMETER
    shift: float = 0.0

    @property
    def title(self) -> str:
        """Such as "Re 120" or "Re 120, width 14"; "pair 3" of other images."""
        if self.reynolds is None:
            return f"pair {self.number}"
        return title(self.reynolds, self.width, self.shift)


def films(data: DataSet) -> list[Film]:
    """The held-out films in their order. Reads a few numbers a row, no images."""
    rows = data.held_out
    if not rows or not _is_flow(data):
        return _pairs(rows)
    return _cut(_only(data, *_numbers(data)).read_held_out(rows))


def trained(data: DataSet) -> list[Film]:
    """The training films, likewise."""
    if not _is_flow(data):
        return _pairs(data.rows)
    return _cut(_only(data, *_numbers(data)).read(np.arange(data.rows)))


def _is_flow(data: DataSet) -> bool:
    return REYNOLDS in data.fields and LATTICE_STEP in data.fields


def _numbers(data: DataSet) -> list[str]:
    names = (REYNOLDS, LATTICE_STEP, OBSTACLE_WIDTH, OBSTACLE_SHIFT)
    return [name for name in names if name in data.fields]


def _pairs(rows: int) -> list[Film]:
    return [Film(row, row, 1) for row in range(rows)]


def _cut(stored: Mapping[str, NDArray[Any]]) -> list[Film]:
    """A film begins where the Reynolds number changes or the lattice step falls."""
    reynolds, lattice = stored[REYNOLDS], stored[LATTICE_STEP].astype(np.int64)
    is_cut = (np.diff(reynolds) != 0.0) | (np.diff(lattice) <= 0)
    begins = [0, *(1 + np.flatnonzero(is_cut)).tolist()]
    flows = []
    for number, (first, end) in enumerate(pairwise([*begins, len(lattice)])):
        obstacle = {
            name: float(stored[field][first])
            for name, field in (("width", OBSTACLE_WIDTH), ("shift", OBSTACLE_SHIFT))
            if field in stored
        }
        between = int(lattice[first + 1] - lattice[first]) if end - first > 1 else None
        flows.append(Film(number, first, end - first, float(reynolds[first]), between, **obstacle))
    return flows


def frames(data: DataSet, film: Film, start: int, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """As stored: the source (height, width, channels in) of frame `start`, and the targets (steps,
    height, width, channels out) from there on. Reads no other rows.
    """
    begin = film.first + start
    source = _only(data, SOURCE).read_held_out(1, begin)[SOURCE]
    return source[0], _only(data, TARGET).read_held_out(steps, begin)[TARGET]


def selected(held_out: list[Film], number: int, start: int, steps: int) -> Film:
    """The held-out film of this number, which has so many steps from frame `start` on.

    Raises:
        DatasetError: there is no such film, or it is too short.
    """
    if not held_out:
        raise DatasetError(
            "the data set has no held-out films, so the model has seen all of it: prepare one with"
            " held-out flows, or with more pairs or a higher held_out_percent."
        )
    if not 0 <= number < len(held_out):
        raise DatasetError(
            f"trajectory is {number}, but the held-out films are 0 to {len(held_out) - 1}: use one"
            " of them."
        )
    film = held_out[number]
    if start + steps > film.steps:
        raise DatasetError(
            f"{steps} steps from frame {start} on are requested, but {film.title} has {film.steps}"
            " in all: use fewer, or begin earlier."
        )
    return film


def not_fed_back(fields: Fields) -> str:
    """Why a generated image cannot be the next input: it has more channels; "" where it can."""
    (*_, source), (*_, target) = fields[SOURCE].shape, fields[TARGET].shape
    if target <= source:
        return ""
    return (
        f"The targets of the data set have {target} channels and its sources {source}, so outputs"
        " cannot be inputs. Pick a run whose targets have no more channels than its sources."
    )


def _only(data: DataSet, *names: str) -> DataSet:
    """With these fields alone."""
    fields = {name: data.fields[name] for name in names}
    return replace(data, fields=fields)  # type: ignore[type-var]


# ---- replay --------------------------------------------------------------------------------------
# A baseline of every rollout: the training frame nearest to the start frame, and the frames after
# it. A model that is no better has learned no flow: a lookup in its training data would do.

Values = NDArray[np.float32]
BATCH = 64  # frames that are compared at once
# of frames that are read; of larger sets only every second frame is compared, or fewer
MOST_BYTES = 8_000_000_000


@dataclass(frozen=True)
class Replay:
    """`title`: "Re 140 from frame 22". `frames`: (K, height, width, channels out), values of the
    steps 1 to K, fewer than the rollout's where the film ends before.
    """

    title: str
    frames: Values


def nearest(data: DataSet, start: Values, steps: int, progress: Progress) -> Replay:
    """By the root mean square error to the `start` frame (height, width, channels out).

    Compares frames that at least `steps` others follow in their film, or three quarters of it.
    """
    starts = [(film, frame) for film in trained(data) for frame in range(_starts(film, steps))]
    starts = starts[:: 1 + len(starts) * row_bytes(data.fields[SOURCE]) // MOST_BYTES]
    errors = np.empty(len(starts))
    for begin in range(0, len(starts), BATCH):
        progress(begin, len(starts), "searching for the nearest training frame")
        places = [film.first + frame for film, frame in starts[begin : begin + BATCH]]
        sources = _training_values(data, SOURCE, np.array(places, np.int64))
        differences = sources[..., : start.shape[-1]] - start
        errors[begin : begin + BATCH] = np.square(differences).mean(axis=(1, 2, 3))
    film, frame = starts[int(errors.argmin())]
    rows = film.first + np.arange(frame, min(frame + steps, film.steps))
    title = film.title if film.reynolds is None else f"{film.title} from frame {frame}"
    return Replay(title, _training_values(data, TARGET, rows))


def _training_values(data: DataSet, field: str, rows: NDArray[np.int64]) -> Values:
    """One field of training rows. Reads no others."""
    return host_value(_only(data, field).read(rows)[field], data.fields[field])


def _starts(film: Film, steps: int) -> int:
    """How many frames of a film, from the first on, have enough others after them."""
    return film.steps + 1 - min(steps, -(-3 * film.steps // 4))
