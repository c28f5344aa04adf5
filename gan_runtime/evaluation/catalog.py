"""The evaluations that there are, by name. Loads no framework."""

from __future__ import annotations

import importlib
from functools import cache

from gan_runtime.base.errors import JobError, quoted
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.evaluation.surface_options import LOSS_SURFACE

CORE: tuple[Evaluation, ...] = (LOSS_SURFACE,)


@cache
def evaluations() -> dict[str, Evaluation]:
    """Every evaluation by its name, the core's first."""
    of_domains = (_declared(place) for domain in DOMAINS for place in domain.evaluations)
    return {evaluation.name: evaluation for evaluation in (*CORE, *of_domains)}


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
