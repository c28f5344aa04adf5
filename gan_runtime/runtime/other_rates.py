"""Other learning rates for the next attempt of a run: what a resume may change, and what it may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gan_runtime.errors import FieldError, RunStateError, SpecError
from gan_runtime.records import journal
from gan_runtime.records.journal import Created, StudyPlace
from gan_runtime.records.rundir import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.spec.optimizer import CHANGED_BY_RESUME


@dataclass(frozen=True)
class OtherRates:
    """All options of the next attempt, and what differs from those before."""

    spec: dict[str, Any]
    in_words: str


def other_rates(run: RunDir, changes: Mapping[str, Any]) -> OtherRates | None:
    """The run's options with `changes`; None when nothing would differ. Writes nothing.

    Raises:
        SpecError: a value is wrong, or of an option that no resume changes.
        RunStateError: the run belongs to a study.
    """
    refused = [name for name in changes if name not in CHANGED_BY_RESUME]
    if refused:
        sentence = f"is not changed by a resume, only {', '.join(CHANGED_BY_RESUME)}: start a new run for it."
        raise SpecError([FieldError(name, f"{name} {sentence}") for name in refused])
    if not changes:
        return None
    before = run.spec().model_dump()
    after = RunSpec.parse({**before, **changes}).model_dump()
    words = ", ".join(
        f"{name} {after[name]:g} instead of {before[name]:g}"
        for name in changes
        if after[name] != before[name]
    )
    if words and _study(run):
        raise RunStateError(
            f"run {run.run_id} belongs to a study, whose runs differ in one thing only: start a new run with {words}."
        )
    return OtherRates(after, words) if words else None


def _study(run: RunDir) -> StudyPlace | None:
    created = next(
        (record for record in journal.read_all(run.supervisor_journal) if isinstance(record, Created)), None
    )
    return created.study if created else None
