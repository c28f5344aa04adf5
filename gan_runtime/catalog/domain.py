"""What a science declares to plug into the core, with its ways to get data sets.

Loads no framework and no NumPy, so every process may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.entries import Preset, Renderer, WorkloadEntry
from gan_runtime.catalog.published import CompiledEpoch, PublishedScaling, PublishedTimes

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

    `maker`: the module that makes files in the home, under a name of one's own
    (data.preparations.Maker). Empty: Keras downloads the set into its cache. `source`: what --from
    has to name, in words; empty where nothing is needed.
    `suffixes`: of a source that is one file. `name`: of the set where nobody gives one. `version`:
    of what it makes of the same source and options; one more when that changes. `has_preview`: a
    page can look through the source first.
    `promises`: what a set will hold that is made with given options. A run may name such a set
    before it is made, and waits for it; its `name` is that of the preparation, its options are the
    defaults.
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


# ---- domain --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Domain:
    """A science: its data, its workloads and what is measured of them.

    Everything is by its stored name.

    `evaluations`: "module:NAME" of each `Evaluation` that it declares; `jobs`: modules with JOBS of
    its other background jobs. `first_rows`: "module:function" that draws the first rows of one of
    its sets. It gets stored arrays by field and returns a Pillow image, or None for rows that are
    not its own. `nouns`: what one row is called that has a field, by its name. `describe(fields)`:
    what a row of one of its sets holds, in a line; "" for rows that are not its own.
    `examples`: bundles of example runs that come with the project, by their names in examples/.
    `compiled_epoch`, `scaling`, `times`: speeds that others have published, for comparison.
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
