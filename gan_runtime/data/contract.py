"""The interface of a data set, and its implementation in memory."""

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
# done, total (0: unknown), sentence; raises to cancel
Progress = Callable[[int, int, str], None]


class DataSet(Protocol):
    """A data set with one or more fields: `rows` training rows and `held_out` held-out rows.
    `origin`: the source of the rows, and for a prepared set its content digest. `note`: a note for
    the user, such as a reduced number of rows, or "".
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
        """All rows to train on, for the device; None for a set that `read` streams."""

    def read(self, indices: Indices) -> dict[str, Array]:
        """The rows to train on with these numbers, in this order: an array (count, …) by field."""

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """At most `count` held-out rows from `first` on; training rows if none are held out."""


@dataclass(frozen=True)
class ArraySet:
    """A data set in memory. `resident`: the rows to train on; `kept_back`: the held-out rows, if
    any.
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
        """The rows to train on with these numbers."""
        return {name: self.resident[name][indices] for name in self.fields}

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """At most `count` held-out rows from `first` on."""
        arrays = self.kept_back if self.held_out else self.resident
        return {name: arrays[name][first : first + count] for name in self.fields}


@dataclass(frozen=True)
class Availability:
    """Whether a data set can be read now. `images`: the number of rows that a run trains on."""

    ready: bool
    images: int
    origin: str
    note: str = ""


def picture_fields(images: Array, classes: tuple[str, ...] = ()) -> Fields:
    """The fields of images uint8 (N, height, width, channels), with labels if there are classes."""
    height, width, channels = images.shape[1:]
    label_field = {LABELS: labels(classes)} if classes else {}
    return {IMAGES: pictures(height, width, channels), **label_field}


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
    """A set of images uint8 (N, height, width, channels) in memory; `labels`: (N,) numbers of
    `classes`.
    """
    arrays = (
        {IMAGES: images} if labels is None else {IMAGES: images, LABELS: labels.astype(np.int32)}
    )
    fields = picture_fields(images, classes if labels is not None else ())
    return ArraySet(name, fields, arrays, origin, note, kept_back or {})


def _length(arrays: Arrays) -> int:
    return min((len(array) for array in arrays.values()), default=0)


@dataclass(frozen=True)
class FieldSelection:
    """A `DataSet` with only some `fields` of the set `whole`."""

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
        """The arrays of the fields; None for a streamed set."""
        arrays = self.whole.resident
        return None if arrays is None else {name: arrays[name] for name in self.fields}

    def read(self, indices: Indices) -> dict[str, Array]:
        """The rows to train on with these numbers."""
        rows = self.whole.read(indices)
        return {name: rows[name] for name in self.fields}

    def read_held_out(self, count: int, first: int = 0) -> dict[str, Array]:
        """At most `count` held-out rows from `first` on."""
        rows = self.whole.read_held_out(count, first)
        return {name: rows[name] for name in self.fields}
