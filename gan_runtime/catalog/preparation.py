"""The declaration of a way to make a data set.

Loads no framework and no NumPy, so every process can read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord

HDF5_SUFFIXES = (".h5", ".hdf5")
Rule = Callable[[Any], FieldError | None]  # gets a record of options


@dataclass(frozen=True)
class Promised:
    """A data set before it is made: the fields of a row, and its number of training rows."""

    fields: Fields
    rows: int


class NoOptions(OptionRecord):
    """The options of a preparation without options."""


@dataclass(frozen=True)
class Preparation:
    """One way to make a data set.

    `maker`: the module that writes it into the home (data.preparations.Maker); empty: Keras
    downloads it into its cache. `source`: what --from names, in words; empty if not needed.
    `suffixes`: of a source that is a file. `name`: default name of the set. `version`: raised when
    the same source and options give other rows. `has_preview`: a page can preview the source.
    `promises(options)`: fields and rows, known before the set is made. With default options and the
    preparation's name, a run can be submitted before its set exists, and waits until it does.
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
        """The set with default options, before it is made; None if unknown."""
        return self.promises(self.options()) if self.promises else None

    @property
    def makes_files(self) -> bool:
        """Whether it writes the set into the home."""
        return bool(self.maker)

    @property
    def needs_source(self) -> bool:
        """Whether --from is required."""
        return bool(self.source)
