"""The summary of a preparation: what its rows are, what was left out and why, what was converted,
what to look at before training.

Every preparation returns one; the manifest of a prepared set is one, and says how the set was made
as well. A `Survey` is what a look at somebody's files tells before anything is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, FiniteFloat
from pydantic import Field as Bounds

from gan_runtime.base.fields import Fields

EXAMPLES = 3  # names of each kind in a sentence


class Skip(BaseModel):
    """A file of which no row was made.

    `kind`: in one or two words, for counting; `reason`: the end of a sentence about it.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kind: str
    reason: str


class Skipped(BaseModel):
    """All that was left out: how many of each kind, the first of them by name, and how many
    hidden files.
    """

    model_config = ConfigDict(frozen=True)
    counts: dict[str, int] = {}
    first: tuple[Skip, ...] = ()
    hidden: int = 0

    def in_words(self, noun: str = "file") -> str:
        """3 files left out: too small 2 (a.png, b.png), damaged 1 (c.png).

        Empty when nothing is.
        """
        total = sum(self.counts.values())
        kinds = ", ".join(
            f"{kind} {count:,}{self._examples(kind)}" for kind, count in self.counts.items()
        )
        left_out = (
            f"{total:,} {noun}{'' if total == 1 else 's'} left out: {kinds}." if total else ""
        )
        hidden = f"{self.hidden:,} hidden file{'' if self.hidden == 1 else 's'} not read."
        return " ".join(filter(None, (left_out, hidden if self.hidden else "")))

    def _examples(self, kind: str) -> str:
        names = [skip.name for skip in self.first if skip.kind == kind][:EXAMPLES]
        more = ", …" if names and self.counts[kind] > len(names) else ""
        return f" ({', '.join(names)}{more})" if names else ""


class Quantity(BaseModel):
    """A number that was measured of the rows, such as a sampling fraction."""

    model_config = ConfigDict(frozen=True)
    name: str
    value: FiniteFloat
    unit: str = ""

    def in_words(self) -> str:
        """Such as "sampling fraction 0.0213"."""
        return f"{self.name} {self.value:.4g} {self.unit}".strip()


class Curve(BaseModel):
    """A small curve of the rows, such as a mean profile: `y` over `x`, at most some hundred
    points.
    """

    model_config = ConfigDict(frozen=True)
    title: str
    x_label: str
    y_label: str
    x: tuple[FiniteFloat, ...]
    y: tuple[FiniteFloat, ...]


class Summary(BaseModel):
    """What came of the files, or of a simulation.

    `held_out`: rows that no run trains on. `counts`: rows of each class, or of each film of a
    simulation, in the order of the classes; `held_out_counts`: those of them that are held out.
    `held_out_splits`: rows of each folder that is held out as a whole, such as test. `converted`:
    how many files were changed in which way, such as "color profile to sRGB". `quantities`,
    `curve`: measured of the rows. `warnings`: sentences about what a person should look at before
    training. `note`: the same for each run on the set, which repeats it.
    """

    model_config = ConfigDict(frozen=True)
    held_out: Annotated[int, Bounds(ge=0)] = 0
    counts: dict[str, int] = {}
    held_out_counts: dict[str, int] = {}
    held_out_splits: dict[str, int] = {}
    skipped: Skipped = Skipped()
    converted: dict[str, int] = {}
    quantities: tuple[Quantity, ...] = ()
    curve: Curve | None = None
    warnings: tuple[str, ...] = ()
    note: str = ""

    def by_split(self) -> dict[str, tuple[int, int]]:
        """Of each class the rows to train on and those held out."""
        held_out = {name: self.held_out_counts.get(name, 0) for name in self.counts}
        return {
            name: (count - held_out[name], held_out[name]) for name, count in self.counts.items()
        }

    def sentences(self) -> list[str]:
        """What was held out, left out, converted and measured, then the note; each only where
        there is something to say.
        """
        splits = ", ".join(f"{name} {count:,}" for name, count in self.held_out_splits.items())
        changes = ", ".join(f"{kind} {count:,}" for kind, count in self.converted.items())
        measured = ", ".join(quantity.in_words() for quantity in self.quantities)
        of_rows = (
            f"Converted: {changes}." if changes else "",
            f"Measured: {measured}." if measured else "",
        )
        note = f"{self.note.rstrip('.')}." if self.note else ""
        folders = f"Held out by their folders: {splits}." if splits else ""
        return [
            sentence for sentence in (folders, self.skipped.in_words(), *of_rows, note) if sentence
        ]


@dataclass(frozen=True)
class Survey:
    """What a preparation would make, before anything is stored.

    `grid`: uint8 (up to 64, pixels, pixels, channels), the first rows; `grid_labels`: the class of
    each, empty without labels. `bytes_on_disk`: of the prepared set.
    """

    fields: Fields
    rows: int
    summary: Summary
    grid: NDArray[np.uint8]
    grid_labels: tuple[str, ...]
    bytes_on_disk: int
