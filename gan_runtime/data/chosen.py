"""A data set of which a run reads some fields only: those that its workload asks for. The others are neither read nor sent."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.base.fields import Fields
from gan_runtime.data.contract import Array, Arrays, DataSet, Indices


@dataclass(frozen=True)
class ChosenFields:
    """See `contract.DataSet`. `whole`: the set with all its fields; `fields`: those that are read."""

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
