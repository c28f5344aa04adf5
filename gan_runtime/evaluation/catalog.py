"""The evaluations that there are, by name: the core's, those of domains, and those of installed packages. Loads no framework."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache

from gan_runtime.base.errors import JobError, quoted
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.table import Table

# Those that are about no science; docs/adding-an-evaluation.md adds one.
CORE: tuple[str, ...] = (
    # "module:NAME" of each
    "gan_runtime.evaluation.surface_options:LOSS_SURFACE",
)


@cache
def evaluations() -> Mapping[str, Evaluation]:
    """Every evaluation by its name, the core's first."""
    places = (*CORE, *(place for domain in DOMAINS for place in domain.evaluations))
    own = {evaluation.name: evaluation for evaluation in map(_declared, places)}
    return Table(own, "gan_runtime.evaluations", Evaluation)


def evaluation(name: str) -> Evaluation:
    """By its name or one of its older names. Raises JobError for any other; the message lists them."""
    for known in evaluations().values():
        if name in (known.name, *known.aliases):
            return known
    raise JobError(f"{quoted(name)} is no evaluation: there are {', '.join(evaluations())}.")


def _declared(place: str) -> Evaluation:
    module, _, name = place.partition(":")
    declared: Evaluation = getattr(importlib.import_module(module), name)
    return declared
