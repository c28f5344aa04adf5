"""The queue of a home: waiting and training runs, and queuing an ended run again."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gan_runtime import catalog
from gan_runtime.base import disk
from gan_runtime.base.errors import (
    DatasetError,
    FieldError,
    GanRuntimeError,
    RunStateError,
    SpecError,
)
from gan_runtime.base.slurm import TIME_LIMIT
from gan_runtime.data import loading
from gan_runtime.jobs import core_jobs
from gan_runtime.records import journal, run_files, run_folder
from gan_runtime.records.home import Home, command_line, is_run_name, next_rank
from gan_runtime.records.journal import ENDED, Changed, Created, StatusChange, StudyPlace
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, Stamp, latest_status, write_json
from gan_runtime.records.states import CUT_SHORT, Cause, Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.folder_watcher import folders_changed_ns
from gan_runtime.store.store import Store
from gan_runtime.supervision.starters import Attempt
from gan_runtime.training import starting_point

# ---- waiting and training runs -------------------------------------------------------------------


@dataclass(frozen=True)
class LiveRun:
    """A waiting or training run. `target`: where it trains; "here" is this host."""

    run: RunDir
    status: str
    attempt: int
    accelerator: str
    target: str = HERE

    @property
    def key(self) -> tuple[str, int]:
        """Run id and attempt."""
        return (self.run.run_id, self.attempt)

    @property
    def as_attempt(self) -> Attempt:
        """The attempt, for a starter."""
        return Attempt(self.run, self.attempt, self.accelerator, self.target)

    @property
    def device(self) -> str:
        """What the run occupies while it trains alone. Runs of a target occupy nothing here."""
        return self.accelerator if self.target == HERE else f"{self.target}/{self.run.run_id}"


def of_store(home: Home, store: Store) -> list[LiveRun]:
    """Training runs first, then the queue in its order."""
    rows = store.rows(
        "SELECT run_id, status, attempt, runs_live.accelerator, coalesce(created.spec->>'target',"
        " ?) FROM runs_live JOIN ingest.created USING (run_id) ORDER BY status = 'queued',"
        " queue_rank, run_id",
        [HERE],
    )
    return [
        LiveRun(RunDir(home.runs / run_id), status, attempt, accelerator, target)
        for run_id, status, attempt, accelerator, target in rows
    ]


@dataclass(frozen=True)
class _JournalState:
    """The state of a run for these stamps of its journals. `live`: None for an ended run."""

    stamps: dict[str, Stamp]
    live: LiveRun | None
    queue_rank: float


class LiveInJournals:
    """Waiting and training runs while the database does not answer.

    Ended runs are read only if their folders change, since reading all can take minutes.
    """

    def __init__(self, home: Home) -> None:
        self._home, self._changed_ns = home, folders_changed_ns(home)
        self._read_states: dict[str, _JournalState] = {}

    def refresh(self, last: Iterable[LiveRun]) -> list[LiveRun]:
        """The live runs in the order of `of_store`. `last`: the previous result, used for runs with
        an unreadable journal.
        """
        before, self._changed_ns = self._changed_ns, folders_changed_ns(self._home)
        live = {run.run.run_id: run for run in last}
        changed = {name for name, at in self._changed_ns.items() if before.get(name) != at}
        for name in sorted(changed | live.keys() | self._read_states.keys()):
            if name in self._changed_ns and is_run_name(name):
                try:
                    self._read(RunDir(self._home.runs / name), live.get(name))
                except (OSError, GanRuntimeError):
                    del self._changed_ns[name]  # read again the next time
            else:
                self._read_states.pop(name, None)
                live.pop(name, None)
        live |= {
            name: state.live for name, state in self._read_states.items() if state.live is not None
        }
        ended = {name for name, state in self._read_states.items() if state.live is None}
        return sorted((run for name, run in live.items() if name not in ended), key=self._place)

    def _read(self, run: RunDir, last: LiveRun | None) -> None:
        stamps, state = run.journal_stats(), self._read_states.get(run.run_id)
        if state is not None and state.stamps == stamps:
            return
        accelerator, target = (last.accelerator, last.target) if last is not None else _place(run)
        newest = latest_status(run)
        live = None
        if newest.status not in ENDED and accelerator:
            live = LiveRun(run, newest.status, newest.attempt, accelerator, target)
        self._read_states[run.run_id] = _JournalState(stamps, live, newest.queue_rank or 0.0)

    def _place(self, live: LiveRun) -> tuple[bool, float, str]:
        state = self._read_states.get(live.run.run_id)
        return (live.status == "queued", state.queue_rank if state else 0.0, live.run.run_id)


def _place(run: RunDir) -> tuple[str, str]:
    """Accelerator and target in the submission; "" and "here" if the first line is none."""
    first = journal.first(run.supervisor_journal)
    if not isinstance(first, Created):
        return "", HERE
    return first.accelerator, str(first.spec.get("target", HERE))


# ---- runs whose trainer was never spawned --------------------------------------------------------


NEXT_OWNER = operator("next owner")
MOST_REQUEUES = 3  # in a row; a recurring cause, such as too little memory, needs the user


def requeue(run: RunDir, attempt: int) -> bool:
    """Queues the next attempt of a run at its old rank; False after MOST_REQUEUES in a row."""
    waits = [
        change
        for _, change in journal.statuses(run.supervisor_journal)
        if change.status == "queued"
    ]
    newest = waits[-MOST_REQUEUES:]
    if not waits or (
        len(newest) == MOST_REQUEUES and all(wait.asker == NEXT_OWNER.name for wait in newest)
    ):
        return False
    requeued = waits[-1].because(cause(Reason.REQUEUED), asker=NEXT_OWNER.name)
    journal.append(run.supervisor_journal, attempt + 1, requeued)
    return True


def renew(home: Home, run: RunDir, attempt: int, why: Cause) -> None:
    """Queues the next attempt of a run that its target starts again by itself."""
    if run.stop_asker == TIME_LIMIT:
        run.stop_file.unlink(missing_ok=True)
    queued = StatusChange.of("queued", why, queue_rank=next_rank(home), asker=NEXT_OWNER.name)
    journal.append(run.supervisor_journal, attempt + 1, queued)


@dataclass(frozen=True)
class ChangedRates:
    """All options of the next attempt, and the changes since the last attempt."""

    spec: dict[str, Any]
    in_words: str


def changeable(workload: str) -> tuple[str, ...]:
    """The options that a resume can change, since no array of a checkpoint depends on them."""
    rates = catalog.WORKLOADS[workload].rates if workload in catalog.WORKLOADS else ()
    return (*rates, "clip_norm")


def changed_rates(run: RunDir, changes: Mapping[str, Any]) -> ChangedRates | None:
    """The run's options with `changes`; None if nothing differs. Writes nothing.

    Raises:
        SpecError: a value is invalid, or a resume cannot change that option.
        RunStateError: the run belongs to a study.
    """
    if not changes:
        return None
    before = run.spec()
    values = {name.removeprefix(f"{before.workload}."): value for name, value in changes.items()}
    allowed = changeable(before.workload)
    refused = [name for name in values if name not in allowed]
    if refused:
        sentence = f"cannot change at a resume, only {', '.join(allowed)} can: start a new run."
        raise SpecError([FieldError(name, f"{name} {sentence}") for name in refused])
    after = RunSpec.parse({**before.flat(), **values})
    differences = ", ".join(
        f"{name} {after.value(name):g} instead of {before.value(name):g}"
        for name in values
        if after.value(name) != before.value(name)
    )
    if differences and _study(run):
        raise RunStateError(
            f"run {run.run_id} belongs to a study, whose runs differ in one option only: start a"
            f" new run with {differences}."
        )
    return ChangedRates(after.model_dump(), differences) if differences else None


def resume(home: Home, run: RunDir, changes: Mapping[str, Any], actor: str) -> None:
    """Queues an ended run again: same run, next attempt, from its last checkpoint.

    `changes`: new values of `changeable` options, from the next attempt on. `actor`: the actor's
    name.

    Raises:
        RunStateError: the run has not ended, is finished, cannot continue, was started on a
            cluster, or belongs to a study, whose options cannot change.
        SpecError: a value is invalid, or a resume cannot change that option.
        HomeError: the disk has too little space.
    """
    last = latest_status(run)
    if last.status not in CUT_SHORT:
        raise RunStateError(
            f"run {run.run_id} is {last.status}: only a stopped, failed or lost run can be resumed."
        )
    if refusal := resume_refusal(run):
        raise RunStateError(refusal)
    rates = changed_rates(run, changes)
    disk.require(home.path, disk.LEAST_BYTES + _newest_bytes(run), "resuming the run")
    dataset = _dataset_of(run)
    waits_for = core_jobs.job_for(home, dataset) if dataset else ""
    run.stop_file.unlink(missing_ok=True)
    differences = rates.in_words if rates else ""
    why = cause(Reason.RESUMED, changes=differences)
    if waits_for:
        why = cause(Reason.RESUMED_WAITS_FOR_DATA, changes=differences, data_set=dataset, percent=0)
    queued = StatusChange.of(
        "queued", why, queue_rank=next_rank(home), waits_for=waits_for, asker=actor
    )
    if rates:
        # Before the journal, since the owner can start the trainer at once.
        write_json(run.spec_path, rates.spec)
        journal.append(run.supervisor_journal, last.attempt + 1, Changed(spec=rates.spec), queued)
    else:
        journal.append(run.supervisor_journal, last.attempt + 1, queued)
    run.announce()


def _newest_bytes(run: RunDir) -> int:
    """The bytes of the next two checkpoints, which a run needs to save and end."""
    return 2 * max(
        (path.stat().st_size for path in run.checkpoints.glob("*.safetensors")), default=0
    )


def _dataset_of(run: RunDir) -> str:
    """The data set of a run; "" if its options are unreadable, which the trainer reports."""
    try:
        return run.spec().dataset
    except SpecError:
        return ""


def resume_refusal(run: RunDir) -> str:
    """The reason why an ended run cannot continue; "" if it can.

    A run without numbers, or killed in this home before its first checkpoint, starts from step 1.
    An imported run has numbers and no checkpoints, so starting it again would void its numbers.
    """
    if refusal := _of_cluster(run):
        return refusal
    if run.has_checkpoint:
        return _of_other_data(run)
    if not _has_measured(run) or starting_point.is_cut_off_before_saving(run):
        return ""
    command = (
        f"{command_line()} train --spec"
        f" {shlex.quote(str(run.spec_path))}{Home(run.path.parent.parent).flag}"
    )
    return (
        f"run {run.run_id} has no checkpoint to resume from: train its options again with"
        f" `{command}`."
    )


def _of_cluster(run: RunDir) -> str:
    """Why this host continues no run that was started on a cluster by hand; "" for other runs."""
    trainer = run.process()
    if trainer is None or trainer.cluster_host is None or _place(run)[1] != HERE:
        return ""
    words = [str(run.path), str(latest_status(run).attempt + 1), _place(run)[0]]
    return (
        f"run {run.run_id} trained on a cluster (host {trainer.cluster_host}): start its next"
        f" attempt there, with `srun python -m gan_runtime.worker {shlex.join(words)}`."
    )


def _of_other_data(run: RunDir) -> str:
    dataset, home = _dataset_of(run), Home(run.path.parent.parent)
    try:
        return run_folder.data_refusal(run, dataset, loading.content_of(dataset, home))
    except DatasetError:  # a missing or damaged set is reported by the trainer
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


def starting_from(home: Home, run_id: str) -> list[str]:
    """The ids of live runs that still need the weights of a run (`start_from`)."""
    return [run.run_id for run in home.run_dirs() if _needs_weights_of(run, run_id)]


def _needs_weights_of(run: RunDir, run_id: str) -> bool:
    """Whether a run still needs another run's weights; False with a checkpoint, or if its options
    are unreadable.
    """
    with contextlib.suppress(OSError, GanRuntimeError):
        if run_id.encode() in run_files.content(run.spec_path):  # before the options are parsed
            source = run.spec().start_from.partition(":")[0]
            is_needed = source == run_id and not run.has_checkpoint
            return is_needed and latest_status(run).status not in ENDED
    return False
