"""What is declared of one way to get a data set. Loads none of the code that does it, so a form may read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord

HDF5_SUFFIXES = (".h5", ".hdf5")
Rule = Callable[[Any], FieldError | None]  # of a record of options: what is wrong across them


@dataclass(frozen=True)
class Promised:
    """What a set will hold once it is made: fields of a row, and rows to train on."""

    fields: Fields
    rows: int


class NoOptions(OptionRecord):
    """Of a preparation that has none."""


@dataclass(frozen=True)
class Preparation:
    """One way to get a data set.

    `maker`: the module that makes files in the home, under a name of one's own (data.preparations.Maker). Empty: Keras
    downloads the set into its cache. `source`: what --from has to name, in words; empty where nothing is needed.
    `suffixes`: of a source that is one file. `name`: of the set where nobody gives one. `version`: of what it makes of the
    same source and options; one more when that changes. `has_preview`: a page can look through the source first.
    `promises`: what a set will hold that is made with given options. A run may name such a set before it is made, and waits
    for it; its `name` is that of the preparation, its options are the defaults.
    """

    title: str
    summary: str
    options: type[OptionRecord] = NoOptions
    maker: str = ""
    source: str = ""
    suffixes: tuple[str, ...] = ()
    name: str = ""
    rules: tuple[Rule, ...] = ()
    version: int = 1
    has_preview: bool = False
    promises: Callable[[Any], Promised] | None = None

    @property
    def promised(self) -> Promised | None:
        """What a run may count on before the set is made; None where nobody can know."""
        return self.promises(self.options()) if self.promises else None

    @property
    def makes_files(self) -> bool:
        """Whether it writes a set into the home."""
        return bool(self.maker)

    @property
    def needs_source(self) -> bool:
        """Whether --from has to be given."""
        return bool(self.source)
