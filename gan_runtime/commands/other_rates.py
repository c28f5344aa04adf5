"""Other learning rates for the next attempt of a run: what a resume may change, and what it may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gan_runtime import catalog
from gan_runtime.base.errors import FieldError, RunStateError, SpecError
from gan_runtime.records import journal
from gan_runtime.records.journal import Created, StudyPlace
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec


@dataclass(frozen=True)
class OtherRates:
    """All options of the next attempt, and what differs from those before."""

    spec: dict[str, Any]
    in_words: str


def changeable(workload: str) -> tuple[str, ...]:
    """What a resume may change: it steers the updates to come, and no array of a checkpoint depends on it."""
    rates = catalog.WORKLOADS[workload].rates if workload in catalog.WORKLOADS else ()
    return (*rates, "clip_norm")


def other_rates(run: RunDir, changes: Mapping[str, Any]) -> OtherRates | None:
    """The run's options with `changes`; None when nothing would differ. Writes nothing.

    Raises:
        SpecError: a value is wrong, or of an option that no resume changes.
        RunStateError: the run belongs to a study.
    """
    if not changes:
        return None
    before = run.spec()
    asked = {name.removeprefix(f"{before.workload}."): value for name, value in changes.items()}
    allowed = changeable(before.workload)
    refused = [name for name in asked if name not in allowed]
    if refused:
        sentence = f"is not changed by a resume, only {', '.join(allowed)}: start a new run for it."
        raise SpecError([FieldError(name, f"{name} {sentence}") for name in refused])
    after = RunSpec.parse({**before.flat(), **asked})
    words = ", ".join(
        f"{name} {after.value(name):g} instead of {before.value(name):g}"
        for name in asked
        if after.value(name) != before.value(name)
    )
    if words and _study(run):
        raise RunStateError(
            f"run {run.run_id} belongs to a study, whose runs differ in one thing only: start a new run with {words}."
        )
    return OtherRates(after.model_dump(), words) if words else None


def _study(run: RunDir) -> StudyPlace | None:
    created = next(
        (record for record in journal.read_all(run.supervisor_journal) if isinstance(record, Created)), None
    )
    return created.study if created else None
