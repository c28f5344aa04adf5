"""What a domain declares, with the preparations of its data sets, and the domains of the project.

Loads no framework and no NumPy, so every process can read it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.entries import (
    CompiledEpoch,
    Preset,
    PublishedScaling,
    PublishedTimes,
    Renderer,
    WorkloadEntry,
)

HDF5_SUFFIXES = (".h5", ".hdf5")
Rule = Callable[[Any], FieldError | None]  # gets a record of options


@dataclass(frozen=True)
class Promised:
    """A data set before it is made: the fields of a row, and its number of training rows."""

    fields: Fields
    rows: int


class NoOptions(OptionRecord):
    """For preparations without options."""


@dataclass(frozen=True)
class Preparation:
    """One way to make a data set.

    `maker`: the module that writes it into the home (data.preparations.Maker); empty: Keras
    downloads it into its cache. `source`: what --from names, in words; empty if not needed.
    `suffixes`: of a source that is a file. `name`: default name of the set. `version`: raised when
    the same source and options give other rows. `has_preview`: a page can preview the source.
    `promises(options)`: fields and rows in advance. A run may use such a set, with default options
    and the preparation's name, before it is made, and waits for it.
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


@dataclass(frozen=True)
class Domain:
    """A scientific domain: its data sets, workloads and evaluations, by their stored names.

    `evaluations`: "module:NAME" of each `Evaluation`; `jobs`: modules with JOBS, its other
    background jobs. `first_rows`: "module:function" that draws the first rows of its data sets; it
    gets stored arrays by field and returns a Pillow image, or None for other rows. `nouns`: what a
    row with a field is called, by field. `describe(fields)`: one line on a row of its data sets; ""
    for other rows. `examples`: names of example bundles in examples/.
    `compiled_epoch`, `scaling`, `times`: published speeds, for comparison.
    """

    name: str
    title: str
    workloads: Mapping[str, WorkloadEntry]
    preparations: Mapping[str, Preparation] = field(default_factory=dict)
    renderers: Mapping[str, Renderer] = field(default_factory=dict)
    presets: Mapping[str, Preset] = field(default_factory=dict)
    evaluations: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    first_rows: str = ""
    nouns: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[Fields], str] = lambda _fields: ""
    examples: tuple[str, ...] = ()
    compiled_epoch: CompiledEpoch | None = None
    scaling: PublishedScaling | None = None
    times: PublishedTimes | None = None


# The only table of the core that names the domains. Each module has DOMAIN, and imports the classes
# above from this file, so the table is last.
MODULES = ("gan_runtime.domains.showers.domain", "gan_runtime.domains.flows.domain")
DOMAINS: tuple[Domain, ...] = tuple(importlib.import_module(name).DOMAIN for name in MODULES)
