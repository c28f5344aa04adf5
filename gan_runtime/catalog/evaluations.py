"""Every evaluation by name: of the core, of domains and of installed packages. Loads no framework,
but the modules of evaluations, so it is separate from the declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gan_runtime.base.errors import JobError, quoted
from gan_runtime.base.importing import loaded
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.table import Table

# docs/adding-an-evaluation.md adds one.
CORE: tuple[str, ...] = (
    # "module:NAME" of each evaluation
    "gan_runtime.evaluation.loss_surface:LOSS_SURFACE",
    "gan_runtime.evaluation.quality:QUALITY_OF_IMAGES",
)


@cache
def evaluations() -> Mapping[str, Evaluation]:
    """Every evaluation by its name, the core's first."""
    places = (*CORE, *(place for domain in DOMAINS.values() for place in domain.evaluations))
    declared: dict[str, Evaluation] = {row.name: row for row in map(loaded, places)}
    return Table(declared, "gan_runtime.evaluations", Evaluation)


def evaluation(name: str) -> Evaluation:
    """The evaluation with this name. Raises JobError for any other; the message lists the names."""
    if name not in evaluations():
        names = ", ".join(evaluations())
        raise JobError(f"{quoted(name)} is not an evaluation: choose one of {names}.")
    return evaluations()[name]


def scores_of(workload: str) -> tuple[Metric, ...]:
    """The scores that runs of a workload may get: of its domain's evaluations, and of all that
    belong to no domain.
    """
    elsewhere = {
        loaded(place).name
        for domain in DOMAINS.values()
        for place in domain.evaluations
        if workload not in domain.workloads
    }
    return tuple(
        metric
        for name, declared in evaluations().items()
        if name not in elsewhere
        for metric in declared.scores
    )


def defining_facts() -> tuple[str, ...]:
    """The facts on which scores of any evaluation depend."""
    names = (name for declared in evaluations().values() for name in declared.defining_facts)
    return tuple(dict.fromkeys(names))
