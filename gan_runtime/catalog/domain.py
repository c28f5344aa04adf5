"""What a science declares to plug into the core. Loads no framework and no NumPy, so every process may read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gan_runtime.base.fields import Fields
from gan_runtime.catalog.entries import Preset, Renderer, WorkloadEntry
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.catalog.published import CompiledEpoch, PublishedScaling, PublishedTimes


@dataclass(frozen=True)
class Domain:
    """A science: its data, its workloads and what is measured of them. Everything is by its stored name.

    `evaluations`: "module:NAME" of each `Evaluation` that it declares; `jobs`: modules with
    JOBS of its other background jobs. `first_rows`: "module:function" that draws the first rows of one of its sets. It gets stored arrays by field and returns
    a Pillow image, or None for rows that are not its own. `nouns`: what one row is called that has a field, by its name.
    `describe(fields)`: what a row of one of its sets holds, in a line; "" for rows that are not its own.
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
