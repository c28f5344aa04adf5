"""The held-out films of a data set of pictures in pairs: consecutive rows, of which each one's target is the next one's source.

Rows of a flow stand in the order of time, with one Reynolds number and a lattice step that rises evenly. Pairs of pictures, which have
neither, are films of a single step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.data.contract import DataSet
from gan_runtime.errors import DatasetError
from gan_runtime.fields import Fields
from gan_runtime.frame_fields import LATTICE_STEP, REYNOLDS, SOURCE, TARGET


@dataclass(frozen=True)
class Film:
    """`number`: among the held-out ones, from 0. `first`: its first row among the held-out ones; `steps`: from its first frame on, as many
    as it has rows. `reynolds`, `solver_steps` between two frames: None for pairs of pictures."""

    number: int
    first: int
    steps: int
    reynolds: float | None = None
    solver_steps: int | None = None

    @property
    def title(self) -> str:
        """Such as "Re 120"; "pair 3" for pictures."""
        return f"pair {self.number}" if self.reynolds is None else f"Re {self.reynolds:g}"


def films(data: DataSet) -> list[Film]:
    """Those held out, in their order; none of a set that holds nothing out. Reads two numbers a row, no pictures."""
    rows = data.held_out
    if not rows:
        return []
    if REYNOLDS not in data.fields or LATTICE_STEP not in data.fields:
        return [Film(row, row, 1) for row in range(rows)]
    stored = _only(data, REYNOLDS, LATTICE_STEP).read_held_out(rows)
    reynolds, lattice = stored[REYNOLDS], stored[LATTICE_STEP].astype(np.int64)
    begins = [0, *(1 + np.flatnonzero((np.diff(reynolds) != 0.0) | (np.diff(lattice) <= 0))).tolist()]
    ends = [*begins[1:], rows]
    return [
        Film(number, first, end - first, float(reynolds[first]), _between(lattice[first:end]))
        for number, (first, end) in enumerate(zip(begins, ends, strict=True))
    ]


def frames(data: DataSet, film: Film, start: int, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """As stored: the source (height, width, channels in) of frame `start`, and the targets (steps, height, width, channels out) of the steps
    from there on. No other rows are read."""
    begin = film.first + start
    source = _only(data, SOURCE).read_held_out(1, begin)[SOURCE]
    return source[0], _only(data, TARGET).read_held_out(steps, begin)[TARGET]


def chosen(known: list[Film], number: int, start: int, steps: int) -> Film:
    """The film with this number, of which so many steps from frame `start` on are there.

    Raises:
        DatasetError: there is no such film, or it is too short.
    """
    if not known:
        raise DatasetError(
            "the data set holds nothing out, so there is nothing that the model was not trained on: prepare a set with held-out flows, "
            "or with more pairs or a higher held_out_percent."
        )
    if not 0 <= number < len(known):
        raise DatasetError(
            f"trajectory is {number}, but the data set holds out 0 to {len(known) - 1}: use one of them."
        )
    film = known[number]
    if start + steps > film.steps:
        raise DatasetError(
            f"{steps} steps from frame {start} on are asked for, but {film.title} has {film.steps} in all: use fewer, or begin earlier."
        )
    return film


def check_channels(fields: Fields) -> None:
    """Raises DatasetError when a picture that is made has more channels than the one it is made of: it cannot stand in its place."""
    (*_, given), (*_, made) = fields[SOURCE].shape, fields[TARGET].shape
    if made > given:
        raise DatasetError(
            f"the targets of the data set have {made} channels and its sources {given}, so that what is made cannot be fed back: "
            "pick a run whose targets have no more channels than its sources."
        )


def _only(data: DataSet, *names: str) -> DataSet:
    """With these fields alone, so that no others are read."""
    fields = {name: data.fields[name] for name in names}
    return replace(data, fields=fields)  # type: ignore[type-var]


def _between(lattice: NDArray[np.int64]) -> int | None:
    return int(lattice[1] - lattice[0]) if len(lattice) > 1 else None
