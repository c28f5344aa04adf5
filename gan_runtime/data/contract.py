"""What a data set hands over, and what can be said of it before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import IMAGES, LABELS, Fields, labels, pictures

Array = NDArray[Any]
Arrays = Mapping[str, Array]  # by field, rows first, in the types of the fields
Indices = NDArray[np.int64]
Progress = Callable[
    [int, int, str], None
]  # done, of so many (0: unknown), what is done now; raises to cancel


class DataSet(Protocol):
    """Rows of one or more fields. `rows` of them are trained on; `held_out` others never are.

    `origin`: where the rows came from, and of a prepared set what tells its content. `note`:
    anything the person should know, such as a reduced number of rows; empty otherwise.
    """

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...

    @property
    def note(self) -> str: ...

    @property
    def fields(self) -> Fields: ...

    @property
    def rows(self) -> int: ...

    @property
    def held_out(self) -> int: ...

    @property
    def resident(self) -> Arrays | None:
        """All rows to train on, for the device; None when they are to be streamed by `read`."""

    def read(self, indices: Indices) -> dict[str, Array]:
        """The rows to train on with these numbers, in their order: an array (count, …) of
        each field.
        """

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """At most `count` held-out rows from `first` on; rows to train on where the set holds
        none out.
        """


@dataclass(frozen=True)
class ArraySet:
    """A data set in memory.

    `resident`: the rows to train on; `kept_back`: the held-out ones, empty when there are none.
    """

    name: str
    fields: Fields
    resident: Arrays
    origin: str
    note: str = ""
    kept_back: Arrays = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """To train on."""
        return _length(self.resident)

    @property
    def held_out(self) -> int:
        """Never trained on."""
        return _length(self.kept_back)

    def read(self, indices: Indices) -> dict[str, Array]:
        """See DataSet."""
        return {name: self.resident[name][indices] for name in self.fields}

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """See DataSet."""
        arrays = self.kept_back if self.held_out else self.resident
        return {name: arrays[name][first : first + count] for name in self.fields}


@dataclass(frozen=True)
class Availability:
    """Whether a data set can be read right now.

    `images` is the number of rows a run would train on.
    """

    ready: bool
    images: int
    origin: str
    note: str = ""


def picture_fields(images: Array, classes: tuple[str, ...] = ()) -> Fields:
    """The fields of pictures uint8 (N, height, width, channels), with labels where there are
    classes.
    """
    height, width, channels = images.shape[1:]
    labelled = {LABELS: labels(classes)} if classes else {}
    return {IMAGES: pictures(height, width, channels), **labelled}


def picture_set(
    name: str,
    images: Array,
    origin: str,
    *,
    labels: Array | None = None,
    classes: tuple[str, ...] = (),
    note: str = "",
    kept_back: Arrays | None = None,
) -> ArraySet:
    """A set of pictures uint8 (N, height, width, channels) in memory; `labels`: (N,) numbers
    of `classes`.
    """
    arrays = (
        {IMAGES: images} if labels is None else {IMAGES: images, LABELS: labels.astype(np.int32)}
    )
    fields = picture_fields(images, classes if labels is not None else ())
    return ArraySet(name, fields, arrays, origin, note, kept_back or {})


def _length(arrays: Arrays) -> int:
    return min((len(array) for array in arrays.values()), default=0)


@dataclass(frozen=True)
class ChosenFields:
    """See `contract.DataSet`.

    `whole`: the set with all its fields; `fields`: those that are read.
    """

    whole: DataSet
    fields: Fields

    @property
    def name(self) -> str:
        """The set's."""
        return self.whole.name

    @property
    def origin(self) -> str:
        """The set's."""
        return self.whole.origin

    @property
    def note(self) -> str:
        """The set's."""
        return self.whole.note

    @property
    def rows(self) -> int:
        """To train on."""
        return self.whole.rows

    @property
    def held_out(self) -> int:
        """Never trained on."""
        return self.whole.held_out

    @property
    def resident(self) -> Arrays | None:
        """The arrays of the fields; None when they are to be streamed."""
        arrays = self.whole.resident
        return None if arrays is None else {name: arrays[name] for name in self.fields}

    def read(self, indices: Indices) -> dict[str, Array]:
        """See DataSet."""
        rows = self.whole.read(indices)
        return {name: rows[name] for name in self.fields}

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """See DataSet."""
        rows = self.whole.read_held_out(count, first)
        return {name: rows[name] for name in self.fields}
