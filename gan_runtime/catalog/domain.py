"""The declaration of a scientific domain, and all domains: of the project and of packages.

Loads no framework and no NumPy, so every process can read it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from pydantic import InstanceOf
from pydantic.dataclasses import dataclass

from gan_runtime.base.fields import Fields
from gan_runtime.catalog.entries import (
    CompiledEpoch,
    Preset,
    PublishedScaling,
    PublishedTimes,
    Renderer,
    WorkloadEntry,
)
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.catalog.table import Table


@dataclass(frozen=True)
class Domain:
    """A scientific domain: its data sets, workloads and evaluations, by their stored names. A field
    of the wrong type raises a ValidationError. It is declared in a module that imports only other
    declarations, as those of gan_runtime.base and gan_runtime.catalog.

    `evaluations`: "module:NAME" of each `Evaluation`; `jobs`: modules with JOBS, its other
    background jobs. `first_rows`:
    "module:function" that draws the first rows of its data sets; it gets stored arrays by field and
    returns a Pillow image, or None for other rows. `nouns`: what a row with a field is called, by
    field. `describe(fields)`: one line on a row of its data sets; "" for other rows. `examples`:
    names of example bundles in examples/.
    `compiled_epoch`, `scaling`, `times`: published speeds, for comparison.
    """

    name: str
    title: str
    workloads: Mapping[str, InstanceOf[WorkloadEntry]]
    preparations: Mapping[str, InstanceOf[Preparation]] = field(default_factory=dict)
    renderers: Mapping[str, InstanceOf[Renderer]] = field(default_factory=dict)
    presets: Mapping[str, InstanceOf[Preset]] = field(default_factory=dict)
    evaluations: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    first_rows: str = ""
    nouns: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[Fields], str] = lambda _fields: ""
    examples: tuple[str, ...] = ()
    compiled_epoch: InstanceOf[CompiledEpoch] | None = None
    scaling: InstanceOf[PublishedScaling] | None = None
    times: InstanceOf[PublishedTimes] | None = None


# The only place of the core that names the project's domains. Each module has DOMAIN, and imports
# the class above from this file, so the table is last.
MODULES = ("gan_runtime.domains.showers.domain", "gan_runtime.domains.flows.domain")
_OWN: tuple[Domain, ...] = tuple(importlib.import_module(name).DOMAIN for name in MODULES)
DOMAINS = Table({domain.name: domain for domain in _OWN}, "gan_runtime.domains", Domain)


def rows_of_domains(part: str) -> Iterator[tuple[str, Any]]:
    """The names and rows of a part of every domain. `part`: a field, such as "presets"."""
    for domain in DOMAINS.values():
        yield from getattr(domain, part).items()
