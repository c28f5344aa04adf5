"""The films of a data set of pictures in pairs: consecutive rows, of which each one's target is the
next one's source.

Rows of a flow stand in the order of time, with one Reynolds number and a lattice step that rises
evenly. Pairs of pictures, which have neither, are films of a single step.
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
    """`number`: among the held-out ones, or those that are trained on, from 0.

    `first`: its first row among the same; `steps`: from its first frame on, as many as it has rows.
    `reynolds`, `solver_steps` between two frames: None for pairs of pictures. `width`, `shift`: of
    the obstacle, in cells of the solver; the usual ones for sets that do not say.
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
        """Such as "Re 120" or "Re 120, width 14"; "pair 3" for pictures."""
        if self.reynolds is None:
            return f"pair {self.number}"
        return title(self.reynolds, self.width, self.shift)


def films(data: DataSet) -> list[Film]:
    """Those held out, in their order; none of a set that holds nothing out.

    Reads a few numbers a row, no pictures.
    """
    rows = data.held_out
    if not rows or not _is_flow(data):
        return _pairs(rows)
    return _cut(_only(data, *_numbers(data)).read_held_out(rows))


def trained(data: DataSet) -> list[Film]:
    """Those that are trained on, likewise."""
    if not _is_flow(data):
        return _pairs(data.rows)
    return _cut(_only(data, *_numbers(data)).read(np.arange(data.rows)))


def _is_flow(data: DataSet) -> bool:
    return REYNOLDS in data.fields and LATTICE_STEP in data.fields


def _numbers(data: DataSet) -> list[str]:
    known = (REYNOLDS, LATTICE_STEP, OBSTACLE_WIDTH, OBSTACLE_SHIFT)
    return [name for name in known if name in data.fields]


def _pairs(rows: int) -> list[Film]:
    return [Film(row, row, 1) for row in range(rows)]


def _cut(stored: Mapping[str, NDArray[Any]]) -> list[Film]:
    """The films of rows in the order of time: another one where the Reynolds number changes
    or time goes back.
    """
    reynolds, lattice = stored[REYNOLDS], stored[LATTICE_STEP].astype(np.int64)
    begins = [
        0,
        *(1 + np.flatnonzero((np.diff(reynolds) != 0.0) | (np.diff(lattice) <= 0))).tolist(),
    ]
    found = []
    for number, (first, end) in enumerate(pairwise([*begins, len(lattice)])):
        obstacle = {
            name: float(stored[field][first])
            for name, field in (("width", OBSTACLE_WIDTH), ("shift", OBSTACLE_SHIFT))
            if field in stored
        }
        solver_steps = _between(lattice[first:end])
        found.append(
            Film(number, first, end - first, float(reynolds[first]), solver_steps, **obstacle)
        )
    return found


def frames(data: DataSet, film: Film, start: int, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """As stored: the source (height, width, channels in) of frame `start`, and the targets (steps,
    height, width, channels out) of the steps from there on. No other rows are read.
    """
    begin = film.first + start
    source = _only(data, SOURCE).read_held_out(1, begin)[SOURCE]
    return source[0], _only(data, TARGET).read_held_out(steps, begin)[TARGET]


def of_training(data: DataSet, field: str, rows: NDArray[np.int64]) -> NDArray[Any]:
    """One field of rows that are trained on, as stored. No others are read."""
    return _only(data, field).read(rows)[field]


def chosen(known: list[Film], number: int, start: int, steps: int) -> Film:
    """The film with this number, of which so many steps from frame `start` on are there.

    Raises:
        DatasetError: there is no such film, or it is too short.
    """
    if not known:
        raise DatasetError(
            "the data set holds nothing out, so there is nothing that the model was not trained on:"
            " prepare a set with held-out flows, or with more pairs or a higher held_out_percent."
        )
    if not 0 <= number < len(known):
        raise DatasetError(
            f"trajectory is {number}, but the data set holds out 0 to {len(known) - 1}: use one of"
            " them."
        )
    film = known[number]
    if start + steps > film.steps:
        raise DatasetError(
            f"{steps} steps from frame {start} on are asked for, but {film.title} has {film.steps}"
            " in all: use fewer, or begin earlier."
        )
    return film


def not_fed_back(fields: Fields) -> str:
    """Why a picture that is made cannot take the place of the one it is made of: it has more
    channels; "" where it can.
    """
    (*_, given), (*_, made) = fields[SOURCE].shape, fields[TARGET].shape
    if made <= given:
        return ""
    return (
        f"The targets of the data set have {made} channels and its sources {given}, so that what is"
        " made cannot be fed back: pick a run whose targets have no more channels than its"
        " sources."
    )


def _only(data: DataSet, *names: str) -> DataSet:
    """With these fields alone, so that no others are read."""
    fields = {name: data.fields[name] for name in names}
    return replace(data, fields=fields)  # type: ignore[type-var]


def _between(lattice: NDArray[np.int64]) -> int | None:
    return int(lattice[1] - lattice[0]) if len(lattice) > 1 else None


# ---- replay --------------------------------------------------------------------------------------
# The replay, a baseline of every rollout: of all frames of the training films the one nearest to
# the given frame, and what followed it there.
#
# A model that does no better has learned no flow: looking up what it was trained on would do.

Values = NDArray[np.float32]
BATCH = 64  # frames that are compared at once
# of frames that are read; of larger sets every second frame is compared, or fewer
MOST_BYTES = 8_000_000_000


@dataclass(frozen=True)
class Replay:
    """`title`: "Re 140 from frame 22". `frames`: (K, height, width, channels out), values of the
    steps 1 to K; K is below the steps of the rollout where the film ends before.
    """

    title: str
    frames: Values


def nearest(data: DataSet, given: Values, steps: int, progress: Progress) -> Replay:
    """By the root mean square error to the `given` frame (height, width, channels out).

    Compared are frames that `steps` others follow in their film, or at least three quarters of it.
    """
    known = trained(data)
    starts = [(film, frame) for film in known for frame in range(_starts(film, steps))]
    starts = starts[:: 1 + len(starts) * row_bytes(data.fields[SOURCE]) // MOST_BYTES]
    errors = np.empty(len(starts))
    for begin in range(0, len(starts), BATCH):
        progress(begin, len(starts), "looking for the nearest training frame")
        rows = np.array(
            [film.first + frame for film, frame in starts[begin : begin + BATCH]], np.int64
        )
        sources = host_value(of_training(data, SOURCE, rows), data.fields[SOURCE])
        errors[begin : begin + BATCH] = np.square(sources[..., : given.shape[-1]] - given).mean(
            axis=(1, 2, 3)
        )
    film, frame = starts[int(errors.argmin())]
    rows = film.first + np.arange(frame, min(frame + steps, film.steps))
    following = host_value(of_training(data, TARGET, rows), data.fields[TARGET])
    return Replay(
        film.title if film.reynolds is None else f"{film.title} from frame {frame}", following
    )


def _starts(film: Film, steps: int) -> int:
    """How many of a film's frames, from the first on, enough others follow."""
    return film.steps + 1 - min(steps, -(-3 * film.steps // 4))
