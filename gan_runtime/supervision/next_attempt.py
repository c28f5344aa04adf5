"""The next attempt of an ended run: whether it can go on, with which other learning rates,
and its place in the queue.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gan_runtime import catalog
from gan_runtime.base import disk
from gan_runtime.base.errors import DatasetError, FieldError, RunStateError, SpecError
from gan_runtime.data import loading
from gan_runtime.jobs import data_jobs
from gan_runtime.records import journal, run_files, run_state
from gan_runtime.records.home import Home, command_line, next_rank
from gan_runtime.records.journal import Changed, Created, StatusChange, StudyPlace
from gan_runtime.records.reasons import Reason, cause
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.states import CUT_SHORT
from gan_runtime.spec import RunSpec
from gan_runtime.training import starting_point


@dataclass(frozen=True)
class OtherRates:
    """All options of the next attempt, and what differs from those before."""

    spec: dict[str, Any]
    in_words: str


def changeable(workload: str) -> tuple[str, ...]:
    """What a resume may change: it steers the updates to come, and no array of a checkpoint
    depends on it.
    """
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
            f"run {run.run_id} belongs to a study, whose runs differ in one thing only: start a new"
            f" run with {words}."
        )
    return OtherRates(after.model_dump(), words) if words else None


def queue(home: Home, run: RunDir, changes: Mapping[str, Any], actor: str) -> None:
    """Queues an ended run again: same run, next attempt, from its last checkpoint.

    `changes`: other values of options that a resume may change (see `changeable`), from the next
    attempt on. `actor`: who asks.

    Raises:
        RunStateError: it has not ended, all its epochs are done, it is to change though it belongs
            to a study, or `refusal` says
            why.
        SpecError: a value is wrong, or of an option that no resume changes.
        HomeError: the disk has no space left for it.
    """
    last = latest_status(run)
    if last.status not in CUT_SHORT:
        raise RunStateError(
            f"run {run.run_id} is {last.status}: only a stopped, failed or lost run can be resumed."
        )
    if why_not := refusal(run):
        raise RunStateError(why_not)
    other = other_rates(run, changes)
    disk.require(home.path, disk.LEAST_BYTES + _newest_bytes(run), "going on with the run")
    dataset = _dataset_of(run)
    waits_for = data_jobs.job_for(home, dataset) if dataset else ""
    run.stop_file.unlink(missing_ok=True)
    changes_in_words = other.in_words if other else ""
    why = cause(Reason.RESUMED, changes=changes_in_words)
    if waits_for:
        why = cause(
            Reason.RESUMED_WAITS_FOR_DATA, changes=changes_in_words, data_set=dataset, percent=0
        )
    queued = StatusChange.of(
        "queued", why, queue_rank=next_rank(home), waits_for=waits_for, asker=actor
    )
    if other:
        write_json(
            run.spec_path, other.spec
        )  # before the journal: the owner may start the trainer at once
        journal.append(run.supervisor_journal, last.attempt + 1, Changed(spec=other.spec), queued)
    else:
        journal.append(run.supervisor_journal, last.attempt + 1, queued)
    run.announce()


def _newest_bytes(run: RunDir) -> int:
    """What its next two checkpoints will take, as large as those that it has: the least that
    it needs to save and end again.
    """
    return 2 * max(
        (path.stat().st_size for path in run.checkpoints.glob("*.safetensors")), default=0
    )


def _dataset_of(run: RunDir) -> str:
    """What a run trains on; empty where its options cannot be read, which its trainer then
    tells.
    """
    try:
        return run.spec().dataset
    except SpecError:
        return ""


def refusal(run: RunDir) -> str:
    """Why an ended run cannot go on; empty when it can.

    A run that has measured nothing yet may begin anew, and so may one that was killed here before
    its first checkpoint: as after any kill, what it measured since the last checkpoint is measured
    again.

    An imported run has numbers and no checkpoints: a trainer would begin at step 1, and every
    number beyond it be void. With another data set of the same name, the numbers to come would
    belong to another training.
    """
    if run.has_checkpoint:
        return _of_other_data(run)
    if not _has_measured(run) or starting_point.is_cut_off_before_saving(run):
        return ""
    again = (
        f"{command_line()} train --spec"
        f" {shlex.quote(str(run.spec_path))}{Home(run.path.parent.parent).flag}"
    )
    return (
        f"run {run.run_id} has no checkpoint, so there is nothing to resume from: train its"
        f" settings again with `{again}`."
    )


def _of_other_data(run: RunDir) -> str:
    dataset, home = _dataset_of(run), Home(run.path.parent.parent)
    try:
        return run_state.data_refusal(run, dataset, loading.content_of(dataset, home))
    except DatasetError:  # it is gone, or damaged: told when the run asks for it
        return ""


def _has_measured(run: RunDir) -> bool:
    journals = [path for path in run.journals() if path != run.supervisor_journal]
    return any(
        b'"kind":"scalars"' in piece for path in journals for piece in run_files.pieces(path)
    )


def _study(run: RunDir) -> StudyPlace | None:
    created = next(
        (
            record
            for record in journal.read_all(run.supervisor_journal)
            if isinstance(record, Created)
        ),
        None,
    )
    return created.study if created else None
