"""Every evaluation by name: of the core, of domains and of installed packages. Loads no framework,
but the modules of evaluations, so it is separate from the declaration.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache

from gan_runtime.base.errors import JobError, PackageError, quoted
from gan_runtime.base.importing import loaded
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.table import Table, declared

log = logging.getLogger("gan_runtime")
# docs/adding-an-evaluation.md adds one.
CORE: tuple[str, ...] = (
    # "module:NAME" of each evaluation
    "gan_runtime.evaluation.loss_surface:LOSS_SURFACE",
    "gan_runtime.evaluation.quality:QUALITY_OF_IMAGES",
)


@cache
def evaluations() -> Mapping[str, Evaluation]:
    """Every evaluation by its name, the core's first."""
    core: tuple[Evaluation, ...] = tuple(map(loaded, CORE))
    return Table(
        {row.name: row for row in core},
        "gan_runtime.evaluations",
        Evaluation,
        lambda: ((row.name, row) for domain in DOMAINS for row in _of_domain(domain)),
        has_names=True,
    )


@cache
def _of_domain(domain: str) -> tuple[Evaluation, ...]:
    """The evaluations of a domain. An unusable one of a package is skipped with a warning in the
    log.
    """
    rows: list[Evaluation] = []
    for place in DOMAINS[domain].evaluations:
        try:
            rows.append(declared(place, Evaluation))
        except PackageError as error:
            log.warning("an evaluation of %s is skipped: %s", domain, error)
    return tuple(rows)


def evaluation(name: str) -> Evaluation:
    """The evaluation with this name. Raises JobError for any other; the message lists the names."""
    if name not in evaluations():
        names = ", ".join(evaluations())
        raise JobError(f"{quoted(name)} is not an evaluation: choose one of {names}.")
    return evaluations()[name]


def caution_of(name: str) -> str:
    """What a warning of an evaluation's answers is about, also of one that is not installed."""
    known = evaluations().get(name)
    return known.caution if known else Evaluation.caution


def scores_of(workload: str) -> tuple[Metric, ...]:
    """The scores that runs of a workload may get: of its domain's evaluations, and of all that
    belong to no domain.
    """
    elsewhere = [
        row
        for name, domain in DOMAINS.items()
        if workload not in domain.workloads
        for row in _of_domain(name)
    ]
    return tuple(
        metric for row in evaluations().values() if row not in elsewhere for metric in row.scores
    )


def defining_facts() -> tuple[str, ...]:
    """The facts on which scores of any evaluation depend."""
    names = (name for row in evaluations().values() for name in row.defining_facts)
    return tuple(dict.fromkeys(names))
